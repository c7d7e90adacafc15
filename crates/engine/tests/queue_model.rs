//! Every interleaving of callers that submit, wait, lead and are admitted, as far as the memory model of the language
//! allows them: a model checker runs the module `queue` with locks, atomics and threads of its own. It also finds where
//! all are parked and nobody wakes them.

#![allow(dead_code)]

/// What the module is made of.
mod sync {
    use std::cell::Cell;
    use std::time::Duration;

    pub(crate) use loom::hint::spin_loop as hint;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread::{Thread, current, park, yield_now};

    // To look again changes nothing, and makes the state space large.
    pub(crate) const SPINS: u32 = 8;
    pub(crate) const LOOKS: u32 = 1;
    pub(crate) const ENOUGH: usize = 2;
    pub(crate) const TURNS: u32 = 2;

    pub(crate) fn num_cores() -> u64 {
        2
    }

    /// How often a leader looked whether those were there whom it expected, in all interleavings.
    pub(crate) static NUM_LOOKS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

    /// Goes on by a nanosecond with each look, and not by itself.
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
use queue::{Queue, Ticket};

/// What is committed: by one at a time, in the order of the tickets, and seen by whoever has an answer.
struct World {
    queue: Queue<u64>,
    num_leaders: AtomicU64,
    /// Written and read without an order of its own: answers are to bring it.
    published: AtomicU64,
}

impl World {
    fn new() -> Arc<Self> {
        let (num_leaders, published) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { queue: Queue::default(), num_leaders, published })
    }

    /// Its leaders wait for two requests, and look once more at most when one lacks.
    fn patient() -> Arc<Self> {
        let world = Self::new();
        world.queue.submit(0);
        world.submit_and_wait();
        world.queue.set_patience(Duration::from_nanos(1));
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

/// Runs each body on a thread of its own, the first on this one.
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

/// Leads without a request, and submits one meanwhile if it `commits`.
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
fn who_is_admitted_leads_alone() {
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
fn what_nobody_waits_for_is_committed_with_the_next() {
    check(2, || {
        let world = World::new();
        world.queue.submit(0);
        together(vec![caller(&world, 1), caller(&world, 1)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn who_is_expected_is_waited_for_and_not_for_ever() {
    check(2, || {
        let world = World::patient();
        together(vec![caller(&world, 1), caller(&world, 1)]);
        assert_eq!(world.published.load(Ordering::Relaxed), 4);
    });
    // The second is expected, and never comes.
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
    assert!(sync::NUM_LOOKS.load(Ordering::Relaxed) > 0, "nobody was waited for");
}
