//! Edge maps: applying a function to the edges that leave a set of vertices.
//!
//! An algorithm says what happens at an edge ([`EdgeFunctor`]); [`edge_map`] alone decides how the
//! edges are visited:
//! - *push*: over the out-lists of the frontier. Several workers may meet at a target, so the atomic
//!   update is called. A small frontier is a list, cut into pieces of equally many edges so that a
//!   hub does not hold up the rest; a large one is a bitmap, read in the order of the pages.
//! - *pull*: over the in-lists of every vertex that may still be updated. One worker owns a target,
//!   so the plain update is called, and a list is left as soon as its owner is done.
//!
//! Pull pays when the frontier holds a good part of the edges; [`Policy`] holds the rule.
//!
//! # Example
//! The vertices reachable from vertex 0, as a user would write it:
//! ```
//! use base::{VertexId, bitmap::AtomicBitmap, parallel::Pool};
//! use graph::{CsrBuilder, Direction};
//! use anden_kernels::{Context, EdgeFunctor, EdgeMapOptions, VertexSubset, edge_map};
//!
//! struct Reach(AtomicBitmap);
//!
//! impl EdgeFunctor for Reach {
//!     fn update_atomic(&self, _source: VertexId, target: VertexId, _weight: ()) -> bool {
//!         self.0.set(target as usize) // true for the first who comes
//!     }
//!     fn condition(&self, target: VertexId) -> bool {
//!         !self.0.get(target as usize)
//!     }
//! }
//!
//! let mut builder = CsrBuilder::<u32>::new(Direction::Directed, 5);
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
//! J. Shun and G. Blelloch: Ligra, a lightweight graph processing framework for shared memory,
//! PPoPP 2013, section 4. S. Beamer, K. Asanović, D. Patterson: Direction-optimizing breadth-first
//! search, SC 2012. Ours differs: pieces of equally many edges, 64 targets skipped at a time.

mod ahead;
mod lists;
mod policy;
mod pull;
mod push;

use std::sync::atomic::Ordering;

use base::VertexId;
use base::bitmap::AtomicBitmap;
use graph::{Graph, InEdges, Parts, Side, Weight, WeightedEdges};

use crate::vertex_subset::{Members, VertexSubset};
use crate::{Context, Error, Result};

pub(crate) use lists::beside;
use lists::{Lists, Plain, Weighted};
pub use policy::{Beamer, Policy};

/// What happens at an edge; `W` is `()` where weights are not asked for.
///
/// A functor keeps the state of the algorithm in atomics, since workers share it.
pub trait EdgeFunctor<W = ()>: Sync {
    /// Applies the edge while other workers may apply others to the same target.
    ///
    /// Returns whether the target belongs in the result: for each target yes at most once a call of
    /// [`edge_map`], or [`EdgeMapOptions::distinct`] must be set.
    fn update_atomic(&self, source: VertexId, target: VertexId, weight: W) -> bool;

    /// The same while no other worker touches this target.
    fn update(&self, source: VertexId, target: VertexId, weight: W) -> bool {
        self.update_atomic(source, target, weight)
    }

    /// Whether the target may still be updated. Edges to targets of which this says no are skipped;
    /// it must not turn from no to yes within one call of [`edge_map`].
    fn condition(&self, _target: VertexId) -> bool {
        true
    }

    /// [`condition`](Self::condition) for 64 targets, `first` in the lowest bit. Bits of ids that
    /// are not below the vertex bound are ignored, and those ids are not passed on by the default.
    ///
    /// An algorithm that keeps a bitmap gives its word here: then 64 finished targets cost one look.
    fn condition_word(&self, first: VertexId, num_targets: u32) -> u64 {
        (0..num_targets).fold(0, |word, bit| word | u64::from(self.condition(first + bit)) << bit)
    }

    /// A pull found that nothing leads to this target. An algorithm may note it, so that
    /// `condition` says no from then on.
    fn no_sources(&self, _target: VertexId) {}
}

/// How [`edge_map`] visits the edges.
#[derive(Debug, Default)]
pub struct EdgeMapOptions<'a> {
    /// Who decides between push and pull.
    pub policy: Policy<'a>,
    /// Keeps each target once in the result although the functor may say yes to it several times.
    pub distinct: bool,
    /// Makes lists only of frontiers that have few vertices and edges, and bitmaps of all others, which
    /// may take longer: an edge map then takes at most [`LEAN_BYTES`] a vertex.
    pub lean: bool,
}

/// The most bytes a vertex that one edge map takes, its frontier and result included, where each vertex
/// is in one frontier of a search only.
pub(crate) const SEARCH_BYTES: u64 = 17;

/// The same where frontiers share vertices. A list takes up to twice its length, the starts of its edges
/// as much again, and the lists of the workers three times their length while they grow.
pub(crate) const ROUND_BYTES: u64 = 29;

/// The same with [`EdgeMapOptions::lean`]: lists of a sixteenth of the vertices, and bitmaps.
pub const LEAN_BYTES: u64 = 3;

/// The part of the vertices that a list may hold when memory is to be saved.
const LEAN_PART: u64 = 16;

/// Applies `functor` to the edges from `frontier` to the targets that meet its condition; gives the
/// targets of which it said yes.
///
/// The frontier may change its form. *Cost*: the edges of the frontier (push), or the in-edges of
/// the targets that meet the condition, each list up to the point where its owner is done (pull).
/// *Memory*: a bitmap, or 12 bytes for each vertex of a small frontier and 4 for each of the result; see
/// [`EdgeMapOptions::lean`].
/// *Determinism*: the result is the same set at any number of threads if the functor's answers do
/// not depend on order.
///
/// # Errors
/// The work was cancelled, or the policy demands a pull and the graph has no in-edges.
pub fn edge_map<G: InEdges>(
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
/// As for [`edge_map`]; also, the graph's weights are not of type `W`.
pub fn weighted_edge_map<W: Weight, G: InEdges + WeightedEdges>(
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

/// One edge map under way.
struct Run<'a, G, L, F> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    lists: &'a L,
    functor: &'a F,
    distinct: bool,
}

fn run<W: Copy, G: InEdges, L: Lists<W, Offset = G::Offset>, F: EdgeFunctor<W>>(
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
    graph.forget_needs();
    let run = Run { ctx, graph, lists, functor, distinct: options.distinct };
    let mut form = options.policy.choose(ctx, graph, frontier)?;
    if form == policy::Form::SparsePush && options.lean {
        let size = frontier.len() as u64 + policy::out_arcs(ctx, graph, frontier);
        if size > bound as u64 / LEAN_PART {
            form = policy::Form::DensePush;
        }
    }
    let result = match form {
        policy::Form::Pull => {
            frontier.make_dense(ctx.pool);
            run.pull(frontier)
        }
        policy::Form::DensePush => {
            frontier.make_dense(ctx.pool);
            run.dense_push(frontier)
        }
        policy::Form::SparsePush => {
            frontier.make_sparse(ctx.pool);
            // What is read in its order is read once, whether or not somebody is told of it.
            if graph.is_listening() || ctx.reads_from_disk(graph) {
                frontier.sort();
            }
            run.sparse_push(frontier)
        }
    };
    ctx.progress.check()?;
    Ok(result)
}

/// Lists ahead of which it is fetched where to look them up, their place, and the list itself.
const FARTHER: usize = 20;
pub(crate) const FAR: usize = 12;
const NEAR: usize = 4;

/// Tells a graph which of the lists of some vertices are read after the one at `index`.
#[inline(always)]
pub(crate) fn announce(graph: &impl Graph, parts: Parts, vertices: &[VertexId], index: usize) {
    if let Some(&ahead) = vertices.get(index + FARTHER) {
        graph.prefetch(Side::Out, ahead);
    }
    if let Some(&ahead) = vertices.get(index + FAR) {
        graph.prefetch_place(Side::Out, ahead);
    }
    if let Some(&ahead) = vertices.get(index + NEAR) {
        graph.prefetch_list(Side::Out, parts, ahead);
    }
}

/// Tells a graph of a list on the way to which nobody can tell it twice: of many, one after the other, none is waited for.
#[inline(always)]
pub(crate) fn announce_place(graph: &impl Graph, side: Side, vertex: VertexId) {
    graph.prefetch(side, vertex);
    graph.prefetch_place(side, vertex);
}

/// Tells a graph what [`announce`] will not, before the first of the lists is read.
#[inline(always)]
pub(crate) fn announce_first(graph: &impl Graph, parts: Parts, vertices: &[VertexId]) {
    vertices.iter().take(FARTHER).for_each(|&vertex| graph.prefetch(Side::Out, vertex));
    vertices.iter().take(FAR).for_each(|&vertex| graph.prefetch_place(Side::Out, vertex));
    vertices.iter().take(NEAR).for_each(|&vertex| graph.prefetch_list(Side::Out, parts, vertex));
}

/// Sets `bits` in a word that other workers may be setting too.
#[inline]
fn merge_word(map: &AtomicBitmap, index: usize, bits: u64) {
    if bits != 0 {
        map.words()[index].fetch_or(bits, Ordering::Relaxed);
    }
}

/// The list of a frontier that has been made one.
fn list_of(frontier: &VertexSubset) -> &[VertexId] {
    match frontier.members() {
        Members::Sparse(list) => list,
        Members::All | Members::Dense(..) => &[],
    }
}

#[cfg(test)]
mod tests;
