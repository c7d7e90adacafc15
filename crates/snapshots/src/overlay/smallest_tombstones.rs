//! The smallest tombstone of each list, so that entries before it are read without looking up tombstones.

use std::sync::atomic::{AtomicU8, Ordering};

use anden_base::VertexId;

/// A lower bound of each list's smallest tombstone, in one byte a vertex. The bound is too small by at most a quarter
/// of the tombstone's distance from the vertex.
#[derive(Debug)]
pub(crate) struct SmallestTombstones(Vec<AtomicU8>);

/// Code of the greatest distance upward. Smaller tombstones have greater codes; 0 means no tombstone.
const FARTHEST: u8 = 1;
/// Code of the vertex itself.
const NEAREST: u8 = FARTHEST + 123;

impl SmallestTombstones {
    /// No list has a tombstone.
    pub fn new(len: usize) -> Self {
        Self((0..len).map(|_| AtomicU8::new(0)).collect())
    }

    /// The list of `vertex` may have tombstones from `first` on.
    #[inline]
    pub fn lower(&self, vertex: VertexId, first: VertexId) {
        let (slot, code) = (&self.0[vertex as usize], code(vertex, first));
        // Most calls change nothing, and a load costs less than an atomic maximum.
        if slot.load(Ordering::Relaxed) < code {
            // Relaxed: the bound is published with the version that has the tombstone.
            slot.fetch_max(code, Ordering::Relaxed);
        }
    }

    /// Prefetches the byte that [`first`](Self::first) reads.
    #[inline(always)]
    pub fn prefetch(&self, vertex: VertexId) {
        anden_base::simd::prefetch(&self.0, vertex as usize);
    }

    /// The list of `vertex` has no tombstone below this.
    #[inline]
    pub fn first(&self, vertex: VertexId) -> VertexId {
        first_of(vertex, self.0[vertex as usize].load(Ordering::Relaxed))
    }
}

/// Greater codes stand for smaller tombstones.
#[inline]
fn code(vertex: VertexId, entry: VertexId) -> u8 {
    if entry >= vertex { NEAREST - step(entry - vertex) } else { NEAREST + step(vertex - entry) }
}

/// The smallest tombstone of `vertex` with this code.
#[inline]
fn first_of(vertex: VertexId, code: u8) -> VertexId {
    match code {
        // No tombstone: every entry is before the bound.
        0 => VertexId::MAX,
        FARTHEST..=NEAREST => vertex.saturating_add(distance(NEAREST - code) as VertexId),
        _ => vertex.saturating_sub((distance(code - NEAREST + 1) - 1) as VertexId),
    }
}

/// Four steps for each doubling of the distance; at most 123.
#[inline]
fn step(distance: u32) -> u8 {
    match distance.checked_ilog2() {
        Some(log @ 2..) => ((log - 1) * 4 + (distance >> (log - 2) & 3)) as u8,
        _ => distance as u8,
    }
}

/// Smallest distance of a step.
#[inline]
fn distance(step: u8) -> u64 {
    // Computed in 64 bits: the step behind the last one begins at 2^32.
    let step = u64::from(step);
    if step < 4 { step } else { (4 + step % 4) << (step / 4 - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steps_cover_all_distances() {
        for step_number in 0..=123 {
            let start = distance(step_number);
            assert_eq!(step(start as u32), step_number);
            assert_eq!(step((distance(step_number + 1) - 1) as u32), step_number);
        }
        assert_eq!((step(u32::MAX), distance(124)), (123, 1 << 32));
    }

    proptest! {
        #[test]
        fn tombstone_bound_is_low_and_close(vertex: VertexId, tombstones in prop::collection::vec(any::<VertexId>(), 1..5)) {
            let place = vertex % 100;
            let firsts = SmallestTombstones::new(100);
            prop_assert_eq!(firsts.first(place), VertexId::MAX);
            for &tombstone in &tombstones {
                firsts.lower(place, tombstone);
            }
            let (first, told) = (tombstones.iter().copied().min().unwrap(), firsts.first(place));
            prop_assert!(told <= first);
            prop_assert!(u64::from(first - told) * 4 <= u64::from(first.abs_diff(place)), "{first} told as {told}");
            // For every vertex, codes have the order of entries.
            let other = tombstones[tombstones.len() - 1];
            prop_assert!((other < first) <= (code(vertex, other) >= code(vertex, first)));
            prop_assert!(first_of(vertex, code(vertex, first)) <= first);
        }
    }
}
