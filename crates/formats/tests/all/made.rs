//! Graphs with properties computed from their rows, for tests of writers.

use std::ops::ControlFlow;

use anden_formats::{Error, WrittenProperties};
use anden_graph::property::{
    ColumnBuilder, ItemType, PropertyColumn, PropertySchema, PropertyType, PropertyValue, push_list,
};
use anden_graph::{Csr, Direction, Graph, GraphKind, VertexId, Weight, WeightedEdges};

/// The rows of edges are made of the place in the list and the source.
pub struct Made<'a> {
    graph: &'a Csr,
    pub edges: PropertySchema,
    pub vertices: PropertySchema,
}

const TYPES: [PropertyType; 9] = [
    PropertyType::Boolean,
    PropertyType::I64,
    PropertyType::U64,
    PropertyType::F32,
    PropertyType::F64,
    PropertyType::Date,
    PropertyType::Timestamp,
    PropertyType::String,
    PropertyType::Bytes,
];

/// Appends the value of a row of this type; every fifth is null.
fn push_value(column: &mut ColumnBuilder, property_type: PropertyType, row: u64) {
    let text = match property_type {
        PropertyType::List(item) => list_text(item, row),
        _ => "x".repeat(row as usize % 7),
    };
    let value = match (row % 5, property_type) {
        (4, _) => PropertyValue::Null,
        (_, PropertyType::Boolean) => PropertyValue::Boolean(row.is_multiple_of(3)),
        (_, PropertyType::I64) => PropertyValue::I64(row as i64 - 7),
        (_, PropertyType::U64) => PropertyValue::U64(u64::MAX - row),
        (_, PropertyType::F32) => PropertyValue::F32(row as f32 / 3.0),
        (_, PropertyType::F64) => PropertyValue::F64(row as f64 / 3.0),
        (_, PropertyType::Date) => PropertyValue::Date(row as i32 * 100 - 5),
        (_, PropertyType::Timestamp) => PropertyValue::Timestamp(row as i64 * 1_234_567 - 99),
        (_, PropertyType::String | PropertyType::List(_)) => PropertyValue::String(&text),
        (_, PropertyType::Bytes) => PropertyValue::Bytes(text.as_bytes()),
    };
    column.push(value).unwrap();
}

/// A list of up to three items, which are the values of rows.
fn list_text(item: ItemType, row: u64) -> String {
    let mut items = ColumnBuilder::new(item.property_type());
    (0..row % 4).for_each(|place| push_value(&mut items, item.property_type(), row + place));
    let mut text = Vec::new();
    push_list(items.finish().iter(), &mut text);
    String::from_utf8(text).unwrap()
}

pub fn columns(schema: &PropertySchema, rows: impl Iterator<Item = u64> + Clone) -> Vec<PropertyColumn> {
    let made = |(_, property_type)| {
        let mut column = ColumnBuilder::new(property_type);
        rows.clone().for_each(|row| push_value(&mut column, property_type, row));
        column.finish()
    };
    schema.iter().map(made).collect()
}

impl<'a> Made<'a> {
    pub fn new(graph: &'a Csr) -> Self {
        let schema = |prefix: &str| {
            PropertySchema::new(TYPES.iter().map(|&kind| (format!("{prefix} {}", kind.name()), kind))).unwrap()
        };
        Self::with(graph, schema("edge"), schema("vertex"))
    }

    pub fn with(graph: &'a Csr, edges: PropertySchema, vertices: PropertySchema) -> Self {
        Self { graph, edges, vertices }
    }
}

impl WrittenProperties<Error> for Made<'_> {
    fn edge_schema(&self) -> &PropertySchema {
        &self.edges
    }

    fn vertex_schema(&self) -> &PropertySchema {
        &self.vertices
    }

    fn push_rows(&self, vertex: VertexId, rows: &mut Vec<u64>) -> Result<(), Error> {
        let degree = self.graph.degree(Direction::Out, vertex) as u64;
        rows.extend((0..degree).map(|place| place + 3 * u64::from(vertex)));
        Ok(())
    }

    fn edge_columns(&self, rows: &[u64]) -> Result<Vec<PropertyColumn>, Error> {
        Ok(columns(&self.edges, rows.iter().copied()))
    }

    fn vertex_columns(&self, vertices: &[VertexId]) -> Result<Vec<PropertyColumn>, Error> {
        Ok(columns(&self.vertices, vertices.iter().map(|&vertex| vertex.into())))
    }
}

/// The edges of a graph with their weights, and their rows in [`Made`].
pub fn edges_of<W: Weight>(graph: &Csr) -> Vec<(VertexId, VertexId, W, u64)> {
    let mut edges = Vec::new();
    for source in 0..graph.vertex_bound() as VertexId {
        let mut row = 3 * u64::from(source);
        let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, source, |targets, weights| {
            for (&target, &weight) in targets.iter().zip(weights) {
                if target >= source || graph.graph_kind() == GraphKind::Directed {
                    edges.push((source, target, weight, row));
                }
                row += 1;
            }
            ControlFlow::Continue(())
        });
    }
    edges
}
