//! Progress, cancellation and the rate of copying.

use std::time::{Duration, Instant};

use anden_base::progress::Progress;

use crate::{Error, Result};

/// The longest sleep between two looks at the cancellation.
const MAX_SLEEP: Duration = Duration::from_millis(50);

/// Counts copied bytes, and keeps to a rate.
pub(super) struct CopyPace<'a> {
    progress: &'a dyn Progress,
    /// Bytes a second; `None`: no limit.
    rate: Option<u64>,
    begin: Instant,
    num_bytes: u64,
}

impl<'a> CopyPace<'a> {
    /// Copies at most `rate` bytes a second.
    ///
    /// # Errors
    /// The rate is 0.
    pub(super) fn new(progress: &'a dyn Progress, rate: Option<u64>) -> Result<Self> {
        if rate == Some(0) {
            return Err(Error::options("cannot copy at limit_rate 0: give a rate above 0, or none"));
        }
        Ok(Self { progress, rate, begin: Instant::now(), num_bytes: 0 })
    }

    /// Reports a new stage.
    pub(super) fn stage(&self, name: &str, total: Option<u64>) {
        self.progress.stage(name, total);
    }

    /// Counts bytes that were copied. Sleeps if that was faster than the rate.
    ///
    /// # Errors
    /// Cancellation.
    pub(super) fn copied(&mut self, num_bytes: usize) -> Result<()> {
        self.num_bytes += num_bytes as u64;
        self.progress.advance(num_bytes as u64);
        self.progress.check()?;
        let Some(rate) = self.rate else { return Ok(()) };
        // A sum of the whole copy, so that a slow disk may catch up.
        let due = Duration::from_secs_f64(self.num_bytes as f64 / rate as f64);
        while let Some(rest) = due.checked_sub(self.begin.elapsed()).filter(|rest| !rest.is_zero()) {
            std::thread::sleep(rest.min(MAX_SLEEP));
            self.progress.check()?;
        }
        Ok(())
    }
}
