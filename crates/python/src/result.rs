//! Results of kernels.

use anden::Key;
use anden::job::{JobOutput, Value, Values};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::error::{Result, misused};
use crate::key::{key_object, key_of};
use crate::view::View;
use crate::{columns, html, kernels};

/// The result of a kernel, with the time that it took: of ``g.pagerank(details=True)`` and so on.
///
/// Examples
/// --------
/// >>> import anden
/// >>> db = anden.create(None, ids="string")
/// >>> db.append(["ann", "ben"], ["cleo", "cleo"])["added"]
/// 2
/// >>> result = db.view().pagerank(details=True)
/// >>> result.top(1)[0][0]
/// 'cleo'
#[pyclass(frozen, name = "Result", module = "anden")]
pub struct KernelResult {
    view: View,
    kernel: &'static str,
    column: &'static str,
    values: Py<PyAny>,
    has_values: bool,
    keys: PyOnceLock<Py<PyAny>>,
    summary: Py<PyDict>,
    iterations: Option<u64>,
    seconds: f64,
}

impl KernelResult {
    pub fn new(
        py: Python<'_>,
        view: View,
        kernel: &'static str,
        column: &'static str,
        output: JobOutput,
    ) -> Result<Self> {
        let summary = PyDict::new(py);
        let mut iterations = None;
        for (name, value) in &output.summary {
            if let ("iterations", Value::Integer(number)) = (*name, value) {
                iterations = Some(*number);
            }
            summary.set_item(name, kernels::figure(py, value)?)?;
        }
        let (seconds, has_values) = (output.seconds, output.values().is_some());
        let values = kernels::values(py, output)?.unbind();
        let (keys, summary) = (PyOnceLock::new(), summary.unbind());
        Ok(Self { view, kernel, column, values, has_values, keys, summary, iterations, seconds })
    }

    /// The view that the kernel ran on.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The values, as an array by vertex id, or a number.
    pub fn array<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.values.bind(py).clone()
    }

    /// The name of the column of values.
    pub fn column(&self) -> &'static str {
        self.column
    }

    /// The vertices with the largest values, as ids with values. Vertices that were not reached do not count.
    /// Equal values are ordered by key.
    pub fn ranking(&self, py: Python<'_>, length: usize) -> Result<Vec<(u32, f64)>> {
        self.view.open()?;
        let Some(scores) = self.scores(py)? else { return Ok(Vec::new()) };
        self.view.run(py, move |view| view.top(&scores, length))
    }

    /// A copy of the values, by their meaning.
    fn owned_values(&self, py: Python<'_>) -> Result<Values<'static>> {
        let values = self.values.bind(py);
        if let Ok(array) = values.cast::<PyArray1<f64>>() {
            return Ok(Values::Reals(array.to_vec().map_err(not_contiguous)?.into()));
        }
        if let Ok(array) = values.cast::<PyArray1<u64>>() {
            let numbers = array.to_vec().map_err(not_contiguous)?.into();
            return Ok(if self.column == "distance" { Values::Distances(numbers) } else { Values::Counts(numbers) });
        }
        if let Ok(array) = values.cast::<PyArray1<u32>>() {
            let numbers = array.to_vec().map_err(not_contiguous)?.into();
            return Ok(match self.column {
                "distance" => Values::Hops(numbers),
                "core" => Values::Numbers(numbers),
                _ => Values::Vertices(numbers),
            });
        }
        Err(misused(format!("{} has no values by vertex; ask for per_vertex=True", self.kernel)))
    }

    /// The values as floats; infinite where a vertex was not reached. `None` without values.
    fn scores(&self, py: Python<'_>) -> Result<Option<Vec<f64>>> {
        let values = self.values.bind(py);
        if let Ok(array) = values.cast::<PyArray1<f64>>() {
            return Ok(Some(array.to_vec().map_err(not_contiguous)?));
        }
        if let Ok(array) = values.cast::<PyArray1<u32>>() {
            let numbers = array.to_vec().map_err(not_contiguous)?;
            let score = |number| if number == u32::MAX { f64::INFINITY } else { f64::from(number) };
            return Ok(Some(numbers.into_iter().map(score).collect()));
        }
        if let Ok(array) = values.cast::<PyArray1<u64>>() {
            let numbers = array.to_vec().map_err(not_contiguous)?;
            let score = |number| if number == u64::MAX { f64::INFINITY } else { number as f64 };
            return Ok(Some(numbers.into_iter().map(score).collect()));
        }
        Ok(None)
    }
}

fn no_groups(kernel: &str) -> crate::error::Failure {
    misused(format!("{kernel} has no groups of vertices; wcc, scc, cdlp and kcore have"))
}

fn not_contiguous(error: impl std::fmt::Display) -> crate::error::Failure {
    misused(format!("cannot read the values of the result: {error}"))
}

#[pymethods]
impl KernelResult {
    /// The name of the kernel.
    #[getter]
    fn kernel(&self) -> &'static str {
        self.kernel
    }

    /// The name of a value, such as ``"score"`` or ``"distance"``.
    #[getter]
    fn name(&self) -> &'static str {
        self.column
    }

    /// The values, as an array by vertex id; an int for the number of triangles.
    #[getter]
    fn values(&self, py: Python<'_>) -> Py<PyAny> {
        self.values.clone_ref(py)
    }

    /// The keys of the vertices, in the order of the values.
    #[getter]
    fn keys(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        self.view.open()?;
        let keys = self.keys.get_or_try_init(py, || columns::keys(py, &self.view).map(Bound::unbind))?;
        Ok(keys.clone_ref(py))
    }

    /// The number of iterations; None for a kernel without.
    #[getter]
    fn iterations(&self) -> Option<u64> {
        self.iterations
    }

    /// The seconds that the kernel took.
    #[getter]
    fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The summary figures, as a dict.
    #[getter]
    fn summary(&self, py: Python<'_>) -> Py<PyDict> {
        self.summary.clone_ref(py)
    }

    /// The vertices with the largest values, as pairs of key and value; equal values are ordered by key. Vertices
    /// that were not reached do not count.
    #[pyo3(signature = (n=10))]
    fn top<'py>(&self, py: Python<'py>, n: usize) -> Result<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let (view, values) = (self.view.open()?, self.values.bind(py));
        let ranking = self.ranking(py, n)?;
        let pair =
            |(vertex, _)| Ok((key_object(py, &view.key(vertex)?)?, values.get_item(vertex)?.call_method0("item")?));
        ranking.into_iter().map(pair).collect()
    }

    /// The sizes of the largest components or communities, as pairs of key and number of vertices; equal sizes are
    /// ordered by key. The key is the smallest of the component, or the label of the community. The sizes of cores have
    /// core numbers in place of keys.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> db.append([1, 2, 7], [2, 3, 8])["added"]
    /// 3
    /// >>> db.view().wcc(details=True).sizes()
    /// [(1, 3), (7, 2)]
    #[pyo3(signature = (n=10))]
    fn sizes<'py>(&self, py: Python<'py>, n: usize) -> Result<Vec<(Bound<'py, PyAny>, u64)>> {
        let view = self.view.open()?;
        let Ok(values) = self.values.bind(py).cast::<PyArray1<u32>>() else { return Err(no_groups(self.kernel)) };
        let values = values.to_vec().map_err(not_contiguous)?;
        let found = match self.column {
            "component" => self.view.run(py, move |view| view.largest_groups(&view.components_by_key(&values)?, n))?,
            "community" => self.view.run(py, move |view| view.largest_groups(&values, n))?,
            "core" => {
                let found = self.view.run(py, move |view| view.most_frequent(&values, n))?;
                let pair = |(core, count): (u32, u64)| Ok((key_object(py, &Key::Integer(core.into()))?, count));
                return found.into_iter().map(pair).collect();
            }
            _ => return Err(no_groups(self.kernel)),
        };
        found.into_iter().map(|(vertex, count)| Ok((key_object(py, &view.key(vertex)?)?, count))).collect()
    }

    /// Store the value of each vertex as a vertex property, in a new snapshot, whose number is returned.
    ///
    /// Components and parents are keys. A vertex that was not reached has no value afterwards. Vertices outside the view
    /// of the result keep their value.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> db.append([1, 7], [2, 8])["added"]
    /// 2
    /// >>> db.view().wcc(details=True).store("component")
    /// 3
    /// >>> db.view().find_vertices("component", 7)
    /// [7, 8]
    fn store(&self, py: Python<'_>, name: &str) -> Result<u32> {
        let view = self.view.open()?.clone();
        let (values, column, name) = (self.owned_values(py)?, self.column, name.to_owned());
        let report = self.view.opened().run(py, move |database| {
            let values = match values {
                // In the arrays of Python, the smallest id names a component.
                Values::Vertices(labels) if column == "component" => {
                    Values::Vertices(view.components_by_key(&labels)?.into_owned().into())
                }
                values => values,
            };
            database.store_values(&view, &name, &values)
        })?;
        Ok(report.snapshot)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        if self.has_values { self.values.bind(py).len() } else { Ok(0) }
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// The value of a vertex, by key.
    fn __getitem__<'py>(&self, py: Python<'py>, vertex: &Bound<'_, PyAny>) -> Result<Bound<'py, PyAny>> {
        let vertex = self.view.open()?.vertex(key_of(vertex)?)?;
        if !self.has_values {
            return Err(misused(format!("{} has no values by vertex; ask for per_vertex=True", self.kernel)));
        }
        Ok(self.values.bind(py).get_item(vertex)?)
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String> {
        html::result_text(py, self)
    }

    fn _repr_html_(&self, py: Python<'_>) -> Result<String> {
        html::result_page(py, self)
    }
}

impl KernelResult {
    /// The head of a table: the kernel, its figures and its time.
    pub fn headline(&self, py: Python<'_>) -> Result<String> {
        let mut parts = vec![self.kernel.to_owned()];
        for (name, value) in self.summary.bind(py).iter() {
            // Lists are too long for a line.
            if !value.is_instance_of::<pyo3::types::PyList>() {
                parts.push(format!("{name} {value}"));
            }
        }
        parts.push(format!("{:.3} s", self.seconds));
        Ok(parts.join(", "))
    }

    /// The first rows of the table, as text.
    pub fn rows(&self, py: Python<'_>, length: usize) -> Result<Vec<[String; 2]>> {
        let rows = self.top(py, length)?.into_iter();
        rows.map(|(key, value)| Ok([key.str()?.to_string(), value.str()?.to_string()])).collect()
    }
}
