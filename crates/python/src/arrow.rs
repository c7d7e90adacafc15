//! Tables as Arrow streams, by the PyCapsule interface of Arrow: pyarrow, pandas, Polars and DuckDB read them.
//!
//! A table of a view is read in batches while its reader asks, so a table larger than memory streams through. Every
//! stream begins anew.

mod made;

use std::ffi::CStr;
use std::sync::Arc;

use anden::property::{PropertyColumn, PropertyType};
use anden::tables::{Batches, RecordBatch, RowFilter};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::filter::filter_record_batch;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

pub use self::made::table_of_columns;
use crate::calls::{self, Watch};
use crate::columns;
use crate::error::{Failure, Result, misused, wrong_type};
use crate::html::{count, table};
use crate::opened::Opened;

const STREAM_NAME: &CStr = c"arrow_array_stream";
const SCHEMA_NAME: &CStr = c"arrow_schema";
/// Rows in the notebook view of a table.
const ROWS_SHOWN: usize = 10;

/// The kind of a table of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowKind {
    Edges,
    Vertices,
}

/// The place of the rows.
#[derive(Clone)]
enum RowSource {
    /// Read from a view.
    View { view: Box<anden::View>, opened: Arc<Opened>, choice: RowChoice },
    /// In memory.
    Batches(Vec<RecordBatch>),
}

/// What a table shows of a view.
#[derive(Clone)]
struct RowChoice {
    kind: RowKind,
    /// Names; none: the usual columns.
    columns: Vec<String>,
    /// Predicates that all rows meet.
    filters: Vec<String>,
}

impl RowChoice {
    /// # Errors
    /// A column does not exist, or a predicate is wrong.
    fn batches<'a>(&self, view: &'a anden::View) -> anden::Result<Batches<'a>> {
        let batches = match self.kind {
            RowKind::Edges => view.edges(&names(&self.columns)),
            RowKind::Vertices => view.vertices(&names(&self.columns)),
        };
        self.filters.iter().try_fold(batches?, |batches, filter| batches.with_filter(filter))
    }
}

/// A table of edges, vertices, snapshots or a result, as an Arrow stream.
///
/// pyarrow, pandas, Polars and DuckDB read it directly, because it has ``__arrow_c_stream__``. Edges and vertices are
/// read in batches, so the table may be larger than memory. Every read begins anew.
///
/// Examples
/// --------
/// >>> import anden
/// >>> db = anden.create(None, ids="string")
/// >>> _ = db.append(["ann", "ben"], ["ben", "cleo"])
/// >>> edges = db.view().edges()
/// >>> edges.columns, len(edges)
/// (['source', 'target'], 2)
/// >>> list(edges.to_numpy()["target"])
/// ['ben', 'cleo']
#[pyclass(frozen, weakref, module = "anden")]
pub struct Table {
    source: RowSource,
    schema: SchemaRef,
    /// The name of the rows, for texts.
    name: &'static str,
}

self_cell::self_cell!(
    /// Batches with the view that they read.
    struct ViewBatches {
        owner: anden::View,
        #[not_covariant]
        dependent: Batches,
    }
);

/// A read of a view.
struct ViewReader {
    batches: ViewBatches,
    schema: SchemaRef,
    opened: Arc<Opened>,
}

impl Iterator for ViewReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.opened.is_closed() {
            return Some(Err(ArrowError::ExternalError("the database of the table was closed".into())));
        }
        if calls::is_stream_interrupted() {
            return Some(Err(ArrowError::ExternalError("the read of the table was interrupted".into())));
        }
        let batch = self.batches.with_dependent_mut(|_, batches| batches.next())?;
        Some(batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for ViewReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn names(columns: &[String]) -> Vec<&str> {
    columns.iter().map(String::as_str).collect()
}

impl Table {
    /// A table of a view with these columns; none: the usual ones.
    ///
    /// # Errors
    /// A column does not exist.
    fn of_view(view: anden::View, opened: &Arc<Opened>, kind: RowKind, columns: Vec<String>) -> Result<Self> {
        Self::of_choice(view, opened, RowChoice { kind, columns, filters: Vec::new() })
    }

    fn of_choice(view: anden::View, opened: &Arc<Opened>, choice: RowChoice) -> Result<Self> {
        let schema = Arc::clone(choice.batches(&view)?.schema());
        let name = if choice.kind == RowKind::Edges { "edges" } else { "vertices" };
        let opened = Arc::clone(opened);
        Ok(Self { source: RowSource::View { view: Box::new(view), opened, choice }, schema, name })
    }

    fn of_batch(batch: RecordBatch, name: &'static str) -> Self {
        let schema = batch.schema();
        Self { source: RowSource::Batches(vec![batch]), schema, name }
    }

    /// A new read of the rows, which the watch may cancel.
    fn reader(&self, watch: Arc<Watch>) -> Result<Box<dyn RecordBatchReader + Send>> {
        Ok(match &self.source {
            RowSource::View { view, opened, choice } => {
                opened.require_open()?;
                let batches = ViewBatches::try_new(view.with_progress(watch), |view| choice.batches(view))?;
                Box::new(ViewReader { batches, schema: Arc::clone(&self.schema), opened: Arc::clone(opened) })
            }
            RowSource::Batches(batches) => {
                Box::new(RecordBatchIterator::new(batches.clone().into_iter().map(Ok), Arc::clone(&self.schema)))
            }
        })
    }

    /// Reads all rows, without the GIL and with Ctrl-C.
    fn batches(&self, py: Python<'_>) -> Result<Vec<RecordBatch>> {
        match &self.source {
            RowSource::Batches(batches) => Ok(batches.clone()),
            RowSource::View { view, opened, choice } => {
                opened.require_open()?;
                let (view, choice) = (view.clone(), choice.clone());
                calls::run(py, move |watch| choice.batches(&view.with_progress(watch))?.collect())
            }
        }
    }

    /// The table with all rows in memory.
    fn collected(&self, py: Python<'_>) -> Result<Self> {
        let source = RowSource::Batches(self.batches(py)?);
        Ok(Self { source, schema: Arc::clone(&self.schema), name: self.name })
    }

    fn rows(&self, py: Python<'_>) -> Result<u64> {
        Ok(match &self.source {
            RowSource::View { view, opened, choice } if choice.filters.is_empty() => {
                opened.require_open()?;
                let (view, kind) = (view.clone(), choice.kind);
                // A part of a graph may have to be laid out first.
                calls::run(py, move |watch| -> Result<_> {
                    let view = view.with_progress(watch);
                    Ok(match kind {
                        RowKind::Edges => view.num_edges(),
                        RowKind::Vertices => view.num_vertices() as u64,
                    })
                })?
            }
            // The rows that pass are counted, by one column.
            RowSource::View { view, opened, choice } => {
                opened.require_open()?;
                let column = self.columns().into_iter().take(1).collect();
                let (view, choice) = (view.clone(), RowChoice { columns: column, ..choice.clone() });
                let add =
                    |sum: u64, batch: anden::Result<RecordBatch>| batch.map(|batch| sum + batch.num_rows() as u64);
                calls::run(py, move |watch| choice.batches(&view.with_progress(watch))?.try_fold(0, add))?
            }
            RowSource::Batches(batches) => batches.iter().map(|batch| batch.num_rows() as u64).sum(),
        })
    }

    /// Passes a collected table to a function of a library.
    fn given_to<'py>(&self, py: Python<'py>, module: &str, path: &[&str], extra: &str) -> Result<Bound<'py, PyAny>> {
        let library = py.import(module).map_err(|_| missing(module, extra))?;
        let function = path.iter().try_fold(library.into_any(), |object, name| object.getattr(*name))?;
        Ok(function.call1((Py::new(py, self.collected(py)?)?,))?)
    }
}

/// The exception for a library that is not installed.
fn missing(module: &str, package: &str) -> Failure {
    misused(format!("{module} is not installed; install it with: pip install {package}"))
}

/// The names of columns of an argument: a list, or one name; empty for None.
pub fn columns_of(value: Option<&Bound<'_, PyAny>>) -> Result<Vec<String>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    if let Ok(name) = value.cast::<PyString>() {
        return Ok(vec![name.to_str()?.to_owned()]);
    }
    let names: Vec<String> = value.extract().map_err(|_: PyErr| {
        let kind = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        wrong_type(format!("columns is a list of names, not {kind}"))
    })?;
    match names.is_empty() {
        true => Err(crate::error::invalid("columns is empty: name at least one column, or leave it out for all")),
        false => Ok(names),
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Names and Arrow types of the columns, as a dict.
    #[getter]
    fn types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for field in self.schema.fields() {
            dict.set_item(field.name(), field.data_type().to_string())?;
        }
        Ok(dict)
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self, py: Python<'_>) -> Result<u64> {
        self.rows(py)
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize> {
        Ok(self.rows(py)? as usize)
    }

    fn __bool__(&self) -> bool {
        // A table without rows is a table, too.
        true
    }

    /// The table with these columns only. Other columns are not read.
    fn select(&self, columns: &Bound<'_, PyAny>) -> Result<Self> {
        let columns = columns_of(Some(columns))?;
        match &self.source {
            RowSource::View { view, opened, choice } => {
                Self::of_choice((**view).clone(), opened, RowChoice { columns, ..choice.clone() })
            }
            RowSource::Batches(batches) => {
                let place = |name: &String| {
                    let known = self.columns().join(", ");
                    let missing = || crate::error::invalid(format!("there is no column '{name}': there are {known}"));
                    self.schema.index_of(name).map_err(|_| missing())
                };
                let places = columns.iter().map(place).collect::<Result<Vec<_>>>()?;
                let project = |batch: &RecordBatch| batch.project(&places).map_err(|error| misused(error.to_string()));
                let source = RowSource::Batches(batches.iter().map(project).collect::<Result<_>>()?);
                let schema = self.schema.project(&places).map_err(|error| misused(error.to_string()))?;
                Ok(Self { source, schema: schema.into(), name: self.name })
            }
        }
    }

    /// The rows that meet a predicate, in the language of `View.filter`.
    ///
    /// The predicate may name every column of the edges or vertices, also one that is not selected. Its columns are
    /// read first, and the other columns only for the rows that pass. After several calls, rows meet all predicates.
    /// A list is compared as its text, ``'["a","b"]'``.
    ///
    /// Parameters
    /// ----------
    /// expression : str
    ///     A predicate over the columns, such as ``"amount > 100 AND kind = 'wire'"``.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> edges = anden.from_edges([(1, 2, 5.0), (2, 3, 9.0)]).view().edges()
    /// >>> edges.filter("weight > 6 AND source <> 7").to_numpy()["target"].tolist()
    /// [3]
    fn filter(&self, py: Python<'_>, expression: &str) -> Result<Self> {
        let batches = match &self.source {
            RowSource::View { view, opened, choice } => {
                let mut choice = choice.clone();
                choice.filters.push(expression.to_owned());
                return Self::of_choice((**view).clone(), opened, choice);
            }
            RowSource::Batches(batches) => batches.clone(),
        };
        let (schema, expression) = (Arc::clone(&self.schema), expression.to_owned());
        let batches = calls::run(py, move |_| passing(&schema, batches, &expression))?;
        Ok(Self { source: RowSource::Batches(batches), schema: Arc::clone(&self.schema), name: self.name })
    }

    /// Iterate over the rows in tables of at most 65,536 rows, which are in memory.
    fn __iter__(&self) -> Result<TableIterator> {
        let watch = Arc::<Watch>::default();
        let reader = Arc::new(Mutex::new(self.reader(Arc::clone(&watch))?));
        Ok(TableIterator { reader, watch, name: self.name })
    }

    /// The columns as a dict of NumPy arrays. Columns with nulls are masked arrays; text and lists are arrays of
    /// objects.
    fn to_numpy<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let batches = self.batches(py)?;
        let schema = Arc::clone(&self.schema);
        let concat = move |_| {
            let whole = arrow_select::concat::concat_batches(&schema, &batches);
            whole.map_err(|error| misused(error.to_string()))
        };
        let whole = calls::run(py, concat)?;
        let dict = PyDict::new(py);
        for (field, array) in whole.schema().fields().iter().zip(whole.columns()) {
            let items = PropertyType::of_arrow_type(field.data_type()).and_then(PropertyType::items);
            let array = made::property_array(array).map_err(|error| misused(error.to_string()))?;
            let column = PropertyColumn::from_array(array).map_err(|error| misused(error.to_string()))?;
            dict.set_item(field.name(), columns::column(py, &column, items)?)?;
        }
        Ok(dict)
    }

    /// The table as a ``pyarrow.Table``.
    fn to_arrow<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.given_to(py, "pyarrow", &["table"], "pyarrow")
    }

    /// The table as a ``pandas.DataFrame``. Needs pyarrow.
    fn to_pandas<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        py.import("pandas").map_err(|_| missing("pandas", "pandas pyarrow"))?;
        Ok(self.to_arrow(py)?.call_method0("to_pandas")?)
    }

    /// The table as a ``polars.DataFrame``.
    fn to_polars<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.given_to(py, "polars", &["DataFrame"], "polars")
    }

    /// The Arrow stream, for libraries. The schema is that of the table, whatever the caller requests.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        // The interface leaves it to the producer whether it converts.
        let _ = requested_schema;
        Ok(PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(self.reader(Arc::default())?), STREAM_NAME)?)
    }

    /// The Arrow schema, for libraries.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(|error| misused(error.to_string()))?;
        Ok(PyCapsule::new_with_value(py, schema, SCHEMA_NAME)?)
    }

    fn __repr__(&self) -> String {
        let columns: Vec<String> =
            self.schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
        // The rows of a view are not counted, because that may read the graph.
        let rows = match &self.source {
            RowSource::Batches(batches) => {
                format!("{} rows of ", count(batches.iter().map(|batch| batch.num_rows() as u64).sum()))
            }
            RowSource::View { .. } => String::new(),
        };
        format!("<anden.Table of {rows}{}: {}>", self.name, columns.join(", "))
    }

    fn _repr_html_(&self, py: Python<'_>) -> Result<String> {
        let rows = self.rows(py)?;
        let watch = Arc::<Watch>::default();
        let mut reader = self.reader(Arc::clone(&watch))?;
        let first = calls::run_watched(py, &watch, move || reader.next().transpose().map_err(failed_read))?;
        let mut page = format!("<div><b>anden.Table</b> of {} {}", count(rows), self.name);
        let cells = first.map_or_else(|| Ok(Vec::new()), |batch| shown_rows(&batch))?;
        let columns = self.columns();
        table(&mut page, &names(&columns), cells);
        page.push_str("</div>");
        Ok(page)
    }
}

/// The rows of batches that meet a predicate.
fn passing(schema: &SchemaRef, mut batches: Vec<RecordBatch>, expression: &str) -> Result<Vec<RecordBatch>> {
    let failed = |error: ArrowError| misused(error.to_string());
    // Results have types that properties lack, so the predicate reads them converted; the rows keep their types.
    let types = made::property_batch(&RecordBatch::new_empty(Arc::clone(schema))).map_err(failed)?;
    let filter = RowFilter::new(expression, types.schema_ref())?;
    for batch in &mut batches {
        let passes = filter.passes(&made::property_batch(batch).map_err(failed)?)?;
        *batch = filter_record_batch(batch, &passes).map_err(failed)?;
    }
    Ok(batches)
}

fn failed_read(error: ArrowError) -> Failure {
    misused(error.to_string())
}

/// The first rows as text.
fn shown_rows(batch: &RecordBatch) -> Result<Vec<Vec<String>>> {
    let columns = batch.columns().iter().map(|array| {
        let array = made::property_array(array).map_err(|error| misused(error.to_string()))?;
        PropertyColumn::from_array(array).map_err(|error| misused(error.to_string()))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let row = |row: usize| columns.iter().map(|column| column.get(row).to_string()).collect();
    Ok((0..batch.num_rows().min(ROWS_SHOWN)).map(row).collect())
}

/// Iterates over the batches of a table.
#[pyclass(frozen, module = "anden")]
pub struct TableIterator {
    reader: Arc<Mutex<Box<dyn RecordBatchReader + Send>>>,
    watch: Arc<Watch>,
    name: &'static str,
}

#[pymethods]
impl TableIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<Table>> {
        let reader = Arc::clone(&self.reader);
        // A filter may skip many batches before one has rows.
        let next = move || reader.lock().next().transpose().map_err(failed_read);
        let batch = calls::run_watched(py, &self.watch, next)?;
        Ok(batch.map(|batch| Table::of_batch(batch, self.name)))
    }
}
