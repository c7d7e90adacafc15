//! Every kernel against its verifier, on every graph, on one and several threads. Each graph is a plain CSR, and views
//! with every kind of page, with dead vertices and fragmented lists, with and without in-edges.

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::{Direction, Graph, Parts, Weight, WeightedEdges};
use anden_kernels::bc::{self, BcParams, bc};
use anden_kernels::bfs::{self, BfsParams, bfs};
use anden_kernels::cdlp::{self, CdlpParams, cdlp};
use anden_kernels::kcore::{self, KcoreParams, kcore};
use anden_kernels::lcc::{self, LccParams, lcc};
use anden_kernels::pagerank::{self, PageRankParams, Variant, pagerank};
use anden_kernels::scc::{self, SccParams, scc};
use anden_kernels::sssp::{self, SsspAlgorithm, SsspParams, sssp};
use anden_kernels::triangles::{self, TriangleParams, triangles};
use anden_kernels::wcc::{self, WccParams, wcc};
use anden_kernels::{Context, Error, Medium, SourceChoice};
use anden_testkit::{Dead, FragmentedGraph, TEST_THREADS, graphs, on_every_view};

/// Interesting sources: the first, the last and a middle vertex, if live.
fn sources(graph: &impl Graph) -> Vec<VertexId> {
    let bound = graph.vertex_bound() as VertexId;
    let mut sources: Vec<_> = [0, bound / 2, bound.saturating_sub(1)].into();
    sources.dedup();
    sources.retain(|&v| v < bound && graph.is_live(v));
    sources
}

fn check_bfs(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
    for source in sources(graph) {
        let params = BfsParams { source, parents: true };
        let result = bfs(ctx, graph, &params).unwrap();
        assert_eq!(bfs::verify(graph, &params, &result), Ok(()), "{what}, source {source}");
        let hops = bfs(ctx, graph, &BfsParams { source, parents: false }).unwrap();
        assert_eq!((hops.hops, hops.parents), (result.hops.clone(), None), "{what}, source {source}");
        for medium in Medium::ALL {
            let other = bfs(&Context { medium, ..*ctx }, graph, &params).unwrap();
            let found = (other.hops, other.parents, other.reached, other.depth);
            let wanted = (result.hops.clone(), result.parents.clone(), result.reached, result.depth);
            assert_eq!(found, wanted, "{what}, source {source}, {medium:?}");
        }
    }
}

fn check_wcc(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
    let params = WccParams::default();
    let result = wcc(ctx, graph, &params).unwrap();
    assert_eq!(wcc::verify(graph, &params, &result), Ok(()), "{what}");
}

fn check_scc(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
    let params = SccParams::default();
    let result = scc(ctx, graph, &params).unwrap();
    assert_eq!(scc::verify(graph, &params, &result), Ok(()), "{what}");
}

fn check_kcore(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
    for params in [KcoreParams::default(), KcoreParams { part_vertices: 20 }] {
        let result = kcore(ctx, graph, &params).unwrap();
        assert_eq!(kcore::verify(graph, &params, &result), Ok(()), "{what}, {params:?}");
    }
}

fn check_cdlp(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
    let live = || (0..graph.vertex_bound() as VertexId).filter(|&v| graph.is_live(v));
    let (odd, even): (Vec<_>, Vec<_>) = live().partition(|v| v % 2 == 1);
    for (iterations, order) in [(10, None), (9, None), (1, None), (0, None), (10, Some([odd, even].concat()))] {
        let params = CdlpParams { iterations, order };
        let result = cdlp(ctx, graph, &params).unwrap();
        assert_eq!(cdlp::verify(graph, &params, &result), Ok(()), "{what}, {params:?}");
    }
}

fn check_sssp(ctx: &Context<'_>, graph: &impl WeightedEdges, what: &str) {
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

fn check_bc(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
    let mut choices = vec![SourceChoice::Given(sources(graph)), SourceChoice::Sampled { count: 5, seed: 3 }];
    if graph.vertex_bound() < 200 {
        choices.push(SourceChoice::All);
    }
    for sources in choices {
        let params = BcParams { sources };
        let result = bc(ctx, graph, &params).unwrap();
        assert_eq!(bc::verify(graph, &params, &result), Ok(()), "{what}, {:?}", params.sources);
        for medium in Medium::ALL {
            let other = bc(&Context { medium, ..*ctx }, graph, &params).unwrap();
            assert_eq!(other.scores, result.scores, "{what}, {:?}, {medium:?}", params.sources);
        }
    }
}

fn check_pagerank(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
    for variant in [Variant::Auto, Variant::Binned, Variant::Pull, Variant::Push] {
        if variant == Variant::Pull && !graph.has_lists(Direction::In) {
            continue;
        }
        let params = PageRankParams { variant, iterations: Some(6), partition_bits: 7, ..PageRankParams::default() };
        let result = pagerank(ctx, graph, &params).unwrap();
        assert_eq!(pagerank::verify(graph, &params, &result), Ok(()), "{what}, {variant:?}");
    }
}

fn check_triangles(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
    for (num_hubs, by_vertex) in [(0, false), (5, false), (1000, false), (0, true), (1000, true)] {
        let result = triangles(ctx, graph, &TriangleParams { num_hubs: Some(num_hubs), by_vertex }).unwrap();
        assert_eq!(triangles::verify(graph, &result), Ok(()), "{what}, {num_hubs} hubs");
    }
}

fn check_lcc(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
    let mut first = None;
    for num_hubs in [0, 1, 5, 70, 1000] {
        let result = lcc(ctx, graph, &LccParams { num_hubs: Some(num_hubs) }).unwrap();
        assert_eq!(lcc::verify(graph, &result), Ok(()), "{what}, {num_hubs} hubs");
        let coefficients = first.get_or_insert_with(|| result.coefficients.clone());
        assert_eq!(*coefficients, result.coefficients, "{what}, {num_hubs} hubs");
    }
    let from_disk = |memory| lcc(&Context { memory, medium: Medium::Disk, ..*ctx }, graph, &LccParams::default());
    let Err(Error::Memory { needed, .. }) = from_disk(Some(1)) else { panic!("{what}: a byte is too small a budget") };
    for memory in [None, Some(needed), Some(needed + 1000)] {
        assert_eq!(from_disk(memory).unwrap().coefficients, *first.get_or_insert_default(), "{what}, {memory:?}");
    }
}

/// The matrix for another weight type, or for unweighted graphs.
fn sssp_of_weights<W: Weight>(is_weighted: bool) {
    for threads in TEST_THREADS {
        let pool = Pool::new(threads).unwrap();
        for test in graphs() {
            let csr = if is_weighted { test.build_weighted::<W>() } else { test.build() }.unwrap();
            let weights = if is_weighted { W::TYPE.name() } else { "no weights" };
            let what = format!("sssp with {weights} x {} x {threads}", test.name);
            check_sssp(&Context::new(&pool), &csr, &what);
            let pieces = FragmentedGraph::new(&csr);
            check_sssp(&Context::new(&pool), &pieces, &format!("{what}, in pieces"));
            let is_announced = pieces.num_announced(Parts::Weighted) > 0;
            assert_eq!(is_announced, is_weighted && csr.vertex_bound() > 0, "{what}");
        }
    }
}

#[test]
fn bfs_over_all_graphs() {
    on_every_view!(Context::new, "bfs", check_bfs);
}

#[test]
fn wcc_over_all_graphs() {
    on_every_view!(Context::new, "wcc", check_wcc);
}

#[test]
fn scc_over_all_graphs() {
    on_every_view!(Context::new, "scc", check_scc);
}

#[test]
fn kcore_over_all_graphs() {
    on_every_view!(Context::new, "kcore", check_kcore);
}

#[test]
fn cdlp_over_all_graphs() {
    on_every_view!(Context::new, "cdlp", check_cdlp);
}

#[test]
fn sssp_over_all_graphs() {
    on_every_view!(Context::new, "sssp", check_sssp);
    sssp_of_weights::<i64>(true);
    sssp_of_weights::<f32>(true);
    sssp_of_weights::<f64>(true);
    sssp_of_weights::<u32>(false);
}

#[test]
fn bc_over_all_graphs() {
    on_every_view!(Context::new, "bc", check_bc);
}

#[test]
fn pagerank_over_all_graphs() {
    on_every_view!(Context::new, "pagerank", check_pagerank);
}

#[test]
fn triangles_over_all_graphs() {
    on_every_view!(Context::new, "triangles", check_triangles);
}

#[test]
fn lcc_over_all_graphs() {
    on_every_view!(Context::new, "lcc", check_lcc);
}

#[test]
fn graph_of_dead_vertices_has_no_results() {
    let csr = graphs().into_iter().find(|test| test.name == "no edges").unwrap().build_weighted::<u32>().unwrap();
    let dead = FragmentedGraph::new(&csr).with_dead(Dead::All);
    let bound = dead.vertex_bound();
    assert_eq!((dead.num_vertices(), bound), (0, 130));
    for threads in TEST_THREADS {
        let pool = Pool::new(threads).unwrap();
        let ctx = Context::new(&pool);
        check_wcc(&ctx, &dead, "all dead");
        let components = wcc(&ctx, &dead, &WccParams::default()).unwrap();
        assert_eq!((components.components, components.largest), (0, 0));
        check_scc(&ctx, &dead, "all dead");
        let components = scc(&ctx, &dead, &SccParams::default()).unwrap();
        assert_eq!((components.components, components.largest), (0, 0));
        check_kcore(&ctx, &dead, "all dead");
        check_cdlp(&ctx, &dead, "all dead");
        assert_eq!(cdlp(&ctx, &dead, &CdlpParams::default()).unwrap().communities, 0);
        check_pagerank(&ctx, &dead, "all dead");
        let ranks = pagerank(&ctx, &dead, &PageRankParams::default()).unwrap();
        assert_eq!((ranks.scores, ranks.sum), (vec![0.0; bound], 0.0));
        check_triangles(&ctx, &dead, "all dead");
        check_lcc(&ctx, &dead, "all dead");
        assert_eq!(lcc(&ctx, &dead, &LccParams::default()).unwrap().mean, 0.0);
        for sources in [SourceChoice::All, SourceChoice::Sampled { count: 3, seed: 1 }] {
            let centralities = bc(&ctx, &dead, &BcParams { sources }).unwrap();
            assert_eq!((centralities.sources, centralities.scores), (vec![], vec![0.0; bound]));
        }
        let refused = |result: Result<(), Error>| matches!(result, Err(Error::NoVertex { vertex: 0, bound: 130 }));
        assert!(refused(bfs(&ctx, &dead, &BfsParams::default()).map(|_| ())));
        assert!(refused(sssp(&ctx, &dead, &SsspParams::default()).map(|_| ())));
        assert!(refused(bc(&ctx, &dead, &BcParams { sources: SourceChoice::Given(vec![0]) }).map(|_| ())));
    }
}
