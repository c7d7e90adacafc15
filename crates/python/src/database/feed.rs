//! The change feed.

use std::sync::Arc;

use anden::changes::{AddedEdge, GraphChange, PropertyOf};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList};

use super::Database;
use crate::calls::{self, Watch};
use crate::error::{Result, misused};
use crate::key::key_object;
use crate::opened::Opened;
use crate::options::size_of_text;
use crate::value::{owned_object, weight_object};

/// Iterates over the committed changes, one `ChangeSet` for each commit group: ``db.changes(since)``.
#[pyclass(frozen, module = "anden")]
pub struct ChangeFeed {
    feed: Arc<Mutex<anden::changes::ChangeFeed>>,
    watch: Arc<Watch>,
    opened: Arc<Opened>,
}

#[pymethods]
impl ChangeFeed {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<ChangeSet>> {
        self.opened.require_open()?;
        let feed = Arc::clone(&self.feed);
        let next = calls::run_watched(py, &self.watch, move || match feed.try_lock() {
            Some(mut feed) => Ok(feed.next().transpose()?),
            None => Err(misused("the iterator is in use by another thread")),
        })?;
        Ok(next.map(ChangeSet))
    }
}

/// The changes of one commit group: all that became visible with its epoch. Or the net changes up to a snapshot.
#[pyclass(frozen, module = "anden")]
pub struct ChangeSet(anden::changes::ChangeSet);

#[pymethods]
impl ChangeSet {
    /// The epoch of the commit group, which is the ``since`` to go on from.
    #[getter]
    fn epoch(&self) -> u64 {
        self.0.epoch()
    }

    /// Whether these are the net changes between the epochs of two snapshots, because the log lacks the commits.
    #[getter]
    fn net(&self) -> bool {
        self.0.is_net()
    }

    /// The changes in their order, as dicts. ``"op"`` names the kind of change, the other items are its arguments, as
    /// in the lines of ``anden tail``. A change may change nothing, for example if the edge to add is there.
    fn changes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        let set = self.0.clone();
        let changes = calls::run(py, move |_| set.changes())?;
        let dicts = changes.iter().map(|change| change_dict(py, change)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, dicts)?)
    }

    fn __repr__(&self) -> String {
        format!("ChangeSet(epoch={}{})", self.0.epoch(), if self.0.is_net() { ", net" } else { "" })
    }
}

fn change_dict<'py>(py: Python<'py>, change: &GraphChange) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let op = match change {
        GraphChange::VertexBound(bound) => {
            dict.set_item("bound", bound)?;
            "vertex_bound"
        }
        GraphChange::AddVertex(key) => {
            dict.set_item("vertex", key_object(py, key)?)?;
            "add_vertex"
        }
        GraphChange::RemoveVertex(key) => {
            dict.set_item("vertex", key_object(py, key)?)?;
            "remove_vertex"
        }
        GraphChange::NewProperty { of, name, property_type } => {
            dict.set_item("of", if *of == PropertyOf::Vertices { "vertices" } else { "edges" })?;
            dict.set_item("name", name)?;
            dict.set_item("type", property_type.name())?;
            "new_property"
        }
        GraphChange::SetVertexProperty { vertex, name, value } => {
            dict.set_item("vertex", key_object(py, vertex)?)?;
            dict.set_item("name", name)?;
            dict.set_item("value", owned_object(py, value)?)?;
            "set_vertex_property"
        }
        GraphChange::AddEdge(edge) => {
            add_edge(&dict, edge)?;
            "add_edge"
        }
        GraphChange::RemoveEdges { source, target } => {
            dict.set_item("source", key_object(py, source)?)?;
            dict.set_item("target", key_object(py, target)?)?;
            "remove_edges"
        }
        other => {
            dict.set_item("text", format!("{other:?}"))?;
            "other"
        }
    };
    dict.set_item("op", op)?;
    Ok(dict)
}

/// The arguments of an added edge that the graph has.
fn add_edge(dict: &Bound<'_, PyDict>, edge: &AddedEdge) -> PyResult<()> {
    let py = dict.py();
    dict.set_item("source", key_object(py, &edge.source)?)?;
    dict.set_item("target", key_object(py, &edge.target)?)?;
    if let Some(weight) = edge.weight {
        dict.set_item("weight", weight_object(py, weight)?)?;
    }
    if let Some(number) = edge.number {
        dict.set_item("number", number)?;
    }
    let Some(row) = edge.row else { return Ok(()) };
    dict.set_item("row", row)?;
    let Some(properties) = &edge.properties else { return dict.set_item("properties", py.None()) };
    let values = PyDict::new(py);
    for (name, value) in properties {
        values.set_item(name, owned_object(py, value)?)?;
    }
    dict.set_item("properties", values)
}

#[pymethods]
impl Database {
    /// The commits after an epoch, in order: an iterator of one `ChangeSet` for each commit group.
    ///
    /// Only durable commits are given, of those that this handle shows. The epoch of the last change set is the
    /// ``since`` of the next call.
    ///
    /// Parameters
    /// ----------
    /// since : int, optional
    ///     The epoch; None: all that the log has, see `oldest_epoch`. Where the log lacks the next commit and the epoch is
    ///     that of a snapshot, the next change set has the net changes up to the next younger snapshot.
    ///
    /// Raises
    /// ------
    /// EpochGone
    ///     Neither the log nor a snapshot leads on: begin again from a backup, and see `set_keep_wal`.
    /// InvalidInput
    ///     The epoch is later than the last commit, or the database is in memory.
    ///
    /// Examples
    /// --------
    /// >>> import anden, tempfile
    /// >>> db = anden.create(tempfile.mkdtemp() + "/db.anden")
    /// >>> with db.transaction() as tx:
    /// ...     tx.add_vertex(7)
    /// >>> [(one.epoch, one.changes()[0]["vertex"]) for one in db.changes(since=0)]
    /// [(1, 7)]
    #[pyo3(signature = (since=None))]
    fn changes(&self, py: Python<'_>, since: Option<u64>) -> Result<ChangeFeed> {
        let database = self.opened.database()?;
        let (feed, watch) = calls::run(py, move |watch| {
            let database = database.with_progress(watch.clone());
            let since = since.map_or_else(|| database.oldest_epoch(), Ok)?;
            database.changes(since).map(|feed| (feed, watch))
        })?;
        Ok(ChangeFeed { feed: Arc::new(Mutex::new(feed)), watch, opened: Arc::clone(&self.opened) })
    }

    /// Apply a change set of another database as one commit of the same epoch.
    ///
    /// This database is a replica: it began as the other one, created empty with the same options or restored from a
    /// backup, and takes each change set in its turn and no other commit. Returns False if it has the epoch already.
    ///
    /// Parameters
    /// ----------
    /// changes : ChangeSet
    ///     An item of ``primary.changes(replica.epoch)``.
    ///
    /// Raises
    /// ------
    /// InvalidInput
    ///     A change set before this one is missing, or the databases differ. Net changes need exactly the epoch from
    ///     which they lead on.
    fn apply_changes(&self, py: Python<'_>, changes: &ChangeSet) -> Result<bool> {
        let set = changes.0.clone();
        self.opened.run(py, move |database| database.apply_changes(&set))
    }

    /// The epoch of the last commit that views show: the number of its commit group.
    #[getter]
    fn epoch(&self) -> Result<u64> {
        Ok(self.opened.database()?.epoch())
    }

    /// From here on, `changes` takes each epoch, because the log has the commits; before, it takes those of snapshots.
    #[getter]
    fn oldest_epoch(&self) -> Result<u64> {
        Ok(self.opened.database()?.oldest_epoch()?)
    }

    /// How many bytes of the log stay for `changes` once a snapshot has their commits.
    #[getter]
    fn keep_wal(&self) -> Result<u64> {
        Ok(self.opened.database()?.keep_wal())
    }

    /// Set how many bytes of the log stay for `changes` once a snapshot has their commits; at first 0.
    ///
    /// The database keeps the setting. Segments have up to 64 MB and stay or go whole, the oldest first.
    ///
    /// Parameters
    /// ----------
    /// size : int or str
    ///     The bytes, or text such as ``"1G"``.
    fn set_keep_wal(&self, py: Python<'_>, size: &Bound<'_, PyAny>) -> Result<()> {
        let is_zero = size.is_instance_of::<PyInt>() && size.extract::<u64>().is_ok_and(|size| size == 0);
        let num_bytes = if is_zero { 0 } else { size_of_text(size)? };
        self.opened.run(py, move |database| database.set_keep_wal(num_bytes))
    }
}
