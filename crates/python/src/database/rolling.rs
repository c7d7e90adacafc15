//! Windows that move.

use parking_lot::Mutex;
use pyo3::prelude::*;

use super::Database;
use crate::error::{Result, invalid, misused};
use crate::view::View;

#[pymethods]
impl Database {
    /// Iterate over the windows of ``k`` snapshots in a row, the oldest first. They are those of `view`, without
    /// isolated vertices.
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
