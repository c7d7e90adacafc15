//! GraphAr: a folder with YAML files and chunks of Parquet.

use super::parquet::memory_of_tables;
use crate::Result;
use crate::output_folder::OutputFolder;
use crate::output_format::{
    ExportedGraph, GraphWriter, KeptParts, OutputContent, OutputEnding, OutputFormat, OutputMemory,
};
use crate::write_graphar::{type_bytes, write_graphar};

/// The pieces of lists that wait for a row group, in pieces of a worker.
const WAITING_PIECES: u64 = 2;

/// The format.
pub(super) struct GraphArOutput;

impl OutputFormat for GraphArOutput {
    fn name(&self) -> &'static str {
        "graphar"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        // Names of folders have no endings.
        &[]
    }

    fn contents(&self) -> Vec<OutputContent> {
        vec![OutputContent::Edges]
    }

    fn is_folder(&self) -> bool {
        true
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: true, properties_of_vertex_files: false }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for GraphArOutput {
    fn memory(&self, graph: &G) -> OutputMemory {
        let OutputMemory { shared, per_worker } = memory_of_tables(graph);
        OutputMemory { shared: shared + type_bytes(graph) + WAITING_PIECES * per_worker, per_worker }
    }

    fn write_folder(&self, graph: &G, folder: &OutputFolder<'_>) -> Result<u64, G::Error> {
        write_graphar(graph, folder)
    }
}
