//! Changes of lists in memory: read from deltas, composed over deltas, applied to lists.
//!
//! A list is a multiset of entries: targets with a row or a weight, or both. A delta adds some and removes some.
//! Composing deltas is therefore a signed sum, whose order does not matter: an arc that one delta adds and another
//! removes cancels out. Weights are kept as bits, so that one code serves all types. A row determines the weight beside
//! it, so entries with rows are compared by their rows.

mod apply;
mod compose;
mod join;

pub(crate) use apply::apply;
pub(crate) use compose::{ComposeScratch, compose};
pub(crate) use join::{UnweightedPart, join};

use std::ops::Range;

use anden_base::VertexId;
use bytemuck::{Pod, Zeroable};

use crate::options::GraphOptions;
use crate::table::{PAGE_VERTICES, page_of, place_in_page};

/// Direction in which a delta is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApplyDirection {
    /// Toward younger versions.
    Forward,
    /// Toward older versions: additions are removed, removals are added.
    Backward,
}

/// An arc that a delta adds to a list or removes from it; ordered as the lists are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangedArc {
    /// The vertex of the list.
    pub list: VertexId,
    /// The vertex at the other end: the target in an out-list, the source in an in-list.
    pub neighbor: VertexId,
    /// Row and weight.
    pub data: ArcData,
}

/// The data of an arc beside its target, by which parallel edges are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct ArcData {
    /// Row of the edge; 0 if edges have no rows.
    pub row: u64,
    /// Bits of the weight, zero-extended; 0 if the graph has no weights.
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

/// Entries of lists. Weights and rows are parallel to the targets, or empty if the graph has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListEntries<'a> {
    /// Ascending within a list.
    pub targets: &'a [VertexId],
    /// Bits of the weights.
    pub weights: &'a [u64],
    pub rows: &'a [u64],
}

impl<'a> ListEntries<'a> {
    /// The entries at these positions.
    pub fn slice(self, range: Range<usize>) -> Self {
        // A missing column is empty, and so is each part of it.
        let of = |column: &'a [u64]| column.get(range.clone()).unwrap_or_default();
        Self { targets: &self.targets[range.clone()], weights: of(self.weights), rows: of(self.rows) }
    }

    /// The entries before a position, and the others.
    #[inline]
    pub fn split_at(self, place: usize) -> (Self, Self) {
        let of = |column: &'a [u64]| column.split_at(place.min(column.len()));
        let (targets, weights, rows) = (self.targets.split_at(place), of(self.weights), of(self.rows));
        let part = |targets, weights, rows| Self { targets, weights, rows };
        (part(targets.0, weights.0, rows.0), part(targets.1, weights.1, rows.1))
    }

    /// Row and weight of the entry at a position.
    #[inline]
    pub fn data(self, place: usize) -> ArcData {
        let of = |column: &[u64]| column.get(place).copied().unwrap_or(0);
        ArcData { row: of(self.rows), weight: of(self.weights) }
    }

    /// The keys that order entries with equal targets: rows, or weights if there are no rows.
    #[inline]
    pub fn keys(self) -> &'a [u64] {
        if self.rows.is_empty() { self.weights } else { self.rows }
    }

    /// Whether weights and rows are as many as targets, or none.
    fn is_parallel(self) -> bool {
        [self.weights, self.rows].iter().all(|column| column.is_empty() || column.len() == self.targets.len())
    }
}

/// Entries in memory, as [`ListEntries`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryBuffer {
    pub targets: Vec<VertexId>,
    pub weights: Vec<u64>,
    pub rows: Vec<u64>,
}

impl EntryBuffer {
    /// All entries.
    pub fn all(&self) -> ListEntries<'_> {
        ListEntries { targets: &self.targets, weights: &self.weights, rows: &self.rows }
    }

    pub fn extend(&mut self, entries: ListEntries<'_>) {
        self.targets.extend_from_slice(entries.targets);
        self.weights.extend_from_slice(entries.weights);
        self.rows.extend_from_slice(entries.rows);
    }

    /// Removes all entries; keeps the memory.
    pub fn clear(&mut self) {
        self.targets.clear();
        self.weights.clear();
        self.rows.clear();
    }

    /// Allocated bytes.
    pub fn num_bytes(&self) -> usize {
        self.targets.capacity() * size_of::<VertexId>()
            + (self.weights.capacity() + self.rows.capacity()) * size_of::<u64>()
    }
}

/// Changes in the lists of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageChanges {
    /// The vertices with changes, ascending.
    vertices: Vec<VertexChanges>,
    /// Additions of the first vertex, its removals, additions of the next vertex, and so on.
    entries: EntryBuffer,
}

/// Number of changes of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VertexChanges {
    local: u16,
    num_added: u32,
    num_removed: u32,
}

/// Changes of one list. Targets ascend, equal targets by their rows or the bits of their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangedList<'a> {
    /// Position of the list's vertex in its page.
    pub local: u16,
    /// Added entries.
    pub added: ListEntries<'a>,
    /// Removed entries.
    pub removed: ListEntries<'a>,
}

impl PageChanges {
    /// Removes all changes; keeps the memory.
    pub fn clear(&mut self) {
        self.vertices.clear();
        self.entries.clear();
    }

    /// Allocated bytes.
    pub fn num_bytes(&self) -> usize {
        self.vertices.capacity() * size_of::<VertexChanges>() + self.entries.num_bytes()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    /// Numbers of added and removed entries.
    pub fn num_changes(&self) -> (usize, usize) {
        let sum = |count: fn(&VertexChanges) -> u32| self.vertices.iter().map(|vertex| count(vertex) as usize).sum();
        (sum(|vertex| vertex.num_added), sum(|vertex| vertex.num_removed))
    }

    /// The changed lists, in vertex order.
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

    /// Appends the changes of the list of `local`, which follows all appended vertices. Empty changes are ignored.
    ///
    /// # Panics
    /// Weights or rows are neither absent nor as many as targets; there are 2^32 entries.
    pub fn push(&mut self, local: u16, added: ListEntries<'_>, removed: ListEntries<'_>) {
        debug_assert!((local as usize) < PAGE_VERTICES && self.vertices.last().is_none_or(|last| last.local < local));
        if added.targets.is_empty() && removed.targets.is_empty() {
            return;
        }
        let count =
            |entries: ListEntries<'_>| u32::try_from(entries.targets.len()).expect("a page holds fewer arcs than 2^32");
        self.vertices.push(VertexChanges { local, num_added: count(added), num_removed: count(removed) });
        self.entries.extend(added);
        self.entries.extend(removed);
        assert!(self.entries.all().is_parallel());
    }

    /// Appends sorted arcs of the lists of one page, which follow all appended vertices.
    pub fn extend_from_arcs(&mut self, added: &[ChangedArc], removed: &[ChangedArc], options: &GraphOptions) {
        let (mut added, mut removed) = (added, removed);
        // Both ascend, so the smaller of the two first lists is next.
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
                self.entries.targets.extend(taken.iter().map(|arc| arc.neighbor));
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

    /// Appends a vertex with these numbers of changes, or adds to the last vertex if it is this one.
    /// [`set_arcs`](Self::set_arcs) then sets the arcs. False if the vertices do not ascend, or a number overflows.
    #[must_use]
    pub fn push_counts(&mut self, local: u16, num_added: u32, num_removed: u32) -> bool {
        match self.vertices.last_mut() {
            Some(last) if last.local > local => return false,
            // A vertex with large numbers has several entries, which add up.
            Some(last) if last.local == local => {
                let sums = (last.num_added.checked_add(num_added), last.num_removed.checked_add(num_removed));
                let (Some(num_added), Some(num_removed)) = sums else { return false };
                (last.num_added, last.num_removed) = (num_added, num_removed);
            }
            _ => self.vertices.push(VertexChanges { local, num_added, num_removed }),
        }
        true
    }

    /// Sets the arcs of all vertices. There are as many weights and rows as targets, or none. If the number of targets
    /// is not the counted one, returns false and removes all changes.
    #[must_use]
    pub fn set_arcs(&mut self, targets: &[VertexId], weights: impl Iterator<Item = u64>, rows: &[u64]) -> bool {
        let counts = self.vertices.iter().map(|vertex| u64::from(vertex.num_added) + u64::from(vertex.num_removed));
        // A page has at most 1,024 vertices, so the sum does not overflow.
        if counts.sum::<u64>() != targets.len() as u64 {
            self.clear();
            return false;
        }
        self.entries.clear();
        self.entries.extend(ListEntries { targets, weights: &[], rows });
        self.entries.weights.extend(weights);
        debug_assert!(self.entries.all().is_parallel());
        true
    }

    /// All entries: additions of the first vertex, its removals, additions of the next vertex, and so on.
    pub fn entries(&self) -> ListEntries<'_> {
        self.entries.all()
    }

    /// Swaps additions and removals.
    pub fn invert(&mut self) {
        let mut start = 0;
        for vertex in &mut self.vertices {
            let (num_added, num_removed) = (vertex.num_added as usize, vertex.num_removed as usize);
            let range = start..start + num_added + num_removed;
            start = range.end;
            // Additions stand before removals, so the former removals move to the front.
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
