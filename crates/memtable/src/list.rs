//! Applies the changes of one vertex, and moves its list to the tier for its new degree.

use std::marker::PhantomData;

use anden_base::simd::{insert_lane, num_below, remove_lane};
use anden_base::{NO_VERTEX, VertexId};

use crate::arena::{Fresh, Handle, LINE_WORDS};
use crate::builder::NodeBuilder;
use crate::change::{AppliedArcs, BatchEffect, Change, Sink};
use crate::fragments::{Bounds, Carry, FragmentUpdater, wrap};
use crate::merge::Parallel;
use crate::node::{self, Child, LeafNode, ListTier, VertexBlock, VertexBlockLayout};
use crate::{EntryValue, Result};

/// Tier of a list by its degree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiers {
    pub(crate) layout: VertexBlockLayout,
    /// Whether arcs with equal targets are allowed.
    pub(crate) multigraph: bool,
    /// Maximum length of an inline list.
    pub(crate) in_place: usize,
    /// Longer lists move to a B-tree. They move back at half this length.
    pub(crate) packed: usize,
    pub(crate) packed_bounds: Bounds,
    pub(crate) tree_bounds: Bounds,
}

impl Tiers {
    /// For a list of one fragment.
    #[inline(always)]
    fn parallel(&self) -> Parallel {
        if self.multigraph { Parallel::Many { limit: None } } else { Parallel::One }
    }
}

/// A page that may change. It is copied at the first change that has an effect.
pub(crate) struct PageCopy<'a> {
    pub(crate) old: &'a [u32],
    pub(crate) fresh: Option<Fresh>,
}

impl PageCopy<'_> {
    #[inline(always)]
    fn words<'f, 'b: 'f>(&'f mut self, builder: &mut NodeBuilder<'b>) -> Result<&'f mut [u32]> {
        if self.fresh.is_none() {
            let mut fresh = builder.take(self.old.len())?;
            builder.arena.fill(&mut fresh)[..self.old.len()].copy_from_slice(self.old);
            self.fresh = Some(fresh);
        }
        match &mut self.fresh {
            Some(fresh) => Ok(builder.arena.fill(fresh)),
            None => Ok(&mut []),
        }
    }
}

/// The block of the vertex whose list changes.
pub(crate) struct ChangedBlock<'p, 'a> {
    pub(crate) tiers: &'p Tiers,
    pub(crate) page: &'p mut PageCopy<'a>,
    pub(crate) index: usize,
}

impl ChangedBlock<'_, '_> {
    /// Writes degree and tier. Returns the body and its values for writing.
    #[inline(always)]
    fn write<'f, 'b: 'f, W: EntryValue>(
        &'f mut self,
        builder: &mut NodeBuilder<'b>,
        degree: usize,
        home: ListTier,
    ) -> Result<(&'f mut [u32], &'f mut [W])> {
        let words = self.page.words(builder)?;
        Ok(self.tiers.layout.write_block::<W>(words, self.index, degree, home))
    }
}

/// The changes of one list within a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListChangeGroup {
    pub(crate) source: VertexId,
    pub(crate) start: u32,
    pub(crate) page: Handle,
}

/// Scratch space of one worker for applying changes.
#[derive(Debug)]
pub(crate) struct ListWork<W> {
    pub(crate) carry: Carry<W>,
    pub(crate) groups: Vec<ListChangeGroup>,
    pub(crate) children: Vec<Child>,
    above: Vec<Child>,
}

impl<W> Default for ListWork<W> {
    fn default() -> Self {
        Self { carry: Carry::default(), groups: Vec::new(), children: Vec::new(), above: Vec::new() }
    }
}

impl<W: EntryValue> ListWork<W> {
    /// Applies sorted changes to the list of a vertex.
    #[inline]
    pub(crate) fn apply<C: Change<W>, S: Sink<C>>(
        &mut self,
        builder: &mut NodeBuilder<'_>,
        place: ChangedBlock<'_, '_>,
        changes: &[C],
        outcome: &mut BatchEffect<'_, S>,
    ) -> Result<()> {
        let tiers = place.tiers;
        let block = tiers.layout.block::<W>(place.page.old, place.index);
        // These two cases need no vector of children.
        match block.home() {
            ListTier::Block => self.apply_in_place(builder, place, &block, changes, outcome),
            ListTier::Packed(1) => self.apply_to_one(builder, place, &block, changes, outcome),
            home => {
                let degree = block.degree();
                self.children.clear();
                let (height, children) = match home {
                    ListTier::Tree(height) => (height, block.children(1)),
                    ListTier::Packed(len) => (0, block.children(len)),
                    ListTier::Block => (0, block.children(0)),
                };
                let bounds = if height > 0 { tiers.tree_bounds } else { tiers.packed_bounds };
                let mut own = AppliedArcs::default();
                let carry = &mut self.carry;
                // Counted apart from the batch, to tell whether this list changed.
                let own_outcome = BatchEffect { applied: &mut own, sink: &mut *outcome.sink };
                FragmentUpdater {
                    builder,
                    carry,
                    bounds,
                    multigraph: tiers.multigraph,
                    outcome: own_outcome,
                    marker: PhantomData,
                }
                .apply(height, children, changes, &mut self.children)?;
                outcome.applied.join(own);
                // Without an effect, the page is not copied.
                if own == AppliedArcs::default() {
                    return Ok(());
                }
                let degree = degree + own.num_added as usize - own.num_removed as usize;
                self.move_to_tier(builder, place, degree, height)
            }
        }
    }

    #[inline(always)]
    fn apply_in_place<C: Change<W>>(
        &mut self,
        builder: &mut NodeBuilder<'_>,
        mut place: ChangedBlock<'_, '_>,
        block: &VertexBlock<'_, W>,
        changes: &[C],
        outcome: &mut BatchEffect<'_, impl Sink<C>>,
    ) -> Result<()> {
        let tiers = place.tiers;
        let (targets, values) = block.in_place();
        // Without values, an inline list changes as vector lanes and needs no plan.
        if W::WORDS == 0
            && !tiers.multigraph
            && targets.len() + changes.len() <= tiers.in_place
            && let Some(lanes) = block.lanes()
        {
            return apply_within_block::<W, C>(builder, place, (targets.len(), InPlace(lanes)), changes, outcome);
        }
        self.carry.plan.make((targets, values), changes, tiers.parallel(), outcome);
        if self.carry.plan.is_empty() {
            return Ok(());
        }
        let degree = self.carry.plan.len_after(targets.len());
        // The plan gives the new degree, so the list is written once, in its final place.
        if degree <= tiers.in_place {
            let new = place.write::<W>(builder, degree, ListTier::Block)?;
            self.carry.plan.write((targets, values), changes, new);
            return Ok(());
        }
        self.children.clear();
        self.carry.append_planned((targets, values), changes);
        self.carry.flush(builder, tiers.packed_bounds, &mut self.children)?;
        self.move_to_tier(builder, place, degree, 0)
    }

    /// Applies changes to a list of one leaf, which mostly remains one leaf.
    #[inline(always)]
    fn apply_to_one<C: Change<W>>(
        &mut self,
        builder: &mut NodeBuilder<'_>,
        mut place: ChangedBlock<'_, '_>,
        block: &VertexBlock<'_, W>,
        changes: &[C],
        outcome: &mut BatchEffect<'_, impl Sink<C>>,
    ) -> Result<()> {
        let tiers = place.tiers;
        let old = block.children(1)[0].handle;
        let leaf = LeafNode::<W>::read(builder.arena, old);
        let plan = &mut self.carry.plan;
        plan.make((leaf.targets, leaf.values), changes, tiers.parallel(), outcome);
        if plan.is_empty() {
            return Ok(());
        }
        let degree = plan.len_after(leaf.targets.len());
        // The common case writes one leaf, without the vector of children.
        if degree > tiers.in_place && degree <= tiers.packed_bounds.max.min(tiers.packed) {
            let handle = builder
                .leaf(degree, |targets, values| plan.write((leaf.targets, leaf.values), changes, (targets, values)))?;
            builder.retire_leaf(old, &leaf);
            let (body, _) = place.write::<W>(builder, degree, ListTier::Packed(1))?;
            // The lower bound of an only child does not matter.
            body[..2].copy_from_slice(&[0, handle]);
            return Ok(());
        }
        self.children.clear();
        self.carry.append_planned((leaf.targets, leaf.values), changes);
        // Retired after its last read: a node of this group may be handed out again at once.
        builder.retire_leaf(old, &leaf);
        self.carry.flush(builder, tiers.packed_bounds, &mut self.children)?;
        self.move_to_tier(builder, place, degree, 0)
    }

    /// Moves a list of `degree` arcs, whose nodes are `children` at `height`, to its tier.
    #[cold]
    pub(crate) fn move_to_tier(
        &mut self,
        builder: &mut NodeBuilder<'_>,
        mut place: ChangedBlock<'_, '_>,
        degree: usize,
        mut height: usize,
    ) -> Result<()> {
        let tiers = place.tiers;
        if degree <= tiers.in_place {
            self.gather(builder, height);
            let (body, values) = place.write::<W>(builder, degree, ListTier::Block)?;
            self.carry.drain(|targets, old_values| {
                body[..degree].copy_from_slice(targets);
                if W::WORDS > 0 {
                    values[..degree].copy_from_slice(old_values);
                }
            });
            return Ok(());
        }
        // A packed list with too many short leaves for its block is packed again.
        let is_too_sparse = height == 0 && degree <= tiers.packed && self.children.len() > tiers.layout.max_packed();
        // Half the border, so that a list near the border does not move with each change.
        if is_too_sparse || height > 0 && degree <= tiers.packed / 2 {
            self.gather(builder, height);
            self.carry.flush(builder, tiers.packed_bounds, &mut self.children)?;
            height = 0;
        }
        if height == 0 && degree <= tiers.packed && self.children.len() <= tiers.layout.max_packed() {
            let home = ListTier::Packed(self.children.len());
            let (body, _) = place.write::<W>(builder, degree, home)?;
            body[..2 * self.children.len()].copy_from_slice(bytemuck::cast_slice(&self.children));
            return Ok(());
        }
        // `ListTier::Tree` has a height of at least 1, so even a single leaf gets a parent.
        while height == 0 || self.children.len() > 1 {
            self.above.clear();
            wrap(builder, &self.children, &mut self.above)?;
            std::mem::swap(&mut self.above, &mut self.children);
            height += 1;
        }
        // A root with one child is needless.
        while height > 1
            && let (_, &[_]) = node::inner(builder.arena, self.children[0].handle)
        {
            let root = self.children.remove(0).handle;
            builder.open_inner(root, &mut self.children);
            height -= 1;
        }
        let (body, _) = place.write::<W>(builder, degree, ListTier::Tree(height))?;
        body[..2].copy_from_slice(bytemuck::cast_slice(&self.children[..1]));
        Ok(())
    }

    /// Opens inner nodes down to the leaves.
    pub(crate) fn open(&mut self, builder: &mut NodeBuilder<'_>, height: usize) {
        for _ in 0..height {
            self.above.clear();
            for child in &self.children {
                builder.open_inner(child.handle, &mut self.above);
            }
            std::mem::swap(&mut self.above, &mut self.children);
        }
    }

    /// Takes a list apart: its entries go to the carry, and its nodes are retired.
    pub(crate) fn gather(&mut self, builder: &mut NodeBuilder<'_>, height: usize) {
        self.open(builder, height);
        for child in self.children.drain(..) {
            let leaf = LeafNode::<W>::read(builder.arena, child.handle);
            self.carry.append(leaf.targets, leaf.values);
            builder.retire_leaf(child.handle, &leaf);
        }
    }
}

/// An inline list in vector lanes, padded with [`NO_VERTEX`], so that no step depends on the length.
struct InPlace([VertexId; Self::LEN]);

impl InPlace {
    const LEN: usize = LINE_WORDS;

    /// Position of a target, and whether the list contains it.
    #[inline(always)]
    fn find(&self, target: VertexId) -> (usize, bool) {
        let position = num_below(&self.0, target);
        (position, self.0[position % Self::LEN] == target)
    }

    #[inline(always)]
    fn insert(&mut self, position: usize, target: VertexId) {
        self.0 = insert_lane(&self.0, position, target);
    }

    #[inline(always)]
    fn remove(&mut self, position: usize) {
        self.0 = remove_lane(&self.0, position, NO_VERTEX);
    }
}

/// Applies changes without values to an inline list that has room for all of them.
#[inline(always)]
fn apply_within_block<W: EntryValue, C: Change<W>>(
    builder: &mut NodeBuilder<'_>,
    mut place: ChangedBlock<'_, '_>,
    (degree, mut list): (usize, InPlace),
    changes: &[C],
    outcome: &mut BatchEffect<'_, impl Sink<C>>,
) -> Result<()> {
    let (mut num_added, mut num_removed) = (0, 0);
    for (i, change) in changes.iter().enumerate() {
        let target = change.target();
        // Only the last of several changes of a target counts.
        if changes.get(i + 1).is_some_and(|next| next.target() == target) {
            continue;
        }
        // Adding an arc that is there, or removing one that is not, has no effect.
        let (position, is_there) = list.find(target);
        let is_addition = change.addition().is_some();
        if is_addition == is_there {
            continue;
        }
        if is_addition {
            list.insert(position, target);
            num_added += 1;
        } else {
            list.remove(position);
            num_removed += 1;
        }
        if change.source() == target {
            outcome.applied.num_loops += if is_addition { 1 } else { -1 };
        }
        outcome.sink.effective(change);
    }
    // Without an effect, the page is not copied.
    if num_added + num_removed > 0 {
        outcome.applied.num_added += num_added as u64;
        outcome.applied.num_removed += num_removed as u64;
        let degree = degree + num_added - num_removed;
        let (body, _) = place.write::<W>(builder, degree, ListTier::Block)?;
        let len = body.len().min(InPlace::LEN);
        body[..len].copy_from_slice(&list.0[..len]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_testkit::Random;
    use std::collections::BTreeSet;

    #[test]
    fn lists_in_place_are_those_of_a_set() {
        let seed = 0x11f;
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut model = BTreeSet::new();
        let mut list = InPlace([NO_VERTEX; InPlace::LEN]);
        for step in 0..20_000 {
            let target = random.below(24);
            let (position, is_there) = list.find(target);
            assert_eq!(is_there, model.contains(&target), "step {step}");
            match is_there {
                true => list.remove(position),
                false if model.len() < InPlace::LEN => list.insert(position, target),
                false => continue,
            }
            if !model.remove(&target) {
                model.insert(target);
            }
            assert!(list.0.iter().take(model.len()).eq(&model), "step {step}");
            assert!(list.0[model.len()..].iter().all(|&lane| lane == NO_VERTEX), "step {step}");
        }
    }
}
