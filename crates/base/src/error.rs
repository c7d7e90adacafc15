//! Errors of this crate.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::holder::LockHolder;

/// An error below the graph: of the disk, or of bytes that violate their format.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call to the operating system failed.
    #[error("{}: cannot {operation}: {source}", path.display())]
    Io {
        /// The attempted operation, as a verb: `open`, `write`, `sync`.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: Arc<io::Error>,
    },
    /// A file holds bytes that no writer of its format produces.
    #[error("{}: damaged at byte {offset}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// The expected and the found content.
        what: String,
    },
    /// Another process, or another handle of this process, holds the lock.
    #[error("{}: locked by {}", path.display(), holder_name(.holder))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The holder, as far as it is known.
        holder: LockHolder,
    },
    /// A name reserved for a regular file of a database belongs to another kind of file. No file was read or changed.
    #[error(
        "cannot {operation}: {found} stands in the place of a file of the database ({}); move it away, or put the file \
         itself there",
        path.display()
    )]
    NotRegular {
        /// The attempted operation, as a verb.
        operation: &'static str,
        /// The name.
        path: PathBuf,
        /// Kind of the found file: `a symbolic link`, `a FIFO`.
        found: &'static str,
    },
    /// This process was forked from the one that opened the database.
    #[error("{}: was opened by the process that this one was forked from; open it here", path.display())]
    Forked {
        /// The database.
        path: PathBuf,
    },
    /// The work was cancelled by its caller.
    #[error("cancelled")]
    Cancelled,
}

/// The error of a read of standard input that was stopped.
#[derive(Debug, thiserror::Error)]
#[error("standard input is not waited for any longer")]
pub(crate) struct ReadStopped;

impl ReadStopped {
    pub(crate) fn is_reason_of(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|reason| reason.is::<Self>())
    }
}

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps an operating system error with operation and path. An error of stopped standard input becomes
    /// [`Cancelled`](Self::Cancelled).
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        if ReadStopped::is_reason_of(&source) {
            return Self::Cancelled;
        }
        Self::Io { operation, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Reports damage in `path` at byte `offset`.
    pub fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_owned(), offset, what: what.into() }
    }

    /// Turns the error for a file that does not exist into damage. For files that must be there.
    #[must_use]
    pub fn missing_as_damage(self) -> Self {
        match &self {
            Self::Io { path, .. } if self.io_kind() == Some(io::ErrorKind::NotFound) => {
                Self::corrupt(path, 0, "the file is missing")
            }
            _ => self,
        }
    }

    /// Kind of the system's error, for [`Io`](Self::Io).
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }
}

fn holder_name(holder: &LockHolder) -> String {
    match (holder.process, &holder.program) {
        (Some(number), _) if number == std::process::id() => "another handle of this process".to_owned(),
        (Some(number), Some(program)) => format!("another process ({number}, {program})"),
        (Some(number), None) => format!("another process ({number})"),
        (None, _) => "another process".to_owned(),
    }
}
