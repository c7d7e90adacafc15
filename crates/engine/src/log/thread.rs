//! The log thread: writes buffered records, and syncs batched ones in time.
//!
//! While commits come that wait for no sync, the thread checks every few milliseconds, so that no commit has to wake
//! it. After a while without work it parks. It is started on first use.
//!
//! A parked thread wakes once more after the last sync, to [certify](super::certify) it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anden_base::process::Helpers;
use parking_lot::MutexGuard;

use super::{WalShared, WalState};
use crate::Result;

/// Time after which buffered records are written.
const WRITE_EVERY: Duration = Duration::from_millis(2);
/// Checks without work before the thread parks.
const MAX_IDLE_LOOKS: u32 = 20;
/// Time before the next attempt after a failed write, for example on a full disk.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The background thread of a WAL.
#[derive(Debug)]
pub(super) struct LogThread {
    shared: Arc<WalShared>,
    is_begun: AtomicBool,
    thread: Helpers,
}

impl LogThread {
    /// A thread that is not started yet.
    pub(super) fn new(shared: Arc<WalShared>) -> Self {
        Self { shared, is_begun: AtomicBool::new(false), thread: Helpers::default() }
    }

    /// Starts the thread if it does not run.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn begin(&self) -> Result<()> {
        // Each commit calls this: a load keeps the cache line shared, where a swap would not.
        if self.is_begun.load(Ordering::Relaxed) || self.is_begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let begun = self.thread.spawn("anden-log", move || shared.run());
        Ok(begun.inspect_err(|_| self.is_begun.store(false, Ordering::Relaxed))?)
    }

    /// Whether this is a forked child: the WAL belongs to the parent.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.thread.are_elsewhere()
    }

    /// Stops the thread and waits for it.
    pub(super) fn stop(&self) {
        self.shared.state.lock().is_closing = true;
        // A thread that writes meanwhile misses this, and sees the flag at its next look.
        self.shared.wake.notify_all();
        self.thread.join();
    }
}

impl WalShared {
    fn run(&self) {
        let mut num_idle_looks = 0;
        let mut state = self.state.lock();
        while !state.is_closing {
            let now = Instant::now();
            let is_due = state.sync_at.is_some_and(|at| at <= now);
            let has_pending = !state.pending.is_empty();
            // Cleared before the sync, so that a commit that comes meanwhile sets a new deadline.
            if is_due {
                state.sync_at = None;
            }
            let mut looks_at = state.sync_at.map_or(now + WRITE_EVERY, |at| at.min(now + WRITE_EVERY));
            if is_due || has_pending {
                num_idle_looks = 0;
                drop(state);
                if let Err(error) = self.write() {
                    tracing::error!(%error, "cannot write the WAL; trying again soon");
                    looks_at = now + RETRY_AFTER;
                }
                // After a failed sync, the next writer gets the error.
                if self.require_sound().is_err() || (is_due && self.sync().is_err()) {
                    return;
                }
                state = self.state.lock();
            } else if state.sync_at.is_none() {
                num_idle_looks += 1;
            }
            // Last, because commits wait for the work above. Not only without such work, which may never pause.
            if state.certify.is_some_and(|deadline| deadline.at() <= now) {
                // Cleared before the sync, as above.
                state.certify = None;
                drop(state);
                self.certify_if_possible();
                state = self.state.lock();
                continue;
            }
            if state.sync_at.is_some_and(|at| at < looks_at) {
                // A new deadline comes before the next look.
                continue;
            }
            if num_idle_looks >= MAX_IDLE_LOOKS && state.sync_at.is_none() {
                self.park(&mut state);
            } else {
                state.looks_at = Some(looks_at);
                self.wake.wait_until(&mut state, looks_at);
            }
            // While awake, the thread checks the state before it waits, so no commit needs to wake it.
            state.looks_at = Some(Instant::now());
        }
    }

    /// Waits until a commit wakes the thread, or until the last sync is to be certified.
    fn park(&self, state: &mut MutexGuard<'_, WalState>) {
        state.looks_at = None;
        match state.certify {
            Some(deadline) => {
                self.wake.wait_until(state, deadline.at());
            }
            None => self.wake.wait(state),
        }
    }
}
