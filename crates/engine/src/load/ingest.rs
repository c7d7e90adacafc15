//! Reads blocks of the input into raw edges and tables of keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_formats::{EdgeBlock, FieldKey, KeyKind, Source, SourceSummary, Span};
use anden_graph::Weight;
use anden_snapshots::{Key, KeyScheme};
use parking_lot::Mutex;

use super::Load;
use super::arcs::{Expand, LoadArc, Payload};
use super::buckets::{ArcBuckets, BucketArena, BucketEntry, BucketSpreader};
use super::intern::{IntegerTable, KeyTable, NoTable, TextTable};
use super::keys::{Joined, KeyMap, check_num_vertices};
use super::properties::{ROW_FACTOR, VertexRows};
use super::raw::{KeyForm, OpenSlab, RawEdges, SlabStore};
use super::rows::RowStore;
use super::scratch::ScratchFiles;
use super::time_split::TimeSplit;
use crate::{Error, Result};

/// Tables of keys exist twice, and more, while they are joined.
const JOIN_FACTOR: u64 = 2;

/// The treatment of edges while they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IngestPlan {
    pub(crate) scheme: KeyScheme,
    /// Whether ids follow the first appearance of keys.
    pub(crate) io_order: bool,
    /// The arcs that an edge becomes.
    pub(crate) expand: Expand,
    /// How many times the edges are in memory at once later on.
    pub(crate) copies: u64,
}

/// The content of the whole input.
pub(crate) struct Ingested<'a, P: Payload, T> {
    /// Entries that are spread already; their ends are numeric keys.
    pub(crate) buckets: Option<ArcBuckets<'a>>,
    /// All other edges.
    pub(crate) edges: RawEdges<P>,
    /// One table for each worker.
    pub(crate) tables: Vec<T>,
    /// Vertices without edges, as numeric keys.
    pub(crate) vertices: Vec<u32>,
    /// The largest numeric key, if there is one.
    pub(crate) max_number: Option<u64>,
    /// By worker: the numbers of vertices that the input lists, if times decide about vertices.
    pub(crate) listed: Vec<Vec<u32>>,
    /// Vertex properties.
    pub(crate) rows: Vec<VertexRows>,
    /// Edge properties; edges carry their indexes in their blocks.
    pub(crate) edge_rows: Option<RowStore>,
    /// The memory for edges beside keys and vertex properties, in bytes.
    pub(crate) room: u64,
    /// Loops.
    pub(crate) num_loops: u64,
    pub(crate) summary: SourceSummary,
}

impl<P: Payload, T> Ingested<'_, P, T> {
    /// Calls `body` with the id of each vertex that the input lists; `known` is the number of vertices if keys are the
    /// numbers below it. A vertex may come several times.
    pub(crate) fn for_each_listed(&self, map: &KeyMap, known: Option<u64>, body: impl Fn(VertexId)) {
        let each = |form: KeyForm, numbers: &mut dyn Iterator<Item = u32>| {
            for number in numbers {
                let mut arc = [LoadArc::new(number, number, ())];
                map.apply(form, &mut arc);
                body(arc[0].list());
            }
        };
        each(KeyForm::Numbers, &mut self.vertices.iter().copied());
        each(KeyForm::Numbers, &mut (0..known.unwrap_or(0) as u32));
        for (worker, listed) in self.listed.iter().enumerate() {
            each(KeyForm::Interned(worker), &mut listed.iter().copied());
        }
    }
}

/// Keys as the blocks have them.
pub(crate) trait InputKey: FieldKey {
    type Table: Joined<Key = Self>;

    /// The key as a number; beyond 32 bits if it is not numeric.
    fn as_u64(self) -> u64;
}

impl InputKey for u64 {
    type Table = IntegerTable;

    #[inline(always)]
    fn as_u64(self) -> u64 {
        self
    }
}

impl InputKey for u32 {
    type Table = NoTable;

    #[inline(always)]
    fn as_u64(self) -> u64 {
        self.into()
    }
}

impl InputKey for Span {
    type Table = TextTable;

    #[inline(always)]
    fn as_u64(self) -> u64 {
        u64::MAX
    }
}

struct IngestWorker<'a, 'b, P: Payload, T> {
    slab: OpenSlab<P>,
    spreader: Option<BucketSpreader<'a, 'b>>,
    table: T,
    table_bytes: u64,
    vertices: Vec<u32>,
    /// The numbers of listed vertices in the table.
    listed: Vec<u32>,
    max_number: Option<u64>,
    rows: Vec<VertexRows>,
    num_loops: u64,
}

/// Reads the whole input. `arena` is given if edges may be spread while they are read.
pub(crate) fn ingest<'a, K: InputKey, W: Weight, P: Payload>(
    load: &Load<'_>,
    source: &mut Source,
    plan: IngestPlan,
    arena: Option<&BucketArena<'a>>,
    scratch: &ScratchFiles<'_>,
) -> Result<Ingested<'a, P, K::Table>> {
    let Load { pool, progress, .. } = *load;
    progress.stage("read", source.facts().input_bytes);
    let slab_arcs = (load.budget.slab_bytes() / size_of::<LoadArc<P>>() as u64) as usize;
    let slabs = SlabStore::new(scratch, slab_arcs);
    let edge_rows = load.needs_rows().then(|| RowStore::new(load.properties));
    let (key_bytes, row_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let (bytes_read, input_bytes) = (source.bytes_read(), source.facts().input_bytes);
    let reader = IngestReader { plan, load, arena, slabs, key_bytes, row_bytes, edge_rows, bytes_read, input_bytes };
    let workers: Vec<Mutex<IngestWorker<'a, '_, P, K::Table>>> = (0..pool.num_threads())
        .map(|_| {
            let (slab, table) = (OpenSlab::default(), K::Table::new(plan.io_order));
            let (vertices, listed, rows) = (Vec::new(), Vec::new(), Vec::new());
            let (spreader, table_bytes, max_number, num_loops) = (None, 0, None, 0);
            Mutex::new(IngestWorker {
                slab,
                spreader,
                table,
                table_bytes,
                vertices,
                listed,
                max_number,
                rows,
                num_loops,
            })
        })
        .collect();
    let (bytes_read, bytes_told) = (source.bytes_read(), AtomicU64::new(0));
    let is_weighted = load.options.graph.weight_type.is_some();
    let summary = source.for_each_block(pool, |worker, mut block: EdgeBlock<K, W>| -> Result<()> {
        progress.check()?;
        let now = bytes_read.load(Ordering::Relaxed);
        // Workers read the counter in any order, so each reports only bytes beyond the largest count.
        progress.advance(now.saturating_sub(bytes_told.fetch_max(now, Ordering::Relaxed)));
        let mut state = workers[worker].lock();
        if is_weighted {
            check_weights(&block)?;
        }
        let weights = P::given(std::mem::take(&mut block.weights));
        reader.take::<K, W>(worker, &mut state, block, &weights)
    })?;
    let workers = workers.into_iter().map(Mutex::into_inner).collect();
    reader.finish(workers, summary)
}

/// The state that workers share.
struct IngestReader<'a, 'b, 'c, P: Payload> {
    plan: IngestPlan,
    load: &'c Load<'c>,
    arena: Option<&'b BucketArena<'a>>,
    slabs: SlabStore<'c, P>,
    /// Bytes of all tables of keys.
    key_bytes: AtomicU64,
    /// Bytes of all vertex properties.
    row_bytes: AtomicU64,
    edge_rows: Option<RowStore>,
    bytes_read: Arc<AtomicU64>,
    /// The bytes of all inputs, if they are known.
    input_bytes: Option<u64>,
}

impl<'a, 'b, P: Payload> IngestReader<'a, 'b, '_, P> {
    fn take<K: InputKey, W>(
        &self,
        worker: usize,
        state: &mut IngestWorker<'a, 'b, P, K::Table>,
        mut block: EdgeBlock<K, W>,
        weights: &[P::Given],
    ) -> Result<()> {
        if let Some(rows) = VertexRows::of_block(&mut block) {
            let num_bytes = ROW_FACTOR * rows.num_bytes();
            let num_bytes = self.row_bytes.fetch_add(num_bytes, Ordering::Relaxed) + num_bytes;
            self.load.budget.check_properties(num_bytes)?;
            state.rows.push(rows);
        }
        let mut room = self.room()?;
        if let Some(rows) = &self.edge_rows {
            let mut columns = std::mem::take(&mut block.properties);
            if let Some(split) = self.load.by_time().filter(|_| !block.edges.is_empty()) {
                split.take_times(block.sequence, &mut columns)?;
            }
            rows.add(self.load, block.sequence, block.edges.len(), columns, room)?;
            room = room.saturating_sub(rows.held());
        }
        let limit = room / (self.plan.copies * size_of::<LoadArc<P>>() as u64);
        let (largest, num_loops) = survey(&block);
        state.num_loops += num_loops;
        let form = match (self.plan.scheme, largest) {
            (KeyScheme::Dense, _) => KeyForm::Numbers,
            // Ids by first appearance need a table that notes positions, even for small numbers.
            (KeyScheme::Integer, Some(_)) if !self.plan.io_order => KeyForm::Numbers,
            _ => KeyForm::Interned(worker),
        };
        let target = (block.sequence, form);
        match form {
            KeyForm::Numbers => {
                state.max_number = state.max_number.max(largest.map(u64::from));
                state.vertices.extend(block.vertices.iter().map(|key| key.as_u64() as u32));
                if self.spread(state, &block, largest.unwrap_or(0))? {
                    return Ok(());
                }
                self.slabs.add(&mut state.slab, target, block.edges.len(), limit as usize, |arcs| {
                    for (i, (arc, (source, target))) in arcs.iter_mut().zip(&block.edges).enumerate() {
                        *arc = LoadArc::new(source.as_u64() as u32, target.as_u64() as u32, P::at(weights, i));
                    }
                })
            }
            KeyForm::Interned(_) => {
                let IngestWorker { slab, table, listed, num_loops, .. } = state;
                let is_text = K::KIND == KeyKind::String;
                // A slab takes no block without edges, but its vertices need numbers.
                if block.edges.is_empty() {
                    intern_block(table, &block, |_, _, _| {});
                }
                self.slabs.add(slab, target, block.edges.len(), limit as usize, |arcs| {
                    intern_block(table, &block, |i, source, target| {
                        arcs[i] = LoadArc::new(source, target, P::at(weights, i));
                        // Equal text has equal numbers.
                        *num_loops += u64::from(is_text && source == target);
                    });
                })?;
                if self.load.by_time().is_some() {
                    // The table has these keys by now, so their positions do not matter.
                    listed.extend(block.vertices.iter().map(|&key| table.intern(key, &block.text, u64::MAX)));
                }
                self.account(state)
            }
        }
    }

    /// The memory for edges beside the keys and vertex properties already read, in bytes.
    ///
    /// # Errors
    /// They leave too little. The rest of the input has more keys, so the error names a need that includes some more.
    fn room(&self) -> Result<u64> {
        let key_bytes = self.key_bytes.load(Ordering::Relaxed) * JOIN_FACTOR;
        let time_bytes = self.load.by_time().map_or(0, TimeSplit::num_bytes);
        let held = key_bytes + self.row_bytes.load(Ordering::Relaxed) + time_bytes;
        let budget = &self.load.budget;
        budget.for_edges(held).or_else(|_| budget.for_edges(self.expected_bytes(held)))
    }

    /// The memory that will be needed where `held` bytes are in use: as much for each byte of the input, but at most
    /// twice as much, because keys repeat.
    fn expected_bytes(&self, held: u64) -> u64 {
        let num_read = self.bytes_read.load(Ordering::Relaxed).max(1);
        let share = self.input_bytes.map_or(2.0, |all| all as f64 / num_read as f64);
        (held as f64 * share.clamp(1.0, 2.0)) as u64
    }

    /// Spreads a block. Returns false if the block is to be kept: spreading is not possible, or the worker's edges have
    /// ascended until now and may need no sorting.
    fn spread<K: InputKey, W>(
        &self,
        state: &mut IngestWorker<'a, 'b, P, K::Table>,
        block: &EdgeBlock<K, W>,
        largest: u32,
    ) -> Result<bool> {
        let Some(arena) = self.arena else { return Ok(false) };
        let edges = block.edges.iter().map(|(u, v)| BucketEntry::new(u.as_u64() as u32, v.as_u64() as u32, ()));
        let may_be_sorted = state.spreader.is_none() && self.plan.expand == Expand::AsGiven;
        if may_be_sorted && edges.clone().is_sorted_by_key(|edge| edge.key()) {
            return Ok(false);
        }
        let (factor, num_threads) = (self.plan.expand.factor(), self.load.pool.num_threads());
        // The edges that are kept may have to be spread later, so they count.
        let has_room = || arena.has_room((block.edges.len() + self.slabs.held()) * factor, num_threads);
        if !has_room() {
            // The chunks of this worker's entries become free.
            self.dump(&mut state.slab, &mut state.spreader)?;
            if !has_room() {
                return Ok(false);
            }
        }
        if self.plan.expand == Expand::Ordered {
            // A loop becomes no entry, but its vertex exists.
            state.vertices.extend(edges.clone().filter(|edge| edge.list() == edge.neighbor()).map(|edge| edge.list()));
        }
        // The largest list is unknown at first, so parts begin with one list each.
        let spreader = state.spreader.get_or_insert_with(|| BucketSpreader::new(arena, 0));
        spreader.reach(largest);
        edges.for_each(|edge| self.plan.expand.entries(edge, |entry| spreader.push(entry)));
        Ok(true)
    }

    /// Moves the entries that a worker has spread to scratch files.
    fn dump(&self, slab: &mut OpenSlab<P>, spreader: &mut Option<BucketSpreader<'a, 'b>>) -> Result<()> {
        let Some(spreader) = spreader else { return Ok(()) };
        let mut kept: Vec<LoadArc<P>> = Vec::new();
        spreader.drain(|entries| {
            // One of an edge's two entries suffices.
            let is_first = |entry: &&BucketEntry| self.plan.expand != Expand::Both || entry.list() <= entry.neighbor();
            // Only edges without data are spread, so the payload is empty.
            kept.extend(entries.iter().filter(is_first).map(|entry| LoadArc::from_key(entry.key(), P::zeroed())));
            if kept.len() >= self.slabs.file_arcs() {
                self.slabs.add_file(slab, &kept)?;
                kept.clear();
            }
            Ok(())
        })?;
        if kept.is_empty() { Ok(()) } else { self.slabs.add_file(slab, &kept) }
    }

    /// Combines the results of all workers.
    fn finish<T: Joined>(
        self,
        mut workers: Vec<IngestWorker<'a, 'b, P, T>>,
        summary: SourceSummary,
    ) -> Result<Ingested<'a, P, T>> {
        let max_number = workers.iter().filter_map(|worker| worker.max_number).max();
        // Edges on disk, or keys with numbers of their own, cannot be combined with spread edges.
        let is_merged_on_demand = self.slabs.is_spilling() || workers.iter().any(|worker| worker.table.len() > 0);
        if is_merged_on_demand {
            workers.iter_mut().try_for_each(|worker| self.dump(&mut worker.slab, &mut worker.spreader))?;
        }
        let (mut slabs, mut tables, mut vertices, mut spreaders) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut listed, mut rows, mut num_loops) = (Vec::new(), Vec::new(), 0);
        for mut worker in workers {
            num_loops += worker.num_loops;
            rows.append(&mut worker.rows);
            listed.push(worker.listed);
            slabs.push(worker.slab);
            tables.push(worker.table);
            vertices.append(&mut worker.vertices);
            spreaders.extend(worker.spreader.filter(|_| !is_merged_on_demand));
        }
        // Too little memory here is reported by the next step.
        let room = self.room().unwrap_or(0);
        let mut edges = self.slabs.finish(slabs)?;
        let mut buckets = None;
        if let Some(spreader) = spreaders.first_mut() {
            // The input ascended at first, but not to the end: spread its beginning now.
            for block in std::mem::take(&mut edges).in_memory() {
                spreader.reach(max_number.unwrap_or(0) as u32);
                let given = block.iter().map(|edge| BucketEntry::from_key(edge.key(), ()));
                given.for_each(|edge| self.plan.expand.entries(edge, |entry| spreader.push(entry)));
            }
            buckets = Some(ArcBuckets::new(spreaders)?);
        }
        let edge_rows = self.edge_rows;
        Ok(Ingested { buckets, edges, tables, vertices, max_number, listed, rows, edge_rows, room, num_loops, summary })
    }

    /// Accounts for the memory of a worker's table.
    fn account<T: Joined>(&self, state: &mut IngestWorker<'a, 'b, P, T>) -> Result<()> {
        let now = state.table.num_bytes() as u64;
        self.key_bytes.fetch_add(now - state.table_bytes, Ordering::Relaxed);
        state.table_bytes = now;
        check_num_vertices(state.table.len() as u64)
    }
}

/// Numbers all keys of a block.
fn intern_block<K: InputKey, W>(table: &mut K::Table, block: &EdgeBlock<K, W>, body: impl FnMut(usize, u32, u32)) {
    // The position in the input: a block has far fewer than 2^32 keys.
    let mut position = block.sequence << 32;
    table.intern_edges(&block.edges, &block.text, position, body);
    position += 2 * block.edges.len() as u64;
    for &key in &block.vertices {
        table.intern(key, &block.text, position);
        position += 1;
    }
}

/// The largest key, if all keys of a block fit in 32 bits, and the number of loops among numeric keys.
fn survey<K: InputKey, W>(block: &EdgeBlock<K, W>) -> (Option<u32>, u64) {
    // One pass for both: the block does not fit the first-level cache.
    let (mut largest, mut num_loops) = (0, 0);
    for &(source, target) in &block.edges {
        let (source, target) = (source.as_u64(), target.as_u64());
        largest = largest.max(source.max(target));
        num_loops += u64::from(source == target);
    }
    let of_edges = (!block.edges.is_empty()).then_some(largest);
    let of_vertices = block.vertices.iter().map(|key| key.as_u64()).max();
    let largest = of_edges.max(of_vertices).and_then(|largest| u32::try_from(largest).ok());
    (largest, if K::KIND == KeyKind::Integer { num_loops } else { 0 })
}

/// Requires one accepted weight for each edge.
fn check_weights<K: InputKey, W: Weight>(block: &EdgeBlock<K, W>) -> Result<()> {
    if block.weights.len() != block.edges.len() {
        let what = format!("{} edges came with {} weights", block.edges.len(), block.weights.len());
        return Err(Error::internal(what));
    }
    require_accepted(block)
}

/// Refuses weights that are −∞ or not a number. Readers of text refuse them too, readers of binary files do not.
pub(crate) fn require_accepted<K: InputKey, W: Weight>(block: &EdgeBlock<K, W>) -> Result<()> {
    let Some(place) = block.weights.iter().position(|weight| !weight.is_accepted()) else { return Ok(()) };
    let key = |key: K| match K::KIND {
        KeyKind::Integer => Key::Integer(key.as_u64()),
        KeyKind::String => Key::String(String::from_utf8_lossy(key.as_text(&block.text)).into_owned()),
    };
    let reason = format!("expected a weight that is a number or +∞, found {}", block.weights[place]);
    match block.edges.get(place) {
        Some(&(source, target)) => Err(Error::invalid_edge((&key(source), &key(target)), reason)),
        None => Err(Error::internal(format!("a weight has no edge: {reason}"))),
    }
}
