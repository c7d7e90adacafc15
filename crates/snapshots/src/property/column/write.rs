//! Writes columns with one pass over the rows for each section, so that rows need not be in memory.

use std::path::Path;

use anden_base::storage::Storage;
use anden_graph::property::{DistinctStrings, PropertyColumn, PropertyType, TypedArray};
use arrow_buffer::NullBufferBuilder;

use super::{ALIGNMENT, CODED, ColumnEntry, NewColumns, PLAIN, code_width, width};
use crate::encoding::Encoder;
use crate::file::{FileKind, FileWriter, SectionKind, WrittenFile};
use crate::options::DatabaseId;
use crate::property::type_number;
use crate::{Error, Result, names};

/// Most strings of a dictionary. A code then takes at most two bytes. A column with more distinct strings is given up
/// before the table of strings outgrows a core's cache.
const MAX_DISTINCT: usize = 1 << 16;
/// Most bytes of a dictionary's strings, because every reader of the file holds them in memory.
const MAX_DISTINCT_BYTES: usize = 1 << 20;

/// Gives the rows of the column at a position part by part, each time from the first row.
pub type RowParts<'a> = dyn Fn(usize, &mut dyn FnMut(&PropertyColumn) -> Result<()>) -> Result<()> + 'a;

/// Writes columns under a temporary name, and syncs the file. `parts` gives the rows of the column at a position.
///
/// Memory: a bit a row, the distinct strings of columns with few of them, and the memory of `parts`.
///
/// # Errors
/// A part has another type, or the parts have another number of rows; the file exists; the disk failed.
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
    let mut columns: Vec<Survey> = Vec::new();
    file.begin_section(SectionKind::ColumnValidity)?;
    for (place, &(number, property_type)) in new.columns.iter().enumerate() {
        let mut survey = Survey::new(property_type);
        // The first pass over the rows chooses the encoding, which the sections below need.
        parts(place, &mut |part| survey.add(part))?;
        columns.push(survey.finish(number, new.num_rows, &mut file)?);
    }
    file.begin_section(SectionKind::ColumnValues)?;
    for (place, column) in columns.iter_mut().enumerate() {
        column.write_values(&mut file, &|take| parts(place, take))?;
    }
    file.begin_section(SectionKind::ColumnOffsets)?;
    for (place, column) in columns.iter().enumerate() {
        column.write_offsets(&mut file, &|take| parts(place, take))?;
    }
    file.begin_section(SectionKind::ColumnBytes)?;
    for (place, column) in columns.iter().enumerate() {
        column.write_bytes(&mut file, &|take| parts(place, take))?;
    }
    let mut facts = Encoder::default();
    facts.u64(new.runs.len() as u64);
    facts.u64(new.num_rows);
    file.begin_section(SectionKind::ColumnFacts)?;
    file.append(&facts.0)?;
    file.begin_section(SectionKind::ColumnEntries)?;
    columns.iter().try_for_each(|column| file.append(bytemuck::bytes_of(&column.entry)))?;
    file.begin_section(SectionKind::RowRuns)?;
    file.append(bytemuck::cast_slice(new.runs))?;
    file.finish(new.kind, id)
}

/// The parts of one column.
type ColumnParts<'a> = dyn Fn(&mut dyn FnMut(&PropertyColumn) -> Result<()>) -> Result<()> + 'a;

/// Result of the first pass over the rows of a column.
struct Survey {
    property_type: PropertyType,
    entry: ColumnEntry,
    nulls: NullBufferBuilder,
    /// The distinct strings until now; `None` for other types, and if there are too many.
    distinct: Option<DistinctStrings>,
    /// Codes of a part; reused memory.
    codes: Vec<u32>,
}

impl Survey {
    fn new(property_type: PropertyType) -> Self {
        let distinct =
            (property_type == PropertyType::String).then(|| DistinctStrings::new(MAX_DISTINCT, MAX_DISTINCT_BYTES));
        let (entry, nulls, codes) = (ColumnEntry::default(), NullBufferBuilder::new(0), Vec::new());
        Self { property_type, entry, nulls, distinct, codes }
    }

    fn add(&mut self, part: &PropertyColumn) -> Result<()> {
        if part.property_type() != self.property_type {
            let what = format!("values of type {} expected, {} found", self.property_type, part.property_type());
            return Err(Error::Input(what));
        }
        match part.validity() {
            Some(nulls) => self.nulls.append_buffer(nulls),
            None => self.nulls.append_n_non_nulls(part.len()),
        }
        self.entry.num_bytes += match part.values() {
            TypedArray::String(array) => num_bytes(array.value_offsets()),
            TypedArray::Bytes(array) => num_bytes(array.value_offsets()),
            TypedArray::Coded { codes, texts } => {
                codes.iter().flatten().map(|code| texts.value_length(code as usize) as u64).sum()
            }
            _ => 0,
        };
        // Given up at the first string beyond the limits.
        self.distinct.take_if(|distinct| !distinct.codes(part, &mut self.codes));
        Ok(())
    }

    /// Chooses the encoding of the column, and writes its validity.
    fn finish(mut self, number: u32, num_rows: u64, file: &mut FileWriter) -> Result<Self> {
        if self.nulls.len() as u64 != num_rows {
            return Err(Error::Input(format!("{} values of {num_rows} rows", self.nulls.len())));
        }
        let nulls = self.nulls.finish().filter(|nulls| nulls.null_count() > 0);
        if let Some(nulls) = &nulls {
            let mut bits = nulls.buffer().as_slice().to_vec();
            // Bits past the end are zero, and so are bytes up to the next word.
            if let (Some(last), used @ 1..) = (bits.last_mut(), nulls.len() % 8) {
                *last &= (1 << used) - 1;
            }
            bits.resize(bits.len().next_multiple_of(ALIGNMENT), 0);
            file.append(&bits)?;
        }
        let plain_bytes = 8 * num_rows + self.entry.num_bytes;
        // A dictionary must save bytes.
        self.distinct = self.distinct.filter(|distinct| num_coded_bytes(distinct, num_rows) < plain_bytes);
        self.entry = ColumnEntry {
            number,
            property_type: type_number(self.property_type),
            has_nulls: nulls.is_some().into(),
            encoding: if self.distinct.is_some() { CODED } else { PLAIN },
            num_distinct: self.distinct.as_ref().map_or(0, |distinct| distinct.len() as u64),
            num_bytes: self.distinct.as_ref().map_or(self.entry.num_bytes, |distinct| distinct.bytes().len() as u64),
        };
        Ok(self)
    }

    /// Writes values of fixed width, or codes, and padding.
    fn write_values(&mut self, file: &mut FileWriter, parts: &ColumnParts<'_>) -> Result<()> {
        let mut len = 0;
        if let Some(distinct) = &mut self.distinct {
            let mut bytes = Vec::new();
            parts(&mut |part| {
                bytes.clear();
                let is_known = distinct.codes(part, &mut self.codes);
                // The parts are read again for each section, and may differ if the source changed.
                if !is_known || distinct.len() as u64 != self.entry.num_distinct {
                    return Err(Error::Input("strings changed while they were written".into()));
                }
                match code_width(self.entry.num_distinct) {
                    1 => bytes.extend(self.codes.iter().map(|&code| code as u8)),
                    2 => bytes.extend(self.codes.iter().flat_map(|&code| (code as u16).to_le_bytes())),
                    _ => bytes.extend(self.codes.iter().flat_map(|code| code.to_le_bytes())),
                }
                len += bytes.len();
                file.append(&bytes)
            })?;
        } else if width(self.property_type).is_some() {
            parts(&mut |part| {
                let bytes = part.fixed_bytes().unwrap_or_default();
                len += bytes.len();
                file.append(&bytes)
            })?;
        }
        // Padded, so that the next column starts aligned.
        file.append(&[0; ALIGNMENT][..len.next_multiple_of(ALIGNMENT) - len])
    }

    fn write_offsets(&self, file: &mut FileWriter, parts: &ColumnParts<'_>) -> Result<()> {
        if let Some(distinct) = &self.distinct {
            return file.append(bytemuck::cast_slice(distinct.offsets()));
        }
        if width(self.property_type).is_some() {
            return Ok(());
        }
        // Offsets count through all parts, so each part is shifted by the bytes before it.
        let mut end = 0_i64;
        file.append(&end.to_le_bytes())?;
        parts(&mut |part| {
            // Strings may be coded in memory although the file stores them plain.
            let part = part.without_dictionary();
            let Some((offsets, _)) = part.pieces() else { return Ok(()) };
            // The first offset of a part repeats the last one of the part before.
            let shifted: Vec<i64> = offsets[1..].iter().map(|offset| end + offset - offsets[0]).collect();
            end = shifted.last().copied().unwrap_or(end);
            file.append(bytemuck::cast_slice(&shifted))
        })
    }

    fn write_bytes(&self, file: &mut FileWriter, parts: &ColumnParts<'_>) -> Result<()> {
        if let Some(distinct) = &self.distinct {
            return file.append(distinct.bytes());
        }
        if width(self.property_type).is_some() {
            return Ok(());
        }
        parts(&mut |part| {
            let part = part.without_dictionary();
            let Some((offsets, bytes)) = part.pieces() else { return Ok(()) };
            file.append(&bytes[offsets[0] as usize..offsets[offsets.len() - 1] as usize])
        })
    }
}

/// Bytes between the first and the last offset.
fn num_bytes(offsets: &[i64]) -> u64 {
    (offsets[offsets.len() - 1] - offsets[0]) as u64
}

/// Bytes of the codes of `num_rows` rows, and of the distinct strings.
fn num_coded_bytes(distinct: &DistinctStrings, num_rows: u64) -> u64 {
    let (num_distinct, num_bytes) = (distinct.len() as u64, distinct.bytes().len() as u64);
    num_rows * code_width(num_distinct) as u64 + 8 * num_distinct + num_bytes
}
