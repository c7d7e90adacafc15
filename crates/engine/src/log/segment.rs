//! The segment files of a WAL.
//!
//! A file is extended with zeros in large steps, and records replace them. So a sync has only the bytes of records to
//! write, and the zeros behind the last record are known to be no record.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anden_base::storage::{FileIdentity, Storage, StorageFile};
use anden_snapshots::DatabaseId;

use super::certify::MarkSchedule;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use super::mark::{DurableMark, MarkFile, UnsyncedMark};
use super::read::FoundSegment;
use crate::{Error, Result};

/// The smallest and the largest step by which a file grows; in between, the file doubles.
const FIRST_STEP: u64 = 64 << 10;
const LAST_STEP: u64 = 4 << 20;

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The file of a segment that this opening created.
#[derive(Clone, Debug)]
struct SegmentFile {
    file: Arc<dyn StorageFile>,
    path: PathBuf,
    identity: FileIdentity,
}

/// The segment to which records are appended.
#[derive(Debug)]
pub(super) struct Segment {
    file: SegmentFile,
    pub(super) number: u32,
    /// Bytes of header and records.
    written: u64,
    /// Bytes of the file.
    len: u64,
}

/// A sealed segment.
#[derive(Debug)]
pub(super) struct SealedSegment {
    path: PathBuf,
    number: u32,
    last_epoch: u64,
    num_bytes: u64,
    /// The file, if it may not be durable yet.
    unsynced: Option<SegmentFile>,
}

/// The files of a WAL on the disk.
#[derive(Debug)]
pub(super) struct WalFiles {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) directory: PathBuf,
    pub(super) id: DatabaseId,
    pub(super) generation: u32,
    closed: VecDeque<SealedSegment>,
    /// Segments that a snapshot has, kept for the change feed; the oldest first.
    retained: VecDeque<SealedSegment>,
    current: Option<Segment>,
    next_number: u32,
    /// The directory entries of segments below this number are durable.
    named_below: u32,
    mark: MarkFile,
    schedule: MarkSchedule,
    /// Bytes that this opening appended.
    num_appended: u64,
    /// When the directory was last checked before a write.
    pub(super) checked_at: Option<Instant>,
}

/// The work of one sync.
pub(super) struct Unsynced {
    files: Vec<SegmentFile>,
    /// Segments below this number will be durable; sealed ones need no further sync.
    below: u32,
    /// Bytes that this opening had appended.
    num_appended: u64,
    directory: Option<PathBuf>,
    storage: Arc<dyn Storage>,
}

impl Segment {
    /// Appends bytes. On an error the file is cut to its old length, if the system allows that.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.make_room(self.written + bytes.len() as u64);
        if let Err(error) = self.file.file.write_at(self.written, bytes) {
            self.cut_to(self.written);
            return Err(error.into());
        }
        self.written += bytes.len() as u64;
        // If `make_room` failed, the write itself has extended the file.
        self.len = self.len.max(self.written);
        Ok(())
    }

    /// Extends the file beyond `needed`, if the disk has space. On an error it stays as it is: `needed` alone may still
    /// fit.
    fn make_room(&mut self, needed: u64) {
        if needed <= self.len {
            return;
        }
        let before = self.len;
        let step = self.len.clamp(FIRST_STEP, LAST_STEP);
        let end = (needed + step).next_multiple_of(FIRST_STEP);
        // The bytes up to `needed` are about to be written anyway.
        let mut place = before.max(needed);
        while place < end {
            let len = ZEROS.len().min((end - place) as usize);
            if self.file.file.write_at(place, &ZEROS[..len]).is_err() {
                return self.cut_to(before);
            }
            place += len as u64;
        }
        self.len = end;
    }

    /// Cuts the file. If that fails, the next record overwrites the rest, which is no valid record.
    fn cut_to(&mut self, len: u64) {
        let _ = self.file.file.set_len(len);
        self.len = len;
    }
}

impl WalFiles {
    pub(super) fn new(storage: Arc<dyn Storage>, directory: &Path, id: DatabaseId) -> Self {
        let (closed, retained, directory) = (VecDeque::new(), VecDeque::new(), directory.to_owned());
        let (current, mark) = (None, MarkFile::default());
        Self {
            storage,
            directory,
            id,
            generation: 1,
            closed,
            retained,
            current,
            next_number: 1,
            named_below: 1,
            mark,
            schedule: MarkSchedule::default(),
            num_appended: 0,
            checked_at: None,
        }
    }

    /// Continues behind segments that were found, which are durable.
    pub(super) fn follow(&mut self, segments: Vec<FoundSegment>, generation: u32, last_number: u32) {
        self.generation = generation.saturating_add(1);
        self.next_number = last_number.saturating_add(1);
        self.named_below = self.next_number;
        self.closed.extend(segments.into_iter().map(|FoundSegment { number, path, last_epoch, num_bytes }| {
            SealedSegment { path, number, last_epoch, num_bytes, unsynced: None }
        }));
    }

    /// Takes over a segment that was not read, because a snapshot has all of it. Called for the oldest first.
    pub(super) fn retain(&mut self, number: u32, path: PathBuf, num_bytes: u64) {
        // Its epochs are not needed any more: it goes by its age.
        self.retained.push_back(SealedSegment { path, number, last_epoch: 0, num_bytes, unsynced: None });
    }

    /// Seals the current segment, whose last record has the epoch `last_epoch`, and begins the next one. Returns the
    /// checksum to which its first record is chained.
    pub(super) fn begin(&mut self, last_epoch: u64, first_epoch: u64, synced_through: u64) -> Result<u32> {
        let number = self.next_number;
        let path = self.directory.join(anden_snapshots::log_name(number));
        let header = SegmentHeader { first_epoch, synced_through, generation: self.generation };
        let (bytes, crc) = header.encode(self.id);
        let file: Arc<dyn StorageFile> = self.storage.create(&path)?.into();
        // No other segment may get this name, even if the file fails.
        self.next_number = number.saturating_add(1);
        let begun = file.identity().map_err(Error::from).and_then(|identity| {
            let file = SegmentFile { identity, file, path: path.clone() };
            let mut segment = Segment { file, number, written: 0, len: 0 };
            segment.append(&bytes).map(|()| segment)
        });
        let segment = begun.inspect_err(|_| {
            // A missing or half header would count as damage once later records are durable.
            let _ = self.storage.remove_file(&path);
        })?;
        // The old segment stays current until the header of the new one is in its file.
        if let Some(Segment { file, number, written, len, .. }) = self.current.replace(segment) {
            let (path, num_bytes) = (file.path.clone(), len.max(written));
            self.closed.push_back(SealedSegment { path, number, last_epoch, num_bytes, unsynced: Some(file) });
        }
        Ok(crc)
    }

    /// Appends records to the current segment.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        // Without a current segment no record waits, because a snapshot has all.
        let Some(segment) = &mut self.current else { return Ok(()) };
        segment.append(bytes)?;
        self.num_appended += bytes.len() as u64;
        Ok(())
    }

    /// The path and the identity that the current segment must have.
    pub(super) fn current_name(&self) -> Option<(&Path, FileIdentity)> {
        self.current.as_ref().map(|segment| (&*segment.file.path, segment.file.identity))
    }

    /// Takes back the records of the current segment from this epoch on. On success their bytes are durably gone, or
    /// zeros.
    pub(super) fn take_back(&mut self, epoch: u64, end: u64) -> Result<()> {
        // The mark first: it must not certify a record that is gone.
        self.mark.take_back(epoch, self.id)?;
        // The mark may have been lowered, so the next sync raises it at once.
        self.schedule = MarkSchedule::default();
        let Some(segment) = self.current.as_mut().filter(|segment| segment.written > end) else { return Ok(()) };
        segment.file.file.set_len(end)?;
        (segment.written, segment.len) = (end, end);
        Ok(segment.file.file.sync_data()?)
    }

    /// The files to sync so that all written records are durable.
    pub(super) fn unsynced(&self) -> Unsynced {
        let closed = self.closed.iter().filter_map(|segment| segment.unsynced.as_ref());
        let files = closed.chain(self.current.as_ref().map(|segment| &segment.file)).cloned().collect();
        let below = self.current.as_ref().map_or(self.next_number, |segment| segment.number);
        // A new file also needs its directory entry synced, once.
        let is_named = self.current.as_ref().is_none_or(|segment| segment.number < self.named_below);
        let directory = (!is_named).then(|| self.directory.clone());
        Unsynced { files, below, num_appended: self.num_appended, directory, storage: Arc::clone(&self.storage) }
    }

    /// The paths and identities that the synced files must have, without those removed meanwhile.
    pub(super) fn names(&self, synced: &Unsynced) -> impl Iterator<Item = (&Path, FileIdentity)> {
        // The segment that was current when the sync began may be closed by now.
        let closed = self.closed.iter().filter(|segment| segment.number <= synced.below);
        let current = self.current.as_ref().map(|segment| &segment.file);
        let files = closed.filter_map(|segment| segment.unsynced.as_ref()).chain(current);
        files.map(|file| (&*file.path, file.identity))
    }

    /// Notes a successful sync.
    pub(super) fn has_synced(&mut self, synced: &Unsynced) {
        for segment in self.closed.iter_mut().filter(|segment| segment.number < synced.below) {
            segment.unsynced = None;
        }
        if synced.directory.is_some() {
            self.named_below = self.named_below.max(synced.below.saturating_add(1));
        }
    }

    /// Notes that a sync of this time made the records through this epoch durable. Writes the mark if that is due, or
    /// if it would be the first one in its segment.
    pub(super) fn mark(&mut self, epoch: u64, synced: &Unsynced, time: Duration) {
        let now = Instant::now();
        let is_due = self.schedule.is_due(synced.num_appended, time, now);
        let is_first = self.mark.written().is_none_or(|mark| Some(mark.segment) < self.newest_number());
        // If that fails, damage in the last records may go unnoticed. The commit stands.
        if (is_due || is_first) && self.mark_now(epoch).is_ok() {
            self.schedule.has_marked(synced.num_appended, now);
        }
    }

    /// Writes the mark: the records through this epoch are durable.
    ///
    /// # Errors
    /// The disk failed.
    pub(super) fn mark_now(&mut self, epoch: u64) -> Result<()> {
        // Without a segment, the manifest certifies all commits.
        let Some(segment) = self.newest_number() else { return Ok(()) };
        let mark = DurableMark { epoch, segment };
        if epoch == 0 || self.mark.has(mark) {
            return Ok(());
        }
        self.mark.write(mark, &*self.storage, &self.directory, self.id)
    }

    /// The written mark, if a sync of it was not tried yet.
    pub(super) fn unsynced_mark(&mut self) -> Option<UnsyncedMark> {
        // Without a segment, the mark has nothing to certify, and closing after a checkpoint saves two syncs.
        self.newest_number()?;
        self.mark.take_unsynced(&self.storage, &self.directory)
    }

    fn newest_number(&self) -> Option<u32> {
        self.current.as_ref().map(|segment| segment.number).or_else(|| self.closed.back().map(|closed| closed.number))
    }

    /// Retains the segments without records younger than `epoch`, with `is_current_old` the current one too. Drops the
    /// oldest of those retained until they have at most `keep_bytes`, and returns the paths of the dropped files.
    pub(super) fn take_through(&mut self, epoch: u64, is_current_old: bool, keep_bytes: u64) -> Vec<PathBuf> {
        // Epochs ascend from segment to segment, so the first younger one ends the loop.
        while self.closed.front().is_some_and(|segment| segment.last_epoch <= epoch) {
            let old = self.closed.pop_front();
            self.retained.extend(old.map(|segment| SealedSegment { unsynced: None, ..segment }));
        }
        let old = if is_current_old { self.current.take() } else { None };
        self.retained.extend(old.map(|Segment { file, number, written, len, .. }| SealedSegment {
            path: file.path,
            number,
            last_epoch: epoch,
            num_bytes: len.max(written),
            unsynced: None,
        }));
        let (mut paths, mut num_bytes) = (Vec::new(), self.retained_bytes());
        // A file may be empty, so the second condition alone would keep some where nothing is to be kept.
        while (keep_bytes == 0 || num_bytes > keep_bytes)
            && let Some(oldest) = self.retained.pop_front()
        {
            num_bytes -= oldest.num_bytes;
            paths.push(oldest.path);
        }
        paths
    }

    /// The bytes of the retained segments' files.
    pub(super) fn retained_bytes(&self) -> u64 {
        self.retained.iter().map(|segment| segment.num_bytes).sum()
    }

    /// The bytes of all segments but the retained ones, without preallocated space.
    pub(super) fn written_bytes(&self) -> u64 {
        let closed: u64 = self.closed.iter().map(|segment| segment.num_bytes).sum();
        closed + self.current.as_ref().map_or(0, |segment| segment.written)
    }

    /// The bytes of all files.
    pub(super) fn num_bytes(&self) -> u64 {
        let closed: u64 = self.closed.iter().map(|segment| segment.num_bytes).sum();
        closed + self.retained_bytes() + self.current.as_ref().map_or(0, |segment| segment.len)
    }
}

impl Unsynced {
    /// Syncs the files, then the directory. After an error, no second attempt is allowed.
    pub(super) fn sync(&self) -> Result<()> {
        self.files.iter().try_for_each(|segment| segment.file.sync_data())?;
        if let Some(directory) = &self.directory {
            self.storage.sync_dir(directory)?;
        }
        Ok(())
    }
}

/// The offset of the first record in a segment.
pub(super) const FIRST_GROUP: u64 = SEGMENT_HEADER_BYTES as u64;
