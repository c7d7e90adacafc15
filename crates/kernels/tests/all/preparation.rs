//! Kernels with a cache of prepared forms give the results that they give without one.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::parallel::Pool;
use anden_base::progress::CancelFlag;
use anden_graph::{Csr, CsrBuilder, Graph, GraphKind};
use anden_kernels::cdlp::{CdlpParams, cdlp};
use anden_kernels::kcore::{KcoreParams, kcore};
use anden_kernels::lcc::{LccParams, lcc};
use anden_kernels::pagerank::{PageRankParams, Precision, Variant, pagerank};
use anden_kernels::triangles::{TriangleParams, triangles};
use anden_kernels::{Context, Error, Medium, PreparationCache, PreparationKey, Preparations};
use anden_testkit::{FragmentedGraph, Random, for_each_graph};
use parking_lot::Mutex;

/// A form with its bytes.
type HeldForm = (Box<dyn Any + Send>, u64);

/// A cache without a limit, which counts what is taken.
#[derive(Default)]
struct CountingCache {
    forms: Mutex<HashMap<PreparationKey, HeldForm>>,
    num_taken: AtomicU64,
    /// The least number of bytes that a kernel left to the cache.
    least_left: Mutex<Option<u64>>,
}

impl CountingCache {
    fn num_taken(&self) -> u64 {
        self.num_taken.load(Ordering::Relaxed)
    }

    fn num_bytes(&self) -> u64 {
        self.forms.lock().values().map(|(_, num_bytes)| num_bytes).sum()
    }
}

impl PreparationCache for CountingCache {
    fn take(&self, key: PreparationKey) -> Option<Box<dyn Any + Send>> {
        let (form, _) = self.forms.lock().remove(&key)?;
        self.num_taken.fetch_add(1, Ordering::Relaxed);
        Some(form)
    }

    fn keep(&self, key: PreparationKey, form: Box<dyn Any + Send>, num_bytes: u64) {
        self.forms.lock().insert(key, (form, num_bytes));
    }

    fn shrink(&self, num_bytes: u64) {
        let mut least = self.least_left.lock();
        *least = Some(least.map_or(num_bytes, |least| least.min(num_bytes)));
        if self.num_bytes() > num_bytes {
            self.forms.lock().clear();
        }
    }
}

/// The results of all kernels that prepare a form, as text.
fn results(ctx: &Context<'_>, graph: &impl Graph) -> Vec<String> {
    let ctx = &Context { medium: Medium::Memory, ..*ctx };
    let rank = |precision, partition_bits, variant| {
        let params =
            PageRankParams { iterations: Some(5), precision, partition_bits, variant, ..PageRankParams::default() };
        format!("{:?}", pagerank(ctx, graph, &params).unwrap().scores)
    };
    let counted = |num_hubs, by_vertex| {
        let found = triangles(ctx, graph, &TriangleParams { num_hubs, by_vertex }).unwrap();
        format!("{} {:?}", found.triangles, found.by_vertex)
    };
    vec![
        rank(Precision::F64, 15, Variant::Binned),
        rank(Precision::F32, 15, Variant::Binned),
        rank(Precision::F64, 2, Variant::Binned),
        rank(Precision::F64, 15, Variant::Auto),
        counted(Some(64), false),
        counted(Some(0), false),
        counted(Some(64), true),
        counted(Some(7), true),
        format!("{:?}", lcc(ctx, graph, &LccParams { num_hubs: Some(64) }).unwrap().coefficients),
        format!("{:?}", kcore(ctx, graph, &KcoreParams::default()).unwrap().cores),
        format!("{:?}", cdlp(ctx, graph, &CdlpParams::default()).unwrap().labels),
    ]
}

fn check(name: &str, graph: &impl Graph, has_in_lists: bool) {
    let cache = CountingCache::default();
    let wanted = results(&Context::new(&Pool::new(1).unwrap()), graph);
    // With other numbers of threads than the run that prepared the form.
    for (run, threads) in [1, 4, 2].into_iter().enumerate() {
        let pool = Pool::new(threads).unwrap();
        let ctx = Context { preparations: Some(Preparations::new(graph, &cache)), ..Context::new(&pool) };
        let before = cache.num_taken();
        assert!(results(&ctx, graph) == wanted, "{name}, run {run}");
        let num_taken = cache.num_taken() - before;
        // Two kernels share the copy with 64 hubs, and the automatic variant takes the bins.
        assert!(run > 0 || num_taken >= 2, "{name}: {num_taken}");
        let expected = if has_in_lists || graph.vertex_bound() == 0 { 9 } else { 11 };
        assert!(run == 0 || num_taken == expected, "{name}, run {run}: {num_taken}");
    }
    assert!(cache.num_bytes() > 0 || graph.vertex_bound() == 0, "{name}");
}

#[test]
fn kept_forms_change_no_result() {
    for_each_graph(|name, csr| {
        check(name, csr, true);
        let without = FragmentedGraph::new(csr).without_in_edges();
        check(name, &without, csr.graph_kind() == GraphKind::Undirected);
    });
}

fn random_graph() -> Csr {
    let mut random = Random::new(5);
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Undirected, 1000);
    (0..8000).for_each(|_| builder.edge(random.below(1000), random.below(1000), 1));
    builder.build().unwrap()
}

#[test]
fn other_graphs_take_no_form() {
    let (graph, pool, cache) = (random_graph(), Pool::new(2).unwrap(), CountingCache::default());
    let ctx = Context { preparations: Some(Preparations::new(&graph, &cache)), ..Context::new(&pool) };
    results(&ctx, &graph);
    let (num_taken, num_bytes) = (cache.num_taken(), cache.num_bytes());
    let other = anden_testkit::graphs().into_iter().find(|g| g.name == "path").unwrap().build().unwrap();
    assert_eq!(results(&ctx, &other), results(&Context::new(&pool), &other));
    assert_eq!((cache.num_taken(), cache.num_bytes()), (num_taken, num_bytes));
}

#[test]
fn cancelled_runs_keep_no_half_made_form() {
    let (graph, pool, cache) = (random_graph(), Pool::new(2).unwrap(), CountingCache::default());
    let flag = CancelFlag::default();
    flag.cancel();
    let ctx = Context { preparations: Some(Preparations::new(&graph, &cache)), ..Context::new(&pool) };
    let cancelled = Context { progress: &flag, medium: Medium::Memory, ..ctx };
    let is_cancelled = |error| matches!(error, Error::Base(anden_base::Error::Cancelled));
    assert!(pagerank(&cancelled, &graph, &PageRankParams::default()).is_err_and(is_cancelled));
    let counted = triangles(&cancelled, &graph, &TriangleParams { num_hubs: Some(8), by_vertex: false });
    assert!(counted.is_err_and(is_cancelled));
    assert!(lcc(&cancelled, &graph, &LccParams::default()).is_err_and(is_cancelled));
    assert_eq!(cache.num_bytes(), 0);
    assert_eq!(results(&ctx, &graph), results(&Context::new(&pool), &graph));
}

/// Without a shrunk cache, kernel and cache together would exceed the budget.
#[test]
fn budgets_cover_cache_and_kernel() {
    let (graph, pool, cache) = (random_graph(), Pool::new(2).unwrap(), CountingCache::default());
    let budget = 4 << 20;
    let ctx = Context { preparations: Some(Preparations::new(&graph, &cache)), ..Context::new(&pool) };
    results(&ctx, &graph);
    assert!(cache.num_bytes() > 0, "without a budget, all forms stay");
    let ctx = Context { memory: Some(budget), ..ctx };
    ctx.require_memory("a test", budget - 5).unwrap();
    assert_eq!((*cache.least_left.lock(), cache.num_bytes()), (Some(5), 0));
    assert!(ctx.require_memory("a test", budget + 1).is_err());
    // A kernel that is refused leaves the cache alone.
    assert_eq!(*cache.least_left.lock(), Some(5));
}
