//! The k-core decomposition.
//!
//! **Result**: for every vertex its *coreness*: the largest k such that it belongs to a k-core, a part of
//! the graph in which every vertex has k neighbours or more. Directions, loops and parallel edges do not
//! count. The largest coreness is the *degeneracy* of the graph.
//!
//! **Algorithm**: vertices are peeled off level by level. At level k all that have k neighbours left are
//! removed, which takes a neighbour from each of their neighbours, of whom those that are down to k
//! follow. Where a level begins is found in two steps: the vertices of a window of levels, a quarter of
//! the level wide, are gathered at once, and a level looks through these; a vertex that comes below the
//! end of the window joins them.
//!
//! The counts of neighbours left are cut into ranges of ids, one a thread, which fit in its cache. Every
//! thread looks at the lists of all vertices that are peeled, but only at the entries in its own range;
//! lists ascend, so these are one piece. No two threads write to the same line of memory, which costs
//! more than all else. No decision is taken by a branch that depends on a count: half of them would be
//! foreseen wrongly.
//!
//! Lists that come from a disk are read in the order in which they are stored instead, pass after pass, while upper
//! bounds sink (`streamed`).
//!
//! **Parameters**: the ids in a range, see [`KcoreParams`].
//!
//! # Source
//! - V. Batagelj, M. Zaveršnik: An O(m) algorithm for cores decomposition of networks, 2003: the peeling.
//! - H. Kabir, K. Madduri: Parallel k-core decomposition on multicore platforms, IPDPS 2017 workshops: levels
//!   in parallel, and vertices looked through anew for each. Ours differs in the windows, and in who counts.

mod neighbours;
mod part;
mod peel;
mod streamed;
mod verify;

use std::sync::{Mutex, MutexGuard};

use base::memory::zeroed_huge;
use graph::InEdges;

use crate::context::bytes_for;
use crate::transposed::Transposed;
use crate::{Context, Result};

use neighbours::{Neighbours, Scratch};
use peel::Peel;
pub use verify::verify;

/// How the work is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KcoreParams {
    /// The least number of ids in the range of a thread.
    pub part_vertices: usize,
}

impl Default for KcoreParams {
    /// 2^18: counts of a megabyte. With fewer, one thread alone is faster.
    fn default() -> Self {
        Self { part_vertices: 1 << 18 }
    }
}

/// The decomposition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KcoreResult {
    /// The coreness, by vertex id; 0 for a dead vertex.
    pub cores: Vec<u32>,
    /// The largest coreness.
    pub degeneracy: u32,
}

/// The most threads that work: each has scratch space of a byte a vertex, and looks at every list.
const MAX_WORKERS: usize = 8;

/// The coreness of every vertex.
///
/// *Cost*: every arc twice, and every vertex as often as a quarter of its coreness at most; of lists that are read from a
/// disk, some passes over all and then over fewer and fewer of them. *Memory*: 16
/// bytes a vertex, and one for each of up to 8 threads where lists may have an edge twice (directed
/// graphs, multigraphs, graphs with loops) as far as the budget allows; a directed graph without in-edges
/// gets them: 4 bytes an arc and 8 a vertex. *Determinism*: the same at any number of threads.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn kcore<G: InEdges>(ctx: &Context<'_>, graph: &G, params: &KcoreParams) -> Result<KcoreResult> {
    let num_bytes = |workers: usize| {
        let scratch = workers as u64 * Scratch::num_bytes(graph);
        bytes_for(graph, 4 + peel::BYTES_A_VERTEX) + scratch + Transposed::num_bytes(graph)
    };
    ctx.require_memory("kcore", num_bytes(1))?;
    let most = ctx.pool.num_threads().min(MAX_WORKERS);
    let num_workers = (1..=most).rev().find(|&workers| ctx.allows(num_bytes(workers))).unwrap_or(1);
    ctx.pool.enter(|| {
        if Transposed::num_bytes(graph) > 0 {
            decompose(ctx, &Transposed::build(ctx, graph)?, params, num_workers)
        } else {
            decompose(ctx, graph, params, num_workers)
        }
    })
}

fn decompose<G: InEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &KcoreParams,
    num_workers: usize,
) -> Result<KcoreResult> {
    let bound = graph.vertex_bound();
    let neighbours = Neighbours::new(graph);
    let scratch: Vec<_> = (0..num_workers).map(|_| Mutex::new(Scratch::new(graph))).collect();
    let mut cores = zeroed_huge::<u32>(bound);
    ctx.progress.stage("k-core: count neighbours", None);
    neighbours.count(ctx, &scratch, &mut cores)?;
    let degeneracy = if ctx.reads_from_disk(graph) {
        ctx.progress.stage("k-core: sink", None);
        streamed::sink(ctx, graph, &neighbours, &scratch, &mut cores)?
    } else {
        ctx.progress.stage("k-core: peel", Some(graph.num_vertices() as u64));
        let num_parts = (bound / params.part_vertices.max(1)).clamp(1, num_workers);
        Peel::new(ctx, &neighbours, &scratch, &mut cores, num_parts).run()?
    };
    graph.check()?;
    Ok(KcoreResult { cores, degeneracy })
}

/// Waits for what is locked for a moment only; a panic of another worker goes on by itself.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
