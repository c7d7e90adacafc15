//! Generated graphs: their counts, reproducibility and limits.

use std::collections::HashSet;

use anden_base::parallel::Pool;
use anden_graph::generate::{Generator, GridParams, RmatParams, RoadParams, UniformParams};
use anden_graph::{Direction, Graph, GraphKind};

fn generators() -> Vec<(&'static str, Generator)> {
    let rmat = RmatParams { scale: 12, degree: 40, ..RmatParams::default() };
    let uniform = UniformParams { scale: 13, degree: 17, seed: 5 };
    let grid = GridParams { width: 311, height: 517, seed: 3 };
    vec![
        ("rmat", Generator::rmat(&rmat).unwrap()),
        ("uniform", Generator::uniform(&uniform).unwrap()),
        ("grid", Generator::grid(&grid).unwrap()),
        ("weighted", Generator::rmat(&rmat).unwrap().with_weights(3..=9).unwrap()),
        ("road", Generator::road(&RoadParams { width: 301, height: 277, seed: 2 }).unwrap()),
    ]
}

#[test]
fn threads_do_not_matter() {
    let (one, four) = (Pool::new(1).unwrap(), Pool::new(4).unwrap());
    for (name, generator) in generators() {
        let edges = generator.edges(&one);
        assert_eq!(edges.len() as u64, generator.num_edges(), "{name}");
        assert!(edges.iter().all(|&(s, t)| u64::from(s.max(t)) < generator.num_vertices()));
        assert!(edges == generator.edges(&four), "{name}");
        let (a, b) = (generator.csr(&one).unwrap(), generator.csr(&four).unwrap());
        assert!(a.out_lists().targets() == b.out_lists().targets(), "{name}");
    }
}

#[test]
fn the_shapes_are_as_named() {
    let pool = Pool::new(2).unwrap();
    let mut degrees = Vec::new();
    for (name, generator) in generators() {
        let graph = generator.csr(&pool).unwrap();
        assert_eq!(graph.graph_kind(), GraphKind::Undirected);
        degrees.push((name, (0..graph.vertex_bound() as u32).map(|v| graph.degree(Direction::Out, v)).max().unwrap()));
        if name == "road" {
            assert_eq!(graph.num_edges(), generator.num_edges());
            assert!((15.8..16.0).contains(&(graph.num_arcs() as f64 / graph.num_vertices() as f64)));
        }
        if name == "grid" {
            assert_eq!(graph.num_edges(), 311 * 516 + 310 * 517);
            assert_eq!(graph.num_edges(), generator.num_edges());
        }
    }
    assert_eq!((degrees[2].1, degrees[4].1), (4, 18));
    for (width, height) in [(0, 3), (1, 1), (1, 9), (4, 4), (5, 3), (7, 20)] {
        let road = Generator::road(&RoadParams { width, height, seed: 7 }).unwrap();
        let edges: HashSet<_> = road.edges(&pool).into_iter().collect();
        assert_eq!(edges.len() as u64, road.num_edges(), "{width} x {height}");
        assert!(edges.iter().all(|&(s, t)| s < t && u64::from(t) < width * height), "{width} x {height}");
    }
    assert!(degrees[0].1 > 1000, "no hub: {degrees:?}");
    assert!(degrees[1].1 < 100, "a hub: {degrees:?}");
}

#[test]
fn seeds_and_weights() {
    let params = UniformParams { scale: 10, degree: 16, seed: 1 };
    let one = Generator::uniform(&params).unwrap().with_weights(5..=7).unwrap();
    let two = Generator::uniform(&UniformParams { seed: 2, ..params }).unwrap();
    let pool = Pool::new(1).unwrap();
    assert!(one.edges(&pool) != two.edges(&pool));
    let weights: HashSet<u32> = one.edges(&pool).iter().map(|&(s, t)| one.weight(s, t)).collect();
    assert_eq!(weights, HashSet::from([5, 6, 7]));
    assert_eq!(one.weight(3, 900), one.weight(900, 3));
    let full = Generator::uniform(&params_of(4)).unwrap().with_weights(0..=u32::MAX).unwrap();
    assert!(full.weight(1, 2) != full.weight(1, 3));
}

fn params_of(scale: u32) -> UniformParams {
    UniformParams { scale, ..UniformParams::default() }
}

#[test]
fn small_graphs() {
    let pool = Pool::new(2).unwrap();
    let grid = |width, height| Generator::grid(&GridParams { width, height, seed: 1 }).unwrap();
    for (width, height, num_edges) in [(0, 0, 0), (0, 7, 0), (1, 1, 0), (1, 5, 4), (2, 2, 4)] {
        let edges = grid(width, height).edges(&pool);
        assert_eq!(edges.len(), num_edges, "{width} by {height}");
        assert_eq!(grid(width, height).csr(&pool).unwrap().num_edges(), num_edges as u64);
    }
    let one = Generator::rmat(&RmatParams { scale: 0, degree: 3, ..RmatParams::default() }).unwrap();
    assert_eq!(one.edges(&pool), [(0, 0); 3]);
    assert_eq!(Generator::uniform(&UniformParams { degree: 0, ..params_of(31) }).unwrap().edges(&pool), []);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let rmat = |change: fn(&mut RmatParams)| {
        let mut params = RmatParams::default();
        change(&mut params);
        Generator::rmat(&params).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(rmat(|p| p.scale = 32).unwrap_err(), "expected a scale of at most 31, found 32");
    assert!(rmat(|p| p.degree = u64::MAX).is_err());
    assert_eq!(rmat(|p| p.a = f64::NAN).unwrap_err(), "expected a from 0 to 1, found NaN");
    assert!(rmat(|p| p.b = -0.1).is_err());
    assert!(rmat(|p| p.a = 0.7).unwrap_err().starts_with("expected a + b + c of at most 1"));
    assert!(rmat(|p| (p.a, p.b, p.c) = (0.7, 0.2, 0.1)).is_ok());
    assert!(Generator::grid(&GridParams { width: 1 << 40, height: 1 << 40, seed: 1 }).is_err());
    assert!(Generator::grid(&GridParams { width: 1 << 20, height: 1 << 13, seed: 1 }).is_err());
    let (low, high) = (9, 3);
    assert!(Generator::uniform(&params_of(4)).unwrap().with_weights(low..=high).is_err());
}
