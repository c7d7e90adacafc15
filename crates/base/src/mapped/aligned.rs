//! Maps of files at addresses where huge pages fit.
//!
//! A huge page of a file is mapped as one only where address and place in the file agree, modulo its size. The system
//! sees to that for files on disks, but not for files in memory, nor for what is mapped beside something else.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::{Deref, Range};
use std::os::fd::AsRawFd;
use std::ptr::{null_mut, slice_from_raw_parts};

use super::annex_alignment;
use crate::memory::HUGE_PAGE_BYTES;

/// Moves mapped bytes that start on a page to huge pages, as far as they fill some at the right addresses, for all who
/// map the same file. A hint: where the system does not, the same bytes are there. `false` where it could not right
/// now, as while others write to the same bytes or see them for the first time, and may later.
///
/// Cost: a copy of what is not on huge pages yet, and of what is a hole zeros, 2 MB at a time.
pub(super) fn to_huge_pages(bytes: &[u8]) -> bool {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the range is borrowed, so it stays mapped during the call, and MADV_COLLAPSE changes neither its
        // contents nor whether it may be read.
        let result = unsafe { libc::madvise(bytes.as_ptr().cast_mut().cast(), bytes.len(), libc::MADV_COLLAPSE) };
        result == 0 || Error::last_os_error().kind() != ErrorKind::WouldBlock
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = bytes;
        true
    }
}

/// A read-only map of a part of a file.
pub(super) struct AlignedMap {
    start: *mut libc::c_void,
    len: usize,
}

// SAFETY: the map is read-only and nobody else unmaps it; it is as good as a shared slice.
unsafe impl Send for AlignedMap {}
// SAFETY: as for `Send`.
unsafe impl Sync for AlignedMap {}

impl AlignedMap {
    /// Maps `len` bytes of `file`, more than none, from byte `phase` on, at an address that is `phase` modulo the size
    /// of a huge page; `phase` is a multiple of the size of a page.
    ///
    /// # Errors
    /// The system does not map it.
    pub fn new(file: &File, len: usize, phase: usize) -> Result<Self> {
        let offset = libc::off_t::try_from(phase).map_err(|_| ErrorKind::InvalidInput)?;
        let reserved_len = len.checked_add(2 * HUGE_PAGE_BYTES).ok_or(ErrorKind::OutOfMemory)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new addresses, chosen by the system, that nobody uses yet.
        let reserved = unsafe { libc::mmap(null_mut(), reserved_len, libc::PROT_NONE, flags, -1, 0) };
        if reserved == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let reserved = Self { start: reserved, len: reserved_len };
        let skipped =
            (phase % HUGE_PAGE_BYTES + HUGE_PAGE_BYTES - reserved.start.addr() % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
        // SAFETY: less than a huge page is skipped, so these addresses are among those that were reserved above and
        // that nobody has seen.
        let start = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            libc::mmap(reserved.start.byte_add(skipped), len, libc::PROT_READ, flags, file.as_raw_fd(), offset)
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        // What was reserved before and behind the map goes, the map stays.
        let end = skipped + len.next_multiple_of(annex_alignment());
        for part in [0..skipped, end..reserved_len] {
            // SAFETY: the part is inside what was reserved, and the map is not in it.
            drop(Self { start: unsafe { reserved.start.byte_add(part.start) }, len: part.len() });
        }
        std::mem::forget(reserved);
        Ok(Self { start, len })
    }

    /// Tells the system how the bytes of `part`, and what else lies on their pages, are read, with a value of madvise(2)
    /// that leaves a map of a file as it is; a hint.
    pub fn advise(&self, part: Range<usize>, advice: libc::c_int) {
        let (start, end) = (part.start / annex_alignment() * annex_alignment(), part.end.min(self.len));
        if start < end {
            // SAFETY: the range is inside the map, which is read-only and shared with its file: whatever leaves the page
            // table is found in the file again.
            unsafe { libc::madvise(self.start.byte_add(start), end - start, advice) };
        }
    }
}

impl Drop for AlignedMap {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: these are addresses of ours, and whoever borrowed them has given them back.
            unsafe { libc::munmap(self.start, self.len) };
        }
    }
}

impl Deref for AlignedMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the whole range is mapped for reading while `self` lives; the contract of mapped files says what may
        // change under it.
        unsafe { &*slice_from_raw_parts(self.start.cast(), self.len) }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_map_is_where_it_is_wanted() {
        let file = super::super::memory_file().unwrap();
        file.write_all_at(&[9; 5000], HUGE_PAGE_BYTES as u64).unwrap();
        file.set_len(3 * HUGE_PAGE_BYTES as u64).unwrap();
        for phase in [0, annex_alignment(), HUGE_PAGE_BYTES - annex_alignment()] {
            for len in [1, 4096, HUGE_PAGE_BYTES + 5000] {
                let map = AlignedMap::new(&file, len, phase).unwrap();
                assert_eq!((map.len(), map.as_ptr().addr() % HUGE_PAGE_BYTES), (len, phase));
                let nines = HUGE_PAGE_BYTES..HUGE_PAGE_BYTES + 5000;
                for place in [0, len / 2, len - 1] {
                    assert_eq!(map[place], if nines.contains(&(phase + place)) { 9 } else { 0 }, "{phase}, {len}");
                }
            }
        }
        assert!(AlignedMap::new(&file, usize::MAX / 2, 0).is_err());
        assert!(AlignedMap::new(&file, usize::MAX, 0).is_err());
    }
}
