//! A shortest path by weight: Dijkstra's algorithm from both ends.
//!
//! One search settles vertices along out-edges, one along in-edges, nearest first; the one that has fewer before it
//! goes on. A vertex that both know gives a path, and the lightest so far is the answer once the nearest vertices
//! before the two searches are together no nearer than its length. Without in-edges the search goes forward only.
//!
//! # Source
//! Pohl, "Bi-directional search", Machine Intelligence 6, 1971. Ours does not keep what cannot become lighter than the
//! lightest path so far.

use std::cell::Cell;
use std::ops::ControlFlow;

use base::VertexId;
use graph::{Distance, InEdges, Parts, Side, Weight, WeightType, WeightedEdges};

use super::POLL;
use super::heap::Heap;
use super::path::path;
use super::table::{Scratch, Table, with_scratch};
use crate::context::require_vertex;
use crate::sssp::{DistanceValue, largest, too_far};
use crate::{Context, Error, Result};

/// A path with the sum of its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedPath {
    /// From the source to the target, both included; one vertex where they are the same.
    pub vertices: Vec<VertexId>,
    /// The sum of the weights of its edges, added up from the source on.
    pub length: DistanceValue,
}

/// A path of the least weight from `source` to `target`; `None` where there is no path.
///
/// *Cost*: the edges of all vertices that are nearer to one end than about half of the length. *Memory*: some 130
/// bytes for each vertex that they lead to; up to 1 MB of it is kept by the thread for its next search. *Determinism*:
/// always the same of the lightest paths: where the searches meet, and which way each came, the first found.
///
/// # Errors
/// One of the two does not exist; the graph has no weights, or the search meets a negative one or a
/// NaN (the error names the edge); there is a path, but none shorter than 2^64 - 1, or for floating weights than infinity
/// (about 1.8e308); the graph is damaged; the budget of memory is too small; the work was cancelled.
pub fn weighted_path<G: InEdges + WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    target: VertexId,
) -> Result<Option<WeightedPath>> {
    require_vertex(graph, source)?;
    require_vertex(graph, target)?;
    match graph.weight_type() {
        Some(WeightType::U32) => dijkstra::<u32, G>(ctx, graph, (source, target), DistanceValue::Integer),
        Some(WeightType::I64) => dijkstra::<i64, G>(ctx, graph, (source, target), DistanceValue::Integer),
        Some(WeightType::F32) => dijkstra::<f32, G>(ctx, graph, (source, target), DistanceValue::Float),
        Some(WeightType::F64) => dijkstra::<f64, G>(ctx, graph, (source, target), DistanceValue::Float),
        None => Err(Error::Unsupported { kernel: "a path by weight", needs: "edge weights" }),
    }
}

/// The vertices whose lists are announced at a time, where somebody listens.
const AHEAD: usize = 16;

/// The vertices whose lists are fetched, the first of a heap: the second nearest is one of the four behind the nearest.
const FETCHED: usize = 4;

/// The edges that are looked at before any of them is followed.
const BLOCK: usize = 64;

/// Room for an entry of the heap, which doubles while it is copied.
const HEAP_BYTES: usize = 3 * Heap::ENTRY_BYTES;

/// The search along out-edges, and the one along in-edges.
const FORWARD: usize = 0;
const BACKWARD: usize = 1;

thread_local!(static SCRATCH: Cell<Option<Box<WeightedScratch>>> = const { Cell::new(None) });

/// What searches leave for those that follow; distances are the bits of those of any type.
#[derive(Default)]
struct WeightedScratch {
    labels: Table<Label>,
    /// Vertices before the two searches, the nearest first. One may be there again with a distance that fell since.
    heaps: [Heap; 2],
}

/// What the two searches know of a vertex: the least distance so far, and where it was come from.
#[derive(Clone, Copy, Debug, Default)]
struct Label {
    distances: [u64; 2],
    parents: [VertexId; 2],
}

impl Scratch for WeightedScratch {
    fn num_bytes(&self) -> usize {
        self.labels.num_bytes() + self.heaps.iter().map(Heap::num_bytes).sum::<usize>()
    }
}

fn dijkstra<W: Weight, G: InEdges + WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    (source, target): (VertexId, VertexId),
    value: impl Fn(W::Distance) -> DistanceValue,
) -> Result<Option<WeightedPath>> {
    let (found, may_be_too_far) = with_scratch(&SCRATCH, |scratch| {
        let best = W::Distance::UNREACHED;
        let (meeting, num_settled, forbidden) = (None, [0; 2], None);
        let mut search = Search::<W, G> { ctx, graph, scratch, best, meeting, num_settled, forbidden };
        search.start(source, target)?;
        let found = search.run();
        graph.check()?;
        found?;
        let Some(meeting) = search.meeting else { return Ok((None, search.may_have_saturated())) };
        let vertices = search.way(meeting);
        let length = value(length::<W>(graph, &vertices));
        Ok::<_, Error>((Some(WeightedPath { vertices, length }), false))
    })?;
    if may_be_too_far && path(ctx, graph, source, target)?.is_some() {
        return Err(too_far::<W>("path --weighted"));
    }
    Ok(found)
}

/// The lists that a search goes along.
#[inline(always)]
fn side(end: usize) -> Side {
    if end == FORWARD { Side::Out } else { Side::In }
}

struct Search<'a, W: Weight, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    scratch: &'a mut WeightedScratch,
    /// The length of the lightest path so far, and a vertex of it that both searches know.
    best: W::Distance,
    meeting: Option<VertexId>,
    /// The vertices that each search has settled.
    num_settled: [usize; 2],
    /// An edge whose weight is none.
    forbidden: Option<(VertexId, VertexId, W)>,
}

impl<W: Weight, G: InEdges + WeightedEdges> Search<'_, W, G> {
    fn start(&mut self, source: VertexId, target: VertexId) -> Result<()> {
        let zero = W::Distance::default().to_bits();
        self.scratch.labels.clear();
        self.scratch.heaps.iter_mut().for_each(Heap::clear);
        self.require(2)?;
        for (end, start) in [(FORWARD, source), (BACKWARD, target)] {
            let (label, _) = self.scratch.labels.entry(start, Self::unreached(start));
            label.distances[end] = zero;
            self.scratch.heaps[end].push(zero, start);
        }
        if source == target {
            (self.best, self.meeting) = (W::Distance::default(), Some(source));
        }
        Ok(())
    }

    fn unreached(vertex: VertexId) -> Label {
        Label { distances: [W::Distance::UNREACHED.to_bits(); 2], parents: [vertex; 2] }
    }

    fn run(&mut self) -> Result<()> {
        while let [Some(forward), Some(backward)] = self.scratch.heaps.each_ref().map(Heap::nearest) {
            let nearest = W::Distance::from_bits(forward).plus(W::Distance::from_bits(backward));
            if nearest.to_bits() >= self.best.to_bits() {
                break;
            }
            let goes_forward =
                !self.graph.has_in_edges() || self.scratch.heaps[FORWARD].len() <= self.scratch.heaps[BACKWARD].len();
            let end = if goes_forward { FORWARD } else { BACKWARD };
            let Some((bits, u)) = self.scratch.heaps[end].pop() else { break };
            if self.scratch.labels.get(u).is_none_or(|label| label.distances[end] < bits) {
                continue;
            }
            if self.num_settled[end].is_multiple_of(POLL) {
                self.ctx.progress.check()?;
            }
            self.settle(end, u, W::Distance::from_bits(bits))?;
            self.num_settled[end] += 1;
        }
        Ok(())
    }

    /// Follows the edges of a vertex whose distance is known.
    fn settle(&mut self, end: usize, u: VertexId, distance: W::Distance) -> Result<()> {
        if self.ctx.memory.is_some() {
            let is_forward = end == FORWARD;
            self.require(if is_forward { self.graph.out_degree(u) } else { self.graph.in_degree(u) })?;
        }
        self.announce_next(end);
        self.fetch_next(end);
        let graph = self.graph;
        let see = |targets: &[VertexId], weights: &[W]| self.relax(end, (u, distance), targets, weights);
        let _ = match end == FORWARD {
            true => graph.for_each_weighted_out_fragment::<W>(u, see),
            false => graph.for_each_weighted_in_fragment::<W>(u, see),
        };
        match self.forbidden {
            None => Ok(()),
            Some((source_vertex, target, weight)) => {
                let weight = weight.to_string();
                Err(Error::Weight { kernel: "a path by weight", source_vertex, target, weight })
            }
        }
    }

    /// Announces, now and then, some of the lists that will probably be read: the first of a heap are near its top.
    fn announce_next(&self, end: usize) {
        let heap = &self.scratch.heaps[end];
        if self.graph.is_listening() && self.num_settled[end].is_multiple_of(AHEAD / 2) {
            let next: Vec<VertexId> = heap.vertices().take(AHEAD).collect();
            self.graph.will_need(side(end), Parts::Weighted, &next);
        }
    }

    /// Has lists fetched that are probably read next.
    fn fetch_next(&self, end: usize) {
        for next in self.scratch.heaps[end].vertices().take(FETCHED) {
            self.graph.prefetch_place(side(end), next);
            self.graph.prefetch_list(side(end), Parts::Weighted, next);
        }
    }

    /// Follows the edges of `u`. Most lead to no shorter way; which, is found out for many before any is followed,
    /// without a branch for each.
    #[inline]
    fn relax(
        &mut self,
        end: usize,
        (u, distance): (VertexId, W::Distance),
        targets: &[VertexId],
        weights: &[W],
    ) -> ControlFlow<()> {
        for (targets, weights) in targets.chunks(BLOCK).zip(weights.chunks(BLOCK)) {
            let mut shorter = 0_u64;
            let (labels, best) = (self.scratch.labels.glance(), self.best.to_bits());
            for (i, (&v, &weight)) in targets.iter().zip(weights).enumerate() {
                let Some(weight_distance) = weight.distance() else {
                    self.forbidden = Some(if end == FORWARD { (u, v, weight) } else { (v, u, weight) });
                    return ControlFlow::Break(());
                };
                let new = distance.plus(weight_distance).to_bits();
                let (label, is_known) = labels.at(v);
                let is_no_shorter = is_known & (label.distances[end] <= new);
                // What is as long as a whole path leads to no shorter one.
                shorter |= u64::from(!is_no_shorter & (new < best)) << i;
            }
            while shorter != 0 {
                let i = shorter.trailing_zeros() as usize;
                shorter &= shorter - 1;
                if let Some(weight_distance) = weights[i].distance() {
                    self.reach(end, (u, targets[i]), distance.plus(weight_distance));
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Comes from `u` to `v`, at this distance from where the search began.
    #[inline(always)]
    fn reach(&mut self, end: usize, (u, v): (VertexId, VertexId), new: W::Distance) {
        if new.to_bits() >= self.best.to_bits() {
            return;
        }
        let (label, _) = self.scratch.labels.entry(v, Self::unreached(v));
        if new.to_bits() >= label.distances[end] {
            return;
        }
        (label.distances[end], label.parents[end]) = (new.to_bits(), u);
        let whole = new.plus(W::Distance::from_bits(label.distances[1 - end]));
        self.scratch.heaps[end].push(new.to_bits(), v);
        self.graph.prefetch(side(end), v);
        if whole.to_bits() < self.best.to_bits() {
            (self.best, self.meeting) = (whole, Some(v));
        }
    }

    /// Asks for the memory of searches that see so many vertices more, at most.
    fn require(&self, num_more: usize) -> Result<()> {
        let num_labels = (self.scratch.labels.len() + num_more).min(self.graph.vertex_bound());
        // A vertex stands in a heap as often as its distance fell.
        let num_waiting: usize = self.scratch.heaps.iter().map(Heap::len).sum();
        let needed = num_labels * Table::<Label>::MOST_BYTES + (num_waiting + num_more) * HEAP_BYTES;
        self.ctx.require_memory("path --weighted", needed as u64)
    }

    /// Whether a sum may have been too large for its type, and passed for no way.
    fn may_have_saturated(&self) -> bool {
        let unreached = W::Distance::UNREACHED;
        let farthest = |end: usize| {
            let distances = self.scratch.labels.values().map(|label| W::Distance::from_bits(label.distances[end]));
            let reached = distances.filter(|&distance| distance < unreached);
            reached.fold(W::Distance::default(), |max, distance| if distance > max { distance } else { max })
        };
        let (forward, backward) = (farthest(FORWARD), farthest(BACKWARD));
        let sums = [(forward, backward), (forward, largest::<W>()), (backward, largest::<W>())];
        sums.iter().any(|&(one, other)| one.plus(other) >= unreached)
    }

    /// The lightest path.
    fn way(&self, meeting: VertexId) -> Vec<VertexId> {
        let mut vertices = vec![meeting];
        self.follow(FORWARD, &mut vertices);
        vertices.reverse();
        self.follow(BACKWARD, &mut vertices);
        vertices
    }

    /// Appends the vertices that lead from the last of `way` back to the start of a search.
    fn follow(&self, end: usize, way: &mut Vec<VertexId>) {
        let mut last = way[way.len() - 1];
        while let Some(parent) = self.scratch.labels.get(last).map(|label| label.parents[end]) {
            if parent == last {
                return;
            }
            way.push(parent);
            last = parent;
        }
    }
}

/// The sum of the weights of the lightest edges along a path, from its source on: sums of floating numbers depend on
/// their order.
fn length<W: Weight>(graph: &impl WeightedEdges, vertices: &[VertexId]) -> W::Distance {
    vertices.windows(2).fold(W::Distance::default(), |sum, pair| {
        let mut lightest = W::Distance::UNREACHED;
        let _ = graph.for_each_weighted_out_fragment::<W>(pair[0], |targets, weights| {
            let first = targets.partition_point(|&target| target < pair[1]);
            let of_pair = targets[first..].iter().take_while(|&&target| target == pair[1]);
            for distance in of_pair.zip(&weights[first..]).filter_map(|(_, weight)| weight.distance()) {
                if distance.to_bits() < lightest.to_bits() {
                    lightest = distance;
                }
            }
            ControlFlow::Continue(())
        });
        sum.plus(lightest)
    })
}
