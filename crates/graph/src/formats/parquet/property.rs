//! Columns of a file as properties.

use super::column::{Column, Values};
use super::footer::{Leaf, Logical, Physical, Unit};
use super::page::Result;
use crate::property::{PropertyColumn, PropertyType, PropertyValues};

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
    let validity = column.validity.words().map(<[u64]>::to_vec);
    let num_rows = column.num_rows();
    let wanted = property_type(leaf);
    let values = match column.values {
        Values::Booleans(values) => PropertyValues::Boolean(values),
        _ if wanted == PropertyType::F64 => {
            let is_valid = |row: usize| column.validity.is_valid(row);
            let floats = (0..num_rows).map(|row| if is_valid(row) { float_at(leaf, &column, row) } else { Some(0.0) });
            PropertyValues::F64(floats.collect::<Option<_>>().ok_or("a decimal number has more than 16 bytes")?)
        }
        Values::Integers(values) => integers(leaf, wanted, values)?,
        // At most eight bytes, which 64 bits hold.
        Values::Texts(texts) if wanted == PropertyType::I64 => {
            let is_valid = |row: usize| column.validity.is_valid(row);
            let whole = |row: usize| big_endian(texts.entry(texts.indices[row])).unwrap_or(0) as i64;
            PropertyValues::I64((0..num_rows).map(|row| if is_valid(row) { whole(row) } else { 0 }).collect())
        }
        // They were of 32 bits in the file.
        Values::Floats(values) if wanted == PropertyType::F32 => {
            PropertyValues::F32(values.into_iter().map(|value| value as f32).collect())
        }
        Values::Floats(values) => PropertyValues::F64(values),
        Values::Texts(texts) => {
            let mut offsets = Vec::with_capacity(num_rows + 1);
            offsets.push(0);
            let mut bytes = Vec::new();
            for (row, &index) in texts.indices.iter().enumerate() {
                // The index of a null row may name no entry.
                if column.validity.is_valid(row) {
                    bytes.extend_from_slice(texts.entry(index));
                }
                offsets.push(bytes.len() as u64);
            }
            match wanted {
                PropertyType::String => PropertyValues::String { offsets, bytes },
                _ => PropertyValues::Bytes { offsets, bytes },
            }
        }
    };
    PropertyColumn::from_values(values, validity).map_err(|error| error.to_string())
}

fn integers(leaf: &Leaf, wanted: PropertyType, values: Vec<i64>) -> Result<PropertyValues> {
    Ok(match (wanted, leaf.logical) {
        (PropertyType::Date, _) => PropertyValues::Date(values.into_iter().map(|value| value as i32).collect()),
        (_, Logical::Timestamp(unit)) => PropertyValues::Timestamp(match unit {
            Unit::Micros => values,
            Unit::Nanos => values.into_iter().map(|value| value.div_euclid(1000)).collect(),
            Unit::Millis => {
                let micros = values.into_iter().map(|value| value.checked_mul(1000));
                micros.collect::<Option<_>>().ok_or("a timestamp does not fit 64 bits of microseconds")?
            }
        }),
        (PropertyType::U64, _) => PropertyValues::U64(values.into_iter().map(|value| value as u64).collect()),
        _ => PropertyValues::I64(values),
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
