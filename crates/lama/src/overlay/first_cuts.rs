//! From where on lists may lose entries, so that what stands before is read without looking that up.

use std::sync::atomic::{AtomicU8, Ordering};

use base::VertexId;

/// About the first entry that each list may lose: one that precedes it by a quarter of its distance from the vertex
/// at most.
#[derive(Debug)]
pub(crate) struct FirstCuts(Vec<AtomicU8>);

/// The greatest distance upward has this code. Those of smaller ids are greater, and no entry has 0.
const FARTHEST: u8 = 1;
/// The vertex itself has this code.
const NEAREST: u8 = FARTHEST + 123;

impl FirstCuts {
    /// No list loses anything.
    pub fn new(len: usize) -> Self {
        Self((0..len).map(|_| AtomicU8::new(0)).collect())
    }

    /// From now on the list of `vertex` may lose `first`, and what follows it.
    #[inline]
    pub fn lower(&self, vertex: VertexId, first: VertexId) {
        let (slot, code) = (&self.0[vertex as usize], code(vertex, first));
        if slot.load(Ordering::Relaxed) < code {
            slot.fetch_max(code, Ordering::Relaxed);
        }
    }

    /// Hints that [`first`](Self::first) is asked for soon.
    #[inline(always)]
    pub fn prefetch(&self, vertex: VertexId) {
        base::simd::prefetch(&self.0, vertex as usize);
    }

    /// The list of `vertex` loses nothing below this.
    #[inline]
    pub fn first(&self, vertex: VertexId) -> VertexId {
        first_of(vertex, self.0[vertex as usize].load(Ordering::Relaxed))
    }
}

/// The higher, the smaller the entry.
#[inline]
fn code(vertex: VertexId, entry: VertexId) -> u8 {
    if entry >= vertex { NEAREST - step(entry - vertex) } else { NEAREST + step(vertex - entry) }
}

/// The smallest entry of `vertex` that has this code.
#[inline]
fn first_of(vertex: VertexId, code: u8) -> VertexId {
    match code {
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

/// The smallest distance of a step.
#[inline]
fn distance(step: u8) -> u64 {
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
        fn what_stands_before_stays(vertex: VertexId, cuts in prop::collection::vec(any::<VertexId>(), 1..5)) {
            let place = vertex % 100;
            let firsts = FirstCuts::new(100);
            prop_assert_eq!(firsts.first(place), VertexId::MAX);
            for &cut in &cuts {
                firsts.lower(place, cut);
            }
            let (first, told) = (cuts.iter().copied().min().unwrap(), firsts.first(place));
            prop_assert!(told <= first);
            prop_assert!(u64::from(first - told) * 4 <= u64::from(first.abs_diff(place)), "{first} told as {told}");
            // Of any vertex, the order of entries is that of codes.
            let other = cuts[cuts.len() - 1];
            prop_assert!((other < first) <= (code(vertex, other) >= code(vertex, first)));
            prop_assert!(first_of(vertex, code(vertex, first)) <= first);
        }
    }
}
