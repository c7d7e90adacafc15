//! Walks over the vertices and edges of a graph with their properties, for formats that hold both in one file.

use anden_base::VertexId;
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType};
use anden_graph::{Weight, WeightType, WeightedEdges};

use crate::edge_rows::{EdgeRows, WrittenProperties, for_each_written};
use crate::write::Output;
use crate::{Error, Result};

/// The number of vertices per property lookup.
const VERTICES_AT_ONCE: usize = 4 << 10;
/// The approximate number of edges per property lookup.
const EDGES_AT_ONCE: usize = 16 << 10;

/// One row of properties.
pub(crate) struct WrittenRow<'a> {
    pub(crate) columns: &'a [PropertyColumn],
    pub(crate) row: usize,
}

impl WrittenRow<'_> {
    /// The position of each value that is not null, and its column.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, &PropertyColumn)> {
        self.columns.iter().enumerate().filter(|(_, column)| !column.is_null(self.row))
    }
}

/// Writes the elements of a graph in a format.
pub(crate) trait ElementWriter<E> {
    /// Writes a vertex.
    fn node(&mut self, vertex: VertexId, row: &WrittenRow<'_>) -> Result<(), E>;

    /// Writes what stands between vertices and edges.
    fn begin_edges(&mut self) -> Result<(), E>;

    /// Writes an edge.
    fn edge<W: Weight>(&mut self, ends: (VertexId, VertexId), weight: Option<W>, row: &WrittenRow<'_>)
    -> Result<(), E>;
}

/// Writes every vertex of `vertices`, which lists all of the graph, then every edge; an undirected edge once. Returns
/// the number of edges.
///
/// # Errors
/// Those of the writer and of properties; damage of the graph.
pub(crate) fn write_elements<G: WeightedEdges, E: From<Error>>(
    graph: &G,
    vertices: Option<&[VertexId]>,
    properties: &impl WrittenProperties<E>,
    writer: &mut impl ElementWriter<E>,
) -> Result<u64, E> {
    match vertices {
        Some(vertices) => write_nodes(vertices, properties, writer)?,
        None => {
            // Removed vertices leave gaps in the ids.
            let ids: Vec<VertexId> = (0..graph.vertex_bound() as VertexId).filter(|&v| graph.is_live(v)).collect();
            write_nodes(&ids, properties, writer)?;
        }
    }
    writer.begin_edges()?;
    write_all_edges(graph, properties, writer)
}

/// Writes every edge, an undirected edge once. Returns their number.
///
/// # Errors
/// As [`write_elements`].
pub(crate) fn write_all_edges<G: WeightedEdges, E: From<Error>>(
    graph: &G,
    properties: &impl WrittenProperties<E>,
    writer: &mut impl ElementWriter<E>,
) -> Result<u64, E> {
    match graph.weight_type() {
        None | Some(WeightType::U32) => write_edges::<u32, _, _>(graph, properties, writer),
        Some(WeightType::I64) => write_edges::<i64, _, _>(graph, properties, writer),
        Some(WeightType::F32) => write_edges::<f32, _, _>(graph, properties, writer),
        Some(WeightType::F64) => write_edges::<f64, _, _>(graph, properties, writer),
    }
}

/// Writes vertices.
///
/// # Errors
/// Those of the writer and of properties.
pub(crate) fn write_nodes<E>(
    vertices: &[VertexId],
    properties: &impl WrittenProperties<E>,
    writer: &mut impl ElementWriter<E>,
) -> Result<(), E> {
    for vertices in vertices.chunks(VERTICES_AT_ONCE) {
        let columns = properties.vertex_columns(vertices)?;
        for (row, &vertex) in vertices.iter().enumerate() {
            writer.node(vertex, &WrittenRow { columns: &columns, row })?;
        }
    }
    Ok(())
}

fn write_edges<W: Weight, G: WeightedEdges, E: From<Error>>(
    graph: &G,
    properties: &impl WrittenProperties<E>,
    writer: &mut impl ElementWriter<E>,
) -> Result<u64, E> {
    let (mut edges, mut num_edges) = (EdgeRows::<W>::default(), 0);
    let has_rows = !properties.edge_schema().is_empty();
    for_each_written(graph, 0..graph.vertex_bound() as VertexId, has_rows, |vertex| {
        edges.push(graph, properties, vertex)?;
        // Edges wait for a common lookup of their properties. The last vertex ends the wait.
        if edges.len() < EDGES_AT_ONCE && (vertex as usize) < graph.vertex_bound() - 1 {
            return Ok(());
        }
        let columns = if has_rows { properties.edge_columns(&edges.rows)? } else { Vec::new() };
        for row in 0..edges.len() {
            let ends = (edges.sources[row], edges.targets[row]);
            writer.edge(ends, edges.weights.get(row).copied(), &WrittenRow { columns: &columns, row })?;
        }
        num_edges += edges.len() as u64;
        edges.clear();
        Ok::<(), E>(())
    })?;
    // Checked before the end of the file is written, so that a file of a damaged graph is never complete.
    graph.check().map_err(Error::from)?;
    Ok(num_edges)
}

/// Refuses a property with the name of a part of the elements, which readers could not distinguish.
pub(crate) fn refuse_names(taken: &[&str], properties: &PropertySchema, output: &Output<'_>) -> Result<()> {
    match properties.iter().find(|(name, _)| taken.contains(name)) {
        Some((name, _)) => Err(output.refuse(format!("the property '{name}' has the name of a key: rename it"))),
        None => Ok(()),
    }
}

/// The name of a type in GraphML and GEXF, and Anden's own name where these lack the type.
pub(crate) fn xml_type(property_type: PropertyType) -> (&'static str, Option<&'static str>) {
    match property_type {
        PropertyType::Boolean => ("boolean", None),
        PropertyType::I64 => ("long", None),
        PropertyType::U64 => ("long", Some("u64")),
        PropertyType::F32 => ("float", Some("f32")),
        PropertyType::F64 => ("double", None),
        PropertyType::String => ("string", None),
        other => ("string", Some(other.name())),
    }
}

/// Appends a text, escaped so that XML returns it unchanged. XML would normalize line ends and tabs.
///
/// # Errors
/// The text has a character that XML cannot hold.
pub(crate) fn push_xml(raw: &[u8], output: &Output<'_>, text: &mut Vec<u8>) -> Result<()> {
    for &byte in raw {
        let reference: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'"' => b"&quot;",
            b'\t' => b"&#9;",
            b'\n' => b"&#10;",
            b'\r' => b"&#13;",
            // XML 1.0 has no reference for these characters.
            0..=0x1f => {
                let raw = String::from_utf8_lossy(raw);
                return Err(output.refuse(format!("{raw:?} has a character that XML cannot hold")));
            }
            _ => {
                text.push(byte);
                continue;
            }
        };
        text.extend_from_slice(reference);
    }
    Ok(())
}
