//! Announcements of what an edge map will read, where somebody listens.
//!
//! All of it is known when the map begins. It is announced bit by bit all the same, as far ahead of the workers as a disk
//! needs and no further: what is read too early takes the memory of what is needed now.

use std::ops::Range;

use base::VertexId;
use base::bitmap::ones;
use graph::{Graph, Parts, Side};

use crate::vertex_subset::CHUNK;

/// How far ahead of a worker that walks over pages is announced, in chunks of vertices; lists of some megabytes.
const CHUNKS_AHEAD: usize = 8;

/// How far ahead of a worker that goes through a list of vertices is announced, in edges.
const EDGES_AHEAD: u64 = 1 << 20;

/// And the most lists: each takes a page of memory at least.
const LISTS_AHEAD: usize = 2048;

/// The most edges of a piece of such work where it is announced: a worker should not wait for more of them at once.
pub(super) const MAX_PIECE: u64 = 1 << 16;

/// The vertices of a page, as far as announcements care.
pub(super) const PAGE: usize = 1024;

/// Tells when pages are walked over, chunk by chunk, which of their lists will be read.
pub(super) struct PagesAhead<W, A> {
    pub bound: usize,
    /// The bits of those of 64 vertices whose lists will be read, by the number of the word.
    pub wanted: W,
    /// Whom to tell.
    pub announce: A,
}

impl<W: Fn(usize) -> u64, A: Fn(&[Range<VertexId>])> PagesAhead<W, A> {
    /// Announces what is needed first.
    pub fn begin(&self) {
        (0..CHUNKS_AHEAD).for_each(|chunk| self.announce_chunk(chunk * CHUNK));
    }

    /// Announces what is needed some time after the chunk that starts here.
    pub fn go_on(&self, start: usize) {
        self.announce_chunk(start + CHUNKS_AHEAD * CHUNK);
    }

    /// Whether any list of these vertices will be read, and of those who share their words.
    pub fn wants(&self, vertices: &Range<VertexId>) -> bool {
        (vertices.start as usize / 64..(vertices.end as usize).div_ceil(64)).any(|word| (self.wanted)(word) != 0)
    }

    fn announce_chunk(&self, start: usize) {
        let end = (start + CHUNK).min(self.bound);
        let mut runs: Vec<Range<VertexId>> = Vec::new();
        for word in start / 64..end.div_ceil(64).max(start / 64) {
            let wanted = (self.wanted)(word);
            let (Some(first), last) = (ones(wanted).next(), 63 - wanted.leading_zeros() as usize % 64) else {
                continue;
            };
            let run = (word * 64 + first) as VertexId..(word * 64 + last + 1).min(end) as VertexId;
            match runs.last_mut() {
                Some(before) if before.end == run.start => before.end = run.end,
                _ => runs.push(run),
            }
        }
        if !runs.is_empty() {
            (self.announce)(&runs);
        }
    }
}

/// Announces these parts of the out-lists of those vertices of a list that lie some way ahead of the edges that are read
/// next.
///
/// `starts` are the numbers of edges before each vertex, and of all; who begins gives no edges.
pub(super) fn announce_edges(graph: &impl Graph, parts: Parts, list: &[VertexId], starts: &[u64], edges: &Range<u64>) {
    let ahead = lists_ahead(starts, edges);
    if !ahead.is_empty() {
        graph.will_need(Side::Out, parts, &list[ahead]);
    }
}

/// Which lists to announce before these edges are read; those who read all edges announce each list once.
fn lists_ahead(starts: &[u64], edges: &Range<u64>) -> Range<usize> {
    let num_lists = starts.len().saturating_sub(1);
    let index = |edge: u64| starts.partition_point(|&start| start < edge).min(num_lists);
    let ahead = |edge: u64| index(edge + EDGES_AHEAD).min(index(edge) + LISTS_AHEAD).min(num_lists);
    let from = if edges.is_empty() { 0 } else { ahead(edges.start) };
    from..ahead(edges.end)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn every_wanted_list_is_announced_once_and_in_time() {
        let bound = 20 * CHUNK + 100;
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
        let ahead = PagesAhead { bound, wanted, announce };
        ahead.begin();
        for start in (0..bound).step_by(CHUNK) {
            let chunk = start..(start + CHUNK).min(bound);
            let is_announced = |vertex: usize| !is_wanted(vertex) || announced.borrow()[vertex] == 1;
            assert!(chunk.clone().all(is_announced), "{chunk:?}");
            ahead.go_on(start);
        }
        assert!(announced.borrow().iter().all(|&count| count <= 1));
        assert!(ahead.wants(&(0..64)) && !ahead.wants(&(640..1280)));
    }

    #[test]
    fn lists_of_a_frontier_are_announced_once_and_in_time() {
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
