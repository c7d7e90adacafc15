//! Columns as NumPy arrays.

use anden::KeyScheme;
use anden::property::{KeyRef, PropertyColumn, PropertyType, PropertyValue};
use numpy::{IntoPyArray, PyArray1};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::Failure;
use crate::key::{key_ref_object, objects};
use crate::value::value_object;

/// The keys of all vertices by vertex id.
pub fn keys<'py>(py: Python<'py>, view: &anden::View) -> PyResult<Bound<'py, PyAny>> {
    let bound = view.vertex_bound() as u32;
    if let Some(numbers) = integer_keys(py, view)? {
        let missing: Vec<bool> = py.detach(|| (0..bound).map(|vertex| !view.is_live(vertex)).collect());
        return masked(numbers.into_any(), missing);
    }
    let objects = objects(py, 0..bound, |vertex| match view.is_live(vertex) {
        true => key_ref_object(py, view.key_ref(vertex).map_err(Failure::from)?),
        false => Ok(py.None().into_bound(py)),
    })?;
    object_array(py, objects)
}

/// The keys of a graph with integer keys; 0 where an id has no vertex. `None` in a graph with string keys.
fn integer_keys<'py>(py: Python<'py>, view: &anden::View) -> PyResult<Option<Bound<'py, PyArray1<u64>>>> {
    if view.options().keys == KeyScheme::String {
        return Ok(None);
    }
    let numbers = py.detach(|| {
        let key = |vertex| match view.is_live(vertex) {
            true => view.key_ref(vertex).map(|key| if let KeyRef::Integer(number) = key { number } else { 0 }),
            false => Ok(0),
        };
        (0..view.vertex_bound() as u32).map(key).collect::<anden::Result<Vec<u64>>>()
    });
    Ok(Some(numbers.map_err(Failure::from)?.into_pyarray(py)))
}

/// A column as an array: a masked one if rows are null, and one of objects for text and bytes.
pub fn column<'py>(py: Python<'py>, column: &PropertyColumn) -> PyResult<Bound<'py, PyAny>> {
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
        PropertyType::String | PropertyType::Bytes => {
            let objects = objects(py, rows, |row| value_object(py, column.get(row)))?;
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
