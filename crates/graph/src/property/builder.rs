//! Growing columns.

use anden_base::message::shown;
use arrow_array::{
    BooleanArray, Date32Array, Float32Array, Float64Array, Int64Array, LargeBinaryArray, LargeStringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder, OffsetBuffer};

use super::array::{TypedArray, ZONE};
use super::text::{ParsedValue, parse};
use super::{ItemType, PropertyColumn, PropertyType, PropertyValue};
use crate::{Error, Result};

/// Builds a [`PropertyColumn`] row by row.
///
/// Its buffers are those of the finished array, so finishing copies nothing. Readers withdraw rows with
/// [`truncate`](Self::truncate), which Arrow's own builders lack.
#[derive(Debug)]
pub struct ColumnBuilder {
    values: ValueBuffers,
    nulls: NullBufferBuilder,
    /// The type of the items, if the values are lists.
    items: Option<ItemType>,
}

/// The values. Null rows hold 0 or no bytes.
#[derive(Debug)]
enum ValueBuffers {
    Boolean(BooleanBufferBuilder),
    I64(Vec<i64>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Date(Vec<i32>),
    Timestamp(Vec<i64>),
    String(RowBytesBuffer),
    Bytes(RowBytesBuffer),
}

/// The bytes of all rows, one after the other, and 0 followed by the end of each row.
#[derive(Debug)]
struct RowBytesBuffer {
    offsets: Vec<i64>,
    bytes: Vec<u8>,
}

impl Default for RowBytesBuffer {
    fn default() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }
}

impl RowBytesBuffer {
    #[inline]
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len() as i64);
    }

    /// Appends the rows of an array.
    fn append(&mut self, offsets: &[i64], bytes: &[u8]) {
        let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
        // The offsets of a sliced array need not start at 0.
        let shift = self.bytes.len() as i64 - first;
        self.offsets.extend(offsets[1..].iter().map(|offset| offset + shift));
        self.bytes.extend_from_slice(&bytes[first as usize..last as usize]);
    }

    fn truncate(&mut self, num_rows: usize) {
        self.offsets.truncate(num_rows + 1);
        self.bytes.truncate(self.offsets[num_rows] as usize);
    }
}

impl ColumnBuilder {
    /// Creates a column without rows.
    pub fn new(property_type: PropertyType) -> Self {
        let values = match property_type {
            PropertyType::Boolean => ValueBuffers::Boolean(BooleanBufferBuilder::new(0)),
            PropertyType::I64 => ValueBuffers::I64(Vec::new()),
            PropertyType::U64 => ValueBuffers::U64(Vec::new()),
            PropertyType::F32 => ValueBuffers::F32(Vec::new()),
            PropertyType::F64 => ValueBuffers::F64(Vec::new()),
            PropertyType::Date => ValueBuffers::Date(Vec::new()),
            PropertyType::Timestamp => ValueBuffers::Timestamp(Vec::new()),
            PropertyType::String | PropertyType::List(_) => ValueBuffers::String(RowBytesBuffer::default()),
            PropertyType::Bytes => ValueBuffers::Bytes(RowBytesBuffer::default()),
        };
        Self { values, nulls: NullBufferBuilder::new(0), items: property_type.items() }
    }

    /// The type.
    pub fn property_type(&self) -> PropertyType {
        match &self.values {
            ValueBuffers::Boolean(_) => PropertyType::Boolean,
            ValueBuffers::I64(_) => PropertyType::I64,
            ValueBuffers::U64(_) => PropertyType::U64,
            ValueBuffers::F32(_) => PropertyType::F32,
            ValueBuffers::F64(_) => PropertyType::F64,
            ValueBuffers::Date(_) => PropertyType::Date,
            ValueBuffers::Timestamp(_) => PropertyType::Timestamp,
            ValueBuffers::String(_) => self.items.map_or(PropertyType::String, PropertyType::List),
            ValueBuffers::Bytes(_) => PropertyType::Bytes,
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row. A list is the text that [`push_text`](Self::push_text) makes of it.
    ///
    /// # Errors
    /// The value has another type.
    pub fn push(&mut self, value: PropertyValue<'_>) -> Result<()> {
        match (&mut self.values, value) {
            (_, PropertyValue::Null) => {
                self.push_nulls(1);
                // `push_nulls` has recorded the row as null.
                return Ok(());
            }
            (ValueBuffers::Boolean(values), PropertyValue::Boolean(value)) => values.append(value),
            (ValueBuffers::I64(values), PropertyValue::I64(value))
            | (ValueBuffers::Timestamp(values), PropertyValue::Timestamp(value)) => values.push(value),
            (ValueBuffers::U64(values), PropertyValue::U64(value)) => values.push(value),
            (ValueBuffers::F32(values), PropertyValue::F32(value)) => values.push(value),
            (ValueBuffers::F64(values), PropertyValue::F64(value)) => values.push(value),
            (ValueBuffers::Date(values), PropertyValue::Date(value)) => values.push(value),
            (ValueBuffers::String(pieces), PropertyValue::String(value)) => pieces.push(value.as_bytes()),
            (ValueBuffers::Bytes(pieces), PropertyValue::Bytes(value)) => pieces.push(value),
            (_, value) => {
                let found = value.property_type().map_or("null", PropertyType::name);
                let what = format!("expected a value of type {}, found one of type {found}", self.property_type());
                return Err(Error::Parameter(what));
            }
        }
        self.nulls.append_non_null();
        Ok(())
    }

    /// Appends `num_rows` null rows.
    pub fn push_nulls(&mut self, num_rows: usize) {
        let len = self.len() + num_rows;
        match &mut self.values {
            // Arrow arrays have no gaps, so a null row holds a value too.
            ValueBuffers::Boolean(values) => values.append_n(num_rows, false),
            ValueBuffers::I64(values) | ValueBuffers::Timestamp(values) => values.resize(len, 0),
            ValueBuffers::U64(values) => values.resize(len, 0),
            ValueBuffers::F32(values) => values.resize(len, 0.0),
            ValueBuffers::F64(values) => values.resize(len, 0.0),
            ValueBuffers::Date(values) => values.resize(len, 0),
            ValueBuffers::String(RowBytesBuffer { offsets, bytes })
            | ValueBuffers::Bytes(RowBytesBuffer { offsets, bytes }) => {
                // A null row is an empty range.
                offsets.resize(len + 1, bytes.len() as i64);
            }
        }
        self.nulls.append_n_nulls(num_rows);
    }

    /// Appends a row from text. The text is never taken as null.
    ///
    /// # Errors
    /// The expected and the found text, if the text is not a value of the column's type.
    pub fn push_text(&mut self, text: &[u8]) -> Result<(), String> {
        let property_type = self.property_type();
        let pushed = match parse(text, property_type) {
            Some(ParsedValue::Value(value)) => self.push(value),
            Some(ParsedValue::Decoded(bytes)) => self.push(PropertyValue::Bytes(&bytes)),
            Some(ParsedValue::List(text)) => self.push(PropertyValue::String(&text)),
            None => return Err(format!("expected {}, found {}", property_type.text_form(), shown(text))),
        };
        pushed.map_err(|error| error.to_string())
    }

    /// Appends all rows of a column.
    ///
    /// # Errors
    /// The column has another type.
    pub fn append(&mut self, column: &PropertyColumn) -> Result<()> {
        match (&mut self.values, column.values()) {
            (ValueBuffers::Boolean(to), TypedArray::Boolean(from)) => to.append_buffer(from.values()),
            (ValueBuffers::I64(to), TypedArray::I64(from)) => to.extend_from_slice(from.values()),
            (ValueBuffers::U64(to), TypedArray::U64(from)) => to.extend_from_slice(from.values()),
            (ValueBuffers::F32(to), TypedArray::F32(from)) => to.extend_from_slice(from.values()),
            (ValueBuffers::F64(to), TypedArray::F64(from)) => to.extend_from_slice(from.values()),
            (ValueBuffers::Date(to), TypedArray::Date(from)) => to.extend_from_slice(from.values()),
            (ValueBuffers::Timestamp(to), TypedArray::Timestamp(from)) => to.extend_from_slice(from.values()),
            (ValueBuffers::String(to), TypedArray::String(from)) => {
                to.append(from.value_offsets(), from.value_data());
            }
            (ValueBuffers::String(_), TypedArray::Coded { .. }) => {
                // `push` also records nulls, so this returns before the null buffer is appended.
                return column.iter().try_for_each(|value| self.push(value));
            }
            (ValueBuffers::Bytes(to), TypedArray::Bytes(from)) => to.append(from.value_offsets(), from.value_data()),
            _ => {
                let (to, from) = (self.property_type(), column.property_type());
                let what = format!("a column of type {from} cannot be appended to one of type {to}");
                return Err(Error::Parameter(what));
            }
        }
        match column.validity() {
            Some(nulls) => self.nulls.append_buffer(nulls),
            None => self.nulls.append_n_non_nulls(column.len()),
        }
        Ok(())
    }

    /// Keeps the first `num_rows` rows.
    pub fn truncate(&mut self, num_rows: usize) {
        if num_rows >= self.len() {
            return;
        }
        match &mut self.values {
            ValueBuffers::Boolean(values) => values.truncate(num_rows),
            ValueBuffers::I64(values) | ValueBuffers::Timestamp(values) => values.truncate(num_rows),
            ValueBuffers::U64(values) => values.truncate(num_rows),
            ValueBuffers::F32(values) => values.truncate(num_rows),
            ValueBuffers::F64(values) => values.truncate(num_rows),
            ValueBuffers::Date(values) => values.truncate(num_rows),
            ValueBuffers::String(pieces) | ValueBuffers::Bytes(pieces) => pieces.truncate(num_rows),
        }
        self.nulls.truncate(num_rows);
    }

    /// Finishes the column.
    pub fn finish(self) -> PropertyColumn {
        let nulls = self.nulls.build();
        match self.values {
            ValueBuffers::Boolean(values) => PropertyColumn::new(BooleanArray::new(values.build(), nulls)),
            ValueBuffers::I64(values) => PropertyColumn::new(Int64Array::new(values.into(), nulls)),
            ValueBuffers::U64(values) => PropertyColumn::new(UInt64Array::new(values.into(), nulls)),
            ValueBuffers::F32(values) => PropertyColumn::new(Float32Array::new(values.into(), nulls)),
            ValueBuffers::F64(values) => PropertyColumn::new(Float64Array::new(values.into(), nulls)),
            ValueBuffers::Date(values) => PropertyColumn::new(Date32Array::new(values.into(), nulls)),
            ValueBuffers::Timestamp(values) => {
                PropertyColumn::new(TimestampMicrosecondArray::new(values.into(), nulls).with_timezone(ZONE))
            }
            ValueBuffers::String(RowBytesBuffer { offsets, bytes }) => {
                // Arrow checks the UTF-8 again. The check cannot fail, because `push` takes text.
                let offsets = OffsetBuffer::new(offsets.into());
                PropertyColumn::new(LargeStringArray::new(offsets, bytes.into(), nulls))
            }
            ValueBuffers::Bytes(RowBytesBuffer { offsets, bytes }) => {
                let offsets = OffsetBuffer::new(offsets.into());
                PropertyColumn::new(LargeBinaryArray::new(offsets, bytes.into(), nulls))
            }
        }
    }
}
