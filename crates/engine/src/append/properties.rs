//! Properties that an append gives vertices and edges.

use std::collections::BTreeMap;

use graph::property::{ColumnBuilder, OwnedValue, PropertyColumn, PropertySchema, PropertyType, PropertyValue};
use lama::Key;

use super::changes::Changes;
use super::requests::Block;
use crate::fitting::joined_type;
use crate::live::VertexValues;
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
        let mut column = ColumnBuilder::new(property_type);
        for (key, value) in &values {
            let wrong =
                || Error::Option(format!("vertex {key}: {value} is no value of type {property_type} ({name:?})"));
            column.push(value.converted(property_type).ok_or_else(wrong)?)?;
        }
        rows.push(ValueRows { vertices: values.iter().map(|(key, _)| *key).collect(), place, column: column.finish() });
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
            *place = value.converted(property_type).ok_or_else(wrong)?;
        }
        let mut column = ColumnBuilder::new(property_type);
        by_edge.into_iter().try_for_each(|value| column.push(value))?;
        columns.push(column.finish());
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

/// The properties that there are, and behind them those of an input that are new; and the place there of each of the
/// input's. `of` says whose they are.
///
/// # Errors
/// A property is of another type than the one that is there.
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
            Some((_, expected)) => {
                let what = format!("the property {name:?}{of} is of type {expected}, not {property_type}");
                return Err(Error::Option(what));
            }
        }
    }
    Ok((all, places))
}

/// The vertices that blocks, whose keys are ids, name beside edges, with their values; and how many rows of values give a
/// vertex values again. `places` are those of the properties.
pub(crate) fn vertex_rows(blocks: &mut [Block], places: &[usize]) -> (Vec<VertexValues>, u64) {
    let (mut rows, mut with_values) = (Vec::new(), Vec::new());
    for block in blocks.iter_mut().filter(|block| !block.vertices.is_empty()) {
        let columns = std::mem::take(&mut block.properties).into_iter();
        let columns: Vec<_> = columns.map(|(place, column)| (places[place], column)).collect();
        let vertices = std::mem::take(&mut block.vertices);
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
