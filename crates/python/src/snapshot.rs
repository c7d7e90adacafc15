//! Snapshots and their differences.

use std::sync::{Arc, Weak};

use anden::property::PropertyType;
use anden::snapshot::{DiffEdge, SnapshotId, SnapshotInfo, SnapshotTag};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString};

use crate::calls::{self, SignalWatch, Watch};
use crate::error::{Result, invalid, wrong_type};
use crate::html::count;
use crate::key::{key_list, key_ref_object};
use crate::opened::Opened;
use crate::value::{typed_object, value_object, weight_object};

/// A time as text in UTC.
pub fn time_text(unix_time: u64) -> String {
    let time = i64::try_from(unix_time).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| unix_time.to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// The time of data, from a text, a date or a datetime; without a zone it is in UTC.
pub fn as_of(value: &Bound<'_, PyAny>) -> Result<i64> {
    let text = match value.cast::<PyString>() {
        Ok(text) => text.to_str()?.to_owned(),
        Err(_) => value
            .call_method0("isoformat")
            .and_then(|text| text.extract())
            .map_err(|_| wrong_type("as_of is a str, a date or a datetime"))?,
    };
    SnapshotTag::parse_as_of(&text).map_err(invalid)
}

/// A snapshot of a database, by number, name, time or object.
pub fn snapshot_id(value: &Bound<'_, PyAny>, of: &Opened) -> Result<SnapshotId> {
    if let Ok(snapshot) = value.cast::<Snapshot>() {
        let snapshot = snapshot.get();
        return match snapshot.opened.upgrade() {
            Some(opened) if !opened.is_handle_of(of) => {
                Err(invalid(format!("{} belongs to another database: {}", snapshot.__repr__(), opened.place())))
            }
            _ => Ok(snapshot.info.number.into()),
        };
    }
    if let Ok(name) = value.cast::<PyString>() {
        return Ok(name.to_str()?.into());
    }
    // A date or a datetime; a number has no such method.
    if let Ok(time) = value.call_method0("isoformat") {
        return Ok(time.cast::<PyString>()?.to_str()?.into());
    }
    match value.extract::<u32>() {
        Ok(number) => Ok(number.into()),
        Err(_) if value.is_instance_of::<PyInt>() => Err(invalid(format!("{value} is no number of a snapshot"))),
        Err(_) => {
            let kind = value.get_type().name()?;
            Err(wrong_type(format!("a snapshot is an int, a str, a date or an anden.Snapshot, not {kind}")))
        }
    }
}

/// A snapshot: a numbered, perhaps named, version of the graph.
#[pyclass(frozen, eq, module = "anden")]
pub struct Snapshot {
    info: SnapshotInfo,
    opened: Weak<Opened>,
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        self.info == other.info
    }
}

impl Snapshot {
    pub fn new(info: SnapshotInfo, opened: &Arc<Opened>) -> Self {
        Self { info, opened: Arc::downgrade(opened) }
    }
}

#[pymethods]
impl Snapshot {
    /// The number, from 1.
    #[getter]
    fn number(&self) -> u32 {
        self.info.number
    }

    /// The name, or None.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.info.name.as_deref()
    }

    /// The time at which it was made, as a datetime in UTC.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let micros = i64::try_from(self.info.unix_time).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        value_object(py, anden::property::PropertyValue::Timestamp(micros))
    }

    /// The time of its data, as a datetime in UTC, or None.
    #[getter]
    fn as_of<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = |micros| value_object(py, anden::property::PropertyValue::Timestamp(micros));
        self.info.as_of.map(value).transpose()
    }

    /// The epoch of the last commit that it contains: `changes` leads from here to the next snapshot.
    #[getter]
    fn epoch(&self) -> u64 {
        self.info.epoch
    }

    /// The number of vertices.
    #[getter]
    fn vertices(&self) -> u64 {
        self.info.num_vertices
    }

    /// The number of edges. An undirected edge counts once.
    #[getter]
    fn edges(&self) -> u64 {
        self.info.num_edges
    }

    /// The number of edges that the snapshot before lacks.
    #[getter]
    fn added(&self) -> u64 {
        self.info.added
    }

    /// The number of edges that only the snapshot before has.
    #[getter]
    fn removed(&self) -> u64 {
        self.info.removed
    }

    /// The bytes that this snapshot takes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.info.bytes
    }

    fn __int__(&self) -> u32 {
        self.info.number
    }

    fn __hash__(&self) -> u64 {
        self.info.number.into()
    }

    fn __repr__(&self) -> String {
        let name = self.info.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
        format!(
            "<anden.Snapshot {}{name}: {}, {} vertices, {} edges>",
            self.info.number,
            time_text(self.info.unix_time),
            count(self.info.num_vertices),
            count(self.info.num_edges),
        )
    }
}

/// The changes from one snapshot to another: ``db.diff(a, b)``.
///
/// An edge with a new weight or new properties is removed and added.
///
/// Examples
/// --------
/// >>> import anden
/// >>> db = anden.create(None)
/// >>> _ = db.append([1], [2])
/// >>> _ = db.append([2], [3], removed=([1], [2]))
/// >>> changes = db.diff(2, 3)
/// >>> changes.num_added, changes.num_removed, list(changes.added())
/// (1, 1, [(2, 3)])
#[pyclass(frozen, module = "anden")]
pub struct Diff {
    diff: Arc<anden::snapshot::Diff>,
    /// The progress of reads of the difference.
    watch: Arc<Watch>,
    opened: Arc<Opened>,
}

impl Diff {
    pub fn new(diff: anden::snapshot::Diff, watch: Arc<Watch>, opened: &Arc<Opened>) -> Self {
        Self { diff: Arc::new(diff), watch, opened: Arc::clone(opened) }
    }

    /// The difference, its progress, and the database that it belongs to.
    pub fn parts(&self) -> (&Arc<anden::snapshot::Diff>, &Watch, &Arc<Opened>) {
        (&self.diff, &self.watch, &self.opened)
    }

    /// Runs a long read of the difference.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&anden::snapshot::Diff) -> anden::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.opened.require_open()?;
        let diff = Arc::clone(&self.diff);
        calls::run_watched(py, &self.watch, move || read(&diff))
    }

    fn iterate(&self, is_added: bool) -> Result<DiffIterator> {
        self.opened.require_open()?;
        let (diff, opened) = (Arc::clone(&self.diff), Arc::clone(&self.opened));
        let edges = DiffEdges::new(diff, |diff| {
            if is_added { Box::new(diff.added()) } else { Box::new(diff.removed()) as BoxedEdges<'_> }
        });
        Ok(DiffIterator { edges: Mutex::new(edges), opened, signals: SignalWatch::default() })
    }
}

type BoxedEdges<'a> = Box<dyn Iterator<Item = anden::Result<DiffEdge<'a>>> + Send + 'a>;

self_cell::self_cell!(
    /// Edges of a difference, with the difference that they borrow.
    struct DiffEdges {
        owner: Arc<anden::snapshot::Diff>,
        #[not_covariant]
        dependent: BoxedEdges,
    }
);

/// Iterates over edges of a difference.
#[pyclass(frozen, module = "anden")]
pub struct DiffIterator {
    edges: Mutex<DiffEdges>,
    opened: Arc<Opened>,
    signals: SignalWatch,
}

#[pymethods]
impl DiffIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        self.opened.require_open()?;
        self.signals.count(py)?;
        let Some(mut edges) = self.edges.try_lock() else {
            return Err(crate::error::misused("the iterator is in use by another thread"));
        };
        edges.with_dependent_mut(|_, edges| edges.next().map(|edge| Ok(edge_tuple(py, &edge?)?)).transpose())
    }
}

/// An edge as a tuple: source, target, and the weight if there are weights.
fn edge_tuple<'py>(py: Python<'py>, edge: &DiffEdge<'_>) -> PyResult<Bound<'py, PyAny>> {
    let (source, target) = (key_ref_object(py, edge.source)?, key_ref_object(py, edge.target)?);
    match edge.weight {
        Some(weight) => Ok((source, target, weight_object(py, weight)?).into_pyobject(py)?.into_any()),
        None => Ok((source, target).into_pyobject(py)?.into_any()),
    }
}

#[pymethods]
impl Diff {
    /// The numbers of the two snapshots.
    #[getter]
    fn snapshots(&self) -> (u32, u32) {
        self.diff.snapshots()
    }

    /// The number of edges that only the second snapshot has.
    #[getter]
    fn num_added(&self, py: Python<'_>) -> Result<usize> {
        self.run(py, anden::snapshot::Diff::num_added)
    }

    /// The number of edges that only the first snapshot has.
    #[getter]
    fn num_removed(&self, py: Python<'_>) -> Result<usize> {
        self.run(py, anden::snapshot::Diff::num_removed)
    }

    /// Iterate over the edges that only the second snapshot has: (source, target), or (source, target, weight).
    fn added(&self) -> Result<DiffIterator> {
        self.iterate(true)
    }

    /// Iterate over the edges that only the first snapshot has.
    fn removed(&self) -> Result<DiffIterator> {
        self.iterate(false)
    }

    /// The keys of the vertices that only the second snapshot has.
    fn added_vertices<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        Ok(key_list(py, &self.run(py, anden::snapshot::Diff::added_vertices)?)?)
    }

    /// The keys of the vertices that only the first snapshot has.
    fn removed_vertices<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        Ok(key_list(py, &self.run(py, anden::snapshot::Diff::removed_vertices)?)?)
    }

    /// Changed values of vertex properties: a list of dicts with `vertex`, `name`, `old` and `new`.
    fn changed_properties<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        self.opened.require_open()?;
        let (list, signals) = (PyList::empty(py), SignalWatch::default());
        for change in self.diff.changed_properties() {
            let change = change?;
            signals.count(py)?;
            let items = self.diff.property_type(change.name).and_then(PropertyType::items);
            let dict = PyDict::new(py);
            dict.set_item("old", typed_object(py, change.old, items)?)?;
            dict.set_item("new", typed_object(py, change.new, items)?)?;
            dict.set_item("vertex", key_ref_object(py, change.vertex)?)?;
            dict.set_item("name", change.name)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    fn __repr__(&self) -> String {
        let (from, to) = self.diff.snapshots();
        format!("<anden.Diff from snapshot {from} to {to}>")
    }
}
