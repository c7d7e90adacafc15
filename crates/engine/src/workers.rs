//! Who works on what: places for navigational queries, threads for analyses.
//!
//! Short queries and long analyses do not wait for each other: each kind has its share of the cores. A navigational
//! query runs on the thread of whoever asks it, once it has one of the *places*: handing it over to another thread
//! would take longer than most of them do. Analyses have a pool of threads, which the one at hand has to itself: loops
//! over a pool do not nest, so others wait for their turn. What a database does in the background has neither, but
//! threads of its own and a bound on what they write.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use base::parallel::Pool;

use crate::Result;

/// The cores of navigational queries, and those of analyses; at least one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Navigational queries that run at once.
    pub navigational: usize,
    /// Threads of an analysis.
    pub analytics: usize,
}

impl Split {
    /// A third of the cores for navigational queries, the others for analyses, as in Janus (Kimura, Simitsis,
    /// Wilkinson, CIDR 2017).
    pub fn of_cores(num_cores: usize) -> Self {
        let navigational = (num_cores / 3).max(1);
        Self { navigational, analytics: num_cores.saturating_sub(navigational).max(1) }
    }
}

impl Default for Split {
    /// Of all cores.
    fn default() -> Self {
        Self::of_cores(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// The places of navigational queries and the threads of analyses.
#[derive(Debug)]
pub struct Workers {
    split: Split,
    places: Places,
    /// What a query has that wants a pool: one thread, started when the first one runs.
    single: OnceLock<base::Result<Arc<Pool>>>,
    /// Started when the first analysis runs.
    analysts: OnceLock<base::Result<Arc<Pool>>>,
    /// A single place: the analysis at hand has all threads.
    turn: Places,
}

impl Workers {
    /// With a split of the cores, in which 0 counts as 1. No thread is started yet.
    pub fn new(split: Split) -> Self {
        let split = Split { navigational: split.navigational.max(1), analytics: split.analytics.max(1) };
        Self {
            split,
            places: Places::new(split.navigational),
            single: OnceLock::new(),
            analysts: OnceLock::new(),
            turn: Places::new(1),
        }
    }

    /// The split of the cores.
    pub fn split(&self) -> Split {
        self.split
    }

    /// Runs a short query on this thread, as soon as it has a place.
    ///
    /// Cost: some tens of nanoseconds where there is one.
    ///
    /// # Errors
    /// The system refuses to start the thread that a query gets for loops.
    pub fn navigate<R>(&self, query: impl FnOnce(&Arc<Pool>) -> R) -> Result<R> {
        let pool = self.single.get_or_init(|| Ok(Arc::new(Pool::new(1)?))).as_ref().map_err(Clone::clone)?;
        let _place = self.places.take();
        Ok(query(pool))
    }

    /// Runs an analysis on the threads of analyses, when its turn comes.
    ///
    /// It must not begin another one, which would wait for it.
    ///
    /// # Errors
    /// The system refuses to start a thread.
    pub fn analyse<R>(&self, analysis: impl FnOnce(&Arc<Pool>) -> R) -> Result<R> {
        let pool = self.analysts.get_or_init(|| Ok(Arc::new(Pool::new(self.split.analytics)?)));
        let pool = pool.as_ref().map_err(Clone::clone)?;
        let _turn = self.turn.take();
        Ok(analysis(pool))
    }
}

/// A number of places, which are free or taken.
///
/// Who comes while one is free takes it, also before those who wait: waking them takes longer than a query. But who
/// was woken in vain claims the next one that is given back.
#[derive(Debug)]
struct Places {
    state: Mutex<PlacesState>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct PlacesState {
    num_free: usize,
    num_waiting: usize,
    /// Of those, how many may not be passed any more.
    num_claims: usize,
}

/// Gives a place back when it goes.
struct Place<'a>(&'a Places);

impl Places {
    fn new(num_places: usize) -> Self {
        let state = PlacesState { num_free: num_places, ..PlacesState::default() };
        Self { state: Mutex::new(state), given_back: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, PlacesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place.
    fn take(&self) -> Place<'_> {
        let mut state = self.state();
        if state.num_free <= state.num_claims {
            state.num_waiting += 1;
            let mut has_claim = false;
            loop {
                state = self.given_back.wait(state).unwrap_or_else(PoisonError::into_inner);
                let others = if has_claim { 0 } else { state.num_claims };
                if state.num_free > others {
                    break;
                }
                state.num_claims += usize::from(!has_claim);
                has_claim = true;
            }
            state.num_waiting -= 1;
            state.num_claims -= usize::from(has_claim);
        }
        state.num_free -= 1;
        Place(self)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.num_free += 1;
        let (num_waiting, num_claims) = (state.num_waiting, state.num_claims);
        drop(state);
        match num_claims {
            0 if num_waiting > 0 => self.0.given_back.notify_one(),
            0 => {}
            // Only one of those who wait may have it.
            _ => self.0.given_back.notify_all(),
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

    /// Runs `work` on many threads at once, again and again; gives the most that were in it at the same time.
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
    fn nobody_has_more_than_there_is_and_everybody_comes_to_his_turn() {
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
