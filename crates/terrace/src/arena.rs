//! Memory for nodes: one range of addresses, cut in lines of 64 bytes that 32-bit handles count.
//!
//! The range is reserved at once and takes memory only where it is written, so a node never moves and
//! a handle becomes an address by one addition. A node is written once, through the [`Fresh`] that
//! [`Slots`] hands out, and never after it was [sealed](Fresh::seal) into a handle. That is what lets
//! any number of readers hold plain slices of it while the writer makes new nodes beside it.
//!
//! Protocol, which the rest of the crate keeps:
//! 1. a handle is kept in sealed nodes and in roots only;
//! 2. the lines of a node go back to [`Slots`] only when no version that a reader holds, or will
//!    hold, leads to it (`graveyard` decides this);
//! 3. whoever reads a node does so through a version that leads to it, or is the writer.
//!
//! The lines at the front are never handed out and stay zero, so handle 0 reads as a node without
//! content of whatever kind: an empty page, or a directory of empty pages.

mod newest;
mod slots;

pub(crate) use newest::{Limit, Newest};
pub(crate) use slots::{Slots, Stock, slot_lines};

use std::io;

use memmap2::{Advice, MmapMut, MmapOptions};

use crate::sync::{self, AtomicU64};
use crate::{Error, Result};

/// The 32-bit words of a line, the unit of handles.
pub(crate) const LINE_WORDS: usize = 16;

/// The most lines of a node.
pub(crate) const MAX_LINES: usize = 256;

/// A node, by its first line; 0 reads as zeros.
pub(crate) type Handle = u32;

/// The node of zeros.
pub(crate) const NOTHING: Handle = 0;

/// The most that is reserved, in lines: 256 GB, as far as handles reach.
const MOST_LINES: usize = 1 << 32;
/// The least, where the system limits addresses: 128 MB.
const LEAST_LINES: usize = 1 << 21;
/// For so many lines the tables that go with them have an entry: the most are enough for 2^32 vertices with four on a
/// page.
const LINES_OF_ENTRY: usize = 4;

/// The first bytes are on small pages, so that small graphs stay small; the rest on huge ones, since a
/// change finds its block and its leaf at random places.
const SMALL_BYTES: usize = 8 << 20;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u32; LINE_WORDS]);

/// The range of addresses.
pub(crate) struct Arena {
    /// Owns the range; nobody reads through it.
    _map: MmapMut,
    lines: *mut Line,
    num_lines: usize,
}

// SAFETY: the pointer leads to memory that the arena owns, and threads share it by the protocol above:
// a line is written by the one owner of its `Fresh` until it is sealed, and read only after that.
unsafe impl Send for Arena {}
// SAFETY: as for `Send`.
unsafe impl Sync for Arena {}

/// Lines of a node that is being made. There is one for each range of lines, and nobody reads them yet.
#[derive(Debug)]
pub(crate) struct Fresh {
    handle: Handle,
    num_lines: u32,
}

impl Fresh {
    /// The node is finished: it is never written again.
    #[inline]
    pub(crate) fn seal(self) -> Handle {
        self.handle
    }
}

impl Arena {
    /// Reserves addresses for nodes, and for tables of their pages; takes no memory yet. Where the system limits
    /// addresses, a quarter of what it grants: the next live graph, views and files need some as well.
    ///
    /// # Errors
    /// The system grants not even some 200 MB of addresses.
    pub(crate) fn reserve<const N: usize>() -> Result<(Self, [Newest; N])> {
        let mut num_lines = MOST_LINES;
        loop {
            match Self::of_lines(num_lines) {
                Ok(all) if num_lines == MOST_LINES || num_lines <= LEAST_LINES => return Ok(all),
                Ok(all) => {
                    drop(all);
                    return Self::of_lines((num_lines / 4).max(LEAST_LINES)).map_err(Error::reserve);
                }
                Err(error) if num_lines <= LEAST_LINES => return Err(Error::reserve(error)),
                Err(_) => num_lines /= 2,
            }
        }
    }

    fn of_lines<const N: usize>(num_lines: usize) -> io::Result<(Self, [Newest; N])> {
        let mut map = reserved(num_lines * size_of::<Line>())?;
        let arena = Self { lines: map.as_mut_ptr().cast(), _map: map, num_lines };
        let tables: Vec<_> = (0..N).map(|_| Newest::of_len(num_lines / LINES_OF_ENTRY)).collect::<io::Result<_>>()?;
        Ok((arena, tables.try_into().expect("there are as many as were asked for")))
    }

    /// The lines there are.
    pub(crate) fn num_lines(&self) -> usize {
        self.num_lines
    }

    /// The first `num_words` of a sealed node.
    #[inline(always)]
    pub(crate) fn words(&self, handle: Handle, num_words: usize) -> &[u32] {
        assert!(handle as usize + MAX_LINES <= self.num_lines && num_words <= MAX_LINES * LINE_WORDS);
        // SAFETY: the range is mapped, as just asserted, and every bit pattern is a word. The node is
        // sealed, so nobody writes it (`fill` needs its `Fresh`, which `seal` took) until its lines go
        // back to `Slots`, which by the protocol is after the last borrow of the version it is read
        // through.
        unsafe { std::slice::from_raw_parts(self.lines.add(handle as usize).cast::<u32>(), num_words) }
    }

    /// All words of a node that is being made; they hold what was there before.
    #[inline(always)]
    pub(crate) fn fill<'a>(&'a self, fresh: &'a mut Fresh) -> &'a mut [u32] {
        assert!(fresh.handle as usize + fresh.num_lines as usize <= self.num_lines);
        let num_words = fresh.num_lines as usize * LINE_WORDS;
        // SAFETY: the range is mapped while the arena is borrowed, these lines lie within it, as just asserted, and every
        // bit pattern is a word. `Slots::take` makes one `Fresh` only for a line until the line comes back; it is
        // borrowed exclusively, and by the protocol nobody reads a node before `seal` took it.
        unsafe { std::slice::from_raw_parts_mut(self.lines.add(fresh.handle as usize).cast::<u32>(), num_words) }
    }

    /// Hints that line `line` of a node is read soon; any handle will do.
    #[inline(always)]
    pub(crate) fn prefetch(&self, handle: Handle, line: usize) {
        // SAFETY: a slice without elements may start at any aligned address but null; the hint takes no
        // more than its address.
        let start: &[Line] = unsafe { std::slice::from_raw_parts(self.lines, 0) };
        base::simd::prefetch(start, handle as usize + line);
    }
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("num_lines", &self.num_lines).finish()
    }
}

/// Addresses that take memory where they are written: small pages at first, huge ones then.
fn reserved(num_bytes: usize) -> io::Result<MmapMut> {
    let map = MmapOptions::new().len(num_bytes).no_reserve_swap().map_anon()?;
    // A hint: where it is refused, looking up addresses takes longer.
    let _ = map.advise_range(Advice::HugePage, SMALL_BYTES, num_bytes - SMALL_BYTES);
    Ok(map)
}

/// Numbers that threads share, all zero at first, which take memory where they were written.
pub(crate) struct Zeros {
    /// Owns the range; nobody reads through it.
    _map: MmapMut,
    words: *const AtomicU64,
    len: usize,
}

// SAFETY: the pointer leads to memory that the range owns, and that is used as atomic numbers only.
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
        // SAFETY: so many words are mapped for as long as `self` lives, from the start of a page of memory on; every
        // bit pattern is a number, and nobody uses them in another way.
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

    /// The group of which the table says nothing.
    const UNKNOWN: u64 = Newest::LAST + 2;

    fn table() -> Newest {
        let (_, [newest]) = Arena::reserve().unwrap();
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
        assert_eq!((page(4), page_before(3)), (Some(78), Some(77)), "what a group replaces of its own nobody saw");
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
    fn nodes_are_what_was_written() {
        let (arena, []) = Arena::reserve().unwrap();
        let stock = Stock::new(&arena);
        let mut slots = Slots::default();
        let handles: Vec<Handle> = (1..=MAX_LINES)
            .map(|lines| {
                let mut fresh = slots.take(&stock, lines).unwrap();
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
