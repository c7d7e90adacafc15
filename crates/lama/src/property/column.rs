//! Files of columns: rows of values, of one property or of several side by side.
//!
//! The columns of a file share its sections, one after the other: bits of validity, values of fixed width, offsets,
//! bytes. A column of strings with few distinct ones is stored as a dictionary of these, and a code for each row.

mod gather;
mod write;

use std::ops::Range;
use std::sync::OnceLock;

use arrow_array::{Array, LargeStringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use bytemuck::{Pod, Zeroable};
use graph::property::{PropertyColumn, PropertyType, PropertyValue, TypedArray};

use super::type_of_number;
use crate::Result;
use crate::column::Column;
use crate::encoding::Decoder;
use crate::file::{FileKind, FramedFile, SectionKind};

pub use write::RowParts;
pub(crate) use write::write_columns;

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
    /// How strings are stored: [`PLAIN`] or [`CODED`]. Other types are plain.
    encoding: u32,
    /// The strings of the dictionary of a coded column.
    num_distinct: u64,
    /// The bytes of values of other than fixed width, or of the strings of the dictionary.
    num_bytes: u64,
}

const _: () = assert!(size_of::<ColumnEntry>() == 32);

/// Each row has its value.
const PLAIN: u32 = 0;
/// Each row has a code among the values of fixed width: the place of its string in the dictionary, whose strings are in
/// the place of those of the rows. Null rows have code 0.
const CODED: u32 = 1;

/// The bytes of a code.
fn code_width(num_distinct: u64) -> usize {
    match num_distinct {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

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
    /// Among the values of fixed width: those or codes.
    values: Range<usize>,
    /// Among the offsets: those of rows or of the dictionary.
    offsets: Range<usize>,
    /// Among the bytes.
    bytes: Range<usize>,
    dictionary: Option<StoredDictionary>,
}

/// The dictionary of a column, whose strings are decoded once.
#[derive(Debug)]
struct StoredDictionary {
    /// Bytes of a code.
    code_width: usize,
    texts: OnceLock<LargeStringArray>,
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
        let place = |(numbers, position): (Range<u64>, usize)| position + (number - numbers.start) as usize;
        Ok(self.run_of(number)?.map(place))
    }

    /// The numbers of the run of rows that has this one, and the place of the first of them, if the file has it.
    ///
    /// Cost: a binary search.
    ///
    /// # Errors
    /// A run is damaged.
    pub fn run_of(&self, number: u64) -> base::Result<Option<(Range<u64>, usize)>> {
        let (mut low, mut high) = (0, self.runs.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.run(middle)?.number <= number { low = middle + 1 } else { high = middle }
        }
        let Some(index) = low.checked_sub(1) else { return Ok(None) };
        let end = match low == self.runs.len() {
            true => self.num_rows as u64,
            // A damaged run could reach past the rows.
            false => self.run(low)?.position.min(self.num_rows as u64),
        };
        let run = self.run(index)?;
        let numbers = run.number..run.number.saturating_add(end.saturating_sub(run.position));
        Ok(numbers.contains(&number).then_some((numbers, run.position as usize)))
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
        match self.find(number).filter(|_| row < self.num_rows) {
            Some(column) => self.value(column, row),
            None => Ok(PropertyValue::Null),
        }
    }

    /// The value of a column at a row that is there.
    fn value<'a>(&'a self, column: &'a StoredColumn, row: usize) -> base::Result<PropertyValue<'a>> {
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
            PropertyType::String | PropertyType::Bytes => return self.piece(column, row),
        })
    }

    /// The string or bytes of a row that is not null.
    fn piece<'a>(&'a self, column: &'a StoredColumn, row: usize) -> base::Result<PropertyValue<'a>> {
        if let Some(dictionary) = &column.dictionary {
            let texts = self.texts(column, dictionary)?;
            let code = self.code(column, dictionary, row)?;
            return match (code as usize) < texts.len() {
                true => Ok(PropertyValue::String(texts.value(code as usize))),
                false => Err(self.no_such_code(column, dictionary, row, code, texts.len())),
            };
        }
        let at = column.offsets.start + row;
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
        Ok(PropertyValue::String(text.map_err(|_| self.offsets.corrupt(at, "a string that is not UTF-8"))?))
    }

    /// The strings of a dictionary, verified when they are first asked for.
    fn texts<'a>(&self, column: &StoredColumn, dictionary: &'a StoredDictionary) -> base::Result<&'a LargeStringArray> {
        if let Some(texts) = dictionary.texts.get() {
            return Ok(texts);
        }
        let strings = self.pieces(column, 0..column.offsets.len() - 1, None)?;
        let TypedArray::String(texts) = strings.values() else {
            return Err(self.offsets.corrupt(column.offsets.start, "strings expected"));
        };
        Ok(dictionary.texts.get_or_init(|| texts.clone()))
    }

    /// The code of a row, which may be none of the dictionary's.
    fn code(&self, column: &StoredColumn, dictionary: &StoredDictionary, row: usize) -> base::Result<u32> {
        let (width, mut code) = (dictionary.code_width, [0; 4]);
        let at = column.values.start + row * width;
        code[..width].copy_from_slice(self.values.touch(at..at + width)?);
        Ok(u32::from_le_bytes(code))
    }

    fn codes(
        &self,
        column: &StoredColumn,
        dictionary: &StoredDictionary,
        rows: &Range<usize>,
    ) -> base::Result<Vec<u32>> {
        let width = dictionary.code_width;
        let start = column.values.start + rows.start * width;
        let bytes = self.values.touch(start..start + rows.len() * width)?;
        Ok(match width {
            1 => bytes.iter().copied().map(u32::from).collect(),
            2 => bytes.as_chunks().0.iter().map(|&code| u16::from_le_bytes(code).into()).collect(),
            _ => bytes.as_chunks().0.iter().map(|&code| u32::from_le_bytes(code)).collect(),
        })
    }

    fn no_such_code(
        &self,
        column: &StoredColumn,
        dictionary: &StoredDictionary,
        row: usize,
        code: u32,
        num_distinct: usize,
    ) -> base::Error {
        let what = format!("column {}, row {row}: code {code} of {num_distinct} strings", column.number);
        self.values.corrupt(column.values.start + row * dictionary.code_width, what)
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
        let read = self.read_stored(column, stored)?;
        Ok(read.padded(rows.len()))
    }

    fn read_stored(&self, column: &StoredColumn, rows: Range<usize>) -> base::Result<PropertyColumn> {
        let nulls = match &column.validity {
            None => None,
            Some(words) => Some(self.nulls(words, &rows)?),
        };
        if let Some(dictionary) = &column.dictionary {
            let texts = self.texts(column, dictionary)?;
            let codes = self.codes(column, dictionary, &rows)?;
            let is_bad = |row: &usize| {
                codes[*row] as usize >= texts.len() && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row))
            };
            return match (0..codes.len()).find(is_bad) {
                Some(row) => Err(self.no_such_code(column, dictionary, rows.start + row, codes[row], texts.len())),
                None => PropertyColumn::from_codes(codes, texts, nulls)
                    .map_err(|error| self.values.corrupt(column.values.start, error.to_string())),
            };
        }
        let Some(width) = width(column.property_type) else { return self.pieces(column, rows, nulls) };
        let start = column.values.start + rows.start * width;
        let values = self.values.touch(start..start + rows.len() * width)?;
        PropertyColumn::from_fixed_bytes(column.property_type, values, nulls).map_err(|error| {
            let what = format!("column {}, rows from {} on: {error}", column.number, rows.start);
            self.values.corrupt(start, what)
        })
    }

    /// A range of strings or bytes, those of rows or those of the dictionary.
    fn pieces(
        &self,
        column: &StoredColumn,
        range: Range<usize>,
        nulls: Option<NullBuffer>,
    ) -> base::Result<PropertyColumn> {
        let at = column.offsets.start + range.start;
        let ends = self.offsets.touch(at..at + range.len() + 1)?;
        let (first, last) = (ends[0], ends[ends.len() - 1]);
        if !ends.is_sorted() || last > column.bytes.len() as u64 {
            return Err(self.offsets.corrupt(at, "offsets that ascend up to the bytes expected"));
        }
        let bytes = self.bytes.touch(column.bytes.start + first as usize..column.bytes.start + last as usize)?;
        let offsets = ends.iter().map(|end| (end - first) as i64).collect();
        PropertyColumn::from_pieces(column.property_type, offsets, bytes.to_vec(), nulls).map_err(|error| {
            let what = format!("column {}, strings from {} on: {error}", column.number, range.start);
            self.offsets.corrupt(at, what)
        })
    }

    /// Which rows of a range have a value.
    fn nulls(&self, words: &Range<usize>, rows: &Range<usize>) -> base::Result<NullBuffer> {
        let range = words.start + rows.start / WORD_BITS..words.start + rows.end.div_ceil(WORD_BITS);
        let words = self.validity.touch(range.start..range.end.max(range.start))?;
        let bits = Buffer::from_vec(words.to_vec());
        Ok(NullBuffer::new(BooleanBuffer::new(bits, rows.start % WORD_BITS, rows.len())))
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
        let is_coded = match entry.encoding {
            PLAIN => false,
            CODED => true,
            _ => return None,
        };
        let is_fixed = width(property_type).is_some();
        let fits = match is_coded {
            false => entry.num_distinct == 0 && !(is_fixed && entry.num_bytes > 0),
            true => property_type == PropertyType::String,
        };
        if !fits {
            return None;
        }
        let code_width = is_coded.then(|| code_width(entry.num_distinct));
        let values = match code_width.or(width(property_type)) {
            Some(width) => {
                let len = num_rows.checked_mul(width)?;
                let start = take(&mut self.values, len.checked_next_multiple_of(ALIGNMENT)?)?.start;
                start..start + len
            }
            None => 0..0,
        };
        let num_pieces = if is_coded { usize::try_from(entry.num_distinct).ok()? } else { num_rows };
        let (offsets, bytes) = match is_fixed {
            true => (0..0, 0..0),
            false => (
                take(&mut self.offsets, num_pieces.checked_add(1)?)?,
                take(&mut self.bytes, usize::try_from(entry.num_bytes).ok()?)?,
            ),
        };
        let dictionary = code_width.map(|code_width| StoredDictionary { code_width, texts: OnceLock::new() });
        Some(StoredColumn { number: entry.number, property_type, validity, values, offsets, bytes, dictionary })
    }
}

fn take(end: &mut usize, count: usize) -> Option<Range<usize>> {
    let start = *end;
    *end = start.checked_add(count)?;
    Some(start..*end)
}

#[cfg(test)]
mod tests;
