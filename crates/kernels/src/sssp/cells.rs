//! Atomic cells for distances during the search.
//!
//! A cell holds the bits of a distance, doubled, and a mark in the lowest bit, set while the distance is not relaxed.
//! Cells compare as their distances do. Among equal distances, the relaxed one is smaller, so finding an equal distance
//! again is no improvement.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anden_base::memory::{as_atomic_u32, as_atomic_u64, zeroed_huge};
use anden_base::parallel::Pool;
use anden_graph::{Distance, Weight};

const PART: usize = 1 << 16;

/// The cell of a distance that is not relaxed.
#[inline(always)]
pub(super) fn marked<D: Distance>(distance: D) -> u64 {
    let bits = distance.to_bits();
    if bits >> 63 == 0 { bits << 1 | 1 } else { u64::MAX }
}

/// The distance in a cell.
#[inline(always)]
pub(super) fn distance_of<D: Distance>(cell: u64) -> D {
    if cell == u64::MAX { D::UNREACHED } else { D::from_bits(cell >> 1) }
}

/// The cell for a vertex reached over an edge of `weight` from a vertex at `distance`.
#[inline(always)]
pub(super) fn extended<W: Weight>(distance: W::Distance, weight: W) -> u64 {
    // The scan refuses forbidden weights beforehand; here one reaches no vertex.
    marked(weight.distance().map_or(W::Distance::UNREACHED, |weight| distance.plus(weight)))
}

/// An atomic word that holds one cell.
pub(super) trait DistanceCell: Sync + Sized {
    /// The plain word.
    type Word: Send + Sync;
    /// Whether a sum can exceed a word.
    const IS_NARROW: bool;
    /// The largest cell of a word: unreached.
    const LIMIT: u64;

    /// `len` unreached cells.
    fn unreached<D: Distance>(pool: &Pool, len: usize) -> Vec<Self::Word>;
    /// The words as cells that several threads share.
    fn share(words: &mut [Self::Word]) -> &[Self];
    /// The distances of the cells.
    fn into_distances<D: Distance>(pool: &Pool, words: Vec<Self::Word>) -> Vec<D>;

    /// The current cell.
    fn load(&self) -> u64;
    /// Lowers the cell to `new`. Returns whether it was higher.
    fn lower(&self, new: u64) -> bool;
    /// Clears the mark. Returns the cell if the mark was set.
    fn take(&self) -> Option<u64>;
}

impl DistanceCell for AtomicU64 {
    type Word = u64;
    const IS_NARROW: bool = false;
    const LIMIT: u64 = u64::MAX;

    fn unreached<D: Distance>(pool: &Pool, len: usize) -> Vec<u64> {
        let mut words = zeroed_huge::<u64>(len);
        pool.for_each_part_mut(&mut words, PART, |_, part| part.fill(marked(D::UNREACHED)));
        words
    }

    fn share(words: &mut [u64]) -> &[Self] {
        as_atomic_u64(words)
    }

    fn into_distances<D: Distance>(pool: &Pool, mut words: Vec<u64>) -> Vec<D> {
        pool.for_each_part_mut(&mut words, PART, |_, part| {
            part.iter_mut().for_each(|word| *word = distance_of::<D>(*word).to_bits());
        });
        words.into_iter().map(D::from_bits).collect()
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn lower(&self, new: u64) -> bool {
        let mut old = self.load(Ordering::Relaxed);
        while new < old {
            match self.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => old = now,
            }
        }
        false
    }

    #[inline(always)]
    fn take(&self) -> Option<u64> {
        let is_marked = |cell: u64| cell & 1 == 1;
        // The plain load spares unmarked cells an atomic write.
        let found = is_marked(self.load(Ordering::Relaxed)).then(|| self.fetch_and(!1, Ordering::Relaxed));
        found.filter(|&cell| is_marked(cell))
    }
}

impl DistanceCell for AtomicU32 {
    type Word = u32;
    const IS_NARROW: bool = true;
    const LIMIT: u64 = u32::MAX as u64;

    fn unreached<D: Distance>(pool: &Pool, len: usize) -> Vec<u32> {
        let mut words = zeroed_huge::<u32>(len);
        pool.for_each_part_mut(&mut words, PART, |_, part| part.fill(u32::MAX));
        words
    }

    fn share(words: &mut [u32]) -> &[Self] {
        as_atomic_u32(words)
    }

    fn into_distances<D: Distance>(pool: &Pool, words: Vec<u32>) -> Vec<D> {
        let mut bits = zeroed_huge::<u64>(words.len());
        pool.for_each_part_mut(&mut bits, PART, |start, part| {
            for (bits, &word) in part.iter_mut().zip(&words[start..]) {
                let cell = if word == u32::MAX { u64::MAX } else { u64::from(word) };
                *bits = distance_of::<D>(cell).to_bits();
            }
        });
        bits.into_iter().map(D::from_bits).collect()
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        u64::from(self.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn lower(&self, new: u64) -> bool {
        let mut old = self.load(Ordering::Relaxed);
        while new < u64::from(old) {
            match self.compare_exchange_weak(old, new as u32, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => old = now,
            }
        }
        false
    }

    #[inline(always)]
    fn take(&self) -> Option<u64> {
        let is_marked = |cell: u32| cell & 1 == 1;
        let found = is_marked(self.load(Ordering::Relaxed)).then(|| self.fetch_and(!1, Ordering::Relaxed));
        found.filter(|&cell| is_marked(cell)).map(u64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<C: DistanceCell>(far: u64) {
        let pool = Pool::new(1).unwrap();
        let mut words = C::unreached::<u64>(&pool, 3);
        let cells = C::share(&mut words);
        assert!(cells[0].lower(marked(7_u64)) && !cells[0].lower(marked(7_u64)) && !cells[0].lower(marked(8_u64)));
        assert_eq!(cells[0].take().map(distance_of::<u64>), Some(7));
        assert_eq!(cells[0].take(), None);
        assert!(!cells[0].lower(marked(7_u64)), "a distance that was relaxed is no improvement");
        assert!(cells[0].lower(marked(6_u64)) && cells[1].lower(marked(far)));
        assert_eq!(C::into_distances::<u64>(&pool, words), [6, far, u64::MAX]);
    }

    #[test]
    fn cells_keep_the_least_distance_and_its_mark() {
        check::<AtomicU32>((1 << 31) - 2);
        check::<AtomicU64>((1 << 63) - 2);
    }

    #[test]
    fn overflowing_distance_counts_as_unreached() {
        assert_eq!(extended(u64::MAX - 1, 5_u32), u64::MAX);
        assert_eq!(extended(1_u64 << 63, 0_u32), u64::MAX);
        assert_eq!(extended(1.0_f64, f32::INFINITY), marked(f64::INFINITY));
        assert_eq!(distance_of::<f64>(extended(1.0_f64, 0.5_f64)), 1.5);
    }
}
