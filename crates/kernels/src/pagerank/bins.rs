//! Bins: the edges arranged by partition of source and partition of target.
//!
//! Each pair of a source partition and a target partition has a *cell* of three arrays:
//! - `sources` and `updates` have one entry for each source with an edge to the target partition. They hold the
//!   source's place in its partition, and the slot for its contribution.
//! - `targets` has one entry for each edge. The low 15 bits hold the place of the target in its partition, and the
//!   highest bit marks the first edge of the next slot.
//!
//! The cells of one source partition, in the order of target partitions, form a *row*.

mod stored;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::table::{PLACE_BITS, RUN_FLAG, Runs, TABLE_LEN, add_runs, gather};
use anden_graph::{Graph, StoredForm, StoredFormKey};
use bytemuck::{Pod, Zeroable};
use parking_lot::Mutex;

use super::score::{PageRankBlockSums, PageRankState, Round, Score};
use crate::preparation::PreparedForm;
use crate::walk::for_each_out_list;
use crate::{Context, Error, Result};

pub(crate) use stored::StoredBins;

/// The bits of the largest partition: a place in it must fit in a table.
pub const MAX_PARTITION_BITS: u32 = PLACE_BITS;

/// The most partitions. The number of cells grows with the square: 134 MB at 4,096 partitions, which hold 134 million
/// vertices at the largest size.
const MAX_PARTITIONS: usize = 1 << 12;

/// The edges in cells, and a slot for each source of a cell.
#[derive(Default)]
pub(super) struct Bins<T> {
    bits: u32,
    rows: Vec<BinRow<T>>,
    num_bytes: u64,
    /// For each worker, the sums of the partition that it works on.
    tables: Vec<Mutex<Vec<T>>>,
}

/// The cells of one source partition.
#[derive(Default)]
struct BinRow<T> {
    /// The start of each cell, then the end of the last.
    starts: Vec<CellStart>,
    targets: Vec<u16>,
    sources: Vec<u16>,
    updates: Vec<T>,
}

#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct CellStart {
    target: u32,
    update: u32,
}

impl<T: Score> BinRow<T> {
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
    /// The bins that an earlier run made or that the database stores, if there are any and the budget, less
    /// `state_bytes`, has room for them.
    pub(super) fn kept<'a>(
        ctx: &Context<'a>,
        graph: &impl Graph,
        bits: u32,
        state_bytes: u64,
    ) -> Option<PreparedForm<'a, Self>> {
        let num_threads = ctx.pool.num_threads();
        let kept = PreparedForm::take(ctx.preparations, graph, bits.into(), |bins: &Self| bins.kept_bytes(num_threads));
        let Some(mut kept) = kept else { return Self::read(ctx, graph, bits, state_bytes) };
        let fixed_bytes = state_bytes + kept.rows.len() as u64 * PARTITION_BYTES;
        if !ctx.allows(fixed_bytes + kept.kept_bytes(num_threads)) {
            return None;
        }
        // The earlier run may have had another number of threads.
        kept.resize_tables(num_threads);
        Some(kept)
    }

    /// As [`build`](Self::build), with [kept](Self::kept) bins if there are any.
    pub(super) fn prepare<'a>(
        ctx: &Context<'a>,
        graph: &impl Graph,
        bits: u32,
        state_bytes: u64,
    ) -> Result<PreparedForm<'a, Self>> {
        if let Some(kept) = Self::kept(ctx, graph, bits, state_bytes) {
            return Ok(kept);
        }
        let bins = Self::build(ctx, graph, bits, state_bytes)?;
        let num_bytes = bins.kept_bytes(ctx.pool.num_threads());
        Ok(PreparedForm::new(ctx.preparations, graph, bits.into(), bins, num_bytes))
    }

    fn resize_tables(&mut self, num_threads: usize) {
        self.tables.resize_with(num_threads, || Mutex::new(T::zeros(TABLE_LEN)));
    }

    /// The bytes of the bins with the tables of all workers.
    fn kept_bytes(&self, num_threads: usize) -> u64 {
        self.num_bytes + Self::tables_bytes(num_threads)
    }

    /// The bytes of the tables of all workers.
    fn tables_bytes(num_threads: usize) -> u64 {
        (num_threads * TABLE_LEN * size_of::<T>()) as u64
    }

    /// Arranges the edges in one pass. Returns [`Error::Memory`] with the needed bytes if the budget, less
    /// `state_bytes`, is too small.
    fn build(ctx: &Context<'_>, graph: &impl Graph, bits: u32, state_bytes: u64) -> Result<Self> {
        let num_partitions = graph.vertex_bound().div_ceil(1 << bits);
        if num_partitions > MAX_PARTITIONS {
            let what = format!("pagerank by bins is for up to {} vertices: use pull", MAX_PARTITIONS << bits);
            return Err(Error::Parameter(what));
        }
        let num_threads = ctx.pool.num_threads();
        let fixed_bytes = state_bytes + num_partitions as u64 * PARTITION_BYTES;
        // At most one slot for each edge.
        let most_entries = graph.num_arcs() as usize;
        let rows_bytes = BinRow::<T>::num_bytes(most_entries, most_entries, num_partitions * num_partitions);
        ctx.make_room(fixed_bytes.saturating_add(rows_bytes));
        let room = BinBudget::new(ctx.memory.map_or(u64::MAX, |memory| memory.saturating_sub(fixed_bytes)));
        let mut rows: Vec<BinRow<T>> = (0..num_partitions).map(|_| BinRow::default()).collect();
        let num_bytes = AtomicU64::new(0);
        let is_too_long = AtomicBool::new(false);
        let sorters: Vec<_> =
            (0..num_threads).map(|_| Mutex::new(BinSorter::new(num_partitions, bits, &room))).collect();
        ctx.pool.for_each_item(rows.iter_mut().enumerate().collect(), |worker, (partition, row)| {
            if ctx.progress.is_cancelled() {
                return;
            }
            let mut sorter = sorters[worker].lock();
            sorter.sort(graph, partition);
            let (num_targets, num_updates) = sorter.totals();
            let row_bytes = BinRow::<T>::num_bytes(num_targets, num_updates, num_partitions);
            // Counted also if the row does not fit: the error reports the needed bytes.
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
        // The tables are allocated after the sorters are freed.
        let tables_bytes = Self::tables_bytes(num_threads);
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
    pub(super) fn round(
        &mut self,
        ctx: &Context<'_>,
        state: &mut PageRankState<T>,
        round: &Round<T>,
    ) -> Vec<PageRankBlockSums> {
        let len = 1 << self.bits;
        let (parts, contributions) = state.parts(len);
        let mut blocks = vec![PageRankBlockSums::default(); parts.len()];
        ctx.pool.for_each_item(self.rows.iter_mut().enumerate().collect(), |_, (partition, row)| {
            // Several small partitions share one table. Its length is fixed, so a 15-bit place needs no bounds check.
            let table = contributions[table_start(partition * len)..].first_chunk::<TABLE_LEN>();
            if let (Some(table), false) = (table, ctx.progress.is_cancelled()) {
                gather(table, &row.sources, &mut row.updates);
            }
        });

        let items = parts.into_iter().zip(contributions.chunks_mut(len)).zip(&mut blocks).enumerate();
        ctx.pool.for_each_item(items.collect(), |worker, (partition, ((mut part, contributions), block))| {
            let mut table = self.tables[worker].lock();
            // Every table has this length.
            let Some(sums) = table.first_chunk_mut::<TABLE_LEN>() else { return };
            if ctx.progress.is_cancelled() {
                return;
            }
            let first = partition * len - table_start(partition * len);
            sums[first..first + part.len()].fill(T::default());
            // `next` is the cell that `add_runs` prefetches while it adds the current one.
            for (index, row) in self.rows.iter().enumerate() {
                let next =
                    self.rows.get(index + 1).map_or(Runs { places: &[], values: &[] }, |row| row.cell(partition));
                add_runs(sums, &row.cell(partition), &next);
            }
            *block = part.rescore(round, &sums[first..first + part.len()]);
            // The slots hold copies of the old contributions, so these may change at once.
            part.contribute(contributions);
        });
        blocks
    }
}

/// The bins that a run takes by itself from a database; `None`: it takes another way, or the graph is too large.
pub(super) fn stored_form(graph: &impl Graph) -> Option<StoredFormKey> {
    let has_few_partitions = graph.vertex_bound() <= MAX_PARTITIONS << MAX_PARTITION_BITS;
    let key = StoredFormKey { form: StoredForm::Bins, parameter: MAX_PARTITION_BITS.into() };
    (has_few_partitions && !super::direct::fits_cache::<f64>(graph.vertex_bound())).then_some(key)
}

/// The first vertex of the table that contains a vertex.
fn table_start(vertex: usize) -> usize {
    vertex & !(TABLE_LEN - 1)
}

/// Bytes of a partition beside its edges: its row, and the work items of a round.
const PARTITION_BYTES: u64 = 512;

/// The memory budget of rows and sorters.
struct BinBudget {
    most: u64,
    held: AtomicU64,
    is_too_small: AtomicBool,
}

impl BinBudget {
    fn new(most: u64) -> Self {
        Self { most, held: AtomicU64::new(0), is_too_small: AtomicBool::new(false) }
    }

    /// Reserves `num_bytes`. Returns whether all reservations fit.
    fn take(&self, num_bytes: u64) -> bool {
        // Relaxed: no other data depends on the sum.
        let held = self.held.fetch_add(num_bytes, Ordering::Relaxed) + num_bytes;
        if held > self.most {
            self.is_too_small.store(true, Ordering::Relaxed);
        }
        // One failed reservation stops all workers: the bins will not be used.
        !self.is_too_small()
    }

    fn give_back(&self, num_bytes: u64) {
        self.held.fetch_sub(num_bytes, Ordering::Relaxed);
    }

    fn is_too_small(&self) -> bool {
        self.is_too_small.load(Ordering::Relaxed)
    }
}

/// Sorts the edges of one source partition at a time by target partition.
struct BinSorter<'a> {
    bits: u32,
    /// Once the room is too small, the sorter only counts edges: the error reports the needed bytes.
    room: &'a BinBudget,
    cells: Vec<BinCell>,
    /// The places of a stretch of a list. Bytes after a run are copied too, and overwritten later.
    places: [u16; STRETCH + COPY],
    /// The start of each run of one target partition in `places`, then the end of the last.
    run_starts: [u16; STRETCH + 1],
}

/// Entries of a list that are handled together. A run that crosses this border gets a second slot.
const STRETCH: usize = 256;

/// Entries of one copy of fixed size: most runs take one copy.
const COPY: usize = 16;

/// A cell under construction. The vectors keep the length that earlier rows needed.
#[derive(Clone, Default)]
struct BinCell {
    targets: Vec<u16>,
    num_targets: usize,
    sources: Vec<u16>,
    num_sources: usize,
    /// The bytes that both vectors would need for the largest row yet.
    most_bytes: u64,
}

impl<'a> BinSorter<'a> {
    fn new(num_partitions: usize, bits: u32, room: &'a BinBudget) -> Self {
        room.take(Self::least_bytes(num_partitions));
        let cells = vec![BinCell::default(); num_partitions];
        Self { bits, room, cells, places: [0; STRETCH + COPY], run_starts: [0; STRETCH + 1] }
    }

    fn least_bytes(num_partitions: usize) -> u64 {
        (size_of::<Mutex<Self>>() + num_partitions * size_of::<BinCell>()) as u64
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
        // The second pass only counts, so that the error can report the needed bytes.
        if room.is_too_small() {
            self.clear();
            for_each_out_list(graph, vertices, |_, list| self.for_each_run(list, |cell, _, len| cell.count(len)));
        }
        self.cells.iter_mut().for_each(|cell| cell.most_bytes = cell.most_bytes.max(cell.wanted_bytes()));
    }

    fn clear(&mut self) {
        self.cells.iter_mut().for_each(|cell| (cell.num_targets, cell.num_sources) = (0, 0));
    }

    /// For each run of one target partition, calls `body` with the cell, the places from the run's start on, and its
    /// length.
    #[inline]
    fn for_each_run(&mut self, list: &[VertexId], mut body: impl FnMut(&mut BinCell, &[u16], usize)) {
        for stretch in list.chunks(STRETCH) {
            for (place, &target) in self.places.iter_mut().zip(stretch) {
                *place = (target as usize % TABLE_LEN) as u16;
            }
            let num_runs = self.find_runs(stretch);
            for run in self.run_starts[..=num_runs].windows(2) {
                let (start, end) = (usize::from(run[0]), usize::from(run[1]));
                let partition = stretch[start] as usize >> self.bits;
                // Targets are below the bound, so their cell exists.
                let Some(cell) = self.cells.get_mut(partition) else { return };
                body(cell, &self.places[start..], end - start);
            }
        }
    }

    /// Finds the runs of entries in one partition, without a branch that depends on the entries.
    #[inline]
    fn find_runs(&mut self, stretch: &[VertexId]) -> usize {
        let mut num_runs = 0;
        let place_mask = (1 << self.bits) - 1;
        // An id in another partition than the first entry.
        let mut last = !stretch[0];
        for (i, &target) in stretch.iter().enumerate() {
            // The next entry overwrites this unless a run begins here.
            self.run_starts[num_runs] = i as u16;
            num_runs += usize::from((target ^ last) > place_mask);
            last = target;
        }
        self.run_starts[num_runs] = stretch.len() as u16;
        num_runs
    }

    fn totals(&self) -> (usize, usize) {
        let sum = |size: fn(&BinCell) -> usize| self.cells.iter().map(size).sum();
        (sum(|cell| cell.num_targets), sum(|cell| cell.num_sources))
    }

    fn to_row<T: Score>(&self, num_targets: usize, num_updates: usize) -> BinRow<T> {
        let mut row = BinRow {
            // Reserved exactly, as `num_bytes` counts them.
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

impl<T> BinRow<T> {
    fn end(&self) -> CellStart {
        CellStart { target: self.targets.len() as u32, update: self.sources.len() as u32 }
    }
}

impl BinCell {
    /// Adds a slot with `len` edges, if the room suffices. Their places come first in `places`.
    #[inline]
    fn add(&mut self, source: VertexId, places: &[u16], len: usize, room: &BinBudget) {
        if self.num_sources == self.sources.len() && !grow(&mut self.sources, room) {
            return;
        }
        self.sources[self.num_sources] = (source as usize % TABLE_LEN) as u16;
        self.num_sources += 1;
        // The last copy may write beyond the run.
        while self.num_targets + len + COPY > self.targets.len() {
            if !grow(&mut self.targets, room) {
                return;
            }
        }
        let slots = &mut self.targets[self.num_targets..];
        // Copies of a fixed size need no loop over the entries.
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

    /// The bytes of vectors that grew to the current entries.
    fn wanted_bytes(&self) -> u64 {
        let grown = |len: usize| if len == 0 { 0 } else { len.next_power_of_two().max(LEAST_LEN) };
        let targets = if self.num_targets == 0 { 0 } else { grown(self.num_targets + COPY) };
        ((grown(self.num_sources) + targets) * size_of::<u16>()) as u64
    }
}

/// The initial length of a cell's vectors.
const LEAST_LEN: usize = 256;

/// Doubles a vector, if the room suffices for old and new one together.
#[cold]
fn grow(entries: &mut Vec<u16>, room: &BinBudget) -> bool {
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

/// The most bytes of sorters for all rows, for any distribution of rows among them.
fn most_bytes(sorters: Vec<Mutex<BinSorter<'_>>>) -> u64 {
    let num_sorters = sorters.len() as u64;
    let sorters = sorters.into_iter().map(Mutex::into_inner);
    let largest = sorters.map(|sorter| sorter.cells.iter().map(|cell| cell.most_bytes).collect::<Vec<_>>());
    let cells =
        largest.reduce(|one, other| one.iter().zip(&other).map(|(&a, &b)| a.max(b)).collect()).unwrap_or_default();
    // During growth, the old and the new vector are both alive.
    let growing = cells.iter().max().copied().unwrap_or(0);
    num_sorters * (BinSorter::least_bytes(cells.len()) + cells.iter().sum::<u64>() + growing)
}
