//! Lists made from sorted arcs.

use std::ops::Range;

use anden_base::VertexId;

use super::arcs::{LoadArc, Payload};
use super::options::Duplicates;
use super::sort::ListSorter;
use crate::Result;

/// The lists of consecutive vertices.
#[derive(Debug)]
pub(crate) struct BuiltLists<P: Payload> {
    /// The length of each list.
    pub(crate) degrees: Vec<u32>,
    /// The entries of all lists, one list after the other.
    pub(crate) neighbors: Vec<VertexId>,
    /// The data of each entry.
    pub(crate) payloads: Vec<P>,
    /// Number of loops.
    pub(crate) num_loops: u64,
    /// The rows of the first two parallel edges that were merged.
    pub(crate) first_merged: Option<(u64, u64)>,
    /// The first two weights whose sum exceeds their type.
    pub(crate) first_beyond: Option<(P, P)>,
}

impl<P: Payload> Default for BuiltLists<P> {
    fn default() -> Self {
        Self {
            degrees: Vec::new(),
            neighbors: Vec::new(),
            payloads: Vec::new(),
            num_loops: 0,
            first_merged: None,
            first_beyond: None,
        }
    }
}

impl<P: Payload> BuiltLists<P> {
    /// Empties the lists of `num_lists` vertices, with room for `len` entries of undefined content.
    pub(crate) fn reset(&mut self, num_lists: usize, len: usize) {
        self.degrees.clear();
        self.degrees.resize(num_lists, 0);
        // Without `clear`, after which `resize` would write all entries.
        self.neighbors.resize(len, 0);
        self.payloads.resize(len, P::zeroed());
        self.num_loops = 0;
        self.first_merged = None;
        self.first_beyond = None;
    }

    /// Merges parallel edges, unless `duplicates` keeps them. Lists must ascend; `first` is the first vertex.
    pub(crate) fn merge(&mut self, first: VertexId, duplicates: Duplicates) {
        if duplicates == Duplicates::Keep {
            return;
        }
        let (mut start, mut len) = (0, 0);
        for (list, degree) in (first..).zip(&mut self.degrees) {
            let end = start + *degree as usize;
            // No vertex has this id, so the first neighbor is new.
            let (kept_start, mut previous) = (len, VertexId::MAX);
            for i in start..end {
                let neighbor = self.neighbors[i];
                let is_new = neighbor != previous;
                previous = neighbor;
                self.neighbors[len] = neighbor;
                // Known at compile time: without data, the loop touches no payloads.
                if !P::IS_EMPTY {
                    let payload = self.payloads[i];
                    self.payloads[len] = payload;
                    if !is_new {
                        let pair = (self.payloads[len - 1], payload);
                        self.first_merged = self.first_merged.or(Some((pair.0.data().row, pair.1.data().row)));
                        let merged = pair.0.merge(pair.1, duplicates);
                        if merged.is_none() {
                            self.first_beyond = self.first_beyond.or(Some(pair));
                        }
                        // The sink refuses a sum beyond its type, so any value serves.
                        self.payloads[len - 1] = merged.unwrap_or(payload);
                    }
                }
                // The loop was counted with each of its parallel entries.
                self.num_loops -= u64::from(!is_new && neighbor == list);
                len += usize::from(is_new);
            }
            *degree = (len - kept_start) as u32;
            start = end;
        }
        self.neighbors.truncate(len);
        self.payloads.truncate(len);
    }

    /// Sorts lists, merges parallel edges and counts loops, as needed.
    pub(crate) fn arrange(&mut self, lists: &Range<u64>, duplicates: Duplicates) {
        let first = lists.start as VertexId;
        let (mut start, mut is_arranged, mut num_loops) = (0, true, 0);
        for (list, &degree) in (first..).zip(&self.degrees) {
            let neighbors = &self.neighbors[start..start + degree as usize];
            start += degree as usize;
            is_arranged &= match duplicates {
                Duplicates::Keep => neighbors.is_sorted(),
                // Equal neighbors are parallel edges, which must be merged.
                _ => neighbors.is_sorted_by(|a, b| a < b),
            };
            num_loops += neighbors.iter().map(|&neighbor| u64::from(neighbor == list)).sum::<u64>();
        }
        self.num_loops = num_loops;
        if !is_arranged {
            let mut arcs = Vec::with_capacity(self.len());
            self.for_each_arc(first, |arc| arcs.push(arc));
            ListSorter::new(VertexId::BITS).sort(&mut [&mut arcs], lists.clone(), self);
            self.merge(first, duplicates);
        }
    }

    /// Whether the rows of equal neighbors ascend within each list.
    pub(crate) fn rows_of_parallel_edges_ascend(&self) -> bool {
        let mut start = 0;
        self.degrees.iter().all(|&degree| {
            let range = start..start + degree as usize;
            start = range.end;
            let rows = self.payloads[range.clone()].iter().map(|payload| payload.data().row);
            self.neighbors[range].iter().zip(rows).is_sorted_by(|a, b| a.0 != b.0 || a.1 < b.1)
        })
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.neighbors.len()
    }

    /// Calls `body` with every entry; `first` is the first vertex.
    pub(crate) fn for_each_arc(&self, first: VertexId, mut body: impl FnMut(LoadArc<P>)) {
        let mut start = 0;
        for (list, &degree) in (first..).zip(&self.degrees) {
            let range = start..start + degree as usize;
            start = range.end;
            for (i, &neighbor) in self.neighbors[range.clone()].iter().enumerate() {
                body(LoadArc::new(list, neighbor, self.payloads[range.start + i]));
            }
        }
    }
}

/// Takes the lists of one direction, in the order of the vertices. The sink may change the lists.
pub(crate) trait ListSink<P: Payload>: Send {
    /// Takes the lists of the next vertices, beginning with `first`.
    fn append(&mut self, first: VertexId, lists: &mut BuiltLists<P>) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(duplicates: Duplicates) -> BuiltLists<u32> {
        let mut lists = BuiltLists::<u32> {
            degrees: vec![4, 0, 2, 0],
            neighbors: vec![2, 7, 7, 7, 0, 0],
            payloads: vec![5, 9, 3, 4, 1, 1],
            num_loops: 3,
            first_merged: None,
            first_beyond: None,
        };
        lists.merge(7, duplicates);
        lists
    }

    #[test]
    fn parallel_edges_are_merged_or_kept() {
        for (duplicates, weights) in
            [(Duplicates::Min, [5, 3, 1]), (Duplicates::Last, [5, 4, 1]), (Duplicates::Sum, [5, 16, 2])]
        {
            let lists = merged(duplicates);
            assert_eq!(lists.degrees, [2, 0, 1, 0]);
            assert_eq!(lists.neighbors, [2, 7, 0]);
            assert_eq!((&*lists.payloads, lists.num_loops), (&weights[..], 1));
        }
        let lists = merged(Duplicates::Keep);
        assert_eq!(lists.degrees, [4, 0, 2, 0]);
        assert_eq!((&*lists.payloads, lists.num_loops), (&[5, 9, 3, 4, 1, 1][..], 3));
    }

    #[test]
    fn lists_in_any_order_are_arranged() {
        let mut lists = BuiltLists::<u32> {
            degrees: vec![4, 0, 1],
            neighbors: vec![9, 5, 9, 2, 7],
            payloads: vec![8, 1, 3, 4, 2],
            num_loops: 0,
            first_merged: None,
            first_beyond: None,
        };
        lists.arrange(&(5..8), Duplicates::Min);
        assert_eq!((lists.degrees, lists.neighbors), (vec![3, 0, 1], vec![2, 5, 9, 7]));
        assert_eq!((lists.payloads, lists.num_loops), (vec![4, 1, 3, 2], 2));
    }

    #[test]
    fn entries_are_found_again() {
        let lists = merged(Duplicates::Keep);
        let mut found = Vec::new();
        lists.for_each_arc(7, |arc| found.push((arc.list(), arc.neighbor(), arc.payload())));
        assert_eq!(found, [(7, 2, 5), (7, 7, 9), (7, 7, 3), (7, 7, 4), (9, 0, 1), (9, 0, 1)]);
    }
}
