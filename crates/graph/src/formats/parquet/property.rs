//! Columns of a file as properties.

use arrow_array::{
    BooleanArray, Date32Array, Float32Array, Float64Array, Int64Array, LargeStringArray, TimestampMicrosecondArray,
    UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, NullBufferBuilder, OffsetBuffer};

use super::column::{Column, Values};
use super::footer::{Leaf, Logical, Physical, Unit};
use super::page::Result;
use super::texts::Texts;
use crate::property::{PropertyColumn, PropertyType, ZONE};

impl Leaf {
    pub(super) fn is_unsigned(&self) -> bool {
        self.logical == Logical::Unsigned
    }

    /// Whether values are numbers, and can be weights.
    pub(super) fn is_numeric(&self) -> bool {
        let is_number = !matches!(self.physical, Physical::Boolean | Physical::Bytes | Physical::FixedBytes(_));
        match self.logical {
            Logical::Plain | Logical::Unsigned => is_number,
            Logical::Decimal { .. } | Logical::Float16 => true,
            Logical::Text | Logical::Date | Logical::Timestamp(_) => false,
        }
    }

    /// What values are, for messages.
    pub(super) fn kind_name(&self) -> &'static str {
        match (self.logical, self.physical) {
            (Logical::Text, _) => "text",
            (Logical::Unsigned, _) | (Logical::Plain, Physical::Int32 | Physical::Int64) => "whole numbers",
            (Logical::Decimal { .. }, _) => "decimal numbers",
            (Logical::Date, _) => "dates",
            (Logical::Timestamp(_), _) | (_, Physical::Int96) => "timestamps",
            (Logical::Float16, _) | (_, Physical::Float | Physical::Double) => "floating numbers",
            (_, Physical::Boolean) => "booleans",
            (_, Physical::Bytes | Physical::FixedBytes(_)) => "bytes",
        }
    }
}

/// What of the values of a column is lost as a property or weight, in words.
pub(super) fn loss(leaf: &Leaf) -> Option<String> {
    let is_nanos = leaf.logical == Logical::Timestamp(Unit::Nanos);
    match (leaf.logical, leaf.meaning) {
        (Logical::Decimal { .. }, _) if property_type(leaf) == PropertyType::F64 => {
            Some("holds decimal numbers, which are read as f64 and may lose digits".to_owned())
        }
        _ if is_nanos => Some("holds timestamps in nanoseconds, which are cut to microseconds".to_owned()),
        (Logical::Plain, Some(meaning)) => {
            Some(format!("holds {meaning}, which are read as {}", property_type(leaf).name()))
        }
        _ => None,
    }
}

/// The type that the values of a column are as a property: decimal numbers floating ones unless they are whole and fit
/// 64 bits, timestamps to the microsecond.
pub(super) fn property_type(leaf: &Leaf) -> PropertyType {
    match (leaf.logical, leaf.physical) {
        (Logical::Decimal { scale: 0 }, Physical::Int32 | Physical::Int64 | Physical::FixedBytes(..=8)) => {
            PropertyType::I64
        }
        (Logical::Text, _) => PropertyType::String,
        (Logical::Date, _) => PropertyType::Date,
        (Logical::Timestamp(_), _) => PropertyType::Timestamp,
        (Logical::Decimal { .. } | Logical::Float16, _) => PropertyType::F64,
        (_, Physical::Boolean) => PropertyType::Boolean,
        (Logical::Unsigned, Physical::Int64) => PropertyType::U64,
        (_, Physical::Int32 | Physical::Int64 | Physical::Int96) => PropertyType::I64,
        (_, Physical::Float) => PropertyType::F32,
        (_, Physical::Double) => PropertyType::F64,
        (_, Physical::Bytes | Physical::FixedBytes(_)) => PropertyType::Bytes,
    }
}

/// Values that are floating numbers by what they mean: `None` of a row whose bytes are none.
pub(super) fn float_at(leaf: &Leaf, column: &Column, row: usize) -> Option<f64> {
    match (&column.values, leaf.logical) {
        (Values::Floats(values), _) => Some(values[row]),
        (Values::Integers(values), Logical::Decimal { scale }) => Some(values[row] as f64 / 10_f64.powi(scale)),
        (Values::Integers(values), Logical::Unsigned) => Some(values[row] as u64 as f64),
        (Values::Integers(values), _) => Some(values[row] as f64),
        (Values::Texts(texts), Logical::Decimal { scale }) => {
            Some(big_endian(texts.entry(texts.indices[row]))? as f64 / 10_f64.powi(scale))
        }
        (Values::Texts(texts), Logical::Float16) => {
            let bytes = texts.entry(texts.indices[row]).try_into().ok()?;
            Some(half(u16::from_le_bytes(bytes)))
        }
        _ => None,
    }
}

/// A signed number of up to 16 bytes.
pub(super) fn big_endian(bytes: &[u8]) -> Option<i128> {
    let (&first, rest) = bytes.split_first().filter(|_| bytes.len() <= 16)?;
    Some(rest.iter().fold(i128::from(first as i8), |value, &byte| value << 8 | i128::from(byte)))
}

/// A floating number of 16 bits.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// A column of a file as a property.
///
/// # Errors
/// A value does not fit: text that is not UTF-8, or a number or time out of range.
pub(super) fn property(leaf: &Leaf, column: Column) -> Result<PropertyColumn> {
    let num_rows = column.num_rows();
    let wanted = property_type(leaf);
    if wanted == PropertyType::F64 && !matches!(column.values, Values::Floats(_)) {
        let is_valid = |row: usize| column.validity.is_valid(row);
        let floats = (0..num_rows).map(|row| if is_valid(row) { float_at(leaf, &column, row) } else { Some(0.0) });
        let floats: Vec<f64> = floats.collect::<Option<_>>().ok_or("a decimal number has more than 16 bytes")?;
        return Ok(PropertyColumn::new(Float64Array::new(floats.into(), column.validity.build())));
    }
    let Column { values, validity, .. } = column;
    Ok(match values {
        Values::Booleans(values) => {
            let bits = BooleanBuffer::collect_bool(num_rows, |row| values[row] != 0);
            PropertyColumn::new(BooleanArray::new(bits, validity.build()))
        }
        Values::Integers(values) => integers(leaf, wanted, values, validity.build())?,
        // At most eight bytes, which 64 bits hold.
        Values::Texts(texts) if wanted == PropertyType::I64 => {
            let whole = |row: usize| big_endian(texts.entry(texts.indices[row])).unwrap_or(0) as i64;
            let values = (0..num_rows).map(|row| if validity.is_valid(row) { whole(row) } else { 0 }).collect();
            PropertyColumn::new(Int64Array::new(values, validity.build()))
        }
        // They were of 32 bits in the file.
        Values::Floats(values) if wanted == PropertyType::F32 => {
            let values = values.into_iter().map(|value| value as f32).collect();
            PropertyColumn::new(Float32Array::new(values, validity.build()))
        }
        Values::Floats(values) => PropertyColumn::new(Float64Array::new(values.into(), validity.build())),
        Values::Texts(texts) => return pieces(wanted, texts, validity),
    })
}

/// Strings or bytes: strings that the file has by a dictionary stay so, where it is smaller than the rows.
fn pieces(wanted: PropertyType, texts: Texts, validity: NullBufferBuilder) -> Result<PropertyColumn> {
    let is_coded = wanted == PropertyType::String && texts.entries.len() <= texts.indices.len() / 2;
    let (mut offsets, mut bytes) = (vec![0], Vec::new());
    let mut push = |value: &[u8]| {
        bytes.extend_from_slice(value);
        offsets.push(bytes.len() as i64);
    };
    if is_coded {
        (0..texts.entries.len() as u32).for_each(|index| push(texts.entry(index)));
    } else {
        for (row, &index) in texts.indices.iter().enumerate() {
            // The index of a null row may name no entry.
            push(if validity.is_valid(row) { texts.entry(index) } else { &[] });
        }
    }
    let nulls = validity.build();
    let made = match is_coded {
        false => PropertyColumn::from_pieces(wanted, offsets, bytes, nulls),
        true => LargeStringArray::try_new(OffsetBuffer::new(offsets.into()), bytes.into(), None)
            .map_err(|error| crate::Error::Parameter(error.to_string()))
            .and_then(|distinct| PropertyColumn::from_codes(texts.indices, &distinct, nulls)),
    };
    made.map_err(|error| error.to_string())
}

fn integers(leaf: &Leaf, wanted: PropertyType, values: Vec<i64>, nulls: Option<NullBuffer>) -> Result<PropertyColumn> {
    Ok(match (wanted, leaf.logical) {
        (PropertyType::Date, _) => {
            PropertyColumn::new(Date32Array::new(values.into_iter().map(|value| value as i32).collect(), nulls))
        }
        (_, Logical::Timestamp(unit)) => {
            let micros: Vec<i64> = match unit {
                Unit::Micros => values,
                Unit::Nanos => values.into_iter().map(|value| value.div_euclid(1000)).collect(),
                Unit::Millis => {
                    let micros = values.into_iter().map(|value| value.checked_mul(1000));
                    micros.collect::<Option<_>>().ok_or("a timestamp does not fit 64 bits of microseconds")?
                }
            };
            PropertyColumn::new(TimestampMicrosecondArray::new(micros.into(), nulls).with_timezone(ZONE))
        }
        (PropertyType::U64, _) => {
            PropertyColumn::new(UInt64Array::new(values.into_iter().map(|value| value as u64).collect(), nulls))
        }
        _ => PropertyColumn::new(Int64Array::new(values.into(), nulls)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        for (bits, value) in
            [(0, 0.0), (0x3c00, 1.0), (0xc000, -2.0), (0x3555, 0.333_251_953_125), (1, 5.960_464_477_539_063e-8)]
        {
            assert_eq!(half(bits), value);
        }
        assert_eq!(half(0xfc00), f64::NEG_INFINITY);
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn decimals_have_a_sign() {
        assert_eq!(big_endian(&[0xff, 0x85]), Some(-123));
        assert_eq!(big_endian(&[0, 0, 1, 0]), Some(256));
        assert_eq!((big_endian(&[]), big_endian(&[1; 17])), (None, None));
    }
}
