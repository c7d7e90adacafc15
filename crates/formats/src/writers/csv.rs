//! Comma-separated values under a header, also as Neo4j and Neptune load them.

use super::rows_of;
use crate::Result;
use crate::csv_dialect::CsvDialect;
use crate::output_format::OutputContent;
use crate::output_format::OutputContent::{Edges, Values, Vertices};
use crate::output_format::{ExportedGraph, GraphWriter, KeptParts, OutputEnding, OutputFormat, ValueOfVertex};
use crate::write::{Output, VertexLines, write_csv, write_vertices};
use crate::write_values::{ValueColumn, write_csv_values};

/// The formats, one for each reader of the file.
pub(super) struct CsvOutput(CsvDialect);

/// Anden's own headers.
pub(super) const PLAIN: CsvOutput = CsvOutput(CsvDialect::Plain);
/// The headers of `neo4j-admin import`.
pub(super) const NEO4J: CsvOutput = CsvOutput(CsvDialect::Neo4j);
/// The headers of the bulk loader of Neptune.
pub(super) const NEPTUNE: CsvOutput = CsvOutput(CsvDialect::Neptune);

impl OutputFormat for CsvOutput {
    fn name(&self) -> &'static str {
        match self.0 {
            CsvDialect::Plain => "csv",
            CsvDialect::Neo4j => "neo4j",
            CsvDialect::Neptune => "neptune",
        }
    }

    fn endings(&self) -> &'static [OutputEnding] {
        match self.0 {
            CsvDialect::Plain => const { &[OutputEnding::new("csv", "CSV", &[Edges, Vertices, Values])] },
            // Their names end in `.csv` too, so only `--format` selects them.
            CsvDialect::Neo4j | CsvDialect::Neptune => &[],
        }
    }

    fn contents(&self) -> Vec<OutputContent> {
        match self.0 {
            CsvDialect::Plain => vec![Edges, Vertices, Values],
            CsvDialect::Neo4j | CsvDialect::Neptune => vec![Edges, Vertices],
        }
    }

    fn is_pair(&self) -> bool {
        self.0 != CsvDialect::Plain
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: false, properties_of_vertex_files: true }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for CsvOutput {
    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        write_csv(graph.graph(), |vertex, text| graph.push_key(vertex, text), graph.properties(), self.0, output)
    }

    fn write_vertices(&self, graph: &G, output: &mut Output<'_>) -> Result<(), G::Error> {
        let key = |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text);
        write_vertices(&rows_of(graph)?.vertices(), VertexLines::Csv(self.0), key, graph.properties(), output)
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
