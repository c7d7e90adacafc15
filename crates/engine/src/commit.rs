//! From queued requests to committed groups.
//!
//! A request has the updates of one caller: all are committed, or none. Requests wait in a
//! [queue](crate::commit_queue). The leader takes them in order, validates their read sets against the version table,
//! plans the valid ones, and applies them as one batch with one epoch. So a transaction happens as a whole at its place
//! in the order, and its reads still hold there.

mod lead;
mod receipt;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_memtable::Op;

pub use self::lead::ExclusiveCommit;
pub use self::receipt::CommitReceipt;
use crate::commit_queue::{CommitRequest, CommitStats, CommitUpdates, Sequence};
use crate::live::{Applied, EdgePairs, Missing, Update};
use crate::log::Durability;
use crate::validation::CommitFailure;
use crate::{Engine, Result};

/// Requests in the queue at which a caller commits them itself, which bounds the queue.
const MOST_WAITING: usize = 1 << 14;

/// A submitted commit that is not waited for yet.
///
/// The commit happens once a caller waits for it or for a later one. Dropping this waits too, and loses the answer.
#[derive(Debug)]
pub struct PendingCommit<'db> {
    database: &'db Engine,
    pool: &'db Pool,
    receipt: CommitReceipt,
    is_waited_for: bool,
}

impl PendingCommit<'_> {
    /// Waits until the commit is done. Returns an epoch from which on it is visible.
    ///
    /// # Errors
    /// An update is invalid, or the disk failed. None of the updates has happened.
    pub fn wait(mut self) -> Result<u64> {
        self.is_waited_for = true;
        self.database.wait_for(&self.receipt, self.pool)
    }

    /// The receipt, for a caller that keeps the database alive by other means.
    pub fn into_receipt(mut self) -> CommitReceipt {
        self.is_waited_for = true;
        // A type with a destructor gives up no field, so the parts are copied.
        let CommitReceipt { ticket, timer, ref mut outcome } = self.receipt;
        CommitReceipt { ticket, timer, outcome: outcome.take() }
    }

    pub(crate) fn finish(&mut self) -> Result<(), CommitFailure> {
        self.is_waited_for = true;
        self.database.finish_commit(&self.receipt, self.pool)
    }
}

impl Drop for PendingCommit<'_> {
    fn drop(&mut self) {
        if !self.is_waited_for {
            // Without a caller that waits, the commit might never happen.
            self.database.give_up(&self.receipt, self.pool);
        }
    }
}

impl Engine {
    /// Applies all updates, or none. Views that are taken afterwards show them.
    ///
    /// The updates are first in the WAL, as durable as [`set_durability`](Self::set_durability) says, so they survive a
    /// crash. They stay there until a snapshot has them: made by [`checkpoint`](Self::checkpoint), by
    /// [`close`](Self::close), or by the background once they take enough memory
    /// ([`set_checkpoint_bytes`](Self::set_checkpoint_bytes)). A commit waits while snapshots are written more slowly
    /// than commits come.
    ///
    /// A batch that is larger than the changes that may wait for a snapshot becomes one at once, like an append, and
    /// skips the WAL. The limit is 16.8 million updates at first, at 16 bytes of memory each.
    ///
    /// Cost: one search below the memtable for each edge, and copies of the nodes of the changed lists. Removing a
    /// vertex costs its edges, and in a directed graph without in-lists a scan of the whole graph.
    ///
    /// # Errors
    /// The handle cannot write; a key, a weight or a value does not fit the graph. With [`Missing::Strict`], an update
    /// names something that does not exist. The WAL cannot be written. In all these cases nothing has happened. After a
    /// failed sync that is not known, and the handle writes nothing more until the database is reopened
    /// ([`anden_snapshots::Error::Poisoned`]). After any other error, such as damage in the snapshot, the handle
    /// applies no more updates.
    pub fn apply(&self, updates: &[Update], missing: Missing, pool: &Pool) -> Result<Applied> {
        self.apply_with(updates, missing, self.durability(), pool)
    }

    /// As [`apply`](Self::apply), with its own durability.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_with(
        &self,
        updates: &[Update],
        missing: Missing,
        durability: Durability,
        pool: &Pool,
    ) -> Result<Applied> {
        self.require_writer()?;
        self.commit_blind(updates, missing, durability, pool)
    }

    /// Inserts or deletes edges, as [`apply`](Self::apply) does, by the integer keys of their ends. If keys are ids and
    /// edges have no weights, the pairs are sorted and logged without a copy. This is the fastest way to change many
    /// edges.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_edges(&self, pairs: &[(VertexId, VertexId)], op: Op, pool: &Pool) -> Result<Applied> {
        self.require_writer()?;
        self.commit_pairs(EdgePairs { pairs, op }, self.durability(), pool)
    }

    /// Counters of commits since the database was opened.
    pub fn commit_stats(&self) -> CommitStats {
        self.commits().counters.stats()
    }

    /// Submits updates, all or none, without waiting. Several commits in flight make large groups. Commits of one
    /// caller take effect in the order in which it submits them.
    ///
    /// Memory: a copy of the updates.
    ///
    /// # Errors
    /// The handle cannot write.
    pub fn submit<'db>(&'db self, updates: &[Update], pool: &'db Pool) -> Result<PendingCommit<'db>> {
        self.submit_with(updates, self.durability(), pool)
    }

    /// As [`submit`](Self::submit), with its own durability.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_with<'db>(
        &'db self,
        updates: &[Update],
        durability: Durability,
        pool: &'db Pool,
    ) -> Result<PendingCommit<'db>> {
        self.require_writer()?;
        // The copy is made once here: the request outlives the borrow of the caller's updates.
        self.enqueue(CommitRequest::blind(updates.into(), durability), pool)
    }

    /// As [`submit_with`](Self::submit_with). The commit happens only if all earlier ones of `sequence` have.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_next<'db>(
        &'db self,
        sequence: &Sequence,
        updates: Vec<Update>,
        durability: Durability,
        pool: &'db Pool,
    ) -> Result<PendingCommit<'db>> {
        self.require_writer()?;
        let sequence = Some(sequence.clone());
        self.enqueue(CommitRequest { sequence, ..CommitRequest::blind(CommitUpdates::Many(updates), durability) }, pool)
    }

    pub(crate) fn enqueue<'db>(&'db self, request: CommitRequest, pool: &'db Pool) -> Result<PendingCommit<'db>> {
        // A forked child has only a copy of the queue, and must not write into the files of its parent.
        self.require_here()?;
        let commits = self.commits();
        let (outcome, durability) = (request.outcome.clone(), request.durability);
        let (ticket, num_waiting) = commits.queue.submit(request);
        let timer = commits.counters.start(ticket, durability);
        // A caller that submits without waiting must not fill the memory.
        if num_waiting >= MOST_WAITING {
            commits.queue.wait(ticket, |first, requests| self.commit_requests(first, requests, pool))?;
        }
        let receipt = CommitReceipt { ticket, timer, outcome };
        Ok(PendingCommit { database: self, pool, receipt, is_waited_for: false })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use anden_testkit::FaultStorage;

    use super::*;

    /// The number that the documents promise.
    #[test]
    fn more_than_sixteen_million_updates_are_very_many() {
        let db = Engine::in_memory(Default::default()).unwrap();
        // Independent of the memory that is free here.
        db.set_checkpoint_bytes(Some(64 << 20));
        let is_very_large = |num_updates| db.background().is_very_large(num_updates);
        assert!(!is_very_large(1 << 24) && is_very_large((1 << 24) + 1));
        db.set_checkpoint_bytes(None);
        assert!(!is_very_large(1 << 40));
    }

    /// The strongest durability of a group counts for all its members.
    #[test]
    fn group_takes_its_strictest_durability() {
        let pool = Pool::new(1).unwrap();
        for durabilities in [[Durability::Sync, Durability::None], [Durability::None, Durability::Sync]] {
            let disk = FaultStorage::default();
            let open = |disk: FaultStorage| Engine::open_in(Arc::new(disk), Path::new("db")).unwrap();
            let db = Engine::create_in(Arc::new(disk.clone()), Path::new("db"), Default::default()).unwrap();
            let request = |(key, durability): (u64, Durability)| {
                CommitRequest::blind(CommitUpdates::One(Update::add_edge(key, 3)), durability)
            };
            let mut requests: Vec<_> = (1..).zip(durabilities).map(request).collect();
            let _alone = db.be_alone().unwrap();
            db.commit_requests(0, &mut requests, &pool);
            for seed in 0..20 {
                let left = open(disk.after_crash(seed)).view().unwrap();
                assert_eq!(anden_graph::Graph::num_edges(&left), 2, "{durabilities:?}, seed {seed}");
            }
        }
    }
}
