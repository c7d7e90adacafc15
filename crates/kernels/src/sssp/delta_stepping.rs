//! Delta-stepping with buckets of each worker's own.
//!
//! Nearly all the time goes into waiting for memory: the place of a vertex's list, the list, and the
//! cell of each target. So the lists of the next vertices are fetched ahead, and edges are not relaxed
//! at once: they are put in a batch, their cells are fetched, and the batch is worked off a little
//! later. Targets that are settled, because a lower bucket has been worked off since, are left out of
//! the batch; a bitmap that stays in cache tells them.

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use base::VertexId;
use base::bitmap::AtomicBitmap;
use base::simd::prefetch;
use graph::{InEdges, Parts, Side, Weight, WeightType, WeightedEdges};

use super::buckets::{Buckets, Width};
use super::cells::{Cell, distance_of, extended, marked};
use super::{SsspParams, WeightStatistics, scan_weights};
use crate::edge_map::{FAR, announce, announce_first, beside};
use crate::{Context, Result};

/// Entries of a bucket that a worker takes at a time.
const GRAIN: usize = 64;

/// A worker goes on with its own part of the lowest bucket while that is smaller than this (GraphIt).
const FUSION_LIMIT: usize = 1000;

/// Where lists come from a disk, buckets are so many times as wide: each then reads more of the lists that lie together.
/// Of 1, 8, 64 and 1,024 times (Kronecker graph, a third of it in memory: more than 40 s, 6.0, 4.5 and 3.8), all from 8
/// on do.
const FEWER_ROUNDS: f64 = 64.0;

/// How many lists ahead of the workers are announced, where somebody listens.
const LISTS_AHEAD: usize = 256;

/// Edges that a worker holds back until the cells of their targets have come.
const BATCH: usize = 256;

/// Edges that are put in a batch at once.
const PIECE: usize = 128;

/// Entries of small buckets are worked off by one worker if they have fewer edges than this.
const SERIAL_EDGES: usize = 4096;

/// The same for larger buckets, whose edges are known only by the mean degree. Of 768, 1,536 and 4,096
/// this one was the best on a road network and a grid.
const SMALL_EDGES: usize = 1536;

/// What is held for each vertex: its cell and its distance, or its cell and entries in buckets.
pub(super) const HELD_BYTES: u64 = 24;

/// What the workers hold however small the graph is.
pub(super) fn worker_bytes(ctx: &Context<'_>) -> u64 {
    ctx.pool.num_threads() as u64 * (1 << 16)
}

/// What an entry of a bucket takes: a list has room for up to twice its length, and while it grows, three
/// times.
const ENTRY_BYTES: usize = 12;

/// With weights of 64 bits that come to so much or more, a distance may not fit its cell; half of what does, because
/// the sum is rounded.
const MOST_IN_ALL: f64 = (1_u64 << 62) as f64;

/// The distances; nothing where the buckets take more memory than the budget allows, or distances may be too large.
pub(super) fn distances<W: Weight, G: InEdges + WeightedEdges>(
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
    // No path has a larger sum than all edges together. Cells mark a distance in one of its bits.
    if W::TYPE == WeightType::I64 && statistics.mean * graph.num_arcs() as f64 >= MOST_IN_ALL {
        return Ok(None);
    }
    let is_integer = matches!(W::TYPE, WeightType::U32 | WeightType::I64);
    let rounds = if ctx.reads_from_disk(graph) { FEWER_ROUNDS } else { 1.0 };
    let delta = params.delta.unwrap_or_else(|| statistics.delta(is_integer) * rounds);
    let width = Width::new(delta, is_integer);
    let mut outcome = Outcome::TooFar;
    if W::TYPE == WeightType::U32 {
        outcome = step::<AtomicU32, W, G>(ctx, graph, params.source, width)?;
    }
    if matches!(outcome, Outcome::TooFar) {
        outcome = step::<AtomicU64, W, G>(ctx, graph, params.source, width)?;
    }
    Ok(match outcome {
        Outcome::Found(distances) => Some(distances),
        Outcome::TooFar | Outcome::TooMuch => None,
    })
}

/// How a search ended.
enum Outcome<T> {
    Found(T),
    /// A distance did not fit its cell.
    TooFar,
    /// The buckets took too much memory.
    TooMuch,
}

/// The work of all rounds.
struct Stepping<'a, C, W, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    is_weighted: bool,
    width: Width,
    cells: &'a [C],
    /// Vertices whose distance no longer changes.
    settled: AtomicBitmap,
    /// A distance did not fit its cell.
    overflowed: AtomicBool,
    /// The most entries that a worker may hold.
    max_entries: usize,
    /// A worker came to that.
    is_full: AtomicBool,
    ones: [W; GRAIN],
    mean_degree: usize,
}

/// What one worker has of its own.
struct Worker {
    buckets: Buckets,
    /// Targets, each with the cell that it may get, up to the length below. A power of two, with room
    /// for a piece when the batch is all but full.
    batch: Box<[(VertexId, u64); 2 * BATCH]>,
    batch_len: usize,
    /// Vertices whose edges were relaxed in the bucket below.
    taken: Vec<VertexId>,
    bucket: u64,
    /// The entries that certainly fit in the budget before they are counted again.
    room: usize,
}

impl Worker {
    fn new(room: usize) -> Self {
        let batch = Box::new([(0, 0); 2 * BATCH]);
        Self { buckets: Buckets::new(), batch, batch_len: 0, taken: Vec::new(), bucket: 0, room }
    }
}

fn step<C: Cell, W: Weight, G: InEdges + WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    width: Width,
) -> Result<Outcome<Vec<W::Distance>>> {
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
        max_entries: max_entries(ctx, words_bytes),
        is_full: AtomicBool::new(false),
        ones: [W::ONE; GRAIN],
        mean_degree: (graph.num_arcs() / graph.num_vertices().max(1) as u64) as usize + 1,
    };
    stepping.cells[source as usize].lower(marked(W::Distance::default()));
    let outcome = stepping.run(source)?;
    Ok(match outcome {
        Outcome::Found(()) => Outcome::Found(C::into_distances(ctx.pool, words)),
        Outcome::TooFar => Outcome::TooFar,
        Outcome::TooMuch => Outcome::TooMuch,
    })
}

/// The entries that the budget leaves room for beside the cells, for each worker.
fn max_entries(ctx: &Context<'_>, cells_bytes: usize) -> usize {
    let held = (cells_bytes + cells_bytes / 32) as u64 + worker_bytes(ctx);
    let num_bytes = ctx.memory.map_or(u64::MAX, |memory| memory.saturating_sub(held));
    num_bytes as usize / (ENTRY_BYTES * ctx.pool.num_threads())
}

impl<C: Cell, W: Weight, G: InEdges + WeightedEdges> Stepping<'_, C, W, G> {
    fn run(&self, source: VertexId) -> Result<Outcome<()>> {
        let pool = self.ctx.pool;
        let mut workers: Vec<_> = (0..pool.num_threads()).map(|_| Mutex::new(Worker::new(self.max_entries))).collect();
        let (mut current, mut entries) = (0, vec![source]);
        while !entries.is_empty() {
            self.ctx.progress.advance(entries.len() as u64);
            self.work_off(&workers, current, &mut entries);
            // Workers who are told to stop leave entries behind, and no bucket may follow.
            self.ctx.progress.check()?;
            if self.overflowed.load(Ordering::Relaxed) {
                return Ok(Outcome::TooFar);
            }
            if self.is_full.load(Ordering::Relaxed) {
                return Ok(Outcome::TooMuch);
            }
            (current, entries) = self.next_bucket(&mut workers, current, entries);
        }
        Ok(Outcome::Found(()))
    }

    /// Relaxes the edges of all entries of the lowest bucket; from a disk, in the order of the lists.
    fn work_off(&self, workers: &[Mutex<Worker>], current: u64, entries: &mut Vec<VertexId>) {
        let is_in_order = self.ctx.reads_from_disk(self.graph);
        if is_in_order {
            entries.retain(|&vertex| self.bucket_of(vertex) == Some(current));
            entries.sort_unstable();
            entries.dedup();
            self.announce(entries, 0..LISTS_AHEAD);
        }
        let entries = &entries[..];
        let is_small = self.is_small(entries);
        let grain = if is_small { entries.len() } else { (entries.len() / (workers.len() * 8)).clamp(1, GRAIN) };
        let next = AtomicUsize::new(0);
        let work = |worker: usize| {
            let worker = &mut *workers[worker].lock().unwrap_or_else(|e| e.into_inner());
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
            if !is_in_order {
                self.fuse(current, worker);
            }
        };
        if is_small { work(0) } else { self.ctx.pool.on_each_worker(work) }
    }

    /// Announces the lists of some of the entries, as far as there are so many.
    fn announce(&self, entries: &[VertexId], part: Range<usize>) {
        let part = &entries[part.start.min(entries.len())..part.end.min(entries.len())];
        let parts = if self.is_weighted { Parts::Weighted } else { Parts::Targets };
        self.graph.will_need(Side::Out, parts, part);
    }

    /// Whether a bucket has so few edges that waking the other workers takes longer than its work.
    fn is_small(&self, entries: &[VertexId]) -> bool {
        let degree = |&v: &VertexId| self.graph.out_degree(v);
        match entries.len() <= GRAIN {
            true => entries.iter().map(degree).sum::<usize>() < SERIAL_EDGES,
            // Looking at more of them would take as long as the work; hubs are soon seen.
            false => entries.len() * self.mean_degree < SMALL_EDGES,
        }
    }

    /// Marks what the worker took in lower buckets: nothing can improve it any more.
    fn settle(&self, current: u64, worker: &mut Worker) {
        if worker.bucket != current {
            worker.bucket = current;
            for vertex in worker.taken.drain(..) {
                self.settled.set(vertex as usize);
            }
        }
    }

    /// Goes on with the worker's own part of the bucket while that is small, which saves rounds.
    fn fuse(&self, current: u64, worker: &mut Worker) {
        let mut entries = Vec::new();
        while (1..FUSION_LIMIT).contains(&worker.buckets.len_of(current)) {
            entries.clear();
            worker.buckets.swap(current, &mut entries);
            self.relax(&entries, worker);
        }
    }

    /// Relaxes the edges of those entries that have not been worked off since they were made.
    fn relax(&self, entries: &[VertexId], worker: &mut Worker) {
        announce_first(self.graph, Parts::Weighted, entries);
        for (i, &vertex) in entries.iter().enumerate() {
            announce(self.graph, Parts::Weighted, entries, i);
            if let Some(&ahead) = entries.get(i + FAR) {
                prefetch(self.cells, ahead as usize);
            }
            if let Some(cell) = self.cells[vertex as usize].take() {
                worker.taken.push(vertex);
                self.relax_list(vertex, distance_of::<W::Distance>(cell), worker);
            }
        }
        self.reserve(worker.batch_len + entries.len(), worker);
        self.work_off_batch(worker);
    }

    #[inline(always)]
    fn relax_list(&self, vertex: VertexId, distance: W::Distance, worker: &mut Worker) {
        // Nearly all lists are such ones, and this way they take no call.
        if self.is_weighted
            && let Some((targets, weights)) = self.graph.weighted_out_list::<W>(vertex)
        {
            return self.put_pieces_in_batch(distance, targets, weights, worker);
        }
        let mut body = |targets: &[VertexId], weights: &[W]| {
            self.put_pieces_in_batch(distance, targets, weights, worker);
            ControlFlow::Continue(())
        };
        let _ = match self.is_weighted {
            true => self.graph.for_each_weighted_out_fragment::<W>(vertex, body),
            false => self.graph.for_each_out_fragment(vertex, |list| beside(list, &self.ones, &mut body)),
        };
    }

    #[inline(always)]
    fn put_pieces_in_batch(&self, distance: W::Distance, targets: &[VertexId], weights: &[W], worker: &mut Worker) {
        for (targets, weights) in targets.chunks(PIECE).zip(weights.chunks(PIECE)) {
            self.put_in_batch(distance, targets, weights, worker);
        }
    }

    #[inline(always)]
    fn put_in_batch(&self, distance: W::Distance, targets: &[VertexId], weights: &[W], worker: &mut Worker) {
        let settled = self.settled.words();
        let (mut largest, mut len) = (0, worker.batch_len);
        let first = len;
        for (&target, &weight) in targets.iter().zip(weights) {
            let new = extended(distance, weight);
            largest |= new;
            // Half of the targets are settled, in no pattern: the next one overwrites them, which takes
            // no branch.
            worker.batch[len % (2 * BATCH)] = (target, new);
            let word = settled[target as usize / 64].load(Ordering::Relaxed);
            len += (!word >> (target % 64) & 1) as usize;
        }
        if C::IS_NARROW && largest >= C::LIMIT {
            self.overflowed.store(true, Ordering::Relaxed);
        }
        worker.batch[first..len].iter().for_each(|&(target, _)| prefetch(self.cells, target as usize));
        worker.batch_len = len;
        if len >= BATCH {
            self.reserve(len, worker);
            self.work_off_batch(worker);
        }
    }

    /// Takes room for entries that may come; what is left over of it comes back when they are counted.
    #[inline(always)]
    fn reserve(&self, num_entries: usize, worker: &mut Worker) {
        if num_entries > worker.room {
            self.count_entries(worker);
        }
        worker.room = worker.room.saturating_sub(num_entries);
    }

    /// Finds how much room is left. Without any the batch is given up, and all that follow: the search is
    /// in vain then, but takes no more memory.
    #[cold]
    fn count_entries(&self, worker: &mut Worker) {
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

    fn work_off_batch(&self, worker: &mut Worker) {
        for &(target, new) in &worker.batch[..worker.batch_len] {
            let cell = &self.cells[target as usize];
            if new < cell.load() && cell.lower(new) {
                worker.buckets.push(self.width.bucket(distance_of::<W::Distance>(new)), target);
            }
        }
        worker.batch_len = 0;
    }

    /// The lowest bucket that has an entry, and its entries; none when all work is done.
    fn next_bucket(
        &self,
        workers: &mut [Mutex<Worker>],
        current: u64,
        mut entries: Vec<VertexId>,
    ) -> (u64, Vec<VertexId>) {
        entries.clear();
        let mut all: Vec<_> = workers.iter_mut().map(|worker| &mut lend(worker).buckets).collect();
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
            if entries.is_empty() { entries = list } else { entries.extend_from_slice(&list) }
        }
        (lowest, entries)
    }

    /// Where a vertex waits, if it does.
    fn bucket_of(&self, vertex: VertexId) -> Option<u64> {
        let cell = self.cells[vertex as usize].load();
        (cell & 1 == 1).then(|| self.width.bucket(distance_of::<W::Distance>(cell)))
    }
}

fn lend(worker: &mut Mutex<Worker>) -> &mut Worker {
    worker.get_mut().unwrap_or_else(|e| e.into_inner())
}
