//! The database that the Python objects of one handle share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use pyo3::prelude::*;

use crate::calls::{self, Watch};
use crate::error::{Failure, Result, misused};
use crate::transaction::TransactionState;

/// An open database. It is closed on request, or with the last object that uses it.
pub struct Opened {
    handle: RwLock<Option<Arc<anden::Database>>>,
    is_closed: AtomicBool,
    transactions: Mutex<Vec<Weak<TransactionState>>>,
    /// Held by the call that closes the database.
    closing: Mutex<()>,
    /// The number of submitted commits.
    pub num_submits: Arc<AtomicU32>,
    /// The directory; `None` for a database in memory.
    pub path: Option<PathBuf>,
    pub is_read_only: bool,
}

/// Open databases, so that the end of the interpreter closes them.
static OPEN: Mutex<Vec<Weak<Opened>>> = Mutex::new(Vec::new());

impl Opened {
    pub fn new(database: anden::Database, path: Option<PathBuf>, is_read_only: bool) -> Arc<Self> {
        let opened = Arc::new(Self {
            handle: RwLock::new(Some(Arc::new(database))),
            is_closed: AtomicBool::new(false),
            transactions: Mutex::default(),
            closing: Mutex::default(),
            num_submits: Arc::default(),
            path,
            is_read_only,
        });
        let mut open = OPEN.lock();
        open.retain(|known| known.strong_count() > 0);
        open.push(Arc::downgrade(&opened));
        opened
    }

    /// # Errors
    /// The database was closed.
    pub fn require_open(&self) -> Result<()> {
        // Acquire pairs with the store of `close`.
        if self.is_closed.load(Ordering::Acquire) { Err(self.closed()) } else { Ok(()) }
    }

    fn closed(&self) -> Failure {
        misused(format!("the database {} was closed", self.place()))
    }

    /// Where the database is, for messages.
    pub fn place(&self) -> String {
        self.path.as_ref().map_or_else(|| "in memory".to_owned(), |path| path.display().to_string())
    }

    /// Whether both are handles of one database.
    pub fn is_handle_of(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.path.is_some() && self.path == other.path
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The database.
    ///
    /// # Errors
    /// The database was closed.
    pub fn database(&self) -> Result<Arc<anden::Database>> {
        self.handle.read().as_ref().map(Arc::clone).ok_or_else(|| self.closed())
    }

    /// Runs a long call on the database, without the GIL and with Ctrl-C.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&anden::Database) -> anden::Result<T> + Send + 'static,
    ) -> Result<T> {
        let database = self.database()?;
        calls::run(py, move |watch| work(&database.with_progress(watch)))
    }

    /// Notes an open transaction, which a close rolls back.
    pub fn note(&self, transaction: &Arc<TransactionState>) {
        let mut transactions = self.transactions.lock();
        // Ended transactions are removed now and then, so that the list stays short.
        if transactions.len() == transactions.capacity() {
            transactions.retain(|known| known.strong_count() > 0);
        }
        transactions.push(Arc::downgrade(transaction));
    }

    /// Closes the database: rolls back open transactions and makes a snapshot of what is committed. A second close does
    /// nothing, but waits for the first one, which an interrupt may have left.
    pub fn close(self: &Arc<Self>, py: Python<'_>) -> Result<()> {
        let opened = Arc::clone(self);
        calls::run_guarded(py, &Watch::default(), move |_| {
            let _closing = opened.closing.lock();
            Ok(opened.end()?)
        })
    }

    /// Does the work of [`close`](Self::close).
    fn end(&self) -> anden::Result<()> {
        let Some(database) = self.handle.write().take() else { return Ok(()) };
        self.is_closed.store(true, Ordering::Release);
        for transaction in self.transactions.lock().drain(..) {
            transaction.upgrade().inspect(|transaction| transaction.end("its database was closed"));
        }
        finish(database)
    }
}

/// Ends a handle of a database.
fn finish(database: Arc<anden::Database>) -> anden::Result<()> {
    match Arc::try_unwrap(database) {
        Ok(database) => database.close(),
        // Another thread is in a call. The database ends with it; the snapshot is made now.
        Err(shared) => shared.with_progress(Arc::<Watch>::default()).close(),
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let Some(database) = self.handle.get_mut().take() else { return };
        for transaction in self.transactions.get_mut().drain(..) {
            transaction.upgrade().inspect(|transaction| transaction.end("its database was closed"));
        }
        // A close may write for long, and other threads need the GIL meanwhile. Its error has no receiver.
        let mut close = Some(move || drop(finish(database)));
        if Python::try_attach(|py| close.take().map(|close| calls::run_in_drop(py, close))).is_none()
            && let Some(close) = close.take()
        {
            close();
        }
    }
}

/// Closes all databases that are open, for the end of the interpreter, and waits for calls that were interrupted.
#[pyfunction]
pub fn _close_all(py: Python<'_>) -> Result<()> {
    let open: Vec<_> = OPEN.lock().drain(..).filter_map(|opened| opened.upgrade()).collect();
    for opened in open {
        match opened.close(py) {
            // Nothing can receive an error any more. Durable commits stay in the WAL.
            Ok(()) | Err(Failure::Engine(_)) => {}
            // A second Ctrl-C ends the process at once.
            Err(interrupt) => return Err(interrupt),
        }
    }
    Ok(calls::wait_for_left(py)?)
}
