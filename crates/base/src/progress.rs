//! Progress and cancellation of long work.

use std::sync::atomic::{AtomicBool, Ordering};

/// Receives the progress of long work, and may cancel it.
pub trait Progress: Sync {
    /// Reports a new stage. `total` is in the unit of [`advance`](Self::advance), if known.
    fn stage(&self, _name: &str, _total: Option<u64>) {}

    /// Reports that `amount` more is done.
    fn advance(&self, _amount: u64) {}

    /// Reports bytes written to files. An implementation that limits the write rate blocks here.
    fn wrote(&self, _num_bytes: u64) {}

    /// Whether the work should stop. Polled every few milliseconds.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Ends cancelled work with an error.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled) if [`is_cancelled`](Self::is_cancelled) is true.
    fn check(&self) -> crate::Result<()> {
        if self.is_cancelled() { Err(crate::Error::Cancelled) } else { Ok(()) }
    }
}

/// Ignores progress and never cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Ignores progress, and cancels on request.
#[derive(Debug, Default)]
pub struct CancelFlag(AtomicBool);

impl CancelFlag {
    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Progress for CancelFlag {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
