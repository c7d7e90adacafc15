//! The values of a column for consecutive rows.
//!
//! Only the rows that are asked for are laid out; what stands before them in a page is passed over.
//! So memory follows the rows that a caller asks for, not the counts in the file.

use std::fs::File;
use std::ops::Range;

use arrow_buffer::NullBufferBuilder;

use super::footer::{Chunk, Leaf, Physical};
use super::packed::{Numbers, Runs, deltas};
use super::page::{
    BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, Head, PLAIN, PLAIN_DICTIONARY,
    Pages, Place, RLE, RLE_DICTIONARY, Result,
};
use super::texts::{Texts, delta_texts, plain_texts};

/// Values by row; those of null rows are of no matter.
#[derive(Debug)]
pub(super) enum Values {
    Booleans(Vec<u8>),
    /// Whole numbers; unsigned ones of 64 bits by their bits.
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Texts),
}

/// A column for consecutive rows.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) values: Values,
    /// Which rows have a value.
    pub(super) validity: NullBufferBuilder,
    num_rows: usize,
}

/// What indices of a page refer to.
enum Dictionary {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    /// Places among the entries of the column's texts.
    Texts(Vec<u32>),
}

/// Which of the values of a page are wanted, of those that are there.
#[derive(Clone, Copy, Debug)]
struct Window {
    skip: usize,
    take: usize,
}

impl Column {
    pub(super) fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Reads the rows of a range, of a row group with `num_rows`.
    ///
    /// # Errors
    /// What is wrong with the pages up to the end of the range.
    pub(super) fn read(file: &File, leaf: &Leaf, chunk: &Chunk, num_rows: u64, rows: &Range<u64>) -> Result<Self> {
        let mut column = Self { values: empty(leaf), validity: NullBufferBuilder::new(0), num_rows: 0 };
        let mut pages = Pages::new(file, chunk);
        let (mut dictionary, mut body, mut row) = (None, Vec::new(), 0);
        while row < rows.end {
            let Some(head) = pages.next()? else {
                return Err(format!("expected {num_rows} rows, as the footer says, found {row}"));
            };
            if head.place == Place::Dictionary {
                pages.read(&head, &mut body)?;
                if dictionary.is_some() || !matches!(head.encoding, PLAIN | PLAIN_DICTIONARY) {
                    return Err("its dictionary is none".into());
                }
                dictionary = Some(column.add_dictionary(leaf, &body, head.num_values)?);
                continue;
            }
            let end = row + head.num_values as u64;
            if end > num_rows {
                return Err(format!("expected {num_rows} rows, as the footer says, found more"));
            }
            if end <= rows.start {
                pages.pass(&head)?;
            } else {
                pages.read(&head, &mut body)?;
                let skip = rows.start.saturating_sub(row) as usize;
                let take = (end.min(rows.end) - row) as usize - skip;
                column.add_page(leaf, &head, &body, Window { skip, take }, &dictionary)?;
            }
            row = end;
        }
        Ok(column)
    }

    fn add_dictionary(&mut self, leaf: &Leaf, body: &[u8], num_values: usize) -> Result<Dictionary> {
        // Each value takes a byte at least, so the count sizes nothing that is not there.
        let all = Window { skip: 0, take: num_values };
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        Ok(match (&mut self.values, leaf.physical) {
            (Values::Texts(texts), physical) => {
                plain_texts(body, fixed_len(physical), 0, num_values, texts)?;
                Dictionary::Texts(std::mem::take(&mut texts.indices))
            }
            (Values::Integers(_), physical) => {
                plain_integers(physical, leaf.is_unsigned(), body, all, &mut integers)?;
                Dictionary::Integers(integers)
            }
            (Values::Floats(_), physical) => {
                plain_floats(physical, body, all, &mut floats)?;
                Dictionary::Floats(floats)
            }
            (Values::Booleans(_), _) => return Err("booleans have a dictionary".into()),
        })
    }

    fn add_page(
        &mut self,
        leaf: &Leaf,
        head: &Head,
        body: &[u8],
        rows: Window,
        dictionary: &Option<Dictionary>,
    ) -> Result<()> {
        let (levels, body) = split_levels(leaf, head, body)?;
        let first = self.num_rows;
        self.num_rows += rows.take;
        let mut values = rows;
        match levels {
            Some(levels) => values = self.add_levels(leaf, levels, rows)?,
            None => self.validity.append_n_non_nulls(rows.take),
        }
        self.add_values(leaf, head, body, values, dictionary)?;
        if values.take < rows.take {
            self.spread(first, values.take);
        }
        Ok(())
    }

    /// Notes which rows have values; returns which of the page's values are theirs.
    fn add_levels(&mut self, leaf: &Leaf, levels: &[u8], rows: Window) -> Result<Window> {
        let full = leaf.max_definition;
        let mut values = Window { skip: 0, take: 0 };
        let mut num_before = rows.skip;
        let mut note = |level: u32, len: usize| {
            if level > full {
                return Err(format!("expected levels of at most {full}, found {level}"));
            }
            let before = num_before.min(len);
            num_before -= before;
            if level < full {
                self.validity.append_n_nulls(len - before);
            } else {
                self.validity.append_n_non_nulls(len - before);
                values = Window { skip: values.skip + before, take: values.take + len - before };
            }
            Ok(())
        };
        let bits = u32::BITS - full.leading_zeros();
        Runs::new(levels, bits)?.for_each(rows.skip + rows.take, |numbers| match numbers {
            Numbers::Same(level, len) => note(level, len),
            Numbers::Each(levels) => levels.iter().try_for_each(|&level| note(level, 1)),
        })?;
        Ok(values)
    }

    /// Appends the values of a page that are wanted, one after the other.
    fn add_values(
        &mut self,
        leaf: &Leaf,
        head: &Head,
        body: &[u8],
        window: Window,
        dictionary: &Option<Dictionary>,
    ) -> Result<()> {
        let Head { encoding, num_values, .. } = *head;
        if matches!(encoding, PLAIN_DICTIONARY | RLE_DICTIONARY) {
            let dictionary = dictionary.as_ref().ok_or("a page needs a dictionary, and there is none")?;
            return self.add_indexed(body, window, dictionary);
        }
        let physical = leaf.physical;
        match (&mut self.values, encoding) {
            (Values::Booleans(values), PLAIN) => plain_booleans(body, window, values),
            (Values::Booleans(values), RLE) => run_booleans(body, window, values),
            (Values::Integers(values), PLAIN) => plain_integers(physical, leaf.is_unsigned(), body, window, values),
            (Values::Integers(values), DELTA_BINARY_PACKED) if physical != Physical::Int96 => {
                let (mut body, mut at) = (body, 0);
                let is_short = physical == Physical::Int32;
                let found = deltas(&mut body, num_values, |value| {
                    if (window.skip..window.skip + window.take).contains(&at) {
                        // Differences of 32 bits wrap at 32 bits.
                        values.push(match (is_short, leaf.is_unsigned()) {
                            (true, true) => i64::from(value as u32),
                            (true, false) => i64::from(value as i32),
                            _ => value,
                        });
                    }
                    at += 1;
                })?;
                enough(found, window)
            }
            (Values::Floats(values), PLAIN) => plain_floats(physical, body, window, values),
            (values, BYTE_STREAM_SPLIT) if split_width(physical).is_some() => {
                let width = split_width(physical).unwrap_or(1);
                let joined = joined_streams(body, width, window)?;
                let window = Window { skip: 0, ..window };
                match values {
                    Values::Integers(values) => plain_integers(physical, leaf.is_unsigned(), &joined, window, values),
                    Values::Floats(values) => plain_floats(physical, &joined, window, values),
                    Values::Texts(texts) => plain_texts(&joined, Some(width), 0, window.take, texts),
                    Values::Booleans(_) => Err("booleans are split by bytes".into()),
                }
            }
            (Values::Texts(texts), PLAIN) => plain_texts(body, fixed_len(physical), window.skip, window.take, texts),
            (Values::Texts(texts), DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY) => {
                let has_prefixes = encoding == DELTA_BYTE_ARRAY;
                delta_texts(body, has_prefixes, num_values, window.skip..window.skip + window.take, texts)
            }
            _ => Err(format!("its values are in the encoding {encoding}, which is not read for them")),
        }
    }

    /// Appends values that a page names by their places in the dictionary.
    fn add_indexed(&mut self, body: &[u8], window: Window, dictionary: &Dictionary) -> Result<()> {
        if window.take == 0 {
            return Ok(());
        }
        let Some((&bits, body)) = body.split_first() else { return Err("a page ends too early".into()) };
        let numbers = Runs::new(body, bits.into())?;
        match (&mut self.values, dictionary) {
            (Values::Integers(values), Dictionary::Integers(entries)) => indexed(numbers, window, entries, values),
            (Values::Floats(values), Dictionary::Floats(entries)) => indexed(numbers, window, entries, values),
            (Values::Texts(texts), Dictionary::Texts(places)) => indexed(numbers, window, places, &mut texts.indices),
            _ => Err("its dictionary is of another type".into()),
        }
    }

    /// Moves the last `num_values` values to the rows, from the row `first` on, that have one.
    fn spread(&mut self, first: usize, num_values: usize) {
        let (num_rows, validity) = (self.num_rows, &self.validity);
        match &mut self.values {
            Values::Booleans(values) => spread(values, first, num_values, num_rows, validity),
            Values::Integers(values) => spread(values, first, num_values, num_rows, validity),
            Values::Floats(values) => spread(values, first, num_values, num_rows, validity),
            Values::Texts(texts) => spread(&mut texts.indices, first, num_values, num_rows, validity),
        }
    }
}

fn spread<T: Copy + Default>(
    values: &mut Vec<T>,
    first: usize,
    num_values: usize,
    num_rows: usize,
    validity: &NullBufferBuilder,
) {
    values.resize(num_rows, T::default());
    let mut from = first + num_values;
    // From the end, so that a value is moved before its place is taken.
    for row in (first..num_rows).rev() {
        values[row] = match validity.is_valid(row) {
            true => {
                from -= 1;
                values[from]
            }
            false => T::default(),
        };
    }
}

/// No values of a column.
fn empty(leaf: &Leaf) -> Values {
    match leaf.physical {
        Physical::Boolean => Values::Booleans(Vec::new()),
        Physical::Int32 | Physical::Int64 | Physical::Int96 => Values::Integers(Vec::new()),
        Physical::Float | Physical::Double => Values::Floats(Vec::new()),
        Physical::Bytes | Physical::FixedBytes(_) => Values::Texts(Texts::default()),
    }
}

fn fixed_len(physical: Physical) -> Option<usize> {
    match physical {
        Physical::FixedBytes(len) => Some(len),
        _ => None,
    }
}

/// The definition levels of a page, if its values have any, and the values.
fn split_levels<'a>(leaf: &Leaf, head: &Head, body: &'a [u8]) -> Result<(Option<&'a [u8]>, &'a [u8])> {
    let short = || String::from("the levels of a page are longer than the page");
    let (levels, values) = match head.place {
        Place::DataV2 { num_level_bytes: [repetition, definition] } => {
            let (levels, values) = body.split_at_checked(repetition + definition).ok_or_else(short)?;
            (levels.get(repetition..).unwrap_or_default(), values)
        }
        _ if leaf.max_definition == 0 => (&[][..], body),
        _ if head.level_encoding != RLE => {
            return Err(format!("its levels are in the encoding {}, which is not read", head.level_encoding));
        }
        _ => {
            let (len, rest) = body.split_first_chunk::<4>().ok_or_else(short)?;
            rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(short)?
        }
    };
    Ok(((leaf.max_definition > 0).then_some(levels), values))
}

/// Whether a page has the values that its levels promise.
fn enough(found: usize, window: Window) -> Result<()> {
    match window.skip + window.take {
        wanted if wanted <= found => Ok(()),
        wanted => Err(format!("expected at least {wanted} values in a page, found {found}")),
    }
}

/// The bytes of the values of a window, of `width` bytes each.
fn window_of(body: &[u8], window: Window, width: usize) -> Result<&[u8]> {
    enough(body.len() / width, window)?;
    Ok(&body[window.skip * width..(window.skip + window.take) * width])
}

fn plain_integers(
    physical: Physical,
    is_unsigned: bool,
    body: &[u8],
    window: Window,
    into: &mut Vec<i64>,
) -> Result<()> {
    match physical {
        Physical::Int32 if is_unsigned => {
            let values = window_of(body, window, 4)?.as_chunks().0;
            into.extend(values.iter().map(|&bytes| i64::from(u32::from_le_bytes(bytes))));
        }
        Physical::Int32 => {
            let values = window_of(body, window, 4)?.as_chunks().0;
            into.extend(values.iter().map(|&bytes| i64::from(i32::from_le_bytes(bytes))));
        }
        Physical::Int96 => {
            for bytes in window_of(body, window, 12)?.as_chunks::<12>().0 {
                into.push(int96(*bytes)?);
            }
        }
        _ => {
            let values = window_of(body, window, 8)?.as_chunks().0;
            into.extend(values.iter().map(|&bytes| i64::from_le_bytes(bytes)));
        }
    }
    Ok(())
}

/// Nanoseconds since 1970 of a time of day in nanoseconds and a Julian day, to the microsecond.
fn int96(bytes: [u8; 12]) -> Result<i64> {
    let nanos = u64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
    let day = u32::from_le_bytes(std::array::from_fn(|i| bytes[8 + i]));
    let days = i128::from(day) - 2_440_588;
    let nanos = days * 86_400_000_000_000 + i128::from(nanos);
    i64::try_from(nanos).map_err(|_| "a timestamp is outside the years 1677 to 2262".into())
}

fn plain_floats(physical: Physical, body: &[u8], window: Window, into: &mut Vec<f64>) -> Result<()> {
    if physical == Physical::Float {
        let values = window_of(body, window, 4)?.as_chunks().0;
        into.extend(values.iter().map(|&bytes| f64::from(f32::from_le_bytes(bytes))));
    } else {
        let values = window_of(body, window, 8)?.as_chunks().0;
        into.extend(values.iter().map(|&bytes| f64::from_le_bytes(bytes)));
    }
    Ok(())
}

fn plain_booleans(body: &[u8], window: Window, into: &mut Vec<u8>) -> Result<()> {
    enough(8 * body.len(), window)?;
    into.extend((window.skip..window.skip + window.take).map(|bit| body[bit / 8] >> (bit % 8) & 1));
    Ok(())
}

fn run_booleans(body: &[u8], window: Window, into: &mut Vec<u8>) -> Result<()> {
    let Some((_, body)) = body.split_first_chunk::<4>() else { return Err("a page ends too early".into()) };
    indexed(Runs::new(body, 1)?, window, &[0, 1], into)
}

/// Bytes of a value whose bytes may lie in one stream each.
fn split_width(physical: Physical) -> Option<usize> {
    match physical {
        Physical::Int32 | Physical::Float => Some(4),
        Physical::Int64 | Physical::Double => Some(8),
        Physical::FixedBytes(len) => Some(len),
        _ => None,
    }
}

/// The values of a window whose first bytes lie together, then their second ones, and so on.
fn joined_streams(body: &[u8], width: usize, window: Window) -> Result<Vec<u8>> {
    let num_values = body.len() / width;
    enough(num_values, window)?;
    let mut joined = vec![0; window.take * width];
    for (value, bytes) in joined.chunks_exact_mut(width).enumerate() {
        for (stream, byte) in bytes.iter_mut().enumerate() {
            *byte = body[stream * num_values + window.skip + value];
        }
    }
    Ok(joined)
}

/// Appends the entries that numbers name.
fn indexed<T: Copy>(numbers: Runs<'_>, window: Window, entries: &[T], into: &mut Vec<T>) -> Result<()> {
    let wrong = |index: u32| format!("expected an entry of a dictionary of {}, found {index}", entries.len());
    let mut num_before = window.skip;
    into.reserve(window.take);
    numbers.for_each(window.skip + window.take, |numbers| {
        match numbers {
            Numbers::Same(index, len) => {
                let before = num_before.min(len);
                num_before -= before;
                let entry = *entries.get(index as usize).ok_or_else(|| wrong(index))?;
                into.resize(into.len() + len - before, entry);
            }
            Numbers::Each(indices) => {
                let before = num_before.min(indices.len());
                num_before -= before;
                let largest = indices.iter().copied().max().unwrap_or(0);
                if largest as usize >= entries.len() {
                    return Err(wrong(largest));
                }
                into.extend(indices[before..].iter().map(|&index| entries[index as usize]));
            }
        }
        Ok(())
    })
}
