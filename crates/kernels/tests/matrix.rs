//! Every kernel over every shape of graph, on a plain CSR and on views in pieces, with and without
//! in-edges, at one and at several threads, against its verifier.

use anden_kernels::Context;
use anden_kernels::bc::{self, BcParams, BcSources, bc};
use anden_kernels::bfs::{self, BfsParams, bfs};
use anden_kernels::sssp::{self, SsspAlgorithm, SsspParams, sssp};
use anden_kernels::wcc::{self, WccParams, wcc};
use base::VertexId;
use base::parallel::Pool;
use graph::{Csr, Graph, InEdges, Weight, WeightedEdges};
use testkit::{Pieces, for_each_graph, graphs};

const THREADS: [usize; 2] = [1, 3];

/// Sources that are worth a try: the first, the last, one in the middle, where alive.
fn sources(graph: &impl Graph) -> Vec<VertexId> {
    let bound = graph.vertex_bound() as VertexId;
    let mut sources: Vec<_> = [0, bound / 2, bound.saturating_sub(1)].into();
    sources.dedup();
    sources.retain(|&v| v < bound && graph.is_live(v));
    sources
}

/// Calls `check` for every view of every graph at every number of threads, and prints each.
macro_rules! matrix {
    ($kernel:literal, $check:ident) => {
        for threads in THREADS {
            let pool = Pool::new(threads).unwrap();
            let ctx = Context::new(&pool);
            for_each_graph(|name, csr: &Csr| {
                let pieces = Pieces::new(csr);
                println!("{} x {name} x {threads}", $kernel);
                $check(&ctx, csr, &format!("{} x {name} x {threads}", $kernel));
                $check(&ctx, &pieces, &format!("{} x {name} in pieces x {threads}", $kernel));
                let out_only = pieces.without_in_edges();
                $check(&ctx, &out_only, &format!("{} x {name} by out-edges x {threads}", $kernel));
            });
        }
    };
}

fn check_bfs(ctx: &Context<'_>, graph: &impl InEdges, what: &str) {
    for source in sources(graph) {
        let params = BfsParams { source, parents: true };
        let result = bfs(ctx, graph, &params).unwrap();
        assert_eq!(bfs::verify(graph, &params, &result), Ok(()), "{what}, source {source}");
        let hops = bfs(ctx, graph, &BfsParams { source, parents: false }).unwrap();
        assert_eq!((hops.hops, hops.parents), (result.hops, None), "{what}, source {source}");
    }
}

fn check_wcc(ctx: &Context<'_>, graph: &impl InEdges, what: &str) {
    let params = WccParams::default();
    let result = wcc(ctx, graph, &params).unwrap();
    assert_eq!(wcc::verify(graph, &params, &result), Ok(()), "{what}");
}

fn check_sssp(ctx: &Context<'_>, graph: &(impl InEdges + WeightedEdges), what: &str) {
    for source in sources(graph) {
        let algorithms = [
            (SsspAlgorithm::DeltaStepping, None),
            (SsspAlgorithm::DeltaStepping, Some(1.0)),
            (SsspAlgorithm::DeltaStepping, Some(0.01)),
            (SsspAlgorithm::DeltaStepping, Some(7.0)),
            (SsspAlgorithm::DeltaStepping, Some(1e30)),
            (SsspAlgorithm::BellmanFord, None),
        ];
        for (algorithm, delta) in algorithms {
            let params = SsspParams { source, algorithm, delta, unit_weights: true, ..SsspParams::default() };
            let result = sssp(ctx, graph, &params).unwrap();
            let verdict = sssp::verify(graph, &params, &result);
            assert_eq!(verdict, Ok(()), "{what}, source {source}, {algorithm:?}, delta {delta:?}");
        }
    }
}

fn check_bc(ctx: &Context<'_>, graph: &impl InEdges, what: &str) {
    let choices = [BcSources::Given(sources(graph)), BcSources::Sampled { count: 5, seed: 3 }];
    for sources in choices {
        let params = BcParams { sources };
        let result = bc(ctx, graph, &params).unwrap();
        assert_eq!(bc::verify(graph, &params, &result), Ok(()), "{what}, {:?}", params.sources);
    }
}

/// The matrix for weights of another type, or for none.
fn sssp_of_weights<W: Weight>(is_weighted: bool) {
    for threads in THREADS {
        let pool = Pool::new(threads).unwrap();
        for test in graphs() {
            let csr = if is_weighted { test.build_weighted::<W>() } else { test.build() }.unwrap();
            let weights = if is_weighted { W::TYPE.name() } else { "no weights" };
            let what = format!("sssp with {weights} x {} x {threads}", test.name);
            println!("{what}");
            check_sssp(&Context::new(&pool), &csr, &what);
        }
    }
}

#[test]
fn bfs_over_all_graphs() {
    matrix!("bfs", check_bfs);
}

#[test]
fn wcc_over_all_graphs() {
    matrix!("wcc", check_wcc);
}

#[test]
fn sssp_over_all_graphs() {
    matrix!("sssp", check_sssp);
    sssp_of_weights::<i64>(true);
    sssp_of_weights::<f32>(true);
    sssp_of_weights::<f64>(true);
    sssp_of_weights::<u32>(false);
}

#[test]
fn bc_over_all_graphs() {
    matrix!("bc", check_bc);
}
