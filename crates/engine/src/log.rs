//! The write-ahead log (WAL).
//!
//! A commit group is one WAL record, numbered by its epoch. Records go to a buffer in memory, in order, already with
//! checksum and chain. From there they go to the file: written by a caller that must wait for that, or by the log
//! thread. The file is synced by such a caller, or by the thread in time. So no record is written before an earlier
//! one, and a commit that waits for nothing takes one lock and copies a few bytes.
//!
//! A record that cannot be written has not happened: it is taken back, the file is cut to its old length, and the next
//! record may succeed. After a failed sync the content of the disk is unknown: nothing is written until the database is
//! reopened.
//!
//! Records follow each other without a gap, within a segment and across segments. Segments that a snapshot covers are
//! removed, the oldest first, down to the bytes that the database keeps for its change feed.

mod certify;
mod copy;
mod durability;
mod feed;
mod format;
mod mark;
mod read;
mod segment;
mod thread;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anden_base::checksum::crc32c;
use anden_base::storage::Storage;
use anden_snapshots::{DatabaseId, WriterLock};
use parking_lot::{Condvar, Mutex};

pub(crate) use copy::SegmentCopy;
pub use durability::Durability;
pub(crate) use durability::SharedDurability;
pub(crate) use feed::{FeedRecord, LogFeed};
pub(crate) use mark::mark_bytes;
pub(crate) use read::{HeldLog, LogPlace, LoggedGroup, Lsn, ReadFaults, WalScan};

use self::certify::CertifyDeadline;
use self::format::{GROUP_HEADER_BYTES, GroupHeader, group_bytes, seed_of};
use self::segment::{FIRST_GROUP, WalFiles};
use self::thread::LogThread;
use crate::Result;

/// Length at which the next segment begins. It bounds the memory of recovery, which holds about two segments.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Bytes that may wait in memory; a commit that adds more writes them.
const MAX_PENDING_BYTES: usize = 8 << 20;
/// Minimum time between two checks of the directory before a write: commits that wait for no sync pay next to nothing.
const CHECK_EVERY: Duration = Duration::from_millis(2);
/// A larger buffer is freed, not kept for reuse.
const MAX_SPARE_BYTES: usize = 2 * MAX_PENDING_BYTES;

/// The WAL of a database, open for writing. One thread at a time appends; any thread may read counters or write it out.
#[derive(Debug)]
pub(crate) struct Log {
    shared: Arc<WalShared>,
    thread: LogThread,
}

/// Counters of a WAL since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogStats {
    /// The bytes of its files.
    pub(crate) num_bytes: u64,
    /// The bytes of those files that a snapshot covers.
    pub(crate) num_retained_bytes: u64,
    /// Records that were appended and not taken back.
    pub(crate) num_groups: u64,
    /// Bytes of records that were written to its files.
    pub(crate) num_written_bytes: u64,
    /// Syncs of the WAL, each of one file or more.
    pub(crate) num_syncs: u64,
    /// The time that these took.
    pub(crate) sync_time: Duration,
    /// The error of the last write or sync, if it failed.
    pub(crate) failure: Option<String>,
}

/// The place of a WAL, and the lock to poison when it fails.
#[derive(Clone, Debug)]
pub(crate) struct LogOwner {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) id: DatabaseId,
    /// Poisoned once the content of the disk is unknown.
    pub(crate) lock: Arc<WriterLock>,
    /// Bytes of segments that stay although a snapshot covers them.
    pub(crate) keep_bytes: u64,
}

/// `syncing` is locked before `syncing_mark`, that before `files`, and `files` before `state`.
#[derive(Debug)]
struct WalShared {
    seed: u32,
    lock: Arc<WriterLock>,
    /// Held while files are synced: of two concurrent syncs of one file, the system reports a write error to one only.
    syncing: Mutex<()>,
    /// As `syncing`, for the file of the mark. Commits do not wait for it.
    syncing_mark: Mutex<()>,
    files: Mutex<WalFiles>,
    state: Mutex<WalState>,
    /// Wakes the thread before the time of its next check.
    wake: Condvar,
    /// Bytes of the records that are in no snapshot, approximately.
    kept_bytes: AtomicU64,
    num_groups: AtomicU64,
    num_syncs: AtomicU64,
    sync_nanos: AtomicU64,
}

#[derive(Debug, Default)]
struct WalState {
    /// The last records of the current segment, which are not in its file yet.
    pending: Vec<u8>,
    /// An empty buffer for the next records.
    spare: Vec<u8>,
    /// The place of the next record; `None` if a segment has to begin for it.
    place: Option<SegmentPosition>,
    generation: u32,
    /// The epoch of the last record.
    last_epoch: u64,
    /// The place of the last record, until another follows it.
    before_last: Option<SegmentPosition>,
    /// The last record in a file, and the last durable one.
    written_through: u64,
    synced_through: u64,
    /// Bytes of records that were written to files.
    num_written_bytes: u64,
    /// When the written records are to be durable.
    sync_at: Option<Instant>,
    /// When the synced records are to be certified.
    certify: Option<CertifyDeadline>,
    /// When the thread checks next; `None` while it is parked, and wakes to certify at most.
    looks_at: Option<Instant>,
    /// The error of the last write or sync, for the thread's errors have no caller.
    failure: Option<String>,
    is_closing: bool,
}

/// A place in the current segment.
#[derive(Clone, Copy, Debug)]
struct SegmentPosition {
    offset: u64,
    chain: u32,
}

impl Log {
    /// Opens the WAL in `directory`. Calls `replay` with the records after the epoch `after` of the manifest, cuts off
    /// the torn tail, and makes the rest durable.
    ///
    /// # Errors
    /// As [`LogPlace::read`]; the disk failed. If anything is damaged, nothing is changed.
    pub(crate) fn open(
        owner: LogOwner,
        directory: &Path,
        after: u64,
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<Self> {
        let LogOwner { storage, id, lock, keep_bytes } = owner;
        let place = LogPlace { storage: &*storage, directory, id };
        let mut found = place.read(after, replay)?;
        // Reading takes time: the directory must still be this writer's before the first change.
        lock.check()?;
        // The first change on the disk. Damage has returned an error before.
        cut_torn_tail(place, &mut found)?;
        let older = place.older_than(found.first_number)?;
        let mut files = WalFiles::new(Arc::clone(&storage), directory, id);
        for (number, path) in older {
            let num_bytes = storage.file_len(&path)?;
            files.retain(number, path, num_bytes);
        }
        let through = found.through;
        let has_records = !found.segments.is_empty();
        files.follow(std::mem::take(&mut found.segments), found.generation, found.number);
        let state = WalState {
            generation: files.generation,
            last_epoch: through,
            written_through: through,
            synced_through: through,
            ..WalState::default()
        };
        let shared = Arc::new(WalShared {
            seed: seed_of(id),
            lock,
            syncing: Mutex::new(()),
            syncing_mark: Mutex::new(()),
            files: Mutex::new(files),
            state: Mutex::new(state),
            wake: Condvar::new(),
            kept_bytes: AtomicU64::new(0),
            num_groups: AtomicU64::new(0),
            num_syncs: AtomicU64::new(0),
            sync_nanos: AtomicU64::new(0),
        });
        let this = Self { thread: LogThread::new(Arc::clone(&shared)), shared };
        // A crash may have left segments that the manifest covers.
        this.remove_through(after, keep_bytes);
        // All records are durable now, and perhaps no header or mark says so for the last ones.
        if has_records {
            this.shared.certify_if_possible();
        }
        Ok(this)
    }

    /// Appends a record, and returns once it is as durable as asked. Epochs ascend; a skipped epoch is in the manifest.
    ///
    /// Cost: a checksum and a copy; for durability, a write call, and a sync call.
    ///
    /// # Errors
    /// The disk failed. The record is not in the WAL, except after a failed sync: then that is unknown, and nothing can
    /// be appended any more.
    pub(crate) fn append(&self, epoch: u64, payload: &[u8], durability: Durability) -> Result<()> {
        let shared = &*self.shared;
        shared.require_sound()?;
        // Without a sync of its own, the record depends on the thread. A synced one does not: without a thread, it is
        // certified later.
        let begun = self.thread.begin();
        if durability != Durability::Sync {
            begun?;
        }
        let mut state = shared.state.lock();
        // Repeated, because a concurrent checkpoint may remove the new segment while it is empty.
        while !state.has_place(epoch) {
            drop(state);
            shared.begin_segment(epoch)?;
            state = shared.state.lock();
        }
        state.push(epoch, payload, shared.seed);
        shared.kept_bytes.fetch_add(group_bytes(payload.len()) as u64, Ordering::Relaxed);
        shared.num_groups.fetch_add(1, Ordering::Relaxed);
        match durability {
            Durability::None if state.pending.len() <= MAX_PENDING_BYTES => {
                // An awake thread looks by itself, so most commits wake none.
                if state.looks_at.is_none() {
                    shared.wake.notify_one();
                }
                Ok(())
            }
            Durability::None => {
                // The buffer is full: this caller pays for the write, which bounds the memory.
                drop(state);
                shared.write_or_take_back(epoch)
            }
            Durability::Batched(time) => {
                drop(state);
                // In the file before the answer, so that a killed process loses nothing.
                shared.write_or_take_back(epoch)?;
                // A deadline beyond the clock's range counts as no deadline.
                if let Some(at) = Instant::now().checked_add(time) {
                    shared.sync_until(at);
                }
                Ok(())
            }
            Durability::Sync => {
                drop(state);
                shared.write_or_take_back(epoch)?;
                shared.sync()
            }
        }
    }

    /// Takes the last record back, which has this epoch.
    ///
    /// # Errors
    /// The disk failed. Whether the record is there is unknown, and nothing can be appended any more.
    pub(crate) fn take_back(&self, epoch: u64) -> Result<()> {
        // `syncing` first: a sync must not count the record as durable while it is taken back.
        let _syncing = self.shared.syncing.lock();
        self.shared.require_sound()?;
        // The lowered mark must be durable, so no other sync may take the error of its write.
        let _syncing_mark = self.shared.syncing_mark.lock();
        let mut files = self.shared.files.lock();
        let place = self.shared.take_back(epoch);
        let Some(place) = place else { return Ok(()) };
        // After a crash the record may be there, although its commit has failed.
        files.take_back(epoch, place.offset).inspect_err(|_| self.shared.lock.poison())
    }

    /// Lets the next record begin a segment.
    pub(crate) fn rotate(&self) {
        self.shared.state.lock().place = None;
    }

    /// Removes segments without records younger than `epoch`, the manifest's, except the youngest of them up to
    /// `keep_bytes`. A file that cannot be removed now is removed at the next opening.
    pub(crate) fn remove_through(&self, epoch: u64, keep_bytes: u64) {
        let mut files = self.shared.files.lock();
        let mut state = self.shared.state.lock();
        let is_current_old = state.last_epoch <= epoch;
        if is_current_old {
            // The snapshot has these records, so they need not reach the file.
            state.pending.clear();
            (state.place, state.before_last, state.sync_at) = (None, None, None);
        }
        // The manifest may be ahead of the WAL, because very large batches skip the WAL.
        state.last_epoch = state.last_epoch.max(epoch);
        state.written_through = state.written_through.max(epoch);
        state.synced_through = state.synced_through.max(epoch);
        drop(state);
        let storage = Arc::clone(&files.storage);
        let paths = files.take_through(epoch, is_current_old, keep_bytes);
        let num_kept = files.written_bytes() + self.shared.state.lock().pending.len() as u64;
        self.shared.kept_bytes.store(num_kept, Ordering::Relaxed);
        // Commits need the files, but not the removals below.
        drop(files);
        // No file is removed by name from a directory that is not as this writer left it.
        if !paths.is_empty() && self.shared.lock.check().is_ok() {
            tracing::debug!(epoch, segments = paths.len(), "removed WAL segments that a snapshot covers");
            for path in paths {
                let _ = storage.remove_file(&path);
            }
        }
    }

    /// Writes the buffered records to the file.
    ///
    /// # Errors
    /// The disk failed; the records stay in the buffer.
    pub(crate) fn write(&self) -> Result<()> {
        self.shared.write()
    }

    /// Writes the buffered records and makes all durable.
    ///
    /// # Errors
    /// The disk failed. After a failed sync, nothing can be appended any more.
    pub(crate) fn sync(&self) -> Result<()> {
        self.shared.write()?;
        self.shared.sync()
    }

    /// Bytes that recovery would have to read.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.shared.kept_bytes.load(Ordering::Relaxed)
    }

    /// The epoch through which all records are durable, in the WAL or in a snapshot.
    pub(crate) fn synced_through(&self) -> u64 {
        self.shared.state.lock().synced_through
    }

    pub(crate) fn stats(&self) -> LogStats {
        let (num_bytes, num_retained_bytes) = {
            let files = self.shared.files.lock();
            (files.num_bytes(), files.retained_bytes())
        };
        let (num_written_bytes, failure) = {
            let state = self.shared.state.lock();
            (state.num_written_bytes, state.failure.clone())
        };
        LogStats {
            num_bytes,
            num_retained_bytes,
            num_groups: self.shared.num_groups.load(Ordering::Relaxed),
            num_written_bytes,
            num_syncs: self.shared.num_syncs.load(Ordering::Relaxed),
            sync_time: Duration::from_nanos(self.shared.sync_nanos.load(Ordering::Relaxed)),
            failure,
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.thread.is_elsewhere() {
            return;
        }
        self.thread.stop();
        if self.shared.require_sound().is_ok() {
            // Errors are lost here: a destructor cannot report them.
            let _ = self.shared.write();
            self.shared.certify_if_possible();
        }
    }
}

/// Cuts off the torn tail, and makes the kept records durable, because later headers will certify them.
///
/// After a failed sync, the records that were read may exist in the page cache only, and another sync does not write
/// them. So records that are not known to be durable are written again before the sync.
fn cut_torn_tail(place: LogPlace<'_>, found: &mut WalScan) -> Result<()> {
    let LogPlace { storage, directory, .. } = place;
    if let Some(cut) = found.cut.take() {
        // Youngest first: a crash leaves no gap that a later header could certify.
        for path in cut.removed.iter().rev() {
            storage.remove_file(path)?;
        }
        storage.sync_dir(directory)?;
        if let (Some(offset), Some(last)) = (cut.offset, found.segments.last_mut()) {
            storage.open_write(&last.path)?.set_len(offset)?;
            last.num_bytes = offset;
        }
    }
    for segment in &found.segments {
        let file = storage.open_write(&segment.path)?;
        if segment.last_epoch > found.certified {
            let (bytes, start) = place.segment_through(&segment.path, found.certified)?;
            file.write_at(start as u64, &bytes[start..])?;
        }
        file.sync()?;
    }
    if !found.segments.is_empty() {
        storage.sync_dir(directory)?;
    }
    Ok(())
}

impl WalState {
    /// Whether a record has a place behind the last one.
    fn has_place(&self, epoch: u64) -> bool {
        epoch == self.last_epoch + 1 && self.place.is_some_and(|place| place.offset < SEGMENT_BYTES)
    }

    /// Appends a record to the buffer.
    fn push(&mut self, epoch: u64, payload: &[u8], seed: u32) {
        let Some(place) = self.place else { return };
        let header = GroupHeader {
            payload_crc: crc32c(payload),
            epoch,
            len: payload.len() as u64,
            synced_through: self.synced_through,
            chain: place.chain,
            generation: self.generation,
        };
        let (header, chain) = header.encode(seed, place.offset);
        let num_bytes = group_bytes(payload.len());
        self.pending.extend_from_slice(&header);
        self.pending.extend_from_slice(payload);
        self.pending.resize(self.pending.len() + num_bytes - GROUP_HEADER_BYTES - payload.len(), 0);
        self.before_last = Some(place);
        self.place = Some(SegmentPosition { offset: place.offset + num_bytes as u64, chain });
        self.last_epoch = epoch;
    }

    /// Forgets the last record. Returns its place and its length.
    fn take_back(&mut self, epoch: u64) -> Option<(SegmentPosition, usize)> {
        let (end, before) = (self.place?, self.before_last.take()?);
        if self.last_epoch != epoch {
            return None;
        }
        let num_bytes = (end.offset - before.offset) as usize;
        // The record may be in the file already, and then the buffer lacks it.
        self.pending.truncate(self.pending.len().saturating_sub(num_bytes));
        self.place = Some(before);
        self.last_epoch = epoch - 1;
        self.written_through = self.written_through.min(epoch - 1);
        self.synced_through = self.synced_through.min(epoch - 1);
        Some((before, num_bytes))
    }
}

impl WalShared {
    fn require_sound(&self) -> Result<()> {
        Ok(self.lock.require_sound()?)
    }

    /// Begins a segment with the record of this epoch.
    fn begin_segment(&self, epoch: u64) -> Result<()> {
        self.lock.check()?;
        let mut files = self.files.lock();
        // The sealed segment must be complete before the next one begins.
        self.write_locked(&mut files)?;
        let (last_epoch, synced_through) = {
            let state = self.state.lock();
            (state.last_epoch, state.synced_through)
        };
        let chain = files.begin(last_epoch, epoch, synced_through)?;
        let path = files.current_name().map(|(path, _)| path.to_owned());
        let mut state = self.state.lock();
        state.place = Some(SegmentPosition { offset: FIRST_GROUP, chain });
        // The last record of a sealed segment cannot be taken back any more.
        state.before_last = None;
        state.last_epoch = epoch - 1;
        drop((state, files));
        // After the locks, which a subscriber of events may need.
        let path = path.as_ref().map(|path| tracing::field::display(path.display()));
        tracing::debug!(epoch, segment = path, "began a WAL segment");
        Ok(())
    }

    /// Writes the buffer. On an error, takes the record of this epoch back, which is the last one.
    fn write_or_take_back(&self, epoch: u64) -> Result<()> {
        let mut files = self.files.lock();
        self.write_locked(&mut files).inspect_err(|_| {
            self.take_back(epoch);
        })
    }

    /// Forgets the last record, and no longer counts it. Returns its place, in case it is in the file.
    fn take_back(&self, epoch: u64) -> Option<SegmentPosition> {
        let (place, num_bytes) = self.state.lock().take_back(epoch)?;
        self.kept_bytes.fetch_sub(num_bytes as u64, Ordering::Relaxed);
        self.num_groups.fetch_sub(1, Ordering::Relaxed);
        Some(place)
    }

    /// Writes the buffer.
    fn write(&self) -> Result<()> {
        self.write_locked(&mut self.files.lock())
    }

    fn write_locked(&self, files: &mut WalFiles) -> Result<()> {
        if self.state.lock().pending.is_empty() {
            return Ok(());
        }
        self.check_in_time(files).inspect_err(|error| self.state.lock().failure = Some(error.to_string()))?;
        let mut state = self.state.lock();
        // The buffers are swapped, so that commits may append during the write call.
        let spare = std::mem::take(&mut state.spare);
        let mut bytes = std::mem::replace(&mut state.pending, spare);
        let through = state.last_epoch;
        drop(state);
        let written = files.append(&bytes);
        let mut state = self.state.lock();
        match written {
            Ok(()) => {
                state.written_through = state.written_through.max(through);
                state.num_written_bytes += bytes.len() as u64;
                state.failure = None;
                bytes.clear();
                if bytes.capacity() <= MAX_SPARE_BYTES {
                    state.spare = bytes;
                }
                Ok(())
            }
            Err(error) => {
                // Records that came meanwhile go behind the unwritten ones.
                bytes.append(&mut state.pending);
                state.pending = bytes;
                state.failure = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Checks that the directory is as this writer left it, unless that was checked a moment ago. An older copy may
    /// have been written over the segment; the next write would damage it.
    fn check_in_time(&self, files: &mut WalFiles) -> Result<()> {
        let now = Instant::now();
        if files.checked_at.is_none_or(|at| now.duration_since(at) >= CHECK_EVERY) {
            self.lock.check_synced(files.current_name().into_iter())?;
            files.checked_at = Some(now);
        }
        Ok(())
    }

    /// Makes the written records durable.
    fn sync(&self) -> Result<()> {
        let _syncing = self.syncing.lock();
        self.require_sound()?;
        let files = self.files.lock();
        // Both are read under one lock, so `unsynced` has all records up to `through`.
        let unsynced = files.unsynced();
        let through = self.state.lock().written_through;
        drop(files);
        // The files are not locked here: commits write during the sync.
        self.num_syncs.fetch_add(1, Ordering::Relaxed);
        let failed = |error: &crate::Error| {
            tracing::error!(%error, "cannot sync the WAL");
            self.state.lock().failure = Some(error.to_string());
            self.lock.poison();
        };
        let begin = Instant::now();
        let synced = unsynced.sync();
        let time = begin.elapsed();
        self.sync_nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(0), Ordering::Relaxed);
        synced.inspect_err(failed)?;
        let mut files = self.files.lock();
        // A record is durable only in a file that the next writer finds. A checkpoint may remove segments meanwhile.
        self.lock.check_synced(files.names(&unsynced)).map_err(Into::into).inspect_err(failed)?;
        files.has_synced(&unsynced);
        let mut state = self.state.lock();
        debug_assert!(through <= state.written_through, "what was written is not taken back while it is synced");
        state.synced_through = state.synced_through.max(through);
        let through = state.synced_through;
        let before = state.certify;
        state.certify = Some(CertifyDeadline::after_sync(before, Instant::now()));
        // A thread that wakes for an earlier deadline finds the new one by itself.
        if before.is_none() && state.looks_at.is_none() {
            self.wake.notify_one();
        }
        drop(state);
        // Only after the sync: the mark certifies that a commit is durable.
        files.mark(through, &unsynced, time);
        Ok(())
    }

    /// Sets the deadline for the sync of the written records.
    fn sync_until(&self, time: Instant) {
        let mut state = self.state.lock();
        if state.sync_at.is_none_or(|at| time < at) {
            state.sync_at = Some(time);
            // A thread that looks earlier finds the new deadline by itself.
            if state.looks_at.is_none_or(|at| time < at) {
                self.wake.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests;
