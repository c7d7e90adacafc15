//! From what callers want committed to groups that are.
//!
//! A request is what one caller wants to happen, all of it or nothing. Requests wait in a [queue](queue); who leads
//! takes them in their order, holds what each of them read against the [stripes](stripes) of what was changed since,
//! plans what is right and applies it as one batch, an epoch. So a transaction happens as a whole at its place in the
//! order, and what it read was still so there.

mod lead;
mod queue;
mod stats;
mod sync;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use base::parallel::Pool;
use lama::Key;

pub(crate) use self::lead::Alone;
use self::queue::{Broken, Queue, Ticket};
pub use self::stats::CommitStats;
pub(crate) use self::stats::Counters;
use crate::live::{EdgeId, Update};
use crate::log::Durability;
use crate::validation::{Failure, ReadSet};
use crate::{Database, Error, ErrorKind, Result};

/// With so many requests in the queue, who submits one commits them.
const MOST_WAITING: usize = 1 << 14;

/// When something was committed, and the names of the edges that it added to a multigraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The epoch from which on it is seen.
    pub epoch: u64,
    /// Its place among the commits of this epoch: they act in this order.
    pub place: u32,
    /// Of a multigraph, the number of each edge that was added; `None` of a loop, which an ordered graph does not store.
    pub(crate) numbers: Vec<Option<u64>>,
}

/// An edge that a transaction adds. Once that is committed, [`Committed::edge_id`] knows its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEdge {
    /// Of a multigraph, the keys of its ends.
    pub(crate) ends: Option<Box<(Key, Key)>>,
    /// Its place among those that the transaction adds.
    pub(crate) place: usize,
}

impl Committed {
    /// The lasting name of an edge that this transaction added to a multigraph. `None` in a graph without parallel edges,
    /// whose ends name an edge, and of a loop of an ordered graph, which is not stored.
    pub fn edge_id(&self, edge: &NewEdge) -> Option<EdgeId> {
        let number = (*self.numbers.get(edge.place)?)?;
        let (source, target) = edge.ends.as_deref()?.clone();
        Some(EdgeId { source, target, number })
    }
}

/// What a caller wants to happen.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) updates: Updates,
    /// The group is at least so durable before it is answered.
    pub(crate) durability: Durability,
    /// What must not have changed.
    pub(crate) reads: Option<Box<ReadSet>>,
    /// Where the caller looks for when it happened.
    pub(crate) outcome: Option<Arc<OnceLock<Committed>>>,
    /// It happens only if those of its sequence before it have.
    pub(crate) sequence: Option<Sequence>,
    /// It was refused.
    pub(crate) has_failed: bool,
}

/// Commits of which each happens only if all those before it have: what is behind one that is refused is refused, too.
///
/// Whoever [submits](Database::submit_next) many without waiting for each so commits no more than whoever waits.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    has_ended: Arc<AtomicBool>,
}

impl Sequence {
    fn require_unbroken(&self) -> Result<()> {
        match self.has_ended.load(Ordering::Relaxed) {
            true => Err(Error::Option("a commit before it was refused".into())),
            false => Ok(()),
        }
    }
}

/// The updates of a request: most often one.
#[derive(Debug)]
pub(crate) enum Updates {
    One(Update),
    Many(Vec<Update>),
}

impl Request {
    /// Of a caller who read nothing.
    fn blind(updates: Updates, durability: Durability) -> Self {
        Self { updates, durability, reads: None, outcome: None, sequence: None, has_failed: false }
    }

    /// # Errors
    /// One of its sequence before it has not happened.
    fn require_next(&self) -> Result<()> {
        self.sequence.as_ref().map_or(Ok(()), Sequence::require_unbroken)
    }
}

impl Updates {
    fn as_slice(&self) -> &[Update] {
        match self {
            Self::One(update) => std::slice::from_ref(update),
            Self::Many(updates) => updates,
        }
    }
}

impl From<&[Update]> for Updates {
    fn from(updates: &[Update]) -> Self {
        match updates {
            [update] => Self::One(update.clone()),
            updates => Self::Many(updates.to_vec()),
        }
    }
}

/// What callers and leaders share.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    queue: Queue<Request>,
    failures: Mutex<Failures>,
    num_failures: AtomicUsize,
    pub(crate) counters: Counters,
}

/// Failures that nobody has asked for yet.
#[derive(Debug, Default)]
struct Failures {
    /// Most requests do well, and have nothing here.
    by_ticket: HashMap<Ticket, Failure>,
    /// Requests that were not answered when their callers went without asking.
    abandoned: HashSet<Ticket>,
}

impl Commits {
    /// A request has not happened.
    fn refuse(&self, ticket: Ticket, request: &mut Request, failure: Failure) {
        request.has_failed = true;
        if let Some(sequence) = &request.sequence {
            // Who leads next learns of it with the right to lead.
            sequence.has_ended.store(true, Ordering::Relaxed);
        }
        self.fail(ticket, failure);
    }

    fn count_error(&self, error: &Error) {
        Counters::count(match error.kind() {
            ErrorKind::InvalidInput => &self.counters.invalid,
            _ => &self.counters.failures,
        });
    }

    fn fail(&self, ticket: Ticket, failure: Failure) {
        match &failure {
            Failure::Conflict(_) => Counters::count(&self.counters.conflicts),
            Failure::Error(error) => self.count_error(error),
        }
        let mut failures = self.lock_failures();
        if !failures.abandoned.remove(&ticket) {
            failures.by_ticket.insert(ticket, failure);
        }
        self.num_failures.store(failures.by_ticket.len(), Ordering::Release);
    }

    /// Nobody will ask what became of a request: a failure would stay for ever, and make all others look for theirs.
    fn abandon(&self, ticket: Ticket) {
        let mut failures = self.lock_failures();
        failures.by_ticket.remove(&ticket);
        failures.abandoned.insert(ticket);
        failures.abandoned.retain(|&ticket| !self.queue.is_answered(ticket));
        self.num_failures.store(failures.by_ticket.len(), Ordering::Release);
    }

    fn lock_failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of an answered request.
    fn answer(&self, ticket: Ticket) -> Result<(), Failure> {
        if self.num_failures.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let mut failures = self.lock_failures();
        let failure = failures.by_ticket.remove(&ticket);
        self.num_failures.store(failures.by_ticket.len(), Ordering::Release);
        failure.map_or(Ok(()), Err)
    }
}

impl From<Broken> for Error {
    fn from(_: Broken) -> Self {
        let what = "a commit panicked, and what became of those beside it is not known: open the database anew";
        Self::Option(what.into())
    }
}

/// A commit that was asked for and is not waited for yet.
///
/// It happens once somebody waits, for this one or a later one, whoever's that is. Who drops it waits, and does not learn
/// what became of it.
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
            // Who wants to know waits for it.
            let _ = self.finish();
        } else if self.database.require_here().is_ok() {
            // What is committed here could panic once more: that is left to others.
            self.database.commits().abandon(self.ticket);
        }
    }
}

impl Database {
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
    use std::time::Duration;

    use base::storage::FaultStorage;

    use super::*;

    /// Their failures would stay, and every answer look for its own among them.
    #[test]
    fn failures_of_those_who_panic_do_not_stay() {
        let pool = Pool::new(1).unwrap();
        let db = Database::in_memory(Default::default()).unwrap();
        let num_failures = || db.commits().num_failures.load(Ordering::Relaxed);
        let submit = |weight: i64| db.submit(&[Update::add_weighted_edge(1, 2, weight)], &pool).unwrap();
        // The graph has no weights. One is not answered when its caller panics, the other is.
        for is_answered in [false, true] {
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _wrong = submit(3);
                if is_answered {
                    assert!(submit(4).wait().is_err());
                    assert_eq!(num_failures(), 1);
                }
                panic!("planned");
            }));
            assert!(panicked.is_err());
            db.submit(&[Update::add_edge(1, 2)], &pool).unwrap().wait().unwrap();
            assert_eq!((num_failures(), db.commits().lock_failures().by_ticket.len()), (0, 0));
        }
        db.commits().abandon(0);
        assert!(db.commits().lock_failures().abandoned.is_empty());
        assert!(submit(5).wait().is_err());
    }

    /// As the documents say.
    #[test]
    fn more_than_sixteen_million_updates_are_very_many() {
        let db = Database::in_memory(Default::default()).unwrap();
        let is_very_large = |num_updates| db.background().is_very_large(num_updates);
        assert!(!is_very_large(1 << 24) && is_very_large((1 << 24) + 1));
        db.set_checkpoint_bytes(None);
        assert!(!is_very_large(1 << 40));
    }

    /// Whoever asks for less than others in the group gets what those ask for, and nobody gets less.
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

    #[test]
    fn a_patient_leader_waits_for_those_who_come_again() {
        let queue = Queue::default();
        let groups = Mutex::new(Vec::new());
        let wait = |ticket: Ticket| {
            let commit = |_: Ticket, requests: &mut Vec<()>| groups.lock().unwrap().push(requests.len());
            queue.wait(ticket, commit).unwrap();
        };
        let submit = || queue.submit(()).0;
        submit();
        wait(submit());
        queue.set_patience(Duration::from_secs(600));
        std::thread::scope(|scope| {
            let first = submit();
            let leader = scope.spawn(move || wait(first));
            for _ in 0..1_000 {
                std::thread::yield_now();
            }
            assert!(!queue.is_answered(first), "another one is expected");
            wait(submit());
            leader.join().unwrap();
        });
        // Who does not come is waited for once, and not for long.
        queue.set_patience(Duration::from_millis(1));
        wait(submit());
        queue.set_patience(Duration::from_secs(600));
        wait(submit());
        assert_eq!(*groups.lock().unwrap(), [2, 2, 1, 1]);
    }

    /// Somebody who is told nothing, or that all is well, is worse off than one who is told to open the database anew.
    #[test]
    fn a_leader_that_panics_answers_nobody_and_wakes_everybody() {
        let queue = Arc::new(Queue::default());
        let tickets = [(); 3].map(|()| queue.submit(()).0);
        let (sender, told) = std::sync::mpsc::channel();
        let tell_from_thread = |ask: fn(&Queue<()>, Ticket) -> Result<(), Broken>| {
            let (queue, sender) = (Arc::clone(&queue), sender.clone());
            std::thread::spawn(move || sender.send(ask(&queue, tickets[1])).unwrap());
        };
        let commit = |first: Ticket, requests: &mut Vec<()>| {
            assert_eq!((first, requests.len()), (tickets[0], 3));
            tell_from_thread(|queue, ticket| queue.wait(ticket, |_, _| unreachable!("its request is taken")));
            tell_from_thread(|queue, _| queue.admit().map(drop));
            // By then they are most often parked.
            for _ in 0..10_000 {
                std::thread::yield_now();
            }
            panic!("planned");
        };
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.wait(tickets[0], commit)));
        assert!(waited.is_err());
        for _ in 0..2 {
            assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(Err(Broken)));
        }
        // Nor does anybody lead from then on.
        let late = queue.submit(()).0;
        for ticket in tickets.into_iter().chain([late]) {
            assert_eq!(queue.wait(ticket, |_, _| unreachable!("nobody knows what is committed")), Err(Broken));
            assert!(!queue.is_answered(ticket));
        }
        assert_eq!(queue.admit().map(drop), Err(Broken));
    }

    #[test]
    fn who_is_admitted_and_panics_has_taken_nothing_out() {
        let queue = Queue::default();
        let ticket = queue.submit(()).0;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _leading = queue.admit().unwrap();
            panic!("planned");
        }));
        assert!(panicked.is_err());
        drop(queue.admit().unwrap());
        let mut num_requests = 0;
        queue.wait(ticket, |_, requests| num_requests = requests.len()).unwrap();
        assert_eq!((num_requests, queue.is_answered(ticket)), (1, true));
    }
}
