//! Which way a kernel goes: the one for a disk where somebody listens, the one for memory where nobody does, and another
//! where it is told to.

use anden_kernels::bc::{BcParams, BcSources, bc};
use anden_kernels::bfs::{BfsParams, bfs};
use anden_kernels::kcore::{KcoreParams, kcore};
use anden_kernels::sssp::{SsspParams, sssp};
use anden_kernels::wcc::{WccParams, wcc};
use anden_kernels::{Context, Medium, Result};
use base::parallel::Pool;
use graph::{Csr, CsrBuilder, Direction, WillNeed};
use testkit::{Pages, Pieces, Random};

const NUM_VERTICES: u32 = 2_000;

/// Random edges between vertices of which some have many, and a long tail: broad searches, and narrow ones.
fn graph() -> Csr {
    let mut builder = CsrBuilder::new(Direction::Undirected, NUM_VERTICES as usize);
    let mut random = Random::new(5);
    for _ in 0..16_000 {
        let [u, v] = [0, 1].map(|_| random.below(1_500).min(random.below(1_500)));
        builder.edge(u, v, 1 + random.below(1_000));
    }
    (1_499..NUM_VERTICES - 1).for_each(|v| builder.edge(v, v + 1, 7));
    builder.build_weighted().unwrap()
}

/// How much of a graph a kernel reads.
fn num_given(
    csr: &Csr,
    pages: Pages,
    medium: Medium,
    kernel: impl FnOnce(&Context<'_>, &Pieces<'_>) -> Result<()>,
) -> usize {
    let pieces = Pieces::new(csr).with_pages(pages, 64);
    assert_eq!(pieces.is_listening(), pages == Pages::Mixed);
    let pool = Pool::new(1).unwrap();
    kernel(&Context { medium, ..Context::new(&pool) }, &pieces).unwrap();
    pieces.num_given()
}

type Kernel = fn(&Context<'_>, &Pieces<'_>) -> Result<()>;

#[test]
fn who_listens_decides_unless_it_is_said() {
    let csr = graph();
    let kernels: [(&str, Kernel); 5] = [
        ("bfs", |ctx, graph| bfs(ctx, graph, &BfsParams { source: 3, ..BfsParams::default() }).map(drop)),
        ("bc", |ctx, graph| bc(ctx, graph, &BcParams { sources: BcSources::Given(vec![3]) }).map(drop)),
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
