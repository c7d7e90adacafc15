//! The tables that views, databases, results and differences have.

use std::sync::Arc;

use anden::error::NotFound;
use anden::property::KeyRef;
use anden::snapshot::SnapshotInfo;
use anden::tables::RecordBatch;
use anden::{EdgeWeight, KeyScheme, WeightType};
use arrow_array::builder::{Float64Builder, Int64Builder, LargeStringBuilder, UInt64Builder};
use arrow_array::{
    ArrayRef, Float64Array, LargeStringArray, StringArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

use super::{RowKind, Table, columns_of, names};
use crate::calls;
use crate::error::{Result, misused};
use crate::key::key_of;
use crate::result::KernelResult;
use crate::view::View;

/// The columns of [`view_degrees`].
const DEGREES: [&str; 3] = ["key", "out_degree", "in_degree"];

/// The edges of a view, as a table.
fn view_edges(view: &View, columns: Option<&Bound<'_, PyAny>>) -> Result<Table> {
    Table::of_view(view.open()?.clone(), view.opened(), RowKind::Edges, columns_of(columns)?)
}

/// The vertices of a view, as a table.
fn view_vertices(view: &View, columns: Option<&Bound<'_, PyAny>>) -> Result<Table> {
    Table::of_view(view.open()?.clone(), view.opened(), RowKind::Vertices, columns_of(columns)?)
}

/// The vertices of a view with their degrees, as a table.
fn view_degrees(view: &View) -> Result<Table> {
    let open = view.open()?;
    let columns = DEGREES[..if open.has_in_edges() { 3 } else { 2 }].iter().map(|name| (*name).to_owned()).collect();
    Table::of_view(open.clone(), view.opened(), RowKind::Vertices, columns)
}

/// The rows, or none where the vertex does not exist.
fn found_or_empty(rows: anden::Result<RecordBatch>, table: &Table) -> anden::Result<RecordBatch> {
    match rows {
        Err(anden::Error::NotFound { what: NotFound::Vertex(_), .. }) => {
            Ok(RecordBatch::new_empty(Arc::clone(&table.schema)))
        }
        rows => rows,
    }
}

/// A table of these columns, in memory.
pub fn table_of_columns(batch: RecordBatch) -> Table {
    Table::of_batch(batch, "rows")
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .map_err(|error| misused(error.to_string()))
}

/// Snapshots as a table.
fn snapshot_table(snapshots: &[SnapshotInfo]) -> Result<Table> {
    let numbers = |number: fn(&SnapshotInfo) -> u64| -> ArrayRef {
        Arc::new(snapshots.iter().map(|info| Some(number(info))).collect::<UInt64Array>())
    };
    let micros = |info: &SnapshotInfo| i64::try_from(info.unix_time).ok()?.checked_mul(1_000_000);
    let times = snapshots.iter().map(micros).collect::<TimestampMicrosecondArray>().with_timezone("UTC");
    let data_times = snapshots.iter().map(|info| info.as_of).collect::<TimestampMicrosecondArray>();
    let data_times = data_times.with_timezone("UTC");
    let columns = vec![
        ("number", numbers(|info| info.number.into())),
        ("name", Arc::new(snapshots.iter().map(|info| info.name.as_deref()).collect::<LargeStringArray>()) as ArrayRef),
        ("time", Arc::new(times) as ArrayRef),
        ("as_of", Arc::new(data_times) as ArrayRef),
        ("vertices", numbers(|info| info.num_vertices)),
        ("edges", numbers(|info| info.num_edges)),
        ("added", numbers(|info| info.added)),
        ("removed", numbers(|info| info.removed)),
        ("bytes", numbers(|info| info.bytes)),
    ];
    Ok(Table::of_batch(batch(columns)?, "snapshots"))
}

/// Keys as an array of the graph's type.
enum KeyArray {
    Integers(UInt64Builder),
    Strings(LargeStringBuilder),
}

impl KeyArray {
    fn new(keys: KeyScheme, capacity: usize) -> Self {
        match keys {
            KeyScheme::String => Self::Strings(LargeStringBuilder::with_capacity(capacity, 8 * capacity)),
            KeyScheme::Integer | KeyScheme::Dense => Self::Integers(UInt64Builder::with_capacity(capacity)),
        }
    }

    fn push(&mut self, key: KeyRef<'_>) {
        match (self, key) {
            (Self::Integers(keys), KeyRef::Integer(key)) => keys.append_value(key),
            (Self::Strings(keys), KeyRef::String(key)) => keys.append_value(key),
            (Self::Integers(keys), KeyRef::String(_)) => keys.append_null(),
            (Self::Strings(keys), KeyRef::Integer(_)) => keys.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Integers(mut keys) => Arc::new(keys.finish()),
            Self::Strings(mut keys) => Arc::new(keys.finish()),
        }
    }
}

/// The result of a kernel as a table of `key` and `value`, with a row for each vertex. A vertex that was not reached
/// has null.
fn result_table(py: Python<'_>, result: &KernelResult) -> Result<Table> {
    let values = result.array(py);
    let Some(values) = values_of(&values)? else {
        return Err(misused(format!("{result} has no values by vertex", result = result.headline(py)?)));
    };
    let view = result.view().open()?.clone();
    calls::run(py, move |_| -> Result<_> {
        let live: Vec<u32> = (0..view.vertex_bound() as u32).filter(|&vertex| view.is_live(vertex)).collect();
        let mut keys = KeyArray::new(view.options().keys, live.len());
        for &vertex in &live {
            keys.push(view.key_ref(vertex)?);
        }
        let values = values.of_vertices(&live);
        Ok(Table::of_batch(batch(vec![("key", keys.finish()), ("value", values)])?, "a result"))
    })
}

/// The values of a result by vertex id.
enum ResultValues {
    Small(Vec<u32>),
    Large(Vec<u64>),
    Real(Vec<f64>),
}

impl ResultValues {
    /// The values of these vertices; null where the value says "not reached".
    fn of_vertices(&self, vertices: &[u32]) -> ArrayRef {
        let places = vertices.iter().map(|&vertex| vertex as usize);
        match self {
            Self::Small(values) => {
                let value = |place: usize| Some(values[place]).filter(|&value| value != u32::MAX);
                Arc::new(places.map(value).collect::<UInt32Array>())
            }
            Self::Large(values) => {
                let value = |place: usize| Some(values[place]).filter(|&value| value != u64::MAX);
                Arc::new(places.map(value).collect::<UInt64Array>())
            }
            Self::Real(values) => {
                let value = |place: usize| Some(values[place]).filter(|value| value.is_finite());
                Arc::new(places.map(value).collect::<Float64Array>())
            }
        }
    }
}

fn values_of(values: &Bound<'_, PyAny>) -> Result<Option<ResultValues>> {
    let failed = |error: &dyn std::fmt::Display| misused(format!("cannot read the values of the result: {error}"));
    if let Ok(array) = values.cast::<PyArray1<u32>>() {
        return Ok(Some(ResultValues::Small(array.to_vec().map_err(|error| failed(&error))?)));
    }
    if let Ok(array) = values.cast::<PyArray1<u64>>() {
        return Ok(Some(ResultValues::Large(array.to_vec().map_err(|error| failed(&error))?)));
    }
    if let Ok(array) = values.cast::<PyArray1<f64>>() {
        return Ok(Some(ResultValues::Real(array.to_vec().map_err(|error| failed(&error))?)));
    }
    Ok(None)
}

/// Weights as an array: of integers, or of floating-point numbers once one is met.
enum WeightArray {
    Integers(Int64Builder),
    Reals(Float64Builder),
}

/// The edges that a difference adds and removes, as a table of `change` ("added" or "removed"), `source`, `target` and,
/// in a graph with weights, `weight`.
fn diff_table(diff: &anden::snapshot::Diff, keys: KeyScheme, is_real: Option<bool>) -> anden::Result<RecordBatch> {
    let (mut sources, mut targets) = (KeyArray::new(keys, 0), KeyArray::new(keys, 0));
    let mut weights = is_real.map(|is_real| match is_real {
        true => WeightArray::Reals(Float64Builder::new()),
        false => WeightArray::Integers(Int64Builder::new()),
    });
    let mut changes = Vec::new();
    let removed = diff.removed().map(|edge| ("removed", edge));
    for (change, edge) in removed.chain(diff.added().map(|edge| ("added", edge))) {
        let edge = edge?;
        changes.push(change);
        sources.push(edge.source);
        targets.push(edge.target);
        match (&mut weights, edge.weight) {
            (Some(WeightArray::Integers(weights)), Some(EdgeWeight::Integer(weight))) => weights.append_value(weight),
            (Some(WeightArray::Reals(weights)), Some(EdgeWeight::Real(weight))) => weights.append_value(weight),
            (Some(WeightArray::Integers(weights)), _) => weights.append_null(),
            (Some(WeightArray::Reals(weights)), _) => weights.append_null(),
            (None, _) => {}
        }
    }
    let mut columns = vec![
        ("change", Arc::new(StringArray::from(changes)) as ArrayRef),
        ("source", sources.finish()),
        ("target", targets.finish()),
    ];
    columns.extend(weights.map(|weights| match weights {
        WeightArray::Integers(mut weights) => ("weight", Arc::new(weights.finish()) as ArrayRef),
        WeightArray::Reals(mut weights) => ("weight", Arc::new(weights.finish()) as ArrayRef),
    }));
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| anden::Error::Internal(format!("cannot make a table of a difference: {error}").into()))
}

/// An array in a type that properties have.
pub(super) fn property_array(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::UInt32 => cast(array, &DataType::UInt64),
        DataType::Utf8 => cast(array, &DataType::LargeUtf8),
        _ => Ok(Arc::clone(array)),
    }
}

/// A batch with its columns in types that properties have.
pub(super) fn property_batch(batch: &RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
    let arrays = batch.columns().iter().map(property_array).collect::<std::result::Result<Vec<_>, _>>()?;
    let schema = batch.schema();
    let fields = schema.fields().iter().zip(&arrays);
    let fields = fields.map(|(field, array)| Field::new(field.name(), array.data_type().clone(), true));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), arrays)
}

#[pymethods]
impl View {
    /// The edges as a table: `source`, `target`, `weight`, `number` (in a multigraph) and properties.
    ///
    /// An undirected edge is one row. Rows are read in batches while the reader asks.
    ///
    /// Parameters
    /// ----------
    /// columns : list of str, optional
    ///     The columns to read; by default all.
    #[pyo3(signature = (columns=None))]
    fn edges(&self, columns: Option<&Bound<'_, PyAny>>) -> Result<Table> {
        view_edges(self, columns)
    }

    /// The out-edges of one vertex as a table with the columns of `edges`; no rows if the vertex does not exist.
    ///
    /// Reads one list, where `edges` reads all.
    #[pyo3(signature = (vertex, columns=None))]
    fn edges_from(
        &self,
        py: Python<'_>,
        vertex: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> Result<Table> {
        let all = view_edges(self, columns)?;
        let (key, columns) = (key_of(vertex)?, all.columns());
        let rows = self.run(py, move |view| Ok(view.out_edge_rows(key, &names(&columns))))?;
        Ok(Table::of_batch(found_or_empty(rows, &all)?, "edges"))
    }

    /// One vertex as a table with the columns of `vertices`; no rows if it does not exist.
    #[pyo3(signature = (vertex, columns=None))]
    fn vertex_row(&self, vertex: &Bound<'_, PyAny>, columns: Option<&Bound<'_, PyAny>>) -> Result<Table> {
        let all = view_vertices(self, columns)?;
        let rows = self.open()?.vertex_rows(&[key_of(vertex)?], &names(&all.columns()));
        Ok(Table::of_batch(found_or_empty(rows, &all)?, "vertices"))
    }

    /// The vertices as a table: `key` and all properties; `columns` may also name `out_degree` and `in_degree`.
    #[pyo3(signature = (columns=None))]
    fn vertices(&self, columns: Option<&Bound<'_, PyAny>>) -> Result<Table> {
        view_vertices(self, columns)
    }

    /// The degrees as a table: `key`, `out_degree` and, where in-edges are stored, `in_degree`.
    fn degrees(&self) -> Result<Table> {
        view_degrees(self)
    }

    /// The snapshots of the database, as a table: number, name, time, as_of, vertices, edges, added, removed and bytes.
    fn snapshots_table(&self) -> Result<Table> {
        snapshot_table(&self.opened().database()?.snapshots())
    }

    /// The database of the view.
    #[getter]
    fn database(&self) -> Result<crate::database::Database> {
        self.opened().require_open()?;
        Ok(crate::database::Database::of(self.opened()))
    }

    /// The edges as a ``pyarrow.Table``.
    #[pyo3(signature = (columns=None))]
    fn to_arrow<'py>(&self, py: Python<'py>, columns: Option<&Bound<'_, PyAny>>) -> Result<Bound<'py, PyAny>> {
        view_edges(self, columns)?.to_arrow(py)
    }

    /// The edges as a ``pandas.DataFrame``. Needs pyarrow.
    #[pyo3(signature = (columns=None))]
    fn to_pandas<'py>(&self, py: Python<'py>, columns: Option<&Bound<'_, PyAny>>) -> Result<Bound<'py, PyAny>> {
        view_edges(self, columns)?.to_pandas(py)
    }

    /// The edges as a ``polars.DataFrame``.
    #[pyo3(signature = (columns=None))]
    fn to_polars<'py>(&self, py: Python<'py>, columns: Option<&Bound<'_, PyAny>>) -> Result<Bound<'py, PyAny>> {
        view_edges(self, columns)?.to_polars(py)
    }
}

#[pymethods]
impl crate::database::Database {
    /// The snapshots as a table: number, name, time, as_of, vertices, edges, added, removed and bytes.
    fn snapshots_table(&self) -> Result<Table> {
        snapshot_table(&self.opened().database()?.snapshots())
    }
}

#[pymethods]
impl KernelResult {
    /// The result as a table of `key` and `value`; null where a vertex was not reached.
    fn table(&self, py: Python<'_>) -> Result<Table> {
        result_table(py, self)
    }

    /// The result as a ``pyarrow.Table`` of `key` and `value`.
    fn to_arrow<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        result_table(py, self)?.to_arrow(py)
    }

    /// The result as a ``pandas.DataFrame`` of `key` and `value`. Needs pyarrow.
    fn to_pandas<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        result_table(py, self)?.to_pandas(py)
    }

    /// The result as a ``polars.DataFrame`` of `key` and `value`.
    fn to_polars<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        result_table(py, self)?.to_polars(py)
    }

    /// The Arrow stream of `key` and `value`, for libraries.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, pyo3::types::PyCapsule>> {
        result_table(py, self)?.__arrow_c_stream__(py, requested_schema)
    }

    /// The Arrow schema of `key` and `value`, for libraries.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, pyo3::types::PyCapsule>> {
        result_table(py, self)?.__arrow_c_schema__(py)
    }
}

#[pymethods]
impl crate::snapshot::Diff {
    /// The changes as a table of `change` ("added" or "removed"), `source`, `target` and, with weights, `weight`.
    fn table(&self, py: Python<'_>) -> Result<Table> {
        let (diff, watch, opened) = self.parts();
        let (options, diff) = (*opened.database()?.options(), Arc::clone(diff));
        let is_real = options.weight_type.map(|weight_type| matches!(weight_type, WeightType::F32 | WeightType::F64));
        let batch = calls::run_watched(py, watch, move || diff_table(&diff, options.keys, is_real))?;
        Ok(Table::of_batch(batch, "changes"))
    }
}
