//! Backups of a database, and its repair.

use anden::snapshot::{BackupOptions, Loss, VertexSpan};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

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

/// Save what can be read of a damaged database in a new one. The damaged one is only read.
///
/// Parameters
/// ----------
/// database : str or os.PathLike
///     The directory of the damaged database. No process may write it meanwhile.
/// to : str or os.PathLike
///     The directory of the new database, which must not exist.
/// threads, memory
///     As in `open`.
///
/// Returns
/// -------
/// dict
///     ``history``, ``source_history``, ``epoch``, ``snapshots``, ``vertices``, ``edges``, ``files``, ``bytes``, and
///     ``losses``: a list of what is lost, each a dict with ``kind``, ``text`` and what the kind has. It is empty if the
///     database was whole.
#[pyfunction]
#[pyo3(signature = (database, to, **options), text_signature = "(database, to, *, threads=0, memory=None)")]
pub fn repair<'py>(
    py: Python<'py>,
    database: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyDict>> {
    let (from, to) = (path(database)?, path(to)?);
    let mut given = Keywords::new("repair", options, &[&["threads", "memory"]])?;
    let session = session_of(&mut given)?;
    let report = crate::calls::run(py, move |watch| {
        let session = session.with_progress(watch);
        anden::Database::repair(&from, &to, &session)
    })?;
    let (saved, dict) = (&report.saved, PyDict::new(py));
    dict.set_item("history", saved.history.to_string())?;
    dict.set_item("source_history", saved.source_history.to_string())?;
    dict.set_item("epoch", saved.epoch)?;
    dict.set_item("snapshots", saved.num_snapshots)?;
    dict.set_item("vertices", saved.num_vertices)?;
    dict.set_item("edges", saved.num_edges)?;
    dict.set_item("files", saved.num_files)?;
    dict.set_item("bytes", saved.num_bytes)?;
    let losses = report.losses.iter().map(|loss| loss_dict(py, loss)).collect::<Result<Vec<_>>>()?;
    dict.set_item("losses", PyList::new(py, losses)?)?;
    Ok(dict)
}

fn loss_dict<'py>(py: Python<'py>, loss: &Loss) -> Result<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", loss.kind())?;
    dict.set_item("text", loss.to_string())?;
    match loss {
        Loss::Snapshot { number, name } => {
            dict.set_item("number", number)?;
            dict.set_item("name", name)?;
        }
        Loss::Edges { from, to } => {
            dict.set_item("from", span_dict(py, from)?)?;
            dict.set_item("to", to.as_ref().map(|to| span_dict(py, to)).transpose()?)?;
        }
        Loss::Vertices { num_vertices } => dict.set_item("vertices", num_vertices)?,
        Loss::Keys { vertices } => dict.set_item("vertices", span_dict(py, vertices)?)?,
        Loss::Values { property, vertices } => {
            dict.set_item("property", property)?;
            dict.set_item("vertices", span_dict(py, vertices)?)?;
        }
        Loss::EdgeValues { property, num_edges } => {
            dict.set_item("property", property)?;
            dict.set_item("edges", num_edges)?;
        }
        Loss::EdgeNumbers { num_edges } => dict.set_item("edges", num_edges)?,
        Loss::Index { property } => dict.set_item("property", property)?,
        Loss::Commits { first, last } => {
            dict.set_item("first", first)?;
            dict.set_item("last", last)?;
        }
    }
    Ok(dict)
}

fn span_dict<'py>(py: Python<'py>, span: &VertexSpan) -> Result<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("first_id", span.first)?;
    dict.set_item("last_id", span.last)?;
    let keys = span.keys.as_ref().map(|(first, last)| (first.to_string(), last.to_string()));
    dict.set_item("keys", keys)?;
    Ok(dict)
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
