//! Leases on snapshots.

use anden::snapshot::SnapshotId;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::Database;
use crate::error::{Result, misused};
use crate::snapshot::snapshot_id;

/// A lease on a snapshot: ``db.lease(n)``.
///
/// No process can drop the snapshot until the lease is released: by `release`, at the end of a ``with`` block, or by the
/// end of the process.
#[pyclass(frozen, module = "anden")]
pub struct Lease {
    snapshot: u32,
    held: Mutex<Option<anden::snapshot::Lease>>,
}

#[pymethods]
impl Lease {
    /// The number of the snapshot.
    #[getter]
    fn snapshot(&self) -> u32 {
        self.snapshot
    }

    /// Release the lease. A second call does nothing.
    fn release(&self) {
        drop(self.held.lock().take());
    }

    fn __enter__(slf: PyRef<'_, Self>) -> Result<PyRef<'_, Self>> {
        match slf.held.lock().is_some() {
            true => {}
            false => return Err(misused(format!("the lease on snapshot {} was released", slf.snapshot))),
        }
        Ok(slf)
    }

    #[pyo3(signature = (_kind, _value, _traceback, /))]
    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _traceback: &Bound<'_, PyAny>) -> bool {
        self.release();
        false
    }

    fn __repr__(&self) -> String {
        let end = if self.held.lock().is_some() { "" } else { ", released" };
        format!("Lease(snapshot={}{end})", self.snapshot)
    }
}

#[pymethods]
impl Database {
    /// Take a lease on a snapshot: no process can drop the snapshot until the lease is released, or its process ends.
    ///
    /// A view needs no lease, because it keeps its files open. A lease is for later views, in this process or others.
    ///
    /// Parameters
    /// ----------
    /// snapshot : int, str or Snapshot
    ///     The number, the name or the time of a snapshot.
    ///
    /// Returns
    /// -------
    /// Lease
    ///     A context manager, which releases the lease.
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     The snapshot does not exist or was dropped.
    /// InvalidInput
    ///     The directory cannot be written and has no file ``LEASES``.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> _ = db.append([1], [2])
    /// >>> with db.lease(1) as lease:
    /// ...     len(db.leases()), lease.snapshot
    /// (1, 1)
    fn lease(&self, py: Python<'_>, snapshot: &Bound<'_, PyAny>) -> Result<Lease> {
        let asked: SnapshotId = snapshot_id(snapshot, &self.opened)?;
        let lease = self.opened.run(py, move |database| database.lease(asked))?;
        Ok(Lease { snapshot: lease.snapshot(), held: Mutex::new(Some(lease)) })
    }

    /// The leases on all snapshots, of this process and others, as a list of dicts with ``snapshot``, ``process`` and
    /// ``program``. The last two are None if the system does not tell them.
    fn leases<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for lease in self.opened.run(py, |database| database.leases())? {
            let dict = PyDict::new(py);
            dict.set_item("snapshot", lease.snapshot)?;
            dict.set_item("process", lease.holder.process)?;
            dict.set_item("program", lease.holder.program)?;
            list.append(dict)?;
        }
        Ok(list)
    }
}
