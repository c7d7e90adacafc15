//! The values of one property, row by row.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::ByteArrayType;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, GenericByteArray, PrimitiveArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;

use super::array::TypedArray;
use super::{ColumnBuilder, PropertyType, PropertyValue};
use crate::{Error, Result};

/// The values of one property by row, as an Arrow array.
///
/// | type | array |
/// | --- | --- |
/// | boolean | `Boolean` |
/// | i64, u64, f32, f64 | `Int64`, `UInt64`, `Float32`, `Float64` |
/// | date | `Date32` |
/// | timestamp | `Timestamp(Microsecond, "UTC")` |
/// | string | `LargeUtf8`, or `Dictionary(UInt32, LargeUtf8)` where few strings are distinct |
/// | bytes | `LargeBinary` |
/// | lists | as strings; [`array_of`](Self::array_of) makes a `LargeList` |
///
/// A column never changes, so clones share its memory. A [`ColumnBuilder`] makes a column row by row.
///
/// Cost: 4 or 8 bytes a row (a bit for booleans), the bytes of text, and a bit a row if some rows are null.
#[derive(Clone)]
pub struct PropertyColumn {
    array: ArrayRef,
    /// The downcast array, so that reading a row does not match on the Arrow type.
    values: TypedArray,
    nulls: Option<NullBuffer>,
}

impl PropertyColumn {
    /// A column of `num_rows` nulls.
    pub fn nulls(property_type: PropertyType, num_rows: usize) -> Self {
        let mut column = ColumnBuilder::new(property_type);
        column.push_nulls(num_rows);
        column.finish()
    }

    /// Takes an Arrow array as a column, without a copy of its buffers. A `LargeList` becomes the texts of its lists.
    ///
    /// # Errors
    /// No property has the type of the array.
    pub fn from_array(array: ArrayRef) -> Result<Self> {
        let found = array.data_type().clone();
        Self::of(array).ok_or_else(|| Error::Parameter(format!("no property has the Arrow type {found}")))
    }

    fn of(array: ArrayRef) -> Option<Self> {
        if let DataType::LargeList(_) = array.data_type() {
            return Self::of_lists(&array);
        }
        let values = TypedArray::of(&array)?;
        // The values of a dictionary may be null too, and the codes cover these rows.
        let nulls = match &values {
            TypedArray::Coded { codes, .. } => codes.nulls().cloned(),
            _ => array.nulls().cloned(),
        };
        // Kept only if some row is null, so that most columns skip the check.
        Some(Self { array, values, nulls: nulls.filter(|nulls| nulls.null_count() > 0) })
    }

    /// Takes an array that has the type of a property, as readers of files make them.
    ///
    /// # Panics
    /// If no property has the type of the array. [`from_array`](Self::from_array) takes any array.
    pub fn new(array: impl Array + 'static) -> Self {
        Self::of(Arc::new(array)).expect("an array of the type of a property")
    }

    /// The Arrow array.
    pub fn array(&self) -> &ArrayRef {
        &self.array
    }

    /// The downcast array, for loops over all rows.
    pub fn values(&self) -> &TypedArray {
        &self.values
    }

    /// The null buffer; `None` if no row is null.
    pub fn validity(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    /// The type. Lists have that of their text, [`PropertyType::stored`].
    pub fn property_type(&self) -> PropertyType {
        match &self.values {
            TypedArray::Boolean(_) => PropertyType::Boolean,
            TypedArray::I64(_) => PropertyType::I64,
            TypedArray::U64(_) => PropertyType::U64,
            TypedArray::F32(_) => PropertyType::F32,
            TypedArray::F64(_) => PropertyType::F64,
            TypedArray::Date(_) => PropertyType::Date,
            TypedArray::Timestamp(_) => PropertyType::Timestamp,
            TypedArray::String(_) | TypedArray::Coded { .. } => PropertyType::String,
            TypedArray::Bytes(_) => PropertyType::Bytes,
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a row is null.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn is_null(&self, row: usize) -> bool {
        match &self.nulls {
            Some(nulls) => nulls.is_null(row),
            None => {
                // Without a null buffer, nothing else checks the row.
                assert!(row < self.len(), "row {row} of {}", self.len());
                false
            }
        }
    }

    /// The number of null rows.
    pub fn num_nulls(&self) -> usize {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    /// The approximate memory of the rows, in bytes. A dictionary counts in full.
    pub fn num_bytes(&self) -> usize {
        fn fixed<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> usize {
            size_of_val(&array.values()[..])
        }
        fn pieces<T: ByteArrayType<Offset = i64>>(array: &GenericByteArray<T>) -> usize {
            let offsets = array.value_offsets();
            // A slice shares the buffers of the whole column, so only its own bytes count.
            size_of_val(offsets) + (offsets[offsets.len() - 1] - offsets[0]) as usize
        }
        let values = match &self.values {
            TypedArray::Boolean(array) => array.len().div_ceil(8),
            TypedArray::I64(array) => fixed(array),
            TypedArray::U64(array) => fixed(array),
            TypedArray::F32(array) => fixed(array),
            TypedArray::F64(array) => fixed(array),
            TypedArray::Date(array) => fixed(array),
            TypedArray::Timestamp(array) => fixed(array),
            TypedArray::String(array) => pieces(array),
            TypedArray::Coded { codes, texts } => fixed(codes) + pieces(texts),
            TypedArray::Bytes(array) => pieces(array),
        };
        values + self.nulls.as_ref().map_or(0, |nulls| nulls.len().div_ceil(8))
    }

    /// The value of a row.
    ///
    /// # Panics
    /// If the row does not exist.
    #[inline]
    pub fn get(&self, row: usize) -> PropertyValue<'_> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return PropertyValue::Null;
        }
        match &self.values {
            TypedArray::Boolean(array) => PropertyValue::Boolean(array.value(row)),
            TypedArray::I64(array) => PropertyValue::I64(array.value(row)),
            TypedArray::U64(array) => PropertyValue::U64(array.value(row)),
            TypedArray::F32(array) => PropertyValue::F32(array.value(row)),
            TypedArray::F64(array) => PropertyValue::F64(array.value(row)),
            TypedArray::Date(array) => PropertyValue::Date(array.value(row)),
            TypedArray::Timestamp(array) => PropertyValue::Timestamp(array.value(row)),
            TypedArray::String(array) => PropertyValue::String(array.value(row)),
            TypedArray::Coded { codes, texts } => PropertyValue::String(texts.value(codes.value(row) as usize)),
            TypedArray::Bytes(array) => PropertyValue::Bytes(array.value(row)),
        }
    }

    /// All values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PropertyValue<'_>> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// A range of rows, without a copy.
    ///
    /// # Panics
    /// If the range exceeds the column.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        // Made anew, so that a slice without nulls drops the null buffer.
        Self::of(self.array.slice(rows.start, rows.len())).expect("a part has the type of the whole")
    }

    /// The given rows, in this order.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn gather(&self, rows: &[u32]) -> Self {
        // Tested for all rows at once: `gather_or_null` would hide a missing row.
        let largest = rows.iter().copied().max();
        assert!(largest.is_none_or(|row| (row as usize) < self.len()), "row {largest:?} of {}", self.len());
        self.gather_or_null(rows)
    }

    /// As [`gather`](Self::gather), but a row that does not exist becomes null.
    pub fn gather_or_null(&self, rows: &[u32]) -> Self {
        fn fixed<T: ArrowPrimitiveType>(
            array: &PrimitiveArray<T>,
            rows: &[u32],
            nulls: Option<NullBuffer>,
        ) -> PropertyColumn {
            PropertyColumn::new(picked(array, rows, nulls))
        }
        fn pieces<T: ByteArrayType<Offset = i64>>(
            array: &GenericByteArray<T>,
            rows: &[u32],
            nulls: Option<NullBuffer>,
        ) -> PropertyColumn {
            let (offsets, values) = (array.value_offsets(), array.value_data());
            let mut to = (Vec::with_capacity(rows.len() + 1), Vec::new());
            to.0.push(0);
            for &row in rows {
                // A row beyond the end gets no bytes, and `nulls` marks it.
                if let Some(&[start, end]) = offsets.get(row as usize..row as usize + 2) {
                    to.1.extend_from_slice(&values[start as usize..end as usize]);
                }
                to.0.push(to.1.len() as i64);
            }
            PropertyColumn::new(GenericByteArray::<T>::new(OffsetBuffer::new(to.0.into()), to.1.into(), nulls))
        }
        let has_all = rows.iter().all(|&row| (row as usize) < self.len());
        let has_value = |row: usize| row < self.len() && !self.is_null(row);
        // Made only if some row may be null, so that most columns skip the check.
        let nulls = (!has_all || self.nulls.is_some())
            .then(|| NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |i| has_value(rows[i] as usize))));
        match &self.values {
            TypedArray::Boolean(array) => {
                let bit = |i: usize| (rows[i] as usize) < array.len() && array.value(rows[i] as usize);
                Self::new(BooleanArray::new(BooleanBuffer::collect_bool(rows.len(), bit), nulls))
            }
            TypedArray::I64(array) => fixed(array, rows, nulls),
            TypedArray::U64(array) => fixed(array, rows, nulls),
            TypedArray::F32(array) => fixed(array, rows, nulls),
            TypedArray::F64(array) => fixed(array, rows, nulls),
            TypedArray::Date(array) => fixed(array, rows, nulls),
            TypedArray::Timestamp(array) => fixed(array, rows, nulls),
            TypedArray::String(array) => pieces(array, rows, nulls),
            TypedArray::Coded { codes, texts } => {
                // Clones of an array share its buffers, so the dictionary is not copied.
                Self::new(DictionaryArray::new(picked(codes, rows, nulls), Arc::new(texts.clone())))
            }
            TypedArray::Bytes(array) => pieces(array, rows, nulls),
        }
    }

    /// The column with exactly `num_rows` rows, fewer than 2^32: cut, or padded with nulls. Only padding copies rows.
    pub fn padded(self, num_rows: usize) -> Self {
        match num_rows.cmp(&self.len()) {
            Ordering::Equal => self,
            Ordering::Less => self.slice(0..num_rows),
            // Numbers beyond the last row name no row, and so become null.
            Ordering::Greater => self.gather_or_null(&(0..num_rows as u32).collect::<Vec<_>>()),
        }
    }

    /// The column with a string in each row, without a dictionary. Copies strings only if a dictionary existed.
    pub fn without_dictionary(&self) -> Cow<'_, Self> {
        let TypedArray::Coded { .. } = self.values else { return Cow::Borrowed(self) };
        let mut plain = ColumnBuilder::new(PropertyType::String);
        plain.append(self).expect("strings are appended to strings");
        Cow::Owned(plain.finish())
    }

    /// The column as another type, by [`PropertyValue::converted`].
    ///
    /// # Errors
    /// The other type does not hold one of the values; the error names that value.
    pub fn converted(self, to: PropertyType) -> Result<Self> {
        let from = self.property_type();
        if from == to {
            return Ok(self);
        }
        // Types come first, because a column of nulls has no value that could fail.
        if !from.converts_to(to) {
            return Err(Error::Parameter(format!("values of type {from} cannot become values of type {to}")));
        }
        let mut column = ColumnBuilder::new(to);
        if to.items().is_some() {
            for value in self.iter() {
                let PropertyValue::String(text) = value else {
                    column.push_nulls(1);
                    continue;
                };
                column.push_text(text.as_bytes()).map_err(Error::Parameter)?;
            }
            return Ok(column.finish());
        }
        for value in self.iter() {
            let wrong = || Error::Parameter(format!("{value} of type {from} is no value of type {to}"));
            column.push(value.converted(to).ok_or_else(wrong)?)?;
        }
        Ok(column.finish())
    }
}

/// The values of the given rows; 0 for a row that does not exist.
fn picked<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    rows: &[u32],
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<T> {
    let values = array.values();
    let values = rows.iter().map(|&row| values.get(row as usize).copied().unwrap_or_default()).collect();
    // The type of a timestamp array includes its zone.
    PrimitiveArray::new(values, nulls).with_data_type(array.data_type().clone())
}

/// Shows the type and all values, independent of a dictionary.
impl fmt::Debug for PropertyColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.property_type())?;
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Columns are equal if their types and all values are, with or without a dictionary.
impl PartialEq for PropertyColumn {
    fn eq(&self, other: &Self) -> bool {
        self.property_type() == other.property_type() && self.len() == other.len() && self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests;
