//! Files of columns: rows of values, of one property or of several side by side.
//!
//! The columns of a file share its sections, one after the other: bits of validity, values of fixed width, offsets,
//! bytes. A writer goes over the rows once for each section, so that rows need not be in memory.

use std::ops::Range;
use std::path::Path;

use base::storage::Storage;
use bytemuck::{Pod, Zeroable};
use graph::property::{PropertyColumn, PropertyType, PropertyValue, PropertyValues};

use super::{type_number, type_of_number};
use crate::column::Column;
use crate::encoding::{Decoder, Encoder};
use crate::file::{FileKind, FileWriter, FramedFile, SectionKind, WrittenFile};
use crate::options::DatabaseId;
use crate::{Error, Result, names};

/// The bytes of the section that says what a file holds.
const FACTS_BYTES: usize = 16;
const WORD_BITS: usize = u64::BITS as usize;
/// Values of fixed width start on a multiple of this.
const ALIGNMENT: usize = 8;

/// What a file says of one of its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct ColumnEntry {
    /// The number of the column among those of the database.
    number: u32,
    property_type: u32,
    /// 1 where some rows have no value.
    has_nulls: u32,
    reserved: u32,
    /// The bytes of values of other than fixed width.
    num_bytes: u64,
}

const _: () = assert!(size_of::<ColumnEntry>() == 24);

/// The bytes of a value of fixed width.
fn width(property_type: PropertyType) -> Option<usize> {
    match property_type {
        PropertyType::Boolean => Some(1),
        PropertyType::Date | PropertyType::F32 => Some(4),
        PropertyType::I64 | PropertyType::U64 | PropertyType::F64 | PropertyType::Timestamp => Some(8),
        PropertyType::String | PropertyType::Bytes => None,
    }
}

/// Rows of a file whose numbers follow each other. The run ends where the next one begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RowRun {
    /// The number of its first row.
    pub number: u64,
    /// The place of this row in the file.
    pub position: u64,
}

const _: () = assert!(size_of::<RowRun>() == 16);

impl RowRun {
    /// Appends a run to those before it, unless it continues the last one.
    pub fn push(self, runs: &mut Vec<Self>) {
        let continues = |last: &Self| self.number - last.number == self.position - last.position;
        if !runs.last().is_some_and(continues) {
            runs.push(self);
        }
    }

    /// Appends the runs of rows with these numbers, which ascend, behind `num_before` rows of the file.
    pub fn push_numbers(runs: &mut Vec<Self>, numbers: &[u64], num_before: u64) {
        (num_before..).zip(numbers).for_each(|(position, &number)| Self { number, position }.push(runs));
    }
}

/// What a file is to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewColumns<'a> {
    /// The number in the name of the file.
    pub file_number: u32,
    pub kind: FileKind,
    /// The numbers of the rows, ascending; none where rows are counted from 0.
    pub runs: &'a [RowRun],
    pub num_rows: u64,
    /// Numbers and types of the columns, ascending.
    pub columns: &'a [(u32, PropertyType)],
}

/// Gives, for the column at a place, its rows part by part, each time from the first one.
pub type RowParts<'a> = dyn Fn(usize, &mut dyn FnMut(&PropertyColumn) -> Result<()>) -> Result<()> + 'a;

/// Writes columns under a temporary name, and syncs the file. `parts` gives the rows of the column at a place.
///
/// Memory: a bit a row, and what `parts` takes.
///
/// # Errors
/// Columns have parts of other types or another number of rows; there is such a file; the disk failed.
pub(crate) fn write_columns(
    storage: &dyn Storage,
    directory: &Path,
    id: DatabaseId,
    new: NewColumns<'_>,
    parts: &RowParts<'_>,
) -> Result<WrittenFile> {
    let name = match new.kind {
        FileKind::Rows => names::rows(new.file_number),
        _ => names::column(new.file_number),
    };
    let mut file = FileWriter::create(storage, &directory.join(names::temporary(&name)))?;
    let mut entries: Vec<ColumnEntry> = Vec::new();
    file.begin_section(SectionKind::ColumnValidity)?;
    for (place, &(number, property_type)) in new.columns.iter().enumerate() {
        let (mut bits, mut num_bytes) = (PropertyColumn::new(PropertyType::Boolean), 0);
        parts(place, &mut |part| {
            if part.property_type() != property_type {
                let what = format!("values of type {property_type} expected, {} found", part.property_type());
                return Err(Error::Input(what));
            }
            if let PropertyValues::String { bytes, .. } | PropertyValues::Bytes { bytes, .. } = part.values() {
                num_bytes += bytes.len() as u64;
            }
            bits.append(&validity_of(part))?;
            Ok(())
        })?;
        if bits.len() as u64 != new.num_rows {
            return Err(Error::Input(format!("{} values of {} rows", bits.len(), new.num_rows)));
        }
        if let Some(words) = bits.validity() {
            file.append(bytemuck::cast_slice(words))?;
        }
        let (property_type, has_nulls) = (type_number(property_type), bits.validity().is_some().into());
        entries.push(ColumnEntry { number, property_type, has_nulls, reserved: 0, num_bytes });
    }
    write_values(&mut file, new.columns, parts)?;
    let mut facts = Encoder::default();
    facts.u64(new.runs.len() as u64);
    facts.u64(new.num_rows);
    file.begin_section(SectionKind::ColumnFacts)?;
    file.append(&facts.0)?;
    file.begin_section(SectionKind::ColumnEntries)?;
    file.append(bytemuck::cast_slice(&entries))?;
    file.begin_section(SectionKind::RowRuns)?;
    file.append(bytemuck::cast_slice(new.runs))?;
    file.finish(new.kind, id)
}

fn write_values(file: &mut FileWriter, columns: &[(u32, PropertyType)], parts: &RowParts<'_>) -> Result<()> {
    let of_width = |is_fixed: bool| {
        let places = columns.iter().enumerate().filter(move |(_, (_, of))| width(*of).is_some() == is_fixed);
        places.map(|(place, _)| place)
    };
    file.begin_section(SectionKind::ColumnValues)?;
    for place in of_width(true) {
        let mut len = 0;
        parts(place, &mut |part| {
            let bytes: &[u8] = match part.values() {
                PropertyValues::Boolean(values) => values,
                PropertyValues::I64(values) | PropertyValues::Timestamp(values) => bytemuck::cast_slice(values),
                PropertyValues::U64(values) => bytemuck::cast_slice(values),
                PropertyValues::F32(values) => bytemuck::cast_slice(values),
                PropertyValues::F64(values) => bytemuck::cast_slice(values),
                PropertyValues::Date(values) => bytemuck::cast_slice(values),
                PropertyValues::String { .. } | PropertyValues::Bytes { .. } => &[],
            };
            len += bytes.len();
            file.append(bytes)
        })?;
        file.append(&[0; ALIGNMENT][..len.next_multiple_of(ALIGNMENT) - len])?;
    }
    file.begin_section(SectionKind::ColumnOffsets)?;
    for place in of_width(false) {
        let mut end = 0;
        file.append(&0_u64.to_le_bytes())?;
        parts(place, &mut |part| {
            let (PropertyValues::String { offsets, .. } | PropertyValues::Bytes { offsets, .. }) = part.values() else {
                return Ok(());
            };
            let shifted: Vec<u64> = offsets[1..].iter().map(|offset| end + offset).collect();
            end = shifted.last().copied().unwrap_or(end);
            file.append(bytemuck::cast_slice(&shifted))
        })?;
    }
    file.begin_section(SectionKind::ColumnBytes)?;
    for place in of_width(false) {
        parts(place, &mut |part| match part.values() {
            PropertyValues::String { bytes, .. } | PropertyValues::Bytes { bytes, .. } => file.append(bytes),
            _ => Ok(()),
        })?;
    }
    Ok(())
}

/// A column of one byte a row that is null where this one is.
fn validity_of(part: &PropertyColumn) -> PropertyColumn {
    let values = PropertyValues::Boolean(vec![0; part.len()]);
    let column = PropertyColumn::from_values(values, part.validity().map(<[u64]>::to_vec));
    // Its own validity fits a column of its own length.
    column.unwrap_or_else(|_| PropertyColumn::nulls(PropertyType::Boolean, part.len()))
}

/// A file of columns, of which nothing but what they are was read yet.
#[derive(Debug)]
pub(crate) struct ColumnFile {
    num_rows: usize,
    /// None where rows are counted from 0.
    runs: Column<RowRun>,
    /// The first number and the last one.
    ends: Option<(u64, u64)>,
    columns: Vec<StoredColumn>,
    validity: Column<u64>,
    values: Column<u8>,
    offsets: Column<u64>,
    bytes: Column<u8>,
}

/// Where a column is.
#[derive(Debug)]
struct StoredColumn {
    number: u32,
    property_type: PropertyType,
    /// Among the words of validity; `None` where every row has a value.
    validity: Option<Range<usize>>,
    /// Among the values of fixed width, or among the offsets.
    values: Range<usize>,
    /// Among the bytes.
    bytes: Range<usize>,
}

impl ColumnFile {
    /// Reads what is in the file.
    ///
    /// # Errors
    /// That is damaged, or sections have other lengths.
    pub fn open(file: &FramedFile) -> Result<Self> {
        let facts = file.section(SectionKind::ColumnFacts)?;
        let bytes = facts.bytes().as_slice();
        facts.verify(0..bytes.len())?;
        let mut decoder = Decoder::new(bytes);
        let mut decode = || Some((decoder.u64()?, usize::try_from(decoder.u64()?).ok()?));
        let fits = |&(_, num_rows): &(u64, usize)| bytes.len() == FACTS_BYTES && num_rows as u64 <= MAX_ROWS;
        let Some((num_runs, num_rows)) = decode().filter(fits) else {
            return Err(file.corrupt("the facts of columns mean nothing"));
        };
        let runs: Column<RowRun> = Column::open(file, SectionKind::RowRuns)?;
        if runs.len() as u64 != num_runs {
            return Err(file.corrupt(format!("{num_runs} runs of rows expected, {} found", runs.len())));
        }
        let mut this = Self {
            num_rows,
            ends: row_ends(&runs, num_rows)?,
            runs,
            columns: Vec::new(),
            validity: Column::open(file, SectionKind::ColumnValidity)?,
            values: Column::open(file, SectionKind::ColumnValues)?,
            offsets: Column::open(file, SectionKind::ColumnOffsets)?,
            bytes: Column::open(file, SectionKind::ColumnBytes)?,
        };
        let entries: Column<ColumnEntry> = Column::open(file, SectionKind::ColumnEntries)?;
        let mut ends = Ends::default();
        for (index, entry) in entries.touch(0..entries.len())?.iter().enumerate() {
            let column = ends.column(entry, num_rows);
            let is_next = |column: &StoredColumn| this.columns.last().is_none_or(|last| last.number < column.number);
            let column = column.filter(is_next).ok_or_else(|| entries.corrupt(index, "a column that means nothing"))?;
            this.columns.push(column);
        }
        let expected = Ends {
            validity: this.validity.len(),
            values: this.values.len(),
            offsets: this.offsets.len(),
            bytes: this.bytes.len(),
        };
        if ends != expected {
            return Err(file.corrupt(format!("columns of {num_rows} rows have sections of other lengths")));
        }
        Ok(this)
    }

    /// The number of the first row and that of the last one; `None` where rows are counted from 0, or there are none.
    pub fn row_ends(&self) -> Option<(u64, u64)> {
        self.ends
    }

    /// The place of the row with a number, if the file has it.
    ///
    /// Cost: a binary search.
    ///
    /// # Errors
    /// A run is damaged.
    pub fn position(&self, number: u64) -> base::Result<Option<usize>> {
        let (mut low, mut high) = (0, self.runs.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.run(middle)?.number <= number { low = middle + 1 } else { high = middle }
        }
        let Some(index) = low.checked_sub(1) else { return Ok(None) };
        let end = match low == self.runs.len() {
            true => self.num_rows as u64,
            false => self.run(low)?.position,
        };
        let run = self.run(index)?;
        let position = run.position.checked_add(number - run.number).filter(|&position| position < end);
        Ok(position.filter(|&position| position < self.num_rows as u64).map(|position| position as usize))
    }

    fn run(&self, index: usize) -> base::Result<RowRun> {
        Ok(self.runs.touch(index..index + 1)?[0])
    }

    /// The numbers of all rows, run by run, verified.
    ///
    /// # Errors
    /// They are damaged: numbers do not ascend, or runs are empty.
    pub fn runs(&self) -> base::Result<&[RowRun]> {
        let runs = self.runs.touch(0..self.runs.len())?;
        let follows = |a: &RowRun, b: &RowRun| {
            a.position < b.position && a.number.checked_add(b.position - a.position).is_some_and(|end| end < b.number)
        };
        match runs.windows(2).position(|pair| !follows(&pair[0], &pair[1])) {
            Some(index) => Err(self.runs.corrupt(index, "the numbers of rows are out of order")),
            None => Ok(runs),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.num_rows
    }

    /// Numbers and types of the columns, ascending.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (u32, PropertyType)> {
        self.columns.iter().map(|column| (column.number, column.property_type))
    }

    fn find(&self, number: u32) -> Option<&StoredColumn> {
        let place = self.columns.binary_search_by_key(&number, |column| column.number).ok()?;
        Some(&self.columns[place])
    }

    /// The value of a column at a row, counted from the first; null where there is no such column or row.
    ///
    /// # Errors
    /// The row is damaged.
    pub fn get(&self, number: u32, row: usize) -> base::Result<PropertyValue<'_>> {
        let Some(column) = self.find(number).filter(|_| row < self.num_rows) else { return Ok(PropertyValue::Null) };
        if let Some(words) = &column.validity {
            let word = words.start + row / WORD_BITS;
            if self.validity.touch(word..word + 1)?[0] & 1 << (row % WORD_BITS) == 0 {
                return Ok(PropertyValue::Null);
            }
        }
        let place = |width: usize| column.values.start + row * width;
        Ok(match column.property_type {
            PropertyType::Boolean => match self.values.touch(place(1)..place(1) + 1)?[0] {
                0 => PropertyValue::Boolean(false),
                1 => PropertyValue::Boolean(true),
                found => return Err(self.values.corrupt(place(1), format!("0 or 1 expected, {found} found"))),
            },
            PropertyType::I64 => PropertyValue::I64(i64::from_le_bytes(self.fixed(place(8))?)),
            PropertyType::U64 => PropertyValue::U64(u64::from_le_bytes(self.fixed(place(8))?)),
            PropertyType::F32 => PropertyValue::F32(f32::from_le_bytes(self.fixed(place(4))?)),
            PropertyType::F64 => PropertyValue::F64(f64::from_le_bytes(self.fixed(place(8))?)),
            PropertyType::Timestamp => PropertyValue::Timestamp(i64::from_le_bytes(self.fixed(place(8))?)),
            PropertyType::Date => PropertyValue::Date(i32::from_le_bytes(self.fixed(place(4))?)),
            PropertyType::String | PropertyType::Bytes => {
                let at = column.values.start + row;
                let ends = self.offsets.touch(at..at + 2)?;
                let (start, end) = (ends[0], ends[1]);
                if start > end || end > column.bytes.len() as u64 {
                    let what = format!("a value from {start} to {end} in {} bytes", column.bytes.len());
                    return Err(self.offsets.corrupt(at, what));
                }
                let value = column.bytes.start + start as usize..column.bytes.start + end as usize;
                let value = self.bytes.touch(value)?;
                if column.property_type == PropertyType::Bytes {
                    return Ok(PropertyValue::Bytes(value));
                }
                let text = std::str::from_utf8(value);
                PropertyValue::String(text.map_err(|_| self.offsets.corrupt(at, "a string that is not UTF-8"))?)
            }
        })
    }

    fn fixed<const N: usize>(&self, at: usize) -> base::Result<[u8; N]> {
        let bytes = self.values.touch(at..at + N)?.first_chunk();
        bytes.copied().ok_or_else(|| self.values.corrupt(at, "a value past the end"))
    }

    /// A range of rows of a column, counted from the first; rows that are not there are null, and so are all of a
    /// column that is not there.
    ///
    /// Cost: a copy of them.
    ///
    /// # Errors
    /// A row is damaged.
    pub fn read(&self, number: u32, property_type: PropertyType, rows: Range<usize>) -> Result<PropertyColumn> {
        let Some(column) = self.find(number) else { return Ok(PropertyColumn::nulls(property_type, rows.len())) };
        let stored = rows.start.min(self.num_rows)..rows.end.min(self.num_rows);
        let mut read = self.read_stored(column, stored.clone())?;
        read.push_nulls(rows.len() - stored.len());
        Ok(read)
    }

    fn read_stored(&self, column: &StoredColumn, rows: Range<usize>) -> Result<PropertyColumn> {
        let values = match column.property_type {
            PropertyType::Boolean => PropertyValues::Boolean(self.copied(column, &rows)?),
            PropertyType::I64 => PropertyValues::I64(self.copied(column, &rows)?),
            PropertyType::U64 => PropertyValues::U64(self.copied(column, &rows)?),
            PropertyType::F32 => PropertyValues::F32(self.copied(column, &rows)?),
            PropertyType::F64 => PropertyValues::F64(self.copied(column, &rows)?),
            PropertyType::Date => PropertyValues::Date(self.copied(column, &rows)?),
            PropertyType::Timestamp => PropertyValues::Timestamp(self.copied(column, &rows)?),
            PropertyType::String | PropertyType::Bytes => {
                let at = column.values.start + rows.start;
                let ends = self.offsets.touch(at..at + rows.len() + 1)?;
                let (first, last) = (ends[0], ends[ends.len() - 1]);
                if !ends.is_sorted() || last > column.bytes.len() as u64 {
                    return Err(self.offsets.corrupt(at, "offsets that ascend up to the bytes expected").into());
                }
                let bytes = column.bytes.start + first as usize..column.bytes.start + last as usize;
                let bytes = self.bytes.touch(bytes)?.to_vec();
                let offsets = ends.iter().map(|end| end - first).collect();
                match column.property_type {
                    PropertyType::String => PropertyValues::String { offsets, bytes },
                    _ => PropertyValues::Bytes { offsets, bytes },
                }
            }
        };
        let validity = match &column.validity {
            None => None,
            Some(words) => Some(self.bits(words, &rows)?),
        };
        PropertyColumn::from_values(values, validity).map_err(|error| {
            let what = format!("column {}, rows from {} on: {error}", column.number, rows.start);
            match width(column.property_type) {
                Some(_) => self.values.corrupt(column.values.start, what),
                None => self.offsets.corrupt(column.values.start, what),
            }
            .into()
        })
    }

    fn copied<T: Pod>(&self, column: &StoredColumn, rows: &Range<usize>) -> base::Result<Vec<T>> {
        let start = column.values.start + rows.start * size_of::<T>();
        Ok(bytemuck::pod_collect_to_vec(self.values.touch(start..start + rows.len() * size_of::<T>())?))
    }

    /// The bits of a range, from the lowest bit of the first word on.
    fn bits(&self, words: &Range<usize>, rows: &Range<usize>) -> base::Result<Vec<u64>> {
        let range = words.start + rows.start / WORD_BITS..words.start + rows.end.div_ceil(WORD_BITS);
        let words = self.validity.touch(range.start..range.end.max(range.start))?;
        let shift = rows.start % WORD_BITS;
        let shifted = |place: usize| match shift {
            0 => words[place],
            _ => words[place] >> shift | words.get(place + 1).map_or(0, |next| next << (WORD_BITS - shift)),
        };
        Ok((0..rows.len().div_ceil(WORD_BITS)).map(shifted).collect())
    }
}

/// The numbers of the first row and the last one.
fn row_ends(runs: &Column<RowRun>, num_rows: usize) -> Result<Option<(u64, u64)>> {
    let Some(last_index) = runs.len().checked_sub(1) else { return Ok(None) };
    let (first, last) = (runs.touch(0..1)?[0], runs.touch(last_index..last_index + 1)?[0]);
    let num_of_last = (num_rows as u64).checked_sub(last.position).filter(|&num| num > 0);
    let end = num_of_last.and_then(|num| last.number.checked_add(num - 1)).filter(|&end| end < MAX_ROWS);
    match end.filter(|&end| first.position == 0 && first.number <= end) {
        Some(end) => Ok(Some((first.number, end))),
        None => Err(runs.corrupt(last_index, "a run of rows that means nothing").into()),
    }
}

/// More rows than this are no file of ours: their numbers stand in lists as numbers with a sign.
pub const MAX_ROWS: u64 = i64::MAX as u64;

/// Where the next column starts in each section.
#[derive(Debug, Default, PartialEq)]
struct Ends {
    validity: usize,
    values: usize,
    offsets: usize,
    bytes: usize,
}

impl Ends {
    /// The place of the next column; `None` where the entry means nothing.
    fn column(&mut self, entry: &ColumnEntry, num_rows: usize) -> Option<StoredColumn> {
        let property_type = type_of_number(entry.property_type)?;
        let validity = match entry.has_nulls {
            0 => None,
            1 => Some(take(&mut self.validity, num_rows.div_ceil(WORD_BITS))?),
            _ => return None,
        };
        let (values, bytes) = match width(property_type) {
            Some(width) => {
                let len = num_rows.checked_mul(width)?;
                let start = take(&mut self.values, len.checked_next_multiple_of(ALIGNMENT)?)?.start;
                (start..start + len, 0..0)
            }
            None => {
                let values = take(&mut self.offsets, num_rows.checked_add(1)?)?;
                (values, take(&mut self.bytes, usize::try_from(entry.num_bytes).ok()?)?)
            }
        };
        let fits = entry.reserved == 0 && (width(property_type).is_none() || entry.num_bytes == 0);
        fits.then_some(StoredColumn { number: entry.number, property_type, validity, values, bytes })
    }
}

fn take(end: &mut usize, count: usize) -> Option<Range<usize>> {
    let start = *end;
    *end = start.checked_add(count)?;
    Some(start..*end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::storage::{FaultPlan, FaultStorage};

    const ID: DatabaseId = DatabaseId([7; 16]);

    fn all_columns(rows: Range<usize>) -> Vec<PropertyColumn> {
        let mut columns: Vec<_> = PropertyType::ALL.iter().map(|&(of, _)| PropertyColumn::new(of)).collect();
        for row in rows {
            let text = format!("ö{row}");
            for column in &mut columns {
                let value = match column.property_type() {
                    PropertyType::Date => PropertyValue::Date(row as i32),
                    _ if row % 5 == 3 => PropertyValue::Null,
                    PropertyType::Boolean => PropertyValue::Boolean(row % 2 == 0),
                    PropertyType::I64 => PropertyValue::I64(row as i64),
                    PropertyType::U64 => PropertyValue::U64(row as u64),
                    PropertyType::F32 => PropertyValue::F32(row as f32),
                    PropertyType::F64 => PropertyValue::F64(row as f64),
                    PropertyType::Timestamp => PropertyValue::Timestamp(-(row as i64)),
                    PropertyType::String => PropertyValue::String(&text),
                    PropertyType::Bytes => PropertyValue::Bytes(text.as_bytes()),
                };
                column.push(value).unwrap();
            }
        }
        columns
    }

    fn write(disk: &FaultStorage, number: u32, parts: &[Vec<PropertyColumn>]) -> Result<WrittenFile> {
        let columns: Vec<_> = parts[0].iter().zip(0..).map(|(column, i)| (3 * i, column.property_type())).collect();
        let num_rows = parts.iter().map(|part| part[0].len() as u64).sum();
        let runs = [RowRun { number: 77, position: 0 }];
        let runs = if num_rows > 0 { &runs[..] } else { &[] };
        let new = NewColumns { file_number: number, kind: FileKind::Rows, runs, num_rows, columns: &columns };
        write_columns(disk, "".as_ref(), ID, new, &|place, take| parts.iter().try_for_each(|part| take(&part[place])))
    }

    fn open(disk: &FaultStorage, number: u32) -> Result<ColumnFile> {
        let path = names::temporary(&names::rows(number));
        ColumnFile::open(&FramedFile::open(disk, path.as_ref(), FileKind::Rows, ID)?)
    }

    #[test]
    fn columns_come_back_row_by_row_and_in_ranges() {
        let disk = FaultStorage::new(FaultPlan::Never);
        for (number, num_rows) in [(0, 0), (1, 1), (2, 64), (3, 200)] {
            let whole = all_columns(0..num_rows);
            let cuts = [0, num_rows / 7, num_rows / 7, num_rows / 2, num_rows];
            let parts: Vec<_> = cuts.windows(2).map(|pair| all_columns(pair[0]..pair[1])).collect();
            write(&disk, number, &parts).unwrap();
            let file = open(&disk, number).unwrap();
            let ends = (num_rows > 0).then(|| (77, 76 + num_rows as u64));
            assert_eq!((file.row_ends(), file.len(), file.columns().len()), (ends, num_rows, PropertyType::ALL.len()));
            for (column, (number, property_type)) in whole.iter().zip(file.columns()) {
                assert_eq!(&file.read(number, property_type, 0..num_rows).unwrap(), column);
                for row in 0..num_rows {
                    assert_eq!(file.get(number, row).unwrap(), column.get(row));
                }
                assert!(file.get(number, num_rows).unwrap().is_null() && file.get(number + 1, 0).unwrap().is_null());
                assert_eq!(file.read(number + 1, property_type, 0..9).unwrap().num_nulls(), 9);
                for rows in [0..num_rows / 2, num_rows / 3..num_rows, num_rows / 2..num_rows + 70] {
                    let read = file.read(number, property_type, rows.clone()).unwrap();
                    let expected = rows.map(|row| if row < num_rows { column.get(row) } else { PropertyValue::Null });
                    assert!(read.iter().eq(expected), "{property_type}");
                }
            }
        }
        let short = [all_columns(0..5)[..1].to_vec(), all_columns(0..4)[1..2].to_vec()].concat();
        assert!(write(&disk, 9, &[short]).is_err(), "columns of different lengths");
    }

    /// Writes a file of one column with these entries and sections.
    fn forge(disk: &FaultStorage, number: u32, rows: u64, entry: ColumnEntry, sections: [&[u8]; 4]) {
        let name = names::temporary(&names::rows(number));
        let mut writer = FileWriter::create(disk, name.as_ref()).unwrap();
        let kinds = [
            SectionKind::ColumnValidity,
            SectionKind::ColumnValues,
            SectionKind::ColumnOffsets,
            SectionKind::ColumnBytes,
        ];
        for (kind, bytes) in kinds.into_iter().zip(sections) {
            writer.begin_section(kind).unwrap();
            writer.append(bytes).unwrap();
        }
        writer.begin_section(SectionKind::ColumnFacts).unwrap();
        writer.append(bytemuck::cast_slice(&[0, rows])).unwrap();
        writer.begin_section(SectionKind::ColumnEntries).unwrap();
        writer.append(bytemuck::bytes_of(&entry)).unwrap();
        writer.begin_section(SectionKind::RowRuns).unwrap();
        writer.finish(FileKind::Rows, ID).unwrap();
    }

    #[test]
    fn rows_with_gaps_are_found_by_number() {
        let disk = FaultStorage::default();
        let numbers: Vec<u64> = (5..2000).filter(|number| number % 7 > 1 && !(300..400).contains(number)).collect();
        let column =
            PropertyColumn::from_values(PropertyValues::I64(numbers.iter().map(|&n| n as i64).collect()), None);
        let mut runs = Vec::new();
        RowRun::push_numbers(&mut runs, &numbers, 0);
        let new = NewColumns {
            file_number: 1,
            kind: FileKind::Rows,
            runs: &runs,
            num_rows: numbers.len() as u64,
            columns: &[(0, PropertyType::I64)],
        };
        write_columns(&disk, "".as_ref(), ID, new, &|_, take| take(column.as_ref().unwrap())).unwrap();
        let file = open(&disk, 1).unwrap();
        assert_eq!((file.runs().unwrap(), file.row_ends()), (&runs[..], Some((5, 1999))));
        for number in 0..2_100 {
            let position = file.position(number).unwrap();
            assert_eq!(position, numbers.binary_search(&number).ok());
            if let Some(position) = position {
                assert_eq!(file.get(0, position).unwrap(), PropertyValue::I64(number as i64));
            }
        }
    }

    #[test]
    fn runs_of_rows_that_lie_are_refused() {
        let disk = FaultStorage::default();
        let column = PropertyColumn::nulls(PropertyType::I64, 9);
        let bad: [(&[u64], bool); 7] = [
            (&[3, 1], false),
            (&[3, 0, 9, 9], false),
            (&[3, 0, u64::MAX, 4], false),
            (&[3, 0, 2, 4], true),
            (&[3, 0, 5, 4], true),
            (&[3, 0, 9, 4, 20, 4], true),
            (&[3, 0, 9, 4, 8, 6, 30, 8], true),
        ];
        for (number, (runs, opens)) in (0..).zip(bad) {
            let runs: Vec<RowRun> = runs.chunks(2).map(|run| RowRun { number: run[0], position: run[1] }).collect();
            let columns = [(0, PropertyType::I64)];
            let new =
                NewColumns { file_number: number, kind: FileKind::Rows, runs: &runs, num_rows: 9, columns: &columns };
            write_columns(&disk, "".as_ref(), ID, new, &|_, take| take(&column)).unwrap();
            let file = open(&disk, number);
            assert_eq!(file.is_ok(), opens, "{runs:?}");
            if let Ok(file) = file {
                assert!(file.runs().is_err(), "{runs:?}");
                (0..40).for_each(|row| drop(file.position(row)));
            }
        }
    }

    #[test]
    fn what_lies_is_refused() {
        let disk = FaultStorage::new(FaultPlan::Never);
        let entry = |property_type, num_bytes| ColumnEntry { property_type, num_bytes, ..ColumnEntry::default() };
        let text = |offsets: [u64; 3], bytes: &[u8], number: u32| {
            let offsets: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
            forge(&disk, number, 2, entry(6, bytes.len() as u64), [&[], &[], &offsets, bytes]);
            let file = open(&disk, number).unwrap();
            let read = file.read(0, PropertyType::String, 0..2);
            assert!(read.is_err() && (0..2).any(|row| file.get(0, row).is_err()), "{number}");
        };
        text([0, 2, 1], b"ab", 1);
        text([0, 1, u64::MAX], b"ab", 2);
        text([0, 1, 2], "é".as_bytes(), 3);
        forge(&disk, 4, 2, entry(1, 0), [&[], &[0, 2, 0, 0, 0, 0, 0, 0], &[], &[]]);
        let booleans = open(&disk, 4).unwrap();
        assert!(booleans.get(0, 0).is_ok() && booleans.get(0, 1).is_err());
        assert!(booleans.read(0, PropertyType::Boolean, 0..2).is_err());
        for (number, rows, entry, sections) in [
            (5, 3, entry(2, 0), [&[][..], &[0; 16][..], &[], &[]]),
            (6, 2, ColumnEntry { has_nulls: 1, ..entry(2, 0) }, [&[], &[0; 16], &[], &[]]),
            (7, 0, ColumnEntry { has_nulls: 2, ..entry(2, 0) }, [&[], &[], &[], &[]]),
            (8, 0, entry(6, 0), [&[], &[], &[], &[]]),
            (9, 0, entry(10, 0), [&[], &[], &[], &[]]),
            (10, 2, entry(2, 5), [&[], &[0; 16], &[], &[]]),
            (11, u64::MAX, entry(2, 0), [&[], &[0; 16], &[], &[]]),
            (12, 1 << 61, entry(2, 0), [&[], &[0; 16], &[], &[]]),
            (13, 2, ColumnEntry { reserved: 1, ..entry(2, 0) }, [&[], &[0; 16], &[], &[]]),
        ] {
            forge(&disk, number, rows, entry, sections);
            assert!(open(&disk, number).is_err(), "{number}");
        }
    }
}
