//! What the leader does.

use std::time::{Duration, Instant};

use base::parallel::Pool;
use base::progress::Silent;

use crate::commit_queue::{Committed, Leading, Request, Ticket};
use crate::live::{Applied, EdgePairs, Given, Group, Missing, Turn, Update};
use crate::log::Durability;
use crate::validation::{Failure, VersionTable};
use crate::{Database, Result};

/// Batches of more changes than this are committed in a group of their own, without a copy, on all workers.
const OWN_GROUP: usize = 1 << 10;

/// After a group that was synced, the next one waits for callers who are about to come again for one part in so many of
/// the time that it took.
const PATIENCE: u32 = 2;
/// And no longer than it takes to wake as many as were answered, one after the other, with some leeway.
const WAKING: Duration = Duration::from_micros(4);

/// The ticket of who commits without a place in the queue: one at a time, and no queue gets that far.
const OUTSIDE: Ticket = Ticket::MAX - 1;

/// A time during which nobody else commits; dropped, others do.
#[derive(Debug)]
pub(crate) struct Alone<'db> {
    _leading: Leading<'db, Request>,
}

impl Database {
    /// The right to write, once what waits to become a snapshot leaves room for more.
    fn turn_to_commit(&self) -> Turn<'_> {
        self.live().turn_to_commit(self.background().most_bytes(), || self.background().is_ordered())
    }

    /// Waits until nobody else commits, and keeps it so.
    pub(crate) fn be_alone(&self) -> Result<Alone<'_>> {
        Ok(Alone { _leading: self.commits().queue.admit()? })
    }

    /// Commits a request before all that wait in the queue.
    pub(crate) fn commit_first(&self, _: &Alone<'_>, request: Request, pool: &Pool) -> Result<(), Failure> {
        let commits = self.commits();
        let start = commits.counters.start(0);
        self.commit_requests(OUTSIDE, &mut [request], pool);
        commits.counters.finish(start);
        commits.answer(OUTSIDE)
    }

    /// Applies updates of somebody who read nothing.
    pub(crate) fn commit_blind(
        &self,
        updates: &[Update],
        missing: Missing,
        durability: Durability,
        pool: &Pool,
    ) -> Result<Applied> {
        if missing == Missing::Strict || num_changes(updates) > OWN_GROUP {
            return self.commit_alone(Given::Updates(updates, missing), durability, pool);
        }
        self.submit_with(updates, durability, pool)?.wait()?;
        self.live().applied(self.store())
    }

    /// The same for edges that come as pairs.
    pub(crate) fn commit_pairs(&self, edges: EdgePairs<'_>, durability: Durability, pool: &Pool) -> Result<Applied> {
        if edges.pairs.len() > OWN_GROUP && EdgePairs::suit(self.options()) {
            return self.commit_alone(Given::Pairs(edges), durability, pool);
        }
        self.commit_blind(&edges.to_updates(), Missing::Lenient, durability, pool)
    }

    /// Applies a batch as a group of its own, once nobody else commits.
    fn commit_alone(&self, given: Given<'_>, durability: Durability, pool: &Pool) -> Result<Applied> {
        let start = self.commits().counters.start(0);
        if self.becomes_level(given) {
            // Others commit until a snapshot is there that is being made just now.
            self.live().wait_for_snapshot();
        }
        let alone = self.be_alone()?;
        let applied = self.commit_one(given, durability, pool);
        drop(alone);
        match &applied {
            Ok(_) => self.commits().counters.finish(start),
            Err(error) => self.commits().count_error(error),
        }
        applied
    }

    /// Applies a batch as a group of its own; the caller leads.
    fn commit_one(&self, given: Given<'_>, durability: Durability, pool: &Pool) -> Result<Applied> {
        if self.becomes_level(given) {
            let applied = self.live().append_very_large(self.store(), given, pool)?;
            self.commits().counters.count_group(1);
            self.maintain_level(pool);
            return Ok(applied);
        }
        let mut turn = self.turn_to_commit();
        let applied = turn.apply(self.store(), given, durability, pool)?;
        self.commits().counters.count_group(1);
        let num_pending_bytes = turn.num_pending_bytes();
        drop(turn);
        self.background().has_pending(num_pending_bytes);
        Ok(applied)
    }

    /// Whether a batch is so large that it is made a snapshot at once, where it would have to be logged before.
    fn becomes_level(&self, given: Given<'_>) -> bool {
        self.live().has_log() && self.background().is_very_large(given.len())
    }

    /// Commits requests, in their order, the tickets of which begin with `first`; the caller leads.
    pub(crate) fn commit_requests(&self, first: Ticket, requests: &mut [Request], pool: &Pool) {
        let mut done = 0;
        while done < requests.len() {
            let rest = &mut requests[done..];
            let first = first + done as u64;
            match self.commit_group(first, rest, pool) {
                Ok(num_committed) => done += num_committed,
                Err(error) => {
                    // Nothing was begun: nobody else will do better.
                    for (ticket, request) in (first..).zip(rest) {
                        self.commits().refuse(ticket, request, error.clone().into());
                    }
                    return;
                }
            }
        }
    }

    /// Commits the first of some requests as a group, and answers them; gives how many.
    ///
    /// # Errors
    /// A group cannot be begun.
    fn commit_group(&self, first: Ticket, requests: &mut [Request], pool: &Pool) -> Result<usize> {
        let (commits, live) = (self.commits(), self.live());
        let mut turn = self.turn_to_commit();
        let mut stripes = live.stripes();
        let mut group = turn.group(self.store())?;
        let epoch = group.epoch();
        let (mut num_taken, mut num_added, mut durability) = (0, 0, Durability::None);
        for request in requests.iter_mut() {
            match join(&mut group, &mut stripes, request) {
                Ok(()) => {
                    if let Some(outcome) = request.outcome.take() {
                        // Read once the request is answered, and only if it has not failed.
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
        let begin = (durability == Durability::Sync && num_added > 0).then(Instant::now);
        let committed = match num_added {
            0 => Ok(()),
            _ => group.commit(durability, pool, &mut |item| stripes.change(item, epoch)),
        };
        let patience = begin.map_or(Duration::ZERO, |begin| begin.elapsed() / PATIENCE);
        commits.queue.set_patience(patience.min(WAKING * num_added));
        match committed {
            Ok(()) if num_added == 0 => {}
            Ok(()) => commits.counters.count_group(num_added.into()),
            Err(error) => {
                stripes.take_back(epoch);
                let taken = (first..).zip(&mut requests[..num_taken]);
                for (ticket, request) in taken.filter(|(_, request)| !request.has_failed) {
                    commits.refuse(ticket, request, error.clone().into());
                }
            }
        }
        drop(stripes);
        let num_pending_bytes = turn.num_pending_bytes();
        drop(turn);
        self.background().has_pending(num_pending_bytes);
        Ok(num_taken)
    }

    /// Merges what is due after a commit, where nobody else does. That stands whatever becomes of upkeep, which the next
    /// one tries again.
    fn maintain_level(&self, pool: &Pool) {
        let _ = self.maintain(pool, &Silent);
    }
}

/// How many updates a batch has, each property of an edge that is added counted as one.
fn num_changes(updates: &[Update]) -> usize {
    let properties = |update: &Update| match update {
        Update::AddEdge { properties, .. } => properties.len(),
        _ => 0,
    };
    updates.len() + updates.iter().map(properties).sum::<usize>()
}

/// Adds a request to a group, if what it read is still so.
fn join(group: &mut Group<'_>, stripes: &mut VersionTable, request: &Request) -> Result<(), Failure> {
    request.require_next()?;
    if let Some(reads) = &request.reads {
        reads.validate(stripes, group.index_changes(), |key| group.has_id(key))?;
    }
    let epoch = group.epoch();
    match stripes.are_kept() {
        true => group.add(request.updates.as_slice(), |item| stripes.change(item, epoch))?,
        false => group.add(request.updates.as_slice(), |_| {})?,
    }
    Ok(())
}
