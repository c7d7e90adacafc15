//! Tells the phases of long work as spans of the crate `tracing`.

use std::time::Instant;

use anden_base::progress::Progress;
use parking_lot::Mutex;
use tracing::{Level, Span};

/// Passes progress on, and makes a span of each stage. Without a subscriber for details, a stage costs one load.
pub(crate) struct TracedPhases<'a> {
    progress: &'a dyn Progress,
    current: Mutex<Option<TracedPhase>>,
}

struct TracedPhase {
    span: Span,
    begin: Instant,
}

impl<'a> TracedPhases<'a> {
    pub(crate) fn new(progress: &'a dyn Progress) -> Self {
        Self { progress, current: Mutex::default() }
    }
}

impl Progress for TracedPhases<'_> {
    fn stage(&self, name: &str, total: Option<u64>) {
        if tracing::enabled!(Level::DEBUG) {
            let phase = TracedPhase { span: tracing::debug_span!("phase", name, total), begin: Instant::now() };
            // Dropped outside the lock, which a subscriber of events may need.
            let before = self.current.lock().replace(phase);
            drop(before);
        }
        self.progress.stage(name, total);
    }

    fn advance(&self, amount: u64) {
        self.progress.advance(amount);
    }

    fn wrote(&self, num_bytes: u64) {
        self.progress.wrote(num_bytes);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}

impl Drop for TracedPhase {
    fn drop(&mut self) {
        let seconds = self.begin.elapsed().as_secs_f64();
        self.span.in_scope(|| tracing::debug!(seconds, "phase ended"));
    }
}
