//! The values of one property, one row after the other.

use super::text::{Parsed, expected, parse};
use super::time::MICROS_PER_DAY;
use super::{PropertyType, PropertyValue};
use crate::formats::shown;
use crate::{Error, Result};

const WORD_BITS: usize = u64::BITS as usize;

/// The values of a column without their validity. Rows that are null hold 0, or no bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum PropertyValues {
    /// 0 or 1 a row.
    Boolean(Vec<u8>),
    /// Whole numbers.
    I64(Vec<i64>),
    /// Whole numbers without a sign.
    U64(Vec<u64>),
    /// Floating numbers of 32 bits.
    F32(Vec<f32>),
    /// Floating numbers of 64 bits.
    F64(Vec<f64>),
    /// Days since 1970-01-01.
    Date(Vec<i32>),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Timestamp(Vec<i64>),
    /// Text: row `i` is `bytes[offsets[i]..offsets[i + 1]]`, which is UTF-8.
    String {
        /// One more than there are rows; ascending from 0 to the number of bytes.
        offsets: Vec<u64>,
        /// The text of all rows, one after the other.
        bytes: Vec<u8>,
    },
    /// Bytes, laid out as text is.
    Bytes {
        /// One more than there are rows; ascending from 0 to the number of bytes.
        offsets: Vec<u64>,
        /// The bytes of all rows, one after the other.
        bytes: Vec<u8>,
    },
}

impl PropertyValues {
    /// No rows of a type.
    pub fn new(property_type: PropertyType) -> Self {
        match property_type {
            PropertyType::Boolean => Self::Boolean(Vec::new()),
            PropertyType::I64 => Self::I64(Vec::new()),
            PropertyType::U64 => Self::U64(Vec::new()),
            PropertyType::F32 => Self::F32(Vec::new()),
            PropertyType::F64 => Self::F64(Vec::new()),
            PropertyType::Date => Self::Date(Vec::new()),
            PropertyType::Timestamp => Self::Timestamp(Vec::new()),
            PropertyType::String => Self::String { offsets: vec![0], bytes: Vec::new() },
            PropertyType::Bytes => Self::Bytes { offsets: vec![0], bytes: Vec::new() },
        }
    }

    /// The type.
    pub fn property_type(&self) -> PropertyType {
        match self {
            Self::Boolean(_) => PropertyType::Boolean,
            Self::I64(_) => PropertyType::I64,
            Self::U64(_) => PropertyType::U64,
            Self::F32(_) => PropertyType::F32,
            Self::F64(_) => PropertyType::F64,
            Self::Date(_) => PropertyType::Date,
            Self::Timestamp(_) => PropertyType::Timestamp,
            Self::String { .. } => PropertyType::String,
            Self::Bytes { .. } => PropertyType::Bytes,
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Boolean(values) => values.len(),
            Self::I64(values) | Self::Timestamp(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Date(values) => values.len(),
            Self::String { offsets, .. } | Self::Bytes { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn num_bytes(&self) -> usize {
        match self {
            Self::Boolean(values) => values.len(),
            Self::I64(values) | Self::Timestamp(values) => 8 * values.len(),
            Self::U64(values) => 8 * values.len(),
            Self::F32(values) => 4 * values.len(),
            Self::F64(values) => 8 * values.len(),
            Self::Date(values) => 4 * values.len(),
            Self::String { offsets, bytes } | Self::Bytes { offsets, bytes } => 8 * offsets.len() + bytes.len(),
        }
    }

    /// Makes room for rows.
    fn reserve(&mut self, num_rows: usize) {
        match self {
            Self::Boolean(values) => values.reserve_exact(num_rows),
            Self::I64(values) | Self::Timestamp(values) => values.reserve_exact(num_rows),
            Self::U64(values) => values.reserve_exact(num_rows),
            Self::F32(values) => values.reserve_exact(num_rows),
            Self::F64(values) => values.reserve_exact(num_rows),
            Self::Date(values) => values.reserve_exact(num_rows),
            Self::String { offsets, .. } | Self::Bytes { offsets, .. } => offsets.reserve_exact(num_rows),
        }
    }

    /// Pushes what a row without a value holds.
    fn push_nothing(&mut self) {
        match self {
            Self::Boolean(values) => values.push(0),
            Self::I64(values) | Self::Timestamp(values) => values.push(0),
            Self::U64(values) => values.push(0),
            Self::F32(values) => values.push(0.0),
            Self::F64(values) => values.push(0.0),
            Self::Date(values) => values.push(0),
            Self::String { offsets, bytes } | Self::Bytes { offsets, bytes } => offsets.push(bytes.len() as u64),
        }
    }

    /// What is wrong with these values, if anything.
    fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Boolean(values) if values.iter().any(|&value| value > 1) => Some("a boolean is neither 0 nor 1"),
            Self::String { offsets, bytes } | Self::Bytes { offsets, bytes } => {
                let ascend = offsets.first() == Some(&0) && offsets.is_sorted();
                if !ascend || offsets.last() != Some(&(bytes.len() as u64)) {
                    return Some("offsets do not ascend from 0 to the number of bytes");
                }
                let is_text = || {
                    let whole = std::str::from_utf8(bytes).ok()?;
                    offsets.iter().all(|&at| whole.is_char_boundary(at as usize)).then_some(())
                };
                match self {
                    Self::String { .. } if is_text().is_none() => Some("a string is not UTF-8"),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The values of one property by row: those of the edges or the vertices that it came with.
///
/// Cost: 1 to 8 bytes a row, the bytes of text, and a bit a row where there are nulls.
#[derive(Clone, Debug)]
pub struct PropertyColumn {
    values: PropertyValues,
    /// A bit for each row that has a value; empty where all have one.
    validity: Vec<u64>,
}

impl PropertyColumn {
    /// A column without rows.
    pub fn new(property_type: PropertyType) -> Self {
        Self { values: PropertyValues::new(property_type), validity: Vec::new() }
    }

    /// A column of `num_rows` nulls.
    pub fn nulls(property_type: PropertyType, num_rows: usize) -> Self {
        let mut column = Self::new(property_type);
        column.push_nulls(num_rows);
        column
    }

    /// A column of whole vectors. `validity` has a bit for each row with a value, from the lowest
    /// bit of the first word on; `None`: all have one. What null rows hold is of no matter.
    ///
    /// # Errors
    /// The validity has too few bits, offsets do not ascend, or a string is not UTF-8.
    pub fn from_values(values: PropertyValues, validity: Option<Vec<u64>>) -> Result<Self> {
        let wrong = |what: &str| Err(Error::Parameter(format!("a column of type {}: {what}", values.property_type())));
        if let Some(fault) = values.fault() {
            return wrong(fault);
        }
        let num_rows = values.len();
        let mut validity = validity.unwrap_or_else(|| vec![u64::MAX; num_rows.div_ceil(WORD_BITS)]);
        if validity.len() < num_rows.div_ceil(WORD_BITS) {
            return wrong("validity has fewer bits than there are rows");
        }
        validity.truncate(num_rows.div_ceil(WORD_BITS));
        // Bits past the end are zeros, so that counting them needs no care.
        if let (Some(last), used @ 1..) = (validity.last_mut(), num_rows % WORD_BITS) {
            *last &= (1 << used) - 1;
        }
        let mut column = Self { values, validity };
        if column.num_nulls() == 0 {
            column.validity.clear();
        }
        Ok(column)
    }

    /// The type.
    pub fn property_type(&self) -> PropertyType {
        self.values.property_type()
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether a row has no value.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn is_null(&self, row: usize) -> bool {
        assert!(row < self.len(), "row {row} of {}", self.len());
        !self.validity.is_empty() && self.validity[row / WORD_BITS] & 1 << (row % WORD_BITS) == 0
    }

    /// Rows without a value.
    pub fn num_nulls(&self) -> usize {
        match self.validity.is_empty() {
            true => 0,
            false => self.len() - self.validity.iter().map(|word| word.count_ones() as usize).sum::<usize>(),
        }
    }

    /// Bytes of memory, about.
    pub fn num_bytes(&self) -> usize {
        self.values.num_bytes() + 8 * self.validity.len()
    }

    /// The value of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn get(&self, row: usize) -> PropertyValue<'_> {
        if self.is_null(row) {
            return PropertyValue::Null;
        }
        let piece = |offsets: &[u64]| offsets[row] as usize..offsets[row + 1] as usize;
        match &self.values {
            PropertyValues::Boolean(values) => PropertyValue::Boolean(values[row] != 0),
            PropertyValues::I64(values) => PropertyValue::I64(values[row]),
            PropertyValues::U64(values) => PropertyValue::U64(values[row]),
            PropertyValues::F32(values) => PropertyValue::F32(values[row]),
            PropertyValues::F64(values) => PropertyValue::F64(values[row]),
            PropertyValues::Date(values) => PropertyValue::Date(values[row]),
            PropertyValues::Timestamp(values) => PropertyValue::Timestamp(values[row]),
            PropertyValues::String { offsets, bytes } => {
                // Every way in checks the text; what could not be shown is shown as nothing.
                PropertyValue::String(std::str::from_utf8(&bytes[piece(offsets)]).unwrap_or_default())
            }
            PropertyValues::Bytes { offsets, bytes } => PropertyValue::Bytes(&bytes[piece(offsets)]),
        }
    }

    /// All values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PropertyValue<'_>> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// The values without their validity.
    pub fn values(&self) -> &PropertyValues {
        &self.values
    }

    /// A bit for each row that has a value, from the lowest bit of the first word on; `None` where
    /// all have one.
    pub fn validity(&self) -> Option<&[u64]> {
        if self.validity.is_empty() { None } else { Some(&self.validity) }
    }

    /// The whole numbers of a column of such, nulls as 0.
    pub fn as_i64(&self) -> Option<&[i64]> {
        if let PropertyValues::I64(values) = &self.values { Some(values) } else { None }
    }

    /// The floating numbers of a column of such, nulls as 0.
    pub fn as_f64(&self) -> Option<&[f64]> {
        if let PropertyValues::F64(values) = &self.values { Some(values) } else { None }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// The value is of another type.
    pub fn push(&mut self, value: PropertyValue<'_>) -> Result<()> {
        match (&mut self.values, value) {
            (_, PropertyValue::Null) => {
                self.push_nulls(1);
                return Ok(());
            }
            (PropertyValues::Boolean(values), PropertyValue::Boolean(value)) => values.push(value.into()),
            (PropertyValues::I64(values), PropertyValue::I64(value))
            | (PropertyValues::Timestamp(values), PropertyValue::Timestamp(value)) => values.push(value),
            (PropertyValues::U64(values), PropertyValue::U64(value)) => values.push(value),
            (PropertyValues::F32(values), PropertyValue::F32(value)) => values.push(value),
            (PropertyValues::F64(values), PropertyValue::F64(value)) => values.push(value),
            (PropertyValues::Date(values), PropertyValue::Date(value)) => values.push(value),
            (PropertyValues::String { offsets, bytes }, PropertyValue::String(value)) => {
                bytes.extend_from_slice(value.as_bytes());
                offsets.push(bytes.len() as u64);
            }
            (PropertyValues::Bytes { offsets, bytes }, PropertyValue::Bytes(value)) => {
                bytes.extend_from_slice(value);
                offsets.push(bytes.len() as u64);
            }
            (values, value) => {
                let found = value.property_type().map_or("null", PropertyType::name);
                let what = format!("expected a value of type {}, found one of type {found}", values.property_type());
                return Err(Error::Parameter(what));
            }
        }
        self.mark_last(true);
        Ok(())
    }

    /// Appends rows without a value.
    pub fn push_nulls(&mut self, num_rows: usize) {
        for _ in 0..num_rows {
            self.values.push_nothing();
            self.mark_last(false);
        }
    }

    /// Appends a row that is given as text, which is not null.
    ///
    /// # Errors
    /// What was expected and what was found, where the text is no value of the type.
    pub fn push_text(&mut self, text: &[u8]) -> Result<(), String> {
        let property_type = self.property_type();
        let pushed = match parse(text, property_type) {
            Some(Parsed::Value(value)) => self.push(value),
            Some(Parsed::Decoded(bytes)) => self.push(PropertyValue::Bytes(&bytes)),
            None => return Err(format!("expected {}, found {}", expected(property_type), shown(text))),
        };
        pushed.map_err(|error| error.to_string())
    }

    /// Takes note of whether the row that was pushed last has a value.
    fn mark_last(&mut self, has_value: bool) {
        let row = self.len() - 1;
        if self.validity.is_empty() {
            if has_value {
                return;
            }
            self.validity = vec![u64::MAX; row / WORD_BITS];
            self.validity.push((1 << (row % WORD_BITS)) - 1);
            return;
        }
        if row / WORD_BITS == self.validity.len() {
            self.validity.push(0);
        }
        self.validity[row / WORD_BITS] |= u64::from(has_value) << (row % WORD_BITS);
    }

    /// Leaves the first `num_rows` rows.
    pub fn truncate(&mut self, num_rows: usize) {
        if num_rows >= self.len() {
            return;
        }
        match &mut self.values {
            PropertyValues::Boolean(values) => values.truncate(num_rows),
            PropertyValues::I64(values) | PropertyValues::Timestamp(values) => values.truncate(num_rows),
            PropertyValues::U64(values) => values.truncate(num_rows),
            PropertyValues::F32(values) => values.truncate(num_rows),
            PropertyValues::F64(values) => values.truncate(num_rows),
            PropertyValues::Date(values) => values.truncate(num_rows),
            PropertyValues::String { offsets, bytes } | PropertyValues::Bytes { offsets, bytes } => {
                offsets.truncate(num_rows + 1);
                bytes.truncate(offsets[num_rows] as usize);
            }
        }
        if !self.validity.is_empty() {
            self.validity.truncate(num_rows.div_ceil(WORD_BITS));
            if let (Some(last), used @ 1..) = (self.validity.last_mut(), num_rows % WORD_BITS) {
                *last &= (1 << used) - 1;
            }
        }
    }

    /// Appends all rows of another column.
    ///
    /// # Errors
    /// That one is of another type.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        let start = self.len();
        match (&mut self.values, &other.values) {
            (PropertyValues::Boolean(to), PropertyValues::Boolean(from)) => to.extend_from_slice(from),
            (PropertyValues::I64(to), PropertyValues::I64(from))
            | (PropertyValues::Timestamp(to), PropertyValues::Timestamp(from)) => to.extend_from_slice(from),
            (PropertyValues::U64(to), PropertyValues::U64(from)) => to.extend_from_slice(from),
            (PropertyValues::F32(to), PropertyValues::F32(from)) => to.extend_from_slice(from),
            (PropertyValues::F64(to), PropertyValues::F64(from)) => to.extend_from_slice(from),
            (PropertyValues::Date(to), PropertyValues::Date(from)) => to.extend_from_slice(from),
            (
                PropertyValues::String { offsets, bytes },
                PropertyValues::String { offsets: from_offsets, bytes: from },
            )
            | (
                PropertyValues::Bytes { offsets, bytes },
                PropertyValues::Bytes { offsets: from_offsets, bytes: from },
            ) => {
                let shift = bytes.len() as u64;
                offsets.extend(from_offsets[1..].iter().map(|offset| offset + shift));
                bytes.extend_from_slice(from);
            }
            (to, from) => {
                let (to, from) = (to.property_type(), from.property_type());
                let what = format!("a column of type {from} cannot be appended to one of type {to}");
                return Err(Error::Parameter(what));
            }
        }
        self.append_validity(start, other);
        Ok(())
    }

    fn append_validity(&mut self, start: usize, other: &Self) {
        let end = self.len();
        if self.validity.is_empty() {
            if other.validity.is_empty() {
                return;
            }
            self.validity = vec![u64::MAX; start.div_ceil(WORD_BITS)];
            if let (Some(last), used @ 1..) = (self.validity.last_mut(), start % WORD_BITS) {
                *last = (1 << used) - 1;
            }
        }
        self.validity.resize(end.div_ceil(WORD_BITS), 0);
        let shift = start % WORD_BITS;
        for (i, from) in (0..other.len()).step_by(WORD_BITS).enumerate() {
            let used = (other.len() - from).min(WORD_BITS);
            let all = if used == WORD_BITS { u64::MAX } else { (1 << used) - 1 };
            let word = other.validity.get(i).copied().unwrap_or(all);
            let place = start / WORD_BITS + i;
            self.validity[place] |= word << shift;
            if shift > 0 && shift + used > WORD_BITS {
                self.validity[place + 1] |= word >> (WORD_BITS - shift);
            }
        }
    }

    /// The rows of these numbers, in this order.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn gather(&self, rows: &[u32]) -> Self {
        fn picked<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|&row| values[row as usize]).collect()
        }
        let pieces = |offsets: &[u64], bytes: &[u8]| {
            let mut to = (Vec::with_capacity(rows.len() + 1), Vec::new());
            to.0.push(0);
            for &row in rows {
                to.1.extend_from_slice(&bytes[offsets[row as usize] as usize..offsets[row as usize + 1] as usize]);
                to.0.push(to.1.len() as u64);
            }
            to
        };
        let values = match &self.values {
            PropertyValues::Boolean(values) => PropertyValues::Boolean(picked(values, rows)),
            PropertyValues::I64(values) => PropertyValues::I64(picked(values, rows)),
            PropertyValues::U64(values) => PropertyValues::U64(picked(values, rows)),
            PropertyValues::F32(values) => PropertyValues::F32(picked(values, rows)),
            PropertyValues::F64(values) => PropertyValues::F64(picked(values, rows)),
            PropertyValues::Date(values) => PropertyValues::Date(picked(values, rows)),
            PropertyValues::Timestamp(values) => PropertyValues::Timestamp(picked(values, rows)),
            PropertyValues::String { offsets, bytes } => {
                let (offsets, bytes) = pieces(offsets, bytes);
                PropertyValues::String { offsets, bytes }
            }
            PropertyValues::Bytes { offsets, bytes } => {
                let (offsets, bytes) = pieces(offsets, bytes);
                PropertyValues::Bytes { offsets, bytes }
            }
        };
        let mut validity = Vec::new();
        if !self.validity.is_empty() {
            let bit = |row: &u32| u64::from(!self.is_null(*row as usize));
            let word = |rows: &[u32]| rows.iter().rev().fold(0, |word, row| word << 1 | bit(row));
            validity = rows.chunks(WORD_BITS).map(word).collect();
        }
        let mut gathered = Self { values, validity };
        if gathered.num_nulls() == 0 {
            gathered.validity.clear();
        }
        gathered
    }

    /// As [`gather`](Self::gather); a row that this column has not is null.
    pub fn gather_or_null(&self, rows: &[u32]) -> Self {
        let mut gathered = Self::new(self.property_type());
        gathered.values.reserve(rows.len());
        for &row in rows {
            let value = if (row as usize) < self.len() { self.get(row as usize) } else { PropertyValue::Null };
            // A column takes its own values.
            let _ = gathered.push(value);
        }
        gathered
    }

    /// The same values as another type that holds them: whole numbers with or without a sign, or as floating ones,
    /// floating ones of 32 bits as such of 64 and back, to the nearest; dates as the timestamps of their midnights.
    ///
    /// # Errors
    /// The other type does not hold one of the values, which is named.
    pub fn converted(self, to: PropertyType) -> Result<Self> {
        let from = self.property_type();
        let wrong =
            |value: PropertyValue<'_>| Error::Parameter(format!("{value} of type {from} is no value of type {to}"));
        let values = match (self.values, to) {
            (values, to) if values.property_type() == to => values,
            (PropertyValues::I64(values), PropertyType::F64 | PropertyType::F32) => {
                let most = if to == PropertyType::F64 { 1 << 53 } else { 1 << 24 };
                if let Some(&large) = values.iter().find(|value| value.unsigned_abs() > most) {
                    return Err(wrong(PropertyValue::I64(large)));
                }
                match to {
                    PropertyType::F64 => PropertyValues::F64(values.into_iter().map(|value| value as f64).collect()),
                    _ => PropertyValues::F32(values.into_iter().map(|value| value as f32).collect()),
                }
            }
            (PropertyValues::U64(values), PropertyType::F64 | PropertyType::F32) => {
                let most = if to == PropertyType::F64 { 1 << 53 } else { 1 << 24 };
                if let Some(&large) = values.iter().find(|&&value| value > most) {
                    return Err(wrong(PropertyValue::U64(large)));
                }
                match to {
                    PropertyType::F64 => PropertyValues::F64(values.into_iter().map(|value| value as f64).collect()),
                    _ => PropertyValues::F32(values.into_iter().map(|value| value as f32).collect()),
                }
            }
            (PropertyValues::I64(values), PropertyType::U64) => {
                let whole = |&value: &i64| u64::try_from(value).map_err(|_| wrong(PropertyValue::I64(value)));
                PropertyValues::U64(values.iter().map(whole).collect::<Result<_>>()?)
            }
            (PropertyValues::U64(values), PropertyType::I64) => {
                let signed = |&value: &u64| i64::try_from(value).map_err(|_| wrong(PropertyValue::U64(value)));
                PropertyValues::I64(values.iter().map(signed).collect::<Result<_>>()?)
            }
            (PropertyValues::F32(values), PropertyType::F64) => {
                PropertyValues::F64(values.into_iter().map(f64::from).collect())
            }
            (PropertyValues::F64(values), PropertyType::F32) => {
                let nearest = |&value: &f64| match value as f32 {
                    nearest if nearest.is_finite() || !value.is_finite() => Ok(nearest),
                    _ => Err(wrong(PropertyValue::F64(value))),
                };
                PropertyValues::F32(values.iter().map(nearest).collect::<Result<_>>()?)
            }
            (PropertyValues::Date(values), PropertyType::Timestamp) => {
                let micros = |&day: &i32| {
                    i64::from(day).checked_mul(MICROS_PER_DAY).ok_or_else(|| wrong(PropertyValue::Date(day)))
                };
                PropertyValues::Timestamp(values.iter().map(micros).collect::<Result<_>>()?)
            }
            _ => return Err(Error::Parameter(format!("values of type {from} cannot become values of type {to}"))),
        };
        Ok(Self { values, validity: self.validity })
    }
}

/// Columns are equal if their types and the values of all rows are.
impl PartialEq for PropertyColumn {
    fn eq(&self, other: &Self) -> bool {
        self.property_type() == other.property_type() && self.len() == other.len() && self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column of `len` rows in which every row whose number `is_null` says is null.
    fn column(property_type: PropertyType, len: usize, is_null: impl Fn(usize) -> bool) -> PropertyColumn {
        let mut column = PropertyColumn::new(property_type);
        for row in 0..len {
            let text = format!("text {row}");
            let value = match property_type {
                _ if is_null(row) => PropertyValue::Null,
                PropertyType::Boolean => PropertyValue::Boolean(row % 3 == 0),
                PropertyType::I64 => PropertyValue::I64(row as i64 - 7),
                PropertyType::U64 => PropertyValue::U64(u64::MAX - row as u64),
                PropertyType::F32 => PropertyValue::F32(row as f32 / 8.0),
                PropertyType::F64 => PropertyValue::F64(row as f64 / 8.0),
                PropertyType::Date => PropertyValue::Date(row as i32 * 31),
                PropertyType::Timestamp => PropertyValue::Timestamp(row as i64 * 1_000_007),
                PropertyType::String => PropertyValue::String(&text),
                PropertyType::Bytes => PropertyValue::Bytes(&text.as_bytes()[row % 5..]),
            };
            column.push(value).unwrap();
        }
        column
    }

    #[test]
    fn rows_are_pushed_appended_gathered_and_cut() {
        for (property_type, _) in PropertyType::ALL {
            for len in [0, 1, 63, 64, 65, 200] {
                for every in [usize::MAX, 1, 3, 64] {
                    let is_null = |row: usize| row % every == every - 1;
                    let whole = column(property_type, len, is_null);
                    assert_eq!(whole.num_nulls(), (0..len).filter(|&row| is_null(row)).count());
                    for cut in [0, 1, 5, 63, 64, 65, 130] {
                        let mut first = whole.clone();
                        first.truncate(cut);
                        assert_eq!(first.len(), cut.min(len));
                        let rest: Vec<u32> = (cut.min(len) as u32..len as u32).collect();
                        let rest = whole.gather(&rest);
                        assert!(rest.len() + first.len() == len);
                        first.append(&rest).unwrap();
                        assert_eq!(first, whole, "{property_type} {len} {every} {cut}");
                        assert_eq!(first.num_nulls(), whole.num_nulls());
                        first.push(PropertyValue::Null).unwrap();
                        assert!(first.is_null(len));
                    }
                    let values = whole.values().clone();
                    let same = PropertyColumn::from_values(values, whole.validity().map(<[u64]>::to_vec));
                    assert_eq!(same.unwrap(), whole);
                }
            }
        }
    }

    #[test]
    fn values_of_another_type_are_refused() {
        let mut numbers = column(PropertyType::I64, 3, |_| false);
        let error = numbers.push(PropertyValue::String("4")).unwrap_err().to_string();
        assert_eq!(error, "expected a value of type i64, found one of type string");
        let error = numbers.push_text(b"x\x1b").unwrap_err();
        assert_eq!(error, r"expected a whole number of type i64, found 'x\u{1b}'");
        let error = numbers.append(&column(PropertyType::Date, 1, |_| false)).unwrap_err().to_string();
        assert_eq!(error, "a column of type date cannot be appended to one of type i64");
        assert_eq!(numbers, column(PropertyType::I64, 3, |_| false));
        let mut bytes = PropertyColumn::new(PropertyType::Bytes);
        bytes.push_text(b"0xFF00").unwrap();
        assert_eq!(bytes.get(0), PropertyValue::Bytes(&[255, 0]));
    }

    #[test]
    fn whole_vectors_are_looked_at() {
        let text = |offsets: &[u64], bytes: &[u8]| {
            let values = PropertyValues::String { offsets: offsets.to_vec(), bytes: bytes.to_vec() };
            PropertyColumn::from_values(values, None)
        };
        assert_eq!(text(&[0, 2, 2], "ü".as_bytes()).unwrap().get(0), PropertyValue::String("ü"));
        for (offsets, bytes) in [
            (&[][..], &b""[..]),
            (&[1, 1], b"x"),
            (&[0, 2, 1], b"x"),
            (&[0, 1], b"xy"),
            (&[0, 1], b"\xff"),
            (&[0, 1, 2], "ü".as_bytes()),
        ] {
            assert!(text(offsets, bytes).is_err(), "{offsets:?} {bytes:?}");
        }
        assert!(PropertyColumn::from_values(PropertyValues::Boolean(vec![2]), None).is_err());
        assert!(PropertyColumn::from_values(PropertyValues::I64(vec![1; 65]), Some(vec![1])).is_err());
        let column = PropertyColumn::from_values(PropertyValues::I64(vec![1, 2]), Some(vec![u64::MAX - 1, 7]));
        assert_eq!(column.unwrap().iter().collect::<Vec<_>>(), [PropertyValue::Null, PropertyValue::I64(2)]);
    }

    #[test]
    fn wider_types_take_the_values_over() {
        let converted = column(PropertyType::I64, 9, |row| row == 4).converted(PropertyType::F64).unwrap();
        assert_eq!((converted.get(0), converted.get(4)), (PropertyValue::F64(-7.0), PropertyValue::Null));
        let mut large = PropertyColumn::new(PropertyType::I64);
        large.push(PropertyValue::I64((1 << 53) + 1)).unwrap();
        let error = large.converted(PropertyType::F64).unwrap_err().to_string();
        assert_eq!(error, "9007199254740993 of type i64 is no value of type f64");
        let days = column(PropertyType::Date, 2, |_| false).converted(PropertyType::Timestamp).unwrap();
        assert_eq!(days.get(1).to_string(), "1970-02-01T00:00:00Z");
        assert!(column(PropertyType::String, 1, |_| false).converted(PropertyType::I64).is_err());
    }

    /// `converts_to` says beforehand, by the types alone, what `converted` does where every value fits.
    #[test]
    fn types_convert_as_their_columns_do() {
        for (from, _) in PropertyType::ALL {
            for (to, _) in PropertyType::ALL {
                let converted = PropertyColumn::nulls(from, 3).converted(to);
                assert_eq!(converted.is_ok(), from.converts_to(to), "{from} to {to}");
                assert!(converted.is_err() || converted.is_ok_and(|column| column.property_type() == to));
            }
        }
        for (value, to, expected) in [
            (PropertyValue::U64(7), PropertyType::I64, Some(PropertyValue::I64(7))),
            (PropertyValue::I64(-7), PropertyType::U64, None),
            (PropertyValue::U64(u64::MAX), PropertyType::I64, None),
            (PropertyValue::U64(1 << 24), PropertyType::F32, Some(PropertyValue::F32(16_777_216.0))),
            (PropertyValue::F64(0.1), PropertyType::F32, Some(PropertyValue::F32(0.1))),
            (PropertyValue::F64(1e39), PropertyType::F32, None),
            (PropertyValue::F64(f64::INFINITY), PropertyType::F32, Some(PropertyValue::F32(f32::INFINITY))),
        ] {
            let mut column = PropertyColumn::new(value.property_type().unwrap());
            column.push(value).unwrap();
            let converted = column.converted(to).ok();
            assert_eq!(converted.as_ref().map(|column| column.get(0)), expected, "{value} to {to}");
        }
    }
}
