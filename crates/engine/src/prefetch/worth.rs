//! Whether reading ahead is worth its while: who finds that it is not stops for a time.

use std::sync::atomic::{AtomicU32, Ordering};

/// Pieces that are looked at before a verdict.
pub(super) const JUDGED: u32 = 32;

/// Announcements that are ignored after the first verdict that pieces are wasted; twice as many after the next.
const FIRST_PAUSE: u32 = 64;

/// How often in a row a pause may double.
const MAX_DOUBLINGS: u32 = 10;

/// After so many pieces in a row that were in memory already,
const RESIDENT: u32 = 64;

/// one of so many announcements is acted upon, to see whether that is still so.
const PROBE: u32 = 16;

/// What is known of one policy.
#[derive(Debug, Default)]
pub(super) struct Worth {
    num_judged: AtomicU32,
    num_wasted: AtomicU32,
    pause: AtomicU32,
    num_pauses: AtomicU32,
    doublings: AtomicU32,
    num_resident: AtomicU32,
    num_skipped: AtomicU32,
}

/// What to do about an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Act upon it.
    Act,
    /// What is announced is in memory, probably.
    Resident,
    /// What was read ahead was not read by anybody, or had gone before.
    Wasteful,
}

impl Worth {
    /// What to do about the next announcement.
    pub fn verdict(&self) -> Verdict {
        if self.pause.load(Ordering::Relaxed) > 0 {
            let one_less = |pause: u32| pause.checked_sub(1);
            let _ = self.pause.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            return Verdict::Wasteful;
        }
        let is_resident = self.num_resident.load(Ordering::Relaxed) >= RESIDENT;
        match is_resident && !self.num_skipped.fetch_add(1, Ordering::Relaxed).is_multiple_of(PROBE) {
            true => Verdict::Resident,
            false => Verdict::Act,
        }
    }

    /// Notes whether a piece was in memory when it was announced.
    pub fn found(&self, is_resident: bool) {
        match is_resident {
            true => _ = self.num_resident.fetch_add(1, Ordering::Relaxed),
            false if self.num_resident.load(Ordering::Relaxed) > 0 => self.num_resident.store(0, Ordering::Relaxed),
            false => {}
        }
    }

    /// Notes whether a piece that was read ahead some time ago was of use.
    pub fn judge(&self, is_useful: bool) {
        let num_wasted = self.num_wasted.fetch_add(u32::from(!is_useful), Ordering::Relaxed) + u32::from(!is_useful);
        if self.num_judged.fetch_add(1, Ordering::Relaxed) + 1 < JUDGED {
            return;
        }
        self.num_judged.store(0, Ordering::Relaxed);
        self.num_wasted.store(0, Ordering::Relaxed);
        // Three quarters, since neighbours of what is read count as read, and what is evicted early does not.
        if num_wasted < JUDGED / 4 * 3 {
            self.doublings.store(0, Ordering::Relaxed);
            return;
        }
        let doublings = self.doublings.load(Ordering::Relaxed).min(MAX_DOUBLINGS);
        self.pause.store(FIRST_PAUSE << doublings, Ordering::Relaxed);
        self.doublings.store(doublings + 1, Ordering::Relaxed);
        self.num_pauses.fetch_add(1, Ordering::Relaxed);
    }

    /// How many pauses have begun.
    pub fn num_pauses(&self) -> u32 {
        self.num_pauses.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(worth: &Worth) -> u32 {
        (0..).take_while(|_| worth.verdict() == Verdict::Wasteful).count() as u32
    }

    #[test]
    fn waste_pauses_for_longer_and_longer_until_something_is_of_use() {
        let worth = Worth::default();
        let judge = |num_wasted: u32| (0..JUDGED).for_each(|i| worth.judge(i >= num_wasted));
        judge(JUDGED / 4 * 3 - 1);
        assert_eq!(pause(&worth), 0);
        for expected in [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE] {
            judge(JUDGED / 4 * 3);
            assert_eq!(pause(&worth), expected);
        }
        judge(0);
        judge(JUDGED);
        assert_eq!(pause(&worth), FIRST_PAUSE);
    }

    #[test]
    fn what_is_resident_is_looked_at_now_and_then() {
        let worth = Worth::default();
        (0..RESIDENT).for_each(|_| worth.found(true));
        let num_acts = (0..10 * PROBE).filter(|_| worth.verdict() == Verdict::Act).count();
        assert_eq!(num_acts, 10);
        worth.found(false);
        assert!((0..10 * PROBE).all(|_| worth.verdict() == Verdict::Act));
    }
}
