//! Weakly connected components.
//!
//! **Result**: for every vertex the smallest id of its component; directions are ignored.
//!
//! **Algorithm**: Afforest. Every vertex points at a smaller id of its component or at itself, so the
//! pointers form trees. First each vertex is linked to a few of its neighbours: in most graphs that
//! alone joins the largest component. A sample of the vertices tells which one it is; what is left to
//! do is to link the vertices *outside* it to all their neighbours. An edge with an end in the
//! largest component is linked from its other end, or has both ends there already; so a directed
//! graph needs in-edges to skip, and without them links every edge. A link sets the pointer of the
//! larger root to the smaller one, so every root ends as the smallest id of its component.
//!
//! **Parameters**: two neighbours a vertex and 1,024 samples, as in the paper. The first neighbour
//! costs no random access: a list ascends, so pointing at the smaller of the vertex and its first
//! neighbour is a link that needs no look at other vertices.
//!
//! # Source
//! M. Sutton, T. Ben-Nun, A. Barak: Optimizing parallel graph connectivity computation via subgraph
//! sampling, IPDPS 2018. Ours differs in the first round.

mod verify;

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base::VertexId;
use base::memory::{as_atomic_u32, zeroed_huge};
use graph::{Direction, InEdges, Page};

use crate::vertex_subset::CHUNK;
use crate::{Context, Result};

pub use verify::verify;

/// There is nothing to choose.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WccParams {}

/// The components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WccResult {
    /// The smallest id of the component of each vertex, by vertex id; of a dead vertex, its own id.
    pub labels: Vec<VertexId>,
    /// The number of components; dead vertices form none.
    pub components: u64,
    /// The number of vertices of the largest.
    pub largest: u64,
}

/// The weakly connected components of the graph.
///
/// *Cost*: a few entries of each list, and all edges of the vertices outside the largest component;
/// all edges of a directed graph without in-edges. *Memory*: 8 bytes a vertex. *Determinism*: the
/// same at any number of threads.
///
/// # Errors
/// The graph is damaged, or the work was cancelled.
pub fn wcc<G: InEdges>(ctx: &Context<'_>, graph: &G, _params: &WccParams) -> Result<WccResult> {
    ctx.pool.enter(|| afforest(ctx, graph))
}

fn afforest<G: InEdges>(ctx: &Context<'_>, graph: &G) -> Result<WccResult> {
    let bound = graph.vertex_bound();
    ctx.progress.stage("connected components", Some(3 * bound as u64));
    let mut labels = zeroed_huge::<VertexId>(bound);
    let forest = Forest(as_atomic_u32(&mut labels));
    let each_chunk = |body: &(dyn Fn(Range<VertexId>) + Sync)| {
        ctx.pool.for_each_chunk(0..bound, CHUNK, |_, chunk| {
            if !ctx.progress.is_cancelled() {
                body(chunk.start as VertexId..chunk.end as VertexId);
            }
        });
        ctx.progress.advance(bound as u64);
        ctx.progress.check()
    };
    each_chunk(&|chunk| forest.point_at_first(graph, chunk))?;
    each_chunk(&|chunk| forest.compress(chunk))?;
    each_chunk(&|chunk| forest.link_second(graph, chunk))?;
    each_chunk(&|chunk| forest.compress(chunk))?;
    let skipped = forest.most_frequent();
    let both = graph.direction() == Direction::Directed && graph.has_in_edges();
    let may_skip = graph.direction() == Direction::Undirected || both;
    each_chunk(&|chunk| {
        let wanted = |v: VertexId| !may_skip || Some(forest.parent(v)) != skipped;
        forest.link_out_lists(graph, chunk.clone(), wanted);
        if both {
            forest.link_in_lists(graph, chunk, wanted);
        }
    })?;
    each_chunk(&|chunk| forest.compress(chunk))?;
    let (components, largest) = sizes(ctx, graph, &labels, skipped);
    graph.check()?;
    Ok(WccResult { labels, components, largest })
}

/// The trees: each vertex points at one of its component whose id is not larger.
struct Forest<'a>(&'a [AtomicU32]);

impl Forest<'_> {
    #[inline(always)]
    fn parent(&self, v: VertexId) -> VertexId {
        self.0[v as usize].load(Ordering::Relaxed)
    }

    /// Joins the trees of `u` and `v`.
    #[inline]
    fn link(&self, u: VertexId, v: VertexId) {
        let (mut a, mut b) = (self.parent(u), self.parent(v));
        while a != b {
            let (low, high) = (a.min(b), a.max(b));
            let slot = &self.0[high as usize];
            // Only a root may be hung up: its pointer still leads to itself.
            match slot.compare_exchange(high, low, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(above) if above == low => return,
                Err(above) => (a, b) = (self.parent(above), self.parent(low)),
            }
        }
    }

    /// Lets each vertex of the chunk point at its root.
    fn compress(&self, chunk: Range<VertexId>) {
        for v in chunk {
            let mut root = self.parent(v);
            if root == v {
                continue;
            }
            let first = root;
            loop {
                let above = self.parent(root);
                if above == root {
                    break;
                }
                root = above;
            }
            if root != first {
                self.0[v as usize].store(root, Ordering::Relaxed);
            }
        }
    }

    /// The first links; also the start value of every vertex.
    fn point_at_first<G: InEdges>(&self, graph: &G, chunk: Range<VertexId>) {
        let set = |v: VertexId, first: Option<&VertexId>| {
            self.0[v as usize].store(first.map_or(v, |&first| first.min(v)), Ordering::Relaxed);
        };
        let _ = graph.for_each_out_page(chunk, |page| {
            match page {
                Page::Dense(page) => page.lists().for_each(|(v, list)| set(v, list.first())),
                Page::Empty(vertices) => vertices.for_each(|v| set(v, None)),
                Page::Patched(vertices) => vertices.for_each(|v| {
                    set(v, None);
                    let _ = graph.for_each_out_fragment(v, |list| {
                        set(v, list.first());
                        if list.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    });
                }),
            }
            ControlFlow::Continue(())
        });
    }

    /// Links each vertex to its second neighbour, or to the first that was larger than itself.
    fn link_second<G: InEdges>(&self, graph: &G, chunk: Range<VertexId>) {
        let _ = graph.for_each_out_page(chunk, |page| {
            match page {
                Page::Dense(page) => {
                    for (v, list) in page.lists() {
                        if let Some(&u) = list.get(1).or(list.first()) {
                            self.link(v, u);
                        }
                    }
                }
                Page::Patched(vertices) => {
                    for v in vertices {
                        let _ = graph.for_each_out_fragment(v, |list| match list.get(1).or(list.first()) {
                            Some(&u) => {
                                self.link(v, u);
                                ControlFlow::Break(())
                            }
                            None => ControlFlow::Continue(()),
                        });
                    }
                }
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
    }

    /// The label that most of a sample of vertices have.
    fn most_frequent(&self) -> Option<VertexId> {
        const SAMPLES: usize = 1024;
        // Steps of the golden ratio spread over any range of ids, and are the same in every run.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut counts = HashMap::new();
        for i in 0..SAMPLES.min(self.0.len()) as u64 {
            let place = (u128::from(i.wrapping_mul(STEP)) * self.0.len() as u128) >> 64;
            *counts.entry(self.parent(place as VertexId)).or_insert(0) += 1;
        }
        counts.into_iter().max_by_key(|&(label, count)| (count, std::cmp::Reverse(label))).map(|(label, _)| label)
    }

    fn link_out_lists<G: InEdges>(&self, graph: &G, chunk: Range<VertexId>, wanted: impl Fn(VertexId) -> bool) {
        let _ = graph.for_each_out_page(chunk, |page| {
            self.link_page(page, &wanted, |v, body| graph.for_each_out_fragment(v, body));
            ControlFlow::Continue(())
        });
    }

    fn link_in_lists<G: InEdges>(&self, graph: &G, chunk: Range<VertexId>, wanted: impl Fn(VertexId) -> bool) {
        let _ = graph.for_each_in_page(chunk, |page| {
            self.link_page(page, &wanted, |v, body| graph.for_each_in_fragment(v, body));
            ControlFlow::Continue(())
        });
    }

    fn link_page<O: graph::PageOffset>(
        &self,
        page: Page<'_, O>,
        wanted: impl Fn(VertexId) -> bool,
        fragments: impl Fn(VertexId, &mut dyn FnMut(&[VertexId]) -> ControlFlow<()>) -> ControlFlow<()>,
    ) {
        match page {
            Page::Dense(page) => {
                for (v, list) in page.lists().filter(|&(v, _)| wanted(v)) {
                    list.iter().for_each(|&u| self.link(v, u));
                }
            }
            Page::Patched(vertices) => {
                for v in vertices.filter(|&v| wanted(v)) {
                    let _ = fragments(v, &mut |list| {
                        list.iter().for_each(|&u| self.link(v, u));
                        ControlFlow::Continue(())
                    });
                }
            }
            Page::Empty(_) => {}
        }
    }
}

/// The number of components and the size of the largest; most vertices have the label `common`.
fn sizes<G: InEdges>(ctx: &Context<'_>, graph: &G, labels: &[VertexId], common: Option<VertexId>) -> (u64, u64) {
    // Roots and the common label are counted on the side, which leaves few to count by label.
    let mut others = vec![0_u32; labels.len()];
    let counts = as_atomic_u32(&mut others);
    let (components, common_count) = (AtomicU64::new(0), AtomicU64::new(0));
    let has_dead = graph.num_vertices() < labels.len();
    ctx.pool.for_each_chunk(0..labels.len(), CHUNK, |_, chunk| {
        let (mut roots, mut in_common) = (0, 0);
        for v in chunk {
            let label = labels[v];
            if label as usize == v {
                roots += u64::from(!has_dead || graph.is_live(label));
            } else if Some(label) == common {
                in_common += 1;
            } else {
                counts[label as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
        components.fetch_add(roots, Ordering::Relaxed);
        common_count.fetch_add(in_common, Ordering::Relaxed);
    });
    let components = components.into_inner();
    let largest = ctx.pool.map_chunks(0..others.len(), 1 << 16, |_, chunk| others[chunk].iter().copied().max());
    let largest = u64::from(largest.into_iter().flatten().max().unwrap_or(0)).max(common_count.into_inner());
    // The root of each component was not counted with it.
    (components, if components == 0 { 0 } else { largest + 1 })
}
