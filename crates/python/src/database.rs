//! Databases.

mod backup;
mod changes;
mod feed;
mod lease;
mod metrics;
mod rolling;

pub use self::backup::{repair, restore};
pub use self::feed::{ChangeFeed, ChangeSet};
pub use self::lease::Lease;
pub use self::rolling::RollingWindows;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use anden::kernel::FormReport;
use anden::load::{InputPath, LoadReport};
use anden::property::IndexKind;
use anden::snapshot::{SnapshotId, SnapshotTag};
use anden::{GraphKind, KeyScheme, OpenOptions, Options, WeightType};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::error::{Result, invalid, wrong_type};
use crate::html;
use crate::loading::{KIND, LOADING, READING, input, load_options};
use crate::opened::Opened;
use crate::options::{KEY_SCHEMES, Keywords, path, size_of_text};
use crate::pending::Pending;
use crate::sessions::session;
use crate::snapshot::{Diff, Snapshot, snapshot_id};
use crate::transaction::Transaction;
use crate::view::View;

/// Open a database.
///
/// Parameters
/// ----------
/// path : str or os.PathLike
///     The directory of the database.
/// read_only : bool
///     Write nothing and take no lock. Any number of processes may read beside the writer.
/// threads : int
///     The number of worker threads; 0: one for each core.
/// memory : int or str, optional
///     A hard limit for the memory of long work, such as ``"512M"`` or ``"4G"``.
/// snapshots_only : bool
///     Open only the snapshots for reading, without the log of later commits.
/// io : {"mmap", "pread"}
///     How a database that is only read gets the bytes of files.
/// prefetch : {"auto", "off", "neighbourhood", "sequential", "frontier"}
///     How a graph larger than memory is read ahead.
///
/// Returns
/// -------
/// Database
///
/// Raises
/// ------
/// NotFound
///     There is no database.
/// Locked
///     Another process writes to it.
/// Corrupt
///     A file is damaged.
#[pyfunction]
#[pyo3(
    signature = (path, **options),
    text_signature = "(path, *, read_only=False, threads=0, memory=None, snapshots_only=False, io='mmap', \
            prefetch='auto')"
)]
pub fn open(py: Python<'_>, path: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> Result<Database> {
    let path = self::path(path)?;
    let known = ["read_only", "threads", "memory", "snapshots_only", "io", "prefetch"];
    let mut given = Keywords::new("open", options, &[&known])?;
    let mut session = session_of(&mut given)?;
    if let Some(policy) = given.take_with("prefetch", crate::options::prefetch)? {
        session = session.with_prefetch(policy);
    }
    let snapshots_only = given.is_set("snapshots_only")?;
    let read_only = given.is_set("read_only")? || snapshots_only;
    let io = given.take_with("io", crate::options::io)?.unwrap_or_default();
    let options = OpenOptions { read_only, snapshots_only, io, ..OpenOptions::from(&session) };
    let place = path.clone();
    let database = crate::calls::run(py, move |_| anden::Database::open_with(&place, &options))?;
    Ok(Database { opened: Opened::new(database, Some(path), read_only), report: None })
}

/// The session that the arguments `threads` and `memory` ask for.
fn session_of(given: &mut Keywords<'_>) -> Result<anden::Session> {
    let threads = given.take("threads")?.unwrap_or(0);
    session(threads, given.take_with("memory", size_of_text)?)
}

/// Create a database without vertices.
///
/// Parameters
/// ----------
/// path : str or os.PathLike, optional
///     The directory of the new database, which must not exist; None: in memory.
/// directed : bool
///     Whether edges have a direction.
/// weighted : bool
///     Whether edges have weights; of type f64 unless ``weight_type`` says otherwise.
/// weight_type : {"u32", "i64", "f32", "f64"}, optional
///     The type of the weights; by default that of the column in Parquet and of GraphML and GEXF that Anden wrote,
///     ``"u32"`` for GAP's format and DIMACS, else ``"f64"``.
/// ids : {"integer", "string", "dense"}
///     The type of vertex keys; dense: 0 to n - 1, the key is the id.
/// multigraph : bool
///     Keep parallel edges.
/// ordered : bool
///     Store each undirected edge once, from the smaller id to the larger, and drop loops.
/// edge_properties : bool
///     Whether edges have properties. Their names and types follow from the values.
/// out_only : bool
///     Store no in-edges: half the size, but some kernels need them.
/// threads, memory
///     As for `open`.
///
/// Returns
/// -------
/// Database
///
/// Examples
/// --------
/// >>> import anden
/// >>> db = anden.create(None, directed=False, weighted=True)
/// >>> db.append([1, 2], [2, 3], weights=[0.5, 2.0])["edges"]
/// 2
#[pyfunction]
#[pyo3(
    signature = (path=None, **options),
    text_signature = "(path=None, *, directed=True, weighted=False, weight_type=None, ids='integer', \
            multigraph=False, ordered=False, edge_properties=False, out_only=False, threads=0, memory=None)"
)]
pub fn create(
    py: Python<'_>,
    path: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> Result<Database> {
    let path = path.map(self::path).transpose()?;
    let known = [
        "directed",
        "weighted",
        "weight_type",
        "ids",
        "multigraph",
        "ordered",
        "edge_properties",
        "out_only",
        "threads",
        "memory",
    ];
    let mut given = Keywords::new("create", options, &[&known])?;
    let session = session_of(&mut given)?;
    let (is_weighted, weight_type) =
        (given.is_set("weighted")?, given.take_with("weight_type", crate::options::weight_type)?);
    let directed = given.take::<bool>("directed")?.unwrap_or(true);
    let options = Options {
        graph_kind: if directed { GraphKind::Directed } else { GraphKind::Undirected },
        multigraph: given.is_set("multigraph")?,
        ordered: given.is_set("ordered")?,
        keys: given.take_word("ids", &KEY_SCHEMES)?.unwrap_or(KeyScheme::Integer),
        weight_type: weight_type.or(is_weighted.then_some(WeightType::F64)),
        edge_properties: given.is_set("edge_properties")?,
        in_edges: !given.is_set("out_only")?,
    };
    let place = path.clone();
    let database = crate::calls::run(py, move |_| match place {
        Some(place) => anden::Database::create_with(place, options, &session),
        None => anden::Database::in_memory_with(options, &session),
    })?;
    Ok(Database::wrap(database, path))
}

/// Create a database from files. The arguments have the names of the options of ``anden load``.
///
/// Parameters
/// ----------
/// path : str or os.PathLike, optional
///     The directory of the new database, which must not exist; None: in memory.
/// *inputs : str or os.PathLike
///     Files of edges. Compressed files (.gz, .zst, .bz2, .xz) are read through.
/// format : str
///     The format of the inputs; by default by name, then by content.
/// directed, undirected, ordered : bool
///     The kind of graph; by default as the inputs say, else directed.
/// weights : bool
///     Read weights: those of the format, the column whose name says weight, or the third column.
/// weight_type : {"u32", "i64", "f32", "f64"}, optional
///     The type of the weights.
/// duplicates : {"min", "last", "sum", "keep"}, optional
///     What to do with an edge that occurs again.
/// ids : {"integer", "string", "dense"}
///     The type of vertex keys.
/// edges, vertices : dict, optional
///     Files by edge type and by vertex label: ``edges={"KNOWS": "knows.csv"}``, ``vertices={"Person": "people.csv"}``.
/// order : {"auto", "input", "degree", "hub", "bfs"}
///     The order of the ids, which decides what lies together in memory. Answers by key do not depend on it, but arrays
///     by vertex id follow it. ``io_order=True`` is ``order="input"``.
/// snapshot_by : str, optional
///     A column of dates or timestamps and a period, hour, day, week or month: ``"time:month"`` makes a snapshot for each
///     month, named as ``2012-05``, with the edges until its end.
/// on_error : {"stop", "skip"}
///     What to do with a line that is not an edge.
/// empty_ids : bool
///     Take empty text as a key, with ``ids="string"``. Without it, an empty key is an error.
/// scratch_limit : int or str, optional
///     The most scratch space for a compressed or piped input of Parquet or serialized graphs, such as ``"20GB"``.
///     By default 64 times the bytes of the input, at least 1 GB.
///
/// Returns
/// -------
/// Database
///     Its `report` tells what was read.
#[pyfunction]
#[pyo3(
    signature = (path, *inputs, **options),
    text_signature = "(path, *inputs, format='auto', directed=None, undirected=False, ordered=False, weights=False, \
            weight_type=None, weight_column=None, duplicates=None, multigraph=False, out_only=False, \
            ids=None, snapshots=1, first_share=None, seed=1, snapshot_by=None, source_column=None, target_column=None, \
            header='auto', delimiter=None, null=None, comment=None, trim=False, empty_ids=False, scratch_limit=None, \
            columns=None, edges=None, vertices=None, vertex_column=None, vertex_properties='all', properties=None, \
            property_types=None, \
            order='auto', io_order=False, on_error='stop', name=None, as_of=None, threads=0, \
            memory=None)"
)]
pub fn load(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyTuple>,
    options: Option<&Bound<'_, PyDict>>,
) -> Result<Database> {
    let path = if path.is_none() { None } else { Some(self::path(path)?) };
    let inputs: Vec<InputPath> = inputs.iter().map(|file| input(&file)).collect::<Result<_>>()?;
    let mut given = Keywords::new("load", options, &[READING, KIND, LOADING])?;
    let session = session_of(&mut given)?;
    let options = load_options(&mut given, &inputs)?;
    if !options.source.has_files(&inputs) {
        return Err(invalid("load() needs a file: give one after the path, or with edges or vertices"));
    }
    let place = path.clone();
    let (database, report) = crate::calls::run(py, move |watch| {
        let session = session.with_progress(watch);
        match place {
            Some(place) => anden::Database::load(place, &inputs, &options, &session),
            None => anden::Database::load_in_memory(&inputs, &options, &session),
        }
    })?;
    Ok(Database { opened: Opened::new(database, path, false), report: Some(report) })
}

/// A database: a graph and its snapshots, in a directory or in memory.
///
/// Made by `open`, `create`, `load` and the functions ``from_…``. ``with`` closes it.
#[pyclass(frozen, weakref, module = "anden")]
pub struct Database {
    opened: Arc<Opened>,
    report: Option<LoadReport>,
}

impl Database {
    pub fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// Another object of an open database.
    pub fn of(opened: &Arc<Opened>) -> Self {
        Self { opened: Arc::clone(opened), report: None }
    }

    /// Wraps a database that was just made.
    pub fn wrap(database: anden::Database, path: Option<PathBuf>) -> Self {
        Self { opened: Opened::new(database, path, false), report: None }
    }
}

/// A window of snapshots: a tuple of two numbers or names, both included.
fn window_of(opened: &Opened, value: &Bound<'_, PyAny>) -> Result<RangeInclusive<SnapshotId>> {
    let Ok((first, last)) = value.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        let shown = value.repr()?;
        return Err(wrong_type(format!("window is a tuple of two snapshots such as (2, 5), not {shown}")));
    };
    Ok(snapshot_id(&first, opened)?..=snapshot_id(&last, opened)?)
}

#[pymethods]
impl Database {
    /// The directory of the database; None in memory.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.opened.path.clone()
    }

    /// What a load read, as a dict; None for a database that was opened or created.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyDict>>> {
        Ok(self.report.as_ref().map(|report| changes::load_dict(py, report)).transpose()?)
    }

    /// Whether the database was opened for reading only.
    #[getter]
    fn read_only(&self) -> bool {
        self.opened.is_read_only
    }

    /// Whether the database was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.opened.is_closed()
    }

    /// The options that were fixed when the database was created, as a dict.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let database = self.opened.database()?;
        let options = database.options();
        let dict = PyDict::new(py);
        let name_of = |found| WeightType::ALL.iter().find(|(known, _)| *known == found).map(|(_, name)| *name);
        dict.set_item("directed", options.graph_kind == GraphKind::Directed)?;
        dict.set_item("ordered", options.ordered)?;
        dict.set_item("multigraph", options.multigraph)?;
        dict.set_item("ids", KEY_SCHEMES.iter().find(|(known, _)| *known == options.keys).map(|(_, name)| *name))?;
        dict.set_item("weight_type", options.weight_type.and_then(name_of))?;
        dict.set_item("edge_properties", options.edge_properties)?;
        dict.set_item("out_only", !options.in_edges)?;
        dict.set_item("threads", database.session().num_threads())?;
        dict.set_item("memory", database.session().memory())?;
        Ok(dict)
    }

    /// A view of the graph: of everything committed, of a snapshot, or of a window of snapshots.
    ///
    /// Parameters
    /// ----------
    /// snapshot : int, str, date, datetime or Snapshot, optional
    ///     The number, the name or the time of a snapshot. ``"2012-05"`` is the newest one up to the end of that month:
    ///     an older one, if that of the month was dropped. The `name` of the view tells its number.
    /// window : tuple of two snapshots, optional
    ///     Show the edges that these snapshots added, both ends included, and the vertices of these edges.
    /// isolated : bool
    ///     Whether a window keeps all vertices of its last snapshot. By default, a vertex with no edge in the window
    ///     counts as removed.
    ///
    /// Returns
    /// -------
    /// View
    #[pyo3(signature = (*, snapshot=None, window=None, isolated=false))]
    fn view(
        &self,
        py: Python<'_>,
        snapshot: Option<&Bound<'_, PyAny>>,
        window: Option<&Bound<'_, PyAny>>,
        isolated: bool,
    ) -> Result<View> {
        let database = self.opened.database()?;
        if isolated && window.is_none() {
            return Err(invalid("view() takes isolated=True with a window only"));
        }
        let view = match (snapshot, window) {
            (Some(_), Some(_)) => return Err(invalid("view() takes a snapshot or a window, not both")),
            (Some(snapshot), None) => {
                let id = snapshot_id(snapshot, &self.opened)?;
                self.opened.run(py, |database| database.snapshot(id))?
            }
            (None, Some(window)) => {
                let window = window_of(&self.opened, window)?;
                self.opened.run(py, move |database| match isolated {
                    true => database.window_with_isolated(window),
                    false => database.window(window),
                })?
            }
            (None, None) => py.detach(|| database.view())?,
        };
        Ok(View::new(view, &self.opened))
    }

    /// All snapshots, the oldest first.
    fn snapshots(&self) -> Result<Vec<Snapshot>> {
        Ok(self.opened.database()?.snapshots().into_iter().map(|info| Snapshot::new(info, &self.opened)).collect())
    }

    /// Begin a transaction: ``with db.transaction() as tx:``. A clean exit commits, an exception rolls back.
    fn transaction(&self, py: Python<'_>) -> Result<Transaction> {
        py.detach(|| Transaction::begin(&self.opened))
    }

    /// Call ``function(tx)`` in a transaction and commit. After a conflict it is called again on the newest version.
    ///
    /// After several conflicts the transaction runs alone, so it succeeds under any load. If the function raises,
    /// nothing is changed, and the exception passes through. It may run several times, so it should have no effects
    /// but those of the transaction, and it must not wait for commits of other threads.
    ///
    /// Returns
    /// -------
    /// object
    ///     What the function returned.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> def befriend(tx):
    /// ...     tx.add_edge(1, 2)
    /// ...     return tx.neighbors(1)
    /// >>> db.transact(befriend)
    /// [2]
    fn transact(&self, py: Python<'_>, function: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
        if !function.is_callable() {
            return Err(wrong_type(format!("transact() takes a function of a transaction, not {}", function.repr()?)));
        }
        crate::transaction::transact(py, &self.opened, function)
    }

    /// Commit changes in one transaction without waiting. Many commits in flight share one write to the disk.
    ///
    /// Parameters
    /// ----------
    /// updates : iterable of Update
    ///     The changes, in order.
    ///
    /// Returns
    /// -------
    /// Pending
    #[pyo3(signature = (updates, *, durability=None))]
    fn submit(
        &self,
        py: Python<'_>,
        updates: &Bound<'_, PyAny>,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> Result<Pending> {
        let database = self.opened.database()?;
        let updates = crate::update::updates_of(updates)?;
        let durability = durability.map(crate::options::durability).transpose()?;
        let durability = durability.unwrap_or_else(|| database.durability());
        Pending::submit(py, &self.opened.num_submits, || Ok(database.submit_with(&updates, durability)?))
    }

    /// Make a snapshot of everything committed. ``as_of`` is the time of its data: a str, a date or a datetime.
    #[pyo3(signature = (*, name=None, as_of=None))]
    fn checkpoint(&self, py: Python<'_>, name: Option<String>, as_of: Option<&Bound<'_, PyAny>>) -> Result<Snapshot> {
        let as_of = as_of.map(crate::snapshot::as_of).transpose()?;
        let info =
            self.opened.run(py, move |database| database.checkpoint(SnapshotTag { name: name.as_deref(), as_of }))?;
        Ok(Snapshot::new(info, &self.opened))
    }

    /// Merge the changes of snapshots, so that reads are as fast as after a load. All snapshots stay.
    ///
    /// Parameters
    /// ----------
    /// newest : int, optional
    ///     Merge only the changes of this many newest snapshots.
    #[pyo3(signature = (*, newest=None))]
    fn merge<'py>(&self, py: Python<'py>, newest: Option<&Bound<'_, PyAny>>) -> Result<Bound<'py, PyDict>> {
        let newest = newest.map(|newest| positive(newest, "newest")).transpose()?;
        let report = self.opened.run(py, move |database| match newest {
            Some(number) => database.merge_newest(number),
            None => database.merge(),
        })?;
        let dict = PyDict::new(py);
        dict.set_item("bytes_written", report.bytes_written)?;
        dict.set_item("deltas_before", report.deltas_before)?;
        dict.set_item("deltas_after", report.deltas_after)?;
        Ok(dict)
    }

    /// Store what kernels prepare from the graph, so that the first run of a later process starts sooner.
    ///
    /// Results do not change. A stored form serves runs on the base, and leaves the database with the next merge. A form
    /// that is stored already stays as it is.
    ///
    /// Parameters
    /// ----------
    /// *kernels : str
    ///     The names of kernels, such as ``"pagerank"``; without names, all.
    ///
    /// Returns
    /// -------
    /// dict
    ///     ``forms``: for each form its name, its kernels, the bytes of its file, the seconds, and whether it was stored
    ///     before. ``without``: the named kernels that read no prepared form of this graph.
    ///
    /// Raises
    /// ------
    /// InvalidInput
    ///     A kernel is unknown, or the graph has changes over its base: checkpoint and merge first.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None, out_only=True)
    /// >>> _, _ = db.append([1, 2], [2, 3]), db.merge()
    /// >>> [form["form"] for form in db.prepare("kcore")["forms"]]
    /// ['in-lists']
    #[pyo3(signature = (*kernels))]
    fn prepare<'py>(&self, py: Python<'py>, kernels: &Bound<'_, PyTuple>) -> Result<Bound<'py, PyDict>> {
        let kernels = kernels.extract::<Vec<String>>().map_err(|_| wrong_type("prepare() takes names of kernels"))?;
        let report = self
            .opened
            .run(py, move |database| database.prepare(&kernels.iter().map(String::as_str).collect::<Vec<_>>()))?;
        let form = |form: FormReport| -> PyResult<_> {
            let dict = PyDict::new(py);
            dict.set_item("form", form.form)?;
            dict.set_item("kernels", form.kernels)?;
            dict.set_item("bytes", form.bytes)?;
            dict.set_item("seconds", form.seconds)?;
            dict.set_item("stored_before", form.was_stored)?;
            Ok(dict)
        };
        let dict = PyDict::new(py);
        dict.set_item("forms", report.forms.into_iter().map(form).collect::<PyResult<Vec<_>>>()?)?;
        dict.set_item("without", report.without)?;
        Ok(dict)
    }

    /// Drop snapshots, by number or name. Their changes stay in the later ones. Returns the numbers.
    #[pyo3(signature = (*snapshots))]
    fn drop(&self, py: Python<'_>, snapshots: &Bound<'_, PyTuple>) -> Result<Vec<u32>> {
        if snapshots.is_empty() {
            return Err(wrong_type("drop() takes the numbers or names of snapshots"));
        }
        let ids = snapshots.iter().map(|one| snapshot_id(&one, &self.opened)).collect::<Result<Vec<_>>>()?;
        self.opened.run(py, move |database| database.drop_snapshots(&ids))
    }

    /// Give a snapshot another name; None takes its name away. Returns its number.
    fn rename(&self, py: Python<'_>, snapshot: &Bound<'_, PyAny>, name: Option<String>) -> Result<u32> {
        let snapshot = snapshot_id(snapshot, &self.opened)?;
        self.opened.run(py, move |database| database.rename_snapshot(snapshot, name.as_deref()))
    }

    /// Set which snapshots are kept, now and after each new one: ``"all"``, ``"last:N"``, ``"named"`` or ``"days:N"``.
    ///
    /// Snapshots with names and the newest snapshot always stay. Returns the numbers of those dropped now.
    ///
    /// Parameters
    /// ----------
    /// force : bool
    ///     A clock that jumps must not cost the history. So ``"days:N"`` drops at most half of the snapshots at once:
    ///     if more are too old, this is an error, and new snapshots drop none. With ``force=True`` they are dropped.
    #[pyo3(signature = (retention, *, force=false))]
    fn retain(&self, py: Python<'_>, retention: &str, force: bool) -> Result<Vec<u32>> {
        let retention = crate::options::retention(retention)?;
        self.opened.run(py, move |database| match force {
            true => database.retain_by_force(retention),
            false => database.retain(retention),
        })
    }

    /// The rule that ``retain`` set last; ``"all"`` at first.
    #[getter]
    fn retention(&self) -> Result<String> {
        Ok(self.opened.database()?.retention().to_string())
    }

    /// The numbers of the snapshots that ``"days:N"`` would drop now, and keeps because they are more than half of all.
    ///
    /// Correct the clock, or drop them by ``retain(…, force=True)``.
    #[getter]
    fn held_back_snapshots(&self) -> Result<Vec<u32>> {
        Ok(self.opened.database()?.held_back_snapshots())
    }

    /// The changes from snapshot ``a`` to snapshot ``b``, each by number or name.
    ///
    /// Parameters
    /// ----------
    /// a, b : int, str or Snapshot
    ///     The snapshots. ``b`` may be the older one.
    /// other : Database, optional
    ///     Take ``b`` from this database. Vertices are matched by key.
    #[pyo3(signature = (a, b, *, other=None))]
    fn diff(&self, py: Python<'_>, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>, other: Option<&Self>) -> Result<Diff> {
        let a = snapshot_id(a, &self.opened)?;
        let b = snapshot_id(b, other.map_or(&self.opened, |other| &other.opened))?;
        let other = other.map(|other| other.opened.database()).transpose()?;
        let database = self.opened.database()?;
        let (diff, watch) = crate::calls::run(py, move |watch| {
            let database = database.with_progress(watch.clone());
            let diff = match other {
                Some(other) => database.diff_with(a, &other, b),
                None => database.diff(a, b),
            };
            diff.map(|diff| (diff, watch))
        })?;
        Ok(Diff::new(diff, watch, &self.opened))
    }

    /// Verify every checksum and all structures. Returns the counts of what was read.
    ///
    /// Raises
    /// ------
    /// Corrupt
    ///     The first fault, with its place.
    fn verify<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let report = self.opened.run(py, anden::Database::verify)?;
        let dict = PyDict::new(py);
        dict.set_item("files", report.num_files)?;
        dict.set_item("bytes", report.num_bytes)?;
        dict.set_item("snapshots", report.num_snapshots)?;
        dict.set_item("vertices", report.num_vertices)?;
        dict.set_item("edges", report.num_edges)?;
        dict.set_item("arcs", report.num_arcs)?;
        dict.set_item("unknown_files", report.unknown_files)?;
        Ok(dict)
    }

    /// Read what a writer in another process committed. Returns whether anything is new. Views do not change.
    fn refresh(&self, py: Python<'_>) -> Result<bool> {
        self.opened.run(py, anden::Database::refresh)
    }

    /// Create an index of a property, for `View.find_vertices`. Only vertices have indexes: ``of`` is ``"vertex"``.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     The property.
    /// unique : bool
    ///     Allow each value once.
    #[pyo3(signature = (of, name, *, unique=false))]
    fn create_index(&self, py: Python<'_>, of: String, name: String, unique: bool) -> Result<()> {
        let kind = if unique { IndexKind::Unique } else { IndexKind::Plain };
        self.opened.run(py, move |database| database.create_index(&of, &name, kind))
    }

    /// Drop the index of a property.
    fn drop_index(&self, py: Python<'_>, of: String, name: String) -> Result<()> {
        self.opened.run(py, move |database| database.drop_index(&of, &name))
    }

    /// All indexes, as dicts.
    fn indexes<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyDict>>> {
        let indexes = self.opened.database()?.indexes().into_iter();
        let dicts = indexes.map(|info| -> PyResult<_> {
            let dict = PyDict::new(py);
            dict.set_item("of", "vertex")?;
            dict.set_item("name", info.property)?;
            dict.set_item("unique", info.kind == IndexKind::Unique)?;
            dict.set_item("entries", info.num_entries)?;
            dict.set_item("bytes", info.num_bytes)?;
            Ok(dict)
        });
        Ok(dicts.collect::<PyResult<_>>()?)
    }

    /// Close the database: roll back open transactions, and make a snapshot of what is committed.
    ///
    /// Views of a closed database raise `Error`. A second close does nothing. Ctrl-C ends the wait for the snapshot,
    /// and the database is closed nevertheless; another close waits again.
    fn close(&self, py: Python<'_>) -> Result<()> {
        self.opened.close(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> Result<PyRef<'_, Self>> {
        slf.opened.require_open()?;
        Ok(slf)
    }

    #[pyo3(signature = (_kind, _value, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyType>>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        self.close(py)?;
        Ok(false)
    }

    fn __repr__(&self) -> String {
        match self.opened.database() {
            Ok(database) => html::database_text(&database, &self.opened.place()),
            Err(_) => format!("<anden.Database {}, closed>", self.opened.place()),
        }
    }

    fn _repr_html_(&self, py: Python<'_>) -> Result<String> {
        let (database, place) = (self.opened.database()?, self.opened.place());
        Ok(py.detach(|| html::database_page(&database, &place))?)
    }
}

/// A number above 0.
fn positive(value: &Bound<'_, PyAny>, name: &str) -> Result<u32> {
    match value.extract::<u32>() {
        Ok(number @ 1..) => Ok(number),
        _ => Err(invalid(format!("{name} is a number above 0, not {}", value.repr()?))),
    }
}
