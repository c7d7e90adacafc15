//! Edges and vertices as rows of chosen columns: Arrow's record batches, and iterators over their rows.

mod batches;
mod edges;
mod vertices;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use base::VertexId;
use graph::property::{ColumnBuilder, PropertyColumn, PropertySchema, PropertyType, PropertyValue};

pub use self::batches::{BatchRows, Batches};
pub use self::edges::ParallelEdges;
use crate::properties::no_such;
use crate::{Error, KeyRef, KeyScheme, Result, View};

/// The columns of a table, and what each shows.
struct Chosen<F> {
    fields: Vec<F>,
    schema: SchemaRef,
}

impl<F> Chosen<F> {
    /// Looks the names of columns up; `known` gives what all names show, and `type_of` the type of a column.
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
            fields.push(field(name).ok_or_else(|| Error::NotFound(no_such("column", whose, name, known)))?);
        }
        let arrow_type = |field: &F| PropertyColumn::nulls(type_of(field), 0).array().data_type().clone();
        let schema = columns.iter().zip(&fields).map(|(name, field)| Field::new(*name, arrow_type(field), true));
        let schema = Arc::new(Schema::new(schema.collect::<Vec<_>>()));
        Ok(Self { fields, schema })
    }

    /// A batch of these columns.
    fn batch(&self, columns: Vec<PropertyColumn>) -> Result<RecordBatch> {
        // The batches of one table have the same types, so strings have no dictionary.
        let arrays: Vec<ArrayRef> = columns.iter().map(|column| column.without_dictionary().array().clone()).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        batch.map_err(|error| Error::InvalidInput(format!("cannot make a batch of rows: {error}")))
    }
}

/// The names of a schema that none of the names before them is.
fn with_names(mut names: Vec<String>, schema: &PropertySchema) -> Vec<String> {
    for (name, _) in schema.iter() {
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

/// The keys of vertices, as a column.
fn key_column(view: &View, vertices: &[VertexId]) -> Result<PropertyColumn> {
    let options = view.stored().options();
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

fn u64_column(values: impl Iterator<Item = u64>) -> Result<PropertyColumn> {
    let values: Vec<u64> = values.collect();
    Ok(PropertyColumn::from_fixed_bytes(PropertyType::U64, bytemuck::cast_slice(&values), None)?)
}
