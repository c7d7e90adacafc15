//! Pseudorandom numbers that are equal on every machine.

/// The increment of SplitMix64: 2^64 divided by the golden ratio, and odd.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of `x` affects every bit.
#[inline(always)]
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The generator SplitMix64: a mixed counter, with one word of state. Every seed is good.
///
/// ```
/// use anden_base::random::Random;
///
/// let mut dice = Random::new(7);
/// assert!((0..100).all(|_| dice.below(6) < 6));
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.below_u64(bound.into()) as u32
    }

    /// As [`below`](Self::below), for large bounds.
    pub fn below_u64(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A place in a sequence of this length, or 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below_u64(len as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        // From the reference implementation of Vigna.
        assert_eq!([random.next_u64(), random.next_u64()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_every_value() {
        let mut random = Random::new(7);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[random.below(10) as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
        assert_eq!((random.below(0), random.below_u64(0), random.index(0)), (0, 0, 0));
        assert!((0..100).all(|_| random.index(3) < 3 && random.below_u64(1 << 40) < 1 << 40));
    }
}
