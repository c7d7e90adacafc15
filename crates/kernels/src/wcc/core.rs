//! The core: the part of a hub's component that one pass finds.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, ones};
use anden_graph::{DensePage, Direction, Graph, Page, VertexMask, vertices_of};

use super::{WccLists, WccSearch};
use crate::Result;
use crate::vertex_subset::each_word;

/// A hub has one in this many vertices as neighbors.
const HUB_SHARE: usize = 64;

/// The neighbors of a sampled vertex that may be hubs.
const PICKED: usize = 2;

impl<G: Graph> WccSearch<'_, G> {
    /// The vertex with the highest degree among neighbors of a sample, if it is a hub and all its neighbors can be
    /// found. A hub's share of these neighbors is about its share of all edges.
    pub(super) fn hub(&self) -> Option<VertexId> {
        if self.lists() == WccLists::Unknown {
            return None;
        }
        let has_in_lists = self.lists() == WccLists::Both;
        let mut neighbors = Vec::new();
        for v in self.forest.sample() {
            let mut see = |list: &[VertexId]| {
                neighbors.extend(list.iter().step_by((list.len() / PICKED).max(1)).take(PICKED));
                // The first fragment suffices for a sample.
                ControlFlow::Break(())
            };
            let _ = self.graph.for_each_fragment(Direction::Out, v, &mut see);
            if has_in_lists {
                let _ = self.graph.for_each_fragment(Direction::In, v, &mut see);
            }
        }
        neighbors.sort_unstable();
        neighbors.dedup();
        let degree = |v: VertexId| {
            self.graph.degree(Direction::Out, v) + if has_in_lists { self.graph.degree(Direction::In, v) } else { 0 }
        };
        let largest = neighbors.into_iter().map(|v| (degree(v), v)).max();
        largest.filter(|&(degree, _)| degree >= (self.graph.vertex_bound() / HUB_SHARE).max(1)).map(|(_, hub)| hub)
    }

    /// Grows the hub's component by one pass, then links all other vertices. Returns a vertex of the component.
    pub(super) fn link_outside_core(&self, hub: VertexId) -> Result<Option<VertexId>> {
        let core = AtomicBitmap::new(self.graph.vertex_bound());
        core.set(hub as usize);
        let mut join_all = |list: &[VertexId]| {
            list.iter().for_each(|&v| {
                core.set(v as usize);
            });
            ControlFlow::Continue(())
        };
        let _ = self.graph.for_each_fragment(Direction::Out, hub, &mut join_all);
        let both = self.lists() == WccLists::Both;
        if both {
            let _ = self.graph.for_each_fragment(Direction::In, hub, &mut join_all);
        }
        if self.is_far(&core) {
            return self.link_outside_sample();
        }
        self.each_chunk(|chunk| {
            self.forest.plant(chunk.clone());
            self.each_page(Direction::Out, chunk.clone(), |page| self.join(page, &core, Direction::Out));
            if both {
                self.each_page(Direction::In, chunk, |page| self.join(page, &core, Direction::In));
            }
        })?;
        // In the forest, the smallest member stands for the core until every member points at its root.
        let words = core.words().iter().map(|word| word.load(Ordering::Relaxed)).enumerate();
        let first = words.flat_map(|(i, word)| ones(word).map(move |bit| (i * 64 + bit) as VertexId)).next();
        let first = first.unwrap_or(hub);
        self.each_chunk(|chunk| {
            self.each_page(Direction::Out, chunk.clone(), |page| self.link_others(page, &core, first, Direction::Out));
            if both {
                self.each_page(Direction::In, chunk, |page| self.link_others(page, &core, first, Direction::In));
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

    /// Whether most arcs, by a sample, belong to vertices without a neighbor in the core. In a graph of long paths, one
    /// pass finds only the vicinity of the hub, and links of all others cost more than the sampled method.
    fn is_far(&self, core: &AtomicBitmap) -> bool {
        let (mut far, mut all) = (0, 0);
        for v in self.forest.sample() {
            let (mut degree, mut is_near) = (0, contains(core, v));
            let mut see = |list: &[VertexId]| {
                degree += list.len();
                is_near = is_near || list.iter().any(|&u| contains(core, u));
                ControlFlow::Continue(())
            };
            let _ = self.graph.for_each_fragment(Direction::Out, v, &mut see);
            if self.lists() == WccLists::Both {
                let _ = self.graph.for_each_fragment(Direction::In, v, &mut see);
            }
            all += degree;
            far += if is_near { 0 } else { degree };
        }
        far > all / 2
    }

    /// Links every vertex to all its out-neighbors, in stored order.
    ///
    /// A bitmap in the cache holds the vertices that are known to be in the component of `seed`. Soon most edges have
    /// both ends there, and need no look at the forest.
    pub(super) fn link_around(&self, seed: VertexId) -> Result<()> {
        let core = AtomicBitmap::new(self.graph.vertex_bound());
        core.set(seed as usize);
        let link = |v: VertexId, list: &[VertexId]| {
            if !contains(&core, v) && !list.iter().any(|&u| contains(&core, u)) {
                return list.iter().for_each(|&u| self.forest.link(v, u));
            }
            for w in std::iter::once(v).chain(list.iter().copied()) {
                if !contains(&core, w) {
                    // Other workers may skip `w` before the link is made: components are read after the pass only.
                    core.set(w as usize);
                    self.forest.link(seed, w);
                }
            }
        };
        self.each_chunk(|chunk| {
            self.each_page(Direction::Out, chunk, |page| match page {
                Page::Dense(page) => page.lists().for_each(|(v, list)| link(v, list)),
                Page::Patched(vertices) => VertexMask::groups(vertices).for_each(|group| {
                    self.graph.for_each_fragment_of(Direction::Out, &group, |v, list| {
                        link(v, list);
                        ControlFlow::Continue(())
                    });
                }),
                Page::Empty(_) => {}
            });
        })
    }

    fn each_page(&self, direction: Direction, chunk: Range<VertexId>, body: impl Fn(Page<'_, G::Offset>)) {
        let _ = self.graph.for_each_page(direction, chunk, |page| {
            body(page);
            ControlFlow::Continue(())
        });
    }

    /// Calls `body` with the vertices outside the core, group by group.
    #[inline(always)]
    fn each_outside_group(&self, vertices: Range<VertexId>, core: &AtomicBitmap, mut body: impl FnMut(VertexMask)) {
        for group in VertexMask::groups(vertices) {
            let outside = group.without(&group.set_in(core));
            if !outside.is_empty() {
                body(outside);
            }
        }
    }

    /// Adds the vertices of a page with a neighbor in the core to the core.
    fn join(&self, page: Page<'_, G::Offset>, core: &AtomicBitmap, direction: Direction) {
        let is_joining = |list: &[VertexId]| list.iter().any(|&u| contains(core, u));
        let join_word = |page: &DensePage<'_, G::Offset>, index, outside| {
            // Lists are left at unpredictable points, so the next ones are prefetched.
            vertices_of(index, outside).for_each(|v| page.prefetch((v - page.first()) as usize));
            let joining = vertices_of(index, outside).filter(|v| is_joining(page.list((v - page.first()) as usize)));
            joining.for_each(|v| join(core, v));
        };
        match page {
            Page::Dense(page) => {
                each_outsider(page.vertices(), core, |index, outside| join_word(&page, index, outside))
            }
            Page::Patched(vertices) => self.each_outside_group(vertices, core, |mut outside| {
                // Unchanged lists of a patched page are read at the speed of a dense page.
                if let Some((page, dense)) = self.graph.dense_lists(direction, &outside) {
                    dense.words().for_each(|(index, outside)| join_word(&page, index, outside));
                    outside = outside.without(&dense);
                }
                self.graph.for_each_fragment_of(direction, &outside, |v, list| match is_joining(list) {
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

    /// Links the vertices outside the core to all their neighbors.
    fn link_others(&self, page: Page<'_, G::Offset>, core: &AtomicBitmap, first: VertexId, direction: Direction) {
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
                if let Some((page, dense)) = self.graph.dense_lists(direction, &outside) {
                    dense.words().for_each(|(index, outside)| link_word(&page, index, outside));
                    outside = outside.without(&dense);
                }
                self.graph.for_each_fragment_of(direction, &outside, |v, list| {
                    link(v, list);
                    ControlFlow::Continue(())
                });
            }),
            Page::Empty(_) => {}
        }
    }
}

#[inline(always)]
fn contains(core: &AtomicBitmap, vertex: VertexId) -> bool {
    core.words()[vertex as usize / 64].load(Ordering::Relaxed) >> (vertex % 64) & 1 == 1
}

/// Adds a vertex to the core. One worker owns a chunk, and chunks share no word, so no atomic read-modify-write is
/// needed.
#[inline(always)]
fn join(core: &AtomicBitmap, vertex: VertexId) {
    let word = &core.words()[vertex as usize / 64];
    word.store(word.load(Ordering::Relaxed) | 1 << (vertex % 64), Ordering::Relaxed);
}

/// Calls `body` with each word of the range, and with its vertices outside the core.
#[inline(always)]
fn each_outsider(vertices: Range<VertexId>, core: &AtomicBitmap, mut body: impl FnMut(usize, u64)) {
    each_word(vertices, |index, mask| body(index, !core.words()[index].load(Ordering::Relaxed) & mask));
}
