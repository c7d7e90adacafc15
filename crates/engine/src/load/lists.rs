//! From sorted arcs to lists.

use std::ops::Range;

use base::VertexId;

use super::arcs::{KeyedArc, Payload};
use super::options::Duplicates;
use crate::Result;

/// The lists of consecutive vertices.
#[derive(Debug)]
pub(crate) struct Lists<P: Payload> {
    /// The length of each list.
    pub(crate) degrees: Vec<u32>,
    /// The lists, one after the other.
    pub(crate) neighbours: Vec<VertexId>,
    /// Parallel to the neighbours; empty where nothing is carried.
    pub(crate) weights: Vec<P::Weight>,
    /// Neighbours that are the vertex itself.
    pub(crate) num_loops: u64,
}

impl<P: Payload> Default for Lists<P> {
    fn default() -> Self {
        Self { degrees: Vec::new(), neighbours: Vec::new(), weights: Vec::new(), num_loops: 0 }
    }
}

impl<P: Payload> Lists<P> {
    /// Empty lists of `num_lists` vertices; keeps what is allocated.
    pub(crate) fn reset(&mut self, num_lists: usize) {
        self.degrees.clear();
        self.degrees.resize(num_lists, 0);
        self.neighbours.clear();
        self.weights.clear();
        self.num_loops = 0;
    }

    /// Takes the arcs of `lists`, sorted by key and, where keys are equal, in input order; leaves
    /// one of each group of parallel edges unless `duplicates` keeps them.
    pub(crate) fn collect(&mut self, sorted: &[KeyedArc<P>], lists: Range<u64>, duplicates: Duplicates) {
        self.reset((lists.end - lists.start) as usize);
        if sorted.is_empty() {
            return;
        }
        let first = lists.start as VertexId;
        self.neighbours.resize(sorted.len(), 0);
        if P::IS_WEIGHTED {
            self.weights.reserve(sorted.len());
        }
        let (mut len, mut previous, mut kept) = (0_usize, u64::MAX, P::zeroed());
        for &arc in sorted {
            let is_new = arc.key() != previous || duplicates == Duplicates::Keep;
            previous = arc.key();
            len += usize::from(is_new);
            self.neighbours[len - 1] = arc.neighbour();
            self.degrees[(arc.list() - first) as usize] += u32::from(is_new);
            self.num_loops += u64::from(is_new && arc.list() == arc.neighbour());
            if P::IS_WEIGHTED {
                kept = if is_new { arc.payload() } else { kept.merge(arc.payload(), duplicates) };
                if !is_new {
                    self.weights.pop();
                }
                self.weights.extend(kept.weight());
            }
        }
        self.neighbours.truncate(len);
    }

    /// Sorts each list, merges parallel edges and counts loops, where that is not done.
    pub(crate) fn arrange(&mut self, lists: &Range<u64>, duplicates: Duplicates) {
        let first = lists.start as VertexId;
        let (mut start, mut is_arranged, mut num_loops) = (0, true, 0);
        for (list, &degree) in (first..).zip(&self.degrees) {
            let neighbours = &self.neighbours[start..start + degree as usize];
            start += degree as usize;
            is_arranged &= match duplicates {
                Duplicates::Keep => neighbours.is_sorted(),
                _ => neighbours.is_sorted_by(|a, b| a < b),
            };
            num_loops += neighbours.iter().map(|&neighbour| u64::from(neighbour == list)).sum::<u64>();
        }
        self.num_loops = num_loops;
        if !is_arranged {
            let mut arcs = Vec::with_capacity(self.len());
            self.for_each_arc(first, |arc| arcs.push(arc));
            arcs.sort_by_key(|arc| arc.key());
            self.collect(&arcs, lists.clone(), duplicates);
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.neighbours.len()
    }

    /// Calls `body` with every entry; `first` is the first vertex.
    pub(crate) fn for_each_arc(&self, first: VertexId, mut body: impl FnMut(KeyedArc<P>)) {
        let mut start = 0;
        for (list, &degree) in (first..).zip(&self.degrees) {
            let range = start..start + degree as usize;
            start = range.end;
            for (i, &neighbour) in self.neighbours[range.clone()].iter().enumerate() {
                let payload = if P::IS_WEIGHTED { P::from_weight(self.weights[range.start + i]) } else { P::zeroed() };
                body(KeyedArc::new(list, neighbour, payload));
            }
        }
    }
}

/// Takes the lists of one side, in the order of the vertices.
pub(crate) trait ListSink<P: Payload>: Send {
    /// The lists of the next vertices, of which `first` is the first.
    fn append(&mut self, first: VertexId, lists: &Lists<P>) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(duplicates: Duplicates) -> Lists<u32> {
        let arcs = [(7, 2, 5), (7, 7, 9), (7, 7, 3), (7, 7, 4), (9, 0, 1), (9, 0, 1)];
        let arcs = arcs.map(|(list, neighbour, weight)| KeyedArc::new(list, neighbour, weight));
        let mut lists = Lists::default();
        lists.collect(&arcs, 7..11, duplicates);
        lists
    }

    #[test]
    fn parallel_edges_are_merged_or_kept() {
        for (duplicates, weights) in
            [(Duplicates::Min, [5, 3, 1]), (Duplicates::Last, [5, 4, 1]), (Duplicates::Sum, [5, 16, 2])]
        {
            let lists = collect(duplicates);
            assert_eq!(lists.degrees, [2, 0, 1, 0]);
            assert_eq!(lists.neighbours, [2, 7, 0]);
            assert_eq!((&*lists.weights, lists.num_loops), (&weights[..], 1));
        }
        let lists = collect(Duplicates::Keep);
        assert_eq!(lists.degrees, [4, 0, 2, 0]);
        assert_eq!((&*lists.weights, lists.num_loops), (&[5, 9, 3, 4, 1, 1][..], 3));
    }

    #[test]
    fn lists_in_any_order_are_arranged() {
        let mut lists = Lists::<u32> {
            degrees: vec![4, 0, 1],
            neighbours: vec![9, 5, 9, 2, 7],
            weights: vec![8, 1, 3, 4, 2],
            num_loops: 0,
        };
        lists.arrange(&(5..8), Duplicates::Min);
        assert_eq!((lists.degrees, lists.neighbours), (vec![3, 0, 1], vec![2, 5, 9, 7]));
        assert_eq!((lists.weights, lists.num_loops), (vec![4, 1, 3, 2], 2));
    }

    #[test]
    fn entries_are_found_again() {
        let lists = collect(Duplicates::Keep);
        let mut found = Vec::new();
        lists.for_each_arc(7, |arc| found.push((arc.list(), arc.neighbour(), arc.payload())));
        assert_eq!(found, [(7, 2, 5), (7, 7, 9), (7, 7, 3), (7, 7, 4), (9, 0, 1), (9, 0, 1)]);
    }
}
