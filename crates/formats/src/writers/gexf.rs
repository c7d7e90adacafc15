//! GEXF: vertices and edges with all properties in one file.
//!
//! The label of a vertex is the property `label`, or else the key. Other properties are declared attributes. Types that
//! GEXF lacks become strings in their text form; Anden's attribute `anden.type` keeps their type.

use anden_base::VertexId;
use anden_graph::property::PropertySchema;
use anden_graph::{Graph, GraphKind, Weight, WeightedEdges};

use crate::Result;
use crate::document::TYPE_ATTRIBUTE;
use crate::edge_rows::WrittenProperties;
use crate::output_format::OutputContent::Edges;
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat};
use crate::write::Output;
use crate::write_elements::{ElementWriter, WrittenRow, push_xml, refuse_names, write_elements, xml_type};

/// The format.
pub(super) struct GexfOutput;

impl OutputFormat for GexfOutput {
    fn name(&self) -> &'static str {
        "gexf"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const { &[OutputEnding::new("gexf", "GEXF", &[Edges])] }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: true, properties_of_vertex_files: false }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for GexfOutput {
    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        let (lists, properties) = (graph.graph(), graph.properties());
        let (of_vertices, of_edges) = (properties.vertex_schema(), properties.edge_schema());
        if lists.weight_type().is_some() {
            refuse_names(&["weight"], of_edges, output)?;
        }
        let default = if lists.graph_kind() == GraphKind::Directed { "directed" } else { "undirected" };
        // The attribute of an edge has no type, so the graph tells it.
        let ours = lists.weight_type().map(|weight_type| format!(" {TYPE_ATTRIBUTE}=\"{}\"", weight_type.name()));
        let ours = ours.unwrap_or_default();
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<gexf xmlns=\"http://gexf.net/1.3\" version=\"1.3\">\n\
             <graph mode=\"static\" defaultedgetype=\"{default}\"{ours}>\n"
        )
        .into_bytes();
        let label = of_vertices.find("label");
        push_attributes("node", of_vertices, label, output, &mut text)?;
        push_attributes("edge", of_edges, None, output, &mut text)?;
        text.extend_from_slice(b"<nodes>\n");
        output.write(&text)?;
        let mut writer = GexfElements { graph, output, label, num_edges: 0, text: Vec::new(), raw: Vec::new() };
        let num_edges = write_elements(lists, None, properties, &mut writer)?;
        output.write(b"</edges>\n</graph>\n</gexf>\n")?;
        output.flush()?;
        Ok(num_edges)
    }
}

/// Appends the declarations of properties. The one at `label` is no attribute.
fn push_attributes(
    class: &str,
    schema: &PropertySchema,
    label: Option<usize>,
    output: &Output<'_>,
    text: &mut Vec<u8>,
) -> Result<()> {
    if schema.len() == usize::from(label.is_some()) {
        return Ok(());
    }
    text.extend_from_slice(format!("<attributes class=\"{class}\" mode=\"static\">\n").as_bytes());
    for (place, (name, property_type)) in schema.iter().enumerate().filter(|(place, _)| Some(*place) != label) {
        let (known, ours) = xml_type(property_type);
        text.extend_from_slice(format!("<attribute id=\"{place}\" title=\"").as_bytes());
        push_xml(name.as_bytes(), output, text)?;
        text.extend_from_slice(format!("\" type=\"{known}\"").as_bytes());
        if let Some(ours) = ours {
            text.extend_from_slice(format!(" {TYPE_ATTRIBUTE}=\"{ours}\"").as_bytes());
        }
        text.extend_from_slice(b"/>\n");
    }
    text.extend_from_slice(b"</attributes>\n");
    Ok(())
}

struct GexfElements<'a, 'o, G> {
    graph: &'a G,
    output: &'a mut Output<'o>,
    /// The property that is the label.
    label: Option<usize>,
    num_edges: u64,
    text: Vec<u8>,
    raw: Vec<u8>,
}

impl<G: ExportedGraph> GexfElements<'_, '_, G> {
    fn push_attribute(&mut self, name: &str, vertex: VertexId) -> Result<(), G::Error> {
        self.raw.clear();
        self.graph.push_key(vertex, &mut self.raw)?;
        Ok(self.push_text(name)?)
    }

    /// Appends an attribute with the raw text.
    fn push_text(&mut self, name: &str) -> Result<()> {
        self.text.extend_from_slice(format!(" {name}=\"").as_bytes());
        push_xml(&self.raw, self.output, &mut self.text)?;
        self.text.push(b'"');
        Ok(())
    }

    /// Writes the element with its values that are not null.
    fn finish(&mut self, element: &str, row: &WrittenRow<'_>, label: Option<usize>) -> Result<()> {
        let mut values = row.values().filter(|(place, _)| Some(*place) != label).peekable();
        if values.peek().is_none() {
            self.text.extend_from_slice(b"/>\n");
        } else {
            self.text.extend_from_slice(b"><attvalues>");
            for (place, column) in values {
                self.text.extend_from_slice(format!("<attvalue for=\"{place}\" value=\"").as_bytes());
                push_xml(column.get(row.row).to_string().as_bytes(), self.output, &mut self.text)?;
                self.text.extend_from_slice(b"\"/>");
            }
            self.text.extend_from_slice(format!("</attvalues></{element}>\n").as_bytes());
        }
        self.output.write(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

impl<G: ExportedGraph> ElementWriter<G::Error> for GexfElements<'_, '_, G> {
    fn node(&mut self, vertex: VertexId, row: &WrittenRow<'_>) -> Result<(), G::Error> {
        self.text.extend_from_slice(b"<node");
        self.push_attribute("id", vertex)?;
        match self.label {
            None => self.push_attribute("label", vertex)?,
            Some(label) => {
                if let Some((_, column)) = row.values().find(|(place, _)| *place == label) {
                    self.raw.clear();
                    self.raw.extend_from_slice(column.get(row.row).to_string().as_bytes());
                    self.push_text("label")?;
                }
            }
        }
        Ok(self.finish("node", row, self.label)?)
    }

    fn begin_edges(&mut self) -> Result<(), G::Error> {
        Ok(self.output.write(b"</nodes>\n<edges>\n")?)
    }

    fn edge<W: Weight>(
        &mut self,
        (source, target): (VertexId, VertexId),
        weight: Option<W>,
        row: &WrittenRow<'_>,
    ) -> Result<(), G::Error> {
        // Readers tell parallel edges by their ids.
        self.text.extend_from_slice(format!("<edge id=\"{}\"", self.num_edges).as_bytes());
        self.num_edges += 1;
        self.push_attribute("source", source)?;
        self.push_attribute("target", target)?;
        if let Some(weight) = weight {
            self.text.extend_from_slice(format!(" weight=\"{weight}\"").as_bytes());
        }
        Ok(self.finish("edge", row, None)?)
    }
}
