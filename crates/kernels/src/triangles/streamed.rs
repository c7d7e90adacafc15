//! Triangles of a graph whose oriented copy does not fit in memory, or is not wanted there.
//!
//! The copy is there for some ranks at a time, as many as fit: a *part*. For each part the lists of the graph are read
//! in the order in which they are stored, once to fill it and once to count: of each vertex `u` the earlier neighbours are
//! made anew, and those in the part have their lists at hand. So every pair of a vertex and an earlier neighbour is looked
//! at in one part, and each triangle is found once, as in memory. The rows of the hubs are made before the first part, and
//! looked at beside it; where triangles are noted at their corners, there are none.
//!
//! Work: that in memory (at corners, without rows), a pass over all lists, and two for each part. Memory: 8 bytes a
//! vertex, at corners 24, one a vertex and worker, and the part.
//!
//! # Source
//! X. Hu, Y. Tao, C.-W. Chung: Massive Graph Triangulation, SIGMOD 2013: a part of the edges in memory, and all vertices
//! streamed past it. Ours differs: parts are ranges of ranks by degree, and edges between hubs are rows of bits.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use base::VertexId;
use base::bitmap::AtomicBitmap;
use base::memory::{as_atomic_u32, as_atomic_u64, zeroed_huge};
use graph::{Direction, Graph, InEdges, Side};

use super::corners::{Corners, Noted};
use super::hubs::Hubs;
use super::oriented::{DOWN, Oriented, UP, for_each_fragment, gather, ranks_by_degree};
use super::{Counter, DEFAULT_HUBS, TriangleResult};
use crate::context::FIXED_BYTES;
use crate::walk::for_each_walked_chunk;
use crate::{Context, Medium, Result};

/// Vertices of a chunk of parallel work.
const GRAIN: usize = 1 << 12;

/// A budget has room for one of this many parts at least: all lists are read twice for each part.
const MOST_PARTS: u64 = 8;

/// Fewer hubs than this are not worth rows.
const LEAST_HUBS: usize = 512;

/// What is found at so many of the first ranks, which are corners most often, each worker adds up for itself.
const NUM_HOT: usize = 1 << 12;

/// Whether to do without the whole copy, which takes so many bytes. All neighbours of a vertex must be in its own lists.
pub(super) fn is_wanted(ctx: &Context<'_>, graph: &impl InEdges, copy_bytes: u64) -> bool {
    let is_wanted = match ctx.medium {
        Medium::Auto => !ctx.allows(copy_bytes),
        Medium::Memory => false,
        Medium::Disk => true,
    };
    is_wanted && (graph.direction() == Direction::Undirected || graph.has_in_edges())
}

/// The bytes of an entry of a part: a target, and by arcs whether they join it both ways.
fn entry_bytes(by_arcs: bool) -> u64 {
    if by_arcs { 5 } else { 4 }
}

/// What is in memory at a time.
struct Plan {
    num_hubs: usize,
    /// The entries of a part.
    most_entries: usize,
}

impl Plan {
    /// As much as the budget allows, beside so many bytes a vertex.
    fn new(
        ctx: &Context<'_>,
        graph: &impl Graph,
        kernel: &'static str,
        [bytes_a_vertex, entry_bytes]: [u64; 2],
        wanted_hubs: usize,
    ) -> Result<Self> {
        let (bound, num_threads) = (graph.vertex_bound() as u64, ctx.pool.num_threads() as u64);
        let longest = Oriented::longest_list(graph);
        let num_entries = Oriented::num_entries(graph).min(u64::from(u32::MAX));
        // Beside that marks, and lists as they are met, in up to twice the room.
        let by_worker = bound + 16 * longest + (size_of::<u64>() * NUM_HOT) as u64;
        let held = bytes_a_vertex * bound + num_threads * by_worker + FIXED_BYTES;
        let least = entry_bytes * longest.max(num_entries.div_ceil(MOST_PARTS));
        ctx.require_memory(kernel, held + least)?;
        let Some(budget) = ctx.memory else {
            return Ok(Self { num_hubs: wanted_hubs, most_entries: num_entries as usize });
        };
        // What is read ahead wants room, too, and what system and disk have of the lists.
        let spare = (budget - held - least) / if graph.is_listening() { 2 } else { 1 };
        let hub_bytes = |num_hubs: usize| Hubs::num_bytes(num_hubs) + num_threads * num_hubs as u64 / 8;
        let mut num_hubs = wanted_hubs;
        while hub_bytes(num_hubs) > spare / 2 {
            num_hubs = if num_hubs / 2 < LEAST_HUBS { 0 } else { num_hubs / 2 };
        }
        let most_entries = ((least + spare - hub_bytes(num_hubs)) / entry_bytes).min(num_entries.max(1));
        Ok(Self { num_hubs, most_entries: most_entries as usize })
    }
}

/// The oriented lists of a range of ranks.
struct Part<'a> {
    ranks: Range<usize>,
    /// Where each list starts.
    starts: &'a [u32],
    targets: Vec<VertexId>,
    /// The places of targets that arcs join both ways; empty unless arcs are counted.
    doubles: AtomicBitmap,
}

impl Part<'_> {
    /// Where the list of a rank is; nowhere where it is not in the part.
    #[inline(always)]
    fn places(&self, rank: VertexId) -> Range<usize> {
        let index = (rank as usize).wrapping_sub(self.ranks.start);
        match self.starts.get(index) {
            Some(&start) => {
                start as usize..self.starts.get(index + 1).map_or(self.targets.len(), |&next| next as usize)
            }
            None => 0..0,
        }
    }

    /// Whether one of these ranks has a list here.
    fn has_any(&self, ranks: &[VertexId]) -> bool {
        ranks.iter().any(|&rank| self.ranks.contains(&(rank as usize)))
    }
}

/// What one worker has of its own.
struct Worker {
    counter: Counter,
    /// The earlier neighbours of the vertex at hand: hubs, and others.
    to_hubs: Vec<VertexId>,
    to_others: Vec<VertexId>,
    /// Places in a part.
    found: Vec<u32>,
    /// What was found at the first ranks.
    hot: Vec<u64>,
}

impl Worker {
    /// Finds the ranks of the earlier neighbours of a vertex, each once, and marks them with how they are joined.
    fn gather<G: InEdges>(&mut self, all: &All<'_, G>, vertex: VertexId) {
        self.to_hubs.clear();
        self.to_others.clear();
        let rank = all.ranks[vertex as usize];
        let marks = &mut self.counter.marks;
        for &(side, way) in all.sides {
            for_each_fragment(all.graph, side, vertex, |list| {
                for &neighbour in list {
                    let other = all.ranks[neighbour as usize];
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

    /// The number of neighbours of a vertex.
    fn degree<G: InEdges>(&mut self, all: &All<'_, G>, vertex: VertexId) -> u32 {
        let marks = &mut self.counter.marks;
        let mut num_found = 0;
        for new in [1, 0] {
            for &(side, _) in all.sides {
                for_each_fragment(all.graph, side, vertex, |list| {
                    for &neighbour in list {
                        let old = std::mem::replace(&mut marks[neighbour as usize], new);
                        num_found += u32::from(old < new && neighbour != vertex);
                    }
                });
            }
        }
        num_found
    }

    /// Notes the triangles of the vertex at hand whose second vertex is in the part.
    fn note(&mut self, rank: usize, part: &Part<'_>, counts: &[AtomicU64], by_arcs: bool) {
        let Self { counter: Counter { marks, .. }, to_others, found, hot, .. } = self;
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

/// What all workers see.
struct All<'a, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    /// The lists of a vertex, and how what is in them is joined to it.
    sides: &'a [(Side, u8)],
    ranks: Vec<VertexId>,
    num_hubs: usize,
    workers: Vec<Mutex<Worker>>,
}

/// Counts the triangles with as much of the copy at a time as the budget allows.
pub(super) fn count<G: InEdges>(ctx: &Context<'_>, graph: &G, wanted_hubs: Option<usize>) -> Result<TriangleResult> {
    let started = Instant::now();
    let wanted_hubs = wanted_hubs.unwrap_or(DEFAULT_HUBS).min(graph.vertex_bound());
    let Plan { num_hubs, most_entries } = Plan::new(ctx, graph, "triangles", [8, entry_bytes(false)], wanted_hubs)?;
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
    Ok(TriangleResult { triangles, by_vertex: None, preparation_seconds, copy_bytes, num_hubs })
}

/// Notes triangles at their corners with as much of the copy at a time as the budget allows.
pub(super) fn corners<G: InEdges>(ctx: &Context<'_>, graph: &G, kernel: &'static str, noted: Noted) -> Result<Corners> {
    let started = Instant::now();
    let by_arcs = noted == Noted::Arcs;
    // Ranks, lengths or places, counts, degrees; in the end, a result in place of lengths and part.
    let Plan { most_entries, .. } = Plan::new(ctx, graph, kernel, [24, entry_bytes(by_arcs)], 0)?;
    ctx.progress.stage("corners: orient", None);
    let all = All::new(ctx, graph, 0)?;
    let mut degrees = vec![0; if noted == Noted::Triangle { 0 } else { graph.vertex_bound() }];
    let slots = as_atomic_u32(&mut degrees);
    let lens = all.lengths(|worker, vertex, rank| {
        if let Some(slot) = slots.get(rank) {
            slot.store(worker.degree(&all, vertex), Ordering::Relaxed);
        }
    })?;
    let preparation_seconds = started.elapsed().as_secs_f64();

    ctx.progress.stage("corners: count", None);
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
    Ok(Corners { counts, degrees, ranks, preparation_seconds, copy_bytes, num_hubs: 0 })
}

/// Turns the lengths of lists from `first` on into where they start, for as many as have `most_entries` together; gives
/// their ranks, and how many entries they have.
fn place(lens: &mut [u32], first: usize, most_entries: usize) -> (Range<usize>, usize) {
    let mut start = 0_usize;
    for (rank, len) in lens.iter_mut().enumerate().skip(first) {
        let end = start + *len as usize;
        // A list alone always fits.
        if end > most_entries && start > 0 {
            return (first..rank, start);
        }
        *len = start as u32;
        start = end;
    }
    (first..lens.len(), start)
}

impl<'a, G: InEdges> All<'a, G> {
    fn new(ctx: &'a Context<'a>, graph: &'a G, num_hubs: usize) -> Result<Self> {
        let bound = graph.vertex_bound();
        let worker = || {
            let (to_hubs, to_others, found) = Default::default();
            let counter = Counter::new(bound, num_hubs);
            Mutex::new(Worker { counter, to_hubs, to_others, found, hot: vec![0; NUM_HOT.min(bound)] })
        };
        let ranks = ranks_by_degree(ctx, graph)?;
        let sides: &[(Side, u8)] = match graph.direction() {
            Direction::Undirected => &[(Side::Out, DOWN)],
            Direction::Directed => &[(Side::Out, DOWN), (Side::In, UP)],
        };
        let workers = (0..ctx.pool.num_threads()).map(|_| worker()).collect();
        Ok(Self { ctx, graph, sides, ranks, num_hubs, workers })
    }

    /// The ranks, and the workers with what they found.
    fn into_parts(self) -> (Vec<VertexId>, impl Iterator<Item = Worker>) {
        let workers = self.workers.into_iter().map(|worker| worker.into_inner().unwrap_or_else(|e| e.into_inner()));
        (self.ranks, workers)
    }

    /// Calls `body` with one part after the other, and whether it is the first; there is at least one. Gives the entries
    /// of the largest.
    fn for_each_part(
        &self,
        mut lens: Vec<u32>,
        most_entries: usize,
        by_arcs: bool,
        body: impl Fn(&Part<'_>, bool) -> Result<()>,
    ) -> Result<usize> {
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

    /// Calls `body` with each vertex of these ranks, and its rank, in the order in which lists are stored.
    fn walk(&self, ranks: Range<usize>, body: impl Fn(&mut Worker, VertexId, usize) + Sync) -> Result<()> {
        for_each_walked_chunk(self.ctx, self.graph, GRAIN, None, |worker, chunk| {
            let worker = &mut self.workers[worker].lock().unwrap_or_else(|e| e.into_inner());
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

    /// The lengths of the oriented lists, by rank. Calls `body` with each vertex when its earlier neighbours are gathered.
    fn lengths(&self, body: impl Fn(&mut Worker, VertexId, usize) + Sync) -> Result<Vec<u32>> {
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

    /// The lists of these ranks, which start there among so many entries.
    fn part<'s>(&self, starts: &'s [u32], ranks: Range<usize>, num_entries: usize, by_arcs: bool) -> Result<Part<'s>> {
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
        Ok(Part { ranks, starts, targets, doubles })
    }

    /// Counts the triangles whose second vertex is in the part, and those of which that is a hub.
    fn count(&self, hubs: &Hubs, part: &Part<'_>, with_hubs: bool) -> Result<()> {
        self.walk(0..self.ranks.len(), |worker, vertex, rank| {
            worker.gather(self, vertex);
            worker.forget();
            let Worker { counter, to_hubs, to_others, .. } = worker;
            if with_hubs && rank < hubs.len() {
                counter.add_hub(hubs, rank, to_hubs);
            } else if with_hubs {
                counter.add_hubs(hubs, to_hubs);
            }
            if part.has_any(to_others) {
                counter.add_others([to_hubs, to_others], |v| &part.targets[part.places(v)]);
            }
        })
    }
}
