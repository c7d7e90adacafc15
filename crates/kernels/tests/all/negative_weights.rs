//! Shortest paths where weights are negative: distances by Bellman-Ford, or a vertex of a cycle of negative weight.

use anden_base::parallel::Pool;
use anden_base::random::Random;
use anden_graph::{Csr, CsrBuilder, GraphKind, Weight};
use anden_kernels::sssp::{DistanceValue, Distances, SsspParams, SsspResult, sssp, verify};
use anden_kernels::{Context, Error, Result};

fn built<W: Weight>(graph_kind: GraphKind, num_vertices: usize, edges: &[(u32, u32, W)]) -> Csr {
    let mut builder = CsrBuilder::<W>::new(graph_kind, num_vertices).keep_parallel();
    edges.iter().for_each(|&(source, target, weight)| builder.edge(source, target, weight));
    builder.build_weighted().unwrap()
}

fn from_0(csr: &Csr) -> Result<SsspResult> {
    let (pool, params) = (Pool::new(2).unwrap(), SsspParams::default());
    let result = sssp(&Context::new(&pool), csr, &params)?;
    assert_eq!(verify(csr, &params, &result), Ok(()));
    let spoilt = SsspResult { sum_distance: DistanceValue::Float(1e9), ..result.clone() };
    assert!(verify(csr, &params, &spoilt).is_err());
    Ok(result)
}

#[test]
fn negative_weights_shorten_paths() {
    let edges = [(1, 2, 1), (2, 3, -2), (1, 3, 5), (0, 1, 3)];
    let found = from_0(&built::<i64>(GraphKind::Directed, 5, &edges)).unwrap();
    assert_eq!(found.distances, Distances::Float(vec![0.0, 3.0, 4.0, 2.0, f64::INFINITY]));
    assert_eq!((found.reached, found.max_distance), (4, DistanceValue::Float(4.0)));
    let halves = edges.map(|(source, target, weight)| (source, target, weight as f32 / 2.0));
    let found = from_0(&built(GraphKind::Directed, 5, &halves)).unwrap();
    assert_eq!(found.distances, Distances::Float(vec![0.0, 1.5, 2.0, 1.0, f64::INFINITY]));
}

#[test]
fn cycle_of_negative_weight_is_named() {
    let cycle_of = |csr: &Csr| match from_0(csr) {
        Err(Error::NegativeCycle { vertex, .. }) => vertex,
        other => panic!("{other:?}"),
    };
    // 2, 3 and 4 lie on the cycle, 5 behind it.
    let edges = [(0, 2, 1.0), (2, 3, 1.0), (3, 4, -3.0), (4, 2, 1.5), (4, 5, 1.0), (0, 1, 0.0)];
    assert_eq!(cycle_of(&built(GraphKind::Directed, 6, &edges)), 2);
    assert_eq!(cycle_of(&built(GraphKind::Directed, 1, &[(0, 0, -1_i64)])), 0);
    assert_eq!(cycle_of(&built(GraphKind::Undirected, 3, &[(0, 1, 5_i64), (1, 2, -1)])), 1);
    // A cycle that the source does not reach, and one of weight 0, do no harm.
    let far = built(GraphKind::Directed, 4, &[(0, 1, -1_i64), (1, 0, 1), (2, 3, -1), (3, 2, -1)]);
    assert_eq!(from_0(&far).unwrap().reached, 2);
}

#[test]
fn inexact_sums_and_nan_are_refused() {
    let large = built(GraphKind::Directed, 3, &[(0, 1, 1 - (1_i64 << 53)), (1, 2, -1)]);
    assert!(matches!(from_0(&large), Err(Error::Unsupported { .. })));
    assert!(from_0(&built(GraphKind::Directed, 2, &[(0, 1, 1 - (1_i64 << 53))])).is_ok());
    let nan = built(GraphKind::Directed, 3, &[(0, 1, -1.0), (1, 2, f64::NAN)]);
    assert!(matches!(from_0(&nan), Err(Error::Weight { source_vertex: 1, target: 2, .. })));
}

#[test]
fn random_graphs_agree_with_the_verifier() {
    let mut random = Random::new(61);
    let mut num_cycles = 0;
    for _ in 0..60 {
        let num_vertices = 2 + random.index(30);
        let edges: Vec<(u32, u32, i64)> = (0..random.index(90))
            .map(|_| {
                let ends = [random.index(num_vertices) as u32, random.index(num_vertices) as u32];
                (ends[0], ends[1], random.index(30) as i64 - 3)
            })
            .collect();
        let csr = built(GraphKind::Directed, num_vertices, &edges);
        match from_0(&csr) {
            Ok(_) => {}
            Err(Error::NegativeCycle { .. }) => {
                let any = SsspResult {
                    source: 0,
                    distances: Distances::Float(vec![0.0; num_vertices]),
                    reached: 1,
                    max_distance: DistanceValue::Float(0.0),
                    sum_distance: DistanceValue::Float(0.0),
                };
                let message = verify(&csr, &SsspParams::default(), &any).unwrap_err();
                assert_eq!(message, "there is a cycle of negative weight");
                num_cycles += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!((1..60).contains(&num_cycles), "{num_cycles}");
}
