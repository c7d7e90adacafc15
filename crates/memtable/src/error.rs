//! Errors of this crate.

use anden_base::VertexId;

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
    /// The nodes of all versions fill the address range.
    #[error("the memtable and its pinned versions fill their {bytes} bytes of addresses")]
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

impl Error {
    pub(crate) fn reserve(source: std::io::Error) -> Self {
        anden_base::Error::io("reserve addresses for", "the memtable".as_ref(), source).into()
    }
}
