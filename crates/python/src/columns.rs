//! Columns as NumPy arrays.

use anden::property::{ItemType, KeyRef, PropertyColumn, PropertyType, PropertyValue};
use anden::{KeyScheme, VertexId};
use numpy::IntoPyArray;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::{Failure, Result};
use crate::key::{key_ref_object, objects};
use crate::value::typed_object;
use crate::view::View;

/// The keys of all vertices by vertex id.
pub fn keys<'py>(py: Python<'py>, view: &View) -> Result<Bound<'py, PyAny>> {
    let open = view.open()?;
    let vertices = 0..open.vertex_bound() as u32;
    if open.options().keys != KeyScheme::String {
        let missing = vertices.clone();
        let missing = view.run(py, |view| Ok(missing.map(|vertex| !view.is_live(vertex)).collect()))?;
        let numbers = view.run(py, |view| vertices.map(|vertex| integer_key(view, vertex)).collect())?;
        return Ok(masked(Vec::into_pyarray(numbers, py).into_any(), missing)?);
    }
    let objects = objects(py, vertices, |vertex| match open.is_live(vertex) {
        true => key_ref_object(py, open.key_ref(vertex).map_err(Failure::from)?),
        false => Ok(py.None().into_bound(py)),
    })?;
    Ok(object_array(py, objects)?)
}

/// The key of a vertex in a graph with integer keys; 0 where an id has no vertex.
fn integer_key(view: &anden::View, vertex: VertexId) -> anden::Result<u64> {
    match view.is_live(vertex) {
        true => view.key_ref(vertex).map(|key| if let KeyRef::Integer(number) = key { number } else { 0 }),
        false => Ok(0),
    }
}

/// A column of this declared type as an array: a masked one if rows are null, and one of objects for text, bytes and
/// lists.
pub fn column<'py>(py: Python<'py>, column: &PropertyColumn, items: Option<ItemType>) -> PyResult<Bound<'py, PyAny>> {
    let rows = 0..column.len();
    let values = match column.property_type() {
        PropertyType::Boolean => numbers(py, column, |value| matches!(value, PropertyValue::Boolean(true)))?,
        PropertyType::I64 => numbers(py, column, |value| if let PropertyValue::I64(x) = value { x } else { 0 })?,
        PropertyType::U64 => numbers(py, column, |value| if let PropertyValue::U64(x) = value { x } else { 0 })?,
        PropertyType::F32 => numbers(py, column, |value| if let PropertyValue::F32(x) = value { x } else { f32::NAN })?,
        PropertyType::F64 => numbers(py, column, |value| if let PropertyValue::F64(x) = value { x } else { f64::NAN })?,
        PropertyType::Date => {
            numbers(py, column, |value| if let PropertyValue::Date(x) = value { i64::from(x) } else { i64::MIN })?
                .call_method1(intern!(py, "view"), ("datetime64[D]",))?
        }
        PropertyType::Timestamp => {
            numbers(py, column, |value| if let PropertyValue::Timestamp(x) = value { x } else { i64::MIN })?
                .call_method1(intern!(py, "view"), ("datetime64[us]",))?
        }
        PropertyType::String | PropertyType::Bytes | PropertyType::List(_) => {
            let objects = objects(py, rows, |row| typed_object(py, column.get(row), items))?;
            return object_array(py, objects);
        }
    };
    masked(values, rows.map(|row| column.is_null(row)).collect())
}

fn numbers<'py, T: numpy::Element + Send>(
    py: Python<'py>,
    column: &PropertyColumn,
    value: impl Fn(PropertyValue<'_>) -> T + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let values: Vec<T> = py.detach(|| (0..column.len()).map(|row| value(column.get(row))).collect());
    Ok(values.into_pyarray(py).into_any())
}

/// An array of objects. NumPy would make a table of objects that are sequences, so it gets an empty array to fill.
fn object_array<'py>(py: Python<'py>, objects: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let array = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "empty"), (objects.len(), "O"))?;
    array.set_item(pyo3::types::PySlice::full(py), PyList::new(py, objects)?)?;
    Ok(array)
}

/// The array, as a masked one if some rows are missing.
fn masked<'py>(array: Bound<'py, PyAny>, missing: Vec<bool>) -> PyResult<Bound<'py, PyAny>> {
    if !missing.contains(&true) {
        return Ok(array);
    }
    let py = array.py();
    let mask = PyDict::new(py);
    mask.set_item("mask", missing.into_pyarray(py))?;
    py.import("numpy.ma")?.getattr("MaskedArray")?.call((array,), Some(&mask))
}
