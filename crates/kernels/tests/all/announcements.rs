//! What kernels say that they will read.

use anden_kernels::bc::{BcParams, BcSources, bc};
use anden_kernels::pagerank::{PageRankParams, Variant, pagerank, weighted_pagerank};
use anden_kernels::sssp::{SsspAlgorithm, SsspParams, sssp};
use anden_kernels::{Context, Result};
use base::parallel::Pool;
use graph::{CsrBuilder, Direction, Parts, Weight};
use testkit::Pieces;

const NUM_VERTICES: u32 = 300;

/// How many lists a kernel announces, of which it reads these parts, of a graph whose edges lead along a line, to and fro.
fn num_announced<W: Weight, T>(
    parts: Parts,
    weight: W,
    run: impl FnOnce(&Context<'_>, &Pieces<'_>) -> Result<T>,
) -> usize {
    let mut builder = CsrBuilder::new(Direction::Directed, NUM_VERTICES as usize);
    for v in 0..NUM_VERTICES - 1 {
        builder.edge(v, v + 1, weight);
        builder.edge(v + 1, v, weight);
    }
    let csr = builder.build_weighted().unwrap();
    let pieces = Pieces::new(&csr);
    run(&Context::new(&Pool::new(1).unwrap()), &pieces).unwrap();
    pieces.num_announced(parts)
}

#[test]
fn lightest_paths_announce_weights() {
    for algorithm in [SsspAlgorithm::DeltaStepping, SsspAlgorithm::BellmanFord] {
        let params = SsspParams { source: 0, algorithm, ..SsspParams::default() };
        // Once to look at the weights, and at least once on the way.
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
        // To add the weights up, and in each round.
        let count = num_announced(Parts::Weighted, 2_u32, |ctx, graph| weighted_pagerank(ctx, graph, &params));
        assert_eq!(count, 4 * NUM_VERTICES as usize, "{variant:?}");
        assert_eq!(num_announced(Parts::Weighted, 2_u32, |ctx, graph| pagerank(ctx, graph, &params)), 0, "{variant:?}");
    }
}

#[test]
fn betweenness_announces_lists_on_both_ways() {
    let params = BcParams { sources: BcSources::Given(vec![0]) };
    let count = num_announced(Parts::Targets, 1_u32, |ctx, graph| bc(ctx, graph, &params));
    // Each list on the way there, and all on the way back but those of the farthest vertices, which lead to none.
    assert!(count >= 2 * NUM_VERTICES as usize - 1, "{count}");
}
