//! Pages of a view that are rewritten as a whole, in memory behind the lists of the base (overflow arena).
//!
//! One arena serves targets, weights and rows: an entry has one index in all three. Pages that no view holds give their
//! memory back. A *short-lived* page belongs to a version that others follow soon. The arena keeps the memory of
//! dropped short-lived pages for the next ones, up to the amount that short-lived pages use. Fresh memory costs more
//! than writing to it, and memory that was moved to a huge page stays there.
//!
//! A view keeps the offsets of the pages that it read in a table of its own, at positions that follow from the vertex.
//! So a list is found and read as in a plain CSR, and no check asks whether its page was rewritten.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::mapped::{MappedSlice, OverflowMap, overflow_alignment};
use anden_graph::{Weight, Weights};
use parking_lot::Mutex;

use crate::arc_columns::ArcColumns;
use crate::changes::EntryBuffer;
use crate::page::WholePage;
use crate::table::PAGE_OFFSETS;

/// Bytes of the offsets of a page.
const OFFSET_BYTES: u64 = (PAGE_OFFSETS * size_of::<u32>()) as u64;

/// Where the system limits addresses, the arena of targets takes one part in this many of those that are left. Weights
/// and rows take up to four times as many besides, in both directions, and so does the next base.
const ADDRESS_SHARE: u64 = 64;

/// A page takes at most one part in this many of the memory of all pages.
const PAGE_SHARE: u64 = 8;

/// The lists of one direction, with an overflow arena behind them.
#[derive(Debug)]
pub(crate) struct OverflowLists {
    pub targets: MappedSlice<VertexId>,
    pub columns: ArcColumns,
    pub arena: Arc<OverflowArena>,
}

/// The overflow arena for rewritten pages.
#[derive(Debug)]
pub(crate) struct OverflowArena {
    targets: OverflowMap<VertexId>,
    weights: Option<WeightOverflow>,
    rows: Option<OverflowMap<u64>>,
    /// Space is given out in multiples of this many entries, which are whole pages of memory.
    unit: usize,
    free: Mutex<OverflowFreeSpace>,
    memory: Arc<RewriteBudget>,
}

/// The free space of an arena.
#[derive(Debug, Default)]
struct OverflowFreeSpace {
    /// Space without memory.
    fresh: Ranges,
    /// Space with the memory of dropped short-lived pages; at most as much as such pages use.
    kept: Ranges,
    /// Number of entries of the short-lived pages in use.
    num_short_lived: usize,
}

/// Ranges of entries: start and length. Adjacent ranges are joined.
#[derive(Debug, Default)]
struct Ranges {
    by_start: BTreeMap<usize, usize>,
    num_entries: usize,
}

/// Space that was given out.
struct OverflowAllocation {
    entries: Range<usize>,
    /// Whether the space has memory already.
    is_kept: bool,
}

/// The memory budget of rewritten pages, for both directions of a base.
#[derive(Debug)]
pub(crate) struct RewriteBudget {
    limit: AtomicU64,
    taken: AtomicU64,
}

/// A rewritten page; its space is freed when it is dropped.
#[derive(Debug)]
pub(crate) struct RewrittenPage {
    arena: Arc<OverflowArena>,
    entries: Range<usize>,
    is_short_lived: bool,
    offsets: Vec<u32>,
}

/// The offsets of all pages of one direction, each at the position that it would have if every page before it had
/// offsets.
#[derive(Debug)]
pub(crate) struct OffsetTable {
    overflow: OverflowMap<u32>,
    num_bytes: u64,
    memory: Arc<RewriteBudget>,
}

#[derive(Debug)]
enum WeightOverflow {
    U32(OverflowMap<u32>),
    I64(OverflowMap<i64>),
    F32(OverflowMap<f32>),
    F64(OverflowMap<f64>),
}

macro_rules! for_weights {
    ($overflow:expr, $name:ident => $body:expr) => {
        match $overflow {
            WeightOverflow::U32($name) => $body,
            WeightOverflow::I64($name) => $body,
            WeightOverflow::F32($name) => $body,
            WeightOverflow::F64($name) => $body,
        }
    };
}

impl RewriteBudget {
    /// A budget of this many bytes.
    pub fn new(num_bytes: u64) -> Arc<Self> {
        Arc::new(Self { limit: AtomicU64::new(num_bytes), taken: AtomicU64::new(0) })
    }

    /// Limit of the budget, in bytes.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit. Arenas that exist do not grow.
    pub fn set_limit(&self, num_bytes: u64) {
        self.limit.store(num_bytes, Ordering::Relaxed);
    }

    fn take(&self, num_bytes: u64) -> bool {
        let sum = |taken: u64| taken.checked_add(num_bytes).filter(|&sum| sum <= self.limit());
        // Relaxed: the budget is a number, and guards no other memory.
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }

    fn give_back(&self, num_bytes: u64) {
        self.taken.fetch_sub(num_bytes, Ordering::Relaxed);
    }
}

impl OverflowLists {
    /// These lists, with an arena as large as the limit of `memory`; `None` if the system has no space for it. Where
    /// the system limits addresses, the arena is a part of those that are left.
    ///
    /// Cost: two mappings of the file; the arena takes memory once it is used.
    pub fn new(targets: &MappedSlice<VertexId>, columns: &ArcColumns, memory: &Arc<RewriteBudget>) -> Option<Self> {
        // Aligned so that weights of eight bytes start on a memory page where weights of four bytes do.
        let unit = overflow_alignment() / size_of::<u32>();
        let addresses = anden_base::memory::addresses_left().map_or(u64::MAX, |left| left / ADDRESS_SHARE);
        let len = usize::try_from(memory.limit().min(addresses) / size_of::<VertexId>() as u64).ok()? / unit * unit;
        // Behind the last page of the file, so that the arena's pages hold no bytes of the file.
        let start = targets.len().checked_next_multiple_of(unit)?;
        let entries = start..start.checked_add(len)?;
        let (targets, target_overflow) = targets.extended(entries.clone()).ok()?;
        let (weights, weight_overflow) =
            match columns.weights.as_ref().map(|weights| extended(weights, entries.clone())) {
                None => (None, None),
                Some(extended) => extended.ok().map(|(weights, overflow)| (Some(weights), Some(overflow)))?,
            };
        let (rows, row_overflow) = match columns.rows.as_ref().map(|rows| rows.extended(entries)) {
            None => (None, None),
            Some(extended) => extended.ok().map(|(rows, overflow)| (Some(rows), Some(overflow)))?,
        };
        let mut free = OverflowFreeSpace::default();
        free.fresh.add(start..start + len);
        let free = Mutex::new(free);
        let memory = Arc::clone(memory);
        let arena = Arc::new(OverflowArena {
            targets: target_overflow,
            weights: weight_overflow,
            rows: row_overflow,
            unit,
            free,
            memory,
        });
        Some(Self { targets, columns: ArcColumns { weights, rows }, arena })
    }
}

fn extended(weights: &Weights, entries: Range<usize>) -> std::io::Result<(Weights, WeightOverflow)> {
    fn typed<W: Weight>(weights: &MappedSlice<W>, entries: Range<usize>) -> std::io::Result<(Weights, OverflowMap<W>)> {
        weights.extended(entries).map(|(weights, overflow)| (W::column(weights), overflow))
    }
    Ok(match weights {
        Weights::U32(column) => {
            typed(column, entries).map(|(column, overflow)| (column, WeightOverflow::U32(overflow)))?
        }
        Weights::I64(column) => {
            typed(column, entries).map(|(column, overflow)| (column, WeightOverflow::I64(overflow)))?
        }
        Weights::F32(column) => {
            typed(column, entries).map(|(column, overflow)| (column, WeightOverflow::F32(overflow)))?
        }
        Weights::F64(column) => {
            typed(column, entries).map(|(column, overflow)| (column, WeightOverflow::F64(overflow)))?
        }
    })
}

impl Ranges {
    /// Takes this many entries from the first range that has them.
    fn take(&mut self, len: usize) -> Option<Range<usize>> {
        let (start, found) =
            self.by_start.iter().find(|(_, found)| **found >= len).map(|(start, len)| (*start, *len))?;
        self.by_start.remove(&start);
        if found > len {
            self.by_start.insert(start + len, found - len);
        }
        self.num_entries -= len;
        Some(start..start + len)
    }

    /// Takes from the first range, at most this many entries.
    fn take_some(&mut self, most: usize) -> Option<Range<usize>> {
        let len = self.by_start.values().next().map(|len| most.min(*len))?;
        self.take(len)
    }

    fn add(&mut self, entries: Range<usize>) {
        self.num_entries += entries.len();
        let (mut start, mut end) = (entries.start, entries.end);
        if let Some((&before, &len)) = self.by_start.range(..start).next_back()
            && before + len == start
        {
            self.by_start.remove(&before);
            start = before;
        }
        if let Some(len) = self.by_start.remove(&end) {
            end += len;
        }
        self.by_start.insert(start, end - start);
    }
}

impl OverflowArena {
    /// Whether a page of this many entries is small enough to make: making it takes its memory several times.
    pub fn has_room_for(&self, num_entries: usize) -> bool {
        self.num_bytes(num_entries.max(1).next_multiple_of(self.unit)) <= self.memory.limit() / PAGE_SHARE
    }

    /// Writes a page; `None` if space or memory is short.
    pub fn store(self: &Arc<Self>, page: &WholePage, is_short_lived: bool) -> Option<RewrittenPage> {
        let EntryBuffer { targets, weights: bits, rows: numbers } = &page.entries;
        let OverflowAllocation { entries, is_kept } = self.allocate(targets.len(), is_short_lived)?;
        // From here on, dropping `stored` frees the space, also on the error paths.
        let stored = RewrittenPage { arena: Arc::clone(self), entries, is_short_lived, offsets: page.offsets.clone() };
        self.targets.write(stored.edge_base(), targets).ok()?;
        if let Some(weights) = &self.weights {
            for_weights!(weights, overflow => write_bits(overflow, stored.edge_base(), bits)).ok()?;
        }
        if let Some(rows) = &self.rows {
            rows.write(stored.edge_base(), numbers).ok()?;
        }
        // Kept memory was moved to huge pages at its first use.
        if !is_kept {
            self.targets.use_huge_pages(stored.entries.clone()).ok()?;
            if let Some(weights) = &self.weights {
                for_weights!(weights, overflow => overflow.use_huge_pages(stored.entries.clone())).ok()?;
            }
            if let Some(rows) = &self.rows {
                rows.use_huge_pages(stored.entries.clone()).ok()?;
            }
        }
        Some(stored)
    }

    fn allocate(&self, num_entries: usize, is_short_lived: bool) -> Option<OverflowAllocation> {
        // At least one unit, so that an emptied page has a place, too.
        let len = num_entries.max(1).next_multiple_of(self.unit);
        let mut free = self.free.lock();
        // Kept memory is charged to the budget already, so only the offsets are added.
        if is_short_lived && let Some(entries) = free.kept.take(len) {
            if self.memory.take(OFFSET_BYTES) {
                free.num_short_lived += len;
                return Some(OverflowAllocation { entries, is_kept: true });
            }
            // Not even the offsets fit in the budget, so the space stays kept.
            free.kept.add(entries);
        }
        // Kept memory counts against the budget, so it goes before a page is refused.
        while !self.memory.take(self.num_bytes(len) + OFFSET_BYTES) {
            let entries = free.kept.take_some(len)?;
            self.clear(entries.clone());
            free.fresh.add(entries);
        }
        // The budget suffices, but kept ranges may leave no hole of this length. Cleared, they join the holes beside.
        let entries = loop {
            if let Some(entries) = free.fresh.take(len) {
                break entries;
            }
            let Some(entries) = free.kept.take_some(len) else {
                self.memory.give_back(self.num_bytes(len) + OFFSET_BYTES);
                return None;
            };
            self.clear(entries.clone());
            free.fresh.add(entries);
        };
        if is_short_lived {
            free.num_short_lived += len;
        }
        Some(OverflowAllocation { entries, is_kept: false })
    }

    /// Frees space that [`allocate`](Self::allocate) gave out.
    fn free_again(&self, entries: Range<usize>, is_short_lived: bool) {
        self.memory.give_back(OFFSET_BYTES);
        if !is_short_lived {
            // Cleared before it is free: afterwards, another page may write there.
            self.clear(entries.clone());
            self.free.lock().fresh.add(entries);
            return;
        }
        let mut free = self.free.lock();
        free.num_short_lived -= entries.len();
        free.kept.add(entries);
        while let Some(excess) = free.kept.num_entries.checked_sub(free.num_short_lived).filter(|&excess| excess > 0) {
            let Some(entries) = free.kept.take_some(excess) else { break };
            // The lock is released meanwhile, so that no thread waits for the system.
            drop(free);
            self.clear(entries.clone());
            free = self.free.lock();
            free.fresh.add(entries);
        }
    }

    /// Returns the memory of free space to the system.
    fn clear(&self, entries: Range<usize>) {
        // If that fails, the memory stays with the space, and the next page uses it.
        let _ = self.targets.clear(entries.clone());
        if let Some(weights) = &self.weights {
            let _ = for_weights!(weights, overflow => overflow.clear(entries.clone()));
        }
        if let Some(rows) = &self.rows {
            let _ = rows.clear(entries.clone());
        }
        self.memory.give_back(self.num_bytes(entries.len()));
    }

    /// Bytes of this many entries.
    fn num_bytes(&self, num_entries: usize) -> u64 {
        fn entry_bytes<W>(_: &OverflowMap<W>) -> usize {
            size_of::<W>()
        }
        let weight_bytes =
            self.weights.as_ref().map_or(0, |weights| for_weights!(weights, overflow => entry_bytes(overflow)));
        let row_bytes = self.rows.as_ref().map_or(0, entry_bytes);
        num_entries as u64 * (size_of::<VertexId>() + weight_bytes + row_bytes) as u64
    }
}

fn write_bits<W: Weight>(overflow: &OverflowMap<W>, place: usize, bits: &[u64]) -> std::io::Result<()> {
    overflow.write(place, &bits.iter().map(|&bits| W::of_bits(bits)).collect::<Vec<_>>())
}

impl RewrittenPage {
    /// Index of its first target among all targets, and of its first weight and row.
    pub fn edge_base(&self) -> usize {
        self.entries.start
    }

    /// Offsets of its lists, relative to [`edge_base`](Self::edge_base).
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }
}

impl Drop for RewrittenPage {
    fn drop(&mut self) {
        self.arena.free_again(self.entries.clone(), self.is_short_lived);
    }
}

impl OffsetTable {
    /// A table for this many pages, and the slice that shows it; `None` if the system or `memory` has no space for it.
    ///
    /// Cost: one mapping; a page takes memory once it is written.
    pub fn new(num_pages: usize, memory: &Arc<RewriteBudget>) -> Option<(MappedSlice<u32>, Self)> {
        let num_bytes = num_pages as u64 * OFFSET_BYTES;
        let num_offsets = num_pages.checked_mul(PAGE_OFFSETS)?;
        let (offsets, overflow) = MappedSlice::empty().extended(0..num_offsets).ok()?;
        // Charged last, so that a failed mapping leaves the budget as it was.
        let memory = memory.take(num_bytes).then(|| Arc::clone(memory))?;
        Some((offsets, Self { overflow, num_bytes, memory }))
    }

    /// Writes the offsets of a page, which no reader may use yet. A huge page that is mostly written becomes one.
    ///
    /// # Errors
    /// The system is short of memory.
    pub fn write(&mut self, page: usize, offsets: &[u32]) -> std::io::Result<()> {
        debug_assert_eq!(offsets.len(), PAGE_OFFSETS);
        let start = page * PAGE_OFFSETS;
        self.overflow.write(start, offsets)?;
        self.overflow.use_huge_pages(start..start + offsets.len())
    }
}

impl Drop for OffsetTable {
    fn drop(&mut self) {
        self.memory.give_back(self.num_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_base::memory::HUGE_PAGE_BYTES;

    fn page(num_targets: usize, first: u32) -> WholePage {
        let targets = (first..).take(num_targets).collect();
        let weights: Vec<u64> = (u64::from(first)..).take(num_targets).collect();
        let entries = EntryBuffer { targets, rows: weights.clone(), weights };
        WholePage { offsets: vec![0; PAGE_OFFSETS], entries }
    }

    #[test]
    fn pages_come_and_go_within_the_memory() {
        let unit = overflow_alignment() / 4;
        let memory = RewriteBudget::new(20 * 10 * unit as u64 + 4 * OFFSET_BYTES);
        let weights = Weights::I64(MappedSlice::copied(&[-1, -2]));
        let columns = ArcColumns { weights: Some(weights), rows: Some(MappedSlice::copied(&[1, 2])) };
        let lists = OverflowLists::new(&MappedSlice::copied(&[5, 6]), &columns, &memory).unwrap();
        assert_eq!(lists.targets[..2], [5, 6]);
        let shown = |page: &RewrittenPage, len: usize| {
            let ArcColumns { weights: Some(Weights::I64(weights)), rows: Some(rows) } = &lists.columns else {
                panic!()
            };
            let range = page.edge_base()..page.edge_base() + len;
            let targets = || lists.targets[range.clone()].iter();
            assert!(targets().map(|&t| i64::from(t)).eq(weights[range.clone()].iter().copied()));
            assert!(targets().map(|&t| u64::from(t)).eq(rows[range.clone()].iter().copied()));
            assert_eq!(page.offsets(), [0; PAGE_OFFSETS]);
            lists.targets[range.start]
        };
        // Two units, three, and the rest.
        let first = lists.arena.store(&page(2 * unit, 100), false).unwrap();
        let second = lists.arena.store(&page(2 * unit + 1, 200), false).unwrap();
        let third = lists.arena.store(&page(5 * unit, 300), false).unwrap();
        assert!(lists.arena.store(&page(unit, 0), false).is_none());
        assert_eq!((shown(&first, 2 * unit), shown(&second, 2 * unit + 1), shown(&third, 9)), (100, 200, 300));
        // Freed ranges are joined on both sides.
        drop(first);
        drop(third);
        assert!(lists.arena.store(&page(8 * unit, 0), false).is_none());
        assert_eq!(shown(&second, 2 * unit + 1), 200);
        drop(second);
        assert_eq!(lists.arena.free.lock().fresh.by_start.len(), 1);
        let all = lists.arena.store(&page(10 * unit, 400), false).unwrap();
        assert_eq!(shown(&all, 10 * unit), 400);
        drop(all);
        assert_eq!(memory.taken.load(Ordering::Relaxed), 0);
        memory.set_limit(0);
        assert!(lists.arena.store(&page(1, 1), false).is_none());
    }

    #[test]
    fn freed_short_lived_memory_is_kept_for_reuse() {
        let unit = overflow_alignment() / 4;
        let memory = RewriteBudget::new(4 * 20 * unit as u64 + 20 * OFFSET_BYTES);
        let lists = OverflowLists::new(&MappedSlice::empty(), &ArcColumns::default(), &memory).unwrap();
        let num_units = || {
            let free = lists.arena.free.lock();
            [free.num_short_lived, free.kept.num_entries, free.fresh.num_entries].map(|num_entries| num_entries / unit)
        };
        let all = num_units()[2];
        let mut pages: Vec<_> = (0..8).map(|i| lists.arena.store(&page(unit, 100 * i), true).unwrap()).collect();
        assert_eq!(num_units(), [8, 0, all - 8]);
        let old: Vec<_> = pages.drain(..3).collect();
        let places: Vec<usize> = old.iter().map(RewrittenPage::edge_base).collect();
        drop(old);
        assert_eq!(num_units(), [5, 3, all - 8]);
        let again: Vec<_> = (0..3).map(|i| lists.arena.store(&page(unit, 7_000 + i), true).unwrap()).collect();
        assert_eq!(again.iter().map(RewrittenPage::edge_base).collect::<Vec<_>>(), places);
        assert_eq!(again.iter().map(|page| lists.targets[page.edge_base()]).collect::<Vec<_>>(), [7_000, 7_001, 7_002]);
        assert_eq!(num_units(), [8, 0, all - 8]);
        // Long-lived pages neither take kept memory nor leave any.
        let kept = lists.arena.store(&page(unit, 1), false).unwrap();
        assert_eq!(num_units(), [8, 0, all - 9]);
        drop(kept);
        pages.truncate(1);
        assert_eq!(num_units(), [4, 4, all - 8]);
        drop(again);
        assert_eq!(num_units(), [1, 1, all - 2]);
        // Kept memory is returned before the budget is exceeded.
        memory.set_limit(memory.taken.load(Ordering::Relaxed) + OFFSET_BYTES + 4 * unit as u64);
        let large = lists.arena.store(&page(2 * unit, 1), true).unwrap();
        assert_eq!(num_units(), [3, 0, all - 3]);
        assert!(lists.arena.store(&page(unit, 1), true).is_none());
        drop((pages, large));
        assert_eq!((num_units(), memory.taken.load(Ordering::Relaxed)), ([0, 0, all], 0));
    }

    #[test]
    fn kept_ranges_make_room_for_longer_pages() {
        let unit = overflow_alignment() / 4;
        let memory = RewriteBudget::new(4 * 20 * unit as u64);
        let lists = OverflowLists::new(&MappedSlice::empty(), &ArcColumns::default(), &memory).unwrap();
        let num_units = lists.arena.free.lock().fresh.num_entries / unit;
        memory.set_limit(u64::MAX);
        let mut pages: Vec<_> =
            (0..num_units as u32).map(|i| lists.arena.store(&page(unit, i), true).unwrap()).collect();
        assert!(lists.arena.store(&page(2 * unit, 1), false).is_none(), "the arena is full");
        pages.truncate(num_units - num_units / 2);
        assert_eq!(lists.arena.free.lock().kept.num_entries / unit, num_units / 2);
        assert!(lists.arena.store(&page(2 * unit, 1), false).is_some());
    }

    #[test]
    fn short_lived_pages_stay_on_filled_huge_pages() {
        let unit = overflow_alignment() / 4;
        // Two huge pages at any alignment, at least one of which is whole.
        let num_pages = 2 * HUGE_PAGE_BYTES / overflow_alignment();
        let memory = RewriteBudget::new(num_pages as u64 * (overflow_alignment() as u64 + OFFSET_BYTES));
        let lists = OverflowLists::new(&MappedSlice::empty(), &ArcColumns::default(), &memory).unwrap();
        let store = |first: u32| lists.arena.store(&page(unit, first), true).unwrap();
        let shows = |page: &RewrittenPage, first: u32| {
            lists.targets[page.edge_base()..][..unit].iter().copied().eq((first..).take(unit))
        };
        let mut pages: Vec<_> = (0..num_pages as u32).map(&store).collect();
        let num_moves = lists.arena.targets.num_moves();
        assert!(num_moves > 0, "they were never moved");
        for round in 1..4_u32 {
            // Half of the pages are dropped, and others take their memory.
            pages.drain(..num_pages / 2);
            pages.extend((0..num_pages as u32 / 2).map(|i| store(round << 16 | i)));
            let first_of = |i: usize| match i < num_pages / 2 {
                true => (round - 1) << 16 | (i + num_pages / 2 * usize::from(round == 1)) as u32,
                false => round << 16 | (i - num_pages / 2) as u32,
            };
            assert!(pages.iter().enumerate().all(|(i, page)| shows(page, first_of(i))), "round {round}");
        }
        assert_eq!(lists.arena.targets.num_moves(), num_moves, "what is kept is not moved again");
    }

    #[test]
    fn offsets_are_at_home() {
        let memory = RewriteBudget::new(3 * OFFSET_BYTES);
        assert!(OffsetTable::new(4, &memory).is_none());
        let (offsets, mut table) = OffsetTable::new(3, &memory).unwrap();
        table.write(1, &[7; PAGE_OFFSETS]).unwrap();
        assert_eq!(offsets[PAGE_OFFSETS - 1..PAGE_OFFSETS + 1], [0, 7]);
        assert_eq!(offsets[2 * PAGE_OFFSETS - 1..2 * PAGE_OFFSETS + 1], [7, 0]);
        assert!(table.write(3, &[7; PAGE_OFFSETS]).is_err());
        assert!(OffsetTable::new(1, &memory).is_none());
        drop(table);
        assert_eq!(memory.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn offset_table_survives_move_to_huge_pages() {
        // One huge page and a part of another, written from both ends, so that it is moved before all of it is written.
        let num_pages = HUGE_PAGE_BYTES / OFFSET_BYTES as usize + 100;
        let memory = RewriteBudget::new(num_pages as u64 * OFFSET_BYTES);
        let (offsets, mut table) = OffsetTable::new(num_pages, &memory).unwrap();
        let of = |page: usize| -> Vec<u32> { (0..PAGE_OFFSETS).map(|i| (page * PAGE_OFFSETS + i) as u32).collect() };
        let shown = |page: usize| &offsets[page * PAGE_OFFSETS..(page + 1) * PAGE_OFFSETS];
        let mut order: Vec<usize> = (0..num_pages).collect();
        order.sort_by_key(|&page| page.min(num_pages - page));
        for (i, &page) in order.iter().enumerate() {
            table.write(page, &of(page)).unwrap();
            assert!(shown(page) == of(page), "page {page}");
            assert!(shown(order[i / 2]) == of(order[i / 2]), "page {} after page {page}", order[i / 2]);
        }
        assert!(table.overflow.num_moves() > 0, "it was never moved");
        assert!((0..num_pages).all(|page| shown(page) == of(page)));
    }

    #[test]
    fn no_memory_is_no_room() {
        assert!(OverflowLists::new(&MappedSlice::empty(), &ArcColumns::default(), &RewriteBudget::new(0)).is_none());
        let unit = overflow_alignment() as u64;
        let lists =
            OverflowLists::new(&MappedSlice::empty(), &ArcColumns::default(), &RewriteBudget::new(8 * unit)).unwrap();
        assert!(lists.arena.store(&page(2 * unit as usize, 1), false).is_none());
        assert!(lists.arena.store(&page(1, 1), false).is_some());
    }
}
