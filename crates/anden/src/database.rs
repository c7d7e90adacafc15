//! A database: a directory that holds a graph, or the same in memory.

use std::path::Path;
use std::sync::Arc;

use engine::ErrorKind;
use graph::formats::InputPath;

use crate::parts::Parts;
use crate::pinned::{Pin, Pins};
use crate::{Error, LoadOptions, LoadReport, Options, Result, Session, SnapshotInfo, Stats, VerifyReport, View};

/// A database: a directory that holds the snapshots of a graph.
///
/// One process at a time may have it open for writing, any number for reading. One [in memory](Self::in_memory)
/// has no directory, and is gone with its handle and the views of it.
pub struct Database {
    inner: engine::Database,
    session: Session,
    pins: Arc<Pins>,
    parts: Arc<Parts>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("options", self.options()).finish_non_exhaustive()
    }
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Self {
        let error = match error {
            engine::Error::Memory { what, needed, budget }
            | engine::Error::Lama(lama::Error::Memory { what, needed, budget }) => {
                return Self::Memory { what, needed, budget };
            }
            error @ engine::Error::UniqueViolation { .. } => return Self::UniqueViolation(error.to_string()),
            error => error,
        };
        let text = error.to_string();
        match error.kind() {
            ErrorKind::NotFound => Self::NotFound(text),
            ErrorKind::InvalidInput => Self::InvalidInput(text),
            ErrorKind::Conflict => Self::Conflict(text),
            ErrorKind::Corrupt => Self::Corrupt(text),
            ErrorKind::Locked => Self::Locked(text),
            ErrorKind::Cancelled => Self::Cancelled,
            _ => Self::Io(text),
        }
    }
}

impl From<lama::Error> for Error {
    fn from(error: lama::Error) -> Self {
        engine::Error::from(error).into()
    }
}

/// The options with the session's budget, where they have none of their own.
fn within_memory(options: &LoadOptions, session: &Session) -> LoadOptions {
    LoadOptions { memory: options.memory.or(session.memory()), ..options.clone() }
}

impl Database {
    /// Creates a database without vertices.
    ///
    /// # Errors
    /// Something is at `path` already ([`Error::Conflict`]), or the disk fails.
    pub fn create(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let inner = engine::Database::create(path.as_ref(), options)?;
        Ok(Self::new(inner, &Session::new(0)?))
    }

    /// Creates a database without vertices in memory: with everything that others can, and without files.
    ///
    /// Memory: what the files would take. The lists lie on huge pages where the system grants them.
    ///
    /// ```
    /// use anden::{Changes, Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.append(&Changes::default().add_edge(1, 2).add_edge(2, 3))?;
    /// db.append(&Changes::default().remove_edge(1, 2))?;
    /// assert_eq!((db.snapshot(2)?.num_edges(), db.view()?.num_edges()), (2, 1));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// The options contradict each other, or the system has no memory for it.
    pub fn in_memory(options: Options) -> Result<Self> {
        Ok(Self::new(engine::Database::in_memory(options)?, &Session::new(0)?))
    }

    /// Opens a database as its one writer, with a thread for each core.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Locked`], [`Error::Corrupt`], or it is of a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_in(path, &Session::new(0)?)
    }

    /// As [`open`](Self::open), with the threads, budget and watcher of `session`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(path: impl AsRef<Path>, session: &Session) -> Result<Self> {
        Ok(Self::new(engine::Database::open(path.as_ref())?, session))
    }

    /// Opens a database for reading; never writes, needs no lock.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for the lock.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_read_only_in(path, &Session::new(0)?)
    }

    /// As [`open_read_only`](Self::open_read_only), with the threads, budget and watcher of `session`.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only).
    pub fn open_read_only_in(path: impl AsRef<Path>, session: &Session) -> Result<Self> {
        Ok(Self::new(engine::Database::open_read_only_with(path.as_ref(), session.io())?, session))
    }

    /// Opens the snapshots of a database for reading, without what was committed since the newest of them: until
    /// [`refresh`](Self::refresh), which reads the log, [`view`](Self::view) shows that one. A long log takes no time,
    /// and one that is damaged is no obstacle.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only), but for the log.
    pub fn open_snapshots(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_snapshots_in(path, &Session::new(0)?)
    }

    /// As [`open_snapshots`](Self::open_snapshots), with the threads, budget and watcher of `session`.
    ///
    /// # Errors
    /// As [`open_snapshots`](Self::open_snapshots).
    pub fn open_snapshots_in(path: impl AsRef<Path>, session: &Session) -> Result<Self> {
        Ok(Self::new(engine::Database::open_snapshots_with(path.as_ref(), session.io())?, session))
    }

    /// Creates a database from files. Nothing is left behind if that fails.
    ///
    /// # Errors
    /// Something is at `path` already ([`Error::Conflict`]), an input is not what it should be
    /// ([`Error::InvalidInput`] with file and line), the budget is too small, the disk fails, or the
    /// work was cancelled.
    pub fn load(
        path: impl AsRef<Path>,
        inputs: &[InputPath],
        options: &LoadOptions,
        session: &Session,
    ) -> Result<(Self, LoadReport)> {
        let options = within_memory(options, session);
        let loaded = engine::Database::load(path.as_ref(), inputs, &options, session.pool(), session.progress())?;
        Ok((Self::new(loaded.0, session), loaded.1))
    }

    /// Creates a database [in memory](Self::in_memory) from files, which are only read.
    ///
    /// A budget bounds what the load takes beside the database; edges beyond it wait in memory too.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_in_memory(
        inputs: &[InputPath],
        options: &LoadOptions,
        session: &Session,
    ) -> Result<(Self, LoadReport)> {
        let options = within_memory(options, session);
        let loaded = engine::Database::load_in_memory(inputs, &options, session.pool(), session.progress())?;
        Ok((Self::new(loaded.0, session), loaded.1))
    }

    fn new(inner: engine::Database, session: &Session) -> Self {
        if let Some(bytes) = session.patch_memory() {
            inner.set_patch_memory(bytes);
            inner.set_memory(session.memory());
        }
        Self { inner, session: session.clone(), pins: Arc::default(), parts: Arc::default() }
    }

    pub(crate) fn into_inner(self) -> engine::Database {
        self.inner
    }

    pub(crate) fn inner(&self) -> &engine::Database {
        &self.inner
    }

    /// The kind of graph.
    pub fn options(&self) -> &Options {
        self.inner.options()
    }

    /// Shows what a writer in another process committed since this handle was opened for reading, or refreshed last; true
    /// where that is anything. Views that are there stay as they are. A handle that writes knows already.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only); the handle then goes on showing what it did, or something younger.
    pub fn refresh(&self) -> Result<bool> {
        Ok(self.inner.refresh()?)
    }

    /// Everything that is committed; of a handle that only reads, what was when it was opened, or
    /// [refreshed](Self::refresh).
    ///
    /// # Errors
    /// Damage that was met before.
    pub fn view(&self) -> Result<View> {
        self.view_in(&self.session)
    }

    /// The same, for work with the threads of `session`.
    pub(crate) fn view_in(&self, session: &Session) -> Result<View> {
        let (graph, newest) = (self.inner.view()?, self.inner.newest_number());
        Ok(View::of_everything(graph, session.clone(), self.pin(), newest, &self.parts))
    }

    /// One more view is open.
    pub(crate) fn pin(&self) -> Pin {
        self.pins.pin()
    }

    /// A view of something else.
    pub(crate) fn opened(&self, graph: lama::View, session: &Session, name: String) -> View {
        View::new(graph, session.clone(), self.pin(), name, &self.parts)
    }

    /// Parts of snapshots that are kept, with the files of these.
    pub(crate) fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    /// All snapshots, the oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.inner.snapshots()
    }

    /// What is on disk, what is in memory, and what was done since the database was opened.
    ///
    /// In how many pieces the lists of a vertex lie is not among it: that is a call of its own,
    /// [`View::piece_statistics`], since it reads all lists.
    ///
    /// Cost: a look at every page of the vertex table.
    pub fn stats(&self) -> Stats {
        Stats {
            storage: self.inner.stats(),
            live: self.inner.live_stats(),
            commits: self.inner.commit_stats(),
            views: self.pins.stats(),
            prefetch: self.session.advisor().stats(),
        }
    }

    /// Reads every checksum and holds every structure against the others.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn verify(&self) -> Result<VerifyReport> {
        Ok(self.inner.verify(self.session.pool())?)
    }

    /// The threads, budget and watcher of this handle.
    pub fn session(&self) -> &Session {
        &self.session
    }
}
