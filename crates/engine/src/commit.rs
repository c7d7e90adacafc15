//! From what callers want committed to groups that are.
//!
//! A request is what one caller wants to happen, all of it or nothing. Requests wait in a [queue](crate::commit_queue).
//! The leader takes them in their order, compares what each of them read with the table of later changes, plans the valid
//! ones, and applies them as one batch, an epoch. So a transaction happens as a whole at its place in the order, and what
//! it read is still true there.

mod lead;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use base::VertexId;
use base::parallel::Pool;
use terrace::Fate;

pub(crate) use self::lead::Alone;
use crate::commit_queue::{CommitStats, Committed, Request, Sequence, Ticket, Updates};
use crate::live::{Applied, EdgePairs, Missing, Update};
use crate::log::Durability;
use crate::validation::Failure;
use crate::{Database, Error, Result};

/// A caller that finds this many requests in the queue commits them itself.
const MOST_WAITING: usize = 1 << 14;

/// A commit that was asked for and is not waited for yet.
///
/// It happens once a caller waits for it or for a later commit. Dropping it waits as well, and loses the answer.
#[derive(Debug)]
pub struct Pending<'db> {
    database: &'db Database,
    pool: &'db Pool,
    ticket: Ticket,
    start: Option<Instant>,
    outcome: Option<Arc<OnceLock<Committed>>>,
    is_waited_for: bool,
}

impl Pending<'_> {
    /// Waits until it is committed. Returns an epoch from which on it is seen.
    ///
    /// # Errors
    /// One of the updates is not right, or the disk failed: nothing of them has happened.
    pub fn wait(mut self) -> Result<u64> {
        match self.finish() {
            Ok(()) => Ok(self.outcome().map_or_else(|| self.database.epoch(), |committed| committed.epoch)),
            Err(failure) => Err(failure.into()),
        }
    }

    /// When it happened, if that was asked for, once it has.
    pub(crate) fn outcome(&self) -> Option<Committed> {
        self.outcome.as_ref()?.get().cloned()
    }

    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.is_waited_for = true;
        let Self { database, pool, ticket, .. } = *self;
        // A forked child does not commit what its parent submitted.
        database.require_here()?;
        let commits = database.commits();
        commits
            .queue
            .wait(ticket, |first, requests| database.commit_requests(first, requests, pool))
            .map_err(Error::from)?;
        commits.counters.finish(self.start);
        commits.answer(ticket)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.is_waited_for {
            return;
        }
        if !std::thread::panicking() {
            // The answer is lost; `wait` gives it.
            let _ = self.finish();
        } else if self.database.require_here().is_ok() {
            // What is committed here could panic once more: that is left to others.
            self.database.commits().abandon(self.ticket);
        }
    }
}

impl Database {
    /// Applies updates, all of them or none. Views that are taken afterwards show them.
    ///
    /// Before that they are in the log, as durable as [`set_durability`](Self::set_durability) says, so the
    /// database has them after a crash, too. They stay there until a snapshot is made of them: by
    /// [`checkpoint`](Self::checkpoint), by [`close`](Self::close), and in the background once they take enough memory
    /// ([`set_checkpoint_bytes`](Self::set_checkpoint_bytes)). A commit waits where snapshots
    /// are not written as fast as commits come.
    /// A batch of more updates than are left waiting for a snapshot (16 bytes of memory each: 16.8 million at first) becomes
    /// a snapshot at once, as an append does, and is in no log.
    ///
    /// Cost: a search in the newest snapshot for each edge, and copies of the nodes of the changed lists; a vertex
    /// that goes costs its edges, and in a directed graph without in-lists a look at the whole graph.
    ///
    /// # Errors
    /// The handle cannot write; a key, a weight or a value does not fit the graph; with
    /// [`Missing::Strict`], an update names what is not there; the log cannot be written. Nothing has happened then. After
    /// a sync that failed that is not known, and nothing is written until the database is opened again
    /// ([`lama::Error::Poisoned`]). After any other error, such as damage in the snapshot, the handle applies no more
    /// updates.
    pub fn apply(&self, updates: &[Update], missing: Missing, pool: &Pool) -> Result<Applied> {
        self.apply_with(updates, missing, self.durability(), pool)
    }

    /// As [`apply`](Self::apply), with a durability of its own.
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

    /// Makes edges come or go, as [`apply`](Self::apply) does, by the keys of their ends, which are numbers here. Where
    /// keys are ids and edges have no weights, they are sorted and logged straight from where they are, which is the fastest
    /// way to change many.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_edges(&self, pairs: &[(VertexId, VertexId)], fate: Fate, pool: &Pool) -> Result<Applied> {
        self.require_writer()?;
        self.commit_pairs(EdgePairs { pairs, fate }, self.durability(), pool)
    }

    /// What was committed since the database was opened.
    pub fn commit_stats(&self) -> CommitStats {
        self.commits().counters.stats()
    }

    /// Asks for updates to be applied, all of them or none, and does not wait for it: several commits in flight make
    /// large groups. They act in the order in which one caller submits them.
    ///
    /// Memory: a copy of the updates.
    ///
    /// # Errors
    /// The handle cannot write.
    pub fn submit<'db>(&'db self, updates: &[Update], pool: &'db Pool) -> Result<Pending<'db>> {
        self.submit_with(updates, self.durability(), pool)
    }

    /// As [`submit`](Self::submit), with a durability of its own.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_with<'db>(
        &'db self,
        updates: &[Update],
        durability: Durability,
        pool: &'db Pool,
    ) -> Result<Pending<'db>> {
        self.require_writer()?;
        self.enqueue(Request::blind(updates.into(), durability), pool)
    }

    /// As [`submit_with`](Self::submit_with), to happen only if all those of the sequence before it have.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_next<'db>(
        &'db self,
        sequence: &Sequence,
        updates: Vec<Update>,
        durability: Durability,
        pool: &'db Pool,
    ) -> Result<Pending<'db>> {
        self.require_writer()?;
        let sequence = Some(sequence.clone());
        self.enqueue(Request { sequence, ..Request::blind(Updates::Many(updates), durability) }, pool)
    }

    pub(crate) fn enqueue<'db>(&'db self, request: Request, pool: &'db Pool) -> Result<Pending<'db>> {
        self.require_here()?;
        let commits = self.commits();
        let outcome = request.outcome.clone();
        let (ticket, num_waiting) = commits.queue.submit(request);
        let start = commits.counters.start(ticket);
        if num_waiting >= MOST_WAITING {
            commits.queue.wait(ticket, |first, requests| self.commit_requests(first, requests, pool))?;
        }
        Ok(Pending { database: self, pool, ticket, start, outcome, is_waited_for: false })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use base::storage::FaultStorage;

    use super::*;

    /// As the documents say.
    #[test]
    fn more_than_sixteen_million_updates_are_very_many() {
        let db = Database::in_memory(Default::default()).unwrap();
        let is_very_large = |num_updates| db.background().is_very_large(num_updates);
        assert!(!is_very_large(1 << 24) && is_very_large((1 << 24) + 1));
        db.set_checkpoint_bytes(None);
        assert!(!is_very_large(1 << 40));
    }

    /// A request that asks for less than others of its group gets what these ask for, and none gets less.
    #[test]
    fn a_group_is_as_durable_as_the_strictest_in_it_asks() {
        let pool = Pool::new(1).unwrap();
        for durabilities in [[Durability::Sync, Durability::None], [Durability::None, Durability::Sync]] {
            let disk = FaultStorage::default();
            let open = |disk: FaultStorage| Database::open_in(Arc::new(disk), Path::new("db")).unwrap();
            let db = Database::create_in(Arc::new(disk.clone()), Path::new("db"), Default::default()).unwrap();
            let request = |(key, durability): (u64, Durability)| {
                Request::blind(Updates::One(Update::add_edge(key, 3)), durability)
            };
            let mut requests: Vec<_> = (1..).zip(durabilities).map(request).collect();
            let _alone = db.be_alone().unwrap();
            db.commit_requests(0, &mut requests, &pool);
            for seed in 0..20 {
                let left = open(disk.after_crash(seed)).view().unwrap();
                assert_eq!(graph::Graph::num_edges(&left), 2, "{durabilities:?}, seed {seed}");
            }
        }
    }
}
