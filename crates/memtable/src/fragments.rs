//! Fragments of a list that is not inline: leaves, and the B-tree over them.
//!
//! A changed leaf is rewritten. A leaf above the upper bound is cut into even parts. A leaf below the lower bound is
//! joined with its neighbor, and both are cut evenly if they exceed one leaf. Inner nodes follow this rule with their
//! children.

use anden_base::VertexId;

use crate::builder::NodeBuilder;
use crate::change::{BatchEffect, Change, Sink};
use crate::merge::{FragmentMergePlan, Parallel};
use crate::node::{self, Child, LeafNode, MAX_CHILDREN};
use crate::{EntryValue, Result};

/// An inner node with fewer children is joined with its neighbor.
pub(crate) const MIN_CHILDREN: usize = MAX_CHILDREN / 4;
/// Parts are cut to this share of the upper bound, which leaves room for growth.
const FILL: (usize, usize) = (7, 8);

/// Bounds of the length of leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Shorter leaves are joined with a neighbor.
    pub(crate) min: usize,
    /// Longer leaves are cut.
    pub(crate) max: usize,
}

impl Bounds {
    /// Leaves of at most `max` entries, and at least a quarter of that.
    pub(crate) fn up_to(max: usize) -> Self {
        Self { min: max / 4, max }
    }
}

/// Entries that wait for a leaf, and scratch space.
#[derive(Debug)]
pub(crate) struct Carry<W> {
    pub(crate) plan: FragmentMergePlan,
    targets: Vec<VertexId>,
    values: Vec<W>,
    /// Children by height, empty between lists.
    levels: Vec<Vec<Child>>,
}

impl<W> Default for Carry<W> {
    fn default() -> Self {
        Self { plan: FragmentMergePlan::default(), targets: Vec::new(), values: Vec::new(), levels: Vec::new() }
    }
}

impl<W: EntryValue> Carry<W> {
    pub(crate) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Appends a fragment with its planned changes.
    pub(crate) fn append_planned<C: Change<W>>(&mut self, fragment: (&[VertexId], &[W]), changes: &[C]) {
        let start = self.targets.len();
        let end = start + self.plan.len_after(fragment.0.len());
        self.targets.resize(end, 0);
        if W::WORDS > 0 {
            self.values.resize(end, W::zeroed());
        }
        let new_values = if W::WORDS > 0 { &mut self.values[start..] } else { &mut [] };
        self.plan.write(fragment, changes, (&mut self.targets[start..], new_values));
    }

    pub(crate) fn append(&mut self, targets: &[VertexId], values: &[W]) {
        self.targets.extend_from_slice(targets);
        if W::WORDS > 0 {
            self.values.extend_from_slice(values);
        }
    }

    fn prepend(&mut self, targets: &[VertexId], values: &[W]) {
        self.targets.splice(0..0, targets.iter().copied());
        if W::WORDS > 0 {
            self.values.splice(0..0, values.iter().copied());
        }
    }

    /// Moves all entries to leaves of even length.
    pub(crate) fn flush(&mut self, builder: &mut NodeBuilder<'_>, bounds: Bounds, out: &mut Vec<Child>) -> Result<()> {
        for range in even_parts(self.targets.len(), bounds.max) {
            let targets = &self.targets[range.clone()];
            let handle = builder.leaf(targets.len(), |new_targets, new_values: &mut [W]| {
                new_targets.copy_from_slice(targets);
                if W::WORDS > 0 {
                    new_values.copy_from_slice(&self.values[range.clone()]);
                }
            })?;
            out.push(Child { first: targets[0], handle });
        }
        self.targets.clear();
        self.values.clear();
        Ok(())
    }

    /// Ends a list: entries that are too few for a leaf join the last leaf of `out`.
    pub(crate) fn finish(&mut self, builder: &mut NodeBuilder<'_>, bounds: Bounds, out: &mut Vec<Child>) -> Result<()> {
        if !self.is_empty()
            && let Some(last) = out.pop()
        {
            // The last leaf of `out` precedes these entries, so its own entries go in front.
            let leaf = LeafNode::<W>::read(builder.arena, last.handle);
            self.prepend(leaf.targets, leaf.values);
            builder.retire_leaf(last.handle, &leaf);
        }
        self.flush(builder, bounds, out)
    }

    /// Appends the leaves that a part of a list became. If one leaf alone is too short, its entries join the next.
    pub(crate) fn append_part(
        &mut self,
        builder: &mut NodeBuilder<'_>,
        bounds: Bounds,
        part: &[Child],
        out: &mut Vec<Child>,
    ) -> Result<()> {
        for (i, &child) in part.iter().enumerate() {
            let leaf = LeafNode::<W>::read(builder.arena, child.handle);
            // Several leaves all reach `min`; only a single leaf may be shorter.
            if self.is_empty() && (part.len() > 1 || leaf.targets.len() >= bounds.min) {
                out.extend_from_slice(&part[i..]);
                break;
            }
            self.append(leaf.targets, leaf.values);
            builder.retire_leaf(child.handle, &leaf);
            if self.targets.len() >= bounds.min {
                self.flush(builder, bounds, out)?;
            }
        }
        Ok(())
    }

    /// Passes all entries to `write` and removes them.
    pub(crate) fn drain<R>(&mut self, write: impl FnOnce(&[VertexId], &[W]) -> R) -> R {
        let written = write(&self.targets, &self.values);
        self.targets.clear();
        self.values.clear();
        written
    }
}

/// Cuts leaves and their changes into parts with similar numbers of changes.
pub(crate) fn cut_between_leaves<'c, W, C: Change<W>>(
    mut leaves: &'c [Child],
    mut changes: &'c [C],
    num_parts: usize,
) -> Vec<(&'c [Child], &'c [C])> {
    let len = changes.len().div_ceil(num_parts);
    let mut parts = Vec::with_capacity(num_parts);
    while let Some(change) = changes.get(len) {
        // Leaf in which the next part begins.
        // At least one leaf goes to each part, so that the loop advances.
        let next = leaves.partition_point(|leaf| leaf.first <= change.target()).saturating_sub(1).max(1);
        let (own, rest) = split_changes(leaves.get(next).map(|leaf| leaf.first), changes, false);
        let (own_leaves, other_leaves) = leaves.split_at(next.min(leaves.len()));
        parts.push((own_leaves, own));
        (leaves, changes) = (other_leaves, rest);
    }
    if !leaves.is_empty() {
        parts.push((leaves, changes));
    }
    parts
}

/// Cuts `len` into even parts: one if `len` is at most `max`, else parts with room for growth.
fn even_parts(len: usize, max: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    // A list that fits in one leaf stays there: room for growth would cost a second leaf.
    let num_parts = if len <= max { 1 } else { len.div_ceil((max * FILL.0 / FILL.1).max(1)) };
    // No part is empty.
    let num_parts = num_parts.min(len);
    (0..num_parts).map(move |i| len * i / num_parts..len * (i + 1) / num_parts)
}

/// Applies the changes of one list to its fragments.
pub(crate) struct FragmentUpdater<'b, 'a, W, C, S> {
    pub(crate) builder: &'b mut NodeBuilder<'a>,
    pub(crate) carry: &'b mut Carry<W>,
    pub(crate) bounds: Bounds,
    /// Whether arcs with equal targets are allowed, also across leaves.
    pub(crate) multigraph: bool,
    pub(crate) outcome: BatchEffect<'b, S>,
    pub(crate) marker: std::marker::PhantomData<C>,
}

/// Splits changes at a child whose first target is `next`. In a multigraph, arcs to `next` may also stand before that
/// child. If changes remove them, all changes of `next` belong to both parts.
fn split_changes<W, C: Change<W>>(next: Option<VertexId>, changes: &[C], multigraph: bool) -> (&[C], &[C]) {
    let Some(next) = next else { return (changes, &[]) };
    let end = changes.partition_point(|change| change.target() < next);
    let (own, rest) = changes.split_at(end);
    // In a simple graph, a target stands in one leaf only, so the border is exact.
    if multigraph {
        let group = rest.iter().take_while(|change| change.target() == next);
        if group.clone().any(|change| change.addition().is_none()) {
            return (&changes[..end + group.count()], rest);
        }
    }
    (own, rest)
}

impl<W: EntryValue, C: Change<W>, S: Sink<C>> FragmentUpdater<'_, '_, W, C, S> {
    /// Applies changes to `children`, nodes at `height` above the leaves, and appends the results to `out`.
    pub(crate) fn apply(
        &mut self,
        height: usize,
        children: &[Child],
        changes: &[C],
        out: &mut Vec<Child>,
    ) -> Result<()> {
        let mut levels = std::mem::take(&mut self.carry.levels);
        // The vectors keep their memory from list to list.
        levels.resize_with(levels.len().max(height + 1), Vec::new);
        std::mem::swap(&mut levels[height], out);
        self.visit(children, changes, None, &mut levels[..=height])?;
        self.finish(&mut levels[..=height])?;
        std::mem::swap(&mut levels[height], out);
        self.carry.levels = levels;
        Ok(())
    }

    /// Applies changes to `children` and appends the results to the last of `levels`, which start at the leaves.
    /// Nodes that are too few for a parent stay on their level, and too few entries stay in the carry. The next
    /// parent takes both. `limit` is the first target behind the children.
    fn visit(
        &mut self,
        children: &[Child],
        mut changes: &[C],
        limit: Option<VertexId>,
        levels: &mut [Vec<Child>],
    ) -> Result<()> {
        let Some((own_level, below)) = levels.split_last_mut() else { return Ok(()) };
        if below.is_empty() {
            return self.visit_leaves(children, changes, limit, own_level);
        }
        let lowest = below.len() - 1;
        for (i, &child) in children.iter().enumerate() {
            let next = children.get(i + 1).map(|next| next.first).or(limit);
            let (own, rest) = split_changes(next, changes, self.multigraph);
            changes = rest;
            // A rest from the child before must be joined, so it opens even a child without changes.
            let was_clean = self.carry.is_empty() && below.iter().all(Vec::is_empty);
            // An unchanged child is kept whole, so that versions share it.
            if own.is_empty() && was_clean {
                own_level.push(child);
                continue;
            }
            let (birth, grandchildren) = node::inner(self.builder.arena, child.handle);
            self.visit(grandchildren, own, next, below)?;
            // The new node would equal the old one.
            if was_clean && below[lowest] == grandchildren {
                own_level.push(child);
                below[lowest].clear();
                continue;
            }
            self.builder.retire(child.handle, birth, node::inner_words(grandchildren.len()));
            // Nodes that are too few for a parent wait for the next parent.
            let is_whole = self.carry.is_empty() && below[..lowest].iter().all(Vec::is_empty);
            if is_whole && below[lowest].len() >= MIN_CHILDREN {
                wrap(self.builder, &below[lowest], own_level)?;
                below[lowest].clear();
            }
        }
        Ok(())
    }

    /// Joins nodes and entries that remain on the lower levels with the neighbors before them.
    fn finish(&mut self, levels: &mut [Vec<Child>]) -> Result<()> {
        if !self.carry.is_empty() {
            self.reopen(levels);
            self.carry.finish(self.builder, self.bounds, &mut levels[0])?;
        }
        for height in 1..levels.len() {
            let (below, own_level) = levels.split_at_mut(height);
            let left = &mut below[height - 1];
            if (1..MIN_CHILDREN).contains(&left.len()) {
                self.reopen(own_level);
                // The children of the last node precede those that remain, so a rotation puts them in front.
                if let Some(last) = own_level[0].pop() {
                    let len = left.len();
                    self.builder.open_inner(last.handle, left);
                    left.rotate_left(len);
                }
            }
            wrap(self.builder, left, &mut own_level[0])?;
            left.clear();
        }
        Ok(())
    }

    /// If the first level is empty, opens the last node of the next level into it.
    fn reopen(&mut self, levels: &mut [Vec<Child>]) {
        if let [level, above @ ..] = levels
            && level.is_empty()
            && !above.is_empty()
        {
            // The level above may be empty as well, so the opening starts at the top.
            self.reopen(above);
            if let Some(last) = above[0].pop() {
                self.builder.open_inner(last.handle, level);
            }
        }
    }

    fn visit_leaves(
        &mut self,
        children: &[Child],
        mut changes: &[C],
        limit: Option<VertexId>,
        out: &mut Vec<Child>,
    ) -> Result<()> {
        for (i, &child) in children.iter().enumerate() {
            let next = children.get(i + 1).map(|next| next.first).or(limit);
            let (own, rest) = split_changes(next, changes, self.multigraph);
            changes = rest;
            // An unchanged leaf is kept, so that versions share it.
            if own.is_empty() && self.carry.is_empty() {
                out.push(child);
                continue;
            }
            let leaf = LeafNode::<W>::read(self.builder.arena, child.handle);
            // The next leaf may start with the same target, so additions from `limit` on go there.
            let parallel = if self.multigraph { Parallel::Many { limit: next } } else { Parallel::One };
            self.carry.plan.make((leaf.targets, leaf.values), own, parallel, &mut self.outcome);
            // No change has an effect, so versions share the leaf.
            if self.carry.plan.is_empty() && self.carry.is_empty() {
                out.push(child);
                continue;
            }
            let len = self.carry.plan.len_after(leaf.targets.len());
            // A leaf that stays within the bounds is written at once, without a copy in the carry.
            if self.carry.is_empty() && (self.bounds.min..=self.bounds.max).contains(&len) {
                let mut first = child.first;
                let plan = &self.carry.plan;
                let handle = self.builder.leaf(len, |targets, values| {
                    plan.write((leaf.targets, leaf.values), own, (targets, values));
                    first = first.min(targets[0]);
                })?;
                self.builder.retire_leaf(child.handle, &leaf);
                out.push(Child { first, handle });
                continue;
            }
            self.carry.append_planned((leaf.targets, leaf.values), own);
            self.builder.retire_leaf(child.handle, &leaf);
            if self.carry.targets.len() >= self.bounds.min {
                self.carry.flush(self.builder, self.bounds, out)?;
            }
        }
        if out.is_empty() { Ok(()) } else { self.carry.finish(self.builder, self.bounds, out) }
    }
}

/// Makes inner nodes over `children`; none without children.
pub(crate) fn wrap(builder: &mut NodeBuilder<'_>, children: &[Child], out: &mut Vec<Child>) -> Result<()> {
    for range in even_parts(children.len(), MAX_CHILDREN) {
        out.push(builder.inner(&children[range])?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Removal;
    use anden_testkit::Random;

    #[test]
    fn leaves_are_cut_with_their_changes() {
        let seed = 0x1ea5;
        println!("seed {seed}");
        let mut random = Random::new(seed);
        for round in 0..500 {
            let mut firsts: Vec<u32> = (0..1 + random.below(40)).map(|_| random.below(1000)).collect();
            firsts.sort_unstable();
            firsts.dedup();
            let leaves: Vec<Child> = firsts.iter().map(|&first| Child { first, handle: first }).collect();
            let mut changes: Vec<Removal> =
                (0..random.below(200)).map(|_| Removal { source: 5, target: random.below(1000) }).collect();
            changes.sort_by_key(|change| change.target);
            let parts = cut_between_leaves::<(), _>(&leaves, &changes, 1 + round % 9);
            let all: (Vec<&[Child]>, Vec<&[Removal]>) = parts.iter().copied().unzip();
            assert_eq!(bytemuck::cast_slice::<_, u32>(&all.0.concat()), bytemuck::cast_slice::<_, u32>(&leaves));
            assert_eq!(all.1.concat(), changes);
            for pair in parts.windows(2) {
                let first = pair[1].0[0].first;
                assert!(pair[0].1.iter().all(|change| change.target < first), "round {round}");
                assert!(pair[1].1.iter().all(|change| change.target >= first), "round {round}");
                assert!(!pair[0].0.is_empty());
            }
        }
    }

    #[test]
    fn parts_are_even_and_cover_all() {
        for len in 0..500 {
            let parts: Vec<_> = even_parts(len, 60).collect();
            assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), len);
            assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= 60), "{len}: {parts:?}");
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(len <= 60 || parts.iter().all(|part| part.len() >= 15), "{len}: {parts:?}");
        }
    }
}
