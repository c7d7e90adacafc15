//! PageRank against its serial verifier, on every graph, kind of view, variant and number of threads.

use std::collections::BTreeSet;

use anden_base::parallel::Pool;
use anden_base::progress::CancelFlag;
use anden_base::random::Random;
use anden_graph::{Csr, CsrBuilder, Direction, Graph, GraphKind, Weight, WeightedEdges};
use anden_kernels::pagerank::{
    Algorithm, PageRankParams, PageRankResult, Precision, Variant, pagerank, verify, verify_weighted, weighted_pagerank,
};
use anden_kernels::{Context, Error, Medium};
use anden_testkit::{FragmentedGraph, for_each_graph};

fn run(ctx: &Context<'_>, graph: &impl Graph, params: &PageRankParams) -> PageRankResult {
    pagerank(ctx, graph, params).expect("the parameters are good")
}

/// Runs on one and on three threads, and checks that the results are equal, bit for bit, and correct.
fn check(name: &str, graph: &impl Graph, params: &PageRankParams) -> PageRankResult {
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

/// 300 vertices with at most `num_arcs` arcs, whose in-lists have very different lengths.
fn with_lists_of_many_lengths(num_arcs: u32) -> Csr {
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 300);
    let mut random = Random::new(7);
    let mut arc = |_| {
        // Low targets are frequent.
        let bound = 1 + random.below(300);
        (random.below(300), random.below(bound))
    };
    let arcs: BTreeSet<_> = (0..num_arcs).map(&mut arc).collect();
    arcs.into_iter().for_each(|(source, target)| builder.edge(source, target, 1));
    builder.build().expect("edges are in range")
}

#[test]
fn scores_are_summed_in_the_order_of_the_sources() {
    let pool = Pool::new(2).expect("threads start");
    // Short lists are summed in groups, long ones side by side.
    for num_arcs in [500, 2000, 20_000] {
        let graph = with_lists_of_many_lengths(num_arcs);
        let scores = [Variant::Pull, Variant::Push, Variant::Binned].map(|variant| {
            let params = PageRankParams { variant, iterations: Some(9), ..PageRankParams::default() };
            run(&Context::new(&pool), &graph, &params).scores
        });
        assert!(scores[0] == scores[1] && scores[1] == scores[2], "{num_arcs} arcs");
    }
}

#[test]
fn views_of_every_kind_of_page_agree() {
    for_each_graph(|name, csr| {
        for params in variants() {
            let params = PageRankParams { iterations: Some(5), ..params };
            for (view, pieces) in FragmentedGraph::of_every_kind(csr) {
                if params.variant != Variant::Pull || pieces.has_lists(Direction::In) {
                    check(&format!("{name}, {view}"), &pieces, &params);
                }
            }
        }
    });
}

#[test]
fn sources_draw_the_jumps() {
    for_each_graph(|name, csr| {
        let graph = FragmentedGraph::new(csr);
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

/// Runs by weight on one and on three threads, and checks that the results are equal, bit for bit, and correct.
fn check_weighted(name: &str, graph: &impl WeightedEdges, params: &PageRankParams) -> PageRankResult {
    let pools = [1, 3].map(|threads| Pool::new(threads).expect("threads start"));
    let [one, three] = [&pools[0], &pools[1]]
        .map(|pool| weighted_pagerank(&Context::new(pool), graph, params).expect("the weights are good"));
    let what = format!("{name}, {params:?}");
    assert_eq!((&one.scores, one.delta, one.sum), (&three.scores, three.delta, three.sum), "{what}");
    verify_weighted(graph, params, &one).unwrap_or_else(|error| panic!("{what}: {error}"));
    one
}

fn check_weights_of_type<W: Weight>() {
    for test in anden_testkit::graphs() {
        let csr = test.build_weighted::<W>().expect("edges are in range");
        for variant in [Variant::Auto, Variant::Pull, Variant::Push] {
            for (algorithm, precision) in [
                (Algorithm::Standard, Precision::F64),
                (Algorithm::Gap, Precision::F64),
                (Algorithm::Standard, Precision::F32),
            ] {
                let params =
                    PageRankParams { variant, algorithm, precision, iterations: Some(5), ..PageRankParams::default() };
                check_weighted(test.name, &csr, &params);
                for (view, pieces) in FragmentedGraph::of_every_kind(&csr) {
                    if variant != Variant::Pull || pieces.has_lists(Direction::In) {
                        check_weighted(&format!("{}, {view}", test.name), &pieces, &params);
                    }
                }
            }
        }
    }
}

#[test]
fn weights_of_every_type_share_the_rank_out() {
    check_weights_of_type::<u32>();
    check_weights_of_type::<i64>();
    check_weights_of_type::<f32>();
    check_weights_of_type::<f64>();
}

#[test]
fn weights_that_are_all_the_same_change_nothing() {
    for test in anden_testkit::graphs() {
        let mut builder = CsrBuilder::<u32>::new(test.graph_kind, test.num_vertices).keep_parallel();
        test.edges.iter().for_each(|&(source, target, _)| builder.edge(source, target, 3));
        let csr = builder.build_weighted().expect("edges are in range");
        let params = PageRankParams { iterations: Some(6), ..PageRankParams::default() };
        let (plain, weighted) = (check(test.name, &csr, &params), check_weighted(test.name, &csr, &params));
        let near = plain.scores.iter().zip(&weighted.scores).all(|(a, b)| (a - b).abs() <= 1e-12);
        assert!(near, "{}", test.name);
    }
}

#[test]
fn weights_are_known_and_sources_draw_the_jumps() {
    let mut builder = CsrBuilder::<f64>::new(GraphKind::Directed, 4);
    [(0, 1, 3.0), (0, 2, 1.0), (1, 3, 0.0)].into_iter().for_each(|(s, t, w)| builder.edge(s, t, w));
    let graph = builder.build_weighted().expect("edges are in range");
    let params = PageRankParams { iterations: Some(1), ..PageRankParams::default() };
    // 0 gives three quarters to 1 and one to 2. The other three are dangling: the edge of 1 has weight 0.
    let base = (0.15 + 0.85 * 0.75) / 4.0;
    let wanted = [base, base + 0.85 * 0.25 * 0.75, base + 0.85 * 0.25 * 0.25, base];
    let found = check_weighted("four", &graph, &params).scores;
    assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?}, {wanted:?} wanted");
    let from_two = PageRankParams { sources: vec![2, 0, 2], ..params.clone() };
    let base = (0.15 + 0.85 * 0.75) / 2.0;
    let found = check_weighted("four", &graph, &from_two).scores;
    assert!((found[0] - base).abs() < 1e-15 && (found[3] - 0.0).abs() < 1e-15, "{found:?}");
}

#[test]
fn bad_weights_and_budgets_are_refused() {
    let pool = Pool::new(2).expect("threads start");
    let ctx = Context::new(&pool);
    let params = PageRankParams::default();
    let with = |weight: f64| {
        let mut builder = CsrBuilder::<f64>::new(GraphKind::Directed, 3);
        [(0, 1, 1.0), (1, 2, weight), (2, 0, weight)].into_iter().for_each(|(s, t, w)| builder.edge(s, t, w));
        weighted_pagerank(&ctx, &builder.build_weighted().expect("edges are in range"), &params)
    };
    assert!(with(0.5).is_ok());
    for weight in [-1.0, f64::INFINITY, f64::NAN] {
        let error = with(weight).expect_err("the weight is bad");
        assert!(matches!(error, Error::Weight { source_vertex: 1, target: 2, .. }), "{error}");
    }
    assert!(matches!(weighted_pagerank(&ctx, &ring(), &params), Err(Error::Unsupported { .. })));
    let graph = anden_testkit::graphs()[5].build_weighted::<u32>().expect("edges are in range");
    let binned = PageRankParams { variant: Variant::Binned, ..params.clone() };
    assert!(matches!(weighted_pagerank(&ctx, &graph, &binned), Err(Error::Parameter(_))));
    let tight = Context { memory: Some(1000), ..ctx };
    assert!(matches!(weighted_pagerank(&tight, &graph, &params), Err(Error::Memory { budget: 1000, .. })));
}

/// Regression: ranks were infinite, or the vertex counted as dangling.
#[test]
fn weights_that_cannot_be_shared_out_are_refused() {
    let pool = Pool::new(2).expect("threads start");
    let with = |precision, weight: f64| {
        let mut builder = CsrBuilder::<f64>::new(GraphKind::Directed, 4);
        [(0, 1, 1.0), (1, 2, weight), (1, 3, weight)].into_iter().for_each(|(s, t, w)| builder.edge(s, t, w));
        let graph = builder.build_weighted().expect("edges are in range");
        weighted_pagerank(&Context::new(&pool), &graph, &PageRankParams { precision, ..Default::default() })
    };
    for (precision, bad, good) in
        [(Precision::F64, [1e308, 1e-310], [1e300, 1e-300, 0.0]), (Precision::F32, [1e39, 1e-39], [1e30, 1e-30, 0.0])]
    {
        for weight in bad {
            let error = with(precision, weight).expect_err("the sum is bad");
            assert!(matches!(error, Error::Strength { vertex: 1, .. }), "{weight:e}: {error}");
        }
        for weight in good {
            let sum = with(precision, weight).expect("the sum is good").sum;
            assert!((sum - 1.0).abs() < 1e-5, "{weight:e}: {sum}");
        }
    }
}

fn ring() -> Csr {
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 64);
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
    let out_only = FragmentedGraph::new(&graph).without_in_edges();
    let pull = PageRankParams { variant: Variant::Pull, ..Default::default() };
    assert!(matches!(pagerank(&ctx, &out_only, &pull), Err(Error::Unsupported { .. })));
}

#[test]
fn a_budget_turns_bins_off() {
    let num_vertices = 300_000;
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, num_vertices as usize);
    for v in 0..num_vertices {
        builder.edge(v, v.wrapping_mul(2_654_435_761) % num_vertices, 1);
        builder.edge(v, v / 7, 1);
    }
    let graph = builder.build().expect("edges are in range");
    let pool = Pool::new(2).expect("threads start");
    let params = PageRankParams { iterations: Some(2), ..Default::default() };
    let with = |memory, params: &PageRankParams, in_edges| {
        let pieces = FragmentedGraph::new(&graph);
        let pieces = if in_edges { pieces } else { pieces.without_in_edges() };
        pagerank(&Context { memory, ..Context::new(&pool) }, &pieces, params)
    };
    let free = with(None, &params, true).expect("nothing limits it");
    assert_eq!(free.variant, Variant::Binned);
    // A table of 32,768 places follows each of three arrays.
    let needed = |bytes_each: u64| bytes_each * u64::from(num_vertices) + 3 * 8 * (1 << 15);
    let state = needed(24);
    for (in_edges, needed, variant) in [(true, state, Variant::Pull), (false, needed(32), Variant::Push)] {
        let tight = with(Some(needed), &params, in_edges).expect("the budget is enough");
        assert_eq!((tight.variant, tight.bins_bytes), (variant, 0));
        verify(&graph, &params, &tight).expect("right scores");
        assert!(matches!(with(Some(needed - 1), &params, in_edges), Err(Error::Memory { .. })));
    }
    let binned = PageRankParams { variant: Variant::Binned, ..params.clone() };
    let Err(Error::Memory { needed, .. }) = with(Some(state), &binned, true) else { panic!("bins take memory") };
    assert!((state + free.bins_bytes..state + 2 * free.bins_bytes).contains(&needed), "{needed}");
    assert!(with(Some(needed), &binned, true).is_ok());
    assert!(matches!(with(Some(1000), &params, true), Err(Error::Memory { budget: 1000, .. })));
}

#[test]
fn a_medium_that_is_chosen_decides_the_variant() {
    let (graph, pool) = (ring(), Pool::new(2).expect("threads start"));
    let cases = [
        (Medium::Auto, true, Variant::Pull),
        (Medium::Memory, true, Variant::Binned),
        (Medium::Memory, false, Variant::Binned),
        (Medium::Disk, true, Variant::Pull),
        (Medium::Disk, false, Variant::Push),
    ];
    for (medium, in_edges, variant) in cases {
        let pieces =
            if in_edges { FragmentedGraph::new(&graph) } else { FragmentedGraph::new(&graph).without_in_edges() };
        let found = pagerank(&Context { medium, ..Context::new(&pool) }, &pieces, &PageRankParams::default());
        assert_eq!(found.expect("nothing limits it").variant, variant, "{medium:?}");
    }
}

#[test]
fn cancelled_work_gives_no_result() {
    let pool = Pool::new(2).expect("threads start");
    let progress = CancelFlag::default();
    progress.cancel();
    let ctx = Context { progress: &progress, ..Context::new(&pool) };
    for params in variants() {
        let error = pagerank(&ctx, &ring(), &params).expect_err("the work is cancelled");
        assert!(matches!(error, Error::Base(anden_base::Error::Cancelled)), "{error}");
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
