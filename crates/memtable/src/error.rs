//! Errors of this crate.

use anden_base::VertexId;
use anden_base::size::{size_at_least, size_at_most};

/// An error of a memtable.
///
/// A refused batch has no effect. After [`Error::Full`] or an error of the base, only published versions stay
/// readable.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A change names a vertex outside the bound.
    #[error("vertex {vertex} of a change is not below {bound}")]
    Vertex {
        /// The vertex.
        vertex: VertexId,
        /// The bound.
        bound: usize,
    },
    /// A parameter is out of range.
    #[error("{0}")]
    Parameter(String),
    /// The system refuses the addresses of a memtable.
    #[error(
        "the memtable needs at least {} of addresses, {}",
        size_at_least(*needed),
        left.map_or_else(
            || "which the system refuses: look at its limits (ulimit -v, vm.overcommit_memory)".to_owned(),
            |left| format!("and the limit of this process leaves {}: raise it (ulimit -v)", size_at_most(left)),
        )
    )]
    Addresses {
        /// The least that it needs, in bytes.
        needed: u64,
        /// Bytes that the limit of the process leaves; `None` without one.
        left: Option<u64>,
    },
    /// A change names a vertex for which no addresses were reserved.
    #[error(
        "the memtable has addresses for {most} vertices, not for {bound}: make a snapshot first (`anden checkpoint`), or \
         raise the limit of addresses (ulimit -v)"
    )]
    Vertices {
        /// The bound that was asked for.
        bound: usize,
        /// The largest bound.
        most: usize,
    },
    /// The nodes of all versions fill the address range.
    #[error(
        "the memtable and its pinned versions fill their {} of addresses: make batches smaller, drop old views, or \
         raise the limit (ulimit -v)",
        size_at_most(*bytes as u64)
    )]
    Full {
        /// Bytes in use.
        bytes: usize,
    },
    /// An error of the system, or of the base below.
    #[error(transparent)]
    Base(#[from] anden_base::Error),
}

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
