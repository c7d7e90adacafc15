//! The pages of a side's table: what is known of each, in one word.

use std::sync::atomic::{AtomicU64, Ordering};

/// A page of the table: what is known of it, in the highest bits, and where its edges start among all targets.
#[derive(Debug)]
pub(super) struct PageEntry(AtomicU64);

/// In one slice with its offsets where [`home`](super::home) says; weights are verified too, if there are any.
pub(super) const READY: u64 = 0;
/// The same, but nobody has verified the weights yet.
pub(super) const LISTS_READY: u64 = 1;
/// As in the base run, which says where its offsets are.
pub(super) const PLACED: u64 = 2;
/// The same, but nobody has verified the weights yet.
pub(super) const LISTS_PLACED: u64 = 3;
/// There is a page in pieces.
pub(super) const IN_PIECES: u64 = 4;
/// No vertex of the page has edges.
pub(super) const EMPTY: u64 = 5;
/// The page did not pass its check; its lists look empty.
pub(super) const DAMAGED: u64 = 6;
/// Nobody has looked at it.
pub(super) const UNTOUCHED: u64 = 7;

/// Added to the state of a page once something is laid over a list of it: no list is then where the page has it.
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

    /// What the page is, whether or not something is laid over it.
    #[inline(always)]
    pub(super) fn state(&self) -> u64 {
        self.load(Ordering::Acquire).0 & !OVERLAID
    }

    pub(super) fn is_overlaid(&self) -> bool {
        self.load(Ordering::Relaxed).0 & OVERLAID != 0
    }

    /// Who sees that a page is patched sees the page, and its offsets; who sees that it is damaged finds the fault.
    pub(super) fn set(&self, state: u64, edge_base: usize) {
        let new = state << STATE_SHIFT | edge_base as u64;
        let with_overlay = |old: u64| Some(old & OVERLAID << STATE_SHIFT | new);
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, with_overlay);
    }

    /// Where its edges start stays: a reader may have seen the state before this one, and looks there.
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

    /// A reader who took the state before, and then where the edges start, read the targets of the first page.
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
