//! Worker contexts for applying a batch, and help for workers with too many changes.

use std::marker::PhantomData;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use parking_lot::Mutex;

use crate::arena::WorkerFreeLists;
use crate::builder::NodeBuilder;
use crate::change::{AppliedArcs, BatchEffect, Change, Sink, cut_between_edges, num_parts};
use crate::fragments::{Carry, FragmentUpdater, cut_between_leaves};
use crate::limbo_list::Retired;
use crate::list::{ChangedBlock, ListWork};
use crate::merge::Parallel;
use crate::node::{Child, ListTier};
use crate::overlay::SplitBatch;
use crate::{EntryValue, Result};

/// Lists with more entries per change are not cut: most leaves then stay unchanged, and with them most inner nodes.
const TOUCHED_LEAF: usize = 64;
/// A list with fewer leaves per part is cut between entries.
const LEAVES_OF_A_PART: usize = 4;

/// State that a worker keeps from batch to batch.
#[derive(Debug)]
pub(crate) struct MemtableWorker<W> {
    pub(crate) slots: WorkerFreeLists,
    pub(crate) retired: Vec<Retired>,
    /// Scratch space for the directories that a part of a batch makes stale.
    pub(crate) stale: Vec<u32>,
    pub(crate) work: ListWork<W>,
    pub(crate) split: SplitBatch<W>,
}

impl<W: EntryValue> Default for MemtableWorker<W> {
    fn default() -> Self {
        Self {
            slots: WorkerFreeLists::default(),
            retired: Vec::new(),
            stale: Vec::new(),
            work: ListWork::default(),
            split: SplitBatch::default(),
        }
    }
}

/// Helpers that a worker may share a list with. The worker keeps its own context locked while it waits.
#[derive(Debug)]
pub(crate) struct WorkerContexts<'a, W> {
    pub(crate) pool: &'a Pool,
    /// Contexts by worker index. Each is locked only while its thread runs a part.
    pub(crate) helpers: &'a [Mutex<MemtableWorker<W>>],
}

impl<W: EntryValue> WorkerContexts<'_, W> {
    /// Number of parts to cut `num_changes` into.
    #[inline(always)]
    pub(crate) fn num_parts(&self, num_changes: usize) -> usize {
        num_parts(self.pool, num_changes)
    }

    /// Maps parts in their order. Each call gets a builder like the caller's, and scratch space.
    ///
    /// # Errors
    /// The first error of `body`.
    pub(crate) fn share<T: Send, R: Send>(
        &self,
        builder: &NodeBuilder<'_>,
        parts: Vec<T>,
        body: impl Fn(&mut NodeBuilder<'_>, &mut Carry<W>, T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let &NodeBuilder { arena, free_lists, group, .. } = builder;
        // The caller keeps its own context locked, so parts use the contexts of helpers.
        let on_thread = |thread: usize, part| {
            let mut helper = self.helpers[thread].lock();
            let MemtableWorker { slots, retired, work, .. } = &mut *helper;
            body(&mut NodeBuilder { arena, free_lists, group, slots, retired }, &mut work.carry, part)
        };
        self.pool.share(parts, on_thread).into_iter().collect()
    }
}

impl ChangedBlock<'_, '_> {
    /// Whether this many changes are worth [shared work](ListWork::apply_with).
    #[inline(always)]
    pub(crate) fn is_shared<W: EntryValue>(&self, contexts: &WorkerContexts<'_, W>, num_changes: usize) -> bool {
        let degree = || self.tiers.layout.block::<W>(self.page.old, self.index).degree();
        // Parts are cut between targets, but leaves of a multigraph may share one.
        !self.tiers.multigraph && contexts.num_parts(num_changes) > 1 && degree() / TOUCHED_LEAF <= num_changes
    }
}

impl<W: EntryValue> ListWork<W> {
    /// As [`apply`](Self::apply), with helpers, for very many changes. The list is cut between its leaves, or between
    /// entries if it has few leaves.
    #[cold]
    pub(crate) fn apply_with<C: Change<W>, S: Sink<C>>(
        &mut self,
        contexts: &WorkerContexts<'_, W>,
        builder: &mut NodeBuilder<'_>,
        place: ChangedBlock<'_, '_>,
        changes: &[C],
    ) -> Result<(AppliedArcs, S)> {
        let tiers = place.tiers;
        let block = tiers.layout.block::<W>(place.page.old, place.index);
        let degree = block.degree();
        self.children.clear();
        match block.home() {
            ListTier::Block => {
                let (targets, values) = block.in_place();
                self.carry.append(targets, values);
            }
            ListTier::Packed(len) => self.children.extend_from_slice(block.children(len)),
            ListTier::Tree(height) => {
                self.children.extend_from_slice(block.children(1));
                self.open(builder, height);
            }
        }
        let num_parts = contexts.num_parts(changes.len());
        // With this many changes the list most likely ends as a B-tree. If not, it is cut again below.
        let bounds = tiers.tree_bounds;
        let parts = if self.children.len() >= num_parts * LEAVES_OF_A_PART {
            let parts = cut_between_leaves(&self.children, changes, num_parts);
            contexts.share(builder, parts, |builder, carry, (leaves, changes)| {
                let mut part = ListPartResult::default();
                let outcome = BatchEffect { applied: &mut part.applied, sink: &mut part.sink };
                FragmentUpdater { builder, carry, bounds, multigraph: false, outcome, marker: PhantomData }.apply(
                    0,
                    leaves,
                    changes,
                    &mut part.leaves,
                )?;
                Ok(part)
            })
        } else {
            // With few leaves, parts of whole leaves would be uneven.
            self.gather(builder, 0);
            self.carry.drain(|targets, values| {
                let parts = cut_between_entries((targets, values), changes, num_parts);
                contexts.share(builder, parts, |builder, carry, (entries, changes)| {
                    let mut part = ListPartResult::default();
                    let mut outcome = BatchEffect { applied: &mut part.applied, sink: &mut part.sink };
                    carry.plan.make(entries, changes, Parallel::One, &mut outcome);
                    carry.append_planned(entries, changes);
                    carry.flush(builder, bounds, &mut part.leaves)?;
                    Ok(part)
                })
            })
        }?;
        self.children.clear();
        let (mut all_applied, mut all_effects) = (AppliedArcs::default(), S::default());
        for ListPartResult { leaves, applied, sink } in parts {
            self.carry.append_part(builder, bounds, &leaves, &mut self.children)?;
            all_applied.join(applied);
            all_effects.absorb(sink);
        }
        self.carry.finish(builder, bounds, &mut self.children)?;
        let degree = degree + all_applied.num_added as usize - all_applied.num_removed as usize;
        // The new leaves are as short as those of a B-tree. A packed list has longer ones.
        if degree <= tiers.packed {
            self.gather(builder, 0);
            self.carry.flush(builder, tiers.packed_bounds, &mut self.children)?;
        }
        self.move_to_tier(builder, place, degree, 0)?;
        Ok((all_applied, all_effects))
    }
}

/// Result of a part of a long list.
struct ListPartResult<S> {
    leaves: Vec<Child>,
    applied: AppliedArcs,
    sink: S,
}

impl<S: Default> Default for ListPartResult<S> {
    fn default() -> Self {
        Self { leaves: Vec::new(), applied: AppliedArcs::default(), sink: S::default() }
    }
}

/// Targets and their values.
type FragmentEntries<'a, W> = (&'a [VertexId], &'a [W]);

/// Cuts a list and its changes into parts with similar numbers of changes.
fn cut_between_entries<'c, W: EntryValue, C: Change<W>>(
    (mut targets, mut values): FragmentEntries<'c, W>,
    changes: &'c [C],
    num_parts: usize,
) -> Vec<(FragmentEntries<'c, W>, &'c [C])> {
    let changes = cut_between_edges(changes, num_parts);
    let next_changes = changes.iter().skip(1).map(|next| next[0].target());
    let ends: Vec<_> = next_changes.map(Some).chain([None]).collect();
    let cut = changes.into_iter().zip(ends).map(|(changes, end)| {
        let end = end.map_or(targets.len(), |end| targets.partition_point(|&target| target < end));
        let (own_targets, rest_of_targets) = targets.split_at(end);
        // No values exist where they take no words.
        let (own_values, rest_of_values) = values.split_at(end.min(values.len()));
        (targets, values) = (rest_of_targets, rest_of_values);
        ((own_targets, own_values), changes)
    });
    cut.collect()
}
