//! Triangle counts against the serial verifier, on every graph, kind of view, number of hubs and number of threads.

use anden_base::parallel::Pool;
use anden_base::progress::CancelFlag;
use anden_graph::{CsrBuilder, Direction, Graph, GraphKind};
use anden_kernels::triangles::{TriangleParams, TriangleResult, triangles, verify};
use anden_kernels::{Context, Error, Medium};
use anden_testkit::{FragmentedGraph, for_each_graph};

fn check(name: &str, graph: &impl Graph) -> u64 {
    let mut counts = Vec::new();
    for threads in [1, 3] {
        let pool = Pool::new(threads).expect("threads start");
        // Without a number of hubs, a graph of small degree is counted without a copy.
        let result = triangles(&Context::new(&pool), graph, &TriangleParams::default());
        let result = result.unwrap_or_else(|error| panic!("{name}: {error}"));
        verify(graph, &result).unwrap_or_else(|error| panic!("{name}, by itself: {error}"));
        counts.push(result.triangles);
        for num_hubs in [0, 1, 5, 70, 1000] {
            let what = format!("{name}, {num_hubs} hubs, {threads} threads");
            for by_vertex in [false, true] {
                let params = TriangleParams { num_hubs: Some(num_hubs), by_vertex };
                let result = triangles(&Context::new(&pool), graph, &params);
                let result = result.unwrap_or_else(|error| panic!("{what}: {error}"));
                verify(graph, &result).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(result.by_vertex.is_some(), by_vertex, "{what}");
                counts.push(result.triangles);
            }
            for by_vertex in [false, true] {
                let params = TriangleParams { num_hubs: Some(num_hubs), by_vertex };
                counts.extend(from_disk(&pool, graph, &params));
            }
        }
    }
    counts.dedup();
    assert_eq!(counts.len(), 1, "{name}");
    counts[0]
}

/// The counts with the whole copy in one part, with the least memory that the kernel reports, and with a little more.
/// Empty if lists do not hold all neighbors.
fn from_disk(pool: &Pool, graph: &impl Graph, params: &TriangleParams) -> Vec<u64> {
    if graph.graph_kind() == GraphKind::Directed && !graph.has_lists(Direction::In) {
        return Vec::new();
    }
    let with = |memory| triangles(&Context { memory, medium: Medium::Disk, ..Context::new(pool) }, graph, params);
    let Err(Error::Memory { needed, .. }) = with(Some(1)) else { panic!("a budget of a byte is too small") };
    assert!(matches!(with(Some(needed - 1)), Err(Error::Memory { .. })));
    let budgets = [None, Some(needed), Some(needed + 100), Some(needed + 10_000)];
    let check = |memory| {
        let result = with(memory).expect("the budget is enough");
        assert_eq!(verify(graph, &result), Ok(()), "{params:?}, {memory:?}");
        result.triangles
    };
    budgets.map(check).to_vec()
}

#[test]
fn every_graph_agrees_with_the_check() {
    for_each_graph(|name, csr| {
        let count = check(name, csr);
        for (view, pieces) in FragmentedGraph::of_every_kind(csr) {
            assert_eq!(check(&format!("{name}, {view}"), &pieces), count, "{name}, {view}");
        }
    });
}

#[test]
fn counts_are_known() {
    let known = [("complete", 24 * 23 * 22 / 6), ("star", 0), ("path", 0), ("grid", 0), ("parallel", 1)];
    let mut num_known = 0;
    for_each_graph(|name, csr| {
        let shape = name.trim_start_matches("undirected ");
        if let Some((_, expected)) = known.iter().find(|(start, _)| shape.starts_with(start)) {
            assert_eq!(check(name, csr), *expected, "{name}");
            num_known += 1;
        }
    });
    assert_eq!(num_known, 12);
}

#[test]
fn graphs_of_small_degree_need_no_copy() {
    let pool = Pool::new(2).expect("threads start");
    let copy_bytes = |graph: &anden_graph::Csr| {
        triangles(&Context::new(&pool), graph, &TriangleParams::default()).expect("nothing limits it").copy_bytes
    };
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Undirected, 3000);
    // From vertex 3 on, each closes a triangle with the two before it.
    (2..3000).for_each(|v| [1, 2].iter().for_each(|back| builder.edge(v, v - back, 1)));
    let strip = builder.build().expect("edges are in range");
    assert_eq!(copy_bytes(&strip), 0);
    assert_eq!(check("strip", &strip), 2997);
    assert_eq!(check("strip in pieces", &FragmentedGraph::new(&strip)), 2997);
    assert!(copy_bytes(&complete(60)) > 0);
}

#[test]
fn symmetric_directed_graphs_need_no_copy() {
    let pool = Pool::new(2).expect("threads start");
    // As the strip above, with both arcs of each edge, but for one arc.
    let strip = |missing: Option<(u32, u32)>| {
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 3000);
        let edges = (2..3000).flat_map(|v| [(v, v - 1), (v, v - 2)]);
        let arcs = edges.flat_map(|(a, b)| [(a, b), (b, a)]).filter(|&arc| Some(arc) != missing);
        arcs.for_each(|(a, b)| builder.edge(a, b, 1));
        builder.build().expect("edges are in range")
    };
    let copy_bytes = |graph: &anden_graph::Csr| {
        triangles(&Context::new(&pool), graph, &TriangleParams::default()).expect("nothing limits it").copy_bytes
    };
    // A missing arc at the start is found by the sample, one at the end by the comparison of all lists.
    for (missing, needs_copy) in [(None, false), (Some((2, 1)), true), (Some((2998, 2999)), true)] {
        let strip = strip(missing);
        assert_eq!(copy_bytes(&strip) > 0, needs_copy, "without {missing:?}");
        assert_eq!(check(&format!("strip without {missing:?}"), &strip), 2997);
        assert_eq!(check(&format!("strip in pieces without {missing:?}"), &FragmentedGraph::new(&strip)), 2997);
    }
}

fn complete(num_vertices: u32) -> anden_graph::Csr {
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Undirected, num_vertices as usize);
    (0..num_vertices).for_each(|a| (0..a).for_each(|b| builder.edge(a, b, 1)));
    builder.build().expect("edges are in range")
}

#[test]
fn a_budget_turns_hubs_off() {
    let graph = complete(200);
    let pool = Pool::new(2).expect("threads start");
    let ctx = Context::new(&pool);
    let with = |memory| triangles(&Context { memory, ..ctx }, &graph, &TriangleParams::default());
    let nothing = Context { memory: Some(0), medium: Medium::Memory, ..ctx };
    let refused = triangles(&nothing, &graph, &TriangleParams::default());
    let Err(Error::Memory { needed, .. }) = refused else { panic!("a budget of nothing is too small") };
    let free = with(None).expect("nothing limits it");
    assert_eq!((free.triangles, free.num_hubs), (200 * 199 * 198 / 6, 200));
    let tight = with(Some(needed)).expect("the budget is enough");
    assert_eq!((tight.triangles, tight.num_hubs), (free.triangles, 0));
    assert!(tight.copy_bytes < free.copy_bytes);
    assert!(matches!(with(Some(1000)), Err(Error::Memory { budget: 1000, .. })));
}

/// Lists are handled in stretches; parallel edges in two stretches still count once.
#[test]
fn parallel_edges_count_once_anywhere_in_list() {
    for first in [1022, 1023, 2047] {
        let n = 8000;
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Undirected, n as usize).keep_parallel();
        // The vertex of lowest degree in the triangle has a parallel edge, after `first` entries outside the triangle.
        let by_vertex = [3000, 3001, 3002];
        (0..first).for_each(|v| builder.edge(by_vertex[0], v, 1));
        [(0, 1), (0, 1), (0, 2), (1, 2)].into_iter().for_each(|(a, b)| builder.edge(by_vertex[a], by_vertex[b], 1));
        (3003..5500).for_each(|v| builder.edge(by_vertex[1], v, 1));
        (5500..n).for_each(|v| builder.edge(by_vertex[2], v, 1));
        let graph = builder.build().expect("edges are in range");
        assert!(graph.is_multigraph());
        assert_eq!(check(&format!("{first} neighbors before"), &graph), 1);
    }
}

#[test]
fn cancelled_work_gives_no_result() {
    let pool = Pool::new(2).expect("threads start");
    let progress = CancelFlag::default();
    progress.cancel();
    let ctx = Context { progress: &progress, ..Context::new(&pool) };
    let error = triangles(&ctx, &complete(9), &TriangleParams::default()).expect_err("the work is cancelled");
    assert!(matches!(error, Error::Base(anden_base::Error::Cancelled)), "{error}");
}

#[test]
fn the_check_finds_faults() {
    let (preparation_seconds, was_prepared, copy_bytes, num_hubs) = (0.0, false, 0, 0);
    let result =
        TriangleResult { triangles: 83, by_vertex: None, preparation_seconds, was_prepared, copy_bytes, num_hubs };
    assert!(verify(&complete(9), &result).is_err());
    let right = TriangleResult { triangles: 84, ..result };
    assert!(verify(&complete(9), &right).is_ok());
    let with = |by_vertex| verify(&complete(9), &TriangleResult { by_vertex: Some(by_vertex), ..right.clone() });
    assert!(with(vec![28; 9]).is_ok() && with(vec![28; 8]).is_err());
    assert!(with([[28; 8].to_vec(), vec![27]].concat()).is_err());
}
