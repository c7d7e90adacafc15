//! A shortest path by hops.
//!
//! Two searches meet: one from the source along out-edges, one from the target along in-edges. The one
//! with fewer edges before it goes on by a level, until an edge leads to a vertex that the other has seen.
//! Without in-edges the search goes forward only.
//!
//! Both keep what they saw in one table, so that one look at it says whether a vertex is new, known, or where
//! the two meet.

use std::cell::Cell;
use std::ops::ControlFlow;

use base::VertexId;
use graph::{InEdges, Parts, Side};

use super::table::{Scratch, Table, with_scratch};
use super::{POLL, require_room};
use crate::context::require_vertex;
use crate::walk::announce_ahead;
use crate::{Context, Result};

/// A path through the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// From the source to the target, both included; one vertex where they are the same.
    pub vertices: Vec<VertexId>,
}

impl Path {
    /// The number of edges.
    pub fn length(&self) -> usize {
        self.vertices.len().saturating_sub(1)
    }
}

/// A path of the fewest edges from `source` to `target`; `None` where there is no path.
///
/// *Cost*: about the square root of what a search from one end would visit, where degrees are even.
/// *Memory*: some 70 bytes for each vertex visited; up to 1 MB of it is kept by the thread for its next search.
/// *Determinism*: of one view always the same of the shortest paths: where the searches meet, and which way each
/// came, the first found in the order of lists. Which search goes on is decided by about how long lists are, so another
/// of them may be found once changes are in a snapshot.
///
/// # Errors
/// One of the two does not exist, the graph is damaged, the budget of memory is too small, or the work was cancelled.
pub fn path<G: InEdges>(ctx: &Context<'_>, graph: &G, source: VertexId, target: VertexId) -> Result<Option<Path>> {
    require_vertex(graph, source)?;
    require_vertex(graph, target)?;
    if source == target {
        ctx.require_memory("path", size_of::<VertexId>() as u64)?;
        return Ok(Some(Path { vertices: vec![source] }));
    }
    with_scratch(&SCRATCH, |scratch| {
        let mut search = Search { ctx, graph, scratch };
        let meeting = search.run(source, target);
        graph.check()?;
        Ok(meeting?.map(|meeting| search.way(meeting)))
    })
}

thread_local!(static SCRATCH: Cell<Option<Box<PathScratch>>> = const { Cell::new(None) });

/// What searches leave for those that follow.
#[derive(Default)]
struct PathScratch {
    steps: Table<Step>,
    ends: [End; 2],
    next: Vec<VertexId>,
}

/// Which search came to a vertex, and from where; a search comes to its start from there.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    parent: VertexId,
    end: u32,
}

/// How far one of the two searches is.
#[derive(Debug, Default)]
struct End {
    /// The vertices of its last level, ascending.
    frontier: Vec<VertexId>,
    /// That lead on from them.
    num_edges: usize,
}

/// A path of so many vertices is written down without moving.
const FEW_VERTICES: usize = 16;

/// Lists ahead of which it is fetched what changes in them.
const AHEAD: usize = 6;

/// Edges of a list of which it is found out together, without a branch for each, which lead to vertices that this search
/// does not know: where vertices have many edges most lead back, and nobody can foresee which.
const BLOCK: usize = 64;

/// The search along out-edges, and the one along in-edges.
const FORWARD: u32 = 0;
const BACKWARD: u32 = 1;

/// The lists that a search goes along.
#[inline(always)]
fn side(end: u32) -> Side {
    if end == FORWARD { Side::Out } else { Side::In }
}

impl Scratch for PathScratch {
    fn num_bytes(&self) -> usize {
        let lists = self.ends.iter().map(|end| end.frontier.capacity()).sum::<usize>() + self.next.capacity();
        self.steps.num_bytes() + lists * size_of::<VertexId>()
    }
}

/// An edge over which the searches meet: a vertex of the forward one, and one of the other.
type Meeting = (VertexId, VertexId);

struct Search<'a, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    scratch: &'a mut PathScratch,
}

impl<G: InEdges> Search<'_, G> {
    fn run(&mut self, source: VertexId, target: VertexId) -> Result<Option<Meeting>> {
        self.scratch.steps.clear();
        self.require(0)?;
        for (end, start) in [(FORWARD, source), (BACKWARD, target)] {
            self.scratch.steps.entry(start, Step { parent: start, end });
            self.scratch.ends[end as usize].frontier.clear();
            self.scratch.ends[end as usize].frontier.push(start);
            self.count_edges(end);
        }
        loop {
            let [forward, backward] = &self.scratch.ends;
            if forward.frontier.is_empty() || backward.frontier.is_empty() {
                return Ok(None);
            }
            let goes_forward = !self.graph.has_in_edges() || forward.num_edges <= backward.num_edges;
            let meeting = self.advance(if goes_forward { FORWARD } else { BACKWARD })?;
            if meeting.is_some() {
                return Ok(meeting);
            }
        }
    }

    fn degree(&self, end: u32, vertex: VertexId) -> usize {
        if end == FORWARD { self.graph.out_degree(vertex) } else { self.graph.in_degree(vertex) }
    }

    /// Looks up about how much leads on from a frontier, and has it fetched: what is near in a graph is often not in the
    /// cache.
    fn count_edges(&mut self, end: u32) {
        // Lists that are on a disk would be read for this, one after the other.
        let is_in_memory = !self.graph.is_listening();
        let mut num_edges = 0;
        for &v in &self.scratch.ends[end as usize].frontier {
            num_edges += match end == FORWARD {
                true => self.graph.rough_out_degree(v),
                false => self.graph.rough_in_degree(v),
            };
            if is_in_memory {
                self.graph.prefetch_list(side(end), Parts::Targets, v);
                self.graph.prefetch(side(end), v);
            }
        }
        self.scratch.ends[end as usize].num_edges = num_edges;
    }

    /// Asks for the memory of two searches that see so many vertices more, at most: the table, and the frontiers.
    fn require(&self, num_more: usize) -> Result<()> {
        if self.ctx.memory.is_none() {
            return Ok(());
        }
        let num_vertices = self.scratch.steps.len() + num_more + 2;
        require_room(self.ctx, self.graph, "path", num_vertices, Table::<Step>::MOST_BYTES + 24)
    }

    /// Goes on by one level, or until it meets the other search.
    ///
    /// The other search has seen all vertices up to some distance, so the first of its vertices that this level leads
    /// to lies on a shortest path if all that this search met before were unknown to the other.
    fn advance(&mut self, end: u32) -> Result<Option<Meeting>> {
        let frontier = std::mem::take(&mut self.scratch.ends[end as usize].frontier);
        self.graph.forget_needs();
        let mut next = std::mem::take(&mut self.scratch.next);
        next.clear();
        let mut meeting = None;
        for (place, &u) in frontier.iter().enumerate() {
            announce_ahead(self.graph, side(end), &frontier, place);
            if let Some(&ahead) = frontier.get(place + AHEAD) {
                self.graph.prefetch_place(side(end), ahead);
            }
            if place % POLL == 0 {
                self.ctx.progress.check()?;
            }
            if self.ctx.memory.is_some() {
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
                        let (step, is_new) = steps.entry(v, Step { parent: u, end });
                        if is_new {
                            next.push(v);
                            self.graph.prefetch_rough_degree(side(end), v);
                        } else if step.end != end {
                            meeting = Some(if end == FORWARD { (u, v) } else { (v, u) });
                            return ControlFlow::Break(());
                        }
                    }
                }
                ControlFlow::Continue(())
            };
            let flow = match end == FORWARD {
                true => self.graph.for_each_out_fragment(u, &mut see),
                false => self.graph.for_each_in_fragment(u, &mut see),
            };
            if flow.is_break() {
                break;
            }
        }
        next.sort_unstable();
        self.scratch.next = frontier;
        self.scratch.ends[end as usize].frontier = next;
        if meeting.is_none() {
            self.count_edges(end);
        }
        Ok(meeting)
    }

    /// The path over the edge where the searches met.
    fn way(&self, (last, first): Meeting) -> Path {
        let mut vertices = Vec::with_capacity(FEW_VERTICES);
        vertices.push(last);
        self.follow(&mut vertices);
        vertices.reverse();
        vertices.push(first);
        self.follow(&mut vertices);
        Path { vertices }
    }

    /// Appends the vertices that lead from the last of `way` back to the start of its search.
    fn follow(&self, way: &mut Vec<VertexId>) {
        let mut last = way[way.len() - 1];
        while let Some(step) = self.scratch.steps.get(last).filter(|step| step.parent != last) {
            way.push(step.parent);
            last = step.parent;
        }
    }
}
