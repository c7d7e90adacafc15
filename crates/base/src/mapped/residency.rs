//! Which pages of a mapped file are in memory, and requests to read or release pages.
//!
//! All of this concerns the system's cache of the file, which its maps share. No byte of the file changes.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::aligned::AlignedMap;
use super::{FileBytes, Owner};

/// Smaller files are not kept open beside their map.
pub(super) const MIN_FILE_BYTES: usize = 1 << 20;

/// Maximum number of bytes per read request: the system's default read-ahead, and the least that any system reads per
/// call.
const READ_BYTES: usize = 128 << 10;

/// A mapped file.
pub(super) struct MappedFile {
    file: std::fs::File,
    /// Cached answer of [`FileBytes::system_window`].
    window: OnceLock<Option<usize>>,
    /// Whether `mincore` has ever reported an absent page. It reports all pages as present to a caller that may not
    /// write the file.
    has_told: AtomicBool,
    /// Parts of the map that are also at the start of another map, which is then the one that readers use.
    second: Mutex<Vec<(Range<usize>, Weak<Owner>)>>,
}

impl MappedFile {
    pub fn of(file: &std::fs::File) -> Option<Self> {
        Some(Self {
            file: file.try_clone().ok()?,
            window: OnceLock::new(),
            has_told: AtomicBool::new(false),
            second: Mutex::new(Vec::new()),
        })
    }

    /// Calls `body` for each second map of bytes in `part`: with the map, the range in it, and the start of that
    /// range in the first map.
    pub fn for_each_second(&self, part: Range<usize>, mut body: impl FnMut(&AlignedMap, Range<usize>, usize)) {
        // Copied, so that the lock is not held during system calls.
        let second = self.second.lock().clone();
        for (shown, owner) in second {
            let (start, end) = (part.start.max(shown.start), part.end.min(shown.end));
            if let Some(owner) = owner.upgrade().filter(|_| start < end)
                && let Owner::Aligned(map) = &*owner
            {
                body(map, start - shown.start..end - shown.start, start);
            }
        }
    }

    /// Trusts the number, unless it is 0 and may result from a missing right.
    fn believed(&self, num_absent: usize) -> Option<usize> {
        if num_absent > 0 {
            self.has_told.store(true, Ordering::Relaxed);
        }
        self.has_told.load(Ordering::Relaxed).then_some(num_absent)
    }
}

impl FileBytes {
    /// Records another map that starts with these bytes, so that hints and questions apply to both.
    pub(super) fn note_second_map(&self, other: &Self) {
        if let Owner::Mapped(_, Some(file)) = &*self.owner {
            let mut second = file.second.lock();
            second.retain(|(_, owner)| owner.strong_count() > 0);
            second.push((self.range.clone(), Arc::downgrade(&other.owner)));
        }
    }

    /// Asks the system to read the pages of `part` from the file, without waiting. Bytes outside are ignored.
    ///
    /// Cost: a call per 128 KB, longer if more pages are absent.
    pub fn read_ahead(&self, part: Range<usize>) {
        let end = part.end.min(self.len());
        let mut start = part.start;
        while start < end {
            let next = (start + READ_BYTES).min(end);
            self.advise_part(start..next, super::Advice::WillNeed);
            start = next;
        }
    }

    /// Number of bytes that the system reads ahead for sequential readers, or `None` if unknown.
    ///
    /// Cost: the first call reads the settings of the disk.
    pub fn system_window(&self) -> Option<usize> {
        let Owner::Mapped(_, Some(file)) = &*self.owner else { return None };
        *file.window.get_or_init(|| window_of(&file.file))
    }

    /// Number of pages of `part` that are not in memory, or `None` if unknown.
    ///
    /// Cost: a call, and some nanoseconds a page.
    pub fn num_missing_pages(&self, part: Range<usize>) -> Option<usize> {
        let (start, end) = (part.start.min(self.len()), part.end.min(self.len()));
        if start >= end {
            return Some(0);
        }
        let Owner::Mapped(map, file) = &*self.owner else { return Some(0) };
        let page = page_bytes();
        let first = (self.range.start + start) / page * page;
        let len = self.range.start + end - first;
        match file.as_ref().and_then(|file| num_cached_pages(&file.file, first as u64, len as u64)) {
            Some(num_cached) => Some(len.div_ceil(page).saturating_sub(num_cached)),
            None => num_missing_in_map(&map[first..first + len], file.as_ref()),
        }
    }

    /// Number of pages of `part` in the page table of this process, through any of its maps. The process has read
    /// them or pages near them, and reads them again without the system's cache. `None` if unknown.
    ///
    /// Cost: a call per map, and some nanoseconds a page.
    pub fn num_touched_pages(&self, part: Range<usize>) -> Option<usize> {
        let (start, end) = (part.start.min(self.len()), part.end.min(self.len()));
        match &*self.owner {
            Owner::Mapped(map, file) if start < end => {
                let page = page_bytes();
                let part = (self.range.start + start) / page * page..self.range.start + end;
                let mut are_present = present_pages(&map[part.clone()])?;
                if let Some(file) = file {
                    file.for_each_second(part.clone(), |map, place, begin| {
                        let own = are_present[(begin - part.start) / page..].iter_mut();
                        let others = present_pages(&map[place]).into_iter().flatten();
                        own.zip(others).for_each(|(own, other)| *own |= other);
                    });
                }
                Some(are_present.into_iter().filter(|&is_present| is_present).count())
            }
            _ => None,
        }
    }

    /// Tells the system that the whole pages in `part` are not needed for now, so that it reclaims them first. A
    /// later access reads them again.
    pub fn release(&self, part: Range<usize>) {
        let Owner::Mapped(map, file) = &*self.owner else { return };
        let page = page_bytes();
        let start = (self.range.start + part.start.min(self.len())).next_multiple_of(page);
        let end = (self.range.start + part.end.min(self.len())) / page * page;
        if start >= end {
            return;
        }
        // SAFETY: the pages are part of a read-only map of a file that is alive here; without them in the page table,
        // the next access finds the bytes of the file again.
        unsafe { libc::madvise(map.as_ptr().add(start) as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
        // The system keeps a page that is in any page table.
        if let Some(file) = file {
            file.for_each_second(start..end, |map, part, _| map.advise(part, libc::MADV_DONTNEED));
        }
        #[cfg(target_os = "linux")]
        if let Some(file) = file {
            use std::os::fd::AsRawFd;
            // SAFETY: a call on an open file that reads and writes no memory of ours.
            unsafe {
                libc::posix_fadvise(
                    file.file.as_raw_fd(),
                    start as libc::off_t,
                    (end - start) as libc::off_t,
                    libc::POSIX_FADV_DONTNEED,
                )
            };
        }
    }
}

/// Number of times that this thread gave up its processor to wait, for example for a page, or `None` if unknown.
///
/// Cost: a call.
#[cfg(target_os = "linux")]
pub fn num_waits() -> Option<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for what the call writes, and outlives it.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: all fields are zeros, which are valid values, or were written by the call.
    let usage = unsafe { usage.assume_init() };
    (result == 0).then_some(usage.ru_nvcsw as u64)
}

/// Always `None` on this system.
#[cfg(not(target_os = "linux"))]
pub fn num_waits() -> Option<u64> {
    None
}

/// Read-ahead setting of the disk of a file. A partition has its disk's; a file system without a disk has its own.
#[cfg(target_os = "linux")]
fn window_of(file: &std::fs::File) -> Option<usize> {
    use std::os::linux::fs::MetadataExt;

    let device = file.metadata().ok()?.st_dev();
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    let places = [
        format!("/sys/dev/block/{number}/queue/read_ahead_kb"),
        format!("/sys/dev/block/{number}/../queue/read_ahead_kb"),
        format!("/sys/class/bdi/{number}/read_ahead_kb"),
    ];
    let kilobytes = places.iter().find_map(|place| std::fs::read_to_string(place).ok())?;
    kilobytes.trim().parse::<usize>().ok()?.checked_mul(1 << 10)
}

#[cfg(not(target_os = "linux"))]
fn window_of(_file: &std::fs::File) -> Option<usize> {
    None
}

/// Number of absent pages in a part of a map that starts on a page, or `None` if unknown.
fn num_missing_in_map(bytes: &[u8], file: Option<&MappedFile>) -> Option<usize> {
    let num_absent = num_absent_pages(bytes)?;
    file.map_or((num_absent > 0).then_some(num_absent), |file| file.believed(num_absent))
}

/// Page size in bytes.
fn page_bytes() -> usize {
    // SAFETY: asks for a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096).max(1)
}

/// Number of pages of a part of a file that the system caches. `None` if unknown: before Linux 6.5, or for a file
/// that the caller may not write.
#[cfg(target_os = "linux")]
fn num_cached_pages(file: &std::fs::File, offset: u64, len: u64) -> Option<usize> {
    use std::os::fd::AsRawFd;

    /// System call number, equal on all architectures.
    const CACHESTAT: libc::c_long = 451;
    static IS_UNKNOWN: AtomicBool = AtomicBool::new(false);

    if IS_UNKNOWN.load(Ordering::Relaxed) {
        return None;
    }
    let range = [offset, len];
    // Cached, dirty, in writeback, evicted, recently evicted.
    let mut counts = [0_u64; 5];
    // SAFETY: `range` and `counts` have the layout of `cachestat_range` and `cachestat`, of two and of five 64-bit
    // numbers, and outlive the call.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd() as libc::c_uint,
            range.as_ptr(),
            counts.as_mut_ptr(),
            0 as libc::c_uint,
        )
    };
    if result != 0 {
        // Only ENOSYS concerns all files; other errors may result from a missing right for this one.
        let is_unknown = std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS);
        IS_UNKNOWN.fetch_or(is_unknown, Ordering::Relaxed);
        return None;
    }
    usize::try_from(counts[0]).ok()
}

#[cfg(not(target_os = "linux"))]
fn num_cached_pages(_file: &std::fs::File, _offset: u64, _len: u64) -> Option<usize> {
    None
}

/// Number of pages of `bytes` that `mincore` reports as absent. `bytes` starts on a page of a map.
#[cfg(target_os = "linux")]
fn num_absent_pages(bytes: &[u8]) -> Option<usize> {
    let mut is_present = vec![0_u8; bytes.len().div_ceil(page_bytes())];
    // SAFETY: the range is mapped for as long as `bytes` is borrowed, and the call writes one byte for each page of
    // it.
    let result = unsafe { libc::mincore(bytes.as_ptr() as *mut libc::c_void, bytes.len(), is_present.as_mut_ptr()) };
    (result == 0).then(|| is_present.iter().filter(|&&present| present & 1 == 0).count())
}

#[cfg(not(target_os = "linux"))]
fn num_absent_pages(_bytes: &[u8]) -> Option<usize> {
    None
}

/// Which pages of `bytes` are in the page table of this process: proc_pid_pagemap(5). `bytes` starts on a page of a
/// map.
#[cfg(target_os = "linux")]
fn present_pages(bytes: &[u8]) -> Option<Vec<bool>> {
    use std::os::unix::fs::FileExt;

    /// Bit of an entry that marks a present page.
    const PRESENT: u64 = 1 << 63;
    static PAGE_MAP: OnceLock<Option<std::fs::File>> = OnceLock::new();

    let page_map = PAGE_MAP.get_or_init(|| std::fs::File::open("/proc/self/pagemap").ok()).as_ref()?;
    let mut entries = vec![0_u64; bytes.len().div_ceil(page_bytes())];
    let offset = bytes.as_ptr().addr() / page_bytes() * size_of::<u64>();
    page_map.read_exact_at(bytemuck::cast_slice_mut(&mut entries), offset as u64).ok()?;
    Some(entries.into_iter().map(|entry| entry & PRESENT != 0).collect())
}

#[cfg(not(target_os = "linux"))]
fn present_pages(_bytes: &[u8]) -> Option<Vec<bool>> {
    None
}

#[cfg(test)]
mod tests {
    use anden_testkit::{skipped, wait_until};

    use super::*;

    /// Creates a file of some megabytes on the disk of the build. `None` if the system keeps all its pages, or does
    /// not say which ones it keeps.
    fn file_on_disk(name: &str) -> Option<(std::path::PathBuf, Vec<u8>, FileBytes)> {
        let path = std::env::current_exe().unwrap().with_file_name(format!("{name}-{}", std::process::id()));
        let content: Vec<u8> = (0..4 * MIN_FILE_BYTES).map(|i| (i / 4096) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        let bytes = FileBytes::map(&file).unwrap();
        bytes.release(0..bytes.len());
        if bytes.num_missing_pages(0..bytes.len()).is_none_or(|pages| pages == 0) {
            skipped(format!("the system keeps the pages of {}, or does not say", path.display()));
            std::fs::remove_file(&path).unwrap();
            return None;
        }
        Some((path, content, bytes))
    }

    /// Releases a part until this many of its pages are absent. Another process may hold one for a moment.
    fn release_until(part: &FileBytes, num_missing: usize) {
        wait_until("the pages are released", || {
            part.release(0..part.len());
            part.num_missing_pages(0..part.len()).unwrap() >= num_missing
        });
    }

    #[test]
    fn released_pages_are_read_again() {
        let Some((path, content, bytes)) = file_on_disk("released") else { return };
        let part = bytes.slice(5000..2 * MIN_FILE_BYTES as u64).unwrap();
        let (whole, num_pages) = (0..part.len(), part.len() / page_bytes());
        assert!(part.num_missing_pages(whole.clone()).unwrap() >= num_pages, "none was read yet");
        part.read_ahead(7..usize::MAX);
        wait_until("the part is read ahead", || part.num_missing_pages(whole.clone()) == Some(0));
        assert!(part.num_touched_pages(whole.clone()).is_none_or(|pages| pages == 0));
        assert_eq!(part.as_slice(), &content[5000..2 * MIN_FILE_BYTES]);
        assert!(part.num_touched_pages(whole.clone()).is_none_or(|pages| pages >= num_pages));
        // All pages except those that other data shares.
        release_until(&part, num_pages - 2);
        assert!(part.num_touched_pages(9_000..part.len() - 9_000).is_none_or(|pages| pages == 0));
        assert_eq!(part.num_missing_pages(9..9), Some(0));
        assert_eq!(part.system_window(), bytes.system_window(), "it is the disk's");
        assert!(part.system_window().is_none_or(|window| window.is_multiple_of(1024)));
        std::fs::remove_file(&path).unwrap();
    }

    /// Lists of a graph with deltas are read in this way.
    #[test]
    fn pages_of_second_map_are_released_too() {
        let Some((path, content, bytes)) = file_on_disk("second") else { return };
        let slice = bytes.typed::<u32>(2 * page_bytes() as u64, MIN_FILE_BYTES as u64 / 2).unwrap();
        let part = slice.bytes();
        let (whole, num_pages) = (0..part.len(), part.len() / page_bytes());
        let room = slice.len() + 1024..slice.len() + 2048;
        let (extended, _overflow) = slice.extended(room.clone()).unwrap();
        part.advise(super::super::Advice::Random);
        let start = 2 * page_bytes();
        assert_eq!(bytemuck::cast_slice::<_, u8>(&extended[..slice.len()]), &content[start..start + part.len()]);
        assert!(part.num_touched_pages(whole.clone()).is_none_or(|pages| pages == num_pages));
        assert_eq!(part.num_missing_pages(whole.clone()), Some(0));
        release_until(part, num_pages);
        assert!(part.num_touched_pages(whole.clone()).is_none_or(|pages| pages == 0));
        // The access pattern is random, so neighboring pages are not read.
        assert_eq!(bytemuck::cast_slice::<_, u8>(&extended[..1]), &content[start..start + 4]);
        assert_eq!(part.num_missing_pages(whole.clone()), Some(num_pages - 1));
        assert!(part.num_touched_pages(whole).is_none_or(|pages| pages == 1));
        drop(extended);
        std::fs::remove_file(&path).unwrap();
    }

    /// As on a system that does not count the cached pages of a file.
    #[test]
    fn missing_pages_are_counted_without_cachestat() {
        let Some((path, content, bytes)) = file_on_disk("map") else { return };
        let Owner::Mapped(map, Some(file)) = &*bytes.owner else { panic!("a large file is mapped, and kept open") };
        let missing = |part: Range<usize>| num_missing_in_map(&map[part], Some(file));
        let (page, num_pages) = (page_bytes(), bytes.len() / page_bytes());
        bytes.advise(super::super::Advice::Random);
        release_until(&bytes, num_pages);
        assert_eq!(missing(0..bytes.len()), Some(num_pages));
        // The access pattern is random, so neighboring pages are not read.
        let (first, last) = (3 * page, 5 * page);
        assert_eq!([bytes.as_slice()[first], bytes.as_slice()[last]], [content[first], content[last]]);
        assert_eq!(missing(0..bytes.len()), Some(num_pages - 2));
        assert_eq!([first, 4 * page, last].map(|at| missing(at..at + 1)), [Some(0), Some(1), Some(0)]);
        assert_eq!(missing(first..last + page), Some(1));
        assert_eq!(missing(0..bytes.len()), bytes.num_missing_pages(0..bytes.len()), "both ways say the same");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn zero_missing_pages_is_trusted_after_nonzero_count() {
        let path = std::env::temp_dir().join(format!("anden-absent-{}", std::process::id()));
        std::fs::write(&path, [1]).unwrap();
        let file = MappedFile::of(&std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!([0, 0, 7, 0].map(|num_absent| file.believed(num_absent)), [None, None, Some(7), Some(0)]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn memory_misses_nothing() {
        let bytes = FileBytes::copied(&[7; 10_000]);
        bytes.read_ahead(0..10_000);
        bytes.release(0..10_000);
        assert_eq!((bytes.num_missing_pages(0..10_000), bytes.as_slice()[9_999]), (Some(0), 7));
        assert_eq!(bytes.system_window(), None);
    }
}
