//! All shortest paths by hops.
//!
//! Two searches meet, level by level, as in [`path`](super::path()). Here each search finishes its level, and a vertex
//! keeps all its predecessors. So every vertex where the searches meet lies on a shortest path, and so do its
//! predecessors. Listing the paths therefore takes no useless step.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph};

use super::path::VertexPath;
use super::visited::IdHasher;
use super::{POLL, table_bytes};
use crate::context::require_vertex;
use crate::walk::announce_ahead;
use crate::{Context, Result};

/// The shortest paths between two vertices, or some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortestVertexPaths {
    /// The number of edges of each path.
    pub length: usize,
    /// The number of shortest paths, saturating.
    pub count: u64,
    /// The first paths, distinct, in an order that is equal in every run.
    pub paths: Vec<VertexPath>,
}

/// The paths with the fewest edges from `source` to `target`, at most `limit` of them listed. `None` if no path exists.
/// Parallel edges make no further paths.
///
/// *Cost*: the edges of all vertices that the two searches visit, and the length of the listed paths. *Memory*: some
/// 220 bytes for each visited vertex, and 12 for each edge to the next level. Each listed path takes 24 bytes and 4 for
/// each vertex, checked against the budget before the first one. *Determinism*: equal paths in equal order in every
/// run.
///
/// # Errors
/// A vertex does not exist, the graph is damaged, the memory budget is too small, or the work was cancelled.
pub fn shortest_paths<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    target: VertexId,
    limit: usize,
) -> Result<Option<ShortestVertexPaths>> {
    require_vertex(graph, source)?;
    require_vertex(graph, target)?;
    let (mut forward, mut backward) = (ShortestPathsSearch::new(source), ShortestPathsSearch::new(target));
    let mut meeting = if source == target { vec![source] } else { Vec::new() };
    while meeting.is_empty() && !forward.frontier.is_empty() && !backward.frontier.is_empty() {
        let out_edges: usize = forward.frontier.iter().map(|&v| graph.degree(Direction::Out, v)).sum();
        // The search with fewer edges ahead advances. Without in-edges, only the forward one can.
        let go_forward = !graph.has_lists(Direction::In)
            || out_edges <= backward.frontier.iter().map(|&v| graph.degree(Direction::In, v)).sum::<usize>();
        let (near, far, direction) = match go_forward {
            true => (&mut forward, &backward, Direction::Out),
            false => (&mut backward, &forward, Direction::In),
        };
        graph.forget_needs();
        let room = |near: &ShortestPathsSearch, v| require(ctx, graph, [near, far], graph.degree(direction, v));
        let ahead = |frontier: &[VertexId], place| announce_ahead(graph, direction, frontier, place);
        near.advance(ctx, room, ahead, |v, body| graph.for_each_fragment(direction, v, body))?;
        meeting = near.met(far);
    }
    graph.check()?;
    if meeting.is_empty() {
        return Ok(None);
    }
    let count = meeting.iter().fold(0_u64, |sum, vertex| {
        let ways = |search: &ShortestPathsSearch| search.steps.get(vertex).map_or(0, |step| step.num_ways);
        sum.saturating_add(ways(&forward).saturating_mul(ways(&backward)))
    });
    let length = forward.depth + backward.depth;
    let held = forward.num_bytes() + backward.num_bytes();
    let path_bytes = (size_of::<VertexPath>() + (length + 1) * size_of::<VertexId>()) as u64;
    let num_listed = count.min(limit as u64);
    ctx.require_memory(QUERY, num_listed.saturating_mul(path_bytes).saturating_add(held as u64))?;
    let paths = list(ctx, &forward, &backward, &meeting, num_listed)?;
    Ok(Some(ShortestVertexPaths { length, count, paths }))
}

const QUERY: &str = "path --all";

/// Bytes for a visited vertex: its entry, the smallest list of predecessors, and the frontier.
const SEEN_BYTES: usize = table_bytes(size_of::<(VertexId, ShortestPathsStep)>()) + 48;

/// Bytes for an edge to the next level, in a list that doubles during its copy.
const EDGE_BYTES: usize = 3 * size_of::<VertexId>();

/// Checks the memory of two searches before one of them reads a list of `degree` edges.
fn require(ctx: &Context<'_>, graph: &impl Graph, searches: [&ShortestPathsSearch; 2], degree: usize) -> Result<()> {
    let num_seen: usize = searches.iter().map(|search| search.steps.len()).sum();
    let num_edges: usize = searches.iter().map(|search| search.num_edges).sum();
    // Both searches may visit a vertex.
    let most = (num_seen + degree).min(2 * graph.vertex_bound());
    ctx.require_memory(QUERY, (most * SEEN_BYTES + (num_edges + degree) * EDGE_BYTES) as u64)
}

/// How a search reached a vertex.
struct ShortestPathsStep {
    depth: usize,
    /// The predecessors in the level before, ascending.
    from: Vec<VertexId>,
    /// The number of shortest paths from the start, saturating.
    num_ways: u64,
}

/// A search from one end, by whole levels.
struct ShortestPathsSearch {
    steps: HashMap<VertexId, ShortestPathsStep, BuildHasherDefault<IdHasher>>,
    /// The vertices of the last level, ascending.
    frontier: Vec<VertexId>,
    depth: usize,
    /// The number of edges from each level to the next.
    num_edges: usize,
}

impl ShortestPathsSearch {
    fn new(start: VertexId) -> Self {
        let mut steps = HashMap::default();
        steps.insert(start, ShortestPathsStep { depth: 0, from: Vec::new(), num_ways: 1 });
        Self { steps, frontier: vec![start], depth: 0, num_edges: 0 }
    }

    /// The most bytes of this search.
    fn num_bytes(&self) -> usize {
        self.steps.len() * SEEN_BYTES + self.num_edges * EDGE_BYTES
    }

    fn advance(
        &mut self,
        ctx: &Context<'_>,
        room: impl Fn(&Self, VertexId) -> Result<()>,
        announce: impl Fn(&[VertexId], usize),
        fragments: impl Fn(VertexId, &mut dyn FnMut(&[VertexId]) -> ControlFlow<()>) -> ControlFlow<()>,
    ) -> Result<()> {
        let depth = self.depth + 1;
        let mut next = Vec::new();
        for (place, &u) in self.frontier.iter().enumerate() {
            if place % POLL == 0 {
                ctx.progress.check()?;
            }
            room(self, u)?;
            announce(&self.frontier, place);
            let num_ways = self.steps.get(&u).map_or(0, |step| step.num_ways);
            let (steps, num_edges) = (&mut self.steps, &mut self.num_edges);
            let _ = fragments(u, &mut |list| {
                for &v in list {
                    let step = steps.entry(v).or_insert_with(|| {
                        next.push(v);
                        ShortestPathsStep { depth, from: Vec::new(), num_ways: 0 }
                    });
                    // Parallel edges come in a row from one source, so a comparison with the last predecessor finds
                    // them.
                    // A vertex of an earlier level is nearer, so this edge is on no shortest path.
                    if step.depth == depth && step.from.last() != Some(&u) {
                        step.from.push(u);
                        *num_edges += 1;
                        step.num_ways = step.num_ways.saturating_add(num_ways);
                    }
                }
                ControlFlow::Continue(())
            });
        }
        // Ascending frontiers give ascending lists of predecessors, so paths are listed in one order.
        next.sort_unstable();
        (self.frontier, self.depth) = (next, depth);
        Ok(())
    }

    /// The vertices of the last level that the other search has visited, ascending.
    fn met(&self, other: &Self) -> Vec<VertexId> {
        self.frontier.iter().copied().filter(|vertex| other.steps.contains_key(vertex)).collect()
    }

    /// Calls `body` with each path from `vertex` back to the start, both included.
    fn for_each_way(&self, vertex: VertexId, mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>) {
        // `choices[i]` is the index of `way[i + 1]` among the predecessors of `way[i]`.
        let mut way = vec![vertex];
        let mut choices: Vec<usize> = Vec::new();
        loop {
            while let Some(&next) = self.from(way[way.len() - 1]).first() {
                way.push(next);
                choices.push(0);
            }
            if body(&way).is_break() {
                return;
            }
            loop {
                let Some(choice) = choices.pop() else { return };
                way.pop();
                if let Some(&next) = self.from(way[way.len() - 1]).get(choice + 1) {
                    way.push(next);
                    choices.push(choice + 1);
                    break;
                }
            }
        }
    }

    fn from(&self, vertex: VertexId) -> &[VertexId] {
        self.steps.get(&vertex).map_or(&[], |step| &step.from)
    }
}

/// Lists the first `num_listed` paths; at least this many exist.
fn list(
    ctx: &Context<'_>,
    forward: &ShortestPathsSearch,
    backward: &ShortestPathsSearch,
    meeting: &[VertexId],
    num_listed: u64,
) -> Result<Vec<VertexPath>> {
    // Without a budget, do not reserve: the paths may exceed memory, and a cancel may end the list early.
    let mut paths = Vec::with_capacity(if ctx.memory.is_some() { num_listed as usize } else { 0 });
    let is_whole = |paths: &Vec<VertexPath>| paths.len() as u64 == num_listed;
    let mut is_cancelled = false;
    for &vertex in meeting {
        forward.for_each_way(vertex, |there| {
            backward.for_each_way(vertex, |on| {
                if is_whole(&paths) {
                    return ControlFlow::Break(());
                }
                is_cancelled = is_cancelled || paths.len() % POLL == 0 && ctx.progress.is_cancelled();
                paths.push(VertexPath { vertices: there.iter().rev().chain(&on[1..]).copied().collect() });
                if is_cancelled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if is_cancelled || is_whole(&paths) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    ctx.progress.check()?;
    Ok(paths)
}
