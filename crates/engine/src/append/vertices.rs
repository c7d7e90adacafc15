//! Vertices that an append removes.

use anden_base::{NO_VERTEX, VertexId};
use anden_graph::Graph;
use anden_snapshots::SnapshotView;

use super::requests::RequestBlock;

/// Vertices to remove.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RemovedVertices {
    /// Existing ones, ascending.
    pub(crate) vertices: Vec<VertexId>,
    /// Number of those that do not exist.
    pub(crate) num_missing: u64,
}

impl RemovedVertices {
    /// The vertices that blocks, whose keys are ids, name without an edge.
    pub(crate) fn new(view: &SnapshotView, blocks: &[RequestBlock]) -> Self {
        let mut vertices: Vec<VertexId> = blocks.iter().flat_map(|block| block.vertices.iter().copied()).collect();
        let is_live = |vertex: VertexId| (vertex as usize) < view.vertex_bound() && view.is_live(vertex);
        vertices.sort_unstable();
        // `NO_VERTEX` is larger than any id, so unknown vertices are at the end.
        let num_unknown = vertices.iter().filter(|&&vertex| vertex == NO_VERTEX).count();
        vertices.truncate(vertices.len() - num_unknown);
        vertices.dedup();
        let num_known = vertices.len();
        vertices.retain(|&vertex| is_live(vertex));
        let num_missing = (num_unknown + num_known - vertices.len()) as u64;
        Self { vertices, num_missing }
    }
}
