//! Comma-separated values under a header.

use super::rows_of;
use crate::Result;
use crate::output_format::OutputContent::{Edges, Values, Vertices};
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat, ValueOfVertex};
use crate::write::{Output, VertexLines, write_csv, write_vertices};
use crate::write_values::{ValueColumn, write_csv_values};

/// The format.
pub(super) struct CsvOutput;

impl OutputFormat for CsvOutput {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const { &[OutputEnding::new("csv", "CSV", &[Edges, Vertices, Values])] }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: false, properties_of_vertex_files: true }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for CsvOutput {
    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        write_csv(graph.graph(), |vertex, text| graph.push_key(vertex, text), graph.properties(), output)
    }

    fn write_vertices(&self, graph: &G, output: &mut Output<'_>) -> Result<(), G::Error> {
        let key = |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text);
        write_vertices(&rows_of(graph)?.vertices(), VertexLines::Csv, key, graph.properties(), output)
    }

    fn write_values(
        &self,
        graph: &G,
        column: &ValueColumn<'_, &ValueOfVertex<'_>>,
        output: &mut Output<'_>,
    ) -> Result<(), G::Error> {
        write_csv_values(column, &|vertex, text: &mut Vec<u8>| graph.push_key(vertex, text), output)
    }
}
