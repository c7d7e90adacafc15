//! The error of this crate.

use std::fmt;
use std::path::PathBuf;

use anden_base::MAX_VERTICES;
use anden_base::message::shown;
use anden_base::size::{size_at_least, size_at_most};
use anden_graph::property::OwnedValue;
use anden_snapshots::{Key, KeyScheme};

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a database operation.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed, or the work was cancelled.
    #[error(transparent)]
    Base(#[from] anden_base::Error),
    /// An input is malformed.
    #[error(transparent)]
    Formats(#[from] anden_formats::Error),
    /// Property values break a rule.
    #[error(transparent)]
    Graph(#[from] anden_graph::Error),
    /// The store refused an operation, or is damaged.
    #[error(transparent)]
    Snapshots(#[from] anden_snapshots::Error),
    /// The path does not exist.
    #[error("{}: there is no database; create one with `anden load`", path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// A write to a database that was opened for reading.
    #[error("{}: is open for reading only; open it for writing to change it", path.display())]
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
    /// The memtable cannot hold a change.
    #[error(transparent)]
    Memtable(anden_memtable::Error),
    /// An update is invalid, or names something that does not exist; nothing of its batch has happened.
    #[error("{error}")]
    Update {
        /// Its index in the batch, from 0.
        index: usize,
        /// The reason.
        error: Box<Error>,
    },
    /// A read key of the transaction changed before the commit; nothing of it has happened.
    #[error("{what} changed since the transaction began: try it again")]
    Conflict {
        /// The read key, described.
        what: String,
    },
    /// A transaction, or an update of a strict batch, named a vertex that does not exist.
    #[error("vertex {key} does not exist")]
    NoVertex {
        /// Its key.
        key: Key,
    },
    /// A strict batch removes a vertex that does not exist.
    #[error("there is no vertex {key} to remove")]
    NoVertexToRemove {
        /// Its key.
        key: Key,
    },
    /// A strict batch removes an edge that does not exist.
    #[error("there is no edge from {source_key} to {target_key} to remove")]
    NoEdgeToRemove {
        /// The key of its source.
        source_key: Key,
        /// The key of its target.
        target_key: Key,
    },
    /// A transaction or an update named an edge that does not exist.
    #[error("there is no edge {}from {source_key} to {target_key}", number.map(|number| format!("#{number} ")).unwrap_or_default())]
    NoEdge {
        /// The key of its source.
        source_key: Key,
        /// The key of its target.
        target_key: Key,
        /// Its number, if it is one of several parallel edges.
        number: Option<u64>,
    },
    /// A query named a property that does not exist, or a change removes a value of one.
    #[error("there is no property {name:?} of {of}{}", nearest.as_ref().map(|known| format!("; did you mean {known:?}?")).unwrap_or_default())]
    NoProperty {
        /// Its owner.
        of: PropertyOf,
        /// Its name.
        name: String,
        /// A property with a similar name.
        nearest: Option<String>,
    },
    /// A strict batch removes a property value that does not exist.
    #[error("cannot remove {property:?} of {element}: there is no value")]
    NoValueToRemove {
        /// The vertex or the edge.
        element: ElementKey,
        /// The property.
        property: String,
    },
    /// A key, a value or a change does not fit the graph's vertices.
    #[error("vertex {}: {reason}", shown_key(key))]
    InvalidVertex {
        /// The key of the vertex.
        key: Key,
        /// The reason.
        reason: String,
    },
    /// A weight, a number or a change does not fit the graph's edges.
    #[error("{}: {reason}", EdgeName(source_key, target_key, *number))]
    InvalidEdge {
        /// The key of its source.
        source_key: Key,
        /// The key of its target.
        target_key: Key,
        /// Its number, if the caller named one of several parallel edges.
        number: Option<u64>,
        /// The reason.
        reason: String,
    },
    /// A value does not fit the type of its property.
    #[error(
        "{}property {property:?}: expected {expected}, found {found}",
        element.as_ref().map(|element| format!("{element}: ")).unwrap_or_default()
    )]
    InvalidValue {
        /// The property.
        property: String,
        /// The vertex or the edge that was to get the value; `None` in a search. Boxed to keep errors small.
        element: Option<Box<ElementKey>>,
        /// The values that the property takes, described.
        expected: String,
        /// The value, quoted and cut short.
        found: String,
    },
    /// Another vertex has the value, and a unique index forbids it twice. Nothing of the commit has happened; in a
    /// transaction, nothing of the call.
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
        key: Key,
        /// The vertex that has it, or gets it in the same commit.
        holder: Key,
    },
    /// A transaction reads in-lists, and the graph has none.
    #[error("in-neighbors need in-edges: load without --out-only")]
    NoInEdges,
    /// A commit panicked, so this commit may have happened or not.
    #[error("commit state unknown after a panic; reopen the database")]
    UnknownCommit,
    /// A commit of the same [`Sequence`](crate::Sequence) was refused before this one.
    #[error("cannot commit: an earlier commit of the sequence was refused")]
    SequenceEnded,
    /// A batch failed half way, so no commit can follow it. Readers are not affected.
    #[error(
        "cannot commit: an earlier batch failed half way; make a checkpoint, which keeps the commits before that batch"
    )]
    FailedBatch,
    /// The graph or the input exceeds a limit of the format.
    #[error("too many {what}: at most {most} are possible")]
    TooMany {
        /// The things that are counted, in the plural.
        what: String,
        /// The limit.
        most: u64,
    },
    /// Options contradict each other, the input or the graph.
    #[error("{reason}")]
    Options {
        /// The reason.
        reason: String,
    },
    /// The WAL lacks the commit after an epoch, and no snapshot has the epoch, so the change feed cannot go on from
    /// there.
    #[error(
        "cannot give the changes since epoch {since}: the WAL no longer has them, and no snapshot has this epoch; there \
         are changes since epoch {}{later}. Begin again from a backup or a copy of epoch {later} or later, and keep more \
         of the WAL: `anden retain --keep-wal`",
        earlier.map(|epoch| format!("{epoch} and ")).unwrap_or_default()
    )]
    EpochGone {
        /// The epoch from which the changes were wanted.
        since: u64,
        /// The next earlier epoch from which there are changes, of a snapshot.
        earlier: Option<u64>,
        /// The next later epoch from which there are changes, or the last epoch.
        later: u64,
    },
    /// A fault of this program: a thread panicked, or two of its parts disagree.
    #[error("internal error: {what}; please report it")]
    Internal {
        /// The fault.
        what: String,
    },
    /// The memory budget is too small.
    #[error("a memory budget of {} is too small: {what} needs at least {}", size_at_most(*budget), size_at_least(*needed))]
    Memory {
        /// The purpose of the memory.
        what: String,
        /// The least that suffices, in bytes.
        needed: u64,
        /// The budget, in bytes.
        budget: u64,
    },
}

/// A vertex or an edge, as a caller names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElementKey {
    /// A vertex.
    Vertex(Key),
    /// An edge.
    Edge {
        /// The key of its source.
        source_key: Key,
        /// The key of its target.
        target_key: Key,
        /// Its number, if the caller named one of several parallel edges.
        number: Option<u64>,
    },
}

impl ElementKey {
    pub(crate) fn edge((source, target): (&Key, &Key)) -> Self {
        Self::Edge { source_key: source.clone(), target_key: target.clone(), number: None }
    }
}

impl fmt::Display for ElementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vertex(key) => write!(f, "vertex {key}"),
            Self::Edge { source_key, target_key, number } => EdgeName(source_key, target_key, *number).fmt(f),
        }
    }
}

/// An edge in a message.
struct EdgeName<'a>(&'a Key, &'a Key, Option<u64>);

impl fmt::Display for EdgeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(source, target, number) = self;
        match number {
            Some(number) => write!(f, "the edge #{number} from {source} to {target}"),
            None => write!(f, "the edge from {source} to {target}"),
        }
    }
}

/// The longest string key that a message shows whole, in bytes.
const MAX_SHOWN_KEY: usize = 60;

/// A key in a message. A key may be refused because it is empty or very long: it is quoted and cut short.
fn shown_key(key: &Key) -> String {
    match key {
        Key::String(text) if text.is_empty() || text.len() > MAX_SHOWN_KEY => shown(text.as_bytes()),
        key => key.to_string(),
    }
}

// Every result of the engine has room for an error.
const _: () = assert!(size_of::<Error>() <= 104);

/// The owner of a property.
// A transaction indexes its own values by the variant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyOf {
    /// Vertices have the property.
    Vertices,
    /// Edges have the property.
    Edges,
}

impl fmt::Display for PropertyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vertices => "vertices",
            Self::Edges => "edges",
        })
    }
}

/// Classes of errors, by the caller's remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file, a database, a vertex or another named thing does not exist.
    NotFound,
    /// The input or an option is wrong.
    InvalidInput,
    /// Something else exists already, or another transaction was faster.
    Conflict,
    /// The database is damaged.
    Corrupt,
    /// Another process writes.
    Locked,
    /// The disk or the system failed.
    Io,
    /// The caller cancelled the work.
    Cancelled,
    /// A fault of this program.
    Internal,
}

impl Error {
    pub(crate) fn invalid_vertex(key: &Key, reason: impl Into<String>) -> Self {
        Self::InvalidVertex { key: key.clone(), reason: reason.into() }
    }

    pub(crate) fn invalid_edge((source, target): (&Key, &Key), reason: impl Into<String>) -> Self {
        let (source_key, target_key) = (source.clone(), target.clone());
        Self::InvalidEdge { source_key, target_key, number: None, reason: reason.into() }
    }

    /// A value of an edge in a graph without edge properties.
    pub(crate) fn no_edge_properties(ends: (&Key, &Key)) -> Self {
        Self::invalid_edge(ends, "the graph was loaded without properties of edges")
    }

    /// A change of one edge by its number, in a graph that is no multigraph.
    pub(crate) fn no_edge_numbers(ends: (&Key, &Key), number: u64) -> Self {
        let reason = "edges have numbers in multigraphs only, which are loaded with --duplicates keep";
        Self::invalid_edge(ends, reason).with_number(number)
    }

    /// There is no id for a new vertex. A dense key is its own id, so the key is at fault.
    pub(crate) fn no_id_left(key: &Key, keys: KeyScheme) -> Self {
        match keys {
            KeyScheme::Dense => Self::invalid_vertex(key, format!("a dense id is at most {}", MAX_VERTICES - 1)),
            _ => Self::too_many("vertices", MAX_VERTICES as u64),
        }
    }

    pub(crate) fn too_many(what: &str, most: u64) -> Self {
        Self::TooMany { what: what.to_owned(), most }
    }

    pub(crate) fn options(reason: impl Into<String>) -> Self {
        Self::Options { reason: reason.into() }
    }

    pub(crate) fn internal(what: impl Into<String>) -> Self {
        Self::Internal { what: what.into() }
    }

    /// The error for a value, with the vertex or edge that was to get the value.
    fn for_element(mut self, named: impl FnOnce() -> ElementKey) -> Self {
        // The first name stays: an inner call knows the element best.
        if let Self::InvalidValue { element: element @ None, .. } = &mut self {
            *element = Some(Box::new(named()));
        }
        self
    }

    pub(crate) fn for_vertex(self, key: &Key) -> Self {
        self.for_element(|| ElementKey::Vertex(key.clone()))
    }

    pub(crate) fn for_edge(self, ends: (&Key, &Key)) -> Self {
        self.for_element(|| ElementKey::edge(ends))
    }

    /// The error for one of several parallel edges.
    pub(crate) fn with_number(mut self, edge: u64) -> Self {
        match &mut self {
            Self::InvalidEdge { number, .. } => *number = Some(edge),
            Self::InvalidValue { element: Some(element), .. } => {
                if let ElementKey::Edge { number, .. } = &mut **element {
                    *number = Some(edge);
                }
            }
            _ => {}
        }
        self
    }

    /// One of several parallel edges does not exist.
    pub(crate) fn no_numbered_edge(source: &Key, target: &Key, number: u64) -> Self {
        Self::NoEdge { source_key: source.clone(), target_key: target.clone(), number: Some(number) }
    }

    /// Another vertex has the value.
    pub(crate) fn not_unique(property: &str, value: &OwnedValue, key: Key, holder: Key) -> Self {
        let value = format!("{:?}", value.as_value().to_string());
        Self::UniqueViolation { property: property.to_owned(), value, key, holder }
    }

    /// No edge joins these vertices.
    pub(crate) fn no_edge(source: &Key, target: &Key) -> Self {
        Self::NoEdge { source_key: source.clone(), target_key: target.clone(), number: None }
    }

    /// The category of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Base(error) => base_kind(error),
            Self::Update { error, .. } => error.kind(),
            Self::Formats(anden_formats::Error::Base(error)) | Self::Graph(anden_graph::Error::Base(error)) => {
                match error {
                    // Damage in an input file is bad input: the database itself is whole.
                    anden_base::Error::Corrupt { .. } => ErrorKind::InvalidInput,
                    error => base_kind(error),
                }
            }
            Self::Snapshots(anden_snapshots::Error::Base(error)) => base_kind(error),
            Self::Snapshots(anden_snapshots::Error::Leased { .. }) => ErrorKind::Locked,
            Self::Snapshots(
                anden_snapshots::Error::NotFound { .. }
                | anden_snapshots::Error::NoSnapshot { .. }
                | anden_snapshots::Error::NoProperty { .. }
                | anden_snapshots::Error::NoIndex { .. },
            )
            | Self::NotFound { .. }
            | Self::NoVertex { .. }
            | Self::NoVertexToRemove { .. }
            | Self::NoEdgeToRemove { .. }
            | Self::NoProperty { .. }
            | Self::NoValueToRemove { .. }
            | Self::NoEdge { .. } => ErrorKind::NotFound,
            // The remedy for a broken handle is that for a failed disk: reopen the database.
            Self::Snapshots(anden_snapshots::Error::Poisoned { .. } | anden_snapshots::Error::Displaced { .. })
            | Self::FailedBatch
            | Self::UnknownCommit => ErrorKind::Io,
            Self::Internal { .. } => ErrorKind::Internal,
            Self::Snapshots(anden_snapshots::Error::Exists { .. } | anden_snapshots::Error::Replaced { .. })
            | Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Formats(_)
            | Self::Graph(_)
            | Self::Snapshots(_)
            | Self::Memtable(_)
            | Self::UniqueViolation { .. }
            | Self::NoInEdges
            | Self::InvalidVertex { .. }
            | Self::InvalidEdge { .. }
            | Self::InvalidValue { .. }
            | Self::SequenceEnded
            | Self::TooMany { .. }
            | Self::Options { .. }
            | Self::Memory { .. }
            | Self::EpochGone { .. }
            | Self::ReadOnly { .. } => ErrorKind::InvalidInput,
        }
    }
}

impl From<anden_memtable::Error> for Error {
    fn from(error: anden_memtable::Error) -> Self {
        match error {
            // Errors below the memtable count like those of the snapshot itself.
            anden_memtable::Error::Base(error) => Self::Base(error),
            error => Self::Memtable(error),
        }
    }
}

fn base_kind(error: &anden_base::Error) -> ErrorKind {
    match error {
        anden_base::Error::Corrupt { .. } => ErrorKind::Corrupt,
        // For a forked child, another process holds the database: its parent.
        anden_base::Error::Locked { .. } | anden_base::Error::Forked { .. } => ErrorKind::Locked,
        anden_base::Error::Cancelled => ErrorKind::Cancelled,
        _ if error.io_kind() == Some(std::io::ErrorKind::NotFound) => ErrorKind::NotFound,
        _ => ErrorKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_damage_wherever_it_is_met() {
        let damage =
            || anden_base::Error::corrupt("db/base-000001-out-table".as_ref(), 4096, "a checksum does not fit");
        let met: [Error; 3] = [
            damage().into(),
            anden_snapshots::Error::from(damage()).into(),
            anden_memtable::Error::from(damage()).into(),
        ];
        assert!(met.iter().all(|error| error.kind() == ErrorKind::Corrupt));
        // Damage in an input that is loaded is bad input.
        assert_eq!(Error::from(anden_formats::Error::from(damage())).kind(), ErrorKind::InvalidInput);
        assert_eq!(Error::from(anden_graph::Error::from(damage())).kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn messages_name_the_vertex_or_edge() {
        let (a, b) = (Key::from("a"), Key::from("b"));
        let wrong = || Error::InvalidValue {
            property: "size".into(),
            element: None,
            expected: "a value of type i64".into(),
            found: "'x'".into(),
        };
        let of_value = "property \"size\": expected a value of type i64, found 'x'";
        let long = Key::from("k".repeat(1 << 16).as_str());
        for (error, expected) in [
            (wrong(), of_value.to_owned()),
            (wrong().for_vertex(&a), format!("vertex a: {of_value}")),
            (wrong().for_edge((&a, &b)), format!("the edge from a to b: {of_value}")),
            (wrong().for_edge((&a, &b)).with_number(3), format!("the edge #3 from a to b: {of_value}")),
            (Error::invalid_edge((&a, &b), "no").with_number(0), "the edge #0 from a to b: no".into()),
            (Error::invalid_vertex(&"".into(), "no"), "vertex '': no".into()),
            (Error::invalid_vertex(&long, "no"), format!("vertex '{}…': no", "k".repeat(60))),
            (Error::too_many("rows", 7), "too many rows: at most 7 are possible".into()),
        ] {
            assert_eq!((error.to_string(), error.kind()), (expected, ErrorKind::InvalidInput));
        }
    }
}
