//! Turns rows of a file into edges and vertices.

use std::ops::Range;

use parquet::data_type::ByteArray;

use super::column::{ParquetColumn, ParquetValues, ROWS_AT_ONCE, RowReader};
use super::guard::Result as Read;
use super::layout::RowLayout;
use super::lists::read_values_or_lists;
use super::property::{big_endian, float_at};
use super::schema::{Logical, ParquetLeaf};
use super::{ParquetFile, RowRange};
use crate::Result;
use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::number::weight_range;
use crate::options::SourceOptions;
use crate::push_u64;
use anden_base::message::shown;
use anden_graph::property::{ColumnBuilder, PropertyColumn};
use anden_graph::{Weight, WeightType};

/// The keys that are remembered by the address of their text.
const KNOWN_KEYS: usize = 1 << 10;

/// Reads rows. The text of their keys is in `extra`.
///
/// # Errors
/// The file cannot be read, or is damaged. A faulty row becomes a line fault with the number of the row.
pub(crate) fn read_rows<K: FieldKey, W: Weight>(
    file: &ParquetFile,
    layout: &RowLayout,
    range: &RowRange,
    options: &SourceOptions,
) -> Result<ParsedBlock<K, W>> {
    let mut parsed = ParsedBlock::new(range.len(), options.on_error);
    let num_rows = range.len() as usize;
    let bytes = file.bytes()?;
    let open = |place| RowReader::new(file, &bytes, place, range);
    let mut source = open(layout.source)?;
    let mut target = layout.target.map(open).transpose()?;
    let mut weight = layout.weight.map(open).transpose()?;
    let read = |&place| read_values_or_lists(&mut open(place)?);
    let mut properties = layout.properties.iter().map(read).collect::<Result<Vec<_>>>()?;
    let (mut kept, mut has_faults) = (Vec::<u32>::new(), false);
    if target.is_some() {
        parsed.edges.reserve_exact(num_rows)
    } else {
        parsed.vertices.reserve_exact(num_rows)
    }
    let role = if target.is_some() { "source" } else { "vertex" };
    'rows: for start in (0..num_rows).step_by(ROWS_AT_ONCE) {
        let sources = source.keys::<K>(options, &mut parsed.extra)?;
        let targets = target.as_mut().map(|target| target.keys::<K>(options, &mut parsed.extra)).transpose()?;
        let weights = weight.as_mut().map(|weight| weight.next(ROWS_AT_ONCE)).transpose()?;
        for row in 0..sources.keys.len() {
            let read = || -> Read<_> {
                let first = sources.get(row, role)?;
                let second = targets.as_ref().map(|targets| targets.get(row, "target")).transpose()?;
                let weight = weight.as_ref().zip(weights.as_ref());
                Ok((
                    first,
                    second,
                    weight.map(|(weight, values)| weight_at::<W>(weight.leaf(), values, row)).transpose()?,
                ))
            };
            let index = start + row;
            match read() {
                Ok((first, second, weight)) => {
                    match second {
                        Some(second) => parsed.edges.push((first, second)),
                        None => parsed.vertices.push(first),
                    }
                    parsed.weights.extend(weight);
                    if has_faults {
                        kept.push(index as u32);
                    }
                }
                Err(what) => {
                    if !has_faults {
                        has_faults = true; // Faults are rare, so kept rows are listed from the first one on.
                        kept.extend(0..index as u32);
                    }
                    if parsed.faults.note_at(index as u64, what) {
                        break 'rows;
                    }
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

/// Rows of one column, which may lie in several row groups.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub(crate) fn read_column(file: &ParquetFile, place: usize, rows: Range<u64>) -> Result<PropertyColumn> {
    let (ranges, bytes) = (file.ranges_of(rows), file.bytes()?);
    if let [range] = &ranges[..] {
        return read_values_or_lists(&mut RowReader::new(file, &bytes, place, range)?);
    }
    let mut column = ColumnBuilder::new(file.leaves[place].property_type().stored());
    for range in &ranges {
        column.append(&read_values_or_lists(&mut RowReader::new(file, &bytes, place, range)?)?)?;
    }
    Ok(column.finish())
}

/// The bytes of a file for the rows of a range, in all columns that are read.
pub(crate) fn bytes_of(file: &ParquetFile, layout: &RowLayout, range: &RowRange) -> u64 {
    let group = &file.groups[range.group];
    let num_bytes: u64 = layout.all().map(|place| group.chunks[place].num_bytes).sum();
    (num_bytes as f64 * range.len() as f64 / group.num_rows.max(1) as f64) as u64
}

impl<'a> RowReader<'a> {
    /// Reads the next rows as keys, with their text in `text`.
    fn keys<K: FieldKey>(&mut self, options: &SourceOptions, text: &mut Vec<u8>) -> Result<KeyColumn<'a, K>> {
        let (leaf, column) = (self.leaf(), self.next(ROWS_AT_ONCE)?);
        let keys = match &column.values {
            ParquetValues::Bytes(values) if !matches!(leaf.logical, Logical::Decimal { .. }) => {
                keys_of(&column, values, options, text)
            }
            _ => {
                let mut digits = Vec::new();
                let mut key = |row: usize| {
                    let number = whole_at(leaf, &column, row)?;
                    // `from_digits` shows whether keys are numbers.
                    match (u64::try_from(number), K::from_digits(0)) {
                        (number, Some(_)) => number.ok().and_then(K::from_digits),
                        (Ok(number), None) => {
                            digits.clear();
                            push_u64(&mut digits, number);
                            K::from_owned(&digits, 0, text)
                        }
                        (Err(_), None) => K::from_owned(number.to_string().as_bytes(), 0, text),
                    }
                };
                (0..column.num_rows).map(&mut key).collect()
            }
        };
        Ok(KeyColumn { leaf, column, keys })
    }
}

/// The keys of texts. Rows of one dictionary entry share its memory, so the latest keys are remembered by address.
fn keys_of<K: FieldKey>(
    column: &ParquetColumn,
    values: &[ByteArray],
    options: &SourceOptions,
    text: &mut Vec<u8>,
) -> Vec<Option<K>> {
    // No text has this length.
    let mut known = [(0, usize::MAX, None); KNOWN_KEYS];
    let mut key = |row: usize| {
        if !column.is_valid(row) {
            return None;
        }
        let bytes = values[row].data();
        if !options.may_be_key(bytes) {
            return None;
        }
        let (address, len) = (bytes.as_ptr() as usize, bytes.len());
        let slot = &mut known[address / 4 % KNOWN_KEYS];
        if (slot.0, slot.1) != (address, len) {
            *slot = (address, len, K::from_owned(bytes, 0, text));
        }
        slot.2
    };
    (0..values.len()).map(&mut key).collect()
}

/// The whole number of a row; `None` if it has another value.
fn whole_at(leaf: &ParquetLeaf, column: &ParquetColumn, row: usize) -> Option<i128> {
    match (&column.values, leaf.logical) {
        _ if !column.is_valid(row) => None,
        (ParquetValues::Integers(values), Logical::Unsigned) => Some((values[row] as u64).into()),
        (ParquetValues::Integers(values), Logical::Plain | Logical::Decimal { scale: 0 }) => Some(values[row].into()),
        (ParquetValues::Bytes(values), Logical::Decimal { scale: 0 }) => big_endian(values[row].data()),
        // Beyond 2^53, a floating number stands for several whole ones.
        _ => float_at(leaf, column, row)
            .filter(|value| value.abs() <= 9_007_199_254_740_992.0 && value.trunc() == *value)
            .map(|value| value as i128),
    }
}

/// The value of a row, for messages.
#[cold]
fn shown_at(leaf: &ParquetLeaf, column: &ParquetColumn, row: usize) -> String {
    if !column.is_valid(row) {
        return "null".to_owned();
    }
    if let (ParquetValues::Bytes(values), Logical::Text) = (&column.values, leaf.logical) {
        return shown(values[row].data());
    }
    match (whole_at(leaf, column, row), leaf.logical) {
        (Some(number), _) => number.to_string(),
        (None, Logical::Decimal { scale: 0 }) => "a number of more than 16 bytes".to_owned(),
        _ => float_at(leaf, column, row).map_or("other bytes".to_owned(), |value| value.to_string()),
    }
}

/// Keys by row.
struct KeyColumn<'a, K> {
    leaf: &'a ParquetLeaf,
    column: ParquetColumn,
    keys: Vec<Option<K>>,
}

impl<K: FieldKey> KeyColumn<'_, K> {
    #[inline(always)]
    fn get(&self, row: usize, role: &str) -> Read<K> {
        let fault = || format!("expected a {role}, {}, found {}", K::RANGE, shown_at(self.leaf, &self.column, row));
        self.keys[row].ok_or_else(fault)
    }
}

/// The weight of a row.
#[inline]
fn weight_at<W: Weight>(leaf: &ParquetLeaf, column: &ParquetColumn, row: usize) -> Read<W> {
    let whole = || whole_at(leaf, column, row);
    let float = || float_at(leaf, column, row).filter(|_| column.is_valid(row));
    let weight: Option<W> = match W::TYPE {
        WeightType::U32 => whole().and_then(|value| u32::try_from(value).ok()).map(bytemuck::cast),
        WeightType::I64 => whole().and_then(|value| i64::try_from(value).ok()).map(bytemuck::cast),
        WeightType::F64 => float().map(bytemuck::cast),
        // A value beyond the range of `f32` is refused.
        WeightType::F32 => float()
            .map(|value| (value, value as f32))
            .filter(|(value, short)| !value.is_finite() || short.is_finite())
            .map(|(_, short)| bytemuck::cast(short)),
    };
    let wrong = || format!("expected {}, found {}", weight_range(W::TYPE), shown_at(leaf, column, row));
    weight.filter(|weight| weight.is_accepted()).ok_or_else(wrong)
}
