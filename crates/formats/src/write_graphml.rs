//! Writes graphs as GraphML.
//!
//! Every vertex is a node, so none is lost. Weights are data of the key `weight`, properties of keys with their names.
//! Types that GraphML lacks become strings in their text form. Anden's attribute `anden.type` keeps their type, so
//! Anden reads them back; other programs ignore it.

use anden_base::VertexId;
use anden_graph::property::PropertySchema;
use anden_graph::{GraphKind, Weight, WeightType, WeightedEdges};

use crate::document::TYPE_ATTRIBUTE;
use crate::edge_rows::WrittenProperties;
use crate::write::Output;
use crate::write_elements::{ElementWriter, WrittenRow, push_xml, write_elements, xml_type};
use crate::{Error, Result};

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
    writer.header(graph, properties.vertex_schema(), properties.edge_schema())?;
    let num_edges = write_elements(graph, None, properties, &mut writer)?;
    writer.output.write(b"</graph>\n</graphml>\n")?;
    writer.output.flush()?;
    Ok(num_edges)
}

struct GraphMlWriter<'a, 'o, F> {
    output: &'a mut Output<'o>,
    key: F,
    /// The text to write next.
    text: Vec<u8>,
    raw: Vec<u8>,
}

impl<F, E: From<Error>> ElementWriter<E> for GraphMlWriter<'_, '_, F>
where
    F: FnMut(VertexId, &mut Vec<u8>) -> Result<(), E>,
{
    fn node(&mut self, vertex: VertexId, row: &WrittenRow<'_>) -> Result<(), E> {
        self.text.extend_from_slice(b"<node id=\"");
        self.push_key(vertex)?;
        self.text.push(b'"');
        Ok(self.push_data(b"node", None::<u32>, "vn", row)?)
    }

    fn begin_edges(&mut self) -> Result<(), E> {
        Ok(())
    }

    fn edge<W: Weight>(
        &mut self,
        (source, target): (VertexId, VertexId),
        weight: Option<W>,
        row: &WrittenRow<'_>,
    ) -> Result<(), E> {
        self.text.extend_from_slice(b"<edge source=\"");
        self.push_key(source)?;
        self.text.extend_from_slice(b"\" target=\"");
        self.push_key(target)?;
        self.text.push(b'"');
        Ok(self.push_data(b"edge", weight, "en", row)?)
    }
}

impl<F> GraphMlWriter<'_, '_, F> {
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
                let (known, ours) = xml_type(property_type);
                self.text.extend(format!("<key id=\"{side}{place}\" for=\"{domain}\" attr.name=\"").into_bytes());
                push_xml(name.as_bytes(), self.output, &mut self.text)?;
                self.text.extend(format!("\" attr.type=\"{known}\"").into_bytes());
                // Neo4j reads a list by the type of its items.
                if let Some(item) = property_type.items() {
                    let (known, _) = xml_type(item.property_type());
                    self.text.extend(format!(" attr.list=\"{known}\"").into_bytes());
                }
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
        if let Some((known, weight_type)) = known.zip(graph.weight_type()) {
            let ours = weight_type.name();
            let key = format!(
                "<key id=\"w\" for=\"edge\" attr.name=\"weight\" attr.type=\"{known}\" {TYPE_ATTRIBUTE}=\"{ours}\"/>\n"
            );
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
        Ok(push_xml(&self.raw, self.output, &mut self.text)?)
    }

    /// Ends the open element, with its data.
    fn push_data<W: Weight>(
        &mut self,
        element: &[u8],
        weight: Option<W>,
        prefix: &str,
        row: &WrittenRow<'_>,
    ) -> Result<()> {
        // An element without data is closed at once, which keeps files small.
        if weight.is_none() && row.values().next().is_none() {
            self.text.extend_from_slice(b"/>\n");
            return self.write_out();
        }
        self.text.push(b'>');
        if let Some(weight) = weight {
            self.text.extend(format!("<data key=\"w\">{weight}</data>").into_bytes());
        }
        for (place, column) in row.values() {
            self.text.extend(format!("<data key=\"{prefix}{place}\">").into_bytes());
            push_xml(column.get(row.row).to_string().as_bytes(), self.output, &mut self.text)?;
            self.text.extend_from_slice(b"</data>");
        }
        self.text.extend_from_slice(b"</");
        self.text.extend_from_slice(element);
        self.text.extend_from_slice(b">\n");
        self.write_out()
    }

    fn write_out(&mut self) -> Result<()> {
        self.output.write(&self.text)?;
        self.text.clear();
        Ok(())
    }
}
