//! The properties of the vertices at one version.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use base::VertexId;
use graph::property::{ColumnBuilder, PropertyColumn, PropertySchema, PropertyType, PropertyValue};

use super::{ColumnFile, IndexKind, PropertyRecord, VertexIndex, value_hash};
use crate::Result;
use crate::level::Level;
use crate::side::Sense;

/// A column of the database, open.
#[derive(Clone, Debug)]
pub(crate) struct VertexColumn {
    pub record: PropertyRecord,
    /// The values at the version of the base run; none where all are null.
    pub file: Option<Arc<ColumnFile>>,
    pub index: Option<VertexIndex>,
}

/// Values that are laid over those of a snapshot, as a version of a live graph has them; they never change themselves.
pub trait PropertyOverlay: Debug + Send + Sync {
    /// Names and types: those of the snapshot, and behind them those that are new.
    fn schema(&self) -> &PropertySchema;

    /// The value of a vertex, of the property at a place of the schema; `None` where that is as in the snapshot.
    fn value(&self, place: usize, vertex: VertexId) -> Option<PropertyValue<'_>>;

    /// The vertices that may have another value than in the snapshot, of the property at a place of the schema:
    /// ascending, each with its value.
    fn values(&self, place: usize) -> Vec<(VertexId, PropertyValue<'_>)>;

    /// Appends all vertices that have a value of the property at a place and may have another one in the snapshot, in any
    /// order, and perhaps vertices that have another value.
    fn push_candidates(&self, place: usize, value: PropertyValue<'_>, to: &mut Vec<VertexId>);
}

/// Rows of a column that a search reads at a time.
const SEARCHED_ROWS: usize = 1 << 16;

/// The properties of the vertices of a view. Nothing is read before it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct VertexProperties<'a> {
    stored: &'a StoredProperties,
    laid_over: Option<&'a dyn PropertyOverlay>,
    vertex_bound: usize,
}

impl<'a> VertexProperties<'a> {
    /// What is stored, with what is laid over it, of the vertices below a bound.
    pub(crate) fn new(
        stored: &'a StoredProperties,
        laid_over: Option<&'a dyn PropertyOverlay>,
        vertex_bound: usize,
    ) -> Self {
        Self { stored, laid_over, vertex_bound }
    }

    /// What is in the files.
    pub(crate) fn stored(self) -> &'a StoredProperties {
        self.stored
    }

    /// Names and types.
    pub fn schema(self) -> &'a PropertySchema {
        self.laid_over.map_or(&self.stored.schema, |laid_over| laid_over.schema())
    }

    /// The value of a vertex, of the property at a place of the schema; null where there is no such vertex or property.
    ///
    /// Cost: a binary search in each level with changes of the property.
    ///
    /// # Errors
    /// What is read is damaged.
    pub fn value(self, place: usize, vertex: VertexId) -> Result<PropertyValue<'a>> {
        match self.laid_over.and_then(|laid_over| laid_over.value(place, vertex)) {
            Some(value) => Ok(value),
            None => self.stored.value(place, vertex),
        }
    }

    /// The index of the property at a place of the schema; `None` where it has none.
    pub fn index(self, place: usize) -> Option<IndexKind> {
        let number = *self.stored.numbers.get(place)?;
        self.stored.columns[number as usize].index.as_ref().map(|index| index.kind)
    }

    /// The vertices with a value of the property at a place of the schema, ascending. Null finds nothing.
    ///
    /// Cost: with an index, a search in its parts and a look at each vertex that was found, and without one, a read of the
    /// whole property.
    ///
    /// # Errors
    /// What is read is damaged.
    pub fn find(self, place: usize, value: PropertyValue<'_>) -> Result<Vec<VertexId>> {
        if value.is_null() {
            return Ok(Vec::new());
        }
        let mut found = self.stored.candidates(place, value)?;
        if let Some(laid_over) = self.laid_over {
            laid_over.push_candidates(place, value, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        // A candidate had the value in some version; the view decides.
        let mut fault = None;
        found.retain(|&vertex| match self.value(place, vertex) {
            Ok(current) => current == value,
            Err(error) => {
                fault.get_or_insert(error);
                false
            }
        });
        fault.map_or(Ok(found), Err)
    }

    /// The values of all ids below the vertex bound, of the property at a place of the schema; `None` where there is no
    /// such property.
    ///
    /// # Errors
    /// What is read is damaged.
    pub fn column(self, place: usize) -> Result<Option<PropertyColumn>> {
        let Some((_, property_type)) = self.schema().get(place) else { return Ok(None) };
        let stored = match self.stored.column(place)? {
            Some(column) => column.padded(self.vertex_bound),
            None => PropertyColumn::nulls(property_type, self.vertex_bound),
        };
        let changed = self.laid_over.map_or(Vec::new(), |laid_over| laid_over.values(place));
        if changed.is_empty() {
            return Ok(Some(stored));
        }
        let mut column = ColumnBuilder::new(property_type);
        let mut changed = changed.into_iter().peekable();
        for vertex in 0..stored.len() {
            let next = changed.next_if(|&(next, _)| next as usize == vertex);
            column.push(next.map_or_else(|| stored.get(vertex), |(_, value)| value))?;
        }
        Ok(Some(column.finish()))
    }
}

/// The properties of the vertices at one version, in the files.
#[derive(Debug, Default)]
pub(crate) struct StoredProperties {
    columns: Arc<Vec<VertexColumn>>,
    /// The levels with changed properties between the base run and the version, in the order in which they are applied.
    steps: Vec<(Level, Sense)>,
    vertex_bound: usize,
    /// The properties that the version has, and the numbers of their columns.
    schema: PropertySchema,
    numbers: Vec<u32>,
}

impl StoredProperties {
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

    /// The value of a vertex; null where there is no such vertex or property.
    fn value(&self, place: usize, vertex: VertexId) -> Result<PropertyValue<'_>> {
        match self.numbers.get(place) {
            Some(&number) if (vertex as usize) < self.vertex_bound => self.value_of(number, vertex),
            _ => Ok(PropertyValue::Null),
        }
    }

    pub(crate) fn value_of(&self, number: u32, vertex: VertexId) -> Result<PropertyValue<'_>> {
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

    /// Vertices that may have a value of the property at a place: all that have it, and perhaps others.
    fn candidates(&self, place: usize, value: PropertyValue<'_>) -> Result<Vec<VertexId>> {
        let Some(&number) = self.numbers.get(place) else { return Ok(Vec::new()) };
        let VertexColumn { record, file, index } = &self.columns[number as usize];
        let mut found = Vec::new();
        if let Some((index, hash)) = index.as_ref().zip(value_hash(value)) {
            index.push_candidates(hash, &mut found)?;
            return Ok(found);
        }
        if let Some(file) = file {
            let num_rows = file.len().min(self.vertex_bound);
            for start in (0..num_rows).step_by(SEARCHED_ROWS) {
                let rows = start..num_rows.min(start + SEARCHED_ROWS);
                let column = file.read(number, record.property_type, rows.clone())?;
                found.extend(rows.filter(|row| column.get(row - start) == value).map(|row| row as VertexId));
            }
        }
        for (level, _) in &self.steps {
            let changes = level.property_changes(number)?.into_iter().flat_map(|changes| changes.iter());
            found.extend(changes.filter(|(_, new, old)| *new == value || *old == value).map(|(vertex, ..)| vertex));
        }
        Ok(found)
    }

    /// The values of all ids below the vertex bound.
    fn column(&self, place: usize) -> Result<Option<PropertyColumn>> {
        self.numbers.get(place).map(|&number| self.column_of(number)).transpose()
    }

    /// The values of a column by its number, also of one that the version has not: all are null then.
    pub(crate) fn column_of(&self, number: u32) -> Result<PropertyColumn> {
        let VertexColumn { record, file, .. } = &self.columns[number as usize];
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
        let mut column = ColumnBuilder::new(record.property_type);
        for vertex in 0..self.vertex_bound {
            let changed = changed.get(&(vertex as VertexId)).copied();
            column.push(changed.unwrap_or_else(|| stored.get(vertex)))?;
        }
        Ok(column.finish())
    }

    /// The bytes of the values of a column that levels change; 0 where they cannot be read.
    pub(crate) fn changed_bytes(&self, number: u32) -> u64 {
        let changes = self.steps.iter().filter_map(|(level, _)| level.property_changes(number).ok().flatten());
        changes.map(|changes| changes.num_bytes() as u64).sum()
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
