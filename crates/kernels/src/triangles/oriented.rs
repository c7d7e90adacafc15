//! Each edge once, at its end of the later rank, with ranks as ids.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

use base::VertexId;
use base::memory::{as_atomic_u32, zeroed_huge};
use graph::{Direction, Graph, Page};

use crate::{Context, Result};

/// Vertices of a chunk of parallel work.
const GRAIN: usize = 1 << 12;

/// The copy: `targets[starts[rank]..][..lens[rank]]` are the earlier neighbours of `rank`, those
/// below the number of hubs first, otherwise in no order.
pub(super) struct Oriented {
    starts: Vec<u64>,
    lens: Vec<u32>,
    targets: Vec<VertexId>,
}

/// The vertices by degree.
struct Ranks {
    /// The rank of a vertex.
    of: Vec<VertexId>,
    /// The vertex of a rank.
    order: Vec<VertexId>,
}

impl Oriented {
    /// The most bytes that building takes.
    pub(super) fn num_bytes(graph: &impl Graph) -> u64 {
        let copied = match graph.direction() {
            Direction::Undirected => graph.num_edges(),
            Direction::Directed => graph.num_arcs(),
        };
        24 * graph.vertex_bound() as u64 + 4 * copied
    }

    /// The bytes of the copy.
    pub(super) fn copy_bytes(&self) -> u64 {
        (size_of_val(&self.starts[..]) + size_of_val(&self.lens[..]) + size_of_val(&self.targets[..])) as u64
    }

    pub(super) fn num_vertices(&self) -> usize {
        self.lens.len()
    }

    #[inline(always)]
    pub(super) fn list(&self, rank: usize) -> &[VertexId] {
        &self.targets[self.starts[rank] as usize..][..self.lens[rank] as usize]
    }

    pub(super) fn build(ctx: &Context<'_>, graph: &impl Graph, num_hubs: VertexId) -> Result<Self> {
        let ranks = Ranks::by_degree(degrees(ctx, graph)?);
        match graph.direction() {
            Direction::Undirected => Self::from_lists(ctx, graph, ranks, num_hubs),
            Direction::Directed => Self::from_arcs(ctx, graph, ranks),
        }
    }

    /// Every edge stands in the lists of both ends: each vertex copies its own.
    fn from_lists(ctx: &Context<'_>, graph: &impl Graph, ranks: Ranks, num_hubs: VertexId) -> Result<Self> {
        let mut lens = vec![0; graph.vertex_bound()];
        ctx.pool.for_each_part_mut(&mut lens, GRAIN, |start, lens| {
            for (rank, len) in (start..).zip(lens) {
                for_each_earlier(graph, &ranks, rank, |_| *len += 1);
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
                for_each_earlier(graph, &ranks, rank, |target| {
                    let at = if target < num_hubs { front } else { back.wrapping_sub(1) };
                    if let Some(slot) = list.get_mut(at) {
                        *slot = target;
                        (front, back) = if target < num_hubs { (front + 1, back) } else { (front, back - 1) };
                    }
                });
            }
        });
        drop(ranks);
        let mut oriented = Self { starts, lens, targets };
        if graph.is_multigraph() {
            oriented.sort_and_deduplicate(ctx);
        }
        Ok(oriented)
    }

    /// Every arc stands in one list only: it is sent to its later end.
    fn from_arcs(ctx: &Context<'_>, graph: &impl Graph, ranks: Ranks) -> Result<Self> {
        let bound = graph.vertex_bound();
        let ends = |source: VertexId, target: VertexId| {
            let (a, b) = (ranks.of[source as usize], ranks.of[target as usize]);
            (a.max(b), a.min(b))
        };
        let mut lens = vec![0; bound];
        let counts = as_atomic_u32(&mut lens);
        for_each_arc(ctx, graph, |source, target| {
            counts[ends(source, target).0 as usize].fetch_add(1, Ordering::Relaxed);
        });
        ctx.progress.check()?;
        graph.check()?;
        let (starts, num_targets) = starts(&lens);
        let mut targets = zeroed_huge(num_targets);
        lens.fill(0);
        let counts = as_atomic_u32(&mut lens);
        let slots = as_atomic_u32(&mut targets);
        for_each_arc(ctx, graph, |source, target| {
            let (later, earlier) = ends(source, target);
            let place = counts[later as usize].fetch_add(1, Ordering::Relaxed);
            if let Some(slot) = slots.get(starts[later as usize] as usize + place as usize) {
                slot.store(earlier, Ordering::Relaxed);
            }
        });
        drop(ranks);
        ctx.progress.check()?;
        graph.check()?;
        let mut oriented = Self { starts, lens, targets };
        oriented.sort_and_deduplicate(ctx);
        Ok(oriented)
    }

    fn sort_and_deduplicate(&mut self, ctx: &Context<'_>) {
        let items = split_lists(&mut self.targets, &self.starts, &self.lens);
        let items = items.into_iter().zip(self.lens.chunks_mut(GRAIN)).collect();
        ctx.pool.for_each_item(items, |_, ((_, targets), lens)| {
            let mut rest = targets;
            for len in lens {
                let Some(list) = rest.split_off_mut(..*len as usize) else { break };
                list.sort_unstable();
                let mut kept = 0;
                for i in 0..list.len() {
                    if kept == 0 || list[i] != list[kept - 1] {
                        list[kept] = list[i];
                        kept += 1;
                    }
                }
                *len = kept as u32;
            }
        });
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
fn degrees(ctx: &Context<'_>, graph: &impl Graph) -> Result<Vec<u32>> {
    let mut degrees = vec![0; graph.vertex_bound()];
    ctx.pool.for_each_part_mut(&mut degrees, GRAIN, |start, part| {
        let vertices = start as VertexId..;
        vertices.zip(part).for_each(|(v, degree)| *degree = graph.out_degree(v) as u32);
    });
    if graph.direction() == Direction::Directed {
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

/// Calls `body` with the earlier neighbours of `rank`, as ranks, leaving repetitions in a row out.
#[inline]
fn for_each_earlier(graph: &impl Graph, ranks: &Ranks, rank: usize, mut body: impl FnMut(VertexId)) {
    let _ = graph.for_each_out_fragment(ranks.order[rank], |fragment| {
        let mut last = None;
        for &neighbour in fragment {
            let other = ranks.of[neighbour as usize];
            if (other as usize) < rank && last != Some(neighbour) {
                body(other);
            }
            last = Some(neighbour);
        }
        ControlFlow::Continue(())
    });
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
