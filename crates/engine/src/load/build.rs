//! From a source to a run and a dictionary.

use base::VertexId;
use graph::Direction;
use graph::formats::{Source, SourceSummary};
use lama::{FinishedDictionary, FinishedRun, RunWriter, Side};

use super::Load;
use super::arcs::{Expand, KeyedArc, Payload};
use super::assemble::{Order, Retain, assemble};
use super::external::{SortedRuns, merge};
use super::ingest::{InputKey, KeyPlan, ingest};
use super::keys::KeyMap;
use super::lists::{ListSink, Lists};
use super::map::{for_each_block, resolve};
use super::partition::partition;
use super::raw::RawEdges;
use super::scratch::Scratch;
use super::sort::bits_below;
use super::stream::ListBuilder;
use crate::Result;

/// What is to be published.
pub(crate) struct Built {
    pub(crate) run: FinishedRun,
    pub(crate) dictionary: FinishedDictionary,
    pub(crate) num_vertices: u64,
    pub(crate) num_edges: u64,
    pub(crate) summary: SourceSummary,
}

/// Appends to one side of a run and counts.
pub(crate) struct RunSink<'a> {
    writer: &'a RunWriter,
    side: Side,
    pub(crate) num_arcs: u64,
    pub(crate) num_loops: u64,
}

impl<'a> RunSink<'a> {
    pub(crate) fn new(writer: &'a RunWriter, side: Side) -> Self {
        Self { writer, side, num_arcs: 0, num_loops: 0 }
    }

    /// The edges whose entries were appended.
    pub(crate) fn num_edges(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Directed => self.num_arcs,
            Direction::Undirected => (self.num_arcs + self.num_loops) / 2,
        }
    }
}

impl<P: Payload> ListSink<P> for RunSink<'_> {
    fn append(&mut self, _first: VertexId, lists: &Lists<P>) -> Result<()> {
        self.num_arcs += lists.len() as u64;
        self.num_loops += lists.num_loops;
        Ok(self.writer.append(self.side, &lists.degrees, &lists.neighbours, &lists.weights)?)
    }
}

/// Reads, maps, sorts and writes everything.
pub(crate) fn build<K: InputKey, P: Payload>(load: &Load<'_>, source: &mut Source) -> Result<Built> {
    let graph = &load.options.graph;
    let scratch = Scratch::new(load.builder, load.storage.clone());
    let expand = match (graph.direction, graph.ordered, source.facts().direction) {
        (_, true, _) => Expand::Ordered,
        (Direction::Undirected, ..) => Expand::Both,
        // An edge without a direction leads both ways.
        (Direction::Directed, _, Some(Direction::Undirected)) => Expand::Both,
        (Direction::Directed, ..) => Expand::AsGiven,
    };
    let has_in_side = graph.direction == Direction::Directed && graph.in_edges;
    let num_entries = expand.factor() as u64;
    let copies = num_entries + if has_in_side { num_entries } else { 1 };

    let plan = KeyPlan { scheme: graph.keys, io_order: load.options.io_order };
    let mut ingested = ingest::<K, P>(source, plan, copies, &load.budget, &scratch, load.pool, load.progress)?;
    let (keys, map) = resolve::<K, P>(load, &mut ingested, source.facts().num_vertices)?;
    let dictionary = load.builder.write_dictionary(keys.as_dictionary())?;
    let num_vertices = keys.len();
    drop((keys, ingested.tables));

    let writer = load.builder.run_writer(num_vertices as usize)?;
    let sides = Sides { load, writer: &writer, expand, has_in_side, num_vertices };
    let mut edges = ingested.edges;
    let left = load.budget.for_edges(map.num_bytes())?;
    let num_edges = if edges.is_spilled() {
        sides.sort_on_disk(&scratch, edges, &map, left as usize / size_of::<KeyedArc<P>>())?
    } else {
        let is_sorted = edges.is_sorted() && map.keeps_order();
        if !map.is_identity() {
            for_each_block(load, &mut edges, |_, block, edges| map.apply(block.form, edges))?;
        }
        drop(map);
        sides.sort_in_memory(edges, is_sorted)?
    };
    load.progress.stage("write", None);
    load.progress.check()?;
    Ok(Built { run: writer.finish()?, dictionary, num_vertices, num_edges, summary: ingested.summary })
}

/// The sides of a run that are to be written.
struct Sides<'a> {
    load: &'a Load<'a>,
    writer: &'a RunWriter,
    expand: Expand,
    has_in_side: bool,
    num_vertices: u64,
}

impl Sides<'_> {
    fn order(&self) -> Order {
        Order { neighbour_bits: bits_below(self.num_vertices), duplicates: self.load.options.duplicates }
    }

    /// The order of entries that come by ascending neighbours.
    fn list_order(&self) -> Order {
        Order { neighbour_bits: 0, ..self.order() }
    }

    /// Sorts edges between ids; returns the number of edges.
    fn sort_in_memory<P: Payload>(&self, edges: RawEdges<P>, is_sorted: bool) -> Result<u64> {
        let Load { pool, progress, .. } = *self.load;
        let lists = 0..self.num_vertices;
        let mut out_sink = RunSink::new(self.writer, Side::Out);
        let blocks = edges.in_memory();
        progress.stage("sort", Some((edges.num_edges() * self.expand.factor()) as u64));
        let turned = if is_sorted && self.expand == Expand::AsGiven {
            let mut builder = ListBuilder::new(&mut out_sink, self.load.options.duplicates);
            for block in &blocks {
                progress.check()?;
                builder.extend(block)?;
                progress.advance(block.len() as u64);
            }
            builder.finish()?;
            if self.has_in_side { Some(partition(&blocks, Expand::Turned, lists, pool, progress)?) } else { None }
        } else {
            let mut parts = partition(&blocks, self.expand, lists.clone(), pool, progress)?;
            drop(blocks);
            drop(edges);
            let retain = if self.has_in_side { Retain::Merged } else { Retain::Nothing };
            let lens = assemble(&mut parts, self.order(), retain, &mut out_sink, pool, progress)?;
            match self.has_in_side {
                true => Some(partition(&parts.heads(&lens), Expand::Turned, lists, pool, progress)?),
                false => None,
            }
        };
        if let Some(mut parts) = turned {
            progress.stage("sort in-edges", Some(out_sink.num_arcs));
            let mut in_sink = RunSink::new(self.writer, Side::In);
            assemble(&mut parts, self.list_order(), Retain::Nothing, &mut in_sink, pool, progress)?;
        }
        Ok(out_sink.num_edges(self.load.options.graph.direction))
    }

    /// The same for raw edges on disk, with room for `num_arcs` arcs in memory.
    fn sort_on_disk<P: Payload>(
        &self,
        scratch: &Scratch<'_>,
        edges: RawEdges<P>,
        map: &KeyMap,
        num_arcs: usize,
    ) -> Result<u64> {
        let Load { pool, progress, .. } = *self.load;
        let duplicates = self.load.options.duplicates;
        let runs = |expand, order, chunk| {
            SortedRuns::<P>::new(scratch, expand, order, self.num_vertices, chunk, pool, progress)
        };
        let turned = self.has_in_side.then(|| runs(Expand::AsGiven, self.list_order(), (num_arcs / 5).max(1)));
        let mut out_sink = TurningSink { sink: RunSink::new(self.writer, Side::Out), turned, buffer: Vec::new() };
        progress.stage("sort", Some((edges.num_edges() * self.expand.factor()) as u64));
        if self.expand == Expand::AsGiven && edges.is_sorted() && map.keeps_order() {
            let mut builder = ListBuilder::new(&mut out_sink, duplicates);
            self.for_each_in_order(&edges, map, |edges| builder.extend(edges))?;
            builder.finish()?;
            drop(edges);
        } else {
            let chunk = (num_arcs / (2 + self.expand.factor())).max(1);
            let mut sorted = runs(self.expand, self.order(), chunk);
            self.for_each_in_order(&edges, map, |edges| sorted.extend(edges))?;
            drop(edges);
            progress.stage("merge", None);
            merge(sorted.finish()?, num_arcs / 5, duplicates, &mut out_sink, progress)?;
        }
        let TurningSink { sink, turned, .. } = out_sink;
        if let Some(turned) = turned {
            progress.stage("merge in-edges", Some(sink.num_arcs));
            let mut in_sink = RunSink::new(self.writer, Side::In);
            merge(turned.finish()?, num_arcs / 5, duplicates, &mut in_sink, progress)?;
        }
        Ok(sink.num_edges(self.load.options.graph.direction))
    }

    /// Calls `body` with the edges of each block, between ids, in input order.
    fn for_each_in_order<P: Payload>(
        &self,
        edges: &RawEdges<P>,
        map: &KeyMap,
        mut body: impl FnMut(&[KeyedArc<P>]) -> Result<()>,
    ) -> Result<()> {
        let mut copy = Vec::new();
        for block in edges.blocks() {
            self.load.progress.check()?;
            edges.read(block, &mut copy)?;
            map.apply(block.form, &mut copy);
            body(&copy)?;
        }
        Ok(())
    }
}

/// Writes out-lists and keeps their arcs, turned, for the in-lists.
struct TurningSink<'a, P: Payload> {
    sink: RunSink<'a>,
    turned: Option<SortedRuns<'a, P>>,
    buffer: Vec<KeyedArc<P>>,
}

impl<P: Payload> ListSink<P> for TurningSink<'_, P> {
    fn append(&mut self, first: VertexId, lists: &Lists<P>) -> Result<()> {
        if let Some(turned) = &mut self.turned {
            self.buffer.clear();
            lists.for_each_arc(first, |arc| self.buffer.push(arc.turned()));
            turned.extend(&self.buffer)?;
        }
        self.sink.append(first, lists)
    }
}
