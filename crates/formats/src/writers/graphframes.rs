//! The Parquet tables of GraphFrames, as Spark reads and writes them: `vertices` with `id`, `edges` with `src`, `dst`.

use super::parquet::memory_of_tables;
use crate::Result;
use crate::output_folder::OutputFolder;
use crate::output_format::{
    ExportedGraph, GraphWriter, KeptParts, OutputContent, OutputEnding, OutputFormat, OutputMemory,
};
use crate::parquet_parts::write_parquet_folder;

/// The format.
pub(super) struct GraphFramesOutput;

impl OutputFormat for GraphFramesOutput {
    fn name(&self) -> &'static str {
        "graphframes"
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

impl<G: ExportedGraph> GraphWriter<G> for GraphFramesOutput {
    fn memory(&self, graph: &G) -> OutputMemory {
        memory_of_tables(graph)
    }

    fn write_folder(&self, graph: &G, folder: &OutputFolder<'_>) -> Result<u64, G::Error> {
        let (kind, key) = (graph.key_kind()?, |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text));
        write_parquet_folder(graph.graph(), kind, key, graph.properties(), graph.pool(), folder)
    }
}
