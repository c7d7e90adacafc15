//! Pajek: vertices with their keys as labels, and arcs or edges with weights.
//!
//! Vertices have the numbers 1 to n: the keys where they are these numbers, as for rows of a matrix.

use std::io::Write;

use anden_base::VertexId;
use anden_graph::{Graph, GraphKind, Weight};

use super::rows_of;
use crate::Result;
use crate::edge_rows::NoProperties;
use crate::output_format::OutputContent::Edges;
use crate::output_format::{
    ExportedGraph, GraphWriter, KeptParts, OUTPUT_BYTES, OutputEnding, OutputFormat, OutputMemory, vertex_table_bytes,
};
use crate::write::Output;
use crate::write_elements::{ElementWriter, WrittenRow, write_elements};
use crate::write_mtx::MatrixRows;

/// Memory for one vertex: its number, whether the number is taken, and its place in the order of numbers.
const VERTEX_BYTES: u64 = 9;

/// The format.
pub(super) struct PajekOutput;

impl OutputFormat for PajekOutput {
    fn name(&self) -> &'static str {
        "pajek"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        const { &[OutputEnding::new("net", "a Pajek network", &[Edges])] }
    }

    fn kept(&self) -> KeptParts {
        KeptParts { weights: true, ..KeptParts::default() }
    }
}

impl<G: ExportedGraph> GraphWriter<G> for PajekOutput {
    fn memory(&self, graph: &G) -> OutputMemory {
        let rows = vertex_table_bytes(graph, VERTEX_BYTES);
        OutputMemory { shared: OUTPUT_BYTES + graph.key_bytes() + rows, per_worker: 0 }
    }

    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        let (lists, rows) = (graph.graph(), rows_of(graph)?);
        let vertices = rows.vertices();
        output.write(format!("*Vertices {}\n", vertices.len()).as_bytes())?;
        let mut writer = PajekElements { graph, output, rows: &rows, line: Vec::new() };
        let num_edges = write_elements(lists, Some(&vertices), &NoProperties, &mut writer)?;
        output.flush()?;
        Ok(num_edges)
    }
}

struct PajekElements<'a, 'o, G> {
    graph: &'a G,
    output: &'a mut Output<'o>,
    rows: &'a MatrixRows,
    line: Vec<u8>,
}

impl<G: ExportedGraph> ElementWriter<G::Error> for PajekElements<'_, '_, G> {
    fn node(&mut self, vertex: VertexId, _row: &WrittenRow<'_>) -> Result<(), G::Error> {
        self.line.clear();
        self.line.extend_from_slice(format!("{} \"", self.rows.row(vertex)).as_bytes());
        let start = self.line.len();
        self.graph.push_key(vertex, &mut self.line)?;
        let key = &self.line[start..];
        // Lines have no escapes.
        if key.iter().any(|byte| matches!(byte, b'"' | b'\n' | b'\r')) {
            let key = String::from_utf8_lossy(key).into_owned();
            let what = format!("the key {key:?} does not fit in a Pajek network: write GraphML");
            return Err(self.output.refuse(what).into());
        }
        self.line.extend_from_slice(b"\"\n");
        Ok(self.output.write(&self.line)?)
    }

    fn begin_edges(&mut self) -> Result<(), G::Error> {
        let is_directed = self.graph.graph().graph_kind() == GraphKind::Directed;
        Ok(self.output.write(if is_directed { b"*Arcs\n" } else { b"*Edges\n" })?)
    }

    fn edge<W: Weight>(
        &mut self,
        (source, target): (VertexId, VertexId),
        weight: Option<W>,
        _row: &WrittenRow<'_>,
    ) -> Result<(), G::Error> {
        self.line.clear();
        // A write to memory cannot fail.
        let _ = write!(self.line, "{} {}", self.rows.row(source), self.rows.row(target));
        if let Some(weight) = weight {
            let _ = write!(self.line, " {weight}");
        }
        self.line.push(b'\n');
        Ok(self.output.write(&self.line)?)
    }
}
