//! Changes of lists in memory: what levels hold, added up over levels and applied to lists.
//!
//! A list is a multiset of (target, weight), and a level adds some and removes some. Adding levels
//! up is therefore a sum with signs, in which the order does not matter: what one level adds and
//! another removes is gone. Weights travel as bits, so that one code serves all types.

mod apply;
mod compose;
mod join;

pub(crate) use apply::apply;
pub(crate) use compose::{ComposeScratch, compose};
pub(crate) use join::{UnweightedPart, join};

use base::VertexId;

use crate::table::{PAGE_VERTICES, page_of, place_in_page};

/// An arc that a level adds to or removes from a list; arcs are ordered as their lists are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangedArc {
    /// Whose list it is in.
    pub list: VertexId,
    /// Where it leads (of an in-list: where it comes from).
    pub neighbour: VertexId,
    /// The bits of its weight, zeros above; 0 where the graph has no weights.
    pub weight: u64,
}

/// What changed in the lists of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageChanges {
    /// Who has changes, ascending.
    vertices: Vec<VertexChanges>,
    /// What was added to the first, what was removed from it, what was added to the next…
    targets: Vec<VertexId>,
    /// Parallel to the targets, or empty in a graph without weights.
    weights: Vec<u64>,
}

/// How many changes a vertex has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VertexChanges {
    local: u16,
    num_added: u32,
    num_removed: u32,
}

/// What changed in one list: ascending targets, equal ones by the bits of their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangedList<'a> {
    /// The place of the list's vertex in its page.
    pub local: u16,
    /// What is there now and was not.
    pub added: &'a [VertexId],
    /// Parallel to it; empty in a graph without weights.
    pub added_weights: &'a [u64],
    /// What is there no more.
    pub removed: &'a [VertexId],
    /// Parallel to it; empty in a graph without weights.
    pub removed_weights: &'a [u64],
}

impl PageChanges {
    /// Forgets all changes; keeps the memory.
    pub fn clear(&mut self) {
        self.vertices.clear();
        self.targets.clear();
        self.weights.clear();
    }

    /// The bytes that it has room in.
    pub fn num_bytes(&self) -> usize {
        let Self { vertices, targets, weights } = self;
        vertices.capacity() * size_of::<VertexChanges>()
            + targets.capacity() * size_of::<VertexId>()
            + weights.capacity() * size_of::<u64>()
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    /// How many entries are added, and how many removed.
    pub fn num_changes(&self) -> (usize, usize) {
        let sum = |count: fn(&VertexChanges) -> u32| self.vertices.iter().map(|vertex| count(vertex) as usize).sum();
        (sum(|vertex| vertex.num_added), sum(|vertex| vertex.num_removed))
    }

    /// The lists that changed, by their vertices.
    pub fn lists(&self) -> impl Iterator<Item = ChangedList<'_>> {
        let (mut targets, mut weights) = (&self.targets[..], &self.weights[..]);
        let has_weights = !weights.is_empty();
        self.vertices.iter().map(move |vertex| {
            let mut next = |len: u32| {
                let (taken, taken_weights);
                (taken, targets) = targets.split_at(len as usize);
                (taken_weights, weights) = weights.split_at(if has_weights { len as usize } else { 0 });
                (taken, taken_weights)
            };
            let (added, added_weights) = next(vertex.num_added);
            let (removed, removed_weights) = next(vertex.num_removed);
            ChangedList { local: vertex.local, added, added_weights, removed, removed_weights }
        })
    }

    /// Appends what changed in the list of `local`, which comes after all that has changes already: ascending
    /// targets and their weights, which are empty in a graph without weights. Of nothing, nothing is kept.
    ///
    /// # Panics
    /// Targets and weights are not of the same length, where there are weights; there are 2^32 of them.
    pub fn push(&mut self, local: u16, added: (&[VertexId], &[u64]), removed: (&[VertexId], &[u64])) {
        debug_assert!((local as usize) < PAGE_VERTICES && self.vertices.last().is_none_or(|last| last.local < local));
        if added.0.is_empty() && removed.0.is_empty() {
            return;
        }
        let count = |len: usize| u32::try_from(len).expect("a page holds fewer arcs than 2^32");
        self.vertices.push(VertexChanges {
            local,
            num_added: count(added.0.len()),
            num_removed: count(removed.0.len()),
        });
        for (targets, weights) in [added, removed] {
            self.targets.extend_from_slice(targets);
            self.weights.extend_from_slice(weights);
        }
        assert!(self.weights.is_empty() || self.weights.len() == self.targets.len());
    }

    /// Appends the arcs of lists of one page, sorted, which come after all that have changes already.
    pub fn extend_from_arcs(&mut self, added: &[ChangedArc], removed: &[ChangedArc], has_weights: bool) {
        let (mut added, mut removed) = (added, removed);
        while let Some(list) = [added.first(), removed.first()].into_iter().flatten().map(|arc| arc.list).min() {
            debug_assert!(
                [added.last(), removed.last()].into_iter().flatten().all(|arc| page_of(arc.list) == page_of(list))
            );
            let local = place_in_page(list) as u16;
            let mut vertex = VertexChanges { local, num_added: 0, num_removed: 0 };
            for (arcs, count) in [(&mut added, &mut vertex.num_added), (&mut removed, &mut vertex.num_removed)] {
                let len = arcs.iter().take_while(|arc| arc.list == list).count();
                let (taken, rest) = arcs.split_at(len);
                *count = u32::try_from(len).expect("a page holds fewer arcs than 2^32");
                self.targets.extend(taken.iter().map(|arc| arc.neighbour));
                if has_weights {
                    self.weights.extend(taken.iter().map(|arc| arc.weight));
                }
                *arcs = rest;
            }
            debug_assert!(self.vertices.last().is_none_or(|last| last.local < local));
            self.vertices.push(vertex);
        }
    }

    /// Appends a vertex with so many changes, whose arcs [`set_arcs`](Self::set_arcs) brings, or adds to the last one's
    /// if it is the same; false where the vertices do not ascend or the changes are too many.
    #[must_use]
    pub fn push_counts(&mut self, local: u16, num_added: u32, num_removed: u32) -> bool {
        match self.vertices.last_mut() {
            Some(last) if last.local > local => return false,
            Some(last) if last.local == local => {
                let sums = (last.num_added.checked_add(num_added), last.num_removed.checked_add(num_removed));
                let (Some(num_added), Some(num_removed)) = sums else { return false };
                (last.num_added, last.num_removed) = (num_added, num_removed);
            }
            _ => self.vertices.push(VertexChanges { local, num_added, num_removed }),
        }
        true
    }

    /// Brings the arcs of all vertices; false, and nothing is there any more, where they are not as many as were
    /// counted. There are as many weights as targets, or none.
    #[must_use]
    pub fn set_arcs(&mut self, targets: &[VertexId], weights: impl Iterator<Item = u64>) -> bool {
        let counts = self.vertices.iter().map(|vertex| u64::from(vertex.num_added) + u64::from(vertex.num_removed));
        // A page has at most 1,024 vertices, so the sum does not overflow.
        if counts.sum::<u64>() != targets.len() as u64 {
            self.clear();
            return false;
        }
        self.targets.clear();
        self.targets.extend_from_slice(targets);
        self.weights.clear();
        self.weights.extend(weights);
        debug_assert!(self.weights.is_empty() || self.weights.len() == self.targets.len());
        true
    }

    /// All targets: of the first vertex what was added, then what was removed, then of the next.
    pub fn targets(&self) -> &[VertexId] {
        &self.targets
    }

    /// Parallel to the targets; empty in a graph without weights.
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Turns the changes around: what was added was removed, and what was removed was added.
    pub fn invert(&mut self) {
        let mut start = 0;
        for vertex in &mut self.vertices {
            let (num_added, num_removed) = (vertex.num_added as usize, vertex.num_removed as usize);
            let range = start..start + num_added + num_removed;
            start = range.end;
            if num_added > 0 && num_removed > 0 {
                self.targets[range.clone()].rotate_left(num_added);
                if !self.weights.is_empty() {
                    self.weights[range].rotate_left(num_added);
                }
            }
            std::mem::swap(&mut vertex.num_added, &mut vertex.num_removed);
        }
    }
}

#[cfg(test)]
mod tests;
