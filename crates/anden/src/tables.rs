//! Edges and vertices as tables: Arrow record batches, and iterators over rows and edges.

mod batches;
mod edges;
mod filtered;
mod stored_edges;
mod vertices;

use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertySchema, PropertyType, PropertyValue};
use arrow_array::ArrayRef;
use arrow_schema::{Field, Schema, SchemaRef};

pub use arrow_array::RecordBatch;

pub use self::batches::{BatchRows, Batches};
pub use self::edges::ParallelEdges;
pub use self::filtered::RowFilter;
pub use self::stored_edges::{EdgeIter, StoredEdge};
use crate::error::{NotFound, no_such};
use crate::property::KeyRef;
use crate::{Error, KeyScheme, Result, View};

/// The selected columns of a table.
struct Chosen<F> {
    fields: Vec<F>,
    /// The types of the columns in batches.
    types: Vec<PropertyType>,
    schema: SchemaRef,
}

impl<F> Chosen<F> {
    /// Resolves column names. `known` lists all names for the error message, `field` finds a column, `type_of` gives
    /// its type.
    fn new(
        columns: &[&str],
        whose: &str,
        known: &[String],
        field: impl Fn(&str) -> Option<F>,
        type_of: impl Fn(&F) -> PropertyType,
    ) -> Result<Self> {
        let mut fields = Vec::with_capacity(columns.len());
        for name in columns {
            let known = known.iter().map(String::as_str);
            let missing =
                || Error::not_found(NotFound::Column((*name).to_owned()), no_such("column", whose, name, known));
            fields.push(field(name).ok_or_else(missing)?);
        }
        Ok(Self::of_fields(columns, fields, type_of))
    }

    fn of_fields(names: &[&str], fields: Vec<F>, type_of: impl Fn(&F) -> PropertyType) -> Self {
        let types: Vec<PropertyType> = fields.iter().map(type_of).collect();
        let schema = schema_of(names.iter().copied(), &types);
        Self { fields, types, schema }
    }

    /// Makes batches hold lists as their texts. Returns the types of the columns.
    fn keep_texts(&mut self) -> Vec<PropertyType> {
        let stored: Vec<PropertyType> = self.types.iter().map(|property_type| property_type.stored()).collect();
        self.schema = schema_of(self.schema.fields().iter().map(|field| &field.name()[..]), &stored);
        std::mem::replace(&mut self.types, stored)
    }

    /// Makes a record batch of these columns.
    fn batch(&self, columns: Vec<PropertyColumn>) -> Result<RecordBatch> {
        // All batches of a table have one schema, so strings are stored without a dictionary.
        let array = |(column, &found): (&PropertyColumn, &PropertyType)| column.without_dictionary().array_of(found);
        let arrays = columns.iter().zip(&self.types).map(array).collect::<Result<Vec<ArrayRef>, _>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        batch.map_err(|error| Error::Internal(format!("cannot make a batch of rows: {error}").into()))
    }
}

fn schema_of<'a>(names: impl Iterator<Item = &'a str>, types: &[PropertyType]) -> SchemaRef {
    // Every field is nullable, because a vertex or an edge may lack any property.
    let fields = names.zip(types).map(|(name, found)| Field::new(name, found.arrow_type(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Appends the names of a schema that are not in the list yet.
fn with_names(mut names: Vec<String>, schema: &PropertySchema) -> Vec<String> {
    for (name, _) in schema.iter() {
        // A linear search: a schema has at most a thousand properties.
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn key_type(view: &View) -> PropertyType {
    match view.stored().options().keys {
        KeyScheme::String => PropertyType::String,
        KeyScheme::Integer | KeyScheme::Dense => PropertyType::U64,
    }
}

/// The keys of vertices as a column.
fn key_column(view: &View, vertices: &[VertexId]) -> Result<PropertyColumn> {
    let options = view.stored().options();
    // A dense key is the id, so no dictionary is read.
    if options.keys == KeyScheme::Dense {
        return u64_column(vertices.iter().map(|&vertex| vertex.into()));
    }
    let mut column = ColumnBuilder::new(key_type(view));
    for &vertex in vertices {
        column.push(match view.key_ref(vertex)? {
            KeyRef::Integer(key) => PropertyValue::U64(key),
            KeyRef::String(key) => PropertyValue::String(key),
        })?;
    }
    Ok(column.finish())
}

/// A batch of the keys of vertices and a column of their values.
pub(crate) fn keyed_batch(
    view: &View,
    key: &str,
    vertices: &[VertexId],
    (name, values): (&str, &PropertyColumn),
) -> Result<RecordBatch> {
    let keys = key_column(view, vertices)?;
    let arrays = [(key, keys), (name, values.clone())];
    let arrays = arrays.map(|(name, column)| (name, column.without_dictionary().array().clone()));
    let batch = RecordBatch::try_from_iter_with_nullable(arrays.map(|(name, array)| (name, array, true)));
    batch.map_err(|error| Error::Internal(format!("cannot make a batch of values: {error}").into()))
}

fn u64_column(values: impl Iterator<Item = u64>) -> Result<PropertyColumn> {
    let values: Vec<u64> = values.collect();
    Ok(PropertyColumn::from_fixed_bytes(PropertyType::U64, bytemuck::cast_slice(&values), None)?)
}
