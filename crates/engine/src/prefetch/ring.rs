//! The way of requests from readers to scouts: bounded, and without a lock.
//!
//! A reader that pushes never waits: what does not fit is given back, for it is only a hint. A scout that finds nothing
//! sleeps until somebody pushes. One that is about to sleep says so first and then looks once more, and one who pushes
//! looks after the push whether a scout sleeps, so that either sees the other.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;

/// Requests under way.
#[derive(Debug)]
pub(super) struct Ring<T> {
    queue: ArrayQueue<T>,
    is_closed: AtomicBool,
    /// Whether any scout sleeps: mostly read, so that a push costs no lock.
    has_sleepers: AtomicBool,
    sleepers: Mutex<Vec<Thread>>,
}

/// What there is for a scout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    Request(T),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    Closed,
}

impl<T> Ring<T> {
    /// With room for so many requests.
    pub fn new(capacity: usize) -> Self {
        Self {
            queue: ArrayQueue::new(capacity),
            is_closed: AtomicBool::new(false),
            has_sleepers: AtomicBool::new(false),
            sleepers: Mutex::default(),
        }
    }

    /// Hands `request` over, or back where there is no room or nobody will ever come for it.
    pub fn push(&self, request: T) -> Result<(), T> {
        if self.is_closed() {
            return Err(request);
        }
        self.queue.push(request)?;
        fence(Ordering::SeqCst);
        if self.is_closed() {
            // Whoever closed it may have emptied it before this came.
            self.clear();
        } else if self.has_sleepers.load(Ordering::Relaxed) {
            self.wake_one();
        }
        Ok(())
    }

    /// The next request, once there is one; nothing for no longer than `patience` may say.
    pub fn next(&self, patience: Option<Duration>) -> Next<T> {
        let end = patience.map(|patience| Instant::now() + patience);
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

    /// Ends all scouts; what is under way is forgotten.
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

    /// Returns at once where there is a request, after `time` where that is given, and for no reason at times.
    fn sleep(&self, time: Option<Duration>) {
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.push(std::thread::current());
        self.has_sleepers.store(true, Ordering::SeqCst);
        drop(sleepers);
        fence(Ordering::SeqCst);
        if self.queue.is_empty() && !self.is_closed() {
            time.map_or_else(std::thread::park, std::thread::park_timeout);
        }
        let me = std::thread::current().id();
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.retain(|sleeper| sleeper.id() != me);
        self.has_sleepers.store(!sleepers.is_empty(), Ordering::SeqCst);
    }

    fn wake_one(&self) {
        // A scout that is about to sleep or to wake has the lock for some instructions: then it looks again by itself,
        // or the next push wakes it.
        let Ok(mut sleepers) = self.sleepers.try_lock() else { return };
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

    fn all_sleep(ring: &Ring<usize>, num_scouts: usize) -> bool {
        ring.sleepers.lock().unwrap().len() == num_scouts
    }

    #[test]
    fn what_does_not_fit_comes_back() {
        let ring = Ring::new(2);
        assert_eq!([ring.push(1), ring.push(2), ring.push(3)], [Ok(()), Ok(()), Err(3)]);
        let next = || ring.next(None);
        assert_eq!((next(), ring.push(4), next()), (Next::Request(1), Ok(()), Next::Request(2)));
        ring.close();
        assert_eq!((ring.push(5), next()), (Err(5), Next::Closed));
    }

    #[test]
    fn every_request_is_served_once_and_scouts_sleep_in_between() {
        const NUM_SCOUTS: usize = 3;
        let ring = Ring::<usize>::new(64);
        let served: Vec<AtomicUsize> = (0..30_000).map(|_| AtomicUsize::new(0)).collect();
        let num_dropped = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..NUM_SCOUTS {
                scope.spawn(|| {
                    while let Next::Request(request) = ring.next(None) {
                        served[request].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for round in 0..3 {
                // Nothing is lost when all go to sleep while somebody pushes.
                while !all_sleep(&ring, NUM_SCOUTS) {
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
            while !all_sleep(&ring, NUM_SCOUTS) {
                std::thread::yield_now();
            }
            ring.close();
        });
        assert!(served.iter().all(|count| count.load(Ordering::Relaxed) <= 1));
    }
}
