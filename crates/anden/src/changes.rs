//! Changes of a database: batches of updates, their options and reports; and checkpoints.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use anden_base::VertexId;
use anden_engine::{Durability, ExclusiveCommit, Missing, Op};

use crate::snapshot::{SnapshotInfo, SnapshotTag, require_short};
use crate::{Database, Error, Result};

pub use anden_engine::{
    AddedEdge, AppendOptions, AppendReport, Applied, Changes, Committed, EdgeAction, EdgeId, EdgeWeight, ExpectedGraph,
    ExpectedWeights, GraphChange, Maintenance, NewEdge, PropertyOf, Update,
};

pub use crate::change_feed::{ChangeFeed, ChangeSet};

/// Options of [`Database::apply_file`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Number of updates in one transaction, at least 1.
    pub batch: usize,
    /// Commits an unfilled batch this long after its first update was read, if the input stalls. Only a pipe, FIFO,
    /// socket or terminal can stall. With zero, the batch is committed as soon as a read would wait.
    pub flush: Duration,
    /// Makes a snapshot after each batch with which this many updates are read since the last one.
    pub checkpoint_every: Option<u64>,
    /// Refuses edges to missing vertices, and removals of missing edges and vertices.
    pub strict: bool,
    /// Durability of each batch; `None`: the durability of the database.
    pub durability: Option<Durability>,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        let flush = Duration::from_millis(100);
        Self { batch: 1000, flush, checkpoint_every: None, strict: false, durability: None }
    }
}

/// The result of [`Database::apply_file`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ApplyReport {
    /// Number of updates applied.
    pub updates: u64,
    /// Number of transactions, one for each batch.
    pub transactions: u64,
    /// Elapsed seconds, reading included.
    pub seconds: f64,
    /// Number of snapshots made in the background because the memtable was full.
    pub automatic_checkpoints: u64,
}

/// Keeps other commits out; see [`Database::keep_others_out`]. It stays on its thread.
#[derive(Debug)]
pub struct CommitGuard<'db> {
    alone: ExclusiveCommit<'db>,
    database: &'db Database,
    /// The right to commit belongs to the thread.
    _thread: PhantomData<*const ()>,
}

impl CommitGuard<'_> {
    /// The guard of the engine, for a commit to this database.
    pub(crate) fn of(&self, database: &Database) -> Result<&ExclusiveCommit<'_>> {
        match Arc::ptr_eq(self.database.inner(), database.inner()) {
            true => Ok(&self.alone),
            false => Err(Error::InvalidInput("cannot commit: the guard belongs to another database".into())),
        }
    }
}

/// All methods fail on a database that is open for reading only.
impl Database {
    /// Waits until no other commit runs, and keeps other commits out until the guard is dropped. For retry loops of
    /// your own, after several conflicts: [`Transaction::commit_alone`](crate::Transaction::commit_alone) then succeeds.
    /// [`transact`](Self::transact) does this by itself.
    ///
    /// The thread that holds the guard must neither wait for a commit of another thread nor commit otherwise.
    ///
    /// ```
    /// use anden::{Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let alone = db.keep_others_out()?;
    /// let mut tx = db.begin()?;
    /// if !tx.has_edge(1, 2)? {
    ///     tx.add_edge(2, 1)?;
    /// }
    /// tx.commit_alone(&alone)?;
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// The database is open for reading only; an earlier commit panicked.
    pub fn keep_others_out(&self) -> Result<CommitGuard<'_>> {
        Ok(CommitGuard { alone: self.inner().be_alone()?, database: self, _thread: PhantomData })
    }

    /// Applies updates in one transaction: all of them, or none. Later views see the updates; existing views do not
    /// change. Adding an edge adds missing end vertices. Removing a missing edge or vertex does nothing.
    ///
    /// When this method returns, the updates are as durable as [`set_durability`](Self::set_durability) says; by
    /// default they survive a power cut. The WAL holds them until a snapshot does. A snapshot is made by
    /// [`checkpoint`](Self::checkpoint), an append, [`close`](Self::close), or in the background once the memtable is
    /// large ([`set_checkpoint_bytes`](Self::set_checkpoint_bytes)).
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("calls.anden");
    /// let db = Database::create(&path, Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3)])?;
    /// let before = db.view()?;
    /// db.apply(&[Update::remove_edge(1, 2)])?;
    /// assert_eq!((before.num_edges(), db.view()?.num_edges()), (2, 1));
    /// db.checkpoint(None)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput): a key, weight or value does not fit the graph.
    /// [`Error::Io`](crate::Error::Io): the WAL cannot be written, and nothing was changed.
    /// [`Error::MustReopen`](crate::Error::MustReopen): a sync failed earlier, so the state on disk is unknown, and the
    /// handle refuses further writes. Damage met on the way. [`Error::update`](crate::Error::update) is the index of an
    /// update that is at fault.
    pub fn apply(&self, updates: &[Update]) -> Result<Applied> {
        Ok(self.inner().apply(updates, Missing::Lenient, self.session().pool())?)
    }

    /// Adds edges without weights, given by numeric keys. Otherwise like [`apply`](Self::apply).
    ///
    /// With dense keys ([`KeyScheme::Dense`](crate::KeyScheme::Dense)) this is the fastest way to add many edges: the
    /// slice is sorted and logged without conversion to [`Update`]s.
    ///
    /// ```
    /// # use anden::{Database, KeyScheme, Options};
    /// let db = Database::in_memory(Options { keys: KeyScheme::Dense, ..Options::default() })?;
    /// db.add_edges(&[(0, 1), (1, 2), (0, 2)])?;
    /// db.remove_edges(&[(1, 2)])?;
    /// assert_eq!(db.view()?.num_edges(), 2);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn add_edges(&self, edges: &[(VertexId, VertexId)]) -> Result<Applied> {
        Ok(self.inner().apply_edges(edges, Op::Insert, self.session().pool())?)
    }

    /// Removes edges given by numeric keys, as [`add_edges`](Self::add_edges) adds them.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn remove_edges(&self, edges: &[(VertexId, VertexId)]) -> Result<Applied> {
        Ok(self.inner().apply_edges(edges, Op::Delete, self.session().pool())?)
    }

    /// Like [`apply`](Self::apply), with this durability.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_with(&self, updates: &[Update], durability: Durability) -> Result<Applied> {
        Ok(self.inner().apply_with(updates, Missing::Lenient, durability, self.session().pool())?)
    }

    /// The default durability of commits; initially [`Durability::Sync`].
    pub fn durability(&self) -> Durability {
        self.inner().durability()
    }

    /// Sets the default durability of commits on this handle.
    pub fn set_durability(&self, durability: Durability) {
        self.inner().set_durability(durability);
    }

    /// Size of the WAL in bytes, including preallocated space.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn log_bytes(&self) -> Result<u64> {
        Ok(self.inner().log_bytes()?)
    }

    /// Size in bytes of all files of the database: snapshots, WAL with its preallocated space, manifest,
    /// and `RESERVE`, which keeps space for changes on a full disk.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("calls.anden");
    /// let db = Database::create(&path, Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2)])?;
    /// let on_disk = std::fs::read_dir(&path)?.map(|entry| entry?.metadata().map(|file| file.len()));
    /// assert_eq!(db.disk_bytes()?, on_disk.sum::<Result<u64, _>>()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn disk_bytes(&self) -> Result<u64> {
        Ok(self.inner().disk_bytes()?)
    }

    /// Like [`apply`](Self::apply), but an edge needs existing end vertices, and a removal an existing edge or vertex.
    ///
    /// # Errors
    /// As [`apply`](Self::apply). [`Error::NotFound`](crate::Error::NotFound): an edge or a vertex does not exist.
    /// Nothing was changed then.
    pub fn apply_strict(&self, updates: &[Update]) -> Result<Applied> {
        Ok(self.inner().apply(updates, Missing::Strict, self.session().pool())?)
    }

    /// Makes a snapshot of everything committed. `tag` is an optional name, or a [`SnapshotTag`] with the time of the
    /// data.
    ///
    /// Cost: grows with the changes since the newest snapshot. Readers and commits go on meanwhile; later commits are
    /// not in this snapshot.
    ///
    /// # Errors
    /// The name is invalid or taken, or the disk fails. Committed changes stay committed.
    pub fn checkpoint<'a>(&self, tag: impl Into<SnapshotTag<'a>>) -> Result<SnapshotInfo> {
        // The engine's message would repeat a long name in full.
        let tag = tag.into();
        require_short(tag.name)?;
        self.cache().yield_budget(self.session());
        if self.inner().live_stats().delta_bytes == 0 {
            // With pending changes, the engine checks the budget for the whole checkpoint.
            self.session().require_writer("a snapshot", 0)?;
        }
        Ok(self.inner().checkpoint(tag)?)
    }

    /// Sets the memtable size in bytes that starts a checkpoint in the background; initially 64 MB. The size grows
    /// several times if updates arrive fast. A WAL of sixteen times this size starts a checkpoint too. Commits wait if
    /// checkpoints fall behind. `None`: no automatic checkpoints.
    pub fn set_checkpoint_bytes(&self, num_bytes: Option<u64>) {
        self.inner().set_checkpoint_bytes(num_bytes);
    }

    /// Limits how many bytes a second background checkpoints and merges write together; initially 100 MB. `None`: no
    /// limit. The limit does not delay a caller that waits for a snapshot.
    pub fn set_background_write_rate(&self, bytes_per_second: Option<u64>) {
        self.inner().set_background_write_rate(bytes_per_second);
    }

    /// Stops background work and makes a snapshot of the memtable, which empties the WAL. Dropping the handle also does
    /// this, but cannot report an error.
    ///
    /// # Errors
    /// Errors of the disk. Durable commits stay in the WAL.
    pub fn close(self) -> Result<()> {
        // The thread that works for futures may still commit, and `finish` ends the database.
        self.inner().wait_for_pollers();
        // A `Pending` may still hold the engine, so a drop cannot end the database here.
        Ok(self.inner().finish()?)
    }
}
