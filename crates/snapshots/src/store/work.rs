//! Counters of checkpoints and merges, and the progress of the one that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anden_base::progress::Progress;
use parking_lot::Mutex;

/// Counters of one kind of work since the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkStats {
    /// Number of those that succeeded.
    pub succeeded: u64,
    /// Number of those that failed or were cancelled.
    pub failed: u64,
    /// Bytes of the files that those that succeeded wrote.
    pub bytes: u64,
    /// Time of those that have ended, pauses for the write rate included.
    pub time: Duration,
    /// The one that runs; the youngest if there are several.
    pub running: Option<WorkProgress>,
}

/// Progress of a running checkpoint or merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkProgress {
    /// Time since it began.
    pub age: Duration,
    /// Bytes that it has written.
    pub bytes: u64,
    /// Units of work that are done: arcs for a merge. Always 0 for a checkpoint.
    pub done: u64,
    /// Units of work in all; `None` if that is not known.
    pub total: Option<u64>,
}

impl WorkProgress {
    /// The finished part, from 0 to 1; `None` if that is not known.
    pub fn share(&self) -> Option<f64> {
        // Counts of arcs lose no digit that a reader sees.
        self.total.map(|total| (self.done as f64 / total as f64).min(1.0))
    }
}

/// The counters of one kind of work.
#[derive(Debug, Default)]
pub struct WorkCounters {
    num_succeeded: AtomicU64,
    num_failed: AtomicU64,
    num_bytes: AtomicU64,
    nanos: AtomicU64,
    running: Mutex<Option<Arc<WorkState>>>,
}

#[derive(Debug)]
struct WorkState {
    begin: Instant,
    num_written: AtomicU64,
    done: AtomicU64,
    /// 0 if the total is not known.
    total: AtomicU64,
}

/// Running work. It counts as failed, unless [`succeed`](Self::succeed) ends it.
pub struct RunningWork<'a> {
    counters: &'a WorkCounters,
    state: Arc<WorkState>,
    progress: &'a dyn Progress,
    has_succeeded: bool,
}

impl WorkCounters {
    /// Begins work that reports to `progress`. The result counts the reports and passes them on.
    pub fn begin<'a>(&'a self, progress: &'a dyn Progress) -> RunningWork<'a> {
        let (num_written, done, total) = Default::default();
        let state = Arc::new(WorkState { begin: Instant::now(), num_written, done, total });
        *self.running.lock() = Some(Arc::clone(&state));
        RunningWork { counters: self, state, progress, has_succeeded: false }
    }

    /// The values of the counters.
    pub fn stats(&self) -> WorkStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let running = self.running.lock().clone();
        WorkStats {
            succeeded: get(&self.num_succeeded),
            failed: get(&self.num_failed),
            bytes: get(&self.num_bytes),
            time: Duration::from_nanos(get(&self.nanos)),
            running: running.map(|state| WorkProgress {
                age: state.begin.elapsed(),
                bytes: get(&state.num_written),
                done: get(&state.done),
                total: Some(get(&state.total)).filter(|&total| total > 0),
            }),
        }
    }
}

impl RunningWork<'_> {
    /// Ends the work, which wrote files of this many bytes. Returns the time that it took.
    pub fn succeed(mut self, num_bytes: u64) -> Duration {
        self.has_succeeded = true;
        self.counters.num_bytes.fetch_add(num_bytes, Ordering::Relaxed);
        self.state.begin.elapsed()
    }
}

impl Drop for RunningWork<'_> {
    fn drop(&mut self) {
        let WorkCounters { num_succeeded, num_failed, nanos, running, .. } = self.counters;
        if self.has_succeeded { num_succeeded } else { num_failed }.fetch_add(1, Ordering::Relaxed);
        let time = u64::try_from(self.state.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        nanos.fetch_add(time, Ordering::Relaxed);
        // Work that began later may have taken the place.
        running.lock().take_if(|state| Arc::ptr_eq(state, &self.state));
    }
}

impl Progress for RunningWork<'_> {
    fn stage(&self, name: &str, total: Option<u64>) {
        self.state.done.store(0, Ordering::Relaxed);
        self.state.total.store(total.unwrap_or(0), Ordering::Relaxed);
        self.progress.stage(name, total);
    }

    fn advance(&self, amount: u64) {
        self.state.done.fetch_add(amount, Ordering::Relaxed);
        self.progress.advance(amount);
    }

    fn wrote(&self, num_bytes: u64) {
        self.state.num_written.fetch_add(num_bytes, Ordering::Relaxed);
        self.progress.wrote(num_bytes);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use anden_base::progress::CancelFlag;

    use super::*;

    #[test]
    fn work_counts_and_shows_its_progress() {
        let (counters, flag) = (WorkCounters::default(), CancelFlag::default());
        assert_eq!(counters.stats(), WorkStats::default());
        let first = counters.begin(&flag);
        first.stage("first", Some(10));
        first.advance(4);
        first.wrote(7);
        let running = counters.stats().running.unwrap();
        assert_eq!((running.bytes, running.done, running.total), (7, 4, Some(10)));
        first.stage("second", None);
        let second = counters.begin(&flag);
        second.wrote(1);
        // The younger one is shown, and stays when the older one ends.
        assert!(first.succeed(9) <= counters.stats().time);
        assert_eq!(counters.stats().running.map(|running| running.bytes), Some(1));
        flag.cancel();
        assert!(second.is_cancelled());
        drop(second);
        let WorkStats { succeeded, failed, bytes, running, .. } = counters.stats();
        assert_eq!((succeeded, failed, bytes, running), (1, 1, 9, None));
    }
}
