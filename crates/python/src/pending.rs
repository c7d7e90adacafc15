//! Submitted commits.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::error::{Result, misused};

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
#[pyclass(frozen, module = "anden")]
pub struct Pending(Mutex<PendingState>);

enum PendingState {
    Waiting(anden::Pending),
    Taken,
    Answered(anden::Result<u64>),
}

impl Pending {
    pub fn new(pending: anden::Pending) -> Self {
        Self(Mutex::new(PendingState::Waiting(pending)))
    }

    fn answer(&self) -> Result<u64> {
        let Some(mut state) = self.0.try_lock() else {
            return Err(misused("another thread waits for the commit"));
        };
        let answer = match std::mem::replace(&mut *state, PendingState::Taken) {
            PendingState::Waiting(pending) => pending.wait(),
            PendingState::Answered(answer) => answer,
            PendingState::Taken => return Err(misused("the wait for the commit was interrupted")),
        };
        *state = PendingState::Answered(answer.clone());
        Ok(answer?)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if matches!(self.0.get_mut(), PendingState::Waiting(_)) {
            // The drop waits for the commit, which may be in the hands of a thread that wants the GIL.
            let state = std::mem::replace(self.0.get_mut(), PendingState::Taken);
            let mut state = Some(state);
            Python::try_attach(|py| py.detach(|| drop(state.take())));
        }
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
        py.detach(|| self.answer())
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
