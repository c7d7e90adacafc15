//! Properties of edges: rows of values, which lists name.
//!
//! A graph with properties of edges gives each edge a row; the entries of lists carry its number where others carry a
//! weight, both entries of an undirected edge the same. Rows are never changed: an edge with other values gets a new
//! row. They are in parts, files of consecutive rows with all columns, of which a new one is written together with
//! those before it that are at most twice as long, so that there are few. What no list names any more stays until the
//! graph is loaded anew.

use std::sync::Arc;

use graph::property::{PropertyColumn, PropertySchema, PropertyType, PropertyValue};

use super::column::ColumnFile;
use super::{type_number, type_of_number};
use crate::encoding::{Decoder, Encoder};
use crate::{Error, Result};

/// Rows that are copied at once.
const COPIED_ROWS: usize = 1 << 16;

/// A property of edges, as the manifest knows it; its place among them is its number in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EdgeRecord {
    pub name: String,
    pub property_type: PropertyType,
    /// The first version that has it.
    pub since: u32,
}

impl EdgeRecord {
    pub fn encode(&self, body: &mut Encoder) {
        body.string(&self.name);
        body.u8(type_number(self.property_type) as u8);
        body.u32(self.since);
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (name, property_type) = (decoder.string()?, type_of_number(decoder.u8()?.into())?);
        Some(Self { name, property_type, since: decoder.u32()? })
    }
}

/// A part of the rows: the number of its file, and the file.
pub(crate) type RowPart = (u32, Arc<ColumnFile>);

/// The rows of all edges, open.
#[derive(Debug, Default)]
pub(crate) struct EdgeColumns {
    pub records: Vec<EdgeRecord>,
    /// By rows.
    pub parts: Vec<RowPart>,
}

impl EdgeColumns {
    /// What is wrong where parts do not follow each other up to `num_rows`, or are of other types: the part, and what.
    pub fn fault(&self, num_rows: u64) -> Option<(usize, String)> {
        let mut next = 0;
        for (place, (_, part)) in self.parts.iter().enumerate() {
            if part.first_row() != next || part.len() == 0 {
                let what = format!("rows from {next} on expected, {} from {} on found", part.len(), part.first_row());
                return Some((place, what));
            }
            next += part.len() as u64;
            let is_known = |(number, property_type): (u32, PropertyType)| {
                self.records.get(number as usize).is_some_and(|record| record.property_type == property_type)
            };
            if !part.columns().all(is_known) {
                return Some((place, "a column that the database has not, or of another type".into()));
            }
        }
        (next != num_rows)
            .then(|| (self.parts.len().saturating_sub(1), format!("{num_rows} rows expected, {next} found")))
    }

    /// The value of a column at a row.
    fn get(&self, number: u32, row: u64) -> Result<PropertyValue<'_>> {
        let place = self.parts.partition_point(|(_, part)| part.first_row() <= row);
        let found = place.checked_sub(1).map(|place| &self.parts[place].1);
        match found.filter(|part| row - part.first_row() < part.len() as u64) {
            Some(part) => Ok(part.get(number, (row - part.first_row()) as usize)?),
            None => Err(Error::Input(format!("an edge names row {row} of its properties, which is not there"))),
        }
    }

    /// Gives all rows of parts, of the column with this number, a few at a time.
    pub fn copy(
        &self,
        parts: &[RowPart],
        number: u32,
        take: &mut dyn FnMut(&PropertyColumn) -> Result<()>,
    ) -> Result<()> {
        let Some(record) = self.records.get(number as usize) else { return Ok(()) };
        for (_, part) in parts {
            for start in (0..part.len()).step_by(COPIED_ROWS) {
                let end = part.len().min(start + COPIED_ROWS);
                take(&part.read(number, record.property_type, start..end)?)?;
            }
        }
        Ok(())
    }
}

/// The properties of the edges at one version. Nothing is read before it is asked for.
#[derive(Debug, Default)]
pub struct EdgeProperties {
    columns: Arc<EdgeColumns>,
    /// The properties that the version has, and the numbers of their columns.
    schema: PropertySchema,
    numbers: Vec<u32>,
}

impl EdgeProperties {
    pub(crate) fn new(columns: &Arc<EdgeColumns>, version: u32) -> Result<Self> {
        let mut schema = PropertySchema::default();
        let mut numbers = Vec::new();
        for (number, record) in columns.records.iter().enumerate() {
            if record.since <= version {
                schema.add(record.name.clone(), record.property_type)?;
                numbers.push(number as u32);
            }
        }
        Ok(Self { columns: Arc::clone(columns), schema, numbers })
    }

    /// Names and types.
    pub fn schema(&self) -> &PropertySchema {
        &self.schema
    }

    /// The value of a row, of the property at a place of the schema; null where there is no such property.
    ///
    /// # Errors
    /// There is no such row, or it is damaged.
    pub fn value(&self, place: usize, row: u64) -> Result<PropertyValue<'_>> {
        match self.numbers.get(place) {
            Some(&number) => self.columns.get(number, row),
            None => Ok(PropertyValue::Null),
        }
    }

    /// The values of these rows, of the property at a place of the schema.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    pub fn gather(&self, place: usize, rows: &[u64]) -> Result<Option<PropertyColumn>> {
        let Some((_, property_type)) = self.schema.get(place) else { return Ok(None) };
        let mut column = PropertyColumn::new(property_type);
        for &row in rows {
            column.push(self.value(place, row)?)?;
        }
        Ok(Some(column))
    }
}
