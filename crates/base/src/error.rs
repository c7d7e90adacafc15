//! The error of this crate.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::standard_input::StandardInput;

/// What went wrong below the graph: the disk, or bytes that are not what they claim to be.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call to the operating system failed.
    #[error("{}: cannot {operation}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb: `open`, `write`, `sync`.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: Arc<io::Error>,
    },
    /// A file holds bytes that no writer of this format leaves behind.
    #[error("{}: damaged at byte {offset}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes from its start.
        offset: u64,
        /// What was expected and what was found.
        what: String,
    },
    /// Another process (or another handle of this one) holds the lock.
    #[error("{}: locked by {}", path.display(), holder_name(*.holder))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The number of the process, where it is known.
        holder: Option<u32>,
    },
    /// A name that only a regular file of a database may have leads to something else. Nothing was read or changed.
    #[error(
        "cannot {operation}: {found} stands in the place of a file of the database ({}); move it away, or put the file \
         itself there",
        path.display()
    )]
    NotRegular {
        /// What was attempted, as a verb.
        operation: &'static str,
        /// The name.
        path: PathBuf,
        /// The kind of what has the name: `a symbolic link`, `a FIFO`.
        found: &'static str,
    },
    /// This process was forked from the one that opened what is to be used.
    #[error("{}: was opened by the process that this one was forked from; open it here", path.display())]
    Forked {
        /// The database.
        path: PathBuf,
    },
    /// The work was cancelled by its caller.
    #[error("cancelled")]
    Cancelled,
}

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps an operating system error with what was attempted and where; standard input that is not waited for any
    /// longer is [`Cancelled`](Self::Cancelled).
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        if StandardInput::was_stopped(&source) {
            return Self::Cancelled;
        }
        Self::Io { operation, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Reports damage in `path` at byte `offset`.
    pub fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_owned(), offset, what: what.into() }
    }

    /// The kind of the system's reason, when there is one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }
}

fn holder_name(holder: Option<u32>) -> String {
    match holder {
        Some(number) if number == std::process::id() => "another handle of this process".to_owned(),
        Some(number) => format!("another process ({number})"),
        None => "another process".to_owned(),
    }
}
