//! PageRank agrees with its serial check on every shape of graph, kind of view, variant and number
//! of threads.

use anden_kernels::pagerank::{Algorithm, PageRankParams, PageRankResult, Precision, Variant, pagerank, verify};
use anden_kernels::{Context, Error};
use base::parallel::Pool;
use base::progress::CancelFlag;
use graph::{Csr, CsrBuilder, Direction, Graph, InEdges};
use testkit::{Pieces, for_each_graph};

fn run(ctx: &Context<'_>, graph: &impl InEdges, params: &PageRankParams) -> PageRankResult {
    pagerank(ctx, graph, params).expect("the parameters are good")
}

/// Runs on one and on three threads, wants the same bits, and checks them.
fn check(name: &str, graph: &impl InEdges, params: &PageRankParams) -> PageRankResult {
    // The table of cells grows with the square of the number of partitions.
    let partition_bits = if graph.vertex_bound() > 1000 { params.partition_bits.max(6) } else { params.partition_bits };
    let params = &PageRankParams { partition_bits, ..params.clone() };
    let pools = [1, 3].map(|threads| Pool::new(threads).expect("threads start"));
    let [one, three] = [&pools[0], &pools[1]].map(|pool| run(&Context::new(pool), graph, params));
    let what = format!("{name}, {params:?}");
    assert_eq!(one.scores, three.scores, "{what}");
    assert_eq!((one.delta, one.sum, one.iterations), (three.delta, three.sum, three.iterations), "{what}");
    verify(graph, params, &one).unwrap_or_else(|error| panic!("{what}: {error}"));
    one
}

fn variants() -> Vec<PageRankParams> {
    let variants = [(Variant::Auto, 15), (Variant::Pull, 15), (Variant::Push, 15)];
    let binned = [1, 3, 6, 15].map(|bits| (Variant::Binned, bits));
    let all = variants.into_iter().chain(binned);
    all.map(|(variant, partition_bits)| PageRankParams { variant, partition_bits, ..PageRankParams::default() })
        .collect()
}

#[test]
fn every_variant_agrees_with_the_check() {
    for_each_graph(|name, csr| {
        for params in variants() {
            let exact = PageRankParams { iterations: Some(7), ..params.clone() };
            assert_eq!(check(name, csr, &exact).iterations, 7);
            check(name, csr, &PageRankParams { precision: Precision::F32, ..exact.clone() });
            check(name, csr, &PageRankParams { algorithm: Algorithm::Gap, ..exact });
            check(name, csr, &params);
        }
    });
}

#[test]
fn views_of_every_kind_of_page_agree() {
    for_each_graph(|name, csr| {
        for params in variants() {
            let params = PageRankParams { iterations: Some(5), ..params };
            for (view, pieces) in Pieces::of_every_kind(csr) {
                if params.variant != Variant::Pull || pieces.has_in_edges() {
                    check(&format!("{name}, {view}"), &pieces, &params);
                }
            }
        }
    });
}

#[test]
fn sources_draw_the_jumps() {
    for_each_graph(|name, csr| {
        let graph = Pieces::new(csr);
        let last = csr.vertex_bound() as u32 - u32::from(csr.vertex_bound() > 0);
        let live = |v: &u32| (*v as usize) < csr.vertex_bound() && graph.is_live(*v);
        for sources in [vec![0], vec![last, 0, 5, 0, 8, 9]] {
            let sources: Vec<u32> = sources.into_iter().filter(live).collect();
            for params in variants() {
                check(name, &graph, &PageRankParams { sources: sources.clone(), iterations: Some(4), ..params });
            }
        }
    });
}

fn ring() -> Csr {
    let mut builder = CsrBuilder::<u32>::new(Direction::Directed, 64);
    (0..64).for_each(|v| builder.edge(v, (v + 1) % 64, 1));
    (0..20).for_each(|v| builder.edge(v, 40, 1));
    builder.build().expect("edges are in range")
}

#[test]
fn rounds_end_by_count_or_tolerance() {
    let graph = ring();
    let with = |iterations, tolerance| PageRankParams { iterations, tolerance, ..PageRankParams::default() };
    assert_eq!(check("ring", &graph, &with(Some(0), None)).iterations, 0);
    assert_eq!(check("ring", &graph, &with(Some(3), Some(0.0))).iterations, 3);
    let loose = check("ring", &graph, &with(None, Some(1e-2)));
    assert!(loose.delta < 1e-2 && loose.iterations < 30, "{loose:?}");
    let default = check("ring", &graph, &with(None, None));
    assert!(default.delta < 1e-6 && default.iterations > loose.iterations && (default.sum - 1.0).abs() < 1e-12);
}

#[test]
fn bad_parameters_are_refused() {
    let pool = Pool::new(1).expect("threads start");
    let ctx = Context::new(&pool);
    let graph = ring();
    let refused = |params: PageRankParams| pagerank(&ctx, &graph, &params).expect_err("the parameters are bad");
    for damping in [-0.1, 1.5, f64::NAN] {
        assert!(matches!(refused(PageRankParams { damping, ..Default::default() }), Error::Parameter(_)));
    }
    for tolerance in [-1.0, f64::NAN] {
        let error = refused(PageRankParams { tolerance: Some(tolerance), ..Default::default() });
        assert!(matches!(error, Error::Parameter(_)));
    }
    for partition_bits in [0, 16] {
        assert!(matches!(refused(PageRankParams { partition_bits, ..Default::default() }), Error::Parameter(_)));
    }
    let error = refused(PageRankParams { sources: vec![3, 64], ..Default::default() });
    assert!(matches!(error, Error::NoVertex { vertex: 64, bound: 64 }));
    let out_only = Pieces::new(&graph).without_in_edges();
    let pull = PageRankParams { variant: Variant::Pull, ..Default::default() };
    assert!(matches!(pagerank(&ctx, &out_only, &pull), Err(Error::Unsupported { .. })));
}

#[test]
fn a_budget_turns_bins_off() {
    let num_vertices = 300_000;
    let mut builder = CsrBuilder::<u32>::new(Direction::Directed, num_vertices as usize);
    for v in 0..num_vertices {
        builder.edge(v, v.wrapping_mul(2_654_435_761) % num_vertices, 1);
        builder.edge(v, v / 7, 1);
    }
    let graph = builder.build().expect("edges are in range");
    let pool = Pool::new(2).expect("threads start");
    let params = PageRankParams { iterations: Some(2), ..Default::default() };
    let with = |memory, params: &PageRankParams, in_edges| {
        let pieces = Pieces::new(&graph);
        let pieces = if in_edges { pieces } else { pieces.without_in_edges() };
        pagerank(&Context { memory, ..Context::new(&pool) }, &pieces, params)
    };
    let free = with(None, &params, true).expect("nothing limits it");
    assert_eq!(free.variant, Variant::Binned);
    let state = 40 * u64::from(num_vertices);
    for (in_edges, variant) in [(true, Variant::Pull), (false, Variant::Push)] {
        let tight = with(Some(state), &params, in_edges).expect("the budget is enough");
        assert_eq!((tight.variant, tight.bins_bytes), (variant, 0));
        verify(&graph, &params, &tight).expect("right scores");
    }
    let binned = PageRankParams { variant: Variant::Binned, ..params.clone() };
    assert!(matches!(with(Some(state), &binned, true), Err(Error::Memory { .. })));
    assert!(with(Some(state + free.bins_bytes), &binned, true).is_ok());
    assert!(matches!(with(Some(1000), &params, true), Err(Error::Memory { budget: 1000, .. })));
}

#[test]
fn cancelled_work_gives_no_result() {
    let pool = Pool::new(2).expect("threads start");
    let progress = CancelFlag::default();
    progress.cancel();
    let ctx = Context { progress: &progress, ..Context::new(&pool) };
    for params in variants() {
        let error = pagerank(&ctx, &ring(), &params).expect_err("the work is cancelled");
        assert!(matches!(error, Error::Base(base::Error::Cancelled)), "{error}");
    }
}

#[test]
fn the_check_finds_faults() {
    let graph = ring();
    let pool = Pool::new(1).expect("threads start");
    let params = PageRankParams { iterations: Some(6), ..Default::default() };
    let good = run(&Context::new(&pool), &graph, &params);
    let faults: [fn(&mut PageRankResult); 5] = [
        |r| r.scores[40] *= 1.0 + 1e-8,
        |r| r.scores[3] = f64::NAN,
        |r| r.scores.truncate(63),
        |r| r.iterations = 5,
        |r| r.delta += 1e-6,
    ];
    for (i, fault) in faults.iter().enumerate() {
        let mut bad = good.clone();
        fault(&mut bad);
        assert!(verify(&graph, &params, &bad).is_err(), "fault {i}");
    }
}
