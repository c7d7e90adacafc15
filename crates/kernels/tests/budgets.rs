//! A kernel or a query keeps to its memory budget, or reports the bytes that it needs before it starts.
//!
//! A test program of its own: the heap account covers the whole process.

use anden_base::memory::{CountingAllocator, heap_peak, reset_heap_peak};
use anden_base::parallel::Pool;
use anden_graph::generate::{Generator, GridParams, RmatParams};
use anden_graph::{Csr, CsrBuilder, Direction, Graph, GraphKind};
use anden_kernels::bc::{BcParams, bc};
use anden_kernels::bfs::{BfsParams, bfs};
use anden_kernels::cdlp::{CdlpParams, cdlp};
use anden_kernels::kcore::{KcoreParams, kcore};
use anden_kernels::lcc::{LccParams, lcc};
use anden_kernels::pagerank::{PageRankParams, Variant, pagerank};
use anden_kernels::query::{friends_of_friends, khop, path, shortest_paths, weighted_path};
use anden_kernels::scc::{SccParams, scc};
use anden_kernels::sssp::{SsspAlgorithm, SsspParams, sssp};
use anden_kernels::triangles::{TriangleParams, triangles};
use anden_kernels::wcc::{WccParams, wcc};
use anden_kernels::{Context, Error, Medium, Result, SourceChoice};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const N: u32 = 20_000;

fn built(graph_kind: GraphKind, edges: impl IntoIterator<Item = (u32, u32, u32)>) -> Csr {
    let mut builder = CsrBuilder::<u32>::new(graph_kind, N as usize);
    edges.into_iter().for_each(|(source, target, weight)| builder.edge(source, target, weight));
    builder.build_weighted().unwrap()
}

/// Graphs that maximize frontiers, levels or buckets.
fn graphs(pool: &Pool) -> Vec<(&'static str, Csr)> {
    let rmat = RmatParams { scale: 14, degree: 16, ..RmatParams::default() };
    let grid = GridParams { width: 140, height: 140, ..GridParams::default() };
    let generated = |generator: Generator| generator.with_weights(1..=255).unwrap().csr(pool).unwrap();
    let star = || (1..N).map(|v| (0, v, 1 + v % 97));
    // Every leaf is reached repeatedly, each time at a slightly smaller distance.
    let slow = (1..100).flat_map(|i| {
        let leaves = (100..N).map(move |leaf| (i, leaf, 100_000 - 900 * i));
        leaves.chain([(i - 1, i, 1)])
    });
    // A few vertices lead to all others, each to a share of them.
    let fan = (1..100).flat_map(|i| (0..201).map(move |j| (i, 100 + 201 * (i - 1) + j, 1)).chain([(0, i, 1)]));
    let out_only = |csr: &Csr| Csr::directed(csr.out_lists().clone(), None).unwrap();
    let star_out = built(GraphKind::Directed, star());
    let two_steps = built(GraphKind::Directed, star().chain((1..N / 2).map(|v| (v, N / 2 + v, 1))));
    vec![
        ("star out, no in-edges", out_only(&star_out)),
        ("star out", star_out),
        ("two steps, no in-edges", out_only(&two_steps)),
        ("two steps", two_steps),
        ("undirected star", built(GraphKind::Undirected, star())),
        ("path", built(GraphKind::Directed, (1..N).map(|v| (v - 1, v, 3)))),
        ("fan", built(GraphKind::Directed, fan)),
        ("slow", built(GraphKind::Directed, slow)),
        ("rmat", generated(Generator::rmat(&rmat).unwrap())),
        ("grid", generated(Generator::grid(&grid).unwrap())),
    ]
}

/// The result of a run with a budget, in comparable form.
type Outcome = Result<Vec<u64>>;

const LCC: &str = "lcc";
const PAGERANK: &str = "pagerank";
const TRIANGLES: &str = "triangles";
const FROM_DISK: &str = "triangles from a disk";
const LCC_FROM_DISK: &str = "lcc from a disk";

/// A kernel, run on a context and a graph.
type Kernel = fn(&Context<'_>, &Csr) -> Outcome;

fn run_sssp(ctx: &Context<'_>, csr: &Csr, algorithm: SsspAlgorithm) -> Outcome {
    let result = sssp(ctx, csr, &SsspParams { algorithm, ..SsspParams::default() })?;
    let anden_kernels::sssp::Distances::Integer(distances) = result.distances else { return Ok(vec![]) };
    Ok(distances)
}

fn kernels() -> [(&'static str, Kernel); 13] {
    // The result counts as the test's memory, so only a part that fits in any budget is kept.
    const PART: usize = 64;
    [
        ("bfs", |ctx, csr| {
            let result = bfs(ctx, csr, &BfsParams { source: 0, parents: true })?;
            Ok(result.hops.iter().rev().take(PART).map(|&hops| hops.into()).chain([result.reached]).collect())
        }),
        ("wcc", |ctx, csr| {
            let result = wcc(ctx, csr, &WccParams::default())?;
            Ok(vec![result.components, result.largest])
        }),
        ("scc", |ctx, csr| {
            let result = scc(ctx, csr, &SccParams::default())?;
            Ok(vec![result.components, result.largest])
        }),
        ("kcore", |ctx, csr| {
            let result = kcore(ctx, csr, &KcoreParams { part_vertices: N as usize / 4 })?;
            Ok(result.cores.iter().rev().take(PART).map(|&core| core.into()).collect())
        }),
        ("cdlp", |ctx, csr| {
            let result = cdlp(ctx, csr, &CdlpParams::default())?;
            Ok(result.labels.iter().rev().take(PART).map(|&label| label.into()).collect())
        }),
        ("sssp", |ctx, csr| run_sssp(ctx, csr, SsspAlgorithm::DeltaStepping)),
        ("bellman-ford", |ctx, csr| run_sssp(ctx, csr, SsspAlgorithm::BellmanFord)),
        ("bc", |ctx, csr| {
            let result = bc(ctx, csr, &BcParams { sources: SourceChoice::Given(vec![0]) })?;
            Ok(result.scores.iter().rev().take(PART).map(|score| score.round() as u64).collect())
        }),
        (PAGERANK, |ctx, csr| {
            let result = pagerank(ctx, csr, &PageRankParams { iterations: Some(3), ..PageRankParams::default() })?;
            Ok(result.scores.iter().rev().take(PART).map(|score| score.to_bits()).collect())
        }),
        (LCC, |ctx, csr| {
            let result = lcc(ctx, csr, &LccParams::default())?;
            Ok(result.coefficients.iter().rev().take(PART).map(|share| share.to_bits()).collect())
        }),
        (FROM_DISK, |ctx, csr| {
            let ctx = Context { medium: Medium::Disk, ..*ctx };
            Ok(vec![triangles(&ctx, csr, &TriangleParams::default())?.triangles])
        }),
        (LCC_FROM_DISK, |ctx, csr| {
            let ctx = Context { medium: Medium::Disk, ..*ctx };
            let result = lcc(&ctx, csr, &LccParams::default())?;
            Ok(result.coefficients.iter().rev().take(PART).map(|share| share.to_bits()).collect())
        }),
        (TRIANGLES, |ctx, csr| {
            let result = triangles(ctx, csr, &TriangleParams { by_vertex: true, ..TriangleParams::default() })?;
            Ok(result.by_vertex.unwrap().iter().rev().take(PART).copied().chain([result.triangles]).collect())
        }),
    ]
}

fn queries() -> [(&'static str, Kernel); 5] {
    fn path_of(found: Option<Vec<u32>>) -> Vec<u64> {
        found.into_iter().flatten().map(u64::from).collect()
    }
    [
        ("khop", |ctx, csr| Ok(vec![khop(ctx, csr, 0, 5)?.len() as u64])),
        ("fof", |ctx, csr| Ok(vec![friends_of_friends(ctx, csr, 0)?.len() as u64])),
        ("path", |ctx, csr| Ok(path_of(path(ctx, csr, 0, N / 2)?.map(|path| path.vertices)))),
        ("all paths", |ctx, csr| Ok(vec![shortest_paths(ctx, csr, 0, N / 2, 3)?.map_or(0, |paths| paths.count)])),
        ("weighted path", |ctx, csr| Ok(path_of(weighted_path(ctx, csr, 0, N / 2)?.map(|path| path.vertices)))),
    ]
}

/// A query checks the budget while it allocates, and fails before it exceeds it.
fn check_queries(pool: &Pool, name: &str, csr: &Csr) {
    /// The smallest tables and lists, and the answer.
    const LEAST: u64 = 1 << 10;
    for (query, run) in queries() {
        let with = |memory| run(&Context { memory, ..Context::new(pool) }, csr);
        let wanted = with(None).unwrap();
        let (mut num_refused, mut num_answered) = (0, 0);
        for budget in (0..17).map(|power| 1_u64 << (2 * power)) {
            let before = reset_heap_peak();
            let found = with(Some(budget));
            let peak = (heap_peak() - before) as u64;
            assert!(peak <= budget + LEAST, "{query} x {name} holds {peak} bytes of {budget}");
            match found {
                Ok(found) => {
                    assert_eq!(found, wanted, "{query} x {name}, {budget} bytes");
                    num_answered += 1;
                }
                Err(Error::Memory { needed, .. }) if needed > budget => num_refused += 1,
                Err(error) => panic!("{query} x {name}, {budget} bytes: {error}"),
            }
        }
        assert!(num_refused > 0 && num_answered > 0, "{query} x {name}");
    }
}

/// Bins are built if the budget has room for them and for their sorters. Regression: the sorters were not counted.
fn check_bins(pool: &Pool) {
    let num_vertices = 140_000;
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, num_vertices as usize);
    for i in 0..12 * num_vertices {
        builder.edge(i / 12, i.wrapping_mul(2_654_435_761) % num_vertices, 1);
    }
    let csr = builder.build().unwrap();
    let run = |variant, memory| {
        let params = PageRankParams { iterations: Some(2), variant, ..PageRankParams::default() };
        let before = reset_heap_peak();
        // In memory, the automatic choice takes bins whatever the order of the ids.
        let ctx = Context { memory, medium: Medium::Memory, ..Context::new(pool) };
        let result = pagerank(&ctx, &csr, &params);
        let peak = (heap_peak() - before) as u64;
        let budget = memory.unwrap_or(u64::MAX);
        assert!(peak <= budget, "{variant:?} holds {peak} bytes of {budget}");
        result
    };
    let wanted = run(Variant::Auto, None).unwrap();
    assert_eq!(wanted.variant, Variant::Binned);
    let Err(Error::Memory { needed: least, .. }) = run(Variant::Auto, Some(0)) else { panic!("must be refused") };
    let (mut num_binned, mut num_refused) = (0, 0);
    for budget in (0..20).map(|step| least * (4 + step) / 4) {
        let found = run(Variant::Auto, Some(budget)).unwrap();
        assert_eq!(found.scores, wanted.scores, "{budget} bytes");
        num_binned += u32::from(found.variant == Variant::Binned);
        match run(Variant::Binned, Some(budget)) {
            Ok(found) => assert_eq!(found.scores, wanted.scores, "{budget} bytes"),
            Err(Error::Memory { needed, .. }) => {
                num_refused += 1;
                assert!(needed > budget && needed < 6 * least, "{needed} of {budget}");
                assert!(run(Variant::Binned, Some(needed)).is_ok(), "{needed} bytes are asked for");
            }
            Err(error) => panic!("{budget} bytes: {error}"),
        }
    }
    assert!((1..20).contains(&num_binned) && (1..20).contains(&num_refused), "{num_binned}, {num_refused}");
}

/// With [`Medium::Memory`], bins are left out if the budget has no room for them. Regression: the kernel asked for the
/// state only, and then failed.
fn check_bins_by_choice(pool: &Pool, csr: &Csr) {
    let params = PageRankParams { iterations: Some(3), ..PageRankParams::default() };
    let with = |memory| pagerank(&Context { memory, medium: Medium::Memory, ..Context::new(pool) }, csr, &params);
    let wanted = with(None).unwrap();
    assert_eq!(wanted.variant, Variant::Binned);
    let Err(Error::Memory { needed, .. }) = with(Some(0)) else { panic!("a budget of nothing must be refused") };
    let without = if csr.has_lists(Direction::In) { Variant::Pull } else { Variant::Push };
    for (budget, variant) in [(needed, without), (needed + 16 * csr.num_arcs() + (4 << 20), Variant::Binned)] {
        let before = reset_heap_peak();
        let found = with(Some(budget)).unwrap();
        let peak = (heap_peak() - before) as u64;
        assert!(peak <= budget, "{:?} holds {peak} bytes of {budget}", found.variant);
        assert_eq!(found.variant, variant, "{budget} bytes");
        // The dangling mass is summed by parts, whose borders depend on the variant.
        let mut pairs = found.scores.iter().zip(&wanted.scores);
        assert!(pairs.all(|(found, wanted)| (found - wanted).abs() <= 1e-9 * wanted), "{budget} bytes");
    }
}

/// A worker stores only the kept entries of a hub's list. Regression: it allocated room for the whole list.
fn check_hubs(pool: &Pool) {
    const N: u32 = 100_000;
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Undirected, N as usize);
    for hub in [0, 5000, 10_000, 15_000] {
        (15_001..N).for_each(|v| builder.edge(hub, v, 1));
    }
    let csr = builder.build().unwrap();
    let ctx = Context { medium: Medium::Memory, ..Context::new(pool) };
    // A number of hubs asks for the copy, although the degrees are small.
    let params = TriangleParams { num_hubs: Some(1000), ..TriangleParams::default() };
    let with = |memory| triangles(&Context { memory, ..ctx }, &csr, &params);
    let Err(Error::Memory { needed, .. }) = with(Some(0)) else { panic!("a budget of nothing must be refused") };
    let before = reset_heap_peak();
    assert_eq!(with(Some(needed)).unwrap().triangles, 0);
    let peak = (heap_peak() - before) as u64;
    assert!(peak <= needed, "triangles of hubs hold {peak} bytes of {needed}");
}

#[test]
fn budgets_are_kept_or_refused() {
    for threads in [1, 3] {
        let pool = Pool::new(threads).unwrap();
        check_bins(&pool);
        check_hubs(&pool);
        for (name, csr) in graphs(&pool) {
            check_queries(&pool, name, &csr);
            check_bins_by_choice(&pool, &csr);
            for (kernel, run) in kernels() {
                let with = |memory| run(&Context { memory, ..Context::new(&pool) }, &csr);
                let wanted = with(None).unwrap();
                let Err(Error::Memory { needed, .. }) = with(Some(0)) else {
                    panic!("{kernel} x {name}: a budget of nothing must be refused");
                };
                // Kernels that work on a copy of the edges.
                let must_copy = [FROM_DISK, LCC_FROM_DISK].contains(&kernel) && !csr.has_lists(Direction::In);
                let excused = match kernel {
                    _ if must_copy || [LCC, TRIANGLES].contains(&kernel) => 4 * csr.num_arcs() + (1 << 20),
                    // The padding of a table after each of three arrays.
                    PAGERANK => (3 * 8) << 15,
                    // A table for each worker, long lists, and an eighth of the copy, whose entries take up to 5 bytes.
                    FROM_DISK | LCC_FROM_DISK => (1 << 17) + 5 * csr.num_arcs() / 8,
                    _ => 0,
                };
                let most = 40 * csr.vertex_bound() as u64 + (1 << 17) + excused;
                assert!(needed <= most, "{kernel} x {name} needs {needed} bytes, not {most}");
                assert!(matches!(with(Some(needed - 1)), Err(Error::Memory { .. })), "{kernel} x {name}");
                for tenths in [10, 13, 17, 25, 40, 80] {
                    let budget = needed * tenths / 10;
                    let before = reset_heap_peak();
                    let found = with(Some(budget)).unwrap();
                    let peak = (heap_peak() - before) as u64;
                    println!("{kernel:12} x {name:22} x {threads} threads: {peak} bytes of {budget}");
                    assert!(peak <= budget, "{kernel} x {name} x {threads} threads holds {peak} bytes of {budget}");
                    assert_eq!(found, wanted, "{kernel} x {name} x {threads} threads, {budget} bytes");
                }
            }
        }
    }
}
