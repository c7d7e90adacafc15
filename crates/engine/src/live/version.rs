//! One version of a live graph: what lies over the snapshot at an epoch.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use base::VertexId;
use graph::Direction;
use lama::{AddedPiece, Key, KeyRef, ListChanges, Overlay, Side, Underlay, View};
use terrace::Plane;

use super::delta::DeltaVersion;
use super::keys::NewKeys;
use super::vertices::VertexHistory;

/// What lies over the snapshot at an epoch.
#[derive(Clone, Debug)]
pub(crate) struct LiveVersion {
    pub(crate) epoch: u64,
    pub(crate) underlay: Arc<Underlay>,
    pub(crate) delta: DeltaVersion,
    pub(crate) keys: Arc<NewKeys>,
    pub(crate) vertices: Arc<VertexHistory>,
    pub(crate) vertex_bound: usize,
    pub(crate) num_vertices: usize,
}

impl LiveVersion {
    /// The graph at this version.
    pub(crate) fn view(self: &Arc<Self>) -> View {
        self.underlay.overlaid(Arc::clone(self) as Arc<dyn Overlay>)
    }

    /// Edges that a plane of out-lists holds; of an undirected graph, each counted once.
    pub(crate) fn num_edges_of(&self, plane: Plane) -> u64 {
        let num_arcs = self.delta.num_arcs(plane);
        match self.snapshot().options().direction {
            Direction::Directed => num_arcs,
            Direction::Undirected => (num_arcs + self.delta.num_loops(plane)) / 2,
        }
    }

    /// What it lies over.
    pub(crate) fn snapshot(&self) -> &View {
        self.underlay.view()
    }
}

impl Overlay for LiveVersion {
    fn vertex_bound(&self) -> usize {
        self.vertex_bound
    }

    fn num_vertices(&self) -> usize {
        self.num_vertices
    }

    fn num_edges(&self) -> u64 {
        let below = graph::Graph::num_edges(self.snapshot());
        below + self.num_edges_of(Plane::Out) - self.num_edges_of(Plane::OutRemoved)
    }

    fn num_arcs(&self) -> u64 {
        let below = graph::Graph::num_arcs(self.snapshot());
        below + self.delta.num_arcs(Plane::Out) - self.delta.num_arcs(Plane::OutRemoved)
    }

    fn is_live(&self, vertex: VertexId) -> Option<bool> {
        self.vertices.is_live(vertex, self.epoch)
    }

    fn vertex(&self, key: &Key) -> Option<VertexId> {
        self.keys.id(key).filter(|&id| (id as usize) < self.vertex_bound)
    }

    fn key(&self, vertex: VertexId) -> Option<KeyRef<'_>> {
        self.keys.key(vertex)
    }

    fn num_changes(&self, side: Side, vertex: VertexId) -> ListChanges {
        self.delta.num_changes(side, vertex)
    }

    fn removed(&self, side: Side, vertex: VertexId) -> Cow<'_, [VertexId]> {
        self.delta.removed(side, vertex)
    }

    fn for_each_added(&self, side: Side, vertex: VertexId, body: &mut AddedPiece<'_>) -> ControlFlow<()> {
        self.delta.for_each_added(side, vertex, body)
    }
}
