//! The variant of a kernel: for a disk with a prefetcher, for memory without one, unless the medium says otherwise.

use anden_base::parallel::Pool;
use anden_graph::{Csr, CsrBuilder, GraphKind, WillNeed};
use anden_kernels::bc::{BcParams, bc};
use anden_kernels::bfs::{BfsParams, bfs};
use anden_kernels::kcore::{KcoreParams, kcore};
use anden_kernels::sssp::{SsspParams, sssp};
use anden_kernels::wcc::{WccParams, wcc};
use anden_kernels::{Context, Medium, Result, SourceChoice};
use anden_testkit::{FragmentedGraph, Pages, Random};

const NUM_VERTICES: u32 = 2_000;

/// Random edges with some high degrees, and a long tail: wide and narrow frontiers.
fn graph() -> Csr {
    let mut builder = CsrBuilder::new(GraphKind::Undirected, NUM_VERTICES as usize);
    let mut random = Random::new(5);
    for _ in 0..16_000 {
        let [u, v] = [0, 1].map(|_| random.below(1_500).min(random.below(1_500)));
        builder.edge(u, v, 1 + random.below(1_000));
    }
    (1_499..NUM_VERTICES - 1).for_each(|v| builder.edge(v, v + 1, 7));
    builder.build_weighted().unwrap()
}

/// The number of fragments and pages that a kernel reads.
fn num_given(
    csr: &Csr,
    pages: Pages,
    medium: Medium,
    kernel: impl FnOnce(&Context<'_>, &FragmentedGraph<'_>) -> Result<()>,
) -> usize {
    let pieces = FragmentedGraph::new(csr).with_pages(pages, 64);
    assert_eq!(pieces.is_listening(), pages == Pages::Mixed);
    let pool = Pool::new(1).unwrap();
    kernel(&Context { medium, ..Context::new(&pool) }, &pieces).unwrap();
    pieces.num_given()
}

type Kernel = fn(&Context<'_>, &FragmentedGraph<'_>) -> Result<()>;

#[test]
fn medium_follows_prefetcher_unless_given() {
    let csr = graph();
    let kernels: [(&str, Kernel); 5] = [
        ("bfs", |ctx, graph| bfs(ctx, graph, &BfsParams { source: 3, ..BfsParams::default() }).map(drop)),
        ("bc", |ctx, graph| bc(ctx, graph, &BcParams { sources: SourceChoice::Given(vec![3]) }).map(drop)),
        ("kcore", |ctx, graph| kcore(ctx, graph, &KcoreParams::default()).map(drop)),
        ("sssp", |ctx, graph| sssp(ctx, graph, &SsspParams { source: 3, ..SsspParams::default() }).map(drop)),
        ("wcc", |ctx, graph| wcc(ctx, graph, &WccParams::default()).map(drop)),
    ];
    for (name, kernel) in kernels {
        for pages in [Pages::Mixed, Pages::Dense] {
            let [auto, memory, disk] = Medium::ALL.map(|medium| num_given(&csr, pages, medium, kernel));
            println!("{name}, {pages:?}: {auto}, {memory} from memory, {disk} from a disk");
            assert_ne!(memory, disk, "{name}, {pages:?}: the ways cannot be told apart");
            assert_eq!(auto, if pages == Pages::Mixed { disk } else { memory }, "{name}, {pages:?}");
        }
    }
}
