//! A CSR as an Arrow IPC file: a row for each vertex with its key, its properties and the list of its arcs.

use super::parquet::memory_of_tables;
use crate::Result;
use crate::output_format::OutputContent::Edges;
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat, OutputMemory};
use crate::write::Output;
use crate::write_arrow::{arrow_bytes, write_arrow};

/// The format.
pub(super) struct ArrowOutput;

impl OutputFormat for ArrowOutput {
    fn name(&self) -> &'static str {
        "arrow"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const {
            &[
                OutputEnding::new("arrow", "an Arrow file", &[Edges]),
                OutputEnding::new("feather", "a Feather file", &[Edges]),
            ]
        }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: true, properties_of_vertex_files: false }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for ArrowOutput {
    fn memory(&self, graph: &G) -> OutputMemory {
        let tables = memory_of_tables(graph);
        OutputMemory { shared: tables.shared + arrow_bytes(graph), ..tables }
    }

    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        write_arrow(graph, output)
    }
}
