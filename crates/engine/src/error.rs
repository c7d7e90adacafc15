//! The error of this crate.

use std::path::PathBuf;

use base::size::{size_at_least, size_at_most};
use graph::property::OwnedValue;

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a database.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed, or the work was cancelled.
    #[error(transparent)]
    Base(#[from] base::Error),
    /// An input is not what it should be.
    #[error(transparent)]
    Graph(#[from] graph::Error),
    /// The database is not what it should be.
    #[error(transparent)]
    Lama(#[from] lama::Error),
    /// There is nothing at the path.
    #[error("{}: there is no database; create one with `anden load`", path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// A database that was opened for reading was to be changed.
    #[error("{}: is open for reading only; open it for writing to change it", path.display())]
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
    /// The live graph cannot hold a change.
    #[error(transparent)]
    Terrace(#[from] terrace::Error),
    /// An update is not right, or names what is not there; nothing of its batch has happened.
    #[error("{error}")]
    Update {
        /// Its place in the batch, from 0.
        index: usize,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// What a transaction read changed before it was committed; nothing of it has happened.
    #[error("{what} changed since the transaction began: try it again")]
    Conflict {
        /// What changed.
        what: String,
    },
    /// A transaction named a vertex that is not there.
    #[error("vertex {key} does not exist")]
    NoVertex {
        /// What it was called.
        key: String,
    },
    /// A transaction or an update named an edge that is not there.
    #[error("there is no edge {}from {source_key} to {target_key}", number.map(|number| format!("#{number} ")).unwrap_or_default())]
    NoEdge {
        /// Where it would start.
        source_key: String,
        /// Where it would lead.
        target_key: String,
        /// Its number, where it is one of several parallel edges.
        number: Option<u64>,
    },
    /// A question named a property that is not there.
    #[error("there is no property {name:?} of vertices{}", nearest.as_ref().map(|known| format!("; did you mean {known:?}?")).unwrap_or_default())]
    NoProperty {
        /// What it was called.
        name: String,
        /// A property with a similar name.
        nearest: Option<String>,
    },
    /// A vertex was to get a value that another one has, and an index says that values are unique. Nothing of the commit
    /// has happened; in a transaction, nothing of the one call.
    #[error(
        "cannot set {property:?} of vertex {key} to {value}: vertex {holder} has this value, and the index is unique; \
         choose another value, or take it away there first"
    )]
    UniqueViolation {
        /// The property.
        property: String,
        /// The value as text.
        value: String,
        /// The vertex that was to get it.
        key: String,
        /// The vertex that has it, or gets it in the same commit.
        holder: String,
    },
    /// An option contradicts another, or the input.
    #[error("{0}")]
    Option(String),
    /// The memory budget is too small.
    #[error("a memory budget of {} is too small: {what} needs at least {}", size_at_most(*budget), size_at_least(*needed))]
    Memory {
        /// What the memory is for.
        what: String,
        /// The least that it can do with.
        needed: u64,
        /// What it may use.
        budget: u64,
    },
}

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing is there: a file, a database, a vertex.
    NotFound,
    /// The input or an option is wrong.
    InvalidInput,
    /// Something else is there or was faster.
    Conflict,
    /// The database is damaged.
    Corrupt,
    /// Another process writes.
    Locked,
    /// The disk or the system failed.
    Io,
    /// The caller wanted it.
    Cancelled,
}

impl Error {
    /// One of several parallel edges is not there.
    pub(crate) fn no_numbered_edge(source: &lama::Key, target: &lama::Key, number: u64) -> Self {
        Self::NoEdge { source_key: source.to_string(), target_key: target.to_string(), number: Some(number) }
    }

    /// Another vertex has the value.
    pub(crate) fn not_unique(property: &str, value: &OwnedValue, key: &impl ToString, holder: &impl ToString) -> Self {
        let value = format!("{:?}", value.as_value().to_string());
        Self::UniqueViolation { property: property.to_owned(), value, key: key.to_string(), holder: holder.to_string() }
    }

    /// There is no such edge.
    pub(crate) fn no_edge(source: &lama::Key, target: &lama::Key) -> Self {
        Self::NoEdge { source_key: source.to_string(), target_key: target.to_string(), number: None }
    }

    /// The category of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Base(error) => base_kind(error),
            Self::Update { error, .. } => error.kind(),
            Self::Graph(graph::Error::Base(error)) => match error {
                // Damage in an input is bad input: the database is whole.
                base::Error::Corrupt { .. } => ErrorKind::InvalidInput,
                error => base_kind(error),
            },
            // What is met below the live graph, as in the snapshot itself.
            Self::Lama(lama::Error::Base(error)) | Self::Terrace(terrace::Error::Base(error)) => base_kind(error),
            Self::Lama(lama::Error::NotFound { .. } | lama::Error::NoSnapshot { .. })
            | Self::NotFound { .. }
            | Self::NoVertex { .. }
            | Self::NoProperty { .. }
            | Self::NoEdge { .. } => ErrorKind::NotFound,
            Self::Lama(lama::Error::Poisoned { .. } | lama::Error::Displaced { .. }) => ErrorKind::Io,
            Self::Lama(lama::Error::Exists { .. } | lama::Error::Replaced { .. }) | Self::Conflict { .. } => {
                ErrorKind::Conflict
            }
            Self::Graph(_)
            | Self::Lama(_)
            | Self::Terrace(_)
            | Self::UniqueViolation { .. }
            | Self::Option(_)
            | Self::Memory { .. }
            | Self::ReadOnly { .. } => ErrorKind::InvalidInput,
        }
    }
}

fn base_kind(error: &base::Error) -> ErrorKind {
    match error {
        base::Error::Corrupt { .. } => ErrorKind::Corrupt,
        base::Error::Locked { .. } | base::Error::Forked { .. } => ErrorKind::Locked,
        base::Error::Cancelled => ErrorKind::Cancelled,
        _ if error.io_kind() == Some(std::io::ErrorKind::NotFound) => ErrorKind::NotFound,
        _ => ErrorKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_damage_wherever_it_is_met() {
        let damage = || base::Error::corrupt("db/run-000001-out-table".as_ref(), 4096, "a checksum does not fit");
        let met: [Error; 3] =
            [damage().into(), lama::Error::from(damage()).into(), terrace::Error::from(damage()).into()];
        assert!(met.iter().all(|error| error.kind() == ErrorKind::Corrupt));
        // Not in what is loaded.
        assert_eq!(Error::from(graph::Error::from(damage())).kind(), ErrorKind::InvalidInput);
    }
}
