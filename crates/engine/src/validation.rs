//! Optimistic concurrency control: validates read sets against later changes.
//!
//! Commits note the epoch of each [`ReadKey`] that they change in a [`VersionTable`]. A transaction keeps its
//! [`ReadSet`]. The leader of a commit group validates the set against the table.

mod read_key;
mod read_set;
mod version_table;

pub(crate) use self::read_key::{ReadKey, stored_ends};
pub(crate) use self::read_set::ReadSet;
pub(crate) use self::version_table::{HUGE_BATCH, VersionTable};
use crate::Error;

/// Why a commit did not happen.
#[derive(Clone, Debug)]
pub(crate) enum CommitFailure {
    /// A value that was read has changed.
    Conflict(Conflict),
    Error(Error),
}

/// The cause of a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    Changed(ReadKey),
    /// A key that named no vertex names one now.
    Created(anden_snapshots::Key),
}

impl From<Error> for CommitFailure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<CommitFailure> for Error {
    fn from(failure: CommitFailure) -> Self {
        match failure {
            CommitFailure::Conflict(conflict) => conflict.into(),
            CommitFailure::Error(error) => error,
        }
    }
}

impl From<Conflict> for Error {
    fn from(conflict: Conflict) -> Self {
        let what = match conflict {
            Conflict::Changed(item) => item.to_string(),
            Conflict::Created(key) => format!("the existence of vertex {key}"),
        };
        Self::Conflict { what }
    }
}
