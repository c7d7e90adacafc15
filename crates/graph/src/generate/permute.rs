//! A pseudorandom permutation of ids without a table.

use super::random::hash;

const ROUNDS: usize = 4;

/// A bijection of the numbers below a bound.
///
/// Each round multiplies by an odd number and folds the upper half of the bits into the lower half. Both steps are
/// invertible within the number of bits. A result at or above the bound is permuted again. This ends, because the
/// numbers form a cycle that starts below the bound.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    bound: u64,
    mask: u64,
    shift: u32,
    factors: [u64; ROUNDS],
    terms: [u64; ROUNDS],
}

impl Permutation {
    pub(super) fn new(bound: u64, seed: u64) -> Self {
        // The next power of two is below twice the bound, so on average fewer than two tries are needed.
        let num_bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        let mask = if num_bits == 0 { 0 } else { u64::MAX >> (u64::BITS - num_bits) };
        // The constant spells `ids`: the permutation is independent of weights and edges.
        let key = hash(seed, 0x0069_6473);
        // Odd factors are invertible modulo a power of two.
        let factors = std::array::from_fn(|i| hash(key, 2 * i as u64) | 1);
        let terms = std::array::from_fn(|i| hash(key, 2 * i as u64 + 1));
        Self { bound, mask, shift: num_bits.div_ceil(2).max(1), factors, terms }
    }

    #[inline]
    pub(super) fn of(&self, value: u64) -> u64 {
        debug_assert!(value < self.bound);
        let mut x = value;
        loop {
            for (factor, term) in self.factors.iter().zip(&self.terms) {
                x = x.wrapping_add(*term).wrapping_mul(*factor) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.bound {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_own() {
        for bound in [1, 2, 3, 4, 5, 100, 127, 128, 129, 1000, 4096] {
            for seed in 0..5 {
                let permutation = Permutation::new(bound, seed);
                let mut all: Vec<u64> = (0..bound).map(|x| permutation.of(x)).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..bound), "bound {bound}, seed {seed}");
            }
        }
    }

    #[test]
    fn neighbors_are_torn_apart() {
        let permutation = Permutation::new(1 << 16, 7);
        let near = (0..(1 << 16) - 1).filter(|&x| permutation.of(x).abs_diff(permutation.of(x + 1)) < 100).count();
        // A random order leaves about 200 of 65,535 pairs this near.
        assert!(near < 1000, "{near} pairs");
    }
}
