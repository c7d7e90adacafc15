//! Questions about single vertices, answered without a look at the rest of the graph.
//!
//! Memory and time are proportional to what is touched: what has been visited is kept in hash tables,
//! and only a search that has come to a good part of the graph moves to a bitmap. A thread keeps them for its
//! next question. Answers are the same in every run.

mod heap;
mod path;
mod shortest_paths;
mod table;
mod visited;
mod weighted_path;

use std::cell::Cell;
use std::ops::ControlFlow;

use base::VertexId;
use graph::{Direction, Graph, InEdges, Parts, Side};

use crate::context::require_vertex;
use crate::edge_map::{announce, announce_first};
use crate::walk::announce_ahead;
use crate::{Context, Error, Result};

pub use path::{Path, path};
pub use shortest_paths::{ShortestPaths, shortest_paths};
use table::{Scratch, with_scratch};
use visited::Visited;
pub use weighted_path::{WeightedPath, weighted_path};

/// Which neighbours of a vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Neighbors {
    /// The targets of its edges.
    #[default]
    Out,
    /// The sources of edges to it.
    In,
    /// Either.
    Both,
}

/// Whether there is an edge from `source` to `target`. Cost: a binary search in each fragment.
///
/// # Errors
/// One of them does not exist, or the graph is damaged.
pub fn has_edge<G: Graph>(graph: &G, source: VertexId, target: VertexId) -> Result<bool> {
    require_vertex(graph, source)?;
    require_vertex(graph, target)?;
    let search = graph.for_each_out_fragment(source, |list| match list.binary_search(&target) {
        Ok(_) => ControlFlow::Break(()),
        Err(_) => ControlFlow::Continue(()),
    });
    graph.check()?;
    Ok(search.is_break())
}

/// The neighbours of a vertex, ascending, each once; the vertex itself is one if it has a loop.
///
/// # Errors
/// It does not exist; in-neighbours are asked for and the graph has no in-edges; the graph is damaged.
pub fn neighbors<G: InEdges>(graph: &G, vertex: VertexId, which: Neighbors) -> Result<Vec<VertexId>> {
    require_vertex(graph, vertex)?;
    if which != Neighbors::Out && !graph.has_in_edges() {
        return Err(Error::Unsupported { kernel: "neighbours by in-edges", needs: "a graph loaded with in-edges" });
    }
    let mut all = Vec::new();
    let mut collect = |list: &[VertexId]| {
        all.extend_from_slice(list);
        ControlFlow::Continue(())
    };
    if which != Neighbors::In || graph.direction() == Direction::Undirected {
        let _ = graph.for_each_out_fragment(vertex, &mut collect);
    }
    if which != Neighbors::Out && graph.direction() == Direction::Directed {
        let _ = graph.for_each_in_fragment(vertex, &mut collect);
    }
    graph.check()?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Friends of friends: the vertices that a walk of two out-edges leads to and no edge does, ascending,
/// without `vertex` itself.
///
/// *Cost*: the out-lists of the neighbours. *Memory*: as for [`khop`] of two.
///
/// # Errors
/// The vertex does not exist, the graph is damaged, or the work was cancelled.
pub fn friends_of_friends<G: Graph>(ctx: &Context<'_>, graph: &G, vertex: VertexId) -> Result<Vec<VertexId>> {
    nearby(ctx, graph, vertex, 2, Wanted::LastLevel)
}

/// The vertices that a walk of 1 to `num_hops` out-edges leads to, ascending, without `vertex` itself.
///
/// *Cost*: the out-lists of the vertices within `num_hops - 1` hops. *Memory*: some bytes for each
/// vertex found, at most 5 bytes for each of the graph; up to 1 MB of it is kept by the thread for its next search.
///
/// # Errors
/// The vertex does not exist, the graph is damaged, the budget of memory is too small, or the work was cancelled.
pub fn khop<G: Graph>(ctx: &Context<'_>, graph: &G, vertex: VertexId, num_hops: u32) -> Result<Vec<VertexId>> {
    nearby(ctx, graph, vertex, num_hops, Wanted::AllLevels)
}

/// Which of the vertices that a search finds are the answer.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    AllLevels,
    LastLevel,
}

thread_local!(static NEARBY: Cell<Option<Box<NearbyScratch>>> = const { Cell::new(None) });

/// What searches leave for those that follow.
#[derive(Default)]
struct NearbyScratch {
    visited: Visited,
    /// The vertices found, level by level.
    found: Vec<VertexId>,
}

impl Scratch for NearbyScratch {
    fn num_bytes(&self) -> usize {
        self.visited.num_bytes() + self.found.capacity() * size_of::<VertexId>()
    }
}

fn nearby<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    vertex: VertexId,
    num_hops: u32,
    wanted: Wanted,
) -> Result<Vec<VertexId>> {
    require_vertex(graph, vertex)?;
    with_scratch(&NEARBY, |scratch: &mut NearbyScratch| {
        let bound = graph.vertex_bound();
        // One vertex and its list, at least.
        ctx.require_memory("khop", (FOUND_BYTES + Visited::most_bytes(bound, 1)) as u64)?;
        let NearbyScratch { visited, found } = scratch;
        visited.begin(bound);
        found.clear();
        let searched = search_nearby(ctx, graph, vertex, num_hops, (visited, found));
        let answer = searched.and_then(|last_level| {
            let first = if wanted == Wanted::LastLevel { last_level.max(1) } else { 1 };
            found[..first].iter().for_each(|&near| visited.remove(near));
            // Of those that are found, the answer is counted already.
            let room = |num_vertices: usize| {
                let marked_bytes = num_vertices.saturating_sub(found.len()) * size_of::<VertexId>();
                let found_bytes = found.len() * FOUND_BYTES + Visited::most_bytes(bound, found.len());
                ctx.require_memory("khop", (found_bytes + marked_bytes) as u64)
            };
            visited.sorted(&found[first..], room)
        });
        visited.end(found);
        graph.check()?;
        answer
    })
}

/// Finds the vertices near to one, which is the first of them; gives where those of the last level begin, some of
/// which may be marked only.
fn search_nearby<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    vertex: VertexId,
    num_hops: u32,
    (visited, found): (&mut Visited, &mut Vec<VertexId>),
) -> Result<usize> {
    let bound = graph.vertex_bound();
    visited.insert(vertex);
    found.push(vertex);
    let mut level = 0;
    for hop in 1..=num_hops {
        let end = found.len();
        if level == end {
            break;
        }
        graph.forget_needs();
        announce_first(graph, Parts::Targets, &found[level..end]);
        let mut num_entries = 0;
        for place in level..end {
            announce_ahead(graph, Side::Out, &found[level..end], place - level);
            if place % POLL == 0 {
                ctx.progress.check()?;
            }
            if ctx.memory.is_some() {
                let most = (found.len() + graph.out_degree(found[place])).min(bound);
                ctx.require_memory("khop", (most * FOUND_BYTES + Visited::most_bytes(bound, most)) as u64)?;
            }
            announce(graph, Parts::Targets, &found[level..end], place - level);
            let _ = graph.for_each_out_fragment(found[place], |list| {
                num_entries += list.len();
                // Nothing leads on from the last level, so where it is large the rest of it is not listed.
                match hop == num_hops && visited.is_worth_marking(num_entries) {
                    true => visited.mark_all(list),
                    false => visited.insert_all(list, found),
                }
                ControlFlow::Continue(())
            });
        }
        level = end;
    }
    Ok(level)
}

/// Vertices between two looks at whether the work is cancelled.
const POLL: usize = 256;

/// Bytes for a vertex that is found: in a list that doubles while it is copied, beside an older list.
const FOUND_BYTES: usize = 16;

/// Room for an entry of a hash table at its worst: half empty, and doubling while the smaller one is still there.
const fn table_bytes(entry: usize) -> usize {
    (entry + 1) * 7 / 2
}

/// Refuses to go on where a search of so many vertices at most, `bytes_each` for each, needs more than the budget.
fn require_room(
    ctx: &Context<'_>,
    graph: &impl Graph,
    query: &'static str,
    num_vertices: usize,
    bytes_each: usize,
) -> Result<()> {
    // From both ends, a vertex may be seen twice.
    let most = num_vertices.min(2 * graph.vertex_bound());
    ctx.require_memory(query, (most * bytes_each) as u64)
}
