//! Reads a log from its files: the groups that follow a given epoch, without a hole, as far as they go.
//!
//! A record that is not what it should be ends the log, as a power cut leaves it: what was not synced reaches a disk in
//! any order. But where anything that was written later says that the log was durable past the record, it is damage.
//! What the manifest has is not looked for: a bad record before that is skipped.
//!
//! So it is where the [mark](Mark) beside the segments names a commit that neither they nor the manifest have.
//!
//! Segments are read, and the checksums of their records looked at, one ahead of who replays them, on a thread of its own:
//! that records are whole is nothing that one of them says of another.
//!
//! All files are opened before any is read: beside a writer that removes segments, a reader has the log of one moment.
//!
//! Who reads again and again, as a reader in another process does, goes on where the last group ended. Where anything
//! looks wrong from there, all is read again: only the whole log says what is damage.

use std::path::{Path, PathBuf};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use base::checksum::crc32c;
use base::storage::{HeldFile, Storage};
use lama::DatabaseId;

use super::format::{
    ALIGNMENT, GROUP_HEADER_BYTES, GroupHeader, SEGMENT_HEADER_BYTES, SegmentHeader, group_bytes, seed_of,
};
use super::mark::Mark;
use crate::Result;

/// A group as it was logged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedGroup<'a> {
    pub(crate) epoch: u64,
    pub(crate) payload: &'a [u8],
    /// Where the payload is.
    pub(crate) path: &'a Path,
    pub(crate) offset: u64,
}

/// Where a log is, and of which database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPlace<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) directory: &'a Path,
    pub(crate) id: DatabaseId,
}

/// The files of a log, held open: a writer in another process may remove them while they are read.
#[derive(Debug)]
pub(crate) struct HeldLog<'a> {
    place: LogPlace<'a>,
    /// The mark beside the segments.
    mark: Option<Mark>,
    /// By number.
    segments: Vec<HeldSegment>,
}

#[derive(Debug)]
struct HeldSegment {
    number: u32,
    path: PathBuf,
    file: Box<dyn HeldFile>,
}

/// What was found of a log.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The segments that are whole or were begun well, in order.
    pub(super) segments: Vec<FoundSegment>,
    /// Where the log ends although something follows.
    pub(super) cut: Option<Cut>,
    /// The epoch of the last group, or that of the manifest.
    pub(crate) through: u64,
    /// The last epoch of which anything that was found says that it was durable.
    pub(super) certified: u64,
    /// The highest number of a segment, and the highest generation.
    pub(super) number: u32,
    pub(super) generation: u32,
    /// Where the last group ends.
    pub(crate) bookmark: Option<Bookmark>,
}

/// Where a group of a log ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bookmark {
    /// Of the segment.
    number: u32,
    generation: u32,
    /// Where the group begins, and where it ends.
    start: usize,
    offset: usize,
    chain: u32,
    /// Of the group.
    epoch: u64,
}

/// A segment of a log.
#[derive(Debug)]
pub(super) struct FoundSegment {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    /// The epoch of its last group; that before its first where it has none.
    pub(super) last_epoch: u64,
    pub(super) num_bytes: u64,
}

/// What a crash left behind the end of the log.
#[derive(Debug)]
pub(super) struct Cut {
    /// The end, within the last segment that was found; `None` where that stays as it is.
    pub(super) offset: Option<u64>,
    /// What is younger.
    pub(super) removed: Vec<PathBuf>,
}

/// A record that is not what it should be.
struct Bad {
    offset: usize,
    /// The epoch that was expected there.
    epoch: u64,
    what: &'static str,
}

/// How far reading has come.
struct Reading<'a> {
    log: &'a HeldLog<'a>,
    seed: u32,
    /// The epoch that the manifest has.
    after: u64,
    /// Where the last group ended that was read before.
    known: Option<Bookmark>,
    found: Found,
}

impl<'a> LogPlace<'a> {
    /// The names of the segments, by number.
    pub(super) fn segments(&self) -> Result<Vec<(u32, PathBuf)>> {
        let names = self.storage.list(self.directory)?;
        let numbers = names.into_iter().filter_map(|name| Some((lama::log_number(&name)?, self.directory.join(name))));
        let mut segments: Vec<_> = numbers.collect();
        segments.sort_unstable();
        Ok(segments)
    }

    /// Opens all files of the log.
    ///
    /// # Errors
    /// The disk failed; a writer removed one meanwhile, which published a manifest before.
    pub(crate) fn hold(self) -> Result<HeldLog<'a>> {
        // The mark first: a writer that removes segments has published a manifest before.
        let mark = Mark::read(self.storage, self.directory, self.id)?;
        let hold = |(number, path): (u32, PathBuf)| {
            let file = self.storage.open_read(&path)?;
            Ok(HeldSegment { number, path, file })
        };
        let segments = self.segments()?.into_iter().map(hold).collect::<Result<_>>()?;
        Ok(HeldLog { place: self, mark, segments })
    }

    /// Calls `replay` with the groups after the epoch `after`, which the manifest has.
    ///
    /// # Errors
    /// Damage: a record that was durable is not what it was, or lacks; a log of another database or version; what
    /// `replay` returns; the disk failed.
    pub(crate) fn read(self, after: u64, replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>) -> Result<Found> {
        self.hold()?.read(after, None, replay)
    }

    /// The bytes of a segment, and the place in them before which all groups have this epoch or are older.
    pub(super) fn segment_through(self, path: &Path, epoch: u64) -> Result<(Vec<u8>, usize)> {
        let (bytes, seed) = (self.storage.read_copy(path)?, seed_of(self.id));
        let is_older =
            SegmentHeader::decode(&bytes, self.id, path)?.is_some_and(|(header, _)| header.first_epoch <= epoch);
        let mut place = if is_older { SEGMENT_HEADER_BYTES } else { 0 };
        while is_older
            && let Record::Group { header, payload, .. } = record(bytes.get(place..).unwrap_or_default(), place, seed)
            && header.epoch <= epoch
        {
            place += group_bytes(payload.len());
        }
        Ok((bytes, place))
    }
}

impl HeldLog<'_> {
    /// As [`LogPlace::read`], for a reader that has read groups before, the last of them that which ends at `known`.
    fn read(
        &self,
        after: u64,
        known: Option<Bookmark>,
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<Found> {
        let certified = self.mark.map_or(after, |mark| mark.epoch.max(after));
        let found = Found { through: after, certified, ..Found::default() };
        let mut reading = Reading { log: self, seed: self.seed(), after, known, found };
        reading.found.number = self.segments.last().map_or(0, |segment| segment.number);
        std::thread::scope(|scope| {
            let mut ahead = None;
            for (index, segment) in self.segments.iter().enumerate() {
                let later = &self.segments[index + 1..];
                let bytes = match ahead.take() {
                    Some(ahead) => join(ahead)?,
                    None => segment.read(self.seed())?,
                };
                ahead = later.first().and_then(|segment| segment.read_ahead(self.seed(), scope));
                let Some(bad) = reading.segment(segment, &bytes, replay)? else { continue };
                if bad.offset > 0 && reading.goes_on(later.first(), bad.epoch)? {
                    // What is left behind the end of a segment that another one followed is not of the log.
                    continue;
                }
                reading.require_unsynced(&bad, &segment.path, &bytes.bytes, later)?;
                let is_begun = bad.offset > 0;
                let removed = if is_begun { later } else { &self.segments[index..] };
                reading.found.cut = Some(Cut {
                    offset: is_begun.then_some(bad.offset as u64),
                    removed: removed.iter().map(|segment| segment.path.clone()).collect(),
                });
                break;
            }
            reading.require_marked()?;
            reading.require_known_end()
        })?;
        Ok(reading.found)
    }

    /// As [`read`](Self::read), for a reader that has read up to the epoch `after`, and the place of that if it is known.
    /// Gives the place where the log ends, if any group was read.
    ///
    /// Cost: what follows that place is read.
    ///
    /// # Errors
    /// As [`LogPlace::read`]; the writer took back what was read before.
    pub(crate) fn read_on(
        &self,
        after: u64,
        bookmark: Option<Bookmark>,
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<Option<Bookmark>> {
        let Some(bookmark) = bookmark.filter(|bookmark| bookmark.epoch == after) else {
            return Ok(self.read(after, None, replay)?.bookmark);
        };
        let found = Found { through: after, bookmark: Some(bookmark), ..Found::default() };
        let mut reading = Reading { log: self, seed: self.seed(), after, known: Some(bookmark), found };
        match reading.go_on(bookmark, replay)? && reading.require_marked().is_ok() {
            true => Ok(reading.found.bookmark),
            false => {
                let Found { through, bookmark, .. } = reading.found;
                Ok(self.read(through, bookmark, replay)?.bookmark.or(bookmark))
            }
        }
    }

    fn seed(&self) -> u32 {
        seed_of(self.place.id)
    }
}

impl HeldSegment {
    /// Reads the segment, and finds out how far its records are whole.
    fn read(&self, seed: u32) -> Result<SegmentBytes> {
        let bytes = self.file.read_all()?;
        let mut checked = SEGMENT_HEADER_BYTES;
        while let Record::Group { payload, .. } = record(bytes.get(checked..).unwrap_or_default(), checked, seed) {
            checked += group_bytes(payload.len());
        }
        Ok(SegmentBytes { bytes, checked })
    }

    /// The same on another thread; `None` where the system has none.
    fn read_ahead<'scope>(
        &'scope self,
        seed: u32,
        scope: &'scope Scope<'scope, '_>,
    ) -> Option<ScopedJoinHandle<'scope, Result<SegmentBytes>>> {
        Builder::new().name("anden-log-ahead".into()).spawn_scoped(scope, move || self.read(seed)).ok()
    }
}

/// What a thread found; what it panicked with goes on here.
fn join<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The bytes of a segment.
struct SegmentBytes {
    bytes: Vec<u8>,
    /// The records before this place are whole, each on its own.
    checked: usize,
}

/// What stands at a place of a segment.
enum Record<'a> {
    Group {
        header: GroupHeader,
        crc: u32,
        payload: &'a [u8],
    },
    /// Nothing but zeros from here on.
    End,
    Bad(&'static str),
}

impl Reading<'_> {
    /// Reads a segment; says what ends it too early.
    fn segment(
        &mut self,
        segment: &HeldSegment,
        SegmentBytes { bytes, checked }: &SegmentBytes,
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<Option<Bad>> {
        let (number, path) = (segment.number, &*segment.path);
        let next = self.found.through + 1;
        let bad = |offset, epoch, what| Ok(Some(Bad { offset, epoch, what }));
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
            let found = if offset < *checked { checked_record(rest) } else { record(rest, offset, self.seed) };
            let what = match found {
                Record::End => return Ok(None),
                Record::Group { header: group, crc, payload } => {
                    if group.chain == chain && group.epoch == expected && group.generation == header.generation {
                        self.require_known(path, offset, expected, crc)?;
                        self.group(path, offset, expected, payload, replay)?;
                        self.found.certified = self.found.certified.max(group.synced_through);
                        let (start, generation) = (offset, header.generation);
                        offset += group_bytes(payload.len());
                        self.found.bookmark =
                            Some(Bookmark { number, generation, start, offset, chain: crc, epoch: expected });
                        (chain, expected) = (crc, expected + 1);
                        continue;
                    }
                    "a record does not follow the one before it"
                }
                Record::Bad(what) => what,
            };
            if expected > self.after {
                return bad(offset, expected, what);
            }
            // The manifest has what was here: the log goes on with the first group that it has not.
            match self.resume(bytes, offset, header.generation) {
                Some((place, group)) => (offset, expected, chain) = (place, group.epoch, group.chain),
                None => return Ok(None),
            }
        }
    }

    /// Reads what follows a group; false where that is not certain to be right. What was read until then is.
    fn go_on(&mut self, from: Bookmark, replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>) -> Result<bool> {
        let segments = &self.log.segments;
        let Ok(place) = segments.binary_search_by_key(&from.number, |segment| segment.number) else { return Ok(false) };
        let (HeldSegment { path, file, .. }, later) = (&segments[place], &segments[place + 1..]);
        let Some(len) = file.len()?.checked_sub(from.offset as u64) else { return Ok(false) };
        let mut last = [0; GROUP_HEADER_BYTES];
        file.read_at(from.start as u64, &mut last)?;
        if GroupHeader::decode(&last, self.seed, from.start as u64).is_none_or(|(_, crc)| crc != from.chain) {
            return Ok(false);
        }
        let mut bytes = vec![0; len as usize];
        file.read_at(from.offset as u64, &mut bytes)?;
        let Bookmark { generation, mut chain, .. } = from;
        let mut start = 0;
        loop {
            let offset = from.offset + start;
            match record(bytes.get(start..).unwrap_or_default(), offset, self.seed) {
                Record::End => break,
                Record::Group { header, crc, payload } => {
                    let epoch = self.found.through + 1;
                    if (header.chain, header.epoch, header.generation) != (chain, epoch, generation) {
                        return Ok(false);
                    }
                    self.group(path, offset, epoch, payload, replay)?;
                    start += group_bytes(payload.len());
                    chain = crc;
                    self.found.bookmark =
                        Some(Bookmark { start: offset, offset: from.offset + start, chain, epoch, ..from });
                }
                Record::Bad(_) => return Ok(false),
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
        epoch: u64,
        payload: &[u8],
        replay: &mut dyn FnMut(LoggedGroup<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(segment) = self.found.segments.last_mut() {
            segment.last_epoch = epoch;
        }
        if epoch <= self.after {
            return Ok(());
        }
        let offset = (offset + GROUP_HEADER_BYTES) as u64;
        if epoch <= self.found.through {
            return Err(base::Error::corrupt(path, offset, format!("commit {epoch} is in the log twice")).into());
        }
        replay(LoggedGroup { epoch, payload, path, offset })?;
        self.found.through = epoch;
        Ok(())
    }

    /// Refuses another group in the place of the last one that was read before: its writer took that back.
    fn require_known(&self, path: &Path, offset: usize, epoch: u64, crc: u32) -> Result<()> {
        match self.known.filter(|known| known.epoch == epoch && known.chain != crc) {
            Some(_) => Err(taken_back(path, offset, epoch)),
            None => Ok(()),
        }
    }

    /// Refuses a log that ends before the last group that was read before. One that is gone, a snapshot has.
    fn require_known_end(&self) -> Result<()> {
        match (self.known, self.found.segments.last()) {
            (Some(known), Some(last)) if last.last_epoch < known.epoch => {
                Err(taken_back(&last.path, known.start, known.epoch))
            }
            _ => Ok(()),
        }
    }

    /// The first group from `offset` on that the manifest lacks, though none before it is.
    fn resume(&self, bytes: &[u8], offset: usize, generation: u32) -> Option<(usize, GroupHeader)> {
        let is_next = |header: &GroupHeader| header.epoch == self.after + 1 && header.generation == generation;
        headers(bytes, offset, self.seed).find(|(_, header)| is_next(header))
    }

    /// Whether the next segment begins with this epoch.
    fn goes_on(&self, next: Option<&HeldSegment>, epoch: u64) -> Result<bool> {
        let Some(HeldSegment { path, file, .. }) = next else { return Ok(false) };
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        match file.read_at(0, &mut bytes) {
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::UnexpectedEof) => return Ok(false),
            read => read?,
        }
        let header = SegmentHeader::decode(&bytes, self.log.place.id, path)?;
        Ok(header.is_some_and(|(header, _)| header.first_epoch == epoch))
    }

    /// Refuses a log that ends before a commit that was durable.
    fn require_marked(&self) -> Result<()> {
        match self.log.mark {
            Some(mark) if mark.epoch > self.found.through => Err(mark.missing(self.log.place.directory)),
            _ => Ok(()),
        }
    }

    /// Refuses a bad record if what is behind it, or the mark, says that it was durable.
    fn require_unsynced(&self, bad: &Bad, path: &Path, bytes: &[u8], later: &[HeldSegment]) -> Result<()> {
        let certifies = |synced_through: u64| synced_through >= bad.epoch;
        let has_certificate = |bytes: &[u8], from: usize, path: &Path| -> Result<bool> {
            let segment = SegmentHeader::decode(bytes, self.log.place.id, path)?;
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
        Err(base::Error::corrupt(path, bad.offset as u64, what).into())
    }
}

fn taken_back(path: &Path, offset: usize, epoch: u64) -> crate::Error {
    base::Error::corrupt(path, offset as u64, format!("commit {epoch}, which was read before, was taken back")).into()
}

/// The headers of groups that stand anywhere from `offset` on.
fn headers(bytes: &[u8], offset: usize, seed: u32) -> impl Iterator<Item = (usize, GroupHeader)> + '_ {
    let places = (offset.next_multiple_of(ALIGNMENT)..).step_by(ALIGNMENT);
    let places = places.take_while(|place| place + GROUP_HEADER_BYTES <= bytes.len());
    places.filter_map(move |place| {
        let header = bytes[place..].first_chunk().filter(|bytes| bytes[..8] != [0; 8] || cfg!(fuzzing))?;
        GroupHeader::decode(header, seed, place as u64).map(|(header, _)| (place, header))
    })
}

/// What `rest` begins with, which stands at `offset`.
fn record(rest: &[u8], offset: usize, seed: u32) -> Record<'_> {
    let header = rest.first_chunk::<GROUP_HEADER_BYTES>();
    let Some((header, crc)) = header.and_then(|header| GroupHeader::decode(header, seed, offset as u64)) else {
        return match rest.iter().all(|&byte| byte == 0) {
            true => Record::End,
            false => Record::Bad("the header of a record is damaged"),
        };
    };
    let payload = usize::try_from(header.len).ok().and_then(|len| rest[GROUP_HEADER_BYTES..].get(..len));
    match payload {
        None => Record::Bad("a record is cut"),
        Some(payload) if crc32c(payload) != header.payload_crc => Record::Bad("the checksum of a record does not fit"),
        Some(payload) => Record::Group { header, crc, payload },
    }
}

/// What `rest` begins with, which was found to be whole before.
fn checked_record(rest: &[u8]) -> Record<'_> {
    let found = rest.split_first_chunk::<GROUP_HEADER_BYTES>().and_then(|(header, behind)| {
        let (header, crc) = GroupHeader::decode_checked(header);
        let payload = behind.get(..usize::try_from(header.len).ok()?)?;
        Some(Record::Group { header, crc, payload })
    });
    found.unwrap_or(Record::Bad("a record is cut"))
}
