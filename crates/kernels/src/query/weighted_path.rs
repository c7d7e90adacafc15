//! A shortest path by weight: Dijkstra's algorithm from both ends.
//!
//! One search settles vertices along out-edges, the other along in-edges, nearest first. The search with the smaller
//! heap goes on. A vertex that both searches reach gives a path. The searches stop when the two nearest heap entries
//! sum to at least the length of the lightest path. Without in-edges, only the forward search runs.
//!
//! # Source
//! Pohl, "Bi-directional search", Machine Intelligence 6, 1971. Ours drops entries that are no lighter than the
//! lightest path yet.

use std::cell::Cell;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Distance, Parts, PrefetchStage, Weight, WeightType, WeightedEdges};

use super::POLL;
use super::heap::Heap;
use super::path::path;
use super::table::{QueryScratch, VertexHashTable, with_scratch};
use crate::context::require_vertex;
use crate::sssp::{DistanceValue, largest, too_far};
use crate::{Context, Error, Result};

/// A path and the sum of its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedPath {
    /// From the source to the target, both included; one vertex if they are equal.
    pub vertices: Vec<VertexId>,
    /// The sum of the edge weights, added from the source on.
    pub length: DistanceValue,
}

/// A path of the least weight from `source` to `target`; `None` if no path exists.
///
/// *Cost*: the edges of all vertices that are nearer to one end than about half of the path's length. *Memory*: some
/// 130 bytes for each vertex reached, and 48 for each heap entry. The thread keeps up to 1 MB for its next search.
/// *Determinism*: equal in every run. Among lightest paths, the first meeting vertex and the first predecessors found
/// win.
///
/// # Errors
/// - A vertex does not exist, or the graph has no weights.
/// - The search meets a negative weight or a NaN; the error names the edge.
/// - A path exists, but each is at least 2^64 - 1 long, or infinite for floating weights (above about 1.8e308).
/// - The graph is damaged, the memory budget is too small, or the work was cancelled.
pub fn weighted_path<G: WeightedEdges>(
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

/// The number of lists announced to the prefetcher at a time.
const AHEAD: usize = 16;

/// The number of heap entries whose lists are fetched. The second nearest is one of the four after the nearest.
const FETCHED: usize = 4;

/// The number of edges tested before any is relaxed.
const BLOCK: usize = 64;

/// Bytes of an entry of the heap, which doubles during its copy.
const HEAP_BYTES: usize = 3 * Heap::ENTRY_BYTES;

/// Indexes of the search along out-edges and the search along in-edges.
const FORWARD: usize = 0;
const BACKWARD: usize = 1;

thread_local!(static SCRATCH: Cell<Option<Box<WeightedScratch>>> = const { Cell::new(None) });

/// Memory of a search that a thread keeps for its next one. Distances of any type are stored as bits.
#[derive(Default)]
struct WeightedScratch {
    labels: VertexHashTable<Label>,
    /// The unsettled vertices of the two searches, nearest first. A vertex whose distance fell has an older entry too.
    heaps: [Heap; 2],
}

/// The least known distance of a vertex, and its predecessor, in each search.
#[derive(Clone, Copy, Debug, Default)]
struct Label {
    distances: [u64; 2],
    parents: [VertexId; 2],
}

impl QueryScratch for WeightedScratch {
    fn num_bytes(&self) -> usize {
        self.labels.num_bytes() + self.heaps.iter().map(Heap::num_bytes).sum::<usize>()
    }
}

fn dijkstra<W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    (source, target): (VertexId, VertexId),
    value: impl Fn(W::Distance) -> DistanceValue,
) -> Result<Option<WeightedPath>> {
    let (found, may_be_too_far) = with_scratch(&SCRATCH, |scratch| {
        let best = W::Distance::UNREACHED;
        let (meeting, num_settled, forbidden) = (None, [0; 2], None);
        let mut search = WeightedPathSearch::<W, G> { ctx, graph, scratch, best, meeting, num_settled, forbidden };
        search.start(source, target)?;
        let found = search.run();
        graph.check()?;
        found?;
        let Some(meeting) = search.meeting else { return Ok((None, search.may_have_saturated())) };
        let vertices = search.way(meeting);
        // The searches add the weights from both ends, but a floating sum depends on the order.
        let length = value(length::<W>(graph, &vertices));
        Ok::<_, Error>((Some(WeightedPath { vertices, length }), false))
    })?;
    // If no path was found, a saturated sum may have hidden one. A search by hops tells the two cases apart.
    if may_be_too_far && path(ctx, graph, source, target)?.is_some() {
        return Err(too_far::<W>("path --weighted"));
    }
    Ok(found)
}

/// The lists that a search reads.
#[inline(always)]
fn direction(end: usize) -> Direction {
    if end == FORWARD { Direction::Out } else { Direction::In }
}

struct WeightedPathSearch<'a, W: Weight, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    scratch: &'a mut WeightedScratch,
    /// The length of the lightest known path, and a vertex of the path that both searches reached.
    best: W::Distance,
    meeting: Option<VertexId>,
    /// The number of vertices that each search has settled.
    num_settled: [usize; 2],
    /// An edge whose weight is not allowed.
    forbidden: Option<(VertexId, VertexId, W)>,
}

impl<W: Weight, G: WeightedEdges> WeightedPathSearch<'_, W, G> {
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
        // `reach` finds meetings over edges only.
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
            // The smaller heap grows more slowly, so its search reads fewer lists.
            let goes_forward = !self.graph.has_lists(Direction::In)
                || self.scratch.heaps[FORWARD].len() <= self.scratch.heaps[BACKWARD].len();
            let end = if goes_forward { FORWARD } else { BACKWARD };
            let Some((bits, u)) = self.scratch.heaps[end].pop() else { break };
            // An outdated entry: the distance fell after the push.
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

    /// Relaxes the edges of a vertex whose distance is final.
    fn settle(&mut self, end: usize, u: VertexId, distance: W::Distance) -> Result<()> {
        if self.ctx.memory.is_some() {
            // Only under a budget: a degree takes a lookup.
            self.require(self.graph.degree(direction(end), u))?;
        }
        self.announce_next(end);
        self.fetch_next(end);
        let graph = self.graph;
        let see = |targets: &[VertexId], weights: &[W]| self.relax(end, (u, distance), targets, weights);
        let _ = graph.for_each_weighted_fragment::<W>(direction(end), u, see);
        match self.forbidden {
            None => Ok(()),
            Some((source_vertex, target, weight)) => {
                let weight = weight.to_string();
                Err(Error::Weight { kernel: "a path by weight", source_vertex, target, weight })
            }
        }
    }

    /// Announces lists to the prefetcher at every few settled vertices: the next ones are near the top of the heap.
    fn announce_next(&self, end: usize) {
        let heap = &self.scratch.heaps[end];
        if self.graph.is_listening() && self.num_settled[end].is_multiple_of(AHEAD / 2) {
            let next: Vec<VertexId> = heap.vertices().take(AHEAD).collect();
            self.graph.will_need(direction(end), Parts::Weighted, &next);
        }
    }

    /// Fetches the lists that are probably read next into the cache.
    fn fetch_next(&self, end: usize) {
        for next in self.scratch.heaps[end].vertices().take(FETCHED) {
            self.graph.prefetch(direction(end), PrefetchStage::Place, next);
            self.graph.prefetch(direction(end), PrefetchStage::List(Parts::Weighted), next);
        }
    }

    /// Relaxes the edges of `u`. Most edges give no shorter path, so a first loop tests a block of edges without a
    /// branch. A second loop follows the promising ones.
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
                // An edge no shorter than a whole path cannot improve it.
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

    /// Records the path over `u` to `v`, whose distance from the start of the search is `new`.
    #[inline(always)]
    fn reach(&mut self, end: usize, (u, v): (VertexId, VertexId), new: W::Distance) {
        // The block was tested before its first edge was relaxed, so both conditions may have changed since.
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
        // The list of `v` may be read soon, so its lookup entry is fetched meanwhile.
        self.graph.prefetch(direction(end), PrefetchStage::TableEntry, v);
        if whole.to_bits() < self.best.to_bits() {
            (self.best, self.meeting) = (whole, Some(v));
        }
    }

    /// Checks the memory of searches that reach at most `num_more` more vertices.
    fn require(&self, num_more: usize) -> Result<()> {
        let num_labels = (self.scratch.labels.len() + num_more).min(self.graph.vertex_bound());
        // A vertex has one heap entry for each time its distance fell.
        let num_waiting: usize = self.scratch.heaps.iter().map(Heap::len).sum();
        let needed = num_labels * VertexHashTable::<Label>::MOST_BYTES + (num_waiting + num_more) * HEAP_BYTES;
        self.ctx.require_memory("path --weighted", needed as u64)
    }

    /// Whether a sum may have saturated and counted as unreached.
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

    /// The lightest path, from its two halves.
    fn way(&self, meeting: VertexId) -> Vec<VertexId> {
        let mut vertices = vec![meeting];
        self.follow(FORWARD, &mut vertices);
        vertices.reverse();
        self.follow(BACKWARD, &mut vertices);
        vertices
    }

    /// Appends the vertices from the last of `way` back to the start of a search.
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

/// The sum of the lightest edges along a path, from the source on. Floating sums depend on this order.
fn length<W: Weight>(graph: &impl WeightedEdges, vertices: &[VertexId]) -> W::Distance {
    vertices.windows(2).fold(W::Distance::default(), |sum, pair| {
        let mut lightest = W::Distance::UNREACHED;
        let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, pair[0], |targets, weights| {
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
