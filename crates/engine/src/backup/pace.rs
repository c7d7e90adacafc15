//! Progress, cancellation and the rate of copying.
//!
//! A copy makes way for commits: while any come, it rests as long as it works. On few cores, a thread that copies and
//! verifies all the time takes a quarter of the commits' rate.

use std::time::{Duration, Instant};

use anden_base::progress::Progress;

use crate::{Error, Result};

/// The longest sleep between two looks at the cancellation.
const MAX_SLEEP: Duration = Duration::from_millis(50);

/// Counts copied bytes, keeps to a rate, and makes way for commits.
pub(super) struct CopyPace<'a> {
    progress: &'a dyn Progress,
    /// Bytes a second; `None`: no limit.
    rate: Option<u64>,
    begin: Instant,
    num_bytes: u64,
    /// The epoch of the last commit.
    epoch: &'a dyn Fn() -> u64,
    /// When this part of the copy began, and the epoch then.
    part_begin: (Instant, u64),
}

impl<'a> CopyPace<'a> {
    /// Copies at most `rate` bytes a second, and half of the time while `epoch` goes up.
    ///
    /// # Errors
    /// The rate is 0.
    pub(super) fn new(progress: &'a dyn Progress, rate: Option<u64>, epoch: &'a dyn Fn() -> u64) -> Result<Self> {
        if rate == Some(0) {
            return Err(Error::options("cannot copy at limit_rate 0: give a rate above 0, or none"));
        }
        let begin = Instant::now();
        Ok(Self { progress, rate, begin, num_bytes: 0, epoch, part_begin: (begin, epoch()) })
    }

    /// Reports a new stage.
    pub(super) fn stage(&mut self, name: &str, total: Option<u64>) {
        self.progress.stage(name, total);
        self.part_begin = (Instant::now(), (self.epoch)());
    }

    /// Counts bytes that were copied. Sleeps if that was faster than the rate, or if commits came meanwhile.
    ///
    /// # Errors
    /// Cancellation.
    pub(super) fn copied(&mut self, num_bytes: usize) -> Result<()> {
        self.num_bytes += num_bytes as u64;
        self.progress.advance(num_bytes as u64);
        self.progress.check()?;
        let (begin, before) = self.part_begin;
        let (now, epoch) = (Instant::now(), (self.epoch)());
        if epoch > before {
            self.sleep_until(now + (now - begin))?;
        }
        if let Some(rate) = self.rate {
            // A sum of the whole copy, so that a slow disk may catch up.
            self.sleep_until(self.begin + Duration::from_secs_f64(self.num_bytes as f64 / rate as f64))?;
        }
        self.part_begin = (Instant::now(), epoch);
        Ok(())
    }

    fn sleep_until(&self, due: Instant) -> Result<()> {
        while let Some(rest) = due.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
            std::thread::sleep(rest.min(MAX_SLEEP));
            self.progress.check()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anden_base::progress::Silent;

    use super::*;

    const WORK: Duration = Duration::from_millis(30);

    /// The time that the pace takes for itself in the second of two parts, each of the same work.
    fn rest(epoch: &dyn Fn() -> u64) -> Duration {
        let mut pace = CopyPace::new(&Silent, None, epoch).unwrap();
        pace.copied(1).unwrap();
        std::thread::sleep(WORK);
        let begin = Instant::now();
        pace.copied(1).unwrap();
        begin.elapsed()
    }

    #[test]
    fn a_copy_rests_while_commits_come() {
        let epoch = Cell::new(0);
        let with_commits = || {
            epoch.set(epoch.get() + 1);
            epoch.get()
        };
        assert!(rest(&with_commits) >= WORK);
        // The least of several, because a busy machine may stop the thread at any place.
        assert!((0..5).map(|_| rest(&|| 7)).min().unwrap() < WORK);
    }
}
