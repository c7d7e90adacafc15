//! The part of a component that one pass finds around a hub.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

use base::VertexId;
use base::bitmap::{AtomicBitmap, ones};
use graph::{DensePage, InEdges, Page, WantedLists, vertices_of};

use super::{Run, Sides};
use crate::Result;
use crate::vertex_subset::each_word;

/// A vertex is a hub if it has one of so many vertices as neighbour.
const HUB_SHARE: usize = 64;

/// Neighbours of a sampled vertex among which hubs are looked for.
const PICKED: usize = 2;

impl<G: InEdges> Run<'_, G> {
    /// A hub, if all its neighbours can be found: the vertex of the highest degree among neighbours of a sample. Where
    /// there is a vertex of so many edges, about as large a share of all edges leads to it.
    pub(super) fn hub(&self) -> Option<VertexId> {
        if self.sides() == Sides::Unknown {
            return None;
        }
        let has_in_lists = self.sides() == Sides::Both;
        let mut neighbours = Vec::new();
        for v in self.forest.sample() {
            let mut see = |list: &[VertexId]| {
                neighbours.extend(list.iter().step_by((list.len() / PICKED).max(1)).take(PICKED));
                ControlFlow::Break(())
            };
            let _ = self.graph.for_each_out_fragment(v, &mut see);
            if has_in_lists {
                let _ = self.graph.for_each_in_fragment(v, &mut see);
            }
        }
        neighbours.sort_unstable();
        neighbours.dedup();
        let degree = |v: VertexId| self.graph.out_degree(v) + if has_in_lists { self.graph.in_degree(v) } else { 0 };
        let largest = neighbours.into_iter().map(|v| (degree(v), v)).max();
        largest.filter(|&(degree, _)| degree >= (self.graph.vertex_bound() / HUB_SHARE).max(1)).map(|(_, hub)| hub)
    }

    /// Grows the hub's component by one pass and links all others; gives a vertex of the component.
    pub(super) fn link_outside_core(&self, hub: VertexId) -> Result<Option<VertexId>> {
        let core = AtomicBitmap::new(self.graph.vertex_bound());
        core.set(hub as usize);
        let mut join_all = |list: &[VertexId]| {
            list.iter().for_each(|&v| {
                core.set(v as usize);
            });
            ControlFlow::Continue(())
        };
        let _ = self.graph.for_each_out_fragment(hub, &mut join_all);
        let both = self.sides() == Sides::Both;
        if both {
            let _ = self.graph.for_each_in_fragment(hub, &mut join_all);
        }
        self.each_chunk(|chunk| {
            self.forest.plant(chunk.clone());
            self.each_out_page(chunk.clone(), |page| self.join(page, &core, Lists::Out));
            if both {
                self.each_in_page(chunk, |page| self.join(page, &core, Lists::In));
            }
        })?;
        // The forest knows the members by the smallest of them, until every one points at it.
        let words = core.words().iter().map(|word| word.load(Ordering::Relaxed)).enumerate();
        let first = words.flat_map(|(i, word)| ones(word).map(move |bit| (i * 64 + bit) as VertexId)).next();
        let first = first.unwrap_or(hub);
        self.each_chunk(|chunk| {
            self.each_out_page(chunk.clone(), |page| self.link_others(page, &core, first, Lists::Out));
            if both {
                self.each_in_page(chunk, |page| self.link_others(page, &core, first, Lists::In));
            }
        })?;
        let root = self.forest.root(first);
        self.each_chunk(|chunk| {
            each_word(chunk, |index, mask| {
                let members = core.words()[index].load(Ordering::Relaxed) & mask;
                ones(members).for_each(|bit| self.forest.point((index * 64 + bit) as VertexId, root));
            });
        })?;
        Ok(Some(first))
    }

    /// Links every vertex to all its out-neighbours, in the order of the lists.
    ///
    /// Vertices that are known to be of the component of `seed` are a bitmap, which stays in the cache: of most edges,
    /// both ends are soon found there, and nothing else is looked at.
    pub(super) fn link_around(&self, seed: VertexId) -> Result<()> {
        let core = AtomicBitmap::new(self.graph.vertex_bound());
        core.set(seed as usize);
        let link = |v: VertexId, list: &[VertexId]| {
            if !contains(&core, v) && !list.iter().any(|&u| contains(&core, u)) {
                return list.iter().for_each(|&u| self.forest.link(v, u));
            }
            for w in std::iter::once(v).chain(list.iter().copied()) {
                if !contains(&core, w) {
                    core.set(w as usize);
                    self.forest.link(seed, w);
                }
            }
        };
        self.each_chunk(|chunk| {
            self.each_out_page(chunk, |page| match page {
                Page::Dense(page) => page.lists().for_each(|(v, list)| link(v, list)),
                Page::Patched(vertices) => WantedLists::groups(vertices).for_each(|group| {
                    self.graph.for_each_out_fragment_of(&group, |v, list| {
                        link(v, list);
                        ControlFlow::Continue(())
                    });
                }),
                Page::Empty(_) => {}
            });
        })
    }

    fn each_out_page(&self, chunk: Range<VertexId>, body: impl Fn(Page<'_, G::Offset>)) {
        let _ = self.graph.for_each_out_page(chunk, |page| {
            body(page);
            ControlFlow::Continue(())
        });
    }

    fn each_in_page(&self, chunk: Range<VertexId>, body: impl Fn(Page<'_, G::Offset>)) {
        let _ = self.graph.for_each_in_page(chunk, |page| {
            body(page);
            ControlFlow::Continue(())
        });
    }

    /// Calls `body` with those of the vertices that are not in the core, group by group.
    #[inline(always)]
    fn each_outside_group(&self, vertices: Range<VertexId>, core: &AtomicBitmap, mut body: impl FnMut(WantedLists)) {
        for group in WantedLists::groups(vertices) {
            let outside = group.without(&group.set_in(core));
            if !outside.is_empty() {
                body(outside);
            }
        }
    }

    /// Those of the wanted lists that stand in one slice, and that slice.
    #[inline(always)]
    fn dense_lists(&self, lists: Lists, wanted: &WantedLists) -> Option<(DensePage<'_, G::Offset>, WantedLists)> {
        match lists {
            Lists::Out => self.graph.dense_out_lists(wanted),
            Lists::In => self.graph.dense_in_lists(wanted),
        }
    }

    #[inline(always)]
    fn each_fragment_of(
        &self,
        lists: Lists,
        wanted: &WantedLists,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        match lists {
            Lists::Out => self.graph.for_each_out_fragment_of(wanted, body),
            Lists::In => self.graph.for_each_in_fragment_of(wanted, body),
        }
    }

    /// Lets the vertices of a page join that have a neighbour in the core.
    fn join(&self, page: Page<'_, G::Offset>, core: &AtomicBitmap, lists: Lists) {
        let is_joining = |list: &[VertexId]| list.iter().any(|&u| contains(core, u));
        let join_word = |page: &DensePage<'_, G::Offset>, index, outside| {
            // Where a list is left is not foreseen: the next ones are fetched meanwhile.
            vertices_of(index, outside).for_each(|v| page.prefetch((v - page.first()) as usize));
            let joining = vertices_of(index, outside).filter(|v| is_joining(page.list((v - page.first()) as usize)));
            joining.for_each(|v| join(core, v));
        };
        match page {
            Page::Dense(page) => {
                each_outsider(page.vertices(), core, |index, outside| join_word(&page, index, outside))
            }
            Page::Patched(vertices) => self.each_outside_group(vertices, core, |mut outside| {
                if let Some((page, dense)) = self.dense_lists(lists, &outside) {
                    dense.words().for_each(|(index, outside)| join_word(&page, index, outside));
                    outside = outside.without(&dense);
                }
                self.each_fragment_of(lists, &outside, |v, list| match is_joining(list) {
                    true => {
                        join(core, v);
                        ControlFlow::Break(())
                    }
                    false => ControlFlow::Continue(()),
                });
            }),
            Page::Empty(_) => {}
        }
    }

    /// Links the vertices outside the core to all their neighbours.
    fn link_others(&self, page: Page<'_, G::Offset>, core: &AtomicBitmap, first: VertexId, lists: Lists) {
        let link = |v: VertexId, list: &[VertexId]| {
            for &u in list {
                self.forest.link(v, if contains(core, u) { first } else { u });
            }
        };
        let link_word = |page: &DensePage<'_, G::Offset>, index, outside| {
            vertices_of(index, outside).for_each(|v| link(v, page.list((v - page.first()) as usize)));
        };
        match page {
            Page::Dense(page) => {
                each_outsider(page.vertices(), core, |index, outside| link_word(&page, index, outside))
            }
            Page::Patched(vertices) => self.each_outside_group(vertices, core, |mut outside| {
                if let Some((page, dense)) = self.dense_lists(lists, &outside) {
                    dense.words().for_each(|(index, outside)| link_word(&page, index, outside));
                    outside = outside.without(&dense);
                }
                self.each_fragment_of(lists, &outside, |v, list| {
                    link(v, list);
                    ControlFlow::Continue(())
                });
            }),
            Page::Empty(_) => {}
        }
    }
}

/// Which lists are read.
#[derive(Clone, Copy, Debug)]
enum Lists {
    Out,
    In,
}

#[inline(always)]
fn contains(core: &AtomicBitmap, vertex: VertexId) -> bool {
    core.words()[vertex as usize / 64].load(Ordering::Relaxed) >> (vertex % 64) & 1 == 1
}

/// Lets a vertex join. A chunk of vertices has one worker, and no word is in two of them, so no locked instruction is
/// needed.
#[inline(always)]
fn join(core: &AtomicBitmap, vertex: VertexId) {
    let word = &core.words()[vertex as usize / 64];
    word.store(word.load(Ordering::Relaxed) | 1 << (vertex % 64), Ordering::Relaxed);
}

/// Calls `body` with each word of the range, and those of its vertices that are not in the core.
#[inline(always)]
fn each_outsider(vertices: Range<VertexId>, core: &AtomicBitmap, mut body: impl FnMut(usize, u64)) {
    each_word(vertices, |index, mask| body(index, !core.words()[index].load(Ordering::Relaxed) & mask));
}
