//! The error of this crate.

use std::path::PathBuf;

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of making or mapping a graph, or of its property values.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A disk operation failed, a file is damaged, or the work was cancelled.
    #[error(transparent)]
    Base(#[from] anden_base::Error),
    /// A file is not a saved graph.
    #[error("{}: {what}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// The expected and the found content.
        what: String,
    },
    /// A parameter is outside its allowed range.
    #[error("{0}")]
    Parameter(String),
}
