//! Requests of callers, and the queue in which they wait.
//!
//! A request has the updates of one caller: all are committed, or none. Requests wait in a [queue](queue), and failures
//! wait until their callers ask. [`commit`](crate::commit) decides the outcome of each request.

mod polled;
mod queue;
mod stats;
mod sync;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anden_snapshots::Key;
use foldhash::{HashMap, HashSet};
use parking_lot::Mutex;

use self::polled::PolledCommits;
use self::queue::{Broken, CommitQueue};
pub(crate) use self::queue::{GroupLeader, Ticket};
pub(crate) use self::stats::{CommitCounters, CommitTimer};
pub use self::stats::{CommitLatencies, CommitStats, Histogram};
use crate::live::{EdgeId, Update};
use crate::log::Durability;
use crate::validation::{CommitFailure, ReadSet};
use crate::{Error, ErrorKind, Result};

/// The place of a commit, and the names of the edges that it added to a multigraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The epoch from which on the commit is visible.
    pub epoch: u64,
    /// Its place among the commits of this epoch; they take effect in this order.
    pub place: u32,
    /// In a multigraph, the number of each added edge. `None` for a loop, which an ordered graph does not store.
    pub(crate) numbers: Vec<Option<u64>>,
}

/// An edge that a transaction adds. After the commit, [`Committed::edge_id`] gives its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEdge {
    /// In a multigraph, the keys of its ends.
    pub(crate) ends: Option<Box<(Key, Key)>>,
    /// Its index among the edges that the transaction adds.
    pub(crate) place: usize,
}

impl Committed {
    /// The lasting name of an edge that this transaction added to a multigraph. `None` in a simple graph, where the
    /// ends name the edge, and for a loop of an ordered graph, which is not stored.
    pub fn edge_id(&self, edge: &NewEdge) -> Option<EdgeId> {
        let number = (*self.numbers.get(edge.place)?)?;
        let (source, target) = edge.ends.as_deref()?.clone();
        Some(EdgeId { source, target, number })
    }
}

/// A request to commit updates.
#[derive(Debug)]
pub(crate) struct CommitRequest {
    pub(crate) updates: CommitUpdates,
    /// The least durability of the group before this request is answered.
    pub(crate) durability: Durability,
    /// The read set; it must be unchanged.
    pub(crate) reads: Option<Box<ReadSet>>,
    /// Where the caller finds the epoch and place of the commit.
    pub(crate) outcome: Option<Arc<OnceLock<Committed>>>,
    /// The request happens only if all earlier ones of this sequence have.
    pub(crate) sequence: Option<Sequence>,
    /// Whether the request was refused.
    pub(crate) has_failed: bool,
}

/// A chain of commits: after one is refused, all later ones are refused too.
///
/// A caller that [submits](crate::Engine::submit_next) many commits without waiting thus commits the same prefix as a
/// caller that waits for each.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    has_ended: Arc<AtomicBool>,
}

impl Sequence {
    fn require_unbroken(&self) -> Result<()> {
        match self.has_ended.load(Ordering::Relaxed) {
            true => Err(Error::SequenceEnded),
            false => Ok(()),
        }
    }
}

/// The updates of a request, most often one. The separate case saves an allocation.
#[derive(Debug)]
pub(crate) enum CommitUpdates {
    One(Update),
    Many(Vec<Update>),
}

impl CommitRequest {
    /// A request without a read set.
    pub(crate) fn blind(updates: CommitUpdates, durability: Durability) -> Self {
        Self { updates, durability, reads: None, outcome: None, sequence: None, has_failed: false }
    }

    /// # Errors
    /// An earlier request of its sequence has not happened.
    pub(crate) fn require_next(&self) -> Result<()> {
        self.sequence.as_ref().map_or(Ok(()), Sequence::require_unbroken)
    }
}

impl CommitUpdates {
    pub(crate) fn as_slice(&self) -> &[Update] {
        match self {
            Self::One(update) => std::slice::from_ref(update),
            Self::Many(updates) => updates,
        }
    }
}

impl From<&[Update]> for CommitUpdates {
    fn from(updates: &[Update]) -> Self {
        match updates {
            // Most callers bring one update, and this copy needs no vector.
            [update] => Self::One(update.clone()),
            updates => Self::Many(updates.to_vec()),
        }
    }
}

/// State that callers and leaders share.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    pub(crate) queue: CommitQueue<CommitRequest>,
    failures: Mutex<Failures>,
    num_failures: AtomicUsize,
    pub(crate) counters: CommitCounters,
    pub(crate) polled: Arc<PolledCommits>,
}

/// Failures that no caller has asked for yet.
#[derive(Debug, Default)]
struct Failures {
    /// Only failed requests have an entry.
    by_ticket: HashMap<Ticket, CommitFailure>,
    /// Unanswered requests whose callers do not ask for the answer.
    abandoned: HashSet<Ticket>,
}

impl Commits {
    /// Refuses a request, and ends its sequence.
    pub(crate) fn refuse(&self, ticket: Ticket, request: &mut CommitRequest, failure: CommitFailure) {
        request.has_failed = true;
        if let Some(sequence) = &request.sequence {
            // The right to lead orders this before the next leader's load.
            sequence.has_ended.store(true, Ordering::Relaxed);
        }
        self.fail(ticket, failure);
    }

    pub(crate) fn count_error(&self, error: &Error) {
        // An invalid request is the caller's fault, anything else that of the disk or the program.
        CommitCounters::count(match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::NotFound => &self.counters.invalid,
            _ => &self.counters.failures,
        });
    }

    fn fail(&self, ticket: Ticket, failure: CommitFailure) {
        match &failure {
            CommitFailure::Conflict(_) => CommitCounters::count(&self.counters.conflicts),
            CommitFailure::Error(error) => self.count_error(error),
        }
        let mut failures = self.failures.lock();
        // An abandoned request has no caller that takes its failure out.
        if !failures.abandoned.remove(&ticket) {
            failures.by_ticket.insert(ticket, failure);
        }
        // Stored before the leader answers the group, so each answered caller finds its own failure.
        self.num_failures.store(failures.by_ticket.len(), Ordering::Release);
    }

    /// Notes that the caller will not ask for the answer. Otherwise its failure would stay for ever, and every other
    /// answer would search the table.
    pub(crate) fn abandon(&self, ticket: Ticket) {
        let mut failures = self.failures.lock();
        failures.by_ticket.remove(&ticket);
        failures.abandoned.insert(ticket);
        // Answered requests cannot fail any more: their entries go.
        failures.abandoned.retain(|&ticket| !self.queue.is_answered(ticket));
        self.num_failures.store(failures.by_ticket.len(), Ordering::Release);
    }

    /// The outcome of an answered request.
    pub(crate) fn answer(&self, ticket: Ticket) -> Result<(), CommitFailure> {
        // Most often no failure waits, and answers need no lock.
        if self.num_failures.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let mut failures = self.failures.lock();
        let failure = failures.by_ticket.remove(&ticket);
        self.num_failures.store(failures.by_ticket.len(), Ordering::Release);
        failure.map_or(Ok(()), Err)
    }
}

impl From<Broken> for Error {
    fn from(_: Broken) -> Self {
        Self::UnknownCommit
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anden_base::parallel::Pool;

    use super::*;
    use crate::Engine;

    /// Failures that stay would make every answer search the table.
    #[test]
    fn failures_of_those_who_panic_do_not_stay() {
        let pool = Pool::new(1).unwrap();
        let db = Engine::in_memory(Default::default()).unwrap();
        let num_failures = || db.commits().num_failures.load(Ordering::Relaxed);
        let submit = |weight: i64| db.submit(&[Update::add_weighted_edge(1, 2, weight)], &pool).unwrap();
        // The graph has no weights. One request is not answered when its caller panics; the other is.
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
            assert_eq!((num_failures(), db.commits().failures.lock().by_ticket.len()), (0, 0));
        }
        db.commits().abandon(0);
        assert!(db.commits().failures.lock().abandoned.is_empty());
        assert!(submit(5).wait().is_err());
    }

    #[test]
    fn a_patient_leader_waits_for_those_who_come_again() {
        let queue = CommitQueue::default();
        let groups = Mutex::new(Vec::new());
        let wait = |ticket: Ticket| {
            let commit = |_: Ticket, requests: &mut Vec<()>| groups.lock().push(requests.len());
            queue.wait(ticket, commit).unwrap();
        };
        let submit = || queue.submit(()).0;
        submit();
        wait(submit());
        queue.set_gather_time(Duration::from_secs(600));
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
        // The leader waits once, and briefly, for a caller that does not come.
        queue.set_gather_time(Duration::from_millis(1));
        wait(submit());
        queue.set_gather_time(Duration::from_secs(600));
        wait(submit());
        assert_eq!(*groups.lock(), [2, 2, 1, 1]);
    }

    /// A success answer, or none at all, would be worse for a caller than the advice to reopen the database.
    #[test]
    fn a_leader_that_panics_answers_nobody_and_wakes_everybody() {
        let queue = Arc::new(CommitQueue::default());
        let tickets = [(); 3].map(|()| queue.submit(()).0);
        let (sender, told) = std::sync::mpsc::channel();
        let tell_from_thread = |ask: fn(&CommitQueue<()>, Ticket) -> Result<(), Broken>| {
            let (queue, sender) = (Arc::clone(&queue), sender.clone());
            std::thread::spawn(move || sender.send(ask(&queue, tickets[1])).unwrap());
        };
        let commit = |first: Ticket, requests: &mut Vec<()>| {
            assert_eq!((first, requests.len()), (tickets[0], 3));
            tell_from_thread(|queue, ticket| queue.wait(ticket, |_, _| unreachable!("its request is taken")));
            tell_from_thread(|queue, _| queue.admit().map(drop));
            // Most often both threads are parked by then.
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
        // From then on no caller leads.
        let late = queue.submit(()).0;
        for ticket in tickets.into_iter().chain([late]) {
            assert_eq!(queue.wait(ticket, |_, _| unreachable!("it is not known what is committed")), Err(Broken));
            assert!(!queue.is_answered(ticket));
        }
        assert_eq!(queue.admit().map(drop), Err(Broken));
    }

    /// A caller may ask whether the queue is broken, and take the lock after a leader has panicked. Its group would
    /// answer the requests of that leader too.
    #[test]
    fn broken_queue_gives_no_lead() {
        let queue = CommitQueue::default();
        let ticket = queue.submit(()).0;
        let waited =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.wait(ticket, |_, _| panic!("planned"))));
        assert!(waited.is_err());
        assert_eq!(queue.lead(), Err(Broken));
    }

    #[test]
    fn panicked_exclusive_commit_keeps_queued_requests() {
        let queue = CommitQueue::default();
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
