//! JSON lines, for values of vertices.

use crate::Result;
use crate::output_format::OutputContent::Values;
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat, ValueOfVertex};
use crate::write::Output;
use crate::write_values::{ValueColumn, write_json_values};

/// The format.
pub(super) struct JsonLinesOutput;

impl OutputFormat for JsonLinesOutput {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const ENDINGS: &[OutputEnding] = &[
            OutputEnding::new("jsonl", "JSON lines", &[Values]),
            OutputEnding::new("ndjson", "JSON lines", &[Values]),
        ];
        ENDINGS
    }

    fn kept(&self) -> KeptParts {
        KeptParts::default()
    }
}

impl<G: ExportedGraph> GraphWriter<G> for JsonLinesOutput {
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
