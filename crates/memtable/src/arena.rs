//! Memory of nodes: one range of addresses, in lines of 64 bytes with 32-bit handles.
//!
//! The whole range is reserved at once and takes memory only where it is written. Nodes never move, and a handle
//! becomes an address by one addition. A node is written once, through the [`Fresh`] that [`WorkerFreeLists`] returns,
//! and never after it is [sealed](Fresh::seal) into a handle. So any number of readers may hold plain slices of nodes
//! while the writer makes new ones.
//!
//! Protocol, which the rest of the crate keeps:
//! 1. A handle is stored in sealed nodes and in roots only.
//! 2. The lines of a node go back to [`WorkerFreeLists`] only when no version that a reader holds, or will hold, leads
//!    to it. `limbo_list` decides this.
//! 3. A node is read only through a version that leads to it, or by the writer.
//!
//! The lines at the front are never handed out and stay zero. So handle 0 is an empty node of every kind: an empty
//! page, or a directory of empty pages.

mod newest;
mod slots;

pub(crate) use newest::{Limit, Newest};
pub(crate) use slots::{FreeLists, WorkerFreeLists, slot_lines};

use std::io;

use memmap2::{Advice, MmapMut, MmapOptions};

use crate::sync::{self, AtomicU64};
use crate::{Error, Result};

/// Number of 32-bit words in a line, the unit of handles.
pub(crate) const LINE_WORDS: usize = 16;

/// Maximum number of lines in a node.
pub(crate) const MAX_LINES: usize = 256;

/// First line of a node; 0 is the node of zeros.
pub(crate) type Handle = u32;

/// The node of zeros.
pub(crate) const NOTHING: Handle = 0;

/// Maximum reservation in lines: 256 GB, the reach of a handle.
const MOST_LINES: usize = 1 << 32;
/// Minimum reservation in lines where the system limits addresses: 16 MB.
const LEAST_LINES: usize = 1 << 18;
/// Where the system limits addresses, the lines take one part in this many of those that are left. An immutable
/// memtable, pinned versions, views and files need addresses too.
const ADDRESS_SHARE: u64 = 10;
/// The tables of newest pages have an entry per this many lines, or as many as the caller asks for if these are more.
/// At the maximum this gives 2^32 vertices, four a page.
const LINES_OF_ENTRY: usize = 4;

/// The first bytes stay on small pages, so that small graphs stay small. The rest is on huge pages, because changes
/// find blocks and leaves at random places.
const SMALL_BYTES: usize = 8 << 20;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct ArenaLine([u32; LINE_WORDS]);

/// The reserved range.
pub(crate) struct NodeArena {
    /// Owns the range. All accesses go through `lines`.
    _map: MmapMut,
    lines: *mut ArenaLine,
    num_lines: usize,
}

// SAFETY: the pointer leads to memory that the arena owns, and threads share it by the protocol above. Until a line is
// sealed, only the owner of its `Fresh` writes it; it is read only after that.
unsafe impl Send for NodeArena {}
// SAFETY: as for `Send`.
unsafe impl Sync for NodeArena {}

/// Lines of a node that is being made. A range of lines has at most one, and no other thread reads them yet.
#[derive(Debug)]
pub(crate) struct Fresh {
    handle: Handle,
    num_lines: u32,
}

impl Fresh {
    /// Ends the writing of a node. A sealed node never changes.
    #[inline]
    pub(crate) fn seal(self) -> Handle {
        self.handle
    }
}

impl NodeArena {
    /// Reserves addresses for nodes, and for the tables of newest pages with at least `num_pages` entries. Takes no
    /// memory yet. Where the system limits addresses, this takes a share of those that are left.
    ///
    /// # Errors
    /// The system refuses even the minimum: about 20 MB, and 64 bytes for each of many pages.
    pub(crate) fn reserve<const N: usize>(num_pages: usize) -> Result<(Self, [Newest; N])> {
        Self::reserve_within(num_pages, anden_base::memory::addresses_left())
    }

    /// As [`reserve`](Self::reserve), with this many bytes of addresses left; `None`: no limit is known.
    fn reserve_within<const N: usize>(num_pages: usize, left: Option<u64>) -> Result<(Self, [Newest; N])> {
        let most_lines = lines_within(left);
        let mut num_lines = most_lines;
        let refused = || Error::Addresses { needed: least_bytes(N, num_pages), left };
        loop {
            match Self::of_lines(num_lines, num_pages) {
                Ok(all) if num_lines == most_lines || num_lines <= LEAST_LINES => return Ok(all),
                // A smaller grant shows a limit that the system does not tell, as strict overcommit. The probe is
                // released first, because it may hold most of the limit.
                Ok(all) => {
                    drop(all);
                    num_lines = (num_lines / 4).max(LEAST_LINES);
                    return Self::of_lines(num_lines, num_pages).map_err(|_| refused());
                }
                Err(_) if num_lines <= LEAST_LINES => return Err(refused()),
                Err(_) => num_lines = (num_lines / 2).max(LEAST_LINES),
            }
        }
    }

    fn of_lines<const N: usize>(num_lines: usize, num_pages: usize) -> io::Result<(Self, [Newest; N])> {
        let mut map = reserved(num_lines * size_of::<ArenaLine>())?;
        let arena = Self { lines: map.as_mut_ptr().cast(), _map: map, num_lines };
        // Nodes and tables are reserved in one attempt, so a limit on addresses counts for both.
        let num_entries = num_entries(num_lines, num_pages);
        let tables: Vec<_> = (0..N).map(|_| Newest::of_len(num_entries)).collect::<io::Result<_>>()?;
        Ok((arena, tables.try_into().expect("there are as many as were asked for")))
    }

    /// Number of lines.
    pub(crate) fn num_lines(&self) -> usize {
        self.num_lines
    }

    /// The first `num_words` words of a sealed node.
    #[inline(always)]
    pub(crate) fn words(&self, handle: Handle, num_words: usize) -> &[u32] {
        // The last `MAX_LINES` lines are never handed out, so this covers nodes of any length.
        assert!(handle as usize + MAX_LINES <= self.num_lines && num_words <= MAX_LINES * LINE_WORDS);
        // SAFETY: the range is mapped, as just asserted, and every bit pattern is a word. The node is sealed, so it
        // is not written (`fill` needs its `Fresh`, which `seal` took) until its lines go back to `WorkerFreeLists`. By
        // the protocol that is after the last borrow of the version it is read through.
        unsafe { std::slice::from_raw_parts(self.lines.add(handle as usize).cast::<u32>(), num_words) }
    }

    /// All words of a node that is being made, with the content of the node before.
    #[inline(always)]
    pub(crate) fn fill<'a>(&'a self, fresh: &'a mut Fresh) -> &'a mut [u32] {
        assert!(fresh.handle as usize + fresh.num_lines as usize <= self.num_lines);
        let num_words = fresh.num_lines as usize * LINE_WORDS;
        // SAFETY: the range is mapped while the arena is borrowed, these lines lie within it, as just asserted, and
        // every bit pattern is a word. `WorkerFreeLists::take` makes only one `Fresh` for a line until the line
        // comes back. The `Fresh` is borrowed exclusively, and by the protocol no thread reads a node before `seal`
        // took it.
        unsafe { std::slice::from_raw_parts_mut(self.lines.add(fresh.handle as usize).cast::<u32>(), num_words) }
    }

    /// Prefetches line `line` of a node. Any handle is allowed.
    #[inline(always)]
    pub(crate) fn prefetch(&self, handle: Handle, line: usize) {
        // SAFETY: an empty slice may start at any aligned address that is not null, and the hint uses the address
        // only.
        let start: &[ArenaLine] = unsafe { std::slice::from_raw_parts(self.lines, 0) };
        anden_base::simd::prefetch(start, handle as usize + line);
    }
}

impl std::fmt::Debug for NodeArena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("num_lines", &self.num_lines).finish()
    }
}

/// Number of lines to reserve with this many bytes of addresses left.
fn lines_within(left: Option<u64>) -> usize {
    // Miri takes memory for all lines at once.
    if cfg!(miri) {
        return LEAST_LINES;
    }
    let Some(left) = left else { return MOST_LINES };
    let num_lines = left / ADDRESS_SHARE / size_of::<ArenaLine>() as u64;
    num_lines.clamp(LEAST_LINES as u64, MOST_LINES as u64) as usize
}

/// Bytes of nodes for which a memtable would reserve addresses now; at most 256 GB. The tables of newest pages come on
/// top.
pub fn reservable_bytes() -> u64 {
    (lines_within(anden_base::memory::addresses_left()) * size_of::<ArenaLine>()) as u64
}

/// Number of entries in each table of newest pages.
fn num_entries(num_lines: usize, num_pages: usize) -> usize {
    (num_lines / LINES_OF_ENTRY).max(num_pages)
}

/// The least addresses, in bytes, of an arena with tables.
fn least_bytes(num_tables: usize, num_pages: usize) -> u64 {
    let table_bytes = num_entries(LEAST_LINES, num_pages) * Newest::ENTRY_BYTES;
    (LEAST_LINES * size_of::<ArenaLine>() + num_tables * table_bytes) as u64
}

/// Maps zeroed addresses that take memory where they are written: small pages first, then huge pages.
fn reserved(num_bytes: usize) -> io::Result<MmapMut> {
    let mut options = MmapOptions::new();
    options.len(num_bytes);
    // Miri knows neither of the two hints.
    if cfg!(miri) {
        return options.map_anon();
    }
    let map = options.no_reserve_swap().map_anon()?;
    if num_bytes > SMALL_BYTES {
        // Only a hint: without huge pages, address translation takes longer.
        let _ = map.advise_range(Advice::HugePage, SMALL_BYTES, num_bytes - SMALL_BYTES);
    }
    Ok(map)
}

/// Shared atomic numbers, initially zero, which take memory where they are written.
pub(crate) struct Zeros {
    /// Owns the range. All accesses go through `words`.
    _map: MmapMut,
    words: *const AtomicU64,
    len: usize,
}

// SAFETY: the pointer leads to memory that the range owns and that is used as atomic numbers only.
unsafe impl Send for Zeros {}
// SAFETY: as for `Send`.
unsafe impl Sync for Zeros {}

impl Zeros {
    fn of_len(len: usize) -> io::Result<Self> {
        let mut map = reserved(len * size_of::<AtomicU64>())?;
        let words = map.as_mut_ptr().cast::<AtomicU64>().cast_const();
        Ok(Self { _map: map, words, len })
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: `len` words are mapped while `self` lives, from the start of a memory page on. Every bit pattern is
        // a number, and all accesses are atomic.
        unsafe { std::slice::from_raw_parts(self.words, self.len) }
    }
}

impl std::fmt::Debug for Zeros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Zeros").field("len", &self.len).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group that the table does not identify.
    const UNKNOWN: u64 = Newest::LAST + 2;

    fn table() -> Newest {
        let (_, [newest]) = NodeArena::reserve(0).unwrap();
        newest
    }

    #[test]
    fn pages_are_known_to_versions_that_are_no_older() {
        let newest = table();
        assert_eq!(newest.page(5, Limit::of(0)), Some(0), "there is nothing at first");
        newest.set(5, 77, 3);
        let page = |epoch| newest.page(5, Limit::of(epoch));
        assert_eq!([page(2), page(3), page(u64::MAX)], [None, Some(77), Some(77)]);
        let page_before = |epoch| newest.page_before(5, Limit::of(epoch));
        assert_eq!(page_before(2), Some(0), "before it there was nothing");
        newest.set(5, 0, 4);
        assert_eq!([page(3), page(4)], [None, Some(0)]);
        assert_eq!([page_before(2), page_before(3)], [None, Some(77)]);
        newest.set(5, 78, 4);
        assert_eq!(
            (page(4), page_before(3)),
            (Some(78), Some(77)),
            "no reader saw the pages that a group replaces of its own"
        );
    }

    #[test]
    fn after_four_billion_groups_nothing_is_known() {
        let newest = table();
        newest.set(1, 8, 7);
        for group in [UNKNOWN, UNKNOWN + 5, 1 << 40] {
            newest.set(1, 9, group);
            for limit in [0, 7, group, u64::MAX].map(Limit::of) {
                assert_eq!((newest.page(1, limit), newest.page_before(1, limit)), (None, None));
            }
            assert_eq!(newest.page(1, Limit::NONE), Some(9));
        }
        newest.set(2, 9, UNKNOWN - 1);
        assert_eq!(newest.page(2, Limit::of(1 << 40)), Some(9));
    }

    #[test]
    fn limited_addresses_are_reserved_in_part() {
        let lines = |left: u64| NodeArena::reserve_within::<0>(0, Some(left)).unwrap().0.num_lines();
        assert_eq!(lines(0), LEAST_LINES);
        assert_eq!(lines(640 << 20), 1 << 20);
        assert_eq!(lines_within(Some(u64::MAX)), MOST_LINES);
        // The tables serve the pages that exist, however few nodes fit.
        let entries = |num_pages| NodeArena::reserve_within::<1>(num_pages, Some(0)).unwrap().1[0].len();
        assert_eq!((entries(7), entries(LEAST_LINES + 1)), (LEAST_LINES / LINES_OF_ENTRY, LEAST_LINES + 1));
    }

    #[test]
    fn refused_reservation_names_need_and_limit() {
        // More pages than a process has addresses for.
        let refused = NodeArena::reserve_within::<4>(1 << 43, Some(3 << 20)).map(drop).unwrap_err().to_string();
        assert!(refused.contains("needs at least 512.1 TiB of addresses"), "{refused}");
        assert!(refused.contains("3.0 MiB") && refused.contains("ulimit -v"), "{refused}");
        assert_eq!(least_bytes(4, 0), (16 << 20) + (4 << 20));
    }

    #[test]
    fn nodes_are_what_was_written() {
        let (arena, []) = NodeArena::reserve(0).unwrap();
        let free_lists = FreeLists::new(&arena);
        let mut slots = WorkerFreeLists::default();
        let handles: Vec<Handle> = (1..=MAX_LINES)
            .map(|lines| {
                let mut fresh = slots.take(&free_lists, lines).unwrap();
                arena.fill(&mut fresh).fill(lines as u32);
                fresh.seal()
            })
            .collect();
        for (i, &handle) in handles.iter().enumerate() {
            let words = arena.words(handle, (i + 1) * LINE_WORDS);
            assert!(words.iter().all(|&word| word as usize == i + 1));
        }
        assert!(arena.words(NOTHING, MAX_LINES * LINE_WORDS).iter().all(|&word| word == 0));
        arena.prefetch(u32::MAX, 9);
    }
}
