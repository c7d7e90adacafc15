//! A shortest path by hops.
//!
//! Two searches meet: one from the source along out-edges, one from the target along in-edges. The search with fewer
//! edges ahead advances by a level, until an edge leads to a vertex that the other search visited. Without in-edges,
//! only the forward search runs.
//!
//! Both searches share one table. So one lookup says whether a vertex is new, known, or a meeting point.

use std::cell::Cell;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph, Parts, PrefetchStage};

use super::table::{QueryScratch, VertexHashTable, with_scratch};
use super::{POLL, require_room};
use crate::context::require_vertex;
use crate::walk::announce_ahead;
use crate::{Context, Result};

/// A path through the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexPath {
    /// From the source to the target, both included; one vertex if they are equal.
    pub vertices: Vec<VertexId>,
}

impl VertexPath {
    /// The number of edges.
    pub fn length(&self) -> usize {
        self.vertices.len().saturating_sub(1)
    }
}

/// A path with the fewest edges from `source` to `target`; `None` if no path exists.
///
/// *Cost*: about the square root of a one-sided search, if degrees are even. *Memory*: some 90 bytes for each visited
/// vertex. The thread keeps up to 1 MB for its next search. *Determinism*: on one view, the answer is equal in every
/// run: the first meeting edge and the first predecessors in list order win. Rough list lengths decide which search
/// advances. So another shortest path may be found once a checkpoint moves changes into a snapshot.
///
/// # Errors
/// A vertex does not exist, the graph is damaged, the memory budget is too small, or the work was cancelled.
pub fn path<G: Graph>(ctx: &Context<'_>, graph: &G, source: VertexId, target: VertexId) -> Result<Option<VertexPath>> {
    path_within(ctx, graph, (source, target), usize::MAX)
}

/// As [`path`], if the path has at most `most_edges` edges; the search goes no farther.
///
/// # Errors
/// As [`path`].
pub fn path_within<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    (source, target): (VertexId, VertexId),
    most_edges: usize,
) -> Result<Option<VertexPath>> {
    require_vertex(graph, source)?;
    require_vertex(graph, target)?;
    // The searches meet over an edge only.
    if source == target {
        ctx.require_memory("path", size_of::<VertexId>() as u64)?;
        return Ok(Some(VertexPath { vertices: vec![source] }));
    }
    with_scratch(&SCRATCH, |scratch| {
        let mut search = PathSearch { ctx, graph, scratch };
        let meeting = search.run(source, target, most_edges);
        graph.check()?;
        Ok(meeting?.map(|meeting| search.way(meeting)))
    })
}

thread_local!(static SCRATCH: Cell<Option<Box<PathScratch>>> = const { Cell::new(None) });

/// Memory of a search that a thread keeps for its next one.
#[derive(Default)]
struct PathScratch {
    steps: VertexHashTable<PathStep>,
    ends: [PathEnd; 2],
    next: Vec<VertexId>,
}

/// The search that reached a vertex, and the predecessor. The predecessor of a start is the start.
#[derive(Clone, Copy, Debug, Default)]
struct PathStep {
    parent: VertexId,
    end: u32,
}

/// The state of one of the two searches.
#[derive(Debug, Default)]
struct PathEnd {
    /// The vertices of the last level, ascending.
    frontier: Vec<VertexId>,
    /// The rough number of edges that leave the frontier.
    num_edges: usize,
}

/// Paths up to this length are built without reallocation.
const FEW_VERTICES: usize = 16;

/// Distance, in lists, of the second prefetch stage.
const AHEAD: usize = 6;

/// The number of edges tested together for vertices unknown to this search, without a branch for each. Where degrees
/// are high, most edges lead back, and a branch would be unpredictable.
const BLOCK: usize = 64;

/// The search along out-edges and the search along in-edges.
const FORWARD: u32 = 0;
const BACKWARD: u32 = 1;

/// The lists that a search reads.
#[inline(always)]
fn direction(end: u32) -> Direction {
    if end == FORWARD { Direction::Out } else { Direction::In }
}

impl QueryScratch for PathScratch {
    fn num_bytes(&self) -> usize {
        let lists = self.ends.iter().map(|end| end.frontier.capacity()).sum::<usize>() + self.next.capacity();
        self.steps.num_bytes() + lists * size_of::<VertexId>()
    }
}

/// An edge over which the searches meet: a vertex of the forward search, then one of the backward search.
type Meeting = (VertexId, VertexId);

struct PathSearch<'a, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    scratch: &'a mut PathScratch,
}

impl<G: Graph> PathSearch<'_, G> {
    fn run(&mut self, source: VertexId, target: VertexId, most_edges: usize) -> Result<Option<Meeting>> {
        self.scratch.steps.clear();
        self.require(0)?;
        for (end, start) in [(FORWARD, source), (BACKWARD, target)] {
            self.scratch.steps.entry(start, PathStep { parent: start, end });
            self.scratch.ends[end as usize].frontier.clear();
            self.scratch.ends[end as usize].frontier.push(start);
            self.count_edges(end);
        }
        // Each round advances one search by a level, so a meeting in round n is a path of n edges.
        for _ in 0..most_edges {
            let [forward, backward] = &self.scratch.ends;
            if forward.frontier.is_empty() || backward.frontier.is_empty() {
                return Ok(None);
            }
            // Rough degrees suffice: a wrong choice costs time, not correctness.
            let goes_forward = !self.graph.has_lists(Direction::In) || forward.num_edges <= backward.num_edges;
            let meeting = self.advance(if goes_forward { FORWARD } else { BACKWARD })?;
            if meeting.is_some() {
                return Ok(meeting);
            }
        }
        Ok(None)
    }

    fn degree(&self, end: u32, vertex: VertexId) -> usize {
        self.graph.degree(direction(end), vertex)
    }

    /// Sums the rough degrees of a frontier, and prefetches its lists. Neighbors in a graph are often not in the cache.
    fn count_edges(&mut self, end: u32) {
        // On a disk, this would read the lists one after the other.
        let is_in_memory = !self.graph.is_listening();
        let mut num_edges = 0;
        for &v in &self.scratch.ends[end as usize].frontier {
            num_edges += self.graph.rough_degree(direction(end), v);
            if is_in_memory {
                self.graph.prefetch(direction(end), PrefetchStage::List(Parts::Targets), v);
                self.graph.prefetch(direction(end), PrefetchStage::TableEntry, v);
            }
        }
        self.scratch.ends[end as usize].num_edges = num_edges;
    }

    /// Checks the memory of two searches that visit at most `num_more` more vertices: table and frontiers.
    fn require(&self, num_more: usize) -> Result<()> {
        if self.ctx.memory.is_none() {
            return Ok(());
        }
        let num_vertices = self.scratch.steps.len() + num_more + 2;
        require_room(self.ctx, self.graph, "path", num_vertices, VertexHashTable::<PathStep>::MOST_BYTES + 24)
    }

    /// Advances by one level, or until an edge meets the other search.
    ///
    /// The other search has visited all vertices up to some distance, and no earlier level met one of them. So the
    /// first meeting in this level lies on a shortest path.
    fn advance(&mut self, end: u32) -> Result<Option<Meeting>> {
        let frontier = std::mem::take(&mut self.scratch.ends[end as usize].frontier);
        self.graph.forget_needs();
        let mut next = std::mem::take(&mut self.scratch.next);
        next.clear();
        let mut meeting = None;
        for (place, &u) in frontier.iter().enumerate() {
            announce_ahead(self.graph, direction(end), &frontier, place);
            if let Some(&ahead) = frontier.get(place + AHEAD) {
                self.graph.prefetch(direction(end), PrefetchStage::Place, ahead);
            }
            if place % POLL == 0 {
                self.ctx.progress.check()?;
            }
            if self.ctx.memory.is_some() {
                // Only under a budget: an exact degree takes a lookup.
                self.require(self.degree(end, u))?;
            }
            let steps = &mut self.scratch.steps;
            let mut see = |list: &[VertexId]| {
                for block in list.chunks(BLOCK) {
                    let glance = steps.glance();
                    let mut unknown = 0_u64;
                    for (i, &v) in block.iter().enumerate() {
                        let (step, is_known) = glance.at(v);
                        unknown |= u64::from(!(is_known & (step.end == end))) << i;
                    }
                    while unknown != 0 {
                        let v = block[unknown.trailing_zeros() as usize];
                        unknown &= unknown - 1;
                        let (step, is_new) = steps.entry(v, PathStep { parent: u, end });
                        if is_new {
                            next.push(v);
                            // `count_edges` needs this degree at the end of the level.
                            self.graph.prefetch(direction(end), PrefetchStage::RoughDegree, v);
                        } else if step.end != end {
                            meeting = Some(if end == FORWARD { (u, v) } else { (v, u) });
                            return ControlFlow::Break(());
                        }
                    }
                }
                ControlFlow::Continue(())
            };
            if self.graph.for_each_fragment(direction(end), u, &mut see).is_break() {
                break;
            }
        }
        next.sort_unstable();
        // The old frontier lends its memory to the next level.
        self.scratch.next = frontier;
        self.scratch.ends[end as usize].frontier = next;
        if meeting.is_none() {
            self.count_edges(end);
        }
        Ok(meeting)
    }

    /// The path over the edge where the searches met.
    fn way(&self, (last, first): Meeting) -> VertexPath {
        let mut vertices = Vec::with_capacity(FEW_VERTICES);
        vertices.push(last);
        self.follow(&mut vertices);
        vertices.reverse();
        vertices.push(first);
        self.follow(&mut vertices);
        VertexPath { vertices }
    }

    /// Appends the vertices from the last of `way` back to the start of its search.
    fn follow(&self, way: &mut Vec<VertexId>) {
        let mut last = way[way.len() - 1];
        while let Some(step) = self.scratch.steps.get(last).filter(|step| step.parent != last) {
            way.push(step.parent);
            last = step.parent;
        }
    }
}
