//! Communities computed by hand, and lists too long for a table.

use anden_base::parallel::Pool;
use anden_graph::{Csr, CsrBuilder, GraphKind};
use anden_kernels::Context;
use anden_kernels::cdlp::{CdlpParams, CdlpResult, cdlp, verify};
use anden_testkit::{Dead, FragmentedGraph, Random};

fn built(graph_kind: GraphKind, num_vertices: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Csr {
    let mut builder = CsrBuilder::<u32>::new(graph_kind, num_vertices as usize);
    edges.into_iter().for_each(|(source, target)| builder.edge(source, target, 1));
    builder.build().expect("edges are in range")
}

/// Runs on one and three threads, on the graph and on a fragmented view without in-edges. The results must be equal.
fn run(csr: &Csr, iterations: u32, order: Option<Vec<u32>>) -> CdlpResult {
    let params = CdlpParams { iterations, order };
    let mut results = Vec::new();
    for threads in [1, 3] {
        let pool = Pool::new(threads).expect("threads start");
        let ctx = Context::new(&pool);
        results.push(cdlp(&ctx, csr, &params).expect("nothing is in the way"));
        let pieces = FragmentedGraph::new(csr).with_dead(Dead::None).without_in_edges();
        results.push(cdlp(&ctx, &pieces, &params).expect("nothing is in the way"));
    }
    assert_eq!(verify(csr, &params, &results[0]), Ok(()), "{iterations} iterations");
    results.dedup();
    assert_eq!(results.len(), 1, "{iterations} iterations");
    results.remove(0)
}

/// Two triangles joined by an edge.
const TRIANGLES: [(u32, u32); 7] = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)];

#[test]
fn each_triangle_becomes_a_community() {
    let csr = built(GraphKind::Undirected, 6, TRIANGLES);
    let steps: [[u32; 6]; 5] =
        [[0, 1, 2, 3, 4, 5], [1, 0, 0, 2, 3, 3], [0, 0, 0, 3, 2, 2], [0, 0, 0, 2, 2, 2], [0, 0, 0, 2, 2, 2]];
    for (iterations, labels) in (0..).zip(steps) {
        assert_eq!(run(&csr, iterations, None).labels, labels, "{iterations} iterations");
    }
    let end = run(&csr, 10, None);
    assert_eq!((&end.labels[..], end.communities, end.iterations), (&steps[4][..], 2, 4));
}

#[test]
fn labels_compare_in_the_given_order() {
    let csr = built(GraphKind::Undirected, 6, TRIANGLES);
    // The mirrored order gives the mirrored result.
    let end = run(&csr, 10, Some(vec![5, 4, 3, 2, 1, 0]));
    assert_eq!((&end.labels[..], end.communities, end.iterations), (&[3, 3, 3, 5, 5, 5][..], 2, 4));
}

#[test]
fn a_neighbor_in_both_directions_counts_twice() {
    let pair = built(GraphKind::Directed, 6, [(2, 1), (2, 5), (5, 2), (0, 2)]);
    assert_eq!(run(&pair, 1, None).labels, [2, 2, 5, 3, 4, 2]);
    // A loop also counts in both directions.
    let own = built(GraphKind::Directed, 4, [(2, 1), (2, 2), (0, 2)]);
    assert_eq!(run(&own, 1, None).labels, [2, 2, 2, 3]);
    let undirected = built(GraphKind::Undirected, 4, [(2, 1), (2, 2), (0, 2)]);
    assert_eq!(run(&undirected, 1, None).labels, [2, 2, 0, 3]);
}

#[test]
fn oscillating_labels_end_at_iteration_limit() {
    const LEAVES: u32 = 10_000;
    for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
        let star = built(graph_kind, LEAVES + 1, (1..=LEAVES).map(|leaf| (0, leaf)));
        for iterations in 1..=6 {
            let (hub, leaf) = if iterations % 2 == 1 { (1, 0) } else { (0, 1) };
            let result = run(&star, iterations, None);
            assert_eq!((result.labels[0], result.iterations, result.communities), (hub, iterations, 2));
            assert!(result.labels[1..].iter().all(|&label| label == leaf), "{iterations} iterations");
        }
    }
}

#[test]
fn hubs_with_many_labels_agree_with_the_check() {
    const N: u32 = 9000;
    for (seed, graph_kind) in [(1, GraphKind::Directed), (2, GraphKind::Undirected)] {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let others: Vec<_> = (0..3 * N).map(|_| (random.below(N), random.below(N))).collect();
        let hubs = (0..5).flat_map(|hub| (10..N).map(move |v| (hub * 1777, v)));
        let edges: Vec<_> = hubs.filter(|_| random.below(5) > 0).chain(others).collect();
        let csr = built(graph_kind, N, edges);
        for iterations in [1, 2, 3, 6] {
            run(&csr, iterations, None);
        }
    }
}
