//! Optimistic concurrency control: what a transaction read, held against what was changed since.
//!
//! Commits note in a [`VersionTable`] the epoch of each [`ReadKey`] that they change. A transaction keeps its [`ReadSet`],
//! which the leader of a commit group validates against the table.

mod read_key;
mod read_set;
mod version_table;

pub(crate) use self::read_key::{ReadKey, stored_ends};
pub(crate) use self::read_set::ReadSet;
pub(crate) use self::version_table::{HUGE_BATCH, VersionTable};
use crate::Error;

/// Why a commit did not happen.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// A value that was read has changed.
    Conflict(Conflict),
    Error(Error),
}

/// The cause of a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    Changed(ReadKey),
    /// A key that named no vertex does now.
    Created(lama::Key),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Conflict(conflict) => conflict.into(),
            Failure::Error(error) => error,
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
