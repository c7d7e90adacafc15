//! Writes what nobody waits for, and makes durable in time what was written.
//!
//! While there is something to do, the thread looks every few milliseconds, so that nobody has to wake it; it is parked
//! once there was nothing for a while. It is begun when it is needed first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use base::process::Helpers;

use super::Shared;
use crate::Result;

/// What nobody waits for is written after this time.
const WRITE_EVERY: Duration = Duration::from_millis(2);
/// Looks without anything to do before the thread is parked.
const MAX_IDLE_LOOKS: u32 = 20;
/// The disk was full: it is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The thread of a log.
#[derive(Debug)]
pub(super) struct LogThread {
    shared: Arc<Shared>,
    is_begun: AtomicBool,
    thread: Helpers,
}

impl LogThread {
    /// No thread yet.
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, is_begun: AtomicBool::new(false), thread: Helpers::default() }
    }

    /// Makes sure that it runs.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn begin(&self) -> Result<()> {
        // Each commit asks, so what is so already is not written anew.
        if self.is_begun.load(Ordering::Relaxed) || self.is_begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let begun = self.thread.spawn("anden-log", move || shared.run());
        Ok(begun.inspect_err(|_| self.is_begun.store(false, Ordering::Relaxed))?)
    }

    /// Whether this is a forked child: the log is its parent's.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.thread.are_elsewhere()
    }

    /// Ends it.
    pub(super) fn stop(&self) {
        self.shared.state().is_closing = true;
        self.shared.wake.notify_all();
        self.thread.join();
    }
}

impl Shared {
    fn run(&self) {
        let mut num_idle_looks = 0;
        let mut state = self.state();
        while !state.is_closing {
            let now = Instant::now();
            let is_due = state.sync_at.is_some_and(|at| at <= now);
            let has_pending = !state.pending.is_empty();
            if is_due {
                state.sync_at = None;
            }
            let mut looks_at = state.sync_at.map_or(now + WRITE_EVERY, |at| at.min(now + WRITE_EVERY));
            if is_due || has_pending {
                num_idle_looks = 0;
                drop(state);
                if self.write().is_err() {
                    looks_at = now + RETRY_AFTER;
                }
                // Whoever writes next hears of a sync that failed.
                if self.require_sound().is_err() || (is_due && self.sync().is_err()) {
                    return;
                }
                state = self.state();
                if state.sync_at.is_some_and(|at| at < looks_at) {
                    continue;
                }
            } else if state.sync_at.is_none() {
                num_idle_looks += 1;
            }
            state = match num_idle_looks {
                MAX_IDLE_LOOKS.. => {
                    num_idle_looks = 0;
                    state.looks_at = None;
                    self.wake.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                _ => {
                    state.looks_at = Some(looks_at);
                    let rest = looks_at.saturating_duration_since(Instant::now());
                    self.wake.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            // Awake: it looks by itself before it waits again.
            state.looks_at = Some(Instant::now());
        }
    }
}
