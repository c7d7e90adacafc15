//! Errors of the walking kernels, and cancellation.

use anden_base::parallel::Pool;
use anden_base::progress::{CancelFlag, Progress};
use anden_graph::{Csr, CsrBuilder, GraphKind, Weight};
use anden_kernels::bc::{BcParams, bc};
use anden_kernels::bfs::{BfsParams, bfs};
use anden_kernels::cdlp::{CdlpParams, cdlp};
use anden_kernels::kcore::{KcoreParams, kcore};
use anden_kernels::query::weighted_path;
use anden_kernels::scc::{SccParams, scc};
use anden_kernels::sssp::{Distances, SsspAlgorithm, SsspParams, sssp};
use anden_kernels::wcc::{WccParams, wcc};
use anden_kernels::{Context, Error, Result};

fn path_with_weights<W: Weight>(weights: &[W]) -> Csr {
    let mut builder = CsrBuilder::<W>::new(GraphKind::Directed, weights.len() + 1);
    weights.iter().enumerate().for_each(|(i, &w)| builder.edge(i as u32, i as u32 + 1, w));
    builder.build_weighted().unwrap()
}

#[test]
fn forbidden_weights_are_named_with_their_edge() {
    let pool = Pool::new(2).unwrap();
    let ctx = Context::new(&pool);
    for algorithm in [SsspAlgorithm::DeltaStepping, SsspAlgorithm::BellmanFord] {
        let params = SsspParams { algorithm, ..SsspParams::default() };
        let message = |csr: &Csr| sssp(&ctx, csr, &params).unwrap_err().to_string();
        let found = sssp(&ctx, &path_with_weights(&[4_i64, 0, -7]), &params).unwrap();
        assert_eq!(found.distances, Distances::Float(vec![0.0, 4.0, 4.0, -3.0]));
        assert!(message(&path_with_weights(&[0.5_f32, f32::NAN])).contains("from vertex 1 to vertex 2 has weight NaN"));
        assert!(sssp(&ctx, &path_with_weights(&[-0.0_f64, 0.0]), &params).is_ok());
    }
    let negative = weighted_path(&ctx, &path_with_weights(&[4_i64, 0, -7]), 0, 3);
    assert!(matches!(negative, Err(Error::Weight { source_vertex: 2, target: 3, .. })));
}

#[test]
fn weightless_graph_is_refused_without_unit_weights() {
    let pool = Pool::new(1).unwrap();
    let ctx = Context::new(&pool);
    let csr = anden_testkit::graphs().into_iter().find(|g| g.name == "path").unwrap().build().unwrap();
    assert!(matches!(sssp(&ctx, &csr, &SsspParams::default()), Err(Error::Unsupported { kernel: "sssp", .. })));
    assert!(matches!(weighted_path(&ctx, &csr, 0, 1), Err(Error::Unsupported { .. })));
    let result = sssp(&ctx, &csr, &SsspParams { unit_weights: true, ..SsspParams::default() }).unwrap();
    assert_eq!(result.max_distance, anden_kernels::sssp::DistanceValue::Integer(149));
    for delta in [0.0, -1.0, f64::NAN] {
        let params = SsspParams { delta: Some(delta), unit_weights: true, ..SsspParams::default() };
        assert!(matches!(sssp(&ctx, &csr, &params), Err(Error::Parameter(_))), "delta {delta}");
    }
}

#[test]
fn distances_of_64_bits_are_exact() {
    let pool = Pool::new(2).unwrap();
    let ctx = Context::new(&pool);
    for weights in [&[5_000_000_000_000_000_000_i64; 2][..], &[i64::MAX, 1], &[i64::MAX, i64::MAX], &[1 << 62, 1, 3]] {
        let sum = weights.iter().map(|&weight| weight as u64).sum();
        for algorithm in [SsspAlgorithm::DeltaStepping, SsspAlgorithm::BellmanFord] {
            let params = SsspParams { algorithm, ..SsspParams::default() };
            let found = sssp(&ctx, &path_with_weights(weights), &params).unwrap();
            assert_eq!(found.reached, weights.len() as u64 + 1, "{weights:?} by {algorithm:?}");
            assert_eq!(found.max_distance, anden_kernels::sssp::DistanceValue::Integer(sum), "{weights:?}");
        }
    }
}

/// Regression: such distances saturated and counted as unreached.
#[test]
fn distances_beyond_their_type_are_refused() {
    let pool = Pool::new(2).unwrap();
    let ctx = Context::new(&pool);
    let is_too_far = |csr: &Csr, target: u32| {
        let were_refused = [SsspAlgorithm::DeltaStepping, SsspAlgorithm::BellmanFord].map(|algorithm| {
            let params = SsspParams { algorithm, ..SsspParams::default() };
            matches!(sssp(&ctx, csr, &params), Err(Error::Unsupported { kernel: "sssp", .. }))
        });
        let path = weighted_path(&ctx, csr, 0, target);
        (were_refused, matches!(path, Err(Error::Unsupported { .. })), path.is_ok_and(|path| path.is_some()))
    };
    let (refused, no_path, found) = (([true; 2], true, false), ([false; 2], false, false), ([false; 2], false, true));
    const FAR: i64 = 9_000_000_000_000_000_000;
    for (weights, wanted) in [(&[FAR; 3][..], refused), (&[FAR, FAR], found), (&[i64::MAX, i64::MAX, 1], refused)] {
        let csr = path_with_weights(weights);
        assert_eq!(is_too_far(&csr, weights.len() as u32), wanted, "{weights:?}");
        let out_only = Csr::directed(csr.out_lists().clone(), None).unwrap();
        assert_eq!(is_too_far(&out_only, weights.len() as u32), wanted, "{weights:?}, no in-edges");
    }
    assert_eq!(is_too_far(&path_with_weights(&[1e308, 1e308]), 2), refused);
    assert_eq!(is_too_far(&path_with_weights(&[1e300, f64::MAX]), 2), refused);
    assert_eq!(is_too_far(&path_with_weights(&[f32::MAX; 9]), 9), found);
    // An edge of infinite weight reaches no vertex, as does no edge.
    assert_eq!(is_too_far(&path_with_weights(&[1.0, f64::INFINITY]), 2), no_path);
    let mut builder = CsrBuilder::<i64>::new(GraphKind::Directed, 6);
    [(0, 1), (1, 2), (3, 4), (4, 5)].into_iter().for_each(|(s, t)| builder.edge(s, t, FAR));
    assert_eq!(is_too_far(&builder.build_weighted().unwrap(), 5), no_path);
}

#[test]
fn distances_beyond_32_bits_are_exact() {
    let pool = Pool::new(2).unwrap();
    let ctx = Context::new(&pool);
    let wide = sssp(&ctx, &path_with_weights(&[u32::MAX; 5]), &SsspParams::default()).unwrap();
    assert_eq!(wide.max_distance, anden_kernels::sssp::DistanceValue::Integer(5 * u64::from(u32::MAX)));
    let edge = sssp(&ctx, &path_with_weights(&[(1_u32 << 31) - 2, 1, 1]), &SsspParams::default()).unwrap();
    assert_eq!(edge.max_distance, anden_kernels::sssp::DistanceValue::Integer(1 << 31));
}

#[test]
fn cancelled_work_gives_no_result() {
    let flag = CancelFlag::default();
    flag.cancel();
    let pool = Pool::new(2).unwrap();
    let ctx = Context { progress: &flag, ..Context::new(&pool) };
    let csr = anden_testkit::graphs().into_iter().find(|g| g.name == "rmat").unwrap().build_weighted::<u32>().unwrap();
    let is_cancelled = |result: Result<()>| matches!(result, Err(Error::Base(anden_base::Error::Cancelled)));
    assert!(is_cancelled(bfs(&ctx, &csr, &BfsParams::default()).map(|_| ())));
    assert!(is_cancelled(wcc(&ctx, &csr, &WccParams::default()).map(|_| ())));
    for csr in [&csr, &Csr::directed(csr.out_lists().clone(), None).unwrap()] {
        assert!(is_cancelled(scc(&ctx, csr, &SccParams::default()).map(|_| ())));
        assert!(is_cancelled(kcore(&ctx, csr, &KcoreParams::default()).map(|_| ())));
        assert!(is_cancelled(cdlp(&ctx, csr, &CdlpParams::default()).map(|_| ())));
    }
    assert!(is_cancelled(bc(&ctx, &csr, &BcParams::default()).map(|_| ())));
    for algorithm in [SsspAlgorithm::DeltaStepping, SsspAlgorithm::BellmanFord] {
        let params = SsspParams { algorithm, ..SsspParams::default() };
        assert!(is_cancelled(sssp(&ctx, &csr, &params).map(|_| ())));
    }
}

/// Cancels after the first step.
#[derive(Default)]
struct OneStep(CancelFlag);

impl Progress for OneStep {
    fn advance(&self, _amount: u64) {
        self.0.cancel();
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Regression: delta-stepping, cancelled in its last bucket, returned its distances as final.
#[test]
fn search_cancelled_in_first_round_gives_no_result() {
    let pool = Pool::new(1).unwrap();
    let csr = path_with_weights(&[1_u32]);
    let is_cancelled = |run: &dyn Fn(&Context<'_>) -> Result<()>| {
        let progress = OneStep::default();
        let result = run(&Context { progress: &progress, ..Context::new(&pool) });
        matches!(result, Err(Error::Base(anden_base::Error::Cancelled)))
    };
    assert!(is_cancelled(&|ctx| bfs(ctx, &csr, &BfsParams::default()).map(|_| ())));
    for algorithm in [SsspAlgorithm::DeltaStepping, SsspAlgorithm::BellmanFord] {
        let params = SsspParams { algorithm, ..SsspParams::default() };
        assert!(is_cancelled(&|ctx| sssp(ctx, &csr, &params).map(|_| ())), "{algorithm:?}");
    }
}

#[test]
fn an_order_of_labels_must_name_each_vertex_once() {
    let pool = Pool::new(1).unwrap();
    let csr = path_with_weights(&[1_u32; 3]);
    let with = |order: &[u32]| {
        cdlp(&Context::new(&pool), &csr, &CdlpParams { order: Some(order.to_vec()), ..CdlpParams::default() })
    };
    assert!(with(&[3, 1, 0, 2]).is_ok());
    for order in [&[0, 1, 2][..], &[0, 1, 2, 2], &[0, 1, 2, 4], &[0, 1, 2, 3, 3]] {
        assert!(matches!(with(order), Err(Error::Parameter(_))), "{order:?}");
    }
}
