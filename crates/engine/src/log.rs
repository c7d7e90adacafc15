//! The log: what is committed, before it is.
//!
//! A commit group is one record, numbered by its epoch. Records go to a buffer in memory, in order, with everything
//! that depends on their place worked out already; from there to the file, by whoever must wait for that, or by a
//! thread; and the file is synced, by whoever must wait for that, or by the thread in time. So a record is never written
//! before the one before it, and a commit that waits for nothing takes one lock and copies a few bytes.
//!
//! A record that cannot be written has not happened: it is taken back, the file is cut to what it was, and the next one
//! may go well. After a sync that failed nobody knows what the disk holds: nothing is written any more until the
//! database is opened again.
//!
//! Groups follow each other without a hole, within a segment and from one to the next. Segments whose groups are all in
//! a snapshot are removed.

mod durability;
mod format;
mod mark;
mod read;
mod segment;
mod thread;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::checksum::crc32c;
use base::storage::Storage;
use lama::{DatabaseId, WriterLock};

pub use durability::Durability;
pub(crate) use durability::SharedDurability;
pub(crate) use read::{Bookmark, Found, HeldLog, LogPlace, LoggedGroup};

use self::format::{GROUP_HEADER_BYTES, GroupHeader, group_bytes, seed_of};
use self::segment::{FIRST_GROUP, Files};
use self::thread::LogThread;
use crate::Result;

/// A segment that has grown to this is followed by another: what is read at once is bounded by twice as much.
const SEGMENT_BYTES: u64 = 64 << 20;
/// So many bytes may wait in memory; who adds more writes them.
const MAX_PENDING_BYTES: usize = 8 << 20;
/// The directory is compared at most this often before a write: commits that wait for no sync pay next to nothing.
const CHECK_EVERY: Duration = Duration::from_millis(2);
/// A buffer that has grown beyond this is given back.
const MAX_SPARE_BYTES: usize = 2 * MAX_PENDING_BYTES;

/// The log of a database, open to be written. One thread at a time appends; it may be looked at and written by any.
#[derive(Debug)]
pub(crate) struct Log {
    shared: Arc<Shared>,
    thread: LogThread,
}

/// What a log was used for since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogStats {
    /// The bytes of its files.
    pub(crate) num_bytes: u64,
    /// Groups that were appended.
    pub(crate) num_groups: u64,
    /// Syncs of the log, each of them of a file or more.
    pub(crate) num_syncs: u64,
    /// Why it could not be written or synced the last time, if so.
    pub(crate) failure: Option<String>,
}

/// Where a log is, and who is to know when it fails.
#[derive(Clone, Debug)]
pub(crate) struct LogOwner {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) id: DatabaseId,
    /// Poisoned once it is not known what the disk holds.
    pub(crate) lock: Arc<WriterLock>,
}

/// `syncing` is locked before `files`, and `files` before `state`.
#[derive(Debug)]
struct Shared {
    seed: u32,
    lock: Arc<WriterLock>,
    /// Held while files are synced: of two syncs of one file, the system tells one only that bytes could not be written.
    syncing: Mutex<()>,
    files: Mutex<Files>,
    state: Mutex<State>,
    /// The thread has something to do sooner than it thinks.
    wake: Condvar,
    /// What groups take that are in no snapshot, as far as is known.
    kept_bytes: AtomicU64,
    num_groups: AtomicU64,
    num_syncs: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// The groups at the end of the current segment that are not in its file yet.
    pending: Vec<u8>,
    /// Room for the next ones.
    spare: Vec<u8>,
    /// Where the next group goes; `None` where a segment is to be begun for it.
    place: Option<Place>,
    generation: u32,
    /// The last group.
    last_epoch: u64,
    /// Where the last group was appended, until something follows it.
    before_last: Option<Place>,
    /// The last group that is in a file, and the last one that is durable.
    written_through: u64,
    synced_through: u64,
    /// When what was written is to be durable.
    sync_at: Option<Instant>,
    /// When the thread looks next; `None`: when it is woken.
    looks_at: Option<Instant>,
    /// Why the last write failed, or the sync after which there is none; the thread has nobody else to tell.
    failure: Option<String>,
    is_closing: bool,
}

/// A place in the current segment.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    chain: u32,
}

impl Log {
    /// Opens the log in `directory`: calls `replay` with the groups after the epoch `after`, which the manifest has,
    /// cuts off what a crash left behind the last of them, and makes all of it durable.
    ///
    /// # Errors
    /// As [`LogPlace::read`]; the disk failed. Nothing is changed where something is damaged.
    pub(crate) fn open(
        owner: LogOwner,
        directory: &Path,
        after: u64,
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<Self> {
        let LogOwner { storage, id, lock } = owner;
        let place = LogPlace { storage: &*storage, directory, id };
        let mut found = place.read(after, replay)?;
        lock.check()?;
        settle(place, &mut found)?;
        let mut files = Files::new(storage, directory, id);
        let through = found.through;
        files.follow(std::mem::take(&mut found.segments), found.generation, found.number);
        let state = State {
            generation: files.generation,
            last_epoch: through,
            written_through: through,
            synced_through: through,
            ..State::default()
        };
        let shared = Arc::new(Shared {
            seed: seed_of(id),
            lock,
            syncing: Mutex::new(()),
            files: Mutex::new(files),
            state: Mutex::new(state),
            wake: Condvar::new(),
            kept_bytes: AtomicU64::new(0),
            num_groups: AtomicU64::new(0),
            num_syncs: AtomicU64::new(0),
        });
        let this = Self { thread: LogThread::new(Arc::clone(&shared)), shared };
        this.remove_through(after);
        Ok(this)
    }

    /// Appends a group; when this returns, it is as durable as it is to be. Epochs ascend; one that is left out is in
    /// the manifest.
    ///
    /// Cost: a checksum and a copy; a call to write the file, or one to write and one to sync it.
    ///
    /// # Errors
    /// The disk failed: the group is not in the log, unless it was a sync that failed; that is not known then, and
    /// nothing can be appended any more.
    pub(crate) fn append(&self, epoch: u64, payload: &[u8], durability: Durability) -> Result<()> {
        let shared = &*self.shared;
        shared.require_sound()?;
        if durability != Durability::Sync {
            self.thread.begin()?;
        }
        let mut state = shared.state();
        // What is begun may be removed, as long as nothing is in it.
        while !state.has_place(epoch) {
            drop(state);
            shared.begin_segment(epoch)?;
            state = shared.state();
        }
        state.push(epoch, payload, shared.seed);
        shared.kept_bytes.fetch_add(group_bytes(payload.len()) as u64, Ordering::Relaxed);
        shared.num_groups.fetch_add(1, Ordering::Relaxed);
        match durability {
            Durability::None if state.pending.len() <= MAX_PENDING_BYTES => {
                if state.looks_at.is_none() {
                    shared.wake.notify_one();
                }
                Ok(())
            }
            Durability::None => {
                drop(state);
                shared.write_or_take_back(epoch)
            }
            Durability::Batched(time) => {
                drop(state);
                shared.write_or_take_back(epoch)?;
                // A time that no clock reaches is none.
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

    /// Takes the last group back, which has this epoch, as if it had never been.
    ///
    /// # Errors
    /// The disk failed: it is not known whether the group is there, and nothing can be appended any more.
    pub(crate) fn take_back(&self, epoch: u64) -> Result<()> {
        let _syncing = self.shared.syncing();
        self.shared.require_sound()?;
        let mut files = self.shared.files();
        let place = self.shared.state().take_back(epoch);
        let Some(place) = place else { return Ok(()) };
        files.take_back(epoch, place.offset).inspect_err(|_| self.shared.lock.poison())
    }

    /// The next group begins a segment.
    pub(crate) fn rotate(&self) {
        self.shared.state().place = None;
    }

    /// Removes the segments that hold nothing younger than `epoch`, which the manifest has. A file that cannot be
    /// removed is removed when the log is opened next.
    pub(crate) fn remove_through(&self, epoch: u64) {
        let mut files = self.shared.files();
        let mut state = self.shared.state();
        let is_current_old = state.last_epoch <= epoch;
        if is_current_old {
            state.pending.clear();
            (state.place, state.before_last, state.sync_at) = (None, None, None);
        }
        state.last_epoch = state.last_epoch.max(epoch);
        state.written_through = state.written_through.max(epoch);
        state.synced_through = state.synced_through.max(epoch);
        drop(state);
        let storage = Arc::clone(&files.storage);
        let paths = files.take_through(epoch, is_current_old);
        let num_kept = files.written_bytes() + self.shared.state().pending.len() as u64;
        self.shared.kept_bytes.store(num_kept, Ordering::Relaxed);
        drop(files);
        if !paths.is_empty() && self.shared.lock.check().is_ok() {
            for path in paths {
                let _ = storage.remove_file(&path);
            }
        }
    }

    /// Writes to the file what waits in memory.
    ///
    /// # Errors
    /// The disk failed: it goes on waiting.
    pub(crate) fn write(&self) -> Result<()> {
        self.shared.write()
    }

    /// What is to be read when the database is opened, in bytes.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.shared.kept_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn stats(&self) -> LogStats {
        LogStats {
            num_bytes: self.shared.files().num_bytes(),
            num_groups: self.shared.num_groups.load(Ordering::Relaxed),
            num_syncs: self.shared.num_syncs.load(Ordering::Relaxed),
            failure: self.shared.state().failure.clone(),
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
            // What no snapshot has is in the log, as far as the disk lets it be.
            let _ = self.shared.write();
        }
    }
}

/// Cuts off what a crash left, and makes durable what is kept: what is appended later says that it is.
///
/// After a sync that failed, what is read may be nowhere but in the memory of the system, and no sync writes it: so what
/// is not known to be durable is written again before it is synced.
fn settle(place: LogPlace<'_>, found: &mut Found) -> Result<()> {
    let LogPlace { storage, directory, .. } = place;
    if let Some(cut) = found.cut.take() {
        // The youngest first, so that a crash leaves no hole that another record could certify.
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

impl State {
    /// Whether a group has its place behind the last one.
    fn has_place(&self, epoch: u64) -> bool {
        epoch == self.last_epoch + 1 && self.place.is_some_and(|place| place.offset < SEGMENT_BYTES)
    }

    /// Appends a group to what waits to be written.
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
        self.place = Some(Place { offset: place.offset + num_bytes as u64, chain });
        self.last_epoch = epoch;
    }

    /// Forgets the last group; gives where it was, in case it is in the file.
    fn take_back(&mut self, epoch: u64) -> Option<Place> {
        let (end, before) = (self.place?, self.before_last.take()?);
        if self.last_epoch != epoch {
            return None;
        }
        let num_bytes = (end.offset - before.offset) as usize;
        self.pending.truncate(self.pending.len().saturating_sub(num_bytes));
        self.place = Some(before);
        self.last_epoch = epoch - 1;
        self.written_through = self.written_through.min(epoch - 1);
        self.synced_through = self.synced_through.min(epoch - 1);
        Some(before)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn syncing(&self) -> MutexGuard<'_, ()> {
        self.syncing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn require_sound(&self) -> Result<()> {
        Ok(self.lock.require_sound()?)
    }

    /// Begins a segment with the group of this epoch.
    fn begin_segment(&self, epoch: u64) -> Result<()> {
        self.lock.check()?;
        let mut files = self.files();
        self.write_locked(&mut files)?;
        let (last_epoch, synced_through) = {
            let state = self.state();
            (state.last_epoch, state.synced_through)
        };
        let chain = files.begin(last_epoch, epoch, synced_through)?;
        let mut state = self.state();
        state.place = Some(Place { offset: FIRST_GROUP, chain });
        state.before_last = None;
        state.last_epoch = epoch - 1;
        Ok(())
    }

    /// Writes what waits; on an error takes the group of this epoch back, which came last.
    fn write_or_take_back(&self, epoch: u64) -> Result<()> {
        let mut files = self.files();
        self.write_locked(&mut files).inspect_err(|_| {
            self.state().take_back(epoch);
        })
    }

    /// Writes what waits.
    fn write(&self) -> Result<()> {
        self.write_locked(&mut self.files())
    }

    fn write_locked(&self, files: &mut Files) -> Result<()> {
        if self.state().pending.is_empty() {
            return Ok(());
        }
        self.check_in_time(files).inspect_err(|error| self.state().failure = Some(error.to_string()))?;
        let mut state = self.state();
        let spare = std::mem::take(&mut state.spare);
        let mut bytes = std::mem::replace(&mut state.pending, spare);
        let through = state.last_epoch;
        drop(state);
        let written = files.append(&bytes);
        let mut state = self.state();
        match written {
            Ok(()) => {
                state.written_through = state.written_through.max(through);
                state.failure = None;
                bytes.clear();
                if bytes.capacity() <= MAX_SPARE_BYTES {
                    state.spare = bytes;
                }
                Ok(())
            }
            Err(error) => {
                // What came meanwhile stands behind it.
                bytes.append(&mut state.pending);
                state.pending = bytes;
                state.failure = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Compares the directory with what this writer left there, unless that was done a moment ago: an older copy may have
    /// been written over the segment, which the next write would damage.
    fn check_in_time(&self, files: &mut Files) -> Result<()> {
        let now = Instant::now();
        if files.checked_at.is_none_or(|at| now.duration_since(at) >= CHECK_EVERY) {
            self.lock.check_synced(files.current_name().into_iter())?;
            files.checked_at = Some(now);
        }
        Ok(())
    }

    /// Makes durable what was written.
    fn sync(&self) -> Result<()> {
        let _syncing = self.syncing();
        self.require_sound()?;
        let files = self.files();
        let unsynced = files.unsynced();
        let through = self.state().written_through;
        drop(files);
        self.num_syncs.fetch_add(1, Ordering::Relaxed);
        let failed = |error: &crate::Error| {
            self.state().failure = Some(error.to_string());
            self.lock.poison();
        };
        unsynced.sync().inspect_err(failed)?;
        let mut files = self.files();
        // A commit is durable only in a file that the next writer finds. Segments that a snapshot has may go meanwhile.
        self.lock.check_synced(files.names(&unsynced)).map_err(Into::into).inspect_err(failed)?;
        files.has_synced(&unsynced);
        let mut state = self.state();
        debug_assert!(through <= state.written_through, "what was written is not taken back while it is synced");
        state.synced_through = state.synced_through.max(through);
        drop(state);
        files.mark(through);
        Ok(())
    }

    /// What was written is to be durable at this time.
    fn sync_until(&self, time: Instant) {
        let mut state = self.state();
        if state.sync_at.is_none_or(|at| time < at) {
            state.sync_at = Some(time);
            if state.looks_at.is_none_or(|at| time < at) {
                self.wake.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests;
