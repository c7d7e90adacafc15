//! The error of this crate.

use base::VertexId;
use base::size::{size_at_least, size_at_most};

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a kernel gives no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The graph met damage while it was read, or the work was cancelled.
    #[error(transparent)]
    Base(#[from] base::Error),
    /// A vertex that the parameters name is not in the graph.
    #[error("vertex {vertex} does not exist: ids are below {bound}")]
    NoVertex {
        /// The id.
        vertex: VertexId,
        /// The bound of the graph.
        bound: usize,
    },
    /// The graph lacks what the kernel needs.
    #[error("{kernel} needs {needs}")]
    Unsupported {
        /// The kernel.
        kernel: &'static str,
        /// What is missing, and how to get it.
        needs: &'static str,
    },
    /// An edge has a weight that the kernel forbids.
    #[error(
        "the edge from vertex {source_vertex} to vertex {target} has weight {weight}: {kernel} needs weights of 0 or more"
    )]
    Weight {
        /// The kernel.
        kernel: &'static str,
        /// The source.
        source_vertex: VertexId,
        /// The target.
        target: VertexId,
        /// The weight.
        weight: String,
    },
    /// The weights of a vertex's out-edges come to more or less than the kernel can share out.
    #[error(
        "the weights from vertex {vertex} come to {sum}: {kernel} needs sums that {number} holds, and one over them"
    )]
    Strength {
        /// The kernel.
        kernel: &'static str,
        /// The source of the edges.
        vertex: VertexId,
        /// The sum.
        sum: String,
        /// The type of numbers that the kernel works with.
        number: &'static str,
    },
    /// A parameter is outside what is allowed.
    #[error("{0}")]
    Parameter(String),
    /// The memory budget is too small.
    #[error("a memory budget of {} is too small: {kernel} needs at least {}", size_at_most(*budget), size_at_least(*needed))]
    Memory {
        /// The kernel.
        kernel: &'static str,
        /// The least it can do with.
        needed: u64,
        /// What it may use.
        budget: u64,
    },
}
