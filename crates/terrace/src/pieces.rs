//! The pieces of a list that is not in its block: leaves, and the B-tree over them.
//!
//! A leaf is rewritten when it changes. Its density has two bounds: above the upper one it is cut in
//! even parts, below the lower one it is joined with its neighbour, and the two are cut evenly where
//! they are too long for one. The inner nodes keep the same rule with their children.

use base::VertexId;

use crate::builder::Builder;
use crate::change::{Change, Outcome, Sink};
use crate::merge::Plan;
use crate::node::{self, Child, Leaf, MAX_CHILDREN};
use crate::{Result, Value};

/// An inner node with fewer children is joined with its neighbour.
const MIN_CHILDREN: usize = MAX_CHILDREN / 4;
/// The share of the upper bound that parts are cut to.
const FILL: (usize, usize) = (7, 8);

/// How long leaves are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Shorter ones are joined with a neighbour.
    pub(crate) min: usize,
    /// Longer ones are cut.
    pub(crate) max: usize,
}

impl Bounds {
    /// Leaves of at most `max` entries.
    pub(crate) fn up_to(max: usize) -> Self {
        Self { min: max / 4, max }
    }
}

/// Entries that are on their way into leaves, and room for the work.
#[derive(Debug)]
pub(crate) struct Carry<W> {
    pub(crate) plan: Plan,
    targets: Vec<VertexId>,
    values: Vec<W>,
}

impl<W> Default for Carry<W> {
    fn default() -> Self {
        Self { plan: Plan::default(), targets: Vec::new(), values: Vec::new() }
    }
}

impl<W: Value> Carry<W> {
    pub(crate) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Appends what the plan makes of a piece.
    pub(crate) fn append_planned<C: Change<W>>(&mut self, piece: (&[VertexId], &[W]), changes: &[C]) {
        let start = self.targets.len();
        let end = start + self.plan.len_after(piece.0.len());
        self.targets.resize(end, 0);
        if W::WORDS > 0 {
            self.values.resize(end, W::zeroed());
        }
        let new_values = if W::WORDS > 0 { &mut self.values[start..] } else { &mut [] };
        self.plan.write(piece, changes, (&mut self.targets[start..], new_values));
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
    pub(crate) fn flush(&mut self, builder: &mut Builder<'_>, bounds: Bounds, out: &mut Vec<Child>) -> Result<()> {
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

    /// Takes all entries; `write` puts them where they belong.
    pub(crate) fn drain(&mut self, write: impl FnOnce(&[VertexId], &[W])) {
        write(&self.targets, &self.values);
        self.targets.clear();
        self.values.clear();
    }
}

/// Cuts `len` in parts of even length: one if that is at most `max`, else with room to grow.
fn even_parts(len: usize, max: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let num_parts = if len <= max { 1 } else { len.div_ceil((max * FILL.0 / FILL.1).max(1)) };
    let num_parts = num_parts.min(len);
    (0..num_parts).map(move |i| len * i / num_parts..len * (i + 1) / num_parts)
}

/// Applies the changes of one list to its pieces.
pub(crate) struct Work<'b, 'a, W, C, S> {
    pub(crate) builder: &'b mut Builder<'a>,
    pub(crate) carry: &'b mut Carry<W>,
    pub(crate) bounds: Bounds,
    pub(crate) outcome: Outcome<'b, S>,
    pub(crate) marker: std::marker::PhantomData<C>,
}

/// The changes that belong before child `next` of `children`.
fn split_changes<'c, W, C: Change<W>>(children: &[Child], next: usize, changes: &'c [C]) -> (&'c [C], &'c [C]) {
    match children.get(next) {
        Some(child) => changes.split_at(changes.partition_point(|change| change.target() < child.first)),
        None => (changes, &[]),
    }
}

impl<W: Value, C: Change<W>, S: Sink<C>> Work<'_, '_, W, C, S> {
    /// Appends to `out` what becomes of `children`, nodes at `height` above the leaves.
    pub(crate) fn apply(
        &mut self,
        height: usize,
        children: &[Child],
        changes: &[C],
        out: &mut Vec<Child>,
    ) -> Result<()> {
        if height == 0 {
            self.apply_to_leaves(children, changes, out)
        } else {
            self.descend(height, children, changes, out)
        }
    }

    fn apply_to_leaves(&mut self, children: &[Child], mut changes: &[C], out: &mut Vec<Child>) -> Result<()> {
        for (i, &child) in children.iter().enumerate() {
            let (own, rest) = split_changes(children, i + 1, changes);
            changes = rest;
            if own.is_empty() && self.carry.is_empty() {
                out.push(child);
                continue;
            }
            let leaf = Leaf::<W>::read(self.builder.arena, child.handle);
            self.carry.plan.make(leaf.targets, leaf.values, own, &mut self.outcome);
            if self.carry.plan.is_empty() && self.carry.is_empty() {
                out.push(child);
                continue;
            }
            let len = self.carry.plan.len_after(leaf.targets.len());
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
        self.finish_leaves(out)
    }

    /// What is left in the carry is too short for a leaf: the last one takes it.
    fn finish_leaves(&mut self, out: &mut Vec<Child>) -> Result<()> {
        if !self.carry.is_empty()
            && let Some(last) = out.pop()
        {
            let leaf = Leaf::<W>::read(self.builder.arena, last.handle);
            self.carry.prepend(leaf.targets, leaf.values);
            self.builder.retire_leaf(last.handle, &leaf);
        }
        self.carry.flush(self.builder, self.bounds, out)
    }

    fn descend(&mut self, height: usize, children: &[Child], mut changes: &[C], out: &mut Vec<Child>) -> Result<()> {
        let mut below: Vec<Child> = Vec::new();
        for (i, &child) in children.iter().enumerate() {
            let (own, rest) = split_changes(children, i + 1, changes);
            changes = rest;
            if own.is_empty() && below.is_empty() {
                out.push(child);
                continue;
            }
            let (birth, grandchildren) = node::inner(self.builder.arena, child.handle);
            let start = below.len();
            self.apply(height - 1, grandchildren, own, &mut below)?;
            let is_same = start == 0
                && below.len() == grandchildren.len()
                && below.iter().zip(grandchildren).all(|(a, b)| (a.handle, a.first) == (b.handle, b.first));
            if is_same {
                out.push(child);
                below.clear();
                continue;
            }
            self.builder.retire(child.handle, birth, node::inner_words(grandchildren.len()));
            if below.len() >= MIN_CHILDREN {
                wrap(self.builder, &below, out)?;
                below.clear();
            }
        }
        if !below.is_empty()
            && let Some(last) = out.pop()
        {
            let len = below.len();
            self.builder.open_inner(last.handle, &mut below);
            below.rotate_left(len);
        }
        wrap(self.builder, &below, out)
    }
}

/// Makes the inner nodes over `children`, if there are any.
pub(crate) fn wrap(builder: &mut Builder<'_>, children: &[Child], out: &mut Vec<Child>) -> Result<()> {
    for range in even_parts(children.len(), MAX_CHILDREN) {
        out.push(builder.inner(&children[range])?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
