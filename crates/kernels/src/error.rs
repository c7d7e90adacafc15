//! The error type of this crate.

use anden_base::VertexId;
use anden_base::size::{size_at_least, size_at_most};

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why a kernel or a query returns no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A read met damage in the graph, or the caller cancelled the work.
    #[error(transparent)]
    Base(#[from] anden_base::Error),
    /// The graph does not contain a vertex that a parameter names.
    #[error("vertex {vertex} does not exist: ids are below {bound}")]
    NoVertex {
        /// The id of the vertex.
        vertex: VertexId,
        /// The vertex bound of the graph.
        bound: usize,
    },
    /// The graph lacks a capability that the kernel needs.
    #[error("{kernel} needs {needs}")]
    Unsupported {
        /// The name of the kernel.
        kernel: &'static str,
        /// The missing capability, and how to get it.
        needs: &'static str,
    },
    /// An edge has a weight that the kernel forbids.
    #[error(
        "the edge from vertex {source_vertex} to vertex {target} has weight {weight}: {kernel} needs weights of 0 or more"
    )]
    Weight {
        /// The name of the kernel.
        kernel: &'static str,
        /// The source of the edge.
        source_vertex: VertexId,
        /// The target of the edge.
        target: VertexId,
        /// The weight, as text.
        weight: String,
    },
    /// The source of shortest paths reaches a cycle of negative weight.
    #[error("vertex {vertex} lies on a cycle of negative weight: {kernel} needs cycles of weight 0 or more")]
    NegativeCycle {
        /// The name of the kernel.
        kernel: &'static str,
        /// The vertex of the cycle with the smallest id.
        vertex: VertexId,
    },
    /// The sum of the weights of a vertex's out-edges, or its inverse, overflows the kernel's number type.
    #[error(
        "the weights from vertex {vertex} come to {sum}: {kernel} needs sums that {number} holds, and one over them"
    )]
    Strength {
        /// The name of the kernel.
        kernel: &'static str,
        /// The source of the edges.
        vertex: VertexId,
        /// The sum of the weights, as text.
        sum: String,
        /// The number type of the kernel's results.
        number: &'static str,
    },
    /// A parameter is outside its allowed range.
    #[error("{0}")]
    Parameter(String),
    /// The memory budget is too small.
    #[error("a memory budget of {} is too small: {kernel} needs at least {}", size_at_most(*budget), size_at_least(*needed))]
    Memory {
        /// The name of the kernel.
        kernel: &'static str,
        /// The smallest sufficient budget, in bytes.
        needed: u64,
        /// The budget, in bytes.
        budget: u64,
    },
}
