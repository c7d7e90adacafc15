//! Bins: the edges laid out by partition of source and partition of target.
//!
//! For each pair of a source partition and a target partition there is a *cell* of three parallel
//! runs. `sources` and `updates` have one entry for each source that has an edge to the target
//! partition: its place in its partition, and the slot that carries its contribution. `targets` has
//! one entry an edge: the place of the target in its partition, in the low 15 bits, and in the
//! highest bit whether the edge is the first of the next slot. Cells lie by source partition, then
//! by target partition; the slots of each begin at a multiple of [`LINE`] entries, so that whole
//! lines are written past the cache.

use std::ops::Range;
use std::sync::Mutex;

use base::VertexId;
use base::memory::zeroed_huge;
use graph::Graph;

use super::direct::for_each_out_list;
use super::score::{Block, Round, Score, State};
use crate::{Context, Error, Result};

/// The largest partitions: 15 bits for the place of a target, beside the flag.
pub const MAX_PARTITION_BITS: u32 = 15;

/// Values of a partition, as an array whose length makes 15-bit places safe without a test.
pub(super) const TABLE_LEN: usize = 1 << MAX_PARTITION_BITS;

/// The most partitions: the cells of a partition's edges are written at the same time, and their
/// table grows with the square (4,096: 134 MB, graphs of 134 million vertices).
const MAX_PARTITIONS: usize = 1 << 12;

/// The slots of a cell begin at a multiple of this.
const LINE: u64 = 16;

const FLAG: u16 = 1 << 15;
const PLACE: u16 = FLAG - 1;

/// Where the cells of the bins will lie.
pub(super) struct Plan {
    bits: u32,
    num_partitions: usize,
    /// For each source partition, where in its share of the targets each cell begins; one more at
    /// its end.
    target_starts: Vec<u32>,
    /// The same for slots.
    update_starts: Vec<u32>,
}

impl Plan {
    /// Counts the edges and slots of every cell.
    pub(super) fn new(ctx: &Context<'_>, graph: &impl Graph, bits: u32) -> Result<Self> {
        let bound = graph.vertex_bound();
        let num_partitions = bound.div_ceil(1 << bits);
        if num_partitions > MAX_PARTITIONS {
            let what = format!("pagerank by bins is for up to {} vertices: use pull", MAX_PARTITIONS << bits);
            return Err(Error::Parameter(what));
        }
        let row = num_partitions + 1;
        let mut plan = Self {
            bits,
            num_partitions,
            target_starts: vec![0; num_partitions * row],
            update_starts: vec![0; num_partitions * row],
        };
        let rows = plan.target_starts.chunks_mut(row).zip(plan.update_starts.chunks_mut(row)).enumerate();
        let too_many = Mutex::new(false);
        ctx.pool.for_each_item(rows.collect(), |_, (partition, (targets, updates))| {
            if ctx.progress.is_cancelled() {
                return;
            }
            count(graph, partition, bits, targets, updates);
            if !(starts(targets, 1) && starts(updates, LINE)) {
                *too_many.lock().unwrap_or_else(|e| e.into_inner()) = true;
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        if too_many.into_inner().unwrap_or_else(|e| e.into_inner()) {
            return Err(Error::Parameter("a partition has too many edges for bins: use pull".into()));
        }
        Ok(plan)
    }

    fn shares(&self, starts: &[u32]) -> Vec<usize> {
        let row = self.num_partitions + 1;
        starts.chunks(row).map(|row| row[self.num_partitions] as usize).collect()
    }

    /// The bytes of the bins, this plan included.
    pub(super) fn num_bytes<T>(&self) -> u64 {
        let sum = |starts: &[u32]| self.shares(starts).iter().sum::<usize>();
        let table = 2 * size_of_val(&self.target_starts[..]);
        let slots = sum(&self.update_starts) * (size_of::<u16>() + size_of::<T>());
        (table + sum(&self.target_starts) * size_of::<u16>() + slots) as u64
    }
}

/// Counts the edges and slots from one source partition to each target partition.
fn count(graph: &impl Graph, partition: usize, bits: u32, targets: &mut [u32], updates: &mut [u32]) {
    let first = partition << bits;
    let vertices = first as VertexId..graph.vertex_bound().min(first + (1 << bits)) as VertexId;
    for_each_out_list(graph, vertices, |_, list| {
        let mut last = usize::MAX;
        for &target in list {
            let cell = target as usize >> bits;
            targets[cell] = targets[cell].saturating_add(1);
            updates[cell] += u32::from(cell != last);
            last = cell;
        }
    });
}

/// Turns the sizes of cells into their starts, each a multiple of `align`; false if they exceed 32
/// bits.
fn starts(cells: &mut [u32], align: u64) -> bool {
    let mut next = 0_u64;
    for cell in cells {
        let size = u64::from(*cell);
        *cell = next as u32;
        next = (next + size).next_multiple_of(align);
    }
    next <= u64::from(u32::MAX)
}

/// The edges in cells, and a slot for each source of a cell.
pub(super) struct Bins<T> {
    plan: Plan,
    target_shares: Vec<usize>,
    update_shares: Vec<usize>,
    targets: Vec<u16>,
    sources: Vec<u16>,
    updates: Vec<T>,
    /// For each worker, the sums of the partition at hand.
    tables: Vec<Mutex<Vec<T>>>,
}

impl<T: Score> Bins<T> {
    /// Lays the edges out.
    pub(super) fn build(ctx: &Context<'_>, graph: &impl Graph, plan: Plan) -> Self {
        let target_shares = plan.shares(&plan.target_starts);
        let update_shares = plan.shares(&plan.update_starts);
        let mut targets = zeroed_huge(target_shares.iter().sum());
        let mut sources = zeroed_huge(update_shares.iter().sum());
        let items = split(&mut targets, &target_shares).into_iter().zip(split(&mut sources, &update_shares));
        ctx.pool.for_each_item(items.enumerate().collect(), |_, (partition, (targets, sources))| {
            if !ctx.progress.is_cancelled() {
                fill(graph, &plan, partition, targets, sources);
            }
        });
        let updates = T::zeros(sources.len());
        let tables = (0..ctx.pool.num_threads()).map(|_| Mutex::new(T::zeros(TABLE_LEN))).collect();
        Self { plan, target_shares, update_shares, targets, sources, updates, tables }
    }

    pub(super) fn num_bytes(&self) -> u64 {
        self.plan.num_bytes::<T>()
    }

    /// One round: contributions to slots, then slots to sums and scores.
    pub(super) fn round(&mut self, ctx: &Context<'_>, state: &mut State<T>, round: &Round<T>) -> Vec<Block> {
        let bits = self.plan.bits;
        let (_, contributions) = state.parts(1 << bits);
        let contributions = &*contributions;
        let sources = split_shared(&self.sources, &self.update_shares);
        let items = sources.into_iter().zip(split(&mut self.updates, &self.update_shares)).enumerate();
        ctx.pool.for_each_item(items.collect(), |_, (partition, (sources, updates))| {
            if !ctx.progress.is_cancelled() {
                fill_slots(&contributions[partition << bits..], sources, updates);
            }
        });

        let bins = &*self;
        let (parts, contributions) = state.parts(1 << bits);
        let mut blocks = vec![Block::default(); parts.len()];
        let target_shares = split_shared(&bins.targets, &bins.target_shares);
        let update_shares = split_shared(&bins.updates, &bins.update_shares);
        let items = parts.into_iter().zip(contributions.chunks_mut(1 << bits)).zip(&mut blocks).enumerate();
        ctx.pool.for_each_item(items.collect(), |worker, (partition, ((mut part, contributions), block))| {
            if ctx.progress.is_cancelled() {
                return;
            }
            let mut table = bins.tables[worker].lock().unwrap_or_else(|e| e.into_inner());
            table.fill(T::default());
            let Some(sums) = table.first_chunk_mut::<TABLE_LEN>() else { return };
            for (from, (targets, updates)) in target_shares.iter().zip(&update_shares).enumerate() {
                let at = from * (bins.plan.num_partitions + 1) + partition;
                let targets = &targets[range(&bins.plan.target_starts[at..])];
                let updates = &updates[range(&bins.plan.update_starts[at..])];
                add_cell(sums, targets, updates);
            }
            *block = part.rescore(round, &sums[..part.len()]);
            part.contribute(contributions);
        });
        blocks
    }
}

/// From the first start to the second.
fn range(starts: &[u32]) -> Range<usize> {
    starts[0] as usize..starts[1] as usize
}

/// Writes the edges of one source partition to its shares.
///
/// A graph that shows other edges than it showed to [`count`] is damaged; what does not fit is left
/// out, and the caller asks the graph.
fn fill(graph: &impl Graph, plan: &Plan, partition: usize, targets: &mut [u16], sources: &mut [u16]) {
    let row = plan.num_partitions + 1;
    let bits = plan.bits;
    let mut target_ends = plan.target_starts[partition * row..][..row].to_vec();
    let mut source_ends = plan.update_starts[partition * row..][..row].to_vec();
    let first = partition << bits;
    let place_mask = (1_u32 << bits) - 1;
    let vertices = first as VertexId..graph.vertex_bound().min(first + (1 << bits)) as VertexId;
    for_each_out_list(graph, vertices, |source, list| {
        let source = (source as usize - first) as u16;
        let mut last = usize::MAX;
        for &target in list {
            let cell = target as usize >> bits;
            let is_first = cell != last;
            last = cell;
            if let Some(slot) = targets.get_mut(target_ends[cell] as usize) {
                *slot = (target & place_mask) as u16 | if is_first { FLAG } else { 0 };
            }
            target_ends[cell] += 1;
            // Where the edge is not the first of its slot, this repeats what stands there already.
            source_ends[cell] += u32::from(is_first);
            if let Some(slot) = sources.get_mut(source_ends[cell] as usize - 1) {
                *slot = source;
            }
        }
    });
}

/// Copies the contribution of each source to its slot.
fn fill_slots<T: Score>(contributions: &[T], sources: &[u16], updates: &mut [T]) {
    let Some(contributions) = contributions.first_chunk::<TABLE_LEN>() else { return };
    for (&source, update) in sources.iter().zip(updates) {
        *update = contributions[(source & PLACE) as usize];
    }
}

/// Adds the slots of a cell up at its targets.
fn add_cell<T: Score>(sums: &mut [T; TABLE_LEN], targets: &[u16], updates: &[T]) {
    // One less than the slot in force, wrapping: the first edge of a cell moves on to slot 0.
    let mut slot = usize::MAX;
    for &target in targets {
        slot = slot.wrapping_add((target >> MAX_PARTITION_BITS) as usize);
        if let Some(&update) = updates.get(slot) {
            sums[(target & PLACE) as usize] += update;
        }
    }
}

/// Cuts `data` into pieces of the given lengths.
fn split<'a, T>(mut data: &'a mut [T], lens: &[usize]) -> Vec<&'a mut [T]> {
    let pieces = lens.iter().map(|&len| data.split_off_mut(..len).unwrap_or_default());
    pieces.collect()
}

/// Cuts `data` into pieces of the given lengths.
fn split_shared<'a, T>(mut data: &'a [T], lens: &[usize]) -> Vec<&'a [T]> {
    let pieces = lens.iter().map(|&len| data.split_off(..len).unwrap_or_default());
    pieces.collect()
}
