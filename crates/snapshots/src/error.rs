//! The error of this crate.

use std::path::PathBuf;

use anden_base::size::{size_at_least, size_at_most};
use anden_base::storage::LockHolder;
use anden_graph::property::PropertyValue;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a database directory, or of input that is to be written to it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed, a file is damaged, another process holds the lock, or the work was cancelled.
    #[error(transparent)]
    Base(#[from] anden_base::Error),
    /// A new database's path is taken.
    #[error("{}: exists already; choose another path or remove it first", path.display())]
    Exists {
        /// The path of the new database.
        path: PathBuf,
    },
    /// The directory has no database.
    #[error("{}: is no database (there is no {} in it){hint}", path.display(), crate::names::MANIFEST)]
    NotFound {
        /// The path of the directory.
        path: PathBuf,
        /// What the directory has instead, and what to do; or nothing.
        hint: &'static str,
    },
    /// The database has another format version.
    #[error(
        "{}: has format version {found}, this program reads version {supported}; {}",
        path.display(),
        if found > supported { "use a newer program" } else { "load it again" }
    )]
    OtherVersion {
        /// The file with this version.
        path: PathBuf,
        /// The format version of the database.
        found: u32,
        /// The format version that this program reads.
        supported: u32,
    },
    /// The snapshot never existed, or was dropped.
    #[error("there is no snapshot {number}: there are {}", describe(existing))]
    NoSnapshot {
        /// The requested number.
        number: u32,
        /// The existing snapshots, ascending.
        existing: Vec<u32>,
    },
    /// Another process, or another part of this one, holds a lease on the snapshot.
    #[error("cannot drop snapshot {snapshot}: {holder} holds a lease on it ({})", path.display())]
    Leased {
        /// The snapshot.
        snapshot: u32,
        /// The path of the database.
        path: PathBuf,
        /// The holder, as far as it is known.
        holder: LockHolder,
    },
    /// A new snapshot's name is taken.
    #[error("snapshot {number} has the name {name:?} already")]
    NameTaken {
        /// The name.
        name: String,
        /// The snapshot that has it.
        number: u32,
    },
    /// No vertex has the property that is to get an index.
    #[error(
        "cannot create an index of the property {property:?}: no vertex has it{}",
        nearest.as_ref().map(|known| format!("; did you mean {known:?}?")).unwrap_or_default()
    )]
    NoProperty {
        /// The property.
        property: String,
        /// A property with a similar name.
        nearest: Option<String>,
    },
    /// The property has an index already.
    #[error("cannot create an index of the property {property:?}: it has one already; drop that one first")]
    IndexExists {
        /// The property.
        property: String,
    },
    /// The property has no index.
    #[error("cannot drop the index: the property {property:?} of vertices has none")]
    NoIndex {
        /// The property.
        property: String,
    },
    /// The handle is read-only.
    #[error("{}: is open for reading only", path.display())]
    ReadOnly {
        /// The path of the database.
        path: PathBuf,
    },
    /// An earlier change of the manifest failed, and the content of the disk is unknown. Nothing is written until the
    /// database is opened again. Reading goes on.
    #[error("{}: a write failed before; open the database again to write to it", path.display())]
    Poisoned {
        /// The path of the database.
        path: PathBuf,
    },
    /// Another process moved, removed or replaced files of the database while this process had it open for writing.
    /// Nothing is written until the database is opened again. Reading goes on.
    #[error(
        "cannot write: {what} ({}); this process writes no more; put the directory in order and open it again",
        path.display()
    )]
    Displaced {
        /// The path of the database.
        path: PathBuf,
        /// The file, and what happened to it.
        what: String,
    },
    /// The directory holds no newer state of the open database: another database, or an older copy of this one,
    /// replaced it.
    #[error("{}: another database, or an older copy of this one, took its place; open it again", path.display())]
    Replaced {
        /// The path of the database.
        path: PathBuf,
    },
    /// A page of the vertex table would have more edges than its 32-bit offsets can address.
    #[error("vertices {first} to {last} have {num_edges} edges, one page holds at most {}", u32::MAX)]
    PageTooLarge {
        /// The first vertex of the page.
        first: u64,
        /// The last vertex of the page.
        last: u64,
        /// Number of edges of the page, as far as they were counted.
        num_edges: u64,
    },
    /// A rule of retention by days would drop more than half of the snapshots, as it does when the clock jumps.
    #[error(
        "cannot retain days:{days}: that drops {num_dropped} of {num_snapshots} snapshots, created {} to {}, and the \
         clock says {}; correct the clock, or insist by --force (force=True)",
        date(*oldest), date(*youngest), date(*now)
    )]
    DropsMost {
        /// The days of the rule.
        days: u32,
        /// Number of snapshots that the rule drops.
        num_dropped: usize,
        /// Number of all snapshots.
        num_snapshots: usize,
        /// When the oldest of those was created, in seconds since 1970.
        oldest: u64,
        /// When the youngest of those was created.
        youngest: u64,
        /// The time by the clock.
        now: u64,
    },
    /// The memory budget does not suffice.
    #[error("a memory budget of {} is too small: {what} needs at least {}", size_at_most(*budget), size_at_least(*needed))]
    Memory {
        /// The operation.
        what: String,
        /// The least memory that the operation needs, in bytes.
        needed: u64,
        /// The budget, in bytes.
        budget: u64,
    },
    /// The request is not possible, or the input breaks a rule of the format.
    #[error("{0}")]
    Input(String),
}

impl From<anden_graph::Error> for Error {
    fn from(error: anden_graph::Error) -> Self {
        match error {
            anden_graph::Error::Base(error) => Self::Base(error),
            other => Self::Input(other.to_string()),
        }
    }
}

/// `2012-05-31` for a time in seconds since 1970.
fn date(unix_time: u64) -> String {
    let days = i32::try_from(unix_time / SECONDS_PER_DAY).unwrap_or(i32::MAX);
    PropertyValue::Date(days).to_string()
}

/// `1, 2, 5 to 9` for ascending numbers.
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
