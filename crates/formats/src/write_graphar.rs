//! Writes a graph as a folder of GraphAr: vertices by their labels, edges by their types, in chunks of Parquet.
//!
//! Vertices of one type are numbered in the order of their ids. The edges of a chunk of sources are a part, sorted by
//! source. Labels and types are columns as well, so that a load gives the graph back: vertices without labels have the
//! type `vertex`, edges without a type have the type `edge`.

mod edges;
mod info;
mod types;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use anden_graph::property::{ItemType, PropertyColumn, PropertySchema, PropertyType};
use anden_graph::{Graph, Weight, WeightType, WeightedEdges};
use arrow_array::{ArrayRef, Int64Array, LargeStringArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field};

use self::edges::write_edges;
use self::info::{graph_info, vertex_info};
use self::types::{VertexTypes, safe_name};
use crate::edge_rows::WrittenProperties;
use crate::graphar_layout::{ENDS, VERTEX_INDEX};
use crate::output_folder::{FolderFile, OutputFolder};
use crate::output_format::ExportedGraph;
use crate::write::refuse_clash;
use crate::write_parquet::{ColumnKeys, ParquetTable, RowEncoder, RowFile, key_field, property_field, weight_field};
use crate::{Error, Result};

/// The number of vertices of a chunk, and of edges of a chunk, as the specification recommends.
const VERTEX_CHUNK: usize = 1 << 18;
const EDGE_CHUNK: usize = 1 << 22;
/// The property of the keys.
const KEY: &str = "id";
/// The folder of all properties of a type.
const PROPERTIES: &str = "properties";

/// Writes all vertices and edges. Returns the number of edges.
///
/// # Errors
/// Those of keys, properties and output; damage of the graph. A property has the name of another column, or the format
/// lacks a number.
pub(crate) fn write_graphar<G: ExportedGraph>(graph: &G, folder: &OutputFolder<'_>) -> Result<u64, G::Error> {
    match graph.graph().weight_type() {
        None | Some(WeightType::U32) => write_graph::<u32, G>(graph, folder),
        Some(WeightType::I64) => write_graph::<i64, G>(graph, folder),
        Some(WeightType::F32) => write_graph::<f32, G>(graph, folder),
        Some(WeightType::F64) => write_graph::<f64, G>(graph, folder),
    }
}

/// The bytes of the tables of types.
pub(crate) fn type_bytes<G: ExportedGraph>(graph: &G) -> u64 {
    types::BYTES_PER_VERTEX * graph.graph().vertex_bound() as u64
}

fn write_graph<W: Weight, G: ExportedGraph>(graph: &G, folder: &OutputFolder<'_>) -> Result<u64, G::Error> {
    let (lists, properties) = (graph.graph(), graph.properties());
    let keys = ColumnKeys::new(
        lists,
        graph.key_kind()?,
        |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text),
        graph.pool(),
    )?;
    refuse_clash(&[KEY, VERTEX_INDEX], properties.vertex_schema(), &folder.path_of("vertex"))?;
    let taken: &[&str] = if lists.weight_type().is_some() { &["weight", ENDS[0], ENDS[1]] } else { &ENDS };
    refuse_clash(taken, properties.edge_schema(), &folder.path_of("edge"))?;
    let types = VertexTypes::new(graph, folder)?;
    let mut taken = HashSet::new();
    let safe: Vec<String> = types.names.iter().map(|name| safe_name(name, &mut taken)).collect();
    let (kind, is_unsigned) = keys.kind();
    let fields = vertex_fields(key_field(KEY, kind, is_unsigned), properties.vertex_schema());
    for (place, name) in safe.iter().enumerate() {
        let text = vertex_info(&types.names[place], name, &fields[1..]);
        write_bytes(folder, &format!("{name}.vertex.yml"), text.as_bytes())?;
        let group = format!("vertex/{name}/{PROPERTIES}");
        folder.create_folder(&group)?;
        let vertices = types.vertices(place);
        for (chunk, ids) in vertices.chunks(VERTEX_CHUNK).enumerate() {
            let first = (chunk * VERTEX_CHUNK) as i64;
            let mut columns: Vec<ArrayRef> =
                vec![Arc::new(Int64Array::from_iter_values(first..first + ids.len() as i64))];
            columns.extend(keys.arrays::<G::Error>(&[ids])?);
            if is_unsigned {
                columns[1] = signed(&columns[1], KEY, folder)?;
            }
            let values = properties.vertex_columns(ids)?;
            for ((name, found), column) in properties.vertex_schema().iter().zip(&values) {
                columns.push(stored(column, stored_type(found), name, folder)?);
            }
            let mut table = begin_table(folder, &format!("{group}/chunk{chunk}"), fields.clone())?;
            table.append(&columns, 0..ids.len())?;
            table.finish()?;
        }
        write_bytes(folder, &format!("vertex/{name}/vertex_count"), &(vertices.len() as i64).to_le_bytes())?;
    }
    let edge_files = write_edges::<W, G>(graph, &types, &safe, folder)?;
    // A damaged page looks empty, so the folder is complete only if the graph has no fault.
    lists.check().map_err(Error::from)?;
    write_bytes(folder, "graph.graph.yml", graph_info(&safe, &edge_files).as_bytes())?;
    Ok(lists.num_edges())
}

/// The columns of vertices: number, key and properties.
fn vertex_fields(key: Field, schema: &PropertySchema) -> Vec<Field> {
    let key = match key.data_type() {
        DataType::UInt64 => key.with_data_type(DataType::Int64),
        _ => key,
    };
    let mut fields = vec![Field::new(VERTEX_INDEX, DataType::Int64, false), key];
    fields.extend(schema.iter().map(|(name, found)| property_field(name, stored_type(found))));
    fields
}

/// The columns of the properties of edges.
fn edge_fields<G: ExportedGraph>(graph: &G) -> Vec<Field> {
    let weight = graph.graph().weight_type().map(|weight_type| match weight_type {
        WeightType::U32 => weight_field(WeightType::I64),
        other => weight_field(other),
    });
    let schema = graph.properties().edge_schema();
    weight.into_iter().chain(schema.iter().map(|(name, found)| property_field(name, stored_on_edges(found)))).collect()
}

/// The type that the format has for a property of vertices: it lacks unsigned numbers and bytes.
fn stored_type(found: PropertyType) -> PropertyType {
    match found {
        PropertyType::U64 => PropertyType::I64,
        PropertyType::List(ItemType::U64) => PropertyType::List(ItemType::I64),
        PropertyType::Bytes => PropertyType::String,
        other => other,
    }
}

/// The type that the format has for a property of edges: it lacks lists of other types than these.
fn stored_on_edges(found: PropertyType) -> PropertyType {
    match stored_type(found) {
        list @ PropertyType::List(ItemType::I64 | ItemType::F32 | ItemType::F64 | ItemType::String) => list,
        PropertyType::List(_) => PropertyType::String,
        other => other,
    }
}

/// A column in the type that the format has for it.
fn stored(column: &PropertyColumn, to: PropertyType, name: &str, folder: &OutputFolder<'_>) -> Result<ArrayRef> {
    match (column.property_type(), to) {
        (PropertyType::U64, _) => signed(column.array(), name, folder),
        (PropertyType::Bytes, _) => {
            let text = |row| (!column.is_null(row)).then(|| column.get(row).to_string());
            Ok(Arc::new(LargeStringArray::from_iter((0..column.len()).map(text))))
        }
        // A list that is none of signed numbers has an unsigned one.
        (_, PropertyType::List(ItemType::I64)) => column.array_of(to).map_err(|_| unsigned(name, folder)),
        _ => Ok(column.without_dictionary().array_of(to)?),
    }
}

fn signed(column: &ArrayRef, name: &str, folder: &OutputFolder<'_>) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, &DataType::Int64, &options).map_err(|_| unsigned(name, folder))
}

fn unsigned(name: &str, folder: &OutputFolder<'_>) -> Error {
    Error::Input {
        path: folder.path_of(name),
        what: format!("GraphAr has no unsigned numbers, and '{name}' has one of 64 bits: write Parquet"),
    }
}

/// A table in the making.
struct ChunkTable<'a> {
    table: ParquetTable<FolderFile<'a>>,
    encoder: RowEncoder,
}

fn begin_table<'a>(folder: &OutputFolder<'a>, name: &str, fields: Vec<Field>) -> Result<ChunkTable<'a>> {
    let (table, encoder) = ParquetTable::begin(folder.create(name)?, fields)?;
    Ok(ChunkTable { table, encoder })
}

impl ChunkTable<'_> {
    /// Appends rows of columns as a row group.
    fn append(&mut self, columns: &[ArrayRef], rows: Range<usize>) -> Result<()> {
        let columns: Vec<ArrayRef> = columns.iter().map(|column| column.slice(rows.start, rows.len())).collect();
        self.table.add(self.encoder.encode(&columns)?)
    }

    fn finish(self) -> Result<()> {
        self.table.finish().map(|_| ())
    }
}

fn write_bytes(folder: &OutputFolder<'_>, name: &str, bytes: &[u8]) -> Result<()> {
    let mut file = folder.create(name)?;
    file.output.write(bytes)?;
    file.complete()
}
