//! Shared test tools.
//!
//! Graphs: small ones of every shape, a model graph to compare with, and a view that splits lists into fragments.
//! Surroundings: a disk that injects faults, power cuts at every call to it, and control groups with little memory. Checks: checkers of transaction
//! histories, the judge of leaks, and conditions to wait for.

#![forbid(unsafe_code)]

mod conditions;
mod crash;
mod evict;
mod fault;
mod fragmented_graph;
mod graphs;
mod growth;
pub mod history;
pub mod memory_group;
mod model;

pub use anden_base::random::Random;
pub use conditions::{holds_within, num_unread, skipped, wait_until};
pub use crash::crash_every_call;
pub use evict::evict;
pub use fault::{FaultPlan, FaultStorage};
pub use fragmented_graph::{Dead, FragmentedGraph, Pages};
pub use graphs::{TestGraph, for_each_graph, graphs};
pub use growth::ResourceLog;
pub use model::ModelGraph;

/// Numbers of threads that a kernel is tested with.
pub const TEST_THREADS: [usize; 2] = [1, 3];

/// Checks a kernel on every [test graph](graphs), as a plain CSR and as [`FragmentedGraph`] of every kind, with
/// [one and several threads](TEST_THREADS). Prints the coverage.
///
/// `$context` makes the kernel's context from a thread pool. `$check(&context, &graph, description)` runs the kernel
/// and asserts; it is a macro, because a closure cannot be generic over the graph.
#[macro_export]
macro_rules! on_every_view {
    ($context:expr, $kernel:literal, $check:ident) => {
        for threads in $crate::TEST_THREADS {
            let pool = anden_base::parallel::Pool::new(threads).unwrap();
            let ctx = $context(&pool);
            let mut covered = std::collections::BTreeMap::<&str, usize>::new();
            for test in $crate::graphs() {
                // Built once for each graph: the views only borrow it.
                let csr = test.build_weighted::<u32>().unwrap();
                let what = |view: &str| format!("{} x {} x {view} x {threads} threads", $kernel, test.name);
                $check(&ctx, &csr, &what("plain csr"));
                *covered.entry("plain csr").or_default() += 1;
                for (view, fragmented_graph) in $crate::FragmentedGraph::of_every_kind(&csr) {
                    $check(&ctx, &fragmented_graph, &what(view));
                    *covered.entry(view).or_default() += 1;
                }
            }
            for (view, num_graphs) in covered {
                println!("{:9} x {view:26} x {threads} threads: {num_graphs} graphs", $kernel);
            }
        }
    };
}

/// The number of random trials: `usual`, multiplied by `ANDEN_TEST_SCALE` if that is set, as before a release. Under
/// Miri, which takes some hundred times as long, a hundredth.
pub fn scaled(usual: u64) -> u64 {
    let scale = std::env::var("ANDEN_TEST_SCALE").map_or(1, |text| text.parse().expect("ANDEN_TEST_SCALE is a number"));
    (usual * scale).div_ceil(if cfg!(miri) { 100 } else { 1 })
}
