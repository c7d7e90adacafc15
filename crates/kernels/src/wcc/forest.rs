//! Trees of pointers from larger ids to smaller ones.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering};

use base::VertexId;
use base::simd::prefetch;
use graph::{InEdges, Page, PageOffset, WantedLists, vertices_of};

/// Vertices ahead whose pointers are fetched.
const LOOKAHEAD: usize = 16;

/// The trees: each vertex points at one of its component whose id is not larger.
pub(super) struct Forest<'a>(pub(super) &'a [AtomicU32]);

impl Forest<'_> {
    #[inline(always)]
    fn parent(&self, v: VertexId) -> VertexId {
        self.0[v as usize].load(Ordering::Relaxed)
    }

    /// Joins the trees of `u` and `v`.
    #[inline]
    pub(super) fn link(&self, u: VertexId, v: VertexId) {
        let (mut a, mut b) = (self.parent(u), self.parent(v));
        while a != b {
            let (low, high) = (a.min(b), a.max(b));
            // Only a root may be hung up: its pointer still leads to itself. Most are none, and a locked
            // instruction that fails costs as much as one that succeeds, so look first.
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

    /// Lets each vertex of the chunk point at itself.
    pub(super) fn plant(&self, chunk: Range<VertexId>) {
        chunk.for_each(|v| self.point(v, v));
    }

    /// Lets `v` point at a vertex of its component whose id is not larger; no link may be under way.
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

    /// Lets `v` point at its root, and gives it; fetches what vertices a little further need.
    #[inline(always)]
    pub(super) fn flatten(&self, v: VertexId) -> VertexId {
        if let Some(ahead) = self.0.get(v as usize + LOOKAHEAD) {
            prefetch(self.0, ahead.load(Ordering::Relaxed) as usize);
        }
        let parent = self.parent(v);
        let root = self.root(parent);
        if root != parent {
            // A concurrent link may have moved the root of `v` itself, but not another vertex: then `v`
            // was a root, and its parent was `v`, whose root is what the link made it.
            self.0[v as usize].store(root, Ordering::Relaxed);
        }
        root
    }

    /// Lets each vertex of the chunk point at its root.
    pub(super) fn flatten_all(&self, chunk: Range<VertexId>) {
        for v in chunk {
            self.flatten(v);
        }
    }

    /// The first links; also the start value of every vertex.
    pub(super) fn point_at_first<G: InEdges>(&self, graph: &G, chunk: Range<VertexId>) {
        let set = |v: VertexId, first: Option<&VertexId>| {
            self.0[v as usize].store(first.map_or(v, |&first| first.min(v)), Ordering::Relaxed);
        };
        let _ = graph.for_each_out_page(chunk, |page| {
            match page {
                Page::Dense(page) => page.lists().for_each(|(v, list)| set(v, list.first())),
                Page::Empty(vertices) => vertices.for_each(|v| set(v, None)),
                Page::Patched(vertices) => WantedLists::groups(vertices).for_each(|group| {
                    group.vertices().for_each(|v| set(v, None));
                    graph.for_each_out_fragment_of(&group, |v, list| {
                        set(v, list.first());
                        if list.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    });
                }),
            }
            ControlFlow::Continue(())
        });
    }

    /// Links each vertex to its second neighbour, or to the first that was larger than itself.
    pub(super) fn link_second<G: InEdges>(&self, graph: &G, chunk: Range<VertexId>) {
        let _ = graph.for_each_out_page(chunk, |page| {
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
                Page::Patched(vertices) => WantedLists::groups(vertices).for_each(|group| {
                    graph.for_each_out_fragment_of(&group, |v, list| match second(list) {
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

    /// The root of most of a sample of the vertices that have edges.
    pub(super) fn sample_largest<G: InEdges>(&self, graph: &G) -> Option<VertexId> {
        let mut counts = HashMap::new();
        for v in self.sample().filter(|&v| graph.out_degree(v) > 0) {
            *counts.entry(self.root(v)).or_insert(0) += 1;
        }
        counts.into_iter().max_by_key(|&(root, count)| (count, Reverse(root))).map(|(root, _): (_, u64)| root)
    }

    /// The vertex with the longest out-list in a sample.
    pub(super) fn sample_busiest<G: InEdges>(&self, graph: &G) -> Option<VertexId> {
        self.sample().max_by_key(|&v| (graph.out_degree(v), Reverse(v)))
    }

    /// Vertices that are spread evenly over all.
    pub(super) fn sample(&self) -> impl Iterator<Item = VertexId> + use<> {
        const SAMPLES: u64 = 1024;
        // Steps of the golden ratio spread over any range of ids, and are the same in every run.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let bound = self.0.len();
        let places = (0..SAMPLES).map(move |i| (u128::from(i.wrapping_mul(STEP)) * bound as u128) >> 64);
        places.map(|place| place as VertexId).filter(move |&v| (v as usize) < bound)
    }

    pub(super) fn link_out_lists<G: InEdges>(&self, graph: &G, chunk: Range<VertexId>, skipped: Option<VertexId>) {
        let _ = graph.for_each_out_page(chunk, |page| {
            self.link_page(page, skipped, |wanted, body| graph.for_each_out_fragment_of(wanted, body));
            ControlFlow::Continue(())
        });
    }

    pub(super) fn link_in_lists<G: InEdges>(&self, graph: &G, chunk: Range<VertexId>, skipped: Option<VertexId>) {
        let _ = graph.for_each_in_page(chunk, |page| {
            self.link_page(page, skipped, |wanted, body| graph.for_each_in_fragment_of(wanted, body));
            ControlFlow::Continue(())
        });
    }

    /// Links the vertices of a page that have another root than `skipped` to all their neighbours.
    ///
    /// A root that ceases to be `skipped`, or becomes it, while the workers are under way does no
    /// harm: whoever is skipped points at `skipped`, so it is in that component already.
    fn link_page<O: PageOffset>(
        &self,
        page: Page<'_, O>,
        skipped: Option<VertexId>,
        fragments: impl Fn(&WantedLists, &mut dyn FnMut(VertexId, &[VertexId]) -> ControlFlow<()>),
    ) {
        match page {
            Page::Dense(page) => {
                for (i, v) in page.vertices().enumerate() {
                    if Some(self.flatten(v)) != skipped {
                        page.list(i).iter().for_each(|&u| self.link(v, u));
                    }
                }
            }
            Page::Patched(vertices) => WantedLists::groups(vertices).for_each(|group| {
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

/// The second entry of a list, or the only one.
#[inline(always)]
fn second(list: &[VertexId]) -> Option<&VertexId> {
    list.get(1).or(list.first())
}
