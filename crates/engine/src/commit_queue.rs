//! What callers want committed, and the queue in which it waits.
//!
//! A request is what one caller wants to happen, all of it or nothing. Requests wait in a [queue](queue), and their
//! failures until the callers ask for them. What becomes of a request is decided by [`commit`](crate::commit).

mod queue;
mod stats;
mod sync;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lama::Key;

use self::queue::{Broken, Queue};
pub(crate) use self::queue::{Leading, Ticket};
pub use self::stats::CommitStats;
pub(crate) use self::stats::Counters;
use crate::live::{EdgeId, Update};
use crate::log::Durability;
use crate::validation::{Failure, ReadSet};
use crate::{Error, ErrorKind, Result};

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
/// So a caller that [submits](crate::Database::submit_next) many commits without waiting for each commits no more than one
/// that waits.
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
    /// Of a caller that read nothing.
    pub(crate) fn blind(updates: Updates, durability: Durability) -> Self {
        Self { updates, durability, reads: None, outcome: None, sequence: None, has_failed: false }
    }

    /// # Errors
    /// One of its sequence before it has not happened.
    pub(crate) fn require_next(&self) -> Result<()> {
        self.sequence.as_ref().map_or(Ok(()), Sequence::require_unbroken)
    }
}

impl Updates {
    pub(crate) fn as_slice(&self) -> &[Update] {
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
    pub(crate) queue: Queue<Request>,
    failures: Mutex<Failures>,
    num_failures: AtomicUsize,
    pub(crate) counters: Counters,
}

/// Failures that no caller has asked for yet.
#[derive(Debug, Default)]
struct Failures {
    /// Most requests do well, and have nothing here.
    by_ticket: HashMap<Ticket, Failure>,
    /// Requests that were not answered when their callers went without asking.
    abandoned: HashSet<Ticket>,
}

impl Commits {
    /// A request has not happened.
    pub(crate) fn refuse(&self, ticket: Ticket, request: &mut Request, failure: Failure) {
        request.has_failed = true;
        if let Some(sequence) = &request.sequence {
            // The next leader learns of it with the right to lead.
            sequence.has_ended.store(true, Ordering::Relaxed);
        }
        self.fail(ticket, failure);
    }

    pub(crate) fn count_error(&self, error: &Error) {
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

    /// The caller will not ask for the answer. Otherwise a failure would stay for ever, and make all others look for theirs.
    pub(crate) fn abandon(&self, ticket: Ticket) {
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
    pub(crate) fn answer(&self, ticket: Ticket) -> Result<(), Failure> {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::parallel::Pool;

    use super::*;
    use crate::Database;

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
        // A caller that does not come is waited for once, and not for long.
        queue.set_patience(Duration::from_millis(1));
        wait(submit());
        queue.set_patience(Duration::from_secs(600));
        wait(submit());
        assert_eq!(*groups.lock().unwrap(), [2, 2, 1, 1]);
    }

    /// No answer, or a good one, would be worse for a caller than the advice to open the database anew.
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
            assert_eq!(queue.wait(ticket, |_, _| unreachable!("it is not known what is committed")), Err(Broken));
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
