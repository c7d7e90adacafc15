//! Options of opening a database.

use std::path::Path;

use anden_engine::Engine;

use crate::session::Io;
use crate::{Database, Result, Session};

/// Options of [`Database::open_with`]. The default opens for writing, with one thread for each core and no memory
/// budget, as [`Database::open`] does.
///
/// ```
/// use anden::{Database, OpenOptions, Options, Session};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("calls.anden");
/// Database::create(&path, Options::default())?.close()?;
/// let options = OpenOptions { read_only: true, threads: 2, memory: Some(1 << 30), ..OpenOptions::default() };
/// let reader = Database::open_with(&path, &options)?;
///
/// // Two databases can share the threads and the budget of one session.
/// let session = Session::new(2)?;
/// let writer = Database::open_with(&path, &OpenOptions::from(&session))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Opens for reading only. The handle writes nothing and takes no lock, so any number of processes may read beside
    /// the writer.
    pub read_only: bool,
    /// Opens the snapshots for reading, without the WAL. Opening is fast even if the WAL is long, and succeeds even if
    /// the WAL is damaged. [`Database::view`] shows the newest snapshot until [`Database::refresh`] reads the WAL.
    pub snapshots_only: bool,
    /// How a handle that only reads gets the bytes of files.
    pub io: Io,
    /// Number of worker threads; 0: one for each core.
    pub threads: usize,
    /// The memory budget in bytes; see [`Session::with_memory`].
    pub memory: Option<u64>,
    /// Takes threads, budget and progress of this session, in place of `threads` and `memory`.
    pub session: Option<Session>,
}

impl From<&Session> for OpenOptions {
    fn from(session: &Session) -> Self {
        Self { session: Some(session.clone()), ..Self::default() }
    }
}

impl Database {
    /// Opens a database for writing, with one thread for each core.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound), [`Error::Locked`](crate::Error::Locked),
    /// [`Error::Corrupt`](crate::Error::Corrupt). The database has another format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &OpenOptions::default())
    }

    /// Opens a database for reading. The handle writes nothing and takes no lock.
    ///
    /// # Errors
    /// As [`open`](Self::open), without [`Error::Locked`](crate::Error::Locked).
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &OpenOptions { read_only: true, ..OpenOptions::default() })
    }

    /// Opens a database with [`OpenOptions`].
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`open_read_only`](Self::open_read_only). The system cannot start a thread.
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let session = match &options.session {
            // A given session wins, because other databases share its threads and budget.
            Some(session) => session.clone(),
            None => Session::new(options.threads)?.with_memory(options.memory),
        };
        let engine = match options {
            // Matched first: `snapshots_only` implies reading, whatever `read_only` says.
            OpenOptions { snapshots_only: true, io, .. } => Engine::open_snapshots_with(path, *io)?,
            OpenOptions { read_only: true, io, .. } => Engine::open_read_only_with(path, *io)?,
            _ => Engine::open(path)?,
        };
        Ok(Self::new(engine, &session))
    }
}
