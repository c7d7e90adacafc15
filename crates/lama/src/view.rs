//! Read access to the graph at a snapshot.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use base::VertexId;
use graph::{Direction, Graph, InEdges, Page, SingleFragment, Weight, WeightType, WeightedEdges, Weights, WillNeed};

use crate::Result;
use crate::dictionary::Dictionary;
use crate::key::{Key, KeyRef};
use crate::options::GraphOptions;
use crate::side::{Fault, Side};

/// The graph at a snapshot, mapped from its files; clones share everything.
///
/// A page of a thousand vertices is verified when the first of its lists is read (checksums, bounds
/// of targets, order), and never again in this process. Lists of a damaged page look empty, and
/// [`Graph::check`] says what is wrong.
#[derive(Clone, Debug)]
pub struct View {
    out_side: Side,
    /// Of an undirected graph, the same as the out-side.
    in_side: Option<Side>,
    vertex_bound: usize,
    shared: Arc<ViewShared>,
}

/// What a view shows beside the lists.
#[derive(Debug)]
pub(crate) struct ViewShared {
    pub options: GraphOptions,
    pub num_edges: u64,
    pub dictionary: Dictionary,
    pub fault: Fault,
}

impl View {
    pub(crate) fn new(out_side: Side, in_side: Option<Side>, vertex_bound: usize, shared: ViewShared) -> Self {
        let in_side = match shared.options.direction {
            Direction::Undirected => Some(out_side.clone()),
            Direction::Directed => in_side,
        };
        Self { out_side, in_side, vertex_bound, shared: Arc::new(shared) }
    }

    pub(crate) fn out_side(&self) -> &Side {
        &self.out_side
    }

    /// The in-lists where they are stored on their own.
    pub(crate) fn own_in_side(&self) -> Option<&Side> {
        self.in_side.as_ref().filter(|_| self.shared.options.stores_in_lists())
    }

    /// The kind of graph.
    pub fn options(&self) -> &GraphOptions {
        &self.shared.options
    }

    /// The keys of the vertices.
    pub fn dictionary(&self) -> &Dictionary {
        &self.shared.dictionary
    }

    /// The vertex that the user calls `key`; `None` where there is none.
    ///
    /// # Errors
    /// The dictionary is damaged.
    pub fn vertex(&self, key: &Key) -> Result<Option<VertexId>> {
        self.shared.dictionary.vertex(key)
    }

    /// What the user calls `vertex`.
    ///
    /// # Errors
    /// There is no such vertex, or the dictionary is damaged.
    pub fn key(&self, vertex: VertexId) -> Result<Key> {
        self.shared.dictionary.key(vertex)
    }

    /// As [`key`](Self::key), without a copy.
    ///
    /// # Errors
    /// There is no such vertex, or the dictionary is damaged.
    pub fn key_ref(&self, vertex: VertexId) -> Result<KeyRef<'_>> {
        self.shared.dictionary.key_ref(vertex)
    }
}

impl WillNeed for View {
    #[inline(always)]
    fn prefetch_out(&self, vertex: VertexId) {
        self.out_side.prefetch(vertex);
    }
}

impl Graph for View {
    type Offset = u32;

    #[inline]
    fn vertex_bound(&self) -> usize {
        self.vertex_bound
    }

    fn num_edges(&self) -> u64 {
        self.shared.num_edges
    }

    fn num_arcs(&self) -> u64 {
        self.out_side.num_arcs()
    }

    fn direction(&self) -> Direction {
        self.shared.options.direction
    }

    fn is_multigraph(&self) -> bool {
        self.shared.options.multigraph
    }

    #[inline(always)]
    fn out_degree(&self, vertex: VertexId) -> usize {
        self.out_side.degree(vertex)
    }

    #[inline(always)]
    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        body(self.out_side.list(vertex))
    }

    #[inline]
    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.out_side.for_each_page(vertices, body)
    }

    fn check(&self) -> base::Result<()> {
        match self.shared.fault.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

impl InEdges for View {
    fn has_in_edges(&self) -> bool {
        self.in_side.is_some()
    }

    #[inline(always)]
    fn in_degree(&self, vertex: VertexId) -> usize {
        self.in_side.as_ref().map_or(0, |side| side.degree(vertex))
    }

    #[inline(always)]
    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &self.in_side {
            Some(side) => body(side.list(vertex)),
            None => ControlFlow::Continue(()),
        }
    }

    #[inline]
    fn for_each_in_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &self.in_side {
            Some(side) => side.for_each_page(vertices, body),
            None => body(Page::Empty(vertices)),
        }
    }
}

#[inline(always)]
fn weighted<W: Weight>(
    side: &Side,
    vertex: VertexId,
    mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match side.weighted_list(vertex) {
        Some((targets, weights)) if !targets.is_empty() => body(targets, weights),
        _ => ControlFlow::Continue(()),
    }
}

impl WeightedEdges for View {
    fn weight_type(&self) -> Option<WeightType> {
        self.out_side.weights().map(Weights::weight_type)
    }

    #[inline]
    fn for_each_weighted_out_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        weighted(&self.out_side, vertex, body)
    }

    #[inline]
    fn for_each_weighted_in_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &self.in_side {
            Some(side) => weighted(side, vertex, body),
            None => ControlFlow::Continue(()),
        }
    }
}

impl SingleFragment for View {
    #[inline(always)]
    fn out_list(&self, vertex: VertexId) -> Option<&[VertexId]> {
        Some(self.out_side.list(vertex))
    }
}
