//! Random numbers that follow from a seed and a position.

use anden_base::random::{GOLDEN, Random, mix};

/// A random number for `value` under `seed`.
#[inline(always)]
pub(super) fn hash(seed: u64, value: u64) -> u64 {
    mix(mix(seed ^ GOLDEN).wrapping_add(value.wrapping_mul(GOLDEN)).wrapping_add(GOLDEN))
}

/// The numbers of one block, independent of those of other blocks.
pub(super) fn of_block(seed: u64, block: u64) -> Random {
    // The constant spells `block`: these numbers are independent of hashes of vertices and edges.
    Random::new(hash(hash(seed, 0x0062_6c6f_636b), block))
}
