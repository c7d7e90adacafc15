//! Pull: edge maps over the in-lists of the targets that may still be updated.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, ones};
use anden_graph::{DensePage, Direction, Graph, Page, VertexMask, vertices_of};

use super::ahead::{ListsToRead, PagesAhead};
use super::lists::EdgeMapLists;
use super::{EdgeFunctor, EdgeMapRun, merge_word};
use crate::vertex_subset::{CHUNK, Members, VertexSubset, each_word};

impl<G: Graph, L, F> EdgeMapRun<'_, G, L, F> {
    /// Pulls from a frontier that is a bitmap or *all*.
    pub(super) fn pull<W: Copy>(&self, frontier: &VertexSubset) -> VertexSubset
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        match frontier.members() {
            Members::Dense(bits, _) => {
                let words = bits.words();
                self.pull_from(|source| words[source as usize / 64] >> (source % 64) & 1 == 1)
            }
            // The caller has made the frontier dense, so a list does not occur here.
            Members::All | Members::Sparse(_) => self.pull_from(|_| true),
        }
    }

    fn pull_from<W: Copy>(&self, in_frontier: impl Fn(VertexId) -> bool + Sync) -> VertexSubset
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        let bound = self.graph.vertex_bound();
        let (next, count) = (AtomicBitmap::new(bound), AtomicUsize::new(0));
        let wanted = |word: usize| {
            let first = (word * 64) as VertexId;
            let num_targets = (bound - word * 64).min(64) as u32;
            let wanted = self.functor.condition_word(first, num_targets) & (!0 >> (64 - num_targets));
            // Empty lists are not read.
            ones(wanted)
                .filter(|&bit| self.graph.degree(Direction::In, first + bit as VertexId) == 0)
                .fold(wanted, |word, bit| word & !(1 << bit))
        };
        let announce = |runs: &[Range<VertexId>]| self.graph.will_need_runs(Direction::In, L::PARTS, runs);
        let ahead = PagesAhead::of(self.graph, wanted, announce);
        ahead.iter().for_each(PagesAhead::begin);
        let grain = ahead.as_ref().map_or(CHUNK, |ahead| ahead.chunk);
        self.ctx.pool.for_each_chunk(0..bound, grain, |_, chunk| {
            if self.ctx.progress.is_cancelled() {
                return;
            }
            let vertices = chunk.start as VertexId..chunk.end as VertexId;
            let found = match &ahead {
                None => self.pull_pages(vertices, &in_frontier, &next),
                Some(ahead) => {
                    ahead.go_on(chunk.start);
                    let pull = |wanted| match wanted {
                        ListsToRead::Few(lists) => self.pull_lists(&lists, &in_frontier, &next),
                        ListsToRead::Most(vertices) => self.pull_pages(vertices, &in_frontier, &next),
                    };
                    ahead.wanted_in(vertices).map(pull).sum()
                }
            };
            count.fetch_add(found, Ordering::Relaxed);
        });
        VertexSubset::dense(next, count.into_inner())
    }

    /// Pulls into the targets of a range that meet the condition. Returns the number of hits.
    #[inline(always)]
    fn pull_pages<W: Copy>(
        &self,
        vertices: Range<VertexId>,
        in_frontier: &(impl Fn(VertexId) -> bool + Sync),
        next: &AtomicBitmap,
    ) -> usize
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        let mut found = 0;
        self.lists.pages(Direction::In, vertices, |page| match page {
            Page::Dense(page) => self.each_word(page.vertices(), |index, todo| {
                let hits = self.pull_word(&page, (index, todo), in_frontier);
                found += hits.count_ones() as usize;
                merge_word(next, index, hits);
            }),
            Page::Patched(vertices) => {
                for group in VertexMask::groups(vertices) {
                    let mut todo = group.among(|index, mask| self.todo(index, mask));
                    // Unchanged lists of a patched page are read at the speed of a dense page.
                    if let Some((page, dense)) = self.lists.dense_in_lists(&todo) {
                        for (index, todo) in dense.words() {
                            let hits = self.pull_word(&page, (index, todo), in_frontier);
                            found += hits.count_ones() as usize;
                            merge_word(next, index, hits);
                        }
                        todo = todo.without(&dense);
                    }
                    if !todo.is_empty() {
                        found += self.pull_lists(&todo, in_frontier, next);
                    }
                }
            }
            Page::Empty(vertices) => self.each_word(vertices, |word_index, todo| {
                ones(todo).for_each(|bit| self.functor.no_sources((word_index * 64 + bit) as VertexId));
            }),
        });
        found
    }

    /// Calls `body` with each word index and the nonzero bits of its targets in `vertices` that meet the condition.
    fn each_word<W>(&self, vertices: Range<VertexId>, mut body: impl FnMut(usize, u64))
    where
        F: EdgeFunctor<W>,
    {
        each_word(vertices, |index, mask| {
            let todo = self.todo(index, mask);
            if todo != 0 {
                body(index, todo);
            }
        });
    }

    /// The targets of a word that meet the condition.
    #[inline(always)]
    fn todo<W>(&self, index: usize, mask: u64) -> u64
    where
        F: EdgeFunctor<W>,
    {
        self.functor.condition_word((index * 64) as VertexId, 64 - mask.leading_zeros()) & mask
    }

    /// Pulls into one target. Returns whether the functor returned true, and whether the target is done.
    #[inline(always)]
    fn pull_list<W: Copy>(
        &self,
        target: VertexId,
        sources: &[VertexId],
        weights: &[W],
        in_frontier: impl Fn(VertexId) -> bool,
    ) -> (bool, bool)
    where
        F: EdgeFunctor<W>,
    {
        let mut hit = false;
        for (&source, &weight) in sources.iter().zip(weights) {
            if in_frontier(source) {
                hit |= self.functor.update(source, target, weight);
                // The rest of the list cannot change a target that is done.
                if !self.functor.condition(target) {
                    return (hit, true);
                }
            }
        }
        (hit, false)
    }

    /// Pulls into targets of a word whose lists are on a dense page. Returns the hits.
    #[inline(always)]
    fn pull_word<W: Copy>(
        &self,
        page: &DensePage<'_, L::Offset>,
        (index, todo): (usize, u64),
        in_frontier: impl Fn(VertexId) -> bool,
    ) -> u64
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        let mut hits = 0;
        // The loop leaves lists at unpredictable points, so the processor cannot fetch the next list in time by itself.
        vertices_of(index, todo).for_each(|target| page.prefetch((target - page.first()) as usize));
        for target in vertices_of(index, todo) {
            let list = page.list((target - page.first()) as usize);
            if list.is_empty() {
                self.functor.no_sources(target);
                continue;
            }
            let (hit, _) = self.pull_list(target, list, self.lists.dense_weights(list.len()), &in_frontier);
            hits |= u64::from(hit) << (target % 64);
        }
        hits
    }

    /// Pulls into these targets, which meet the condition. Returns the number of hits.
    #[inline(always)]
    fn pull_lists<W: Copy>(
        &self,
        todo: &VertexMask,
        in_frontier: &(impl Fn(VertexId) -> bool + Sync),
        next: &AtomicBitmap,
    ) -> usize
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        let hits = self.pull_fragments(todo, in_frontier);
        hits.words().for_each(|(index, bits)| merge_word(next, index, bits));
        hits.len()
    }

    /// Pulls into these targets by fragment. Returns the hits.
    #[inline(always)]
    fn pull_fragments<W: Copy>(&self, todo: &VertexMask, in_frontier: impl Fn(VertexId) -> bool) -> VertexMask
    where
        L: EdgeMapLists<W>,
        F: EdgeFunctor<W>,
    {
        let none = VertexMask::none_near(todo.first());
        let (mut hits, mut others) = (none, none);
        self.lists.lists_of(Direction::In, todo, |target, sources, weights| {
            let (hit, done) = self.pull_list(target, sources, weights, &in_frontier);
            if hit {
                hits.insert(target);
            } else if !sources.is_empty() {
                others.insert(target);
            }
            if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // An empty list gives no entry, so its target is in neither mask.
        todo.without(&hits).without(&others).vertices().for_each(|target| self.functor.no_sources(target));
        hits
    }
}
