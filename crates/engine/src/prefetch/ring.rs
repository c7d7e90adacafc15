//! A bounded, lock-free queue of requests from readers to helper threads.
//!
//! A push never waits: a request that does not fit is returned, because it is only a hint. A helper without work parks
//! until a push. A helper registers as a sleeper and then checks the queue again; a pusher checks for sleepers after
//! its push. So one of the two sees the other.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use parking_lot::Mutex;

/// The queue of requests, and its sleeping helpers.
#[derive(Debug)]
pub(super) struct Ring<T> {
    queue: ArrayQueue<T>,
    is_closed: AtomicBool,
    /// Whether any helper sleeps. Mostly read, so that a push takes no lock.
    has_sleepers: AtomicBool,
    sleepers: Mutex<Vec<Thread>>,
}

/// The outcome of waiting for a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    Request(T),
    /// No request in time.
    Nothing,
    /// The ring is closed.
    Closed,
}

impl<T> Ring<T> {
    /// A ring with room for this many requests.
    pub fn new(capacity: usize) -> Self {
        Self {
            queue: ArrayQueue::new(capacity),
            is_closed: AtomicBool::new(false),
            has_sleepers: AtomicBool::new(false),
            sleepers: Mutex::default(),
        }
    }

    /// Adds a request, or returns it if the ring is full or closed.
    pub fn push(&self, request: T) -> Result<(), T> {
        if self.is_closed() {
            return Err(request);
        }
        self.queue.push(request)?;
        // Orders the push before the check for sleepers; `sleep` has the counterpart.
        fence(Ordering::SeqCst);
        if self.is_closed() {
            // The ring may have been closed and emptied before this push.
            self.clear();
        } else if self.has_sleepers.load(Ordering::Relaxed) {
            self.wake_one();
        }
        Ok(())
    }

    /// Waits for the next request, at most for `timeout`.
    pub fn next(&self, timeout: Option<Duration>) -> Next<T> {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if self.is_closed() {
                return Next::Closed;
            }
            if let Some(request) = self.queue.pop() {
                return Next::Request(request);
            }
            let rest = end.map(|end| end.saturating_duration_since(Instant::now()));
            if rest.is_some_and(|rest| rest.is_zero()) {
                return Next::Nothing;
            }
            self.sleep(rest);
        }
    }

    /// Closes the ring: drops all requests and ends all helpers.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.clear();
        while self.has_sleepers.load(Ordering::SeqCst) {
            self.wake_one();
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    fn clear(&self) {
        while self.queue.pop().is_some() {}
    }

    /// Parks unless there is a request; at most for `time` if given. May return spuriously.
    fn sleep(&self, time: Option<Duration>) {
        let mut sleepers = self.sleepers.lock();
        sleepers.push(std::thread::current());
        self.has_sleepers.store(true, Ordering::SeqCst);
        drop(sleepers);
        fence(Ordering::SeqCst);
        // Checked again after registering, so that a concurrent push is not missed.
        if self.queue.is_empty() && !self.is_closed() {
            time.map_or_else(std::thread::park, std::thread::park_timeout);
        }
        let me = std::thread::current().id();
        let mut sleepers = self.sleepers.lock();
        sleepers.retain(|sleeper| sleeper.id() != me);
        self.has_sleepers.store(!sleepers.is_empty(), Ordering::SeqCst);
    }

    fn wake_one(&self) {
        // A helper that holds the lock is about to sleep or wakes up. It checks the queue again by itself, or the next
        // push wakes it.
        let Some(mut sleepers) = self.sleepers.try_lock() else { return };
        let sleeper = sleepers.pop();
        self.has_sleepers.store(!sleepers.is_empty(), Ordering::SeqCst);
        drop(sleepers);
        if let Some(sleeper) = sleeper {
            sleeper.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn all_sleep(ring: &Ring<usize>, num_helpers: usize) -> bool {
        ring.sleepers.lock().len() == num_helpers
    }

    #[test]
    fn full_ring_returns_the_request() {
        let ring = Ring::new(2);
        assert_eq!([ring.push(1), ring.push(2), ring.push(3)], [Ok(()), Ok(()), Err(3)]);
        let next = || ring.next(None);
        assert_eq!((next(), ring.push(4), next()), (Next::Request(1), Ok(()), Next::Request(2)));
        ring.close();
        assert_eq!((ring.push(5), next()), (Err(5), Next::Closed));
    }

    #[test]
    fn requests_are_served_once_despite_sleeping_helpers() {
        const NUM_HELPERS: usize = 3;
        let ring = Ring::<usize>::new(64);
        let served: Vec<AtomicUsize> = (0..30_000).map(|_| AtomicUsize::new(0)).collect();
        let num_dropped = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..NUM_HELPERS {
                scope.spawn(|| {
                    while let Next::Request(request) = ring.next(None) {
                        served[request].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for round in 0..3 {
                // No request is lost if all helpers go to sleep during a push.
                while !all_sleep(&ring, NUM_HELPERS) {
                    std::thread::yield_now();
                }
                std::thread::scope(|pushers| {
                    for part in 0..2 {
                        let (ring, num_dropped) = (&ring, &num_dropped);
                        pushers.spawn(move || {
                            let first = (2 * round + part) * 5000;
                            for request in first..first + 5000 {
                                num_dropped.fetch_add(usize::from(ring.push(request).is_err()), Ordering::Relaxed);
                            }
                        });
                    }
                });
                let num_pushed = (round + 1) * 10_000;
                let num_served = || served.iter().map(|count| count.load(Ordering::Relaxed)).sum::<usize>();
                while num_served() + num_dropped.load(Ordering::Relaxed) < num_pushed {
                    std::thread::yield_now();
                }
            }
            while !all_sleep(&ring, NUM_HELPERS) {
                std::thread::yield_now();
            }
            ring.close();
        });
        assert!(served.iter().all(|count| count.load(Ordering::Relaxed) <= 1));
    }
}
