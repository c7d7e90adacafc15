//! Vertices that an append removes.

use base::{NO_VERTEX, VertexId};
use graph::Graph;
use lama::View;

use super::requests::Block;

/// Vertices that are to be removed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RemovedVertices {
    /// Those that are there, ascending.
    pub(crate) vertices: Vec<VertexId>,
    /// How many are not.
    pub(crate) num_missing: u64,
}

impl RemovedVertices {
    /// Those that blocks, whose keys are ids, name alone.
    pub(crate) fn new(view: &View, blocks: &[Block]) -> Self {
        let mut vertices: Vec<VertexId> = blocks.iter().flat_map(|block| block.vertices.iter().copied()).collect();
        let is_live = |vertex: VertexId| (vertex as usize) < view.vertex_bound() && view.is_live(vertex);
        vertices.sort_unstable();
        let num_unknown = vertices.iter().filter(|&&vertex| vertex == NO_VERTEX).count();
        vertices.truncate(vertices.len() - num_unknown);
        vertices.dedup();
        let num_known = vertices.len();
        vertices.retain(|&vertex| is_live(vertex));
        let num_missing = (num_unknown + num_known - vertices.len()) as u64;
        Self { vertices, num_missing }
    }
}
