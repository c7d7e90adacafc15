//! Breadth-first search.
//!
//! **Result**: the number of hops from the source to every vertex, and on request a parent for each.
//!
//! **Algorithm**: direction-optimizing search. A small frontier is pushed along its out-edges; a
//! large one is pulled by the unvisited vertices, each of which stops at its first neighbour in the
//! frontier. Beside the hops stands a bitmap of the vertices that need no more work (visited, or
//! without in-edges), small enough to stay in cache: pushes test and set it instead of the hops, and
//! pulls skip 64 finished vertices at a time. Parents are chosen afterwards: of the neighbours one
//! hop nearer to the source, the one with the smallest id, so they are the same at any number of
//! threads.
//!
//! **Parameters**: the switch between the directions is [`Beamer`]'s, with its `alpha` and `beta`.
//!
//! # Source
//! S. Beamer, K. Asanović, D. Patterson: Direction-optimizing breadth-first search, SC 2012. Ours
//! differs in the bitmap, and in parents being deterministic.

mod parents;
mod verify;

use std::sync::atomic::{AtomicU32, Ordering};

use base::bitmap::AtomicBitmap;
use base::memory::{as_atomic_u32, zeroed_huge};
use base::{NO_VERTEX, VertexId};
use graph::InEdges;

use crate::context::{bytes_for, require_vertex};
use crate::edge_map::SEARCH_BYTES;
use crate::{Beamer, Context, EdgeFunctor, EdgeMapOptions, LEAN_BYTES, Policy, Result, VertexSubset, edge_map};

pub use verify::verify;

/// Where to search from, and what to give.
#[derive(Clone, Debug, Default)]
pub struct BfsParams {
    /// The vertex to start from.
    pub source: VertexId,
    /// Whether to give parents too: one more pass over a part of the edges.
    pub parents: bool,
}

/// What the search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BfsResult {
    /// The vertex that the search started from.
    pub source: VertexId,
    /// Hops from the source, by vertex id; [`UNREACHED`] where there is no path.
    pub hops: Vec<u32>,
    /// The parent of each vertex, by vertex id; of the source itself; [`NO_VERTEX`] where there is no path.
    pub parents: Option<Vec<VertexId>>,
    /// The number of vertices reached, the source included.
    pub reached: u64,
    /// The most hops of any vertex reached.
    pub depth: u32,
}

/// Stands for hops where there is no path.
pub const UNREACHED: u32 = u32::MAX;

/// The hops from one vertex to all others.
///
/// *Cost*: every edge at most once in either direction, usually far fewer. *Memory*: 4 bytes a vertex
/// for the hops, a few bits for bitmaps, 4 bytes for parents, and 12 to 16 bytes for each vertex of the
/// largest frontier that is pushed, or less where the budget asks for it: 12 bytes a vertex are enough.
/// *Determinism*: the same at any number of threads.
///
/// # Errors
/// The source does not exist, the budget is too small, the graph is damaged, or the work was cancelled.
pub fn bfs<G: InEdges>(ctx: &Context<'_>, graph: &G, params: &BfsParams) -> Result<BfsResult> {
    require_vertex(graph, params.source)?;
    let lean =
        ctx.must_save("bfs", bytes_for(graph, HELD_BYTES + SEARCH_BYTES), bytes_for(graph, HELD_BYTES + LEAN_BYTES))?;
    ctx.pool.enter(|| search(ctx, graph, params, lean))
}

/// What a search holds for each vertex: hops, parents, and the bitmap.
const HELD_BYTES: u64 = 4 + 4 + 1;

/// The state of one search: hops are 0 until a vertex is visited.
struct Search<'a> {
    hops: &'a [AtomicU32],
    /// Visited, or nothing leads there.
    finished: AtomicBitmap,
    /// The hops of the vertices that are visited now.
    level: u32,
}

impl EdgeFunctor for Search<'_> {
    #[inline(always)]
    fn update_atomic(&self, _source: VertexId, target: VertexId, (): ()) -> bool {
        let is_first = self.finished.set(target as usize);
        if is_first {
            self.hops[target as usize].store(self.level, Ordering::Relaxed);
        }
        is_first
    }

    #[inline(always)]
    fn update(&self, _source: VertexId, target: VertexId, (): ()) -> bool {
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
        // A pull gives the 64 targets of a word to one worker, so no locked instruction is needed.
        let word = &self.finished.words()[target as usize / 64];
        word.store(word.load(Ordering::Relaxed) | 1 << (target % 64), Ordering::Relaxed);
    }
}

fn search<G: InEdges>(ctx: &Context<'_>, graph: &G, params: &BfsParams, lean: bool) -> Result<BfsResult> {
    let (source, bound) = (params.source, graph.vertex_bound());
    ctx.progress.stage("breadth-first search", Some(graph.num_vertices() as u64));
    let mut hops = zeroed_huge::<u32>(bound);
    let finished = AtomicBitmap::new(bound);
    finished.set(source as usize);
    let mut search = Search { hops: as_atomic_u32(&mut hops), finished, level: 0 };
    let mut frontier = VertexSubset::single(bound, source);
    let mut beamer = Beamer::new(graph.num_arcs());
    let mut reached = 0;
    while !frontier.is_empty() {
        reached += frontier.len() as u64;
        ctx.progress.advance(frontier.len() as u64);
        search.level += 1;
        let mut options = EdgeMapOptions { policy: Policy::Beamer(&mut beamer), distinct: false, lean };
        frontier = edge_map(ctx, graph, &mut frontier, &search, &mut options)?;
    }
    let depth = search.level - 1;
    mark_unreached(ctx, &mut hops, source);
    let parents = match params.parents {
        true => Some(parents::of_hops(ctx, graph, source, &hops)?),
        false => None,
    };
    graph.check()?;
    Ok(BfsResult { source, hops, parents, reached, depth })
}

/// Turns the hops of unvisited vertices from 0 into [`UNREACHED`].
fn mark_unreached(ctx: &Context<'_>, hops: &mut [u32], source: VertexId) {
    const PART: usize = 1 << 16;
    ctx.pool.for_each_part_mut(hops, PART, |_, part| {
        part.iter_mut().for_each(|hops| *hops = if *hops == 0 { UNREACHED } else { *hops });
    });
    hops[source as usize] = 0;
}

/// Parents that are not there.
fn no_parents(bound: usize) -> Vec<VertexId> {
    vec![NO_VERTEX; bound]
}
