//! Vertex ids.

/// A vertex: an index below the `vertex_bound` of its graph.
pub type VertexId = u32;

/// No vertex. Marks unreached vertices in arrays of parents and distances.
pub const NO_VERTEX: VertexId = u32::MAX;

/// Largest `vertex_bound`: ids stay below [`NO_VERTEX`], and the bound itself fits in a `u32`.
pub const MAX_VERTICES: usize = (u32::MAX - 1) as usize;
