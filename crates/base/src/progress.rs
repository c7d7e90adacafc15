//! How long work tells its caller where it stands, and learns that it should stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// The caller's side of long work.
pub trait Progress: Sync {
    /// A new stage begins; `total` is in the unit of [`advance`](Self::advance), where known.
    fn stage(&self, _name: &str, _total: Option<u64>) {}

    /// `amount` more is done.
    fn advance(&self, _amount: u64) {}

    /// So many bytes were written to files; who wants them written slower waits here.
    fn wrote(&self, _num_bytes: u64) {}

    /// Whether the work should stop; polled every few milliseconds of work.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// The error that ends cancelled work.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled) once the caller wants it.
    fn check(&self) -> crate::Result<()> {
        if self.is_cancelled() { Err(crate::Error::Cancelled) } else { Ok(()) }
    }
}

/// Nobody is watching.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Nobody is watching, but somebody may say stop.
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
