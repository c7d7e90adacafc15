//! JSON lines: an object for each edge, for each vertex, or for each value of a vertex.

use anden_base::VertexId;
use anden_graph::Weight;

use super::node_link::{JsonObject, edge_names};
use super::rows_of;
use crate::Result;
use crate::edge_rows::WrittenProperties;
use crate::output_format::OutputContent::{Edges, Values, Vertices};
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat, ValueOfVertex};
use crate::write::Output;
use crate::write_elements::{ElementWriter, WrittenRow, refuse_names, write_all_edges, write_nodes};
use crate::write_values::{ValueColumn, write_json_values};

/// The format.
pub(super) struct JsonLinesOutput;

impl OutputFormat for JsonLinesOutput {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const ENDINGS: &[OutputEnding] = &[
            OutputEnding::new("jsonl", "JSON lines", &[Edges, Vertices, Values]),
            OutputEnding::new("ndjson", "JSON lines", &[Edges, Vertices, Values]),
        ];
        ENDINGS
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: false, properties_of_vertex_files: true }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for JsonLinesOutput {
    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        refuse_names(edge_names(graph.graph()), graph.properties().edge_schema(), output)?;
        let mut writer = JsonLineElements { object: JsonObject::new(graph)?, output };
        let num_edges = write_all_edges(graph.graph(), graph.properties(), &mut writer)?;
        output.flush()?;
        Ok(num_edges)
    }

    fn write_vertices(&self, graph: &G, output: &mut Output<'_>) -> Result<(), G::Error> {
        refuse_names(&["id"], graph.properties().vertex_schema(), output)?;
        let mut writer = JsonLineElements { object: JsonObject::new(graph)?, output };
        write_nodes(&rows_of(graph)?.vertices(), graph.properties(), &mut writer)?;
        Ok(output.flush()?)
    }

    fn write_values(
        &self,
        graph: &G,
        column: &ValueColumn<'_, &ValueOfVertex<'_>>,
        output: &mut Output<'_>,
    ) -> Result<(), G::Error> {
        let key = |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text);
        write_json_values(column, graph.key_kind()?, &key, output)
    }
}

/// Writes elements as lines.
struct JsonLineElements<'a, 'o, G> {
    object: JsonObject<'a, G>,
    output: &'a mut Output<'o>,
}

impl<G: ExportedGraph> ElementWriter<G::Error> for JsonLineElements<'_, '_, G> {
    fn node(&mut self, vertex: VertexId, row: &WrittenRow<'_>) -> Result<(), G::Error> {
        self.object.vertex(vertex, row)?;
        self.object.text.push(b'\n');
        Ok(self.output.write(&self.object.text)?)
    }

    fn begin_edges(&mut self) -> Result<(), G::Error> {
        Ok(())
    }

    fn edge<W: Weight>(
        &mut self,
        ends: (VertexId, VertexId),
        weight: Option<W>,
        row: &WrittenRow<'_>,
    ) -> Result<(), G::Error> {
        self.object.edge(ends, weight, row)?;
        self.object.text.push(b'\n');
        Ok(self.output.write(&self.object.text)?)
    }
}
