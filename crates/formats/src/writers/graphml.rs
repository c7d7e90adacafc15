//! GraphML: edges and vertices with all properties in one file.

use crate::Result;
use crate::output_format::OutputContent::Edges;
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat};
use crate::write::Output;
use crate::write_graphml::write_graphml;

/// The format.
pub(super) struct GraphMlOutput;

impl OutputFormat for GraphMlOutput {
    fn name(&self) -> &'static str {
        "graphml"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const { &[OutputEnding::new("graphml", "GraphML", &[Edges])] }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: true, properties_of_vertex_files: false }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for GraphMlOutput {
    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        write_graphml(graph.graph(), |vertex, text| graph.push_key(vertex, text), graph.properties(), output)
    }
}
