//! Announcements to the prefetcher: the lists that an edge map will read.
//!
//! An edge map knows all its lists when it begins, but announces them step by step. The distance from the workers is
//! the least that a disk needs: lists read too early would take the memory of lists needed now.

use std::ops::Range;

use anden_base::VertexId;
use anden_graph::{Direction, Graph, Parts, VertexMask};

use crate::vertex_subset::CHUNK;
use crate::walk::{HEARD_BYTES, READ_BYTES, lists_of};

/// Distance of announcements ahead of a worker that walks over pages, in chunks: lists of at most 8 MB or so.
const CHUNKS_AHEAD: usize = 8;

/// Distance of announcements ahead of a worker in a vertex list, in edges.
const EDGES_AHEAD: u64 = 1 << 20;

/// The most lists announced ahead in a vertex list: each takes a page of memory at least.
const LISTS_AHEAD: usize = 2048;

/// The most edges of a chunk with a prefetcher: a worker should not wait for more of them at once.
pub(super) const MAX_PIECE: u64 = 1 << 16;

/// Lists that take less than one in this many bytes of their page group are read alone.
const SPARSE: usize = 4;

/// The lists to read among some consecutive vertices.
pub(super) enum ListsToRead {
    /// A few lists, each read alone.
    Few(VertexMask),
    /// Enough lists to read all of the range.
    Most(Range<VertexId>),
}

/// Announces the lists of a walk over pages, chunk by chunk.
pub(super) struct PagesAhead<W, A> {
    pub bound: usize,
    /// The number of vertices that a worker takes at a time.
    pub chunk: usize,
    /// The average number of lists in one read from a disk.
    pub lists_of_a_read: usize,
    /// For each word index, the bits of those of its 64 vertices whose lists will be read.
    pub wanted: W,
    /// Passes runs of vertices to the prefetcher.
    pub announce: A,
}

impl<W: Fn(usize) -> u64, A: Fn(&[Range<VertexId>])> PagesAhead<W, A> {
    /// For all vertices of a graph; `None` without a prefetcher.
    pub fn of(graph: &impl Graph, wanted: W, announce: A) -> Option<Self> {
        // `wanted` answers by words, so chunks hold whole words.
        let chunk = (2 * lists_of(graph, HEARD_BYTES)).min(CHUNK).next_multiple_of(64);
        let (bound, lists_of_a_read) = (graph.vertex_bound(), lists_of(graph, READ_BYTES));
        graph.is_listening().then_some(Self { bound, chunk, lists_of_a_read, wanted, announce })
    }

    /// Announces the first chunks.
    pub fn begin(&self) {
        (0..CHUNKS_AHEAD).for_each(|chunk| self.announce_chunk(chunk * self.chunk));
    }

    /// Announces the chunk that lies [`CHUNKS_AHEAD`] chunks after the one at `start`.
    pub fn go_on(&self, start: usize) {
        self.announce_chunk(start + CHUNKS_AHEAD * self.chunk);
    }

    /// The lists of a chunk to read, for each group of its vertices that has any.
    pub fn wanted_in(&self, chunk: Range<VertexId>) -> impl Iterator<Item = ListsToRead> {
        VertexMask::groups(chunk.clone()).filter_map(move |group| {
            let lists = group.among(|word, _| (self.wanted)(word));
            if lists.is_empty() {
                return None;
            }
            let end = chunk.end.min(group.first() + VertexMask::VERTICES as VertexId);
            let vertices = chunk.start.max(group.first())..end;
            Some(match lists.len() * self.lists_of_a_read * SPARSE < vertices.len() {
                true => ListsToRead::Few(lists),
                false => ListsToRead::Most(vertices),
            })
        })
    }

    fn announce_chunk(&self, start: usize) {
        let chunk = start.min(self.bound)..(start + self.chunk).min(self.bound);
        let mut runs: Vec<Range<VertexId>> = Vec::new();
        let mut add = |lists: Range<VertexId>| match runs.last_mut() {
            // A gap shorter than one read of the disk saves no read, so the runs around it join.
            Some(run) if ((lists.start - run.end) as usize) < self.lists_of_a_read => run.end = lists.end,
            _ => runs.push(lists),
        };
        for wanted in self.wanted_in(chunk.start as VertexId..chunk.end as VertexId) {
            match wanted {
                ListsToRead::Few(lists) => lists.vertices().for_each(|vertex| add(vertex..vertex + 1)),
                ListsToRead::Most(vertices) => add(vertices),
            }
        }
        if !runs.is_empty() {
            (self.announce)(&runs);
        }
    }
}

/// Announces lists some way ahead of the edges that a worker reads next.
///
/// `starts` holds the number of edges before each vertex, then the total. An empty `edges` announces the first lists.
pub(super) fn announce_edges(graph: &impl Graph, parts: Parts, list: &[VertexId], starts: &[u64], edges: &Range<u64>) {
    let ahead = lists_ahead(starts, edges);
    if !ahead.is_empty() {
        graph.will_need(Direction::Out, parts, &list[ahead]);
    }
}

/// The lists to announce before these edges are read. Calls that cover all edges announce each list once.
fn lists_ahead(starts: &[u64], edges: &Range<u64>) -> Range<usize> {
    let num_lists = starts.len().saturating_sub(1);
    let index = |edge: u64| starts.partition_point(|&start| start < edge).min(num_lists);
    let ahead = |edge: u64| index(edge + EDGES_AHEAD).min(index(edge) + LISTS_AHEAD).min(num_lists);
    // The first call has no edges before it, and also announces the nearest lists.
    let from = if edges.is_empty() { 0 } else { ahead(edges.start) };
    from..ahead(edges.end)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn every_wanted_list_is_announced_once_and_in_time() {
        let chunk = 15 * 64;
        let bound = 20 * chunk + 100;
        let is_wanted =
            |vertex: usize| vertex.is_multiple_of(3) && (vertex / 640).is_multiple_of(2) || vertex + 1 == bound;
        let wanted = |word: usize| {
            let bit = |bit: usize| word * 64 + bit < bound && is_wanted(word * 64 + bit);
            (0..64).fold(0, |bits, place| bits | u64::from(bit(place)) << place)
        };
        let announced = RefCell::new(vec![0; bound]);
        let announce = |runs: &[Range<VertexId>]| {
            runs.iter().cloned().flatten().for_each(|vertex| announced.borrow_mut()[vertex as usize] += 1);
        };
        let ahead = PagesAhead { bound, chunk, lists_of_a_read: 5, wanted, announce };
        ahead.begin();
        for start in (0..bound).step_by(chunk) {
            let chunk = start..(start + chunk).min(bound);
            let is_announced = |vertex: usize| !is_wanted(vertex) || announced.borrow()[vertex] == 1;
            assert!(chunk.clone().all(is_announced), "{chunk:?}");
            ahead.go_on(start);
        }
        assert!(announced.borrow().iter().all(|&count| count <= 1));
    }

    #[test]
    fn few_lists_are_read_alone() {
        let bound = 5000;
        let lists = |lists_of_a_read, every: usize| {
            let wanted = move |word: usize| if word.is_multiple_of(every) { 1 } else { 0 };
            let ahead = PagesAhead { bound, chunk: 1920, lists_of_a_read, wanted, announce: |_: &_| {} };
            let read: Vec<_> = ahead.wanted_in(1920..3840).collect();
            read.into_iter()
                .map(|wanted| match wanted {
                    ListsToRead::Few(lists) => (lists.vertices().next().unwrap(), lists.len()),
                    ListsToRead::Most(vertices) => (vertices.start, 1000 + vertices.len()),
                })
                .collect::<Vec<_>>()
        };
        // One in 64 lists: three lists fill a read of the disk; then 16 lists do.
        assert_eq!(lists(3, 1), [(1920, 2), (2048, 16), (3072, 12)]);
        assert_eq!(lists(16, 1), [(1920, 1128), (2048, 2024), (3072, 1768)]);
        assert_eq!(lists(16, 40), [(2560, 1)]);
    }

    #[test]
    fn frontier_lists_are_announced_once_in_time() {
        for degree in [1_u64, 300, EDGES_AHEAD / 3, 5 * EDGES_AHEAD] {
            let num_lists = 3 * LISTS_AHEAD + 77;
            let starts: Vec<u64> = (0..=num_lists as u64).map(|list| list * degree).collect();
            let num_edges = num_lists as u64 * degree;
            let mut announced = lists_ahead(&starts, &(0..0)).end;
            let piece = (num_edges / 100).max(1);
            for first in (0..num_edges).step_by(piece as usize) {
                let edges = first..num_edges.min(first + piece);
                let ahead = lists_ahead(&starts, &edges);
                assert_eq!(ahead.start, announced, "degree {degree}, {edges:?}");
                announced = ahead.end;
                assert!(announced as u64 * degree >= edges.end.min(num_edges), "degree {degree}, {edges:?}");
            }
            assert_eq!(announced, num_lists);
        }
    }
}
