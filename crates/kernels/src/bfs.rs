//! Breadth-first search.
//!
//! **Result**: the number of hops from the source to every vertex, and on request a parent of each.
//!
//! **Algorithm**: direction-optimizing search. A small frontier is pushed along its out-edges. A large one is pulled by
//! the unvisited vertices, each of which stops at its first neighbor in the frontier. A bitmap marks the vertices that
//! are finished: visited, or without in-edges. The bitmap stays in the cache, so pushes test and set it instead of the
//! hops, and pulls skip 64 finished vertices at a time. Parents are chosen afterwards: the smallest neighbor that is
//! one hop nearer to the source. So they are equal at any number of threads.
//!
//! **Parameters**: none. [`Beamer`] chooses between push and pull.
//!
//! # Source
//! S. Beamer, K. Asanović, D. Patterson: Direction-optimizing breadth-first search, SC 2012. Ours differs in the
//! bitmap, in deterministic parents, and in the choice: by the expected cost of either direction, where the paper has
//! two thresholds (`alpha`, `beta`) for graphs of long lists.

mod parents;
mod verify;

use std::sync::atomic::{AtomicU32, Ordering};

use anden_base::bitmap::AtomicBitmap;
use anden_base::memory::{as_atomic_u32, zeroed_huge};
use anden_base::{NO_VERTEX, VertexId};
use anden_graph::Graph;

use crate::context::{bytes_for, require_vertex};
use crate::edge_map::SEARCH_BYTES;
use crate::{Beamer, Context, EdgeFunctor, EdgeMapOptions, LEAN_BYTES, Policy, Result, VertexSubset, edge_map};

pub use verify::verify;

/// Parameters of [`bfs`].
#[derive(Clone, Debug, Default)]
pub struct BfsParams {
    /// The source of the search.
    pub source: VertexId,
    /// Whether to compute parents, which takes one more pass over a part of the edges.
    pub parents: bool,
}

/// Result of [`bfs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BfsResult {
    /// The source of the search.
    pub source: VertexId,
    /// Hops from the source, by vertex id; [`UNREACHED`] without a path.
    pub hops: Vec<u32>,
    /// Parents by vertex id: the source's is itself; [`NO_VERTEX`] without a path.
    pub parents: Option<Vec<VertexId>>,
    /// The number of vertices reached, the source included.
    pub reached: u64,
    /// The largest number of hops.
    pub depth: u32,
}

/// The hops of a vertex without a path from the source.
pub const UNREACHED: u32 = u32::MAX;

/// The hops from one vertex to all others.
///
/// *Cost*: every edge at most once in either direction, usually far fewer. *Memory*: 4 bytes a vertex for the hops, 4
/// for parents, and a few bits for bitmaps. Each vertex of the largest pushed frontier takes 12 to 16 bytes more. A
/// smaller budget of at least 12 bytes a vertex also suffices. *Determinism*: equal at any number of threads.
///
/// # Errors
/// The source does not exist, the budget is too small, the graph is damaged, or the work was cancelled.
pub fn bfs<G: Graph>(ctx: &Context<'_>, graph: &G, params: &BfsParams) -> Result<BfsResult> {
    require_vertex(graph, params.source)?;
    let lean =
        ctx.must_save("bfs", bytes_for(graph, HELD_BYTES + SEARCH_BYTES), bytes_for(graph, HELD_BYTES + LEAN_BYTES))?;
    search(ctx, graph, params, lean)
}

/// Bytes of a search for each vertex: hops, parents, and the bitmap.
const HELD_BYTES: u64 = 4 + 4 + 1;

/// The state of one search. Hops are 0 until a vertex is visited.
struct BfsSearch<'a> {
    hops: &'a [AtomicU32],
    /// The vertices that are visited or have no in-edges.
    finished: AtomicBitmap,
    /// The hops of the vertices that the current round visits.
    level: u32,
}

impl EdgeFunctor for BfsSearch<'_> {
    #[inline(always)]
    fn update_atomic(&self, _source: VertexId, target: VertexId, (): ()) -> bool {
        // The bitmap elects one of several workers that meet at the target.
        let is_first = self.finished.set(target as usize);
        if is_first {
            // Relaxed: hops are read after the search only.
            self.hops[target as usize].store(self.level, Ordering::Relaxed);
        }
        is_first
    }

    #[inline(always)]
    fn update(&self, _source: VertexId, target: VertexId, (): ()) -> bool {
        // In a pull, one worker owns the target, so plain stores suffice.
        self.hops[target as usize].store(self.level, Ordering::Relaxed);
        self.no_sources(target);
        true
    }

    #[inline(always)]
    fn condition(&self, target: VertexId) -> bool {
        self.finished.words()[target as usize / 64].load(Ordering::Relaxed) >> (target % 64) & 1 == 0
    }

    #[inline(always)]
    fn condition_word(&self, first: VertexId, _num_targets: u32) -> u64 {
        !self.finished.words()[first as usize / 64].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn no_sources(&self, target: VertexId) {
        // In a pull, one worker owns the 64 targets of a word, so no atomic read-modify-write is needed.
        let word = &self.finished.words()[target as usize / 64];
        word.store(word.load(Ordering::Relaxed) | 1 << (target % 64), Ordering::Relaxed);
    }
}

fn search<G: Graph>(ctx: &Context<'_>, graph: &G, params: &BfsParams, lean: bool) -> Result<BfsResult> {
    let (source, bound) = (params.source, graph.vertex_bound());
    ctx.progress.stage("breadth-first search", Some(graph.num_vertices() as u64));
    // 0 marks unvisited vertices, so zeroed memory needs no fill.
    let mut hops = zeroed_huge::<u32>(bound);
    let finished = AtomicBitmap::new(bound);
    finished.set(source as usize);
    let mut search = BfsSearch { hops: as_atomic_u32(&mut hops), finished, level: 0 };
    let mut frontier = VertexSubset::single(bound, source);
    let mut beamer = Beamer::new(graph.num_vertices(), graph.num_arcs());
    let mut reached = 0;
    while !frontier.is_empty() {
        reached += frontier.len() as u64;
        ctx.progress.advance(frontier.len() as u64);
        search.level += 1;
        // The bitmap lets a target be returned once, so targets are distinct.
        let mut options = EdgeMapOptions { policy: Policy::Beamer(&mut beamer), distinct: false, lean };
        frontier = edge_map(ctx, graph, &mut frontier, &search, &mut options)?;
    }
    // The last round visits no vertex.
    let depth = search.level - 1;
    mark_unreached(ctx, &mut hops, source);
    let parents = match params.parents {
        true => Some(parents::of_hops(ctx, graph, source, &hops)?),
        false => None,
    };
    // A damaged page looks empty and leaves a fault, so the search is checked last.
    graph.check()?;
    Ok(BfsResult { source, hops, parents, reached, depth })
}

/// Replaces the hops of unvisited vertices, 0, by [`UNREACHED`].
fn mark_unreached(ctx: &Context<'_>, hops: &mut [u32], source: VertexId) {
    const PART: usize = 1 << 16;
    ctx.pool.for_each_part_mut(hops, PART, |_, part| {
        part.iter_mut().for_each(|hops| *hops = if *hops == 0 { UNREACHED } else { *hops });
    });
    // The source looks unvisited too: its number of hops is 0.
    hops[source as usize] = 0;
}

/// The parents before any is known.
fn no_parents(bound: usize) -> Vec<VertexId> {
    vec![NO_VERTEX; bound]
}
