//! Lines of blank-separated keys and weights; lists of keys.

use super::rows_of;
use crate::Result;
use crate::output_format::OutputContent::{Edges, LineNumbers, RandomEdges, Values, Vertices};
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat};
use crate::write::{Output, VertexLines, write_edge_list, write_vertices};

/// The format, which any name has by default.
pub(super) struct EdgeListOutput;

impl OutputFormat for EdgeListOutput {
    fn name(&self) -> &'static str {
        "edgelist"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const ENDINGS: &[OutputEnding] = &[
            OutputEnding::new("txt", "text", &[Edges, Vertices, Values, RandomEdges, LineNumbers]),
            OutputEnding::new("el", "an edge list", &[Edges, RandomEdges]),
            OutputEnding::new("wel", "a weighted edge list", &[Edges, RandomEdges]),
            OutputEnding::new("e", "the edges of a Graphalytics graph", &[Edges]),
            OutputEnding::new("v", "the vertices of a Graphalytics graph", &[Vertices]),
        ];
        ENDINGS
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, ..KeptParts::default() }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for EdgeListOutput {
    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        write_edge_list(graph.graph(), |vertex, text| graph.push_key(vertex, text), output)
    }

    fn write_vertices(&self, graph: &G, output: &mut Output<'_>) -> Result<(), G::Error> {
        let key = |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text);
        write_vertices(&rows_of(graph)?.vertices(), VertexLines::List, key, graph.properties(), output)
    }
}
