//! Push: edge maps over the out-lists of the frontier.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::AtomicBitmap;
use anden_base::parallel::Pool;
use anden_graph::{Direction, Graph, Page, PrefetchStage, VertexMask, vertices_of};

use super::ahead::{self, ListsToRead, PagesAhead, announce_edges};
use super::lists::EdgeMapLists;
use super::{EdgeFunctor, EdgeMapRun, FAR, announce, list_of};
use crate::vertex_subset::{CHUNK, LIST_CHUNK, Members, VertexSubset, WorkerLists, each_word};

/// The least number of edges in a chunk.
const MIN_PIECE: u64 = 1024;

/// The number of chunks for each worker, so that unequal ones even out.
const PIECES_PER_WORKER: u64 = 16;

impl<G: Graph, L, F> EdgeMapRun<'_, G, L, F> {
    /// Pushes from a frontier that is a list with few edges, on this thread.
    pub(super) fn serial_push<W: Copy>(&self, frontier: &VertexSubset) -> VertexSubset
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        let (list, bound) = (list_of(frontier), self.graph.vertex_bound());
        let mut next = Vec::with_capacity(list.len());
        for (index, &source) in list.iter().enumerate() {
            announce(self.graph, L::PARTS, list, index);
            let _ = self.lists.list(Direction::Out, source, |targets, weights| {
                for (&target, &weight) in targets.iter().zip(weights) {
                    if self.functor.condition(target) && self.functor.update(source, target, weight) {
                        next.push(target);
                    }
                }
                ControlFlow::Continue(())
            });
        }
        if self.distinct {
            next.sort_unstable();
            next.dedup();
        }
        VertexSubset::sparse(bound, next)
    }

    /// Pushes from a frontier that is a list.
    pub(super) fn sparse_push<W: Copy>(&self, frontier: &VertexSubset) -> VertexSubset
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        let list = list_of(frontier);
        let (bound, is_heard) = (self.graph.vertex_bound(), self.graph.is_listening());
        let starts = edge_starts(self.ctx.pool, list.len(), |index| {
            if let Some(&ahead) = list.get(index + FAR) {
                self.graph.prefetch(Direction::Out, PrefetchStage::RoughDegree, ahead);
            }
            // The rough degree may be below the true one, so each list gets one edge at least.
            self.graph.rough_degree(Direction::Out, list[index]).max(1)
        });
        let num_edges = starts.last().copied().unwrap_or(0);
        let seen = AtomicBitmap::new(if self.distinct { bound } else { 0 });
        let mut piece = (num_edges / (self.ctx.pool.num_threads() as u64 * PIECES_PER_WORKER)).max(MIN_PIECE);
        if is_heard {
            piece = piece.min(ahead::MAX_PIECE);
            announce_edges(self.graph, L::PARTS, list, &starts, &(0..0));
        }
        let lists = WorkerLists::new(self.ctx.pool);
        self.ctx.pool.for_each_chunk(0..num_edges as usize, piece as usize, |worker, edges| {
            if self.ctx.progress.is_cancelled() {
                return;
            }
            lists.with(worker, |next| {
                let edges = edges.start as u64..edges.end as u64;
                if is_heard {
                    announce_edges(self.graph, L::PARTS, list, &starts, &edges);
                }
                for_each_part(&starts, edges, |index, part| {
                    announce(self.graph, L::PARTS, list, index);
                    // The last part of a list ends at its true end, which may lie beyond the rough degree.
                    let is_last = part.end as u64 == starts[index + 1] - starts[index];
                    let part = part.start..if is_last { usize::MAX } else { part.end };
                    self.push_part(list[index], part, &mut |target| {
                        if !self.distinct || seen.set(target as usize) {
                            next.push(target);
                        }
                    });
                });
            });
        });
        VertexSubset::sparse(bound, lists.join())
    }

    /// Pushes along the entries at the positions `part` of one list.
    fn push_part<W: Copy>(&self, source: VertexId, part: Range<usize>, accept: &mut impl FnMut(VertexId))
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        let mut place = 0;
        let _ = self.lists.list(Direction::Out, source, |targets, weights| {
            let range = part.start.saturating_sub(place)..part.end.saturating_sub(place).min(targets.len());
            place += targets.len();
            if !range.is_empty() {
                self.push_list(source, &targets[range.clone()], &weights[range], accept);
            }
            if place < part.end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }

    #[inline(always)]
    fn push_list<W: Copy>(
        &self,
        source: VertexId,
        targets: &[VertexId],
        weights: &[W],
        accept: &mut impl FnMut(VertexId),
    ) where
        F: EdgeFunctor<W>,
    {
        for (&target, &weight) in targets.iter().zip(weights) {
            // The plain test spares most edges the atomic write of the update.
            if self.functor.condition(target) && self.functor.update_atomic(source, target, weight) {
                accept(target);
            }
        }
    }

    /// Pushes from a frontier that is a bitmap or *all*.
    pub(super) fn dense_push<W: Copy>(&self, frontier: &VertexSubset) -> VertexSubset
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        let word = |index: usize| match frontier.members() {
            Members::Dense(bits, _) => bits.words()[index],
            // Bits beyond the bound lie on no page.
            Members::All | Members::Sparse(_) => !0,
        };
        let bound = self.graph.vertex_bound();
        let (next, count) = (AtomicBitmap::new(bound), AtomicUsize::new(0));
        let announce = |runs: &[Range<VertexId>]| self.graph.will_need_runs(Direction::Out, L::PARTS, runs);
        let ahead = PagesAhead::of(self.graph, word, announce);
        ahead.iter().for_each(PagesAhead::begin);
        let grain = ahead.as_ref().map_or(CHUNK / 4, |ahead| ahead.chunk);
        self.ctx.pool.for_each_chunk(0..bound, grain, |_, chunk| {
            if self.ctx.progress.is_cancelled() {
                return;
            }
            let vertices = chunk.start as VertexId..chunk.end as VertexId;
            let mut found = 0;
            // Several workers may accept a target; the bitmap counts it once.
            let mut accept = |target| found += usize::from(next.set(target as usize));
            match &ahead {
                None => self.push_pages(vertices, word, &mut accept),
                Some(ahead) => {
                    ahead.go_on(chunk.start);
                    ahead.wanted_in(vertices).for_each(|wanted| match wanted {
                        ListsToRead::Few(lists) => self.push_lists(&lists, &mut accept),
                        ListsToRead::Most(vertices) => self.push_pages(vertices, word, &mut accept),
                    });
                }
            }
            count.fetch_add(found, Ordering::Relaxed);
        });
        VertexSubset::dense(next, count.into_inner())
    }

    /// Pushes from the vertices of a range that are in the frontier.
    #[inline(always)]
    fn push_pages<W: Copy>(
        &self,
        vertices: Range<VertexId>,
        word: impl Fn(usize) -> u64,
        accept: &mut impl FnMut(VertexId),
    ) where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        self.lists.pages(Direction::Out, vertices, |page| match page {
            Page::Dense(page) => each_word(page.vertices(), |index, mask| {
                for source in vertices_of(index, word(index) & mask) {
                    let targets = page.list((source - page.first()) as usize);
                    self.push_list(source, targets, self.lists.dense_weights(targets.len()), accept);
                }
            }),
            Page::Patched(vertices) => VertexMask::groups(vertices)
                .for_each(|group| self.push_lists(&group.among(|index, _| word(index)), accept)),
            Page::Empty(_) => {}
        });
    }

    /// Pushes from `sources`.
    #[inline(always)]
    fn push_lists<W: Copy>(&self, sources: &VertexMask, accept: &mut impl FnMut(VertexId))
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        self.lists.lists_of(Direction::Out, sources, |source, targets, weights| {
            self.push_list(source, targets, weights, accept);
            ControlFlow::Continue(())
        });
    }
}

/// The number of edges before each of `len` vertices, then the total, from the degree at each index.
pub(crate) fn edge_starts(pool: &Pool, len: usize, degree: impl Fn(usize) -> usize + Sync) -> Vec<u64> {
    let mut starts = vec![0; len + 1];
    pool.for_each_part_mut(&mut starts[1..], LIST_CHUNK, |first, part| {
        part.iter_mut().zip(first..).for_each(|(start, index)| *start = degree(index) as u64);
    });
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    starts
}

/// Calls `body` with the index of each vertex that some of these edges leave, and with the positions of those edges in
/// its list.
pub(crate) fn for_each_part(starts: &[u64], edges: Range<u64>, mut body: impl FnMut(usize, Range<usize>)) {
    let mut index = starts.partition_point(|&start| start <= edges.start).saturating_sub(1);
    while index + 1 < starts.len() && starts[index] < edges.end {
        let (start, end) = (starts[index], starts[index + 1]);
        let part = edges.start.max(start) - start..edges.end.min(end) - start;
        if !part.is_empty() {
            body(index, part.start as usize..part.end as usize);
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_edges_cover_every_list_once() {
        let degrees = [0, 3, 0, 10, 1, 0];
        let starts = edge_starts(&Pool::new(1).unwrap(), 6, |index| degrees[index]);
        assert_eq!(starts, [0, 0, 3, 3, 13, 14, 14]);
        for piece in 1..15 {
            let mut seen = vec![0; 6];
            for first in (0..14).step_by(piece) {
                for_each_part(&starts, first..14.min(first + piece as u64), |index, part| {
                    assert_eq!(part.start, seen[index]);
                    seen[index] = part.end;
                });
            }
            assert_eq!(seen, degrees, "pieces of {piece}");
        }
    }
}
