//! Node-link JSON: vertices and edges with all properties in one object, as NetworkX reads it.

use anden_base::VertexId;
use anden_graph::property::{PropertySchema, PropertyType, PropertyValue, push_json_text, push_json_value};
use anden_graph::{Graph, GraphKind, Weight, WeightedEdges};

use crate::Result;
use crate::edge_rows::WrittenProperties;
use crate::json::push_json_weight;
use crate::options::KeyKind;
use crate::output_format::OutputContent::Edges;
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat};
use crate::write::Output;
use crate::write_elements::{ElementWriter, WrittenRow, refuse_names, write_elements};

/// The format.
pub(super) struct NodeLinkOutput;

impl OutputFormat for NodeLinkOutput {
    fn name(&self) -> &'static str {
        "json"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const { &[OutputEnding::new("json", "node-link JSON", &[Edges])] }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: true, properties_of_vertex_files: false }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for NodeLinkOutput {
    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        let (lists, properties) = (graph.graph(), graph.properties());
        refuse_names(&["id"], properties.vertex_schema(), output)?;
        refuse_names(edge_names(lists), properties.edge_schema(), output)?;
        let is_directed = lists.graph_kind() == GraphKind::Directed;
        let header = format!(
            "{{\"directed\": {is_directed}, \"multigraph\": {}, \"graph\": {{}}, \"nodes\": [",
            lists.is_multigraph()
        );
        output.write(header.as_bytes())?;
        let mut writer = JsonElements::new(graph, output)?;
        let num_edges = write_elements(lists, None, properties, &mut writer)?;
        output.write(b"\n]}\n")?;
        output.flush()?;
        Ok(num_edges)
    }
}

/// The members of an edge that are no properties.
pub(super) fn edge_names(graph: &impl WeightedEdges) -> &'static [&'static str] {
    if graph.weight_type().is_some() { &["source", "target", "weight"] } else { &["source", "target"] }
}

/// Writes elements as objects, one a line.
struct JsonElements<'a, 'o, G: ExportedGraph> {
    object: JsonObject<'a, G>,
    output: &'a mut Output<'o>,
    /// What separates the next object from the last one.
    separator: &'static [u8],
}

impl<'a, 'o, G: ExportedGraph> JsonElements<'a, 'o, G> {
    fn new(graph: &'a G, output: &'a mut Output<'o>) -> Result<Self, G::Error> {
        Ok(Self { object: JsonObject::new(graph)?, output, separator: b"\n" })
    }

    fn write(&mut self) -> Result<()> {
        self.output.write(self.separator)?;
        self.separator = b",\n";
        self.output.write(&self.object.text)
    }
}

impl<G: ExportedGraph> ElementWriter<G::Error> for JsonElements<'_, '_, G> {
    fn node(&mut self, vertex: VertexId, row: &WrittenRow<'_>) -> Result<(), G::Error> {
        self.object.vertex(vertex, row)?;
        Ok(self.write()?)
    }

    fn begin_edges(&mut self) -> Result<(), G::Error> {
        self.separator = b"\n";
        Ok(self.output.write(b"\n], \"edges\": [")?)
    }

    fn edge<W: Weight>(
        &mut self,
        ends: (VertexId, VertexId),
        weight: Option<W>,
        row: &WrittenRow<'_>,
    ) -> Result<(), G::Error> {
        self.object.edge(ends, weight, row)?;
        Ok(self.write()?)
    }
}

/// Makes the objects of vertices and edges.
pub(super) struct JsonObject<'a, G> {
    graph: &'a G,
    kind: KeyKind,
    /// The text of the object.
    pub(super) text: Vec<u8>,
    key: Vec<u8>,
}

impl<'a, G: ExportedGraph> JsonObject<'a, G> {
    pub(super) fn new(graph: &'a G) -> Result<Self, G::Error> {
        Ok(Self { graph, kind: graph.key_kind()?, text: Vec::new(), key: Vec::new() })
    }

    /// Makes the object of a vertex.
    ///
    /// # Errors
    /// The key cannot be read.
    pub(super) fn vertex(&mut self, vertex: VertexId, row: &WrittenRow<'_>) -> Result<(), G::Error> {
        self.text.clear();
        self.text.extend_from_slice(b"{\"id\": ");
        self.push_key(vertex)?;
        self.push_values(self.graph.properties().vertex_schema(), row);
        Ok(())
    }

    /// Makes the object of an edge.
    ///
    /// # Errors
    /// A key cannot be read.
    pub(super) fn edge<W: Weight>(
        &mut self,
        (source, target): (VertexId, VertexId),
        weight: Option<W>,
        row: &WrittenRow<'_>,
    ) -> Result<(), G::Error> {
        self.text.clear();
        self.text.extend_from_slice(b"{\"source\": ");
        self.push_key(source)?;
        self.text.extend_from_slice(b", \"target\": ");
        self.push_key(target)?;
        if let Some(weight) = weight {
            self.text.extend_from_slice(b", \"weight\": ");
            push_json_weight(weight, &mut self.text);
        }
        self.push_values(self.graph.properties().edge_schema(), row);
        Ok(())
    }

    fn push_key(&mut self, vertex: VertexId) -> Result<(), G::Error> {
        if self.kind == KeyKind::Integer {
            return self.graph.push_key(vertex, &mut self.text);
        }
        self.key.clear();
        self.graph.push_key(vertex, &mut self.key)?;
        push_json_text(&String::from_utf8_lossy(&self.key), &mut self.text);
        Ok(())
    }

    /// Appends the values that are not null, and the end of the object.
    fn push_values(&mut self, schema: &PropertySchema, row: &WrittenRow<'_>) {
        for (place, column) in row.values() {
            self.text.extend_from_slice(b", ");
            let (name, property_type) = schema.get(place).unwrap_or(("", PropertyType::String));
            push_json_text(name, &mut self.text);
            self.text.extend_from_slice(b": ");
            match column.get(row.row) {
                // The text of a list is its JSON.
                PropertyValue::String(list) if property_type.items().is_some() => {
                    self.text.extend_from_slice(list.as_bytes());
                }
                value => push_json_value(value, &mut self.text),
            }
        }
        self.text.push(b'}');
    }
}
