//! Property values and weights between Python and the engine.

use anden::property::{ItemType, PropertySchema, PropertyType, PropertyValue, parse_list, push_list};
use anden::{EdgeWeight, OwnedValue};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::error::{Result, invalid, wrong_type};

/// Classes of the standard library that stand for dates and times.
struct Calendar {
    date: Py<PyAny>,
    datetime: Py<PyAny>,
    timedelta: Py<PyAny>,
    /// 1970-01-01T00:00:00Z.
    epoch: Py<PyAny>,
    utc: Py<PyAny>,
}

static CALENDAR: PyOnceLock<Calendar> = PyOnceLock::new();

impl Calendar {
    fn of(py: Python<'_>) -> PyResult<&Self> {
        CALENDAR.get_or_try_init(py, || {
            let module = py.import("datetime")?;
            let utc = module.getattr("timezone")?.getattr("utc")?;
            let datetime = module.getattr("datetime")?;
            let zone = PyDict::new(py);
            zone.set_item("tzinfo", &utc)?;
            let epoch = datetime.call((1970, 1, 1), Some(&zone))?;
            Ok(Self {
                date: module.getattr("date")?.unbind(),
                timedelta: module.getattr("timedelta")?.unbind(),
                datetime: datetime.unbind(),
                epoch: epoch.unbind(),
                utc: utc.unbind(),
            })
        })
    }
}

/// The ordinal of 1970-01-01 in Python's calendar.
const EPOCH_ORDINAL: i32 = 719_163;

/// The value of an argument: None, bool, int, float, str, bytes, date, datetime, a NumPy scalar, or a list or tuple of
/// such values but bytes. A datetime without a time zone is in UTC.
pub fn value_of(value: &Bound<'_, PyAny>) -> Result<OwnedValue> {
    if value.is_none() {
        return Ok(OwnedValue::Null);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(OwnedValue::Boolean(flag.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        if let Ok(number) = value.extract::<i64>() {
            return Ok(OwnedValue::I64(number));
        }
        let number = value.extract::<u64>();
        return number.map(OwnedValue::U64).map_err(|_| invalid(format!("an integer of 64 bits cannot hold {value}")));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(OwnedValue::F64(number.value()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(OwnedValue::String(text.to_str()?.to_owned()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(OwnedValue::Bytes(bytes.as_bytes().to_vec()));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return list_of(value);
    }
    time_or_scalar(value)
}

/// The list of a list or tuple. An empty one fits every type of lists; a new property becomes `string[]`.
fn list_of(values: &Bound<'_, PyAny>) -> Result<OwnedValue> {
    let (mut items, mut item_type) = (Vec::new(), None);
    for value in values.try_iter()? {
        let value = value?;
        // Checked here, because a list may contain itself.
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            return Err(wrong_type("the items of a list are values, not lists".to_owned()));
        }
        let item = value_of(&value)?;
        if let Some(found) = item.property_type() {
            let known = item_type.unwrap_or(found);
            let joined = PropertyType::joined(known, found);
            let mixed = || wrong_type(format!("the items of a list have one type, not {known} and {found}"));
            item_type = Some(joined.ok_or_else(mixed)?);
        }
        items.push(item);
    }
    let Some(PropertyType::List(list)) = item_type.unwrap_or(PropertyType::String).list() else {
        return Err(wrong_type("the items of a list are no bytes".to_owned()));
    };
    let converted = items.iter().map(|item| {
        let (item, to) = (item.as_value(), list.property_type());
        item.converted(to).ok_or_else(|| invalid(format!("{item} in a list of type {to}[] is no value of type {to}")))
    });
    let mut text = Vec::new();
    push_list(converted.collect::<Result<Vec<_>>>()?, &mut text);
    Ok(OwnedValue::List(list, String::from_utf8_lossy(&text).into_owned()))
}

fn time_or_scalar(value: &Bound<'_, PyAny>) -> Result<OwnedValue> {
    let py = value.py();
    let calendar = Calendar::of(py)?;
    if value.is_instance(calendar.datetime.bind(py))? {
        let mut time = value.clone();
        if time.getattr(intern!(py, "tzinfo"))?.is_none() {
            let zone = PyDict::new(py);
            zone.set_item("tzinfo", &calendar.utc)?;
            time = time.call_method(intern!(py, "replace"), (), Some(&zone))?;
        }
        let unit = calendar.timedelta.call1(py, (0, 0, 1))?;
        let micros = time.sub(&calendar.epoch)?.floor_div(unit)?;
        return Ok(OwnedValue::Timestamp(micros.extract()?));
    }
    if value.is_instance(calendar.date.bind(py))? {
        let ordinal: i32 = value.call_method0(intern!(py, "toordinal"))?.extract()?;
        return Ok(OwnedValue::Date(ordinal - EPOCH_ORDINAL));
    }
    let kind = value.get_type();
    if kind.module()?.to_str()? == "numpy"
        && let Ok(plain) = value.call_method0(intern!(py, "item"))
        && plain.get_type().module()?.to_str()? != "numpy"
    {
        return value_of(&plain);
    }
    let wanted = "None, a bool, int, float, str, bytes, date, datetime or list";
    Err(wrong_type(format!("the value of a property is {wanted}, not {}", kind.name()?)))
}

/// A value as a Python object.
pub fn value_object<'py>(py: Python<'py>, value: PropertyValue<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        PropertyValue::Null => py.None().into_bound(py),
        PropertyValue::Boolean(flag) => PyBool::new(py, flag).to_owned().into_any(),
        PropertyValue::I64(number) => number.into_pyobject(py)?.into_any(),
        PropertyValue::U64(number) => number.into_pyobject(py)?.into_any(),
        PropertyValue::F32(number) => PyFloat::new(py, number.into()).into_any(),
        PropertyValue::F64(number) => PyFloat::new(py, number).into_any(),
        PropertyValue::String(text) => PyString::new(py, text).into_any(),
        PropertyValue::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        PropertyValue::Date(days) => {
            let ordinal = days.saturating_add(EPOCH_ORDINAL);
            let date = Calendar::of(py)?.date.bind(py).call_method1(intern!(py, "fromordinal"), (ordinal,));
            date.or_else(|_| beyond_calendar(py, days.into(), "D"))?
        }
        PropertyValue::Timestamp(micros) => {
            let calendar = Calendar::of(py)?;
            let since = calendar.timedelta.bind(py).call1((0, 0, micros));
            let time = since.and_then(|since| calendar.epoch.bind(py).add(since));
            time.or_else(|_| beyond_calendar(py, micros, "us"))?
        }
    })
}

/// A value that may be a list as a Python object.
pub fn owned_object<'py>(py: Python<'py>, value: &OwnedValue) -> PyResult<Bound<'py, PyAny>> {
    match value {
        OwnedValue::List(item, text) => list_object(py, text, *item),
        value => value_object(py, value.as_value()),
    }
}

/// A list in JSON as a Python list.
fn list_object<'py>(py: Python<'py>, text: &str, item: ItemType) -> PyResult<Bound<'py, PyAny>> {
    // Each write checks its lists, so another text would be damage; it is shown as it is.
    let Some(items) = parse_list(text.as_bytes(), item) else { return Ok(PyString::new(py, text).into_any()) };
    let items = items.iter().map(|item| value_object(py, item.as_value())).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any())
}

/// A date or time before year 1 or after year 9999, which only NumPy can hold.
fn beyond_calendar<'py>(py: Python<'py>, number: i64, unit: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("numpy")?.getattr("datetime64")?.call1((number, unit))
}

/// The weight of an argument: an int or a float.
pub fn weight_of(value: &Bound<'_, PyAny>) -> Result<EdgeWeight> {
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(EdgeWeight::Real(number.value()));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(EdgeWeight::Integer(number));
    }
    if value.is_instance_of::<PyInt>() {
        return Err(invalid(format!("a weight is an integer of 64 bits or a float, not {value}")));
    }
    // NumPy's floats of other widths have `__float__`, and so does no text.
    value.extract::<f64>().map(EdgeWeight::Real).map_err(|_| {
        let kind = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        wrong_type(format!("a weight is an int or a float, not {kind}"))
    })
}

/// A weight as an int or a float.
pub fn weight_object(py: Python<'_>, weight: EdgeWeight) -> PyResult<Bound<'_, PyAny>> {
    match weight {
        EdgeWeight::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
        EdgeWeight::Real(number) => Ok(PyFloat::new(py, number).into_any()),
    }
}

/// A value of a property as a Python object: a list if the property has lists, whose items have the given type.
pub fn typed_object<'py>(
    py: Python<'py>,
    value: PropertyValue<'_>,
    items: Option<ItemType>,
) -> PyResult<Bound<'py, PyAny>> {
    match (value, items) {
        (PropertyValue::String(text), Some(item)) => list_object(py, text, item),
        (value, _) => value_object(py, value),
    }
}

/// The value of a property of a schema as a Python object.
pub fn property_object<'py>(
    py: Python<'py>,
    schema: &PropertySchema,
    name: &str,
    value: PropertyValue<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    typed_object(py, value, schema.type_of(name).and_then(PropertyType::items))
}
