//! The values of Arrow columns as keys, weights and properties.

use std::sync::Arc;

use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertyType, PropertyValue, ZONE, push_json_value};
use anden_graph::{Weight, WeightType};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, LargeStringArray, UInt64Array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, FieldRef, TimeUnit};
use bytemuck::Pod;

use crate::key::FieldKey;
use crate::options::SourceOptions;
use crate::push_u64;
use crate::{Error, Result};

/// From here on, a floating-point number stands for several whole ones.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// A column of keys or weights.
pub(crate) enum Cells {
    Signed(Int64Array),
    Unsigned(UInt64Array),
    Real(Float64Array),
    Text(LargeStringArray),
}

impl Cells {
    /// Whether values of a type can be keys.
    pub(crate) fn can_hold_keys(data_type: &DataType) -> bool {
        match data_type {
            DataType::Dictionary(_, values) => Self::can_hold_keys(values),
            // A column without values, as of an empty list, has no other type. Its rows, if any, are refused.
            DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
            other => other.is_integer() || other.is_floating(),
        }
    }

    /// Converts a column.
    ///
    /// # Errors
    /// A value does not fit the widest type of its kind.
    pub(crate) fn of(array: &ArrayRef) -> Result<Self> {
        let kind = match array.data_type() {
            DataType::Dictionary(_, values) => values,
            other => other,
        };
        Ok(match kind {
            kind if kind.is_signed_integer() => {
                Self::Signed(converted(array, &DataType::Int64)?.as_primitive().clone())
            }
            kind if kind.is_unsigned_integer() => {
                Self::Unsigned(converted(array, &DataType::UInt64)?.as_primitive().clone())
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Self::Text(converted(array, &DataType::LargeUtf8)?.as_string().clone())
            }
            _ => Self::Real(converted(array, &DataType::Float64)?.as_primitive().clone()),
        })
    }

    fn array(&self) -> &dyn Array {
        match self {
            Self::Signed(array) => array,
            Self::Unsigned(array) => array,
            Self::Real(array) => array,
            Self::Text(array) => array,
        }
    }

    /// The whole number of a row; `None` if it has another value.
    fn whole(&self, row: usize) -> Option<i128> {
        match self {
            _ if self.array().is_null(row) => None,
            Self::Signed(array) => Some(array.value(row).into()),
            Self::Unsigned(array) => Some(array.value(row).into()),
            Self::Real(array) => {
                let value = array.value(row);
                (value.abs() <= MAX_WHOLE && value.trunc() == value).then_some(value as i128)
            }
            Self::Text(_) => None,
        }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.array().len()
    }

    /// Whether these are the numbers from `first` on, in order.
    pub(crate) fn are_numbers_from(&self, first: u64) -> bool {
        !matches!(self, Self::Text(_))
            && (0..self.len()).zip(first..).all(|(row, number)| self.whole(row) == Some(number.into()))
    }

    fn real(&self, row: usize) -> Option<f64> {
        match self {
            _ if self.array().is_null(row) => None,
            Self::Signed(array) => Some(array.value(row) as f64),
            Self::Unsigned(array) => Some(array.value(row) as f64),
            Self::Real(array) => Some(array.value(row)),
            Self::Text(_) => None,
        }
    }

    /// The key of a row; `None` if its value is no key. The bytes of string keys are appended to `text`.
    pub(crate) fn key<K: FieldKey>(&self, row: usize, options: &SourceOptions, text: &mut Vec<u8>) -> Option<K> {
        if let Self::Text(array) = self {
            let found = (!array.is_null(row)).then(|| array.value(row).as_bytes());
            return found.filter(|found| options.may_be_key(found)).and_then(|found| K::from_owned(found, 0, text));
        }
        let number = self.whole(row)?;
        match (u64::try_from(number), K::from_digits(0)) {
            (number, Some(_)) => number.ok().and_then(K::from_digits),
            (Ok(number), None) => {
                let mut digits = Vec::with_capacity(20);
                push_u64(&mut digits, number);
                K::from_owned(&digits, 0, text)
            }
            (Err(_), None) => K::from_owned(number.to_string().as_bytes(), 0, text),
        }
    }

    /// The weight of a row; `None` if its value is no weight of this type.
    pub(crate) fn weight<W: Weight>(&self, row: usize) -> Option<W> {
        let whole = || self.whole(row);
        let real = || self.real(row);
        let weight: Option<W> = match W::TYPE {
            WeightType::U32 => whole().and_then(|value| u32::try_from(value).ok()).map(bytemuck::cast),
            WeightType::I64 => whole().and_then(|value| i64::try_from(value).ok()).map(bytemuck::cast),
            WeightType::F64 => real().map(bytemuck::cast),
            // A value beyond the range of `f32` is refused.
            WeightType::F32 => real()
                .map(|value| (value, value as f32))
                .filter(|(value, short)| !value.is_finite() || short.is_finite())
                .map(|(_, short)| bytemuck::cast(short)),
        };
        weight.filter(|weight| weight.is_accepted())
    }

    /// The value of a row, for messages.
    #[cold]
    pub(crate) fn shown(&self, row: usize) -> String {
        match self {
            _ if self.array().is_null(row) => "null".to_owned(),
            Self::Signed(array) => array.value(row).to_string(),
            Self::Unsigned(array) => array.value(row).to_string(),
            Self::Real(array) => array.value(row).to_string(),
            Self::Text(array) => anden_base::message::shown(array.value(row).as_bytes()),
        }
    }
}

/// The edges of two integer columns of one type without nulls; `None` for other columns, and if a number is no key.
pub(crate) fn whole_edges<K: FieldKey>(source: &ArrayRef, target: &ArrayRef) -> Option<Vec<(K, K)>> {
    if source.null_count() > 0 || target.null_count() > 0 || K::from_digits(0).is_none() {
        return None;
    }
    fn typed<K: FieldKey, T: ArrowPrimitiveType>(source: &ArrayRef, target: &ArrayRef) -> Option<Vec<(K, K)>>
    where
        T::Native: TryInto<u64>,
    {
        let (source, target) = (source.as_primitive_opt::<T>()?, target.as_primitive_opt::<T>()?);
        let key = |number: T::Native| number.try_into().ok().and_then(K::from_digits);
        let mut edges = Vec::with_capacity(source.len());
        for (&source, &target) in source.values().iter().zip(target.values()) {
            edges.push((key(source)?, key(target)?));
        }
        Some(edges)
    }
    match source.data_type() {
        DataType::Int64 => typed::<K, Int64Type>(source, target),
        DataType::UInt64 => typed::<K, UInt64Type>(source, target),
        DataType::Int32 => typed::<K, Int32Type>(source, target),
        DataType::UInt32 => typed::<K, UInt32Type>(source, target),
        _ => None,
    }
}

/// A column without nulls whose type is that of the weights; `None` for other columns, and if a number is no weight.
pub(crate) fn whole_weights<W: Weight>(array: &ArrayRef) -> Option<Vec<W>> {
    fn typed<W: Weight, T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<Vec<W>>
    where
        T::Native: Pod,
    {
        let weights: &[W] = bytemuck::try_cast_slice(array.as_primitive_opt::<T>()?.values()).ok()?;
        weights.iter().all(|weight| weight.is_accepted()).then(|| weights.to_vec())
    }
    if array.null_count() > 0 {
        return None;
    }
    match W::TYPE {
        WeightType::U32 => typed::<W, UInt32Type>(array),
        WeightType::I64 => typed::<W, Int64Type>(array),
        WeightType::F32 => typed::<W, Float32Type>(array),
        WeightType::F64 => typed::<W, Float64Type>(array),
    }
}

/// The type of a property that holds values of an Arrow type; `None` if there is none.
pub(crate) fn property_type(data_type: &DataType) -> Option<PropertyType> {
    if let Some(items) = items_of(data_type) {
        // Other lists become text, as those of JSON lines do.
        return property_type(items.data_type()).map(|items| items.list().unwrap_or(PropertyType::String));
    }
    Some(match data_type {
        DataType::Boolean => PropertyType::Boolean,
        data_type if data_type.is_signed_integer() => PropertyType::I64,
        data_type if data_type.is_unsigned_integer() => PropertyType::U64,
        DataType::Float16 | DataType::Float32 => PropertyType::F32,
        DataType::Float64 => PropertyType::F64,
        DataType::Date32 => PropertyType::Date,
        DataType::Date64 | DataType::Timestamp(..) => PropertyType::Timestamp,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => PropertyType::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            PropertyType::Bytes
        }
        DataType::Dictionary(_, values) => property_type(values)?,
        // A column of nulls only, as pandas makes of missing text.
        DataType::Null => PropertyType::String,
        _ => return None,
    })
}

/// The items of lists.
fn items_of(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(items) | DataType::LargeList(items) | DataType::FixedSizeList(items, _) => Some(items),
        _ => None,
    }
}

/// A column as a property of this type, which [`property_type`] found.
///
/// # Errors
/// A value does not fit the type.
pub(crate) fn read_property(array: &ArrayRef, to: PropertyType) -> Result<PropertyColumn> {
    if let Some(items) = items_of(array.data_type()) {
        return json_of_lists(&converted(array, &DataType::LargeList(Arc::clone(items)))?);
    }
    let data_type = match to {
        PropertyType::Boolean => DataType::Boolean,
        PropertyType::I64 => DataType::Int64,
        PropertyType::U64 => DataType::UInt64,
        PropertyType::F32 => DataType::Float32,
        PropertyType::F64 => DataType::Float64,
        PropertyType::Date => DataType::Date32,
        PropertyType::Timestamp => return Ok(PropertyColumn::from_array(timestamps(array)?)?),
        PropertyType::String | PropertyType::List(_) => DataType::LargeUtf8,
        PropertyType::Bytes => DataType::LargeBinary,
    };
    Ok(PropertyColumn::from_array(converted(array, &data_type)?)?)
}

/// Lists as JSON.
fn json_of_lists(lists: &ArrayRef) -> Result<PropertyColumn> {
    let lists = lists.as_list::<i64>();
    let offsets = lists.value_offsets();
    // A part of a column has the items of the whole column.
    let (first, last) = (offsets[0], offsets[lists.len()]);
    let items = lists.values().slice(first as usize, (last - first) as usize);
    let Some(item_type) = property_type(items.data_type()) else {
        return Err(Error::Parameter(format!("no property has the Arrow type {}", items.data_type())));
    };
    let (is_nested, items) = (items_of(items.data_type()).is_some(), read_property(&items, item_type)?);
    let (mut texts, mut text) = (ColumnBuilder::new(PropertyType::String), Vec::new());
    for row in 0..lists.len() {
        if lists.is_null(row) {
            texts.push_nulls(1);
            continue;
        }
        text.clear();
        text.push(b'[');
        for item in offsets[row] - first..offsets[row + 1] - first {
            if text.len() > 1 {
                text.push(b',');
            }
            match items.get(item as usize) {
                PropertyValue::String(list) if is_nested => text.extend_from_slice(list.as_bytes()),
                value => push_json_value(value, &mut text),
            }
        }
        text.push(b']');
        texts.push_text(&text).map_err(Error::Parameter)?;
    }
    Ok(texts.finish())
}

/// Instants as microseconds in UTC. Arrow stores instants of any zone in UTC; those without a zone are taken as UTC.
fn timestamps(array: &ArrayRef) -> Result<ArrayRef> {
    let (factor, divisor) = match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => (1_000_000, 1),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => (1, 1_000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => (1, 1),
        // Milliseconds, as timestamps and as dates of 64 bits.
        _ => (1_000, 1),
    };
    let numbers = converted(array, &DataType::Int64)?;
    let micros = numbers.as_primitive::<Int64Type>().try_unary::<_, Int64Type, _>(|number| {
        let micros = number.checked_mul(factor).map(|number| number.div_euclid(divisor));
        micros.ok_or_else(|| Error::Parameter(format!("the time {number} is beyond the range of microseconds")))
    })?;
    Ok(Arc::new(micros.reinterpret_cast::<TimestampMicrosecondType>().with_timezone(ZONE)))
}

/// Converts a column. A value that does not fit is an error, not null.
fn converted(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &options).map_err(|error| Error::Parameter(error.to_string()))
}
