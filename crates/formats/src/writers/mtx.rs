//! Matrix Market.

use super::rows_of;
use crate::Result;
use crate::output_format::OutputContent::Edges;
use crate::output_format::{
    ExportedGraph, GraphWriter, KeptParts, OUTPUT_BYTES, OutputEnding, OutputFormat, OutputMemory, vertex_table_bytes,
};
use crate::write::Output;
use crate::write_mtx::write_mtx;

/// Memory for one vertex: its row number and whether the row is taken.
const ROW_NUMBER_BYTES: u64 = 5;

/// The format.
pub(super) struct MtxOutput;

impl OutputFormat for MtxOutput {
    fn name(&self) -> &'static str {
        "mtx"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const { &[OutputEnding::new("mtx", "Matrix Market", &[Edges])] }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, ..KeptParts::default() }
    }

    fn has_matrix_rows(&self) -> bool {
        true
    }
}

impl<G: ExportedGraph> GraphWriter<G> for MtxOutput {
    fn memory(&self, graph: &G) -> OutputMemory {
        let rows = vertex_table_bytes(graph, ROW_NUMBER_BYTES);
        OutputMemory { shared: OUTPUT_BYTES + graph.key_bytes() + rows, per_worker: 0 }
    }

    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        Ok(write_mtx(graph.graph(), &rows_of(graph)?, output)?)
    }
}
