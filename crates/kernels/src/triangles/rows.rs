//! Adjacency of hubs as rows of bits, in both directions.

use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::memory::{as_atomic_u64, zeroed_huge};
use anden_base::parallel::Pool;

/// The side of the bit blocks that are transposed together.
const SIDE: usize = 64;

/// For each hub, a bit for each adjacent hub.
#[derive(Default)]
pub(super) struct HubRows {
    words: Vec<u64>,
    len: usize,
    row_words: usize,
}

impl HubRows {
    /// The bytes of the rows of `len` hubs.
    pub(super) fn num_bytes(len: usize) -> u64 {
        (len.next_multiple_of(SIDE) * len.div_ceil(SIDE) * 8) as u64
    }

    /// The rows of `len` hubs. `earlier` returns the adjacent hubs of earlier rank.
    pub(super) fn build<'a>(pool: &Pool, len: usize, earlier: impl Fn(usize) -> &'a [VertexId] + Sync) -> Self {
        let row_words = len.div_ceil(SIDE);
        let mut words = zeroed_huge(len.next_multiple_of(SIDE) * row_words);
        pool.for_each_part_mut(&mut words, (SIDE * row_words).max(1), |start, stripe| {
            for (rank, row) in (start / row_words..len).zip(stripe.chunks_mut(row_words)) {
                earlier(rank).iter().for_each(|&v| row[v as usize / 64] |= 1 << (v % 64));
            }
        });
        let shared = as_atomic_u64(&mut words);
        pool.for_each_chunk(0..row_words, 1, |_, stripes| {
            stripes.for_each(|stripe| mirror(shared, row_words, stripe));
        });
        Self { words, len, row_words }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) fn row(&self, hub: usize) -> &[u64] {
        &self.words[hub * self.row_words..][..self.row_words]
    }

    /// 1 if the two hubs are adjacent, else 0.
    #[inline(always)]
    pub(super) fn bit(&self, a: VertexId, b: VertexId) -> u64 {
        self.words[a as usize * self.row_words + b as usize / 64] >> (b % 64) & 1
    }
}

/// Copies the bits below the diagonal, in one stripe of columns, to those above it in the stripe of rows. Each stripe
/// writes its own words, and reads words that no other stripe writes.
fn mirror(words: &[AtomicU64], row_words: usize, stripe: usize) {
    let word = |row: usize, column: usize| &words[row * row_words + column];
    for column in stripe..row_words {
        let mut block: [u64; SIDE] = std::array::from_fn(|i| word(column * SIDE + i, stripe).load(Ordering::Relaxed));
        if block.iter().all(|&bits| bits == 0) {
            continue;
        }
        transpose(&mut block);
        for (i, bits) in block.into_iter().enumerate().filter(|(_, bits)| *bits != 0) {
            let cell = word(stripe * SIDE + i, column);
            cell.store(cell.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
        }
    }
}

/// Swaps bit `j` of word `i` with bit `i` of word `j`, by recursive halving.
fn transpose(block: &mut [u64; SIDE]) {
    let mut half = SIDE / 2;
    let mut mask = u64::MAX >> half;
    while half > 0 {
        for i in (0..SIDE).filter(|i| i & half == 0) {
            let swapped = (block[i] >> half ^ block[i + half]) & mask;
            block[i] ^= swapped << half;
            block[i + half] ^= swapped;
        }
        half /= 2;
        mask ^= mask << half;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_testkit::Random;

    #[test]
    fn rows_hold_every_pair_in_both_directions() {
        for (len, seed) in [(0, 1), (1, 2), (63, 3), (64, 4), (65, 5), (200, 6)] {
            let mut random = Random::new(seed);
            let lists: Vec<Vec<u32>> =
                (0..len as u32).map(|rank| (0..rank).filter(|_| random.below(3) == 0).collect()).collect();
            for threads in [1, 2] {
                let rows = HubRows::build(&Pool::new(threads).unwrap(), len, |rank| &lists[rank]);
                for (a, list) in lists.iter().enumerate() {
                    for b in 0..a as u32 {
                        let expected = u64::from(list.contains(&b));
                        let found = (rows.bit(a as u32, b), rows.bit(b, a as u32));
                        assert_eq!(found, (expected, expected), "{a} and {b} of {len}");
                    }
                    assert_eq!(rows.bit(a as u32, a as u32), 0);
                }
            }
        }
    }
}
