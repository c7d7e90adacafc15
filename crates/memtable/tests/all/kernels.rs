//! Each kernel on a version, against its verifier, over graphs of every shape.

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::{Csr, Direction, Graph, GraphKind, WeightedEdges};
use anden_kernels::bc::{self, BcParams, bc};
use anden_kernels::bfs::{self, BfsParams, bfs};
use anden_kernels::lcc::{self, LccParams, lcc};
use anden_kernels::pagerank::{self, PageRankParams, Variant, pagerank};
use anden_kernels::sssp::{self, SsspParams, sssp};
use anden_kernels::triangles::{self, TriangleParams, triangles};
use anden_kernels::wcc::{self, WccParams, wcc};
use anden_kernels::{Context, SourceChoice};
use anden_memtable::{AdjacencyTable, EntryUpdate, Options, Space, Terrace, Version};
use anden_testkit::graphs;
use std::ops::ControlFlow;

/// The lists of one direction as changes.
fn updates(csr: &Csr, is_out: bool) -> Vec<EntryUpdate<u32>> {
    let mut all = Vec::new();
    for source in 0..csr.vertex_bound() as VertexId {
        let add = |targets: &[VertexId], weights: &[u32]| {
            let both = targets.iter().zip(weights);
            all.extend(both.map(|(&target, &weight)| EntryUpdate { source, target, addition: Some(weight) }));
            ControlFlow::Continue(())
        };
        let _ = if is_out {
            csr.for_each_weighted_fragment(Direction::Out, source, add)
        } else {
            csr.for_each_weighted_fragment(Direction::In, source, add)
        };
    }
    all
}

fn live(pool: &Pool, csr: &Csr, options: &Options) -> Version<u32> {
    let mut terrace = Terrace::<u32>::new(&Options { graph_kind: csr.graph_kind(), ..options.clone() }).unwrap();
    terrace.grow(csr.vertex_bound()).unwrap();
    let mut space = Space::default();
    terrace.apply(pool, AdjacencyTable::Out, &updates(csr, true), &mut space).unwrap();
    if csr.graph_kind() == GraphKind::Directed && options.in_lists {
        terrace.apply(pool, AdjacencyTable::In, &updates(csr, false), &mut space).unwrap();
    }
    terrace.publish();
    let version = terrace.version();
    version.verify().unwrap();
    version
}

fn check(ctx: &Context<'_>, graph: &Version<u32>, csr: &Csr, what: &str) {
    let counts = |g: &dyn Fn() -> (usize, u64, u64)| g();
    assert_eq!(
        counts(&|| (graph.vertex_bound(), graph.num_edges(), graph.num_arcs())),
        counts(&|| (csr.vertex_bound(), csr.num_edges(), csr.num_arcs())),
        "{what}"
    );
    let bound = graph.vertex_bound() as VertexId;
    let mut sources: Vec<VertexId> = vec![0, bound / 2, bound.saturating_sub(1)];
    sources.retain(|&source| source < bound);
    for &source in &sources {
        let params = BfsParams { source, parents: true };
        assert_eq!(bfs::verify(graph, &params, &bfs(ctx, graph, &params).unwrap()), Ok(()), "{what}");
        let params = SsspParams { source, ..SsspParams::default() };
        let result = sssp(ctx, graph, &params).unwrap();
        assert_eq!(sssp::verify(graph, &params, &result), Ok(()), "{what}");
        assert_eq!(sssp::verify(csr, &params, &result), Ok(()), "{what}");
    }
    let params = WccParams::default();
    assert_eq!(wcc::verify(csr, &params, &wcc(ctx, graph, &params).unwrap()), Ok(()), "{what}");
    let params = BcParams { sources: SourceChoice::Given(sources) };
    assert_eq!(bc::verify(graph, &params, &bc(ctx, graph, &params).unwrap()), Ok(()), "{what}");
    for variant in [Variant::Binned, Variant::Pull, Variant::Push] {
        if variant == Variant::Pull && !graph.has_lists(Direction::In) {
            continue;
        }
        let params = PageRankParams { variant, iterations: Some(4), partition_bits: 7, ..PageRankParams::default() };
        let result = pagerank(ctx, graph, &params).unwrap();
        assert_eq!(pagerank::verify(csr, &params, &result), Ok(()), "{what}, {variant:?}");
    }
    let result = triangles(ctx, graph, &TriangleParams::default()).unwrap();
    assert_eq!(triangles::verify(csr, &result), Ok(()), "{what}");
    let params = LccParams::default();
    assert_eq!(lcc::verify(graph, &lcc(ctx, graph, &params).unwrap()), Ok(()), "{what}");
}

#[test]
fn every_kernel_runs_on_a_version() {
    let mut num_graphs = 0;
    for threads in [1, 3] {
        let pool = Pool::new(threads).unwrap();
        let ctx = Context::new(&pool);
        for test in graphs().iter().filter(|test| !test.multigraph) {
            let csr = test.build_weighted::<u32>().unwrap();
            for (in_place, packed, in_lists) in [(13, 1024, true), (2, 8, true), (13, 1024, false)] {
                let options = Options { in_place, packed, in_lists, ..Options::default() };
                let what = format!("{} x {options:?} x {threads} threads", test.name);
                check(&ctx, &live(&pool, &csr, &options), &csr, &what);
                num_graphs += 1;
            }
        }
    }
    assert!(num_graphs > 100, "{num_graphs} views were checked");
}
