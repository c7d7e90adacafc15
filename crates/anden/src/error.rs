//! The error type of the public API: what went wrong, what a caller can do about it, and the cause.

use std::error::Error as StdError;
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::size::{size_at_least, size_at_most};
use anden_graph::property::PropertySchema;

use crate::Key;
use crate::snapshot_id::SnapshotId;

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error, classified by what a caller can do about it.
///
/// The text names the operation, the place (file, line, offset, option) and the expected value.
/// [`source`](StdError::source) is the cause, where there is one of a public type: a [`std::io::Error`], damage
/// ([`ReadError`](crate::graph::ReadError)) or a fault of an input ([`InputError`](crate::load::InputError)).
///
/// ```
/// use anden::error::NotFound;
/// use anden::{Database, Error, Options};
///
/// let view = Database::in_memory(Options::default())?.view()?;
/// match view.vertex(7) {
///     Err(Error::NotFound { what: NotFound::Vertex(key), .. }) => assert_eq!(key, 7.into()),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// Something that the caller named does not exist. Nothing was changed.
    NotFound {
        /// The kind of thing, and its name.
        what: NotFound,
        /// The message.
        reason: Reason,
    },
    /// An input, a parameter or a name is not valid. Nothing was changed.
    InvalidInput(Reason),
    /// The path of a new database, the name of a new snapshot, or a new index exists already. Nothing was changed.
    Exists(Reason),
    /// The handle was opened for reading only.
    ReadOnly(Reason),
    /// Another transaction changed data that this one read. Nothing was changed, and a retry may succeed.
    Conflict(Reason),
    /// Another vertex already has this value of a property with a unique index. Nothing was changed, and a retry fails
    /// too.
    UniqueViolation {
        /// The property.
        property: String,
        /// The vertex that was to get the value.
        vertex: Key,
        /// The vertex that has it.
        holder: Key,
        /// The message.
        reason: Reason,
    },
    /// A file holds bytes that no writer produces.
    Corrupt(Reason),
    /// The database has another format version.
    OtherVersion {
        /// The version of the database.
        found: u32,
        /// The version that this program reads.
        supported: u32,
        /// The message.
        reason: Reason,
    },
    /// The WAL lacks the commits after an epoch, and no snapshot has the epoch, so the changes cannot be given from
    /// there. Begin again from a backup or a copy, and keep more of the WAL
    /// ([`Database::set_keep_wal`](crate::Database::set_keep_wal)).
    EpochGone {
        /// The epoch from which the changes were wanted.
        since: u64,
        /// The next earlier epoch from which there are changes, of a snapshot.
        earlier: Option<u64>,
        /// The next later epoch from which there are changes, or the last epoch.
        later: u64,
        /// The message.
        reason: Reason,
    },
    /// Another process has the database open for writing, or holds a lease on the snapshot; or the process forked.
    Locked(Reason),
    /// This handle cannot commit: a sync failed, a commit panicked, a batch failed half way, or another process
    /// replaced files. Reopen the database.
    MustReopen(Reason),
    /// The operating system reported an error.
    Io(Reason),
    /// The memory budget is too small. Nothing was changed.
    Memory {
        /// The operation that needs the memory.
        what: String,
        /// The smallest budget, in bytes, with which the operation runs.
        needed: u64,
        /// The bytes that the operation may use.
        budget: u64,
    },
    /// The reader closed the pipe that receives the output.
    ClosedPipe,
    /// The graph, or this version of it, lacks what the operation needs.
    Unsupported(Reason),
    /// The caller cancelled the work.
    Cancelled,
    /// A fault of Anden itself. Please report it.
    Internal(Reason),
}

/// A thing that does not exist, with the name that the caller gave.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotFound {
    /// A vertex, by key. A filtered view lacks the vertices that its filter leaves out.
    Vertex(Key),
    /// A vertex, by id.
    VertexId(VertexId),
    /// An edge.
    Edge {
        /// The source.
        source: Key,
        /// The target.
        target: Key,
        /// The number, if the caller named one of several parallel edges.
        number: Option<u64>,
    },
    /// A snapshot, by number or name.
    Snapshot(SnapshotId),
    /// A property of vertices or edges, or the value that one of them was to lose.
    Property(String),
    /// A column of a table.
    Column(String),
    /// An index of a property.
    Index(String),
    /// A database.
    Database(PathBuf),
    /// A file.
    File(PathBuf),
}

/// Why an operation failed: a message, and the error that caused it.
///
/// Converts from text, for errors of your own:
///
/// ```
/// use anden::{Database, Error, Options};
///
/// let db = Database::in_memory(Options::default())?;
/// let refused = db.transact(|_| Err::<(), _>(Error::InvalidInput("one friend is enough".into())));
/// assert_eq!(refused.unwrap_err().to_string(), "one friend is enough");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
// Boxed, so that `Error` stays small in every `Result`.
pub struct Reason(Box<ReasonParts>);

#[derive(Clone)]
struct ReasonParts {
    text: String,
    // An `Arc`, because `Error` is `Clone` and `std::io::Error` is not.
    cause: Option<Arc<dyn StdError + Send + Sync>>,
    /// The index of the update that is at fault.
    update: Option<usize>,
}

impl Reason {
    /// The message.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    fn with_cause(text: impl Into<String>, cause: Arc<dyn StdError + Send + Sync>) -> Self {
        Self(Box::new(ReasonParts { text: text.into(), cause: Some(cause), update: None }))
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self(Box::new(ReasonParts { text, cause: None, update: None }))
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A panic message shows the sentence, not the boxes around it.
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { what, needed, budget } => {
                let (budget, needed) = (size_at_most(*budget), size_at_least(*needed));
                write!(f, "a memory budget of {budget} is too small: {what} needs at least {needed}")
            }
            Self::ClosedPipe => f.write_str("the reader closed the output"),
            Self::Cancelled => f.write_str("cancelled"),
            error => error.reason().map_or(Ok(()), |reason| fmt::Display::fmt(reason, f)),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // Drops the bounds `Send + Sync`, which the signature of the trait lacks.
        let cause: &(dyn StdError + 'static) = self.reason()?.0.cause.as_deref()?;
        Some(cause)
    }
}

impl Error {
    /// The index of the update that is at fault, in the batch that [`Database::apply`](crate::Database::apply) and the
    /// methods like it refused.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let error = db.apply_strict(&[Update::AddVertex(1.into()), Update::remove_edge(1, 2)]).unwrap_err();
    /// assert_eq!(error.update(), Some(1));
    /// # Ok::<(), anden::Error>(())
    /// ```
    pub fn update(&self) -> Option<usize> {
        self.reason()?.0.update
    }

    fn reason(&self) -> Option<&Reason> {
        match self {
            Self::NotFound { reason, .. }
            | Self::UniqueViolation { reason, .. }
            | Self::OtherVersion { reason, .. }
            | Self::EpochGone { reason, .. }
            | Self::InvalidInput(reason)
            | Self::Exists(reason)
            | Self::ReadOnly(reason)
            | Self::Conflict(reason)
            | Self::Corrupt(reason)
            | Self::Locked(reason)
            | Self::MustReopen(reason)
            | Self::Io(reason)
            | Self::Unsupported(reason)
            | Self::Internal(reason) => Some(reason),
            Self::Memory { .. } | Self::ClosedPipe | Self::Cancelled => None,
        }
    }

    /// This error, of the update with this index.
    fn at_update(mut self, index: usize) -> Self {
        match &mut self {
            Self::NotFound { reason, .. }
            | Self::UniqueViolation { reason, .. }
            | Self::InvalidInput(reason)
            | Self::Unsupported(reason) => reason.0.update = Some(index),
            // Faults of the disk and conflicts belong to no single update.
            _ => {}
        }
        self
    }

    pub(crate) fn not_found(what: NotFound, reason: impl Into<Reason>) -> Self {
        Self::NotFound { what, reason: reason.into() }
    }

    /// The error for a vertex `key` that is not in the graph.
    pub(crate) fn no_vertex(key: &Key) -> Self {
        // Without quotes, an empty key would not show.
        let shown = if *key == Key::from("") { "\"\"".to_owned() } else { key.to_string() };
        Self::not_found(NotFound::Vertex(key.clone()), format!("vertex {shown} does not exist"))
    }

    /// Converts an error of a kernel, with keys in place of vertex ids.
    pub(crate) fn with_keys(error: anden_kernels::Error, key: impl Fn(VertexId) -> Result<Key>) -> Self {
        let named = match &error {
            anden_kernels::Error::Weight { kernel, source_vertex, target, weight } => {
                key(*source_vertex).and_then(|source| Ok((source, key(*target)?))).map(|(source, target)| {
                    format!("the edge from {source} to {target} has weight {weight}: {kernel} needs weights of 0 or more")
                })
            }
            anden_kernels::Error::NegativeCycle { kernel, vertex } => key(*vertex).map(|vertex| {
                format!("vertex {vertex} lies on a cycle of negative weight: {kernel} needs cycles of weight 0 or more")
            }),
            anden_kernels::Error::Strength { kernel, vertex, sum, number } => key(*vertex).map(|vertex| {
                format!("the weights from {vertex} come to {sum}: {kernel} needs sums that {number} holds, and one over them")
            }),
            _ => return error.into(),
        };
        // If a key cannot be read, the text with ids must do.
        named.map_or_else(|_| error.into(), |text| Self::InvalidInput(text.into()))
    }

    /// As `from`, for an error of reading an input: damage in an input is bad input, because the database is whole.
    fn of_input(error: anden_base::Error) -> Self {
        match error {
            damage @ anden_base::Error::Corrupt { .. } => {
                Self::InvalidInput(Reason::with_cause(damage.to_string(), Arc::new(damage)))
            }
            error => error.into(),
        }
    }
}

impl From<anden_base::Error> for Error {
    fn from(error: anden_base::Error) -> Self {
        let text = error.to_string();
        match &error {
            anden_base::Error::Io { path, source, .. } => {
                let reason = Reason::with_cause(text, source.clone());
                match source.kind() {
                    // Callers often test for a missing file, so this kind has a variant of its own.
                    ErrorKind::NotFound => Self::NotFound { what: NotFound::File(path.clone()), reason },
                    // A closed pipe is no failure: the command line ends silently, with status 0.
                    ErrorKind::BrokenPipe => Self::ClosedPipe,
                    _ => Self::Io(reason),
                }
            }
            anden_base::Error::Cancelled => Self::Cancelled,
            anden_base::Error::Corrupt { .. } => Self::Corrupt(Reason::with_cause(text, Arc::new(error))),
            // A forked child shares the files of its parent, so its handle is as good as locked.
            anden_base::Error::Locked { .. } | anden_base::Error::Forked { .. } => {
                Self::Locked(Reason::with_cause(text, Arc::new(error)))
            }
            _ => Self::Io(Reason::with_cause(text, Arc::new(error))),
        }
    }
}

impl From<anden_graph::Error> for Error {
    fn from(error: anden_graph::Error) -> Self {
        match error {
            anden_graph::Error::Base(error) => error.into(),
            error => Self::InvalidInput(Reason::with_cause(error.to_string(), Arc::new(error))),
        }
    }
}

impl From<anden_formats::Error> for Error {
    fn from(error: anden_formats::Error) -> Self {
        match error {
            anden_formats::Error::Base(error) => error.into(),
            error => Self::InvalidInput(Reason::with_cause(error.to_string(), Arc::new(error))),
        }
    }
}

impl From<anden_kernels::Error> for Error {
    fn from(error: anden_kernels::Error) -> Self {
        let text = error.to_string();
        match error {
            anden_kernels::Error::Base(error) => error.into(),
            anden_kernels::Error::Unsupported { .. } => Self::Unsupported(text.into()),
            anden_kernels::Error::Memory { kernel, needed, budget } => {
                Self::Memory { what: kernel.into(), needed, budget }
            }
            anden_kernels::Error::NoVertex { vertex, .. } => Self::not_found(NotFound::VertexId(vertex), text),
            _ => Self::InvalidInput(text.into()),
        }
    }
}

impl From<anden_snapshots::Error> for Error {
    fn from(error: anden_snapshots::Error) -> Self {
        use anden_snapshots::Error as Stored;
        let text = error.to_string();
        match error {
            Stored::Base(error) => error.into(),
            Stored::Memory { what, needed, budget } => Self::Memory { what, needed, budget },
            Stored::NotFound { path, .. } => Self::not_found(NotFound::Database(path), text),
            Stored::NoSnapshot { number, .. } => Self::not_found(NotFound::Snapshot(number.into()), text),
            Stored::NoProperty { property, .. } => Self::not_found(NotFound::Property(property), text),
            Stored::NoIndex { property } => Self::not_found(NotFound::Index(property), text),
            Stored::Exists { .. } | Stored::NameTaken { .. } | Stored::IndexExists { .. } => Self::Exists(text.into()),
            Stored::Leased { .. } => Self::Locked(text.into()),
            Stored::ReadOnly { .. } => Self::ReadOnly(text.into()),
            Stored::OtherVersion { found, supported, .. } => {
                Self::OtherVersion { found, supported, reason: text.into() }
            }
            Stored::Poisoned { .. } | Stored::Displaced { .. } | Stored::Replaced { .. } => {
                Self::MustReopen(text.into())
            }
            _ => Self::InvalidInput(text.into()),
        }
    }
}

impl From<anden_engine::Error> for Error {
    fn from(error: anden_engine::Error) -> Self {
        use anden_engine::Error as Failed;
        let text = error.to_string();
        match error {
            Failed::Base(error) => error.into(),
            // These errors come from reading inputs, so the database itself is whole.
            Failed::Graph(anden_graph::Error::Base(error)) | Failed::Formats(anden_formats::Error::Base(error)) => {
                Self::of_input(error)
            }
            Failed::Graph(error) => error.into(),
            Failed::Formats(error) => error.into(),
            Failed::Snapshots(error) => error.into(),
            // The inner error decides the class, and the index only adds the place.
            Failed::Update { index, error } => Self::from(*error).at_update(index),
            Failed::Memory { what, needed, budget } => Self::Memory { what, needed, budget },
            Failed::NotFound { path } => Self::not_found(NotFound::Database(path), text),
            Failed::NoVertex { key } | Failed::NoVertexToRemove { key } => Self::not_found(NotFound::Vertex(key), text),
            Failed::NoEdge { source_key: source, target_key: target, number } => {
                Self::not_found(NotFound::Edge { source, target, number }, text)
            }
            Failed::NoEdgeToRemove { source_key: source, target_key: target } => {
                Self::not_found(NotFound::Edge { source, target, number: None }, text)
            }
            Failed::NoProperty { name: property, .. } | Failed::NoValueToRemove { property, .. } => {
                Self::not_found(NotFound::Property(property), text)
            }
            Failed::EpochGone { since, earlier, later } => {
                Self::EpochGone { since, earlier, later, reason: text.into() }
            }
            Failed::ReadOnly { .. } => Self::ReadOnly(text.into()),
            Failed::Conflict { .. } => Self::Conflict(text.into()),
            Failed::UniqueViolation { property, key, holder, .. } => {
                Self::UniqueViolation { property, vertex: key, holder, reason: text.into() }
            }
            Failed::NoInEdges => Self::Unsupported(text.into()),
            Failed::UnknownCommit | Failed::FailedBatch => Self::MustReopen(text.into()),
            Failed::Internal { .. } => Self::Internal(text.into()),
            _ => Self::InvalidInput(text.into()),
        }
    }
}

/// The error for an unknown property of `whose`.
pub(crate) fn no_property(whose: &str, name: &str, schema: &PropertySchema) -> Error {
    let text = no_such("property", whose, name, schema.iter().map(|(name, _)| name));
    Error::not_found(NotFound::Property(name.to_owned()), text)
}

/// The message for an unknown name: suggests the nearest known name, or lists all of them.
pub(crate) fn no_such<'a>(what: &str, whose: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    // Equal distances go to the smaller name, so the message does not depend on the order.
    match known.iter().map(|known| (strsim::damerau_levenshtein(name, known), known)).min() {
        None => format!("there is no {what} {name:?}: {whose} have none"),
        // A near miss is probably a typing error; a distant name would mislead.
        Some((distance, near)) if distance <= name.chars().count().div_ceil(3) => {
            format!("there is no {what} {name:?} of {whose}; did you mean {near:?}?")
        }
        Some(_) => format!("there is no {what} {name:?}: {whose} have {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(kind: ErrorKind) -> anden_base::Error {
        anden_base::Error::io("open", "there".as_ref(), kind.into())
    }

    #[test]
    fn system_error_is_the_source() {
        for (kind, is_io) in [(ErrorKind::PermissionDenied, true), (ErrorKind::NotFound, false)] {
            let lower = anden_engine::Error::from(anden_snapshots::Error::from(io(kind)));
            let error = Error::from(lower);
            assert_eq!(matches!(error, Error::Io(_)), is_io, "{error:?}");
            let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
            assert_eq!(cause.map(std::io::Error::kind), Some(kind));
            assert!(error.to_string().starts_with("there: cannot open: "), "{error}");
        }
        assert!(matches!(Error::from(io(ErrorKind::BrokenPipe)), Error::ClosedPipe));
    }

    #[test]
    fn damage_of_an_input_is_invalid_input() {
        let damage = || anden_base::Error::corrupt("file".as_ref(), 8, "a checksum does not fit");
        let stored = Error::from(anden_engine::Error::from(damage()));
        assert!(matches!(stored, Error::Corrupt(_)), "{stored:?}");
        let graph = Error::from(anden_engine::Error::from(anden_graph::Error::from(damage())));
        let file = Error::from(anden_engine::Error::from(anden_formats::Error::from(damage())));
        for input in [&graph, &file] {
            assert!(matches!(input, Error::InvalidInput(_)), "{input:?}");
        }
        for error in [stored, graph, file] {
            assert!(error.source().is_some_and(|cause| cause.is::<anden_base::Error>()));
        }
    }

    #[test]
    fn engine_error_keeps_its_class() {
        let failed = Error::from(anden_engine::Error::FailedBatch);
        assert!(matches!(failed, Error::MustReopen(_)), "{failed:?}");
        let fault = Error::from(anden_engine::Error::Internal { what: "a thread panicked".into() });
        assert!(matches!(fault, Error::Internal(_)), "{fault:?}");
        let element = anden_engine::ElementKey::Vertex(9.into());
        let absent = Error::from(anden_engine::Error::NoValueToRemove { element, property: "size".into() });
        assert!(matches!(&absent, Error::NotFound { what: NotFound::Property(name), .. } if name == "size"));
        let many = Error::from(anden_engine::Error::TooMany { what: "vertices".into(), most: 7 });
        assert!(matches!(many, Error::InvalidInput(_)), "{many:?}");
    }

    #[test]
    fn update_keeps_its_index_and_its_class() {
        let missing = anden_engine::Error::NoVertex { key: 9.into() };
        let error = Error::from(anden_engine::Error::Update { index: 3, error: Box::new(missing) });
        assert!(matches!(&error, Error::NotFound { what: NotFound::Vertex(key), .. } if *key == 9.into()));
        assert_eq!((error.update(), error.to_string().as_str()), (Some(3), "vertex 9 does not exist"));
    }
}
