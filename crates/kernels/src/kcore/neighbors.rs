//! The neighbors of a vertex without regard to directions, loops and parallel edges.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use anden_base::VertexId;
use anden_base::memory::as_atomic_u32;
use anden_graph::{Direction, Graph, GraphKind, Page, Parts, PrefetchStage};
use parking_lot::Mutex;

use crate::edge_map::announce_place;
use crate::vertex_subset::CHUNK;
use crate::{Context, Result};

/// The number of list entries handled at a time.
const STRETCH: usize = 512;

/// The content of a vertex's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeighborListForm {
    /// The out-list holds each neighbor once, and nothing else.
    Plain,
    /// Out-list and in-list hold each of their neighbors once, and perhaps the vertex itself.
    TwoSets,
    /// The out-list holds all neighbors, perhaps repeatedly, and perhaps the vertex itself.
    Out,
    /// As [`Out`](Self::Out), for out-list and in-list together.
    Both,
}

impl NeighborListForm {
    fn of(graph: &impl Graph) -> Self {
        match (graph.graph_kind(), graph.is_multigraph()) {
            (GraphKind::Directed, false) => Self::TwoSets,
            (GraphKind::Directed, true) => Self::Both,
            // An edge has two arcs, but a loop has one.
            (GraphKind::Undirected, false) if 2 * graph.num_edges() == graph.num_arcs() => Self::Plain,
            (GraphKind::Undirected, _) => Self::Out,
        }
    }

    fn has_in_lists(self) -> bool {
        matches!(self, Self::TwoSets | Self::Both)
    }
}

/// The adjacency lists of a graph, presented as those of a simple graph.
pub(super) struct SimpleNeighbors<'a, G> {
    graph: &'a G,
    form: NeighborListForm,
}

/// The scratch memory of one worker for lists that are not plain.
pub(super) struct NeighborScratch {
    /// 1 for vertices seen in the current lists; all 0 between two vertices.
    flags: Vec<u8>,
    /// The vertices of a stretch that are new.
    fresh: Vec<VertexId>,
}

impl NeighborScratch {
    /// Bytes of a worker's scratch memory.
    pub(super) fn num_bytes(graph: &impl Graph) -> u64 {
        let num_flags = if NeighborListForm::of(graph) == NeighborListForm::Plain { 0 } else { graph.vertex_bound() };
        num_flags as u64 + 4 * STRETCH as u64
    }

    pub(super) fn new(graph: &impl Graph) -> Self {
        let num_flags = if NeighborListForm::of(graph) == NeighborListForm::Plain { 0 } else { graph.vertex_bound() };
        Self { flags: vec![0; num_flags], fresh: vec![0; STRETCH] }
    }
}

impl<'a, G: Graph> SimpleNeighbors<'a, G> {
    pub(super) fn new(graph: &'a G) -> Self {
        Self { graph, form: NeighborListForm::of(graph) }
    }

    /// Prefetches the places of the lists of `v`.
    #[inline(always)]
    pub(super) fn prefetch_place(&self, v: VertexId) {
        announce_place(self.graph, Direction::Out, v);
        if self.form.has_in_lists() {
            announce_place(self.graph, Direction::In, v);
        }
    }

    /// Prefetches the start of the lists of `v`. Their places should be in the cache.
    #[inline(always)]
    pub(super) fn prefetch_lists(&self, v: VertexId) {
        self.graph.prefetch(Direction::Out, PrefetchStage::List(Parts::Targets), v);
        if self.form.has_in_lists() {
            self.graph.prefetch(Direction::In, PrefetchStage::List(Parts::Targets), v);
        }
    }

    /// Calls `body` with slices that together hold each neighbor of `v` once, restricted to the `part` of each list.
    #[inline(always)]
    pub(super) fn for_each_piece(
        &self,
        v: VertexId,
        scratch: &mut NeighborScratch,
        part: impl Fn(&[VertexId]) -> &[VertexId],
        mut body: impl FnMut(&[VertexId]),
    ) {
        let NeighborScratch { flags, fresh } = scratch;
        match self.form {
            NeighborListForm::Plain => self.each_out_list(v, |list| body(part(list))),
            // Each list has a neighbor once, so only in-list entries are tested against the out-list.
            NeighborListForm::TwoSets => {
                self.each_out_list(v, |list| {
                    let list = part(list);
                    list.iter().for_each(|&u| flags[u as usize] = 1);
                    // The list holds `v` at most once, so two slices leave it out without a test for each entry.
                    let (before, rest) = list.split_at(list.partition_point(|&u| u < v));
                    body(before);
                    body(if rest.first() == Some(&v) { &rest[1..] } else { rest });
                });
                // The in-list may also hold `v`.
                flags[v as usize] = 1;
                self.each_in_list(v, |list| {
                    part(list).chunks(STRETCH).for_each(|stretch| body(unflagged(stretch, flags, fresh)));
                });
                // Clears only what was set: a flag exists for every vertex of the graph.
                self.each_out_list(v, |list| part(list).iter().for_each(|&u| flags[u as usize] = 0));
            }
            NeighborListForm::Out | NeighborListForm::Both => {
                flags[v as usize] = 1;
                self.each_list(v, |list| {
                    part(list).chunks(STRETCH).for_each(|stretch| body(newly_flagged(stretch, flags, fresh)));
                });
                self.each_list(v, |list| part(list).iter().for_each(|&u| flags[u as usize] = 0));
            }
        }
        // Plain lists have no flags.
        if let Some(flag) = flags.get_mut(v as usize) {
            *flag = 0;
        }
    }

    #[inline(always)]
    fn each_out_list(&self, v: VertexId, mut body: impl FnMut(&[VertexId])) {
        let _ = self.graph.for_each_fragment(Direction::Out, v, |list| {
            body(list);
            ControlFlow::Continue(())
        });
    }

    #[inline(always)]
    fn each_in_list(&self, v: VertexId, mut body: impl FnMut(&[VertexId])) {
        let _ = self.graph.for_each_fragment(Direction::In, v, |list| {
            body(list);
            ControlFlow::Continue(())
        });
    }

    #[inline(always)]
    fn each_list(&self, v: VertexId, mut body: impl FnMut(&[VertexId])) {
        self.each_out_list(v, &mut body);
        if self.form.has_in_lists() {
            self.each_in_list(v, &mut body);
        }
    }

    /// Sets the number of neighbors of each vertex, with one worker for each scratch.
    pub(super) fn count(
        &self,
        ctx: &Context<'_>,
        scratch: &[Mutex<NeighborScratch>],
        degrees: &mut [u32],
    ) -> Result<()> {
        let degrees = as_atomic_u32(degrees);
        let next = AtomicUsize::new(0);
        ctx.pool.on_each_worker(|worker| {
            // The budget may allow fewer scratches than threads.
            let Some(scratch) = scratch.get(worker) else { return };
            let mut scratch = scratch.lock();
            while !ctx.progress.is_cancelled() {
                let start = next.fetch_add(CHUNK, Ordering::Relaxed);
                if start >= degrees.len() {
                    break;
                }
                let vertices = start as VertexId..degrees.len().min(start + CHUNK) as VertexId;
                if self.form == NeighborListForm::Plain {
                    self.count_entries(vertices, degrees);
                } else {
                    self.count_neighbors(vertices, &mut scratch, degrees);
                }
            }
        });
        Ok(ctx.progress.check()?)
    }

    fn count_entries(&self, vertices: Range<VertexId>, degrees: &[AtomicU32]) {
        let set = |v: VertexId, degree: usize| degrees[v as usize].store(degree as u32, Ordering::Relaxed);
        let _ = self.graph.for_each_page(Direction::Out, vertices, |page| {
            match page {
                // Degrees of a dense page come from its offsets: no list is read.
                Page::Dense(page) => page.vertices().enumerate().for_each(|(i, v)| set(v, page.degree(i))),
                Page::Patched(vertices) => vertices.for_each(|v| set(v, self.graph.degree(Direction::Out, v))),
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
    }

    fn count_neighbors(&self, vertices: Range<VertexId>, scratch: &mut NeighborScratch, degrees: &[AtomicU32]) {
        for v in vertices {
            let mut count = 0;
            self.for_each_piece(v, scratch, |list| list, |piece| count += piece.len());
            degrees[v as usize].store(count as u32, Ordering::Relaxed);
        }
    }
}

/// The vertices of a list that are not flagged.
fn unflagged<'a>(list: &[VertexId], flags: &[u8], fresh: &'a mut [VertexId]) -> &'a [VertexId] {
    let mut len = 0;
    for &u in list {
        // Written always: a branch on a flag would be unpredictable.
        fresh[len] = u;
        len += usize::from(flags[u as usize] == 0);
    }
    &fresh[..len]
}

/// As [`unflagged`]; also flags the vertices, so that each is returned once.
fn newly_flagged<'a>(list: &[VertexId], flags: &mut [u8], fresh: &'a mut [VertexId]) -> &'a [VertexId] {
    let mut len = 0;
    for &u in list {
        fresh[len] = u;
        len += usize::from(std::mem::replace(&mut flags[u as usize], 1) == 0);
    }
    &fresh[..len]
}
