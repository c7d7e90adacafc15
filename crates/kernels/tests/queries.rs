//! Questions about single vertices, against the whole-graph kernels and the edges themselves.

use std::collections::BTreeSet;

use anden_kernels::bfs::{BfsParams, UNREACHED, bfs};
use anden_kernels::query::{Neighbors, has_edge, khop, neighbors, path, weighted_path};
use anden_kernels::sssp::{DistanceValue, Distances, SsspParams, sssp};
use anden_kernels::{Context, Error};
use base::VertexId;
use base::parallel::Pool;
use graph::{Csr, Graph, InEdges, SingleFragment, WeightedEdges};
use testkit::{Pieces, Random, for_each_graph};

/// A few vertices of the graph, alive.
fn some_vertices(graph: &impl Graph, random: &mut Random) -> Vec<VertexId> {
    let bound = graph.vertex_bound() as u32;
    let mut vertices: Vec<_> = (0..8).map(|_| random.below(bound)).collect();
    vertices.extend([0, bound.saturating_sub(1)]);
    vertices.retain(|&v| v < bound && graph.is_live(v));
    vertices
}

/// Calls `check` with every view of every graph.
macro_rules! each_view {
    ($check:ident) => {
        let pool = Pool::new(1).unwrap();
        let ctx = Context::new(&pool);
        for_each_graph(|name, csr: &Csr| {
            $check(&ctx, csr, csr, name);
            for (view, pieces) in Pieces::of_every_kind(csr) {
                $check(&ctx, &pieces, csr, &format!("{name}, {view}"));
            }
        });
    };
}

fn check_neighbors(_: &Context<'_>, graph: &impl InEdges, csr: &Csr, what: &str) {
    for v in some_vertices(graph, &mut Random::new(1)) {
        let out: BTreeSet<_> = csr.out_list(v).unwrap().iter().copied().collect();
        let sources = (0..csr.vertex_bound() as VertexId).filter(|&u| csr.out_list(u).unwrap().contains(&v));
        let into: BTreeSet<_> = sources.collect();
        let both: BTreeSet<_> = out.union(&into).copied().collect();
        for (which, wanted) in [(Neighbors::Out, &out), (Neighbors::In, &into), (Neighbors::Both, &both)] {
            match neighbors(graph, v, which) {
                Ok(found) => assert!(found.iter().eq(wanted), "{what}: vertex {v}, {which:?}"),
                Err(Error::Unsupported { .. }) => assert!(!graph.has_in_edges() && which != Neighbors::Out),
                Err(error) => panic!("{what}: vertex {v}: {error}"),
            }
        }
        for u in some_vertices(graph, &mut Random::new(2)) {
            assert_eq!(has_edge(graph, v, u).unwrap(), out.contains(&u), "{what}: {v} to {u}");
        }
    }
}

#[test]
fn neighbours_are_those_of_the_edges() {
    each_view!(check_neighbors);
}

fn check_khop(ctx: &Context<'_>, graph: &impl InEdges, _: &Csr, what: &str) {
    for v in some_vertices(graph, &mut Random::new(3)) {
        let hops = bfs(ctx, graph, &BfsParams { source: v, parents: false }).unwrap().hops;
        for num_hops in [0, 1, 2, 5, u32::MAX] {
            let near = |&u: &VertexId| (1..=num_hops).contains(&hops[u as usize]) && hops[u as usize] != UNREACHED;
            let wanted: Vec<_> = (0..hops.len() as VertexId).filter(near).collect();
            assert_eq!(khop(ctx, graph, v, num_hops).unwrap(), wanted, "{what}: {num_hops} hops from {v}");
        }
    }
}

#[test]
fn hops_agree_with_the_search() {
    each_view!(check_khop);
}

fn check_path(ctx: &Context<'_>, graph: &impl InEdges, csr: &Csr, what: &str) {
    let vertices = some_vertices(graph, &mut Random::new(4));
    for &u in &vertices {
        let hops = bfs(ctx, graph, &BfsParams { source: u, parents: false }).unwrap().hops;
        for &v in &vertices {
            let found = path(ctx, graph, u, v).unwrap();
            assert_eq!(found, path(ctx, graph, u, v).unwrap(), "{what}: {u} to {v}");
            let Some(found) = found else {
                assert_eq!(hops[v as usize], UNREACHED, "{what}: {u} to {v}");
                continue;
            };
            assert_eq!(found.length(), hops[v as usize] as usize, "{what}: {u} to {v}");
            assert_eq!((found.vertices.first(), found.vertices.last()), (Some(&u), Some(&v)), "{what}");
            let is_edge = |pair: &[VertexId]| csr.out_list(pair[0]).unwrap().contains(&pair[1]);
            assert!(found.vertices.windows(2).all(is_edge), "{what}: {:?}", found.vertices);
        }
    }
}

#[test]
fn paths_are_shortest_and_made_of_edges() {
    each_view!(check_path);
}

fn check_weighted_path(ctx: &Context<'_>, graph: &(impl InEdges + WeightedEdges), csr: &Csr, what: &str) {
    let vertices = some_vertices(graph, &mut Random::new(5));
    let lightest = |u: VertexId, v: VertexId| {
        let mut least = u64::MAX;
        let _ = csr.for_each_weighted_out_fragment::<u32>(u, |targets, weights| {
            let of_pair = targets.iter().zip(weights).filter(|(target, _)| **target == v);
            least = of_pair.map(|(_, &weight)| u64::from(weight)).min().unwrap_or(least);
            std::ops::ControlFlow::Continue(())
        });
        least
    };
    for &u in &vertices {
        let result = sssp(ctx, graph, &SsspParams { source: u, ..SsspParams::default() }).unwrap();
        let Distances::Integer(distances) = result.distances else { panic!("{what}: integer weights") };
        for &v in &vertices {
            let wanted = distances[v as usize];
            let Some(found) = weighted_path(ctx, graph, u, v).unwrap() else {
                assert_eq!(wanted, u64::MAX, "{what}: {u} to {v}");
                continue;
            };
            assert_eq!(found.length, DistanceValue::Integer(wanted), "{what}: {u} to {v}");
            let sum: u64 = found.vertices.windows(2).map(|pair| lightest(pair[0], pair[1])).sum();
            assert_eq!(sum, wanted, "{what}: {:?}", found.vertices);
            assert_eq!((found.vertices.first(), found.vertices.last()), (Some(&u), Some(&v)), "{what}");
        }
    }
}

#[test]
fn weighted_paths_are_lightest_and_made_of_edges() {
    each_view!(check_weighted_path);
}

#[test]
fn vertices_that_are_not_there_are_refused() {
    let pool = Pool::new(1).unwrap();
    let ctx = Context::new(&pool);
    let csr = testkit::graphs().into_iter().find(|g| g.name == "no edges").unwrap().build_weighted::<u32>().unwrap();
    let dead = Pieces::new(&csr);
    let is_missing = |result: Result<bool, Error>| matches!(result, Err(Error::NoVertex { .. }));
    for v in [2, 130, u32::MAX] {
        assert!(is_missing(has_edge(&dead, 0, v)) && is_missing(has_edge(&dead, v, 0)));
        assert!(is_missing(neighbors(&dead, v, Neighbors::Out).map(|_| true)));
        assert!(is_missing(khop(&ctx, &dead, v, 1).map(|_| true)));
        assert!(is_missing(path(&ctx, &dead, 0, v).map(|_| true)));
        assert!(is_missing(weighted_path(&ctx, &dead, v, 0).map(|_| true)));
        assert!(is_missing(bfs(&ctx, &dead, &BfsParams { source: v, parents: false }).map(|_| true)));
        assert!(is_missing(sssp(&ctx, &dead, &SsspParams { source: v, ..SsspParams::default() }).map(|_| true)));
    }
    assert_eq!(path(&ctx, &dead, 3, 3).unwrap().unwrap().vertices, [3]);
    assert_eq!(path(&ctx, &dead, 3, 4).unwrap(), None);
}
