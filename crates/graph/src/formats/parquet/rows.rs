//! Rows of a file as edges and vertices.

use super::column::{Column, Values};
use super::footer::{Leaf, Logical};
use super::layout::RowLayout;
use super::property::{big_endian, float_at, property};
use super::{ParquetFile, RowRange};
use crate::formats::key::FieldKey;
use crate::formats::lines::Parsed;
use crate::formats::number::weight_range;
use crate::formats::options::OnError;
use crate::formats::{push_u64, shown};
use crate::{Error, Result, Weight, WeightType};

/// Reads rows; the text of their keys is in `extra`.
///
/// # Errors
/// The file cannot be read, or is damaged. What is wrong in a row is a fault, whose line is the row.
pub(in crate::formats) fn read_rows<K: FieldKey, W: Weight>(
    file: &ParquetFile,
    layout: &RowLayout,
    range: &RowRange,
    on_error: OnError,
) -> Result<Parsed<K, W>> {
    let mut parsed = Parsed::new(range.len(), on_error);
    let num_rows = range.len() as usize;
    let source = KeyColumn::<K>::read(file, layout.source, range, &mut parsed.extra)?;
    let target =
        layout.target.map(|target| KeyColumn::<K>::read(file, target, range, &mut parsed.extra)).transpose()?;
    let weight = layout.weight.map(|weight| read_column(file, weight, range)).transpose()?;
    let weight = layout.weight.map(|weight| &file.leaves()[weight]).zip(weight);
    let mut properties = Vec::with_capacity(layout.properties.len());
    for &place in &layout.properties {
        let column = read_column(file, place, range)?;
        let made = property(&file.leaves()[place], column);
        properties.push(made.map_err(|what| in_column(file, place, what))?);
    }
    let (mut kept, mut has_faults) = (Vec::<u32>::new(), false);
    if target.is_some() {
        parsed.edges.reserve_exact(num_rows)
    } else {
        parsed.vertices.reserve_exact(num_rows)
    }
    for row in 0..num_rows {
        let read = || -> std::result::Result<_, String> {
            let first =
                source.get(row).ok_or_else(|| source.fault(row, if target.is_some() { "source" } else { "vertex" }))?;
            let second = match &target {
                Some(target) => Some(target.get(row).ok_or_else(|| target.fault(row, "target"))?),
                None => None,
            };
            let weight = match &weight {
                Some((leaf, column)) => Some(weight_at::<W>(leaf, column, row)?),
                None => None,
            };
            Ok((first, second, weight))
        };
        match read() {
            Ok((first, second, weight)) => {
                match second {
                    Some(second) => parsed.edges.push((first, second)),
                    None => parsed.vertices.push(first),
                }
                parsed.weights.extend(weight);
                if has_faults {
                    kept.push(row as u32);
                }
            }
            Err(what) => {
                if !has_faults {
                    has_faults = true;
                    kept.extend(0..row as u32);
                }
                if parsed.faults.note_at(row as u64, what) {
                    break;
                }
            }
        }
    }
    if has_faults {
        properties = properties.iter().map(|column| column.gather(&kept)).collect();
    }
    match target {
        Some(_) => parsed.properties = properties,
        None => parsed.vertex_properties = properties,
    }
    Ok(parsed)
}

/// The bytes of a file that the rows of a range stand for, in all columns that are read.
pub(in crate::formats) fn bytes_of(file: &ParquetFile, layout: &RowLayout, range: &RowRange) -> u64 {
    let group = &file.footer.groups[range.group];
    let num_bytes: u64 = layout.all().map(|place| group.chunks[place].num_bytes).sum();
    (num_bytes as f64 * range.len() as f64 / group.num_rows.max(1) as f64) as u64
}

fn read_column(file: &ParquetFile, place: usize, range: &RowRange) -> Result<Column> {
    let group = &file.footer.groups[range.group];
    let column = Column::read(&file.file, &file.leaves()[place], &group.chunks[place], group.num_rows, &range.rows);
    column.map_err(|what| in_column(file, place, format!("row group {}: {what}", range.group)))
}

fn in_column(file: &ParquetFile, place: usize, what: String) -> Error {
    let name = shown(file.leaves()[place].name.as_bytes());
    Error::Input { path: file.path.clone(), what: format!("column {name}: {what}") }
}

/// Keys by row.
struct KeyColumn<K> {
    column: Column,
    is_unsigned: bool,
    /// Whether its bytes are those of decimal numbers.
    is_decimal: bool,
    /// The keys of the entries of a column of bytes, or of the rows of a column of numbers that are
    /// text here.
    entries: Vec<Option<K>>,
}

impl<K: FieldKey> KeyColumn<K> {
    fn read(file: &ParquetFile, place: usize, range: &RowRange, text: &mut Vec<u8>) -> Result<Self> {
        let column = read_column(file, place, range)?;
        let leaf = &file.leaves()[place];
        let is_unsigned = leaf.logical == Logical::Unsigned;
        let is_decimal = matches!(leaf.logical, Logical::Decimal { .. });
        let mut keys = Self { column, is_unsigned, is_decimal, entries: Vec::new() };
        match &mut keys.column.values {
            Values::Texts(texts) if is_decimal => {
                let mut key = |index: u32| {
                    let number = big_endian(texts.entry(index))?;
                    match K::from_digits(0) {
                        Some(_) => u64::try_from(number).ok().and_then(K::from_digits),
                        None => K::from_owned(number.to_string().as_bytes(), 0, text),
                    }
                };
                keys.entries = (0..texts.entries.len() as u32).map(&mut key).collect();
            }
            Values::Texts(texts) => {
                // The text of the column follows that of the one before it.
                let base = text.len();
                text.append(&mut texts.bytes);
                let places = texts.entries.iter();
                keys.entries =
                    places.map(|&(start, len)| K::from_text(text, base + start as usize, len as usize)).collect();
            }
            Values::Integers(values) if K::from_digits(0).is_none() => {
                let mut digits = Vec::with_capacity(20);
                for &value in &*values {
                    digits.clear();
                    match value {
                        0.. => push_u64(&mut digits, value as u64),
                        _ if is_unsigned => push_u64(&mut digits, value as u64),
                        _ => digits.extend(value.to_string().into_bytes()),
                    }
                    keys.entries.push(K::from_owned(&digits, 0, text));
                }
            }
            _ => {}
        }
        Ok(keys)
    }

    #[inline(always)]
    fn get(&self, row: usize) -> Option<K> {
        if !self.column.validity.is_valid(row) {
            return None;
        }
        match &self.column.values {
            Values::Integers(values) if self.entries.is_empty() => {
                if values[row] >= 0 || self.is_unsigned {
                    K::from_digits(values[row] as u64)
                } else {
                    None
                }
            }
            Values::Integers(_) => self.entries[row],
            Values::Texts(texts) => self.entries[texts.indices[row] as usize],
            _ => None,
        }
    }

    /// What is wrong with the key of a row.
    #[cold]
    fn fault(&self, row: usize, name: &str) -> String {
        let found = match &self.column.values {
            _ if !self.column.validity.is_valid(row) => "null".to_owned(),
            Values::Integers(values) => values[row].to_string(),
            Values::Texts(texts) if self.is_decimal => {
                let number = big_endian(texts.entry(texts.indices[row]));
                number.map_or("a number of more than 16 bytes".to_owned(), |number| number.to_string())
            }
            _ => "other bytes".to_owned(),
        };
        format!("expected a {name}, {}, found {found}", K::RANGE)
    }
}

/// The weight of a row.
#[inline]
fn weight_at<W: Weight>(leaf: &Leaf, column: &Column, row: usize) -> std::result::Result<W, String> {
    let wrong = |found: String| format!("expected {}, found {found}", weight_range(W::TYPE));
    if !column.validity.is_valid(row) {
        return Err(wrong("null".into()));
    }
    if let (Values::Integers(values), Logical::Plain | Logical::Unsigned) = (&column.values, leaf.logical) {
        let value = values[row];
        let is_large = leaf.is_unsigned() && value < 0;
        let shown = || if is_large { (value as u64).to_string() } else { value.to_string() };
        return match W::TYPE {
            WeightType::U32 => u32::try_from(value).ok().filter(|_| !is_large).map(bytemuck::cast),
            WeightType::I64 if is_large => None,
            WeightType::I64 => Some(bytemuck::cast(value)),
            WeightType::F32 if is_large => Some(bytemuck::cast(value as u64 as f32)),
            WeightType::F32 => Some(bytemuck::cast(value as f32)),
            WeightType::F64 if is_large => Some(bytemuck::cast(value as u64 as f64)),
            WeightType::F64 => Some(bytemuck::cast(value as f64)),
        }
        .ok_or_else(|| wrong(shown()));
    }
    let Some(value) = float_at(leaf, column, row) else { return Err(wrong("other bytes".into())) };
    let weight: Option<W> = match W::TYPE {
        // A number that is too large for the type is none.
        WeightType::F32 if value.is_finite() && !(value as f32).is_finite() => None,
        WeightType::F32 => Some(bytemuck::cast(value as f32)),
        WeightType::F64 => Some(bytemuck::cast(value)),
        // A whole number is one in a column of floating numbers as well.
        WeightType::U32 if value == f64::from(value as u32) => Some(bytemuck::cast(value as u32)),
        WeightType::I64 if value.abs() <= 9_007_199_254_740_992.0 && value == value.trunc() => {
            Some(bytemuck::cast(value as i64))
        }
        _ => None,
    };
    weight.filter(|weight| weight.is_accepted()).ok_or_else(|| wrong(value.to_string()))
}
