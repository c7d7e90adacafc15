//! Background checkpoints and maintenance.
//!
//! One thread checkpoints once the changes in memory have grown enough. Another then merges if a merge is due. Both
//! share a budget of bytes a second. The threads start on first use, and park without work.
//!
//! A checkpoint ignores the budget while an append or another snapshot waits for it, and while commits use up their
//! room. Commits may add a fixed number of bytes before they wait. The budget does not hold while the used part of that
//! room is larger than a quarter of the part of the snapshot that is written. At an even rate, commits then wait only
//! if they would also wait beside a checkpoint at full speed. An exception: more than three quarters of the
//! checkpoint's work follow its last byte.
//!
//! A snapshot also costs its readers: each page that it changes has to be patched again. So if changes come fast, the
//! thread *rests* after a snapshot, for a multiple of its duration, unless far more changes wait by then. A snapshot of
//! four times as many changes touches few more pages.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anden_base::parallel::Pool;
use anden_base::process::Helpers;
use anden_base::progress::Progress;
use anden_snapshots::Store;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Live;
use super::budget::WriteBudget;
use crate::{Error, ErrorKind, Result};

/// Bytes of changes in memory from which on a checkpoint is due.
const CHECKPOINT_BYTES: u64 = 64 << 20;
/// The thread rests for this many times the duration of the last snapshot,
const REST: u32 = 15;
/// unless changes of this many times the due bytes wait.
const MUCH: u64 = 4;
/// Changes of this many times the due bytes may come behind a snapshot that is being written.
const BEHIND: u64 = 3;
/// With a memory budget, the due bytes are one part in this many of the budget beyond the fixed needs. A few times the
/// due bytes may wait, and writing takes a few times as much again, however densely the changes lie.
const CHECKPOINT_SHARE: u64 = 48;
/// A smaller checkpoint is not worth its fixed cost.
const LEAST_CHECKPOINT_BYTES: u64 = 1 << 20;
/// Where the system limits addresses, the due bytes are one part in this many of those of a memtable. Until a snapshot
/// is published, changes of four times the due bytes may come into the memtable, and one large batch.
const ADDRESS_SHARE: u64 = 12;
/// Where the system limits addresses, a batch in the memtable has at most one update for this many bytes of it. An
/// update rewrites a list and its page in both directions.
const ADDRESSES_OF_UPDATE: u64 = 1024;
/// Default limit of the bytes a second that the background writes: a fraction of a disk's bandwidth.
const WRITE_RATE: u64 = 100 << 20;
/// The budget holds while commits have used at most a quarter as large a part of their room as is written of the
/// snapshot.
const USED_SHARE: u64 = 4;
/// Interval at which a throttled write checks whether a caller waits for it.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Typical memory of an update until it is in a snapshot.
const UPDATE_BYTES: u64 = 16;
/// Batches up to this size go to the memtable, even with a small checkpoint size.
const LARGE_BATCH: usize = 1 << 18;
/// No limit.
const UNLIMITED: u64 = u64::MAX;

/// The bytes of changes from which on a checkpoint is due, with this memory budget. Without one, with the memory that is
/// free now: in a small control group, checkpoints come earlier.
pub(crate) fn checkpoint_bytes(memory: Option<u64>) -> u64 {
    let memory = memory.unwrap_or_else(anden_base::memory::available);
    let free = memory.saturating_sub(super::checkpoint::FIXED_BYTES);
    (free / CHECKPOINT_SHARE).clamp(LEAST_CHECKPOINT_BYTES, CHECKPOINT_BYTES)
}

/// What a memtable has addresses for.
#[derive(Clone, Copy, Debug)]
struct AddressLimits {
    /// Maximum of the due bytes.
    due_bytes: u64,
    /// Maximum number of updates in a batch.
    batch_updates: u64,
}

impl AddressLimits {
    /// For a memtable with this many bytes of nodes.
    fn of(memtable_bytes: u64) -> Self {
        let due_bytes = (memtable_bytes / ADDRESS_SHARE).max(LEAST_CHECKPOINT_BYTES);
        Self { due_bytes, batch_updates: memtable_bytes / ADDRESSES_OF_UPDATE }
    }
}

/// The background threads and their orders. Dropping this stops the threads.
#[derive(Debug)]
pub(crate) struct Background {
    work: Arc<BackgroundState>,
    threads: Helpers,
    has_threads: Mutex<bool>,
}

/// The state that the threads share.
#[derive(Debug)]
struct BackgroundState {
    // Dropped first: the WAL is written only while the store holds the lock.
    live: Arc<Live>,
    store: Arc<Store>,
    checkpoint_bytes: AtomicU64,
    addresses: AddressLimits,
    /// Bytes of changes in no snapshot after the last commit, without those being written.
    pending_bytes: AtomicU64,
    /// Bytes of changes at the last failure; the next attempt needs more.
    failed_bytes: AtomicU64,
    /// Whether a checkpoint is ordered or runs.
    is_ordered: AtomicBool,
    /// Whether the thread rests, and would else make a snapshot.
    is_resting: AtomicBool,
    /// Held by a merge of maintenance, and by a caller that keeps maintenance off.
    maintenance: Mutex<()>,
    /// Number of callers that wait for a merge to end.
    num_awaiting: AtomicUsize,
    orders: Mutex<Orders>,
    /// Signals an order.
    ordered: Condvar,
}

#[derive(Debug)]
struct Orders {
    is_snapshot_wanted: bool,
    is_merge_wanted: bool,
    is_closing: bool,
    budget: WriteBudget,
    report: BackgroundReport,
}

/// A period without merges of maintenance. Dropping the guard ends it.
#[derive(Debug)]
pub struct MaintenanceHold<'db>(#[expect(dead_code, reason = "held")] MutexGuard<'db, ()>);

/// Counters of the background since the database was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackgroundReport {
    pub(crate) num_checkpoints: u64,
    pub(crate) num_merges: u64,
    /// Bytes that checkpoints and merges wrote.
    pub(crate) num_bytes: u64,
    /// Pauses to keep to the budget.
    pub(crate) num_pauses: u64,
    /// The error of the last attempt, if it failed.
    pub(crate) error: Option<Error>,
}

impl Background {
    /// No orders and no threads yet.
    pub(crate) fn new(store: Arc<Store>, live: Arc<Live>) -> Self {
        let orders = Orders {
            is_snapshot_wanted: false,
            is_merge_wanted: false,
            is_closing: false,
            budget: WriteBudget::new(WRITE_RATE),
            report: BackgroundReport::default(),
        };
        let work = BackgroundState {
            store,
            live,
            checkpoint_bytes: AtomicU64::new(checkpoint_bytes(None)),
            addresses: AddressLimits::of(anden_memtable::reservable_bytes()),
            pending_bytes: AtomicU64::new(0),
            failed_bytes: AtomicU64::new(0),
            is_ordered: AtomicBool::new(false),
            is_resting: AtomicBool::new(false),
            maintenance: Mutex::default(),
            num_awaiting: AtomicUsize::new(0),
            orders: Mutex::new(orders),
            ordered: Condvar::new(),
        };
        Self { work: Arc::new(work), threads: Helpers::default(), has_threads: Mutex::default() }
    }

    /// Sets the bytes of changes from which on a checkpoint is due; `None`: never.
    pub(crate) fn set_checkpoint_bytes(&self, num_bytes: Option<u64>) {
        self.work.checkpoint_bytes.store(num_bytes.unwrap_or(UNLIMITED), Ordering::Relaxed);
    }

    /// Bytes of changes that may come behind a snapshot that is being written.
    pub(crate) fn most_bytes(&self) -> Option<u64> {
        Some(self.work.room()).filter(|&room| room != UNLIMITED)
    }

    /// Whether a batch of this many updates is larger than the changes that ever wait for a snapshot.
    pub(crate) fn is_very_large(&self, num_updates: usize) -> bool {
        let checkpoint_bytes = self.work.checkpoint_bytes();
        let is_larger = num_updates as u64 > checkpoint_bytes.saturating_mul(MUCH) / UPDATE_BYTES;
        let is_beyond_addresses = num_updates as u64 > self.work.addresses.batch_updates;
        checkpoint_bytes != UNLIMITED && (num_updates > LARGE_BATCH && is_larger || is_beyond_addresses)
    }

    /// Whether a checkpoint is ordered or runs.
    pub(crate) fn is_ordered(&self) -> bool {
        self.work.is_ordered.load(Ordering::Relaxed)
    }

    /// Limits the bytes a second that the background writes; `None`: no limit.
    pub(crate) fn set_write_rate(&self, bytes_per_second: Option<u64>) {
        self.work.orders.lock().budget.set_rate(bytes_per_second);
        self.work.ordered.notify_all();
    }

    pub(crate) fn write_rate(&self) -> Option<u64> {
        self.work.orders.lock().budget.rate()
    }

    /// Notes the bytes of changes that are in no snapshot, and orders a checkpoint if one is due.
    pub(crate) fn has_pending(&self, num_bytes: u64) {
        self.work.pending_bytes.store(num_bytes, Ordering::Relaxed);
        let due_bytes = self.work.due_bytes();
        let is_enough = match self.work.is_resting.load(Ordering::Relaxed) {
            true => num_bytes > due_bytes.saturating_mul(MUCH),
            false => num_bytes > due_bytes,
        };
        if !is_enough {
            return;
        }
        let mut orders = self.work.orders.lock();
        // One order is enough: the thread makes snapshots as long as changes are due.
        if orders.is_snapshot_wanted || orders.is_closing {
            return;
        }
        orders.is_snapshot_wanted = true;
        // Before the thread learns of it, because the thread resets the flag when the order ends.
        self.work.is_ordered.store(true, Ordering::Relaxed);
        drop(orders);
        self.work.ordered.notify_all();
        let mut has_threads = self.has_threads.lock();
        if !*has_threads {
            let spawn = |name: &str, body: fn(&BackgroundState)| {
                let work = Arc::clone(&self.work);
                self.threads.spawn(name, move || body(&work))
            };
            // Without a thread, snapshots are made on request only.
            if spawn("anden-snapshots", BackgroundState::make_snapshots).is_err() {
                // Commits must not wait for a snapshot that no thread makes.
                self.work.orders.lock().is_snapshot_wanted = false;
                self.work.is_ordered.store(false, Ordering::Relaxed);
                return;
            }
            *has_threads = true;
            // Without this thread, merges run on request only.
            let _ = spawn("anden-maintenance", BackgroundState::run_maintenance);
        }
    }

    /// Waits for a running merge, and keeps others from beginning.
    pub(crate) fn hold_maintenance(&self) -> MaintenanceHold<'_> {
        self.work.num_awaiting.fetch_add(1, Ordering::Relaxed);
        let held = self.work.maintenance.lock();
        self.work.num_awaiting.fetch_sub(1, Ordering::Relaxed);
        MaintenanceHold(held)
    }

    /// As [`hold_maintenance`](Self::hold_maintenance), but `None` if maintenance is running or held off.
    pub(crate) fn try_hold_maintenance(&self) -> Option<MaintenanceHold<'_>> {
        self.work.maintenance.try_lock().map(MaintenanceHold)
    }

    /// A snapshot was made, so earlier failures no longer delay the next.
    pub(crate) fn has_succeeded(&self) {
        self.work.failed_bytes.store(0, Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> BackgroundReport {
        self.work.orders.lock().report.clone()
    }

    /// Stops the threads. A snapshot that is being written is finished, a merge is cancelled.
    pub(crate) fn stop(&self) {
        // A forked child has none of the threads, so it has none to join.
        if self.is_elsewhere() {
            return;
        }
        self.work.orders.lock().is_closing = true;
        self.work.ordered.notify_all();
        self.work.is_ordered.store(false, Ordering::Relaxed);
        // Commits that wait for a checkpoint would else wait for ever.
        self.work.live.look_again();
        // If a thread panicked, the commits are still in memory.
        self.threads.join();
    }

    /// Whether this process is a forked child of the one that opened the database.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.threads.are_elsewhere()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

impl BackgroundState {
    /// The bytes of changes from which on a checkpoint is due, without failures; `UNLIMITED`: never.
    fn checkpoint_bytes(&self) -> u64 {
        match self.checkpoint_bytes.load(Ordering::Relaxed) {
            UNLIMITED => UNLIMITED,
            limit => limit.min(self.addresses.due_bytes),
        }
    }

    /// The bytes of changes from which on a checkpoint is due.
    fn due_bytes(&self) -> u64 {
        let limit = self.checkpoint_bytes();
        match self.failed_bytes.load(Ordering::Relaxed) {
            0 => limit,
            failed => limit.saturating_add(failed),
        }
    }

    /// Bytes of changes that may come behind a snapshot that is being written.
    fn room(&self) -> u64 {
        self.checkpoint_bytes().saturating_mul(BEHIND)
    }

    /// Waits until the written bytes are within the budget, unless `is_pressing` says that a caller waits. Returns the
    /// time waited. `is_pressing` must take no lock.
    fn keep_to_budget(&self, num_bytes: u64, is_pressing: impl Fn() -> bool) -> Duration {
        let begin = Instant::now();
        let mut orders = self.orders.lock();
        orders.report.num_bytes += num_bytes;
        if orders.is_closing || is_pressing() {
            return Duration::ZERO;
        }
        let Some(share) = orders.budget.take(num_bytes, begin) else { return Duration::ZERO };
        orders.report.num_pauses += u64::from(orders.budget.rest(share, begin).is_some());
        let mut now = begin;
        while let Some(rest) = orders.budget.rest(share, now) {
            if orders.is_closing || is_pressing() {
                orders.budget.give_back(share, now);
                break;
            }
            let rest = rest.min(LOOK_AGAIN);
            self.ordered.wait_for(&mut orders, rest);
            now = Instant::now();
        }
        now - begin
    }

    fn make_snapshots(&self) {
        while self.is_wanted(|orders| &mut orders.is_snapshot_wanted) {
            // Another caller may have been faster. More may be committed than one snapshot has.
            while self.live.num_pending_bytes() > self.due_bytes() && !self.orders.lock().is_closing {
                let begin = Instant::now();
                // After a panic the loop goes on, for without this thread commits would wait for ever.
                let made = catch_unwind(AssertUnwindSafe(|| self.make_snapshot()));
                let paused = made.unwrap_or_else(|_| {
                    self.has_failed(Error::internal("the thread that makes snapshots panicked"));
                    Duration::ZERO
                });
                self.rest(begin.elapsed().saturating_sub(paused).saturating_mul(REST));
            }
            self.end_order();
        }
    }

    /// Ends the order: no checkpoint runs, and commits must not wait for one.
    fn end_order(&self) {
        let orders = self.orders.lock();
        if orders.is_closing || !orders.is_snapshot_wanted {
            self.is_ordered.store(false, Ordering::Relaxed);
        }
        drop(orders);
        self.live.look_again();
    }

    /// Makes a snapshot. Returns the time waited for the budget.
    fn make_snapshot(&self) -> Duration {
        // The rest after an earlier snapshot may have ended the order.
        self.is_ordered.store(true, Ordering::Relaxed);
        let pace = CheckpointThrottle {
            work: self,
            num_bytes: self.live.num_pending_bytes(),
            num_written: AtomicU64::new(0),
            paused: Mutex::default(),
        };
        // The pending changes become immutable now.
        self.pending_bytes.store(0, Ordering::Relaxed);
        match self.live.checkpoint_pending(&self.store, &pace) {
            Ok(made) => {
                self.failed_bytes.store(0, Ordering::Relaxed);
                let mut orders = self.orders.lock();
                orders.report.error = None;
                orders.report.num_checkpoints += u64::from(made.is_some());
                // The new delta may make a merge due.
                orders.is_merge_wanted = true;
                drop(orders);
                self.ordered.notify_all();
            }
            Err(error) => self.has_failed(error),
        }
        pace.paused.into_inner()
    }

    /// Notes a failure; the next attempt needs more changes.
    fn has_failed(&self, error: Error) {
        tracing::error!(%error, "background checkpoint failed");
        self.failed_bytes.store(self.live.num_pending_bytes(), Ordering::Relaxed);
        self.orders.lock().report.error = Some(error);
    }

    /// Rests for this time, or until far more changes are due. Commits do not wait meanwhile.
    fn rest(&self, time: Duration) {
        let end = Instant::now() + time;
        // An order from before the rest would end the rest at once.
        self.orders.lock().is_snapshot_wanted = false;
        self.is_resting.store(true, Ordering::Relaxed);
        // Waiting commits order nothing. They go on waiting only if the next snapshot is made at once.
        let is_much = self.live.num_pending_bytes() > self.due_bytes().saturating_mul(MUCH);
        if !is_much {
            self.end_order();
        }
        let mut orders = self.orders.lock();
        while !is_much
            && !orders.is_closing
            && !orders.is_snapshot_wanted
            && let Some(rest) = end.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())
        {
            self.ordered.wait_for(&mut orders, rest);
        }
        // The loop of `make_snapshots` looks at the pending bytes itself.
        orders.is_snapshot_wanted = false;
        self.is_resting.store(false, Ordering::Relaxed);
    }

    fn run_maintenance(&self) {
        while self.is_wanted(|orders| &mut orders.is_merge_wanted) {
            let merged = self.merge_if_due();
            // Before the lock, which a subscriber of events may need.
            if let Err(error) = &merged
                && error.kind() != ErrorKind::Cancelled
            {
                tracing::error!(%error, "background merge failed");
            }
            let Orders { report, is_merge_wanted, .. } = &mut *self.orders.lock();
            match merged {
                Ok(merged) => {
                    report.num_merges += u64::from(merged);
                    // A snapshot made during the merge left further merges to this thread: check again.
                    *is_merge_wanted |= merged;
                }
                Err(error) if error.kind() == ErrorKind::Cancelled => {}
                Err(error) => report.error = Some(error),
            }
        }
    }

    fn merge_if_due(&self) -> Result<bool> {
        let _maintenance = self.maintenance.lock();
        Ok(self.store.maintain(&Pool::new(1)?, &MergeThrottle(self))?.is_some())
    }

    /// Waits for an order of this kind and takes it. Returns false once the database closes.
    fn is_wanted(&self, what: impl Fn(&mut Orders) -> &mut bool) -> bool {
        let mut orders = self.orders.lock();
        loop {
            if orders.is_closing {
                return false;
            }
            if std::mem::take(what(&mut orders)) {
                return true;
            }
            self.ordered.wait(&mut orders);
        }
    }
}

/// Throttles a checkpoint, unless a caller waits for it.
struct CheckpointThrottle<'a> {
    work: &'a BackgroundState,
    /// Bytes of the changes in memory; their file is hardly larger.
    num_bytes: u64,
    num_written: AtomicU64,
    paused: Mutex<Duration>,
}

impl CheckpointThrottle<'_> {
    fn is_pressing(&self) -> bool {
        let BackgroundState { live, store, .. } = self.work;
        live.is_snapshot_awaited() || store.is_awaited() || self.is_room_scarce()
    }

    /// Whether commits have used much of their room, relative to the written part of the snapshot.
    fn is_room_scarce(&self) -> bool {
        let num_written = self.num_written.load(Ordering::Relaxed).min(self.num_bytes);
        let (used, room) = (self.work.pending_bytes.load(Ordering::Relaxed), self.work.room());
        // The products may exceed 64 bits.
        u128::from(USED_SHARE) * u128::from(used) * u128::from(self.num_bytes)
            > u128::from(num_written) * u128::from(room)
    }
}

impl Progress for CheckpointThrottle<'_> {
    fn wrote(&self, num_bytes: u64) {
        self.num_written.fetch_add(num_bytes, Ordering::Relaxed);
        let paused = self.work.keep_to_budget(num_bytes, || self.is_pressing());
        *self.paused.lock() += paused;
    }
}

/// Throttles a merge, and cancels it when the database closes.
struct MergeThrottle<'a>(&'a BackgroundState);

impl Progress for MergeThrottle<'_> {
    fn wrote(&self, num_bytes: u64) {
        self.0.keep_to_budget(num_bytes, || self.0.num_awaiting.load(Ordering::Relaxed) > 0);
    }

    fn is_cancelled(&self) -> bool {
        self.0.orders.lock().is_closing
    }
}

#[cfg(test)]
mod tests {
    use anden_base::progress::Silent;
    use anden_testkit::wait_until;

    use super::*;
    use crate::{Engine, Missing, Update};

    fn is_ordered_after(work: &BackgroundState, end: impl FnOnce(&BackgroundState)) -> bool {
        work.is_ordered.store(true, Ordering::Relaxed);
        end(work);
        work.is_ordered.load(Ordering::Relaxed)
    }

    #[test]
    fn an_order_stands_while_the_next_snapshot_is_due() {
        let db = Engine::in_memory(Default::default()).unwrap();
        db.set_checkpoint_bytes(None);
        let pool = Pool::new(1).unwrap();
        let updates: Vec<Update> = (0..1000).map(|vertex| Update::add_edge(vertex, vertex + 1)).collect();
        db.apply(&updates, Missing::Lenient, &pool).unwrap();
        let work = &*db.background().work;
        let at_rest = |work: &BackgroundState| work.rest(Duration::ZERO);
        work.checkpoint_bytes.store(db.live_stats().delta_bytes / (MUCH + 1), Ordering::Relaxed);
        assert!(is_ordered_after(work, at_rest), "what waits becomes a snapshot at once");
        work.checkpoint_bytes.store(db.live_stats().delta_bytes, Ordering::Relaxed);
        assert!(!is_ordered_after(work, at_rest), "no worker makes one");

        work.orders.lock().is_snapshot_wanted = true;
        assert!(is_ordered_after(work, BackgroundState::end_order), "the worker has not begun its snapshots");
        work.orders.lock().is_closing = true;
        assert!(!is_ordered_after(work, BackgroundState::end_order), "no worker is left to make one");
    }

    #[test]
    fn held_maintenance_postpones_merges() {
        let db = Engine::in_memory(Default::default()).unwrap();
        let pool = Pool::new(1).unwrap();
        for first in [0, 5000] {
            let updates: Vec<Update> =
                (first..first + 5000).map(|vertex| Update::add_edge(vertex, vertex + 1)).collect();
            db.apply(&updates, Missing::Lenient, &pool).unwrap();
            db.checkpoint_pending().unwrap();
        }
        let held = db.hold_maintenance();
        assert_eq!(db.maintain(&pool, &Silent).unwrap(), None);
        let is_merged = std::thread::scope(|scope| {
            let merging = scope.spawn(|| db.background().work.merge_if_due());
            // The subject: no merge within this time. A merge of this graph takes a few milliseconds.
            std::thread::sleep(Duration::from_millis(50));
            assert!(!merging.is_finished(), "it waits");
            drop(held);
            merging.join().unwrap()
        });
        assert!(is_merged.unwrap());
        assert_eq!(db.maintain(&pool, &Silent).unwrap(), None, "nothing is due");
    }
    /// With a flag, the first caller to go on would let merges pause while the second waits.
    #[test]
    fn every_waiting_caller_counts() {
        let db = Engine::in_memory(Default::default()).unwrap();
        let num_awaiting = || db.background().work.num_awaiting.load(Ordering::Relaxed);
        let held = db.hold_maintenance();
        let mut left = std::thread::scope(|scope| {
            let waits = [(); 2].map(|()| {
                scope.spawn(|| {
                    let _held = db.hold_maintenance();
                    num_awaiting()
                })
            });
            wait_until("two callers wait", || num_awaiting() == 2);
            drop(held);
            waits.map(|wait| wait.join().unwrap())
        });
        left.sort_unstable();
        assert_eq!(left, [0, 1], "the other callers that wait");
    }
}
