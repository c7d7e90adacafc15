//! What a batch is made of.
//!
//! The types differ in what they say, so that a batch of additions alone takes eight bytes a change and
//! code that never asks which kind it is.

use std::ops::Range;

use base::VertexId;
use bytemuck::{Pod, Zeroable};

use crate::Value;

/// A change of one edge of a container whose edges carry `W`.
pub trait Change<W>: Copy + Send + Sync {
    /// The list that changes.
    fn source(&self) -> VertexId;

    /// The entry of the list.
    fn target(&self) -> VertexId;

    /// What is to stand beside the edge, which is added, or replaces what stands there; `None` where the
    /// edge is removed.
    fn addition(&self) -> Option<W>;

    /// Source and target as one number, the order of a batch.
    #[inline(always)]
    fn key(&self) -> u64 {
        u64::from(self.source()) << 32 | u64::from(self.target())
    }
}

/// An edge to add, without weight.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Addition {
    /// The list.
    pub source: VertexId,
    /// Its new entry.
    pub target: VertexId,
}

/// An edge to remove.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Removal {
    /// The list.
    pub source: VertexId,
    /// The entry that goes.
    pub target: VertexId,
}

/// An edge to add, replace or remove.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update<W = ()> {
    /// The list.
    pub source: VertexId,
    /// The entry.
    pub target: VertexId,
    /// The edge's weight from now on; `None` removes it.
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

impl<W: Value> Change<W> for Removal {
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

impl<W: Value> Change<W> for Update<W> {
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

/// Cuts sorted changes into parts of about the same length, each edge in one of them.
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

/// The changes of a batch, by number, in whatever form their owner holds them.
pub(crate) trait Source<C>: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Calls `body` with those of a range, in their order.
    fn for_each(&self, range: Range<usize>, body: impl FnMut(C));

    /// The first one.
    fn first(&self) -> Option<C> {
        let mut first = None;
        self.for_each(0..self.len().min(1), |change| first = Some(change));
        first
    }
}

impl<C: Copy + Sync> Source<C> for [C] {
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn for_each(&self, range: Range<usize>, mut body: impl FnMut(C)) {
        self[range].iter().for_each(|&change| body(change));
    }
}

/// What becomes of all edges of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They are there afterwards.
    Come,
    /// They are gone.
    Go,
}

/// Edges without weights as a caller holds them, by source and target, all of which come or all of which go: a
/// batch that is not copied before it is sorted.
#[derive(Clone, Copy, Debug)]
pub struct Edges<'a> {
    /// Source and target of each.
    pub pairs: &'a [(VertexId, VertexId)],
    /// What becomes of them.
    pub fate: Fate,
    /// Whether each stands for the edge back as well, as in an undirected graph.
    pub is_mutual: bool,
}

impl Source<Addition> for Edges<'_> {
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

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Edges that were not there before.
    pub num_added: u64,
    /// Edges that are not there any more.
    pub num_removed: u64,
    /// Edges whose weight is another one.
    pub num_replaced: u64,
    /// Added loops less removed ones.
    pub(crate) num_loops: i64,
}

impl Applied {
    /// Adds what another part of the batch did.
    pub(crate) fn join(&mut self, other: Self) {
        self.num_added += other.num_added;
        self.num_removed += other.num_removed;
        self.num_replaced += other.num_replaced;
        self.num_loops += other.num_loops;
    }
}

/// What a batch did so far, and who is told of each effective change.
pub(crate) struct Outcome<'a, S> {
    pub(crate) applied: &'a mut Applied,
    pub(crate) sink: &'a mut S,
}

/// Who wants to know which changes of a batch had an effect.
pub(crate) trait Sink<C>: Default + Send {
    /// This one had.
    fn effective(&mut self, change: &C);

    /// So had those that somebody else was told of; they come after all before.
    fn absorb(&mut self, later: Self);
}

/// Nobody does.
impl<C> Sink<C> for () {
    #[inline(always)]
    fn effective(&mut self, _: &C) {}

    fn absorb(&mut self, (): Self) {}
}
