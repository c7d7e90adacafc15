//! The change feed: committed changes in their order, out of the WAL, and their application to a replica.
//!
//! The feed gives durable commits only: a consumer never sees a commit that a power cut then takes from the database.
//! It gives no commit that is not published. Segments of commits that a snapshot has stay in the directory up to
//! [`Engine::keep_wal`] bytes. Where the WAL lacks a commit, the net changes up to the next snapshot take its place:
//! behind a checkpoint without kept segments, and for appends and very large batches, which skip the WAL.

use std::path::PathBuf;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_snapshots::{GraphOptions, SnapshotSteps, SnapshotView};

use crate::live::{CommitRecord, NetChanges, encode_step};
use crate::log::{FeedRecord, LogFeed, LogPlace};
use crate::{Engine, Error, Result};

/// Attempts to open the segments while a writer removes some of them.
const MAX_ATTEMPTS: usize = 1000;

/// Records in the order of their epochs; see [`Engine::changes`]. Reads one segment of the WAL, or the changes of one
/// snapshot, at a time. Ends after an error.
#[derive(Debug)]
pub struct RecordFeed {
    log: LogFeed,
    steps: SnapshotSteps,
    view: Arc<SnapshotView>,
    /// The directory, for messages.
    path: PathBuf,
    /// Bytes that the changes of a snapshot may take.
    memory: Option<u64>,
    /// The epoch of the last record that was given.
    last: u64,
    /// The epoch through which records are given.
    until: u64,
}

impl Iterator for RecordFeed {
    type Item = Result<CommitRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.last >= self.until {
            return None;
        }
        let record = self.read();
        self.last = record.as_ref().map_or(self.until, CommitRecord::epoch);
        Some(record)
    }
}

impl RecordFeed {
    /// The next record: that of the WAL, or else the net changes up to the next snapshot.
    fn read(&mut self) -> Result<CommitRecord> {
        let view = Arc::clone(&self.view);
        if let Some(FeedRecord { epoch, payload, path, offset }) = self.log.after(self.last)? {
            return Ok(CommitRecord { epoch, payload, path, offset, net: None, view });
        }
        let Some(step) = self.steps.after(self.last)? else { return Err(self.gone()) };
        Ok(CommitRecord {
            epoch: step.epoch,
            payload: encode_step(&step, self.memory)?,
            path: self.path.clone(),
            offset: 0,
            net: Some(NetChanges { since: self.last, next_row: step.next_row }),
            view,
        })
    }

    /// The error for a next commit that neither the WAL nor a snapshot leads to.
    fn gone(&mut self) -> Error {
        if let Some(error) = self.log.torn_header() {
            return error;
        }
        let Self { last: since, until, .. } = *self;
        let later = self.steps.epochs().chain(self.log.later_epochs()).filter(|&epoch| epoch > since).min();
        Error::EpochGone {
            since,
            earlier: self.steps.epochs().filter(|&epoch| epoch < since).max(),
            later: later.map_or(until, |later| later.min(until)),
        }
    }
}

impl Engine {
    /// Bytes of WAL segments that stay for [`changes`](Self::changes), although a snapshot has their commits.
    pub fn keep_wal(&self) -> u64 {
        self.store().keep_wal()
    }

    /// Sets, for good, how many bytes of WAL segments stay although a snapshot has their commits; initially 0. Whole
    /// segments of up to 64 MB are kept, the youngest ones. More go at once, the oldest first.
    ///
    /// # Errors
    /// The handle cannot write, or the disk failed.
    pub fn set_keep_wal(&self, num_bytes: u64) -> Result<()> {
        self.require_writer()?;
        self.store().set_keep_wal(num_bytes)?;
        self.live().trim_log(self.store());
        Ok(())
    }

    /// The least epoch after which the WAL has all commits, but for those that skipped it. From here on,
    /// [`changes`](Self::changes) takes each epoch; before, it takes those of snapshots.
    ///
    /// # Errors
    /// The disk failed.
    pub fn oldest_epoch(&self) -> Result<u64> {
        self.log_place().oldest_epoch(self.store().epoch())
    }

    fn log_place(&self) -> LogPlace<'_> {
        let store = self.store();
        LogPlace { storage: &**store.storage(), directory: store.path(), id: store.id() }
    }

    /// The commits after the epoch `since`, in order, one record for each commit group: those that this handle
    /// shows and that are durable by now. The next call goes on from the epoch of the last record. A database that
    /// was created empty begins with epoch 0.
    ///
    /// Where the WAL lacks the next commit, and a snapshot has the epoch before it, the next record has the
    /// [net](CommitRecord::is_net) changes up to the next younger snapshot.
    ///
    /// A handle that only reads shows the commits of its last [`refresh`](Self::refresh). Those whose durability no
    /// later record or mark states yet come with a later call.
    ///
    /// Cost: reads the segment with the commit after `since`, and those that follow; one segment is in memory, or the
    /// changes of one snapshot.
    ///
    /// # Errors
    /// `since` is later than the last commit; the database is in memory and so has no WAL; the disk failed. The
    /// iterator returns damage, [`Error::EpochGone`] if neither the WAL nor a snapshot leads on, and [`Error::Memory`].
    pub fn changes(&self, since: u64) -> Result<RecordFeed> {
        self.require_here()?;
        if !self.is_read_only() && !self.live().has_log() {
            return Err(Error::options("a database in memory has no WAL, and so no change feed"));
        }
        // A snapshot that is a commit of its own is published a moment before its epoch.
        let shown = self.epoch().max(self.store().epoch());
        if since > shown {
            return Err(Error::options(format!(
                "cannot give the changes since epoch {since}: the last commit has epoch {shown}; if the database was \
                 restored, begin again from a copy of it"
            )));
        }
        let until = shown.min(self.live().durable_through(self.store()));
        let log = self.hold_feed(since)?;
        // After the segments: if a writer removed some before, a snapshot among these has their commits.
        let steps = self.store().steps();
        // After the bound: the view must know all vertices and properties of the records.
        let view = Arc::new(self.view()?);
        let (path, memory) = (self.path().to_owned(), self.store().memory());
        Ok(RecordFeed { log, steps, view, path, memory, last: since, until })
    }

    fn hold_feed(&self, since: u64) -> Result<LogFeed> {
        let place = self.log_place();
        for _ in 0..MAX_ATTEMPTS {
            match place.feed(since) {
                // A checkpoint removed a segment between its listing and its opening.
                Err(Error::Base(error)) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {}
                held => return held,
            }
        }
        place.feed(since)
    }

    /// Applies a record of another database, its *primary*, as one commit of the same epoch. Returns false, and does
    /// nothing, if this database has the epoch already. Vertices get the ids and edges the numbers that they have in
    /// the primary, so both databases are equal after each epoch.
    ///
    /// This database must have begun as the primary: created empty with the same options, or restored from a backup of
    /// it. It must get every record in its turn, and commit nothing else. Unique indexes are not checked. Net changes
    /// become a snapshot, and need exactly the epoch from which they lead on.
    ///
    /// # Errors
    /// The handle cannot write; the options of the graphs differ; a record before this one is missing; the changes
    /// do not fit the graph, because the databases differ. Errors of a commit, as of [`apply`](Self::apply).
    pub fn apply_record(&self, changes: &CommitRecord, pool: &Pool) -> Result<bool> {
        self.require_writer()?;
        let (ours, theirs) = (self.options(), changes.options());
        // In-lists follow from the other lists, so each database decides on its own whether it has them.
        if (GraphOptions { in_edges: ours.in_edges, ..*theirs }) != *ours {
            return Err(Error::options(format!(
                "cannot apply the changes of epoch {}: the graphs differ in kind: {ours:?} here, {theirs:?} there",
                changes.epoch
            )));
        }
        self.commit_record(changes, pool)
    }
}
