//! Certifies the last commits of the WAL, which no later record certifies.
//!
//! Without a certificate, damage in them and a file that ends early look like the end of the WAL. The certificate is
//! the [mark](super::mark). Writing it takes a few microseconds, without a sync. So it follows each sync that took much
//! longer, and in any case comes within 64 KB and 100 ms. Once no sync has come for 100 ms, the log thread syncs the
//! mark, so that the certificate survives a power cut, too.

use std::time::{Duration, Instant};

use super::WalShared;
use crate::Result;

/// Time of syncs that pays for one write of the mark: the mark then takes at most 3 % of it.
const SYNC_TIME: Duration = Duration::from_micros(250);
/// Durable bytes of records that no mark certifies, at most.
const MAX_BYTES: u64 = 64 << 10;
/// Time for which no mark certifies a durable record, at most.
const MAX_TIME: Duration = Duration::from_millis(100);
/// Time between two syncs of the mark while commits come without a pause. One sync a second slows no commit noticeably.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// Tells after which syncs the mark is written.
#[derive(Debug, Default)]
pub(super) struct MarkSchedule {
    /// The bytes that the WAL had got when the mark was last written.
    num_bytes: u64,
    /// The time of all syncs since then.
    sync_time: Duration,
    marked_at: Option<Instant>,
}

impl MarkSchedule {
    /// Notes a sync that took this time, after which this many bytes of the WAL are durable. Returns whether the mark is
    /// to be written now.
    pub(super) fn is_due(&mut self, num_bytes: u64, time: Duration, now: Instant) -> bool {
        self.sync_time += time;
        self.sync_time >= SYNC_TIME
            || num_bytes.saturating_sub(self.num_bytes) >= MAX_BYTES
            || self.marked_at.is_none_or(|at| now.saturating_duration_since(at) >= MAX_TIME)
    }

    /// Notes that the mark was written, and certifies this many bytes.
    pub(super) fn has_marked(&mut self, num_bytes: u64, now: Instant) {
        *self = Self { num_bytes, sync_time: Duration::ZERO, marked_at: Some(now) };
    }
}

/// When the thread certifies what was synced.
#[derive(Clone, Copy, Debug)]
pub(super) struct CertifyDeadline {
    /// After the last sync; each further one puts it off.
    at: Instant,
    latest: Instant,
}

impl CertifyDeadline {
    /// The deadline after a sync. `before`: the deadline before it.
    pub(super) fn after_sync(before: Option<Self>, now: Instant) -> Self {
        let latest = before.map_or(now + SYNC_EVERY, |before| before.latest);
        Self { at: latest.min(now + MAX_TIME), latest }
    }

    pub(super) fn at(self) -> Instant {
        self.at
    }
}

impl WalShared {
    /// Certifies all that was synced, durably.
    ///
    /// # Errors
    /// The directory is not as this writer left it; the disk failed. Then less is certified, and no commit is lost.
    pub(super) fn certify(&self) -> Result<()> {
        // Held during the sync: see `take_back`.
        let _syncing_mark = self.syncing_mark.lock();
        let mut files = self.files.lock();
        // An older copy may have been written over the files. It must not get a mark that it does not fulfil.
        self.lock.check_synced(files.current_name().into_iter())?;
        let through = self.state.lock().synced_through;
        files.mark_now(through)?;
        let Some(unsynced) = files.unsynced_mark() else { return Ok(()) };
        // Without the lock of the files: commits write meanwhile.
        drop(files);
        unsynced.sync()
    }

    /// As [`certify`](Self::certify), where an error has no caller and changes nothing for commits.
    pub(super) fn certify_if_possible(&self) {
        if let Err(error) = self.require_sound().and_then(|()| self.certify()) {
            tracing::warn!(%error, "cannot certify the end of the WAL");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn mark_follows_long_syncs_many_bytes_or_time() {
        let begin = Instant::now();
        let after = |num_bytes, time, later| {
            let mut schedule = MarkSchedule::default();
            assert!(schedule.is_due(0, Duration::ZERO, begin), "the first sync");
            schedule.has_marked(1000, begin);
            schedule.is_due(num_bytes, time, begin + later)
        };
        assert!(!after(2000, SYNC_TIME / 2, MS));
        assert!(after(2000, SYNC_TIME, MS));
        assert!(after(1000 + MAX_BYTES, Duration::ZERO, MS));
        assert!(after(2000, Duration::ZERO, MAX_TIME));
    }

    #[test]
    fn short_syncs_pay_for_a_mark_together() {
        let (mut schedule, begin, mut num_marks) = (MarkSchedule::default(), Instant::now(), 0);
        for number in 0..1000 {
            if schedule.is_due(number, SYNC_TIME / 10, begin) {
                schedule.has_marked(number, begin);
                num_marks += 1;
            }
        }
        assert!((100..=101).contains(&num_marks), "{num_marks}");
    }

    #[test]
    fn deadline_waits_for_a_pause_within_limits() {
        let begin = Instant::now();
        let mut deadline = CertifyDeadline::after_sync(None, begin);
        assert_eq!(deadline.at(), begin + MAX_TIME);
        for step in 1..=2000 {
            deadline = CertifyDeadline::after_sync(Some(deadline), begin + MS * step);
            assert_eq!(deadline.at(), (begin + MS * step + MAX_TIME).min(begin + SYNC_EVERY));
        }
    }
}
