//! Sorts a few ten thousand arcs into lists, inside the processor's cache.
//!
//! A stable radix sort, least significant digit first. Stability keeps parallel edges in input order, so that `last`,
//! `keep` and sums of floats do not depend on the number of threads. The last digit is the list: the last pass writes
//! the lists themselves. The first pass reads the arcs in place.

use std::ops::Range;

use anden_base::VertexId;

use super::arcs::{LoadArc, Payload};
use super::lists::BuiltLists;

/// The widest digit: its counters take 8 KB, so the counters of all passes fit the first-level cache.
const DIGIT_BITS: u32 = 11;
const NUM_BUCKETS: usize = 1 << DIGIT_BITS;

/// A group of bits of a neighbor.
#[derive(Clone, Copy, Debug)]
struct Digit {
    shift: u32,
    mask: u32,
}

impl Digit {
    #[inline(always)]
    fn of<P: Payload>(self, arc: LoadArc<P>) -> usize {
        // The modulo proves the bound to the compiler, which drops the bounds check.
        (arc.neighbor() >> self.shift & self.mask) as usize % NUM_BUCKETS
    }
}

/// Sorts arcs into lists; keeps its scratch space between calls.
pub(crate) struct ListSorter<P: Payload> {
    digits: Vec<Digit>,
    counts: Vec<[u32; NUM_BUCKETS]>,
    /// The index of the next entry of each list.
    places: Vec<u32>,
    spares: [Vec<LoadArc<P>>; 2],
}

impl<P: Payload> ListSorter<P> {
    /// Sorts each list by the low `neighbor_bits` of the neighbors; 0 keeps the order of the arcs.
    pub(crate) fn new(neighbor_bits: u32) -> Self {
        let num_digits = neighbor_bits.div_ceil(DIGIT_BITS);
        let end = |digit: u32| neighbor_bits * digit / num_digits;
        let digit = |i| Digit { shift: end(i), mask: ((1_u64 << (end(i + 1) - end(i))) - 1) as u32 };
        let digits: Vec<_> = (0..num_digits).map(digit).collect();
        let counts = vec![[0; NUM_BUCKETS]; digits.len()];
        Self { digits, counts, places: Vec::new(), spares: Default::default() }
    }

    /// Makes the lists of `lists` from the arcs in `pieces`, which must all belong there. Parallel edges stay, in the
    /// order of the arcs. The content of the pieces is undefined afterwards.
    ///
    /// Cost: one counting pass, one pass for each digit, and one for the lists.
    pub(crate) fn sort(&mut self, pieces: &mut [&mut [LoadArc<P>]], lists: Range<u64>, into: &mut BuiltLists<P>) {
        let first = lists.start as VertexId;
        let len = pieces.iter().map(|piece| piece.len()).sum();
        assert!(u32::try_from(len).is_ok(), "more arcs than the counters hold");
        into.reset((lists.end - lists.start) as usize, len);
        self.count(pieces, first, into);
        self.places.clear();
        // The last pass writes each list from its start on.
        self.places.extend(into.degrees.iter().scan(0, |end, &degree| {
            let start = *end;
            *end += degree;
            Some(start)
        }));

        let [spare, other] = &mut self.spares;
        let (mut is_spread, mut is_in_other) = (false, false);
        for (&digit, counts) in self.digits.iter().zip(&mut self.counts) {
            // All arcs have one value in this digit: the pass would change nothing.
            if counts.iter().any(|&count| count as usize == len) {
                continue;
            }
            let mut start = 0;
            for count in &mut counts[..=digit.mask as usize] {
                // The counters become the start of each bucket.
                start += std::mem::replace(count, start);
            }
            if !is_spread {
                let to = grown(spare, len);
                pieces.iter().for_each(|piece| spread(piece, digit, counts, to));
                is_spread = true;
                continue;
            }
            // A single piece has been copied by now, so it serves as scratch space.
            let other = match pieces {
                [piece] => &mut **piece,
                _ => grown(other, len),
            };
            let spare = &mut spare[..len];
            let (from, to) = if is_in_other { (other, spare) } else { (spare, other) };
            spread(from, digit, counts, to);
            is_in_other = !is_in_other;
        }
        match (is_spread, is_in_other, pieces) {
            (false, _, pieces) => pieces.iter().for_each(|piece| fill(piece, first, &mut self.places, into)),
            (true, false, _) => fill(&spare[..len], first, &mut self.places, into),
            (true, true, [piece]) => fill(piece, first, &mut self.places, into),
            (true, true, _) => fill(&other[..len], first, &mut self.places, into),
        }
    }

    /// Counts the values of all digits, the degrees and the loops in one pass.
    fn count(&mut self, pieces: &[&mut [LoadArc<P>]], first: VertexId, into: &mut BuiltLists<P>) {
        self.counts.iter_mut().for_each(|counts| counts.fill(0));
        let (digits, counts) = (&*self.digits, &mut *self.counts);
        for piece in pieces {
            match (digits, &mut *counts) {
                // The usual numbers of digits, as loops that the compiler unrolls.
                ([], _) => count(piece, first, into, |_| {}),
                (&[low, high], [lows, highs]) => count(piece, first, into, |arc| {
                    lows[low.of(arc)] += 1;
                    highs[high.of(arc)] += 1;
                }),
                (digits, counts) => count(piece, first, into, |arc| {
                    digits.iter().zip(&mut *counts).for_each(|(digit, counts)| counts[digit.of(arc)] += 1);
                }),
            }
        }
    }
}

/// Counts the degrees and the loops of `arcs`, and calls `body` with each arc.
#[inline(always)]
fn count<P: Payload>(arcs: &[LoadArc<P>], first: VertexId, into: &mut BuiltLists<P>, mut body: impl FnMut(LoadArc<P>)) {
    let degrees = &mut *into.degrees;
    let mut num_loops = 0;
    for &arc in arcs {
        degrees[(arc.list() - first) as usize] += 1;
        num_loops += u64::from(arc.list() == arc.neighbor());
        body(arc);
    }
    into.num_loops += num_loops;
}

/// Spreads arcs by a digit; `places` holds the index of the next arc of each value.
fn spread<P: Payload>(from: &[LoadArc<P>], digit: Digit, places: &mut [u32; NUM_BUCKETS], to: &mut [LoadArc<P>]) {
    for &arc in from {
        let place = &mut places[digit.of(arc)];
        to[*place as usize] = arc;
        *place += 1;
    }
}

/// Spreads arcs over their lists; `places` holds the index of the next entry of each list.
fn fill<P: Payload>(arcs: &[LoadArc<P>], first: VertexId, places: &mut [u32], into: &mut BuiltLists<P>) {
    let (neighbors, payloads) = (&mut *into.neighbors, &mut *into.payloads);
    for &arc in arcs {
        let place = &mut places[(arc.list() - first) as usize];
        neighbors[*place as usize] = arc.neighbor();
        if !P::IS_EMPTY {
            payloads[*place as usize] = arc.payload();
        }
        *place += 1;
    }
}

/// Scratch space of at least `len` arcs, grown without copying: its content is not needed.
fn grown<P: Payload>(spare: &mut Vec<LoadArc<P>>, len: usize) -> &mut [LoadArc<P>] {
    if spare.len() < len {
        // Dropped before the allocation, so that both never exist at once.
        drop(std::mem::take(spare));
        *spare = anden_base::memory::zeroed_huge(len);
    }
    &mut spare[..len]
}

/// The number of bits that hold every value below `bound`.
pub(crate) fn bits_below(bound: u64) -> u32 {
    u64::BITS - bound.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_stably_by_the_bits_asked_for() {
        for (neighbor_bits, list_bits) in [(32, 9), (30, 3), (22, 10), (5, 3), (0, 9), (17, 0), (1, 12)] {
            let mut sorter = ListSorter::<u32>::new(neighbor_bits);
            for (len, num_pieces) in [(0, 0), (1, 1), (50, 3), (5000, 1), (5000, 7)] {
                let first = 5_u64 << 20;
                let mut state = 88172645463325252_u64;
                let mut arcs: Vec<_> = (0..len as u32)
                    .map(|i| {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        let list = first + (state >> 40) % (1 << list_bits);
                        LoadArc::new(list as u32, (state as u32) % 100 * 0x0290_2903, i)
                    })
                    .collect();
                let mask = ((1_u64 << neighbor_bits) - 1) as u32;
                let mut expected: Vec<_> = arcs.iter().map(|a| (a.list(), a.neighbor(), a.payload())).collect();
                expected.sort_by_key(|&(list, neighbor, _)| (list, neighbor & mask));
                let mut lists = BuiltLists::default();
                let mut pieces: Vec<_> = arcs.chunks_mut(len / num_pieces.max(1) + 1).collect();
                sorter.sort(&mut pieces, first..first + (1 << list_bits), &mut lists);
                let mut sorted = Vec::new();
                lists.for_each_arc(first as u32, |a| sorted.push((a.list(), a.neighbor(), a.payload())));
                assert_eq!(sorted, expected, "{neighbor_bits} and {list_bits} bits, {len} arcs");
                assert_eq!(lists.degrees.len(), 1 << list_bits);
            }
        }
    }

    #[test]
    fn counts_bits() {
        let bits: Vec<u32> = [0, 1, 2, 3, 4, 5, 1 << 32].into_iter().map(bits_below).collect();
        assert_eq!(bits, [0, 0, 1, 2, 2, 3, 32]);
    }
}
