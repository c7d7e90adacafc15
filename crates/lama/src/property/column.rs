//! The file of a column: the values at the version of the base run, row by row.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use base::storage::Storage;
use bytemuck::Pod;
use graph::property::{PropertyColumn, PropertyType, PropertyValue, PropertyValues};

use super::{type_number, type_of_number};
use crate::column::Column;
use crate::encoding::{Decoder, Encoder};
use crate::file::{FileKind, FileWriter, FramedFile, SectionKind, WrittenFile};
use crate::options::DatabaseId;
use crate::{Result, names};

/// The bytes of the section that says what a file holds.
const FACTS_BYTES: usize = 16;
const WORD_BITS: usize = u64::BITS as usize;

/// Writes a column under a temporary name, and syncs it.
///
/// # Errors
/// There is such a file; the disk failed.
pub(crate) fn write_column(
    storage: &dyn Storage,
    directory: &Path,
    id: DatabaseId,
    number: u32,
    column: &PropertyColumn,
) -> Result<WrittenFile> {
    let mut file = FileWriter::create(storage, &directory.join(names::temporary(&names::column(number))))?;
    let mut facts = Encoder::default();
    facts.u32(type_number(column.property_type()));
    facts.u32(column.validity().is_some().into());
    facts.u64(column.len() as u64);
    file.begin_section(SectionKind::ColumnFacts)?;
    file.append(&facts.0)?;
    if let Some(validity) = column.validity() {
        file.begin_section(SectionKind::ColumnValidity)?;
        file.append(bytemuck::cast_slice(validity))?;
    }
    let mut fixed = |bytes: &[u8]| -> Result<()> {
        file.begin_section(SectionKind::ColumnValues)?;
        file.append(bytes)
    };
    match column.values() {
        PropertyValues::Boolean(values) => fixed(values)?,
        PropertyValues::I64(values) | PropertyValues::Timestamp(values) => fixed(bytemuck::cast_slice(values))?,
        PropertyValues::F64(values) => fixed(bytemuck::cast_slice(values))?,
        PropertyValues::Date(values) => fixed(bytemuck::cast_slice(values))?,
        PropertyValues::String { offsets, bytes } | PropertyValues::Bytes { offsets, bytes } => {
            file.begin_section(SectionKind::ColumnOffsets)?;
            file.append(bytemuck::cast_slice(offsets))?;
            file.begin_section(SectionKind::ColumnBytes)?;
            file.append(bytes)?;
        }
    }
    file.finish(FileKind::Column, id)
}

/// A file of a column, of which nothing but its facts was read yet.
#[derive(Debug)]
pub(crate) struct ColumnFile {
    property_type: PropertyType,
    num_rows: usize,
    validity: Option<Column<u64>>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Boolean(Column<u8>),
    I64(Column<i64>),
    F64(Column<f64>),
    Date(Column<i32>),
    Timestamp(Column<i64>),
    Text { offsets: Column<u64>, bytes: Column<u8> },
}

impl ColumnFile {
    /// Reads what is in the file.
    ///
    /// # Errors
    /// The facts are damaged, of another type, or sections have other lengths.
    pub fn open(file: &Arc<FramedFile>, property_type: PropertyType) -> Result<Self> {
        let facts = file.section(SectionKind::ColumnFacts)?;
        let bytes = facts.bytes().as_slice();
        facts.verify(0..bytes.len())?;
        let mut decoder = Decoder::new(bytes);
        let mut decode = || {
            let (found, has_validity) = (type_of_number(decoder.u32()?)?, decoder.u32()?);
            let num_rows = usize::try_from(decoder.u64()?).ok()?;
            (bytes.len() == FACTS_BYTES && has_validity <= 1).then_some((found, has_validity == 1, num_rows))
        };
        let Some((found, has_validity, num_rows)) = decode() else {
            return Err(file.corrupt("the facts of a column mean nothing"));
        };
        if found != property_type {
            return Err(file.corrupt(format!("a column of type {property_type} expected, one of type {found} found")));
        }
        let validity = has_validity.then(|| Column::open(file, SectionKind::ColumnValidity)).transpose()?;
        let kind = SectionKind::ColumnValues;
        let values = match property_type {
            PropertyType::Boolean => Values::Boolean(Column::open(file, kind)?),
            PropertyType::I64 => Values::I64(Column::open(file, kind)?),
            PropertyType::F64 => Values::F64(Column::open(file, kind)?),
            PropertyType::Date => Values::Date(Column::open(file, kind)?),
            PropertyType::Timestamp => Values::Timestamp(Column::open(file, kind)?),
            PropertyType::String | PropertyType::Bytes => Values::Text {
                offsets: Column::open(file, SectionKind::ColumnOffsets)?,
                bytes: Column::open(file, SectionKind::ColumnBytes)?,
            },
        };
        let fits = validity.as_ref().is_none_or(|words| words.len() == num_rows.div_ceil(WORD_BITS))
            && values.len() == num_rows;
        if !fits {
            return Err(file.corrupt(format!("a column of {num_rows} rows has sections of another length")));
        }
        Ok(Self { property_type, num_rows, validity, values })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.num_rows
    }

    /// The value of a row; null from the last row on.
    ///
    /// # Errors
    /// The row is damaged.
    pub fn get(&self, row: usize) -> base::Result<PropertyValue<'_>> {
        if row >= self.num_rows {
            return Ok(PropertyValue::Null);
        }
        if let Some(validity) = &self.validity
            && validity.touch(row / WORD_BITS..row / WORD_BITS + 1)?[0] & 1 << (row % WORD_BITS) == 0
        {
            return Ok(PropertyValue::Null);
        }
        Ok(match &self.values {
            Values::Boolean(values) => match one(values, row)? {
                0 => PropertyValue::Boolean(false),
                1 => PropertyValue::Boolean(true),
                found => return Err(values.corrupt(row, format!("0 or 1 expected, {found} found"))),
            },
            Values::I64(values) => PropertyValue::I64(one(values, row)?),
            Values::F64(values) => PropertyValue::F64(one(values, row)?),
            Values::Date(values) => PropertyValue::Date(one(values, row)?),
            Values::Timestamp(values) => PropertyValue::Timestamp(one(values, row)?),
            Values::Text { offsets, bytes } => {
                let ends = offsets.touch(row..row + 2)?;
                let (start, end) = (ends[0], ends[1]);
                if start > end || end > bytes.len() as u64 {
                    let what = format!("a value from {start} to {end} in {} bytes", bytes.len());
                    return Err(offsets.corrupt(row, what));
                }
                let value = bytes.touch(start as usize..end as usize)?;
                match self.property_type {
                    PropertyType::String => {
                        let text = std::str::from_utf8(value);
                        PropertyValue::String(text.map_err(|_| offsets.corrupt(row, "a string that is not UTF-8"))?)
                    }
                    _ => PropertyValue::Bytes(value),
                }
            }
        })
    }

    /// A range of rows; those from the last row on are null.
    ///
    /// Cost: a copy of them.
    ///
    /// # Errors
    /// A row is damaged.
    pub fn read(&self, rows: Range<usize>) -> Result<PropertyColumn> {
        let stored = rows.start.min(self.num_rows)..rows.end.min(self.num_rows);
        let mut column = self.read_stored(stored.clone())?;
        column.push_nulls(rows.len() - stored.len());
        Ok(column)
    }

    fn read_stored(&self, rows: Range<usize>) -> Result<PropertyColumn> {
        let values = match &self.values {
            Values::Boolean(values) => PropertyValues::Boolean(copied(values, &rows)?),
            Values::I64(values) => PropertyValues::I64(copied(values, &rows)?),
            Values::F64(values) => PropertyValues::F64(copied(values, &rows)?),
            Values::Date(values) => PropertyValues::Date(copied(values, &rows)?),
            Values::Timestamp(values) => PropertyValues::Timestamp(copied(values, &rows)?),
            Values::Text { offsets, bytes } => {
                let ends = offsets.touch(rows.start..rows.end + 1)?;
                let (first, last) = (ends[0], ends[ends.len() - 1]);
                if !ends.is_sorted() || last > bytes.len() as u64 {
                    return Err(offsets.corrupt(rows.start, "offsets that ascend up to the bytes expected").into());
                }
                let bytes = bytes.touch(first as usize..last as usize)?.to_vec();
                let offsets = ends.iter().map(|end| end - first).collect();
                match self.property_type {
                    PropertyType::String => PropertyValues::String { offsets, bytes },
                    _ => PropertyValues::Bytes { offsets, bytes },
                }
            }
        };
        let validity = match &self.validity {
            None => None,
            Some(words) => Some(bits(words, &rows)?),
        };
        PropertyColumn::from_values(values, validity)
            .map_err(|error| self.corrupt(rows.start, error.to_string()).into())
    }

    fn corrupt(&self, row: usize, what: String) -> base::Error {
        match &self.values {
            Values::Boolean(values) => values.corrupt(row, what),
            Values::I64(values) | Values::Timestamp(values) => values.corrupt(row, what),
            Values::F64(values) => values.corrupt(row, what),
            Values::Date(values) => values.corrupt(row, what),
            Values::Text { offsets, .. } => offsets.corrupt(row, what),
        }
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Boolean(values) => values.len(),
            Self::I64(values) | Self::Timestamp(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Date(values) => values.len(),
            // Without an offset there is not even the end of nothing.
            Self::Text { offsets, .. } => offsets.len().checked_sub(1).unwrap_or(usize::MAX),
        }
    }
}

fn one<T: Pod>(values: &Column<T>, row: usize) -> base::Result<T> {
    Ok(values.touch(row..row + 1)?[0])
}

fn copied<T: Pod>(values: &Column<T>, rows: &Range<usize>) -> base::Result<Vec<T>> {
    Ok(values.touch(rows.clone())?.to_vec())
}

/// The bits of a range, from the lowest bit of the first word on.
fn bits(words: &Column<u64>, rows: &Range<usize>) -> base::Result<Vec<u64>> {
    let words = words.touch(rows.start / WORD_BITS..rows.end.div_ceil(WORD_BITS))?;
    let shift = rows.start % WORD_BITS;
    let shifted = |place: usize| match shift {
        0 => words[place],
        _ => words[place] >> shift | words.get(place + 1).map_or(0, |next| next << (WORD_BITS - shift)),
    };
    Ok((0..rows.len().div_ceil(WORD_BITS)).map(shifted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::storage::{FaultPlan, FaultStorage};

    const ID: DatabaseId = DatabaseId([7; 16]);

    fn columns(num_rows: usize) -> Vec<PropertyColumn> {
        let mut columns: Vec<_> = PropertyType::ALL.iter().map(|&(of, _)| PropertyColumn::new(of)).collect();
        for row in 0..num_rows {
            let text = format!("ö{row}");
            for column in &mut columns {
                let value = match column.property_type() {
                    _ if row % 5 == 3 => PropertyValue::Null,
                    PropertyType::Boolean => PropertyValue::Boolean(row % 2 == 0),
                    PropertyType::I64 => PropertyValue::I64(row as i64),
                    PropertyType::F64 => PropertyValue::F64(row as f64),
                    PropertyType::Date => PropertyValue::Date(row as i32),
                    PropertyType::Timestamp => PropertyValue::Timestamp(-(row as i64)),
                    PropertyType::String => PropertyValue::String(&text),
                    PropertyType::Bytes => PropertyValue::Bytes(text.as_bytes()),
                };
                column.push(value).unwrap();
            }
        }
        columns
    }

    fn open(disk: &FaultStorage, number: u32, property_type: PropertyType) -> Result<ColumnFile> {
        let path = names::temporary(&names::column(number));
        let file = FramedFile::open(disk, path.as_ref(), FileKind::Column, ID)?;
        ColumnFile::open(&Arc::new(file), property_type)
    }

    #[test]
    fn columns_come_back_row_by_row_and_in_ranges() {
        let disk = FaultStorage::new(FaultPlan::Never);
        for num_rows in [0, 1, 64, 200] {
            for (number, column) in columns(num_rows).iter().enumerate() {
                let number = (num_rows * 10 + number) as u32;
                write_column(&disk, "".as_ref(), ID, number, column).unwrap();
                let file = open(&disk, number, column.property_type()).unwrap();
                assert_eq!((file.len(), &file.read(0..num_rows).unwrap()), (num_rows, column));
                for row in 0..num_rows {
                    assert_eq!(file.get(row).unwrap(), column.get(row));
                }
                assert!(file.get(num_rows).unwrap().is_null());
                for rows in [0..num_rows / 2, num_rows / 3..num_rows, num_rows / 2..num_rows + 70] {
                    let read = file.read(rows.clone()).unwrap();
                    let expected = rows.map(|row| if row < num_rows { column.get(row) } else { PropertyValue::Null });
                    assert!(read.iter().eq(expected), "{:?}", column.property_type());
                }
                let other = if column.property_type() == PropertyType::Date { "i64" } else { "date" };
                let error = open(&disk, number, PropertyType::of_name(other).unwrap()).unwrap_err().to_string();
                assert!(error.contains(&format!("a column of type {other} expected")), "{error}");
            }
        }
    }

    #[test]
    fn what_lies_is_refused() {
        let disk = FaultStorage::new(FaultPlan::Never);
        let file = |number: u32, facts: [u32; 4], sections: &[(SectionKind, &[u8])]| {
            let name = names::temporary(&names::column(number));
            let mut writer = FileWriter::create(&disk, name.as_ref()).unwrap();
            writer.begin_section(SectionKind::ColumnFacts).unwrap();
            writer.append(bytemuck::cast_slice(&facts)).unwrap();
            for (kind, bytes) in sections {
                writer.begin_section(*kind).unwrap();
                writer.append(bytes).unwrap();
            }
            writer.finish(FileKind::Column, ID).unwrap();
        };
        let text = |offsets: [u64; 3], bytes: &[u8], number: u32| {
            let offsets: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
            file(number, [6, 0, 2, 0], &[(SectionKind::ColumnOffsets, &offsets), (SectionKind::ColumnBytes, bytes)]);
            let file = open(&disk, number, PropertyType::String).unwrap();
            assert!(file.read(0..2).is_err() && (0..2).any(|row| file.get(row).is_err()), "{number}");
        };
        text([0, 2, 1], b"ab", 1);
        text([0, 1, u64::MAX], b"ab", 2);
        text([0, 1, 2], "é".as_bytes(), 3);
        file(4, [1, 0, 2, 0], &[(SectionKind::ColumnValues, &[0, 2])]);
        let booleans = open(&disk, 4, PropertyType::Boolean).unwrap();
        assert!(booleans.get(0).is_ok() && booleans.get(1).is_err() && booleans.read(0..2).is_err());
        file(5, [2, 0, 3, 0], &[(SectionKind::ColumnValues, &[0; 16])]);
        assert!(open(&disk, 5, PropertyType::I64).is_err());
        file(6, [2, 1, 2, 0], &[(SectionKind::ColumnValidity, &[]), (SectionKind::ColumnValues, &[0; 16])]);
        assert!(open(&disk, 6, PropertyType::I64).is_err());
        file(7, [2, 2, 0, 0], &[(SectionKind::ColumnValues, &[])]);
        assert!(open(&disk, 7, PropertyType::I64).is_err());
        file(8, [6, 0, 0, 0], &[(SectionKind::ColumnOffsets, &[]), (SectionKind::ColumnBytes, &[])]);
        assert!(open(&disk, 8, PropertyType::String).is_err());
    }
}
