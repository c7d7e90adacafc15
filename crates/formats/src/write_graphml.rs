//! Writes graphs as GraphML.
//!
//! Every vertex is a node, so none is lost. Weights are data of the key `weight`, properties of keys with their names.
//! Types that GraphML lacks become strings in their text form. Anden's attribute `anden.type` keeps their type, so
//! Anden reads them back; other programs ignore it.

use anden_base::VertexId;
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType};
use anden_graph::{GraphKind, Weight, WeightType, WeightedEdges};

use crate::edge_rows::{EdgeRows, WrittenProperties, for_each_written};
use crate::readers::TYPE_ATTRIBUTE;
use crate::write::Output;
use crate::{Error, Result};

/// The number of vertices per property lookup.
const VERTICES_AT_ONCE: usize = 4 << 10;
/// The approximate number of edges per property lookup.
const EDGES_AT_ONCE: usize = 16 << 10;

/// Writes the graph as GraphML; returns the number of edges.
///
/// `key` appends the key of a vertex to the given bytes.
///
/// # Errors
/// Those of keys, properties and output. A text has characters that XML cannot hold. An edge property has the name
/// `weight`, and the graph has weights.
pub fn write_graphml<G: WeightedEdges, E: From<Error>>(
    graph: &G,
    key: impl FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
    properties: &impl WrittenProperties<E>,
    output: &mut Output<'_>,
) -> Result<u64, E> {
    let mut writer = GraphMlWriter { output, key, text: Vec::new(), raw: Vec::new() };
    match graph.weight_type() {
        None | Some(WeightType::U32) => writer.write::<u32, _, _>(graph, properties),
        Some(WeightType::I64) => writer.write::<i64, _, _>(graph, properties),
        Some(WeightType::F32) => writer.write::<f32, _, _>(graph, properties),
        Some(WeightType::F64) => writer.write::<f64, _, _>(graph, properties),
    }
}

struct GraphMlWriter<'a, 'o, F> {
    output: &'a mut Output<'o>,
    key: F,
    /// The text to write next.
    text: Vec<u8>,
    raw: Vec<u8>,
}

impl<F> GraphMlWriter<'_, '_, F> {
    fn write<W: Weight, G: WeightedEdges, E: From<Error>>(
        &mut self,
        graph: &G,
        properties: &impl WrittenProperties<E>,
    ) -> Result<u64, E>
    where
        F: FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
    {
        self.header(graph, properties.vertex_schema(), properties.edge_schema())?;
        // Removed vertices leave gaps in the ids.
        let ids: Vec<VertexId> = (0..graph.vertex_bound() as VertexId).filter(|&v| graph.is_live(v)).collect();
        for vertices in ids.chunks(VERTICES_AT_ONCE) {
            let columns = properties.vertex_columns(vertices)?;
            for (row, &vertex) in vertices.iter().enumerate() {
                self.text.extend_from_slice(b"<node id=\"");
                self.push_key(vertex)?;
                self.text.push(b'"');
                self.push_data(b"node", None::<W>, "vn", &columns, row)?;
            }
        }
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
                self.text.extend_from_slice(b"<edge source=\"");
                self.push_key(edges.sources[row])?;
                self.text.extend_from_slice(b"\" target=\"");
                self.push_key(edges.targets[row])?;
                self.text.push(b'"');
                self.push_data(b"edge", edges.weights.get(row).copied(), "en", &columns, row)?;
            }
            num_edges += edges.len() as u64;
            edges.clear();
            Ok::<(), E>(())
        })?;
        // Checked before the end tag, so that a file of a damaged graph is never complete.
        graph.check().map_err(Error::from)?;
        self.output.write(b"</graph>\n</graphml>\n")?;
        self.output.flush()?;
        Ok(num_edges)
    }

    fn header(&mut self, graph: &impl WeightedEdges, vertices: &PropertySchema, edges: &PropertySchema) -> Result<()> {
        self.text.extend_from_slice(
            b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
        );
        for (side, schema, domain) in [("vn", vertices, "node"), ("en", edges, "edge")] {
            for (place, (name, property_type)) in schema.iter().enumerate() {
                // A reader could not tell this property from the weight.
                if domain == "edge" && graph.weight_type().is_some() && name.eq_ignore_ascii_case("weight") {
                    let what = format!("the property '{name}' has the name of the weights: rename it");
                    return Err(self.output.refuse(what));
                }
                // GraphML lacks some types, so an attribute of ours names these beside the nearest type.
                let (known, ours) = match property_type {
                    PropertyType::Boolean => ("boolean", None),
                    PropertyType::I64 => ("long", None),
                    PropertyType::U64 => ("long", Some("u64")),
                    PropertyType::F32 => ("float", Some("f32")),
                    PropertyType::F64 => ("double", None),
                    PropertyType::String => ("string", None),
                    other => ("string", Some(other.name())),
                };
                self.text.extend(format!("<key id=\"{side}{place}\" for=\"{domain}\" attr.name=\"").into_bytes());
                self.raw.clear();
                self.raw.extend_from_slice(name.as_bytes());
                self.push_escaped()?;
                self.text.extend(format!("\" attr.type=\"{known}\"").into_bytes());
                if let Some(ours) = ours {
                    self.text.extend(format!(" {TYPE_ATTRIBUTE}=\"{ours}\"").into_bytes());
                }
                self.text.extend_from_slice(b"/>\n");
            }
        }
        let known = match graph.weight_type() {
            None => None,
            Some(WeightType::U32 | WeightType::I64) => Some("long"),
            Some(WeightType::F32) => Some("float"),
            Some(WeightType::F64) => Some("double"),
        };
        if let Some(known) = known {
            let key = format!("<key id=\"w\" for=\"edge\" attr.name=\"weight\" attr.type=\"{known}\"/>\n");
            self.text.extend(key.into_bytes());
        }
        let default = if graph.graph_kind() == GraphKind::Directed { "directed" } else { "undirected" };
        self.text.extend(format!("<graph edgedefault=\"{default}\">\n").into_bytes());
        self.write_out()
    }

    fn push_key<E: From<Error>>(&mut self, vertex: VertexId) -> Result<(), E>
    where
        F: FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
    {
        self.raw.clear();
        (self.key)(vertex, &mut self.raw)?;
        Ok(self.push_escaped()?)
    }

    /// Ends the open element, with its data.
    fn push_data<W: Weight>(
        &mut self,
        element: &[u8],
        weight: Option<W>,
        prefix: &str,
        columns: &[PropertyColumn],
        row: usize,
    ) -> Result<()> {
        // An element without data is closed at once, which keeps files small.
        if weight.is_none() && columns.iter().all(|column| column.is_null(row)) {
            self.text.extend_from_slice(b"/>\n");
            return self.write_out();
        }
        self.text.push(b'>');
        if let Some(weight) = weight {
            self.text.extend(format!("<data key=\"w\">{weight}</data>").into_bytes());
        }
        for (place, column) in columns.iter().enumerate().filter(|(_, column)| !column.is_null(row)) {
            self.text.extend(format!("<data key=\"{prefix}{place}\">").into_bytes());
            self.raw.clear();
            self.raw.extend(column.get(row).to_string().into_bytes());
            self.push_escaped()?;
            self.text.extend_from_slice(b"</data>");
        }
        self.text.extend_from_slice(b"</");
        self.text.extend_from_slice(element);
        self.text.extend_from_slice(b">\n");
        self.write_out()
    }

    /// Appends the raw text, escaped so that XML returns it unchanged. XML would normalize line ends and tabs.
    fn push_escaped(&mut self) -> Result<()> {
        for &byte in &self.raw {
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
                    let text = String::from_utf8_lossy(&self.raw);
                    return Err(self.output.refuse(format!("{text:?} has a character that XML cannot hold")));
                }
                _ => {
                    self.text.push(byte);
                    continue;
                }
            };
            self.text.extend_from_slice(reference);
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<()> {
        self.output.write(&self.text)?;
        self.text.clear();
        Ok(())
    }
}
