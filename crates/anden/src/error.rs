//! The error of this crate, which is the error that users meet.

use std::io::ErrorKind;

use base::VertexId;
use base::size::{size_at_least, size_at_most};

use crate::Key;

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by what a caller can do about it.
///
/// The text says what, where (file, line, offset, option), and what was expected.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A database, file, snapshot or vertex that was named is not there.
    #[error("{0}")]
    NotFound(String),
    /// An input, a parameter or a name does not fit: nothing was done.
    #[error("{0}")]
    InvalidInput(String),
    /// Somebody else changed what this work depends on.
    #[error("{0}")]
    Conflict(String),
    /// A vertex was to get a value that another one has, of a property with a unique index. Nothing of it has happened,
    /// and trying again does not help.
    #[error("{0}")]
    UniqueViolation(String),
    /// A file holds bytes that no writer leaves behind.
    #[error("{0}")]
    Corrupt(String),
    /// Another process has the database open for writing.
    #[error("{0}")]
    Locked(String),
    /// The operating system refused.
    #[error("{0}")]
    Io(String),
    /// The memory that may be used does not suffice: nothing was done.
    #[error("a memory budget of {} is too small: {what} needs at least {}", size_at_most(*budget), size_at_least(*needed))]
    Memory {
        /// What it is for.
        what: String,
        /// The least that it can do with, all in all.
        needed: u64,
        /// What may be used.
        budget: u64,
    },
    /// Nobody reads any more what is written.
    #[error("nobody reads the output any more")]
    ClosedPipe,
    /// The graph, or this version, lacks what was asked for.
    #[error("{0}")]
    Unsupported(String),
    /// The caller asked the work to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// The vertex `key` is not in the graph.
    pub(crate) fn no_vertex(key: &Key) -> Self {
        Self::NotFound(format!("vertex {key} does not exist"))
    }

    /// An error of a kernel, with the keys of vertices where it has ids.
    pub(crate) fn with_keys(error: kernels::Error, key: impl Fn(VertexId) -> Result<Key>) -> Self {
        let named = match &error {
            kernels::Error::Weight { kernel, source_vertex, target, weight } => {
                key(*source_vertex).and_then(|source| Ok((source, key(*target)?))).map(|(source, target)| {
                    format!("the edge from {source} to {target} has weight {weight}: {kernel} needs weights of 0 or more")
                })
            }
            kernels::Error::Strength { kernel, vertex, sum, number } => key(*vertex).map(|vertex| {
                format!("the weights from {vertex} come to {sum}: {kernel} needs sums that {number} holds, and one over them")
            }),
            _ => return error.into(),
        };
        named.map_or_else(|_| error.into(), Self::InvalidInput)
    }
}

impl From<base::Error> for Error {
    fn from(error: base::Error) -> Self {
        let text = error.to_string();
        match error {
            base::Error::Io { .. } => match error.io_kind() {
                Some(ErrorKind::NotFound) => Self::NotFound(text),
                Some(ErrorKind::BrokenPipe) => Self::ClosedPipe,
                _ => Self::Io(text),
            },
            base::Error::Corrupt { .. } => Self::Corrupt(text),
            base::Error::Locked { .. } | base::Error::Forked { .. } => Self::Locked(text),
            base::Error::Cancelled => Self::Cancelled,
            _ => Self::Io(text),
        }
    }
}

impl From<graph::Error> for Error {
    fn from(error: graph::Error) -> Self {
        match error {
            graph::Error::Base(error) => error.into(),
            error => Self::InvalidInput(error.to_string()),
        }
    }
}

impl From<kernels::Error> for Error {
    fn from(error: kernels::Error) -> Self {
        match error {
            kernels::Error::Base(error) => error.into(),
            kernels::Error::Unsupported { .. } => Self::Unsupported(error.to_string()),
            kernels::Error::Memory { kernel, needed, budget } => Self::Memory { what: kernel.into(), needed, budget },
            kernels::Error::NoVertex { .. } => Self::NotFound(error.to_string()),
            error => Self::InvalidInput(error.to_string()),
        }
    }
}
