//! The states of a page, and the places where a list may lie: all that a reader of a list has to tell apart.
//!
//! The state of a page and the index of its first arc share one word, so that one load gives both. The state is in the
//! highest four bits.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::changes::EntryBuffer;
use crate::patched::{ChangedListPlace, FragmentedPage};

/// What a page of a view is. The order matters: up to [`DenseTargets`](Self::DenseTargets), a list is found without
/// knowing the state; from [`Fragmented`](Self::Fragmented) on, the lists are not one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PageState {
    /// The lists are one slice, with offsets at [`dense_place`](super::dense_place). Targets and weights are verified.
    Dense,
    /// As `Dense`, but the weights are not verified yet.
    DenseTargets,
    /// The lists are those of the base, whose table has the place of the offsets. Targets and weights are verified.
    InBase,
    /// As `InBase`, but the weights are not verified yet.
    InBaseTargets,
    /// Some lists are in fragments.
    Fragmented,
    /// No vertex of the page has edges.
    Empty,
    /// The page did not pass its check; its lists look empty.
    Damaged,
    /// The page has not been read yet.
    Untouched,
}

/// Where a list lies.
pub(super) enum ListLocation<'a> {
    /// In this range of the view's targets.
    Slice(Range<usize>),
    /// In fragments, on a page whose other lists are those of the base.
    Fragments(&'a FragmentedPage, ChangedListPlace),
    /// In a copy, merged on demand.
    Merged(EntryBuffer),
    /// Nowhere: it is empty.
    Nowhere,
}

/// The entry of one page in the page table of a direction.
#[derive(Debug)]
pub(super) struct AtomicPageEntry(AtomicU64);

/// A loaded entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageEntry(u64);

/// Above the state: changes in memory lie over a list of the page, so its lists are not read from the page alone.
const OVERLAID: u64 = 1 << 63;
const STATE_SHIFT: u32 = 60;
const STATE_MASK: u64 = 7 << STATE_SHIFT;
const ARC_MASK: u64 = (1 << STATE_SHIFT) - 1;

impl PageEntry {
    /// The state of the page below the overlay.
    #[inline(always)]
    pub(super) fn state(self) -> PageState {
        match (self.0 & STATE_MASK) >> STATE_SHIFT {
            0 => PageState::Dense,
            1 => PageState::DenseTargets,
            2 => PageState::InBase,
            3 => PageState::InBaseTargets,
            4 => PageState::Fragmented,
            5 => PageState::Empty,
            6 => PageState::Damaged,
            _ => PageState::Untouched,
        }
    }

    /// Whether no overlay lies over the page, and its state is at most `last`. One comparison decides both.
    #[inline(always)]
    pub(super) fn is_plain(self, last: PageState) -> bool {
        self.0 >> STATE_SHIFT <= last as u64
    }

    /// Whether changes in memory lie over a list of the page.
    #[inline(always)]
    pub(super) fn is_overlaid(self) -> bool {
        self.0 & OVERLAID != 0
    }

    /// The index of the page's first arc among all targets.
    #[inline(always)]
    pub(super) fn first_arc(self) -> usize {
        (self.0 & ARC_MASK) as usize
    }
}

impl AtomicPageEntry {
    pub(super) fn untouched(first_arc: u64) -> Self {
        Self(AtomicU64::new((PageState::Untouched as u64) << STATE_SHIFT | first_arc))
    }

    #[inline(always)]
    pub(super) fn load(&self, order: Ordering) -> PageEntry {
        PageEntry(self.0.load(order))
    }

    /// The state of the page below the overlay.
    #[inline(always)]
    pub(super) fn state(&self) -> PageState {
        self.load(Ordering::Acquire).state()
    }

    /// Release order: a reader that sees the new state also sees the patched page and its offsets, or the fault.
    pub(super) fn set(&self, state: PageState, first_arc: usize) {
        let new = (state as u64) << STATE_SHIFT | first_arc as u64;
        let with_overlay = |old: u64| Some(old & OVERLAID | new);
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, with_overlay);
    }

    /// Keeps the index of the first arc: a reader that saw the state before still reads there.
    pub(super) fn set_damaged(&self) {
        let damaged = |old: u64| Some(old & !STATE_MASK | (PageState::Damaged as u64) << STATE_SHIFT);
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, damaged);
    }

    pub(super) fn set_overlaid(&self) {
        self.0.fetch_or(OVERLAID, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise, a reader that loaded the earlier state would read the targets of the first page.
    #[test]
    fn damaged_page_keeps_its_arc_position() {
        let entry = AtomicPageEntry::untouched(7000);
        entry.set(PageState::DenseTargets, 7000);
        entry.set_damaged();
        let damaged = entry.load(Ordering::Acquire);
        assert_eq!((damaged.state(), damaged.first_arc(), damaged.is_overlaid()), (PageState::Damaged, 7000, false));
        entry.set_overlaid();
        entry.set_damaged();
        let damaged = entry.load(Ordering::Acquire);
        assert_eq!((damaged.state(), damaged.first_arc(), damaged.is_overlaid()), (PageState::Damaged, 7000, true));
    }

    #[test]
    fn overlaid_page_is_never_plain() {
        use PageState::*;
        for state in [Dense, DenseTargets, InBase, InBaseTargets, Fragmented, Empty, Damaged, Untouched] {
            let entry = AtomicPageEntry::untouched(9);
            entry.set(state, 5);
            assert_eq!(
                (entry.state(), entry.load(Ordering::Relaxed).is_plain(DenseTargets)),
                (state, state <= DenseTargets)
            );
            entry.set_overlaid();
            assert_eq!((entry.state(), entry.load(Ordering::Relaxed).is_plain(Untouched)), (state, false));
        }
    }
}
