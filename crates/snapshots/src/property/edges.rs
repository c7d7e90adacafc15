//! Properties of edges: rows of values, which lists name by number.
//!
//! In a graph with edge properties, each edge has a row. The list entries of the edge hold the row's number. A row
//! never changes: an edge with other values or another weight gets a new row. Numbers ascend in commit order and are
//! never reused. Rows that no snapshot named are not written, so numbers have gaps.
//!
//! Edges of a multigraph have rows too, with or without properties. The first row of such an edge is its lasting
//! number; later rows name it in a column of their own.
//!
//! Rows are stored in parts: files with all columns of the rows of a range of numbers. A new part is joined with the
//! last parts that are at most twice as long, which keeps them few.

use std::fmt::Debug;
use std::sync::Arc;

use anden_base::bitmap::Bitmap;
use anden_graph::property::{ItemType, PropertyColumn, PropertySchema, PropertyType, PropertyValue};

use super::column::{ColumnFile, RowRun};
use super::{type_byte, type_of_byte};
use crate::encoding::{Decoder, Encoder};
use crate::{Error, Result};

/// Rows that are copied at once.
const COPIED_ROWS: usize = 1 << 16;

/// An edge property in the manifest. Files name it by its index there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EdgeRecord {
    pub name: String,
    /// The type of the stored values.
    pub property_type: PropertyType,
    /// The type of the items, if the values are lists.
    pub items: Option<ItemType>,
    /// The first version with this property.
    pub since: u32,
}

impl EdgeRecord {
    pub fn new(name: &str, declared: PropertyType, since: u32) -> Self {
        Self { name: name.to_owned(), property_type: declared.stored(), items: declared.items(), since }
    }

    /// The type in the schema.
    pub fn declared(&self) -> PropertyType {
        self.items.map_or(self.property_type, PropertyType::List)
    }

    pub fn encode(&self, body: &mut Encoder) {
        body.string(&self.name);
        body.u8(type_byte(self.declared()));
        body.u32(self.since);
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (name, declared) = (decoder.string()?, type_of_byte(decoder.u8()?)?);
        Some(Self::new(&name, declared, decoder.u32()?))
    }
}

/// Column number of the column that leads from a row to the first row of its edge; null if that is the row itself.
pub(crate) const FIRST_ROWS: u32 = u32::MAX;

/// A part of the rows: the number of its file, and the open file.
pub(crate) type RowPart = (u32, Arc<ColumnFile>);

/// The open rows of all edges.
#[derive(Debug, Default)]
pub(crate) struct EdgeColumns {
    pub records: Vec<EdgeRecord>,
    /// In the order of row numbers.
    pub parts: Vec<RowPart>,
}

impl EdgeColumns {
    /// Checks that the row numbers of parts ascend below `next_row`, and that columns have the right types. Returns the
    /// index of the faulty part, and the fault.
    pub fn fault(&self, next_row: u64) -> Option<(usize, String)> {
        let mut next = 0;
        for (place, (_, part)) in self.parts.iter().enumerate() {
            match part.row_ends() {
                Some((first, last)) if first >= next && last < next_row => next = last + 1,
                // Without runs, rows would count from 0, as only vertex columns do.
                found => {
                    return Some((place, format!("rows from {next} to below {next_row} expected, {found:?} found")));
                }
            }
            let is_known = |(number, property_type): (u32, PropertyType)| self.type_of(number) == Some(property_type);
            if !part.columns().all(is_known) {
                return Some((place, "a column that the database has not, or of another type".into()));
            }
        }
        None
    }

    /// The type of the column with this number.
    fn type_of(&self, number: u32) -> Option<PropertyType> {
        match number {
            FIRST_ROWS => Some(PropertyType::I64),
            number => self.records.get(number as usize).map(|record| record.property_type),
        }
    }

    /// Numbers and types of the columns of a file that joins these parts and new rows. `has_first_rows`: whether a new
    /// row is a later row of its edge.
    pub fn types(&self, parts: &[RowPart], has_first_rows: bool) -> Vec<(u32, PropertyType)> {
        let is_first_rows = |(number, _): (u32, PropertyType)| number == FIRST_ROWS;
        // Joined rows keep this column once a part has it.
        let has_first_rows = has_first_rows || parts.iter().any(|(_, part)| part.columns().any(is_first_rows));
        let first_rows = has_first_rows.then_some((FIRST_ROWS, PropertyType::I64));
        (0..).zip(&self.records).map(|(number, record)| (number, record.property_type)).chain(first_rows).collect()
    }

    /// The first row of the edge that has or had a row.
    pub fn first_row(&self, row: u64) -> Result<u64> {
        Ok(match self.position(row)? {
            Some((part, position)) => match part.get(FIRST_ROWS, position)? {
                // The column is missing, or null in the first row of an edge.
                PropertyValue::I64(first) => first as u64,
                _ => row,
            },
            // Rows without values are not stored, and such a row is the first of its edge.
            None => row,
        })
    }

    /// The value of a column at a row.
    pub fn get(&self, number: u32, row: u64) -> Result<PropertyValue<'_>> {
        match self.position(row)? {
            Some((part, position)) => Ok(part.get(number, position)?),
            None => Err(no_row(row)),
        }
    }

    /// The part with a row, and the position of the row there.
    fn position(&self, row: u64) -> Result<Option<(&ColumnFile, usize)>> {
        let Some(place) = self.part_of(row) else { return Ok(None) };
        let part = &self.parts[place].1;
        Ok(part.position(row)?.map(|position| (&**part, position)))
    }

    /// Index of the part whose range contains a row, if any.
    pub(super) fn part_of(&self, row: u64) -> Option<usize> {
        // Parts ascend by row, so only the last part that starts before the row can have it.
        let starts_before = |(_, part): &RowPart| part.row_ends().is_some_and(|(first, _)| first <= row);
        self.parts.partition_point(starts_before).checked_sub(1)
    }

    /// Whether a part has a row.
    pub fn has(&self, row: u64) -> bool {
        self.position(row).is_ok_and(|position| position.is_some())
    }

    /// Number of rows.
    pub fn num_rows(&self) -> u64 {
        self.parts.iter().map(|(_, part)| part.len() as u64).sum()
    }

    /// Position of a row among all rows; `None` if no row has this number.
    ///
    /// # Errors
    /// The numbers of a part are damaged.
    pub fn place(&self, row: u64) -> Result<Option<u64>> {
        let Some((found, position)) = self.position(row)? else { return Ok(None) };
        let before = self.parts.iter().take_while(|(_, part)| !std::ptr::eq(&**part, found));
        Ok(Some(before.map(|(_, part)| part.len() as u64).sum::<u64>() + position as u64))
    }

    /// The runs of the rows at these positions, as in one file.
    ///
    /// # Errors
    /// The numbers of a part are damaged.
    pub fn runs_of(&self, places: &Bitmap) -> Result<Vec<RowRun>> {
        let (mut runs, mut position) = (Vec::new(), 0);
        let (all, num_rows) = Self::joined_runs(&self.parts)?;
        for (index, run) in all.iter().enumerate() {
            let end = all.get(index + 1).map_or(num_rows, |next| next.position);
            for place in (run.position..end).filter(|&place| places.get(place as usize)) {
                RowRun { number: run.number + (place - run.position), position }.push(&mut runs);
                position += 1;
            }
        }
        Ok(runs)
    }

    /// Gives the rows of a column at these positions to `take`, some at a time.
    ///
    /// # Errors
    /// A row is damaged; errors of `take`.
    pub fn copy_some(
        &self,
        places: &Bitmap,
        number: u32,
        take: &mut dyn FnMut(&PropertyColumn) -> Result<()>,
    ) -> Result<()> {
        let mut first = 0;
        self.copy(&self.parts, number, &mut |rows| {
            let wanted: Vec<u32> = (0..rows.len() as u32).filter(|&row| places.get(first + row as usize)).collect();
            first += rows.len();
            take(&rows.gather(&wanted))
        })
    }

    /// The runs of all rows of parts, as in one joined file, and the number of rows.
    ///
    /// # Errors
    /// The numbers of a part are damaged.
    pub fn joined_runs(parts: &[RowPart]) -> Result<(Vec<RowRun>, u64)> {
        let (mut runs, mut num_rows) = (Vec::new(), 0);
        // Positions count through all parts, so each part is shifted by the rows before it.
        for (_, part) in parts {
            let shifted = part.runs()?.iter().map(|run| RowRun { position: run.position + num_rows, ..*run });
            shifted.for_each(|run| run.push(&mut runs));
            num_rows += part.len() as u64;
        }
        Ok((runs, num_rows))
    }

    /// Gives all rows of parts, of the column with this number, to `take`, some at a time.
    pub fn copy(
        &self,
        parts: &[RowPart],
        number: u32,
        take: &mut dyn FnMut(&PropertyColumn) -> Result<()>,
    ) -> Result<()> {
        let Some(property_type) = self.type_of(number) else { return Ok(()) };
        for (_, part) in parts {
            for start in (0..part.len()).step_by(COPIED_ROWS) {
                let end = part.len().min(start + COPIED_ROWS);
                take(&part.read(number, property_type, start..end)?)?;
            }
        }
        Ok(())
    }
}

/// The error for a row that a list names and no part has.
pub(super) fn no_row(row: u64) -> Error {
    Error::Input(format!("an edge names row {row} of its properties, which is not there"))
}

/// Rows in memory that no snapshot has yet; a version of them never changes.
pub trait RowOverlay: Debug + Send + Sync {
    /// Names and types: those of the snapshot, then new ones.
    fn edge_schema(&self) -> &PropertySchema;

    /// The smallest row number in memory; smaller ones belong to the snapshot.
    fn first_new_row(&self) -> u64;

    /// The value of a row, for the property at a position of the schema; `None` if the row is the snapshot's.
    fn row_value(&self, place: usize, row: u64) -> Option<PropertyValue<'_>>;

    /// The first row of the edge that has or had a row, in a multigraph; `None` if the row is the snapshot's.
    fn first_row(&self, row: u64) -> Option<u64>;
}

/// Edge properties of a view. Nothing is read before the first question.
#[derive(Clone, Copy, Debug)]
pub struct EdgeProperties<'a> {
    pub(super) stored: &'a StoredRows,
    pub(super) laid_over: Option<&'a dyn RowOverlay>,
}

impl<'a> EdgeProperties<'a> {
    /// Joins stored rows with an overlay.
    pub(crate) fn new(stored: &'a StoredRows, laid_over: Option<&'a dyn RowOverlay>) -> Self {
        Self { stored, laid_over }
    }

    /// Names and types.
    pub fn schema(self) -> &'a PropertySchema {
        self.laid_over.map_or(&self.stored.schema, |laid_over| laid_over.edge_schema())
    }

    /// The value of a row, for the property at a position of the schema; null if there is no such property.
    ///
    /// Cost: a binary search among the parts, and one among the runs of a part.
    ///
    /// # Errors
    /// There is no such row, or the row is damaged.
    pub fn value(self, place: usize, row: u64) -> Result<PropertyValue<'a>> {
        match self.laid_over.and_then(|laid_over| laid_over.row_value(place, row)) {
            Some(value) => Ok(value),
            None => self.stored.value(place, row),
        }
    }

    /// The lasting number of the multigraph's edge that has a row: its first row, which never changes.
    ///
    /// Cost: as [`value`](Self::value).
    ///
    /// # Errors
    /// The row is damaged.
    pub fn number(self, row: u64) -> Result<u64> {
        match self.laid_over.and_then(|laid_over| laid_over.first_row(row)) {
            Some(number) => Ok(number),
            None => self.stored.columns.first_row(row),
        }
    }
}

/// Stored edge properties at one version.
#[derive(Debug, Default)]
pub(crate) struct StoredRows {
    pub(super) columns: Arc<EdgeColumns>,
    /// The properties of the version, and the numbers of their columns.
    schema: PropertySchema,
    pub(super) numbers: Vec<u32>,
}

impl StoredRows {
    /// The properties of `version`.
    pub fn new(columns: &Arc<EdgeColumns>, version: u32) -> Result<Self> {
        let mut schema = PropertySchema::default();
        let mut numbers = Vec::new();
        for (number, record) in columns.records.iter().enumerate() {
            if record.since <= version {
                schema.add(record.name.clone(), record.declared())?;
                numbers.push(number as u32);
            }
        }
        Ok(Self { columns: Arc::clone(columns), schema, numbers })
    }

    fn value(&self, place: usize, row: u64) -> Result<PropertyValue<'_>> {
        match self.numbers.get(place) {
            Some(&number) => self.columns.get(number, row),
            None => Ok(PropertyValue::Null),
        }
    }
}
