//! Serialized graphs of the GAP benchmark suite: `.sg` and `.wsg`.

use anden_graph::Graph;

use crate::Result;
use crate::output_format::OutputContent::{Edges, RandomEdges};
use crate::output_format::{
    ExportedGraph, GraphWriter, KeptParts, OUTPUT_BYTES, OutputEnding, OutputFormat, OutputMemory,
};
use crate::write::Output;
use crate::write_gapbs::{SerializedWeights, write_gapbs};

/// The format. Each of its forms has an ending.
pub(super) struct GapbsOutput {
    weights: SerializedWeights,
}

/// `.sg`, without weights.
pub(super) const SERIALIZED: GapbsOutput = GapbsOutput { weights: SerializedWeights::Leave };
/// `.wsg`, with weights.
pub(super) const WEIGHTED: GapbsOutput = GapbsOutput { weights: SerializedWeights::Write };

impl OutputFormat for GapbsOutput {
    fn name(&self) -> &'static str {
        "gapbs"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        match self.weights {
            SerializedWeights::Leave => {
                const { &[OutputEnding::new("sg", "a serialized graph", &[Edges, RandomEdges])] }
            }
            SerializedWeights::Write => {
                const { &[OutputEnding::new("wsg", "a weighted serialized graph", &[Edges, RandomEdges])] }
            }
        }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: self.weights == SerializedWeights::Write, ..KeptParts::default() }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for GapbsOutput {
    fn memory(&self, _graph: &G) -> OutputMemory {
        // Vertices are written as ids, so no key is read.
        OutputMemory { shared: OUTPUT_BYTES, per_worker: 0 }
    }

    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        write_gapbs(graph.graph(), self.weights, output)?;
        Ok(graph.graph().num_edges())
    }
}
