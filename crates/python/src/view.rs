//! Views: the graph at one version.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anden::property::PropertyType;
use anden::query::PathOptions;
use anden::{Error, Key};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::calls::{self, SignalWatch};
use crate::columns;
use crate::error::{Failure, Result, invalid, wrong_type};
use crate::html;
use crate::key::{key_list, key_object, key_of, key_ref_object, keys_of};
use crate::opened::Opened;
use crate::options::{direction, path, prefetch};
use crate::queries::{degree_of, export, found_edges, path_keys, vertex_dict};
use crate::value::value_of;

/// A call on a graph of at most this many vertices and edges ends before Ctrl-C could matter.
const SMALL: u64 = 1 << 12;

/// The graph at one version: at everything committed, a snapshot, a window of snapshots, or a part of these.
///
/// Later changes of the database do not change a view. Vertices are named by key: an int or a str, as the graph has
/// them. Results of kernels are NumPy arrays by vertex id; `id` and `key` translate, and `keys` gives all keys in the
/// order of results.
///
/// Examples
/// --------
/// >>> import anden
/// >>> db = anden.create(None, ids="string")
/// >>> with db.transaction() as tx:
/// ...     tx.add_edge("ann", "ben")
/// ...     tx.add_edge("ben", "cleo")
/// >>> g = db.view()
/// >>> g.neighbors("ann"), len(g), "dora" in g
/// (['ben'], 3, False)
#[pyclass(frozen, weakref, module = "anden")]
pub struct View {
    view: anden::View,
    opened: Arc<Opened>,
    /// Whether calls are too short for a second thread.
    is_small: bool,
    /// Whether a filter selects a part, which must be laid out before it can be counted.
    is_part: bool,
}

impl View {
    pub fn new(view: anden::View, opened: &Arc<Opened>) -> Self {
        let is_small = view.vertex_bound() as u64 + view.num_arcs() <= SMALL;
        Self { view, opened: Arc::clone(opened), is_small, is_part: false }
    }

    /// A part of this view.
    fn part(&self, view: anden::View) -> Self {
        Self { is_part: true, ..self.alike(view) }
    }

    /// A view of the edges of this one.
    fn alike(&self, view: anden::View) -> Self {
        Self { view, opened: Arc::clone(&self.opened), is_small: self.is_small, is_part: self.is_part }
    }

    /// A count of the graph. A part may have to be laid out first.
    fn count<T: Send + 'static>(&self, py: Python<'_>, count: fn(&anden::View) -> T) -> Result<T> {
        if self.is_part { self.run(py, move |view| Ok(count(view))) } else { Ok(count(self.open()?)) }
    }

    /// The view.
    ///
    /// # Errors
    /// Its database was closed.
    pub fn open(&self) -> Result<&anden::View> {
        self.opened.require_open()?;
        Ok(&self.view)
    }

    pub fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// Runs a long call on the view, without the GIL and with Ctrl-C.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&anden::View) -> anden::Result<T> + Send + 'static,
    ) -> Result<T> {
        let view = self.open()?;
        if self.is_small {
            return Ok(py.detach(|| work(view))?);
        }
        let view = view.clone();
        calls::run(py, move |watch| work(&view.with_progress(watch)))
    }

    /// A copy for a result that names vertices later.
    pub fn share(&self) -> Self {
        self.alike(self.view.clone())
    }
}

#[pymethods]
impl View {
    /// The number of vertices.
    #[getter]
    fn num_vertices(&self, py: Python<'_>) -> Result<usize> {
        self.count(py, anden::View::num_vertices)
    }

    /// The number of edges. An undirected edge counts once.
    #[getter]
    fn num_edges(&self, py: Python<'_>) -> Result<u64> {
        self.count(py, anden::View::num_edges)
    }

    /// One more than the largest vertex id: the length of results.
    #[getter]
    fn vertex_bound(&self) -> Result<usize> {
        Ok(self.open()?.vertex_bound())
    }

    /// Whether edges have a direction.
    #[getter]
    fn directed(&self) -> Result<bool> {
        Ok(self.open()?.is_directed())
    }

    /// Whether edges have weights.
    #[getter]
    fn weighted(&self) -> Result<bool> {
        Ok(self.open()?.weight_type().is_some())
    }

    /// The type of the weights, such as ``"f64"``; None in a graph without weights.
    #[getter]
    fn weight_type(&self) -> Result<Option<&'static str>> {
        let weight_type = self.open()?.weight_type();
        Ok(weight_type.and_then(|found| anden::WeightType::ALL.iter().find(|(known, _)| *known == found)).map(|x| x.1))
    }

    /// Whether a pair of vertices may have several edges.
    #[getter]
    fn multigraph(&self) -> Result<bool> {
        Ok(self.open()?.is_multigraph())
    }

    /// The name of this version, such as ``snapshot 1``.
    #[getter]
    fn name(&self) -> Result<&str> {
        Ok(self.open()?.name())
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize> {
        self.num_vertices(py)
    }

    fn __bool__(&self) -> bool {
        // A view without vertices is a view, too.
        true
    }

    fn __contains__(&self, vertex: &Bound<'_, PyAny>) -> Result<bool> {
        let view = self.open()?;
        let key = match key_of(vertex) {
            Ok(key) => key,
            // An object that cannot be a key is not in the graph.
            Err(Failure::Engine(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        match view.vertex(key) {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn __iter__(&self) -> Result<KeyIterator> {
        self.open()?;
        Ok(KeyIterator { view: self.share(), next: AtomicU32::new(0), signals: SignalWatch::default() })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, vertex: &Bound<'_, PyAny>) -> Result<Bound<'py, PyList>> {
        self.neighbors(py, vertex, None)
    }

    /// The id of a vertex: its place in results.
    fn id(&self, vertex: &Bound<'_, PyAny>) -> Result<u32> {
        Ok(self.open()?.vertex(key_of(vertex)?)?)
    }

    /// The ids of vertices, as an array.
    fn ids<'py>(&self, py: Python<'py>, vertices: &Bound<'_, PyAny>) -> Result<Bound<'py, PyArray1<u32>>> {
        let keys = keys_of(vertices)?;
        let ids = self.run(py, move |view| keys.into_iter().map(|key| view.vertex(key)).collect())?;
        Ok(PyArray1::from_vec(py, ids))
    }

    /// The key of the vertex with an id.
    fn key<'py>(&self, py: Python<'py>, id: &Bound<'_, PyAny>) -> Result<Bound<'py, PyAny>> {
        let view = self.open()?;
        let wanted = || format!("a vertex id is an int from 0 to {}", view.vertex_bound());
        let id: u32 = id.extract().map_err(|_: PyErr| wrong_or_invalid(id, &wanted()))?;
        Ok(key_object(py, &view.key(id)?)?)
    }

    /// The keys of all vertices, by vertex id: an array of uint64, or of str objects in a graph with string keys.
    ///
    /// Where an id has no vertex any more, the array is a masked one, or has None in place of a str.
    fn keys<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        columns::keys(py, self)
    }

    /// The neighbors of a vertex, each once, in ascending order of keys.
    ///
    /// Parameters
    /// ----------
    /// vertex : int, str or tuple
    ///     The key of the vertex.
    /// direction : {"out", "in", "both"}
    ///     Which edges lead to the neighbors. Undirected edges have no direction.
    #[pyo3(signature = (vertex, direction=None))]
    pub fn neighbors<'py>(
        &self,
        py: Python<'py>,
        vertex: &Bound<'_, PyAny>,
        direction: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyList>> {
        let (view, key) = (self.open()?, key_of(vertex)?);
        let keys = view.neighbors(key, self::direction(direction)?)?;
        Ok(key_list(py, &keys)?)
    }

    /// The number of out-edges of a vertex; with ``direction`` of its in-edges, or of both.
    #[pyo3(signature = (vertex, direction=None))]
    fn degree(&self, vertex: &Bound<'_, PyAny>, direction: Option<&Bound<'_, PyAny>>) -> Result<u64> {
        let view = self.open()?;
        let vertex = view.vertex(key_of(vertex)?)?;
        Ok(degree_of(view, vertex, self::direction(direction)?)?)
    }

    /// Whether an edge exists.
    fn has_edge(&self, source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.open()?.has_edge(key_of(source)?, key_of(target)?)?)
    }

    /// The edges from one vertex to another, as dicts with `number` (in a multigraph), `weight` and properties.
    fn edges_between<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
    ) -> Result<Bound<'py, PyList>> {
        let edges = self.open()?.edges_between(key_of(source)?, key_of(target)?)?;
        Ok(found_edges(py, &edges)?)
    }

    /// One edge as a dict with `weight` and properties; of parallel edges, the first.
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     The edge or one of its ends does not exist.
    fn edge<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let edges = self.open()?.edges_between(source.clone(), target.clone())?;
        match found_edges(py, &edges)?.get_item(0) {
            Ok(first) => Ok(first),
            Err(_) => Err(no_edge(source, target)),
        }
    }

    /// A path with the fewest edges, or with the smallest sum of weights, as a list of keys; None if there is none.
    ///
    /// Parameters
    /// ----------
    /// source, target : int, str or tuple
    ///     The ends.
    /// weighted : bool
    ///     Whether the sum of weights counts, not the number of edges.
    /// direction : {"out", "in", "both"}
    ///     The edges that the path follows.
    /// max_depth : int, optional
    ///     The most edges; the search goes no farther. Not for a weighted path.
    #[pyo3(signature = (source, target, *, weighted=false, direction=None, max_depth=None))]
    fn path<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        weighted: bool,
        direction: Option<&Bound<'_, PyAny>>,
        max_depth: Option<u32>,
    ) -> Result<Option<Bound<'py, PyList>>> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let options = PathOptions { direction: self::direction(direction)?, max_depth };
        if weighted && max_depth.is_some() {
            return Err(invalid("max_depth limits the number of edges, which a weighted path does not count"));
        }
        let path = self.run(py, move |view| match weighted {
            true => view.weighted_path_along(source, target, options.direction),
            false => view.path_with(source, target, &options),
        })?;
        Ok(path_keys(py, path)?)
    }

    /// Shortest paths, each as a list of keys; empty if there is none. At most ``limit`` are listed.
    #[pyo3(signature = (source, target, *, limit=100, direction=None))]
    fn shortest_paths<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        limit: usize,
        direction: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyList>> {
        let (source, target, direction) = (key_of(source)?, key_of(target)?, self::direction(direction)?);
        let found = self.run(py, move |view| view.shortest_paths_along(source, target, direction, limit))?;
        let paths = found.map_or_else(Vec::new, |found| found.paths);
        let lists = paths.iter().map(|keys| key_list(py, keys)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, lists)?)
    }

    /// The vertices within ``hops`` steps, without the vertex itself, in ascending order of keys.
    ///
    /// With ``depths=True`` as pairs of key and number of steps, nearest first; equal numbers by key.
    #[pyo3(signature = (vertex, hops, *, direction=None, depths=false))]
    fn khop<'py>(
        &self,
        py: Python<'py>,
        vertex: &Bound<'_, PyAny>,
        hops: u32,
        direction: Option<&Bound<'_, PyAny>>,
        depths: bool,
    ) -> Result<Bound<'py, PyList>> {
        let (vertex, direction) = (key_of(vertex)?, self::direction(direction)?);
        Ok(match depths {
            true => pair_list(py, self.run(py, move |view| view.khop_depths(vertex, hops, direction))?)?,
            false => key_list(py, &self.run(py, move |view| view.khop_along(vertex, hops, direction))?)?,
        })
    }

    /// Friends of friends: the vertices at a distance of exactly two steps, or of ``depth`` steps, in ascending order
    /// of keys.
    ///
    /// With ``ranked=True`` as recommendations: pairs of key and number of neighbors between, the highest number first;
    /// equal numbers by key.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> db.append([1, 1, 2, 2, 3], [2, 3, 7, 8, 8])["added"]
    /// 5
    /// >>> db.view().fof(1, ranked=True)
    /// [(8, 2), (7, 1)]
    #[pyo3(signature = (vertex, *, direction=None, depth=2, ranked=false))]
    fn fof<'py>(
        &self,
        py: Python<'py>,
        vertex: &Bound<'_, PyAny>,
        direction: Option<&Bound<'_, PyAny>>,
        depth: u32,
        ranked: bool,
    ) -> Result<Bound<'py, PyList>> {
        let (vertex, direction) = (key_of(vertex)?, self::direction(direction)?);
        if ranked && depth != 2 {
            return Err(invalid(format!("ranked friends of friends are at depth 2, not {depth}")));
        }
        Ok(match ranked {
            true => pair_list(py, self.run(py, move |view| view.fof_counts(vertex, direction))?)?,
            false => key_list(py, &self.run(py, move |view| view.at_distance(vertex, depth, direction))?)?,
        })
    }

    /// The neighbors that two vertices have in common, in ascending order of keys.
    #[pyo3(signature = (first, second, direction=None))]
    fn common_neighbors<'py>(
        &self,
        py: Python<'py>,
        first: &Bound<'_, PyAny>,
        second: &Bound<'_, PyAny>,
        direction: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyList>> {
        let (first, second, direction) = (key_of(first)?, key_of(second)?, self::direction(direction)?);
        Ok(key_list(py, &self.run(py, move |view| view.common_neighbors(first, second, direction))?)?)
    }

    /// The vertices with the most edges, as pairs of key and degree; equal degrees are ordered by key.
    #[pyo3(signature = (n=10, direction=None))]
    fn top_degrees<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        direction: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyList>> {
        let direction = self::direction(direction)?;
        Ok(pair_list(py, self.run(py, move |view| view.top_degrees(n, direction))?)?)
    }

    /// Whether a path exists. A vertex reaches itself. ``direction`` and ``max_depth`` as for `path`.
    #[pyo3(signature = (source, target, *, direction=None, max_depth=None))]
    fn reachable(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        direction: Option<&Bound<'_, PyAny>>,
        max_depth: Option<u32>,
    ) -> Result<bool> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let options = PathOptions { direction: self::direction(direction)?, max_depth };
        self.run(py, move |view| view.is_reachable_with(source, target, &options))
    }

    /// A vertex as a dict: key, id, degrees, and properties that have a value.
    fn vertex<'py>(&self, py: Python<'py>, key: &Bound<'_, PyAny>) -> Result<Bound<'py, PyDict>> {
        vertex_dict(py, self.open()?, key_of(key)?)
    }

    /// The keys of the vertices with a value of a property, in ascending order of keys. Fast with an index.
    fn find_vertices<'py>(&self, py: Python<'py>, name: &str, value: &Bound<'_, PyAny>) -> Result<Bound<'py, PyList>> {
        let (name, value) = (name.to_owned(), value_of(value)?);
        let keys = self.run(py, move |view| {
            let found = view.find_vertices(&name, value)?;
            found.into_iter().map(|vertex| view.key(vertex)).collect::<anden::Result<Vec<Key>>>()
        })?;
        Ok(key_list(py, &keys)?)
    }

    /// The values of a vertex property, by vertex id.
    ///
    /// Numbers, booleans, dates and timestamps (UTC, microseconds) are an array; a masked one if some have no value.
    /// Text, bytes and lists are an array of objects, with None where there is no value.
    fn vertex_property<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
        let name = name.to_owned();
        let (column, items) = self.run(py, move |view| {
            let items = view.vertex_schema().type_of(&name).and_then(PropertyType::items);
            Ok((view.vertex_property(&name)?, items))
        })?;
        Ok(columns::column(py, &column, items)?)
    }

    /// The values of an edge property, in the order of the out-lists: by source id, then by position in the list.
    ///
    /// An undirected edge has a value in both lists. Types as in `vertex_property`.
    fn edge_property<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
        let name = name.to_owned();
        let (column, items) = self.run(py, move |view| {
            let items = view.edge_schema().type_of(&name).and_then(PropertyType::items);
            Ok((view.edge_property(&name)?, items))
        })?;
        Ok(columns::column(py, &column, items)?)
    }

    /// Names and types of vertex properties, as a dict.
    #[getter]
    fn vertex_properties<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, kind) in self.open()?.vertex_schema().iter() {
            dict.set_item(name, kind.name())?;
        }
        Ok(dict)
    }

    /// Names and types of edge properties, as a dict.
    #[getter]
    fn edge_properties<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, kind) in self.open()?.edge_schema().iter() {
            dict.set_item(name, kind.name())?;
        }
        Ok(dict)
    }

    /// The part of the graph in which predicates over properties are true, as a view.
    ///
    /// Parameters
    /// ----------
    /// edges, vertices : str, optional
    ///     SQL expressions over the properties of edges (and `weight`) and of vertices. Null does not pass.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None, weighted=True)
    /// >>> db.append([1, 2], [2, 3], weights=[1.5, 20.0])["added"]
    /// 2
    /// >>> db.view().filter(edges="weight > 10").num_edges
    /// 1
    #[pyo3(signature = (edges=None, vertices=None))]
    fn filter(&self, py: Python<'_>, edges: Option<String>, vertices: Option<String>) -> Result<Self> {
        let part = self.run(py, move |view| view.filter(edges.as_deref(), vertices.as_deref()))?;
        Ok(self.part(part))
    }

    /// The induced subgraph of these vertices, as a view: the vertices, and all edges between them.
    fn subgraph(&self, py: Python<'_>, vertices: &Bound<'_, PyAny>) -> Result<Self> {
        let keys = keys_of(vertices)?;
        Ok(self.part(self.run(py, move |view| view.induced(&keys))?))
    }

    /// The ego network of a vertex, as a view: the induced subgraph of the vertices within ``hops`` steps along edges
    /// of a direction, the vertex included.
    #[pyo3(signature = (vertex, hops=1, *, direction=None))]
    fn ego(
        &self,
        py: Python<'_>,
        vertex: &Bound<'_, PyAny>,
        hops: u32,
        direction: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let (vertex, direction) = (key_of(vertex)?, self::direction(direction)?);
        Ok(self.part(self.run(py, move |view| view.ego(vertex, hops, direction))?))
    }

    /// This view without isolated vertices, which have no edge in it: they count as removed, as in a window. So kernels
    /// on filtered edges count only the vertices with such edges.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None, weighted=True)
    /// >>> db.append([1, 2], [2, 3], weights=[1.5, 20.0])["added"]
    /// 2
    /// >>> heavy = db.view().filter(edges="weight > 10")
    /// >>> heavy.num_vertices, heavy.without_isolated().num_vertices
    /// (3, 2)
    fn without_isolated(&self, py: Python<'_>) -> Result<Self> {
        Ok(self.part(self.run(py, move |view| view.without_isolated())?))
    }

    /// The edges with one of these types; all vertices stay.
    fn types(&self, py: Python<'_>, types: &Bound<'_, PyAny>) -> Result<Self> {
        let types = names_of(types)?;
        Ok(self.part(self.run(py, move |view| view.types(&types))?))
    }

    /// The vertices with one of these labels, and the edges between them.
    fn labels(&self, py: Python<'_>, labels: &Bound<'_, PyAny>) -> Result<Self> {
        let labels = names_of(labels)?;
        Ok(self.part(self.run(py, move |view| view.labels(&labels))?))
    }

    /// All types of edges, sorted.
    fn known_types(&self, py: Python<'_>) -> Result<Vec<String>> {
        self.run(py, anden::View::known_types)
    }

    /// All labels of vertices, sorted.
    fn known_labels(&self, py: Python<'_>) -> Result<Vec<String>> {
        self.run(py, anden::View::known_labels)
    }

    /// This view with a numeric edge property as the weight.
    fn with_weight(&self, py: Python<'_>, name: &str) -> Result<Self> {
        let name = name.to_owned();
        Ok(self.alike(self.run(py, move |view| view.with_weight(&name))?))
    }

    /// This view with another prefetch policy: ``"auto"``, ``"off"``, ``"neighbourhood"``, ``"sequential"`` or
    /// ``"frontier"``.
    fn with_prefetch(&self, policy: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(self.alike(self.open()?.with_prefetch(prefetch(policy)?)))
    }

    /// The distribution of degrees: max, mean, percentiles and a histogram, as a dict.
    #[pyo3(signature = (direction=None))]
    fn degree_statistics<'py>(
        &self,
        py: Python<'py>,
        direction: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyDict>> {
        let direction = self::direction(direction)?;
        let statistics = self.run(py, move |view| view.degree_statistics(direction))?;
        let dict = PyDict::new(py);
        dict.set_item("max", statistics.max)?;
        dict.set_item("mean", statistics.mean)?;
        dict.set_item("percentiles", statistics.percentiles)?;
        let bins = statistics.bins.into_iter().map(|bin| (*bin.degrees.start(), *bin.degrees.end(), bin.num_vertices));
        dict.set_item("bins", bins.collect::<Vec<_>>())?;
        dict.set_item("counts", statistics.counts)?;
        Ok(dict)
    }

    /// Write the graph to a file. An undirected edge is written once. Returns the number of edges.
    ///
    /// Parameters
    /// ----------
    /// file : str or os.PathLike
    ///     The file. It is replaced once the new one is complete. For ``"graphframes"`` and
    ///     ``"graphar"``, a new or empty folder.
    /// format : str, optional
    ///     ``"edgelist"``, ``"csv"``, ``"mtx"``, ``"parquet"``, ``"arrow"``, ``"graphml"``, ``"gapbs"``,
    ///     ``"gexf"``, ``"gml"``, ``"pajek"``, ``"json"`` (node-link), ``"jsonl"``, ``"neo4j"``, ``"neptune"``,
    ///     ``"bvgraph"`` (three files), ``"graphframes"`` or ``"graphar"`` (folders); by default as the name of the
    ///     file ends.
    /// vertices : str or os.PathLike, optional
    ///     A second file for the keys of all vertices and their properties.
    #[pyo3(signature = (file, *, format=None, vertices=None))]
    fn export(
        &self,
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        format: Option<&str>,
        vertices: Option<&Bound<'_, PyAny>>,
    ) -> Result<u64> {
        let file = path(file)?;
        let vertices = vertices.map(path).transpose()?;
        export(self, py, file, format, vertices)
    }

    fn __repr__(&self) -> String {
        match self.open() {
            Ok(view) => html::view_text(view),
            Err(_) => "<anden.View of a database that was closed>".to_owned(),
        }
    }

    fn _repr_html_(&self, py: Python<'_>) -> Result<String> {
        self.run(py, html::view_page)
    }
}

/// Iterates over the keys of a view, in ascending order of ids.
#[pyclass(frozen, module = "anden")]
pub struct KeyIterator {
    view: View,
    next: AtomicU32,
    signals: SignalWatch,
}

#[pymethods]
impl KeyIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        let view = self.view.open()?;
        self.signals.count(py)?;
        loop {
            // Relaxed: threads that share the iterator only need different numbers.
            let vertex = self.next.fetch_add(1, Ordering::Relaxed);
            if vertex as usize >= view.vertex_bound() {
                self.next.store(vertex, Ordering::Relaxed);
                return Ok(None);
            }
            if view.is_live(vertex) {
                return Ok(Some(key_ref_object(py, view.key_ref(vertex)?)?));
            }
        }
    }
}

/// One name, or several.
fn names_of(value: &Bound<'_, PyAny>) -> Result<Vec<String>> {
    match value.cast::<PyString>() {
        Ok(name) => Ok(vec![name.to_str()?.to_owned()]),
        Err(_) => Ok(value.extract()?),
    }
}

/// Keys with a number each, as pairs.
fn pair_list<T>(py: Python<'_>, found: Vec<(Key, T)>) -> PyResult<Bound<'_, PyList>>
where
    T: for<'py> IntoPyObject<'py>,
{
    let pairs = found.into_iter().map(|(key, number)| Ok((key_object(py, &key)?, number)));
    PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
}

fn no_edge(source: Key, target: Key) -> Failure {
    let reason = format!("there is no edge from {source} to {target}").into();
    let what = anden::error::NotFound::Edge { source, target, number: None };
    Error::NotFound { what, reason }.into()
}

/// The error for a number out of its range, or for another object.
fn wrong_or_invalid(value: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let shown = value.repr().map_or_else(|_| "?".to_owned(), |shown| shown.to_string());
    let is_number = value.is_instance_of::<pyo3::types::PyInt>();
    let text = format!("{wanted}, not {shown}");
    if is_number { invalid(text).into() } else { wrong_type(text).into() }
}
