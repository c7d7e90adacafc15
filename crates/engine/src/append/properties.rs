//! Properties of vertices that an append changes.

use std::collections::BTreeMap;

use base::VertexId;
use graph::property::{OwnedValue, PropertyColumn, PropertySchema, PropertyType, PropertyValue};
use lama::{Key, PropertyChanges, View};

use super::changes::Changes;
use super::requests::Block;
use super::vertices::VertexChanges;
use crate::{Error, Result};

/// Vertices to which a program gives values of one property, in its order.
#[derive(Debug)]
pub(crate) struct ValueRows<'a> {
    pub(crate) vertices: Vec<&'a Key>,
    /// The place of the property in the schema.
    pub(crate) place: usize,
    pub(crate) column: PropertyColumn,
}

/// The properties that a program sets, and their values. Types are those of `known`, or follow from the values.
///
/// # Errors
/// A value is of another type than its property or the values before it; a property that is not there gets no value.
pub(crate) fn value_rows<'a>(
    set: &'a [(Key, String, OwnedValue)],
    known: &PropertySchema,
) -> Result<(PropertySchema, Vec<ValueRows<'a>>)> {
    let mut by_name: BTreeMap<&str, Vec<(&Key, PropertyValue<'_>)>> = BTreeMap::new();
    for (key, name, value) in set {
        by_name.entry(name).or_default().push((key, value.as_value()));
    }
    let mut schema = PropertySchema::default();
    let mut rows = Vec::new();
    for (name, values) in by_name {
        let Some(property_type) = type_of(name, values.iter().map(|(_, value)| *value), known) else {
            return Err(Error::Option(format!("there is no property {name:?} whose values could go")));
        };
        let place = schema.add(name.to_owned(), property_type)?;
        let mut column = PropertyColumn::new(property_type);
        for (key, value) in &values {
            let wrong =
                || Error::Option(format!("vertex {key}: {value} is no value of type {property_type} ({name:?})"));
            column.push(fitting(*value, property_type).ok_or_else(wrong)?)?;
        }
        rows.push(ValueRows { vertices: values.iter().map(|(key, _)| *key).collect(), place, column });
    }
    Ok((schema, rows))
}

/// The properties that a program gives to the edges that it adds, with a row for each of these edges. Types are those of
/// `known`, or follow from the values.
///
/// # Errors
/// A value is of another type than its property or the values before it, or is of no edge.
pub(crate) fn edge_values(changes: &Changes, known: &PropertySchema) -> Result<(PropertySchema, Vec<PropertyColumn>)> {
    let mut by_name: BTreeMap<&str, Vec<(usize, PropertyValue<'_>)>> = BTreeMap::new();
    for (edge, name, value) in &changes.edge_properties {
        by_name.entry(name).or_default().push((*edge, value.as_value()));
    }
    let mut schema = PropertySchema::default();
    let mut columns = Vec::new();
    for (name, values) in by_name {
        let Some(property_type) = type_of(name, values.iter().map(|(_, value)| *value), known) else { continue };
        schema.add(name.to_owned(), property_type)?;
        let mut by_edge = vec![PropertyValue::Null; changes.added.len()];
        for (edge, value) in values {
            let wrong =
                || Error::Option(format!("edge {edge}: {value} is no value of type {property_type} ({name:?})"));
            let place =
                by_edge.get_mut(edge).ok_or_else(|| Error::Option(format!("there is no edge {edge} to be added")))?;
            *place = fitting(value, property_type).ok_or_else(wrong)?;
        }
        let mut column = PropertyColumn::new(property_type);
        by_edge.into_iter().try_for_each(|value| column.push(value))?;
        columns.push(column);
    }
    Ok((schema, columns))
}

/// The type of a property: the one that is known, or the one that follows from the values; none where all are null.
fn type_of<'a>(
    name: &str,
    values: impl Iterator<Item = PropertyValue<'a>>,
    known: &PropertySchema,
) -> Option<PropertyType> {
    let known = known.find(name).and_then(|place| known.get(place)).map(|(_, found)| found);
    known.or_else(|| joined_type(values.filter_map(|value| value.property_type())))
}

/// The type that holds values of all these types, or of the first that others do not go with.
pub(crate) fn joined_type(mut types: impl Iterator<Item = PropertyType>) -> Option<PropertyType> {
    let first = types.next()?;
    Some(types.fold(first, |joined, next| joined.joined(next).unwrap_or(joined)))
}

/// The value in a type that holds it; `None` if the type holds no such value.
pub(crate) fn fitting(value: PropertyValue<'_>, property_type: PropertyType) -> Option<PropertyValue<'_>> {
    let of = value.property_type().unwrap_or(property_type);
    if of == property_type {
        return Some(value);
    }
    let mut column = PropertyColumn::new(of);
    column.push(value).ok()?;
    column.converted(property_type).ok()?.get(0).to_static()
}

/// What changes in the properties of vertices.
#[derive(Debug, Default)]
pub(crate) struct PropertyEffects {
    /// Properties that are not there yet.
    pub(crate) new: Vec<(String, PropertyType)>,
    /// By column that changes, ascending.
    pub(crate) changes: Vec<PropertyChanges>,
    /// Values that change.
    pub(crate) num_changed: u64,
    /// Rows that give a vertex values again.
    pub(crate) num_repeated: u64,
}

impl PropertyEffects {
    /// Holds what `blocks`, whose keys are ids, say of the properties of `schema` against `view`, which must be of the
    /// newest version. Of several rows of a vertex the last one counts; vertices that are removed lose what no row gives them again.
    ///
    /// # Errors
    /// A property is of another type than the one that is there; the database is damaged.
    pub(crate) fn new(
        view: &View,
        blocks: &[Block],
        schema: &PropertySchema,
        vertices: &VertexChanges,
    ) -> Result<Self> {
        let known = view.properties();
        let mut new = Vec::new();
        // By column: the place of the property in `schema`.
        let mut places: Vec<Option<usize>> = vec![None; known.schema().len()];
        for (place, (name, property_type)) in schema.iter().enumerate() {
            match known.schema().find(name) {
                None => {
                    new.push((name.to_owned(), property_type));
                    places.push(Some(place));
                }
                Some(column) => match known.schema().get(column) {
                    Some((_, expected)) if expected != property_type => {
                        let what = format!("the property {name:?} is of type {expected}, not {property_type}");
                        return Err(Error::Option(what));
                    }
                    _ => places[column] = Some(place),
                },
            }
        }
        let mut effects = Self { new, ..Self::default() };
        for (column, place) in places.into_iter().enumerate() {
            let (values, num_rows) = rows_of(blocks, place);
            effects.num_repeated = effects.num_repeated.max(num_rows - values.len() as u64);
            let changes = column_changes(view, column, values, &vertices.cleared)?;
            effects.num_changed += changes.len() as u64;
            effects.changes.extend(Some(changes).filter(|changes| !changes.is_empty()));
        }
        Ok(effects)
    }
}

/// The values that blocks give for the property at a place of the schema, the last of each vertex; and the number of
/// all.
fn rows_of(blocks: &[Block], place: Option<usize>) -> (BTreeMap<VertexId, PropertyValue<'_>>, u64) {
    let (mut values, mut num_rows) = (BTreeMap::new(), 0);
    for block in blocks {
        for (_, column) in block.properties.iter().filter(|(found, _)| Some(*found) == place) {
            num_rows += block.vertices.len() as u64;
            values.extend(block.vertices.iter().copied().zip(column.iter()));
        }
    }
    (values, num_rows)
}

fn column_changes(
    view: &View,
    column: usize,
    mut values: BTreeMap<VertexId, PropertyValue<'_>>,
    cleared: &[VertexId],
) -> Result<PropertyChanges> {
    for &vertex in cleared {
        values.entry(vertex).or_insert(PropertyValue::Null);
    }
    let properties = view.properties();
    let mut changes = PropertyChanges::new(column as u32);
    for (vertex, value) in values {
        changes.push(vertex, value, properties.value(column, vertex)?);
    }
    Ok(changes)
}
