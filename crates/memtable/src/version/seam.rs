//! The traits of `graph` for a version, so that kernels can read it.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_graph::{
    Direction, Graph, GraphKind, Page, PrefetchStage, SingleFragment, VertexMask, Weight, WeightType, WeightedEdges,
    WillNeed,
};

use super::Version;
use crate::EntryValue;
use crate::state::AdjacencyTable;

impl<W: EntryValue> Version<W> {
    #[inline(always)]
    fn adjacency_table(&self, direction: Direction) -> AdjacencyTable {
        match direction {
            Direction::Out => AdjacencyTable::Out,
            Direction::In => self.in_plane(),
        }
    }

    #[inline(always)]
    fn in_plane(&self) -> AdjacencyTable {
        match self.shared.graph_kind {
            GraphKind::Undirected => AdjacencyTable::Out,
            GraphKind::Directed => AdjacencyTable::In,
        }
    }

    #[inline(always)]
    fn weighted<X: Weight>(
        &self,
        adjacency_table: AdjacencyTable,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[X]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if W::TYPE != Some(X::TYPE) {
            return ControlFlow::Continue(());
        }
        self.lists(adjacency_table)
            .for_each_fragment(vertex, |targets, values| body(targets, bytemuck::cast_slice(values)))
    }

    #[inline(always)]
    fn fragments_of(
        &self,
        adjacency_table: AdjacencyTable,
        wanted: &VertexMask,
        mut body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        let lists = self.lists(adjacency_table).of_group(wanted);
        wanted.for_each_in_steps(
            |vertex| lists.prefetch_place(vertex),
            |vertex| lists.prefetch_list(vertex),
            |vertex| {
                let _ = lists.for_each_fragment(vertex, |targets, _| body(vertex, targets));
            },
        );
    }
}

impl<W: EntryValue> WillNeed for Version<W> {
    #[inline(always)]
    fn prefetch(&self, direction: Direction, stage: PrefetchStage, vertex: VertexId) {
        let lists = self.lists(self.adjacency_table(direction));
        match stage {
            PrefetchStage::TableEntry | PrefetchStage::RoughDegree => lists.prefetch(vertex),
            PrefetchStage::Place => lists.prefetch_place(vertex),
            PrefetchStage::List(_) => lists.prefetch_list(vertex),
        }
    }
}

impl<W: EntryValue> Graph for Version<W> {
    type Offset = u32;

    #[inline]
    fn vertex_bound(&self) -> usize {
        self.state.num_vertices as usize
    }

    fn num_edges(&self) -> u64 {
        let adjacency_table = &self.state.adjacency_tables[AdjacencyTable::Out as usize];
        match self.shared.graph_kind {
            GraphKind::Directed => adjacency_table.num_arcs,
            GraphKind::Undirected => (adjacency_table.num_arcs + adjacency_table.num_loops) / 2,
        }
    }

    fn num_arcs(&self) -> u64 {
        self.state.adjacency_tables[AdjacencyTable::Out as usize].num_arcs
    }

    fn graph_kind(&self) -> GraphKind {
        self.shared.graph_kind
    }

    fn has_lists(&self, direction: Direction) -> bool {
        // An undirected graph has one table: each edge is stored as two arcs.
        direction == Direction::Out || self.shared.has_in_lists || self.shared.graph_kind == GraphKind::Undirected
    }

    #[inline(always)]
    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.lists(self.adjacency_table(direction)).degree(vertex)
    }

    #[inline(always)]
    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.lists(self.adjacency_table(direction)).for_each_fragment(vertex, |targets, _| body(targets))
    }

    #[inline]
    fn for_each_fragment_of(
        &self,
        direction: Direction,
        wanted: &VertexMask,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        self.fragments_of(self.adjacency_table(direction), wanted, body);
    }

    #[inline]
    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.has_lists(direction) && self.num_arcs() > 0 {
            body(Page::Patched(vertices))
        } else {
            body(Page::Empty(vertices))
        }
    }
}

impl<W: EntryValue> WeightedEdges for Version<W> {
    fn weight_type(&self) -> Option<WeightType> {
        W::TYPE
    }

    #[inline]
    fn for_each_weighted_fragment<X: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[X]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.weighted(self.adjacency_table(direction), vertex, body)
    }
}

impl<W: EntryValue> SingleFragment for Version<W> {
    #[inline(always)]
    fn list(&self, direction: Direction, vertex: VertexId) -> Option<&[VertexId]> {
        self.lists(self.adjacency_table(direction)).single(vertex).map(|(targets, _)| targets)
    }
}
