//! Room behind a mapped slice, for values that are made while it is read.
//!
//! Readers index one slice, whether a value is in the file or was made later: the file's pages and those of a file in
//! memory are mapped side by side. See [`MappedSlice::extended`].

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::marker::PhantomData;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use super::aligned::{AlignedMap, to_huge_pages};
use super::{FileBytes, MappedSlice, Owner};
use crate::memory::{HUGE_PAGE_BYTES, available_now};

/// The room behind a slice; see [`MappedSlice::extended`].
#[derive(Debug)]
pub struct Annex<T> {
    /// In memory, with a byte for every byte of the extended slice; what is in the slice's own file is a hole here.
    file: File,
    /// Where the slice starts in the file: where its address is between two huge pages, for only then do those of the
    /// file fit.
    phase: usize,
    /// The extended slice.
    bytes: FileBytes,
    room: Range<usize>,
    /// The huge pages of the file.
    grains: Mutex<Vec<Grain>>,
    marker: PhantomData<T>,
}

/// What is known of a piece of the room as large as a huge page, and at its place.
#[derive(Clone, Copy, Debug, Default)]
struct Grain {
    /// The bytes that are there.
    num_bytes: u32,
    /// Those that went since it was moved to a huge page.
    num_lost: u32,
    /// Those that came since it was last due to be moved.
    num_new: u32,
    is_moved: bool,
    num_moves: u32,
}

/// Once so much of it is there, a huge page is worth its copy; and of the piece before it, what is still to come.
const WORTH_A_MOVE: u32 = HUGE_PAGE_BYTES as u32 / 4 * 3;
/// What is freed splits a huge page. It is moved again once so much went and came back, so that a byte is copied a few
/// times.
const WORTH_ANOTHER: u32 = HUGE_PAGE_BYTES as u32 / 2;
/// While other threads write to a huge page, the system often cannot move it: one call of six. So often it is asked at
/// once, and then whenever so much more is there.
const TRIES: usize = 3;
const UNTIL_NEXT_TRY: u32 = HUGE_PAGE_BYTES as u32 / 32;

impl Grain {
    /// So many bytes came, behind a piece of which there are so many; says whether it is to be moved.
    fn gain(&mut self, count: u32, num_bytes_before: u32) -> bool {
        self.num_bytes = self.num_bytes.saturating_add(count).min(HUGE_PAGE_BYTES as u32);
        self.num_new = self.num_new.saturating_add(count);
        let is_worth_it = match self.is_moved {
            true => self.num_bytes >= WORTH_A_MOVE && self.num_lost >= WORTH_ANOTHER,
            false => self.num_bytes.max(num_bytes_before) >= WORTH_A_MOVE,
        };
        let is_due = is_worth_it && self.num_new >= UNTIL_NEXT_TRY;
        if is_due {
            self.num_new = 0;
        }
        is_due
    }

    /// So many bytes went.
    fn lose(&mut self, count: u32) {
        self.num_bytes = self.num_bytes.saturating_sub(count);
        self.num_lost = self.num_lost.saturating_add(count);
        // Nothing is left of the huge page.
        self.is_moved &= self.num_bytes > 0;
    }

    /// It is on a huge page now.
    fn move_was_made(&mut self) {
        (self.is_moved, self.num_lost) = (true, 0);
        self.num_moves = self.num_moves.saturating_add(1);
    }
}

/// The room behind a slice can start at multiples of this many bytes.
pub fn annex_alignment() -> usize {
    // SAFETY: `sysconf` only reads a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).unwrap_or(1 << 16)
}

impl<T: Pod> MappedSlice<T> {
    /// The same slice with room behind it for values that are written through the [`Annex`], at the indexes `room`.
    /// The byte where the room starts is a multiple of [`annex_alignment`].
    ///
    /// Values read as zeros until they are written, then as what was written last: whoever reads them waits until he
    /// is told that they are there, as with a file that somebody else writes. Values between the slice and the room
    /// mean nothing. What is not written takes no memory.
    ///
    /// Cost: two maps of the slice's file; of a slice in memory, a copy.
    ///
    /// # Errors
    /// The system has no such maps, or no room; the slice does not start on a page of its file; a copy of it does not fit
    /// in the memory that is free.
    pub fn extended(&self, room: Range<usize>) -> Result<(Self, Annex<T>)> {
        self.extended_within(room, available_now)
    }

    fn extended_within(&self, room: Range<usize>, available: impl FnOnce() -> u64) -> Result<(Self, Annex<T>)> {
        let num_bytes = |count: usize| count.checked_mul(size_of::<T>()).ok_or(ErrorKind::InvalidInput);
        let (start, end) = (num_bytes(room.start)?, num_bytes(room.end)?);
        if room.start < self.len() || end <= start || !start.is_multiple_of(annex_alignment()) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let old = self.bytes.as_slice();
        let phase = match &*self.bytes.owner {
            // What lies on huge pages of its file does so in the second map as well.
            Owner::Mapped(..) | Owner::Aligned(_) => {
                old.as_ptr().addr() % HUGE_PAGE_BYTES / annex_alignment() * annex_alignment()
            }
            Owner::Heap(_) if old.len() as u64 > available() => return Err(ErrorKind::OutOfMemory.into()),
            Owner::Heap(_) => 0,
        };
        let file = memory_file()?;
        let file_len = phase.checked_add(end).ok_or(ErrorKind::InvalidInput)?;
        require_allowed(file_len)?;
        file.set_len(file_len as u64)?;
        // The one who writes to the file is the annex, whose contract says when its values may be read, and every bit
        // pattern is a `T`.
        let map = AlignedMap::new(&file, end, phase)?;
        match &*self.bytes.owner {
            Owner::Mapped(..) | Owner::Aligned(_) => map_again(old, &map)?,
            Owner::Heap(_) => file.write_all_at(old, 0)?,
        }
        let grains = Mutex::new(vec![Grain::default(); file_len.div_ceil(HUGE_PAGE_BYTES)]);
        let bytes = FileBytes { range: 0..map.len(), owner: Arc::new(Owner::Aligned(map)) };
        self.bytes.note_second_map(&bytes);
        let extended = Self::new(bytes.clone()).ok_or(ErrorKind::InvalidInput)?;
        Ok((extended, Annex { file, phase, bytes, room, grains, marker: PhantomData }))
    }
}

impl<T: Pod> Annex<T> {
    /// The indexes of the room.
    pub fn room(&self) -> Range<usize> {
        self.room.clone()
    }

    /// Writes `values` from `index` on. Nobody may be reading there.
    ///
    /// # Errors
    /// They are not in the room, or memory is short.
    pub fn write(&self, index: usize, values: &[T]) -> Result<()> {
        self.require(index..index.saturating_add(values.len()))?;
        self.file.write_all_at(bytemuck::cast_slice(values), self.file_bytes(index..index).start as u64)
    }

    /// Says that these values are there, and will be read in any order: once they and others fill most of a huge page, or
    /// of the one before it, all of them move to one, for all who map the file. Others may be reading them.
    ///
    /// Cost: for each huge page a copy of what is there, and what it lacks is memory that is taken too.
    ///
    /// # Errors
    /// They are not in the room.
    pub fn settle(&self, values: Range<usize>) -> Result<()> {
        self.require(values.clone())?;
        for (number, count) in parts(self.file_bytes(values)) {
            let Some(bytes) = self.grain_bytes(number) else { continue };
            let is_due = {
                let mut grains = self.grains();
                let before = number.checked_sub(1).map_or(0, |before| grains[before].num_bytes);
                grains[number].gain(count, before)
            };
            if is_due && (0..TRIES).any(|_| to_huge_pages(bytes)) {
                self.grains()[number].move_was_made();
            }
        }
        Ok(())
    }

    /// How often something was moved to a huge page.
    pub fn num_moves(&self) -> u64 {
        self.grains().iter().map(|grain| u64::from(grain.num_moves)).sum()
    }

    /// Gives the memory of these values back; whole pages of it, so those are zeros again. Nobody may be reading there.
    ///
    /// # Errors
    /// They are not in the room, or the system cannot.
    pub fn clear(&self, values: Range<usize>) -> Result<()> {
        self.require(values.clone())?;
        let bytes = self.file_bytes(values);
        punch_hole(&self.file, bytes.start as u64, bytes.len() as u64)?;
        for (number, count) in parts(bytes) {
            self.grains()[number].lose(count);
        }
        Ok(())
    }

    /// Where these values are in the file.
    fn file_bytes(&self, values: Range<usize>) -> Range<usize> {
        let place = |index: usize| self.phase + index * size_of::<T>();
        place(values.start)..place(values.end)
    }

    fn grains(&self) -> MutexGuard<'_, Vec<Grain>> {
        self.grains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A huge page of the file, mapped, if all of it is room.
    fn grain_bytes(&self, number: usize) -> Option<&[u8]> {
        let (start, room) = (number * HUGE_PAGE_BYTES, self.file_bytes(self.room.clone()));
        let is_inside = start >= room.start && start + HUGE_PAGE_BYTES <= room.end;
        let start = start.checked_sub(self.phase).filter(|_| is_inside)?;
        self.bytes.as_slice().get(start..start + HUGE_PAGE_BYTES)
    }

    fn require(&self, values: Range<usize>) -> Result<()> {
        let is_inside = values.start <= values.end && values.start >= self.room.start && values.end <= self.room.end;
        if is_inside { Ok(()) } else { Err(Error::new(ErrorKind::InvalidInput, "not in the annex")) }
    }
}

/// What of these bytes of a file is on which huge page of it, in bytes.
fn parts(bytes: Range<usize>) -> impl Iterator<Item = (usize, u32)> {
    (bytes.start / HUGE_PAGE_BYTES..bytes.end.div_ceil(HUGE_PAGE_BYTES)).map(move |number| {
        let start = number * HUGE_PAGE_BYTES;
        (number, (bytes.end.min(start + HUGE_PAGE_BYTES) - bytes.start.max(start)) as u32)
    })
}

/// Shows the pages of `old`, which are mapped, at the start of `map` as well.
#[cfg(target_os = "linux")]
fn map_again(old: &[u8], map: &AlignedMap) -> Result<()> {
    let alignment = annex_alignment();
    if old.is_empty() {
        return Ok(());
    }
    if !old.as_ptr().addr().is_multiple_of(alignment) || old.len().next_multiple_of(alignment) > map.len() {
        return Err(ErrorKind::InvalidInput.into());
    }
    // SAFETY: `old` starts on a page of a map that is shared (there are no others here) and lives as long
    // as the borrow, and its last page belongs to that map whole; an old size of 0 leaves that map as it is and makes
    // a second one of the same file pages (mremap(2)). The new place is in `map`, which nobody else has seen yet, and
    // whose drop unmaps the whole range. A file is unlinked or replaced, never cut, so the pages stay behind both.
    let place = unsafe {
        libc::mremap(
            old.as_ptr().cast_mut().cast(),
            0,
            old.len(),
            libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
            map.as_ptr().cast_mut().cast::<libc::c_void>(),
        )
    };
    if place == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(()) }
}

#[cfg(not(target_os = "linux"))]
fn map_again(_: &[u8], _: &AlignedMap) -> Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// A file without a name, in memory.
#[cfg(target_os = "linux")]
pub(crate) fn memory_file() -> Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a string that ends with 0.
    let descriptor = unsafe { libc::memfd_create(c"anden".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn memory_file() -> Result<File> {
    Err(ErrorKind::Unsupported.into())
}

/// A file that is larger than the process may make files would end it, though this one is no file of anybody's.
#[cfg(unix)]
fn require_allowed(file_len: usize) -> Result<()> {
    // SAFETY: the structure is plain numbers, and the call writes no more than it.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0 { limit.rlim_cur } else { libc::RLIM_INFINITY }
    };
    if file_len as u64 <= limit { Ok(()) } else { Err(ErrorKind::FileTooLarge.into()) }
}

#[cfg(not(unix))]
fn require_allowed(_file_len: usize) -> Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn punch_hole(file: &File, offset: u64, len: u64) -> Result<()> {
    use std::os::fd::AsRawFd;
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let as_offset = |bytes: u64| libc::off_t::try_from(bytes).map_err(|_| ErrorKind::InvalidInput);
    // SAFETY: the call reads and writes no memory of ours but the file's, as the contract of the annex allows.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), mode, as_offset(offset)?, as_offset(len)?) };
    if result == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn punch_hole(_: &File, _: u64, _: u64) -> Result<()> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn check(slice: &MappedSlice<u32>) {
        let unit = annex_alignment() / 4;
        let start = (slice.len() + 1).next_multiple_of(unit);
        let old = slice.to_vec();
        let (extended, annex) = slice.extended(start..start + 3 * unit).unwrap();
        assert_eq!(extended[..old.len()], old);
        assert_eq!(extended.len(), start + 3 * unit);
        annex.write(start + unit - 1, &[7, 8]).unwrap();
        assert_eq!(extended[start + unit - 2..start + unit + 2], [0, 7, 8, 0]);
        annex.clear(start..start + unit).unwrap();
        assert_eq!(extended[start + unit - 1..start + unit + 1], [0, 8]);
        for (index, count) in [(start - 1, 1), (start + 3 * unit, 1), (start + 3 * unit - 1, 2), (usize::MAX, 2)] {
            assert!(annex.write(index, &vec![1; count]).is_err(), "{count} at {index}");
        }
        assert!(annex.clear(start - 1..start).is_err());
        drop(annex);
        assert_eq!(extended[start + unit], 8);
        drop(extended);
        assert_eq!(slice.to_vec(), old);
        assert!(slice.extended(start + 1..start + unit).is_err());
        assert!(slice.extended(start..start).is_err());
    }

    #[test]
    fn there_is_room_behind_a_slice_in_memory() {
        check(&MappedSlice::copied(&[]));
        check(&MappedSlice::copied(&[1, 2, 3]));
        check(&MappedSlice::copied(&(0..5000).collect::<Vec<_>>()));
    }

    #[test]
    fn a_copy_that_does_not_fit_in_memory_is_not_made() {
        let slice = MappedSlice::copied(&(0..5000_u32).collect::<Vec<_>>());
        let unit = annex_alignment() / 4;
        let start = slice.len().next_multiple_of(unit);
        let extended = |available: u64| slice.extended_within(start..start + unit, || available);
        assert_eq!(extended(19_999).unwrap_err().kind(), ErrorKind::OutOfMemory);
        let (copy, _) = extended(20_000).unwrap();
        assert_eq!(copy[..5000], slice[..]);
    }

    #[test]
    fn full_pieces_of_the_room_move_to_huge_pages() {
        let path = std::env::temp_dir().join(format!("anden-annex-huge-{}", std::process::id()));
        std::fs::write(&path, vec![1_u8; 5 * annex_alignment()]).unwrap();
        let bytes = FileBytes::map(&File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let unit = annex_alignment() / 8;
        // From the second page of a file: never where a huge page starts.
        let slice: MappedSlice<u64> = bytes.typed(annex_alignment() as u64, 2 * unit as u64).unwrap();
        let huge = HUGE_PAGE_BYTES / 8;
        let room = 3 * unit..3 * unit + 4 * huge;
        let (extended, annex) = slice.extended(room.clone()).unwrap();
        assert_eq!((extended.as_ptr().addr() - annex.phase) % HUGE_PAGE_BYTES, 0);
        let check = |cleared: Range<usize>| {
            for place in room.clone() {
                assert_eq!(extended[place], if cleared.contains(&place) { 0 } else { place as u64 }, "at {place}");
            }
        };
        let write = |places: Range<usize>| {
            for start in places.clone().step_by(unit) {
                annex.write(start, &(start as u64..(start + unit) as u64).collect::<Vec<_>>()).unwrap();
                annex.settle(start..start + unit).unwrap();
            }
        };
        write(room.clone());
        check(0..0);
        let whole: Vec<_> = (0..annex.grains().len()).filter_map(|number| annex.grain_bytes(number)).collect();
        assert!(whole.iter().all(|bytes| bytes.as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES)));
        // The first and the last piece are not all room.
        assert!((3..=4).contains(&whole.len()) && annex.num_moves() == whole.len() as u64, "{}", annex.num_moves());
        // Little that is freed and comes back is not worth a copy of the rest.
        let part = huge..huge + 8 * unit;
        let moves = annex.num_moves();
        annex.clear(part.clone()).unwrap();
        check(part.clone());
        write(part);
        assert_eq!(annex.num_moves(), moves);
        annex.clear(huge..3 * huge).unwrap();
        check(huge..3 * huge);
        write(huge..3 * huge);
        check(0..0);
        assert!(annex.num_moves() > moves);
        for (start, end) in [(room.start - 1, room.end), (room.start, room.end + 1), (room.end, room.start)] {
            assert!(annex.settle(start..end).is_err());
        }
    }

    #[test]
    fn the_piece_behind_a_full_one_is_due_before_it_is_full() {
        const WHOLE: u32 = HUGE_PAGE_BYTES as u32;
        let steps = |grain: &mut Grain, count: u32, before: u32| -> Vec<bool> {
            (0..count / UNTIL_NEXT_TRY).map(|_| grain.gain(UNTIL_NEXT_TRY, before)).collect()
        };
        let is_never = |due: &[bool]| !due.contains(&true);
        let mut grain = Grain::default();
        assert!(is_never(&steps(&mut grain, WORTH_A_MOVE - UNTIL_NEXT_TRY, WORTH_A_MOVE - 1)));
        assert!(grain.gain(UNTIL_NEXT_TRY, 0) && !grain.gain(UNTIL_NEXT_TRY / 2, 0));
        assert!(grain.gain(UNTIL_NEXT_TRY / 2, 0), "who could not be moved is due again");
        let mut grain = Grain::default();
        assert!(!grain.gain(UNTIL_NEXT_TRY - 1, WHOLE) && grain.gain(1, WORTH_A_MOVE), "the one before it is full");
        grain.move_was_made();
        assert!(is_never(&steps(&mut grain, WHOLE - UNTIL_NEXT_TRY, WHOLE)), "it fills where it is");
        // Little that goes and comes back is not worth a copy of the rest; half of it is.
        grain.lose(WORTH_ANOTHER - UNTIL_NEXT_TRY);
        assert!(is_never(&steps(&mut grain, WORTH_ANOTHER - UNTIL_NEXT_TRY, WHOLE)));
        grain.lose(UNTIL_NEXT_TRY);
        assert!(grain.gain(UNTIL_NEXT_TRY, WHOLE));
        grain.move_was_made();
        grain.lose(WHOLE);
        assert!(grain.gain(UNTIL_NEXT_TRY, WHOLE), "nothing is left of the huge page");
    }

    #[test]
    fn there_is_room_behind_a_slice_of_a_file() {
        let path = std::env::temp_dir().join(format!("anden-annex-{}", std::process::id()));
        let values: Vec<u32> = (0..20_000).collect();
        std::fs::write(&path, bytemuck::cast_slice(&values)).unwrap();
        let bytes = FileBytes::map(&File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let page = annex_alignment() as u64;
        for (offset, count) in [(0, 20_000), (page, 1), (page, 3000), (page, 0)] {
            check(&bytes.typed(offset, count).unwrap());
        }
        let unaligned: MappedSlice<u32> = bytes.typed(4, 100).unwrap();
        assert!(unaligned.extended(1 << 16..1 << 17).is_err());
    }
}
