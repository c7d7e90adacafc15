//! The properties of the vertices at one version.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::VertexId;
use graph::property::{PropertyColumn, PropertySchema, PropertyType, PropertyValue};

use super::{ColumnFile, PropertyRecord};
use crate::Result;
use crate::level::Level;
use crate::side::Sense;

/// A column of the database, open.
#[derive(Clone, Debug)]
pub(crate) struct VertexColumn {
    pub record: PropertyRecord,
    /// The values at the version of the base run; none where all are null.
    pub file: Option<Arc<ColumnFile>>,
}

/// The properties of the vertices at one version. Nothing is read before it is asked for.
#[derive(Debug, Default)]
pub struct VertexProperties {
    columns: Arc<Vec<VertexColumn>>,
    /// The levels with changed properties between the base run and the version, in the order in which they are applied.
    steps: Vec<(Level, Sense)>,
    vertex_bound: usize,
    /// The properties that the version has, and the numbers of their columns.
    schema: PropertySchema,
    numbers: Vec<u32>,
}

impl VertexProperties {
    /// Those of `version`, to which `steps` lead from the base run.
    pub(crate) fn new(
        columns: &Arc<Vec<VertexColumn>>,
        steps: &[(Level, Sense)],
        version: u32,
        vertex_bound: usize,
    ) -> Result<Self> {
        let mut schema = PropertySchema::default();
        let mut numbers = Vec::new();
        for (number, column) in columns.iter().enumerate() {
            if column.record.since <= version {
                schema.add(column.record.name.clone(), column.record.property_type)?;
                numbers.push(number as u32);
            }
        }
        let steps = if columns.is_empty() { Vec::new() } else { steps.to_vec() };
        let steps = steps.into_iter().filter(|(level, _)| level.has_properties()).collect();
        Ok(Self { columns: Arc::clone(columns), steps, vertex_bound, schema, numbers })
    }

    /// Names and types.
    pub fn schema(&self) -> &PropertySchema {
        &self.schema
    }

    /// The number of the column at a place of the schema, by which changes name it.
    pub fn column_number(&self, place: usize) -> Option<u32> {
        self.numbers.get(place).copied()
    }

    /// The value of a vertex, of the property at a place of the schema; null where there is no such vertex or property.
    ///
    /// Cost: a binary search in each level with changes of the property.
    ///
    /// # Errors
    /// What is read is damaged.
    pub fn value(&self, place: usize, vertex: VertexId) -> Result<PropertyValue<'_>> {
        match self.numbers.get(place) {
            Some(&number) if (vertex as usize) < self.vertex_bound => self.value_of(number, vertex),
            _ => Ok(PropertyValue::Null),
        }
    }

    fn value_of(&self, number: u32, vertex: VertexId) -> Result<PropertyValue<'_>> {
        let column = &self.columns[number as usize];
        // The step next to the version has the last word.
        for (level, sense) in self.steps.iter().rev() {
            if let Some(changes) = level.property_changes(number)?
                && let Some((new, old)) = changes.find(vertex)
            {
                let value = if *sense == Sense::Forward { new } else { old };
                return of_type(value, column.record.property_type, level);
            }
        }
        match &column.file {
            Some(file) => Ok(file.get(number, vertex as usize)?),
            None => Ok(PropertyValue::Null),
        }
    }

    /// The values of all ids below the vertex bound, of the property at a place of the schema.
    ///
    /// # Errors
    /// What is read is damaged.
    pub fn column(&self, place: usize) -> Result<Option<PropertyColumn>> {
        self.numbers.get(place).map(|&number| self.column_of(number)).transpose()
    }

    /// The values of a column by its number, also of one that the version has not: all are null then.
    pub(crate) fn column_of(&self, number: u32) -> Result<PropertyColumn> {
        let VertexColumn { record, file } = &self.columns[number as usize];
        let mut changed: BTreeMap<VertexId, PropertyValue<'_>> = BTreeMap::new();
        for (level, sense) in &self.steps {
            let Some(changes) = level.property_changes(number)? else { continue };
            for (vertex, new, old) in changes.iter() {
                let value = if *sense == Sense::Forward { new } else { old };
                changed.insert(vertex, of_type(value, record.property_type, level)?);
            }
        }
        let stored = match file {
            Some(file) => file.read(number, record.property_type, 0..self.vertex_bound)?,
            None => PropertyColumn::nulls(record.property_type, self.vertex_bound),
        };
        if changed.is_empty() {
            return Ok(stored);
        }
        let mut column = PropertyColumn::new(record.property_type);
        for vertex in 0..self.vertex_bound {
            let changed = changed.get(&(vertex as VertexId)).copied();
            column.push(changed.unwrap_or_else(|| stored.get(vertex)))?;
        }
        Ok(column)
    }

    /// Whether the levels between the base run and the version change a column.
    pub(crate) fn has_changed(&self, number: u32) -> bool {
        self.steps.iter().any(|(level, _)| level.changes_property(number))
    }
}

/// A value of a level, which must be of the column's type.
fn of_type<'a>(value: PropertyValue<'a>, property_type: PropertyType, level: &Level) -> Result<PropertyValue<'a>> {
    if value.property_type().is_none_or(|found| found == property_type) {
        return Ok(value);
    }
    Err(level.corrupt(format!("a value of type {property_type} expected")).into())
}
