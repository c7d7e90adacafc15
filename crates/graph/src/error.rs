//! The error of this crate.

use std::path::PathBuf;

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can be wrong with a graph on its way in or out.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed, a file is damaged, or the work was cancelled.
    #[error(transparent)]
    Base(#[from] base::Error),
    /// A line or record of an input is not what its format says.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The input; `-` is standard input.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What was expected and what was found.
        what: String,
    },
    /// An input as a whole is not what it claims to be.
    #[error("{}: {what}", path.display())]
    Input {
        /// The input; `-` is standard input.
        path: PathBuf,
        /// What was expected and what was found.
        what: String,
    },
    /// A parameter is outside what is allowed.
    #[error("{0}")]
    Parameter(String),
}
