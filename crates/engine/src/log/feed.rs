//! Reads the records of the WAL for the change feed, from any epoch that a segment still has.
//!
//! The files are opened before the first record is read, so a writer that removes segments meanwhile does no harm. A
//! record counts as in recovery: by its checksums, its epoch, its generation, and the chain from the record before.

use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use anden_snapshots::DatabaseId;

use super::format::{GROUP_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, group_bytes, seed_of};
use super::read::{HeldLog, HeldSegment, LogPlace, SegmentRecord, record};
use crate::{Error, Result};

const TORN_HEADER: &str = "the header of a segment is not whole";

/// The records after an epoch, in order.
#[derive(Debug)]
pub(crate) struct LogFeed {
    id: DatabaseId,
    /// The segments that were not begun.
    segments: IntoIter<HeldSegment>,
    current: Option<FeedSegment>,
    /// The place and the fault of a record that ended its segment early.
    fault: Option<(PathBuf, u64, &'static str)>,
}

/// A record that was read.
#[derive(Debug)]
pub(crate) struct FeedRecord {
    pub(crate) epoch: u64,
    pub(crate) payload: Vec<u8>,
    /// The file and the place of the payload in it.
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
}

#[derive(Debug)]
struct FeedSegment {
    path: PathBuf,
    bytes: Vec<u8>,
    /// The place of the next record, its epoch, and the checksum to which it is chained.
    offset: usize,
    expected: u64,
    chain: u32,
    generation: u32,
}

impl LogPlace<'_> {
    /// The records after the epoch `since`.
    ///
    /// # Errors
    /// The disk failed; a writer removed a segment between its listing and its opening.
    pub(crate) fn feed(self, since: u64) -> Result<LogFeed> {
        let HeldLog { segments, .. } = self.hold(since)?;
        Ok(LogFeed { id: self.id, segments: segments.into_iter(), current: None, fault: None })
    }

    /// The least epoch after which the WAL has all commits, but for those that skipped it. `after`: the epoch of the
    /// manifest.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn oldest_epoch(self, after: u64) -> Result<u64> {
        let mut segments = self.segments()?;
        // A power cut may bring back a removed file, but not the next one. Then a number is missing between them.
        let is_gap = |pair: &[(u32, PathBuf)]| pair[0].0.checked_add(1) != Some(pair[1].0);
        let first = segments.windows(2).rposition(is_gap).map_or(0, |place| place + 1);
        for (number, path) in segments.drain(first..) {
            let segment = match self.storage.open_read(&path) {
                // A writer has removed the segment since it was listed.
                Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => continue,
                file => HeldSegment { number, file: file?, path },
            };
            if let Some(header) = segment.header(self.id) {
                return Ok(after.min(header.first_epoch.saturating_sub(1)));
            }
        }
        Ok(after)
    }

    /// Checks the records that a snapshot covers: those that are kept for the change feed. `after`: the epoch of the
    /// manifest.
    ///
    /// # Errors
    /// A segment is damaged; the disk failed.
    pub(crate) fn verify_retained(self, after: u64) -> Result<()> {
        let needed = self.hold(after)?.segments.first().map(|segment| segment.number);
        let mut fault: Option<(FeedSegment, &str)> = None;
        for (number, path) in self.segments()? {
            let bytes = match self.storage.read_copy(&path) {
                // A writer has removed the segment since it was listed.
                Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => continue,
                bytes => bytes?,
            };
            let Some(mut segment) = FeedSegment::begin(path.clone(), bytes, self.id)? else {
                if needed.is_some_and(|needed| number < needed) {
                    return Err(unfit(&path, 0, TORN_HEADER));
                }
                // A crash may have left it, and recovery removes it.
                break;
            };
            require_next(fault.take(), segment.expected)?;
            fault = segment.fault_through(after, seed_of(self.id)).map(|what| (segment, what));
        }
        require_next(fault, 0)
    }
}

/// Refuses a segment with a bad record, unless the next one begins with the epoch of that record: then it is one that
/// was refused and could not be cut off.
fn require_next(fault: Option<(FeedSegment, &str)>, next_epoch: u64) -> Result<()> {
    match fault.filter(|(segment, _)| segment.expected != next_epoch) {
        Some((segment, what)) => Err(unfit(&segment.path, segment.offset, what)),
        None => Ok(()),
    }
}

fn unfit(path: &Path, offset: usize, what: &str) -> Error {
    let what = format!("{what}; a snapshot has the commits of this segment, only the change feed needs it");
    anden_base::Error::corrupt(path, offset as u64, what).into()
}

impl LogFeed {
    /// The record of the commit after the epoch `last`; `None` if no segment has it. Epochs only ascend from call to
    /// call.
    ///
    /// # Errors
    /// Damage; the disk failed.
    pub(crate) fn after(&mut self, last: u64) -> Result<Option<FeedRecord>> {
        loop {
            let Some(segment) = &mut self.current else {
                match self.begin(last)? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            if segment.expected > last + 1 {
                // A commit skipped the WAL: a very large batch or an append.
                return Ok(None);
            }
            match segment.read(seed_of(self.id)) {
                Ok(Some(found)) if found.epoch <= last => {}
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => self.current = None,
                Err(what) => {
                    self.fault = Some((segment.path.clone(), segment.offset as u64, what));
                    self.current = None;
                }
            }
        }
    }

    /// Begins the next segment. Returns false if there is none.
    fn begin(&mut self, last: u64) -> Result<bool> {
        let Some(segment) = self.segments.next() else {
            // The youngest segment has no header yet where a writer has just begun it. All records of the feed are
            // certified, so a bad one is damage.
            let fault = self.fault.take_if(|(_, _, what)| *what != TORN_HEADER);
            return fault.map_or(Ok(false), |fault| Err(damage(fault)));
        };
        let bytes = segment.file.read_all()?;
        let path = segment.path.clone();
        let Some(begun) = FeedSegment::begin(segment.path, bytes, self.id)? else {
            self.fault.get_or_insert((path, 0, TORN_HEADER));
            return Ok(true);
        };
        match self.fault.take() {
            Some(fault) if begun.expected > last + 1 => Err(damage(fault)),
            _ => {
                self.current = Some(begun);
                Ok(true)
            }
        }
    }

    /// The error for a youngest segment without a header, which may have had the next record.
    pub(crate) fn torn_header(&mut self) -> Option<Error> {
        self.fault.take().map(damage)
    }

    /// The epochs after which a segment begins that was not read.
    pub(crate) fn later_epochs(&self) -> impl Iterator<Item = u64> {
        let headers = self.segments.as_slice().iter().filter_map(|segment| segment.header(self.id));
        let current = self.current.iter().map(|segment| segment.expected);
        current.chain(headers.map(|header| header.first_epoch)).map(|first| first.saturating_sub(1))
    }
}

fn damage((path, offset, what): (PathBuf, u64, &'static str)) -> Error {
    anden_base::Error::corrupt(&path, offset, what).into()
}

impl FeedSegment {
    /// The records of a segment; `None` if its header is torn.
    ///
    /// # Errors
    /// The segment is of another database or format version.
    fn begin(path: PathBuf, bytes: Vec<u8>, id: DatabaseId) -> Result<Option<Self>> {
        let header = SegmentHeader::decode(&bytes, id, &path)?;
        Ok(header.map(|(SegmentHeader { first_epoch, generation, .. }, chain)| Self {
            path,
            bytes,
            offset: SEGMENT_HEADER_BYTES,
            expected: first_epoch,
            chain,
            generation,
        }))
    }

    /// The fault of the first bad record up to this epoch. Recovery finds the faults of younger ones.
    fn fault_through(&mut self, epoch: u64, seed: u32) -> Option<&'static str> {
        while self.expected <= epoch {
            match self.read(seed) {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(what) => return Some(what),
            }
        }
        None
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// The fault of the bytes there.
    fn read(&mut self, seed: u32) -> Result<Option<FeedRecord>, &'static str> {
        match record(self.bytes.get(self.offset..).unwrap_or_default(), self.offset, seed) {
            SegmentRecord::End => Ok(None),
            SegmentRecord::Bad(what) => Err(what),
            SegmentRecord::Group { header, crc, payload } => {
                if (header.chain, header.epoch, header.generation) != (self.chain, self.expected, self.generation) {
                    return Err("a record does not follow the one before it");
                }
                let offset = (self.offset + GROUP_HEADER_BYTES) as u64;
                let (path, payload) = (self.path.clone(), payload.to_vec());
                self.offset += group_bytes(payload.len());
                (self.chain, self.expected) = (crc, self.expected + 1);
                Ok(Some(FeedRecord { epoch: header.epoch, payload, path, offset }))
            }
        }
    }
}
