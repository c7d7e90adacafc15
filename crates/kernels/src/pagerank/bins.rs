//! Bins: the edges laid out by partition of source and partition of target.
//!
//! For each pair of a source partition and a target partition there is a *cell* of three parallel
//! runs. `sources` and `updates` have one entry for each source that has an edge to the target
//! partition: its place in its partition, and the slot that carries its contribution. `targets` has
//! one entry an edge: the place of the target in its partition, in the low 15 bits, and in the
//! highest bit whether the edge is the first of the next slot. The cells of one source partition, in
//! the order of the target partitions, are a *row*.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::VertexId;
use base::table::{PLACE_BITS, RUN_FLAG, Runs, TABLE_LEN, add_runs, gather};
use graph::Graph;

use super::score::{Block, Round, Score, State};
use crate::walk::for_each_out_list;
use crate::{Context, Error, Result};

/// The largest partitions: their vertices have places in a table.
pub const MAX_PARTITION_BITS: u32 = PLACE_BITS;

/// The most partitions. The table of cells grows with the square: 134 MB at 4,096, which are graphs
/// of 134 million vertices at the largest partitions.
const MAX_PARTITIONS: usize = 1 << 12;

/// The edges in cells, and a slot for each source of a cell.
pub(super) struct Bins<T> {
    bits: u32,
    rows: Vec<Row<T>>,
    num_bytes: u64,
    /// For each worker, the sums of the partition at hand.
    tables: Vec<Mutex<Vec<T>>>,
}

/// The cells of one source partition.
#[derive(Default)]
struct Row<T> {
    /// Where each cell begins, and where the last ends.
    starts: Vec<CellStart>,
    targets: Vec<u16>,
    sources: Vec<u16>,
    updates: Vec<T>,
}

#[derive(Clone, Copy, Default)]
struct CellStart {
    target: u32,
    update: u32,
}

impl<T: Score> Row<T> {
    fn num_bytes(num_targets: usize, num_updates: usize, num_cells: usize) -> u64 {
        let slots = num_updates * (size_of::<u16>() + size_of::<T>());
        (slots + num_targets * size_of::<u16>() + (num_cells + 1) * size_of::<CellStart>()) as u64
    }

    /// The targets and slots of one cell.
    fn cell(&self, partition: usize) -> Runs<'_, T> {
        let (from, to) = (self.starts[partition], self.starts[partition + 1]);
        Runs {
            places: &self.targets[from.target as usize..to.target as usize],
            values: &self.updates[from.update as usize..to.update as usize],
        }
    }
}

impl<T: Score> Bins<T> {
    /// Lays the edges out in one pass, unless that takes more than the budget leaves beside
    /// `state_bytes`; then [`Error::Memory`] says how much it takes.
    pub(super) fn build(ctx: &Context<'_>, graph: &impl Graph, bits: u32, state_bytes: u64) -> Result<Self> {
        let num_partitions = graph.vertex_bound().div_ceil(1 << bits);
        if num_partitions > MAX_PARTITIONS {
            let what = format!("pagerank by bins is for up to {} vertices: use pull", MAX_PARTITIONS << bits);
            return Err(Error::Parameter(what));
        }
        let num_threads = ctx.pool.num_threads();
        let fixed_bytes = state_bytes + num_partitions as u64 * PARTITION_BYTES;
        let room = Room::new(ctx.memory.map_or(u64::MAX, |memory| memory.saturating_sub(fixed_bytes)));
        let mut rows: Vec<Row<T>> = (0..num_partitions).map(|_| Row::default()).collect();
        let num_bytes = AtomicU64::new(0);
        let is_too_long = AtomicBool::new(false);
        let sorters: Vec<_> = (0..num_threads).map(|_| Mutex::new(Sorter::new(num_partitions, bits, &room))).collect();
        ctx.pool.for_each_item(rows.iter_mut().enumerate().collect(), |worker, (partition, row)| {
            if ctx.progress.is_cancelled() {
                return;
            }
            let mut sorter = sorters[worker].lock().unwrap_or_else(|e| e.into_inner());
            sorter.sort(graph, partition);
            let (num_targets, num_updates) = sorter.totals();
            let row_bytes = Row::<T>::num_bytes(num_targets, num_updates, num_partitions);
            num_bytes.fetch_add(row_bytes, Ordering::Relaxed);
            if u32::try_from(num_targets).is_err() {
                is_too_long.store(true, Ordering::Relaxed);
            } else if room.take(row_bytes) {
                *row = sorter.to_row(num_targets, num_updates);
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        if is_too_long.into_inner() {
            return Err(Error::Parameter("a partition has too many edges for bins: use pull".into()));
        }
        let num_bytes = num_bytes.into_inner();
        // The tables come when the sorters are gone.
        let tables_bytes = (num_threads * TABLE_LEN * size_of::<T>()) as u64;
        if room.is_too_small() || !ctx.allows(fixed_bytes + num_bytes + tables_bytes) {
            let needed = fixed_bytes + num_bytes + tables_bytes.max(most_bytes(sorters));
            return Err(Error::Memory { kernel: "pagerank by bins", needed, budget: ctx.memory.unwrap_or(0) });
        }
        drop(sorters);
        let tables = (0..num_threads).map(|_| Mutex::new(T::zeros(TABLE_LEN))).collect();
        Ok(Self { bits, rows, num_bytes, tables })
    }

    pub(super) fn num_bytes(&self) -> u64 {
        self.num_bytes
    }

    /// One round: contributions to slots, then slots to sums and scores.
    pub(super) fn round(&mut self, ctx: &Context<'_>, state: &mut State<T>, round: &Round<T>) -> Vec<Block> {
        let len = 1 << self.bits;
        let (parts, contributions) = state.parts(len);
        let mut blocks = vec![Block::default(); parts.len()];
        ctx.pool.for_each_item(self.rows.iter_mut().enumerate().collect(), |_, (partition, row)| {
            // Smaller partitions lie several to a table.
            let table = contributions[table_start(partition * len)..].first_chunk::<TABLE_LEN>();
            if let (Some(table), false) = (table, ctx.progress.is_cancelled()) {
                gather(table, &row.sources, &mut row.updates);
            }
        });

        let items = parts.into_iter().zip(contributions.chunks_mut(len)).zip(&mut blocks).enumerate();
        ctx.pool.for_each_item(items.collect(), |worker, (partition, ((mut part, contributions), block))| {
            let mut table = self.tables[worker].lock().unwrap_or_else(|e| e.into_inner());
            let Some(sums) = table.first_chunk_mut::<TABLE_LEN>() else { return };
            if ctx.progress.is_cancelled() {
                return;
            }
            let first = partition * len - table_start(partition * len);
            sums[first..first + part.len()].fill(T::default());
            for (index, row) in self.rows.iter().enumerate() {
                let next =
                    self.rows.get(index + 1).map_or(Runs { places: &[], values: &[] }, |row| row.cell(partition));
                add_runs(sums, &row.cell(partition), &next);
            }
            *block = part.rescore(round, &sums[first..first + part.len()]);
            part.contribute(contributions);
        });
        blocks
    }
}

/// The first vertex of the table that a vertex has its place in.
fn table_start(vertex: usize) -> usize {
    vertex & !(TABLE_LEN - 1)
}

/// What a partition takes beside its edges: its row, and what a round hands out for it.
const PARTITION_BYTES: u64 = 512;

/// What rows and sorters may hold, and do.
struct Room {
    most: u64,
    held: AtomicU64,
    is_too_small: AtomicBool,
}

impl Room {
    fn new(most: u64) -> Self {
        Self { most, held: AtomicU64::new(0), is_too_small: AtomicBool::new(false) }
    }

    /// Takes so many bytes; whether there was room for these and all before.
    fn take(&self, num_bytes: u64) -> bool {
        let held = self.held.fetch_add(num_bytes, Ordering::Relaxed) + num_bytes;
        if held > self.most {
            self.is_too_small.store(true, Ordering::Relaxed);
        }
        !self.is_too_small()
    }

    fn give_back(&self, num_bytes: u64) {
        self.held.fetch_sub(num_bytes, Ordering::Relaxed);
    }

    fn is_too_small(&self) -> bool {
        self.is_too_small.load(Ordering::Relaxed)
    }
}

/// Sorts the edges of one source partition after another by target partition.
struct Sorter<'a> {
    bits: u32,
    /// Once that is too small, edges are counted only.
    room: &'a Room,
    cells: Vec<Cell>,
    /// The places of a stretch of a list; what follows is copied, and then written over.
    places: [u16; STRETCH + COPY],
    /// Where in it each run of one target partition begins, and the end.
    run_starts: [u16; STRETCH + 1],
}

/// Entries of a list that are taken together. A run that goes on beyond them gets another slot.
const STRETCH: usize = 256;

/// Entries that are copied together: most runs take one copy.
const COPY: usize = 16;

/// A cell under construction. The vectors keep the length that earlier rows needed.
#[derive(Clone, Default)]
struct Cell {
    targets: Vec<u16>,
    num_targets: usize,
    sources: Vec<u16>,
    num_sources: usize,
    /// The bytes of both vectors, had they been made for every row so far.
    most_bytes: u64,
}

impl<'a> Sorter<'a> {
    fn new(num_partitions: usize, bits: u32, room: &'a Room) -> Self {
        room.take(Self::least_bytes(num_partitions));
        let cells = vec![Cell::default(); num_partitions];
        Self { bits, room, cells, places: [0; STRETCH + COPY], run_starts: [0; STRETCH + 1] }
    }

    fn least_bytes(num_partitions: usize) -> u64 {
        (size_of::<Mutex<Self>>() + num_partitions * size_of::<Cell>()) as u64
    }

    fn sort(&mut self, graph: &impl Graph, partition: usize) {
        let first = partition << self.bits;
        let vertices = first as VertexId..graph.vertex_bound().min(first + (1 << self.bits)) as VertexId;
        let room = self.room;
        self.clear();
        for_each_out_list(graph, vertices.clone(), |source, list| {
            if !room.is_too_small() {
                self.for_each_run(list, |cell, places, len| cell.add(source, places, len, room));
            }
        });
        if room.is_too_small() {
            self.clear();
            for_each_out_list(graph, vertices, |_, list| self.for_each_run(list, |cell, _, len| cell.count(len)));
        }
        self.cells.iter_mut().for_each(|cell| cell.most_bytes = cell.most_bytes.max(cell.wanted_bytes()));
    }

    fn clear(&mut self) {
        self.cells.iter_mut().for_each(|cell| (cell.num_targets, cell.num_sources) = (0, 0));
    }

    /// Calls `body` with the cell of each run of one target partition, its places and what follows them, its length.
    #[inline]
    fn for_each_run(&mut self, list: &[VertexId], mut body: impl FnMut(&mut Cell, &[u16], usize)) {
        for stretch in list.chunks(STRETCH) {
            for (place, &target) in self.places.iter_mut().zip(stretch) {
                *place = (target as usize % TABLE_LEN) as u16;
            }
            let num_runs = self.find_runs(stretch);
            for run in self.run_starts[..=num_runs].windows(2) {
                let (start, end) = (usize::from(run[0]), usize::from(run[1]));
                let partition = stretch[start] as usize >> self.bits;
                let Some(cell) = self.cells.get_mut(partition) else { return };
                body(cell, &self.places[start..], end - start);
            }
        }
    }

    /// Finds the runs of entries in the same partition, without a branch that depends on them.
    #[inline]
    fn find_runs(&mut self, stretch: &[VertexId]) -> usize {
        let mut num_runs = 0;
        let place_mask = (1 << self.bits) - 1;
        // Anything in another partition than the first.
        let mut last = !stretch[0];
        for (i, &target) in stretch.iter().enumerate() {
            self.run_starts[num_runs] = i as u16;
            num_runs += usize::from((target ^ last) > place_mask);
            last = target;
        }
        self.run_starts[num_runs] = stretch.len() as u16;
        num_runs
    }

    fn totals(&self) -> (usize, usize) {
        let sum = |size: fn(&Cell) -> usize| self.cells.iter().map(size).sum();
        (sum(|cell| cell.num_targets), sum(|cell| cell.num_sources))
    }

    fn to_row<T: Score>(&self, num_targets: usize, num_updates: usize) -> Row<T> {
        let mut row = Row {
            starts: Vec::with_capacity(self.cells.len() + 1),
            targets: Vec::with_capacity(num_targets),
            sources: Vec::with_capacity(num_updates),
            updates: T::zeros(num_updates),
        };
        for cell in &self.cells {
            row.starts.push(row.end());
            row.targets.extend_from_slice(&cell.targets[..cell.num_targets]);
            row.sources.extend_from_slice(&cell.sources[..cell.num_sources]);
        }
        row.starts.push(row.end());
        row
    }
}

impl<T> Row<T> {
    fn end(&self) -> CellStart {
        CellStart { target: self.targets.len() as u32, update: self.sources.len() as u32 }
    }
}

impl Cell {
    /// Adds a slot with `len` edges, whose places come first in `places`, if there is room.
    #[inline]
    fn add(&mut self, source: VertexId, places: &[u16], len: usize, room: &Room) {
        if self.num_sources == self.sources.len() && !grow(&mut self.sources, room) {
            return;
        }
        self.sources[self.num_sources] = (source as usize % TABLE_LEN) as u16;
        self.num_sources += 1;
        while self.num_targets + len + COPY > self.targets.len() {
            if !grow(&mut self.targets, room) {
                return;
            }
        }
        let slots = &mut self.targets[self.num_targets..];
        for start in (0..len).step_by(COPY) {
            slots[start..start + COPY].copy_from_slice(&places[start..start + COPY]);
        }
        slots[0] |= RUN_FLAG;
        self.num_targets += len;
    }

    /// Counts a slot with `len` edges.
    #[inline]
    fn count(&mut self, len: usize) {
        self.num_sources += 1;
        self.num_targets += len;
    }

    /// The bytes of vectors that have grown to what was added.
    fn wanted_bytes(&self) -> u64 {
        let grown = |len: usize| if len == 0 { 0 } else { len.next_power_of_two().max(LEAST_LEN) };
        let targets = if self.num_targets == 0 { 0 } else { grown(self.num_targets + COPY) };
        ((grown(self.num_sources) + targets) * size_of::<u16>()) as u64
    }
}

/// The length that vectors of a cell begin with.
const LEAST_LEN: usize = 256;

/// Doubles a vector, if there is room for it beside the old one.
#[cold]
fn grow(entries: &mut Vec<u16>, room: &Room) -> bool {
    let len = (entries.len() * 2).max(LEAST_LEN);
    let num_bytes = |len: usize| (len * size_of::<u16>()) as u64;
    if !room.take(num_bytes(len)) {
        room.give_back(num_bytes(len));
        return false;
    }
    let old_bytes = num_bytes(entries.len());
    entries.resize(len, 0);
    room.give_back(old_bytes);
    true
}

/// The most bytes that sorters of all rows come to, whichever sorts which row.
fn most_bytes(sorters: Vec<Mutex<Sorter<'_>>>) -> u64 {
    let num_sorters = sorters.len() as u64;
    let sorters = sorters.into_iter().map(|sorter| sorter.into_inner().unwrap_or_else(|e| e.into_inner()));
    let largest = sorters.map(|sorter| sorter.cells.iter().map(|cell| cell.most_bytes).collect::<Vec<_>>());
    let cells =
        largest.reduce(|one, other| one.iter().zip(&other).map(|(&a, &b)| a.max(b)).collect()).unwrap_or_default();
    // A vector that grows is there twice.
    let growing = cells.iter().max().copied().unwrap_or(0);
    num_sorters * (Sorter::least_bytes(cells.len()) + cells.iter().sum::<u64>() + growing)
}
