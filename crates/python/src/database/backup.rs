//! Backups of a database.

use anden::snapshot::BackupOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{Database, session_of};
use crate::error::{Result, invalid};
use crate::opened::Opened;
use crate::options::{Keywords, path, size_of_text};

/// Make a database from a full backup and its increments, the newest last, and open it.
///
/// All is verified before the database appears. It begins a new history.
///
/// Parameters
/// ----------
/// path : str or os.PathLike
///     The directory of the new database, which must not exist.
/// *backups : str or os.PathLike
///     Directories or files that `Database.backup` made.
/// limit_rate : int or str, optional
///     Copy at most this many bytes a second, such as ``"50M"``.
/// threads, memory
///     As in `open`.
///
/// Returns
/// -------
/// Database
#[pyfunction]
#[pyo3(signature = (path, *backups, **options), text_signature = "(path, *backups, limit_rate=None, threads=0, memory=None)")]
pub fn restore(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    backups: &Bound<'_, PyTuple>,
    options: Option<&Bound<'_, PyDict>>,
) -> Result<Database> {
    let path = self::path(path)?;
    let backups = backups.iter().map(|backup| self::path(&backup)).collect::<Result<Vec<_>>>()?;
    let mut given = Keywords::new("restore", options, &[&["limit_rate", "threads", "memory"]])?;
    let session = session_of(&mut given)?;
    let limit_rate = given.take_with("limit_rate", size_of_text)?;
    if backups.is_empty() {
        return Err(invalid("restore() needs a backup: give one after the path"));
    }
    let place = path.clone();
    let database = crate::calls::run(py, move |watch| {
        let session = session.with_progress(watch);
        anden::Database::restore(&backups, &place, limit_rate, &session)?;
        anden::Database::open_with(&place, &(&session).into())
    })?;
    Ok(Database { opened: Opened::new(database, Some(path), false), report: None })
}

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
