//! Vertex properties at one version.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertySchema, PropertyType, PropertyValue};

use crate::Result;
use crate::changes::ApplyDirection;
use crate::delta::Delta;
use crate::property::{ColumnFile, IndexKind, PropertyRecord, VertexIndex, value_hash};

/// An open column of the database.
#[derive(Clone, Debug)]
pub(crate) struct VertexColumn {
    pub record: PropertyRecord,
    /// The values at the version of the base; `None` if all are null.
    pub file: Option<Arc<ColumnFile>>,
    pub index: Option<VertexIndex>,
}

/// Values over those of a snapshot, as a memtable version has them; they never change.
pub trait PropertyOverlay: Debug + Send + Sync {
    /// Names and types: those of the snapshot, then new ones.
    fn schema(&self) -> &PropertySchema;

    /// The value of a vertex, for the property at a position of the schema; `None` if it is as in the snapshot.
    fn value(&self, place: usize, vertex: VertexId) -> Option<PropertyValue<'_>>;

    /// The vertices whose values may differ from the snapshot, for the property at a position of the schema: ascending,
    /// each with its value.
    fn values(&self, place: usize) -> Vec<(VertexId, PropertyValue<'_>)>;

    /// Appends, in any order, all vertices that have `value` here and may not have it in the snapshot. May append other
    /// vertices, too.
    fn push_candidates(&self, place: usize, value: PropertyValue<'_>, to: &mut Vec<VertexId>);
}

/// Rows of a column that a search reads at once.
const SEARCHED_ROWS: usize = 1 << 16;

/// Vertex properties of a view. Nothing is read before the first question.
#[derive(Clone, Copy, Debug)]
pub struct VertexProperties<'a> {
    stored: &'a StoredProperties,
    laid_over: Option<&'a dyn PropertyOverlay>,
    vertex_bound: usize,
}

impl<'a> VertexProperties<'a> {
    /// Joins stored values with an overlay, for vertices below a bound.
    pub(crate) fn new(
        stored: &'a StoredProperties,
        laid_over: Option<&'a dyn PropertyOverlay>,
        vertex_bound: usize,
    ) -> Self {
        Self { stored, laid_over, vertex_bound }
    }

    /// The stored values, without the overlay.
    pub(crate) fn stored(self) -> &'a StoredProperties {
        self.stored
    }

    /// Names and types.
    pub fn schema(self) -> &'a PropertySchema {
        self.laid_over.map_or(&self.stored.schema, |laid_over| laid_over.schema())
    }

    /// The value of a vertex, for the property at a position of the schema; null if there is no such vertex or
    /// property.
    ///
    /// Cost: a binary search in each delta that changes the property.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn value(self, place: usize, vertex: VertexId) -> Result<PropertyValue<'a>> {
        // The overlay first: its values are newer.
        match self.laid_over.and_then(|laid_over| laid_over.value(place, vertex)) {
            Some(value) => Ok(value),
            None => self.stored.value(place, vertex),
        }
    }

    /// The index of the property at a position of the schema; `None` if it has none.
    pub fn index(self, place: usize) -> Option<IndexKind> {
        let number = *self.stored.numbers.get(place)?;
        self.stored.columns[number as usize].index.as_ref().map(|index| index.kind)
    }

    /// The vertices with this value of the property at a position of the schema, ascending. Null finds none.
    ///
    /// Cost: with an index, a search in its parts, and a lookup of each candidate. Without an index, a read of the
    /// whole property.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn find(self, place: usize, value: PropertyValue<'_>) -> Result<Vec<VertexId>> {
        // Null is in no index.
        if value.is_null() {
            return Ok(Vec::new());
        }
        let mut found = self.stored.candidates(place, value)?;
        if let Some(laid_over) = self.laid_over {
            laid_over.push_candidates(place, value, &mut found);
        }
        // A vertex may be in several parts of the index, and in the overlay.
        found.sort_unstable();
        found.dedup();
        // A candidate had the value in some version, so the view decides.
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

    /// The vertices whose values may differ from the snapshot under the view, for the property at a position of the
    /// schema, ascending; none in a view of a snapshot.
    pub fn changed(self, place: usize) -> Vec<VertexId> {
        let values = self.laid_over.map_or(Vec::new(), |laid_over| laid_over.values(place));
        values.into_iter().map(|(vertex, _)| vertex).collect()
    }

    /// The values of all ids below the vertex bound, for the property at a position of the schema; `None` if there is
    /// no such property.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn column(self, place: usize) -> Result<Option<PropertyColumn>> {
        let Some((_, property_type)) = self.schema().get(place) else { return Ok(None) };
        let stored = match self.stored.column(place)? {
            Some(column) => column.padded(self.vertex_bound),
            None => PropertyColumn::nulls(property_type, self.vertex_bound),
        };
        let changed = self.laid_over.map_or(Vec::new(), |laid_over| laid_over.values(place));
        // Without changes in memory, the stored column is the result.
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

/// Stored vertex properties at one version.
#[derive(Debug, Default)]
pub(crate) struct StoredProperties {
    columns: Arc<Vec<VertexColumn>>,
    /// The deltas with changed properties between the base and the version, in the order of their application.
    steps: Vec<(Delta, ApplyDirection)>,
    vertex_bound: usize,
    /// The properties of the version, and the numbers of their columns.
    schema: PropertySchema,
    numbers: Vec<u32>,
}

impl StoredProperties {
    /// The properties of `version`, to which `steps` lead from the base.
    pub(crate) fn new(
        columns: &Arc<Vec<VertexColumn>>,
        steps: &[(Delta, ApplyDirection)],
        version: u32,
        vertex_bound: usize,
    ) -> Result<Self> {
        let mut schema = PropertySchema::default();
        let mut numbers = Vec::new();
        // A version does not show properties that came later.
        for (number, column) in columns.iter().enumerate() {
            if column.record.since <= version {
                schema.add(column.record.name.clone(), column.record.declared())?;
                numbers.push(number as u32);
            }
        }
        let steps = if columns.is_empty() { Vec::new() } else { steps.to_vec() };
        // Deltas without properties are left out, so that lookups skip them.
        let steps = steps.into_iter().filter(|(delta, _)| delta.has_properties()).collect();
        Ok(Self { columns: Arc::clone(columns), steps, vertex_bound, schema, numbers })
    }

    /// The value of a vertex; null if there is no such vertex or property.
    fn value(&self, place: usize, vertex: VertexId) -> Result<PropertyValue<'_>> {
        match self.numbers.get(place) {
            Some(&number) if (vertex as usize) < self.vertex_bound => self.value_of(number, vertex),
            _ => Ok(PropertyValue::Null),
        }
    }

    pub(crate) fn value_of(&self, number: u32, vertex: VertexId) -> Result<PropertyValue<'_>> {
        let column = &self.columns[number as usize];
        // The step nearest to the version decides.
        for (delta, sense) in self.steps.iter().rev() {
            if let Some(changes) = delta.property_changes(number)?
                && let Some((new, old)) = changes.find(vertex)
            {
                let value = if *sense == ApplyDirection::Forward { new } else { old };
                return of_type(value, column.record.property_type, delta);
            }
        }
        match &column.file {
            Some(file) => Ok(file.get(number, vertex as usize)?),
            None => Ok(PropertyValue::Null),
        }
    }

    /// All vertices with this value of the property at a position, and perhaps others.
    fn candidates(&self, place: usize, value: PropertyValue<'_>) -> Result<Vec<VertexId>> {
        let Some(&number) = self.numbers.get(place) else { return Ok(Vec::new()) };
        let VertexColumn { record, file, index } = &self.columns[number as usize];
        let mut found = Vec::new();
        if let Some((index, hash)) = index.as_ref().zip(value_hash(value)) {
            index.push_candidates(hash, &mut found)?;
            return Ok(found);
        }
        if let Some(file) = file {
            // Rows behind the vertex bound belong to younger versions.
            let num_rows = file.len().min(self.vertex_bound);
            for start in (0..num_rows).step_by(SEARCHED_ROWS) {
                let rows = start..num_rows.min(start + SEARCHED_ROWS);
                let column = file.read(number, record.property_type, rows.clone())?;
                found.extend(rows.filter(|row| column.get(row - start) == value).map(|row| row as VertexId));
            }
        }
        for (delta, _) in &self.steps {
            let changes = delta.property_changes(number)?.into_iter().flat_map(|changes| changes.iter());
            // Both values are candidates, whatever the direction of the delta, because the view decides.
            found.extend(changes.filter(|(_, new, old)| *new == value || *old == value).map(|(vertex, ..)| vertex));
        }
        Ok(found)
    }

    /// The values of all ids below the vertex bound.
    fn column(&self, place: usize) -> Result<Option<PropertyColumn>> {
        self.numbers.get(place).map(|&number| self.column_of(number)).transpose()
    }

    /// The values of a column by its number; all null if the version lacks the column.
    pub(crate) fn column_of(&self, number: u32) -> Result<PropertyColumn> {
        let VertexColumn { record, file, .. } = &self.columns[number as usize];
        let mut changed: BTreeMap<VertexId, PropertyValue<'_>> = BTreeMap::new();
        // Later steps overwrite earlier ones, so the step nearest to the version decides.
        for (delta, sense) in &self.steps {
            let Some(changes) = delta.property_changes(number)? else { continue };
            for (vertex, new, old) in changes.iter() {
                let value = if *sense == ApplyDirection::Forward { new } else { old };
                changed.insert(vertex, of_type(value, record.property_type, delta)?);
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

    /// Bytes of a column's values that deltas change; 0 if they are damaged.
    pub(crate) fn changed_bytes(&self, number: u32) -> u64 {
        let changes = self.steps.iter().filter_map(|(delta, _)| delta.property_changes(number).ok().flatten());
        changes.map(|changes| changes.num_bytes() as u64).sum()
    }

    /// Whether a delta between the base and the version has the value of a vertex.
    pub(crate) fn is_changed(&self, number: u32, vertex: VertexId) -> bool {
        let changes = self.steps.iter().filter_map(|(delta, _)| delta.property_changes(number).ok().flatten());
        changes.into_iter().any(|changes| changes.find(vertex).is_some())
    }

    /// Whether the deltas between the base and the version change a column.
    pub(crate) fn has_changed(&self, number: u32) -> bool {
        self.steps.iter().any(|(delta, _)| delta.changes_property(number))
    }
}

/// A value of a delta, checked against the column's type.
fn of_type<'a>(value: PropertyValue<'a>, property_type: PropertyType, delta: &Delta) -> Result<PropertyValue<'a>> {
    if value.property_type().is_none_or(|found| found == property_type) {
        return Ok(value);
    }
    Err(delta.corrupt(format!("a value of type {property_type} expected")).into())
}
