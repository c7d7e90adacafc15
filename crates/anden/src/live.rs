//! Updates of the live graph, and snapshots of it.

use std::time::{Duration, Instant};

use base::VertexId;
use engine::{Applied, CommitStats, Durability, Fate, LiveStats, Missing, Update};
use graph::formats::InputPath;

use crate::replay::Replay;
use crate::versions::require_short;
use crate::{Database, Result, SnapshotInfo};

/// How a file of updates is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyOptions {
    /// The updates that are applied together, all or none: at least 1.
    pub batch: usize,
    /// A batch that a pipe, FIFO, socket or terminal leaves unfilled is committed this long after its first update was
    /// read, once the input stalls. Zero commits what was read as soon as nothing more can be read without waiting. A
    /// regular file never stalls.
    pub flush: Duration,
    /// A snapshot is made after each batch that fills so many updates.
    pub checkpoint_every: Option<u64>,
    /// Whether vertices of an edge must be there before it, and what is removed as well.
    pub strict: bool,
    /// What of each batch survives a crash once it is answered; `None`: what is set for the database.
    pub durability: Option<Durability>,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        let flush = Duration::from_millis(100);
        Self { batch: 1000, flush, checkpoint_every: None, strict: false, durability: None }
    }
}

/// What applying a file did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ApplyReport {
    /// Updates that were applied.
    pub updates: u64,
    /// The batches that they made.
    pub transactions: u64,
    /// How long that took, reading included.
    pub seconds: f64,
    /// Snapshots that were made in the background, because there was enough to write.
    pub automatic_checkpoints: u64,
}

/// All methods fail on a database that is open for reading only.
impl Database {
    /// Applies updates, all of them or none; whoever takes a view afterwards sees them, and views that are
    /// there already stay as they are. A vertex of an edge that is added comes with it; what is to be
    /// removed and is not there is gone already.
    ///
    /// When this returns, they survive a power cut, or what else [`set_durability`](Self::set_durability) says. They are
    /// in a log until a snapshot is made of them: by [`checkpoint`](Self::checkpoint) or an append, by
    /// [`close`](Self::close), and in the background once they take enough memory
    /// ([`set_checkpoint_bytes`](Self::set_checkpoint_bytes)). This holds for every kind of graph.
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
    /// [`Error::InvalidInput`](crate::Error::InvalidInput): a key, a weight or a value does not fit the
    /// graph. [`Error::Io`](crate::Error::Io): the log cannot be written; nothing has happened then, and there may be
    /// room for the next; or a sync failed, and it is not known what the disk holds: nothing is written any more until the
    /// database is opened again. Damage that was met.
    pub fn apply(&self, updates: &[Update]) -> Result<Applied> {
        Ok(self.inner().apply(updates, Missing::Lenient, self.session().pool())?)
    }

    /// Adds edges without weights between vertices that are called by numbers, as [`apply`](Self::apply) does.
    ///
    /// Where keys are ids ([`KeyScheme::Dense`](crate::KeyScheme::Dense)), they are sorted and logged straight from where
    /// they are, which is the fastest way to add many.
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
        Ok(self.inner().apply_edges(edges, Fate::Come, self.session().pool())?)
    }

    /// Removes edges, the same way.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn remove_edges(&self, edges: &[(VertexId, VertexId)]) -> Result<Applied> {
        Ok(self.inner().apply_edges(edges, Fate::Go, self.session().pool())?)
    }

    /// As [`apply`](Self::apply), with a durability of its own.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_with(&self, updates: &[Update], durability: Durability) -> Result<Applied> {
        Ok(self.inner().apply_with(updates, Missing::Lenient, durability, self.session().pool())?)
    }

    /// What of a commit that says nothing else survives a crash once it is answered; at first [`Durability::Sync`].
    pub fn durability(&self) -> Durability {
        self.inner().durability()
    }

    /// Sets it, for this handle.
    pub fn set_durability(&self, durability: Durability) {
        self.inner().set_durability(durability);
    }

    /// The bytes of the log, which holds what is committed and in no snapshot; it has room for more.
    ///
    /// # Errors
    /// The disk fails.
    pub fn log_bytes(&self) -> Result<u64> {
        Ok(self.inner().log_bytes()?)
    }

    /// The bytes of all files in the directory of the database: snapshots, the log with its room for more, the manifest.
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
    /// The disk fails.
    pub fn disk_bytes(&self) -> Result<u64> {
        Ok(self.inner().disk_bytes()?)
    }

    /// As [`apply`](Self::apply), but vertices of an edge must be there before it, and what is removed as well.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and where something is missing: nothing has happened then.
    pub fn apply_strict(&self, updates: &[Update]) -> Result<Applied> {
        Ok(self.inner().apply(updates, Missing::Strict, self.session().pool())?)
    }

    /// Makes a snapshot of everything that is committed.
    ///
    /// Cost: grows with what was committed since the newest snapshot. Nobody waits for it who reads or commits; what is
    /// committed meanwhile is not in this snapshot.
    ///
    /// # Errors
    /// The name is no name or taken, or the disk fails: what is committed stays.
    pub fn checkpoint(&self, name: Option<&str>) -> Result<SnapshotInfo> {
        require_short(name)?;
        if self.live_stats().delta_bytes == 0 {
            // With something to write, the engine asks for all that it takes.
            self.session().require_writer("a snapshot", 0)?;
        }
        Ok(self.inner().checkpoint(name)?)
    }

    /// Sets how many bytes of updates are in memory when a snapshot is made of them in the background; at first 64 MB,
    /// and up to four times as many where updates come fast; or in the log, sixteen times as many. Who commits faster than
    /// that is written waits. `None`: snapshots are made only when they are asked for.
    pub fn set_checkpoint_bytes(&self, num_bytes: Option<u64>) {
        self.inner().set_checkpoint_bytes(num_bytes);
    }

    /// Sets how many bytes a second such snapshots, and the merges that follow them, write at most together; at first
    /// 100 MB. `None`: as many as they can. Nobody waits for a snapshot longer because of it.
    pub fn set_background_write_rate(&self, bytes_per_second: Option<u64>) {
        self.inner().set_background_write_rate(bytes_per_second);
    }

    /// What was committed since the database was opened: commits, conflicts, groups, and how long they took.
    pub fn commit_stats(&self) -> CommitStats {
        self.inner().commit_stats()
    }

    /// What is committed and in memory only, and what is done about it.
    pub fn live_stats(&self) -> LiveStats {
        self.inner().live_stats()
    }

    /// Ends what works in the background, and makes a snapshot of what the newest one lacks; the log is empty then.
    /// Dropping the handle does the same, but cannot say whether it went well.
    ///
    /// # Errors
    /// The disk fails: what was committed since the newest snapshot is in the log, as far as it was durable.
    pub fn close(self) -> Result<()> {
        Ok(self.into_inner().close()?)
    }

    /// Applies the updates of a file, batch after batch; `answered` is called with the number of the last line of each
    /// batch once that is committed, and as durable as it is to be.
    ///
    /// Small batches are committed together, and synced once; each is a transaction all the same. With a memory budget, or
    /// where nothing may be missing, they are committed one by one. Before a line of a pipe has to be waited for, all whole
    /// batches are answered; the last, unfilled one is committed after [`flush`](ApplyOptions::flush). Where a line is
    /// wrong, its batch has not happened, nor has any behind it; those before it have. The same holds for a cancelled
    /// replay: a batch that was being read has not happened.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), with file and line; what `answered` returns, when batches behind the one that was to be
    /// answered may have happened; the work was cancelled; the budget is too small for a batch.
    pub fn apply_file(
        &self,
        input: &InputPath,
        options: &ApplyOptions,
        answered: impl FnMut(u64) -> Result<()>,
    ) -> Result<ApplyReport> {
        self.session().require_writer("applying updates", 0)?;
        let start = Instant::now();
        let automatic_before = self.live_stats().automatic_checkpoints;
        let mut report = Replay::new(self, input, options, answered)?.run()?;
        report.seconds = start.elapsed().as_secs_f64();
        report.automatic_checkpoints = self.live_stats().automatic_checkpoints - automatic_before;
        Ok(report)
    }
}
