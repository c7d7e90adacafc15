//! Every interleaving of callers that submit, wait, lead and are admitted, within the memory model of the language. A
//! model checker runs the module `queue` with its own locks, atomics and threads. It also finds deadlocks in which all
//! threads are parked.

#![allow(dead_code)]

/// The checker's replacements for the primitives of the module.
mod sync {
    use std::cell::Cell;
    use std::sync::PoisonError;
    use std::time::Duration;

    pub(crate) use loom::hint::spin_loop as hint;
    pub(crate) use loom::sync::MutexGuard;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use loom::thread::{Thread, current, park, yield_now};

    // More looks change nothing, but enlarge the state space.
    pub(crate) const SPINS: u32 = 8;
    pub(crate) const LOOKS: u32 = 1;
    pub(crate) const ENOUGH: usize = 2;
    pub(crate) const TURNS: u32 = 2;

    pub(crate) fn num_cores() -> u64 {
        2
    }

    /// The number of times that leaders checked for expected requests, in all interleavings.
    pub(crate) static NUM_LOOKS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

    /// The checker's mutex with the interface of `parking_lot`, which knows no poisoning.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// A clock that advances by a nanosecond with each read, and not by itself.
    pub(crate) struct Instant(Cell<u64>);

    impl Instant {
        pub(crate) fn now() -> Self {
            Self(Cell::new(0))
        }

        pub(crate) fn elapsed(&self) -> Duration {
            NUM_LOOKS.fetch_add(1, Ordering::Relaxed);
            let elapsed = self.0.get();
            self.0.set(elapsed + 1);
            Duration::from_nanos(elapsed)
        }
    }
}

#[path = "../src/commit_queue/queue.rs"]
mod queue;

use std::sync::Arc;
use std::time::Duration;

use loom::sync::atomic::{AtomicU64, Ordering};
use queue::{CommitQueue, Ticket};

/// The commits. One leader commits at a time, in the order of the tickets, and callers with an answer see the commits.
struct World {
    queue: CommitQueue<u64>,
    num_leaders: AtomicU64,
    /// Relaxed accesses: the answers must establish the order.
    published: AtomicU64,
}

impl World {
    fn new() -> Arc<Self> {
        let (num_leaders, published) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { queue: CommitQueue::default(), num_leaders, published })
    }

    /// A world whose leaders wait for two requests, and check at most once more if one is missing.
    fn patient() -> Arc<Self> {
        let world = Self::new();
        world.queue.submit(0);
        world.submit_and_wait();
        world.queue.set_gather_time(Duration::from_nanos(1));
        world
    }

    fn lead(&self, body: impl FnOnce()) {
        assert_eq!(self.num_leaders.fetch_add(1, Ordering::Relaxed), 0, "one leads at a time");
        body();
        self.num_leaders.fetch_sub(1, Ordering::Relaxed);
    }

    fn commit(&self, first: Ticket, requests: &[u64]) {
        self.lead(|| {
            assert_eq!(self.published.load(Ordering::Relaxed), first, "groups follow each other");
            self.published.store(first + requests.len() as u64, Ordering::Relaxed);
        });
    }

    fn submit_and_wait(&self) {
        let (ticket, _) = self.queue.submit(0);
        self.queue.wait(ticket, |first, requests| self.commit(first, requests)).unwrap();
        assert!(self.published.load(Ordering::Relaxed) > ticket, "an answer comes after what it answers");
    }
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Runs each body on a thread of its own, except the first, which runs on this thread.
fn together(bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let mut bodies = bodies.into_iter();
    let first = bodies.next();
    let threads: Vec<_> = bodies.map(loom::thread::spawn).collect();
    first.into_iter().for_each(|body| body());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn caller(world: &Arc<World>, num_requests: usize) -> Box<dyn FnOnce() + Send> {
    let world = Arc::clone(world);
    Box::new(move || (0..num_requests).for_each(|_| world.submit_and_wait()))
}

/// Leads without a request, and submits one meanwhile if `commits`.
fn admitted(world: &Arc<World>, commits: bool) -> Box<dyn FnOnce() + Send> {
    let world = Arc::clone(world);
    Box::new(move || {
        let leading = world.queue.admit().unwrap();
        world.lead(|| {});
        if commits {
            world.submit_and_wait();
        }
        drop(leading);
    })
}

#[test]
fn two_callers() {
    check(3, || {
        let world = World::new();
        together(vec![caller(&world, 2), caller(&world, 1)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn three_callers() {
    check(2, || {
        let world = World::new();
        together(vec![caller(&world, 1), caller(&world, 1), caller(&world, 1)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn exclusive_commit_leads_alone() {
    check(3, || {
        let world = World::new();
        together(vec![caller(&world, 1), admitted(&world, true)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 2);
    });
    check(2, || {
        let world = World::new();
        together(vec![caller(&world, 1), admitted(&world, false), admitted(&world, false)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn unawaited_commit_joins_the_next_group() {
    check(2, || {
        let world = World::new();
        world.queue.submit(0);
        together(vec![caller(&world, 1), caller(&world, 1)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn leader_waits_for_expected_callers_but_not_forever() {
    check(2, || {
        let world = World::patient();
        together(vec![caller(&world, 1), caller(&world, 1)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 4);
    });
    // The leader expects a second request, which never comes.
    check(2, || {
        let world = World::patient();
        together(vec![caller(&world, 1), admitted(&world, false)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 3);
    });
    check(2, || {
        let world = World::patient();
        together(vec![caller(&world, 1), admitted(&world, true)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 4);
    });
    assert!(sync::NUM_LOOKS.load(Ordering::Relaxed) > 0, "no leader waited");
}
