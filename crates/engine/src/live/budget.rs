//! The write budget of background work: bytes a second, shared by its threads.

use std::time::{Duration, Instant};

/// The time for which unused budget is kept: that much may be written at once.
const CREDIT: Duration = Duration::from_millis(100);
/// Upper limit of a wait, for any rate.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// A rate, and the bytes taken of it.
#[derive(Debug)]
pub(super) struct WriteBudget {
    /// `None`: no limit.
    rate: Option<u64>,
    /// The time at which all bytes already taken are within the budget.
    free_at: Option<Instant>,
    /// Changes with the rate: bytes taken before no longer count.
    era: u64,
}

/// Bytes taken from a budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// The time from which on more may be written.
    due: Instant,
    time: Duration,
    era: u64,
}

impl WriteBudget {
    pub(super) fn new(rate: u64) -> Self {
        Self { rate: Some(rate), free_at: None, era: 0 }
    }

    pub(super) fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Sets a new rate, and forgets all bytes taken.
    pub(super) fn set_rate(&mut self, rate: Option<u64>) {
        *self = Self { rate, free_at: None, era: self.era + 1 };
    }

    /// Takes written bytes; `None` without a limit.
    pub(super) fn take(&mut self, num_bytes: u64, now: Instant) -> Option<Share> {
        let seconds = num_bytes as f64 / self.rate?.max(1) as f64;
        let time = Duration::try_from_secs_f64(seconds).map_or(LONGEST, |time| time.min(LONGEST));
        // Shortly after a boot, the clock does not reach back by the credit.
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        let begin = self.free_at.map_or(earliest, |free_at| free_at.max(earliest));
        let due = begin.checked_add(time).unwrap_or(begin);
        self.free_at = Some(due);
        Some(Share { due, time, era: self.era })
    }

    /// The time to wait before more is written; `None`: none.
    pub(super) fn rest(&self, share: Share, now: Instant) -> Option<Duration> {
        let rest = share.due.checked_duration_since(now).filter(|rest| !rest.is_zero());
        // After a change of the rate, the bytes taken before no longer count.
        rest.filter(|_| share.era == self.era)
    }

    /// Gives back the part that was not waited for, so that others do not wait for it either.
    pub(super) fn give_back(&mut self, share: Share, now: Instant) {
        let rest = self.rest(share, now).unwrap_or_default().min(share.time);
        self.free_at = self.free_at.map(|free_at| free_at.checked_sub(rest).unwrap_or(free_at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Waits as told, and returns the time after the wait.
    fn write(budget: &mut WriteBudget, num_bytes: u64, now: Instant) -> Instant {
        let share = budget.take(num_bytes, now);
        now + share.and_then(|share| budget.rest(share, now)).unwrap_or_default()
    }

    #[test]
    fn write_rate_and_credit_are_not_exceeded() {
        for piece in [1, 7, 1000, 4096] {
            let (mut budget, start) = (WriteBudget::new(1000), Instant::now());
            let (mut now, mut num_bytes) = (start, 0);
            while num_bytes < 100_000 {
                now = write(&mut budget, piece, now);
                num_bytes += piece;
                let seconds = (now - start + CREDIT).as_secs_f64();
                assert!(num_bytes as f64 <= seconds * 1000.0 + 1.0, "{num_bytes} bytes after {seconds} s");
            }
            assert!(now - start <= SECOND * 105, "no slower than it must");
        }
    }

    #[test]
    fn writes_slower_than_the_rate_never_wait() {
        let (mut budget, mut now) = (WriteBudget::new(1000), Instant::now());
        for _ in 0..50 {
            now += SECOND / 10;
            assert_eq!(write(&mut budget, 100, now), now);
        }
        // A long pause gives no more credit than `CREDIT`.
        now += SECOND * 60;
        assert!(write(&mut budget, 1000, now) - now >= SECOND - CREDIT);
    }

    #[test]
    fn two_share_it_and_who_gives_back_delays_nobody() {
        let (mut budget, now) = (WriteBudget::new(1000), Instant::now());
        let first = budget.take(1000, now).unwrap();
        let second = budget.take(1000, now).unwrap();
        assert_eq!(budget.rest(second, now).unwrap() - budget.rest(first, now).unwrap(), SECOND);
        budget.give_back(second, now);
        assert_eq!(budget.take(1000, now).unwrap().due, second.due);
        // Waited time is not given back.
        budget.give_back(first, now + SECOND * 2);
        assert_eq!(budget.free_at, Some(second.due));
    }

    #[test]
    fn another_rate_ends_what_waits_for_the_one_before() {
        let (mut budget, now) = (WriteBudget::new(1), Instant::now());
        let share = budget.take(u64::MAX, now).unwrap();
        assert!(budget.rest(share, now).unwrap() > SECOND * 1_000_000);
        budget.set_rate(Some(1000));
        assert_eq!(budget.rest(share, now), None);
        budget.give_back(share, now);
        assert_eq!(write(&mut budget, 100, now), now);
        budget.set_rate(None);
        assert!(budget.take(u64::MAX, now).is_none());
    }
}
