//! Triangles of a graph whose oriented copy does not fit in memory, or is not wanted there.
//!
//! The copy exists for a range of ranks at a time: a *part*, which fills the budget. Each part takes two passes over
//! the lists in stored order: one fills the part, one counts. The counting pass gathers the earlier neighbors of each
//! vertex `u` again; those in the part have their lists in memory. So every pair of a vertex and an earlier neighbor is
//! tested in one part, and each triangle is found once, as in memory. The hub rows are built before the first part, and
//! used beside it. Counting by vertex uses no hub rows.
//!
//! *Cost*: that in memory (by vertex, without rows), one pass over all lists, and two for each part. *Memory*: 8 bytes
//! a vertex (by vertex 24), one for each vertex and worker, and the part.
//!
//! # Source
//! X. Hu, Y. Tao, C.-W. Chung: Massive Graph Triangulation, SIGMOD 2013: a part of the edges in memory, and all
//! vertices streamed past it. Ours differs: parts are ranges of ranks by degree, and edges between hubs are rows of
//! bits.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use anden_base::VertexId;
use anden_base::bitmap::AtomicBitmap;
use anden_base::memory::{as_atomic_u32, as_atomic_u64, zeroed_huge};
use anden_graph::{Direction, Graph, GraphKind};
use parking_lot::Mutex;

use super::by_vertex::{Noted, VertexRanks, VertexTriangles};
use super::hubs::Hubs;
use super::oriented::{DOWN, Oriented, UP, for_each_fragment, gather, ranks_by_degree};
use super::{DEFAULT_HUBS, TriangleCounter, TriangleResult};
use crate::context::FIXED_BYTES;
use crate::walk::for_each_walked_chunk;
use crate::{Context, Medium, Result};

/// The number of vertices that a worker takes at a time.
const GRAIN: usize = 1 << 12;

/// A budget must have room for one of this many parts, since each part reads all lists twice.
const MOST_PARTS: u64 = 8;

/// Fewer hubs than this are not worth rows.
const LEAST_HUBS: usize = 512;

/// Each worker has its own counters for this many first ranks, which are in triangles most often.
const NUM_HOT: usize = 1 << 12;

/// Whether to avoid the whole copy of `copy_bytes` bytes. All neighbors of a vertex must be in its own lists.
pub(super) fn is_wanted(ctx: &Context<'_>, graph: &impl Graph, copy_bytes: u64) -> bool {
    let is_wanted = match ctx.medium {
        Medium::Auto => !ctx.allows(copy_bytes),
        Medium::Memory => false,
        Medium::Disk => true,
    };
    is_wanted && (graph.graph_kind() == GraphKind::Undirected || graph.has_lists(Direction::In))
}

/// The bytes of an entry of a part: a target, and by arcs, whether arcs join it both ways.
fn entry_bytes(by_arcs: bool) -> u64 {
    if by_arcs { 5 } else { 4 }
}

/// The data that is in memory at a time.
struct StreamingPlan {
    num_hubs: usize,
    /// The most entries of a part.
    most_entries: usize,
}

impl StreamingPlan {
    /// The largest plan that the budget allows, beside `bytes_a_vertex` for each vertex.
    fn new(
        ctx: &Context<'_>,
        graph: &impl Graph,
        kernel: &'static str,
        [bytes_a_vertex, entry_bytes]: [u64; 2],
        wanted_hubs: usize,
    ) -> Result<Self> {
        let (bound, num_threads) = (graph.vertex_bound() as u64, ctx.pool.num_threads() as u64);
        let longest = Oriented::longest_list(graph);
        // Starts in a part have 32 bits.
        let num_entries = Oriented::num_entries(graph).min(u64::from(u32::MAX));
        // Beside `bytes_a_vertex`: marks, and the current lists, in up to twice their room.
        let by_worker = bound + 16 * longest + (size_of::<u64>() * NUM_HOT) as u64;
        let held = bytes_a_vertex * bound + num_threads * by_worker + FIXED_BYTES;
        let least = entry_bytes * longest.max(num_entries.div_ceil(MOST_PARTS));
        ctx.require_memory(kernel, held + least)?;
        let Some(budget) = ctx.memory else {
            return Ok(Self { num_hubs: wanted_hubs, most_entries: num_entries as usize });
        };
        // The parts fill the budget.
        ctx.make_room(budget);
        // Lists that the prefetcher reads ahead, and the page cache, also need memory.
        let spare = (budget - held - least) / if graph.is_listening() { 2 } else { 1 };
        let hub_bytes = |num_hubs: usize| Hubs::num_bytes(num_hubs) + num_threads * num_hubs as u64 / 8;
        let mut num_hubs = wanted_hubs;
        // Rows take at most half of the spare memory, because larger parts save passes.
        while hub_bytes(num_hubs) > spare / 2 {
            num_hubs = if num_hubs / 2 < LEAST_HUBS { 0 } else { num_hubs / 2 };
        }
        let most_entries = ((least + spare - hub_bytes(num_hubs)) / entry_bytes).min(num_entries.max(1));
        Ok(Self { num_hubs, most_entries: most_entries as usize })
    }
}

/// The oriented lists of a range of ranks.
struct OrientedPart<'a> {
    ranks: Range<usize>,
    /// The start of each list.
    starts: &'a [u32],
    targets: Vec<VertexId>,
    /// The positions of targets with arcs both ways; empty unless arcs are counted.
    doubles: AtomicBitmap,
}

impl OrientedPart<'_> {
    /// The positions of the list of a rank; empty if the list is not in the part.
    #[inline(always)]
    fn places(&self, rank: VertexId) -> Range<usize> {
        // Ranks below the part wrap around to numbers beyond it.
        let index = (rank as usize).wrapping_sub(self.ranks.start);
        match self.starts.get(index) {
            Some(&start) => {
                start as usize..self.starts.get(index + 1).map_or(self.targets.len(), |&next| next as usize)
            }
            None => 0..0,
        }
    }

    /// Whether the part has the list of one of these ranks.
    fn has_any(&self, ranks: &[VertexId]) -> bool {
        ranks.iter().any(|&rank| self.ranks.contains(&(rank as usize)))
    }
}

/// The data of one worker.
struct StreamingWorker {
    counter: TriangleCounter,
    /// The earlier neighbors of the current vertex: hubs, and others.
    to_hubs: Vec<VertexId>,
    to_others: Vec<VertexId>,
    /// Positions in a part.
    found: Vec<u32>,
    /// The counts at the first ranks.
    hot: Vec<u64>,
}

impl StreamingWorker {
    /// Finds the ranks of the earlier neighbors of a vertex, each once, and marks them with their arc directions.
    fn gather<G: Graph>(&mut self, all: &All<'_, G>, vertex: VertexId) {
        self.to_hubs.clear();
        self.to_others.clear();
        let rank = all.ranks[vertex as usize];
        let marks = &mut self.counter.marks;
        for &(direction, way) in all.directions {
            for_each_fragment(all.graph, direction, vertex, |list| {
                for &neighbor in list {
                    let other = all.ranks[neighbor as usize];
                    if other < rank {
                        let mark = &mut marks[other as usize];
                        if *mark == 0 {
                            let is_hub = (other as usize) < all.num_hubs;
                            if is_hub { &mut self.to_hubs } else { &mut self.to_others }.push(other);
                        }
                        *mark |= way;
                    }
                }
            });
        }
    }

    /// Clears the marks.
    fn forget(&mut self) {
        let marks = &mut self.counter.marks;
        [&self.to_hubs, &self.to_others].into_iter().flatten().for_each(|&other| marks[other as usize] = 0);
    }

    /// The number of neighbors of a vertex.
    fn degree<G: Graph>(&mut self, all: &All<'_, G>, vertex: VertexId) -> u32 {
        let marks = &mut self.counter.marks;
        let mut num_found = 0;
        // The first round counts and marks the neighbors, the second clears the marks.
        for new in [1, 0] {
            for &(direction, _) in all.directions {
                for_each_fragment(all.graph, direction, vertex, |list| {
                    for &neighbor in list {
                        let old = std::mem::replace(&mut marks[neighbor as usize], new);
                        num_found += u32::from(old < new && neighbor != vertex);
                    }
                });
            }
        }
        num_found
    }

    /// Counts the triangles of the current vertex with their second vertex in the part, at all three vertices.
    fn note(&mut self, rank: usize, part: &OrientedPart<'_>, counts: &[AtomicU64], by_arcs: bool) {
        let Self { counter: TriangleCounter { marks, .. }, to_others, found, hot, .. } = self;
        let mut add = |rank: usize, num: u64| match hot.get_mut(rank) {
            Some(count) => *count += num,
            None => _ = counts[rank].fetch_add(num, Ordering::Relaxed),
        };
        let num_arcs = |mark: u8| u64::from(1 + u8::from(by_arcs && mark == DOWN | UP));
        let mut found_here = 0;
        for &second in to_others.iter() {
            let places = part.places(second);
            let list = &part.targets[places.clone()];
            let marked = list.iter().zip(places.start as u32..).map(|(&w, place)| (place, marks[w as usize] != 0));
            let num_found = gather(marked, list.len(), found, 0);
            let (joins_second, mut found_there) = (num_arcs(marks[second as usize]), 0);
            for &place in &found[..num_found] {
                let first = part.targets[place as usize] as usize;
                add(first, joins_second);
                found_there += num_arcs(marks[first]);
                found_here += 1 + u64::from(by_arcs && part.doubles.get(place as usize));
            }
            add(second as usize, found_there);
        }
        add(rank, found_here);
    }
}

/// The data that all workers share.
struct All<'a, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    /// The lists of a vertex, and the arc direction of their entries.
    directions: &'a [(Direction, u8)],
    ranks: Vec<VertexId>,
    num_hubs: usize,
    workers: Vec<Mutex<StreamingWorker>>,
}

/// Counts the triangles, with as large parts as the budget allows.
pub(super) fn count<G: Graph>(ctx: &Context<'_>, graph: &G, wanted_hubs: Option<usize>) -> Result<TriangleResult> {
    let started = Instant::now();
    let wanted_hubs = wanted_hubs.unwrap_or(DEFAULT_HUBS).min(graph.vertex_bound());
    let StreamingPlan { num_hubs, most_entries } =
        StreamingPlan::new(ctx, graph, "triangles", [8, entry_bytes(false)], wanted_hubs)?;
    ctx.progress.stage("triangles: orient", None);
    let all = All::new(ctx, graph, num_hubs)?;
    let mut hubs = Hubs::new(num_hubs);
    let rows = hubs.rows_to_fill();
    let lens = all.lengths(|worker, _, rank| {
        if rank < num_hubs {
            rows.set(rank, &worker.to_hubs);
        }
    })?;
    let preparation_seconds = started.elapsed().as_secs_f64();

    ctx.progress.stage("triangles: count", None);
    let most_held = all.for_each_part(lens, most_entries, false, |part, is_first| all.count(&hubs, part, is_first))?;
    let triangles = all.into_parts().1.map(|worker| worker.counter.triangles).sum();
    let copy_bytes = entry_bytes(false) * most_held as u64 + Hubs::num_bytes(num_hubs);
    let was_prepared = false;
    Ok(TriangleResult { triangles, by_vertex: None, preparation_seconds, was_prepared, copy_bytes, num_hubs })
}

/// Counts the triangles at each vertex, with as large parts as the budget allows.
pub(super) fn by_vertex<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    kernel: &'static str,
    noted: Noted,
) -> Result<VertexTriangles<'static>> {
    let started = Instant::now();
    let by_arcs = noted == Noted::Arcs;
    // Ranks, lengths or starts, counts, degrees; at the end, a result replaces lengths and part.
    let StreamingPlan { most_entries, .. } = StreamingPlan::new(ctx, graph, kernel, [24, entry_bytes(by_arcs)], 0)?;
    ctx.progress.stage("triangles by vertex: orient", None);
    let all = All::new(ctx, graph, 0)?;
    let mut degrees = vec![0; if noted == Noted::Triangle { 0 } else { graph.vertex_bound() }];
    let slots = as_atomic_u32(&mut degrees);
    let lens = all.lengths(|worker, vertex, rank| {
        if let Some(slot) = slots.get(rank) {
            slot.store(worker.degree(&all, vertex), Ordering::Relaxed);
        }
    })?;
    let preparation_seconds = started.elapsed().as_secs_f64();

    ctx.progress.stage("triangles by vertex: count", None);
    let mut counts = zeroed_huge::<u64>(graph.vertex_bound());
    let shared = as_atomic_u64(&mut counts);
    let most_held = all.for_each_part(lens, most_entries, by_arcs, |part, _| {
        all.walk(0..graph.vertex_bound(), |worker, vertex, rank| {
            worker.gather(&all, vertex);
            if part.has_any(&worker.to_others) {
                worker.note(rank, part, shared, by_arcs);
            }
            worker.forget();
        })
    })?;
    let copy_bytes = entry_bytes(by_arcs) * most_held as u64;
    let (ranks, workers) = all.into_parts();
    for worker in workers {
        counts.iter_mut().zip(&worker.hot).for_each(|(count, more)| *count += more);
    }
    let ranks = VertexRanks::Own(ranks);
    let was_prepared = false;
    Ok(VertexTriangles { counts, degrees, ranks, preparation_seconds, was_prepared, copy_bytes, num_hubs: 0 })
}

/// Turns the lengths of lists, from `first` on, into starts, for the lists that fit in `most_entries`. Returns their
/// ranks and their number of entries.
fn place(lens: &mut [u32], first: usize, most_entries: usize) -> (Range<usize>, usize) {
    let mut start = 0_usize;
    for (rank, len) in lens.iter_mut().enumerate().skip(first) {
        let end = start + *len as usize;
        // A single list always fits.
        if end > most_entries && start > 0 {
            return (first..rank, start);
        }
        *len = start as u32;
        start = end;
    }
    (first..lens.len(), start)
}

impl<'a, G: Graph> All<'a, G> {
    fn new(ctx: &'a Context<'a>, graph: &'a G, num_hubs: usize) -> Result<Self> {
        let bound = graph.vertex_bound();
        let worker = || {
            let (to_hubs, to_others, found) = Default::default();
            let counter = TriangleCounter::new(bound, num_hubs);
            Mutex::new(StreamingWorker { counter, to_hubs, to_others, found, hot: vec![0; NUM_HOT.min(bound)] })
        };
        let ranks = ranks_by_degree(ctx, graph)?;
        let directions: &[(Direction, u8)] = match graph.graph_kind() {
            GraphKind::Undirected => &[(Direction::Out, DOWN)],
            GraphKind::Directed => &[(Direction::Out, DOWN), (Direction::In, UP)],
        };
        let workers = (0..ctx.pool.num_threads()).map(|_| worker()).collect();
        Ok(Self { ctx, graph, directions, ranks, num_hubs, workers })
    }

    /// The ranks, and the workers with their counts.
    fn into_parts(self) -> (Vec<VertexId>, impl Iterator<Item = StreamingWorker>) {
        let workers = self.workers.into_iter().map(Mutex::into_inner);
        (self.ranks, workers)
    }

    /// Calls `body` with each part, and whether it is the first; at least one part exists. Returns the entries of the
    /// largest part.
    fn for_each_part(
        &self,
        mut lens: Vec<u32>,
        most_entries: usize,
        by_arcs: bool,
        body: impl Fn(&OrientedPart<'_>, bool) -> Result<()>,
    ) -> Result<usize> {
        // The first part also counts the pairs of hubs, so one part exists without any entry.
        let (mut first, mut most_held) = (self.num_hubs, 0);
        loop {
            let (ranks, num_entries) = place(&mut lens, first, most_entries);
            let end = ranks.end;
            most_held = num_entries.max(most_held);
            body(&self.part(&lens[ranks.clone()], ranks, num_entries, by_arcs)?, first == self.num_hubs)?;
            first = end;
            if first >= lens.len() {
                return Ok(most_held);
            }
        }
    }

    /// Calls `body` with each vertex of these ranks, and its rank, in stored order.
    fn walk(&self, ranks: Range<usize>, body: impl Fn(&mut StreamingWorker, VertexId, usize) + Sync) -> Result<()> {
        for_each_walked_chunk(self.ctx, self.graph, GRAIN, None, |worker, chunk| {
            let worker = &mut self.workers[worker].lock();
            if !self.ctx.progress.is_cancelled() {
                for vertex in chunk {
                    let rank = self.ranks[vertex] as usize;
                    if ranks.contains(&rank) {
                        body(worker, vertex as VertexId, rank);
                    }
                }
            }
        });
        self.ctx.progress.check()?;
        Ok(self.graph.check()?)
    }

    /// The lengths of the oriented lists, by rank. Calls `body` with each vertex after its earlier neighbors are
    /// gathered.
    fn lengths(&self, body: impl Fn(&mut StreamingWorker, VertexId, usize) + Sync) -> Result<Vec<u32>> {
        let mut lens = vec![0; self.ranks.len()];
        let slots = as_atomic_u32(&mut lens);
        self.walk(0..self.ranks.len(), |worker, vertex, rank| {
            worker.gather(self, vertex);
            worker.forget();
            let len = worker.to_hubs.len() + worker.to_others.len();
            slots[rank].store(len as u32, Ordering::Relaxed);
            body(worker, vertex, rank);
        })?;
        Ok(lens)
    }

    /// The lists of these ranks, with the given starts among `num_entries` entries.
    fn part<'s>(
        &self,
        starts: &'s [u32],
        ranks: Range<usize>,
        num_entries: usize,
        by_arcs: bool,
    ) -> Result<OrientedPart<'s>> {
        let mut targets = zeroed_huge(num_entries);
        let slots: &[AtomicU32] = as_atomic_u32(&mut targets);
        let doubles = AtomicBitmap::new(if by_arcs { num_entries } else { 0 });
        self.walk(ranks.clone(), |worker, vertex, rank| {
            worker.gather(self, vertex);
            let start = starts[rank - ranks.start] as usize;
            let found = [&worker.to_hubs, &worker.to_others].into_iter().flatten();
            for (place, &other) in (start..).zip(found) {
                slots[place].store(other, Ordering::Relaxed);
                if by_arcs && worker.counter.marks[other as usize] == DOWN | UP {
                    doubles.set(place);
                }
            }
            worker.forget();
        })?;
        Ok(OrientedPart { ranks, starts, targets, doubles })
    }

    /// Counts the triangles with their second vertex in the part and, with `with_hubs`, those with a hub as second
    /// vertex.
    fn count(&self, hubs: &Hubs, part: &OrientedPart<'_>, with_hubs: bool) -> Result<()> {
        self.walk(0..self.ranks.len(), |worker, vertex, rank| {
            worker.gather(self, vertex);
            // `add_others` sets marks of its own.
            worker.forget();
            let StreamingWorker { counter, to_hubs, to_others, .. } = worker;
            // Hub rows are complete before the first part, so the first part alone counts pairs of hubs.
            if with_hubs && rank < hubs.len() {
                counter.add_hub(hubs, rank, to_hubs);
            } else if with_hubs {
                counter.add_hubs(hubs, to_hubs);
            }
            // Marks cost a pass over the list, which is wasted if the part has none of these lists.
            if part.has_any(to_others) {
                counter.add_others([to_hubs, to_others], |v| &part.targets[part.places(v)]);
            }
        })
    }
}
