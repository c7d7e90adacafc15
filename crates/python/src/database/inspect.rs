//! What a database says about itself: statistics and windows that move.

use anden::stats::Stats;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Database;
use crate::error::{Result, invalid, misused};
use crate::view::View;

#[pymethods]
impl Database {
    /// Sizes on disk and in memory, and counters since the database was opened, as a dict of dicts.
    fn stats<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let stats = self.opened.run(py, |database| Ok(database.stats()))?;
        let dict = PyDict::new(py);
        dict.set_item("storage", storage(py, &stats)?)?;
        dict.set_item("memtable", memtable(py, &stats)?)?;
        dict.set_item("commits", commits(py, &stats)?)?;
        let views = PyDict::new(py);
        views.set_item("open", stats.views.open)?;
        views.set_item("oldest_seconds", stats.views.oldest_age.as_secs_f64())?;
        dict.set_item("views", views)?;
        Ok(dict)
    }

    /// Iterate over the windows of ``k`` snapshots in a row, the oldest first.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> for i in range(4):
    /// ...     _ = db.append([i], [i + 1])
    /// >>> [w.num_edges for w in db.rolling(2)]
    /// [1, 2, 2, 2]
    fn rolling(slf: Bound<'_, Self>, k: &Bound<'_, PyAny>) -> Result<RollingWindows> {
        let length = match k.extract::<usize>() {
            Ok(length @ 1..) => length,
            _ => return Err(invalid(format!("rolling() takes a number of snapshots above 0, not {}", k.repr()?))),
        };
        let numbers: Vec<u32> = slf.get().opened.database()?.snapshots().iter().map(|info| info.number).collect();
        let windows = numbers.windows(length).map(|window| (window[0], window[length - 1])).collect::<Vec<_>>();
        Ok(RollingWindows { database: slf.unbind(), windows: Mutex::new(windows.into_iter()) })
    }
}

/// Iterates over windows of snapshots: ``db.rolling(k)``.
#[pyclass(frozen, module = "anden")]
pub struct RollingWindows {
    database: Py<Database>,
    windows: Mutex<std::vec::IntoIter<(u32, u32)>>,
}

#[pymethods]
impl RollingWindows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<View>> {
        let next = self.windows.try_lock().ok_or_else(|| misused("the iterator is in use by another thread"))?.next();
        let Some((first, last)) = next else { return Ok(None) };
        let opened = &self.database.get().opened;
        let view = opened.run(py, move |database| database.window(first..=last))?;
        Ok(Some(View::new(view, opened)))
    }

    fn __len__(&self) -> usize {
        self.windows.lock().len()
    }
}

fn storage<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let (dict, storage) = (PyDict::new(py), &stats.storage);
    dict.set_item("bytes", storage.bytes)?;
    dict.set_item("bytes_per_edge", storage.bytes_per_edge)?;
    dict.set_item("bases", storage.bases)?;
    dict.set_item("deltas", storage.deltas)?;
    dict.set_item("bytes_loaded", storage.bytes_loaded)?;
    dict.set_item("bytes_written", storage.bytes_written)?;
    let files = PyDict::new(py);
    for (name, bytes) in &storage.files {
        files.set_item(name, bytes)?;
    }
    dict.set_item("files", files)?;
    Ok(dict)
}

fn memtable<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let (dict, live) = (PyDict::new(py), &stats.live);
    dict.set_item("bytes", live.delta_bytes)?;
    dict.set_item("added", live.added)?;
    dict.set_item("removed", live.removed)?;
    dict.set_item("log_bytes", live.log_bytes)?;
    dict.set_item("automatic_checkpoints", live.automatic_checkpoints)?;
    dict.set_item("automatic_merges", live.automatic_merges)?;
    dict.set_item("background_error", live.background_error.as_deref())?;
    Ok(dict)
}

fn commits<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let (dict, commits) = (PyDict::new(py), &stats.commits);
    dict.set_item("commits", commits.commits)?;
    dict.set_item("conflicts", commits.conflicts)?;
    dict.set_item("invalid", commits.invalid)?;
    dict.set_item("failures", commits.failures)?;
    dict.set_item("retries", commits.retries)?;
    dict.set_item("groups", commits.groups)?;
    dict.set_item("largest_group", commits.largest_group)?;
    dict.set_item("latency_ns_p50", commits.latency_ns_p50)?;
    dict.set_item("latency_ns_p99", commits.latency_ns_p99)?;
    Ok(dict)
}
