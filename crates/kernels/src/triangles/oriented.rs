//! Each edge once, at its end of the later rank, with ranks as ids.

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use base::VertexId;
use base::memory::{as_atomic_u32, zeroed_huge};
use graph::{Direction, Graph, InEdges, Page};

use crate::{Context, Result};

/// Vertices of a chunk of parallel work.
const GRAIN: usize = 1 << 12;

/// The copy: `targets[starts[rank]..][..lens[rank]]` are the earlier neighbours of `rank`.
///
/// Hubs come first. Where edges have directions, those among the hubs that arcs join both ways come
/// before those that are joined one way, and among the others after them. Otherwise there is no order.
pub(crate) struct Oriented {
    starts: Vec<u64>,
    lens: Vec<u32>,
    /// How many entries at the front and at the back of each list are joined both ways, two numbers a
    /// list; empty where edges have no directions.
    doubles: Vec<u32>,
    targets: Vec<VertexId>,
}

/// The vertices by degree.
pub(crate) struct Ranks {
    /// The rank of a vertex.
    pub(crate) of: Vec<VertexId>,
    /// The vertex of a rank.
    order: Vec<VertexId>,
}

impl Oriented {
    /// The most bytes that building takes: ranks and the vertices by rank, starts, lengths, where lists
    /// are sorted also those of their parts and a byte a worker, and the lists.
    pub(crate) fn num_bytes(graph: &impl Graph, num_threads: usize) -> u64 {
        let (copied, bytes_a_vertex) = match graph.direction() {
            Direction::Undirected if !graph.is_multigraph() => (graph.num_edges(), 24),
            Direction::Undirected => (graph.num_edges(), 32),
            Direction::Directed => (graph.num_arcs(), 32),
        };
        (bytes_a_vertex + num_threads as u64) * graph.vertex_bound() as u64 + 4 * copied
    }

    /// The most entries of a list: each is of at least the same degree.
    pub(crate) fn longest_list(graph: &impl Graph) -> u64 {
        (2 * graph.num_arcs()).isqrt().min(graph.vertex_bound() as u64)
    }

    /// The bytes of the copy.
    pub(crate) fn copy_bytes(&self) -> u64 {
        let lens = size_of_val(&self.lens[..]) + size_of_val(&self.doubles[..]);
        (size_of_val(&self.starts[..]) + lens + size_of_val(&self.targets[..])) as u64
    }

    pub(crate) fn num_vertices(&self) -> usize {
        self.lens.len()
    }

    /// All earlier neighbours.
    #[inline(always)]
    pub(crate) fn list(&self, rank: usize) -> &[VertexId] {
        &self.targets[self.starts[rank] as usize..][..self.lens[rank] as usize]
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

    /// Copies the edges, with the first `num_hubs` ranks before the others in each list.
    pub(crate) fn build(ctx: &Context<'_>, graph: &impl InEdges, num_hubs: VertexId) -> Result<(Self, Ranks)> {
        let ranks = Ranks::by_degree(degrees(ctx, graph)?);
        let oriented = match graph.direction() {
            Direction::Undirected => Self::from_lists(ctx, graph, &ranks, num_hubs),
            Direction::Directed if graph.has_in_edges() => Self::from_both_lists(ctx, graph, &ranks, num_hubs),
            Direction::Directed => Self::from_arcs(ctx, graph, &ranks, num_hubs),
        };
        Ok((oriented?, ranks))
    }

    /// Every arc stands in two lists, that of its source and that of its target: each vertex copies its
    /// own, in the order of ids, in which lists are read in sequence.
    fn from_both_lists(ctx: &Context<'_>, graph: &impl InEdges, ranks: &Ranks, num_hubs: VertexId) -> Result<Self> {
        let bound = graph.vertex_bound();
        let mut lens = vec![0; bound];
        let slots = as_atomic_u32(&mut lens);
        ctx.pool.for_each_chunk(0..bound, GRAIN, |_, chunk| {
            for vertex in chunk {
                let mut len = 0;
                for_each_earlier(graph, ranks, vertex as VertexId, |_| len += 1);
                for_each_earlier_source(graph, ranks, vertex as VertexId, |_| len += 1);
                slots[ranks.of[vertex] as usize].store(len, Ordering::Relaxed);
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        let (starts, num_targets) = starts(&lens);
        let mut targets = zeroed_huge::<VertexId>(num_targets);
        let mut doubles = vec![0; 2 * bound];
        let slots = (as_atomic_u32(&mut lens), as_atomic_u32(&mut doubles), as_atomic_u32(&mut targets));
        let sorters = Sorter::one_each(ctx, bound);
        ctx.pool.for_each_chunk(0..bound, GRAIN, |worker, chunk| {
            let mut sorter = sorters[worker].lock().unwrap_or_else(|e| e.into_inner());
            for vertex in chunk {
                for_each_earlier(graph, ranks, vertex as VertexId, |v| sorter.see(v, Sorter::DOWN));
                for_each_earlier_source(graph, ranks, vertex as VertexId, |v| sorter.see(v, Sorter::UP));
                sorter.sort(num_hubs);
                let rank = ranks.of[vertex] as usize;
                let entries = sorter.classes.iter().flatten();
                let list = &slots.2[starts[rank] as usize..];
                entries.zip(list).for_each(|(&v, slot)| slot.store(v, Ordering::Relaxed));
                slots.0[rank].store(sorter.len(), Ordering::Relaxed);
                let pair = &slots.1[2 * rank..];
                sorter.doubles().iter().zip(pair).for_each(|(&len, slot)| slot.store(len, Ordering::Relaxed));
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        Ok(Self { starts, lens, doubles, targets })
    }

    /// Every edge stands in the lists of both ends: each vertex copies its own.
    fn from_lists(ctx: &Context<'_>, graph: &impl Graph, ranks: &Ranks, num_hubs: VertexId) -> Result<Self> {
        let mut lens = vec![0; graph.vertex_bound()];
        ctx.pool.for_each_part_mut(&mut lens, GRAIN, |start, lens| {
            for (rank, len) in (start..).zip(lens) {
                for_each_earlier(graph, ranks, ranks.order[rank], |_| *len += 1);
            }
        });
        ctx.progress.check()?;
        graph.check()?;
        let (starts, num_targets) = starts(&lens);
        let mut targets = zeroed_huge::<VertexId>(num_targets);
        let items = split_lists(&mut targets, &starts, &lens);
        ctx.pool.for_each_item(items, |_, (start, targets)| {
            let mut rest = targets;
            for (rank, &len) in (start..).zip(lens[start..].iter().take(GRAIN)) {
                let Some(list) = rest.split_off_mut(..len as usize) else { break };
                let (mut front, mut back) = (0, list.len());
                for_each_earlier(graph, ranks, ranks.order[rank], |target| {
                    let at = if target < num_hubs { front } else { back.wrapping_sub(1) };
                    if let Some(slot) = list.get_mut(at) {
                        *slot = target;
                        (front, back) = if target < num_hubs { (front + 1, back) } else { (front, back - 1) };
                    }
                });
            }
        });
        let mut oriented = Self { starts, lens, doubles: Vec::new(), targets };
        if graph.is_multigraph() {
            oriented.classify(ctx, num_hubs, |_| usize::MAX);
            oriented.doubles = Vec::new();
        }
        Ok(oriented)
    }

    /// Every arc stands in one list only: it is sent to its later end, to the front of the list if it
    /// leads from there and to the back if it leads there.
    fn from_arcs(ctx: &Context<'_>, graph: &impl Graph, ranks: &Ranks, num_hubs: VertexId) -> Result<Self> {
        let bound = graph.vertex_bound();
        let ends = |source: VertexId, target: VertexId| {
            let (a, b) = (ranks.of[source as usize], ranks.of[target as usize]);
            (a.max(b) as usize, a.min(b), a > b)
        };
        let mut lens = vec![0; bound];
        let counts = as_atomic_u32(&mut lens);
        for_each_arc(ctx, graph, |source, target| {
            counts[ends(source, target).0].fetch_add(1, Ordering::Relaxed);
        });
        ctx.progress.check()?;
        graph.check()?;
        let (starts, num_targets) = starts(&lens);
        let mut targets = zeroed_huge(num_targets);
        let (mut down, mut up) = (vec![0; bound], lens.clone());
        let (fronts, backs) = (as_atomic_u32(&mut down), as_atomic_u32(&mut up));
        let slots = as_atomic_u32(&mut targets);
        for_each_arc(ctx, graph, |source, target| {
            let (later, earlier, leads_down) = ends(source, target);
            let place = match leads_down {
                true => fronts[later].fetch_add(1, Ordering::Relaxed),
                false => backs[later].fetch_sub(1, Ordering::Relaxed).wrapping_sub(1),
            };
            if let Some(slot) = slots.get(starts[later] as usize + place as usize) {
                slot.store(earlier, Ordering::Relaxed);
            }
        });
        drop(up);
        ctx.progress.check()?;
        graph.check()?;
        let mut oriented = Self { starts, lens, doubles: Vec::new(), targets };
        oriented.classify(ctx, num_hubs, |rank| down[rank] as usize);
        Ok(oriented)
    }

    /// Puts every list in its order, without repetitions. `num_down` says how many entries of the list
    /// of a rank are arcs that lead from there; those after them lead there.
    fn classify(&mut self, ctx: &Context<'_>, num_hubs: VertexId, num_down: impl Fn(usize) -> usize + Sync) {
        let bound = self.lens.len();
        let sorters = Sorter::one_each(ctx, bound);
        self.doubles = vec![0; 2 * bound];
        let items = split_lists(&mut self.targets, &self.starts, &self.lens);
        let items = items.into_iter().zip(self.lens.chunks_mut(GRAIN)).zip(self.doubles.chunks_mut(2 * GRAIN));
        ctx.pool.for_each_item(items.collect(), |worker, (((first, targets), lens), doubles)| {
            let mut sorter = sorters[worker].lock().unwrap_or_else(|e| e.into_inner());
            let mut rest = targets;
            for ((len, pair), rank) in lens.iter_mut().zip(doubles.as_chunks_mut().0).zip(first..) {
                let Some(list) = rest.split_off_mut(..*len as usize) else { break };
                let num_down = num_down(rank).min(list.len());
                list[..num_down].iter().for_each(|&v| sorter.see(v, Sorter::DOWN));
                list[num_down..].iter().for_each(|&v| sorter.see(v, Sorter::UP));
                sorter.sort(num_hubs);
                list.iter_mut().zip(sorter.classes.iter().flatten()).for_each(|(slot, &v)| *slot = v);
                (*len, *pair) = (sorter.len(), sorter.doubles());
            }
        });
    }
}

/// Puts the entries of one list after another in order, each once.
struct Sorter {
    /// For each vertex, which ways it was seen, while its list is at hand.
    ways: Vec<u8>,
    seen: Vec<VertexId>,
    /// Hubs joined both ways and one way, others joined one way and both ways.
    classes: [Vec<VertexId>; 4],
}

impl Sorter {
    const DOWN: u8 = 1;
    const UP: u8 = 2;

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
            let is_double = std::mem::take(&mut self.ways[vertex as usize]) == Self::DOWN | Self::UP;
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

/// Where each list starts, one after the other, and how long they are together.
fn starts(lens: &[u32]) -> (Vec<u64>, usize) {
    let mut next = 0_u64;
    let starts = lens.iter().map(|&len| {
        let start = next;
        next += u64::from(len);
        start
    });
    (starts.collect(), next as usize)
}

/// The lists of each chunk of [`GRAIN`] vertices, with its first vertex.
fn split_lists<'a>(mut targets: &'a mut [VertexId], starts: &[u64], lens: &[u32]) -> Vec<(usize, &'a mut [VertexId])> {
    let firsts = (0..lens.len()).step_by(GRAIN);
    let parts = firsts.map(|first| {
        let last = (first + GRAIN).min(lens.len()) - 1;
        let len = (starts[last] - starts[first]) as usize + lens[last] as usize;
        (first, targets.split_off_mut(..len).unwrap_or_default())
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
        });
    }
    ctx.progress.check()?;
    Ok(degrees)
}

impl Ranks {
    /// Ranks by degree, the highest first, then by id. Takes the memory of the degrees over.
    fn by_degree(mut degrees: Vec<u32>) -> Self {
        let bound = degrees.len();
        // Any order is right, so degrees above the bound may count as the bound.
        let bucket = |degree: u32| bound - bound.min(degree as usize);
        let mut places = vec![0_u32; bound + 2];
        degrees.iter().for_each(|&degree| places[bucket(degree) + 1] += 1);
        for i in 1..places.len() {
            places[i] += places[i - 1];
        }
        let mut order = vec![0; bound];
        for (vertex, degree) in degrees.iter_mut().enumerate() {
            let place = &mut places[bucket(*degree)];
            order[*place as usize] = vertex as VertexId;
            *degree = *place;
            *place += 1;
        }
        Self { of: degrees, order }
    }
}

/// Calls `body` with the earlier targets of `vertex`, as ranks, leaving repetitions in a row out.
#[inline]
fn for_each_earlier(graph: &impl Graph, ranks: &Ranks, vertex: VertexId, mut body: impl FnMut(VertexId)) {
    let rank = ranks.of[vertex as usize] as usize;
    let _ = graph.for_each_out_fragment(vertex, |fragment| {
        earlier_of(fragment, ranks, rank, &mut body);
        ControlFlow::Continue(())
    });
}

/// The same with the earlier sources.
#[inline]
fn for_each_earlier_source(graph: &impl InEdges, ranks: &Ranks, vertex: VertexId, mut body: impl FnMut(VertexId)) {
    let rank = ranks.of[vertex as usize] as usize;
    let _ = graph.for_each_in_fragment(vertex, |fragment| {
        earlier_of(fragment, ranks, rank, &mut body);
        ControlFlow::Continue(())
    });
}

#[inline(always)]
fn earlier_of(fragment: &[VertexId], ranks: &Ranks, rank: usize, body: &mut impl FnMut(VertexId)) {
    let mut last = None;
    for &neighbour in fragment {
        let other = ranks.of[neighbour as usize];
        if (other as usize) < rank && last != Some(neighbour) {
            body(other);
        }
        last = Some(neighbour);
    }
}

/// Calls `body` with the arcs that are no loops, from all workers.
fn for_each_arc(ctx: &Context<'_>, graph: &impl Graph, body: impl Fn(VertexId, VertexId) + Sync) {
    let arcs = |source: VertexId, list: &[VertexId]| {
        list.iter().filter(|&&target| target != source).for_each(|&target| body(source, target));
    };
    ctx.pool.for_each_chunk(0..graph.vertex_bound(), GRAIN, |_, chunk: Range<usize>| {
        if ctx.progress.is_cancelled() {
            return;
        }
        let _ = graph.for_each_out_page(chunk.start as VertexId..chunk.end as VertexId, |page| {
            match page {
                Page::Dense(page) => page.lists().for_each(|(source, list)| arcs(source, list)),
                Page::Patched(sources) => {
                    for source in sources {
                        let _ = graph.for_each_out_fragment(source, |fragment| {
                            arcs(source, fragment);
                            ControlFlow::Continue(())
                        });
                    }
                }
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
    });
}
