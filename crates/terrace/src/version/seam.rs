//! A version as the graph that kernels see.

use std::ops::{ControlFlow, Range};

use base::VertexId;
use graph::{
    Direction, Graph, InEdges, Page, Parts, Side, SingleFragment, WantedLists, Weight, WeightType, WeightedEdges,
    WillNeed,
};

use super::Version;
use crate::Value;
use crate::state::Plane;

impl<W: Value> Version<W> {
    #[inline(always)]
    fn plane(&self, side: Side) -> Plane {
        match side {
            Side::Out => Plane::Out,
            Side::In => self.in_plane(),
        }
    }

    #[inline(always)]
    fn in_plane(&self) -> Plane {
        match self.shared.direction {
            Direction::Undirected => Plane::Out,
            Direction::Directed => Plane::In,
        }
    }

    #[inline(always)]
    fn weighted<X: Weight>(
        &self,
        plane: Plane,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[X]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if W::TYPE != Some(X::TYPE) {
            return ControlFlow::Continue(());
        }
        self.lists(plane).for_each_fragment(vertex, |targets, values| body(targets, bytemuck::cast_slice(values)))
    }

    #[inline(always)]
    fn fragments_of(
        &self,
        plane: Plane,
        wanted: &WantedLists,
        mut body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        let lists = self.lists(plane).of_group(wanted);
        wanted.for_each_in_steps(
            |vertex| lists.prefetch_place(vertex),
            |vertex| lists.prefetch_list(vertex),
            |vertex| {
                let _ = lists.for_each_fragment(vertex, |targets, _| body(vertex, targets));
            },
        );
    }
}

impl<W: Value> WillNeed for Version<W> {
    #[inline(always)]
    fn prefetch(&self, side: Side, vertex: VertexId) {
        self.lists(self.plane(side)).prefetch(vertex);
    }

    #[inline(always)]
    fn prefetch_place(&self, side: Side, vertex: VertexId) {
        self.lists(self.plane(side)).prefetch_place(vertex);
    }

    #[inline(always)]
    fn prefetch_list(&self, side: Side, _parts: Parts, vertex: VertexId) {
        self.lists(self.plane(side)).prefetch_list(vertex);
    }
}

impl<W: Value> Graph for Version<W> {
    type Offset = u32;

    #[inline]
    fn vertex_bound(&self) -> usize {
        self.state.num_vertices as usize
    }

    fn num_edges(&self) -> u64 {
        let plane = &self.state.planes[Plane::Out as usize];
        match self.shared.direction {
            Direction::Directed => plane.num_arcs,
            Direction::Undirected => (plane.num_arcs + plane.num_loops) / 2,
        }
    }

    fn num_arcs(&self) -> u64 {
        self.state.planes[Plane::Out as usize].num_arcs
    }

    fn direction(&self) -> Direction {
        self.shared.direction
    }

    #[inline(always)]
    fn out_degree(&self, vertex: VertexId) -> usize {
        self.lists(Plane::Out).degree(vertex)
    }

    #[inline(always)]
    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.lists(Plane::Out).for_each_fragment(vertex, |targets, _| body(targets))
    }

    #[inline]
    fn for_each_out_fragment_of(
        &self,
        wanted: &WantedLists,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        self.fragments_of(Plane::Out, wanted, body);
    }

    #[inline]
    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.num_arcs() == 0 { body(Page::Empty(vertices)) } else { body(Page::Patched(vertices)) }
    }
}

impl<W: Value> InEdges for Version<W> {
    fn has_in_edges(&self) -> bool {
        self.shared.has_in_lists || self.shared.direction == Direction::Undirected
    }

    #[inline(always)]
    fn in_degree(&self, vertex: VertexId) -> usize {
        self.lists(self.in_plane()).degree(vertex)
    }

    #[inline(always)]
    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.lists(self.in_plane()).for_each_fragment(vertex, |targets, _| body(targets))
    }

    #[inline]
    fn for_each_in_fragment_of(
        &self,
        wanted: &WantedLists,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        self.fragments_of(self.in_plane(), wanted, body);
    }

    #[inline]
    fn for_each_in_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.has_in_edges() && self.num_arcs() > 0 {
            body(Page::Patched(vertices))
        } else {
            body(Page::Empty(vertices))
        }
    }
}

impl<W: Value> WeightedEdges for Version<W> {
    fn weight_type(&self) -> Option<WeightType> {
        W::TYPE
    }

    #[inline]
    fn for_each_weighted_out_fragment<X: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[X]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.weighted(Plane::Out, vertex, body)
    }

    #[inline]
    fn for_each_weighted_in_fragment<X: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[X]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.weighted(self.in_plane(), vertex, body)
    }
}

impl<W: Value> SingleFragment for Version<W> {
    #[inline(always)]
    fn out_list(&self, vertex: VertexId) -> Option<&[VertexId]> {
        self.lists(Plane::Out).single(vertex).map(|(targets, _)| targets)
    }
}
