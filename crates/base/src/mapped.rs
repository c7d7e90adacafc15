//! Bytes of a file, mapped or in memory, and typed slices of them.
//!
//! # The contract of a mapped file
//! A map shows the *current* content of its file. Anden writes a file under a temporary name, syncs it, renames it,
//! and never writes to it again, so Anden never changes a map. Other processes can:
//! - Truncate the file: a later read ends with `SIGBUS`. Up to the end of the page in which the file now ends, reads
//!   return zeros: an [`EndMark`] tells. Small files are read to memory rather than mapped.
//! - Write to the file: reads return other bytes. Typed slices survive this, because every bit pattern of their element
//!   type is valid. Unchecked reads survive it, because targets are checked where they are used as indexes.
//!
//! An [`OverflowMap`] is the one exception; its own contract says when it may be read.

mod aligned;
mod end_mark;
mod lost;
mod overflow;
mod residency;

use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;

pub use end_mark::EndMark;
pub use lost::{fail_beyond_file_limits, say_where_pages_are_lost};
pub use overflow::{OverflowMap, overflow_alignment};
pub use residency::num_waits;

pub(crate) use overflow::memory_file;

use aligned::{AlignedMap, to_huge_pages};
use residency::MappedFile;

/// Read-only bytes of a whole file or of a part; clones share them.
#[derive(Clone)]
pub struct FileBytes {
    owner: Arc<Owner>,
    range: Range<usize>,
}

enum Owner {
    /// With the file, if it is large enough to ask which of its pages are in memory.
    Mapped(memmap2::Mmap, Option<MappedFile>),
    /// At an address that allows huge pages.
    Aligned(AlignedMap),
    /// `u64`s, so that typed slices have the alignment that they have in a map.
    Heap(Vec<u64>),
}

impl std::fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileBytes({} bytes)", self.len())
    }
}

impl FileBytes {
    /// Maps the whole file, read-only.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn map(file: &std::fs::File) -> std::io::Result<Self> {
        let len = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
        // The system refuses to map zero bytes.
        if len == 0 {
            return Ok(Self::copied(&[]));
        }
        // SAFETY: the map is read-only and private to this type, which returns it as bytes or as types valid for
        // every bit pattern; the module's contract covers outside changes.
        let map = unsafe { memmap2::Mmap::map(file)? };
        let range = 0..map.len();
        let file = if map.len() >= residency::MIN_FILE_BYTES { MappedFile::of(file) } else { None };
        Ok(Self { owner: Arc::new(Owner::Mapped(map, file)), range })
    }

    /// Maps the whole of a file in memory, read-only. Moves it to huge pages, for all its maps, if the system grants
    /// them.
    ///
    /// Cost: copies all bytes that are not on huge pages yet, 2 MB at a time.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub(crate) fn map_memory(file: &std::fs::File) -> std::io::Result<Self> {
        let len = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
        if len < crate::memory::HUGE_PAGE_BYTES {
            return Self::map(file);
        }
        let map = AlignedMap::new(file, len, 0)?;
        to_huge_pages(&map);
        Ok(Self { owner: Arc::new(Owner::Aligned(map)), range: 0..len })
    }

    /// Copies `bytes` to memory, aligned to eight bytes, and on huge pages if the system grants them.
    pub fn copied(bytes: &[u8]) -> Self {
        let mut words = crate::memory::zeroed_huge(bytes.len().div_ceil(8));
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self { owner: Arc::new(Owner::Heap(words)), range: 0..bytes.len() }
    }

    /// The first `num_bytes` bytes of `words`, without a copy, or `None` if `words` are too few.
    pub fn owned(words: Vec<u64>, num_bytes: usize) -> Option<Self> {
        (num_bytes <= size_of_val(&*words)).then(|| Self { owner: Arc::new(Owner::Heap(words)), range: 0..num_bytes })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        let all: &[u8] = match &*self.owner {
            Owner::Mapped(map, _) => map,
            Owner::Aligned(map) => map,
            Owner::Heap(words) => bytemuck::cast_slice(words),
        };
        &all[self.range.clone()]
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// A part of the bytes, or `None` if the range exceeds them.
    pub fn slice(&self, range: Range<u64>) -> Option<Self> {
        let start = usize::try_from(range.start).ok()?;
        let end = usize::try_from(range.end).ok()?;
        if start > end || end > self.len() {
            return None;
        }
        let base = self.range.start;
        Some(Self { owner: Arc::clone(&self.owner), range: base + start..base + end })
    }

    /// `count` values of `T` from byte `offset` on, or `None` if they exceed the bytes or are not aligned.
    pub fn typed<T: Pod>(&self, offset: u64, count: u64) -> Option<MappedSlice<T>> {
        let num_bytes = count.checked_mul(size_of::<T>() as u64)?;
        let part = self.slice(offset..offset.checked_add(num_bytes)?)?;
        MappedSlice::new(part)
    }

    /// Hints how the whole of the bytes will be read. Failures are ignored.
    pub fn advise(&self, advice: Advice) {
        self.advise_part(0..self.len(), advice);
    }

    /// As [`advise`](Self::advise), for the pages of `part`. Bytes outside are ignored, and bytes in memory need no
    /// hint.
    pub fn advise_part(&self, part: Range<usize>, advice: Advice) {
        let (start, end) = (part.start.min(self.len()), part.end.min(self.len()));
        if start >= end {
            return;
        }
        if let Owner::Mapped(map, file) = &*self.owner {
            let (advice, of_map) = match advice {
                Advice::Normal => (memmap2::Advice::Normal, Some(libc::MADV_NORMAL)),
                Advice::Random => (memmap2::Advice::Random, Some(libc::MADV_RANDOM)),
                Advice::Sequential => (memmap2::Advice::Sequential, Some(libc::MADV_SEQUENTIAL)),
                Advice::WillNeed => (memmap2::Advice::WillNeed, None),
                Advice::Populate => (memmap2::Advice::PopulateRead, None),
            };
            // Ignored: a refused hint costs time only.
            let _ = map.advise_range(advice, self.range.start + start, end - start);
            // Pages once read serve all maps of the file, but each map has its own access pattern.
            if let (Some(file), Some(advice)) = (file, of_map) {
                let part = self.range.start + start..self.range.start + end;
                file.for_each_second(part, |map, part, _| map.advise(part, advice));
            }
        }
    }
}

/// How mapped bytes will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// In an unknown order.
    Normal,
    /// In random order: no read-ahead.
    Random,
    /// From start to end: much read-ahead.
    Sequential,
    /// Soon: start reading.
    WillNeed,
    /// Now: read all pages and fill the page tables.
    Populate,
}

/// A slice of plain values in a file. Clones share the bytes.
pub struct MappedSlice<T> {
    start: *const T,
    len: usize,
    bytes: FileBytes,
    marker: PhantomData<T>,
}

// SAFETY: `start` points into `bytes`, which are read-only, owned by an `Arc` and themselves `Send + Sync`; `T: Pod`
// has neither drop glue nor interior mutability.
unsafe impl<T: Pod + Send> Send for MappedSlice<T> {}
// SAFETY: as for `Send`: shared access only ever reads.
unsafe impl<T: Pod + Sync> Sync for MappedSlice<T> {}

impl<T: Pod> MappedSlice<T> {
    /// All of `bytes` as values of `T`, or `None` if length or alignment do not fit.
    pub fn new(bytes: FileBytes) -> Option<Self> {
        let values: &[T] = bytemuck::try_cast_slice(bytes.as_slice()).ok()?;
        let (start, len) = (values.as_ptr(), values.len());
        Some(Self { start, len, bytes, marker: PhantomData })
    }

    /// An empty slice.
    pub fn empty() -> Self {
        Self::copied(&[])
    }

    /// Copies the values to memory, outside any file.
    pub fn copied(values: &[T]) -> Self {
        const { assert!(align_of::<T>() <= 8) };
        let bytes = FileBytes::copied(bytemuck::cast_slice(values));
        Self::new(bytes).expect("a copy is as long and as aligned as its source")
    }

    /// The bytes behind the values.
    pub fn bytes(&self) -> &FileBytes {
        &self.bytes
    }
}

impl<T> Deref for MappedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` took pointer and length from a checked cast of `bytes`, which this value keeps alive and no
        // code writes.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<T> Clone for MappedSlice<T> {
    fn clone(&self) -> Self {
        Self { start: self.start, len: self.len, bytes: self.bytes.clone(), marker: PhantomData }
    }
}

impl<T> std::fmt::Debug for MappedSlice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MappedSlice({} values)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_outside_the_file_is_refused() {
        let bytes = FileBytes::copied(&[1, 0, 0, 0, 2, 0, 0, 0, 3]);
        assert_eq!(&*bytes.typed::<u32>(0, 2).unwrap(), &[1, 2]);
        assert_eq!(&*bytes.typed::<u32>(4, 1).unwrap(), &[2]);
        assert!(bytes.typed::<u32>(4, 2).is_none());
        assert!(bytes.typed::<u32>(2, 1).is_none());
        assert!(bytes.typed::<u64>(0, u64::MAX).is_none());
        assert!(bytes.typed::<u32>(u64::MAX, 1).is_none());
        let owned = FileBytes::owned(vec![1, 2], 12).unwrap();
        assert_eq!(&*owned.typed::<u32>(0, 3).unwrap(), &[1, 0, 2]);
        assert!(FileBytes::owned(vec![1, 2], 17).is_none());
        let (start, end) = (5, 4);
        assert!(bytes.slice(start..end).is_none());
    }

    #[test]
    fn a_map_shows_the_file() {
        let dir = std::env::temp_dir().join(format!("anden-map-{}", std::process::id()));
        std::fs::write(&dir, [7_u8; 16]).unwrap();
        let bytes = FileBytes::map(&std::fs::File::open(&dir).unwrap()).unwrap();
        std::fs::remove_file(&dir).unwrap();
        assert_eq!(bytes.typed::<u64>(8, 1).unwrap()[0], 0x0707_0707_0707_0707);
        bytes.advise(Advice::Populate);
        bytes.advise_part(3..usize::MAX, Advice::WillNeed);
        let (start, end) = (9, 4);
        bytes.advise_part(start..end, Advice::WillNeed);
        assert_eq!(bytes.as_slice(), [7; 16]);
    }
}
