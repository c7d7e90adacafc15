//! The usefulness estimate: pauses a policy whose prefetching does not pay.

use std::sync::atomic::{AtomicU32, Ordering};

/// Pieces that are judged before a verdict.
pub(super) const JUDGED: u32 = 32;

/// Announcements that are ignored after the first wasteful verdict; doubled after each further one.
const FIRST_PAUSE: u32 = 64;

/// The most doublings in a row.
const MAX_DOUBLINGS: u32 = 10;

/// After this many resident pieces in a row,
const RESIDENT: u32 = 64;

/// only one in this many announcements is acted upon, as a probe.
const PROBE: u32 = 16;

/// The estimate for one policy.
#[derive(Debug, Default)]
pub(super) struct UsefulnessEstimate {
    num_judged: AtomicU32,
    num_wasted: AtomicU32,
    pause: AtomicU32,
    num_pauses: AtomicU32,
    doublings: AtomicU32,
    num_resident: AtomicU32,
    num_skipped: AtomicU32,
}

/// The action for an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Act on it.
    Act,
    /// Ignore it: the lists are probably resident.
    Resident,
    /// Ignore it: prefetched pieces were not read, or were evicted before.
    Wasteful,
}

impl UsefulnessEstimate {
    /// The action for the next announcement.
    pub fn verdict(&self) -> Verdict {
        if self.pause.load(Ordering::Relaxed) > 0 {
            let one_less = |pause: u32| pause.checked_sub(1);
            // Concurrent announcements must not count below 0.
            let _ = self.pause.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            return Verdict::Wasteful;
        }
        let is_resident = self.num_resident.load(Ordering::Relaxed) >= RESIDENT;
        match is_resident && !self.num_skipped.fetch_add(1, Ordering::Relaxed).is_multiple_of(PROBE) {
            true => Verdict::Resident,
            false => Verdict::Act,
        }
    }

    /// Notes whether a piece was resident when it was announced.
    pub fn found(&self, is_resident: bool) {
        match is_resident {
            true => _ = self.num_resident.fetch_add(1, Ordering::Relaxed),
            // A store only on change: the cache line stays shared.
            false if self.num_resident.load(Ordering::Relaxed) > 0 => self.num_resident.store(0, Ordering::Relaxed),
            false => {}
        }
    }

    /// Judges a piece that was prefetched some time ago.
    pub fn judge(&self, is_useful: bool) {
        let num_wasted = self.num_wasted.fetch_add(u32::from(!is_useful), Ordering::Relaxed) + u32::from(!is_useful);
        if self.num_judged.fetch_add(1, Ordering::Relaxed) + 1 < JUDGED {
            return;
        }
        // Concurrent judgements may get lost here, which only delays the next verdict.
        self.num_judged.store(0, Ordering::Relaxed);
        self.num_wasted.store(0, Ordering::Relaxed);
        // Three quarters: pages next to read ones count as read, and pages that are evicted early count as unread.
        if num_wasted < JUDGED / 4 * 3 {
            self.doublings.store(0, Ordering::Relaxed);
            return;
        }
        let doublings = self.doublings.load(Ordering::Relaxed).min(MAX_DOUBLINGS);
        self.pause.store(FIRST_PAUSE << doublings, Ordering::Relaxed);
        self.doublings.store(doublings + 1, Ordering::Relaxed);
        self.num_pauses.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of pauses begun.
    pub fn num_pauses(&self) -> u32 {
        self.num_pauses.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(usefulness: &UsefulnessEstimate) -> u32 {
        (0..).take_while(|_| usefulness.verdict() == Verdict::Wasteful).count() as u32
    }

    #[test]
    fn pauses_double_until_prefetching_is_useful() {
        let usefulness = UsefulnessEstimate::default();
        let judge = |num_wasted: u32| (0..JUDGED).for_each(|i| usefulness.judge(i >= num_wasted));
        judge(JUDGED / 4 * 3 - 1);
        assert_eq!(pause(&usefulness), 0);
        for expected in [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE] {
            judge(JUDGED / 4 * 3);
            assert_eq!(pause(&usefulness), expected);
        }
        judge(0);
        judge(JUDGED);
        assert_eq!(pause(&usefulness), FIRST_PAUSE);
    }

    #[test]
    fn resident_pieces_are_probed_periodically() {
        let usefulness = UsefulnessEstimate::default();
        (0..RESIDENT).for_each(|_| usefulness.found(true));
        let num_acts = (0..10 * PROBE).filter(|_| usefulness.verdict() == Verdict::Act).count();
        assert_eq!(num_acts, 10);
        usefulness.found(false);
        assert!((0..10 * PROBE).all(|_| usefulness.verdict() == Verdict::Act));
    }
}
