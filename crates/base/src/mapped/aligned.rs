//! Maps of files at addresses that allow huge pages.
//!
//! A huge page of a file is mapped as one only if its address and its offset in the file agree, modulo its size. The
//! system ensures this for files on disks, but not for files in memory or for maps placed next to others.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::{Deref, Range};
use std::os::fd::AsRawFd;
use std::ptr::{null_mut, slice_from_raw_parts};

use super::overflow_alignment;
use crate::memory::HUGE_PAGE_BYTES;

/// Moves mapped bytes that start on a page to huge pages, for all maps of the file. Only whole huge pages at matching
/// addresses move. A hint: if the system refuses, the bytes stay readable where they are. Returns `false` if a later
/// call may succeed, for example because other threads write to the bytes or touch them for the first time.
///
/// Cost: copies all bytes that are not on huge pages yet, and fills holes with zeros, 2 MB at a time.
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

// SAFETY: the map is read-only and only its owner unmaps it, so it is as good as a shared slice.
unsafe impl Send for AlignedMap {}
// SAFETY: as for `Send`.
unsafe impl Sync for AlignedMap {}

impl AlignedMap {
    /// Maps `len` bytes of `file`, at least one, from byte `phase` on. The address is `phase` modulo the size of a
    /// huge page. `phase` is a multiple of the page size.
    ///
    /// # Errors
    /// The system does not map it.
    pub fn new(file: &File, len: usize, phase: usize) -> Result<Self> {
        let offset = libc::off_t::try_from(phase).map_err(|_| ErrorKind::InvalidInput)?;
        let reserved_len = len.checked_add(2 * HUGE_PAGE_BYTES).ok_or(ErrorKind::OutOfMemory)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: these are new addresses, chosen by the system and not in use.
        let reserved = unsafe { libc::mmap(null_mut(), reserved_len, libc::PROT_NONE, flags, -1, 0) };
        if reserved == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let reserved = Self { start: reserved, len: reserved_len };
        let skipped =
            (phase % HUGE_PAGE_BYTES + HUGE_PAGE_BYTES - reserved.start.addr() % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
        // SAFETY: less than a huge page is skipped, so these addresses are among those that were reserved above and
        // that no other code has seen.
        let start = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            libc::mmap(reserved.start.byte_add(skipped), len, libc::PROT_READ, flags, file.as_raw_fd(), offset)
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        // Releases the reserved addresses before and behind the map.
        let end = skipped + len.next_multiple_of(overflow_alignment());
        for part in [0..skipped, end..reserved_len] {
            // SAFETY: the part is inside the reserved addresses, and the map is not in it.
            drop(Self { start: unsafe { reserved.start.byte_add(part.start) }, len: part.len() });
        }
        std::mem::forget(reserved);
        Ok(Self { start, len })
    }

    /// Hints how the pages of `part` are read. `advice` is a value of madvise(2) that does not change a map of a
    /// file.
    pub fn advise(&self, part: Range<usize>, advice: libc::c_int) {
        let (start, end) = (part.start / overflow_alignment() * overflow_alignment(), part.end.min(self.len));
        if start < end {
            // SAFETY: the range is inside the map, which is read-only and shared with its file. Pages that leave the
            // page table are found in the file again.
            unsafe { libc::madvise(self.start.byte_add(start), end - start, advice) };
        }
    }
}

impl Drop for AlignedMap {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: these addresses belong to this map, and all borrows of them have ended.
            unsafe { libc::munmap(self.start, self.len) };
        }
    }
}

impl Deref for AlignedMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the whole range is mapped for reading while `self` lives; the contract of mapped files says which
        // changes are possible under it.
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
        for phase in [0, overflow_alignment(), HUGE_PAGE_BYTES - overflow_alignment()] {
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
