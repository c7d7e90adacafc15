//! The values of a column for consecutive rows, in the physical types of the format. `property` knows what they mean.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::NullBuffer;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};

use super::guard::{Result as Read, guarded};
use super::pages::ChunkPages;
use super::schema::{Logical, ParquetLeaf, RowContent};
use super::{ParquetFile, RowRange};
use crate::{Error, Result};

/// The rows of keys, weights and texts that are laid out at once, so that they stay in the cache.
pub(super) const ROWS_AT_ONCE: usize = 16 << 10;

/// Values by row. Null rows hold arbitrary values.
pub(super) enum ParquetValues {
    Booleans(Vec<bool>),
    /// Integers. Unsigned 64-bit integers are stored by their bits.
    Integers(Vec<i64>),
    /// Timestamps of a form that preceded 64-bit ones.
    Int96s(Vec<Int96>),
    Floats(Vec<f64>),
    /// Parts of the pages. The rows of one dictionary entry share its memory.
    Bytes(Vec<ByteArray>),
}

/// A column for consecutive rows. A column of lists has the values of all lists, and a null for an empty or missing one.
pub(super) struct ParquetColumn {
    pub(super) values: ParquetValues,
    /// The rows with a value; `None` if all have one.
    pub(super) nulls: Option<NullBuffer>,
    pub(super) num_rows: usize,
    /// The levels of values in lists.
    pub(super) levels: Option<ListLevels>,
}

/// The levels of the values in lists: what begins a row, and what is an item.
#[derive(Default)]
pub(super) struct ListLevels {
    repetitions: Vec<i16>,
    pub(super) definitions: Vec<i16>,
}

impl ListLevels {
    /// The number of rows that begin in the first values.
    pub(super) fn num_begun(&self, num_values: usize) -> u64 {
        self.repetitions[..num_values].iter().filter(|&&level| level == 0).count() as u64
    }

    /// The values of each row. There is at least one.
    pub(super) fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = 0;
        std::iter::from_fn(move || {
            let start = end;
            let len = self.repetitions.get(start..)?.iter().skip(1).take_while(|&&level| level > 0).count();
            end = start + 1 + len;
            (start < self.repetitions.len()).then_some(start..end)
        })
    }
}

impl ParquetColumn {
    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }
}

/// Reads a column for the rows of a range, some at a time.
pub(super) struct RowReader<'a> {
    file: &'a ParquetFile,
    place: usize,
    group: usize,
    reader: ColumnReader,
    /// The rows of the next page before the range.
    num_before: usize,
    /// The rows of the row group that are still to read.
    rows: Range<u64>,
}

impl<'a> RowReader<'a> {
    /// Begins to read the rows of a range from the bytes of a file.
    ///
    /// # Errors
    /// The crate does not read such a column.
    pub(super) fn new(file: &'a ParquetFile, bytes: &Arc<File>, place: usize, range: &RowRange) -> Result<Self> {
        let (column, group) = (&file.leaves[place].column, &file.groups[range.group]);
        let reader = guarded(|| {
            let open = || ChunkPages::new(bytes, column, &group.chunks[place], group.num_rows);
            let (mut pages, first) = (open()?, range.rows.start);
            let num_before = match &file.leaves[place].content {
                RowContent::List { .. } if first > 0 => {
                    let starts = file.list_pages.of((range.group, place), || open()?.list_starts())?;
                    pages.skip_lists(&starts, first)?
                }
                RowContent::List { .. } => 0,
                _ => pages.skip_rows(first as usize)?,
            };
            Ok((get_column_reader(Arc::clone(column), Box::new(pages)), num_before))
        });
        let (reader, num_before) = reader.map_err(|what| file.in_group(place, range.group, what))?;
        Ok(Self { file, place, group: range.group, reader, num_before, rows: range.rows.clone() })
    }

    /// The number of the next row in the file, from 1.
    pub(super) fn next_row(&self) -> u64 {
        let before: u64 = self.file.groups[..self.group].iter().map(|group| group.num_rows).sum();
        before + self.rows.start + 1
    }

    pub(super) fn num_left(&self) -> usize {
        (self.rows.end - self.rows.start) as usize
    }

    /// An error of the column.
    pub(super) fn refuse(&self, what: String) -> Error {
        self.file.in_column(self.place, what)
    }

    pub(super) fn leaf(&self) -> &'a ParquetLeaf {
        &self.file.leaves[self.place]
    }

    /// Reads the next rows: this many, or those that are left.
    ///
    /// # Errors
    /// A fault in the pages up to these rows.
    pub(super) fn next(&mut self, at_once: usize) -> Result<ParquetColumn> {
        let rows = RowWindow {
            start: self.rows.start,
            before: std::mem::take(&mut self.num_before),
            len: at_once.min(self.num_left()),
            full: self.leaf().column.max_def_level(),
            is_of_lists: !self.leaf().is_single(),
        };
        self.rows.start += rows.len as u64;
        let is_unsigned = self.leaf().is_unsigned();
        let is_text = self.leaf().logical == Logical::Text;
        let wide = |value: i32| if is_unsigned { i64::from(value as u32) } else { value.into() };
        let read = match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => rows.of(reader, ParquetValues::Booleans),
            ColumnReader::Int32ColumnReader(reader) => {
                rows.of(reader, |values| ParquetValues::Integers(values.into_iter().map(wide).collect()))
            }
            ColumnReader::Int64ColumnReader(reader) => rows.of(reader, ParquetValues::Integers),
            ColumnReader::Int96ColumnReader(reader) => rows.of(reader, ParquetValues::Int96s),
            ColumnReader::FloatColumnReader(reader) => {
                rows.of(reader, |values| ParquetValues::Floats(values.into_iter().map(f64::from).collect()))
            }
            ColumnReader::DoubleColumnReader(reader) => rows.of(reader, ParquetValues::Floats),
            ColumnReader::ByteArrayColumnReader(reader) => rows.of(reader, ParquetValues::Bytes),
            // The only text of a fixed length.
            ColumnReader::FixedLenByteArrayColumnReader(reader) if is_text => {
                rows.of(reader, |values| ParquetValues::Bytes(uuid_texts(values)))
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                rows.of(reader, |values| ParquetValues::Bytes(values.into_iter().map(ByteArray::from).collect()))
            }
        };
        read.map_err(|what| self.file.in_group(self.place, self.group, what))
    }
}

/// The bytes of a value; those of a null row are empty.
pub(super) fn bytes_of(value: &ByteArray) -> &[u8] {
    // The crate gives null rows no bytes at all, and asserts that there are some.
    if *value == ByteArray::new() { &[] } else { value.data() }
}

/// UUIDs as text: `01234567-89ab-cdef-0123-456789abcdef`.
fn uuid_texts(values: Vec<FixedLenByteArray>) -> Vec<ByteArray> {
    let mut texts = Vec::with_capacity(36 * values.len());
    let mut ends = Vec::with_capacity(values.len());
    for value in values {
        for (place, byte) in bytes_of(&value.into()).iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                texts.push(b'-');
            }
            texts.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        ends.push(texts.len());
    }
    // All texts share one allocation.
    let (texts, mut start) = (ByteArray::from(texts), 0);
    let part = |end: usize| {
        let part = texts.slice(start, end - start);
        start = end;
        part
    };
    ends.into_iter().map(part).collect()
}

/// The rows to read, and the definition level of a value.
struct RowWindow {
    /// The first row, in its row group.
    start: u64,
    before: usize,
    len: usize,
    full: i16,
    is_of_lists: bool,
}

impl RowWindow {
    fn of<T: DataType>(
        &self,
        reader: &mut ColumnReaderImpl<T>,
        into: impl FnOnce(Vec<T::T>) -> ParquetValues,
    ) -> Read<ParquetColumn> {
        let Self { start, before, len, full, is_of_lists } = *self;
        let (mut levels, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let num_missing = guarded(|| {
            // Read and dropped, since the crate cannot skip all values that it can read.
            let mut left = before;
            while left > 0 {
                let at_once = left.min(ROWS_AT_ONCE);
                match reader.read_records(at_once, Some(&mut levels), Some(&mut repetitions), &mut values)?.0 {
                    0 => return Ok(left + len),
                    read => left -= read,
                }
                levels.clear();
                repetitions.clear();
                values.clear();
            }
            let read = reader.read_records(len, Some(&mut levels), Some(&mut repetitions), &mut values)?.0;
            // Nulls have no stored values, so values move to their rows, the last one first.
            let (mut from, num_places) = (values.len(), if is_of_lists { levels.len() } else { read });
            values.resize(num_places, T::T::default());
            for row in (0..if from < num_places { num_places } else { 0 }).rev() {
                if levels[row] == full {
                    from -= 1;
                    values.swap(row, from);
                }
            }
            Ok(len - read)
        })?;
        if num_missing > 0 {
            let end = start + len as u64;
            return Err(format!("expected {end} rows, as the footer says, found {}", end - num_missing as u64));
        }
        let num_begun = repetitions.iter().filter(|&&level| level == 0).count();
        if is_of_lists && (num_begun != len || repetitions.first().is_some_and(|&level| level > 0)) {
            return Err("the first value of a list does not begin a row".into());
        }
        let nulls = NullBuffer::from_iter(levels.iter().map(|&level| level == full));
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let num_rows = if is_of_lists { levels.len() } else { len };
        let levels = is_of_lists.then_some(ListLevels { repetitions, definitions: levels });
        Ok(ParquetColumn { values: into(values), nulls, num_rows, levels })
    }
}
