//! All shortest paths by hops.
//!
//! Two searches meet, level by level, as for one path; but each finishes its level, and a vertex keeps
//! every vertex of the level before that leads to it. Every vertex where the searches meet is then on a
//! shortest path, and so is whatever leads there from either end: no step of listing the paths is in vain.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::ControlFlow;

use base::VertexId;
use graph::{Graph, InEdges, Side};

use super::path::Path;
use super::visited::IdHasher;
use super::{POLL, table_bytes};
use crate::context::require_vertex;
use crate::walk::announce_ahead;
use crate::{Context, Result};

/// The shortest paths between two vertices, or some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortestPaths {
    /// The number of edges of each.
    pub length: usize,
    /// How many there are; saturates.
    pub count: u64,
    /// The first of them, no two the same, in an order that is always the same.
    pub paths: Vec<Path>,
}

/// The paths of the fewest edges from `source` to `target`, at most `limit` of them listed; `None` where
/// there is no path. Parallel edges make no other path.
///
/// *Cost*: the edges of all vertices that a search from both ends visits, and the length of what is listed.
/// *Memory*: some 220 bytes for each vertex visited and 12 for each edge that leads a level on; for each path that is
/// listed, 24 bytes and 4 for each of its vertices, asked for before the first is. *Determinism*:
/// the same paths in the same order in every run.
///
/// # Errors
/// One of the two does not exist, the graph is damaged, the budget of memory is too small, or the work was cancelled.
pub fn shortest_paths<G: InEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    target: VertexId,
    limit: usize,
) -> Result<Option<ShortestPaths>> {
    require_vertex(graph, source)?;
    require_vertex(graph, target)?;
    let (mut forward, mut backward) = (Search::new(source), Search::new(target));
    let mut meeting = if source == target { vec![source] } else { Vec::new() };
    while meeting.is_empty() && !forward.frontier.is_empty() && !backward.frontier.is_empty() {
        let out_edges: usize = forward.frontier.iter().map(|&v| graph.out_degree(v)).sum();
        let go_forward =
            !graph.has_in_edges() || out_edges <= backward.frontier.iter().map(|&v| graph.in_degree(v)).sum::<usize>();
        if go_forward {
            graph.forget_needs();
            let room = |forward: &Search, v| require(ctx, graph, [forward, &backward], graph.out_degree(v));
            let ahead = |frontier: &[VertexId], place| announce_ahead(graph, Side::Out, frontier, place);
            forward.advance(ctx, room, ahead, |v, body| graph.for_each_out_fragment(v, body))?;
            meeting = forward.met(&backward);
        } else {
            graph.forget_needs();
            let room = |backward: &Search, v| require(ctx, graph, [&forward, backward], graph.in_degree(v));
            let ahead = |frontier: &[VertexId], place| announce_ahead(graph, Side::In, frontier, place);
            backward.advance(ctx, room, ahead, |v, body| graph.for_each_in_fragment(v, body))?;
            meeting = backward.met(&forward);
        }
    }
    graph.check()?;
    if meeting.is_empty() {
        return Ok(None);
    }
    let count = meeting.iter().fold(0_u64, |sum, vertex| {
        let ways = |search: &Search| search.steps.get(vertex).map_or(0, |step| step.num_ways);
        sum.saturating_add(ways(&forward).saturating_mul(ways(&backward)))
    });
    let length = forward.depth + backward.depth;
    let held = forward.num_bytes() + backward.num_bytes();
    let path_bytes = (size_of::<Path>() + (length + 1) * size_of::<VertexId>()) as u64;
    let num_listed = count.min(limit as u64);
    ctx.require_memory(QUERY, num_listed.saturating_mul(path_bytes).saturating_add(held as u64))?;
    let paths = list(ctx, &forward, &backward, &meeting, num_listed)?;
    Ok(Some(ShortestPaths { length, count, paths }))
}

const QUERY: &str = "path --all";

/// Room for a vertex that is seen: its entry, the smallest list of those that lead to it, and the frontier.
const SEEN_BYTES: usize = table_bytes(size_of::<(VertexId, Step)>()) + 48;

/// Room for an edge that leads a level on: in a list that doubles while it is copied.
const EDGE_BYTES: usize = 3 * size_of::<VertexId>();

/// Asks for the memory of two searches, before one of them looks at a list of `degree`.
fn require(ctx: &Context<'_>, graph: &impl Graph, searches: [&Search; 2], degree: usize) -> Result<()> {
    let num_seen: usize = searches.iter().map(|search| search.steps.len()).sum();
    let num_edges: usize = searches.iter().map(|search| search.num_edges).sum();
    // From both ends, a vertex may be seen twice.
    let most = (num_seen + degree).min(2 * graph.vertex_bound());
    ctx.require_memory(QUERY, (most * SEEN_BYTES + (num_edges + degree) * EDGE_BYTES) as u64)
}

/// How a search came to a vertex.
struct Step {
    depth: usize,
    /// The vertices of the level before that lead here, ascending.
    from: Vec<VertexId>,
    /// The ways here; saturates.
    num_ways: u64,
}

/// A search from one end, by whole levels.
struct Search {
    steps: HashMap<VertexId, Step, BuildHasherDefault<IdHasher>>,
    /// The vertices of the last level, ascending.
    frontier: Vec<VertexId>,
    depth: usize,
    /// The edges that lead a level on.
    num_edges: usize,
}

impl Search {
    fn new(start: VertexId) -> Self {
        let mut steps = HashMap::default();
        steps.insert(start, Step { depth: 0, from: Vec::new(), num_ways: 1 });
        Self { steps, frontier: vec![start], depth: 0, num_edges: 0 }
    }

    /// The most bytes that it takes.
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
                        Step { depth, from: Vec::new(), num_ways: 0 }
                    });
                    // Parallel edges come from the vertex at hand, which was the last to be noted.
                    if step.depth == depth && step.from.last() != Some(&u) {
                        step.from.push(u);
                        *num_edges += 1;
                        step.num_ways = step.num_ways.saturating_add(num_ways);
                    }
                }
                ControlFlow::Continue(())
            });
        }
        next.sort_unstable();
        (self.frontier, self.depth) = (next, depth);
        Ok(())
    }

    /// The vertices of the last level that the other search has come to, ascending.
    fn met(&self, other: &Self) -> Vec<VertexId> {
        self.frontier.iter().copied().filter(|vertex| other.steps.contains_key(vertex)).collect()
    }

    /// Calls `body` with each way from `vertex` back to the start, both included.
    fn for_each_way(&self, vertex: VertexId, mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>) {
        // For each vertex of the way but the last, which of its predecessors is the next.
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

/// The first `num_listed` paths, of which there are so many.
fn list(
    ctx: &Context<'_>,
    forward: &Search,
    backward: &Search,
    meeting: &[VertexId],
    num_listed: u64,
) -> Result<Vec<Path>> {
    // Without a budget, more may be wanted than can be had, and somebody may stop it on the way.
    let mut paths = Vec::with_capacity(if ctx.memory.is_some() { num_listed as usize } else { 0 });
    let is_whole = |paths: &Vec<Path>| paths.len() as u64 == num_listed;
    let mut is_cancelled = false;
    for &vertex in meeting {
        forward.for_each_way(vertex, |there| {
            backward.for_each_way(vertex, |on| {
                if is_whole(&paths) {
                    return ControlFlow::Break(());
                }
                is_cancelled = is_cancelled || paths.len() % POLL == 0 && ctx.progress.is_cancelled();
                paths.push(Path { vertices: there.iter().rev().chain(&on[1..]).copied().collect() });
                if is_cancelled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if is_cancelled || is_whole(&paths) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    ctx.progress.check()?;
    Ok(paths)
}
