//! Turns columns of a file into properties.

use std::fmt::Display;

use arrow_array::types::{ArrowPrimitiveType, Float16Type};
use arrow_array::{
    BooleanArray, Date32Array, Float32Array, Float64Array, Int64Array, LargeStringArray, TimestampMicrosecondArray,
    UInt64Array,
};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer};
use hashbrown::HashMap;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::data_type::{ByteArray, Int96};

use super::column::{ParquetColumn, ParquetValues, ROWS_AT_ONCE, RowReader, bytes_of};
use super::guard::Result;
use super::schema::{Logical, ParquetLeaf};
use anden_graph::WeightType;
use anden_graph::property::{PropertyColumn, PropertyType, ZONE};

/// The largest total size of the texts of a column, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 30;
const JULIAN_DAY_OF_1970: i64 = 2_440_588;
const MICROS_A_DAY: i64 = 86_400_000_000;

impl ParquetLeaf {
    pub(super) fn is_unsigned(&self) -> bool {
        self.logical == Logical::Unsigned
    }

    /// Whether values are numbers, and so can be weights.
    pub(super) fn is_numeric(&self) -> bool {
        let is_bytes = matches!(self.physical(), Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY | Type::BOOLEAN);
        match self.logical {
            Logical::Plain | Logical::Unsigned => !is_bytes,
            Logical::Decimal { .. } | Logical::Float16 => true,
            Logical::Text | Logical::Date | Logical::Timestamp(_) => false,
        }
    }

    /// The type of weights with these values, if there is one.
    pub(super) fn weight_type(&self) -> Option<WeightType> {
        match (self.logical, self.physical()) {
            (Logical::Unsigned, Type::INT32) => Some(WeightType::U32),
            (Logical::Plain, Type::INT32 | Type::INT64) => Some(WeightType::I64),
            (Logical::Plain, Type::FLOAT) => Some(WeightType::F32),
            (Logical::Plain, Type::DOUBLE) => Some(WeightType::F64),
            _ => None,
        }
    }

    pub(super) fn physical(&self) -> Type {
        self.column.physical_type()
    }

    /// The description of values in messages.
    pub(super) fn kind_name(&self) -> &'static str {
        match (self.logical, self.physical()) {
            (Logical::Text, _) => "text",
            (Logical::Decimal { .. }, _) => "decimal numbers",
            (Logical::Date, _) => "dates",
            (Logical::Timestamp(_), _) => "timestamps",
            (Logical::Float16, _) | (_, Type::FLOAT | Type::DOUBLE) => "floating numbers",
            (_, Type::BOOLEAN) => "booleans",
            (_, Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY) => "bytes",
            _ => "whole numbers",
        }
    }

    /// The meaning of values that are read in their stored form.
    fn meaning(&self) -> Option<&'static str> {
        match (self.column.converted_type(), self.column.logical_type_ref()) {
            (ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS, _) | (_, Some(LogicalType::Time(_))) => {
                Some("times of day")
            }
            (ConvertedType::BSON, _) => Some("BSON documents"),
            (ConvertedType::INTERVAL, _) => Some("intervals of time"),
            _ => None,
        }
    }

    /// A description of the loss when the column becomes a property or weight.
    pub(super) fn loss(&self) -> Option<String> {
        let property = self.value_type();
        match self.logical {
            Logical::Decimal { .. } if property == PropertyType::F64 => {
                Some("holds decimal numbers, which are read as f64 and may lose digits".to_owned())
            }
            Logical::Timestamp(unit) if unit == TimeUnit::NANOS || self.physical() == Type::INT96 => {
                Some("holds timestamps in nanoseconds, which are cut to microseconds".to_owned())
            }
            _ => self.meaning().map(|meaning| format!("holds {meaning}, which are read as {}", property.name())),
        }
    }

    /// The property type of the column. Lists of bytes become text, as those of Arrow do.
    pub(super) fn property_type(&self) -> PropertyType {
        let value_type = self.value_type();
        if self.is_single() { value_type } else { value_type.list().unwrap_or(PropertyType::String) }
    }

    /// The property type of one value. Decimals become floating-point numbers, unless they are integers of a fixed width
    /// of at most 64 bits. Timestamps have microseconds.
    fn value_type(&self) -> PropertyType {
        match (self.logical, self.physical()) {
            (Logical::Decimal { scale: 0 }, Type::INT32 | Type::INT64) => PropertyType::I64,
            (Logical::Decimal { scale: 0 }, Type::FIXED_LEN_BYTE_ARRAY) if self.column.type_length() <= 8 => {
                PropertyType::I64
            }
            (Logical::Text, _) => PropertyType::String,
            (Logical::Date, _) => PropertyType::Date,
            (Logical::Timestamp(_), _) => PropertyType::Timestamp,
            (Logical::Decimal { .. } | Logical::Float16, _) => PropertyType::F64,
            (_, Type::BOOLEAN) => PropertyType::Boolean,
            (Logical::Unsigned, Type::INT64) => PropertyType::U64,
            (_, Type::INT32 | Type::INT64 | Type::INT96) => PropertyType::I64,
            (_, Type::FLOAT) => PropertyType::F32,
            (_, Type::DOUBLE) => PropertyType::F64,
            (_, Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY) => PropertyType::Bytes,
        }
    }
}

/// The value of a row as a floating-point number; `None` if its bytes are not a number.
pub(super) fn float_at(leaf: &ParquetLeaf, column: &ParquetColumn, row: usize) -> Option<f64> {
    match (&column.values, leaf.logical) {
        (ParquetValues::Floats(values), _) => Some(values[row]),
        (ParquetValues::Integers(values), Logical::Decimal { scale }) => Some(values[row] as f64 / 10_f64.powi(scale)),
        (ParquetValues::Integers(values), Logical::Unsigned) => Some(values[row] as u64 as f64),
        (ParquetValues::Integers(values), _) => Some(values[row] as f64),
        (ParquetValues::Bytes(values), Logical::Decimal { scale }) => {
            Some(big_endian(values[row].data())? as f64 / 10_f64.powi(scale))
        }
        (ParquetValues::Bytes(values), Logical::Float16) => {
            let bits = u16::from_le_bytes(values[row].data().try_into().ok()?);
            Some(<Float16Type as ArrowPrimitiveType>::Native::from_bits(bits).to_f64())
        }
        _ => None,
    }
}

/// A signed big-endian integer of up to 16 bytes.
pub(super) fn big_endian(bytes: &[u8]) -> Option<i128> {
    let (&first, rest) = bytes.split_first().filter(|_| bytes.len() <= 16)?;
    Some(rest.iter().fold(i128::from(first as i8), |value, &byte| value << 8 | i128::from(byte)))
}

/// Reads the rows of a reader as a property.
///
/// # Errors
/// As [`RowReader::next`], or a value does not fit: text is not UTF-8, or a number or time is out of range.
pub(super) fn read_property(reader: &mut RowReader<'_>) -> crate::Result<PropertyColumn> {
    let (leaf, first_row) = (reader.leaf(), reader.next_row());
    let made = match leaf.value_type() {
        wanted @ (PropertyType::String | PropertyType::Bytes) => read_texts(reader, wanted)?,
        _ => values_of(leaf, reader.next(usize::MAX)?, &|place| first_row + place as u64),
    };
    made.map_err(|what| reader.refuse(what))
}

/// Converts a column of a file to a property without a dictionary. `row_of` gives the row of a value, for messages.
///
/// # Errors
/// As [`read_property`].
pub(super) fn values_of(
    leaf: &ParquetLeaf,
    column: ParquetColumn,
    row_of: &dyn Fn(usize) -> u64,
) -> Result<PropertyColumn> {
    let wanted = leaf.value_type();
    if wanted == PropertyType::F64 && !matches!(column.values, ParquetValues::Floats(_)) {
        let float = |row: usize| if column.is_valid(row) { float_at(leaf, &column, row) } else { Some(0.0) };
        let floats: Option<Vec<f64>> = (0..column.num_rows).map(float).collect();
        let floats = floats.ok_or("a decimal number has more than 16 bytes")?;
        return Ok(PropertyColumn::new(Float64Array::new(floats.into(), column.nulls)));
    }
    let ParquetColumn { values, nulls, .. } = column;
    Ok(match values {
        ParquetValues::Bytes(values) if matches!(wanted, PropertyType::String | PropertyType::Bytes) => {
            let mut texts = TextRows::new(0);
            values.into_iter().try_for_each(|value| texts.push(value))?;
            texts.finish(wanted, nulls)?
        }
        ParquetValues::Booleans(values) => PropertyColumn::new(BooleanArray::new(values.into(), nulls)),
        ParquetValues::Integers(values) => integers(leaf, wanted, values, nulls, row_of)?,
        ParquetValues::Int96s(values) => timestamps(&values, micros_of, nulls, row_of)?,
        // At most eight bytes, so 64 bits suffice.
        ParquetValues::Bytes(values) => {
            let whole = |value| big_endian(bytes_of(value)).unwrap_or(0) as i64;
            PropertyColumn::new(Int64Array::new(values.iter().map(whole).collect(), nulls))
        }
        // The file stores these values in 32 bits.
        ParquetValues::Floats(values) if wanted == PropertyType::F32 => {
            PropertyColumn::new(Float32Array::new(values.into_iter().map(|value| value as f32).collect(), nulls))
        }
        ParquetValues::Floats(values) => PropertyColumn::new(Float64Array::new(values.into(), nulls)),
    })
}

/// Reads a column of strings or bytes. Strings get a dictionary if it has at most half as many entries as rows.
fn read_texts(reader: &mut RowReader<'_>, wanted: PropertyType) -> crate::Result<Result<PropertyColumn>> {
    let num_rows = reader.num_left();
    let most = if wanted == PropertyType::String { num_rows / 2 } else { 0 };
    let (mut texts, mut nulls) = (TextRows::new(most), NullBufferBuilder::new(num_rows));
    while reader.num_left() > 0 {
        let column = reader.next(ROWS_AT_ONCE)?;
        let ParquetValues::Bytes(values) = column.values else { return Ok(Err("its texts are not bytes".into())) };
        match column.nulls {
            Some(rows) => nulls.append_buffer(&rows),
            None => nulls.append_n_non_nulls(column.num_rows),
        }
        if let Err(what) = values.into_iter().try_for_each(|value| texts.push(value)) {
            return Ok(Err(what));
        }
    }
    Ok(texts.finish(wanted, nulls.finish()))
}

/// Texts of rows. They are codes of distinct texts as long as these are few; then their bytes, one after the other.
struct TextRows {
    max_distinct: usize,
    codes: Vec<u32>,
    distinct: Vec<ByteArray>,
    /// The codes of texts by address and length: rows of one dictionary entry share its memory. The entries of
    /// `distinct` keep these addresses in use.
    known: HashMap<(usize, usize), u32>,
    offsets: Vec<i64>,
    bytes: Vec<u8>,
}

impl TextRows {
    fn new(max_distinct: usize) -> Self {
        let (codes, distinct, known) = (Vec::new(), Vec::new(), HashMap::new());
        Self { max_distinct, codes, distinct, known, offsets: vec![0], bytes: Vec::new() }
    }

    fn has_codes(&self) -> bool {
        self.max_distinct > 0
    }

    fn push(&mut self, value: ByteArray) -> Result<()> {
        if self.has_codes() {
            let bytes = bytes_of(&value);
            let place = (bytes.as_ptr() as usize, bytes.len());
            if let Some(&code) = self.known.get(&place) {
                self.codes.push(code);
                return Ok(());
            }
            if self.distinct.len() < self.max_distinct {
                self.known.insert(place, self.distinct.len() as u32);
                self.codes.push(self.distinct.len() as u32);
                self.distinct.push(value);
                return Ok(());
            }
            self.max_distinct = 0;
            let distinct = std::mem::take(&mut self.distinct);
            (self.known, self.offsets) = (HashMap::new(), Vec::with_capacity(2 * self.codes.len()));
            self.offsets.push(0);
            for code in std::mem::take(&mut self.codes) {
                self.lay_out(&distinct[code as usize])?;
            }
        }
        self.lay_out(&value)
    }

    /// Appends the bytes of a text.
    fn lay_out(&mut self, value: &ByteArray) -> Result<()> {
        let value = bytes_of(value);
        // Many rows may share one long value of the file.
        if self.bytes.len() + value.len() > MAX_TEXT_BYTES {
            return Err("its values take more than 4 GB".into());
        }
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len() as i64);
        Ok(())
    }

    fn finish(mut self, wanted: PropertyType, nulls: Option<NullBuffer>) -> Result<PropertyColumn> {
        if !self.has_codes() {
            let made = PropertyColumn::from_buffers(wanted, self.offsets, self.bytes, nulls);
            return made.map_err(|error| error.to_string());
        }
        for value in std::mem::take(&mut self.distinct) {
            self.lay_out(&value)?;
        }
        let texts = LargeStringArray::try_new(OffsetBuffer::new(self.offsets.into()), self.bytes.into(), None);
        let texts = texts.map_err(|error| error.to_string())?;
        PropertyColumn::from_codes(self.codes, &texts, nulls).map_err(|error| error.to_string())
    }
}

fn integers(
    leaf: &ParquetLeaf,
    wanted: PropertyType,
    values: Vec<i64>,
    nulls: Option<NullBuffer>,
    row_of: &dyn Fn(usize) -> u64,
) -> Result<PropertyColumn> {
    Ok(match (wanted, leaf.logical) {
        (PropertyType::Date, _) => {
            PropertyColumn::new(Date32Array::new(values.into_iter().map(|value| value as i32).collect(), nulls))
        }
        (_, Logical::Timestamp(unit)) => match unit {
            TimeUnit::MICROS => {
                PropertyColumn::new(TimestampMicrosecondArray::new(values.into(), nulls).with_timezone(ZONE))
            }
            TimeUnit::NANOS => timestamps(&values, |value| Some(value.div_euclid(1000)), nulls, row_of)?,
            TimeUnit::MILLIS => timestamps(&values, |value| value.checked_mul(1000), nulls, row_of)?,
        },
        (PropertyType::U64, _) => {
            PropertyColumn::new(UInt64Array::new(values.into_iter().map(|value| value as u64).collect(), nulls))
        }
        _ => PropertyColumn::new(Int64Array::new(values.into(), nulls)),
    })
}

/// The microseconds since 1970 of a Julian day and the nanoseconds in it, if they fit 64 bits.
fn micros_of(value: &Int96) -> Option<i64> {
    let [low, high, day] = *value.data() else { return None };
    let nanos = (u64::from(high) << 32 | u64::from(low)) as i64;
    let days = i64::from(day as i32) - JULIAN_DAY_OF_1970;
    days.checked_mul(MICROS_A_DAY)?.checked_add(nanos.div_euclid(1000))
}

/// Makes a column of timestamps.
fn timestamps<T: Display>(
    values: &[T],
    micros: impl Fn(&T) -> Option<i64>,
    nulls: Option<NullBuffer>,
    row_of: &dyn Fn(usize) -> u64,
) -> Result<PropertyColumn> {
    let micros = values.iter().enumerate().map(|(place, value)| {
        micros(value).ok_or_else(|| {
            let row = row_of(place);
            format!("row {row}: expected a timestamp within 64 bits of microseconds, found {value}")
        })
    });
    let micros = micros.collect::<Result<Vec<_>>>()?;
    Ok(PropertyColumn::new(TimestampMicrosecondArray::new(micros.into(), nulls).with_timezone(ZONE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_a_sign() {
        assert_eq!(big_endian(&[0xff, 0x85]), Some(-123));
        assert_eq!(big_endian(&[0, 0, 1, 0]), Some(256));
        assert_eq!((big_endian(&[]), big_endian(&[1; 17])), (None, None));
    }
}
