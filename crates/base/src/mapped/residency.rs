//! Which parts of a mapped file are in memory, and how to have others there, or not any more.
//!
//! All of it concerns the system's cache of the file, which all maps of it share, and nothing of it changes a byte.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::aligned::AlignedMap;
use super::{FileBytes, Owner};

/// Smaller files are not kept open beside their map.
pub(super) const MIN_FILE_BYTES: usize = 1 << 20;

/// The most bytes that one call asks the system to read: what it reads ahead of a file by default, and the least that any
/// does with one call.
const READ_BYTES: usize = 128 << 10;

/// A file that is mapped.
pub(super) struct OpenFile {
    file: std::fs::File,
    /// [`FileBytes::system_window`].
    window: OnceLock<Option<usize>>,
    /// Whether `mincore` ever said that a page of it is not in memory: who may not write a file is told that all are.
    has_told: AtomicBool,
    /// The parts of the map that are at the start of another one as well, which is what readers of these read.
    second: Mutex<Vec<(Range<usize>, Weak<Owner>)>>,
}

impl OpenFile {
    pub fn of(file: &std::fs::File) -> Option<Self> {
        Some(Self {
            file: file.try_clone().ok()?,
            window: OnceLock::new(),
            has_told: AtomicBool::new(false),
            second: Mutex::new(Vec::new()),
        })
    }

    /// Calls `body` with each second map of what is in `part` of the first, with the part in it, and with where in the
    /// first that begins.
    pub fn for_each_second(&self, part: Range<usize>, mut body: impl FnMut(&AlignedMap, Range<usize>, usize)) {
        let second = self.second.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (shown, owner) in second {
            let (start, end) = (part.start.max(shown.start), part.end.min(shown.end));
            if let Some(owner) = owner.upgrade().filter(|_| start < end)
                && let Owner::Aligned(map) = &*owner
            {
                body(map, start - shown.start..end - shown.start, start);
            }
        }
    }

    /// Believes that so many pages are absent, unless it is none and may have been said for want of a right.
    fn believed(&self, num_absent: usize) -> Option<usize> {
        if num_absent > 0 {
            self.has_told.store(true, Ordering::Relaxed);
        }
        self.has_told.load(Ordering::Relaxed).then_some(num_absent)
    }
}

impl FileBytes {
    /// Remembers that these bytes are at the start of another map as well, so that what is said of them, and asked, is of
    /// both.
    pub(super) fn note_second_map(&self, other: &Self) {
        if let Owner::Mapped(_, Some(file)) = &*self.owner {
            let mut second = file.second.lock().unwrap_or_else(PoisonError::into_inner);
            second.retain(|(_, owner)| owner.strong_count() > 0);
            second.push((self.range.clone(), Arc::downgrade(&other.owner)));
        }
    }

    /// Asks the system to read the pages of `part` from the file, and does not wait for them; what is not inside is left
    /// out.
    ///
    /// Cost: a call for each 128 KB, which takes the longer the more of them are not in memory.
    pub fn read_ahead(&self, part: Range<usize>) {
        let end = part.end.min(self.len());
        let mut start = part.start;
        while start < end {
            let next = (start + READ_BYTES).min(end);
            self.advise_part(start..next, super::Advice::WillNeed);
            start = next;
        }
    }

    /// How many bytes the system reads ahead by itself of whoever reads the file in order; `None` where it does not say.
    ///
    /// Cost: the first time, a look at what the system says of the disk.
    pub fn system_window(&self) -> Option<usize> {
        let Owner::Mapped(_, Some(file)) = &*self.owner else { return None };
        *file.window.get_or_init(|| window_of(&file.file))
    }

    /// How many pages of `part` are not in memory; `None` where the system does not say.
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

    /// How many pages of `part` this process has read through its maps, or neighbours of them, and could read again without
    /// a look at the system's cache; `None` where the system does not say.
    ///
    /// Cost: a call, and some nanoseconds a page.
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

    /// Tells the system that the pages that lie wholly in `part` are of no use for now, so that it takes their memory
    /// rather than other memory. Whoever reads them has them read again.
    pub fn release(&self, part: Range<usize>) {
        let Owner::Mapped(map, file) = &*self.owner else { return };
        let page = page_bytes();
        let start = (self.range.start + part.start.min(self.len())).next_multiple_of(page);
        let end = (self.range.start + part.end.min(self.len())) / page * page;
        if start >= end {
            return;
        }
        // SAFETY: the pages are part of a read-only map of a file that is alive here; without them in the page table,
        // the next access finds the same bytes of the file again.
        unsafe { libc::madvise(map.as_ptr().add(start) as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
        // The system keeps a page that anybody has in a page table.
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

/// How often this thread has given up its processor to wait, as for a page that is being read; `None` where the system
/// does not say.
///
/// Cost: a call.
#[cfg(target_os = "linux")]
pub fn num_waits() -> Option<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for what the call writes, and outlives it.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: of zeros, which all its fields may be, or what the call wrote.
    let usage = unsafe { usage.assume_init() };
    (result == 0).then_some(usage.ru_nvcsw as u64)
}

/// As above.
#[cfg(not(target_os = "linux"))]
pub fn num_waits() -> Option<u64> {
    None
}

/// What the disk under a file is set to have read ahead: of a partition its disk, and of what is no disk the like.
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

/// How many pages of a part of a map, which begins a page, are not in memory; `None` where the system does not say.
fn num_missing_in_map(bytes: &[u8], file: Option<&OpenFile>) -> Option<usize> {
    let num_absent = num_absent_pages(bytes)?;
    file.map_or((num_absent > 0).then_some(num_absent), |file| file.believed(num_absent))
}

/// The bytes of a page of memory.
fn page_bytes() -> usize {
    // SAFETY: asks for a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096).max(1)
}

/// The pages of a part of a file that the system holds; `None` where it does not say, as before Linux 6.5, or of a file
/// that the caller may not write.
#[cfg(target_os = "linux")]
fn num_cached_pages(file: &std::fs::File, offset: u64, len: u64) -> Option<usize> {
    use std::os::fd::AsRawFd;

    /// The number of the call, the same on all architectures.
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
        // Of one file it may be refused for want of a right, of all only where the system does not know it.
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

/// The pages of `bytes`, which begin a page of a map, that are not in memory, as `mincore` says.
#[cfg(target_os = "linux")]
fn num_absent_pages(bytes: &[u8]) -> Option<usize> {
    let mut is_present = vec![0_u8; bytes.len().div_ceil(page_bytes())];
    // SAFETY: the range is mapped for as long as `bytes` is borrowed, and the call writes one byte for each page of it.
    let result = unsafe { libc::mincore(bytes.as_ptr() as *mut libc::c_void, bytes.len(), is_present.as_mut_ptr()) };
    (result == 0).then(|| is_present.iter().filter(|&&present| present & 1 == 0).count())
}

#[cfg(not(target_os = "linux"))]
fn num_absent_pages(_bytes: &[u8]) -> Option<usize> {
    None
}

/// Which pages of `bytes`, which begin a page of a map, are in the page table of this process: proc_pid_pagemap(5).
#[cfg(target_os = "linux")]
fn present_pages(bytes: &[u8]) -> Option<Vec<bool>> {
    use std::os::unix::fs::FileExt;

    /// The bit of an entry that says that the page is there.
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
    use super::*;

    /// A file of some megabytes on the disk of the build, with its path, or `None` where the system does not say what
    /// is in memory of it, or keeps all.
    fn file_on_disk(name: &str) -> Option<(std::path::PathBuf, Vec<u8>, FileBytes)> {
        let path = std::env::current_exe().unwrap().with_file_name(format!("{name}-{}", std::process::id()));
        let content: Vec<u8> = (0..4 * MIN_FILE_BYTES).map(|i| (i / 4096) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        let bytes = FileBytes::map(&file).unwrap();
        bytes.release(0..bytes.len());
        if bytes.num_missing_pages(0..bytes.len()).is_none_or(|pages| pages == 0) {
            println!("skipped: the system keeps the pages of {}, or does not say", path.display());
            std::fs::remove_file(&path).unwrap();
            return None;
        }
        Some((path, content, bytes))
    }

    /// Releases a part until so many pages of it are not in memory: somebody else may hold one for a moment.
    fn release_until(part: &FileBytes, num_missing: usize) {
        let start = std::time::Instant::now();
        loop {
            part.release(0..part.len());
            let found = part.num_missing_pages(0..part.len()).unwrap();
            if found >= num_missing {
                return;
            }
            assert!(start.elapsed().as_secs() < 60, "{found} pages of {num_missing} are released");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn what_is_released_is_read_again() {
        let Some((path, content, bytes)) = file_on_disk("released") else { return };
        let part = bytes.slice(5000..2 * MIN_FILE_BYTES as u64).unwrap();
        let (whole, num_pages) = (0..part.len(), part.len() / page_bytes());
        assert!(part.num_missing_pages(whole.clone()).unwrap() >= num_pages, "none was read yet");
        part.read_ahead(7..usize::MAX);
        let start = std::time::Instant::now();
        while part.num_missing_pages(whole.clone()) != Some(0) {
            assert!(start.elapsed().as_secs() < 60, "it is not read ahead");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(part.num_touched_pages(whole.clone()).is_none_or(|pages| pages == 0));
        assert_eq!(part.as_slice(), &content[5000..2 * MIN_FILE_BYTES]);
        assert!(part.num_touched_pages(whole.clone()).is_none_or(|pages| pages >= num_pages));
        // All but what others lie on as well.
        release_until(&part, num_pages - 2);
        assert!(part.num_touched_pages(9_000..part.len() - 9_000).is_none_or(|pages| pages == 0));
        assert_eq!(part.num_missing_pages(9..9), Some(0));
        assert_eq!(part.system_window(), bytes.system_window(), "it is the disk's");
        assert!(part.system_window().is_none_or(|window| window.is_multiple_of(1024)));
        std::fs::remove_file(&path).unwrap();
    }

    /// Lists of a graph with levels are read so.
    #[test]
    fn what_is_read_through_a_second_map_is_released_too() {
        let Some((path, content, bytes)) = file_on_disk("second") else { return };
        let slice = bytes.typed::<u32>(2 * page_bytes() as u64, MIN_FILE_BYTES as u64 / 2).unwrap();
        let part = slice.bytes();
        let (whole, num_pages) = (0..part.len(), part.len() / page_bytes());
        let room = slice.len() + 1024..slice.len() + 2048;
        let (extended, _annex) = slice.extended(room.clone()).unwrap();
        part.advise(super::super::Advice::Random);
        let start = 2 * page_bytes();
        assert_eq!(bytemuck::cast_slice::<_, u8>(&extended[..slice.len()]), &content[start..start + part.len()]);
        assert!(part.num_touched_pages(whole.clone()).is_none_or(|pages| pages == num_pages));
        assert_eq!(part.num_missing_pages(whole.clone()), Some(0));
        release_until(part, num_pages);
        assert!(part.num_touched_pages(whole.clone()).is_none_or(|pages| pages == 0));
        // Nothing is read around what is read now.
        assert_eq!(bytemuck::cast_slice::<_, u8>(&extended[..1]), &content[start..start + 4]);
        assert_eq!(part.num_missing_pages(whole.clone()), Some(num_pages - 1));
        assert!(part.num_touched_pages(whole).is_none_or(|pages| pages == 1));
        drop(extended);
        std::fs::remove_file(&path).unwrap();
    }

    /// As on a system that does not count the pages that it has of a file.
    #[test]
    fn what_is_in_memory_of_a_map_is_told_without_a_count() {
        let Some((path, content, bytes)) = file_on_disk("map") else { return };
        let Owner::Mapped(map, Some(file)) = &*bytes.owner else { panic!("a large file is mapped, and kept open") };
        let missing = |part: Range<usize>| num_missing_in_map(&map[part], Some(file));
        let (page, num_pages) = (page_bytes(), bytes.len() / page_bytes());
        bytes.advise(super::super::Advice::Random);
        release_until(&bytes, num_pages);
        assert_eq!(missing(0..bytes.len()), Some(num_pages));
        // Nothing is read around what is read.
        let (first, last) = (3 * page, 5 * page);
        assert_eq!([bytes.as_slice()[first], bytes.as_slice()[last]], [content[first], content[last]]);
        assert_eq!(missing(0..bytes.len()), Some(num_pages - 2));
        assert_eq!([first, 4 * page, last].map(|at| missing(at..at + 1)), [Some(0), Some(1), Some(0)]);
        assert_eq!(missing(first..last + page), Some(1));
        assert_eq!(missing(0..bytes.len()), bytes.num_missing_pages(0..bytes.len()), "both ways say the same");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn that_nothing_is_absent_is_believed_of_who_has_told_otherwise() {
        let path = std::env::temp_dir().join(format!("anden-absent-{}", std::process::id()));
        std::fs::write(&path, [1]).unwrap();
        let file = OpenFile::of(&std::fs::File::open(&path).unwrap()).unwrap();
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
