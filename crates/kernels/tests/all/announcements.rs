//! The lists that kernels announce to the prefetcher.

use anden_base::parallel::Pool;
use anden_graph::{CsrBuilder, GraphKind, Parts, Weight};
use anden_kernels::bc::{BcParams, bc};
use anden_kernels::pagerank::{PageRankParams, Variant, pagerank, weighted_pagerank};
use anden_kernels::sssp::{SsspAlgorithm, SsspParams, sssp};
use anden_kernels::{Context, Result, SourceChoice};
use anden_testkit::FragmentedGraph;

const NUM_VERTICES: u32 = 300;

/// The number of lists whose `parts` a kernel announces, on a path with edges in both directions.
fn num_announced<W: Weight, T>(
    parts: Parts,
    weight: W,
    run: impl FnOnce(&Context<'_>, &FragmentedGraph<'_>) -> Result<T>,
) -> usize {
    let mut builder = CsrBuilder::new(GraphKind::Directed, NUM_VERTICES as usize);
    for v in 0..NUM_VERTICES - 1 {
        builder.edge(v, v + 1, weight);
        builder.edge(v + 1, v, weight);
    }
    let csr = builder.build_weighted().unwrap();
    let pieces = FragmentedGraph::new(&csr);
    run(&Context::new(&Pool::new(1).unwrap()), &pieces).unwrap();
    pieces.num_announced(parts)
}

#[test]
fn lightest_paths_announce_weights() {
    for algorithm in [SsspAlgorithm::DeltaStepping, SsspAlgorithm::BellmanFord] {
        let params = SsspParams { source: 0, algorithm, ..SsspParams::default() };
        // Once for the weight statistics, and at least once in the search.
        let least = 2 * NUM_VERTICES as usize;
        let counts = [
            num_announced(Parts::Weighted, 3_u32, |ctx, graph| sssp(ctx, graph, &params)),
            num_announced(Parts::Weighted, 0.5_f32, |ctx, graph| sssp(ctx, graph, &params)),
        ];
        assert!(counts.into_iter().all(|count| count >= least), "{algorithm:?}: {counts:?}, at least {least}");
    }
}

#[test]
fn ranks_by_weight_announce_weights() {
    for variant in [Variant::Pull, Variant::Push] {
        let params = PageRankParams { variant, iterations: Some(3), ..PageRankParams::default() };
        // Once for the weight sums, and once in each round.
        let count = num_announced(Parts::Weighted, 2_u32, |ctx, graph| weighted_pagerank(ctx, graph, &params));
        assert_eq!(count, 4 * NUM_VERTICES as usize, "{variant:?}");
        assert_eq!(num_announced(Parts::Weighted, 2_u32, |ctx, graph| pagerank(ctx, graph, &params)), 0, "{variant:?}");
    }
}

#[test]
fn betweenness_announces_lists_on_both_ways() {
    let params = BcParams { sources: SourceChoice::Given(vec![0]) };
    let count = num_announced(Parts::Targets, 1_u32, |ctx, graph| bc(ctx, graph, &params));
    // Each list in the forward pass, and each in the backward pass except those of the farthest vertices.
    assert!(count >= 2 * NUM_VERTICES as usize - 1, "{count}");
}
