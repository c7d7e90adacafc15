//! The part of the WAL that snapshots do not need: what is durable, what is removed, what stays for the change feed.

use std::sync::atomic::Ordering;

use anden_snapshots::Store;

use super::Live;
use crate::Result;
use crate::log::LogPlace;

impl Live {
    /// The epoch through which commits are known to be durable, in the WAL or in a snapshot.
    pub(crate) fn durable_through(&self, store: &Store) -> u64 {
        let logged = match &self.log {
            Some(log) => log.synced_through(),
            None => self.certified.load(Ordering::Relaxed),
        };
        logged.max(store.epoch())
    }

    /// Reads and checks the whole WAL in the directory of `store`.
    ///
    /// # Errors
    /// As [`LogPlace::read`].
    pub(crate) fn verify_log(&self, store: &Store) -> Result<()> {
        // The write guard keeps commits from appending meanwhile.
        let guard = self.write_guard();
        let place = LogPlace { storage: &**store.storage(), directory: store.path(), id: store.id() };
        if let Some(log) = &self.log {
            log.write()?;
            place.read(store.epoch(), &mut |_| Ok(()))?;
        }
        // Kept segments do not change, so commits need not wait.
        drop(guard);
        // Without kept segments, a crash may have left some that were never durable. The next writer removes them.
        if store.keep_wal() == 0 {
            return Ok(());
        }
        place.verify_retained(store.epoch())
    }

    /// Makes the WAL durable before a snapshot has its commits, if its segments are kept. Afterwards nothing would
    /// recover them, and the change feed would lack the last ones.
    pub(super) fn settle_log(&self, store: &Store) {
        let Some(log) = self.log.as_ref().filter(|_| store.keep_wal() > 0) else { return };
        if let Err(error) = log.sync() {
            // The snapshot is more important than the feed.
            tracing::warn!(%error, "the kept WAL may lack its last commits");
        }
    }

    /// Removes the WAL segments whose commits are in a snapshot, except those that are kept for the change feed.
    pub(crate) fn trim_log(&self, store: &Store) {
        if let Some(log) = &self.log {
            log.remove_through(store.epoch(), store.keep_wal());
        }
    }
}
