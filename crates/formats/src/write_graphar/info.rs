//! The YAML files that describe a graph.

use std::fmt::Write;

use arrow_schema::{DataType, Field};

use super::{EDGE_CHUNK, PROPERTIES, VERTEX_CHUNK};
use crate::graphar_layout::OWN_COLUMNS;

/// A text in quotes, as YAML and JSON have it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The file of the graph, with the names of the files of its types.
pub(super) fn graph_info(vertices: &[String], edges: &[String]) -> String {
    let list = |names: &[String], ending: &str| match names {
        [] => " []\n".to_owned(),
        _ => names.iter().fold("\n".to_owned(), |list, name| format!("{list}  - {name}.{ending}.yml\n")),
    };
    format!(
        "name: graph\nvertices:{}edges:{}extra_info:\n  - key: {OWN_COLUMNS}\n    value: columns\nversion: gar/v1\n",
        list(vertices, "vertex"),
        list(edges, "edge"),
    )
}

/// The file of a type of vertices; the first of the columns is the key.
pub(super) fn vertex_info(name: &str, safe: &str, columns: &[Field]) -> String {
    let (name, groups) = (quoted(name), property_group(columns, true));
    format!("type: {name}\nchunk_size: {VERTEX_CHUNK}\nprefix: vertex/{safe}/\n{groups}version: gar/v1\n")
}

/// The file of a type of edges between two types of vertices.
pub(super) fn edge_info(names: [&str; 3], safe: &str, is_directed: bool, columns: &[Field]) -> String {
    let [source, name, target] = names.map(quoted);
    let groups = if columns.is_empty() { String::new() } else { property_group(columns, false) };
    format!(
        "src_type: {source}\nedge_type: {name}\ndst_type: {target}\nchunk_size: {EDGE_CHUNK}\n\
         src_chunk_size: {VERTEX_CHUNK}\ndst_chunk_size: {VERTEX_CHUNK}\ndirected: {is_directed}\n\
         prefix: edge/{safe}/\nadj_lists:\n  - ordered: true\n    aligned_by: src\n    prefix: ordered_by_source/\n    \
         file_type: parquet\n{groups}version: gar/v1\n"
    )
}

/// The columns of vertices, the first of which is the key, or of edges.
fn property_group(columns: &[Field], is_of_vertices: bool) -> String {
    let mut text = format!("property_groups:\n  - prefix: {PROPERTIES}/\n    file_type: parquet\n    properties:\n");
    for (place, column) in columns.iter().enumerate() {
        let (name, is_primary) = (quoted(column.name()), is_of_vertices && place == 0);
        // GraphAr's library refuses a cardinality of edges, and knows few types of lists.
        let (data_type, cardinality) = match column.data_type() {
            DataType::LargeList(item) if is_of_vertices => {
                (data_type_of(item.data_type()).to_owned(), "        cardinality: list\n")
            }
            DataType::LargeList(item) => (format!("list<{}>", data_type_of(item.data_type())), ""),
            single => (data_type_of(single).to_owned(), ""),
        };
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "      - name: {name}\n        data_type: {data_type}\n        is_primary: {is_primary}\n        \
             is_nullable: {}\n{cardinality}",
            column.is_nullable()
        );
    }
    text
}

fn data_type_of(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "bool",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Date32 => "date",
        DataType::Timestamp(..) => "timestamp",
        DataType::Int64 => "int64",
        _ => "string",
    }
}
