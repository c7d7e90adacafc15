//! Sorting a few ten thousand arcs inside the processor's cache.
//!
//! A stable radix sort, least digit first: parallel edges stay in input order, which is what `last`,
//! `keep` and sums of floats need to be the same at any number of threads.

use super::arcs::{KeyedArc, Payload};

/// The widest digit: its counters take 8 KB, so those of all passes fit the first-level cache.
const DIGIT_BITS: u32 = 11;
const NUM_BUCKETS: usize = 1 << DIGIT_BITS;
/// Below so many arcs, comparing beats counting.
const FEW: usize = 384;

/// A part of a key.
#[derive(Clone, Copy, Debug)]
struct Digit {
    shift: u32,
    mask: u64,
}

/// Sorts by the bits that it was made for; keeps its scratch space between calls.
pub(crate) struct Sorter<P: Payload> {
    digits: Vec<Digit>,
    mask: u64,
    spare: Vec<KeyedArc<P>>,
    counts: Vec<[u32; NUM_BUCKETS]>,
}

impl<P: Payload> Sorter<P> {
    /// Sorts by the low `neighbour_bits` of the neighbour, under the low `list_bits` of the list.
    pub(crate) fn new(neighbour_bits: u32, list_bits: u32) -> Self {
        let mut digits = Vec::new();
        for (start, num_bits) in [(0, neighbour_bits), (32, list_bits)] {
            let num_digits = num_bits.div_ceil(DIGIT_BITS);
            let mut low = 0;
            for i in 0..num_digits {
                let high = num_bits * (i + 1) / num_digits;
                digits.push(Digit { shift: start + low, mask: (1 << (high - low)) - 1 });
                low = high;
            }
        }
        let mask = digits.iter().fold(0, |mask, digit| mask | digit.mask << digit.shift);
        let counts = vec![[0; NUM_BUCKETS]; digits.len()];
        Self { digits, mask, spare: Vec::new(), counts }
    }

    /// Sorts `arcs`; the result lies in `arcs` or in scratch space, whichever it came to.
    pub(crate) fn sort<'a>(&'a mut self, arcs: &'a mut [KeyedArc<P>]) -> &'a mut [KeyedArc<P>] {
        let mask = self.mask;
        if arcs.len() <= FEW {
            if P::IS_WEIGHTED {
                arcs.sort_by_key(|arc| arc.key() & mask);
            } else {
                // Equal arcs without a payload cannot be told apart.
                arcs.sort_unstable_by_key(|arc| (arc.key() & mask, arc.key()));
            }
            return arcs;
        }
        self.count(arcs);
        if self.spare.len() < arcs.len() {
            // Grown without copying: what the scratch space holds is of no use.
            drop(std::mem::take(&mut self.spare));
            self.spare = base::memory::zeroed_huge(arcs.len());
        }
        let spare = &mut self.spare[..arcs.len()];
        let (mut from, mut to) = (arcs, spare);
        for (digit, counts) in self.digits.iter().zip(&mut self.counts) {
            let first = (from[0].key() >> digit.shift & digit.mask) as usize;
            if counts[first] as usize == from.len() {
                continue;
            }
            let mut start = 0;
            for count in &mut counts[..=digit.mask as usize] {
                start += std::mem::replace(count, start);
            }
            for &arc in &*from {
                let next = &mut counts[(arc.key() >> digit.shift & digit.mask) as usize % NUM_BUCKETS];
                to[*next as usize] = arc;
                *next += 1;
            }
            std::mem::swap(&mut from, &mut to);
        }
        from
    }

    /// Counts the values of every digit in one sweep.
    fn count(&mut self, arcs: &[KeyedArc<P>]) {
        assert!(u32::try_from(arcs.len()).is_ok(), "more arcs than the counters hold");
        self.counts.iter_mut().for_each(|counts| counts.fill(0));
        let each = |digits: &[Digit], counts: &mut [[u32; NUM_BUCKETS]]| {
            for arc in arcs {
                for (digit, counts) in digits.iter().zip(&mut *counts) {
                    counts[(arc.key() >> digit.shift & digit.mask) as usize % NUM_BUCKETS] += 1;
                }
            }
        };
        match (&*self.digits, &mut *self.counts) {
            // The usual case, with a loop that the compiler unrolls.
            (digits @ [_, _, _], counts @ [_, _, _]) => each(digits, counts),
            (digits, counts) => each(digits, counts),
        }
    }
}

/// The number of bits that hold every value below `bound`.
pub(crate) fn bits_below(bound: u64) -> u32 {
    u64::BITS - bound.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_stably_by_the_bits_asked_for() {
        for (neighbour_bits, list_bits) in [(32, 32), (22, 10), (5, 3), (0, 9), (17, 0), (1, 12)] {
            let mut sorter = Sorter::<u32>::new(neighbour_bits, list_bits);
            for len in [0, 1, 50, FEW, FEW + 1, 5000] {
                let mut state = 88172645463325252_u64;
                let mut arcs: Vec<_> = (0..len as u32)
                    .map(|i| {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        KeyedArc::from_key(state & 0x0000_0fff_0000_0fff, i)
                    })
                    .collect();
                let mask = ((1_u64 << list_bits) - 1) << 32 | ((1_u64 << neighbour_bits) - 1);
                let mut expected: Vec<_> = arcs.iter().map(|a| (a.key(), a.payload())).collect();
                expected.sort_by_key(|&(key, _)| key & mask);
                let sorted: Vec<_> = sorter.sort(&mut arcs).iter().map(|a| (a.key(), a.payload())).collect();
                assert_eq!(sorted, expected, "{neighbour_bits} and {list_bits} bits, {len} arcs");
            }
        }
    }

    #[test]
    fn counts_bits() {
        let bits: Vec<u32> = [0, 1, 2, 3, 4, 5, 1 << 32].into_iter().map(bits_below).collect();
        assert_eq!(bits, [0, 0, 1, 2, 2, 3, 32]);
    }
}
