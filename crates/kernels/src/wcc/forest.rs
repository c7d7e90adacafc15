//! Trees of pointers from larger ids to smaller ones.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering};

use anden_base::VertexId;
use anden_base::simd::prefetch;
use anden_graph::{Direction, Graph, Page, PageOffset, VertexMask, vertices_of};

use crate::walk::sample;

/// Prefetch distance of pointers, in vertices.
const LOOKAHEAD: usize = 16;

/// The trees: each vertex points at a vertex of its component with a smaller or equal id.
pub(super) struct Forest<'a>(pub(super) &'a [AtomicU32]);

impl Forest<'_> {
    #[inline(always)]
    fn parent(&self, v: VertexId) -> VertexId {
        self.0[v as usize].load(Ordering::Relaxed)
    }

    /// Joins the trees of `u` and `v`.
    #[inline]
    pub(super) fn link(&self, u: VertexId, v: VertexId) {
        // Relaxed suffices: every pointer ever stored leads to a vertex of the component.
        let (mut a, mut b) = (self.parent(u), self.parent(v));
        while a != b {
            let (low, high) = (a.min(b), a.max(b));
            // Only a root may get a new pointer: its own still leads to itself. Most vertices are no roots, and a
            // failing compare-exchange costs no less than a successful one. So the plain load comes first.
            let slot = &self.0[high as usize];
            let above = match slot.load(Ordering::Relaxed) {
                above if above == high => {
                    match slot.compare_exchange(high, low, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => return,
                        Err(above) => above,
                    }
                }
                above => above,
            };
            if above == low {
                return;
            }
            (a, b) = (self.parent(above), self.parent(low));
        }
    }

    /// Points each vertex of the chunk at itself.
    pub(super) fn plant(&self, chunk: Range<VertexId>) {
        chunk.for_each(|v| self.point(v, v));
    }

    /// Points `v` at a vertex of its component with a smaller or equal id. No link may run concurrently.
    #[inline(always)]
    pub(super) fn point(&self, v: VertexId, at: VertexId) {
        self.0[v as usize].store(at, Ordering::Relaxed);
    }

    /// The root of the tree of `v`.
    #[inline]
    pub(super) fn root(&self, v: VertexId) -> VertexId {
        let mut root = self.parent(v);
        loop {
            let above = self.parent(root);
            if above == root {
                return root;
            }
            root = above;
        }
    }

    /// Points `v` at its root and returns the root. Prefetches for vertices further ahead.
    #[inline(always)]
    pub(super) fn flatten(&self, v: VertexId) -> VertexId {
        if let Some(ahead) = self.0.get(v as usize + LOOKAHEAD) {
            prefetch(self.0, ahead.load(Ordering::Relaxed) as usize);
        }
        let parent = self.parent(v);
        let root = self.root(parent);
        if root != parent {
            // A concurrent link may have changed the pointer of `v` only if `v` was a root. Then `parent` was `v`, and
            // `root` is the root that the link set.
            self.0[v as usize].store(root, Ordering::Relaxed);
        }
        root
    }

    /// Points each vertex of the chunk at its root.
    pub(super) fn flatten_all(&self, chunk: Range<VertexId>) {
        for v in chunk {
            self.flatten(v);
        }
    }

    /// Makes the first links, and gives every vertex its initial pointer.
    pub(super) fn point_at_first<G: Graph>(&self, graph: &G, chunk: Range<VertexId>) {
        let set = |v: VertexId, first: Option<&VertexId>| {
            self.0[v as usize].store(first.map_or(v, |&first| first.min(v)), Ordering::Relaxed);
        };
        let _ = graph.for_each_page(Direction::Out, chunk, |page| {
            match page {
                Page::Dense(page) => page.lists().for_each(|(v, list)| set(v, list.first())),
                Page::Empty(vertices) => vertices.for_each(|v| set(v, None)),
                Page::Patched(vertices) => VertexMask::groups(vertices).for_each(|group| {
                    // An empty list may have no fragment.
                    group.vertices().for_each(|v| set(v, None));
                    graph.for_each_fragment_of(Direction::Out, &group, |v, list| {
                        set(v, list.first());
                        if list.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    });
                }),
            }
            ControlFlow::Continue(())
        });
    }

    /// Links each vertex to its second neighbor. A list of one entry links to that entry: the first links skip larger
    /// neighbors.
    pub(super) fn link_second<G: Graph>(&self, graph: &G, chunk: Range<VertexId>) {
        let _ = graph.for_each_page(Direction::Out, chunk, |page| {
            match page {
                Page::Dense(page) => {
                    for (i, v) in page.vertices().enumerate() {
                        if i + LOOKAHEAD < page.len()
                            && let Some(&u) = second(page.list(i + LOOKAHEAD))
                        {
                            prefetch(self.0, u as usize);
                        }
                        if let Some(&u) = second(page.list(i)) {
                            self.link(v, u);
                        }
                    }
                }
                Page::Patched(vertices) => VertexMask::groups(vertices).for_each(|group| {
                    graph.for_each_fragment_of(Direction::Out, &group, |v, list| match second(list) {
                        Some(&u) => {
                            self.link(v, u);
                            ControlFlow::Break(())
                        }
                        None => ControlFlow::Continue(()),
                    });
                }),
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
    }

    /// The most frequent root in a sample of the vertices with edges.
    pub(super) fn sample_largest<G: Graph>(&self, graph: &G) -> Option<VertexId> {
        let mut counts = HashMap::new();
        for v in self.sample().filter(|&v| graph.degree(Direction::Out, v) > 0) {
            *counts.entry(self.root(v)).or_insert(0) += 1;
        }
        // Ties go to the smaller root: the order of the map is arbitrary.
        counts.into_iter().max_by_key(|&(root, count)| (count, Reverse(root))).map(|(root, _): (_, u64)| root)
    }

    /// The vertex with the longest out-list in a sample.
    pub(super) fn sample_busiest<G: Graph>(&self, graph: &G) -> Option<VertexId> {
        self.sample().max_by_key(|&v| (graph.degree(Direction::Out, v), Reverse(v)))
    }

    /// A sample of the vertices.
    pub(super) fn sample(&self) -> impl Iterator<Item = VertexId> + use<> {
        const SAMPLED: usize = 1024;
        sample(self.0.len(), SAMPLED)
    }

    pub(super) fn link_out_lists<G: Graph>(&self, graph: &G, chunk: Range<VertexId>, skipped: Option<VertexId>) {
        let _ = graph.for_each_page(Direction::Out, chunk, |page| {
            self.link_page(page, skipped, |wanted, body| graph.for_each_fragment_of(Direction::Out, wanted, body));
            ControlFlow::Continue(())
        });
    }

    pub(super) fn link_in_lists<G: Graph>(&self, graph: &G, chunk: Range<VertexId>, skipped: Option<VertexId>) {
        let _ = graph.for_each_page(Direction::In, chunk, |page| {
            self.link_page(page, skipped, |wanted, body| graph.for_each_fragment_of(Direction::In, wanted, body));
            ControlFlow::Continue(())
        });
    }

    /// Links the vertices of a page whose root is not `skipped` to all their neighbors.
    ///
    /// The root of a skipped vertex may change while the workers run. That does no harm: a skipped vertex points at
    /// `skipped`, so it belongs to that component already.
    fn link_page<O: PageOffset>(
        &self,
        page: Page<'_, O>,
        skipped: Option<VertexId>,
        fragments: impl Fn(&VertexMask, &mut dyn FnMut(VertexId, &[VertexId]) -> ControlFlow<()>),
    ) {
        match page {
            Page::Dense(page) => {
                for (i, v) in page.vertices().enumerate() {
                    if Some(self.flatten(v)) != skipped {
                        page.list(i).iter().for_each(|&u| self.link(v, u));
                    }
                }
            }
            Page::Patched(vertices) => VertexMask::groups(vertices).for_each(|group| {
                let is_linked = |v: &VertexId| Some(self.flatten(*v)) != skipped;
                let linked =
                    |word, mask| vertices_of(word, mask).filter(is_linked).fold(0, |all, v| all | 1 << (v % 64));
                fragments(&group.among(linked), &mut |v, list| {
                    list.iter().for_each(|&u| self.link(v, u));
                    ControlFlow::Continue(())
                });
            }),
            Page::Empty(_) => {}
        }
    }
}

/// The second entry of a list, or its only one.
#[inline(always)]
fn second(list: &[VertexId]) -> Option<&VertexId> {
    list.get(1).or(list.first())
}
