//! Applies the changes of one vertex, and moves its list to the home that its new degree asks for.

use std::marker::PhantomData;

use base::simd::{insert_lane, num_below, remove_lane};
use base::{NO_VERTEX, VertexId};

use crate::arena::{Fresh, LINE_WORDS};
use crate::batch::Group;
use crate::builder::Builder;
use crate::change::{Applied, Change, Outcome, Sink, cut_between_edges};
use crate::crew::Crew;
use crate::merge::Parallel;
use crate::node::{self, Block, Child, Home, Layout, Leaf};
use crate::pieces::{Bounds, Carry, Work, cut_between_leaves, wrap};
use crate::{Result, Value};

/// Lists with more entries a change are not cut: most leaves stay as they are, so most inner nodes may.
const TOUCHED_LEAF: usize = 64;
/// A list with fewer leaves is cut between entries.
const LEAVES_OF_A_PART: usize = 4;

/// Which home a list has, by its degree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiers {
    pub(crate) layout: Layout,
    /// Whether a list may hold a target several times.
    pub(crate) multigraph: bool,
    /// The most neighbours in place.
    pub(crate) in_place: usize,
    /// Longer lists move to a B-tree; back again at half of it.
    pub(crate) packed: usize,
    pub(crate) packed_bounds: Bounds,
    pub(crate) tree_bounds: Bounds,
}

impl Tiers {
    /// For a list that is one piece.
    #[inline(always)]
    fn parallel(&self) -> Parallel {
        if self.multigraph { Parallel::Many { limit: None } } else { Parallel::One }
    }
}

/// A page that is being changed: it is copied at the first change that has an effect.
pub(crate) struct PageCopy<'a> {
    pub(crate) old: &'a [u32],
    pub(crate) fresh: Option<Fresh>,
}

impl PageCopy<'_> {
    #[inline(always)]
    fn words<'f, 'b: 'f>(&'f mut self, builder: &mut Builder<'b>) -> Result<&'f mut [u32]> {
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
pub(crate) struct Place<'p, 'a> {
    pub(crate) tiers: &'p Tiers,
    pub(crate) page: &'p mut PageCopy<'a>,
    pub(crate) index: usize,
}

impl Place<'_, '_> {
    /// Whether so many changes are better applied [with help](ListWork::apply_with).
    #[inline(always)]
    pub(crate) fn is_shared<W: Value>(&self, crew: &Crew<'_, W>, num_changes: usize) -> bool {
        let degree = || self.tiers.layout.block::<W>(self.page.old, self.index).degree();
        // Parts are cut between targets, and those of a multigraph's leaves need not differ.
        !self.tiers.multigraph && crew.num_parts(num_changes) > 1 && degree() / TOUCHED_LEAF <= num_changes
    }

    /// Writes degree and home; returns the body and the values beside it, to be written.
    #[inline(always)]
    fn write<'f, 'b: 'f, W: Value>(
        &'f mut self,
        builder: &mut Builder<'b>,
        degree: usize,
        home: Home,
    ) -> Result<(&'f mut [u32], &'f mut [W])> {
        let words = self.page.words(builder)?;
        Ok(self.tiers.layout.write_block::<W>(words, self.index, degree, home))
    }
}

/// One worker's room for applying changes.
#[derive(Debug)]
pub(crate) struct ListWork<W> {
    pub(crate) carry: Carry<W>,
    pub(crate) groups: Vec<Group>,
    children: Vec<Child>,
    above: Vec<Child>,
}

impl<W> Default for ListWork<W> {
    fn default() -> Self {
        Self { carry: Carry::default(), groups: Vec::new(), children: Vec::new(), above: Vec::new() }
    }
}

impl<W: Value> ListWork<W> {
    /// Applies `changes`, which are sorted, to the list of a vertex.
    #[inline]
    pub(crate) fn apply<C: Change<W>, S: Sink<C>>(
        &mut self,
        builder: &mut Builder<'_>,
        place: Place<'_, '_>,
        changes: &[C],
        outcome: &mut Outcome<'_, S>,
    ) -> Result<()> {
        let tiers = place.tiers;
        let block = tiers.layout.block::<W>(place.page.old, place.index);
        match block.home() {
            Home::Block => self.apply_in_place(builder, place, &block, changes, outcome),
            Home::Packed(1) => self.apply_to_one(builder, place, &block, changes, outcome),
            home => {
                let degree = block.degree();
                self.children.clear();
                let (height, children) = match home {
                    Home::Tree(height) => (height, block.children(1)),
                    Home::Packed(len) => (0, block.children(len)),
                    Home::Block => (0, block.children(0)),
                };
                let bounds = if height > 0 { tiers.tree_bounds } else { tiers.packed_bounds };
                let mut own = Applied::default();
                let carry = &mut self.carry;
                let own_outcome = Outcome { applied: &mut own, sink: &mut *outcome.sink };
                Work {
                    builder,
                    carry,
                    bounds,
                    multigraph: tiers.multigraph,
                    outcome: own_outcome,
                    marker: PhantomData,
                }
                .apply(height, children, changes, &mut self.children)?;
                outcome.applied.join(own);
                if own == Applied::default() {
                    return Ok(());
                }
                let degree = degree + own.num_added as usize - own.num_removed as usize;
                self.settle(builder, place, degree, height)
            }
        }
    }

    /// The same for very many changes, with help: the list is cut between its leaves or, where it has few of them,
    /// between its entries.
    #[cold]
    pub(crate) fn apply_with<C: Change<W>, S: Sink<C>>(
        &mut self,
        crew: &Crew<'_, W>,
        builder: &mut Builder<'_>,
        place: Place<'_, '_>,
        changes: &[C],
    ) -> Result<(Applied, S)> {
        let tiers = place.tiers;
        let block = tiers.layout.block::<W>(place.page.old, place.index);
        let degree = block.degree();
        self.children.clear();
        match block.home() {
            Home::Block => {
                let (targets, values) = block.in_place();
                self.carry.append(targets, values);
            }
            Home::Packed(len) => self.children.extend_from_slice(block.children(len)),
            Home::Tree(height) => {
                self.children.extend_from_slice(block.children(1));
                self.open(builder, height);
            }
        }
        let num_parts = crew.num_parts(changes.len());
        let bounds = tiers.tree_bounds;
        let parts = if self.children.len() >= num_parts * LEAVES_OF_A_PART {
            let parts = cut_between_leaves(&self.children, changes, num_parts);
            crew.share(builder, parts, |builder, carry, (leaves, changes)| {
                let mut part = Part::default();
                let outcome = Outcome { applied: &mut part.applied, sink: &mut part.sink };
                Work { builder, carry, bounds, multigraph: false, outcome, marker: PhantomData }.apply(
                    0,
                    leaves,
                    changes,
                    &mut part.leaves,
                )?;
                Ok(part)
            })
        } else {
            self.gather(builder, 0);
            self.carry.drain(|targets, values| {
                let parts = cut_between_entries((targets, values), changes, num_parts);
                crew.share(builder, parts, |builder, carry, (entries, changes)| {
                    let mut part = Part::default();
                    let mut outcome = Outcome { applied: &mut part.applied, sink: &mut part.sink };
                    carry.plan.make(entries, changes, Parallel::One, &mut outcome);
                    carry.append_planned(entries, changes);
                    carry.flush(builder, bounds, &mut part.leaves)?;
                    Ok(part)
                })
            })
        }?;
        self.children.clear();
        let (mut all_applied, mut all_effects) = (Applied::default(), S::default());
        for Part { leaves, applied, sink } in parts {
            self.carry.append_part(builder, bounds, &leaves, &mut self.children)?;
            all_applied.join(applied);
            all_effects.absorb(sink);
        }
        self.carry.finish(builder, bounds, &mut self.children)?;
        let degree = degree + all_applied.num_added as usize - all_applied.num_removed as usize;
        if degree <= tiers.packed {
            self.gather(builder, 0);
            self.carry.flush(builder, tiers.packed_bounds, &mut self.children)?;
        }
        self.settle(builder, place, degree, 0)?;
        Ok((all_applied, all_effects))
    }

    #[inline(always)]
    fn apply_in_place<C: Change<W>>(
        &mut self,
        builder: &mut Builder<'_>,
        mut place: Place<'_, '_>,
        block: &Block<'_, W>,
        changes: &[C],
        outcome: &mut Outcome<'_, impl Sink<C>>,
    ) -> Result<()> {
        let tiers = place.tiers;
        let (targets, values) = block.in_place();
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
        if degree <= tiers.in_place {
            let new = place.write::<W>(builder, degree, Home::Block)?;
            self.carry.plan.write((targets, values), changes, new);
            return Ok(());
        }
        self.children.clear();
        self.carry.append_planned((targets, values), changes);
        self.carry.flush(builder, tiers.packed_bounds, &mut self.children)?;
        self.settle(builder, place, degree, 0)
    }

    /// The list is one leaf, and most often stays one.
    #[inline(always)]
    fn apply_to_one<C: Change<W>>(
        &mut self,
        builder: &mut Builder<'_>,
        mut place: Place<'_, '_>,
        block: &Block<'_, W>,
        changes: &[C],
        outcome: &mut Outcome<'_, impl Sink<C>>,
    ) -> Result<()> {
        let tiers = place.tiers;
        let old = block.children(1)[0].handle;
        let leaf = Leaf::<W>::read(builder.arena, old);
        let plan = &mut self.carry.plan;
        plan.make((leaf.targets, leaf.values), changes, tiers.parallel(), outcome);
        if plan.is_empty() {
            return Ok(());
        }
        let degree = plan.len_after(leaf.targets.len());
        if degree > tiers.in_place && degree <= tiers.packed_bounds.max.min(tiers.packed) {
            let handle = builder
                .leaf(degree, |targets, values| plan.write((leaf.targets, leaf.values), changes, (targets, values)))?;
            builder.retire_leaf(old, &leaf);
            let (body, _) = place.write::<W>(builder, degree, Home::Packed(1))?;
            body[..2].copy_from_slice(&[0, handle]);
            return Ok(());
        }
        self.children.clear();
        self.carry.append_planned((leaf.targets, leaf.values), changes);
        builder.retire_leaf(old, &leaf);
        self.carry.flush(builder, tiers.packed_bounds, &mut self.children)?;
        self.settle(builder, place, degree, 0)
    }

    /// Gives a list of this degree, whose pieces are the nodes in `children` at `height`, its home.
    #[cold]
    fn settle(
        &mut self,
        builder: &mut Builder<'_>,
        mut place: Place<'_, '_>,
        degree: usize,
        mut height: usize,
    ) -> Result<()> {
        let tiers = place.tiers;
        if degree <= tiers.in_place {
            self.gather(builder, height);
            let (body, values) = place.write::<W>(builder, degree, Home::Block)?;
            self.carry.drain(|targets, old_values| {
                body[..degree].copy_from_slice(targets);
                if W::WORDS > 0 {
                    values[..degree].copy_from_slice(old_values);
                }
            });
            return Ok(());
        }
        let is_too_sparse = height == 0 && degree <= tiers.packed && self.children.len() > tiers.layout.max_packed();
        if is_too_sparse || height > 0 && degree <= tiers.packed / 2 {
            self.gather(builder, height);
            self.carry.flush(builder, tiers.packed_bounds, &mut self.children)?;
            height = 0;
        }
        if height == 0 && degree <= tiers.packed && self.children.len() <= tiers.layout.max_packed() {
            let home = Home::Packed(self.children.len());
            let (body, _) = place.write::<W>(builder, degree, home)?;
            body[..2 * self.children.len()].copy_from_slice(bytemuck::cast_slice(&self.children));
            return Ok(());
        }
        while height == 0 || self.children.len() > 1 {
            self.above.clear();
            wrap(builder, &self.children, &mut self.above)?;
            std::mem::swap(&mut self.above, &mut self.children);
            height += 1;
        }
        while height > 1
            && let (_, &[_]) = node::inner(builder.arena, self.children[0].handle)
        {
            let root = self.children.remove(0).handle;
            builder.open_inner(root, &mut self.children);
            height -= 1;
        }
        let (body, _) = place.write::<W>(builder, degree, Home::Tree(height))?;
        body[..2].copy_from_slice(bytemuck::cast_slice(&self.children[..1]));
        Ok(())
    }

    /// Takes inner nodes apart: leaves are left.
    fn open(&mut self, builder: &mut Builder<'_>, height: usize) {
        for _ in 0..height {
            self.above.clear();
            for child in &self.children {
                builder.open_inner(child.handle, &mut self.above);
            }
            std::mem::swap(&mut self.above, &mut self.children);
        }
    }

    /// Takes a list apart: its entries go to the carry, its nodes are retired.
    fn gather(&mut self, builder: &mut Builder<'_>, height: usize) {
        self.open(builder, height);
        for child in self.children.drain(..) {
            let leaf = Leaf::<W>::read(builder.arena, child.handle);
            self.carry.append(leaf.targets, leaf.values);
            builder.retire_leaf(child.handle, &leaf);
        }
    }
}

/// What a part of a long list became.
struct Part<S> {
    leaves: Vec<Child>,
    applied: Applied,
    sink: S,
}

impl<S: Default> Default for Part<S> {
    fn default() -> Self {
        Self { leaves: Vec::new(), applied: Applied::default(), sink: S::default() }
    }
}

/// Targets, and what stands beside them.
type Entries<'a, W> = (&'a [VertexId], &'a [W]);

/// Cuts a list, and the changes that belong to its parts, so that each part has about as many changes.
fn cut_between_entries<'c, W: Value, C: Change<W>>(
    (mut targets, mut values): Entries<'c, W>,
    changes: &'c [C],
    num_parts: usize,
) -> Vec<(Entries<'c, W>, &'c [C])> {
    let changes = cut_between_edges(changes, num_parts);
    let next_changes = changes.iter().skip(1).map(|next| next[0].target());
    let ends: Vec<_> = next_changes.map(Some).chain([None]).collect();
    let cut = changes.into_iter().zip(ends).map(|(changes, end)| {
        let end = end.map_or(targets.len(), |end| targets.partition_point(|&target| target < end));
        let (own_targets, rest_of_targets) = targets.split_at(end);
        // There are none where they take no words.
        let (own_values, rest_of_values) = values.split_at(end.min(values.len()));
        (targets, values) = (rest_of_targets, rest_of_values);
        ((own_targets, own_values), changes)
    });
    cut.collect()
}

/// Neighbours in place, as many as there are lanes, so that no step depends on how many there are: behind the last
/// stand numbers that no vertex has.
struct InPlace([VertexId; Self::LEN]);

impl InPlace {
    const LEN: usize = LINE_WORDS;

    /// Where a target stands or would stand, and whether it does.
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

/// Applies changes, without values, to a list in a block that has room for all of them.
#[inline(always)]
fn apply_within_block<W: Value, C: Change<W>>(
    builder: &mut Builder<'_>,
    mut place: Place<'_, '_>,
    (degree, mut list): (usize, InPlace),
    changes: &[C],
    outcome: &mut Outcome<'_, impl Sink<C>>,
) -> Result<()> {
    let (mut num_added, mut num_removed) = (0, 0);
    for (i, change) in changes.iter().enumerate() {
        let target = change.target();
        if changes.get(i + 1).is_some_and(|next| next.target() == target) {
            continue;
        }
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
    if num_added + num_removed > 0 {
        outcome.applied.num_added += num_added as u64;
        outcome.applied.num_removed += num_removed as u64;
        let degree = degree + num_added - num_removed;
        let (body, _) = place.write::<W>(builder, degree, Home::Block)?;
        let len = body.len().min(InPlace::LEN);
        body[..len].copy_from_slice(&list.0[..len]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use testkit::Random;

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
