//! The k-core decomposition.
//!
//! **Result**: for every vertex its *coreness*: the largest k such that the vertex belongs to a k-core. In a k-core,
//! every vertex has at least k neighbors. Directions, loops and parallel edges do not count. The largest coreness is
//! the *degeneracy* of the graph.
//!
//! **Algorithm**: vertices are peeled level by level. Level k removes all vertices with k remaining neighbors. A
//! removal takes a neighbor from each of their neighbors, and those that are down to k follow. The vertices of a level
//! are found in two steps. First, the vertices of a window of levels, a quarter of the level wide, are gathered at
//! once. Then each level scans these. A vertex that falls below the end of the window joins them.
//!
//! The remaining-neighbor counts are cut into ranges of ids, one for each thread, that fit in its cache. Every thread
//! reads the lists of all peeled vertices, but only the entries in its own range; lists ascend, so these are one slice.
//! Two threads never write to one cache line, which would cost more than all else. No branch depends on a count, since
//! half of such branches would be mispredicted.
//!
//! On a disk, lists are read in stored order instead, pass after pass, while upper bounds sink (`streamed`).
//!
//! **Parameters**: the ids in a range, see [`KcoreParams`].
//!
//! # Source
//! - V. Batagelj, M. Zaveršnik: An O(m) algorithm for cores decomposition of networks, 2003: the peeling.
//! - H. Kabir, K. Madduri: Parallel k-core decomposition on multicore platforms, IPDPS 2017 workshops: levels in
//!   parallel, and a new scan of the vertices for each. Ours differs in the windows, and in ranges of counts for each
//!   thread.

mod neighbors;
mod part;
mod peel;
mod streamed;
mod verify;

use anden_base::memory::zeroed_huge;
use anden_graph::{Graph, StoredFormKey};
use parking_lot::Mutex;

use crate::context::bytes_for;
use crate::transposed::Transposed;
use crate::{Context, Result};

use neighbors::{NeighborScratch, SimpleNeighbors};
use peel::Peel;
pub use verify::verify;

/// Parameters of [`kcore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KcoreParams {
    /// The least number of ids in the range of a thread.
    pub part_vertices: usize,
}

impl Default for KcoreParams {
    /// 2^18 ids: counts of a megabyte. With fewer, one thread alone is faster.
    fn default() -> Self {
        Self { part_vertices: 1 << 18 }
    }
}

/// Result of [`kcore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KcoreResult {
    /// The coreness, by vertex id; 0 for a dead vertex.
    pub cores: Vec<u32>,
    /// The largest coreness.
    pub degeneracy: u32,
}

/// The most threads: each has scratch memory of a byte a vertex, and reads every list.
const MAX_WORKERS: usize = 8;

/// The form that a run reads from a database that stores it; `None`: the graph has in-lists.
pub fn stored_form(graph: &impl Graph) -> Option<StoredFormKey> {
    crate::transposed::stored_form(graph)
}

/// The coreness of every vertex.
///
/// *Cost*: every arc twice, and each vertex in at most about a quarter of its coreness scans. On a disk, some passes
/// over all lists, then over ever fewer. *Memory*: 16 bytes a vertex. Lists may have an edge twice in directed graphs,
/// multigraphs and graphs with loops. These take one byte more for each vertex and up to 8 threads, as the budget
/// allows. A directed graph without in-edges gets them: 4 bytes an arc and 8 a vertex. *Determinism*: equal at any
/// number of threads.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn kcore<G: Graph>(ctx: &Context<'_>, graph: &G, params: &KcoreParams) -> Result<KcoreResult> {
    let num_bytes = |workers: usize| {
        let scratch = workers as u64 * NeighborScratch::num_bytes(graph);
        bytes_for(graph, 4 + peel::BYTES_A_VERTEX) + scratch + Transposed::num_bytes(graph)
    };
    ctx.require_memory("kcore", num_bytes(1))?;
    let most = ctx.pool.num_threads().min(MAX_WORKERS);
    let num_workers = (1..=most).rev().find(|&workers| ctx.allows(num_bytes(workers))).unwrap_or(1);
    if Transposed::num_bytes(graph) > 0 {
        decompose(ctx, &Transposed::new(ctx, graph)?, params, num_workers)
    } else {
        decompose(ctx, graph, params, num_workers)
    }
}

fn decompose<G: Graph>(ctx: &Context<'_>, graph: &G, params: &KcoreParams, num_workers: usize) -> Result<KcoreResult> {
    let bound = graph.vertex_bound();
    let neighbors = SimpleNeighbors::new(graph);
    let scratch: Vec<_> = (0..num_workers).map(|_| Mutex::new(NeighborScratch::new(graph))).collect();
    let mut cores = zeroed_huge::<u32>(bound);
    ctx.progress.stage("k-core: count neighbors", None);
    neighbors.count(ctx, &scratch, &mut cores)?;
    let degeneracy = if ctx.reads_from_disk(graph) {
        ctx.progress.stage("k-core: sink", None);
        streamed::sink(ctx, graph, &neighbors, &scratch, &mut cores)?
    } else {
        ctx.progress.stage("k-core: peel", Some(graph.num_vertices() as u64));
        let num_parts = (bound / params.part_vertices.max(1)).clamp(1, num_workers);
        Peel::new(ctx, &neighbors, &scratch, &mut cores, num_parts).run()?
    };
    graph.check()?;
    Ok(KcoreResult { cores, degeneracy })
}
