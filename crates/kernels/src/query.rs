//! Queries about single vertices. They read only the lists that they need.
//!
//! Memory and time are proportional to the visited part of the graph. A search keeps its visited vertices in a hash
//! table. Only a search that visits a large part of the graph moves to a bitmap. A thread keeps both for its next
//! query. Answers are equal in every run.

mod friends;
mod heap;
mod neighbor_graph;
mod path;
mod shortest_paths;
mod table;
mod visited;
mod weighted_path;

use std::cell::Cell;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph, GraphKind, Parts};

use crate::context::require_vertex;
use crate::edge_map::{announce, announce_first};
use crate::walk::announce_ahead;
use crate::{Context, Error, Result};

pub use friends::count_friends_of_friends;
pub use neighbor_graph::NeighborGraph;
pub use path::{VertexPath, path, path_within};
pub use shortest_paths::{ShortestVertexPaths, shortest_paths};
use table::{QueryScratch, with_scratch};
use visited::Visited;
pub use weighted_path::{WeightedPath, weighted_path};

/// A choice of neighbors of a vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Neighbors {
    /// Targets of out-edges.
    #[default]
    Out,
    /// Sources of in-edges.
    In,
    /// Both, each neighbor once.
    Both,
}

/// Whether an edge from `source` to `target` exists. Cost: a binary search in each fragment.
///
/// # Errors
/// A vertex does not exist, or the graph is damaged.
pub fn has_edge<G: Graph>(graph: &G, source: VertexId, target: VertexId) -> Result<bool> {
    require_vertex(graph, source)?;
    require_vertex(graph, target)?;
    let search = graph.for_each_fragment(Direction::Out, source, |list| match list.binary_search(&target) {
        Ok(_) => ControlFlow::Break(()),
        Err(_) => ControlFlow::Continue(()),
    });
    graph.check()?;
    Ok(search.is_break())
}

/// The neighbors of a vertex, ascending and distinct. A loop makes the vertex its own neighbor.
///
/// # Errors
/// The vertex does not exist; `which` needs in-edges and the graph has none; the graph is damaged.
pub fn neighbors<G: Graph>(graph: &G, vertex: VertexId, which: Neighbors) -> Result<Vec<VertexId>> {
    require_vertex(graph, vertex)?;
    if which != Neighbors::Out && !graph.has_lists(Direction::In) {
        return Err(Error::Unsupported { kernel: "neighbors by in-edges", needs: "a graph loaded with in-edges" });
    }
    let mut all = Vec::new();
    let mut collect = |list: &[VertexId]| {
        all.extend_from_slice(list);
        ControlFlow::Continue(())
    };
    // An undirected graph keeps each neighbor in the out-list, so the out-list answers for every direction.
    if which != Neighbors::In || graph.graph_kind() == GraphKind::Undirected {
        let _ = graph.for_each_fragment(Direction::Out, vertex, &mut collect);
    }
    if which != Neighbors::Out && graph.graph_kind() == GraphKind::Directed {
        let _ = graph.for_each_fragment(Direction::In, vertex, &mut collect);
    }
    graph.check()?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Friends of friends: the vertices at a distance of exactly two out-edges from `vertex`, ascending.
///
/// *Cost*: the out-lists of the neighbors. *Memory*: as [`khop`] with two hops.
///
/// # Errors
/// The vertex does not exist, the graph is damaged, the memory budget is too small, or the work was cancelled.
pub fn friends_of_friends<G: Graph>(ctx: &Context<'_>, graph: &G, vertex: VertexId) -> Result<Vec<VertexId>> {
    at_distance(ctx, graph, vertex, 2)
}

/// The vertices at a distance of exactly `num_hops` out-edges from `vertex`, ascending. *Cost* and *memory* as for
/// [`khop`].
///
/// # Errors
/// As [`khop`].
pub fn at_distance<G: Graph>(ctx: &Context<'_>, graph: &G, vertex: VertexId, num_hops: u32) -> Result<Vec<VertexId>> {
    nearby(ctx, graph, vertex, num_hops, KhopLevels::LastLevel)
}

/// The vertices that a walk of 1 to `num_hops` out-edges reaches, ascending, without `vertex` itself.
///
/// *Cost*: the out-lists of the vertices within `num_hops - 1` hops. *Memory*: at most 16 bytes for each vertex found,
/// and 0.7 bytes for each vertex of the graph. The thread keeps up to 1 MB for its next search.
///
/// # Errors
/// The vertex does not exist, the graph is damaged, the memory budget is too small, or the work was cancelled.
pub fn khop<G: Graph>(ctx: &Context<'_>, graph: &G, vertex: VertexId, num_hops: u32) -> Result<Vec<VertexId>> {
    nearby(ctx, graph, vertex, num_hops, KhopLevels::AllLevels)
}

/// As [`khop`], by levels: the vertices at a distance of one out-edge, then of two, and so on, each level ascending.
///
/// *Cost* and *memory* as for [`khop`], and 4 bytes for each vertex found.
///
/// # Errors
/// As [`khop`].
pub fn khop_levels<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    vertex: VertexId,
    num_hops: u32,
) -> Result<Vec<Vec<VertexId>>> {
    search(ctx, graph, vertex, num_hops, false, |_, found, starts| {
        let ends = starts[1..].iter().copied().chain([found.len()]);
        // The first level is the start, which is no answer.
        let levels = starts.iter().zip(ends).skip(1).map(|(&start, end)| {
            let mut level = found[start..end].to_vec();
            level.sort_unstable();
            level
        });
        Ok(levels.collect())
    })
}

/// The vertices that form the answer of a search.
#[derive(Clone, Copy, PartialEq)]
enum KhopLevels {
    AllLevels,
    LastLevel,
}

thread_local!(static NEARBY: Cell<Option<Box<NearbyScratch>>> = const { Cell::new(None) });

/// Memory of a search that a thread keeps for its next one.
#[derive(Default)]
struct NearbyScratch {
    visited: Visited,
    /// The found vertices, level by level.
    found: Vec<VertexId>,
    /// Where each level begins in `found`; the first one is the start.
    starts: Vec<usize>,
}

impl QueryScratch for NearbyScratch {
    fn num_bytes(&self) -> usize {
        let lists = self.found.capacity() * size_of::<VertexId>() + self.starts.capacity() * size_of::<usize>();
        self.visited.num_bytes() + lists
    }
}

fn nearby<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    vertex: VertexId,
    num_hops: u32,
    wanted: KhopLevels,
) -> Result<Vec<VertexId>> {
    let bound = graph.vertex_bound();
    search(ctx, graph, vertex, num_hops, true, |visited, found, starts| {
        let last_level = match starts.len() > num_hops as usize {
            true => starts[num_hops as usize],
            // No vertex is that far away.
            false => found.len(),
        };
        // The first entry of `found` is the start, which is no answer.
        let first = if wanted == KhopLevels::LastLevel { last_level.max(1) } else { 1 };
        found[..first].iter().for_each(|&near| visited.remove(near));
        // `sorted` counts the vertices again, and `found_bytes` covers those in `found` already.
        let room = |num_vertices: usize| {
            let marked_bytes = num_vertices.saturating_sub(found.len()) * size_of::<VertexId>();
            let found_bytes = found.len() * FOUND_BYTES + Visited::most_bytes(bound, found.len());
            ctx.require_memory("khop", (found_bytes + marked_bytes) as u64)
        };
        visited.sorted(&found[first..], room)
    })
}

/// Searches from `vertex`, and gives `answer` the visited vertices, those found in the order of their distance, and
/// where each level begins in that list.
fn search<G: Graph, T>(
    ctx: &Context<'_>,
    graph: &G,
    vertex: VertexId,
    num_hops: u32,
    may_mark: bool,
    answer: impl FnOnce(&mut Visited, &[VertexId], &[usize]) -> Result<T>,
) -> Result<T> {
    require_vertex(graph, vertex)?;
    with_scratch(&NEARBY, |scratch: &mut NearbyScratch| {
        let bound = graph.vertex_bound();
        // The smallest possible search: one vertex and its list.
        ctx.require_memory("khop", (FOUND_BYTES + Visited::most_bytes(bound, 1)) as u64)?;
        scratch.visited.begin(bound);
        scratch.found.clear();
        scratch.starts.clear();
        let searched = search_nearby(ctx, graph, vertex, (num_hops, may_mark), scratch);
        let NearbyScratch { visited, found, starts } = scratch;
        let answer = searched.and_then(|()| answer(visited, found, starts));
        // Also after an error: the thread keeps the set for its next query.
        visited.end(found);
        graph.check()?;
        answer
    })
}

/// Finds the vertices within `num_hops` of `vertex`, which becomes the first entry of `found`. With `may_mark`, some
/// vertices of the level `num_hops` may be marked only.
fn search_nearby<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    vertex: VertexId,
    (num_hops, may_mark): (u32, bool),
    NearbyScratch { visited, found, starts }: &mut NearbyScratch,
) -> Result<()> {
    let bound = graph.vertex_bound();
    visited.insert(vertex);
    found.push(vertex);
    starts.push(0);
    let mut level = 0;
    for hop in 1..=num_hops {
        let end = found.len();
        if level == end {
            break;
        }
        // Unread announcements of the last level are stale.
        graph.forget_needs();
        // The first lists of a level have no predecessor that could announce them.
        announce_first(graph, Parts::Targets, &found[level..end]);
        let mut num_entries = 0;
        for place in level..end {
            announce_ahead(graph, Direction::Out, &found[level..end], place - level);
            if place % POLL == 0 {
                ctx.progress.check()?;
            }
            // Without a budget, no degree is looked up.
            if ctx.memory.is_some() {
                let most = (found.len() + graph.degree(Direction::Out, found[place])).min(bound);
                ctx.require_memory("khop", (most * FOUND_BYTES + Visited::most_bytes(bound, most)) as u64)?;
            }
            announce(graph, Parts::Targets, &found[level..end], place - level);
            let _ = graph.for_each_fragment(Direction::Out, found[place], |list| {
                num_entries += list.len();
                // No list of the last level is read. If that level is large, marking its vertices costs less than
                // listing them.
                match may_mark && hop == num_hops && visited.is_worth_marking(num_entries) {
                    true => visited.mark_all(list),
                    false => visited.insert_all(list, found),
                }
                ControlFlow::Continue(())
            });
        }
        level = end;
        starts.push(level);
    }
    Ok(())
}

/// A search polls for cancellation once per this many vertices.
const POLL: usize = 256;

/// Bytes for a found vertex: a doubling list, during its copy, holds the old and the new array.
const FOUND_BYTES: usize = 16;

/// The most bytes of an entry in a hash table that doubles: half full, with the smaller table still alive.
const fn table_bytes(entry: usize) -> usize {
    (entry + 1) * 7 / 2
}

/// Checks that the budget covers a search of at most `num_vertices` vertices with `bytes_each` bytes each.
fn require_room(
    ctx: &Context<'_>,
    graph: &impl Graph,
    query: &'static str,
    num_vertices: usize,
    bytes_each: usize,
) -> Result<()> {
    // Two searches may both visit a vertex.
    let most = num_vertices.min(2 * graph.vertex_bound());
    ctx.require_memory(query, (most * bytes_each) as u64)
}
