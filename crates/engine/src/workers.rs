//! The split of the cores: places for navigational queries, threads for analyses.
//!
//! Short queries and long analyses do not wait for each other, because each kind has its share of the cores. A
//! navigational query runs on its caller's thread, once it has one of the *places*: handing it to another thread would
//! take longer than most queries. Analyses share a pool of threads and run one after the other, because loops over a
//! pool do not nest. Background work has threads and a write budget of its own.

use std::sync::{Arc, OnceLock};

use anden_base::parallel::Pool;
use parking_lot::{Condvar, Mutex};

use crate::Result;

/// The cores for navigational queries, and those for analyses; at least one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Navigational queries that run at once.
    pub navigational: usize,
    /// Threads of an analysis.
    pub analytics: usize,
}

impl Split {
    /// A third of the cores for navigational queries, the rest for analyses, as in Janus (Kimura, Simitsis, Wilkinson,
    /// CIDR 2017).
    pub fn of_cores(num_cores: usize) -> Self {
        let navigational = (num_cores / 3).max(1);
        Self { navigational, analytics: num_cores.saturating_sub(navigational).max(1) }
    }
}

impl Default for Split {
    /// Splits all cores.
    fn default() -> Self {
        Self::of_cores(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// The places of navigational queries and the threads of analyses.
#[derive(Debug)]
pub struct Workers {
    split: Split,
    places: WorkerPermits,
    /// The pool for queries that need one: a single thread, started by the first query.
    single: OnceLock<anden_base::Result<Arc<Pool>>>,
    /// Started by the first analysis.
    analysts: OnceLock<anden_base::Result<Arc<Pool>>>,
    /// A single place: one analysis at a time has all threads.
    turn: WorkerPermits,
}

impl Workers {
    /// A split of the cores, in which 0 counts as 1. No thread is started yet.
    pub fn new(split: Split) -> Self {
        let split = Split { navigational: split.navigational.max(1), analytics: split.analytics.max(1) };
        Self {
            split,
            places: WorkerPermits::new(split.navigational),
            single: OnceLock::new(),
            analysts: OnceLock::new(),
            turn: WorkerPermits::new(1),
        }
    }

    /// The split of the cores.
    pub fn split(&self) -> Split {
        self.split
    }

    /// Runs a short query on this thread, as soon as a place is free.
    ///
    /// Cost: some tens of nanoseconds if a place is free.
    ///
    /// # Errors
    /// The system cannot start the query's thread for loops.
    pub fn navigate<R>(&self, query: impl FnOnce(&Arc<Pool>) -> R) -> Result<R> {
        // Before the wait for a place, so that starting the thread takes no place from others.
        let pool = self.single.get_or_init(|| Ok(Arc::new(Pool::new(1)?))).as_ref().map_err(Clone::clone)?;
        let _place = self.places.take();
        Ok(query(pool))
    }

    /// Runs an analysis on the analysis threads, once no other analysis runs.
    ///
    /// The analysis must not begin another one: that would wait for ever.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn analyse<R>(&self, analysis: impl FnOnce(&Arc<Pool>) -> R) -> Result<R> {
        let pool = self.analysts.get_or_init(|| Ok(Arc::new(Pool::new(self.split.analytics)?)));
        let pool = pool.as_ref().map_err(Clone::clone)?;
        let _turn = self.turn.take();
        Ok(analysis(pool))
    }
}

/// A number of places, each free or taken.
///
/// A caller takes a free place even before waiting ones: waking them takes longer than a query. A caller that was woken
/// in vain claims the next free place.
#[derive(Debug)]
struct WorkerPermits {
    state: Mutex<WorkerPermitsState>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct WorkerPermitsState {
    num_free: usize,
    num_waiting: usize,
    /// Waiting callers that must not be passed again.
    num_claims: usize,
}

/// A taken place; dropping it frees the place.
struct WorkerPermit<'a>(&'a WorkerPermits);

impl WorkerPermits {
    fn new(num_places: usize) -> Self {
        let state = WorkerPermitsState { num_free: num_places, ..WorkerPermitsState::default() };
        Self { state: Mutex::new(state), given_back: Condvar::new() }
    }

    /// Waits for a place.
    fn take(&self) -> WorkerPermit<'_> {
        let mut state = self.state.lock();
        // Claimed places count as taken, so that this caller cannot pass a claim.
        if state.num_free <= state.num_claims {
            state.num_waiting += 1;
            let mut has_claim = false;
            loop {
                self.given_back.wait(&mut state);
                // A claim reserves a place against callers without a claim only.
                let others = if has_claim { 0 } else { state.num_claims };
                if state.num_free > others {
                    break;
                }
                // Woken in vain: the next free place is reserved.
                state.num_claims += usize::from(!has_claim);
                has_claim = true;
            }
            state.num_waiting -= 1;
            state.num_claims -= usize::from(has_claim);
        }
        state.num_free -= 1;
        WorkerPermit(self)
    }
}

impl Drop for WorkerPermit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.num_free += 1;
        let (num_waiting, num_claims) = (state.num_waiting, state.num_claims);
        // Before the wake-up, because woken callers need the lock.
        drop(state);
        match num_claims {
            0 if num_waiting > 0 => {
                self.0.given_back.notify_one();
            }
            0 => {}
            // The place must go to a caller with a claim, so wake all: any one may have none.
            _ => {
                self.0.given_back.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn cores_are_split_one_to_two() {
        let split = |num_cores| {
            let Split { navigational, analytics } = Split::of_cores(num_cores);
            (navigational, analytics)
        };
        assert_eq!([0, 1, 2, 3, 6, 240].map(split), [(1, 1), (1, 1), (1, 1), (1, 2), (2, 4), (80, 160)]);
        let least = Workers::new(Split { navigational: 0, analytics: 0 });
        assert_eq!(least.split(), Split { navigational: 1, analytics: 1 });
    }

    /// Runs `work` on many threads repeatedly. Returns the largest number that were in it at once.
    fn most_at_once(work: impl Fn(&dyn Fn()) + Sync) -> usize {
        let (inside, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        work(&|| {
                            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            std::thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                            done.fetch_add(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 6 * 300);
        most.into_inner()
    }

    #[test]
    fn worker_limits_hold_and_all_callers_run() {
        let workers = Workers::new(Split { navigational: 2, analytics: 3 });
        assert_eq!(most_at_once(|body| workers.navigate(|_| body()).unwrap()), 2);
        let analysis = |body: &dyn Fn()| {
            workers
                .analyse(|pool| {
                    assert_eq!(pool.num_threads(), 3);
                    body();
                })
                .unwrap();
        };
        assert_eq!(most_at_once(analysis), 1);
    }

    #[test]
    fn a_place_comes_back_from_a_query_that_panics() {
        let workers = Workers::new(Split { navigational: 1, analytics: 1 });
        let query = std::panic::AssertUnwindSafe(|| workers.navigate(|_| -> () { panic!("a query of one's own") }));
        assert!(std::panic::catch_unwind(query).is_err());
        assert_eq!(workers.navigate(|pool| pool.num_threads()).unwrap(), 1);
    }
}
