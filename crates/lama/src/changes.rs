//! Changes of lists in memory: what levels hold, added up over levels and applied to lists.
//!
//! A list is a multiset of entries: targets with a row or a weight, or both. A level adds some and removes some. Adding
//! levels up is therefore a sum with signs, in which the order does not matter: what one level adds and another removes
//! is gone. Weights travel as bits, so that one code serves all types. A row determines the weight beside it, so entries
//! with rows are compared by their rows.

mod apply;
mod compose;
mod join;

pub(crate) use apply::apply;
pub(crate) use compose::{ComposeScratch, compose};
pub(crate) use join::{UnweightedPart, join};

use std::ops::Range;

use base::VertexId;
use bytemuck::{Pod, Zeroable};

use crate::options::GraphOptions;
use crate::table::{PAGE_VERTICES, page_of, place_in_page};

/// An arc that a level adds to or removes from a list; arcs are ordered as their lists are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangedArc {
    /// Whose list it is in.
    pub list: VertexId,
    /// Where it leads (of an in-list: where it comes from).
    pub neighbour: VertexId,
    /// Its row and weight.
    pub data: ArcData,
}

/// What an arc carries beside its target: parallel edges are ordered by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct ArcData {
    /// The row of its edge; 0 where edges have no rows.
    pub row: u64,
    /// The bits of its weight, zeros above; 0 where the graph has no weights.
    pub weight: u64,
}

impl ArcData {
    /// A weight with these bits, without a row.
    pub const fn of_weight(weight: u64) -> Self {
        Self { row: 0, weight }
    }

    /// A row, without a weight.
    pub const fn of_row(row: u64) -> Self {
        Self { row, weight: 0 }
    }
}

/// Entries of lists: weights and rows are parallel to the targets, or empty where the graph has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries<'a> {
    /// Ascending within a list.
    pub targets: &'a [VertexId],
    /// The bits of the weights.
    pub weights: &'a [u64],
    pub rows: &'a [u64],
}

impl<'a> Entries<'a> {
    /// Those at these places.
    pub fn slice(self, range: Range<usize>) -> Self {
        let of = |column: &'a [u64]| column.get(range.clone()).unwrap_or_default();
        Self { targets: &self.targets[range.clone()], weights: of(self.weights), rows: of(self.rows) }
    }

    /// Those before a place, and the others.
    #[inline]
    pub fn split_at(self, place: usize) -> (Self, Self) {
        let of = |column: &'a [u64]| column.split_at(place.min(column.len()));
        let (targets, weights, rows) = (self.targets.split_at(place), of(self.weights), of(self.rows));
        let part = |targets, weights, rows| Self { targets, weights, rows };
        (part(targets.0, weights.0, rows.0), part(targets.1, weights.1, rows.1))
    }

    /// What stands beside the target at a place.
    #[inline]
    pub fn data(self, place: usize) -> ArcData {
        let of = |column: &[u64]| column.get(place).copied().unwrap_or(0);
        ArcData { row: of(self.rows), weight: of(self.weights) }
    }

    /// What tells entries to the same target apart: their rows, or their weights where they have no rows.
    #[inline]
    pub fn keys(self) -> &'a [u64] {
        if self.rows.is_empty() { self.weights } else { self.rows }
    }

    /// Whether weights and rows are as many as targets, or none.
    fn is_parallel(self) -> bool {
        [self.weights, self.rows].iter().all(|column| column.is_empty() || column.len() == self.targets.len())
    }
}

/// Entries in memory, as [`Entries`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryBuffer {
    pub targets: Vec<VertexId>,
    pub weights: Vec<u64>,
    pub rows: Vec<u64>,
}

impl EntryBuffer {
    /// All of them.
    pub fn all(&self) -> Entries<'_> {
        Entries { targets: &self.targets, weights: &self.weights, rows: &self.rows }
    }

    /// Appends entries.
    pub fn extend(&mut self, entries: Entries<'_>) {
        self.targets.extend_from_slice(entries.targets);
        self.weights.extend_from_slice(entries.weights);
        self.rows.extend_from_slice(entries.rows);
    }

    /// Forgets all entries; keeps the memory.
    pub fn clear(&mut self) {
        self.targets.clear();
        self.weights.clear();
        self.rows.clear();
    }

    /// The bytes that it has room in.
    pub fn num_bytes(&self) -> usize {
        self.targets.capacity() * size_of::<VertexId>()
            + (self.weights.capacity() + self.rows.capacity()) * size_of::<u64>()
    }
}

/// What changed in the lists of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageChanges {
    /// Who has changes, ascending.
    vertices: Vec<VertexChanges>,
    /// What was added to the first, what was removed from it, what was added to the next…
    entries: EntryBuffer,
}

/// How many changes a vertex has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VertexChanges {
    local: u16,
    num_added: u32,
    num_removed: u32,
}

/// What changed in one list: ascending targets, equal ones by their rows or the bits of their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangedList<'a> {
    /// The place of the list's vertex in its page.
    pub local: u16,
    /// What is there now and was not.
    pub added: Entries<'a>,
    /// What is there no more.
    pub removed: Entries<'a>,
}

impl PageChanges {
    /// Forgets all changes; keeps the memory.
    pub fn clear(&mut self) {
        self.vertices.clear();
        self.entries.clear();
    }

    /// The bytes that it has room in.
    pub fn num_bytes(&self) -> usize {
        self.vertices.capacity() * size_of::<VertexChanges>() + self.entries.num_bytes()
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
        let mut rest = self.entries.all();
        self.vertices.iter().map(move |vertex| {
            let mut next = |len: u32| {
                let taken;
                (taken, rest) = rest.split_at(len as usize);
                taken
            };
            let added = next(vertex.num_added);
            ChangedList { local: vertex.local, added, removed: next(vertex.num_removed) }
        })
    }

    /// Appends what changed in the list of `local`, which comes after all that has changes already. Of nothing, nothing
    /// is kept.
    ///
    /// # Panics
    /// Weights or rows are not as many as targets, where there are any; there are 2^32 entries.
    pub fn push(&mut self, local: u16, added: Entries<'_>, removed: Entries<'_>) {
        debug_assert!((local as usize) < PAGE_VERTICES && self.vertices.last().is_none_or(|last| last.local < local));
        if added.targets.is_empty() && removed.targets.is_empty() {
            return;
        }
        let count =
            |entries: Entries<'_>| u32::try_from(entries.targets.len()).expect("a page holds fewer arcs than 2^32");
        self.vertices.push(VertexChanges { local, num_added: count(added), num_removed: count(removed) });
        self.entries.extend(added);
        self.entries.extend(removed);
        assert!(self.entries.all().is_parallel());
    }

    /// Appends the arcs of lists of one page, sorted, which come after all that have changes already.
    pub fn extend_from_arcs(&mut self, added: &[ChangedArc], removed: &[ChangedArc], options: &GraphOptions) {
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
                self.entries.targets.extend(taken.iter().map(|arc| arc.neighbour));
                if options.weight_type.is_some() {
                    self.entries.weights.extend(taken.iter().map(|arc| arc.data.weight));
                }
                if options.has_rows() {
                    self.entries.rows.extend(taken.iter().map(|arc| arc.data.row));
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
    /// counted. There are as many weights and rows as targets, or none.
    #[must_use]
    pub fn set_arcs(&mut self, targets: &[VertexId], weights: impl Iterator<Item = u64>, rows: &[u64]) -> bool {
        let counts = self.vertices.iter().map(|vertex| u64::from(vertex.num_added) + u64::from(vertex.num_removed));
        // A page has at most 1,024 vertices, so the sum does not overflow.
        if counts.sum::<u64>() != targets.len() as u64 {
            self.clear();
            return false;
        }
        self.entries.clear();
        self.entries.extend(Entries { targets, weights: &[], rows });
        self.entries.weights.extend(weights);
        debug_assert!(self.entries.all().is_parallel());
        true
    }

    /// All entries: of the first vertex what was added, then what was removed, then of the next.
    pub fn entries(&self) -> Entries<'_> {
        self.entries.all()
    }

    /// Turns the changes around: what was added was removed, and what was removed was added.
    pub fn invert(&mut self) {
        let mut start = 0;
        for vertex in &mut self.vertices {
            let (num_added, num_removed) = (vertex.num_added as usize, vertex.num_removed as usize);
            let range = start..start + num_added + num_removed;
            start = range.end;
            if num_added > 0 && num_removed > 0 {
                let EntryBuffer { targets, weights, rows } = &mut self.entries;
                targets[range.clone()].rotate_left(num_added);
                for column in [weights, rows].into_iter().filter(|column| !column.is_empty()) {
                    column[range.clone()].rotate_left(num_added);
                }
            }
            std::mem::swap(&mut vertex.num_added, &mut vertex.num_removed);
        }
    }
}

#[cfg(test)]
mod tests;
