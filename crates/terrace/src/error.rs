//! The error of this crate.

use base::VertexId;

/// Why a batch was refused; then nothing of it has happened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A change names a vertex that is not below the bound.
    #[error("vertex {vertex} of a change is not below {bound}")]
    Vertex {
        /// The vertex.
        vertex: VertexId,
        /// The bound.
        bound: usize,
    },
    /// A parameter is out of its range.
    #[error("{0}")]
    Parameter(String),
    /// The nodes of all versions together fill the address range.
    #[error("the live graph and its pinned versions fill the {bytes} bytes that they can have")]
    Full {
        /// The bytes in use.
        bytes: usize,
    },
    /// The system refused.
    #[error(transparent)]
    Base(#[from] base::Error),
}

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn reserve(source: std::io::Error) -> Self {
        base::Error::io("reserve addresses for", "the live graph".as_ref(), source).into()
    }
}
