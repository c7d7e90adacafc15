//! What work in the background may write: so many bytes a second, whoever of it writes them.

use std::time::{Duration, Instant};

/// What could have been written in so long a time, and was not, may be written at once.
const CREDIT: Duration = Duration::from_millis(100);
/// Nothing takes longer than this, whatever the rate.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// Bytes a second, and what is written of them.
#[derive(Debug)]
pub(super) struct Budget {
    /// `None`: as many as can be written.
    rate: Option<u64>,
    /// When all that was taken so far is within the budget.
    free_at: Option<Instant>,
    /// Changed with the rate: what was taken before counts no more.
    era: u64,
}

/// What was taken of a budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// More may be written from then on.
    due: Instant,
    time: Duration,
    era: u64,
}

impl Budget {
    pub(super) fn new(rate: u64) -> Self {
        Self { rate: Some(rate), free_at: None, era: 0 }
    }

    pub(super) fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// From now on it is so many bytes a second, as if nothing had been written before.
    pub(super) fn set_rate(&mut self, rate: Option<u64>) {
        *self = Self { rate, free_at: None, era: self.era + 1 };
    }

    /// Takes what was written; `None` where there is no limit.
    pub(super) fn take(&mut self, num_bytes: u64, now: Instant) -> Option<Share> {
        let seconds = num_bytes as f64 / self.rate?.max(1) as f64;
        let time = Duration::try_from_secs_f64(seconds).map_or(LONGEST, |time| time.min(LONGEST));
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        let begin = self.free_at.map_or(earliest, |free_at| free_at.max(earliest));
        let due = begin.checked_add(time).unwrap_or(begin);
        self.free_at = Some(due);
        Some(Share { due, time, era: self.era })
    }

    /// How long to wait before more is written; `None`: not at all.
    pub(super) fn rest(&self, share: Share, now: Instant) -> Option<Duration> {
        let rest = share.due.checked_duration_since(now).filter(|rest| !rest.is_zero());
        rest.filter(|_| share.era == self.era)
    }

    /// Gives back what was not waited for: others do not wait for it either.
    pub(super) fn give_back(&mut self, share: Share, now: Instant) {
        let rest = self.rest(share, now).unwrap_or_default().min(share.time);
        self.free_at = self.free_at.map(|free_at| free_at.checked_sub(rest).unwrap_or(free_at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Waits as long as it is told to, and gives the time then.
    fn write(budget: &mut Budget, num_bytes: u64, now: Instant) -> Instant {
        let share = budget.take(num_bytes, now);
        now + share.and_then(|share| budget.rest(share, now)).unwrap_or_default()
    }

    #[test]
    fn no_more_is_written_than_the_rate_and_the_credit_allow() {
        for piece in [1, 7, 1000, 4096] {
            let (mut budget, start) = (Budget::new(1000), Instant::now());
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
    fn what_takes_longer_than_its_bytes_never_waits() {
        let (mut budget, mut now) = (Budget::new(1000), Instant::now());
        for _ in 0..50 {
            now += SECOND / 10;
            assert_eq!(write(&mut budget, 100, now), now);
        }
        // But a long rest is no right to much.
        now += SECOND * 60;
        assert!(write(&mut budget, 1000, now) - now >= SECOND - CREDIT);
    }

    #[test]
    fn two_share_it_and_who_gives_back_delays_nobody() {
        let (mut budget, now) = (Budget::new(1000), Instant::now());
        let first = budget.take(1000, now).unwrap();
        let second = budget.take(1000, now).unwrap();
        assert_eq!(budget.rest(second, now).unwrap() - budget.rest(first, now).unwrap(), SECOND);
        budget.give_back(second, now);
        assert_eq!(budget.take(1000, now).unwrap().due, second.due);
        // What was waited for is not given back.
        budget.give_back(first, now + SECOND * 2);
        assert_eq!(budget.free_at, Some(second.due));
    }

    #[test]
    fn another_rate_ends_what_waits_for_the_one_before() {
        let (mut budget, now) = (Budget::new(1), Instant::now());
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
