//! Commits that are submitted and not answered yet.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anden_base::parallel::Pool;
use anden_engine::{CommitReceipt, Engine, PendingCommit};

use crate::{Database, Error, Result};

/// A submitted commit. It happens at the latest when a caller waits for this commit or a later one.
///
/// [`wait`](Self::wait) blocks the thread. As a future, it does not: awaiting needs no particular executor, and the
/// output is that of `wait`. Dropping it waits too, but discards the result.
///
/// It borrows nothing: it may move to another thread, and outlive the [`Database`], which it keeps open.
///
/// ```
/// use anden::{Database, Options, Update};
///
/// async fn follow(db: &Database) -> anden::Result<u64> {
///     let first = db.submit(&[Update::add_edge(1, 2)])?;
///     let second = db.submit(&[Update::add_edge(2, 3)])?;
///     first.await?;
///     second.await
/// }
/// ```
#[must_use = "a commit may fail, and only `wait` or `await` returns the error"]
pub struct Pending {
    engine: Arc<Engine>,
    pool: Arc<Pool>,
    receipt: CommitReceipt,
    is_answered: bool,
    /// Another thread may hold the database to wait in place of this future.
    is_polled: bool,
}

impl Pending {
    pub(crate) fn new(database: &Database, commit: PendingCommit<'_>) -> Self {
        let (engine, pool) = (Arc::clone(database.inner()), Arc::clone(database.session().shared_pool()));
        // A receipt borrows nothing, so the commit may outlive the handle.
        Self { engine, pool, receipt: commit.into_receipt(), is_answered: false, is_polled: false }
    }

    /// Whether [`wait`](Self::wait) would return at once. Asking does not commit anything.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let (first, second) = (db.submit(&[Update::add_edge(1, 2)])?, db.submit(&[Update::add_edge(2, 3)])?);
    /// assert!(!first.is_done());
    /// second.wait()?;
    /// assert!(first.is_done());
    /// # Ok::<(), anden::Error>(())
    /// ```
    pub fn is_done(&self) -> bool {
        self.is_answered || self.engine.is_done(&self.receipt)
    }

    /// Waits for the commit. Returns an epoch at which the commit is visible.
    ///
    /// # Errors
    /// As [`Transaction::commit`](crate::Transaction::commit) and [`Database::apply`].
    pub fn wait(mut self) -> Result<u64> {
        // Set before the wait: the drop of `self` must not wait again.
        if std::mem::replace(&mut self.is_answered, true) {
            return Err(answered_before());
        }
        Ok(self.engine.wait_for(&self.receipt, &self.pool)?)
    }
}

impl Future for Pending {
    type Output = Result<u64>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.is_answered {
            return Poll::Ready(Err(answered_before()));
        }
        let answer = this.engine.poll_for(&this.receipt, &this.pool, context.waker());
        this.is_polled = true;
        this.is_answered = answer.is_ready();
        answer.map_err(Error::from)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_answered {
            // The commit was promised, so it happens although its answer is lost.
            self.engine.give_up(&self.receipt, &self.pool);
        }
        if self.is_polled {
            // Waits for a thread that holds the database in place of this future.
            self.engine.forget_waker(&self.receipt);
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("is_answered", &self.is_answered).finish_non_exhaustive()
    }
}

/// The error of a caller that asks again.
fn answered_before() -> Error {
    Error::InvalidInput("cannot wait for a commit: its answer was given before".into())
}
