//! An overflow arena behind a mapped slice, for values that are made while the slice is read.
//!
//! Readers index one slice for values in the file and for later ones: pages of the file and of a file in memory are
//! mapped at adjacent addresses. See [`MappedSlice::extended`].

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::marker::PhantomData;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytemuck::Pod;
use parking_lot::Mutex;

use super::aligned::{AlignedMap, to_huge_pages};
use super::{FileBytes, MappedSlice, Owner};
use crate::memory::{HUGE_PAGE_BYTES, available_now};

/// The overflow arena behind a slice; see [`MappedSlice::extended`].
#[derive(Debug)]
pub struct OverflowMap<T> {
    /// File in memory with a byte for each byte of the extended slice. The bytes of the slice's own file are a hole.
    file: File,
    /// Offset of the slice in the file: its address modulo the size of a huge page, so that huge pages of both files
    /// fit.
    phase: usize,
    /// The extended slice.
    bytes: FileBytes,
    room: Range<usize>,
    /// State of each huge page of the file.
    grains: Mutex<Vec<Grain>>,
    marker: PhantomData<T>,
}

/// State of one huge page of the arena's file.
#[derive(Clone, Copy, Debug, Default)]
struct Grain {
    /// Bytes in use.
    num_bytes: u32,
    /// Bytes freed since the page was last moved.
    num_lost: u32,
    /// Bytes added since a move was last due.
    num_new: u32,
    is_moved: bool,
    num_moves: u32,
}

/// A page is moved to a huge page once this many of its bytes are in use, or of the page before it. In the second
/// case the move precedes the bytes that will follow.
const WORTH_A_MOVE: u32 = HUGE_PAGE_BYTES as u32 / 4 * 3;
/// Freed bytes split a huge page. Once it is mostly in use again, it is moved again, but only after this many bytes
/// were freed. So a byte is copied only a few times.
const WORTH_ANOTHER: u32 = HUGE_PAGE_BYTES as u32 / 2;
/// The system often cannot move a page while other threads write to it: one call in six fails. The number of attempts
/// at once, and the number of added bytes before the next attempts.
const TRIES: usize = 3;
const UNTIL_NEXT_TRY: u32 = HUGE_PAGE_BYTES as u32 / 32;

impl Grain {
    /// Adds `count` bytes, behind a page with `num_bytes_before`. Returns whether the page should be moved.
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

    /// Removes `count` bytes.
    fn lose(&mut self, count: u32) {
        self.num_bytes = self.num_bytes.saturating_sub(count);
        self.num_lost = self.num_lost.saturating_add(count);
        // An empty page is no longer a huge page.
        self.is_moved &= self.num_bytes > 0;
    }

    /// Records a move to a huge page.
    fn move_was_made(&mut self) {
        (self.is_moved, self.num_lost) = (true, 0);
        self.num_moves = self.num_moves.saturating_add(1);
    }
}

/// Alignment in bytes of the start of an overflow arena.
pub fn overflow_alignment() -> usize {
    // SAFETY: `sysconf` only reads a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).unwrap_or(1 << 16)
}

impl<T: Pod> MappedSlice<T> {
    /// Returns the slice followed by an overflow arena, whose values are written through the [`OverflowMap`] at the
    /// indexes `room`. The byte where `room` starts is a multiple of [`overflow_alignment`].
    ///
    /// Values read as zeros until they are written, then as last written. A reader waits until it is told that they
    /// are written, as for a file that another process writes. Values between the slice and `room` are meaningless.
    /// Unwritten values take no memory.
    ///
    /// Cost: two maps of the slice's file, or a copy for a slice in memory.
    ///
    /// # Errors
    /// The system lacks such maps or has no room; the slice does not start on a page of its file; or a copy exceeds
    /// the free memory.
    pub fn extended(&self, room: Range<usize>) -> Result<(Self, OverflowMap<T>)> {
        self.extended_within(room, available_now)
    }

    fn extended_within(&self, room: Range<usize>, available: impl FnOnce() -> u64) -> Result<(Self, OverflowMap<T>)> {
        let num_bytes = |count: usize| count.checked_mul(size_of::<T>()).ok_or(ErrorKind::InvalidInput);
        let (start, end) = (num_bytes(room.start)?, num_bytes(room.end)?);
        if room.start < self.len() || end <= start || !start.is_multiple_of(overflow_alignment()) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let old = self.bytes.as_slice();
        let phase = match &*self.bytes.owner {
            // Data on huge pages of its file stays on them in the second map.
            Owner::Mapped(..) | Owner::Aligned(_) => {
                old.as_ptr().addr() % HUGE_PAGE_BYTES / overflow_alignment() * overflow_alignment()
            }
            Owner::Heap(_) if old.len() as u64 > available() => return Err(ErrorKind::OutOfMemory.into()),
            Owner::Heap(_) => 0,
        };
        let file = memory_file()?;
        let file_len = phase.checked_add(end).ok_or(ErrorKind::InvalidInput)?;
        require_allowed(file_len)?;
        file.set_len(file_len as u64)?;
        // The overflow arena is the only writer of the file. Its contract says when values may be read, and each bit
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
        Ok((extended, OverflowMap { file, phase, bytes, room, grains, marker: PhantomData }))
    }
}

impl<T: Pod> OverflowMap<T> {
    /// Indexes of the arena.
    pub fn room(&self) -> Range<usize> {
        self.room.clone()
    }

    /// Writes `values` from `index` on. No thread may be reading there.
    ///
    /// # Errors
    /// The values are not in the arena, or memory is short.
    pub fn write(&self, index: usize, values: &[T]) -> Result<()> {
        self.require(index..index.saturating_add(values.len()))?;
        self.file.write_all_at(bytemuck::cast_slice(values), self.file_bytes(index..index).start as u64)
    }

    /// Marks values as written and soon read in any order. Once a huge page or the one before it is mostly in use, its
    /// bytes move to a huge page, for all maps of the file. Other threads may be reading them.
    ///
    /// Cost: copies the bytes of each moved page. The rest of a huge page takes memory too.
    ///
    /// # Errors
    /// The values are not in the arena.
    pub fn use_huge_pages(&self, values: Range<usize>) -> Result<()> {
        self.require(values.clone())?;
        for (number, count) in parts(self.file_bytes(values)) {
            let Some(bytes) = self.grain_bytes(number) else { continue };
            let is_due = {
                let mut grains = self.grains.lock();
                let before = number.checked_sub(1).map_or(0, |before| grains[before].num_bytes);
                grains[number].gain(count, before)
            };
            // Outside the lock: a move copies 2 MB.
            if is_due && (0..TRIES).any(|_| to_huge_pages(bytes)) {
                self.grains.lock()[number].move_was_made();
            }
        }
        Ok(())
    }

    /// Number of moves to huge pages.
    pub fn num_moves(&self) -> u64 {
        self.grains.lock().iter().map(|grain| u64::from(grain.num_moves)).sum()
    }

    /// Sets these values to zeros and frees the memory of whole pages. No thread may be reading there.
    ///
    /// # Errors
    /// The values are not in the arena, or the system cannot free them.
    pub fn clear(&self, values: Range<usize>) -> Result<()> {
        self.require(values.clone())?;
        let bytes = self.file_bytes(values);
        punch_hole(&self.file, bytes.start as u64, bytes.len() as u64)?;
        for (number, count) in parts(bytes) {
            self.grains.lock()[number].lose(count);
        }
        Ok(())
    }

    /// Byte range of these values in the file.
    fn file_bytes(&self, values: Range<usize>) -> Range<usize> {
        let place = |index: usize| self.phase + index * size_of::<T>();
        place(values.start)..place(values.end)
    }

    /// A huge page of the file as mapped, if it is wholly in the arena.
    fn grain_bytes(&self, number: usize) -> Option<&[u8]> {
        let (start, room) = (number * HUGE_PAGE_BYTES, self.file_bytes(self.room.clone()));
        let is_inside = start >= room.start && start + HUGE_PAGE_BYTES <= room.end;
        let start = start.checked_sub(self.phase).filter(|_| is_inside)?;
        self.bytes.as_slice().get(start..start + HUGE_PAGE_BYTES)
    }

    fn require(&self, values: Range<usize>) -> Result<()> {
        let is_inside = values.start <= values.end && values.start >= self.room.start && values.end <= self.room.end;
        if is_inside { Ok(()) } else { Err(Error::new(ErrorKind::InvalidInput, "outside the overflow arena")) }
    }
}

/// Numbers of the huge pages that hold these bytes of a file, with the number of bytes in each.
fn parts(bytes: Range<usize>) -> impl Iterator<Item = (usize, u32)> {
    (bytes.start / HUGE_PAGE_BYTES..bytes.end.div_ceil(HUGE_PAGE_BYTES)).map(move |number| {
        let start = number * HUGE_PAGE_BYTES;
        (number, (bytes.end.min(start + HUGE_PAGE_BYTES) - bytes.start.max(start)) as u32)
    })
}

/// Maps the pages of `old`, which are mapped already, at the start of `map` as well.
#[cfg(target_os = "linux")]
fn map_again(old: &[u8], map: &AlignedMap) -> Result<()> {
    let alignment = overflow_alignment();
    if old.is_empty() {
        return Ok(());
    }
    if !old.as_ptr().addr().is_multiple_of(alignment) || old.len().next_multiple_of(alignment) > map.len() {
        return Err(ErrorKind::InvalidInput.into());
    }
    // SAFETY: `old` starts on a page of a map that is shared (all maps here are) and lives as long as the borrow. Its
    // last page belongs to that map whole. An old size of 0 leaves that map as it is and makes a second one of
    // the same file pages (mremap(2)). The new place is in `map`, which no other code has seen yet, and whose drop
    // unmaps the whole range. A file is unlinked or replaced, never cut, so the pages stay behind both.
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

/// Creates a file without a name, in memory.
#[cfg(target_os = "linux")]
pub(crate) fn memory_file() -> Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a string that ends with 0.
    let descriptor = unsafe { libc::memfd_create(c"anden".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and this is its only owner.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn memory_file() -> Result<File> {
    Err(ErrorKind::Unsupported.into())
}

/// memfds count against RLIMIT_FSIZE, and exceeding it raises SIGXFSZ.
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
    // SAFETY: the call reads and writes no memory of ours but the file's, as the contract of the overflow arena allows.
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
        let unit = overflow_alignment() / 4;
        let start = (slice.len() + 1).next_multiple_of(unit);
        let old = slice.to_vec();
        let (extended, overflow) = slice.extended(start..start + 3 * unit).unwrap();
        assert_eq!(extended[..old.len()], old);
        assert_eq!(extended.len(), start + 3 * unit);
        overflow.write(start + unit - 1, &[7, 8]).unwrap();
        assert_eq!(extended[start + unit - 2..start + unit + 2], [0, 7, 8, 0]);
        overflow.clear(start..start + unit).unwrap();
        assert_eq!(extended[start + unit - 1..start + unit + 1], [0, 8]);
        for (index, count) in [(start - 1, 1), (start + 3 * unit, 1), (start + 3 * unit - 1, 2), (usize::MAX, 2)] {
            assert!(overflow.write(index, &vec![1; count]).is_err(), "{count} at {index}");
        }
        assert!(overflow.clear(start - 1..start).is_err());
        drop(overflow);
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
    fn copy_beyond_free_memory_is_refused() {
        let slice = MappedSlice::copied(&(0..5000_u32).collect::<Vec<_>>());
        let unit = overflow_alignment() / 4;
        let start = slice.len().next_multiple_of(unit);
        let extended = |available: u64| slice.extended_within(start..start + unit, || available);
        assert_eq!(extended(19_999).unwrap_err().kind(), ErrorKind::OutOfMemory);
        let (copy, _) = extended(20_000).unwrap();
        assert_eq!(copy[..5000], slice[..]);
    }

    #[test]
    fn full_pieces_of_the_room_move_to_huge_pages() {
        let path = std::env::temp_dir().join(format!("anden-overflow-huge-{}", std::process::id()));
        std::fs::write(&path, vec![1_u8; 5 * overflow_alignment()]).unwrap();
        let bytes = FileBytes::map(&File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let unit = overflow_alignment() / 8;
        // From the second page of a file, where no huge page starts.
        let slice: MappedSlice<u64> = bytes.typed(overflow_alignment() as u64, 2 * unit as u64).unwrap();
        let huge = HUGE_PAGE_BYTES / 8;
        let room = 3 * unit..3 * unit + 4 * huge;
        let (extended, overflow) = slice.extended(room.clone()).unwrap();
        assert_eq!((extended.as_ptr().addr() - overflow.phase) % HUGE_PAGE_BYTES, 0);
        let check = |cleared: Range<usize>| {
            for place in room.clone() {
                assert_eq!(extended[place], if cleared.contains(&place) { 0 } else { place as u64 }, "at {place}");
            }
        };
        let write = |places: Range<usize>| {
            for start in places.clone().step_by(unit) {
                overflow.write(start, &(start as u64..(start + unit) as u64).collect::<Vec<_>>()).unwrap();
                overflow.use_huge_pages(start..start + unit).unwrap();
            }
        };
        write(room.clone());
        check(0..0);
        let whole: Vec<_> =
            (0..overflow.grains.lock().len()).filter_map(|number| overflow.grain_bytes(number)).collect();
        assert!(whole.iter().all(|bytes| bytes.as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES)));
        // The first and the last page are not wholly in the arena.
        assert!(
            (3..=4).contains(&whole.len()) && overflow.num_moves() == whole.len() as u64,
            "{}",
            overflow.num_moves()
        );
        // A few freed and rewritten bytes do not justify a copy of the rest.
        let part = huge..huge + 8 * unit;
        let moves = overflow.num_moves();
        overflow.clear(part.clone()).unwrap();
        check(part.clone());
        write(part);
        assert_eq!(overflow.num_moves(), moves);
        overflow.clear(huge..3 * huge).unwrap();
        check(huge..3 * huge);
        write(huge..3 * huge);
        check(0..0);
        assert!(overflow.num_moves() > moves);
        for (start, end) in [(room.start - 1, room.end), (room.start, room.end + 1), (room.end, room.start)] {
            assert!(overflow.use_huge_pages(start..end).is_err());
        }
    }

    #[test]
    fn huge_page_move_is_due_at_its_thresholds() {
        const WHOLE: u32 = HUGE_PAGE_BYTES as u32;
        let steps = |grain: &mut Grain, count: u32, before: u32| -> Vec<bool> {
            (0..count / UNTIL_NEXT_TRY).map(|_| grain.gain(UNTIL_NEXT_TRY, before)).collect()
        };
        let is_never = |due: &[bool]| !due.contains(&true);
        let mut grain = Grain::default();
        assert!(is_never(&steps(&mut grain, WORTH_A_MOVE - UNTIL_NEXT_TRY, WORTH_A_MOVE - 1)));
        assert!(grain.gain(UNTIL_NEXT_TRY, 0) && !grain.gain(UNTIL_NEXT_TRY / 2, 0));
        assert!(grain.gain(UNTIL_NEXT_TRY / 2, 0), "a page that could not be moved is due again");
        let mut grain = Grain::default();
        assert!(!grain.gain(UNTIL_NEXT_TRY - 1, WHOLE) && grain.gain(1, WORTH_A_MOVE), "the one before it is full");
        grain.move_was_made();
        assert!(is_never(&steps(&mut grain, WHOLE - UNTIL_NEXT_TRY, WHOLE)), "it fills where it is");
        // A few freed and rewritten bytes do not justify a copy of the rest; half a page does.
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
        let path = std::env::temp_dir().join(format!("anden-overflow-{}", std::process::id()));
        let values: Vec<u32> = (0..20_000).collect();
        std::fs::write(&path, bytemuck::cast_slice(&values)).unwrap();
        let bytes = FileBytes::map(&File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let page = overflow_alignment() as u64;
        for (offset, count) in [(0, 20_000), (page, 1), (page, 3000), (page, 0)] {
            check(&bytes.typed(offset, count).unwrap());
        }
        let unaligned: MappedSlice<u32> = bytes.typed(4, 100).unwrap();
        assert!(unaligned.extended(1 << 16..1 << 17).is_err());
    }
}
