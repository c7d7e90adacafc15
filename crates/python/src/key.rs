//! Vertex keys between Python and the engine.

use anden::Key;
use anden::property::KeyRef;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};

use crate::calls::SignalWatch;
use crate::error::{Result, invalid, wrong_type};

/// The key that an argument names: an int, a str, or a tuple `(space, key)`.
pub fn key_of(value: &Bound<'_, PyAny>) -> Result<Key> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.into());
    }
    match value.extract::<u64>() {
        Ok(number) => Ok(Key::Integer(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Err(invalid(format!("a vertex key is from 0 to {}, not {value}", u64::MAX)))
        }
        Err(_) => other_key(value),
    }
}

/// The key of a less frequent kind of argument.
fn other_key(value: &Bound<'_, PyAny>) -> Result<Key> {
    if let Ok(pair) = value.cast::<PyTuple>()
        && let Ok((space, key)) = pair.extract::<(String, Bound<'_, PyAny>)>()
        && (key.is_instance_of::<PyString>() || key.is_instance_of::<PyInt>())
    {
        return match space.is_empty() || space.contains(':') {
            true => Err(invalid(format!("a key space is a name without ':', not {space:?}"))),
            false => Ok(Key::in_space(&space, key.str()?.to_str()?)),
        };
    }
    let (kind, shown) = (value.get_type().name()?, value.repr()?);
    let shown: String = shown.to_string_lossy().chars().take(60).collect();
    Err(wrong_type(format!(
        "a vertex key is an int, a str or a tuple (space, key) with a str as space, not {kind}: {shown}"
    )))
}

/// A key as an int or a str.
pub fn key_object<'py>(py: Python<'py>, key: &Key) -> PyResult<Bound<'py, PyAny>> {
    match key {
        Key::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
        Key::String(text) => Ok(PyString::new(py, text).into_any()),
    }
}

/// Like [`key_object`], of a borrowed key.
pub fn key_ref_object<'py>(py: Python<'py>, key: KeyRef<'_>) -> PyResult<Bound<'py, PyAny>> {
    match key {
        KeyRef::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
        KeyRef::String(text) => Ok(PyString::new(py, text).into_any()),
    }
}

/// Keys as a list.
pub fn key_list<'py>(py: Python<'py>, keys: &[Key]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, objects(py, keys, |key| key_object(py, key))?)
}

/// Makes an object of each item. Millions of objects take seconds, so Ctrl-C is looked for meanwhile.
pub fn objects<'py, T>(
    py: Python<'py>,
    items: impl IntoIterator<Item = T>,
    object: impl Fn(T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (items, signals) = (items.into_iter(), SignalWatch::default());
    let mut objects = Vec::with_capacity(items.size_hint().0);
    for item in items {
        objects.push(object(item)?);
        signals.count(py)?;
    }
    Ok(objects)
}

/// The keys of an iterable; one key alone counts as a list of one.
pub fn keys_of(value: &Bound<'_, PyAny>) -> Result<Vec<Key>> {
    let is_one = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyTuple>() && is_key_in_space(value);
    if is_one {
        return Ok(vec![key_of(value)?]);
    }
    let signals = SignalWatch::default();
    let key = |item: PyResult<Bound<'_, PyAny>>| {
        signals.count(value.py())?;
        key_of(&item?)
    };
    match value.try_iter() {
        Ok(items) => items.map(key).collect(),
        // A NumPy integer is no iterable.
        Err(_) => Ok(vec![key_of(value)?]),
    }
}

/// Whether a tuple is one key `(space, key)` of text and an int. Two texts count as two keys.
fn is_key_in_space(value: &Bound<'_, PyAny>) -> bool {
    value.extract::<(String, u64)>().is_ok()
}
