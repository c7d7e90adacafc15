//! Queries along in-edges, and along the edges of both directions: compared with searches over neighbors.

use std::collections::{BTreeMap, BTreeSet};

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::{Csr, Direction, Graph, GraphKind, WeightedEdges};
use anden_kernels::query::{
    NeighborGraph, Neighbors, at_distance, count_friends_of_friends, khop, khop_levels, neighbors, path, path_within,
    shortest_paths, weighted_path,
};
use anden_kernels::sssp::DistanceValue;
use anden_kernels::{Context, Error};
use anden_testkit::{FragmentedGraph, TestGraph, for_each_graph};

const ALL: [Neighbors; 3] = [Neighbors::Out, Neighbors::In, Neighbors::Both];

/// The distance of each vertex that neighbors lead to.
fn distances(graph: &impl Graph, which: Neighbors, source: VertexId) -> BTreeMap<VertexId, u32> {
    let mut found = BTreeMap::from([(source, 0)]);
    let mut level = vec![source];
    while !level.is_empty() {
        let mut next = Vec::new();
        for u in level {
            for v in neighbors(graph, u, which).unwrap() {
                let depth = found[&u] + 1;
                found.entry(v).or_insert_with(|| {
                    next.push(v);
                    depth
                });
            }
        }
        level = next;
    }
    found
}

fn check_neighborhood(ctx: &Context<'_>, graph: &impl Graph, which: Neighbors, what: &str) {
    let along = NeighborGraph::new(graph, which).unwrap();
    for v in (0..graph.vertex_bound() as VertexId).filter(|&v| graph.is_live(v)).step_by(11).take(6) {
        let place = format!("{what}: {which:?} of {v}");
        let depths = distances(graph, which, v);
        let at = |depth: u32| depths.iter().filter(|pair| *pair.1 == depth).map(|pair| *pair.0).collect::<Vec<_>>();
        let within: Vec<_> = depths.iter().filter(|pair| (1..=3).contains(pair.1)).map(|pair| *pair.0).collect();
        assert_eq!(khop(ctx, &along, v, 3).unwrap(), within, "{place}");
        let levels = khop_levels(ctx, &along, v, 3).unwrap();
        for depth in 1..=4 {
            // The levels end before the first empty one, or behind it.
            let level = levels.get(depth as usize - 1).cloned().unwrap_or_default();
            assert_eq!(level, if depth <= 3 { at(depth) } else { Vec::new() }, "{place}, {depth} steps");
            assert_eq!(at_distance(ctx, &along, v, depth).unwrap(), at(depth), "{place}, {depth} steps");
        }
        let friends: BTreeSet<_> = neighbors(graph, v, which).unwrap().into_iter().collect();
        let between = |u: VertexId| {
            let has = |friend: &&VertexId| neighbors(graph, **friend, which).unwrap().binary_search(&u).is_ok();
            friends.iter().filter(|friend| **friend != v).filter(has).count() as u32
        };
        let counted: Vec<_> = at(2).into_iter().map(|u| (u, between(u))).collect();
        assert_eq!(count_friends_of_friends(ctx, &along, v).unwrap(), counted, "{place}");
    }
}

fn check_paths(ctx: &Context<'_>, graph: &impl WeightedEdges, which: Neighbors, what: &str) {
    let along = NeighborGraph::new(graph, which).unwrap();
    let live: Vec<_> =
        (0..graph.vertex_bound() as VertexId).filter(|&v| graph.is_live(v)).step_by(13).take(5).collect();
    for (&u, &v) in live.iter().flat_map(|u| live.iter().map(move |v| (u, v))) {
        let place = format!("{what}: {which:?} from {u} to {v}");
        let wanted = distances(graph, which, u).get(&v).copied();
        let found = path(ctx, &along, u, v).unwrap();
        assert_eq!(found.as_ref().map(|path| path.length() as u32), wanted, "{place}");
        if let Some(path) = found {
            let is_edge = |pair: &[VertexId]| neighbors(graph, pair[0], which).unwrap().contains(&pair[1]);
            assert!(path.vertices.windows(2).all(is_edge), "{place}");
            let length = path.length();
            assert_eq!(path_within(ctx, &along, (u, v), length).unwrap(), Some(path), "{place}");
            if length > 0 {
                assert_eq!(path_within(ctx, &along, (u, v), length - 1).unwrap(), None, "{place}");
            }
        }
        let all = shortest_paths(ctx, &along, u, v, 50).unwrap();
        assert_eq!(all.as_ref().map(|all| all.length as u32), wanted, "{place}");
        if let Some(all) = all {
            let distinct: BTreeSet<_> = all.paths.iter().map(|path| &path.vertices).collect();
            assert_eq!(distinct.len() as u64, all.count.min(50), "{place}");
        }
    }
}

/// Weighted paths along in-edges are those of the other direction, turned round.
fn check_weighted(ctx: &Context<'_>, graph: &impl WeightedEdges, what: &str) {
    let [against, both] = [Neighbors::In, Neighbors::Both].map(|which| NeighborGraph::new(graph, which).unwrap());
    let length = |found: Option<anden_kernels::query::WeightedPath>| match found.map(|path| path.length) {
        Some(DistanceValue::Integer(length)) => Some(length),
        Some(DistanceValue::Float(_)) => panic!("whole weights expected"),
        None => None,
    };
    let live: Vec<_> =
        (0..graph.vertex_bound() as VertexId).filter(|&v| graph.is_live(v)).step_by(17).take(4).collect();
    for (&u, &v) in live.iter().flat_map(|u| live.iter().map(move |v| (u, v))) {
        let there = length(weighted_path(ctx, graph, v, u).unwrap());
        assert_eq!(length(weighted_path(ctx, &against, u, v).unwrap()), there, "{what}: {u} to {v}");
        let either = [(u, v), (v, u)].map(|(u, v)| length(weighted_path(ctx, &both, u, v).unwrap()));
        assert_eq!(either[0], either[1], "{what}: {u} to {v}");
        assert!(there.is_none_or(|there| either[0].is_some_and(|either| either <= there)), "{what}: {u} to {v}");
    }
}

fn check(ctx: &Context<'_>, graph: &impl WeightedEdges, what: &str) {
    if !graph.has_lists(Direction::In) {
        for which in [Neighbors::In, Neighbors::Both] {
            assert!(matches!(NeighborGraph::new(graph, which), Err(Error::Unsupported { .. })), "{what}");
        }
        return;
    }
    for which in ALL {
        check_neighborhood(ctx, graph, which, what);
        check_paths(ctx, graph, which, what);
    }
    check_weighted(ctx, graph, what);
}

#[test]
fn queries_follow_the_chosen_direction() {
    let pool = Pool::new(1).unwrap();
    let ctx = Context::new(&pool);
    for_each_graph(|name, csr: &Csr| {
        check(&ctx, csr, name);
        for (view, pieces) in FragmentedGraph::of_every_kind(csr) {
            check(&ctx, &pieces, &format!("{name}, {view}"));
        }
    });
}

#[test]
fn undirected_graphs_have_one_direction() {
    let is_wanted = |graph: &TestGraph| graph.graph_kind == GraphKind::Undirected && !graph.edges.is_empty();
    let graph = anden_testkit::graphs().into_iter().find(is_wanted).unwrap();
    let csr = graph.build_weighted::<u32>().unwrap();
    for which in ALL {
        let along = NeighborGraph::new(&csr, which).unwrap();
        assert_eq!((along.num_arcs(), along.degree(Direction::In, 0)), (csr.num_arcs(), csr.degree(Direction::Out, 0)));
    }
}
