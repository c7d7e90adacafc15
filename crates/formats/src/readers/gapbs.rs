//! The formats of the GAP benchmark suite: `.sg`, `.wsg` (a whole CSR), `.el`, `.wel` (text).

pub(super) mod arcs;

use std::sync::Arc;

use anden_graph::{GraphKind, Weight};

use self::arcs::{ArcCursor, ArcRange, read_arcs};
use super::edge_list::EdgeList;
use super::tables::{open_list, open_vertex_list};
use crate::Result;
use crate::chunk::{
    AnyInputChunk, ImpliedVertices, InputChunk, Numbering, ParseContext, ParsedChunk, number_key, rows_at_once,
};
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::outcome::Fatal;
use crate::part::{InputContent, InputReader, InputStart};
use crate::probe::InputProbe;
use crate::serialized::SerializedGraph;
use crate::spool::CopyLimit;

/// The formats.
pub(super) struct Gapbs;

impl InputFormat for Gapbs {
    fn name(&self) -> &'static str {
        "gapbs"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("el", "an edge list"),
            ("wel", "a weighted edge list"),
            ("sg", "a serialized graph"),
            ("wsg", "a weighted serialized graph"),
        ]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        Recognition::likely_if(SerializedGraph::is_likely(text))
    }

    fn open(&self, mut input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let ending = input.ending();
        // Under any other name, the content tells a serialized graph from a list.
        if !matches!(&ending[..], "sg" | "wsg") && !is_serialized(&input) {
            return open_list(input, ending == "wel", to);
        }
        let promised = SerializedGraph::promised_bytes(&input.path, input.beginning()?)?;
        let file = input.take_file(CopyLimit { scratch: to.options.scratch_limit, promised })?;
        let graph = Arc::new(SerializedGraph::of_file(&input.path, file, ending == "wsg")?);
        to.direction_known(&input.path, Some(graph.graph_kind()))?;
        to.weights_known(&input.path, Some(graph.is_weighted()))?;
        if graph.is_weighted() {
            to.note_weights(&input.path);
        }
        to.count_edges(Some(graph.num_arcs()));
        to.push(input, Box::new(GapbsGraph { graph, names_vertices: true }));
        Ok(())
    }

    fn open_vertices(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        open_vertex_list(input, None, to);
        Ok(())
    }

    fn open_removals(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        match is_serialized(&input) {
            true => Err(self.no_removals(&input)),
            false => EdgeList.open_removals(input, to),
        }
    }

    fn is_list(&self) -> bool {
        true
    }

    fn has_whole_weights(&self) -> bool {
        true
    }
}

fn is_serialized(input: &InputProbe) -> bool {
    input.text().is_ok_and(|text| SerializedGraph::is_likely(&text))
}

/// A serialized graph as an input.
struct GapbsGraph {
    graph: Arc<SerializedGraph>,
    /// Whether blocks name the vertices, beside the edges.
    names_vertices: bool,
}

impl InputContent for GapbsGraph {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        let num_vertices = if self.names_vertices { self.graph.num_vertices() } else { 0 };
        Ok(Box::new(GapbsReader {
            cursor: ArcCursor::new(Arc::clone(&self.graph), rows_at_once(input.options)),
            vertices: ImpliedVertices::new(0..num_vertices, Numbering::Ids, input.options),
        }))
    }

    fn serialized(&self) -> Option<&Arc<SerializedGraph>> {
        Some(&self.graph)
    }

    fn leave_out_vertices(&mut self) {
        self.names_vertices = false;
    }
}

/// Reads the arcs, then the vertices.
struct GapbsReader {
    cursor: ArcCursor,
    vertices: ImpliedVertices,
}

impl InputReader for GapbsReader {
    fn next(&mut self, _spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        Ok(match self.cursor.next()? {
            Some(arcs) => Some(Box::new(ArcChunk(Arc::clone(self.cursor.graph()), arcs))),
            None => self.vertices.next(),
        })
    }
}

/// Consecutive arcs.
struct ArcChunk(Arc<SerializedGraph>, ArcRange);

impl InputChunk for ArcChunk {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let Self(graph, arcs) = self;
        let read = read_arcs::<W>(&graph, &arcs, context.is_weighted())?;
        context.count_read(read.num_bytes);
        let mut block = ParsedBlock::new(0, context.on_error());
        // A directed graph holds each arc once, so its sum says nothing.
        block.balance = if graph.graph_kind() == GraphKind::Undirected { read.balance } else { 0 };
        block.weights = read.weights;
        block.edges.reserve_exact(read.edges.len());
        for (source, target) in read.edges {
            let source = number_key(u64::from(source), &mut block.extra)?;
            let target = number_key(u64::from(target), &mut block.extra)?;
            block.edges.push((source, target));
        }
        Ok(ParsedChunk::of_extra(block))
    }
}
