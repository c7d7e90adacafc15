//! Kernels: whole-graph algorithms, all through the table of the engine.

use anden::job::{Job, JobOutput, Parameters, Value, Values};
use anden::kernel::Medium;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::{Result, invalid, wrong_type};
use crate::key::{key_list, key_object, keys_of};
use crate::options::{Keywords, word};
use crate::result::KernelResult;
use crate::view::View;

/// The arguments of all kernels. Each kernel takes some of them.
const PARAMETERS: &[&str] = &[
    "source",
    "sources",
    "seed",
    "iterations",
    "tolerance",
    "damping",
    "delta",
    "algorithm",
    "weight",
    "parents",
    "variant",
    "per_vertex",
    "details",
];

/// What a caller asks of a kernel.
#[derive(Default)]
struct Request {
    parameters: Parameters,
    details: bool,
}

/// The number of sampled sources.
fn number_of_sources(value: &Bound<'_, PyAny>) -> Result<u64> {
    match value.cast::<PyString>() {
        Ok(text) if text == "all" => Ok(u64::MAX),
        Ok(text) => Err(invalid(format!("expected a number or 'all', not '{text}'"))),
        Err(_) => number(value, "a number of sources"),
    }
}

/// A number of at least 0.
fn number<T>(value: &Bound<'_, PyAny>, what: &str) -> Result<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    if let Ok(number) = value.extract() {
        return Ok(number);
    }
    // An object whose repr fails gets its own error.
    let shown = value.repr()?;
    Err(match value.is_instance_of::<pyo3::types::PyInt>() {
        true => invalid(format!("{what} is 0 or more, and fits its type: {shown} does not")),
        false => wrong_type(format!("{what} is an int, not {shown}")),
    })
}

/// A float that `is_valid` accepts.
fn float(value: &Bound<'_, PyAny>, wanted: &str, is_valid: impl Fn(f64) -> bool) -> Result<f64> {
    let number: f64 = value.extract()?;
    if is_valid(number) { Ok(number) } else { Err(invalid(format!("expected {wanted}, not {number}"))) }
}

impl Request {
    fn new(kernel: &'static str, source: Option<&Bound<'_, PyAny>>, given: Option<&Bound<'_, PyDict>>) -> Result<Self> {
        let mut given = Keywords::new(kernel, given, &[PARAMETERS])?;
        let named = given.take_with("source", keys_of)?;
        let source = match (source.filter(|source| !source.is_none()), named) {
            (Some(source), _) => keys_of(source)?,
            (None, named) => named.unwrap_or_default(),
        };
        // A list of vertices is a choice of sources, a number the size of a sample.
        let (mut source, mut sources) = (source, None);
        if let Some(given) = given.take_with("sources", |value| Ok(value.clone()))? {
            match given.is_instance_of::<pyo3::types::PyInt>() || given.is_instance_of::<PyString>() {
                true => sources = Some(number_of_sources(&given)?),
                false => source.extend(keys_of(&given)?),
            }
        }
        let seed = given.take_with("seed", |value| number(value, "a seed"))?;
        if !source.is_empty() && (sources.is_some() || seed.is_some()) {
            return Err(invalid(format!("{kernel}() takes vertices as sources, or the size and the seed of a sample")));
        }
        let media = Medium::ALL.map(|medium| (medium, medium.name()));
        let parameters = Parameters {
            source,
            sources,
            seed,
            iterations: given.take_with("iterations", |value| number(value, "a number of iterations"))?,
            tolerance: given
                .take_with("tolerance", |value| float(value, "a number of 0 or more", |x| x >= 0.0 && x.is_finite()))?,
            damping: given
                .take_with("damping", |value| float(value, "a number from 0 to 1", |x| (0.0..=1.0).contains(&x)))?,
            delta: given.take_with("delta", |value| float(value, "a number above 0", |x| x > 0.0 && x.is_finite()))?,
            algorithm: given.take("algorithm")?,
            weight: given.take("weight")?,
            parents: given.is_set("parents")?,
            variant: given.take_with("variant", |value| word(value, &media))?.unwrap_or_default(),
            values: given.is_set("per_vertex")?,
            // A `Result` ranks its values on request, so no keyword asks for it.
            top: None,
        };
        Ok(Self { parameters, details: given.is_set("details")? })
    }
}

/// Runs a kernel. Returns its values, or a `Result` with details.
fn run<'py>(
    view: &View,
    py: Python<'py>,
    kernel: &'static str,
    source: Option<&Bound<'py, PyAny>>,
    given: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyAny>> {
    let Request { parameters, details } = Request::new(kernel, source, given)?;
    let job = Job::new(kernel, parameters)?;
    let (name, column) = (job.kernel().name, job.value_name());
    let output = view.run(py, move |view| view.run(&job))?;
    if details {
        let result = KernelResult::new(py, view.share(), name, column, output)?;
        return Ok(Bound::new(py, result)?.into_any());
    }
    Ok(values(py, output)?)
}

/// The values by vertex id, without a copy; the only figure of a kernel that has no values.
pub fn values(py: Python<'_>, output: JobOutput) -> PyResult<Bound<'_, PyAny>> {
    let figure = output.summary.first().map(|(_, value)| figure(py, value)).transpose()?;
    match output.into_values() {
        Some(Values::Hops(values) | Values::Vertices(values) | Values::Numbers(values)) => {
            Ok(values.into_owned().into_pyarray(py).into_any())
        }
        Some(Values::Counts(values) | Values::Distances(values)) => Ok(values.into_owned().into_pyarray(py).into_any()),
        Some(Values::Reals(values)) => Ok(values.into_owned().into_pyarray(py).into_any()),
        None => Ok(figure.unwrap_or_else(|| py.None().into_bound(py))),
    }
}

/// A figure of a summary.
pub fn figure<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
        Value::Real(number) => Ok(number.into_pyobject(py)?.into_any()),
        Value::Key(key) => key_object(py, key),
        Value::Keys(keys) => Ok(key_list(py, keys)?.into_any()),
        Value::Ranking(ranking) => {
            let pairs = ranking.iter().map(|(key, score)| Ok((key_object(py, key)?, *score)));
            Ok(PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        Value::Counts(counts) => {
            let pairs = counts.iter().map(|(key, count)| Ok((key_object(py, key)?, *count)));
            Ok(PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
    }
}

/// The kernels, as a dict from the name to a description and the names of the parameters.
#[pyfunction]
pub fn kernels(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for kernel in Job::table() {
        let entry = PyDict::new(py);
        entry.set_item("about", kernel.about)?;
        entry.set_item("value", kernel.value)?;
        let parameters = kernel.parameters.iter().map(|one| one.name()).filter(|name| PARAMETERS.contains(name));
        entry.set_item("parameters", parameters.collect::<Vec<_>>())?;
        entry.set_item("algorithms", kernel.algorithms)?;
        dict.set_item(kernel.name, entry)?;
    }
    Ok(dict)
}

#[pymethods]
impl View {
    /// PageRank: the influence of each vertex. With sources, personalized PageRank.
    ///
    /// Parameters
    /// ----------
    /// source : key or list of keys, optional
    ///     The vertices that jumps lead to.
    /// iterations : int, optional
    ///     The number of iterations; at most that many with a tolerance. By default at most 100.
    /// tolerance : float, optional
    ///     Stop if the sum of all changes is below this. By default 1e-6, unless iterations are given.
    /// damping : float, optional
    ///     The share of rank that follows edges; 0.85.
    /// algorithm : {"standard", "gap"}
    ///     gap drops the rank of vertices without out-edges.
    /// weight : str, optional
    ///     The edge property in proportion to which rank follows edges.
    /// variant : {"auto", "memory", "disk"}
    ///     For a graph in memory or on disk.
    /// details : bool
    ///     Return a `Result` in place of the array.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray or Result
    ///     float64 by vertex id.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> db.append([1, 2], [2, 1])["added"]
    /// 2
    /// >>> db.view().pagerank()
    /// array([0.5, 0.5])
    #[pyo3(
        signature = (**parameters),
        text_signature = "($self, *, source=None, iterations=None, tolerance=None, damping=None, algorithm=None, \
            weight=None, variant='auto', details=False)"
    )]
    fn pagerank<'py>(&self, py: Python<'py>, parameters: Option<&Bound<'py, PyDict>>) -> Result<Bound<'py, PyAny>> {
        run(self, py, "pagerank", None, parameters)
    }

    /// Breadth-first search: the number of hops from a source to each vertex.
    ///
    /// Parameters
    /// ----------
    /// source : key
    ///     The vertex to start from.
    /// parents : bool
    ///     Return the parent of each vertex, as an id, in place of the hops.
    /// variant, details
    ///     As for `pagerank`.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray or Result
    ///     uint32 by vertex id; 2**32 - 1: not reached.
    #[pyo3(
        signature = (source, **parameters),
        text_signature = "($self, source, *, parents=False, variant='auto', details=False)"
    )]
    fn bfs<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        parameters: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        run(self, py, "bfs", Some(source), parameters)
    }

    /// Single-source shortest paths: the smallest sum of weights from a source to each vertex.
    ///
    /// Parameters
    /// ----------
    /// source : key
    ///     The vertex to start from.
    /// delta : float, optional
    ///     The width of a distance bucket; by default chosen from the graph.
    /// algorithm : {"delta-stepping", "bellman-ford"}
    ///     The algorithm.
    /// weight : str, optional
    ///     The edge property to use as the weight.
    /// variant, details
    ///     As for `pagerank`.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray or Result
    ///     By vertex id: uint64 for integer weights (2**64 - 1: not reached), float64 for others (inf: not reached).
    #[pyo3(
        signature = (source, **parameters),
        text_signature = "($self, source, *, delta=None, algorithm=None, weight=None, variant='auto', details=False)"
    )]
    fn sssp<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        parameters: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        run(self, py, "sssp", Some(source), parameters)
    }

    /// Weakly connected components: for each vertex the smallest id in its component, as uint32.
    #[pyo3(
        signature = (**parameters),
        text_signature = "($self, *, variant='auto', details=False)"
    )]
    fn wcc<'py>(&self, py: Python<'py>, parameters: Option<&Bound<'py, PyDict>>) -> Result<Bound<'py, PyAny>> {
        run(self, py, "wcc", None, parameters)
    }

    /// Strongly connected components: for each vertex the smallest id in its component, as uint32.
    #[pyo3(
        signature = (**parameters),
        text_signature = "($self, *, variant='auto', details=False)"
    )]
    fn scc<'py>(&self, py: Python<'py>, parameters: Option<&Bound<'py, PyDict>>) -> Result<Bound<'py, PyAny>> {
        run(self, py, "scc", None, parameters)
    }

    /// Betweenness centrality: how often each vertex lies on shortest paths, as float64.
    ///
    /// A sum over the sources, not normalised. In an undirected graph, a path counts from both of its ends, which is
    /// twice the figure of NetworkX.
    ///
    /// Parameters
    /// ----------
    /// sources : list of keys, int or "all", optional
    ///     The sources of the paths, or the number of sampled ones. By default all vertices of a small graph, and a
    ///     sample of a large one.
    /// source : key or list of keys, optional
    ///     The sources, under the name of the command line.
    /// seed : int, optional
    ///     The seed of the sample.
    /// variant, details
    ///     As for `pagerank`.
    #[pyo3(
        signature = (sources=None, **parameters),
        text_signature = "($self, sources=None, *, source=None, seed=None, variant='auto', details=False)"
    )]
    fn bc<'py>(
        &self,
        py: Python<'py>,
        sources: Option<&Bound<'py, PyAny>>,
        parameters: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        run(self, py, "bc", None, Some(&with_sources(py, sources, parameters)?))
    }

    /// Closeness centrality: how near the sources are to each vertex, as float64. Parameters as for `bc`.
    #[pyo3(
        signature = (sources=None, **parameters),
        text_signature = "($self, sources=None, *, source=None, seed=None, variant='auto', details=False)"
    )]
    fn closeness<'py>(
        &self,
        py: Python<'py>,
        sources: Option<&Bound<'py, PyAny>>,
        parameters: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        run(self, py, "closeness", None, Some(&with_sources(py, sources, parameters)?))
    }

    /// The number of triangles as an int; with ``per_vertex=True`` of each vertex, as uint64 by vertex id.
    ///
    /// Directions, loops and parallel edges do not count.
    #[pyo3(
        signature = (**parameters),
        text_signature = "($self, *, per_vertex=False, variant='auto', details=False)"
    )]
    fn triangles<'py>(&self, py: Python<'py>, parameters: Option<&Bound<'py, PyDict>>) -> Result<Bound<'py, PyAny>> {
        run(self, py, "triangles", None, parameters)
    }

    /// The local clustering coefficient of each vertex, as float64, as LDBC Graphalytics defines it.
    #[pyo3(
        signature = (**parameters),
        text_signature = "($self, *, variant='auto', details=False)"
    )]
    fn lcc<'py>(&self, py: Python<'py>, parameters: Option<&Bound<'py, PyDict>>) -> Result<Bound<'py, PyAny>> {
        run(self, py, "lcc", None, parameters)
    }

    /// Communities by label propagation: the label of each vertex, which is a vertex id, as uint32.
    ///
    /// Parameters
    /// ----------
    /// iterations : int, optional
    ///     The most rounds; 10.
    /// variant, details
    ///     As for `pagerank`.
    #[pyo3(
        signature = (**parameters),
        text_signature = "($self, *, iterations=None, variant='auto', details=False)"
    )]
    fn cdlp<'py>(&self, py: Python<'py>, parameters: Option<&Bound<'py, PyDict>>) -> Result<Bound<'py, PyAny>> {
        run(self, py, "cdlp", None, parameters)
    }

    /// The coreness of each vertex, as uint32. Directions, loops and parallel edges do not count.
    #[pyo3(
        signature = (**parameters),
        text_signature = "($self, *, variant='auto', details=False)"
    )]
    fn kcore<'py>(&self, py: Python<'py>, parameters: Option<&Bound<'py, PyDict>>) -> Result<Bound<'py, PyAny>> {
        run(self, py, "kcore", None, parameters)
    }
}

/// The parameters with the positional argument `sources`.
fn with_sources<'py>(
    py: Python<'py>,
    sources: Option<&Bound<'py, PyAny>>,
    parameters: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = parameters.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
    if let Some(sources) = sources {
        all.set_item("sources", sources)?;
    }
    Ok(all)
}
