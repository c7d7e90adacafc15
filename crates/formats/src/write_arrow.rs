//! Writes a CSR as an Arrow IPC file of one record batch, so that readers map it without a copy.
//!
//! A record batch has one buffer after the other, and a walk over the graph fills all of them at once. So each buffer
//! grows in a scratch file until the walk ends. Numbers of rows and offsets have 32 bits if 31 bits can count all arcs,
//! else 64: SciPy takes such pairs as they are.

mod columns;
mod file;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType};
use anden_graph::{Graph, GraphKind, Weight, WeightType, WeightedEdges};
use arrow_array::{ArrayRef, Int32Array, Int64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Fields, Schema};

use self::columns::{ColumnBuffers, ListBuffers};
use self::file::write_batch;
use crate::arrow_layout::{ARCS, DIRECTED, INDEX, KEY};
use crate::edge_rows::{EdgeRows, WrittenProperties, for_each_written, pieces_of};
use crate::output_format::ExportedGraph;
use crate::write::{Output, refuse_clash};
use crate::write_parquet::{ColumnKeys, GROUP_ROWS, key_field, property_field, weight_field, weights_of};
use crate::{Error, Result};

/// Memory of the buffers of a column before they are in scratch files.
pub(crate) const COLUMN_BYTES: u64 = columns::COLUMN_BYTES;

/// Writes all vertices with their properties and arcs. Returns the number of edges.
///
/// # Errors
/// Those of keys, properties and output; damage of the graph. A property has the name of another column.
pub(crate) fn write_arrow<G: ExportedGraph>(graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
    match graph.graph().weight_type() {
        None | Some(WeightType::U32) => write_lists::<u32, G>(graph, output),
        Some(WeightType::I64) => write_lists::<i64, G>(graph, output),
        Some(WeightType::F32) => write_lists::<f32, G>(graph, output),
        Some(WeightType::F64) => write_lists::<f64, G>(graph, output),
    }
}

/// A piece of the rows.
#[derive(Default)]
struct RowPiece {
    /// The columns of vertices, the number of arcs of each, and the members of the arcs.
    vertices: Vec<ArrayRef>,
    num_arcs: Vec<usize>,
    arcs: Vec<ArrayRef>,
}

fn write_lists<W: Weight, G: ExportedGraph>(graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
    let (lists, properties) = (graph.graph(), graph.properties());
    let keys = ColumnKeys::new(
        lists,
        graph.key_kind()?,
        |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text),
        graph.pool(),
    )?;
    let num_edges = lists.num_edges();
    let most_arcs = if lists.graph_kind() == GraphKind::Undirected { num_edges.saturating_mul(2) } else { num_edges };
    let is_wide = most_arcs > i32::MAX as u64;
    let (vertex_fields, arc_fields) = fields_of(graph, &keys, is_wide, output)?;
    let mut vertices: Vec<ColumnBuffers> = vertex_fields.iter().map(|field| ColumnBuffers::new(field)).collect();
    let mut arcs: Vec<ColumnBuffers> = arc_fields.iter().map(|field| ColumnBuffers::new(field)).collect();
    let (mut offsets, progress) = (ListBuffers::new(is_wide), output.progress());
    let rows = ListedRows::new(lists);
    let has_rows = !properties.edge_schema().is_empty();
    graph.pool().in_order(
        pieces_of(lists, GROUP_ROWS),
        EdgeRows::<W>::default,
        |edges, piece: Range<VertexId>, made: &mut Option<RowPiece>| -> Result<(), G::Error> {
            let (mut ids, mut num_arcs) = (Vec::new(), Vec::new());
            for_each_written(lists, piece, has_rows, |vertex| -> Result<(), G::Error> {
                if !lists.is_live(vertex) {
                    return Ok(());
                }
                let before = edges.len();
                edges.push_arcs(lists, properties, vertex)?;
                ids.push(vertex);
                num_arcs.push(edges.len() - before);
                Ok(())
            })?;
            let mut columns = keys.arrays::<G::Error>(&[&ids])?;
            // Text is stored as it is, because most readers take a dictionary for categories.
            columns[0] = plain(&columns[0])?;
            columns.extend(plain_properties(properties.vertex_schema(), &properties.vertex_columns(&ids)?)?);
            let mut members = vec![rows.array(&edges.targets, is_wide)];
            if lists.weight_type().is_some() {
                members.push(weights_of(std::mem::take(&mut edges.weights)));
            }
            if has_rows {
                members.extend(plain_properties(properties.edge_schema(), &properties.edge_columns(&edges.rows)?)?);
            }
            edges.clear();
            *made = Some(RowPiece { vertices: columns, num_arcs, arcs: members });
            Ok(())
        },
        |made| {
            // The output is written after the walk, and would notice a cancellation only then.
            progress.check().map_err(Error::from)?;
            let piece = made.take().unwrap_or_default();
            vertices.iter_mut().zip(&piece.vertices).try_for_each(|(buffers, column)| buffers.append(column))?;
            arcs.iter_mut().zip(&piece.arcs).try_for_each(|(buffers, column)| buffers.append(column))?;
            Ok(piece.num_arcs.iter().try_for_each(|&num_arcs| offsets.append(num_arcs))?)
        },
    )?;
    // A damaged page looks empty, so the file is complete only if the graph has no fault.
    lists.check().map_err(Error::from)?;
    let arc = Field::new("item", DataType::Struct(arc_fields), false);
    let data_type = if is_wide { DataType::LargeList(arc.into()) } else { DataType::List(arc.into()) };
    let mut fields: Vec<Arc<Field>> = vertex_fields.iter().cloned().collect();
    fields.push(Field::new(ARCS, data_type, false).into());
    let is_directed = lists.graph_kind() == GraphKind::Directed;
    let metadata: HashMap<_, _> = [(DIRECTED.to_owned(), is_directed.to_string())].into();
    write_batch(&Schema::new_with_metadata(fields, metadata), vertices, offsets, arcs, output)?;
    Ok(num_edges)
}

/// The columns of vertices without their lists, and the members of arcs.
fn fields_of<G: ExportedGraph, F>(
    graph: &G,
    keys: &ColumnKeys<F>,
    is_wide: bool,
    output: &Output<'_>,
) -> Result<(Fields, Fields)> {
    let (lists, properties) = (graph.graph(), graph.properties());
    let (kind, is_unsigned) = keys.kind();
    let key = key_field(KEY, kind, is_unsigned);
    let key = match key.data_type() {
        DataType::Dictionary(_, values) => Field::new(KEY, (**values).clone(), false),
        _ => key,
    };
    let index = Field::new(INDEX, if is_wide { DataType::Int64 } else { DataType::Int32 }, false);
    let weight = lists.weight_type().map(weight_field);
    let taken: Vec<&str> = [INDEX].into_iter().chain(weight.as_ref().map(|weight| &weight.name()[..])).collect();
    refuse_clash(&taken, properties.edge_schema(), output.path())?;
    refuse_clash(&[KEY, ARCS], properties.vertex_schema(), output.path())?;
    let of_vertices = properties.vertex_schema().iter().map(|(name, found)| property_field(name, found));
    let of_edges = properties.edge_schema().iter().map(|(name, found)| property_field(name, found));
    let vertex_fields = std::iter::once(key).chain(of_vertices).collect();
    Ok((vertex_fields, std::iter::once(index).chain(weight).chain(of_edges).collect()))
}

/// The values of properties: lists as lists, and text without a dictionary.
fn plain_properties(schema: &PropertySchema, columns: &[PropertyColumn]) -> Result<Vec<ArrayRef>> {
    let array = |(column, (_, property_type)): (&PropertyColumn, (&str, PropertyType))| {
        Ok(column.without_dictionary().array_of(property_type)?)
    };
    columns.iter().zip(schema.iter()).map(array).collect()
}

/// Text without a dictionary.
fn plain(keys: &ArrayRef) -> Result<ArrayRef> {
    match keys.data_type() {
        DataType::Dictionary(_, values) => {
            cast(keys, values).map_err(|error| Error::Parameter(format!("cannot write Arrow: {error}")))
        }
        _ => Ok(Arc::clone(keys)),
    }
}

/// The rows of vertices: their numbers among the vertices that exist.
enum ListedRows {
    /// All ids below the bound are vertices.
    Ids,
    ById(Vec<VertexId>),
}

impl ListedRows {
    fn new(graph: &impl Graph) -> Self {
        if graph.num_vertices() == graph.vertex_bound() {
            return Self::Ids;
        }
        let mut num_rows = 0;
        let numbers = (0..graph.vertex_bound() as VertexId).map(|vertex| {
            let row = num_rows;
            num_rows += VertexId::from(graph.is_live(vertex));
            row
        });
        Self::ById(numbers.collect())
    }

    fn array(&self, vertices: &[VertexId], is_wide: bool) -> ArrayRef {
        let row = |&vertex: &VertexId| match self {
            Self::Ids => vertex,
            Self::ById(rows) => rows[vertex as usize],
        };
        match is_wide {
            true => Arc::new(Int64Array::from_iter_values(vertices.iter().map(|vertex| row(vertex).into()))),
            false => Arc::new(Int32Array::from_iter_values(vertices.iter().map(|vertex| row(vertex) as i32))),
        }
    }
}

/// The memory of the numbers of rows, and of the buffers of all columns.
pub(crate) fn arrow_bytes<G: ExportedGraph>(graph: &G) -> u64 {
    let (lists, properties) = (graph.graph(), graph.properties());
    let is_whole = lists.num_vertices() == lists.vertex_bound();
    let rows = if is_whole { 0 } else { size_of::<VertexId>() * lists.vertex_bound() };
    // The items of a list are a column of their own.
    let columns_of = |schema: &PropertySchema| -> usize {
        schema.iter().map(|(_, property_type)| 1 + usize::from(property_type.items().is_some())).sum()
    };
    let num_columns = 4 + columns_of(properties.vertex_schema()) + columns_of(properties.edge_schema());
    rows as u64 + num_columns as u64 * COLUMN_BYTES
}
