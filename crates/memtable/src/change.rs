//! Changes that make up a batch.
//!
//! Each kind of batch has its own type. A batch of additions takes eight bytes a change, and its code never tests the
//! kind of a change.

use std::ops::Range;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use bytemuck::{Pod, Zeroable};

use crate::EntryValue;

/// Minimum number of changes, of one list or one bucket, that workers share.
const SHARED_CHANGES: usize = 1 << 16;
/// Several parts per worker, so that a worker which comes late still finds one.
const PARTS_EACH: usize = 4;

/// A change of one arc, with values of type `W`.
pub trait Change<W>: Copy + Send + Sync {
    /// Vertex whose list changes.
    fn source(&self) -> VertexId;

    /// Entry of the list.
    fn target(&self) -> VertexId;

    /// New value of the arc, which is added or replaced. `None` removes the arc.
    fn addition(&self) -> Option<W>;

    /// Source and target as one number, by which batches are ordered.
    #[inline(always)]
    fn key(&self) -> u64 {
        u64::from(self.source()) << 32 | u64::from(self.target())
    }
}

/// An arc to add, without a value.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Addition {
    /// Vertex whose list changes.
    pub source: VertexId,
    /// Entry to add.
    pub target: VertexId,
}

/// An arc to remove.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Removal {
    /// Vertex whose list changes.
    pub source: VertexId,
    /// Entry to remove.
    pub target: VertexId,
}

/// An arc to add, replace or remove.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EntryUpdate<W = ()> {
    /// Vertex whose list changes.
    pub source: VertexId,
    /// Entry of the list.
    pub target: VertexId,
    /// New value of the arc; `None` removes the arc.
    pub addition: Option<W>,
}

impl Change<()> for Addition {
    #[inline(always)]
    fn source(&self) -> VertexId {
        self.source
    }

    #[inline(always)]
    fn target(&self) -> VertexId {
        self.target
    }

    #[inline(always)]
    fn addition(&self) -> Option<()> {
        Some(())
    }
}

impl<W: EntryValue> Change<W> for Removal {
    #[inline(always)]
    fn source(&self) -> VertexId {
        self.source
    }

    #[inline(always)]
    fn target(&self) -> VertexId {
        self.target
    }

    #[inline(always)]
    fn addition(&self) -> Option<W> {
        None
    }
}

impl<W: EntryValue> Change<W> for EntryUpdate<W> {
    #[inline(always)]
    fn source(&self) -> VertexId {
        self.source
    }

    #[inline(always)]
    fn target(&self) -> VertexId {
        self.target
    }

    #[inline(always)]
    fn addition(&self) -> Option<W> {
        self.addition
    }
}

/// Number of parts to cut `num_changes` into: one, unless they are worth sharing.
#[inline(always)]
pub(crate) fn num_parts(pool: &Pool, num_changes: usize) -> usize {
    if num_changes < SHARED_CHANGES || pool.num_threads() == 1 { 1 } else { PARTS_EACH * pool.num_threads() }
}

/// Cuts sorted changes into parts of similar length. All changes of one arc are in one part.
pub(crate) fn cut_between_edges<W, C: Change<W>>(mut changes: &[C], num_parts: usize) -> Vec<&[C]> {
    let len = changes.len().div_ceil(num_parts.max(1));
    let mut parts = Vec::with_capacity(num_parts);
    while !changes.is_empty() {
        let same = changes[len.min(changes.len()) - 1].key();
        let (part, rest) = changes.split_at(changes.partition_point(|change| change.key() <= same));
        parts.push(part);
        changes = rest;
    }
    parts
}

/// The changes of a batch by index, in the caller's format.
pub(crate) trait ChangeSource<C>: Sync {
    /// Number of changes.
    fn len(&self) -> usize;

    /// Calls `body` for each change of a range, in order.
    fn for_each(&self, range: Range<usize>, body: impl FnMut(C));

    /// First change of the batch.
    fn first(&self) -> Option<C> {
        let mut first = None;
        self.for_each(0..self.len().min(1), |change| first = Some(change));
        first
    }
}

impl<C: Copy + Sync> ChangeSource<C> for [C] {
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn for_each(&self, range: Range<usize>, mut body: impl FnMut(C)) {
        self[range].iter().for_each(|&change| body(change));
    }
}

/// Operation of a batch on all its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Adds the edges.
    Insert,
    /// Removes the edges.
    Delete,
}

/// Edges without weights in the caller's format, all added or all removed. They are copied only while they are
/// sorted.
#[derive(Clone, Copy, Debug)]
pub struct Edges<'a> {
    /// Source and target of each edge.
    pub pairs: &'a [(VertexId, VertexId)],
    /// Whether the edges are added or removed.
    pub op: Op,
    /// Whether each edge also stands for its reverse, as in an undirected graph.
    pub is_mutual: bool,
}

impl ChangeSource<Addition> for Edges<'_> {
    fn len(&self) -> usize {
        self.pairs.len() << usize::from(self.is_mutual)
    }

    #[inline]
    fn for_each(&self, range: Range<usize>, mut body: impl FnMut(Addition)) {
        if !self.is_mutual {
            return self.pairs[range].iter().for_each(|&(source, target)| body(Addition { source, target }));
        }
        for i in range {
            let (source, target) = self.pairs[i / 2];
            body(if i % 2 == 0 { Addition { source, target } } else { Addition { source: target, target: source } });
        }
    }
}

/// Effect of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppliedArcs {
    /// Number of arcs that did not exist before.
    pub num_added: u64,
    /// Number of arcs that no longer exist.
    pub num_removed: u64,
    /// Number of arcs with another value.
    pub num_replaced: u64,
    /// Number of added loops less removed loops.
    pub(crate) num_loops: i64,
}

impl AppliedArcs {
    /// Adds the effect of another part of the batch.
    pub(crate) fn join(&mut self, other: Self) {
        self.num_added += other.num_added;
        self.num_removed += other.num_removed;
        self.num_replaced += other.num_replaced;
        self.num_loops += other.num_loops;
    }
}

/// Effect of a batch as it grows, and the receiver of its effective changes.
pub(crate) struct BatchEffect<'a, S> {
    pub(crate) applied: &'a mut AppliedArcs,
    pub(crate) sink: &'a mut S,
}

/// Receives the changes of a batch that have an effect.
pub(crate) trait Sink<C>: Default + Send {
    /// Receives one effective change.
    fn effective(&mut self, change: &C);

    /// Appends the changes that another sink received for a later part.
    fn absorb(&mut self, later: Self);
}

/// Ignores all changes.
impl<C> Sink<C> for () {
    #[inline(always)]
    fn effective(&mut self, _: &C) {}

    fn absorb(&mut self, (): Self) {}
}
