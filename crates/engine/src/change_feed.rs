//! The change feed: committed changes in their order, out of the WAL, and their application to a replica.
//!
//! The feed gives durable commits only: a consumer never sees a commit that a power cut then takes from the database.
//! It gives no commit that is not published. Segments of commits that a snapshot has stay in the directory up to
//! [`Engine::keep_wal`] bytes. Appends and very large batches skip the WAL: the feed begins anew behind them.

use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_snapshots::{GraphOptions, SnapshotView};

use crate::live::CommitRecord;
use crate::log::{LogFeed, LogPlace};
use crate::{Engine, Error, Result};

/// Attempts to open the segments while a writer removes some of them.
const MAX_ATTEMPTS: usize = 1000;

/// Records in the order of their epochs, one for each commit group; see [`Engine::changes`]. Reads one segment of
/// the WAL at a time. Ends after an error.
#[derive(Debug)]
pub struct RecordFeed {
    records: LogFeed,
    view: Arc<SnapshotView>,
}

impl Iterator for RecordFeed {
    type Item = Result<CommitRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?;
        Some(record.map(|record| CommitRecord {
            epoch: record.epoch,
            payload: record.payload,
            path: record.path,
            offset: record.offset,
            view: Arc::clone(&self.view),
        }))
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

    /// The least epoch that [`changes`](Self::changes) takes: the WAL has all commits after it.
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
    /// A handle that only reads shows the commits of its last [`refresh`](Self::refresh). Those whose durability no
    /// later record or mark states yet come with a later call.
    ///
    /// Cost: reads the segment with the commit after `since`, and those that follow; one segment is in memory.
    ///
    /// # Errors
    /// [`Error::EpochGone`]: the WAL lacks the next commit. `since` is later than the last commit; the database is in
    /// memory and so has no WAL; damage; the disk failed. The iterator returns such errors too, once it meets them.
    pub fn changes(&self, since: u64) -> Result<RecordFeed> {
        self.require_here()?;
        if !self.is_read_only() && !self.live().has_log() {
            return Err(Error::options("a database in memory has no WAL, and so no change feed"));
        }
        let shown = self.epoch();
        if since > shown {
            return Err(Error::options(format!(
                "cannot give the changes since epoch {since}: the last commit has epoch {shown}; if the database was \
                 restored, begin again from a copy of it"
            )));
        }
        let until = shown.min(self.live().durable_through(self.store()));
        // After the bound: the view must know all vertices and properties of the records.
        let view = Arc::new(self.view()?);
        let place = self.log_place();
        for _ in 0..MAX_ATTEMPTS {
            match place.feed(since, until) {
                Ok(records) => return Ok(RecordFeed { records, view }),
                // A checkpoint removed a segment between its listing and its opening.
                Err(Error::Base(error)) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(RecordFeed { records: place.feed(since, until)?, view })
    }

    /// Applies a record of another database, its *primary*, as one commit of the same epoch. Returns false, and does
    /// nothing, if this database has the epoch already. Vertices get the ids and edges the numbers that they have in
    /// the primary, so both databases are equal after each epoch.
    ///
    /// This database must have begun as the primary: created empty with the same options, or restored from a backup of
    /// it. It must get every record in its turn, and commit nothing else. Unique indexes are not checked.
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
        self.commit_record(changes.record(), pool)
    }
}
