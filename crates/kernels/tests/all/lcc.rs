//! Clustering coefficients computed by hand, faults that the verifier finds, and cancelled work.

use anden_base::parallel::Pool;
use anden_base::progress::CancelFlag;
use anden_graph::{Csr, CsrBuilder, GraphKind};
use anden_kernels::lcc::{LccParams, LccResult, lcc, verify};
use anden_kernels::{Context, Error};

fn built(graph_kind: GraphKind, num_vertices: usize, edges: &[(u32, u32)]) -> Csr {
    let mut builder = CsrBuilder::<u32>::new(graph_kind, num_vertices).keep_parallel();
    edges.iter().for_each(|&(source, target)| builder.edge(source, target, 1));
    builder.build().expect("edges are in range")
}

fn run(graph: &Csr) -> LccResult {
    let pool = Pool::new(2).expect("threads start");
    lcc(&Context::new(&pool), graph, &LccParams::default()).expect("nothing is in the way")
}

/// A triangle 0, 1, 2 with arcs both ways between 0 and 1, a tail from 2 to 3, a loop and a parallel edge.
const EDGES: [(u32, u32); 7] = [(0, 1), (1, 0), (1, 2), (0, 2), (2, 3), (2, 2), (1, 2)];

#[test]
fn a_directed_graph_counts_arcs() {
    let result = run(&built(GraphKind::Directed, 5, &EDGES));
    // The neighbors of 0 are joined by one arc of two, those of 2 by two arcs of six.
    assert_eq!(result.coefficients, [0.5, 0.5, 2.0 / 6.0, 0.0, 0.0]);
    assert_eq!(result.mean, (0.5 + 0.5 + 2.0 / 6.0) / 5.0);
}

#[test]
fn an_undirected_graph_counts_edges() {
    let result = run(&built(GraphKind::Undirected, 4, &EDGES));
    assert_eq!(result.coefficients, [1.0, 1.0, 1.0 / 3.0, 0.0]);
}

#[test]
fn the_check_finds_faults() {
    for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
        let graph = built(graph_kind, 5, &EDGES);
        let good = run(&graph);
        assert_eq!(verify(&graph, &good), Ok(()));
        let faults: [fn(&mut LccResult); 5] = [
            |r| r.coefficients[0] += 1e-9,
            |r| r.coefficients[3] = f64::NAN,
            |r| r.coefficients.truncate(4),
            |r| r.mean += 1e-6,
            |r| r.mean = f64::NAN,
        ];
        for (i, fault) in faults.iter().enumerate() {
            let mut bad = good.clone();
            fault(&mut bad);
            assert!(verify(&graph, &bad).is_err(), "fault {i}");
        }
    }
}

#[test]
fn cancelled_work_gives_no_result() {
    let (pool, progress) = (Pool::new(2).expect("threads start"), CancelFlag::default());
    progress.cancel();
    let ctx = Context { progress: &progress, ..Context::new(&pool) };
    for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
        let error = lcc(&ctx, &built(graph_kind, 5, &EDGES), &LccParams::default()).expect_err("the work is cancelled");
        assert!(matches!(error, Error::Base(anden_base::Error::Cancelled)), "{error}");
    }
}
