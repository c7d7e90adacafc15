//! Submitted commits.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::calls::{self, Watch};
use crate::error::{Failure, Result};

/// A caller that only submits waits once in this many commits, well before the queue of the engine is full.
const MOST_IN_FLIGHT: u32 = 1 << 12;

/// A submitted commit that is not answered yet. `wait` returns its epoch, or raises the error of the commit.
///
/// Many commits in flight form large groups, which cost less per commit. Dropping a Pending waits too, and discards the
/// result.
///
/// Examples
/// --------
/// >>> import anden
/// >>> db = anden.create(None)
/// >>> pending = [db.submit([anden.Update.add_edge(i, i + 1)]) for i in range(100)]
/// >>> for commit in pending:
/// ...     epoch = commit.wait()
/// >>> db.view().num_edges
/// 100
///
/// Ctrl-C ends a wait, and the commit still happens; another `wait` returns its answer.
#[pyclass(frozen, module = "anden")]
pub struct Pending(Arc<Mutex<PendingState>>);

enum PendingState {
    Waiting(anden::Pending),
    Answered(anden::Result<u64>),
}

impl PendingState {
    /// Waits for the answer.
    fn answer(&mut self) -> anden::Result<u64> {
        // The place of the commit while it is waited for. A panic of the wait would leave this answer.
        let unknown = Self::Answered(Err(anden::Error::Internal("the wait for the commit panicked".into())));
        let answer = match std::mem::replace(self, unknown) {
            Self::Waiting(pending) => pending.wait(),
            Self::Answered(answer) => answer,
        };
        *self = Self::Answered(answer.clone());
        answer
    }

    /// Whether a wait would end at once.
    fn is_done(&self) -> bool {
        match self {
            Self::Waiting(pending) => pending.is_done(),
            Self::Answered(_) => true,
        }
    }
}

impl Pending {
    /// Submits a commit by `submit`.
    pub fn submit(
        py: Python<'_>,
        num_submits: &AtomicU32,
        submit: impl FnOnce() -> Result<anden::Pending> + Send,
    ) -> Result<Self> {
        let pending = Self(Arc::new(Mutex::new(PendingState::Waiting(py.detach(submit)?))));
        // Waits now and then in a way that Ctrl-C ends: the engine's own wait for a full queue has no end.
        if (num_submits.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(MOST_IN_FLIGHT) {
            let state = Arc::clone(&pending.0);
            calls::run_guarded(py, &Watch::default(), move |_| {
                // The error is that of the caller's wait.
                drop(state.lock().answer());
                Ok(())
            })?;
        }
        Ok(pending)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // A wait that was interrupted has the commit.
        let Some(state) = Arc::get_mut(&mut self.0).map(Mutex::get_mut) else { return };
        if state.is_done() {
            return;
        }
        let state = Arc::clone(&self.0);
        Python::try_attach(|py| calls::run_in_drop(py, move || drop(state.lock().answer())));
    }
}

#[pymethods]
impl Pending {
    /// Wait for the commit. Returns an epoch at which it is visible. A second call returns the same answer.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The commit failed; nothing of it was changed.
    fn wait(&self, py: Python<'_>) -> Result<u64> {
        // Most commits of a long list are answered once the first one is.
        if let Some(mut state) = self.0.try_lock()
            && state.is_done()
        {
            return Ok(state.answer()?);
        }
        let state = Arc::clone(&self.0);
        // A second thread waits here for the first one.
        calls::run_guarded(py, &Watch::default(), move |_| state.lock().answer().map_err(Failure::from))
    }

    /// Whether the commit is done, without waiting for it.
    fn done(&self) -> bool {
        // A thread that waits holds the lock until the commit is done.
        let Some(mut state) = self.0.try_lock() else { return false };
        let PendingState::Waiting(pending) = &mut *state else { return true };
        match Pin::new(pending).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => false,
            Poll::Ready(answer) => {
                *state = PendingState::Answered(answer);
                true
            }
        }
    }

    fn __repr__(&self) -> &'static str {
        if self.done() { "<anden.Pending, done>" } else { "<anden.Pending, in flight>" }
    }
}
