//! The error of this crate.

use std::path::PathBuf;

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can be wrong with a database directory or with what is to be written to it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed, a file is damaged, another process holds the lock, or the work was cancelled.
    #[error(transparent)]
    Base(#[from] base::Error),
    /// A database was to be created where something is already.
    #[error("{}: exists already; choose another path or remove it first", path.display())]
    Exists {
        /// The path of the new database.
        path: PathBuf,
    },
    /// A database was to be opened where there is none.
    #[error("{}: is no database (there is no {} in it)", path.display(), crate::names::MANIFEST)]
    NotFound {
        /// The path of the directory.
        path: PathBuf,
    },
    /// The database was written by a newer program.
    #[error(
        "{}: has format version {found}, this program knows versions up to {supported}; use a newer program",
        path.display()
    )]
    NewerVersion {
        /// The manifest.
        path: PathBuf,
        /// The version of the database.
        found: u32,
        /// The newest version that this program knows.
        supported: u32,
    },
    /// A page of the vertex table would hold more edges than its 32-bit offsets can tell apart.
    #[error("vertices {first} to {last} have {num_edges} edges, one page holds at most {}", u32::MAX)]
    PageTooLarge {
        /// The first vertex of the page.
        first: u64,
        /// Its last vertex.
        last: u64,
        /// Their edges, as far as they were counted.
        num_edges: u64,
    },
    /// What was given to be written breaks a rule of the format.
    #[error("cannot write the graph: {0}")]
    Input(String),
}
