//! In-lists for a directed graph that was loaded without them, in memory.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

use base::VertexId;
use base::memory::{as_atomic_u32, as_atomic_u64, zeroed_huge};
use graph::{DensePage, Direction, Graph, InEdges, Page, Parts, Side, WantedLists, WillNeed};

use crate::vertex_subset::CHUNK;
use crate::walk::for_each_arc;
use crate::{Context, Result};

/// A graph with in-lists of our own.
pub(crate) struct Transposed<'a, G> {
    graph: &'a G,
    /// Where each in-list ends, and the next one starts.
    ends: Vec<u64>,
    sources: Vec<VertexId>,
}

impl<'a, G: InEdges> Transposed<'a, G> {
    /// The bytes that `graph` needs for in-lists: none where it has them.
    pub(crate) fn num_bytes(graph: &G) -> u64 {
        let lists = 8 * graph.vertex_bound() as u64 + 4 * graph.num_arcs();
        if graph.has_in_edges() { 0 } else { lists }
    }

    /// Builds the in-lists. Cost: all out-lists are read twice.
    ///
    /// # Errors
    /// The graph is damaged, or the work was cancelled.
    pub(crate) fn build(ctx: &Context<'_>, graph: &'a G) -> Result<Self> {
        ctx.progress.stage("in-edges", None);
        let bound = graph.vertex_bound();
        let mut ends = zeroed_huge::<u64>(bound);
        let counts = as_atomic_u64(&mut ends);
        for_each_arc(ctx, graph, |_, target| {
            counts[target as usize].fetch_add(1, Ordering::Relaxed);
        })?;
        let mut num_arcs = 0;
        for end in &mut ends {
            num_arcs += std::mem::replace(end, num_arcs);
        }
        let mut sources = zeroed_huge::<VertexId>(num_arcs as usize);
        let (places, slots) = (as_atomic_u64(&mut ends), as_atomic_u32(&mut sources));
        for_each_arc(ctx, graph, |source, target| {
            let place = places[target as usize].fetch_add(1, Ordering::Relaxed);
            slots[place as usize].store(source, Ordering::Relaxed);
        })?;
        let mut transposed = Self { graph, ends, sources };
        transposed.sort(ctx);
        ctx.progress.check()?;
        Ok(transposed)
    }

    /// Workers filled the lists in any order.
    fn sort(&mut self, ctx: &Context<'_>) {
        let mut rest = &mut self.sources[..];
        let mut start = 0;
        let chunks = self.ends.chunks(CHUNK).map(|ends| {
            let first = start;
            start = ends[ends.len() - 1];
            (first, ends, rest.split_off_mut(..(start - first) as usize).unwrap_or_default())
        });
        ctx.pool.for_each_item(chunks.collect(), |_, (first, ends, mut sources)| {
            let mut start = first;
            for &end in ends {
                let list = sources.split_off_mut(..(end - start) as usize).unwrap_or_default();
                list.sort_unstable();
                start = end;
            }
        });
    }

    fn in_list(&self, vertex: VertexId) -> &[VertexId] {
        let start = (vertex as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.sources[start as usize..self.ends[vertex as usize] as usize]
    }
}

impl<G: Graph> WillNeed for Transposed<'_, G> {
    fn is_listening(&self) -> bool {
        self.graph.is_listening()
    }

    // In-lists are in memory.

    #[inline(always)]
    fn prefetch(&self, side: Side, vertex: VertexId) {
        if side == Side::Out {
            self.graph.prefetch(side, vertex);
        }
    }

    #[inline(always)]
    fn prefetch_place(&self, side: Side, vertex: VertexId) {
        if side == Side::Out {
            self.graph.prefetch_place(side, vertex);
        }
    }

    #[inline(always)]
    fn prefetch_rough_degree(&self, side: Side, vertex: VertexId) {
        if side == Side::Out {
            self.graph.prefetch_rough_degree(side, vertex);
        }
    }

    #[inline(always)]
    fn prefetch_list(&self, side: Side, parts: Parts, vertex: VertexId) {
        if side == Side::Out {
            self.graph.prefetch_list(side, parts, vertex);
        }
    }

    fn will_need(&self, side: Side, parts: Parts, vertices: &[VertexId]) {
        if side == Side::Out {
            self.graph.will_need(side, parts, vertices);
        }
    }

    fn will_need_runs(&self, side: Side, parts: Parts, runs: &[Range<VertexId>]) {
        if side == Side::Out {
            self.graph.will_need_runs(side, parts, runs);
        }
    }

    fn will_walk(&self, side: Side, parts: Parts, vertices: Range<VertexId>) {
        if side == Side::Out {
            self.graph.will_walk(side, parts, vertices);
        }
    }

    fn has_walked(&self, side: Side, parts: Parts, vertices: Range<VertexId>) {
        if side == Side::Out {
            self.graph.has_walked(side, parts, vertices);
        }
    }

    fn forget_needs(&self) {
        self.graph.forget_needs();
    }
}

impl<G: Graph> Graph for Transposed<'_, G> {
    type Offset = G::Offset;

    fn vertex_bound(&self) -> usize {
        self.graph.vertex_bound()
    }

    fn num_vertices(&self) -> usize {
        self.graph.num_vertices()
    }

    fn num_edges(&self) -> u64 {
        self.graph.num_edges()
    }

    fn num_arcs(&self) -> u64 {
        self.graph.num_arcs()
    }

    fn direction(&self) -> Direction {
        self.graph.direction()
    }

    fn is_multigraph(&self) -> bool {
        self.graph.is_multigraph()
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        self.graph.is_live(vertex)
    }

    fn out_degree(&self, vertex: VertexId) -> usize {
        self.graph.out_degree(vertex)
    }

    #[inline(always)]
    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_out_fragment(vertex, body)
    }

    #[inline(always)]
    fn for_each_out_fragment_of(
        &self,
        wanted: &WantedLists,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        self.graph.for_each_out_fragment_of(wanted, body);
    }

    #[inline(always)]
    fn dense_out_lists(&self, wanted: &WantedLists) -> Option<(DensePage<'_, Self::Offset>, WantedLists)> {
        self.graph.dense_out_lists(wanted)
    }

    #[inline(always)]
    fn rough_out_degree(&self, vertex: VertexId) -> usize {
        self.graph.rough_out_degree(vertex)
    }

    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, Self::Offset>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_out_page(vertices, body)
    }

    fn check(&self) -> base::Result<()> {
        self.graph.check()
    }
}

impl<G: InEdges> InEdges for Transposed<'_, G> {
    fn has_in_edges(&self) -> bool {
        true
    }

    fn in_degree(&self, vertex: VertexId) -> usize {
        self.in_list(vertex).len()
    }

    #[inline(always)]
    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        body(self.in_list(vertex))
    }

    fn for_each_in_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, Self::Offset>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        body(Page::Patched(vertices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::parallel::Pool;
    use testkit::{Pieces, for_each_graph};

    #[test]
    fn in_lists_are_those_that_the_graph_had() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let ctx = Context::new(&pool);
            for_each_graph(|name, csr| {
                let without = Pieces::new(csr).without_in_edges();
                if csr.direction() == Direction::Undirected {
                    assert_eq!(Transposed::num_bytes(&without), 0);
                    return;
                }
                let transposed = Transposed::build(&ctx, &without).unwrap();
                let arrays = size_of_val(&transposed.ends[..]) + size_of_val(&transposed.sources[..]);
                assert_eq!(arrays as u64, Transposed::num_bytes(&without));
                for v in 0..csr.vertex_bound() as VertexId {
                    let mut wanted = Vec::new();
                    let _ = csr.for_each_in_fragment(v, |list| {
                        wanted.extend_from_slice(list);
                        ControlFlow::Continue(())
                    });
                    assert_eq!(transposed.in_list(v), wanted, "{name}, vertex {v}");
                    assert_eq!(transposed.in_degree(v), wanted.len());
                }
            });
        }
    }
}
