//! Arrays and Arrow tables as inputs of loads and appends.
//!
//! A dict of columns, or any object with `__arrow_c_stream__` or `__arrow_c_array__`, becomes record batches. NumPy
//! arrays of numbers are read where they are; text and other objects are copied.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use anden::OwnedValue;
use anden::load::{ArrowInput, InputPath};
use anden::property::{ColumnBuilder, ItemType, PropertyType, parse_list};
use anden::tables::RecordBatch;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, LargeBinaryArray, LargeStringArray, NullArray, PrimitiveArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{Field, Schema, SchemaRef};
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyFloat, PyInt, PyList, PySlice, PyTuple};

use crate::arrow::{Table, table_of_columns};
use crate::error::{Result, invalid, wrong_type};
use crate::value::value_of;

/// The name that messages give to rows in memory.
const NAME: &str = "rows";

/// Rows of an argument as an input; `None` if the argument is neither a dict of columns nor an Arrow object.
pub fn arrow_input(value: &Bound<'_, PyAny>) -> Result<Option<InputPath>> {
    let Some((schema, batches)) = record_batches(value)? else { return Ok(None) };
    let input = ArrowInput::new(NAME, schema, batches).map_err(|error| invalid(error.to_string()))?;
    Ok(Some(InputPath::Arrow(input)))
}

fn record_batches(value: &Bound<'_, PyAny>) -> Result<Option<(SchemaRef, Vec<RecordBatch>)>> {
    if let Ok(columns) = value.cast::<PyDict>() {
        let batch = batch_of(columns)?;
        return Ok(Some((batch.schema(), vec![batch])));
    }
    if value.hasattr("__arrow_c_stream__")? {
        return stream_batches(value).map(Some);
    }
    Ok(None)
}

/// Names and Arrow types of the columns of a table, as a dict.
#[pyfunction]
pub fn table_types<'py>(py: Python<'py>, table: &Bound<'py, PyAny>) -> Result<Bound<'py, PyDict>> {
    let Some((schema, _)) = record_batches(table)? else { return Err(no_table(table)) };
    let types = PyDict::new(py);
    for field in schema.fields() {
        types.set_item(field.name(), field.data_type().to_string())?;
    }
    Ok(types)
}

/// A table of these columns: a dict of arrays or lists.
#[pyfunction]
pub fn table_of(columns: &Bound<'_, PyDict>) -> Result<Table> {
    Ok(table_of_columns(batch_of(columns)?))
}

fn no_table(value: &Bound<'_, PyAny>) -> crate::error::Failure {
    let kind = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    wrong_type(format!("expected a dict of columns or an object with __arrow_c_stream__, not {kind}"))
}

/// Reads a stream to its end.
fn stream_batches(value: &Bound<'_, PyAny>) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let capsule = value.call_method0("__arrow_c_stream__")?;
    let mut reader = reader_of(capsule.cast::<PyCapsule>()?)?;
    // The stream may run Python code, which takes the GIL itself.
    let read = value.py().detach(move || {
        let schema = arrow_array::RecordBatchReader::schema(&reader);
        reader.by_ref().collect::<Result<Vec<_>, _>>().map(|batches| (schema, batches))
    });
    read.map_err(|error| invalid(format!("cannot read the Arrow stream: {error}")))
}

#[allow(unsafe_code, reason = "the C interface of Arrow passes a pointer")]
fn reader_of(capsule: &Bound<'_, PyCapsule>) -> Result<RecordBatchStreamReader> {
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a valid `ArrowArrayStream` by the PyCapsule interface of Arrow. `from_raw`
    // moves the stream out and marks the one in the capsule as released.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    RecordBatchStreamReader::try_new(stream).map_err(|error| invalid(format!("cannot read the Arrow stream: {error}")))
}

/// A record batch of named columns.
fn batch_of(columns: &Bound<'_, PyDict>) -> Result<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
    let mut first: Option<(String, usize)> = None;
    for (name, values) in columns.iter() {
        let name: String = name.extract()?;
        let array = column_of(&name, &values)?;
        let (known, len) = first.get_or_insert_with(|| (name.clone(), array.len()));
        if *len != array.len() {
            return Err(invalid(format!(
                "'{name}' has {} values, but '{known}' has {len}: all columns need one length",
                array.len()
            )));
        }
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let options = arrow_array::RecordBatchOptions::new().with_row_count(first.map(|(_, len)| len).or(Some(0)));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|error| invalid(error.to_string()))
}

/// An array, a list or an Arrow array as a column.
fn column_of(name: &str, values: &Bound<'_, PyAny>) -> Result<ArrayRef> {
    let py = values.py();
    if values.hasattr("__arrow_c_array__")? && !values.is_instance_of::<PyUntypedArray>() {
        return arrow_array_of(name, values);
    }
    let numpy = py.import("numpy")?;
    let array = match values.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => listed(name, values)?,
    };
    // A masked array would show the values under its mask.
    if array.hasattr("mask")? && array.ndim() == 1 {
        return objects(name, array.as_any());
    }
    if array.ndim() != 1 {
        return Err(invalid(format!("'{name}' has {} dimensions, one is expected", array.ndim())));
    }
    // Other byte orders, strides and unaligned values are copied once to the usual form.
    let plain = array.dtype().call_method1("newbyteorder", ("=",))?;
    let array = numpy.call_method1("require", (array, plain, ["C_CONTIGUOUS", "ALIGNED"]))?;
    let array = array.cast::<PyUntypedArray>()?;
    let kind: String = array.dtype().getattr("kind")?.extract()?;
    let size: usize = array.dtype().getattr("itemsize")?.extract()?;
    match (kind.as_str(), size) {
        ("i", 1) => shared::<Int8Type>(array),
        ("i", 2) => shared::<Int16Type>(array),
        ("i", 4) => shared::<Int32Type>(array),
        ("i", 8) => shared::<Int64Type>(array),
        ("u", 1) => shared::<UInt8Type>(array),
        ("u", 2) => shared::<UInt16Type>(array),
        ("u", 4) => shared::<UInt32Type>(array),
        ("u", 8) => shared::<UInt64Type>(array),
        ("f", 4) => shared::<Float32Type>(array),
        ("f", 8) => shared::<Float64Type>(array),
        ("f", 2) => shared::<Float32Type>(array.call_method1("astype", ("float32",))?.cast::<PyUntypedArray>()?),
        ("b", _) => booleans(array),
        ("M", _) => times(array),
        ("O" | "U" | "S" | "T", _) => objects(name, array.as_any()),
        _ => Err(wrong_type(format!(
            "'{name}' has the dtype {}, expected integers, floats, booleans, text or times",
            array.dtype()
        ))),
    }
}

/// A list or another iterable as a NumPy array.
fn listed<'py>(name: &str, values: &Bound<'py, PyAny>) -> Result<Bound<'py, PyUntypedArray>> {
    let numpy = values.py().import("numpy")?;
    if values.try_iter().is_err() || values.is_instance_of::<pyo3::types::PyString>() {
        let kind = values.get_type().name()?;
        return Err(wrong_type(format!("'{name}' is an array or a list of values, not {kind}")));
    }
    let items: Bound<'py, PyList> = match values.cast::<PyList>() {
        Ok(list) => list.clone(),
        // A pandas column and others convert themselves.
        Err(_) if values.hasattr("__array__")? => {
            return Ok(numpy.call_method1("asarray", (values,))?.cast_into::<PyUntypedArray>().map_err(PyErr::from)?);
        }
        Err(_) => PyList::new(values.py(), values.try_iter()?.collect::<PyResult<Vec<_>>>()?)?,
    };
    if items.iter().any(|item| is_list(&item)) {
        // NumPy would make a table of lists of one length, so it gets an empty array to fill.
        let array = numpy.call_method1("empty", (items.len(), "O"))?;
        array.set_item(PySlice::full(values.py()), items)?;
        return Ok(array.cast_into::<PyUntypedArray>().map_err(PyErr::from)?);
    }
    let is_integer = items.iter().all(|item| item.is_exact_instance_of::<PyInt>());
    let dtype = match () {
        // Beyond 2^63, NumPy would make floating-point numbers of integers.
        () if is_integer && items.iter().any(|item| item.extract::<i64>().is_err()) => "uint64",
        () if is_integer => "int64",
        () if items.iter().all(|item| item.is_exact_instance_of::<PyFloat>()) => "float64",
        () => "object",
    };
    let array = numpy
        .call_method1("array", (&items, dtype))
        .map_err(|error| invalid(format!("'{name}': {}", error.value(values.py()))))?;
    Ok(array.cast_into::<PyUntypedArray>().map_err(PyErr::from)?)
}

/// The owner of memory that an Arrow buffer shows.
struct ArrayOwner(#[allow(dead_code, reason = "held for its memory")] Py<PyUntypedArray>);

// The owner only holds a reference, so a panic leaves it as it was.
impl std::panic::RefUnwindSafe for ArrayOwner {}

/// A contiguous NumPy array of numbers as an Arrow array over its memory.
#[allow(unsafe_code, reason = "Arrow takes memory that NumPy owns")]
fn shared<T: ArrowPrimitiveType>(array: &Bound<'_, PyUntypedArray>) -> Result<ArrayRef>
where
    T::Native: Element,
{
    let typed = array.cast::<PyArray1<T::Native>>()?;
    let values: PyReadonlyArray1<'_, T::Native> = typed.try_readonly().map_err(|error| invalid(error.to_string()))?;
    let values = values.as_slice().map_err(|error| invalid(error.to_string()))?;
    let num_bytes = size_of_val(values);
    let start = NonNull::from(values).cast::<c_void>().cast::<u8>();
    let owner = Arc::new(ArrayOwner(array.clone().unbind()));
    // SAFETY: the array is contiguous, so its values take `num_bytes` from `start` on. The owner holds a reference to
    // the array, which holds its memory; NumPy does not resize an array that has other references.
    let buffer = unsafe { Buffer::from_custom_allocation(start, num_bytes, owner) };
    Ok(Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(buffer), None)))
}

fn booleans(array: &Bound<'_, PyUntypedArray>) -> Result<ArrayRef> {
    let values = array.cast::<PyArray1<bool>>()?.to_vec().map_err(|error| invalid(error.to_string()))?;
    Ok(Arc::new(BooleanArray::from(values)))
}

/// Dates and times of NumPy as timestamps; NaT as null.
fn times(array: &Bound<'_, PyUntypedArray>) -> Result<ArrayRef> {
    let micros = array.call_method1("astype", ("datetime64[us]",))?.call_method1("view", ("int64",))?;
    let micros = micros.cast::<PyArray1<i64>>()?.to_vec().map_err(|error| invalid(error.to_string()))?;
    let values = micros.into_iter().map(|micros| Some(micros).filter(|&micros| micros != i64::MIN));
    Ok(Arc::new(values.collect::<TimestampMicrosecondArray>().with_timezone("UTC")))
}

/// The values as one type, with `None` for null; `None` if a value has another type.
fn all<'py, T: for<'a> FromPyObject<'a, 'py>>(values: &[Option<Bound<'py, PyAny>>]) -> Option<Vec<Option<T>>> {
    let read = |value: &Option<Bound<'py, PyAny>>| match value {
        None => Some(None),
        Some(value) => value.extract::<T>().ok().map(Some),
    };
    values.iter().map(read).collect()
}

fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}

/// Lists and tuples as an array of lists, whose items have one type; None is null.
fn lists(name: &str, values: &[Option<Bound<'_, PyAny>>]) -> Result<ArrayRef> {
    let (mut lists, mut joined) = (Vec::with_capacity(values.len()), None);
    for value in values {
        let list = value.as_ref().map_or(Ok(OwnedValue::Null), value_of)?;
        if let OwnedValue::List(item, text) = &list
            && parse_list(text.as_bytes(), *item)
                .is_some_and(|items| items.iter().any(|item| *item != OwnedValue::Null))
        {
            let found = PropertyType::List(*item);
            let known = joined.unwrap_or(found);
            let mixed = || wrong_type(format!("'{name}' holds lists of several types, such as {known} and {found}"));
            joined = Some(PropertyType::joined(known, found).ok_or_else(mixed)?);
        }
        lists.push(list);
    }
    // Lists without items fit every type.
    let property_type = joined.unwrap_or(PropertyType::List(ItemType::String));
    let mut column = ColumnBuilder::new(property_type);
    for list in &lists {
        let OwnedValue::List(_, text) = list else {
            column.push_nulls(1);
            continue;
        };
        column.push_text(text.as_bytes()).map_err(|error| invalid(format!("'{name}': {error}")))?;
    }
    column.finish().array_of(property_type).map_err(|error| invalid(format!("'{name}': {error}")))
}

/// Objects as text, bytes, integers, numbers or lists, whichever all of them are; None and NaN are null.
fn objects(name: &str, array: &Bound<'_, PyAny>) -> Result<ArrayRef> {
    let items: Vec<Bound<'_, PyAny>> = array.call_method0("tolist")?.try_iter()?.collect::<PyResult<_>>()?;
    let is_null =
        |item: &Bound<'_, PyAny>| item.is_none() || item.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan());
    if items.iter().all(&is_null) {
        return Ok(Arc::new(NullArray::new(items.len())));
    }
    let values: Vec<Option<Bound<'_, PyAny>>> =
        items.into_iter().map(|item| if is_null(&item) { None } else { Some(item) }).collect();
    if values.iter().flatten().all(is_list) {
        return lists(name, &values);
    }
    if let Some(texts) = all::<String>(&values) {
        return Ok(Arc::new(texts.into_iter().collect::<LargeStringArray>()));
    }
    if let Some(flags) = all::<bool>(&values) {
        return Ok(Arc::new(flags.into_iter().collect::<BooleanArray>()));
    }
    if let Some(numbers) = all::<i64>(&values) {
        return Ok(Arc::new(numbers.into_iter().collect::<PrimitiveArray<Int64Type>>()));
    }
    if let Some(numbers) = all::<u64>(&values) {
        return Ok(Arc::new(numbers.into_iter().collect::<PrimitiveArray<UInt64Type>>()));
    }
    if let Some(numbers) = all::<f64>(&values) {
        return Ok(Arc::new(numbers.into_iter().collect::<PrimitiveArray<Float64Type>>()));
    }
    if let Some(bytes) = all::<Vec<u8>>(&values) {
        return Ok(Arc::new(bytes.into_iter().collect::<LargeBinaryArray>()));
    }
    let odd = values.iter().flatten().find(|value| value.extract::<String>().is_err());
    let shown = odd.map_or_else(|| Ok("text".to_owned()), |value| value.repr().map(|text| text.to_string()))?;
    let wanted = "text, integers, floats, booleans, bytes or lists";
    Err(wrong_type(format!("'{name}' holds values of several types: all are {wanted}, found {shown}")))
}

/// An object with `__arrow_c_array__`, such as a pyarrow array, through a table of one column.
fn arrow_array_of(name: &str, values: &Bound<'_, PyAny>) -> Result<ArrayRef> {
    let py = values.py();
    let numpy = py.import("numpy")?;
    let failed = |error: PyErr| invalid(format!("'{name}': {}", error.value(py)));
    let array = match values.hasattr("to_numpy")? {
        true => {
            let options = PyDict::new(py);
            options.set_item("zero_copy_only", false)?;
            values.call_method("to_numpy", (), Some(&options)).or_else(|_| values.call_method0("to_numpy"))
        }
        false => numpy.call_method1("asarray", (values,)),
    };
    column_of(name, &array.map_err(failed)?)
}
