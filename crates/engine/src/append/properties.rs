//! Property values that an append sets.

use std::collections::BTreeMap;

use anden_graph::property::{ColumnBuilder, OwnedValue, PropertyColumn, PropertySchema, PropertyType};
use anden_snapshots::Key;

use super::changes::Changes;
use super::requests::RequestBlock;
use crate::error::PropertyOf;
use crate::fitting::joined_type;
use crate::live::{VertexValues, no_property, push_typed};
use crate::{Error, Result};

/// Vertices that get values of one property from a program, in the program's order.
#[derive(Debug)]
pub(crate) struct ValueRows<'a> {
    pub(crate) vertices: Vec<&'a Key>,
    /// The index of the property in the schema.
    pub(crate) place: usize,
    pub(crate) column: PropertyColumn,
}

/// The vertex properties that a program sets, with their values. Types come from `known`, or from the values.
///
/// # Errors
/// A value does not fit its property or the values before it; an unknown property gets only null.
pub(crate) fn value_rows<'a>(
    set: &'a [(Key, String, OwnedValue)],
    known: &PropertySchema,
) -> Result<(PropertySchema, Vec<ValueRows<'a>>)> {
    // Ordered by name, so that new properties get their indexes in a fixed order.
    let mut by_name: BTreeMap<&str, Vec<(&Key, &OwnedValue)>> = BTreeMap::new();
    for (key, name, value) in set {
        by_name.entry(name).or_default().push((key, value));
    }
    let mut schema = PropertySchema::default();
    let mut rows = Vec::new();
    for (name, values) in by_name {
        let Some(property_type) = type_of(name, values.iter().map(|(_, value)| *value), known) else {
            return Err(no_property(known, PropertyOf::Vertices, name));
        };
        let place = schema.add(name.to_owned(), property_type)?;
        let mut column = ColumnBuilder::new(property_type);
        for (key, value) in &values {
            push_typed(name, value, &mut column).map_err(|error| error.for_vertex(key))?;
        }
        rows.push(ValueRows { vertices: values.iter().map(|(key, _)| *key).collect(), place, column: column.finish() });
    }
    Ok((schema, rows))
}

/// The edge properties that a program sets, with a row for each added edge. Types come from `known`, or from the
/// values.
///
/// # Errors
/// A value does not fit its property or the values before it, or names no added edge.
pub(crate) fn edge_values(changes: &Changes, known: &PropertySchema) -> Result<(PropertySchema, Vec<PropertyColumn>)> {
    // Ordered by name, so that new properties get their indexes in a fixed order.
    let mut by_name: BTreeMap<&str, Vec<(usize, &OwnedValue)>> = BTreeMap::new();
    for (edge, name, value) in &changes.edge_properties {
        by_name.entry(name).or_default().push((*edge, value));
    }
    let (mut schema, mut columns, null) = (PropertySchema::default(), Vec::new(), OwnedValue::Null);
    for (name, values) in by_name {
        // Null of an unknown property changes nothing.
        let Some(property_type) = type_of(name, values.iter().map(|(_, value)| *value), known) else { continue };
        schema.add(name.to_owned(), property_type)?;
        let mut by_edge = vec![&null; changes.added.len()];
        for (edge, value) in values {
            let num_added = changes.added.len();
            let Some(of_edge) = by_edge.get_mut(edge) else {
                let reason = format!("property {name:?}: there is no edge {edge} to be added, only {num_added}");
                return Err(Error::options(reason));
            };
            *of_edge = value;
        }
        let mut column = ColumnBuilder::new(property_type);
        for (value, (source, target, _)) in by_edge.into_iter().zip(&changes.added) {
            push_typed(name, value, &mut column).map_err(|error| error.for_edge((source, target)))?;
        }
        columns.push(column.finish());
    }
    Ok((schema, columns))
}

/// The type of a property: the known one, or the one that its values need; `None` if all are null.
fn type_of<'a>(
    name: &str,
    values: impl Iterator<Item = &'a OwnedValue>,
    known: &PropertySchema,
) -> Option<PropertyType> {
    let known = known.find(name).and_then(|place| known.get(place)).map(|(_, found)| found);
    known.or_else(|| joined_type(values.filter_map(|value| value.property_type())))
}

/// The known properties, then the new ones of an input; and the index there of each input property. `of` names their
/// owner in errors.
///
/// # Errors
/// A property has another type than the known one.
pub(crate) fn joined_schema(
    known: &PropertySchema,
    given: &PropertySchema,
    of: &str,
) -> Result<(PropertySchema, Vec<usize>)> {
    let (mut all, mut places) = (known.clone(), Vec::with_capacity(given.len()));
    for (name, property_type) in given.iter() {
        match known.find(name).and_then(|place| Some((place, known.get(place)?.1))) {
            None => places.push(all.add(name.to_owned(), property_type)?),
            Some((place, expected)) if expected == property_type => places.push(place),
            // Another type would make old and new values of one property differ in meaning.
            Some((_, expected)) => {
                let what = format!("the property {name:?}{of} is of type {expected}, not {property_type}");
                return Err(Error::options(what));
            }
        }
    }
    Ok((all, places))
}

/// The vertices named beside edges in blocks, whose keys are ids, with their values; and the number of repeated rows of
/// values. `places` are the indexes of the properties.
pub(crate) fn vertex_rows(blocks: &mut [RequestBlock], places: &[usize]) -> (Vec<VertexValues>, u64) {
    let (mut rows, mut with_values) = (Vec::new(), Vec::new());
    for block in blocks.iter_mut().filter(|block| !block.vertices.is_empty()) {
        let columns = std::mem::take(&mut block.properties).into_iter();
        let columns: Vec<_> = columns.map(|(place, column)| (places[place], column)).collect();
        let vertices = std::mem::take(&mut block.vertices);
        // Rows without values do not count as repeated.
        if let Some(&(place, _)) = columns.first() {
            with_values.extend(vertices.iter().map(|&vertex| (place, vertex)));
        }
        rows.push(VertexValues { vertices, columns });
    }
    let num_rows = with_values.len();
    with_values.sort_unstable();
    with_values.dedup();
    (rows, (num_rows - with_values.len()) as u64)
}
