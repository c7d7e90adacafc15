//! The oriented copy: each edge once, at its end of later rank, with ranks as ids.

mod stored;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

use anden_base::memory::{as_atomic_u32, zeroed_huge};
use anden_base::{NO_VERTEX, VertexId};
use anden_graph::{Direction, Graph, GraphKind};
use parking_lot::Mutex;

use crate::walk::{for_each_arc, for_each_walked_chunk};
use crate::{Context, Result};

/// The number of vertices that a worker takes at a time.
const GRAIN: usize = 1 << 12;

/// Entries of a list that are handled together. The list of a hub is long, and few of its entries are kept.
const STRETCH: usize = 1 << 10;

/// The oriented copy: the neighbors of earlier rank for each rank, in a slice of `targets`.
///
/// Hubs come first. In a directed graph, hubs with arcs both ways precede the other hubs, and non-hubs with arcs both
/// ways follow the other non-hubs. Otherwise the order is arbitrary.
#[derive(Default)]
pub(crate) struct Oriented {
    slices: Vec<Slice>,
    /// For each list, the numbers of entries with arcs both ways at its front and at its back. Empty for undirected
    /// graphs.
    doubles: Vec<u32>,
    targets: Vec<VertexId>,
}

/// The place of a list: the low and the high half of its start, and its length. Lists are looked up at random, so the
/// three numbers lie together.
type Slice = [u32; 3];

/// The index of the length.
const LEN: usize = 2;

impl Oriented {
    /// The most bytes of building a copy: ranks, counts of degrees, slices and lists. Sorted lists add the lengths of
    /// their parts, and a byte for each worker and vertex. Each worker also holds the current list.
    pub(crate) fn num_bytes(graph: &impl Graph, num_threads: usize) -> u64 {
        // Gathered lists: the entries found, in a vector that doubles during a copy. Sorted lists: also four classes,
        // in twice the room.
        let longest = Self::longest_list(graph);
        let (bytes_a_vertex, list_bytes) = match graph.graph_kind() {
            GraphKind::Undirected if !graph.is_multigraph() => (20, 12 * (longest + STRETCH as u64)),
            _ => (28, 12 * (longest + STRETCH as u64) + 32 * longest),
        };
        let by_worker = graph.vertex_bound() as u64 + list_bytes;
        bytes_a_vertex * graph.vertex_bound() as u64 + num_threads as u64 * by_worker + 4 * Self::num_entries(graph)
    }

    /// The most entries of all lists together.
    pub(crate) fn num_entries(graph: &impl Graph) -> u64 {
        match graph.graph_kind() {
            GraphKind::Undirected => graph.num_edges(),
            GraphKind::Directed => graph.num_arcs(),
        }
    }

    /// The most entries of a list: each entry has at least the degree of the list's vertex.
    pub(crate) fn longest_list(graph: &impl Graph) -> u64 {
        (2 * graph.num_arcs()).isqrt().min(graph.vertex_bound() as u64)
    }

    /// The bytes of the copy.
    pub(crate) fn copy_bytes(&self) -> u64 {
        (size_of_val(&self.slices[..]) + size_of_val(&self.doubles[..]) + size_of_val(&self.targets[..])) as u64
    }

    pub(crate) fn num_vertices(&self) -> usize {
        self.slices.len()
    }

    /// All neighbors of earlier rank.
    #[inline(always)]
    pub(crate) fn list(&self, rank: usize) -> &[VertexId] {
        let slice = self.slices[rank];
        &self.targets[start_of(slice)..][..slice[LEN] as usize]
    }

    /// Prefetches the slice of `rank`, whose list is looked up soon.
    #[inline(always)]
    pub(crate) fn prefetch_place(&self, rank: usize) {
        anden_base::simd::prefetch(&self.slices, rank);
    }

    /// Prefetches the list of `rank`. Its slice should be in the cache.
    #[inline(always)]
    pub(crate) fn prefetch_list(&self, rank: usize) {
        anden_base::simd::prefetch(&self.targets, start_of(self.slices[rank]));
    }

    /// The list in three parts: hubs with arcs both ways, neighbors with arcs one way, and non-hubs with arcs both
    /// ways.
    #[inline(always)]
    pub(crate) fn parts(&self, rank: usize) -> [&[VertexId]; 3] {
        let [front, back] = match self.doubles.as_chunks().0.get(rank) {
            Some(&pair) => pair,
            None => [0, 0],
        };
        let (front, rest) = self.list(rank).split_at(front as usize);
        let (middle, back) = rest.split_at(rest.len() - back as usize);
        [front, middle, back]
    }

    /// Builds the copy, with the first `num_hubs` ranks first in each list. Also returns the ranks of the vertices.
    ///
    /// # Errors
    /// The graph is damaged, or the work was cancelled.
    pub(crate) fn build(ctx: &Context<'_>, graph: &impl Graph, num_hubs: VertexId) -> Result<(Self, Vec<VertexId>)> {
        let ranks = ranks_by_degree(ctx, graph)?;
        let oriented = match graph.graph_kind() {
            GraphKind::Undirected => Self::from_lists(ctx, graph, &ranks, num_hubs),
            GraphKind::Directed if graph.has_lists(Direction::In) => {
                Self::from_both_lists(ctx, graph, &ranks, num_hubs)
            }
            GraphKind::Directed => Self::from_arcs(ctx, graph, &ranks, num_hubs),
        }?;
        // Damaged lists look empty, and a copy without them must not be kept.
        ctx.progress.check()?;
        graph.check()?;
        Ok((oriented, ranks))
    }

    /// Every arc is in two lists, that of its source and that of its target. So each vertex copies its own lists, in
    /// the order of ids, in which lists are read sequentially.
    fn from_both_lists(ctx: &Context<'_>, graph: &impl Graph, ranks: &[VertexId], num_hubs: VertexId) -> Result<Self> {
        let bound = graph.vertex_bound();
        let mut slices = vec![Slice::default(); bound];
        let words = as_atomic_u32(slices.as_flattened_mut());
        for_each_walked_chunk(ctx, graph, GRAIN, None, |_, chunk| {
            for vertex in chunk {
                let len = |direction| num_earlier(graph, direction, ranks, vertex as VertexId);
                // An upper bound: an edge in both lists counts twice here.
                let len = len(Direction::Out) + len(Direction::In);
                words_of(words, ranks[vertex] as usize)[LEN].store(len, Ordering::Relaxed);
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        let mut targets = zeroed_huge::<VertexId>(place(&mut slices));
        let mut doubles = vec![0; 2 * bound];
        let words = as_atomic_u32(slices.as_flattened_mut());
        let slots = (as_atomic_u32(&mut doubles), as_atomic_u32(&mut targets));
        let sorters = OrientedListSorter::one_each(ctx, bound);
        for_each_walked_chunk(ctx, graph, GRAIN, None, |worker, chunk| {
            let mut sorter = sorters[worker].lock();
            for vertex in chunk {
                see_earlier(graph, Direction::Out, ranks, vertex as VertexId, &mut sorter);
                see_earlier(graph, Direction::In, ranks, vertex as VertexId, &mut sorter);
                sorter.sort(num_hubs);
                let rank = ranks[vertex] as usize;
                let entries = sorter.classes.iter().flatten();
                let slice = words_of(words, rank);
                let list = &slots.1[start_of([0, 1, LEN].map(|i| slice[i].load(Ordering::Relaxed)))..];
                entries.zip(list).for_each(|(&v, slot)| slot.store(v, Ordering::Relaxed));
                // The sorter removed repetitions, so the list may be shorter than its slice.
                slice[LEN].store(sorter.len(), Ordering::Relaxed);
                let pair = &slots.0[2 * rank..];
                sorter.doubles().iter().zip(pair).for_each(|(&len, slot)| slot.store(len, Ordering::Relaxed));
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        Ok(Self { slices, doubles, targets })
    }

    /// Every edge is in the lists of both ends, so each vertex copies its own list, in the order of ids.
    fn from_lists(ctx: &Context<'_>, graph: &impl Graph, ranks: &[VertexId], num_hubs: VertexId) -> Result<Self> {
        let bound = graph.vertex_bound();
        let mut slices = vec![Slice::default(); bound];
        let words = as_atomic_u32(slices.as_flattened_mut());
        for_each_walked_chunk(ctx, graph, GRAIN, None, |_, chunk| {
            for vertex in chunk {
                let len = num_earlier(graph, Direction::Out, ranks, vertex as VertexId);
                words_of(words, ranks[vertex] as usize)[LEN].store(len, Ordering::Relaxed);
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        let mut targets = zeroed_huge::<VertexId>(place(&mut slices));
        let slots = as_atomic_u32(&mut targets);
        for_each_walked_chunk(ctx, graph, GRAIN, None, |_, chunk| {
            let mut found = Vec::new();
            for vertex in chunk {
                let num_found = gather_earlier(graph, ranks, vertex as VertexId, &mut found);
                let slice = slices[ranks[vertex] as usize];
                let list = &slots[start_of(slice)..][..slice[LEN] as usize];
                let (mut front, mut back) = (0, list.len());
                for &target in &found[..num_found] {
                    // Without a branch: hubs fill the slice from its front, others from its back.
                    let is_hub = usize::from(target < num_hubs);
                    back = back.wrapping_sub(1 - is_hub);
                    let at = if is_hub == 1 { front } else { back };
                    if let Some(slot) = list.get(at) {
                        slot.store(target, Ordering::Relaxed);
                    }
                    front += is_hub;
                }
            }
        });
        let mut oriented = Self { slices, doubles: Vec::new(), targets };
        // Parallel edges in different fragments are still repeated here.
        if graph.is_multigraph() {
            oriented.classify(ctx, num_hubs, |_| usize::MAX);
            // All are 0 in an undirected graph.
            oriented.doubles = Vec::new();
        }
        Ok(oriented)
    }

    /// Every arc is in one list only. So each arc is sent to its later end: arcs from that end to the front of its
    /// list, arcs to it to the back.
    fn from_arcs(ctx: &Context<'_>, graph: &impl Graph, ranks: &[VertexId], num_hubs: VertexId) -> Result<Self> {
        let bound = graph.vertex_bound();
        let ends = |source: VertexId, target: VertexId| {
            let (a, b) = (ranks[source as usize], ranks[target as usize]);
            (a.max(b) as usize, a.min(b), a > b)
        };
        let mut slices = vec![Slice::default(); bound];
        let words = as_atomic_u32(slices.as_flattened_mut());
        for_each_arc(ctx, graph, |source, target| {
            if source != target {
                words_of(words, ends(source, target).0)[LEN].fetch_add(1, Ordering::Relaxed);
            }
        })?;
        let mut targets = zeroed_huge(place(&mut slices));
        let (mut down, mut up) = (vec![0; bound], slices.iter().map(|slice| slice[LEN]).collect::<Vec<_>>());
        let (fronts, backs) = (as_atomic_u32(&mut down), as_atomic_u32(&mut up));
        let slots = as_atomic_u32(&mut targets);
        for_each_arc(ctx, graph, |source, target| {
            if source == target {
                return;
            }
            let (later, earlier, leads_down) = ends(source, target);
            let place = match leads_down {
                true => fronts[later].fetch_add(1, Ordering::Relaxed),
                false => backs[later].fetch_sub(1, Ordering::Relaxed).wrapping_sub(1),
            };
            if let Some(slot) = slots.get(start_of(slices[later]) + place as usize) {
                slot.store(earlier, Ordering::Relaxed);
            }
        })?;
        // Freed before the sorters and the numbers of doubles take its room in the budget.
        drop(up);
        let mut oriented = Self { slices, doubles: Vec::new(), targets };
        oriented.classify(ctx, num_hubs, |rank| down[rank] as usize);
        Ok(oriented)
    }

    /// Sorts every list into its order and removes repetitions. `num_down(rank)` is the number of entries at the front
    /// that are arcs from `rank`; the rest are arcs to it.
    fn classify(&mut self, ctx: &Context<'_>, num_hubs: VertexId, num_down: impl Fn(usize) -> usize + Sync) {
        let bound = self.slices.len();
        let sorters = OrientedListSorter::one_each(ctx, bound);
        self.doubles = vec![0; 2 * bound];
        let items = split_lists(&mut self.targets, &self.slices);
        let items = items.into_iter().zip(self.slices.chunks_mut(GRAIN)).zip(self.doubles.chunks_mut(2 * GRAIN));
        ctx.pool.for_each_item(items.collect(), |worker, (((first, targets), slices), doubles)| {
            let mut sorter = sorters[worker].lock();
            let mut rest = targets;
            for (([.., len], pair), rank) in slices.iter_mut().zip(doubles.as_chunks_mut().0).zip(first..) {
                let Some(list) = rest.split_off_mut(..*len as usize) else { break };
                let num_down = num_down(rank).min(list.len());
                list[..num_down].iter().for_each(|&v| sorter.see(v, DOWN));
                list[num_down..].iter().for_each(|&v| sorter.see(v, UP));
                sorter.sort(num_hubs);
                list.iter_mut().zip(sorter.classes.iter().flatten()).for_each(|(slot, &v)| *slot = v);
                (*len, *pair) = (sorter.len(), sorter.doubles());
            }
        });
    }
}

/// The direction of an arc at the current vertex: from the vertex, or to it.
pub(super) const DOWN: u8 = 1;
pub(super) const UP: u8 = 2;

/// Sorts the entries of one list after another, and removes repetitions.
struct OrientedListSorter {
    /// For each vertex, the directions seen in the current list.
    ways: Vec<u8>,
    seen: Vec<VertexId>,
    /// Hubs with arcs both ways and one way, then non-hubs with arcs one way and both ways.
    classes: [Vec<VertexId>; 4],
}

impl OrientedListSorter {
    fn one_each(ctx: &Context<'_>, bound: usize) -> Vec<Mutex<Self>> {
        let new = || Mutex::new(Self { ways: zeroed_huge(bound), seen: Vec::new(), classes: Default::default() });
        (0..ctx.pool.num_threads()).map(|_| new()).collect()
    }

    /// Records an entry of the current list.
    #[inline(always)]
    fn see(&mut self, vertex: VertexId, way: u8) {
        let ways = &mut self.ways[vertex as usize];
        if *ways == 0 {
            self.seen.push(vertex);
        }
        *ways |= way;
    }

    /// Fills the classes with the recorded entries, and clears these.
    fn sort(&mut self, num_hubs: VertexId) {
        self.classes.iter_mut().for_each(Vec::clear);
        for vertex in self.seen.drain(..) {
            let is_double = std::mem::take(&mut self.ways[vertex as usize]) == DOWN | UP;
            let class = match (vertex < num_hubs, is_double) {
                (true, true) => 0,
                (true, false) => 1,
                (false, false) => 2,
                (false, true) => 3,
            };
            self.classes[class].push(vertex);
        }
    }

    fn len(&self) -> u32 {
        self.classes.iter().map(|class| class.len() as u32).sum()
    }

    /// The numbers of entries with arcs both ways, at the front and at the back.
    fn doubles(&self) -> [u32; 2] {
        [self.classes[0].len() as u32, self.classes[3].len() as u32]
    }
}

#[inline(always)]
fn start_of([low, high, _]: Slice) -> usize {
    (u64::from(low) | u64::from(high) << 32) as usize
}

/// The slice of a rank, shared by all workers.
#[inline(always)]
fn words_of(words: &[AtomicU32], rank: usize) -> &[AtomicU32; 3] {
    &words.as_chunks().0[rank]
}

/// Assigns starts to slices of known lengths, one after the other. Returns their total length.
fn place(slices: &mut [Slice]) -> usize {
    let mut next = 0_u64;
    for [low, high, len] in slices {
        (*low, *high) = (next as u32, (next >> 32) as u32);
        next += u64::from(*len);
    }
    next as usize
}

/// The lists of each chunk of [`GRAIN`] ranks, with its first rank.
fn split_lists<'a>(mut targets: &'a mut [VertexId], slices: &[Slice]) -> Vec<(usize, &'a mut [VertexId])> {
    let parts = slices.chunks(GRAIN).enumerate().map(|(i, chunk)| {
        let len = chunk.iter().map(|slice| slice[LEN] as usize).sum();
        (i * GRAIN, targets.split_off_mut(..len).unwrap_or_default())
    });
    parts.collect()
}

/// The number of arcs at each vertex, in either direction.
fn degrees(ctx: &Context<'_>, graph: &impl Graph) -> Result<Vec<u32>> {
    let mut degrees = vec![0; graph.vertex_bound()];
    let adds_in = graph.graph_kind() == GraphKind::Directed && graph.has_lists(Direction::In);
    ctx.pool.for_each_part_mut(&mut degrees, GRAIN, |start, part| {
        for (v, degree) in (start as VertexId..).zip(part) {
            *degree =
                (graph.degree(Direction::Out, v) + if adds_in { graph.degree(Direction::In, v) } else { 0 }) as u32;
        }
    });
    if graph.graph_kind() == GraphKind::Directed && !adds_in {
        let counts = as_atomic_u32(&mut degrees);
        for_each_arc(ctx, graph, |_, target| {
            counts[target as usize].fetch_add(1, Ordering::Relaxed);
        })?;
    }
    ctx.progress.check()?;
    Ok(degrees)
}

/// The rank of each vertex, by vertex id.
pub(super) fn ranks_by_degree(ctx: &Context<'_>, graph: &impl Graph) -> Result<Vec<VertexId>> {
    Ok(ranks_of(degrees(ctx, graph)?))
}

/// Ranks by descending degree, then by id, in the memory of the degrees.
fn ranks_of(mut degrees: Vec<u32>) -> Vec<VertexId> {
    let bound = degrees.len();
    // Any order is correct, so degrees above the bound may count as the bound.
    let bucket = |degree: u32| bound - bound.min(degree as usize);
    let mut places = vec![0_u32; bound + 2];
    degrees.iter().for_each(|&degree| places[bucket(degree) + 1] += 1);
    for i in 1..places.len() {
        places[i] += places[i - 1];
    }
    // In the order of ids, so that vertices of equal degree rank by id.
    for degree in &mut degrees {
        let place = &mut places[bucket(*degree)];
        *degree = *place;
        *place += 1;
    }
    degrees
}

#[inline(always)]
pub(super) fn for_each_fragment(
    graph: &impl Graph,
    direction: Direction,
    vertex: VertexId,
    mut body: impl FnMut(&[VertexId]),
) {
    let body = |fragment: &[VertexId]| {
        body(fragment);
        ControlFlow::Continue(())
    };
    let _ = graph.for_each_fragment(direction, vertex, body);
}

/// Records the neighbors of earlier rank in the sorter, without repetitions in a row.
#[inline]
fn see_earlier(
    graph: &impl Graph,
    direction: Direction,
    ranks: &[VertexId],
    vertex: VertexId,
    sorter: &mut OrientedListSorter,
) {
    let way = match direction {
        Direction::Out => DOWN,
        Direction::In => UP,
    };
    for_each_fragment(graph, direction, vertex, |fragment| {
        let earlier = earlier_of(fragment, NO_VERTEX, ranks, ranks[vertex as usize]);
        earlier.filter(|&(_, is_earlier)| is_earlier).for_each(|(v, _)| sorter.see(v, way));
    });
}

/// The number of neighbors of earlier rank.
#[inline]
fn num_earlier(graph: &impl Graph, direction: Direction, ranks: &[VertexId], vertex: VertexId) -> u32 {
    let mut num = 0;
    for_each_fragment(graph, direction, vertex, |fragment| {
        let earlier = earlier_of(fragment, NO_VERTEX, ranks, ranks[vertex as usize]);
        num += earlier.map(|(_, is_earlier)| u32::from(is_earlier)).sum::<u32>();
    });
    num
}

/// Writes the neighbors of earlier rank to the front of `found`, which needs room for one more stretch. Returns their
/// number.
#[inline]
fn gather_earlier(graph: &impl Graph, ranks: &[VertexId], vertex: VertexId, found: &mut Vec<VertexId>) -> usize {
    let mut num_found = 0;
    for_each_fragment(graph, Direction::Out, vertex, |fragment| {
        let mut last = NO_VERTEX;
        for stretch in fragment.chunks(STRETCH) {
            let earlier = earlier_of(stretch, last, ranks, ranks[vertex as usize]);
            num_found = gather(earlier, stretch.len(), found, num_found);
            last = stretch[stretch.len() - 1];
        }
    });
    num_found
}

/// For each neighbor, its rank, and whether it is earlier and no repetition of its predecessor; `last` precedes the
/// first.
#[inline(always)]
fn earlier_of(
    neighbors: &[VertexId],
    mut last: VertexId,
    ranks: &[VertexId],
    rank: VertexId,
) -> impl Iterator<Item = (VertexId, bool)> {
    neighbors.iter().map(move |&neighbor| {
        let other = ranks[neighbor as usize];
        let is_new = neighbor != std::mem::replace(&mut last, neighbor);
        (other, (other < rank) & is_new)
    })
}

/// Appends the wanted ones of `len` entries after the first `num_found` of `found`, without a branch that depends on
/// them. Returns the new number; later elements of `found` are garbage.
#[inline(always)]
pub(crate) fn gather(
    entries: impl Iterator<Item = (VertexId, bool)>,
    len: usize,
    found: &mut Vec<VertexId>,
    mut num_found: usize,
) -> usize {
    if found.len() < num_found + len {
        // Twice the need, so that few lists make the vector grow.
        found.resize(2 * (num_found + len), 0);
    }
    let room = &mut found[..num_found + len];
    for (entry, is_wanted) in entries {
        room[num_found] = entry;
        num_found += usize::from(is_wanted);
    }
    num_found
}
