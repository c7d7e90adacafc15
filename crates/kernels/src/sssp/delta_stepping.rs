//! Delta-stepping with separate buckets for each worker.
//!
//! Nearly all time is waiting for memory: the place of a list, the list, and the cell of each target. So a worker
//! prefetches the lists of the next vertices. On a graph whose cells do not stay in the cache, it does not relax edges
//! at once: it collects edges in a batch, prefetches their cells, and processes the batch a little later. The batch
//! leaves out settled targets, whose bucket lies below the current one; a bitmap in the cache tells them.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::AtomicBitmap;
use anden_base::simd::prefetch;
use anden_graph::{Direction, Parts, Weight, WeightType, WeightedEdges};
use parking_lot::Mutex;

use super::buckets::{BucketWidth, DistanceBuckets};
use super::cells::{DistanceCell, distance_of, extended, marked};
use super::{SsspParams, WeightStatistics, scan_weights};
use crate::edge_map::{FAR, announce, announce_first, beside};
use crate::{Context, Result};

/// The number of bucket entries that a worker takes at a time.
const GRAIN: usize = 64;

/// A worker continues with its own part of the lowest bucket while that is smaller than this (GraphIt).
const FUSION_LIMIT: usize = 1000;

/// On a disk, buckets are this many times as wide, so a round reads more neighboring lists. Widths of 8, 64 and 1,024
/// all beat 1; see docs/decisions/0025.
const FEWER_ROUNDS: f64 = 64.0;

/// Distance, in lists, of announcements to the prefetcher.
const LISTS_AHEAD: usize = 256;

/// The number of edges that wait in a batch for the cells of their targets.
const BATCH: usize = 256;

/// The number of edges added to a batch at once.
const PIECE: usize = 128;

/// One worker alone processes a small bucket with fewer edges than this.
const SERIAL_EDGES: usize = 4096;

/// As [`SERIAL_EDGES`], for larger buckets, whose edges are estimated by the mean degree. 1,536 was the best of 768,
/// 1,536 and 4,096 on a road network and a grid.
const SMALL_EDGES: usize = 1536;

/// Edges are relaxed without a batch if the cells take at most this many bytes: they stay in the cache that the cores
/// share. On Kronecker graphs this takes 0.92 of the time with 4 MB of cells, and 1.3 times with 16 MB.
const CACHED_BYTES: usize = 4 << 20;

/// Bytes for each vertex: its cell and its distance, or its cell and bucket entries.
pub(super) const HELD_BYTES: u64 = 24;

/// Bytes of the workers at any size of graph.
pub(super) fn worker_bytes(ctx: &Context<'_>) -> u64 {
    ctx.pool.num_threads() as u64 * (1 << 16)
}

/// Bytes of a bucket entry: a list has room for twice its length, and for three times during growth.
const ENTRY_BYTES: usize = 12;

/// If 64-bit weights sum to this or more, a distance may not fit its cell. Half of the true limit, because the sum is
/// rounded.
const MOST_IN_ALL: f64 = (1_u64 << 62) as f64;

/// The distances; `None` if the buckets exceed the budget or a distance may not fit its cell.
pub(super) fn distances<W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &SsspParams,
) -> Result<Option<Vec<W::Distance>>> {
    let is_weighted = graph.weight_type().is_some();
    let statistics = match params.weights {
        Some(statistics) => statistics,
        None if is_weighted => scan_weights(ctx, graph)?,
        None => WeightStatistics::of_ones(graph),
    };
    // No path exceeds the sum of all edges. A cell gives one bit of the distance to the mark.
    if W::TYPE == WeightType::I64 && statistics.mean * graph.num_arcs() as f64 >= MOST_IN_ALL {
        return Ok(None);
    }
    let is_integer = matches!(W::TYPE, WeightType::U32 | WeightType::I64);
    let rounds = if ctx.reads_from_disk(graph) { FEWER_ROUNDS } else { 1.0 };
    let delta = params.delta.unwrap_or_else(|| statistics.delta(is_integer) * rounds);
    let width = BucketWidth::new(delta, is_integer);
    let mut outcome = SteppingOutcome::TooFar;
    // 32-bit cells first: they take half the memory. 64-bit cells follow only if a distance does not fit.
    if W::TYPE == WeightType::U32 {
        outcome = step::<AtomicU32, W, G>(ctx, graph, params.source, width, CACHED_BYTES)?;
    }
    if matches!(outcome, SteppingOutcome::TooFar) {
        outcome = step::<AtomicU64, W, G>(ctx, graph, params.source, width, CACHED_BYTES)?;
    }
    Ok(match outcome {
        SteppingOutcome::Found(distances) => Some(distances),
        SteppingOutcome::TooFar | SteppingOutcome::TooMuch => None,
    })
}

/// The outcome of a search.
enum SteppingOutcome<T> {
    Found(T),
    /// A distance did not fit its cell.
    TooFar,
    /// The buckets took too much memory.
    TooMuch,
}

/// The state that all rounds share.
struct Stepping<'a, C, W, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    is_weighted: bool,
    width: BucketWidth,
    cells: &'a [C],
    /// Vertices with final distances.
    settled: AtomicBitmap,
    /// A distance did not fit its cell.
    overflowed: AtomicBool,
    /// The most entries of one worker.
    max_entries: usize,
    /// A worker reached [`max_entries`](Self::max_entries).
    is_full: AtomicBool,
    ones: [W; GRAIN],
    mean_degree: usize,
    /// Whether the cells are few enough to stay in the cache.
    are_cells_cached: bool,
}

/// The state of one worker.
struct SteppingWorker {
    buckets: DistanceBuckets,
    /// Targets, each with its possible new cell, up to `batch_len`. The length is a power of two, with room for another
    /// piece after a nearly full batch.
    batch: Box<[(VertexId, u64); 2 * BATCH]>,
    batch_len: usize,
    /// Vertices whose edges were relaxed in `bucket`.
    taken: Vec<VertexId>,
    bucket: u64,
    /// The number of entries that fit in the budget before the next count.
    room: usize,
}

impl SteppingWorker {
    fn new(room: usize) -> Self {
        let batch = Box::new([(0, 0); 2 * BATCH]);
        Self { buckets: DistanceBuckets::new(), batch, batch_len: 0, taken: Vec::new(), bucket: 0, room }
    }
}

/// The search. Cells of at most `cached_bytes` count as cached.
fn step<C: DistanceCell, W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    width: BucketWidth,
    cached_bytes: usize,
) -> Result<SteppingOutcome<Vec<W::Distance>>> {
    let mut words = C::unreached::<W::Distance>(ctx.pool, graph.vertex_bound());
    let words_bytes = size_of_val(&words[..]);
    let stepping = Stepping::<C, W, G> {
        ctx,
        graph,
        is_weighted: graph.weight_type().is_some(),
        width,
        cells: C::share(&mut words),
        settled: AtomicBitmap::new(graph.vertex_bound()),
        overflowed: AtomicBool::new(false),
        max_entries: max_entries(ctx, graph.num_arcs(), words_bytes),
        is_full: AtomicBool::new(false),
        ones: [W::ONE; GRAIN],
        mean_degree: (graph.num_arcs() / graph.num_vertices().max(1) as u64) as usize + 1,
        are_cells_cached: words_bytes <= cached_bytes,
    };
    stepping.cells[source as usize].lower(marked(W::Distance::default()));
    let outcome = stepping.run(source)?;
    Ok(match outcome {
        SteppingOutcome::Found(()) => SteppingOutcome::Found(C::into_distances(ctx.pool, words)),
        SteppingOutcome::TooFar => SteppingOutcome::TooFar,
        SteppingOutcome::TooMuch => SteppingOutcome::TooMuch,
    })
}

/// The number of entries for each worker that fit in the budget beside the cells.
fn max_entries(ctx: &Context<'_>, num_arcs: u64, cells_bytes: usize) -> usize {
    // The bitmap of settled vertices has 1/32 of the size of 32-bit cells.
    let held = (cells_bytes + cells_bytes / 32) as u64 + worker_bytes(ctx);
    // Few runs hold an entry for each arc at once.
    ctx.make_room(held + ENTRY_BYTES as u64 * num_arcs);
    let num_bytes = ctx.memory.map_or(u64::MAX, |memory| memory.saturating_sub(held));
    num_bytes as usize / (ENTRY_BYTES * ctx.pool.num_threads())
}

impl<C: DistanceCell, W: Weight, G: WeightedEdges> Stepping<'_, C, W, G> {
    fn run(&self, source: VertexId) -> Result<SteppingOutcome<()>> {
        let pool = self.ctx.pool;
        let mut workers: Vec<_> =
            (0..pool.num_threads()).map(|_| Mutex::new(SteppingWorker::new(self.max_entries))).collect();
        let (mut current, mut entries) = (0, vec![source]);
        while !entries.is_empty() {
            self.ctx.progress.advance(entries.len() as u64);
            self.work_off(&workers, current, &mut entries);
            // Cancelled workers leave entries behind, so no later bucket may run.
            self.ctx.progress.check()?;
            if self.overflowed.load(Ordering::Relaxed) {
                return Ok(SteppingOutcome::TooFar);
            }
            if self.is_full.load(Ordering::Relaxed) {
                return Ok(SteppingOutcome::TooMuch);
            }
            (current, entries) = self.next_bucket(&mut workers, current, entries);
        }
        Ok(SteppingOutcome::Found(()))
    }

    /// Relaxes the edges of all entries of the lowest bucket; on a disk, in the order of the lists.
    fn work_off(&self, workers: &[Mutex<SteppingWorker>], current: u64, entries: &mut Vec<VertexId>) {
        let is_in_order = self.ctx.reads_from_disk(self.graph);
        if is_in_order {
            // Each list is read once, in stored order.
            entries.retain(|&vertex| self.bucket_of(vertex) == Some(current));
            entries.sort_unstable();
            entries.dedup();
            self.announce(entries, 0..LISTS_AHEAD);
        }
        let entries = &entries[..];
        let is_small = self.is_small(entries);
        // Several pieces for each worker even out different degrees.
        let grain = if is_small { entries.len() } else { (entries.len() / (workers.len() * 8)).clamp(1, GRAIN) };
        let next = AtomicUsize::new(0);
        let work = |worker: usize| {
            let worker = &mut *workers[worker].lock();
            // First, because `taken` may still hold vertices of a lower bucket.
            self.settle(current, worker);
            loop {
                let start = next.fetch_add(grain, Ordering::Relaxed);
                if start >= entries.len() || self.ctx.progress.is_cancelled() {
                    break;
                }
                if is_in_order {
                    self.announce(entries, start + LISTS_AHEAD..start + LISTS_AHEAD + grain);
                }
                self.relax(&entries[start..entries.len().min(start + grain)], worker);
            }
            // Fused entries would be read out of stored order.
            if !is_in_order {
                self.fuse(current, worker);
            }
        };
        if is_small { work(0) } else { self.ctx.pool.on_each_worker(work) }
    }

    /// Announces the lists of a part of the entries, clipped to their number.
    fn announce(&self, entries: &[VertexId], part: Range<usize>) {
        let part = &entries[part.start.min(entries.len())..part.end.min(entries.len())];
        let parts = if self.is_weighted { Parts::Weighted } else { Parts::Targets };
        self.graph.will_need(Direction::Out, parts, part);
    }

    /// Whether a bucket has too few edges to make waking the other workers worthwhile.
    fn is_small(&self, entries: &[VertexId]) -> bool {
        let degree = |&v: &VertexId| self.graph.degree(Direction::Out, v);
        match entries.len() <= GRAIN {
            true => entries.iter().map(degree).sum::<usize>() < SERIAL_EDGES,
            // Looking up more degrees would take the time of the work itself.
            false => entries.len() * self.mean_degree < SMALL_EDGES,
        }
    }

    /// Marks the vertices that the worker took in lower buckets: their distances are final.
    fn settle(&self, current: u64, worker: &mut SteppingWorker) {
        if worker.bucket != current {
            worker.bucket = current;
            for vertex in worker.taken.drain(..) {
                self.settled.set(vertex as usize);
            }
        }
    }

    /// Continues with the worker's own part of the bucket while that is small, which saves rounds.
    fn fuse(&self, current: u64, worker: &mut SteppingWorker) {
        let mut entries = Vec::new();
        while (1..FUSION_LIMIT).contains(&worker.buckets.len_of(current)) {
            entries.clear();
            // The swap hands the emptied memory back to the bucket.
            worker.buckets.swap(current, &mut entries);
            self.relax(&entries, worker);
        }
    }

    /// Relaxes the edges of the entries that are still marked.
    fn relax(&self, entries: &[VertexId], worker: &mut SteppingWorker) {
        announce_first(self.graph, Parts::Weighted, entries);
        for (i, &vertex) in entries.iter().enumerate() {
            announce(self.graph, Parts::Weighted, entries, i);
            if let Some(&ahead) = entries.get(i + FAR) {
                prefetch(self.cells, ahead as usize);
            }
            // Without a mark, the present distance of the vertex was relaxed already.
            if let Some(cell) = self.cells[vertex as usize].take() {
                // Relaxing at once reads the cell itself, not the bitmap of settled vertices.
                if !self.are_cells_cached {
                    worker.taken.push(vertex);
                }
                self.relax_list(vertex, distance_of::<W::Distance>(cell), worker);
            }
        }
        // Each entry may have entered `taken`, which also counts.
        self.reserve(worker.batch_len + entries.len(), worker);
        self.work_off_batch(worker);
    }

    #[inline(always)]
    fn relax_list(&self, vertex: VertexId, distance: W::Distance, worker: &mut SteppingWorker) {
        // Nearly all lists come as one slice, and this path makes no call for each fragment.
        if self.is_weighted
            && let Some((targets, weights)) = self.graph.weighted_list::<W>(Direction::Out, vertex)
        {
            return self.put_pieces_in_batch(distance, targets, weights, worker);
        }
        let mut body = |targets: &[VertexId], weights: &[W]| {
            self.put_pieces_in_batch(distance, targets, weights, worker);
            ControlFlow::Continue(())
        };
        let _ = match self.is_weighted {
            true => self.graph.for_each_weighted_fragment::<W>(Direction::Out, vertex, body),
            false => self.graph.for_each_fragment(Direction::Out, vertex, |list| beside(list, &self.ones, &mut body)),
        };
    }

    #[inline(always)]
    fn put_pieces_in_batch(
        &self,
        distance: W::Distance,
        targets: &[VertexId],
        weights: &[W],
        worker: &mut SteppingWorker,
    ) {
        if self.are_cells_cached {
            return self.relax_at_once(distance, targets, weights, worker);
        }
        for (targets, weights) in targets.chunks(PIECE).zip(weights.chunks(PIECE)) {
            self.put_in_batch(distance, targets, weights, worker);
        }
    }

    /// Relaxes edges whose cells are in the cache: a batch would take longer than the cells.
    #[inline(always)]
    fn relax_at_once(&self, distance: W::Distance, targets: &[VertexId], weights: &[W], worker: &mut SteppingWorker) {
        self.reserve(targets.len(), worker);
        // Without room, the search will fail, and must not take more memory.
        if worker.room == 0 && self.is_full.load(Ordering::Relaxed) {
            return;
        }
        let mut largest = 0;
        for (&target, &weight) in targets.iter().zip(weights) {
            let new = extended(distance, weight);
            largest |= new;
            self.lower(target, new, worker);
        }
        self.note_largest(largest);
    }

    /// Lowers the cell of a target, which then waits in its bucket.
    #[inline(always)]
    fn lower(&self, target: VertexId, new: u64, worker: &mut SteppingWorker) {
        let cell = &self.cells[target as usize];
        // The plain load filters most edges: few improve a distance.
        if new < cell.load() && cell.lower(new) {
            worker.buckets.push(self.width.bucket(distance_of::<W::Distance>(new)), target);
        }
    }

    /// Notes a distance that does not fit its cell.
    #[inline(always)]
    fn note_largest(&self, largest: u64) {
        // A bitwise OR is at least its largest part. A false alarm costs a search with wide cells, but no correctness.
        if C::IS_NARROW && largest >= C::LIMIT {
            self.overflowed.store(true, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn put_in_batch(&self, distance: W::Distance, targets: &[VertexId], weights: &[W], worker: &mut SteppingWorker) {
        let settled = self.settled.words();
        let (mut largest, mut len) = (0, worker.batch_len);
        let first = len;
        for (&target, &weight) in targets.iter().zip(weights) {
            let new = extended(distance, weight);
            largest |= new;
            // Half of the targets are settled, in an unpredictable pattern. So each target is written, and the next one
            // overwrites a settled one, without a branch.
            // The remainder is a mask, so the write needs no bounds check.
            worker.batch[len % (2 * BATCH)] = (target, new);
            let word = settled[target as usize / 64].load(Ordering::Relaxed);
            len += (!word >> (target % 64) & 1) as usize;
        }
        self.note_largest(largest);
        worker.batch[first..len].iter().for_each(|&(target, _)| prefetch(self.cells, target as usize));
        worker.batch_len = len;
        if len >= BATCH {
            self.reserve(len, worker);
            self.work_off_batch(worker);
        }
    }

    /// Reserves room for possible entries. The next count returns the unused part.
    #[inline(always)]
    fn reserve(&self, num_entries: usize, worker: &mut SteppingWorker) {
        if num_entries > worker.room {
            self.count_entries(worker);
        }
        worker.room = worker.room.saturating_sub(num_entries);
    }

    /// Counts the entries to find the remaining room. If none remains, this batch and all later ones are dropped: the
    /// search will fail, but takes no more memory.
    #[cold]
    fn count_entries(&self, worker: &mut SteppingWorker) {
        let left = self.max_entries.checked_sub(worker.buckets.num_entries() + worker.taken.len());
        match left {
            Some(left) if !self.is_full.load(Ordering::Relaxed) => worker.room = left,
            _ => {
                self.is_full.store(true, Ordering::Relaxed);
                worker.room = 0;
                worker.batch_len = 0;
            }
        }
    }

    fn work_off_batch(&self, worker: &mut SteppingWorker) {
        for place in 0..worker.batch_len {
            let (target, new) = worker.batch[place];
            self.lower(target, new, worker);
        }
        worker.batch_len = 0;
    }

    /// The lowest nonempty bucket and its entries; no entries after all work.
    fn next_bucket(
        &self,
        workers: &mut [Mutex<SteppingWorker>],
        current: u64,
        mut entries: Vec<VertexId>,
    ) -> (u64, Vec<VertexId>) {
        entries.clear();
        // No worker runs now, so no lock is taken.
        let mut all: Vec<_> = workers.iter_mut().map(|worker| &mut worker.get_mut().buckets).collect();
        let mut lowest = all.iter().filter_map(|buckets| buckets.lowest(current)).min();
        if lowest.is_none() {
            lowest = all.iter_mut().filter_map(|buckets| buckets.lowest_far(|v| self.bucket_of(v))).min();
            if let Some(first) = lowest {
                all.iter_mut().for_each(|buckets| buckets.advance(first, |v| self.bucket_of(v)));
            }
        }
        let Some(lowest) = lowest else { return (current, entries) };
        for buckets in all {
            let list = buckets.take(lowest);
            // The first list is taken over without a copy.
            if entries.is_empty() { entries = list } else { entries.extend_from_slice(&list) }
        }
        (lowest, entries)
    }

    /// The bucket in which a vertex waits, if it does.
    fn bucket_of(&self, vertex: VertexId) -> Option<u64> {
        let cell = self.cells[vertex as usize].load();
        (cell & 1 == 1).then(|| self.width.bucket(distance_of::<W::Distance>(cell)))
    }
}

#[cfg(test)]
mod tests {
    use anden_base::parallel::Pool;
    use anden_graph::Graph;

    use super::*;

    #[test]
    fn batches_give_equal_distances() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let ctx = Context::new(&pool);
            anden_testkit::for_each_graph(|name, graph| {
                if graph.vertex_bound() == 0 {
                    return;
                }
                for delta in [1.0, 100.0] {
                    let with = |cached_bytes| {
                        let width = BucketWidth::new(delta, true);
                        match step::<AtomicU32, u32, _>(&ctx, graph, 0, width, cached_bytes).unwrap() {
                            SteppingOutcome::Found(distances) => distances,
                            _ => panic!("{name}: small distances fit"),
                        }
                    };
                    assert_eq!(with(0), with(usize::MAX), "{name}, width {delta}, {threads} threads");
                }
            });
        }
    }

    #[test]
    fn full_buckets_end_both_ways() {
        let pool = Pool::new(1).unwrap();
        let graph = anden_testkit::graphs().into_iter().find(|graph| graph.name == "star out").unwrap();
        let graph = graph.build_weighted::<u32>().unwrap();
        // Cells and workers fit, the entries of the star do not.
        let cells_bytes = 4 * graph.vertex_bound();
        let memory = (cells_bytes + cells_bytes / 32) as u64 + worker_bytes(&Context::new(&pool));
        let ctx = Context { memory: Some(memory), ..Context::new(&pool) };
        for cached_bytes in [0, usize::MAX] {
            let outcome = step::<AtomicU32, u32, _>(&ctx, &graph, 0, BucketWidth::new(1.0, true), cached_bytes);
            assert!(matches!(outcome.unwrap(), SteppingOutcome::TooMuch), "{cached_bytes}");
        }
    }
}
