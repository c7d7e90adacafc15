//! The answers of submitted commits: for a caller that waits, that polls, or that gives up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};

use anden_base::parallel::Pool;

use crate::commit_queue::{CommitTimer, Committed, Ticket};
use crate::validation::CommitFailure;
use crate::{Engine, Error, Result};

/// What leads to the answer of a submitted commit, without a borrow of the database.
///
/// Its holder must ask for the answer or [give it up](Engine::give_up): nothing happens when this is dropped.
#[derive(Debug)]
#[must_use = "the commit may never happen unless a caller waits for it"]
pub struct CommitReceipt {
    pub(super) ticket: Ticket,
    pub(super) timer: Option<CommitTimer>,
    pub(super) outcome: Option<Arc<OnceLock<Committed>>>,
}

impl Engine {
    /// Whether a commit is done, or was refused.
    pub fn is_done(&self, receipt: &CommitReceipt) -> bool {
        self.commits().queue.is_answered(receipt.ticket)
    }

    /// Waits until a commit is done. Returns an epoch from which on it is visible.
    ///
    /// # Errors
    /// An update is invalid, or the disk failed. None of the updates has happened.
    pub fn wait_for(&self, receipt: &CommitReceipt, pool: &Pool) -> Result<u64> {
        match self.finish_commit(receipt, pool) {
            Ok(()) => Ok(self.outcome(receipt).map_or_else(|| self.epoch(), |committed| committed.epoch)),
            Err(failure) => Err(failure.into()),
        }
    }

    /// As [`wait_for`](Self::wait_for), without blocking: if the commit is not done, another thread waits for it and
    /// wakes the waker.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    pub fn poll_for(self: &Arc<Self>, receipt: &CommitReceipt, pool: &Arc<Pool>, waker: &Waker) -> Poll<Result<u64>> {
        let commits = self.commits();
        if !commits.queue.is_answered(receipt.ticket) && !commits.queue.is_broken() {
            if let Err(error) = self.require_here() {
                return Poll::Ready(Err(error));
            }
            // A thread serves the wakers already: its next turn includes this one.
            if !commits.polled.store(receipt.ticket, waker) {
                return Poll::Pending;
            }
            let (engine, shared) = (Arc::clone(self), Arc::clone(pool));
            let thread = std::thread::Builder::new().name("anden-commits".into());
            if thread.spawn(move || serve_pollers(engine, &shared)).is_ok() {
                return Poll::Pending;
            }
            // Without a thread, this caller has to commit, and the others poll again.
            wake_all(commits.polled.take(Ticket::MAX));
        }
        // An answered or broken queue answers at once. Only without a thread, the caller commits here.
        Poll::Ready(self.wait_for(receipt, pool))
    }

    /// Gives the answer of a commit up, which still happens.
    pub fn give_up(&self, receipt: &CommitReceipt, pool: &Pool) {
        if !std::thread::panicking() {
            // The answer is lost; `wait_for` returns it.
            let _ = self.finish_commit(receipt, pool);
        } else if self.require_here().is_ok() {
            // Committing could panic a second time and abort the process. Another caller commits the request.
            self.commits().abandon(receipt.ticket);
        }
    }

    /// Forgets the waker of a commit that no caller polls any more. Waits for a thread that serves it and so holds the
    /// database.
    pub fn forget_waker(&self, receipt: &CommitReceipt) {
        if self.require_here().is_ok() {
            self.commits().polled.forget(receipt.ticket);
        }
    }

    /// Waits for the turn of the thread that works for callers that poll. Then the last handle ends the database when it
    /// is dropped.
    pub fn wait_for_pollers(&self) {
        if self.require_here().is_ok() {
            self.commits().polled.wait_for_turn();
        }
    }

    /// The epoch and place of a commit, if the request asked for them and is done.
    fn outcome(&self, receipt: &CommitReceipt) -> Option<Committed> {
        receipt.outcome.as_ref()?.get().cloned()
    }

    pub(crate) fn finish_commit(&self, receipt: &CommitReceipt, pool: &Pool) -> Result<(), CommitFailure> {
        // A forked child must not commit the requests of its parent.
        self.require_here()?;
        let commits = self.commits();
        commits
            .queue
            .wait(receipt.ticket, |first, requests| self.commit_requests(first, requests, pool))
            .map_err(Error::from)?;
        commits.answer(receipt.ticket)?;
        commits.counters.finish(receipt.timer);
        Ok(())
    }
}

fn wake_all(wakers: Vec<Waker>) {
    // A waker of an executor that panics must not lose the other callers theirs.
    wakers.into_iter().for_each(|waker| drop(catch_unwind(AssertUnwindSafe(|| waker.wake()))));
}

/// Waits for the queue in place of the callers that poll, and wakes them.
fn serve_pollers(engine: Arc<Engine>, pool: &Pool) {
    let (polled, weak) = (Arc::clone(&engine.commits().polled), Arc::downgrade(&engine));
    let mut next = Some(engine);
    while let Some(engine) = next.take() {
        let queue = &engine.commits().queue;
        let last = polled.last().unwrap_or_default();
        // A panic breaks the queue, and then the callers get that answer.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            queue.wait(last, |first, requests| engine.commit_requests(first, requests, pool))
        }));
        // Before the wakers run: a woken caller may drop the last other handle and open the database again.
        drop(engine);
        wake_all(polled.take(last));
        if polled.serve_again() {
            next = weak.upgrade();
            if next.is_none() {
                // Without a handle of the database, no caller asks any more: end the turn that just began.
                polled.take(Ticket::MAX);
            }
        }
    }
}
