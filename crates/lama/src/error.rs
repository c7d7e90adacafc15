//! The error of this crate.

use std::path::PathBuf;

use base::size::{size_at_least, size_at_most};

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
    /// The database was written by a program with another format.
    #[error(
        "{}: has format version {found}, this program reads version {supported}; {}",
        path.display(),
        if found > supported { "use a newer program" } else { "load it again" }
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version of the database.
        found: u32,
        /// The version that this program reads.
        supported: u32,
    },
    /// There is no such snapshot: there never was, or it was dropped.
    #[error("there is no snapshot {number}: there are {}", describe(existing))]
    NoSnapshot {
        /// What was asked for.
        number: u32,
        /// The snapshots that there are, ascending.
        existing: Vec<u32>,
    },
    /// A database that was opened for reading was to be changed.
    #[error("{}: is open for reading only", path.display())]
    ReadOnly {
        /// The path of the database.
        path: PathBuf,
    },
    /// A change of the manifest failed before, and what the disk holds of it is not known: nothing is written until the
    /// database is opened again. Reading goes on.
    #[error("{}: a write failed before; open the database again to write to it", path.display())]
    Poisoned {
        /// The path of the database.
        path: PathBuf,
    },
    /// Another process moved, removed or replaced files of the database while this one had it open to write. Nothing is
    /// written from then on, until the database is opened again. Reading goes on.
    #[error(
        "cannot write: {what} ({}); this process writes no more; put the directory in order and open it again",
        path.display()
    )]
    Displaced {
        /// The path of the database.
        path: PathBuf,
        /// What happened to which file.
        what: String,
    },
    /// The directory holds no younger state of the database that was opened: another one was put in its place, or an older
    /// copy of it.
    #[error("{}: another database, or an older copy of this one, took its place; open it again", path.display())]
    Replaced {
        /// The path of the database.
        path: PathBuf,
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
    /// The memory that may be used does not suffice.
    #[error("a memory budget of {} is too small: {what} needs at least {}", size_at_most(*budget), size_at_least(*needed))]
    Memory {
        /// What it is for.
        what: String,
        /// The least that it can do with.
        needed: u64,
        /// What may be used.
        budget: u64,
    },
    /// What was asked for is not possible, or what was given to be written breaks a rule of the format.
    #[error("{0}")]
    Input(String),
}

impl From<graph::Error> for Error {
    fn from(error: graph::Error) -> Self {
        match error {
            graph::Error::Base(error) => Self::Base(error),
            other => Self::Input(other.to_string()),
        }
    }
}

/// `1, 2, 5 to 9` for numbers that ascend.
fn describe(numbers: &[u32]) -> String {
    let ranges = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let texts = ranges.map(|range| match range {
        [first, .., last] => format!("{first} to {last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_listed_in_ranges() {
        let text = Error::NoSnapshot { number: 4, existing: vec![1, 3, 5, 6, 7, 9] }.to_string();
        assert_eq!(text, "there is no snapshot 4: there are 1, 3, 5 to 7, 9");
    }
}
