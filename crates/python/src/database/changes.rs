//! Changes of a database: appends, files of updates and batches.

use anden::changes::{AppendReport, ApplyOptions, ApplyReport};
use anden::load::{InputPath, InputReport, LoadReport};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::Database;
use crate::calls;
use crate::error::{Result, invalid, wrong_type};
use crate::loading::{APPENDING, KIND, READING, append_options, input};
use crate::options::{Keywords, durability, milliseconds};
use crate::update::updates_of;

#[pymethods]
impl Database {
    /// Add edges as a new snapshot.
    ///
    /// Parameters
    /// ----------
    /// sources : array or sequence of keys, or a table
    ///     The sources of the edges. A table (an Arrow, pandas or Polars one, or a dict of columns) holds all columns:
    ///     ``source``, ``target``, ``weight``, and properties of edges.
    /// targets : array or sequence of keys, optional
    ///     The targets. Missing vertices are added.
    /// weights : array or sequence of numbers, optional
    ///     The weights, if and only if the graph has weights.
    /// removed : tuple of two arrays, or a table, optional
    ///     Sources and targets of edges to remove; an edge that is removed and added exists afterwards.
    /// name : str, optional
    ///     The name of the snapshot.
    /// as_of : str, date or datetime, optional
    ///     The time of its data, in UTC without a zone.
    /// empty_ids : bool
    ///     Take empty text as a key, in a graph of string keys. Without it, an empty key is an error.
    ///
    /// Returns
    /// -------
    /// dict
    ///     What was added and removed, and the number of the snapshot.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> db.append([1, 2], [2, 3])["snapshot"]
    /// 2
    #[pyo3(
        signature = (sources=None, targets=None, weights=None, **options),
        text_signature = "($self, sources=None, targets=None, weights=None, *, removed=None, name=None, as_of=None, \
            empty_ids=False)"
    )]
    fn append<'py>(
        &self,
        py: Python<'py>,
        sources: Option<&Bound<'py, PyAny>>,
        targets: Option<&Bound<'py, PyAny>>,
        weights: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyDict>> {
        let database = self.opened.database()?;
        let mut given = Keywords::new("append", options, &[&["removed", "name", "as_of", "empty_ids"]])?;
        let removed = given.take_with("removed", removed_edges)?;
        let inputs = match (sources, targets) {
            (Some(table), None) if weights.is_none() => vec![input(table)?],
            (Some(sources), Some(targets)) => vec![edge_columns(sources, targets, weights)?],
            (None, None) if weights.is_none() && removed.is_some() => Vec::new(),
            _ => return Err(wrong_type("append() takes sources and targets, or a table, or only removed")),
        };
        if weights.is_some() && database.options().weight_type.is_none() {
            return Err(invalid("append() got weights, but the graph has none; create it with weighted=True"));
        }
        let mut options = append_options(&mut given, database.options())?;
        options.remove = removed.into_iter().collect();
        calls::require_others()?;
        let report = self.opened.run(py, move |database| database.append_files(&inputs, &options))?;
        Ok(append_dict(py, report)?)
    }

    /// Add the edges of files as a new snapshot. The arguments have the names of the options of ``anden append``.
    ///
    /// Parameters
    /// ----------
    /// *inputs : str or os.PathLike
    ///     Files of edges to add.
    /// remove : file or list of files, optional
    ///     Files of removals: ``u v`` a line for an edge, ``u`` for a vertex.
    /// name : str, optional
    ///     The name of the snapshot.
    /// as_of : str, date or datetime, optional
    ///     The time of its data, in UTC without a zone.
    /// maintenance : bool
    ///     Merge afterwards if a merge is due.
    ///
    /// Returns
    /// -------
    /// dict
    ///     What was added and removed, and the number of the snapshot.
    #[pyo3(
        signature = (*inputs, **options),
        text_signature = "($self, *inputs, remove=None, name=None, as_of=None, maintenance=True, format='auto', \
            duplicates=None, source_column=None, target_column=None, weight_column=None, header='auto', \
            delimiter=None, null=None, comment=None, trim=False, empty_ids=False, scratch_limit=None, columns=None, \
            edges=None, vertices=None, vertex_column=None, \
            vertex_properties='all', properties=None, property_types=None, order='auto', \
            io_order=False, on_error='stop', directed=None, undirected=False, ordered=False, out_only=False, ids=None, \
            weights=False, weight_type=None, multigraph=False)"
    )]
    fn append_files<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyDict>> {
        let inputs = inputs.iter().map(|file| input(&file)).collect::<Result<Vec<_>>>()?;
        let mut given = Keywords::new("append_files", options, &[READING, KIND, APPENDING])?;
        let database = self.opened.database()?;
        let options = append_options(&mut given, database.options())?;
        if !options.source.has_files(&inputs) && options.remove.is_empty() {
            return Err(invalid("append_files() needs a file, of edges, of vertices or of removals"));
        }
        calls::require_others()?;
        let report = self.opened.run(py, move |database| database.append_files(&inputs, &options))?;
        Ok(append_dict(py, report)?)
    }

    /// Apply updates: those of a file, as ``anden apply`` reads it, or those of an iterable.
    ///
    /// Parameters
    /// ----------
    /// updates : str, os.PathLike or iterable of Update
    ///     A file with one update a line (``+ u v [weight] [NAME=VALUE ...]``, ``- u v``, ``= u v weight``, ``v+ u``,
    ///     ``v- u``, ``p u NAME VALUE``, ``p u v NAME VALUE``), or the updates of one transaction.
    /// batch : int
    ///     The number of updates of a file in one transaction.
    /// flush : float or str
    ///     Seconds, or text such as ``"100ms"``, until an unfilled batch of a pipe that pauses is committed.
    /// durability : {"sync", "batched", "none"}, optional
    ///     Which crashes an answered transaction survives.
    /// checkpoint_every : int, optional
    ///     Make a snapshot whenever this many updates were read.
    /// strict : bool
    ///     Refuse edges to missing vertices, and removals of what does not exist.
    ///
    /// Returns
    /// -------
    /// dict
    ///     The numbers of updates and transactions, and the seconds.
    #[pyo3(
        signature = (updates, **options),
        text_signature = "($self, updates, *, batch=1000, flush='100ms', durability=None, checkpoint_every=None, \
            strict=False)"
    )]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        updates: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyDict>> {
        let known = ["batch", "flush", "durability", "checkpoint_every", "strict"];
        let mut given = Keywords::new("apply", options, &[&known])?;
        let usual = ApplyOptions::default();
        let options = ApplyOptions {
            batch: given.take("batch")?.unwrap_or(usual.batch),
            flush: given.take_with("flush", flush)?.unwrap_or(usual.flush),
            checkpoint_every: given.take("checkpoint_every")?,
            strict: given.is_set("strict")?,
            durability: given.take_with("durability", durability)?,
        };
        if options.batch == 0 || options.checkpoint_every == Some(0) {
            return Err(invalid("batch and checkpoint_every are numbers above 0"));
        }
        if updates.is_instance_of::<pyo3::types::PyString>() || updates.hasattr("__fspath__")? {
            let file = input(updates)?;
            let report = self.opened.run(py, move |database| database.apply_file(&file, &options, |_| Ok(())))?;
            return Ok(apply_dict(py, report)?);
        }
        let updates = updates_of(updates)?;
        let report = self.opened.run(py, move |database| apply_batch(database, &updates, &options))?;
        Ok(apply_dict(py, report)?)
    }
}

/// Columns of edges as an input.
fn edge_columns<'py>(
    sources: &Bound<'py, PyAny>,
    targets: &Bound<'py, PyAny>,
    weights: Option<&Bound<'py, PyAny>>,
) -> Result<InputPath> {
    let columns = PyDict::new(sources.py());
    columns.set_item("source", sources)?;
    columns.set_item("target", targets)?;
    if let Some(weights) = weights {
        columns.set_item("weight", weights)?;
    }
    input(&columns)
}

/// Edges to remove: a tuple of two columns, or a table.
fn removed_edges(removed: &Bound<'_, PyAny>) -> Result<InputPath> {
    let Ok(ends) = removed.cast::<PyTuple>() else { return input(removed) };
    match ends.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
        Ok((sources, targets)) => edge_columns(&sources, &targets, None),
        Err(_) => Err(wrong_type(format!("removed is a tuple of sources and targets, not {} items", ends.len()))),
    }
}

/// Applies updates in one transaction.
fn apply_batch(
    database: &anden::Database,
    updates: &[anden::Update],
    options: &ApplyOptions,
) -> anden::Result<ApplyReport> {
    let start = std::time::Instant::now();
    match options.strict {
        true => database.apply_strict(updates)?,
        false => database.apply_with(updates, options.durability.unwrap_or_else(|| database.durability()))?,
    };
    let (updates, seconds) = (updates.len() as u64, start.elapsed().as_secs_f64());
    Ok(ApplyReport { updates, transactions: 1, seconds, automatic_checkpoints: 0 })
}

fn flush(value: &Bound<'_, PyAny>) -> Result<std::time::Duration> {
    if let Ok(seconds) = value.extract::<f64>() {
        return std::time::Duration::try_from_secs_f64(seconds)
            .map_err(|_| invalid(format!("expected a number of seconds, not {seconds}")));
    }
    let text: String = value.extract().map_err(|_| wrong_type("expected seconds, or text such as '100ms'"))?;
    milliseconds(&text).ok_or_else(|| invalid(format!("expected a time such as 100ms, not '{text}'")))
}

fn append_dict(py: Python<'_>, report: AppendReport) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("snapshot", report.snapshot)?;
    dict.set_item("vertices", report.vertices)?;
    dict.set_item("edges", report.edges)?;
    dict.set_item("added", report.added)?;
    dict.set_item("removed", report.removed)?;
    dict.set_item("missing", report.missing)?;
    dict.set_item("changed_properties", report.changed_properties)?;
    dict.set_item("seconds", report.seconds)?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("skipped", report.skipped)?;
    dict.set_item("maintenance_error", report.maintenance_error)?;
    dict.set_item("notes", report.notes)?;
    add_input(&dict, &report.input)?;
    Ok(dict)
}

/// The report of a load.
pub fn load_dict<'py>(py: Python<'py>, report: &LoadReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("snapshot", report.snapshot)?;
    dict.set_item("vertices", report.vertices)?;
    dict.set_item("edges", report.edges)?;
    dict.set_item("seconds", report.seconds)?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("peak_bytes", report.peak_bytes)?;
    dict.set_item("skipped", report.skipped)?;
    dict.set_item("first_skipped", report.first_skipped.as_deref())?;
    dict.set_item("notes", &report.notes)?;
    add_input(&dict, &report.input)?;
    Ok(dict)
}

/// Adds how the inputs were read.
fn add_input(dict: &Bound<'_, PyDict>, input: &InputReport) -> PyResult<()> {
    let columns = &input.columns;
    dict.set_item("source_column", columns.source.as_ref().map(ToString::to_string))?;
    dict.set_item("target_column", columns.target.as_ref().map(ToString::to_string))?;
    dict.set_item("weight_column", columns.weight.as_ref().map(ToString::to_string))?;
    dict.set_item("properties", &input.properties)?;
    dict.set_item("edges_read", input.edges)
}

fn apply_dict(py: Python<'_>, report: ApplyReport) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("updates", report.updates)?;
    dict.set_item("transactions", report.transactions)?;
    dict.set_item("seconds", report.seconds)?;
    Ok(dict)
}
