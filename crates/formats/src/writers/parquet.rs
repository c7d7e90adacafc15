//! Apache Parquet: tables of edges, of vertices and of values.

use crate::Result;
use crate::edge_rows::WrittenProperties;
use crate::output_format::OutputContent::{Edges, Values, Vertices};
use crate::output_format::{
    ExportedGraph, GraphWriter, KeptParts, OUTPUT_BYTES, OutputEnding, OutputFormat, OutputMemory, ValueOfVertex,
    vertex_table_bytes,
};
use crate::write::Output;
use crate::write_parquet::{parquet_worker_bytes, write_parquet_edges, write_parquet_vertices};
use crate::write_values::{ValueColumn, write_parquet_values};

/// Memory for a numeric key in the table of a worker.
const KEY_BYTES: u64 = 8;

/// The format.
pub(super) struct ParquetOutput;

impl OutputFormat for ParquetOutput {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const { &[OutputEnding::new("parquet", "Parquet", &[Edges, Vertices, Values])] }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, edge_properties: true, vertex_properties: false, properties_of_vertex_files: true }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for ParquetOutput {
    fn memory(&self, graph: &G) -> OutputMemory {
        memory_of_tables(graph)
    }

    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        let (kind, key) = (graph.key_kind()?, |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text));
        write_parquet_edges(graph.graph(), kind, key, graph.properties(), graph.pool(), output)
    }

    fn write_vertices(&self, graph: &G, output: &mut Output<'_>) -> Result<(), G::Error> {
        let (kind, key) = (graph.key_kind()?, |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text));
        write_parquet_vertices(graph.graph(), kind, key, graph.properties(), graph.pool(), output)?;
        Ok(())
    }

    fn write_values(
        &self,
        graph: &G,
        column: &ValueColumn<'_, &ValueOfVertex<'_>>,
        output: &mut Output<'_>,
    ) -> Result<(), G::Error> {
        let key = |vertex, text: &mut Vec<u8>| graph.push_key(vertex, text);
        write_parquet_values(column, graph.key_kind()?, &key, output)
    }
}

/// The memory for tables of edges and of vertices.
pub(super) fn memory_of_tables<G: ExportedGraph>(graph: &G) -> OutputMemory {
    let keys = graph.key_bytes();
    let table = if keys > 0 { vertex_table_bytes(graph, KEY_BYTES) } else { 0 };
    let per_worker = parquet_worker_bytes(graph.graph(), graph.properties().edge_schema());
    OutputMemory { shared: OUTPUT_BYTES + keys + table, per_worker }
}
