//! Edge maps: they apply a function to the edges that leave a set of vertices.
//!
//! An algorithm defines the function ([`EdgeFunctor`]); [`edge_map`] alone decides how to visit the edges:
//! - *push*: over the out-lists of the frontier. Several workers may meet at a target, so push calls the atomic update.
//!   A small frontier is a list, cut into chunks of equally many edges, so that a hub does not delay the rest. A very
//!   small one is pushed by the calling thread alone, with the plain update. A large frontier is a bitmap, read in page
//!   order.
//! - *pull*: over the in-lists of every vertex that may still be updated. One worker owns a target, so pull calls the
//!   plain update, and stops reading a list once its owner is done.
//!
//! Pull pays off if the frontier has a large share of the edges; [`Policy`] holds the rule.
//!
//! # Example
//! The vertices reachable from vertex 0, as user code:
//! ```
//! use anden_base::{VertexId, bitmap::AtomicBitmap, parallel::Pool};
//! use anden_graph::{CsrBuilder, GraphKind};
//! use anden_kernels::{Context, EdgeFunctor, EdgeMapOptions, VertexSubset, edge_map};
//!
//! struct Reach(AtomicBitmap);
//!
//! impl EdgeFunctor for Reach {
//!     fn update_atomic(&self, _source: VertexId, target: VertexId, _weight: ()) -> bool {
//!         self.0.set(target as usize) // true for the first worker
//!     }
//!     fn condition(&self, target: VertexId) -> bool {
//!         !self.0.get(target as usize)
//!     }
//! }
//!
//! let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 5);
//! for (source, target) in [(0, 1), (1, 2), (3, 4)] {
//!     builder.edge(source, target, 1);
//! }
//! let graph = builder.build()?;
//! let pool = Pool::new(2)?;
//! let ctx = Context::new(&pool);
//!
//! let reach = Reach(AtomicBitmap::new(5));
//! reach.0.set(0);
//! let mut frontier = VertexSubset::single(5, 0);
//! while !frontier.is_empty() {
//!     frontier = edge_map(&ctx, &graph, &mut frontier, &reach, &mut EdgeMapOptions::default())?;
//! }
//! assert_eq!(VertexSubset::from_bitmap(reach.0.into_bitmap()).to_list(), [0, 1, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Source
//! J. Shun and G. Blelloch: Ligra, a lightweight graph processing framework for shared memory, PPoPP 2013, section 4.
//! S. Beamer, K. Asanović, D. Patterson: Direction-optimizing breadth-first search, SC 2012. Ours differs: chunks of
//! equally many edges, and 64 targets skipped at a time.

mod ahead;
mod lists;
mod policy;
mod pull;
mod push;

use std::sync::atomic::Ordering;

use anden_base::VertexId;
use anden_base::bitmap::AtomicBitmap;
use anden_graph::{Direction, Graph, Parts, PrefetchStage, Weight, WeightedEdges};

use crate::vertex_subset::{Members, VertexSubset};
use crate::{Context, Error, Result};

pub(crate) use lists::beside;
use lists::{EdgeMapLists, Plain, Weighted};
pub use policy::{Beamer, Policy};

/// The function that an edge map applies to each edge; `W` is `()` without weights.
///
/// Workers share the functor, so it keeps the state of the algorithm in atomics.
pub trait EdgeFunctor<W = ()>: Sync {
    /// Applies the edge while other workers may apply edges to this target.
    ///
    /// Returns whether the target belongs in the result. At most one call for each target may return true in one
    /// [`edge_map`], unless [`EdgeMapOptions::distinct`] is set.
    fn update_atomic(&self, source: VertexId, target: VertexId, weight: W) -> bool;

    /// As [`update_atomic`](Self::update_atomic), while no other worker touches this target or one of the 64 that share
    /// its word in a bitmap.
    fn update(&self, source: VertexId, target: VertexId, weight: W) -> bool {
        self.update_atomic(source, target, weight)
    }

    /// Whether the target may still be updated. Edges to other targets are skipped. The answer must not change from no
    /// to yes within one [`edge_map`].
    fn condition(&self, _target: VertexId) -> bool {
        true
    }

    /// [`condition`](Self::condition) for 64 targets, with `first` in the lowest bit. Callers ignore the bits of ids at
    /// or above the vertex bound; the default does not pass these ids on.
    ///
    /// An algorithm with a bitmap returns its word here. Then one comparison skips 64 finished targets.
    fn condition_word(&self, first: VertexId, num_targets: u32) -> u64 {
        (0..num_targets).fold(0, |word, bit| word | u64::from(self.condition(first + bit)) << bit)
    }

    /// A pull found no in-edges at this target. An algorithm may record that, so that `condition` returns no from then
    /// on.
    fn no_sources(&self, _target: VertexId) {}
}

/// How [`edge_map`] visits the edges.
#[derive(Debug, Default)]
pub struct EdgeMapOptions<'a> {
    /// The rule that decides between push and pull.
    pub policy: Policy<'a>,
    /// Keeps each target once in the result, although the functor may return true for it several times.
    pub distinct: bool,
    /// Saves memory: only frontiers with few vertices and edges become lists, all others bitmaps. An edge map then
    /// takes at most [`LEAN_BYTES`] a vertex, and may take longer.
    pub lean: bool,
}

/// The most bytes a vertex of one edge map, with frontier and result, if each vertex is in one frontier of a search
/// only.
pub(crate) const SEARCH_BYTES: u64 = 17;

/// As [`SEARCH_BYTES`], if frontiers share vertices. A list and the starts of its edges each take up to twice their
/// length. Worker lists take three times their length while they grow.
pub(crate) const ROUND_BYTES: u64 = 29;

/// The most bytes a vertex of one edge map with [`EdgeMapOptions::lean`]: lists of a sixteenth of the vertices, and
/// bitmaps.
pub const LEAN_BYTES: u64 = 3;

/// With [`EdgeMapOptions::lean`], a list holds at most one in this many vertices.
const LEAN_PART: u64 = 16;

/// Applies `functor` to the edges from `frontier` to targets that meet its condition. Returns the targets for which the
/// functor returned true.
///
/// The frontier may change its form. *Cost*: the edges of the frontier (push), or the in-edges of the targets that meet
/// the condition, each list until its owner is done (pull). *Memory*: a bitmap, or 12 bytes for each vertex of a small
/// frontier and 4 for each of the result; see [`EdgeMapOptions::lean`]. *Determinism*: the result is equal at any
/// number of threads if the functor's answers do not depend on order.
///
/// # Errors
/// The work was cancelled, or the policy demands a pull on a graph without in-edges.
pub fn edge_map<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    frontier: &mut VertexSubset,
    functor: &impl EdgeFunctor,
    options: &mut EdgeMapOptions<'_>,
) -> Result<VertexSubset> {
    run(ctx, graph, &Plain(graph), frontier, functor, options)
}

/// [`edge_map`] with the weights of the edges.
///
/// # Errors
/// As [`edge_map`]; also, the graph's weights are not of type `W`.
pub fn weighted_edge_map<W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    frontier: &mut VertexSubset,
    functor: &impl EdgeFunctor<W>,
    options: &mut EdgeMapOptions<'_>,
) -> Result<VertexSubset> {
    if graph.weight_type() != Some(W::TYPE) {
        return Err(Error::Unsupported { kernel: "weighted edge map", needs: "weights of the functor's type" });
    }
    run(ctx, graph, &Weighted(graph), frontier, functor, options)
}

/// A running edge map.
struct EdgeMapRun<'a, G, L, F> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    lists: &'a L,
    functor: &'a F,
    distinct: bool,
}

fn run<W: Copy, G: Graph, L: EdgeMapLists<W, Offset = G::Offset>, F: EdgeFunctor<W>>(
    ctx: &Context<'_>,
    graph: &G,
    lists: &L,
    frontier: &mut VertexSubset,
    functor: &F,
    options: &mut EdgeMapOptions<'_>,
) -> Result<VertexSubset> {
    ctx.progress.check()?;
    let bound = graph.vertex_bound();
    if frontier.is_empty() {
        return Ok(VertexSubset::empty(bound));
    }
    // Unread announcements of the last map are stale.
    graph.forget_needs();
    let run = EdgeMapRun { ctx, graph, lists, functor, distinct: options.distinct };
    let mut form = options.policy.choose(ctx, graph, frontier)?;
    let is_list = matches!(form, policy::EdgeMapForm::SerialPush | policy::EdgeMapForm::SparsePush);
    if is_list && options.lean {
        // A push returns at most one vertex for each arc, so the arcs bound the list of the result.
        let size = frontier.len() as u64 + policy::out_arcs(ctx, graph, frontier);
        if size > bound as u64 / LEAN_PART {
            form = policy::EdgeMapForm::DensePush;
        }
    }
    let result = match form {
        policy::EdgeMapForm::Pull => {
            frontier.make_dense(ctx.pool);
            run.pull(frontier)
        }
        policy::EdgeMapForm::DensePush => {
            frontier.make_dense(ctx.pool);
            run.dense_push(frontier)
        }
        policy::EdgeMapForm::SerialPush if !graph.is_listening() => {
            frontier.make_sparse(ctx.pool);
            run.serial_push(frontier)
        }
        policy::EdgeMapForm::SerialPush | policy::EdgeMapForm::SparsePush => {
            frontier.make_sparse(ctx.pool);
            // Lists read in stored order are read once from a disk, with or without a prefetcher.
            if graph.is_listening() || ctx.reads_from_disk(graph) {
                frontier.sort();
            }
            run.sparse_push(frontier)
        }
    };
    // Cancelled workers leave an incomplete result.
    ctx.progress.check()?;
    Ok(result)
}

/// Distances, in lists, at which [`announce`] prefetches the lookup entry, the place, and the list itself.
const FARTHER: usize = 20;
pub(crate) const FAR: usize = 12;
const NEAR: usize = 4;

/// Prefetches for the lists that are read after the one at `index`, one stage at each distance.
#[inline(always)]
pub(crate) fn announce(graph: &impl Graph, parts: Parts, vertices: &[VertexId], index: usize) {
    if let Some(&ahead) = vertices.get(index + FARTHER) {
        graph.prefetch(Direction::Out, PrefetchStage::TableEntry, ahead);
    }
    if let Some(&ahead) = vertices.get(index + FAR) {
        graph.prefetch(Direction::Out, PrefetchStage::Place, ahead);
    }
    if let Some(&ahead) = vertices.get(index + NEAR) {
        graph.prefetch(Direction::Out, PrefetchStage::List(parts), ahead);
    }
}

/// Prefetches the first two stages of a list at once, for a loop that visits each list once and waits for none.
#[inline(always)]
pub(crate) fn announce_place(graph: &impl Graph, direction: Direction, vertex: VertexId) {
    graph.prefetch(direction, PrefetchStage::TableEntry, vertex);
    graph.prefetch(direction, PrefetchStage::Place, vertex);
}

/// Prefetches the first lists, which [`announce`] skips.
#[inline(always)]
pub(crate) fn announce_first(graph: &impl Graph, parts: Parts, vertices: &[VertexId]) {
    vertices.iter().take(FARTHER).for_each(|&vertex| graph.prefetch(Direction::Out, PrefetchStage::TableEntry, vertex));
    vertices.iter().take(FAR).for_each(|&vertex| graph.prefetch(Direction::Out, PrefetchStage::Place, vertex));
    vertices.iter().take(NEAR).for_each(|&vertex| graph.prefetch(Direction::Out, PrefetchStage::List(parts), vertex));
}

/// Sets `bits` in a word that other workers may also set.
#[inline]
fn merge_word(map: &AtomicBitmap, index: usize, bits: u64) {
    // An atomic write takes the cache line away from other workers.
    if bits != 0 {
        map.words()[index].fetch_or(bits, Ordering::Relaxed);
    }
}

/// The list of a sparse frontier.
fn list_of(frontier: &VertexSubset) -> &[VertexId] {
    match frontier.members() {
        Members::Sparse(list) => list,
        Members::All | Members::Dense(..) => &[],
    }
}

#[cfg(test)]
mod tests;
