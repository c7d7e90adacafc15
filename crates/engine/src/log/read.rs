//! Reads the WAL: the records after a given epoch, without a gap, up to the first bad one.
//!
//! A bad record ends the WAL: after a power cut, unsynced blocks may be on the disk in any order. If a later header
//! says that the WAL was durable beyond the record, the bad record is damage instead. Bad records up to the manifest's
//! epoch are skipped.
//!
//! The [mark](DurableMark) also certifies: a commit that it names must be in a segment, or in the manifest.
//!
//! A second thread reads one segment ahead and checks its checksums. It can, because the checksum of a record depends
//! on no other record.
//!
//! All files are opened before any is read. So a reader sees the WAL of one moment, although a writer removes segments.
//!
//! A reader in another process reads on from the end of the last record. If anything looks wrong there, it reads the
//! whole WAL again: only the whole WAL tells damage from a torn tail.

use std::path::{Path, PathBuf};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use anden_base::checksum::crc32c;
use anden_base::storage::{HeldFile, Storage};
use anden_snapshots::DatabaseId;

use super::format::{
    ALIGNMENT, GROUP_HEADER_BYTES, GroupHeader, SEGMENT_HEADER_BYTES, SegmentHeader, group_bytes, seed_of,
};
use super::mark::DurableMark;
use crate::Result;

/// A record as it was logged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedGroup<'a> {
    pub(crate) epoch: u64,
    pub(crate) payload: &'a [u8],
    /// The WAL was durable through this epoch when the record was written.
    pub(crate) synced_through: u64,
    /// The file and the place of the payload in it.
    pub(crate) path: &'a Path,
    pub(crate) offset: u64,
}

/// The place of a WAL, and its database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPlace<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) directory: &'a Path,
    pub(crate) id: DatabaseId,
}

/// The open files of a WAL: a writer in another process may remove them while they are read.
#[derive(Debug)]
pub(crate) struct HeldLog<'a> {
    place: LogPlace<'a>,
    /// The durable high-water mark beside the segments.
    mark: Option<DurableMark>,
    /// In the order of their numbers.
    pub(super) segments: Vec<HeldSegment>,
}

/// An open segment.
#[derive(Debug)]
pub(super) struct HeldSegment {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    pub(super) file: Box<dyn HeldFile>,
}

/// The result of reading a WAL.
#[derive(Debug, Default)]
pub(crate) struct WalScan {
    /// The segments with a whole header, in order.
    pub(super) segments: Vec<FoundSegment>,
    /// The torn tail, if something follows the last record.
    pub(super) cut: Option<TornTail>,
    /// The epoch of the last record, or of the manifest.
    pub(crate) through: u64,
    /// The last epoch that a header or the mark certifies as durable.
    pub(super) certified: u64,
    /// The highest segment number and the highest generation.
    pub(super) number: u32,
    pub(super) generation: u32,
    /// The LSN behind the last record.
    pub(crate) lsn: Option<Lsn>,
    /// The number of the first segment that was opened; `None` if there is none.
    pub(super) first_number: Option<u32>,
}

impl WalScan {
    /// Whether something follows the last record that is no record.
    pub(crate) fn has_torn_tail(&self) -> bool {
        self.cut.is_some()
    }
}

/// An LSN: the end of a record in the WAL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lsn {
    /// The number of the segment.
    number: u32,
    generation: u32,
    /// The begin and the end of the record.
    start: usize,
    offset: usize,
    chain: u32,
    /// The epoch of the record.
    epoch: u64,
}

/// A segment of a WAL.
#[derive(Debug)]
pub(super) struct FoundSegment {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    /// The epoch of its last record; without any, the epoch before its first.
    pub(super) last_epoch: u64,
    pub(super) num_bytes: u64,
}

/// The torn tail that a crash left.
#[derive(Debug)]
pub(super) struct TornTail {
    /// The end of the last kept segment; `None` if it stays as it is.
    pub(super) offset: Option<u64>,
    /// The younger segments.
    pub(super) removed: Vec<PathBuf>,
}

/// A record that is not valid.
struct BadRecord {
    offset: usize,
    /// The epoch of the record that was expected there.
    epoch: u64,
    what: &'static str,
}

/// The state of reading.
struct WalScanner<'a> {
    log: &'a HeldLog<'a>,
    seed: u32,
    /// The epoch of the manifest.
    after: u64,
    /// The end of the last record that was read before.
    known: Option<Lsn>,
    found: WalScan,
}

impl<'a> LogPlace<'a> {
    /// The segments, in the order of their numbers.
    pub(super) fn segments(&self) -> Result<Vec<(u32, PathBuf)>> {
        let names = self.storage.list(self.directory)?;
        let numbers =
            names.into_iter().filter_map(|name| Some((anden_snapshots::log_number(&name)?, self.directory.join(name))));
        let mut segments: Vec<_> = numbers.collect();
        segments.sort_unstable();
        Ok(segments)
    }

    /// The segments below this number, in order; none if there is no number.
    pub(super) fn older_than(&self, number: Option<u32>) -> Result<Vec<(u32, PathBuf)>> {
        let mut segments = self.segments()?;
        segments.retain(|&(other, _)| number.is_some_and(|number| other < number));
        Ok(segments)
    }

    /// Opens the files of the WAL that may have records after the epoch `after`.
    ///
    /// # Errors
    /// The disk failed; a writer removed a file meanwhile, after it published a manifest.
    pub(crate) fn hold(self, after: u64) -> Result<HeldLog<'a>> {
        // The mark first. If a writer removes segments after that, a manifest is published that has their commits.
        let mark = DurableMark::read(self.storage, self.directory, self.id)?;
        let (mut segments, mut next) = (Vec::new(), None);
        // The youngest first: those before the one that has the next record are retained, and may be many.
        for (number, path) in self.segments()?.into_iter().rev() {
            let segment = HeldSegment { number, file: self.storage.open_read(&path)?, path };
            let first_epoch = segment.header(self.id).map(|header| header.first_epoch);
            // A retained segment begins earlier. One that does not is a copy, and reading it finds commits twice.
            if next.is_some_and(|next| first_epoch.is_none_or(|first| first < next)) {
                break;
            }
            next = first_epoch.filter(|&first| first <= after.saturating_add(1)).or(next);
            segments.push(segment);
        }
        segments.reverse();
        Ok(HeldLog { place: self, mark, segments })
    }

    /// Opens these files as the segments of a WAL without a mark, in this order. Each is named in errors by its second
    /// path.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn hold_files(self, files: &[(PathBuf, PathBuf)]) -> Result<HeldLog<'a>> {
        let hold = |(number, (path, shown)): (u32, &(PathBuf, PathBuf))| {
            Ok(HeldSegment { number, path: shown.clone(), file: self.storage.open_read(path)? })
        };
        Ok(HeldLog { place: self, mark: None, segments: (1..).zip(files).map(hold).collect::<Result<_>>()? })
    }

    /// Calls `replay` with the records after the epoch `after` of the manifest.
    ///
    /// # Errors
    /// Damage: a durable record is bad or missing; a WAL of another database or format version; an error of `replay`;
    /// the disk failed.
    pub(crate) fn read(self, after: u64, replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>) -> Result<WalScan> {
        self.hold(after)?.read(after, None, replay)
    }

    /// The bytes of a segment, and the end of its records up to this epoch.
    pub(super) fn segment_through(self, path: &Path, epoch: u64) -> Result<(Vec<u8>, usize)> {
        let (bytes, seed) = (self.storage.read_copy(path)?, seed_of(self.id));
        let is_older =
            SegmentHeader::decode(&bytes, self.id, path)?.is_some_and(|(header, _)| header.first_epoch <= epoch);
        // A segment that begins later is rewritten whole, with its header.
        let mut place = if is_older { SEGMENT_HEADER_BYTES } else { 0 };
        while is_older
            && let SegmentRecord::Group { header, payload, .. } =
                record(bytes.get(place..).unwrap_or_default(), place, seed)
            && header.epoch <= epoch
        {
            place += group_bytes(payload.len());
        }
        Ok((bytes, place))
    }
}

impl HeldLog<'_> {
    /// The last epoch that the mark or the header of a segment states to be durable.
    pub(crate) fn certified(&self) -> u64 {
        let headers = self.segments.iter().filter_map(|segment| segment.header(self.place.id));
        let marked = self.mark.map_or(0, |mark| mark.epoch);
        headers.map(|header| header.synced_through).fold(marked, u64::max)
    }

    /// As [`LogPlace::read`], from the files that were opened. A second call reads them again, as they are then.
    ///
    /// # Errors
    /// As [`LogPlace::read`].
    pub(crate) fn records(&self, after: u64, replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>) -> Result<WalScan> {
        self.read(after, None, replay)
    }

    /// As [`LogPlace::read`]. `known` is the end of the last record that the reader has read before.
    fn read(
        &self,
        after: u64,
        known: Option<Lsn>,
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<WalScan> {
        // The manifest certifies its own commits, even if no segment has them any more.
        let certified = self.mark.map_or(after, |mark| mark.epoch.max(after));
        let found = WalScan { through: after, certified, ..WalScan::default() };
        let mut reading = WalScanner { log: self, seed: self.seed(), after, known, found };
        // Segments with a torn header count too: no later segment may take the number of one.
        reading.found.number = self.segments.last().map_or(0, |segment| segment.number);
        reading.found.first_number = self.segments.first().map(|segment| segment.number);
        std::thread::scope(|scope| {
            let mut ahead = None;
            for (index, segment) in self.segments.iter().enumerate() {
                let later = &self.segments[index + 1..];
                let bytes = match ahead.take() {
                    Some(ahead) => join(ahead)?,
                    None => segment.read(self.seed())?,
                };
                // The next segment is read while this one is replayed.
                ahead = later.first().and_then(|segment| segment.read_ahead(self.seed(), scope));
                let Some(bad) = reading.segment(segment, &bytes, replay)? else { continue };
                if bad.offset > 0 && reading.goes_on(later.first(), bad.epoch)? {
                    // Garbage behind a sealed segment: a record that was refused and could not be cut off.
                    continue;
                }
                reading.require_unsynced(&bad, &segment.path, &bytes.bytes, later)?;
                let is_begun = bad.offset > 0;
                let removed = if is_begun { later } else { &self.segments[index..] };
                reading.found.cut = Some(TornTail {
                    offset: is_begun.then_some(bad.offset as u64),
                    removed: removed.iter().map(|segment| segment.path.clone()).collect(),
                });
                break;
            }
            // Only at the end, because the marked commit may be in the last segment.
            reading.require_marked()?;
            reading.require_known_end()
        })?;
        Ok(reading.found)
    }

    /// As [`read`](Self::read), for a reader that has read up to the epoch `after`, and knows the LSN of that if
    /// `lsn` is given. Returns the new LSN, if any record was read.
    ///
    /// Cost: reads the part behind the LSN.
    ///
    /// # Errors
    /// As [`LogPlace::read`]; the writer took a record back that was read before.
    pub(crate) fn read_on(
        &self,
        after: u64,
        lsn: Option<Lsn>,
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<Option<Lsn>> {
        // The LSN leads on only from the commit that the reader shows.
        let Some(lsn) = lsn.filter(|lsn| lsn.epoch == after) else {
            return Ok(self.read(after, None, replay)?.lsn);
        };
        let found = WalScan { through: after, lsn: Some(lsn), ..WalScan::default() };
        let mut reading = WalScanner { log: self, seed: self.seed(), after, known: Some(lsn), found };
        match reading.go_on(lsn, replay)? && reading.require_marked().is_ok() {
            true => Ok(reading.found.lsn),
            false => {
                let WalScan { through, lsn, .. } = reading.found;
                Ok(self.read(through, lsn, replay)?.lsn.or(lsn))
            }
        }
    }

    /// The last epoch that any header or the mark names, in records that can be read or not. `None` if there is none.
    pub(crate) fn last_known_epoch(&self) -> Option<u64> {
        let of_segment = |segment: &HeldSegment| -> Option<u64> {
            let bytes = segment.file.read_all().ok()?;
            let header = SegmentHeader::decode(&bytes, self.place.id, &segment.path).ok().flatten();
            let groups = headers(&bytes, SEGMENT_HEADER_BYTES, self.seed());
            let groups = groups.flat_map(|(_, header)| [header.epoch, header.synced_through]);
            groups.chain(header.map(|(header, _)| header.synced_through)).max()
        };
        self.segments.iter().filter_map(of_segment).chain(self.mark.map(|mark| mark.epoch)).max()
    }

    fn seed(&self) -> u32 {
        seed_of(self.place.id)
    }
}

impl HeldSegment {
    /// The header; `None` if it is not whole or cannot be read. Reading the segment then returns the error.
    pub(super) fn header(&self, id: DatabaseId) -> Option<SegmentHeader> {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        self.file.read_at(0, &mut bytes).ok()?;
        Some(SegmentHeader::decode(&bytes, id, &self.path).ok()??.0)
    }

    /// Reads the segment, and finds how far its records are valid.
    fn read(&self, seed: u32) -> Result<SegmentBytes> {
        let bytes = self.file.read_all()?;
        let mut checked = SEGMENT_HEADER_BYTES;
        while let SegmentRecord::Group { payload, .. } = record(bytes.get(checked..).unwrap_or_default(), checked, seed)
        {
            checked += group_bytes(payload.len());
        }
        Ok(SegmentBytes { bytes, checked })
    }

    /// As [`read`](Self::read), on another thread; `None` if the system has none.
    fn read_ahead<'scope>(
        &'scope self,
        seed: u32,
        scope: &'scope Scope<'scope, '_>,
    ) -> Option<ScopedJoinHandle<'scope, Result<SegmentBytes>>> {
        // Without a thread, the caller reads the segment itself when its turn comes.
        Builder::new().name("anden-log-ahead".into()).spawn_scoped(scope, move || self.read(seed)).ok()
    }
}

/// Tells damage from a record that the writer of another process is writing: a half-written record fails at another
/// place each time. Only damage fails twice at one place.
#[derive(Debug, Default)]
pub(crate) struct ReadFaults(Option<String>);

impl ReadFaults {
    /// Whether a read failed before.
    pub(crate) fn has_any(&self) -> bool {
        self.0.is_some()
    }

    /// Notes the error of a read. Whether it is that of the read before.
    pub(crate) fn is_repeated(&mut self, error: &crate::Error) -> bool {
        let error = error.to_string();
        self.0.replace(error.clone()) == Some(error)
    }
}

/// The result of a thread; its panic continues here.
fn join<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The bytes of a segment, with their checksums checked.
struct SegmentBytes {
    bytes: Vec<u8>,
    /// The records before this offset are valid, each on its own.
    checked: usize,
}

/// The content at an offset of a segment.
pub(super) enum SegmentRecord<'a> {
    Group {
        header: GroupHeader,
        crc: u32,
        payload: &'a [u8],
    },
    /// Only zeros from here on.
    End,
    Bad(&'static str),
}

impl WalScanner<'_> {
    /// Reads a segment. Returns the bad record that ends it early, if any.
    fn segment(
        &mut self,
        segment: &HeldSegment,
        SegmentBytes { bytes, checked }: &SegmentBytes,
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<Option<BadRecord>> {
        let (number, path) = (segment.number, &*segment.path);
        let next = self.found.through + 1;
        let bad = |offset, epoch, what| Ok(Some(BadRecord { offset, epoch, what }));
        let Some((header, mut chain)) = SegmentHeader::decode(bytes, self.log.place.id, path)? else {
            return bad(0, next, "the header of a segment is not whole");
        };
        if header.first_epoch > next {
            return bad(0, next, "commits before this segment are missing");
        }
        self.found.generation = self.found.generation.max(header.generation);
        self.found.certified = self.found.certified.max(header.synced_through);
        let mut expected = header.first_epoch;
        self.found.segments.push(FoundSegment {
            number,
            path: path.to_owned(),
            last_epoch: expected.saturating_sub(1),
            num_bytes: bytes.len() as u64,
        });
        let mut offset = SEGMENT_HEADER_BYTES;
        loop {
            let rest = bytes.get(offset..).unwrap_or_default();
            // The thread that reads ahead has verified the checksums up to `checked`.
            let found = if offset < *checked { checked_record(rest) } else { record(rest, offset, self.seed) };
            let what = match found {
                SegmentRecord::End => return Ok(None),
                SegmentRecord::Group { header: group, crc, payload } => {
                    // The chain excludes a record that followed another one, for example one that was taken back.
                    if group.chain == chain && group.epoch == expected && group.generation == header.generation {
                        self.require_known(path, offset, expected, crc)?;
                        self.group(path, offset, &group, payload, replay)?;
                        self.found.certified = self.found.certified.max(group.synced_through);
                        let (start, generation) = (offset, header.generation);
                        offset += group_bytes(payload.len());
                        self.found.lsn = Some(Lsn { number, generation, start, offset, chain: crc, epoch: expected });
                        (chain, expected) = (crc, expected + 1);
                        continue;
                    }
                    "a record does not follow the one before it"
                }
                SegmentRecord::Bad(what) => what,
            };
            if expected > self.after {
                return bad(offset, expected, what);
            }
            // A snapshot has this record: continue with the first one that the manifest lacks.
            match self.resume(bytes, offset, header.generation) {
                Some((place, group)) => (offset, expected, chain) = (place, group.epoch, group.chain),
                None => return Ok(None),
            }
        }
    }

    /// Reads on behind a record. Returns false if that fails or is uncertain; the records replayed until then are
    /// valid.
    fn go_on(&mut self, from: Lsn, replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>) -> Result<bool> {
        let segments = &self.log.segments;
        let Ok(place) = segments.binary_search_by_key(&from.number, |segment| segment.number) else { return Ok(false) };
        let (HeldSegment { path, file, .. }, later) = (&segments[place], &segments[place + 1..]);
        // A shorter file was cut: the writer took the record back.
        let Some(len) = file.len()?.checked_sub(from.offset as u64) else { return Ok(false) };
        // The record before the LSN must be the one that was read: the writer may have taken it back.
        let mut last = [0; GROUP_HEADER_BYTES];
        file.read_at(from.start as u64, &mut last)?;
        if GroupHeader::decode(&last, self.seed, from.start as u64).is_none_or(|(_, crc)| crc != from.chain) {
            return Ok(false);
        }
        let mut bytes = vec![0; len as usize];
        file.read_at(from.offset as u64, &mut bytes)?;
        let Lsn { generation, mut chain, .. } = from;
        let mut start = 0;
        loop {
            let offset = from.offset + start;
            match record(bytes.get(start..).unwrap_or_default(), offset, self.seed) {
                SegmentRecord::End => break,
                SegmentRecord::Group { header, crc, payload } => {
                    let epoch = self.found.through + 1;
                    if (header.chain, header.epoch, header.generation) != (chain, epoch, generation) {
                        return Ok(false);
                    }
                    self.group(path, offset, &header, payload, replay)?;
                    start += group_bytes(payload.len());
                    chain = crc;
                    self.found.lsn = Some(Lsn { start: offset, offset: from.offset + start, chain, epoch, ..from });
                }
                // The writer may be in the middle of this record. Reading the whole WAL decides.
                SegmentRecord::Bad(_) => return Ok(false),
            }
        }
        for segment in later {
            if self.segment(segment, &segment.read(self.seed)?, replay)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn group(
        &mut self,
        path: &Path,
        offset: usize,
        &GroupHeader { epoch, synced_through, .. }: &GroupHeader,
        payload: &[u8],
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(segment) = self.found.segments.last_mut() {
            segment.last_epoch = epoch;
        }
        // A snapshot has this commit.
        if epoch <= self.after {
            return Ok(());
        }
        let offset = (offset + GROUP_HEADER_BYTES) as u64;
        if epoch <= self.found.through {
            return Err(anden_base::Error::corrupt(path, offset, format!("commit {epoch} is in the log twice")).into());
        }
        replay(LoggedGroup { epoch, payload, synced_through, path, offset })?;
        self.found.through = epoch;
        Ok(())
    }

    /// Refuses another record in place of the last one that was read before: the writer took that one back.
    fn require_known(&self, path: &Path, offset: usize, epoch: u64, crc: u32) -> Result<()> {
        match self.known.filter(|known| known.epoch == epoch && known.chain != crc) {
            Some(_) => Err(taken_back(path, offset, epoch)),
            None => Ok(()),
        }
    }

    /// Refuses a WAL that ends before the last record that was read before. A removed record is in a snapshot.
    fn require_known_end(&self) -> Result<()> {
        match (self.known, self.found.segments.last()) {
            (Some(known), Some(last)) if last.last_epoch < known.epoch => {
                Err(taken_back(&last.path, known.start, known.epoch))
            }
            _ => Ok(()),
        }
    }

    /// The first record from `offset` on that the manifest lacks; earlier bad records are skipped.
    fn resume(&self, bytes: &[u8], offset: usize, generation: u32) -> Option<(usize, GroupHeader)> {
        let is_next = |header: &GroupHeader| header.epoch == self.after + 1 && header.generation == generation;
        headers(bytes, offset, self.seed).find(|(_, header)| is_next(header))
    }

    /// Whether the next segment begins with this epoch.
    fn goes_on(&self, next: Option<&HeldSegment>, epoch: u64) -> Result<bool> {
        let Some(HeldSegment { path, file, .. }) = next else { return Ok(false) };
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        match file.read_at(0, &mut bytes) {
            // A file that is shorter than a header begins no epoch.
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::UnexpectedEof) => return Ok(false),
            read => read?,
        }
        let header = SegmentHeader::decode(&bytes, self.log.place.id, path)?;
        Ok(header.is_some_and(|(header, _)| header.first_epoch == epoch))
    }

    /// Refuses a WAL that ends before the commit of the mark.
    fn require_marked(&self) -> Result<()> {
        match self.log.mark {
            Some(mark) if mark.epoch > self.found.through => {
                let last = self.found.segments.last().map(|segment| {
                    let lsn = self.found.lsn.filter(|lsn| lsn.number == segment.number);
                    let offset = lsn.map_or(SEGMENT_HEADER_BYTES, |lsn| lsn.offset);
                    (segment.number, &*segment.path, offset as u64)
                });
                Err(mark.missing(self.log.place.directory, last))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a bad record if a later header or the mark certifies it as durable.
    fn require_unsynced(&self, bad: &BadRecord, path: &Path, bytes: &[u8], later: &[HeldSegment]) -> Result<()> {
        let certifies = |synced_through: u64| synced_through >= bad.epoch;
        let has_certificate = |bytes: &[u8], from: usize, path: &Path| -> Result<bool> {
            let segment = SegmentHeader::decode(bytes, self.log.place.id, path)?;
            // A header before the bad record was written earlier, and cannot certify that record.
            let of_segment = from < SEGMENT_HEADER_BYTES && segment.is_some_and(|(s, _)| certifies(s.synced_through));
            let from = from.max(SEGMENT_HEADER_BYTES);
            Ok(of_segment || headers(bytes, from, self.seed).any(|(_, header)| certifies(header.synced_through)))
        };
        let is_marked = self.log.mark.is_some_and(|mark| certifies(mark.epoch));
        let mut is_certain = is_marked || has_certificate(bytes, bad.offset, path)?;
        for HeldSegment { path, file, .. } in later {
            is_certain = is_certain || has_certificate(&file.read_all()?, 0, path)?;
        }
        if !is_certain {
            return Ok(());
        }
        let what = format!("{}: commit {}, which was durable, cannot be read", bad.what, bad.epoch);
        Err(anden_base::Error::corrupt(path, bad.offset as u64, what).into())
    }
}

fn taken_back(path: &Path, offset: usize, epoch: u64) -> crate::Error {
    anden_base::Error::corrupt(path, offset as u64, format!("commit {epoch}, which was read before, was taken back"))
        .into()
}

/// The valid headers at any aligned offset from `offset` on.
fn headers(bytes: &[u8], offset: usize, seed: u32) -> impl Iterator<Item = (usize, GroupHeader)> + '_ {
    let places = (offset.next_multiple_of(ALIGNMENT)..).step_by(ALIGNMENT);
    let places = places.take_while(|place| place + GROUP_HEADER_BYTES <= bytes.len());
    places.filter_map(move |place| {
        // A preallocated end is all zeros, which are no header. Skipping them saves most checksums.
        let header = bytes[place..].first_chunk().filter(|bytes| bytes[..8] != [0; 8] || cfg!(fuzzing))?;
        GroupHeader::decode(header, seed, place as u64).map(|(header, _)| (place, header))
    })
}

/// The content that `rest` begins with, at `offset` of the segment.
pub(super) fn record(rest: &[u8], offset: usize, seed: u32) -> SegmentRecord<'_> {
    let header = rest.first_chunk::<GROUP_HEADER_BYTES>();
    let Some((header, crc)) = header.and_then(|header| GroupHeader::decode(header, seed, offset as u64)) else {
        // Files grow by zeros, so zeros are the regular end of a segment.
        return match rest.iter().all(|&byte| byte == 0) {
            true => SegmentRecord::End,
            false => SegmentRecord::Bad("the header of a record is damaged"),
        };
    };
    // The length is checked against the bytes at hand before they are sliced.
    let payload = usize::try_from(header.len).ok().and_then(|len| rest[GROUP_HEADER_BYTES..].get(..len));
    match payload {
        None => SegmentRecord::Bad("a record is cut"),
        Some(payload) if crc32c(payload) != header.payload_crc => {
            SegmentRecord::Bad("the checksum of a record does not fit")
        }
        Some(payload) => SegmentRecord::Group { header, crc, payload },
    }
}

/// The record that `rest` begins with, without a second check of its checksums.
fn checked_record(rest: &[u8]) -> SegmentRecord<'_> {
    let found = rest.split_first_chunk::<GROUP_HEADER_BYTES>().and_then(|(header, behind)| {
        let (header, crc) = GroupHeader::decode_checked(header);
        let payload = behind.get(..usize::try_from(header.len).ok()?)?;
        Some(SegmentRecord::Group { header, crc, payload })
    });
    found.unwrap_or(SegmentRecord::Bad("a record is cut"))
}
