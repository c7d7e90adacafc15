//! A shortest path by hops.
//!
//! Two searches meet: one from the source along out-edges, one from the target along in-edges. The one
//! with fewer edges before it goes on by a level, until a vertex is known to both. Without in-edges
//! the search goes forward only.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::ControlFlow;

use base::VertexId;
use graph::{Graph, InEdges};

use super::visited::IdHasher;
use super::{POLL, require_room, table_bytes};
use crate::context::require_vertex;
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
/// *Memory*: some 20 bytes for each vertex visited. *Determinism*: always the same of the shortest
/// paths: where the searches meet, and which way each came, the first found in the order of lists.
///
/// # Errors
/// One of the two does not exist, the graph is damaged, the budget of memory is too small, or the work was cancelled.
pub fn path<G: InEdges>(ctx: &Context<'_>, graph: &G, source: VertexId, target: VertexId) -> Result<Option<Path>> {
    require_vertex(graph, source)?;
    require_vertex(graph, target)?;
    let mut forward = Search::new(source);
    let mut backward = Search::new(target);
    let mut meeting = (source == target).then_some(source);
    while meeting.is_none() && !forward.frontier.is_empty() && !backward.frontier.is_empty() {
        let out_edges: usize = forward.frontier.iter().map(|&v| graph.out_degree(v)).sum();
        let go_forward =
            !graph.has_in_edges() || out_edges <= backward.frontier.iter().map(|&v| graph.in_degree(v)).sum::<usize>();
        meeting = if go_forward {
            graph.will_need_out(&forward.frontier);
            let room = |num_seen: usize, v| require(ctx, graph, num_seen + graph.out_degree(v));
            forward.advance(ctx, &backward, room, |v, body| graph.for_each_out_fragment(v, body))?
        } else {
            graph.will_need_in(&backward.frontier);
            let room = |num_seen: usize, v| require(ctx, graph, num_seen + graph.in_degree(v));
            backward.advance(ctx, &forward, room, |v, body| graph.for_each_in_fragment(v, body))?
        };
    }
    graph.check()?;
    Ok(meeting.map(|meeting| {
        let mut vertices = forward.way(meeting);
        vertices.reverse();
        vertices.extend(backward.way(meeting).into_iter().skip(1));
        Path { vertices }
    }))
}

/// Asks for the memory of two searches that see so many vertices at most: where from, and the frontier.
fn require(ctx: &Context<'_>, graph: &impl Graph, num_vertices: usize) -> Result<()> {
    require_room(ctx, graph, "path", num_vertices, table_bytes(size_of::<(VertexId, VertexId)>()) + 12)
}

/// A search from one end: each vertex seen, and from where.
struct Search {
    parents: HashMap<VertexId, VertexId, BuildHasherDefault<IdHasher>>,
    frontier: Vec<VertexId>,
}

impl Search {
    fn new(start: VertexId) -> Self {
        let mut parents = HashMap::default();
        parents.insert(start, start);
        Self { parents, frontier: vec![start] }
    }

    /// Goes on by one level; gives the first vertex that the other search knows too.
    ///
    /// The other search has seen all vertices up to some distance, so the first one met on this level
    /// lies on a shortest path if all that this search met before were unknown to the other.
    fn advance(
        &mut self,
        ctx: &Context<'_>,
        other: &Self,
        room: impl Fn(usize, VertexId) -> Result<()>,
        fragments: impl Fn(VertexId, &mut dyn FnMut(&[VertexId]) -> ControlFlow<()>) -> ControlFlow<()>,
    ) -> Result<Option<VertexId>> {
        let mut next = Vec::new();
        let mut meeting = None;
        for (place, &u) in self.frontier.iter().enumerate() {
            if place % POLL == 0 {
                ctx.progress.check()?;
            }
            room(self.parents.len() + other.parents.len(), u)?;
            let parents = &mut self.parents;
            let flow = fragments(u, &mut |list| {
                for &v in list {
                    if let std::collections::hash_map::Entry::Vacant(entry) = parents.entry(v) {
                        entry.insert(u);
                        next.push(v);
                        if other.parents.contains_key(&v) {
                            meeting = Some(v);
                            return ControlFlow::Break(());
                        }
                    }
                }
                ControlFlow::Continue(())
            });
            if flow.is_break() {
                break;
            }
        }
        next.sort_unstable();
        self.frontier = next;
        Ok(meeting)
    }

    /// The vertices from here back to the start of this search.
    fn way(&self, vertex: VertexId) -> Vec<VertexId> {
        let mut way = vec![vertex];
        let mut last = vertex;
        while let Some(&parent) = self.parents.get(&last).filter(|&&parent| parent != last) {
            way.push(parent);
            last = parent;
        }
        way
    }
}
