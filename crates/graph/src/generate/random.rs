//! Random numbers that follow from a seed and a position.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every bit of `x` reaches every bit.
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// A random number for `value` under `seed`.
#[inline(always)]
pub(super) fn hash(seed: u64, value: u64) -> u64 {
    mix(mix(seed ^ GOLDEN).wrapping_add(value.wrapping_mul(GOLDEN)).wrapping_add(GOLDEN))
}

/// SplitMix64: a counter, mixed.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// The numbers of one block; those of two blocks have nothing to do with each other.
    pub(super) fn of_block(seed: u64, block: u64) -> Self {
        Self(hash(hash(seed, 0x0062_6c6f_636b), block))
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }
}
