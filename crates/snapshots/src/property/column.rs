//! Column files: rows of values, of one property or of several in parallel.
//!
//! The columns of a file share its sections, one after the other: validity bits, values of fixed width, offsets, bytes.
//! A column of strings with few distinct values is stored as a dictionary, and a code for each row.

mod gather;
mod write;

use std::ops::Range;
use std::sync::OnceLock;

use anden_graph::property::{PropertyColumn, PropertyType, PropertyValue, TypedArray};
use arrow_array::{Array, LargeStringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use bytemuck::{Pod, Zeroable};

use super::type_of_number;
use crate::Result;
use crate::column::SectionColumn;
use crate::encoding::Decoder;
use crate::file::{FileKind, FramedFile, SectionKind};

pub use write::RowParts;
pub(crate) use write::write_columns;

/// Bytes of the section that describes a file.
const FACTS_BYTES: usize = 16;
const WORD_BITS: usize = u64::BITS as usize;
/// Values of fixed width start at a multiple of this.
const ALIGNMENT: usize = 8;

/// Description of a column in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct ColumnEntry {
    /// Number of the column in the database.
    number: u32,
    property_type: u32,
    /// 1 if some rows have no value.
    has_nulls: u32,
    /// Storage of strings: [`PLAIN`] or [`CODED`]. Other types are plain.
    encoding: u32,
    /// Number of strings in the dictionary of a coded column.
    num_distinct: u64,
    /// Bytes of the values of variable width, or of the dictionary's strings.
    num_bytes: u64,
}

const _: () = assert!(size_of::<ColumnEntry>() == 32);

/// Each row has its value.
const PLAIN: u32 = 0;
/// Each row has a code among the values of fixed width: the index of its string in the dictionary. Offsets and bytes
/// are those of the dictionary's strings. Null rows have code 0.
const CODED: u32 = 1;

/// Bytes of a code.
fn code_width(num_distinct: u64) -> usize {
    match num_distinct {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Bytes of a value of fixed width.
fn width(property_type: PropertyType) -> Option<usize> {
    match property_type {
        PropertyType::Boolean => Some(1),
        PropertyType::Date | PropertyType::F32 => Some(4),
        PropertyType::I64 | PropertyType::U64 | PropertyType::F64 | PropertyType::Timestamp => Some(8),
        PropertyType::String | PropertyType::Bytes | PropertyType::List(_) => None,
    }
}

/// A run: rows of a file with consecutive numbers. It ends where the next run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RowRun {
    /// Number of its first row.
    pub number: u64,
    /// Position of this row in the file.
    pub position: u64,
}

const _: () = assert!(size_of::<RowRun>() == 16);

impl RowRun {
    /// Appends a run, unless it continues the last one.
    pub fn push(self, runs: &mut Vec<Self>) {
        let continues = |last: &Self| self.number - last.number == self.position - last.position;
        if !runs.last().is_some_and(continues) {
            runs.push(self);
        }
    }

    /// Appends the runs of rows with these ascending numbers, behind `num_before` rows of the file.
    pub fn push_numbers(runs: &mut Vec<Self>, numbers: &[u64], num_before: u64) {
        (num_before..).zip(numbers).for_each(|(position, &number)| Self { number, position }.push(runs));
    }
}

/// Content of a file to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewColumns<'a> {
    /// The number in the file's name.
    pub file_number: u32,
    pub kind: FileKind,
    /// The row numbers, ascending; empty if rows are counted from 0.
    pub runs: &'a [RowRun],
    pub num_rows: u64,
    /// Numbers and types of the columns, ascending.
    pub columns: &'a [(u32, PropertyType)],
}

/// An open column file, of which only the descriptions were read.
#[derive(Debug)]
pub(crate) struct ColumnFile {
    num_rows: usize,
    /// Empty if rows are counted from 0.
    runs: SectionColumn<RowRun>,
    /// The first and the last row number.
    ends: Option<(u64, u64)>,
    columns: Vec<StoredColumn>,
    validity: SectionColumn<u64>,
    values: SectionColumn<u8>,
    offsets: SectionColumn<u64>,
    bytes: SectionColumn<u8>,
}

/// Place of a column.
#[derive(Debug)]
struct StoredColumn {
    number: u32,
    property_type: PropertyType,
    /// Range of the validity words; `None` if every row has a value.
    validity: Option<Range<usize>>,
    /// Range of the values of fixed width, or of the codes.
    values: Range<usize>,
    /// Range of the offsets, of rows or of the dictionary.
    offsets: Range<usize>,
    /// Range of the bytes.
    bytes: Range<usize>,
    dictionary: Option<StoredDictionary>,
}

/// The dictionary of a column; its strings are decoded once.
#[derive(Debug)]
struct StoredDictionary {
    /// Bytes of a code.
    code_width: usize,
    texts: OnceLock<LargeStringArray>,
}

impl ColumnFile {
    /// Reads the descriptions of a file.
    ///
    /// # Errors
    /// A description is damaged, or sections have other lengths.
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
        let runs: SectionColumn<RowRun> = SectionColumn::open(file, SectionKind::RowRuns)?;
        if runs.len() as u64 != num_runs {
            return Err(file.corrupt(format!("{num_runs} runs of rows expected, {} found", runs.len())));
        }
        let mut this = Self {
            num_rows,
            ends: row_ends(&runs, num_rows)?,
            runs,
            columns: Vec::new(),
            validity: SectionColumn::open(file, SectionKind::ColumnValidity)?,
            values: SectionColumn::open(file, SectionKind::ColumnValues)?,
            offsets: SectionColumn::open(file, SectionKind::ColumnOffsets)?,
            bytes: SectionColumn::open(file, SectionKind::ColumnBytes)?,
        };
        let entries: SectionColumn<ColumnEntry> = SectionColumn::open(file, SectionKind::ColumnEntries)?;
        let mut ends = ColumnStarts::default();
        for (index, entry) in entries.touch(0..entries.len())?.iter().enumerate() {
            let column = ends.column(entry, num_rows);
            let is_next = |column: &StoredColumn| this.columns.last().is_none_or(|last| last.number < column.number);
            // Columns ascend by number, because `find` searches them.
            let column = column.filter(is_next).ok_or_else(|| entries.corrupt(index, "a column that means nothing"))?;
            this.columns.push(column);
        }
        let expected = ColumnStarts {
            validity: this.validity.len(),
            values: this.values.len(),
            offsets: this.offsets.len(),
            bytes: this.bytes.len(),
        };
        // No byte of a section may lie outside of all columns.
        if ends != expected {
            return Err(file.corrupt(format!("columns of {num_rows} rows have sections of other lengths")));
        }
        Ok(this)
    }

    /// The first and the last row number; `None` if rows are counted from 0, or if there are none.
    pub fn row_ends(&self) -> Option<(u64, u64)> {
        self.ends
    }

    /// Position of the row with this number, if the file has it.
    ///
    /// Cost: a binary search.
    ///
    /// # Errors
    /// A run is damaged.
    pub fn position(&self, number: u64) -> anden_base::Result<Option<usize>> {
        let place = |(numbers, position): (Range<u64>, usize)| position + (number - numbers.start) as usize;
        Ok(self.run_of(number)?.map(place))
    }

    /// The numbers of the run that contains this one, and the position of its first row, if the file has it.
    ///
    /// Cost: a binary search.
    ///
    /// # Errors
    /// A run is damaged.
    pub fn run_of(&self, number: u64) -> anden_base::Result<Option<(Range<u64>, usize)>> {
        let (mut low, mut high) = (0, self.runs.len());
        while low < high {
            let middle = low + (high - low) / 2;
            // Only the runs that the search meets are verified.
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

    fn run(&self, index: usize) -> anden_base::Result<RowRun> {
        Ok(self.runs.touch(index..index + 1)?[0])
    }

    /// The runs of all rows, verified.
    ///
    /// # Errors
    /// Numbers do not ascend, or a run is empty.
    pub fn runs(&self) -> anden_base::Result<&[RowRun]> {
        let runs = self.runs.touch(0..self.runs.len())?;
        // Runs with adjacent numbers would be stored as one.
        let follows = |a: &RowRun, b: &RowRun| {
            a.position < b.position && a.number.checked_add(b.position - a.position).is_some_and(|end| end < b.number)
        };
        match runs.windows(2).position(|pair| !follows(&pair[0], &pair[1])) {
            Some(index) => Err(self.runs.corrupt(index, "the numbers of rows are out of order")),
            None => Ok(runs),
        }
    }

    /// Number of rows.
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

    /// The value of a column at a row, counted from the first; null if the file lacks the column or the row.
    ///
    /// # Errors
    /// The row is damaged.
    pub fn get(&self, number: u32, row: usize) -> anden_base::Result<PropertyValue<'_>> {
        match self.find(number).filter(|_| row < self.num_rows) {
            Some(column) => self.value(column, row),
            None => Ok(PropertyValue::Null),
        }
    }

    /// The value of a column at a row of the file.
    fn value<'a>(&'a self, column: &'a StoredColumn, row: usize) -> anden_base::Result<PropertyValue<'a>> {
        // Validity first: the stored value of a null row means nothing.
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
            PropertyType::String | PropertyType::Bytes | PropertyType::List(_) => return self.piece(column, row),
        })
    }

    /// The string or bytes of a row that is not null.
    fn piece<'a>(&'a self, column: &'a StoredColumn, row: usize) -> anden_base::Result<PropertyValue<'a>> {
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
        // Bounds from the file are checked before they cut the bytes.
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

    /// The strings of a dictionary, verified and decoded on first use.
    fn texts<'a>(
        &self,
        column: &StoredColumn,
        dictionary: &'a StoredDictionary,
    ) -> anden_base::Result<&'a LargeStringArray> {
        if let Some(texts) = dictionary.texts.get() {
            return Ok(texts);
        }
        let strings = self.pieces(column, 0..column.offsets.len() - 1, None)?;
        let TypedArray::String(texts) = strings.values() else {
            return Err(self.offsets.corrupt(column.offsets.start, "strings expected"));
        };
        // Two threads may decode at once. The first result stays, so that all share one.
        Ok(dictionary.texts.get_or_init(|| texts.clone()))
    }

    /// The code of a row, which may be out of range.
    fn code(&self, column: &StoredColumn, dictionary: &StoredDictionary, row: usize) -> anden_base::Result<u32> {
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
    ) -> anden_base::Result<Vec<u32>> {
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
    ) -> anden_base::Error {
        let what = format!("column {}, row {row}: code {code} of {num_distinct} strings", column.number);
        self.values.corrupt(column.values.start + row * dictionary.code_width, what)
    }

    fn fixed<const N: usize>(&self, at: usize) -> anden_base::Result<[u8; N]> {
        let bytes = self.values.touch(at..at + N)?.first_chunk();
        bytes.copied().ok_or_else(|| self.values.corrupt(at, "a value past the end"))
    }

    /// A range of rows of a column, counted from the first. Missing rows are null, and so are all rows of a missing
    /// column.
    ///
    /// Cost: a copy of the rows.
    ///
    /// # Errors
    /// A row is damaged.
    pub fn read(&self, number: u32, property_type: PropertyType, rows: Range<usize>) -> Result<PropertyColumn> {
        let Some(column) = self.find(number) else { return Ok(PropertyColumn::nulls(property_type, rows.len())) };
        let stored = rows.start.min(self.num_rows)..rows.end.min(self.num_rows);
        let read = self.read_stored(column, stored)?;
        Ok(read.padded(rows.len()))
    }

    fn read_stored(&self, column: &StoredColumn, rows: Range<usize>) -> anden_base::Result<PropertyColumn> {
        let nulls = match &column.validity {
            None => None,
            Some(words) => Some(self.nulls(words, &rows)?),
        };
        if let Some(dictionary) = &column.dictionary {
            let texts = self.texts(column, dictionary)?;
            let codes = self.codes(column, dictionary, &rows)?;
            let is_bad = |row: &usize| {
                // A null row has code 0, even if the dictionary is empty.
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

    /// A range of strings or bytes, of rows or of the dictionary.
    fn pieces(
        &self,
        column: &StoredColumn,
        range: Range<usize>,
        nulls: Option<NullBuffer>,
    ) -> anden_base::Result<PropertyColumn> {
        let at = column.offsets.start + range.start;
        let ends = self.offsets.touch(at..at + range.len() + 1)?;
        let (first, last) = (ends[0], ends[ends.len() - 1]);
        // Sorted offsets within the bytes make every cut below valid.
        if !ends.is_sorted() || last > column.bytes.len() as u64 {
            return Err(self.offsets.corrupt(at, "offsets that ascend up to the bytes expected"));
        }
        let bytes = self.bytes.touch(column.bytes.start + first as usize..column.bytes.start + last as usize)?;
        // Relative to the range, so that only its bytes are copied.
        let offsets = ends.iter().map(|end| (end - first) as i64).collect();
        PropertyColumn::from_buffers(column.property_type, offsets, bytes.to_vec(), nulls).map_err(|error| {
            let what = format!("column {}, strings from {} on: {error}", column.number, range.start);
            self.offsets.corrupt(at, what)
        })
    }

    /// The rows of a range that have a value.
    fn nulls(&self, words: &Range<usize>, rows: &Range<usize>) -> anden_base::Result<NullBuffer> {
        let range = words.start + rows.start / WORD_BITS..words.start + rows.end.div_ceil(WORD_BITS);
        let words = self.validity.touch(range.start..range.end.max(range.start))?;
        let bits = Buffer::from_vec(words.to_vec());
        Ok(NullBuffer::new(BooleanBuffer::new(bits, rows.start % WORD_BITS, rows.len())))
    }
}

/// The first and the last row number.
fn row_ends(runs: &SectionColumn<RowRun>, num_rows: usize) -> Result<Option<(u64, u64)>> {
    let Some(last_index) = runs.len().checked_sub(1) else { return Ok(None) };
    let (first, last) = (runs.touch(0..1)?[0], runs.touch(last_index..last_index + 1)?[0]);
    let num_of_last = (num_rows as u64).checked_sub(last.position).filter(|&num| num > 0);
    let end = num_of_last.and_then(|num| last.number.checked_add(num - 1)).filter(|&end| end < MAX_ROWS);
    match end.filter(|&end| first.position == 0 && first.number <= end) {
        Some(end) => Ok(Some((first.number, end))),
        None => Err(runs.corrupt(last_index, "a run of rows that means nothing").into()),
    }
}

/// Files with more rows are refused, because lists store row numbers as signed numbers.
pub const MAX_ROWS: u64 = i64::MAX as u64;

/// Start of the next column in each section.
#[derive(Debug, Default, PartialEq)]
struct ColumnStarts {
    validity: usize,
    values: usize,
    offsets: usize,
    bytes: usize,
}

impl ColumnStarts {
    /// Place of the next column; `None` if its description is not valid.
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
                // Padded, so that the next column starts aligned.
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
