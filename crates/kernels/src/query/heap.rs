//! The priority queue of a search by weight, nearest vertex first.
//!
//! Each entry has four children, so a removal descends half the levels of a binary heap. An entry is one number, so the
//! least of four children is found without an unpredictable branch.
//!
//! # Source
//! LaMarca and Ladner, "The influence of caches on the performance of heaps", Journal of Experimental Algorithmics 1,
//! 1996.

use anden_base::VertexId;

/// The number of children of an entry.
const ARITY: usize = 4;

/// Vertices ordered by distance, then by id.
#[derive(Debug, Default)]
pub(super) struct Heap {
    /// Distance in the high bits, vertex in the low bits. No entry is less than its parent.
    entries: Vec<u128>,
}

fn distance_of(entry: u128) -> u64 {
    (entry >> VertexId::BITS) as u64
}

fn vertex_of(entry: u128) -> VertexId {
    entry as VertexId
}

impl Heap {
    /// The size of an entry in bytes.
    pub(super) const ENTRY_BYTES: usize = size_of::<u128>();

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn num_bytes(&self) -> usize {
        self.entries.capacity() * Self::ENTRY_BYTES
    }

    /// The least distance.
    pub(super) fn nearest(&self) -> Option<u64> {
        self.entries.first().copied().map(distance_of)
    }

    /// All vertices. The first is the nearest; the second nearest is one of the next four.
    pub(super) fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.entries.iter().copied().map(vertex_of)
    }

    #[inline(always)]
    pub(super) fn push(&mut self, distance: u64, vertex: VertexId) {
        let entry = u128::from(distance) << VertexId::BITS | u128::from(vertex);
        let mut place = self.entries.len();
        self.entries.push(entry);
        while place > 0 {
            let above = (place - 1) / ARITY;
            if self.entries[above] <= entry {
                break;
            }
            // Parents move into the hole, and the new entry is written once.
            self.entries[place] = self.entries[above];
            place = above;
        }
        self.entries[place] = entry;
    }

    /// Removes the nearest vertex.
    pub(super) fn pop(&mut self) -> Option<(u64, VertexId)> {
        let last = self.entries.pop()?;
        let entries = &mut self.entries[..];
        // The removed entry was the only one.
        let Some(&nearest) = entries.first() else { return Some((distance_of(last), vertex_of(last))) };
        let mut place = 0;
        while let Some((below, least)) = least_below(entries, place)
            && least < last
        {
            entries[place] = least;
            place = below;
        }
        entries[place] = last;
        Some((distance_of(nearest), vertex_of(nearest)))
    }
}

/// The least child of the entry at `place`, and the child's place.
#[inline(always)]
fn least_below(entries: &[u128], place: usize) -> Option<(usize, u128)> {
    let first = place * ARITY + 1;
    let below = entries.get(first..)?;
    let lesser = |a: (usize, u128), b: (usize, u128)| if b.1 < a.1 { b } else { a };
    match below.first_chunk::<ARITY>() {
        Some(&[a, b, c, d]) => Some(lesser(lesser((first, a), (first + 1, b)), lesser((first + 2, c), (first + 3, d)))),
        None => below.iter().enumerate().map(|(i, &entry)| (first + i, entry)).reduce(lesser),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_testkit::Random;
    use std::collections::BTreeSet;

    #[test]
    fn vertices_come_out_in_order() {
        let seed = 0x4ea9;
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut heap = Heap::default();
        for num_distances in [1, 7, 1000, u32::MAX] {
            let mut model = BTreeSet::new();
            // The heap grows, then empties.
            for step in 0..10_000 {
                if random.below(10_000) > step {
                    let entry = (u64::from(random.below(num_distances)) << 31, random.below(1 << 20));
                    if model.insert(entry) {
                        heap.push(entry.0, entry.1);
                    }
                } else {
                    let first = model.first().copied();
                    assert_eq!(heap.nearest(), first.map(|(distance, _)| distance), "step {step}");
                    assert_eq!(heap.vertices().next(), first.map(|(_, vertex)| vertex), "step {step}");
                    assert_eq!(heap.pop(), model.pop_first(), "step {step}");
                }
                assert_eq!(heap.len(), model.len());
            }
            let second = model.iter().nth(1).map(|&(_, vertex)| vertex);
            assert!(second.is_none_or(|second| heap.vertices().skip(1).take(ARITY).any(|vertex| vertex == second)));
            heap.clear();
            assert_eq!((heap.len(), heap.nearest(), heap.pop()), (0, None, None));
        }
    }
}
