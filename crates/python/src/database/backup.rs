//! Backups of a database.

use anden::backup::BackupOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Database;
use crate::error::Result;
use crate::options::{path, size_of_text};

#[pymethods]
impl Database {
    /// Copy everything committed, as of one epoch, to a new directory or file. Commits and merges go on meanwhile.
    ///
    /// Parameters
    /// ----------
    /// target : str or os.PathLike
    ///     A new directory, or a new file if the name ends in ``.tar.zst``.
    /// since : str or os.PathLike, optional
    ///     An earlier backup: only files that it lacks are copied.
    /// limit_rate : int or str, optional
    ///     Copy at most this many bytes a second, such as ``"50M"``.
    ///
    /// Returns
    /// -------
    /// dict
    ///     ``backup`` and ``parent``: identities of this and of the earlier backup; ``history``, ``epoch``, ``files``,
    ///     ``bytes``, ``state_bytes``.
    #[pyo3(signature = (target, *, since=None, limit_rate=None))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        target: &Bound<'_, PyAny>,
        since: Option<&Bound<'_, PyAny>>,
        limit_rate: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyDict>> {
        let target = path(target)?;
        let since = since.map(path).transpose()?;
        let limit_rate = limit_rate.map(size_of_text).transpose()?;
        let options = BackupOptions { since, limit_rate };
        let report = self.opened.run(py, move |database| database.backup_with(&target, &options))?;
        let dict = PyDict::new(py);
        dict.set_item("backup", report.id.to_string())?;
        dict.set_item("parent", report.parent.map(|parent| parent.to_string()))?;
        dict.set_item("history", report.history.to_string())?;
        dict.set_item("epoch", report.epoch)?;
        dict.set_item("files", report.num_files)?;
        dict.set_item("bytes", report.num_bytes)?;
        dict.set_item("state_bytes", report.state_bytes)?;
        Ok(dict)
    }
}
