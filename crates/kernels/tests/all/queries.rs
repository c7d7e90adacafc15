//! Queries about single vertices, compared with whole-graph kernels and with the edges.

use std::collections::BTreeSet;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::{Csr, CsrBuilder, Direction, Graph, GraphKind, Parts, SingleFragment, WeightedEdges};
use anden_kernels::bfs::{BfsParams, UNREACHED, bfs};
use anden_kernels::query::{
    Neighbors, friends_of_friends, has_edge, khop, neighbors, path, shortest_paths, weighted_path,
};
use anden_kernels::sssp::{DistanceValue, Distances, SsspParams, sssp};
use anden_kernels::{Context, Error};
use anden_testkit::{FragmentedGraph, Random, for_each_graph};

/// Some live vertices of the graph.
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
            for (view, pieces) in FragmentedGraph::of_every_kind(csr) {
                $check(&ctx, &pieces, csr, &format!("{name}, {view}"));
            }
        });
    };
}

fn check_neighbors(_: &Context<'_>, graph: &impl Graph, csr: &Csr, what: &str) {
    for v in some_vertices(graph, &mut Random::new(1)) {
        let out: BTreeSet<_> = csr.list(Direction::Out, v).unwrap().iter().copied().collect();
        let sources =
            (0..csr.vertex_bound() as VertexId).filter(|&u| csr.list(Direction::Out, u).unwrap().contains(&v));
        let into: BTreeSet<_> = sources.collect();
        let both: BTreeSet<_> = out.union(&into).copied().collect();
        for (which, wanted) in [(Neighbors::Out, &out), (Neighbors::In, &into), (Neighbors::Both, &both)] {
            match neighbors(graph, v, which) {
                Ok(found) => assert!(found.iter().eq(wanted), "{what}: vertex {v}, {which:?}"),
                Err(Error::Unsupported { .. }) => assert!(!graph.has_lists(Direction::In) && which != Neighbors::Out),
                Err(error) => panic!("{what}: vertex {v}: {error}"),
            }
        }
        for u in some_vertices(graph, &mut Random::new(2)) {
            assert_eq!(has_edge(graph, v, u).unwrap(), out.contains(&u), "{what}: {v} to {u}");
        }
    }
}

#[test]
fn neighbors_are_those_of_the_edges() {
    each_view!(check_neighbors);
}

fn check_khop(ctx: &Context<'_>, graph: &impl Graph, _: &Csr, what: &str) {
    for v in some_vertices(graph, &mut Random::new(3)) {
        let hops = bfs(ctx, graph, &BfsParams { source: v, parents: false }).unwrap().hops;
        for num_hops in [0, 1, 2, 5, u32::MAX] {
            let near = |&u: &VertexId| (1..=num_hops).contains(&hops[u as usize]) && hops[u as usize] != UNREACHED;
            let wanted: Vec<_> = (0..hops.len() as VertexId).filter(near).collect();
            assert_eq!(khop(ctx, graph, v, num_hops).unwrap(), wanted, "{what}: {num_hops} hops from {v}");
        }
        let far: Vec<_> = (0..hops.len() as VertexId).filter(|&u| hops[u as usize] == 2).collect();
        assert_eq!(friends_of_friends(ctx, graph, v).unwrap(), far, "{what}: friends of friends of {v}");
    }
}

#[test]
fn hops_agree_with_the_search() {
    each_view!(check_khop);
}

fn check_path(ctx: &Context<'_>, graph: &impl Graph, csr: &Csr, what: &str) {
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
            let is_edge = |pair: &[VertexId]| csr.list(Direction::Out, pair[0]).unwrap().contains(&pair[1]);
            assert!(found.vertices.windows(2).all(is_edge), "{what}: {:?}", found.vertices);
        }
    }
}

#[test]
fn paths_are_shortest_and_made_of_edges() {
    each_view!(check_path);
}

/// All shortest paths, built back from the target by the hop counts.
fn all_shortest_paths(csr: &Csr, hops: &[u32], u: VertexId, v: VertexId) -> BTreeSet<Vec<VertexId>> {
    let mut ends = vec![vec![v]];
    for depth in (0..hops[v as usize]).rev() {
        let sources = |w: VertexId| {
            let leads =
                move |s: &VertexId| hops[*s as usize] == depth && csr.list(Direction::Out, *s).unwrap().contains(&w);
            (0..csr.vertex_bound() as VertexId).filter(leads)
        };
        ends = ends
            .iter()
            .flat_map(|end| sources(end[0]).map(|s| [&[s], &end[..]].concat()).collect::<Vec<_>>())
            .collect();
    }
    assert!(ends.iter().all(|path| path[0] == u));
    ends.into_iter().collect()
}

fn check_shortest_paths(ctx: &Context<'_>, graph: &impl Graph, csr: &Csr, what: &str) {
    let vertices = some_vertices(graph, &mut Random::new(6));
    for &u in vertices.iter().take(4) {
        let hops = bfs(ctx, graph, &BfsParams { source: u, parents: false }).unwrap().hops;
        for &v in vertices.iter().take(4) {
            let found = shortest_paths(ctx, graph, u, v, usize::MAX).unwrap();
            let Some(found) = found else {
                assert_eq!(hops[v as usize], UNREACHED, "{what}: {u} to {v}");
                continue;
            };
            let wanted = all_shortest_paths(csr, &hops, u, v);
            let listed: BTreeSet<_> = found.paths.iter().map(|path| path.vertices.clone()).collect();
            assert_eq!((listed.len(), found.count), (found.paths.len(), wanted.len() as u64), "{what}: {u} to {v}");
            assert_eq!((listed, found.length), (wanted, hops[v as usize] as usize), "{what}: {u} to {v}");
            let some = shortest_paths(ctx, graph, u, v, 2).unwrap().unwrap();
            assert_eq!((some.count, &some.paths[..]), (found.count, &found.paths[..found.paths.len().min(2)]));
        }
    }
}

#[test]
fn all_shortest_paths_are_found() {
    each_view!(check_shortest_paths);
}

/// A chain of diamonds with two paths each: from vertex `3 * i` to the first vertex of the next one.
fn diamonds(num_diamonds: u32) -> Csr {
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 3 * num_diamonds as usize + 1);
    for top in (0..num_diamonds).map(|i| 3 * i) {
        [(top, top + 1), (top, top + 2), (top + 1, top + 3), (top + 2, top + 3)]
            .into_iter()
            .for_each(|(s, t)| builder.edge(s, t, 1));
    }
    builder.build().unwrap()
}

/// Regression: the list of paths did not count in the budget.
#[test]
fn more_paths_than_fit_in_memory_are_refused() {
    let (pool, csr) = (Pool::new(1).unwrap(), diamonds(40));
    let budget = 10_000_000;
    let ctx = Context { memory: Some(budget), ..Context::new(&pool) };
    let to = |target, limit| shortest_paths(&ctx, &csr, 0, target, limit);
    // 81 ids of 4 bytes, and a vector, for each path.
    let least = 200_000 * (81 * 4 + 24);
    match to(120, 200_000) {
        Err(Error::Memory { needed, budget: found, .. }) => {
            assert!(found == budget && (least..least + 100_000).contains(&needed), "{needed} of {found}");
        }
        other => panic!("{:?}", other.map(|_| "listed")),
    }
    assert!(matches!(to(120, usize::MAX), Err(Error::Memory { .. })));
    assert_eq!(to(120, 20_000).unwrap().unwrap().paths.len(), 20_000);
    assert_eq!(to(15, usize::MAX).unwrap().unwrap().paths.len(), 32);
}

/// Regression: the visited vertices of the thread's last search counted in the next one.
#[test]
fn small_query_after_large_one_needs_little_memory() {
    let (pool, csr) = (Pool::new(1).unwrap(), diamonds(1000));
    let with = |memory| Context { memory, ..Context::new(&pool) };
    for _ in 0..2 {
        assert_eq!(path(&with(None), &csr, 0, 3000).unwrap().unwrap().length(), 2000);
        assert_eq!(path(&with(Some(1000)), &csr, 0, 1).unwrap().unwrap().length(), 1);
    }
    assert!(matches!(path(&with(Some(1000)), &csr, 0, 3000), Err(Error::Memory { .. })));
}

#[test]
fn more_paths_than_can_be_listed_are_counted() {
    let (pool, csr) = (Pool::new(1).unwrap(), diamonds(80));
    let ctx = Context::new(&pool);
    let to = |target| shortest_paths(&ctx, &csr, 0, target, 3).unwrap().unwrap();
    assert_eq!((to(3 * 30).count, to(3 * 80).count, to(3 * 80).length), (1 << 30, u64::MAX, 160));
    let paths = to(3 * 80).paths;
    assert!(paths.len() == 3 && paths[0] != paths[1] && paths[1] != paths[2]);
    assert_eq!(shortest_paths(&ctx, &csr, 3, 0, 3).unwrap(), None);
}

fn check_weighted_path(ctx: &Context<'_>, graph: &impl WeightedEdges, csr: &Csr, what: &str) {
    let vertices = some_vertices(graph, &mut Random::new(5));
    let lightest = |u: VertexId, v: VertexId| {
        let mut least = u64::MAX;
        let _ = csr.for_each_weighted_fragment::<u32>(Direction::Out, u, |targets, weights| {
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
fn weighted_paths_announce_what_they_will_read() {
    let pool = Pool::new(1).unwrap();
    let mut builder = CsrBuilder::new(GraphKind::Undirected, 100);
    for v in 0..99 {
        builder.edge(v, v + 1, 2_u32);
        builder.edge(v, (v + 3).min(99), 7);
        builder.edge(v, (v + 5).min(99), 12);
    }
    let csr = builder.build_weighted().unwrap();
    let pieces = FragmentedGraph::new(&csr);
    let path = weighted_path(&Context::new(&pool), &pieces, 0, 99).unwrap().unwrap();
    assert_eq!(path.length, DistanceValue::Integer(198));
    assert!(pieces.num_announced(Parts::Weighted) > 0);
}

#[test]
fn weighted_paths_are_lightest_and_made_of_edges() {
    each_view!(check_weighted_path);
}

#[test]
fn vertices_that_are_not_there_are_refused() {
    let pool = Pool::new(1).unwrap();
    let ctx = Context::new(&pool);
    let csr =
        anden_testkit::graphs().into_iter().find(|g| g.name == "no edges").unwrap().build_weighted::<u32>().unwrap();
    let dead = FragmentedGraph::new(&csr);
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
