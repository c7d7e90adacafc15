//! One entry of a side's page table: the state of a page and the place of its edges, packed into one word.
//!
//! The state is in the highest four bits. The other bits hold the index of the page's first edge among all targets.

use std::sync::atomic::{AtomicU64, Ordering};

/// The state of a page and the index of its first edge.
#[derive(Debug)]
pub(super) struct PageEntry(AtomicU64);

/// The page is one slice, its offsets are at [`home`](super::home), and its weights, if there are any, are verified.
pub(super) const READY: u64 = 0;
/// As `READY`, but the weights are not verified yet.
pub(super) const LISTS_READY: u64 = 1;
/// The page is as in the base run, whose table says where its offsets are.
pub(super) const PLACED: u64 = 2;
/// As `PLACED`, but the weights are not verified yet.
pub(super) const LISTS_PLACED: u64 = 3;
/// The lists of the page are in pieces.
pub(super) const IN_PIECES: u64 = 4;
/// No vertex of the page has edges.
pub(super) const EMPTY: u64 = 5;
/// The page did not pass its check; its lists look empty.
pub(super) const DAMAGED: u64 = 6;
/// The page has not been read yet.
pub(super) const UNTOUCHED: u64 = 7;

/// A bit of the state: changes in memory lie over a list of the page, so its lists are not read from the page alone.
pub(super) const OVERLAID: u64 = 8;

const STATE_SHIFT: u32 = 60;
const EDGE_MASK: u64 = (1 << STATE_SHIFT) - 1;

impl PageEntry {
    pub(super) fn untouched(edge_base: u64) -> Self {
        Self(AtomicU64::new(UNTOUCHED << STATE_SHIFT | edge_base))
    }

    #[inline(always)]
    pub(super) fn load(&self, order: Ordering) -> (u64, usize) {
        let entry = self.0.load(order);
        (entry >> STATE_SHIFT, (entry & EDGE_MASK) as usize)
    }

    /// The state without the bit `OVERLAID`.
    #[inline(always)]
    pub(super) fn state(&self) -> u64 {
        self.load(Ordering::Acquire).0 & !OVERLAID
    }

    pub(super) fn is_overlaid(&self) -> bool {
        self.load(Ordering::Relaxed).0 & OVERLAID != 0
    }

    /// Release order: a reader that sees the new state also sees the patched page and its offsets, or the fault.
    pub(super) fn set(&self, state: u64, edge_base: usize) {
        let new = state << STATE_SHIFT | edge_base as u64;
        let with_overlay = |old: u64| Some(old & OVERLAID << STATE_SHIFT | new);
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, with_overlay);
    }

    /// Keeps the index of the first edge: a reader that saw the state before still reads there.
    pub(super) fn set_damaged(&self) {
        let damaged = |old: u64| Some(old & (OVERLAID << STATE_SHIFT | EDGE_MASK) | DAMAGED << STATE_SHIFT);
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, damaged);
    }

    pub(super) fn set_overlaid(&self) {
        self.0.fetch_or(OVERLAID << STATE_SHIFT, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise, a reader that loaded the earlier state would read the targets of the first page.
    #[test]
    fn the_edges_of_a_page_that_turns_out_damaged_stay_where_they_are() {
        let entry = PageEntry::untouched(7000);
        entry.set(LISTS_READY, 7000);
        entry.set_damaged();
        assert_eq!(entry.load(Ordering::Acquire), (DAMAGED, 7000));
        entry.set_overlaid();
        entry.set_damaged();
        assert_eq!((entry.load(Ordering::Acquire), entry.state()), ((DAMAGED | OVERLAID, 7000), DAMAGED));
    }
}
