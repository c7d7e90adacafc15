//! Generated graphs: their counts, their sameness, their bounds.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use anden_graph::formats::{Output, SerializedWeights, SourceOptions, write_file, write_gapbs};
use anden_graph::generate::{Generator, GridParams, RmatParams, RoadParams, UniformParams};
use anden_graph::{Csr, Direction, Error, Graph, Weight};
use base::parallel::Pool;
use base::progress::{Progress, Silent};

use crate::reading;
use crate::reading::{Folder, read_files};

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

fn text(generator: &Generator, threads: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut output = Output::new("-".as_ref(), &mut bytes);
    generator.write_edge_list(&Pool::new(threads).unwrap(), &mut output).unwrap();
    drop(output);
    bytes
}

#[test]
fn threads_do_not_matter() {
    let (one, four) = (Pool::new(1).unwrap(), Pool::new(4).unwrap());
    for (name, generator) in generators() {
        let edges = generator.edges(&one);
        assert_eq!(edges.len() as u64, generator.num_edges(), "{name}");
        assert!(edges.iter().all(|&(s, t)| u64::from(s.max(t)) < generator.num_vertices()));
        assert!(edges == generator.edges(&four), "{name}");
        assert!(text(&generator, 1) == text(&generator, 4), "{name}");
        let (a, b) = (generator.csr(&one).unwrap(), generator.csr(&four).unwrap());
        assert!(a.out_lists().targets() == b.out_lists().targets(), "{name}");
    }
}

#[test]
fn a_seed_gives_the_same_file_for_ever() {
    let grid = Generator::grid(&GridParams { width: 3, height: 2, seed: 1 }).unwrap().with_weights(1..=9).unwrap();
    assert_eq!(text(&grid, 2), b"3 2 5\n3 4 7\n2 1 1\n2 0 5\n1 5 5\n4 0 5\n0 5 2\n");
    let sums: Vec<u64> = generators().iter().map(|(_, generator)| checksum(&text(generator, 2))).collect();
    assert_eq!(
        sums,
        [
            17_051_531_676_374_370_139,
            9_080_989_586_973_114_444,
            4_218_244_912_889_727_721,
            5_972_694_724_937_961_794,
            17_908_307_507_297_739_857
        ]
    );
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn the_shapes_are_as_named() {
    let pool = Pool::new(2).unwrap();
    let mut degrees = Vec::new();
    for (name, generator) in generators() {
        let graph = generator.csr(&pool).unwrap();
        assert_eq!(graph.direction(), Direction::Undirected);
        degrees.push((name, (0..graph.vertex_bound() as u32).map(|v| graph.out_degree(v)).max().unwrap()));
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
fn text_and_serialized_graph_agree() {
    let folder = Folder::new();
    let pool = Pool::new(2).unwrap();
    for (name, generator) in generators() {
        let path = folder.path("graph.txt");
        write_file::<_, Error>(&path, |output| generator.write_edge_list(&pool, output)).unwrap();
        let options =
            SourceOptions { weights: generator.has_weights().then_some(u32::TYPE), ..SourceOptions::default() };
        let read = reading::read_once::<u64, u32>(&[&path], &options, 2).unwrap();
        let from_text: HashSet<(u64, u64, u32)> = read
            .pairs()
            .into_iter()
            .enumerate()
            .filter(|(_, (s, t))| s != t)
            .map(|(i, (s, t))| (s.min(t), s.max(t), read.weights.get(i).copied().unwrap_or(1)))
            .collect();
        let path = folder.path(if generator.has_weights() { "graph.wsg" } else { "graph.sg" });
        write_file::<_, Error>(&path, |output| generator.write_gapbs(&pool, &Silent, output)).unwrap();
        let read = read_files::<u64, u32>(&[&path], &options).unwrap();
        let pairs = read.pairs().into_iter().enumerate();
        let weight = |i: usize| read.weights.get(i).copied().unwrap_or(1);
        let from_graph: HashSet<(u64, u64, u32)> = pairs.map(|(i, (s, t))| (s, t, weight(i))).collect();
        assert!(from_text == from_graph, "{name}: {} and {}", from_text.len(), from_graph.len());
        assert_eq!(from_graph.len(), read.edges.len(), "{name}");
        let graph = Csr::read_gapbs(&path, &pool).unwrap();
        assert_eq!(graph.num_edges(), read.edges.len() as u64);
        let again = folder.path("again.wsg");
        let weights = if generator.has_weights() { SerializedWeights::Write } else { SerializedWeights::Leave };
        write_file::<_, Error>(&again, |output| write_gapbs(&graph, weights, output)).unwrap();
        assert!(std::fs::read(&again).unwrap() == std::fs::read(&path).unwrap(), "{name}");
    }
}

/// Says stop when it is asked for the last time of so many.
struct Patience(AtomicU64);

impl Progress for Patience {
    fn is_cancelled(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

/// Making the lists once went on to its end, seconds after somebody had said stop.
#[test]
fn a_serialized_graph_can_be_stopped_at_any_moment() {
    let pool = Pool::new(2).unwrap();
    let generator = Generator::rmat(&RmatParams { scale: 13, degree: 16, ..RmatParams::default() }).unwrap();
    let generator = generator.with_weights(1..=9).unwrap();
    let mut patience = 0;
    loop {
        let mut bytes = Vec::new();
        let mut output = Output::new("graph.wsg".as_ref(), &mut bytes);
        match generator.write_gapbs(&pool, &Patience(patience.into()), &mut output) {
            Ok(_) => break,
            Err(error) => assert_eq!(error.to_string(), "cancelled"),
        }
        drop(output);
        assert!(bytes.is_empty(), "something was written after {patience} questions");
        patience += 1;
    }
    // Two passes over the edges, and three over the lists.
    let (num_blocks, num_pieces) = (2 * generator.num_blocks(), 3 * (1 << 13) / 4096);
    assert!(patience >= num_blocks + num_pieces, "only {patience} questions");
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
