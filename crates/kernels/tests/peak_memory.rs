//! The peak heap memory of each kernel, beside the graph.
//!
//! A test program of its own: the heap account covers the whole process.

use anden_base::memory::{CountingAllocator, heap_peak, reset_heap_peak};
use anden_base::parallel::Pool;
use anden_graph::generate::{Generator, RmatParams};
use anden_graph::{Csr, Direction, Graph};
use anden_kernels::bc::{BcParams, bc};
use anden_kernels::bfs::{BfsParams, bfs};
use anden_kernels::cdlp::{CdlpParams, cdlp};
use anden_kernels::kcore::{KcoreParams, kcore};
use anden_kernels::lcc::{LccParams, lcc};
use anden_kernels::pagerank::{PageRankParams, Variant, pagerank};
use anden_kernels::scc::{SccParams, scc};
use anden_kernels::sssp::{SsspParams, sssp};
use anden_kernels::triangles::{TriangleParams, triangles};
use anden_kernels::wcc::{WccParams, wcc};
use anden_kernels::{Context, SourceChoice};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The most bytes of a kernel for each vertex, its result included.
const BYTES_A_VERTEX: u64 = 40;

/// Buffers of the workers, which do not grow with the graph.
const FIXED_BYTES: u64 = 1 << 20;

/// The peak heap bytes of `body`, and the excused bytes that it returns.
fn peak(body: impl FnOnce() -> u64) -> (u64, u64) {
    let before = reset_heap_peak();
    let excused = body();
    ((heap_peak() - before) as u64, excused)
}

#[test]
fn no_kernel_holds_more_than_forty_bytes_a_vertex() {
    let pool = Pool::new(2).unwrap();
    let params = RmatParams { scale: 17, degree: 8, ..RmatParams::default() };
    let generator = Generator::rmat(&params).unwrap().with_weights(1..=255).unwrap();
    let graph = generator.csr(&pool).unwrap();
    let lists = graph.out_lists().clone();
    let directed = Csr::directed(lists.clone(), Some(lists)).unwrap();
    let ctx = &Context::new(&pool);
    let source = (0..graph.vertex_bound() as u32).max_by_key(|&v| graph.degree(Direction::Out, v)).unwrap();
    // A worker sorts one row of partitions at a time. With small partitions, as in large graphs, a row is a small part
    // of the bins.
    let binned = PageRankParams { variant: Variant::Binned, partition_bits: 12, ..PageRankParams::default() };
    let by_vertex = TriangleParams { by_vertex: true, ..TriangleParams::default() };
    let peaks = [
        ("bfs", peak(|| bfs(ctx, &graph, &BfsParams { source, parents: true }).map(|_| 0).unwrap())),
        ("wcc", peak(|| wcc(ctx, &graph, &WccParams::default()).map(|_| 0).unwrap())),
        ("sssp", peak(|| sssp(ctx, &graph, &SsspParams { source, ..SsspParams::default() }).map(|_| 0).unwrap())),
        ("bc", peak(|| bc(ctx, &graph, &BcParams { sources: SourceChoice::Given(vec![source]) }).map(|_| 0).unwrap())),
        ("pagerank", peak(|| pagerank(ctx, &graph, &PageRankParams::default()).map(|r| r.bins_bytes).unwrap())),
        ("pagerank, binned", peak(|| pagerank(ctx, &graph, &binned).map(|r| r.bins_bytes).unwrap())),
        ("scc", peak(|| scc(ctx, &directed, &SccParams::default()).map(|_| 0).unwrap())),
        ("kcore", peak(|| kcore(ctx, &directed, &KcoreParams::default()).map(|_| 0).unwrap())),
        ("cdlp", peak(|| cdlp(ctx, &directed, &CdlpParams::default()).map(|_| 0).unwrap())),
        ("lcc", peak(|| lcc(ctx, &graph, &LccParams::default()).map(|r| r.copy_bytes).unwrap())),
        ("triangles by vertex", peak(|| triangles(ctx, &graph, &by_vertex).map(|r| r.copy_bytes).unwrap())),
        ("triangles", peak(|| triangles(ctx, &graph, &TriangleParams::default()).map(|r| r.copy_bytes).unwrap())),
    ];
    let num_vertices = graph.vertex_bound() as u64;
    for (name, (bytes, excused)) in peaks {
        let own = bytes.saturating_sub(excused);
        println!("{name}: {bytes} bytes, {excused} of them excused: {:.1} a vertex", own as f64 / num_vertices as f64);
        assert!(bytes > 4 * num_vertices, "{name}: the account sees nothing");
        assert!(own <= BYTES_A_VERTEX * num_vertices + FIXED_BYTES, "{name} holds {own} bytes");
    }
}
