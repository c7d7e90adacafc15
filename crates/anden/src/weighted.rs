//! A numeric edge property as the weight.
//!
//! A list stores rows, and kernels need weights beside the arcs. So a view copies the values once for each property, in
//! the order of the lists. The lists are read where they are stored.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::{
    DensePage, Direction, Graph, GraphKind, Page, Parts, PrefetchStage, VertexMask, Weight, WeightType, WeightedEdges,
    WillNeed, prefetch_start,
};
use anden_snapshots::SnapshotView;

/// The name of the weights that a graph was loaded with.
pub(crate) const OWN_WEIGHTS: &str = "weight";

/// Calls a kernel with the graph and its effective weights: the chosen property, or the graph's own weights.
macro_rules! on_weighted {
    ($view:expr, $graph:ident => $call:expr) => {
        // A macro, because the two graphs have different types.
        match $view.chosen() {
            Some($graph) => $call,
            None => {
                let $graph = $view.lists();
                $call
            }
        }
    };
}
pub(crate) use on_weighted;

/// A graph whose weights are the values of an edge property.
pub(crate) struct ChosenWeights {
    pub(crate) graph: SnapshotView,
    pub(crate) name: String,
    // Shared with copies of the view that have another prefetcher.
    pub(crate) out_adjacency: Arc<DirectionWeights>,
    /// Only in a directed graph with in-lists.
    pub(crate) in_adjacency: Option<Arc<DirectionWeights>>,
}

/// The weights of one direction, in the order of its lists.
pub(crate) struct DirectionWeights {
    /// By vertex: the position of its first weight. The last entry is the total length.
    pub(crate) starts: Vec<u64>,
    pub(crate) values: DirectionWeightValues,
}

pub(crate) enum DirectionWeightValues {
    Integer(Vec<i64>),
    Real(Vec<f64>),
}

impl ChosenWeights {
    /// These weights with the lists of another view of one version.
    pub(crate) fn with_graph(&self, graph: SnapshotView) -> Self {
        let (out_adjacency, in_adjacency) = (Arc::clone(&self.out_adjacency), self.in_adjacency.clone());
        Self { graph, name: self.name.clone(), out_adjacency, in_adjacency }
    }

    /// The weights of one direction. In an undirected graph, the out-lists serve both directions.
    fn weights_of(&self, direction: Direction) -> Option<&DirectionWeights> {
        match (direction, self.graph.graph_kind()) {
            (Direction::In, GraphKind::Directed) => self.in_adjacency.as_deref(),
            _ => Some(&self.out_adjacency),
        }
    }

    /// The name of the property.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Approximate bytes of memory.
    pub(crate) fn num_bytes(&self) -> u64 {
        let num_bytes = |weights: &DirectionWeights| 8 * (weights.starts.len() + weights.len()) as u64;
        num_bytes(&self.out_adjacency) + self.in_adjacency.as_deref().map_or(0, num_bytes)
    }
}

impl DirectionWeights {
    fn len(&self) -> usize {
        self.starts.last().map_or(0, |&end| end as usize)
    }

    fn weight_type(&self) -> WeightType {
        match &self.values {
            DirectionWeightValues::Integer(_) => WeightType::I64,
            DirectionWeightValues::Real(_) => WeightType::F64,
        }
    }

    /// The weights of a list; `None` if `W` is another type.
    #[inline]
    fn of<W: Weight>(&self, vertex: VertexId) -> Option<&[W]> {
        let list = self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize;
        // The types are equal, so the cast changes nothing.
        match &self.values {
            DirectionWeightValues::Integer(values) if W::TYPE == WeightType::I64 => {
                Some(bytemuck::cast_slice(&values[list]))
            }
            DirectionWeightValues::Real(values) if W::TYPE == WeightType::F64 => {
                Some(bytemuck::cast_slice(&values[list]))
            }
            _ => None,
        }
    }

    /// Prefetches the first weights of a list into the CPU cache.
    #[inline]
    fn prefetch(&self, vertex: VertexId) {
        let start = self.starts[vertex as usize] as usize;
        match &self.values {
            DirectionWeightValues::Integer(values) => prefetch_start(values, start),
            DirectionWeightValues::Real(values) => prefetch_start(values, start),
        }
    }

    /// Calls `body` with the fragments that `each` yields, and their weights.
    #[inline]
    fn with<W: Weight>(
        &self,
        vertex: VertexId,
        each: impl FnOnce(&mut dyn FnMut(&[VertexId]) -> ControlFlow<()>) -> ControlFlow<()>,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(mut weights) = self.of::<W>(vertex) else { return ControlFlow::Continue(()) };
        each(&mut |targets| {
            // A page found damaged meanwhile looks empty, so a list can only become shorter.
            let (now, rest) = weights.split_at(targets.len().min(weights.len()));
            weights = rest;
            body(&targets[..now.len()], now)
        })
    }
}

impl WillNeed for ChosenWeights {
    #[inline(always)]
    fn prefetch(&self, direction: Direction, stage: PrefetchStage, vertex: VertexId) {
        let PrefetchStage::List(parts) = stage else { return self.graph.prefetch(direction, stage, vertex) };
        // The weights of the graph itself are not read.
        self.graph.prefetch(direction, PrefetchStage::List(Parts::Targets), vertex);
        if parts == Parts::Weighted
            && let Some(weights) = self.weights_of(direction)
        {
            weights.prefetch(vertex);
        }
    }

    fn is_listening(&self) -> bool {
        self.graph.is_listening()
    }

    // The weights are in memory. Only targets are read from the graph.

    fn will_need(&self, direction: Direction, _parts: Parts, vertices: &[VertexId]) {
        self.graph.will_need(direction, Parts::Targets, vertices);
    }

    fn will_need_runs(&self, direction: Direction, _parts: Parts, runs: &[Range<VertexId>]) {
        self.graph.will_need_runs(direction, Parts::Targets, runs);
    }

    fn will_walk(&self, direction: Direction, _parts: Parts, vertices: Range<VertexId>) {
        self.graph.will_walk(direction, Parts::Targets, vertices);
    }

    fn has_walked(&self, direction: Direction, _parts: Parts, vertices: Range<VertexId>) {
        self.graph.has_walked(direction, Parts::Targets, vertices);
    }

    fn forget_needs(&self) {
        self.graph.forget_needs();
    }
}

impl Graph for ChosenWeights {
    type Offset = <SnapshotView as Graph>::Offset;

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

    fn is_live(&self, vertex: VertexId) -> bool {
        self.graph.is_live(vertex)
    }

    fn graph_kind(&self) -> GraphKind {
        self.graph.graph_kind()
    }

    fn is_multigraph(&self) -> bool {
        self.graph.is_multigraph()
    }

    fn has_lists(&self, direction: Direction) -> bool {
        self.graph.has_lists(direction)
    }

    #[inline(always)]
    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.graph.degree(direction, vertex)
    }

    #[inline(always)]
    fn rough_degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.graph.rough_degree(direction, vertex)
    }

    #[inline(always)]
    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_fragment(direction, vertex, body)
    }

    #[inline]
    fn for_each_fragment_of(
        &self,
        direction: Direction,
        wanted: &VertexMask,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        self.graph.for_each_fragment_of(direction, wanted, body);
    }

    #[inline(always)]
    fn dense_lists(
        &self,
        direction: Direction,
        wanted: &VertexMask,
    ) -> Option<(DensePage<'_, Self::Offset>, VertexMask)> {
        self.graph.dense_lists(direction, wanted)
    }

    #[inline]
    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, Self::Offset>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_page(direction, vertices, body)
    }

    fn check(&self) -> anden_base::Result<()> {
        self.graph.check()
    }
}

impl WeightedEdges for ChosenWeights {
    fn weight_type(&self) -> Option<WeightType> {
        Some(self.out_adjacency.weight_type())
    }

    #[inline]
    fn for_each_weighted_fragment<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.weights_of(direction) {
            Some(weights) => weights.with(vertex, |each| self.graph.for_each_fragment(direction, vertex, each), body),
            None => ControlFlow::Continue(()),
        }
    }
}
