//! The values of a column at arbitrary rows.

use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertyType};
use arrow_array::Array;
use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::{ColumnFile, StoredColumn, StoredDictionary, WORD_BITS, width};
use crate::Result;

/// A range is read as a whole, and rows are picked from it, if it has at most this many rows for each wanted one.
const MOST_READ_ROWS: usize = 4;

impl ColumnFile {
    /// The values of a column at these rows of the file, counted from the first; all null if the file lacks the column.
    ///
    /// Cost: a copy of the range from the smallest to the largest row if that is short, otherwise a lookup a row.
    ///
    /// # Errors
    /// A row is damaged.
    pub fn gather(&self, number: u32, property_type: PropertyType, rows: &[usize]) -> Result<PropertyColumn> {
        let Some(column) = self.find(number) else { return Ok(PropertyColumn::nulls(property_type, rows.len())) };
        let (Some(&first), Some(&last)) = (rows.iter().min(), rows.iter().max()) else {
            return Ok(PropertyColumn::nulls(property_type, 0));
        };
        let range = first..last + 1;
        // Rows that are far apart are looked up one by one: a read of the range would copy mostly other rows.
        if range.len() / MOST_READ_ROWS > rows.len() {
            return Ok(self.pick(column, rows)?);
        }
        let read = self.read(number, property_type, range.clone())?;
        // The range holds exactly the wanted rows, in their order.
        if range.len() == rows.len() && rows.is_sorted_by(|a, b| a < b) {
            return Ok(read);
        }
        Ok(read.gather(&rows.iter().map(|&row| (row - first) as u32).collect::<Vec<_>>()))
    }

    /// Values of rows that are far apart.
    fn pick(&self, column: &StoredColumn, rows: &[usize]) -> anden_base::Result<PropertyColumn> {
        if let Some(dictionary) = &column.dictionary {
            let nulls = self.picked_nulls(column, rows)?;
            return self.pick_codes(column, dictionary, rows, nulls);
        }
        let start = column.values.start;
        let values = match width(column.property_type) {
            None => return self.pick_pieces(column, rows),
            Some(1) => self.pick_fixed::<1>(start, rows)?,
            Some(4) => self.pick_fixed::<4>(start, rows)?,
            Some(_) => self.pick_fixed::<8>(start, rows)?,
        };
        let nulls = self.picked_nulls(column, rows)?;
        PropertyColumn::from_fixed_bytes(column.property_type, &values, nulls)
            .map_err(|error| self.values.corrupt(start, format!("column {}: {error}", column.number)))
    }

    fn pick_fixed<const N: usize>(&self, start: usize, rows: &[usize]) -> anden_base::Result<Vec<u8>> {
        let mut values = Vec::with_capacity(rows.len() * N);
        for &row in rows {
            values.extend_from_slice(&self.fixed::<N>(start + row * N)?);
        }
        Ok(values)
    }

    fn pick_codes(
        &self,
        column: &StoredColumn,
        dictionary: &StoredDictionary,
        rows: &[usize],
        nulls: Option<NullBuffer>,
    ) -> anden_base::Result<PropertyColumn> {
        let texts = self.texts(column, dictionary)?;
        let mut codes = Vec::with_capacity(rows.len());
        for (place, &row) in rows.iter().enumerate() {
            let code = self.code(column, dictionary, row)?;
            // A null row has code 0, even if the dictionary is empty.
            if code as usize >= texts.len() && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(place)) {
                return Err(self.no_such_code(column, dictionary, row, code, texts.len()));
            }
            codes.push(code);
        }
        PropertyColumn::from_codes(codes, texts, nulls)
            .map_err(|error| self.values.corrupt(column.values.start, error.to_string()))
    }

    fn pick_pieces(&self, column: &StoredColumn, rows: &[usize]) -> anden_base::Result<PropertyColumn> {
        let mut values = ColumnBuilder::new(column.property_type);
        for &row in rows {
            let value = self.value(column, row)?;
            values.push(value).map_err(|error| self.offsets.corrupt(column.offsets.start + row, error.to_string()))?;
        }
        Ok(values.finish())
    }

    /// The rows that have a value.
    fn picked_nulls(&self, column: &StoredColumn, rows: &[usize]) -> anden_base::Result<Option<NullBuffer>> {
        let Some(words) = &column.validity else { return Ok(None) };
        let mut is_valid = Vec::with_capacity(rows.len());
        for &row in rows {
            let word = words.start + row / WORD_BITS;
            is_valid.push(self.validity.touch(word..word + 1)?[0] >> (row % WORD_BITS) & 1 == 1);
        }
        Ok(Some(NullBuffer::new(BooleanBuffer::from(is_valid))))
    }
}
