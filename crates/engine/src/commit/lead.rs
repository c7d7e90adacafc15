//! The work of a group's leader.

use std::time::{Duration, Instant};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use tracing::Span;
use tracing::field::Empty;

use crate::commit_queue::{CommitRequest, Committed, GroupLeader, Ticket};
use crate::live::{Applied, BatchInput, CommitGroup, CommitRecord, EdgePairs, Missing, Update, WriteGuard};
use crate::log::Durability;
use crate::validation::{CommitFailure, VersionTable};
use crate::{Engine, Result};

/// Batches of more changes than this are a group of their own: not copied, and applied by all workers.
const OWN_GROUP: usize = 1 << 10;

/// After a synced group, the leader waits for returning callers, at most for one part in this many of the sync's time.
/// Half a sync keeps nearly all callers in one group (docs/decisions/0015).
const GATHER_SHARE: u32 = 2;
/// Upper limit of that wait for each answered caller: the time to wake a thread, with leeway.
const WAKING: Duration = Duration::from_micros(4);

/// A group that takes longer is reported. A sync takes a few milliseconds on most disks, so a longer time means that
/// the disk, or a checkpoint that commits must wait for, is the cause.
const SLOW_COMMIT: Duration = Duration::from_millis(100);

/// The ticket of a commit outside the queue. One such commit runs at a time, and no queue reaches this number.
const OUTSIDE: Ticket = Ticket::MAX - 1;

/// Exclusive commit: no other commit happens until this is dropped.
#[derive(Debug)]
pub struct ExclusiveCommit<'db> {
    _leading: GroupLeader<'db, CommitRequest>,
}

impl Engine {
    /// The write guard, once the changes that wait for a snapshot leave room for more.
    fn write_guard_to_commit(&self) -> WriteGuard<'_> {
        self.live().write_guard_to_commit(self.background().most_bytes(), || self.background().is_ordered())
    }

    /// Waits until no other commit runs, and keeps others out.
    ///
    /// # Errors
    /// An earlier commit panicked.
    pub fn be_alone(&self) -> Result<ExclusiveCommit<'_>> {
        Ok(ExclusiveCommit { _leading: self.commits().queue.admit()? })
    }

    /// Commits a request before all queued ones.
    pub(crate) fn commit_first(
        &self,
        _: &ExclusiveCommit<'_>,
        request: CommitRequest,
        pool: &Pool,
    ) -> Result<(), CommitFailure> {
        let commits = self.commits();
        // A commit outside the queue has no ticket to sample by, so each one is timed.
        let timer = commits.counters.start(0, request.durability);
        self.commit_requests(OUTSIDE, &mut [request], pool);
        commits.answer(OUTSIDE)?;
        commits.counters.finish(timer);
        Ok(())
    }

    /// Applies updates that depend on no reads.
    pub(crate) fn commit_blind(
        &self,
        updates: &[Update],
        missing: Missing,
        durability: Durability,
        pool: &Pool,
    ) -> Result<Applied> {
        // A group of its own is not copied, and all workers apply it (docs/decisions/0015).
        if missing == Missing::Strict || num_changes(updates) > OWN_GROUP {
            return self.commit_alone(BatchInput::Updates(updates, missing), durability, pool);
        }
        self.submit_with(updates, durability, pool)?.wait()?;
        self.live().applied(self.store())
    }

    /// As [`commit_blind`](Self::commit_blind), for edges given as pairs.
    pub(crate) fn commit_pairs(&self, edges: EdgePairs<'_>, durability: Durability, pool: &Pool) -> Result<Applied> {
        if edges.pairs.len() > OWN_GROUP && EdgePairs::suit(self.options()) {
            return self.commit_alone(BatchInput::Pairs(edges), durability, pool);
        }
        self.commit_blind(&edges.to_updates(), Missing::Lenient, durability, pool)
    }

    /// Applies a batch as a group of its own, once no other commit runs.
    fn commit_alone(&self, given: BatchInput<'_>, durability: Durability, pool: &Pool) -> Result<Applied> {
        let timer = self.commits().counters.start(0, durability);
        if self.becomes_delta(given) {
            // Wait for a running checkpoint before blocking other commits, so that they go on meanwhile.
            self.live().wait_for_snapshot();
        }
        let alone = self.be_alone()?;
        let applied = self.commit_one(given, durability, pool);
        drop(alone);
        match &applied {
            Ok(_) => self.commits().counters.finish(timer),
            Err(error) => self.commits().count_error(error),
        }
        applied
    }

    /// Applies a batch as a group of its own; the caller is the leader.
    fn commit_one(&self, given: BatchInput<'_>, durability: Durability, pool: &Pool) -> Result<Applied> {
        if self.becomes_delta(given) {
            // A delta is durable by itself, so the batch skips the WAL (docs/decisions/0019).
            let applied = self.live().append_very_large(self.store(), given, pool)?;
            self.commits().counters.count_group(1);
            self.maintain_delta(pool);
            return Ok(applied);
        }
        let span = group_span();
        let _entered = span.enter();
        let watch = CommitWatch::start();
        let mut guard = self.write_guard_to_commit();
        let applied = guard.apply(self.store(), given, durability, pool)?;
        self.commits().counters.count_group(1);
        let num_pending_bytes = guard.num_pending_bytes();
        drop(guard);
        record_group(&span, applied.epoch, 1, durability);
        watch.report(1);
        self.background().has_pending(num_pending_bytes);
        Ok(applied)
    }

    /// Commits a record of another database as a group of its own. Returns false if this database has its epoch.
    ///
    /// # Errors
    /// As [`WriteGuard::apply_record`], and as [`append_net`](crate::live::Live::append_net) for net changes.
    pub(crate) fn commit_record(&self, changes: &CommitRecord, pool: &Pool) -> Result<bool> {
        let (durability, record) = (self.durability(), changes.record());
        let timer = self.commits().counters.start(0, durability);
        let alone = self.be_alone()?;
        let (applied, num_pending_bytes) = match changes.net {
            Some(net) => (self.live().append_net(self.store(), net, record, pool), None),
            None => {
                let mut guard = self.write_guard_to_commit();
                let applied = guard.apply_record(self.store(), record, durability, pool);
                (applied, Some(guard.num_pending_bytes()))
            }
        };
        drop(alone);
        match &applied {
            Ok(true) => {
                self.commits().counters.count_group(1);
                self.commits().counters.finish(timer);
                match num_pending_bytes {
                    Some(num_bytes) => self.background().has_pending(num_bytes),
                    None => self.maintain_delta(pool),
                }
            }
            Ok(false) => {}
            Err(error) => self.commits().count_error(error),
        }
        applied
    }

    /// Whether a batch is so large that it becomes a delta at once instead of being logged.
    fn becomes_delta(&self, given: BatchInput<'_>) -> bool {
        self.live().has_log() && self.background().is_very_large(given.len())
    }

    /// Commits requests in their order; their tickets ascend from `first`. The caller is the leader.
    pub(crate) fn commit_requests(&self, first: Ticket, requests: &mut [CommitRequest], pool: &Pool) {
        let mut done = 0;
        // A full group leaves requests for the next group.
        while done < requests.len() {
            let rest = &mut requests[done..];
            let first = first + done as u64;
            match self.commit_group(first, rest, pool) {
                Ok(num_committed) => done += num_committed,
                Err(error) => {
                    // The group could not begin, so each later one would fail too: refuse them all.
                    for (ticket, request) in (first..).zip(rest) {
                        self.commits().refuse(ticket, request, error.clone().into());
                    }
                    return;
                }
            }
        }
    }

    /// Commits the first requests as one group, answers them, and returns their number.
    ///
    /// # Errors
    /// The group cannot begin.
    fn commit_group(&self, first: Ticket, requests: &mut [CommitRequest], pool: &Pool) -> Result<usize> {
        let (commits, live) = (self.commits(), self.live());
        // Before the guard, so that a subscriber never gets it under the guard.
        let span = group_span();
        let _entered = span.enter();
        let watch = CommitWatch::start();
        let mut guard = self.write_guard_to_commit();
        // Held for the whole group, so that its requests see each other's changes.
        let mut versions = live.versions();
        let mut group = guard.group(self.store())?;
        let epoch = group.epoch();
        let (mut num_taken, mut num_added, mut durability) = (0, 0, Durability::None);
        for request in requests.iter_mut() {
            match join(&mut group, &mut versions, request) {
                Ok(()) => {
                    if let Some(outcome) = request.outcome.take() {
                        // The caller reads this once its request is answered, and only if it has not failed.
                        let _ = outcome.set(Committed { epoch, place: num_added, numbers: group.take_numbers() });
                    }
                    durability = durability.strongest(request.durability);
                    num_added += 1;
                }
                Err(failure) => commits.refuse(first + num_taken as u64, request, failure),
            }
            num_taken += 1;
            if group.is_full() {
                break;
            }
        }
        // Only a sync takes long enough that waiting for more callers pays.
        let begin = (durability == Durability::Sync && num_added > 0).then(Instant::now);
        let committed = match num_added {
            0 => Ok(()),
            _ => group.commit(durability, pool, &mut |item| versions.change(item, epoch)),
        };
        let gather_time = begin.map_or(Duration::ZERO, |begin| begin.elapsed() / GATHER_SHARE);
        commits.queue.set_gather_time(gather_time.min(WAKING * num_added));
        match committed {
            Ok(()) if num_added == 0 => {}
            Ok(()) => commits.counters.count_group(num_added.into()),
            Err(error) => {
                // The epoch will be used again: its notes in the version table must not cause conflicts.
                versions.take_back(epoch);
                let taken = (first..).zip(&mut requests[..num_taken]);
                for (ticket, request) in taken.filter(|(_, request)| !request.has_failed) {
                    commits.refuse(ticket, request, error.clone().into());
                }
            }
        }
        drop(versions);
        let num_pending_bytes = guard.num_pending_bytes();
        drop(guard);
        // After the guard, which a subscriber of events may need.
        record_group(&span, epoch, num_added, durability);
        watch.report(num_added);
        self.background().has_pending(num_pending_bytes);
        Ok(num_taken)
    }

    /// Merges if a merge is due and none runs. The commit stands even if maintenance fails; the next one tries again.
    fn maintain_delta(&self, pool: &Pool) {
        if let Err(error) = self.maintain(pool, &Silent) {
            tracing::error!(%error, "merge after a commit failed");
        }
    }
}

/// The span of a group; its fields are known at its end. Without a subscriber, it costs one load.
fn group_span() -> Span {
    tracing::trace_span!("commit_group", epoch = Empty, commits = Empty, durability = Empty)
}

fn record_group(span: &Span, epoch: u64, commits: u32, durability: Durability) {
    if !span.is_disabled() {
        span.record("epoch", epoch).record("commits", commits);
        span.record("durability", tracing::field::debug(durability));
    }
}

/// Reports a slow group. Without a subscriber, it reads no clock.
struct CommitWatch(Option<Instant>);

impl CommitWatch {
    fn start() -> Self {
        Self(tracing::enabled!(tracing::Level::WARN).then(Instant::now))
    }

    fn report(&self, commits: u32) {
        if let Some(time) = self.0.map(|begin| begin.elapsed()).filter(|&time| time > SLOW_COMMIT) {
            tracing::warn!(commits, seconds = time.as_secs_f64(), "slow commit");
        }
    }
}

/// Number of updates; each property of an added edge counts as one more.
fn num_changes(updates: &[Update]) -> usize {
    let properties = |update: &Update| match update {
        Update::AddEdge { properties, .. } => properties.len(),
        _ => 0,
    };
    updates.len() + updates.iter().map(properties).sum::<usize>()
}

/// Adds a request to the group if its read set is still valid.
fn join(
    group: &mut CommitGroup<'_>,
    versions: &mut VersionTable,
    request: &CommitRequest,
) -> Result<(), CommitFailure> {
    // Checked as late as here: an earlier request of the sequence may be refused in this very group.
    request.require_next()?;
    if let Some(reads) = &request.reads {
        reads.validate(versions, group.index_changes(), |key| group.has_id(key))?;
    }
    let epoch = group.epoch();
    // Before the first transaction begins, changes need not be noted.
    match versions.are_kept() {
        true => group.add(request.updates.as_slice(), |item| versions.change(item, epoch))?,
        false => group.add(request.updates.as_slice(), |_| {})?,
    }
    Ok(())
}
