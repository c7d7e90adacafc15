//! The files that a log is written to.
//!
//! A file grows by zeros, many at a time, which groups then take the place of: so a sync has only their bytes to write,
//! and what is behind the last group is known to be none.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use base::storage::{FileIdentity, Storage, StorageFile};
use lama::DatabaseId;

use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use super::mark::{Mark, MarkFile};
use super::read::FoundSegment;
use crate::Result;

/// The bytes by which a short file grows, and those by which it does at most; in between it doubles.
const FIRST_STEP: u64 = 64 << 10;
const LAST_STEP: u64 = 4 << 20;

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A file of a segment that was created by this opening.
#[derive(Clone, Debug)]
struct SegmentFile {
    file: Arc<dyn StorageFile>,
    path: PathBuf,
    identity: FileIdentity,
}

/// The segment that groups are appended to.
#[derive(Debug)]
pub(super) struct Segment {
    file: SegmentFile,
    pub(super) number: u32,
    first_epoch: u64,
    /// The bytes of header and groups.
    written: u64,
    /// The bytes of the file.
    len: u64,
}

/// A segment that nothing is appended to any more.
#[derive(Debug)]
pub(super) struct Closed {
    path: PathBuf,
    number: u32,
    last_epoch: u64,
    num_bytes: u64,
    /// Where it may not be durable yet.
    unsynced: Option<SegmentFile>,
}

/// The files of a log, as they are on the disk.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) directory: PathBuf,
    pub(super) id: DatabaseId,
    pub(super) generation: u32,
    closed: VecDeque<Closed>,
    current: Option<Segment>,
    next_number: u32,
    /// The names of segments below this number are durable.
    named_below: u32,
    mark: MarkFile,
    /// When the directory was compared before a write the last time.
    pub(super) checked_at: Option<Instant>,
}

/// What a sync is to make durable.
pub(super) struct Unsynced {
    files: Vec<SegmentFile>,
    /// Segments below this number will be durable, and closed ones need no more syncs.
    below: u32,
    directory: Option<PathBuf>,
    storage: Arc<dyn Storage>,
}

impl Segment {
    /// Appends bytes. On an error the file is as it was, as far as it lets itself be cut.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.make_room(self.written + bytes.len() as u64);
        if let Err(error) = self.file.file.write_at(self.written, bytes) {
            self.cut_to(self.written);
            return Err(error.into());
        }
        self.written += bytes.len() as u64;
        self.len = self.len.max(self.written);
        Ok(())
    }

    /// Makes the file longer than `needed`; where there is no room for that, perhaps there is for what is needed.
    fn make_room(&mut self, needed: u64) {
        if needed <= self.len {
            return;
        }
        let before = self.len;
        let step = self.len.clamp(FIRST_STEP, LAST_STEP);
        let end = (needed + step).next_multiple_of(FIRST_STEP);
        // What is about to be written needs no zeros before.
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

    /// Cuts the file. Where that fails, what is left behind `len` is overwritten next, or no record.
    fn cut_to(&mut self, len: u64) {
        let _ = self.file.file.set_len(len);
        self.len = len;
    }
}

impl Files {
    pub(super) fn new(storage: Arc<dyn Storage>, directory: &Path, id: DatabaseId) -> Self {
        let (closed, directory) = (VecDeque::new(), directory.to_owned());
        let (current, mark) = (None, MarkFile::default());
        Self {
            storage,
            directory,
            id,
            generation: 1,
            closed,
            current,
            next_number: 1,
            named_below: 1,
            mark,
            checked_at: None,
        }
    }

    /// Goes on behind segments that were found, which are durable.
    pub(super) fn follow(&mut self, segments: Vec<FoundSegment>, generation: u32, last_number: u32) {
        self.generation = generation.saturating_add(1);
        self.next_number = last_number.saturating_add(1);
        self.named_below = self.next_number;
        self.closed.extend(segments.into_iter().map(|FoundSegment { number, path, last_epoch, num_bytes }| Closed {
            path,
            number,
            last_epoch,
            num_bytes,
            unsynced: None,
        }));
    }

    /// Ends the current segment, whose last group has this epoch, and begins one; gives what its first group is
    /// chained to.
    pub(super) fn begin(&mut self, last_epoch: u64, first_epoch: u64, synced_through: u64) -> Result<u32> {
        let number = self.next_number;
        let path = self.directory.join(lama::log_name(number));
        let header = SegmentHeader { first_epoch, synced_through, generation: self.generation };
        let (bytes, crc) = header.encode(self.id);
        let file: Arc<dyn StorageFile> = self.storage.create(&path)?.into();
        // Whatever becomes of the file: no other gets its name.
        self.next_number = number.saturating_add(1);
        let file = SegmentFile { identity: file.identity()?, file, path };
        let mut segment = Segment { file, number, first_epoch, written: 0, len: 0 };
        if let Err(error) = segment.append(&bytes) {
            let _ = self.storage.remove_file(&segment.file.path);
            return Err(error);
        }
        if let Some(Segment { file, number, written, len, .. }) = self.current.replace(segment) {
            let (path, num_bytes) = (file.path.clone(), len.max(written));
            self.closed.push_back(Closed { path, number, last_epoch, num_bytes, unsynced: Some(file) });
        }
        Ok(crc)
    }

    /// Appends groups to the current segment.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.current {
            Some(segment) => segment.append(bytes),
            None => Ok(()),
        }
    }

    /// Where the current segment must stand.
    pub(super) fn current_name(&self) -> Option<(&Path, FileIdentity)> {
        self.current.as_ref().map(|segment| (&*segment.file.path, segment.file.identity))
    }

    /// Takes the last groups of the current segment back, from this epoch on; what they took is durable as zeros or not
    /// there.
    pub(super) fn take_back(&mut self, epoch: u64, end: u64) -> Result<()> {
        self.mark.take_back(epoch)?;
        let Some(segment) = self.current.as_mut().filter(|segment| segment.written > end) else { return Ok(()) };
        segment.file.file.set_len(end)?;
        (segment.written, segment.len) = (end, end);
        Ok(segment.file.file.sync_data()?)
    }

    /// What is to be synced so that everything is durable that was written.
    pub(super) fn unsynced(&self) -> Unsynced {
        let closed = self.closed.iter().filter_map(|segment| segment.unsynced.as_ref());
        let files = closed.chain(self.current.as_ref().map(|segment| &segment.file)).cloned().collect();
        let below = self.current.as_ref().map_or(self.next_number, |segment| segment.number);
        let is_named = self.current.as_ref().is_none_or(|segment| segment.number < self.named_below);
        let directory = (!is_named).then(|| self.directory.clone());
        Unsynced { files, below, directory, storage: Arc::clone(&self.storage) }
    }

    /// Where the files that were synced must stand, but for those that were given up meanwhile.
    pub(super) fn names(&self, synced: &Unsynced) -> impl Iterator<Item = (&Path, FileIdentity)> {
        let closed = self.closed.iter().filter(|segment| segment.number < synced.below);
        let current = self.current.as_ref().map(|segment| &segment.file);
        let files = closed.filter_map(|segment| segment.unsynced.as_ref()).chain(current);
        files.map(|file| (&*file.path, file.identity))
    }

    /// Learns that a sync went well.
    pub(super) fn has_synced(&mut self, synced: &Unsynced) {
        for segment in self.closed.iter_mut().filter(|segment| segment.number < synced.below) {
            segment.unsynced = None;
        }
        if synced.directory.is_some() {
            self.named_below = self.named_below.max(synced.below.saturating_add(1));
        }
    }

    /// Learns that the group of this epoch is durable: that of each segment which was the first to be is noted beside
    /// them. Where that fails, less is known of a log that lacks.
    pub(super) fn mark(&mut self, epoch: u64) {
        let Some(segment) = self.current.as_ref().filter(|segment| segment.first_epoch <= epoch) else { return };
        let mark = Mark { epoch, segment: segment.number };
        if self.mark.written().is_none_or(|written| written.segment < mark.segment) {
            let _ = self.mark.write(mark, &*self.storage, &self.directory, self.id);
        }
    }

    /// Gives up the segments that hold nothing younger than `epoch`, the current one too if `is_current_old`; gives
    /// the paths of their files.
    pub(super) fn take_through(&mut self, epoch: u64, is_current_old: bool) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        while self.closed.front().is_some_and(|segment| segment.last_epoch <= epoch) {
            paths.extend(self.closed.pop_front().map(|segment| segment.path));
        }
        let old = if is_current_old { self.current.take() } else { None };
        paths.extend(old.map(|segment| segment.file.path));
        paths
    }

    /// The bytes of all files, without room for what comes next.
    pub(super) fn written_bytes(&self) -> u64 {
        let closed: u64 = self.closed.iter().map(|segment| segment.num_bytes).sum();
        closed + self.current.as_ref().map_or(0, |segment| segment.written)
    }

    /// The bytes of all files.
    pub(super) fn num_bytes(&self) -> u64 {
        let closed: u64 = self.closed.iter().map(|segment| segment.num_bytes).sum();
        closed + self.current.as_ref().map_or(0, |segment| segment.len)
    }
}

impl Unsynced {
    /// Makes it durable. Nothing may be tried again where that fails.
    pub(super) fn sync(&self) -> Result<()> {
        self.files.iter().try_for_each(|segment| segment.file.sync_data())?;
        if let Some(directory) = &self.directory {
            self.storage.sync_dir(directory)?;
        }
        Ok(())
    }
}

/// Where the first group of a segment is.
pub(super) const FIRST_GROUP: u64 = SEGMENT_HEADER_BYTES as u64;
