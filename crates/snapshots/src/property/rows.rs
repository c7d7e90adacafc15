//! Many rows of edges at once: their values by column, and the rows that pass a test.

use std::ops::Range;

use anden_base::bitmap::ones;
use anden_base::parallel::Pool;
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertyType};
use arrow_buffer::BooleanBuffer;

use super::edges::{EdgeColumns, EdgeProperties, no_row};
use crate::{Error, Result};

/// Rows that are tested at once, so that their values stay in the cache. A multiple of the bits of a word.
const TESTED_ROWS: usize = 1 << 15;
const WORD_BITS: usize = u64::BITS as usize;

/// Tests each row of some columns, which have equally many rows.
pub type RowTest<'a, E> = dyn Fn(&[PropertyColumn]) -> Result<BooleanBuffer, E> + Sync + 'a;

impl<'a> EdgeProperties<'a> {
    /// The values of these rows: a column for each of the properties at these positions of the schema.
    ///
    /// Cost: rows with consecutive numbers are copied as stored; others are looked up one by one.
    ///
    /// # Errors
    /// An unknown property or row, or damage.
    pub fn gather(self, places: &[usize], rows: &[u64]) -> Result<Vec<PropertyColumn>> {
        if places.is_empty() {
            // Without properties, rows of a multigraph are not stored.
            return Ok(Vec::new());
        }
        let found = self.find(rows)?;
        places.iter().map(|&place| self.gather_found(place, rows.len(), &found)).collect()
    }

    /// Number of stored rows.
    pub fn num_stored_rows(self) -> u64 {
        self.stored.columns.num_rows()
    }

    /// The stored rows that pass a test of the properties at these positions of the schema. Tests all rows, even those
    /// that no list of the view names.
    ///
    /// Cost: reads the columns once, in sequence; a bit a row.
    ///
    /// # Errors
    /// Errors of `test`; an unknown property, or a damaged row.
    pub fn passing<E: From<Error> + Send>(
        self,
        places: &[usize],
        pool: &Pool,
        test: &RowTest<'_, E>,
    ) -> Result<RowSet<'a>, E> {
        let columns = &*self.stored.columns;
        let types = places.iter().map(|&place| Ok((self.stored.numbers.get(place).copied(), self.type_of(place)?)));
        let types = types.collect::<Result<Vec<_>>>()?;
        let (mut chunks, mut starts, mut end) = (Vec::new(), Vec::new(), 0);
        for (index, (_, part)) in columns.parts.iter().enumerate() {
            starts.push(end);
            let chunk = |start: usize| (index, start..part.len().min(start + TESTED_ROWS));
            chunks.extend((0..part.len()).step_by(TESTED_ROWS).map(chunk));
            // Each part starts at a word, so that workers make whole words.
            end += part.len().next_multiple_of(WORD_BITS);
        }
        let words = pool.map_chunks(0..chunks.len(), 1, |_, chunk| -> Result<Vec<u64>, E> {
            let (index, rows) = &chunks[chunk.start];
            let part = &columns.parts[*index].1;
            let read = |&(number, property_type): &(Option<u32>, PropertyType)| match number {
                Some(number) => part.read(number, property_type, rows.clone()),
                // A property that only the memtable has yet is null in all stored rows.
                None => Ok(PropertyColumn::nulls(property_type, rows.len())),
            };
            let values = types.iter().map(read).collect::<Result<Vec<_>>>()?;
            Ok(test(&values)?.bit_chunks().iter_padded().take(rows.len().div_ceil(WORD_BITS)).collect())
        });
        let words = words.into_iter().collect::<Result<Vec<_>, E>>()?.concat();
        Ok(RowSet { columns, starts, words, first_new: self.first_new() })
    }

    fn type_of(self, place: usize) -> Result<PropertyType> {
        let known = self.schema().get(place).map(|(_, property_type)| property_type);
        known.ok_or_else(|| Error::Input(format!("there is no property of edges at place {place}")))
    }

    /// The first row number in memory.
    fn first_new(self) -> u64 {
        self.laid_over.map_or(u64::MAX, |laid_over| laid_over.first_new_row())
    }

    /// Places of rows.
    fn find(self, rows: &[u64]) -> Result<FoundRows> {
        let (columns, first_new) = (&self.stored.columns, self.first_new());
        let mut found = FoundRows { in_parts: vec![Vec::new(); columns.parts.len()], ..FoundRows::default() };
        let mut finder = RowFinder::new(columns);
        for &row in rows {
            let part = if row >= first_new {
                found.in_memory.push(row);
                columns.parts.len()
            } else {
                let (part, position) = finder.find(row)?.ok_or_else(|| no_row(row))?;
                found.in_parts[part].push(position);
                part
            };
            match found.parts.last_mut() {
                Some((last, count)) if *last == part => *count += 1,
                _ => found.parts.push((part, 1)),
            }
        }
        Ok(found)
    }

    fn gather_found(self, place: usize, num_rows: usize, found: &FoundRows) -> Result<PropertyColumn> {
        let property_type = self.type_of(place)?;
        let of_part = |part: usize| -> Result<PropertyColumn> {
            let Some(rows) = found.in_parts.get(part) else { return self.gather_new(place, property_type, found) };
            match self.stored.numbers.get(place) {
                Some(&number) => self.stored.columns.parts[part].1.gather(number, property_type, rows),
                None => Ok(PropertyColumn::nulls(property_type, rows.len())),
            }
        };
        // Rows of one part are in order already.
        if let [(part, _)] = found.parts[..] {
            return of_part(part);
        }
        // Rows of each part are gathered together, and then put in order.
        let (mut all, mut next) = (ColumnBuilder::new(property_type), Vec::new());
        for part in 0..=found.in_parts.len() {
            next.push(all.len() as u32);
            all.append(&of_part(part)?)?;
        }
        let mut order = Vec::with_capacity(num_rows);
        for &(part, count) in &found.parts {
            order.extend(next[part]..next[part] + count);
            next[part] += count;
        }
        Ok(all.finish().gather(&order))
    }

    fn gather_new(self, place: usize, property_type: PropertyType, found: &FoundRows) -> Result<PropertyColumn> {
        let mut column = ColumnBuilder::new(property_type);
        for &row in &found.in_memory {
            column.push(self.value(place, row)?)?;
        }
        Ok(column.finish())
    }
}

/// Places of some rows.
#[derive(Default)]
struct FoundRows {
    /// Parts in the order of the rows, each with the number of successive rows in it. Memory counts as the part after
    /// those in files.
    parts: Vec<(usize, u32)>,
    /// By part: the positions of its rows.
    in_parts: Vec<Vec<usize>>,
    /// The rows in memory.
    in_memory: Vec<u64>,
}

/// Finds rows in parts. Successive rows of a list are mostly in one run, so the last run is tried first.
struct RowFinder<'a> {
    columns: &'a EdgeColumns,
    part: usize,
    /// The row numbers of the last run, and the position of its first row.
    numbers: Range<u64>,
    position: usize,
}

impl<'a> RowFinder<'a> {
    fn new(columns: &'a EdgeColumns) -> Self {
        Self { columns, part: 0, numbers: 0..0, position: 0 }
    }

    /// The part with a row, and the position of the row there.
    #[inline]
    fn find(&mut self, row: u64) -> Result<Option<(usize, usize)>> {
        if !self.numbers.contains(&row) && !self.find_run(row)? {
            return Ok(None);
        }
        Ok(Some((self.part, self.position + (row - self.numbers.start) as usize)))
    }

    #[cold]
    fn find_run(&mut self, row: u64) -> Result<bool> {
        let Some(part) = self.columns.part_of(row) else { return Ok(false) };
        // Row numbers have gaps, so the part may lack the row.
        let Some((numbers, position)) = self.columns.parts[part].1.run_of(row)? else { return Ok(false) };
        (self.part, self.numbers, self.position) = (part, numbers, position);
        Ok(true)
    }
}

/// The stored rows that passed a test.
pub struct RowSet<'a> {
    columns: &'a EdgeColumns,
    /// By part: index of its first row among the bits.
    starts: Vec<usize>,
    words: Vec<u64>,
    first_new: u64,
}

impl RowSet<'_> {
    /// The rows that passed two tests of one view.
    #[must_use]
    pub fn both(mut self, other: Self) -> Self {
        debug_assert!(self.starts == other.starts && self.first_new == other.first_new);
        self.words.iter_mut().zip(&other.words).for_each(|(words, others)| *words &= others);
        self
    }

    /// Looks up rows, fastest in the order of their numbers.
    pub(crate) fn reader(&self) -> RowSetReader<'_> {
        RowSetReader { set: self, finder: RowFinder::new(self.columns) }
    }

    /// The next 64 bits from `first` on, with zeros behind the last.
    #[inline]
    fn bits(&self, first: usize) -> u64 {
        let (word, shift) = (first / WORD_BITS, first % WORD_BITS);
        let next = self.words.get(word + 1).map_or(0, |&next| next);
        // A shift by the width of a word would overflow.
        self.words[word] >> shift | if shift == 0 { 0 } else { next << (WORD_BITS - shift) }
    }

    /// Whether a row was tested; rows in memory were not.
    pub(crate) fn has_tested(&self, row: u64) -> bool {
        row < self.first_new
    }

    /// Approximate bytes of memory.
    pub fn num_bytes(&self) -> u64 {
        size_of_val(&self.words[..]) as u64
    }
}

/// Looks up rows of a set.
pub(crate) struct RowSetReader<'a> {
    set: &'a RowSet<'a>,
    finder: RowFinder<'a>,
}

impl RowSetReader<'_> {
    /// Calls `body` with the positions of the rows that passed, or were not tested.
    ///
    /// Cost: rows with consecutive numbers, which are common in a list, are looked up together, a word of bits at a
    /// time.
    ///
    /// # Errors
    /// An unknown row; damaged row numbers.
    #[inline]
    pub fn for_each_passing(&mut self, rows: &[u64], mut body: impl FnMut(usize)) -> Result<()> {
        let mut next = 0;
        while let Some(&row) = rows.get(next) {
            // A row outside of the last run is looked up alone. The lookup finds the run for the rows behind.
            if !self.finder.numbers.contains(&row) {
                if self.may_pass(row)? {
                    body(next);
                }
                next += 1;
                continue;
            }
            // Rows with consecutive numbers share a word of bits.
            let expected = row..self.finder.numbers.end.min(row + WORD_BITS as u64);
            let num_rows = rows[next..].iter().zip(expected).take_while(|(row, expected)| **row == *expected).count();
            let first = self.set.starts[self.finder.part] + self.finder.position;
            let bits = self.set.bits(first + (row - self.finder.numbers.start) as usize);
            // At least one row is expected, so the shift is less than a word.
            ones(bits & (u64::MAX >> (WORD_BITS - num_rows))).for_each(|place| body(next + place));
            next += num_rows;
        }
        Ok(())
    }

    /// Whether a row passed, or was not tested.
    ///
    /// # Errors
    /// An unknown row; damaged row numbers.
    #[inline]
    pub fn may_pass(&mut self, row: u64) -> Result<bool> {
        if !self.set.has_tested(row) {
            return Ok(true);
        }
        let (part, position) = self.finder.find(row)?.ok_or_else(|| no_row(row))?;
        let place = self.set.starts[part] + position;
        Ok(self.set.words[place / WORD_BITS] >> (place % WORD_BITS) & 1 == 1)
    }
}
