//! BVGraph: `NAME.graph` with the lists, and beside it `NAME.properties` and `NAME.offsets`.
//!
//! Vertices are numbered from 0: by their keys where these are 0 to n-1, else as the rows of a matrix. An undirected
//! edge stands in the lists of both ends.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_base::progress::Silent;
use anden_graph::walk::try_walk;
use anden_graph::{Direction, Graph, Parts};

use super::rows_of;
use crate::bvgraph::{BitCode, BitSink, BvLayout, BvProperties, ListEncoder, MAX_REFERENCES};
use crate::options::KeyKind;
use crate::output_format::OutputContent::Edges;
use crate::output_format::{
    ExportedGraph, GraphWriter, KeptParts, OUTPUT_BYTES, OutputContent, OutputEnding, OutputFormat, OutputMemory,
    vertex_table_bytes,
};
use crate::write::{Output, write_aside};
use crate::write_mtx::{MatrixRows, matrix_rows};
use crate::{Error, Result};

/// Memory for one vertex: its row, whether the row is taken, and its place in the order of rows.
const VERTEX_BYTES: u64 = 9;
/// Bytes that are collected before a write.
const BUFFER_BYTES: usize = 64 << 10;

/// The format.
pub(super) struct BvGraphOutput;

impl OutputFormat for BvGraphOutput {
    fn name(&self) -> &'static str {
        "bvgraph"
    }

    fn endings(&self) -> &'static [OutputEnding] {
        // `.graph` is also the ending of METIS, so only `--format` selects this format.
        &[]
    }

    fn contents(&self) -> Vec<OutputContent> {
        vec![Edges]
    }

    fn kept(&self) -> KeptParts {
        KeptParts::default()
    }
}

impl<G: ExportedGraph> GraphWriter<G> for BvGraphOutput {
    fn memory(&self, graph: &G) -> OutputMemory {
        let rows = vertex_table_bytes(graph, VERTEX_BYTES);
        OutputMemory { shared: OUTPUT_BYTES + graph.key_bytes() + rows, per_worker: 0 }
    }

    fn write(&self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        let (properties, offsets) = (output.beside("graph", "properties")?, output.beside("graph", "offsets")?);
        let rows = rows_from_zero(graph)?;
        let ((num_arcs, num_bits), offsets) =
            write_aside(&offsets, &Silent, |offsets| ListsWriter::new(graph, &rows, output, offsets).write())?;
        let num_vertices = graph.graph().num_vertices() as u64;
        let facts = BvProperties { num_vertices, num_arcs, layout: BvLayout::default() };
        let text = facts.to_text(MAX_REFERENCES, num_bits);
        let ((), properties) = write_aside(&properties, &Silent, |file| file.write(text.as_bytes()))?;
        output.accompany(offsets)?;
        output.accompany(properties)?;
        Ok(graph.graph().num_edges())
    }
}

/// The numbers of the vertices, plus one.
fn rows_from_zero<G: ExportedGraph>(graph: &G) -> Result<MatrixRows, G::Error> {
    if graph.key_kind()? == KeyKind::Integer {
        let rows = matrix_rows(graph.graph(), Some(0), |vertex, text| graph.push_key(vertex, text))?;
        if rows.are_keys() {
            return Ok(rows);
        }
    }
    rows_of(graph)
}

struct ListsWriter<'a, 'o, 'p, 'q, G> {
    graph: &'a G,
    rows: &'a MatrixRows,
    output: &'a mut Output<'o>,
    offsets: &'p mut Output<'q>,
    encoder: ListEncoder,
    lists: BitSink,
    places: BitSink,
    /// The numbers of one vertex's targets.
    targets: Vec<u32>,
    num_arcs: u64,
}

impl<'a, 'o, 'p, 'q, G: ExportedGraph> ListsWriter<'a, 'o, 'p, 'q, G> {
    fn new(graph: &'a G, rows: &'a MatrixRows, output: &'a mut Output<'o>, offsets: &'p mut Output<'q>) -> Self {
        let encoder = ListEncoder::new(BvLayout::default());
        let (lists, places) = (BitSink::default(), BitSink::default());
        Self { graph, rows, output, offsets, encoder, lists, places, targets: Vec::new(), num_arcs: 0 }
    }

    /// Writes all lists and their places. Returns the number of arcs and the length of the lists in bits.
    fn write(mut self) -> Result<(u64, u64), G::Error> {
        let (lists, order) = (self.graph.graph(), self.rows.vertices());
        self.places.push(BitCode::Gamma, 0);
        if order.is_sorted() {
            let vertices = 0..lists.vertex_bound() as VertexId;
            try_walk(lists, Direction::Out, Parts::Targets, vertices, |vertex| match lists.is_live(vertex) {
                true => self.push(vertex),
                false => Ok(()),
            })?;
        } else {
            order.iter().try_for_each(|&vertex| self.push(vertex))?;
        }
        // A damaged page looks empty, so the files are complete only if the graph has no fault.
        lists.check().map_err(Error::from)?;
        let num_bits = self.lists.finish();
        self.places.finish();
        self.spill(0)?;
        self.output.flush()?;
        Ok((self.num_arcs, num_bits))
    }

    fn push(&mut self, vertex: VertexId) -> Result<(), G::Error> {
        self.targets.clear();
        let (targets, rows) = (&mut self.targets, self.rows);
        let _ = self.graph.graph().for_each_fragment(Direction::Out, vertex, |fragment| {
            // Rows count from 1.
            targets.extend(fragment.iter().map(|&target| rows.row(target) - 1));
            ControlFlow::Continue(())
        });
        // Each fragment of a list is sorted, but the format needs the whole list sorted.
        self.targets.sort_unstable();
        if let Some(pair) = self.targets.windows(2).find(|pair| pair[0] == pair[1]) {
            let (source, target) = (self.rows.row(vertex) - 1, pair[0]);
            let what = format!("a BVGraph has no parallel edges, and the arc {source} -> {target} is repeated");
            return Err(self.output.refuse(format!("{what}: write Parquet")).into());
        }
        let before = self.lists.total_bits;
        self.encoder.push(&self.targets, &mut self.lists);
        self.places.push(BitCode::Gamma, self.lists.total_bits - before);
        self.num_arcs += self.targets.len() as u64;
        Ok(self.spill(BUFFER_BYTES)?)
    }

    /// Writes the collected bytes of both files if they are more than `limit`.
    fn spill(&mut self, limit: usize) -> Result<()> {
        spill(&mut self.lists, self.output, limit)?;
        spill(&mut self.places, self.offsets, limit)
    }
}

fn spill(sink: &mut BitSink, output: &mut Output<'_>, limit: usize) -> Result<()> {
    if sink.bytes.len() > limit {
        output.write(&sink.bytes)?;
        sink.bytes.clear();
    }
    Ok(())
}
