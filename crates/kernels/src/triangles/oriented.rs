//! Each edge once, at its end of the later rank, with ranks as ids.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use base::memory::{as_atomic_u32, zeroed_huge};
use base::{NO_VERTEX, VertexId};
use graph::{Direction, Graph, InEdges, Side};

use crate::walk::{for_each_arc, for_each_walked_chunk};
use crate::{Context, Result};

/// Vertices of a chunk of parallel work.
const GRAIN: usize = 1 << 12;

/// Entries of a list that are looked at together: the list of a hub is long, and little of it is kept.
const STRETCH: usize = 1 << 10;

/// The copy: the earlier neighbours of each rank, in a slice of `targets`.
///
/// Hubs come first. Where edges have directions, those among the hubs that arcs join both ways come
/// before those that are joined one way, and among the others after them. Otherwise there is no order.
pub(crate) struct Oriented {
    slices: Vec<Slice>,
    /// How many entries at the front and at the back of each list are joined both ways, two numbers a
    /// list; empty where edges have no directions.
    doubles: Vec<u32>,
    targets: Vec<VertexId>,
}

/// Where a list lies: the lower and the higher half of the place where it starts, and its length. A list after the other
/// is looked up at random, so what is read together lies together.
type Slice = [u32; 3];

/// Where the length stands.
const LEN: usize = 2;

impl Oriented {
    /// The most bytes that building takes: ranks, how many vertices have a degree, slices, where lists are sorted also
    /// the lengths of their parts and a byte a worker, the lists, and what each worker has of the list at hand.
    pub(crate) fn num_bytes(graph: &impl Graph, num_threads: usize) -> u64 {
        // Gathered: what is found, which doubles while it is copied. Sorted: the same, and four classes in twice the room.
        let longest = Self::longest_list(graph);
        let (bytes_a_vertex, list_bytes) = match graph.direction() {
            Direction::Undirected if !graph.is_multigraph() => (20, 12 * (longest + STRETCH as u64)),
            _ => (28, 12 * (longest + STRETCH as u64) + 32 * longest),
        };
        let by_worker = graph.vertex_bound() as u64 + list_bytes;
        bytes_a_vertex * graph.vertex_bound() as u64 + num_threads as u64 * by_worker + 4 * Self::num_entries(graph)
    }

    /// The most entries that all lists have together.
    pub(crate) fn num_entries(graph: &impl Graph) -> u64 {
        match graph.direction() {
            Direction::Undirected => graph.num_edges(),
            Direction::Directed => graph.num_arcs(),
        }
    }

    /// The most entries of a list: each is of at least the same degree.
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

    /// All earlier neighbours.
    #[inline(always)]
    pub(crate) fn list(&self, rank: usize) -> &[VertexId] {
        let slice = self.slices[rank];
        &self.targets[start_of(slice)..][..slice[LEN] as usize]
    }

    /// Hints that the list of `rank` is looked for soon.
    #[inline(always)]
    pub(crate) fn prefetch_place(&self, rank: usize) {
        base::simd::prefetch(&self.slices, rank);
    }

    /// Hints that the list of `rank`, which was looked for, is read soon.
    #[inline(always)]
    pub(crate) fn prefetch_list(&self, rank: usize) {
        base::simd::prefetch(&self.targets, start_of(self.slices[rank]));
    }

    /// The same in three parts: hubs that arcs join both ways, neighbours joined one way, and others
    /// joined both ways.
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

    /// Copies the edges, with the first `num_hubs` ranks before the others in each list; gives the ranks of the vertices
    /// as well.
    pub(crate) fn build(ctx: &Context<'_>, graph: &impl InEdges, num_hubs: VertexId) -> Result<(Self, Vec<VertexId>)> {
        let ranks = ranks_by_degree(ctx, graph)?;
        let oriented = match graph.direction() {
            Direction::Undirected => Self::from_lists(ctx, graph, &ranks, num_hubs),
            Direction::Directed if graph.has_in_edges() => Self::from_both_lists(ctx, graph, &ranks, num_hubs),
            Direction::Directed => Self::from_arcs(ctx, graph, &ranks, num_hubs),
        };
        Ok((oriented?, ranks))
    }

    /// Every arc stands in two lists, that of its source and that of its target: each vertex copies its
    /// own, in the order of ids, in which lists are read in sequence.
    fn from_both_lists(
        ctx: &Context<'_>,
        graph: &impl InEdges,
        ranks: &[VertexId],
        num_hubs: VertexId,
    ) -> Result<Self> {
        let bound = graph.vertex_bound();
        let mut slices = vec![Slice::default(); bound];
        let words = as_atomic_u32(slices.as_flattened_mut());
        for_each_walked_chunk(ctx, graph, GRAIN, None, |_, chunk| {
            for vertex in chunk {
                let len = |side| num_earlier(graph, side, ranks, vertex as VertexId);
                let len = len(Side::Out) + len(Side::In);
                words_of(words, ranks[vertex] as usize)[LEN].store(len, Ordering::Relaxed);
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        let mut targets = zeroed_huge::<VertexId>(place(&mut slices));
        let mut doubles = vec![0; 2 * bound];
        let words = as_atomic_u32(slices.as_flattened_mut());
        let slots = (as_atomic_u32(&mut doubles), as_atomic_u32(&mut targets));
        let sorters = Sorter::one_each(ctx, bound);
        for_each_walked_chunk(ctx, graph, GRAIN, None, |worker, chunk| {
            let mut sorter = sorters[worker].lock().unwrap_or_else(|e| e.into_inner());
            for vertex in chunk {
                see_earlier(graph, Side::Out, ranks, vertex as VertexId, &mut sorter);
                see_earlier(graph, Side::In, ranks, vertex as VertexId, &mut sorter);
                sorter.sort(num_hubs);
                let rank = ranks[vertex] as usize;
                let entries = sorter.classes.iter().flatten();
                let slice = words_of(words, rank);
                let list = &slots.1[start_of([0, 1, LEN].map(|i| slice[i].load(Ordering::Relaxed)))..];
                entries.zip(list).for_each(|(&v, slot)| slot.store(v, Ordering::Relaxed));
                slice[LEN].store(sorter.len(), Ordering::Relaxed);
                let pair = &slots.0[2 * rank..];
                sorter.doubles().iter().zip(pair).for_each(|(&len, slot)| slot.store(len, Ordering::Relaxed));
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        Ok(Self { slices, doubles, targets })
    }

    /// Every edge stands in the lists of both ends: each vertex copies its own, in the order of ids.
    fn from_lists(ctx: &Context<'_>, graph: &impl InEdges, ranks: &[VertexId], num_hubs: VertexId) -> Result<Self> {
        let bound = graph.vertex_bound();
        let mut slices = vec![Slice::default(); bound];
        let words = as_atomic_u32(slices.as_flattened_mut());
        for_each_walked_chunk(ctx, graph, GRAIN, None, |_, chunk| {
            for vertex in chunk {
                let len = num_earlier(graph, Side::Out, ranks, vertex as VertexId);
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
        if graph.is_multigraph() {
            oriented.classify(ctx, num_hubs, |_| usize::MAX);
            oriented.doubles = Vec::new();
        }
        Ok(oriented)
    }

    /// Every arc stands in one list only: it is sent to its later end, to the front of the list if it
    /// leads from there and to the back if it leads there.
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
        drop(up);
        let mut oriented = Self { slices, doubles: Vec::new(), targets };
        oriented.classify(ctx, num_hubs, |rank| down[rank] as usize);
        Ok(oriented)
    }

    /// Puts every list in its order, without repetitions. `num_down` says how many entries of the list
    /// of a rank are arcs that lead from there; those after them lead there.
    fn classify(&mut self, ctx: &Context<'_>, num_hubs: VertexId, num_down: impl Fn(usize) -> usize + Sync) {
        let bound = self.slices.len();
        let sorters = Sorter::one_each(ctx, bound);
        self.doubles = vec![0; 2 * bound];
        let items = split_lists(&mut self.targets, &self.slices);
        let items = items.into_iter().zip(self.slices.chunks_mut(GRAIN)).zip(self.doubles.chunks_mut(2 * GRAIN));
        ctx.pool.for_each_item(items.collect(), |worker, (((first, targets), slices), doubles)| {
            let mut sorter = sorters[worker].lock().unwrap_or_else(|e| e.into_inner());
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

/// How an arc joins a vertex to the one at hand: it leads there, or from there.
pub(super) const DOWN: u8 = 1;
pub(super) const UP: u8 = 2;

/// Puts the entries of one list after another in order, each once.
struct Sorter {
    /// For each vertex, which ways it was seen, while its list is at hand.
    ways: Vec<u8>,
    seen: Vec<VertexId>,
    /// Hubs joined both ways and one way, others joined one way and both ways.
    classes: [Vec<VertexId>; 4],
}

impl Sorter {
    fn one_each(ctx: &Context<'_>, bound: usize) -> Vec<Mutex<Self>> {
        let new = || Mutex::new(Self { ways: zeroed_huge(bound), seen: Vec::new(), classes: Default::default() });
        (0..ctx.pool.num_threads()).map(|_| new()).collect()
    }

    /// Notes an entry of the list at hand.
    #[inline(always)]
    fn see(&mut self, vertex: VertexId, way: u8) {
        let ways = &mut self.ways[vertex as usize];
        if *ways == 0 {
            self.seen.push(vertex);
        }
        *ways |= way;
    }

    /// Fills the classes with what was seen, and forgets that.
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

    /// How many are joined both ways, at the front and at the back.
    fn doubles(&self) -> [u32; 2] {
        [self.classes[0].len() as u32, self.classes[3].len() as u32]
    }
}

#[inline(always)]
fn start_of([low, high, _]: Slice) -> usize {
    (u64::from(low) | u64::from(high) << 32) as usize
}

/// The slice of a rank, for all workers.
#[inline(always)]
fn words_of(words: &[AtomicU32], rank: usize) -> &[AtomicU32; 3] {
    &words.as_chunks().0[rank]
}

/// Lays slices of known lengths one after the other; gives how long they are together.
fn place(slices: &mut [Slice]) -> usize {
    let mut next = 0_u64;
    for [low, high, len] in slices {
        (*low, *high) = (next as u32, (next >> 32) as u32);
        next += u64::from(*len);
    }
    next as usize
}

/// The lists of each chunk of [`GRAIN`] vertices, with its first vertex.
fn split_lists<'a>(mut targets: &'a mut [VertexId], slices: &[Slice]) -> Vec<(usize, &'a mut [VertexId])> {
    let parts = slices.chunks(GRAIN).enumerate().map(|(i, chunk)| {
        let len = chunk.iter().map(|slice| slice[LEN] as usize).sum();
        (i * GRAIN, targets.split_off_mut(..len).unwrap_or_default())
    });
    parts.collect()
}

/// The arcs at each vertex, in either direction.
fn degrees(ctx: &Context<'_>, graph: &impl InEdges) -> Result<Vec<u32>> {
    let mut degrees = vec![0; graph.vertex_bound()];
    let adds_in = graph.direction() == Direction::Directed && graph.has_in_edges();
    ctx.pool.for_each_part_mut(&mut degrees, GRAIN, |start, part| {
        for (v, degree) in (start as VertexId..).zip(part) {
            *degree = (graph.out_degree(v) + if adds_in { graph.in_degree(v) } else { 0 }) as u32;
        }
    });
    if graph.direction() == Direction::Directed && !adds_in {
        let counts = as_atomic_u32(&mut degrees);
        for_each_arc(ctx, graph, |_, target| {
            counts[target as usize].fetch_add(1, Ordering::Relaxed);
        })?;
    }
    ctx.progress.check()?;
    Ok(degrees)
}

/// The ranks of the vertices.
pub(super) fn ranks_by_degree(ctx: &Context<'_>, graph: &impl InEdges) -> Result<Vec<VertexId>> {
    Ok(ranks_of(degrees(ctx, graph)?))
}

/// Ranks by degree, the highest first, then by id, in the memory of the degrees.
fn ranks_of(mut degrees: Vec<u32>) -> Vec<VertexId> {
    let bound = degrees.len();
    // Any order is right, so degrees above the bound may count as the bound.
    let bucket = |degree: u32| bound - bound.min(degree as usize);
    let mut places = vec![0_u32; bound + 2];
    degrees.iter().for_each(|&degree| places[bucket(degree) + 1] += 1);
    for i in 1..places.len() {
        places[i] += places[i - 1];
    }
    for degree in &mut degrees {
        let place = &mut places[bucket(*degree)];
        *degree = *place;
        *place += 1;
    }
    degrees
}

#[inline(always)]
pub(super) fn for_each_fragment(graph: &impl InEdges, side: Side, vertex: VertexId, mut body: impl FnMut(&[VertexId])) {
    let body = |fragment: &[VertexId]| {
        body(fragment);
        ControlFlow::Continue(())
    };
    let _ = match side {
        Side::Out => graph.for_each_out_fragment(vertex, body),
        Side::In => graph.for_each_in_fragment(vertex, body),
    };
}

/// Has the sorter see the earlier neighbours of `vertex`, as ranks, leaving repetitions in a row out.
#[inline]
fn see_earlier(graph: &impl InEdges, side: Side, ranks: &[VertexId], vertex: VertexId, sorter: &mut Sorter) {
    let way = match side {
        Side::Out => DOWN,
        Side::In => UP,
    };
    for_each_fragment(graph, side, vertex, |fragment| {
        let earlier = earlier_of(fragment, NO_VERTEX, ranks, ranks[vertex as usize]);
        earlier.filter(|&(_, is_earlier)| is_earlier).for_each(|(v, _)| sorter.see(v, way));
    });
}

/// How many earlier neighbours there are.
#[inline]
fn num_earlier(graph: &impl InEdges, side: Side, ranks: &[VertexId], vertex: VertexId) -> u32 {
    let mut num = 0;
    for_each_fragment(graph, side, vertex, |fragment| {
        let earlier = earlier_of(fragment, NO_VERTEX, ranks, ranks[vertex as usize]);
        num += earlier.map(|(_, is_earlier)| u32::from(is_earlier)).sum::<u32>();
    });
    num
}

/// Puts the earlier targets at the front of `found`, which takes room for a stretch beside them; gives how many there are.
#[inline]
fn gather_earlier(graph: &impl InEdges, ranks: &[VertexId], vertex: VertexId, found: &mut Vec<VertexId>) -> usize {
    let mut num_found = 0;
    for_each_fragment(graph, Side::Out, vertex, |fragment| {
        let mut last = NO_VERTEX;
        for stretch in fragment.chunks(STRETCH) {
            let earlier = earlier_of(stretch, last, ranks, ranks[vertex as usize]);
            num_found = gather(earlier, stretch.len(), found, num_found);
            last = stretch[stretch.len() - 1];
        }
    });
    num_found
}

/// The ranks of these neighbours, which follow `last`, and whether they are earlier and no repetition of the one before.
#[inline(always)]
fn earlier_of(
    neighbours: &[VertexId],
    mut last: VertexId,
    ranks: &[VertexId],
    rank: VertexId,
) -> impl Iterator<Item = (VertexId, bool)> {
    neighbours.iter().map(move |&neighbour| {
        let other = ranks[neighbour as usize];
        let is_new = neighbour != std::mem::replace(&mut last, neighbour);
        (other, (other < rank) & is_new)
    })
}

/// Puts those of `len` entries that are wanted behind the first `num_found` of `found`, without a branch that depends on
/// them; gives how many there are then. What follows them means nothing.
#[inline(always)]
pub(crate) fn gather(
    entries: impl Iterator<Item = (VertexId, bool)>,
    len: usize,
    found: &mut Vec<VertexId>,
    mut num_found: usize,
) -> usize {
    if found.len() < num_found + len {
        found.resize(2 * (num_found + len), 0);
    }
    let room = &mut found[..num_found + len];
    for (entry, is_wanted) in entries {
        room[num_found] = entry;
        num_found += usize::from(is_wanted);
    }
    num_found
}
