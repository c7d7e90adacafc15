//! A graph whose edges lead from each vertex to its chosen neighbors.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_graph::{
    Direction, Graph, GraphKind, Page, Parts, PrefetchStage, Weight, WeightType, WeightedEdges, WillNeed,
};

use super::Neighbors;
use crate::{Error, Result};

/// A graph in which the out-edges of a vertex lead to its [`Neighbors`] in another graph. So queries that follow
/// out-edges also follow in-edges, or the edges of both directions.
///
/// With [`Neighbors::Both`], a list is an out-list and then an in-list, and both may hold a neighbor. Queries allow
/// that, as they allow parallel edges. Its counts of edges are upper bounds.
#[derive(Clone, Copy, Debug)]
pub struct NeighborGraph<'a, G> {
    graph: &'a G,
    which: Neighbors,
}

impl<'a, G: Graph> NeighborGraph<'a, G> {
    /// The graph of these neighbors.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: `which` needs in-edges and the graph has none.
    pub fn new(graph: &'a G, which: Neighbors) -> Result<Self> {
        if which != Neighbors::Out && !graph.has_lists(Direction::In) {
            return Err(Error::Unsupported { kernel: "a query by in-edges", needs: "a graph loaded with in-edges" });
        }
        // An undirected graph keeps each neighbor in the out-list, so that list answers for every direction.
        let which = if graph.graph_kind() == GraphKind::Undirected { Neighbors::Out } else { which };
        Ok(Self { graph, which })
    }

    /// The lists of the graph that are this list.
    fn lists(&self, direction: Direction) -> &'static [Direction] {
        match (self.which, direction) {
            (Neighbors::Both, _) => &[Direction::Out, Direction::In],
            (Neighbors::Out, Direction::Out) | (Neighbors::In, Direction::In) => &[Direction::Out],
            (Neighbors::Out, Direction::In) | (Neighbors::In, Direction::Out) => &[Direction::In],
        }
    }
}

impl<G: Graph> WillNeed for NeighborGraph<'_, G> {
    fn is_listening(&self) -> bool {
        self.graph.is_listening()
    }

    fn prefetch(&self, direction: Direction, stage: PrefetchStage, vertex: VertexId) {
        self.lists(direction).iter().for_each(|&list| self.graph.prefetch(list, stage, vertex));
    }

    fn will_need(&self, direction: Direction, parts: Parts, vertices: &[VertexId]) {
        self.lists(direction).iter().for_each(|&list| self.graph.will_need(list, parts, vertices));
    }

    fn forget_needs(&self) {
        self.graph.forget_needs();
    }
}

impl<G: Graph> Graph for NeighborGraph<'_, G> {
    type Offset = u32;

    fn vertex_bound(&self) -> usize {
        self.graph.vertex_bound()
    }

    fn num_vertices(&self) -> usize {
        self.graph.num_vertices()
    }

    fn num_edges(&self) -> u64 {
        self.num_arcs()
    }

    fn num_arcs(&self) -> u64 {
        self.graph.num_arcs() * self.lists(Direction::Out).len() as u64
    }

    fn graph_kind(&self) -> GraphKind {
        self.graph.graph_kind()
    }

    fn is_multigraph(&self) -> bool {
        self.which == Neighbors::Both || self.graph.is_multigraph()
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        self.graph.is_live(vertex)
    }

    fn has_lists(&self, direction: Direction) -> bool {
        self.lists(direction).iter().all(|&list| self.graph.has_lists(list))
    }

    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.lists(direction).iter().map(|&list| self.graph.degree(list, vertex)).sum()
    }

    fn rough_degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.lists(direction).iter().map(|&list| self.graph.rough_degree(list, vertex)).sum()
    }

    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.lists(direction).iter().try_for_each(|&list| self.graph.for_each_fragment(list, vertex, &mut body))
    }

    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.has_lists(direction) {
            true => body(Page::Patched(vertices)),
            false => body(Page::Empty(vertices)),
        }
    }

    fn check(&self) -> anden_base::Result<()> {
        self.graph.check()
    }
}

impl<G: WeightedEdges> WeightedEdges for NeighborGraph<'_, G> {
    fn weight_type(&self) -> Option<WeightType> {
        self.graph.weight_type()
    }

    fn for_each_weighted_fragment<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let lists = self.lists(direction).iter();
        lists.copied().try_for_each(|list| self.graph.for_each_weighted_fragment(list, vertex, &mut body))
    }
}
