//! Friends of friends, with the number of friends between.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph, Parts};

use super::{FOUND_BYTES, POLL};
use crate::context::require_vertex;
use crate::edge_map::{announce, announce_first};
use crate::walk::announce_ahead;
use crate::{Context, Result};

const QUERY: &str = "fof --counts";

/// Entries that are collected before they are counted.
const LEAST_COUNTED: usize = 1 << 16;

/// Bytes of a counted vertex: the old list, and the new one while they are merged.
const COUNTED_BYTES: usize = 2 * size_of::<(VertexId, u32)>();

/// The vertices at a distance of exactly two out-edges from `vertex`, ascending, each with the number of vertices
/// between: of distinct neighbors of `vertex` that have an edge to it.
///
/// *Cost*: the out-lists of the neighbors, and a sort. *Memory*: 32 bytes for each vertex found, and 0.5 MB.
///
/// # Errors
/// The vertex does not exist, the graph is damaged, the memory budget is too small, or the work was cancelled.
pub fn count_friends_of_friends<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    vertex: VertexId,
) -> Result<Vec<(VertexId, u32)>> {
    require_vertex(graph, vertex)?;
    let mut friends = Vec::new();
    push_list(graph, vertex, &mut friends);
    // A loop makes a vertex its own neighbor, but not its friend.
    friends.retain(|&friend| friend != vertex);
    graph.forget_needs();
    announce_first(graph, Parts::Targets, &friends);
    let mut counts = FriendCounts::default();
    let mut list = Vec::new();
    for (place, &friend) in friends.iter().enumerate() {
        announce_ahead(graph, Direction::Out, &friends, place);
        if place % POLL == 0 {
            ctx.progress.check()?;
        }
        // Without a budget, no degree is looked up.
        if ctx.memory.is_some() {
            let more = graph.degree(Direction::Out, friend);
            ctx.require_memory(QUERY, (counts.num_bytes() + 2 * more * FOUND_BYTES) as u64)?;
        }
        announce(graph, Parts::Targets, &friends, place);
        list.clear();
        push_list(graph, friend, &mut list);
        counts.add(&list);
    }
    graph.check()?;
    let mut found = counts.finish();
    found.retain(|(other, _)| *other != vertex && friends.binary_search(other).is_err());
    Ok(found)
}

/// Appends the out-list of a vertex to an empty list, ascending and distinct.
fn push_list(graph: &impl Graph, vertex: VertexId, list: &mut Vec<VertexId>) {
    let _ = graph.for_each_fragment(Direction::Out, vertex, |fragment| {
        list.extend_from_slice(fragment);
        ControlFlow::Continue(())
    });
    // Parallel edges, and edges of both directions, repeat a neighbor.
    if !list.is_sorted_by(|a, b| a < b) {
        list.sort_unstable();
        list.dedup();
    }
}

/// How often each vertex was added.
#[derive(Default)]
struct FriendCounts {
    /// Ascending by vertex.
    counted: Vec<(VertexId, u32)>,
    /// Entries that are not counted yet.
    entries: Vec<VertexId>,
}

impl FriendCounts {
    fn num_bytes(&self) -> usize {
        self.counted.len() * COUNTED_BYTES + self.entries.len() * (FOUND_BYTES + COUNTED_BYTES)
    }

    fn add(&mut self, list: &[VertexId]) {
        self.entries.extend_from_slice(list);
        // Counted once there are as many entries as counts, so a merge costs no more than the entries before it.
        if self.entries.len() >= LEAST_COUNTED.max(self.counted.len()) {
            self.count();
        }
    }

    fn count(&mut self) {
        self.entries.sort_unstable();
        let old = std::mem::take(&mut self.counted);
        let mut merged: Vec<(VertexId, u32)> = Vec::with_capacity(old.len());
        let mut old = old.into_iter().peekable();
        for run in self.entries.chunk_by(|a, b| a == b) {
            merged.extend(std::iter::from_fn(|| old.next_if(|(vertex, _)| *vertex < run[0])));
            let before = old.next_if(|(vertex, _)| *vertex == run[0]).map_or(0, |(_, count)| count);
            merged.push((run[0], before + run.len() as u32));
        }
        merged.extend(old);
        self.counted = merged;
        self.entries.clear();
    }

    fn finish(mut self) -> Vec<(VertexId, u32)> {
        self.count();
        self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_counts_are_those_of_all_entries() {
        let mut counts = FriendCounts::default();
        // Three lists of 30,000 entries are counted in two steps.
        let lists = [1, 2, 3].map(|step| (0..30_000_u32).map(|i| i * step).collect::<Vec<_>>());
        lists.iter().for_each(|list| counts.add(list));
        let found = counts.finish();
        assert!(found.is_sorted_by(|a, b| a.0 < b.0));
        let times = |vertex: u32| lists.iter().filter(|list| list.contains(&vertex)).count() as u32;
        for vertex in (0..90_000).step_by(997) {
            let count = found.binary_search_by_key(&vertex, |pair| pair.0).map_or(0, |place| found[place].1);
            assert_eq!(count, times(vertex), "{vertex}");
        }
    }
}
