//! Builds the base and the dictionary from a source.

use anden_base::VertexId;
use anden_formats::{InputPath, Source, SourceSummary};
use anden_graph::{GraphKind, Weight};
use anden_snapshots::{BaseWriter, Direction, FinishedBase, FinishedDictionary, GraphOptions};

use super::Load;
use super::arcs::{Expand, LoadArc, Payload};
use super::assemble::{ArcOrder, Retain, assemble};
use super::buckets::{ArcBuckets, BucketArena, BucketEntry};
use super::external::{SortedRuns, merge};
use super::ingest::{IngestPlan, Ingested, InputKey, ingest};
use super::keys::KeyMap;
use super::lists::{BuiltLists, ListSink};
use super::map::{for_each_block, resolve};
use super::options::{Duplicates, IdOrder, no_choice, too_large_a_sum};
use super::order::reorder;
use super::partition::{ArcPartitions, partition};
use super::properties::write_properties;
use super::raw::{KeyForm, RawBlock, RawEdges};
use super::row_numbers::RowNumbers;
use super::rows::{InputRows, RowBases, RowStore};
use super::scratch::ScratchFiles;
use super::sort::bits_below;
use super::spread::SnapshotSpreader;
use super::stream::ListBuilder;
use super::time_split::TimeSplit;
use crate::Result;

/// The files to publish, with counts.
pub(crate) struct Built {
    pub(crate) base: FinishedBase,
    pub(crate) dictionary: FinishedDictionary,
    pub(crate) num_vertices: u64,
    pub(crate) num_edges: u64,
    /// Loops that were read.
    pub(crate) num_loops: u64,
    /// Rows of values for a vertex that has an earlier row.
    pub(crate) num_repeated: u64,
    pub(crate) summary: SourceSummary,
}

/// Appends to one direction of a base, and counts.
pub(crate) struct RunSink<'a> {
    writer: &'a BaseWriter,
    spreader: Option<&'a SnapshotSpreader>,
    direction: Direction,
    /// Whether parallel edges are an error; they are merged by now.
    refuses_parallel: bool,
    /// New row numbers, if rows do not keep those of the input.
    numbers: Option<&'a RowNumbers>,
    inputs: &'a [InputPath],
    options: &'a GraphOptions,
    pub(crate) num_arcs: u64,
    pub(crate) num_loops: u64,
}

impl<'a> RunSink<'a> {
    pub(crate) fn new(
        load: &Load<'a>,
        writer: &'a BaseWriter,
        direction: Direction,
        numbers: Option<&'a RowNumbers>,
    ) -> Self {
        let refuses_parallel = load.options.duplicates == Duplicates::Auto;
        let Load { spreader, inputs, options, .. } = *load;
        let options = &options.graph;
        Self { writer, spreader, direction, refuses_parallel, numbers, inputs, options, num_arcs: 0, num_loops: 0 }
    }

    /// The number of edges whose arcs were appended.
    pub(crate) fn num_edges(&self, graph_kind: GraphKind) -> u64 {
        match graph_kind {
            GraphKind::Directed => self.num_arcs,
            GraphKind::Undirected => (self.num_arcs + self.num_loops) / 2,
        }
    }
}

impl<P: Payload> ListSink<P> for RunSink<'_> {
    fn append(&mut self, first: VertexId, lists: &mut BuiltLists<P>) -> Result<()> {
        if self.refuses_parallel
            && let Some((first, second)) = lists.first_merged
        {
            return Err(no_choice(first + 1, second + 1));
        }
        if let Some((first, second)) = lists.first_beyond {
            return Err(too_large_a_sum(self.inputs, first, second));
        }
        match (self.spreader, self.numbers) {
            (Some(spreader), numbers) => spreader.note(self.direction, first, lists, numbers, self.inputs)?,
            (None, Some(numbers)) => numbers.begin(self.direction).apply(lists),
            (None, None) => {}
        }
        self.num_arcs += lists.len() as u64;
        self.num_loops += lists.num_loops;
        P::append(self.writer, self.direction, lists, self.options)
    }
}

/// Reads, maps, sorts and writes all edges.
pub(crate) fn build<K: InputKey, W: Weight, P: Payload>(load: &Load<'_>, source: &mut Source) -> Result<Built> {
    let graph = &load.options.graph;
    let scratch = ScratchFiles::new(load.builder);
    let expand = Expand::of_inputs(graph, source.facts())?;
    let has_in_lists = graph.graph_kind == GraphKind::Directed && graph.in_edges;
    let num_entries = expand.factor() as u64;
    let copies = num_entries + if has_in_lists { num_entries } else { 1 };

    let plan = IngestPlan { scheme: graph.keys, io_order: load.options.order == IdOrder::Input, expand, copies };
    // Only edges without data may be spread while they are read: parallel ones need no order. Parts are ranges of keys,
    // so ids must ascend with keys.
    let is_spread = P::IS_EMPTY && load.options.order == IdOrder::Auto;
    let mut memory = if is_spread { set_aside(load, source, expand)? } else { Vec::new() };
    let arena = BucketArena::new(&mut memory, load.pool.num_threads());
    let mut ingested = ingest::<K, W, P>(load, source, plan, arena.as_ref(), &scratch)?;
    let mut rows = ingested.edge_rows.take().map(RowStore::finish);
    let bases = rows.as_ref().map(InputRows::bases);
    let arc_bytes = ingested.edges.num_edges() as u64 * copies * size_of::<LoadArc<P>>() as u64;
    let by_time = load.by_time();
    by_time.map_or(Ok(()), TimeSplit::end_rows)?;
    let can_wait = rows.as_ref().filter(|_| !ingested.edges.is_spilled());
    let numbers = can_wait.and_then(|rows| rows.numbers(arc_bytes, ingested.room));
    if numbers.is_none() {
        // Write the values now: their memory is then free for the edges.
        rows.take().map_or(Ok(()), |rows| rows.write(load, None))?;
    }
    let (keys, map) = resolve::<K, P>(load, &mut ingested, source.facts().num_vertices, expand)?;
    let (keys, map) = reorder(load, &mut ingested.edges, keys, map)?;
    load.spreader.map_or(Ok(()), |spreader| spreader.follow_keys(&keys))?;
    if let Some(split) = by_time {
        split.begin_vertices(keys.len())?;
        ingested.for_each_listed(&map, source.facts().num_vertices, |vertex| split.list_vertex(vertex));
    }
    let dictionary = load.builder.write_dictionary(keys.as_dictionary())?;
    let num_vertices = keys.len();
    let num_repeated =
        write_properties(load, &keys, std::mem::take(&mut ingested.rows), &source.facts().vertex_properties)?;
    // Before the keys go, because parts are bounded by keys, but lists by ids.
    let bounds = ingested.buckets.as_ref().map(|buckets| buckets.bounds(num_vertices, |key| keys.num_below(key)));
    let Ingested { buckets, edges, tables, num_loops, summary, .. } = ingested;
    // The keys are written: their memory is free for the edges.
    drop((keys, tables));

    let writer = load.builder.base_writer(num_vertices as usize)?;
    let directions = BaseAdjacency { load, writer: &writer, expand, has_in_lists, num_vertices, bases, numbers };
    let spread = buckets.zip(bounds).zip(arena);
    let num_edges =
        match spread.map(|((buckets, bounds), arena)| directions.sort_buckets(buckets, &bounds, &arena, &map)) {
            Some(sorted) => sorted?,
            None => {
                // No edge was spread: the memory is free for sorting.
                drop(memory);
                directions.sort_raw(&scratch, edges, map)?
            }
        };
    // Rows that waited are written in the order of the out-lists.
    rows.map_or(Ok(()), |rows| rows.write(load, directions.numbers))?;
    load.progress.stage("write", None);
    load.progress.check()?;
    Ok(Built { base: writer.finish()?, dictionary, num_vertices, num_edges, num_loops, num_repeated, summary })
}

/// Reserves memory to spread edges in; only touched pages count. Empty if the system refuses.
fn set_aside(load: &Load<'_>, source: &Source, expand: Expand) -> Result<Vec<BucketEntry>> {
    // The rest is for the part that is being sorted and written.
    let num_bytes = load.budget.for_edges(0)? / 5 * 4;
    // An edge in text takes about as many bytes as an entry. Larger inputs go through scratch files.
    let input_bytes = source.facts().input_bytes.unwrap_or(0);
    if input_bytes.saturating_mul(expand.factor() as u64) > num_bytes {
        return Ok(Vec::new());
    }
    let num_entries = usize::try_from(num_bytes).unwrap_or(usize::MAX) / size_of::<BucketEntry>();
    let mut memory = bytemuck::try_zeroed_vec(num_entries).unwrap_or_default();
    anden_base::memory::prefer_huge_pages(&mut memory);
    Ok(memory)
}

/// The directions of a base that are to be written.
struct BaseAdjacency<'a> {
    load: &'a Load<'a>,
    writer: &'a BaseWriter,
    expand: Expand,
    has_in_lists: bool,
    num_vertices: u64,
    /// First rows of the blocks, if edges carry their place in the block.
    bases: Option<RowBases>,
    /// New row numbers, if rows follow the out-lists.
    numbers: Option<RowNumbers>,
}

impl BaseAdjacency<'_> {
    fn sink(&self, direction: Direction) -> RunSink<'_> {
        RunSink::new(self.load, self.writer, direction, self.numbers.as_ref())
    }

    fn order(&self) -> ArcOrder {
        // Fewer bits mean fewer passes of the radix sort.
        ArcOrder { neighbor_bits: bits_below(self.num_vertices), duplicates: self.load.sorted_duplicates() }
    }

    /// The order of arcs that come by ascending neighbors.
    fn list_order(&self) -> ArcOrder {
        ArcOrder { neighbor_bits: 0, ..self.order() }
    }

    /// Sorts raw edges. Returns the number of edges.
    fn sort_raw<P: Payload>(&self, scratch: &ScratchFiles<'_>, mut edges: RawEdges<P>, map: KeyMap) -> Result<u64> {
        if edges.is_spilled() {
            let times = self.load.by_time().map_or(0, TimeSplit::num_bytes);
            let left = self.load.budget.for_edges(map.num_bytes() + times)?;
            return self.sort_on_disk(scratch, edges, &map, left as usize / size_of::<LoadArc<P>>());
        }
        let is_sorted = edges.is_sorted() && map.keeps_order();
        // Edges that are between ids already, and have no rows, need no pass.
        if !map.is_identity() || self.bases.is_some() {
            for_each_block(self.load, &mut edges, |_, block, edges| self.resolve(&map, block, edges))?;
        }
        // The edges have ids now: the memory of the map is free for sorting.
        drop(map);
        self.sort_in_memory(edges, is_sorted)
    }

    /// Turns the raw edges of a block into edges between ids, with rows if they have any.
    fn resolve<P: Payload>(&self, map: &KeyMap, block: &RawBlock, edges: &mut [LoadArc<P>]) {
        map.apply(block.form, edges);
        if let Some(bases) = &self.bases {
            bases.apply(block.sequence, edges);
        }
        if let Some(split) = self.load.by_time() {
            split.see(edges);
        }
    }

    /// Sorts edges between ids. Returns the number of edges.
    fn sort_in_memory<P: Payload>(&self, edges: RawEdges<P>, is_sorted: bool) -> Result<u64> {
        let Load { pool, progress, .. } = *self.load;
        let lists = 0..self.num_vertices;
        let mut out_sink = self.sink(Direction::Out);
        let blocks = edges.in_memory();
        progress.stage("sort", Some((edges.num_edges() * self.expand.factor()) as u64));
        // Sorted arcs are lists already and need no parts.
        if is_sorted && self.expand == Expand::AsGiven {
            let mut builder = ListBuilder::new(&mut out_sink, self.load.sorted_duplicates());
            for block in &blocks {
                progress.check()?;
                builder.extend(block)?;
                progress.advance(block.len() as u64);
            }
            builder.finish()?;
            if self.has_in_lists {
                self.append_in_lists(partition(&blocks, Expand::Reversed, lists, pool, progress)?)?;
            }
        } else {
            let parts = partition(&blocks, self.expand, lists, pool, progress)?;
            // The parts have copies of all edges.
            drop(blocks);
            drop(edges);
            self.append_parts(parts, &mut out_sink)?;
        }
        Ok(out_sink.num_edges(self.load.options.graph.graph_kind))
    }

    /// Sorts entries and appends both directions.
    fn append_parts<P: Payload>(&self, mut parts: ArcPartitions<P>, out_sink: &mut RunSink<'_>) -> Result<()> {
        let Load { pool, progress, .. } = *self.load;
        let lens = assemble(&mut parts, self.order(), self.retain(), out_sink, pool, progress)?;
        if self.has_in_lists {
            let reversed = partition(&parts.heads(&lens), Expand::Reversed, 0..self.num_vertices, pool, progress)?;
            // Freed before the in-lists take memory.
            drop(parts);
            self.append_in_lists(reversed)?;
        }
        Ok(())
    }

    fn append_in_lists<P: Payload>(&self, mut reversed: ArcPartitions<P>) -> Result<()> {
        let Load { pool, progress, .. } = *self.load;
        progress.stage("sort in-edges", None);
        let mut in_sink = self.sink(Direction::In);
        assemble(&mut reversed, self.list_order(), Retain::Nothing, &mut in_sink, pool, progress).map(|_| ())
    }

    fn retain(&self) -> Retain {
        if self.has_in_lists { Retain::Merged } else { Retain::Nothing }
    }

    /// As [`sort_raw`](Self::sort_raw), for entries spread over parts; the first lists of the parts are `bounds`.
    fn sort_buckets<'a>(
        &self,
        mut buckets: ArcBuckets<'a>,
        bounds: &[u64],
        arena: &BucketArena<'a>,
        map: &KeyMap,
    ) -> Result<u64> {
        let Load { pool, progress, .. } = *self.load;
        progress.stage("sort", Some(buckets.len() as u64));
        let mut out_sink = self.sink(Direction::Out);
        let evened_bytes = (3 * buckets.len() * size_of::<BucketEntry>()) as u64;
        // One large part would keep the other workers waiting: spread its entries again, if memory allows.
        if buckets.is_skewed() && evened_bytes < self.load.budget.for_edges(map.num_bytes())? {
            let lists = 0..self.num_vertices;
            // Parts are cut by ids, so the keys are mapped first.
            buckets.for_each_mut(pool, |_, entries| map.apply(KeyForm::Numbers, entries));
            progress.check()?;
            let parts = partition(&buckets.pieces(), Expand::AsGiven, lists, pool, progress)?;
            self.append_parts(parts, &mut out_sink)?;
        } else {
            buckets.assemble(bounds, map, self.order(), self.retain(), &mut out_sink, self.load)?;
            if self.has_in_lists {
                progress.stage("sort in-edges", Some(2 * out_sink.num_arcs));
                let mut reversed = buckets.reverse(arena, self.num_vertices, pool, progress)?;
                let bounds = reversed.bounds(self.num_vertices, |list| list);
                let mut in_sink = self.sink(Direction::In);
                // Parallel edges are merged already.
                let order = ArcOrder { duplicates: Duplicates::Keep, ..self.list_order() };
                reversed.assemble(&bounds, &KeyMap::default(), order, Retain::Nothing, &mut in_sink, self.load)?;
            }
        }
        Ok(out_sink.num_edges(self.load.options.graph.graph_kind))
    }

    /// As [`sort_raw`](Self::sort_raw), for raw edges on disk, with room for `num_arcs` arcs in memory.
    fn sort_on_disk<P: Payload>(
        &self,
        scratch: &ScratchFiles<'_>,
        edges: RawEdges<P>,
        map: &KeyMap,
        num_arcs: usize,
    ) -> Result<u64> {
        let Load { pool, progress, .. } = *self.load;
        let duplicates = self.load.sorted_duplicates();
        let runs = |expand, order, chunk| {
            SortedRuns::<P>::new(scratch, expand, order, self.num_vertices, chunk, pool, progress)
        };
        let reversed = self.has_in_lists.then(|| runs(Expand::AsGiven, self.list_order(), (num_arcs / 5).max(1)));
        let mut out_sink = TransposingSink { sink: self.sink(Direction::Out), reversed, buffer: Vec::new() };
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
        let TransposingSink { sink, reversed, .. } = out_sink;
        if let Some(reversed) = reversed {
            progress.stage("merge in-edges", Some(sink.num_arcs));
            let mut in_sink = self.sink(Direction::In);
            merge(reversed.finish()?, num_arcs / 5, duplicates, &mut in_sink, progress)?;
        }
        Ok(sink.num_edges(self.load.options.graph.graph_kind))
    }

    /// Calls `body` with the edges of each block, between ids, in input order.
    fn for_each_in_order<P: Payload>(
        &self,
        edges: &RawEdges<P>,
        map: &KeyMap,
        mut body: impl FnMut(&[LoadArc<P>]) -> Result<()>,
    ) -> Result<()> {
        let mut copy = Vec::new();
        for block in edges.blocks() {
            self.load.progress.check()?;
            edges.read(block, &mut copy)?;
            self.resolve(map, block, &mut copy);
            body(&copy)?;
        }
        Ok(())
    }
}

/// Writes out-lists, and keeps their transposed arcs for the in-lists.
struct TransposingSink<'a, P: Payload> {
    sink: RunSink<'a>,
    reversed: Option<SortedRuns<'a, P>>,
    buffer: Vec<LoadArc<P>>,
}

impl<P: Payload> ListSink<P> for TransposingSink<'_, P> {
    fn append(&mut self, first: VertexId, lists: &mut BuiltLists<P>) -> Result<()> {
        if let Some(reversed) = &mut self.reversed {
            self.buffer.clear();
            lists.for_each_arc(first, |arc| self.buffer.push(arc.reversed()));
            reversed.extend(&self.buffer)?;
        }
        self.sink.append(first, lists)
    }
}
