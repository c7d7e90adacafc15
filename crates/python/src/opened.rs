//! The database that the Python objects of one handle share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use pyo3::prelude::*;

use crate::calls;
use crate::error::{Result, misused};
use crate::transaction::TransactionState;

/// An open database. It is closed on request, or with the last object that uses it.
pub struct Opened {
    handle: RwLock<Option<Arc<anden::Database>>>,
    is_closed: AtomicBool,
    transactions: Mutex<Vec<Weak<TransactionState>>>,
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

    fn closed(&self) -> crate::error::Failure {
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
    /// nothing.
    pub fn close(&self) -> anden::Result<()> {
        let Some(database) = self.handle.write().take() else { return Ok(()) };
        self.is_closed.store(true, Ordering::Release);
        for transaction in self.transactions.lock().drain(..) {
            transaction.upgrade().inspect(|transaction| transaction.end("its database was closed"));
        }
        match Arc::try_unwrap(database) {
            Ok(database) => database.close(),
            // Another thread is in a call. The database ends with it; the snapshot is made now.
            Err(shared) => shared.with_progress(Arc::<calls::Watch>::default()).close(),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A close may write for long, and other threads need the GIL meanwhile. Its error has no receiver.
        let close = || drop(self.close());
        if Python::try_attach(|py| py.detach(close)).is_none() {
            let _ = self.close();
        }
    }
}

/// Closes all databases that are open, for the end of the interpreter.
#[pyfunction]
pub fn _close_all(py: Python<'_>) {
    let open: Vec<_> = OPEN.lock().drain(..).filter_map(|opened| opened.upgrade()).collect();
    // Nothing can receive an error any more. Durable commits stay in the WAL.
    py.detach(|| open.iter().for_each(|opened| drop(opened.close())));
}
