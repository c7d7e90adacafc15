//! Snapshots and upkeep that nobody asked for.
//!
//! One thread makes a snapshot once the changes in memory have grown enough; another merges after that where it
//! is due; both together write no faster than they may. They are begun when they are needed first, and parked while
//! there is nothing to do.
//!
//! A snapshot is written as fast as it can be while anybody waits for it, and while commits use up their room: they may
//! add so much before they wait, and whenever a larger part of that is used than a quarter of the part of the snapshot
//! that is written, the budget does not hold. At an even rate they then wait only where they would wait beside a snapshot
//! that is never slowed down, unless more than three quarters of making one come after its last byte.
//!
//! A snapshot costs more than to write it: whoever reads a page that it changes makes that page anew. So where changes
//! come fast, snapshots are not made as often as there is enough for one: after each its thread *rests*, for a
//! multiple of what it took, unless far more waits by then. A snapshot of four times as much changes few pages more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use base::parallel::Pool;
use base::process::Helpers;
use base::progress::Progress;
use lama::Store;

use super::budget::Budget;
use super::{Live, lock};
use crate::{Error, ErrorKind, Result};

/// A snapshot is made of changes that take so many bytes.
const CHECKPOINT_BYTES: u64 = 64 << 20;
/// After a snapshot that took some time, none is made for so many times as long,
const REST: u32 = 15;
/// unless changes wait that take so many times the bytes that one is made of.
const MUCH: u64 = 4;
/// So many times as much may wait behind one that is being written.
const BEHIND: u64 = 3;
/// With a budget, of changes that take this part of what it leaves: a few times as many may wait, and writing them takes
/// a few times as much again, however densely they lie.
const CHECKPOINT_SHARE: u64 = 48;
/// A snapshot of less is not worth while.
const LEAST_CHECKPOINT_BYTES: u64 = 1 << 20;
/// The bytes of a second that the background writes at most: a fraction of what a disk takes.
const WRITE_RATE: u64 = 100 << 20;
/// Commits may have used this part of their room, of the part of the snapshot that is written, for it to be slowed down.
const USED_SHARE: u64 = 4;
/// Who waits to write looks after this time whether anybody waits for what is written.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// What an update takes in memory, as a rule, until it is in a snapshot.
const UPDATE_BYTES: u64 = 16;
/// A batch of so many updates is worth while to be kept, however early snapshots are made.
const LARGE_BATCH: usize = 1 << 18;
/// Stands for no limit.
const UNLIMITED: u64 = u64::MAX;

/// The bytes of changes from which on a snapshot is made with so much memory.
pub(crate) fn checkpoint_bytes(memory: Option<u64>) -> u64 {
    let Some(memory) = memory else { return CHECKPOINT_BYTES };
    let free = memory.saturating_sub(super::checkpoint::FIXED_BYTES);
    (free / CHECKPOINT_SHARE).clamp(LEAST_CHECKPOINT_BYTES, CHECKPOINT_BYTES)
}

/// The threads that work by themselves, and what they are told; dropped, they end.
#[derive(Debug)]
pub(crate) struct Background {
    work: Arc<Work>,
    threads: Helpers,
    has_threads: Mutex<bool>,
}

/// What they work on.
#[derive(Debug)]
struct Work {
    // Dropped first: the log is written as long as the store holds the lock.
    live: Arc<Live>,
    store: Arc<Store>,
    checkpoint_bytes: AtomicU64,
    /// Changes of so many bytes were in no snapshot after the last commit, what is being written left out.
    pending_bytes: AtomicU64,
    /// Changes of so many bytes could not be written: it is tried again once there are more.
    failed_bytes: AtomicU64,
    /// Whether a snapshot is ordered and somebody makes it.
    is_ordered: AtomicBool,
    /// Whether there would be one if the thread did not rest.
    is_resting: AtomicBool,
    /// Held by who merges beside commits, and by who keeps others from it.
    upkeep: Mutex<()>,
    /// Whether somebody waits for a merge to end.
    is_upkeep_awaited: AtomicBool,
    orders: Mutex<Orders>,
    /// Something is ordered.
    ordered: Condvar,
}

#[derive(Debug)]
struct Orders {
    is_snapshot_wanted: bool,
    is_merge_wanted: bool,
    is_closing: bool,
    budget: Budget,
    report: BackgroundReport,
}

/// A time in which nothing is merged beside commits; dropped, it is again.
#[derive(Debug)]
pub struct UpkeepHold<'db>(#[expect(dead_code, reason = "held")] MutexGuard<'db, ()>);

/// What was done in the background since the database was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackgroundReport {
    pub(crate) num_checkpoints: u64,
    pub(crate) num_merges: u64,
    /// Bytes that both wrote.
    pub(crate) num_bytes: u64,
    /// How often they waited to keep to the budget.
    pub(crate) num_pauses: u64,
    /// Why the last attempt failed, if it did.
    pub(crate) error: Option<Error>,
}

impl Background {
    /// Nothing yet, and no thread.
    pub(crate) fn new(store: Arc<Store>, live: Arc<Live>) -> Self {
        let orders = Orders {
            is_snapshot_wanted: false,
            is_merge_wanted: false,
            is_closing: false,
            budget: Budget::new(WRITE_RATE),
            report: BackgroundReport::default(),
        };
        let work = Work {
            store,
            live,
            checkpoint_bytes: AtomicU64::new(CHECKPOINT_BYTES),
            pending_bytes: AtomicU64::new(0),
            failed_bytes: AtomicU64::new(0),
            is_ordered: AtomicBool::new(false),
            is_resting: AtomicBool::new(false),
            upkeep: Mutex::default(),
            is_upkeep_awaited: AtomicBool::new(false),
            orders: Mutex::new(orders),
            ordered: Condvar::new(),
        };
        Self { work: Arc::new(work), threads: Helpers::default(), has_threads: Mutex::default() }
    }

    /// A snapshot is made of changes that take more bytes than this; `None`: of none.
    pub(crate) fn set_checkpoint_bytes(&self, num_bytes: Option<u64>) {
        self.work.checkpoint_bytes.store(num_bytes.unwrap_or(UNLIMITED), Ordering::Relaxed);
    }

    /// The bytes that may wait behind a snapshot that is being written.
    pub(crate) fn most_bytes(&self) -> Option<u64> {
        Some(self.work.room()).filter(|&room| room != UNLIMITED)
    }

    /// Whether a batch of so many updates takes more than a snapshot is ever left waiting for.
    pub(crate) fn is_very_large(&self, num_updates: usize) -> bool {
        let most_bytes = self.work.checkpoint_bytes.load(Ordering::Relaxed).saturating_mul(MUCH);
        num_updates > LARGE_BATCH && num_updates as u64 > most_bytes / UPDATE_BYTES
    }

    /// Whether a snapshot is ordered and somebody makes it.
    pub(crate) fn is_ordered(&self) -> bool {
        self.work.is_ordered.load(Ordering::Relaxed)
    }

    /// The background writes at most so many bytes a second; `None`: as many as it can.
    pub(crate) fn set_write_rate(&self, bytes_per_second: Option<u64>) {
        lock(&self.work.orders).budget.set_rate(bytes_per_second);
        self.work.ordered.notify_all();
    }

    pub(crate) fn write_rate(&self) -> Option<u64> {
        lock(&self.work.orders).budget.rate()
    }

    /// Learns how many bytes of changes are in no snapshot, and orders one where these are enough.
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
        let mut orders = lock(&self.work.orders);
        if orders.is_snapshot_wanted || orders.is_closing {
            return;
        }
        orders.is_snapshot_wanted = true;
        // Before the thread hears of it: it says when nobody makes one any more.
        self.work.is_ordered.store(true, Ordering::Relaxed);
        drop(orders);
        self.work.ordered.notify_all();
        let mut has_threads = lock(&self.has_threads);
        if !*has_threads {
            let spawn = |name: &str, body: fn(&Work)| {
                let work = Arc::clone(&self.work);
                self.threads.spawn(name, move || body(&work))
            };
            // Where the system has no threads, snapshots are made when they are asked for.
            if spawn("anden-snapshots", Work::make_snapshots).is_err() {
                lock(&self.work.orders).is_snapshot_wanted = false;
                self.work.is_ordered.store(false, Ordering::Relaxed);
                return;
            }
            *has_threads = true;
            // And without this one nothing is merged but when it is asked for.
            let _ = spawn("anden-upkeep", Work::keep_up);
        }
    }

    /// Waits for a merge that goes on, and keeps others from beginning.
    pub(crate) fn hold_upkeep(&self) -> UpkeepHold<'_> {
        self.work.is_upkeep_awaited.store(true, Ordering::Relaxed);
        let held = lock(&self.work.upkeep);
        self.work.is_upkeep_awaited.store(false, Ordering::Relaxed);
        UpkeepHold(held)
    }

    /// The same, where nobody merges and nobody keeps others from it.
    pub(crate) fn try_hold_upkeep(&self) -> Option<UpkeepHold<'_>> {
        match self.work.upkeep.try_lock() {
            Ok(held) => Some(UpkeepHold(held)),
            Err(TryLockError::Poisoned(held)) => Some(UpkeepHold(held.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A snapshot was made: whatever stood in its way before.
    pub(crate) fn has_succeeded(&self) {
        self.work.failed_bytes.store(0, Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> BackgroundReport {
        lock(&self.work.orders).report.clone()
    }

    /// Ends the threads: a snapshot that is being written is finished, a merge is given up.
    pub(crate) fn stop(&self) {
        if self.is_elsewhere() {
            return;
        }
        lock(&self.work.orders).is_closing = true;
        self.work.ordered.notify_all();
        self.work.is_ordered.store(false, Ordering::Relaxed);
        self.work.live.look_again();
        // Where one panicked, what is committed is in memory still.
        self.threads.join();
    }

    /// Whether this is a forked child of the process that opened the database.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.threads.are_elsewhere()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Work {
    /// The bytes of changes from which on a snapshot is made.
    fn due_bytes(&self) -> u64 {
        let limit = self.checkpoint_bytes.load(Ordering::Relaxed);
        match self.failed_bytes.load(Ordering::Relaxed) {
            0 => limit,
            failed => limit.saturating_add(failed),
        }
    }

    /// The bytes that may wait behind a snapshot that is being written.
    fn room(&self) -> u64 {
        self.checkpoint_bytes.load(Ordering::Relaxed).saturating_mul(BEHIND)
    }

    /// Waits until bytes that were written are within the budget, while nobody `is_pressing`, who are not to be found out
    /// with a lock; says how long.
    fn keep_to_budget(&self, num_bytes: u64, is_pressing: impl Fn() -> bool) -> Duration {
        let begin = Instant::now();
        let mut orders = lock(&self.orders);
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
            orders = self.ordered.wait_timeout(orders, rest).unwrap_or_else(PoisonError::into_inner).0;
            now = Instant::now();
        }
        now - begin
    }

    fn make_snapshots(&self) {
        while self.is_wanted(|orders| &mut orders.is_snapshot_wanted) {
            // Somebody else may have been faster; and more may be committed than one snapshot has.
            while self.live.num_pending_bytes() > self.due_bytes() && !lock(&self.orders).is_closing {
                let begin = Instant::now();
                // Where nobody made snapshots any more, who commits would wait for one for ever.
                let made = catch_unwind(AssertUnwindSafe(|| self.make_snapshot()));
                let paused = made.unwrap_or_else(|_| {
                    self.has_failed(Error::Option("the thread that makes snapshots panicked".to_owned()));
                    Duration::ZERO
                });
                self.rest(begin.elapsed().saturating_sub(paused).saturating_mul(REST));
            }
            self.end_order();
        }
    }

    /// Nobody makes a snapshot for now, and nobody waits for one.
    fn end_order(&self) {
        let orders = lock(&self.orders);
        if orders.is_closing || !orders.is_snapshot_wanted {
            self.is_ordered.store(false, Ordering::Relaxed);
        }
        drop(orders);
        self.live.look_again();
    }

    /// Gives how long it waited to keep to the budget.
    fn make_snapshot(&self) -> Duration {
        self.is_ordered.store(true, Ordering::Relaxed);
        let pace = Pace {
            work: self,
            num_bytes: self.live.num_pending_bytes(),
            num_written: AtomicU64::new(0),
            paused: Mutex::default(),
        };
        // What is pending is frozen now.
        self.pending_bytes.store(0, Ordering::Relaxed);
        match self.live.checkpoint_pending(&self.store, &pace) {
            Ok(made) => {
                self.failed_bytes.store(0, Ordering::Relaxed);
                let mut orders = lock(&self.orders);
                orders.report.error = None;
                orders.report.num_checkpoints += u64::from(made.is_some());
                orders.is_merge_wanted = true;
                drop(orders);
                self.ordered.notify_all();
            }
            Err(error) => self.has_failed(error),
        }
        pace.paused.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is tried again once there is more.
    fn has_failed(&self, error: Error) {
        self.failed_bytes.store(self.live.num_pending_bytes(), Ordering::Relaxed);
        lock(&self.orders).report.error = Some(error);
    }

    /// Waits for some time, or until much waits to become a snapshot. Who commits meanwhile does not wait.
    fn rest(&self, time: Duration) {
        let end = Instant::now() + time;
        lock(&self.orders).is_snapshot_wanted = false;
        self.is_resting.store(true, Ordering::Relaxed);
        // Those who wait to commit do not order anything. They wait on, where the next one is made at once.
        let is_much = self.live.num_pending_bytes() > self.due_bytes().saturating_mul(MUCH);
        if !is_much {
            self.end_order();
        }
        let mut orders = lock(&self.orders);
        while !is_much
            && !orders.is_closing
            && !orders.is_snapshot_wanted
            && let Some(rest) = end.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())
        {
            orders = self.ordered.wait_timeout(orders, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        orders.is_snapshot_wanted = false;
        self.is_resting.store(false, Ordering::Relaxed);
    }

    fn keep_up(&self) {
        while self.is_wanted(|orders| &mut orders.is_merge_wanted) {
            let merged = self.merge_if_due();
            let Orders { report, is_merge_wanted, .. } = &mut *lock(&self.orders);
            match merged {
                Ok(merged) => {
                    report.num_merges += u64::from(merged);
                    // Whoever made a snapshot meanwhile left it at that.
                    *is_merge_wanted |= merged;
                }
                Err(error) if error.kind() == ErrorKind::Cancelled => {}
                Err(error) => report.error = Some(error),
            }
        }
    }

    fn merge_if_due(&self) -> Result<bool> {
        let _upkeep = lock(&self.upkeep);
        Ok(self.store.maintain(&Pool::new(1)?, &Upkeep(self))?.is_some())
    }

    /// Waits until something is wanted, which it takes note of; false once nothing more is to be done.
    fn is_wanted(&self, what: impl Fn(&mut Orders) -> &mut bool) -> bool {
        let mut orders = lock(&self.orders);
        loop {
            if orders.is_closing {
                return false;
            }
            if std::mem::take(what(&mut orders)) {
                return true;
            }
            orders = self.ordered.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Slows a snapshot down, as long as nobody waits for it.
struct Pace<'a> {
    work: &'a Work,
    /// What becomes the snapshot takes so many bytes in memory, and hardly more in its file.
    num_bytes: u64,
    num_written: AtomicU64,
    paused: Mutex<Duration>,
}

impl Pace<'_> {
    fn is_pressing(&self) -> bool {
        let Work { live, store, .. } = self.work;
        live.is_snapshot_awaited() || store.is_awaited() || self.is_room_scarce()
    }

    /// Whether commits have used much of what they may add meanwhile, for what is written.
    fn is_room_scarce(&self) -> bool {
        let num_written = self.num_written.load(Ordering::Relaxed).min(self.num_bytes);
        let (used, room) = (self.work.pending_bytes.load(Ordering::Relaxed), self.work.room());
        u128::from(USED_SHARE) * u128::from(used) * u128::from(self.num_bytes)
            > u128::from(num_written) * u128::from(room)
    }
}

impl Progress for Pace<'_> {
    fn wrote(&self, num_bytes: u64) {
        self.num_written.fetch_add(num_bytes, Ordering::Relaxed);
        let paused = self.work.keep_to_budget(num_bytes, || self.is_pressing());
        *lock(&self.paused) += paused;
    }
}

/// Slows a merge down, and ends it when the database is closed.
struct Upkeep<'a>(&'a Work);

impl Progress for Upkeep<'_> {
    fn wrote(&self, num_bytes: u64) {
        self.0.keep_to_budget(num_bytes, || self.0.is_upkeep_awaited.load(Ordering::Relaxed));
    }

    fn is_cancelled(&self) -> bool {
        lock(&self.0.orders).is_closing
    }
}

#[cfg(test)]
mod tests {
    use base::progress::Silent;

    use super::*;
    use crate::{Database, Missing, Update};

    fn is_ordered_after(work: &Work, end: impl FnOnce(&Work)) -> bool {
        work.is_ordered.store(true, Ordering::Relaxed);
        end(work);
        work.is_ordered.load(Ordering::Relaxed)
    }

    #[test]
    fn an_order_stands_while_the_next_snapshot_is_due() {
        let db = Database::in_memory(Default::default()).unwrap();
        db.set_checkpoint_bytes(None);
        let pool = Pool::new(1).unwrap();
        let updates: Vec<Update> = (0..1000).map(|vertex| Update::add_edge(vertex, vertex + 1)).collect();
        db.apply(&updates, Missing::Lenient, &pool).unwrap();
        let work = &*db.background().work;
        let at_rest = |work: &Work| work.rest(Duration::ZERO);
        work.checkpoint_bytes.store(db.live_stats().delta_bytes / (MUCH + 1), Ordering::Relaxed);
        assert!(is_ordered_after(work, at_rest), "what waits becomes a snapshot at once");
        work.checkpoint_bytes.store(db.live_stats().delta_bytes, Ordering::Relaxed);
        assert!(!is_ordered_after(work, at_rest), "nobody makes one");

        lock(&work.orders).is_snapshot_wanted = true;
        assert!(is_ordered_after(work, Work::end_order), "who makes them has not begun");
        lock(&work.orders).is_closing = true;
        assert!(!is_ordered_after(work, Work::end_order), "nobody makes one any more");
    }

    #[test]
    fn nothing_is_merged_while_upkeep_is_held() {
        let db = Database::in_memory(Default::default()).unwrap();
        let pool = Pool::new(1).unwrap();
        for first in [0, 5000] {
            let updates: Vec<Update> =
                (first..first + 5000).map(|vertex| Update::add_edge(vertex, vertex + 1)).collect();
            db.apply(&updates, Missing::Lenient, &pool).unwrap();
            db.checkpoint_pending().unwrap();
        }
        let held = db.hold_upkeep();
        assert_eq!(db.maintain(&pool, &Silent).unwrap(), None);
        let is_merged = std::thread::scope(|scope| {
            let merging = scope.spawn(|| db.background().work.merge_if_due());
            std::thread::sleep(Duration::from_millis(50));
            assert!(!merging.is_finished(), "it waits");
            drop(held);
            merging.join().unwrap()
        });
        assert!(is_merged.unwrap());
        assert_eq!(db.maintain(&pool, &Silent).unwrap(), None, "nothing is due");
    }
}
