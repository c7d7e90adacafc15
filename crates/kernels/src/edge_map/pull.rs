//! Over the in-lists of the targets that may still be updated.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

use base::VertexId;
use base::bitmap::{AtomicBitmap, ones};
use graph::{DensePage, InEdges, Page, Side, WantedLists, vertices_of};

use super::ahead::{PagesAhead, Wanted};
use super::lists::Lists;
use super::{EdgeFunctor, Run, merge_word};
use crate::vertex_subset::{CHUNK, Members, VertexSubset, each_word};

impl<G: InEdges, L, F> Run<'_, G, L, F> {
    /// The frontier must be a bitmap or *all*.
    pub(super) fn pull<W: Copy>(&self, frontier: &VertexSubset) -> VertexSubset
    where
        L: Lists<W>,
        F: EdgeFunctor<W>,
    {
        match frontier.members() {
            Members::Dense(bits, _) => {
                let words = bits.words();
                self.pull_from(|source| words[source as usize / 64] >> (source % 64) & 1 == 1)
            }
            Members::All | Members::Sparse(_) => self.pull_from(|_| true),
        }
    }

    fn pull_from<W: Copy>(&self, in_frontier: impl Fn(VertexId) -> bool + Sync) -> VertexSubset
    where
        L: Lists<W>,
        F: EdgeFunctor<W>,
    {
        let bound = self.graph.vertex_bound();
        let (next, count) = (AtomicBitmap::new(bound), AtomicUsize::new(0));
        let wanted = |word: usize| {
            let first = (word * 64) as VertexId;
            let num_targets = (bound - word * 64).min(64) as u32;
            let wanted = self.functor.condition_word(first, num_targets) & (!0 >> (64 - num_targets));
            // A list that is empty is not read.
            ones(wanted)
                .filter(|&bit| self.graph.in_degree(first + bit as VertexId) == 0)
                .fold(wanted, |word, bit| word & !(1 << bit))
        };
        let announce = |runs: &[Range<VertexId>]| self.graph.will_need_runs(Side::In, L::PARTS, runs);
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
                        Wanted::Few(lists) => self.pull_lists(&lists, &in_frontier, &next),
                        Wanted::Most(vertices) => self.pull_pages(vertices, &in_frontier, &next),
                    };
                    ahead.wanted_in(vertices).map(pull).sum()
                }
            };
            count.fetch_add(found, Ordering::Relaxed);
        });
        VertexSubset::dense(next, count.into_inner())
    }

    /// Pulls to those of these targets that meet the condition; gives how many belong in the result.
    #[inline(always)]
    fn pull_pages<W: Copy>(
        &self,
        vertices: Range<VertexId>,
        in_frontier: &(impl Fn(VertexId) -> bool + Sync),
        next: &AtomicBitmap,
    ) -> usize
    where
        L: Lists<W>,
        F: EdgeFunctor<W>,
    {
        let mut found = 0;
        self.lists.in_pages(vertices, |page| match page {
            Page::Dense(page) => self.each_word(page.vertices(), |index, todo| {
                let hits = self.pull_word(&page, (index, todo), in_frontier);
                found += hits.count_ones() as usize;
                merge_word(next, index, hits);
            }),
            Page::Patched(vertices) => {
                for group in WantedLists::groups(vertices) {
                    let mut todo = group.among(|index, mask| self.todo(index, mask));
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

    /// Calls `body` with each word's index and the bits of those of its targets that lie in `vertices`
    /// and meet the condition, where there are any.
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

    /// Those of the targets of a word that meet the condition.
    #[inline(always)]
    fn todo<W>(&self, index: usize, mask: u64) -> u64
    where
        F: EdgeFunctor<W>,
    {
        self.functor.condition_word((index * 64) as VertexId, 64 - mask.leading_zeros()) & mask
    }

    /// Whether the functor said yes, and whether the target is done.
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
                if !self.functor.condition(target) {
                    return (hit, true);
                }
            }
        }
        (hit, false)
    }

    /// Asks targets of a word whose lists are on a page; gives those for which the functor said yes.
    #[inline(always)]
    fn pull_word<W: Copy>(
        &self,
        page: &DensePage<'_, L::Offset>,
        (index, todo): (usize, u64),
        in_frontier: impl Fn(VertexId) -> bool,
    ) -> u64
    where
        L: Lists<W>,
        F: EdgeFunctor<W>,
    {
        let mut hits = 0;
        // Where a list is left is not foreseen, so the processor would not come to the next one by itself in time.
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

    /// Pulls to these targets, each of which meets the condition; gives how many belong in the result.
    #[inline(always)]
    fn pull_lists<W: Copy>(
        &self,
        todo: &WantedLists,
        in_frontier: &(impl Fn(VertexId) -> bool + Sync),
        next: &AtomicBitmap,
    ) -> usize
    where
        L: Lists<W>,
        F: EdgeFunctor<W>,
    {
        let hits = self.pull_fragments(todo, in_frontier);
        hits.words().for_each(|(index, bits)| merge_word(next, index, bits));
        hits.len()
    }

    /// Asks the targets; gives those for which the functor said yes.
    #[inline(always)]
    fn pull_fragments<W: Copy>(&self, todo: &WantedLists, in_frontier: impl Fn(VertexId) -> bool) -> WantedLists
    where
        L: Lists<W>,
        F: EdgeFunctor<W>,
    {
        let none = WantedLists::none_near(todo.first());
        let (mut hits, mut others) = (none, none);
        self.lists.in_lists_of(todo, |target, sources, weights| {
            let (hit, done) = self.pull_list(target, sources, weights, &in_frontier);
            if hit {
                hits.insert(target);
            } else if !sources.is_empty() {
                others.insert(target);
            }
            if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        todo.without(&hits).without(&others).vertices().for_each(|target| self.functor.no_sources(target));
        hits
    }
}
