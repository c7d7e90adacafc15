//! Pages of a view that were written anew, in memory behind the lists of the base run.
//!
//! The room behind the targets, the weights and the rows is one: an entry has the same index in all. Pages that no view
//! has any more give their room back. Of the memory that pages leave for a version that is there only *briefly*, because
//! others follow fast, as much is kept for the next ones as is in use: fresh memory costs more than what is written to
//! it, and what was moved to a huge page once stays there. The offsets of the pages that a view has read are at home in
//! a table of its own, so that a list is found and read as in a plain CSR, and nobody asks whether its page was written
//! anew.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::VertexId;
use base::mapped::{Annex, MappedSlice, annex_alignment};
use graph::{Weight, Weights};

use crate::arc_columns::ArcColumns;
use crate::changes::EntryBuffer;
use crate::patched::WholePage;
use crate::table::PAGE_OFFSETS;

/// What the offsets of a page take.
const OFFSET_BYTES: u64 = (PAGE_OFFSETS * size_of::<u32>()) as u64;

/// No page takes more than one in so many bytes of the memory for all.
const PAGE_SHARE: u64 = 8;

/// The lists of a side with room for pages behind them.
#[derive(Debug)]
pub(crate) struct RoomyLists {
    pub targets: MappedSlice<VertexId>,
    pub columns: ArcColumns,
    pub room: Arc<Room>,
}

/// Where pages are written anew.
#[derive(Debug)]
pub(crate) struct Room {
    targets: Annex<VertexId>,
    weights: Option<WeightAnnex>,
    rows: Option<Annex<u64>>,
    /// The room is given out in multiples of so many entries, which are whole pages of memory.
    unit: usize,
    free: Mutex<FreeRoom>,
    memory: Arc<Memory>,
}

/// The room that no page has.
#[derive(Debug, Default)]
struct FreeRoom {
    /// Without memory.
    fresh: Ranges,
    /// With the memory of brief pages that are gone; not more than there is in use of them.
    kept: Ranges,
    /// Entries of the brief pages that are there.
    num_brief: usize,
}

/// Ranges of entries: where each starts, and its length. Neighbours are joined.
#[derive(Debug, Default)]
struct Ranges {
    by_start: BTreeMap<usize, usize>,
    num_entries: usize,
}

/// Room that was given out.
struct Given {
    entries: Range<usize>,
    /// Whether its memory is there already.
    is_kept: bool,
}

/// The memory that rewritten pages may take, of all sides of a base run.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: AtomicU64,
    taken: AtomicU64,
}

/// A page that was written anew; its room is free again when it goes.
#[derive(Debug)]
pub(crate) struct RewrittenPage {
    room: Arc<Room>,
    entries: Range<usize>,
    is_brief: bool,
    offsets: Vec<u32>,
}

/// The offsets of all pages of a side, each page's at the same place as if every page before it had some.
#[derive(Debug)]
pub(crate) struct OffsetTable {
    annex: Annex<u32>,
    num_bytes: u64,
    memory: Arc<Memory>,
}

#[derive(Debug)]
enum WeightAnnex {
    U32(Annex<u32>),
    I64(Annex<i64>),
    F32(Annex<f32>),
    F64(Annex<f64>),
}

macro_rules! for_weights {
    ($annex:expr, $name:ident => $body:expr) => {
        match $annex {
            WeightAnnex::U32($name) => $body,
            WeightAnnex::I64($name) => $body,
            WeightAnnex::F32($name) => $body,
            WeightAnnex::F64($name) => $body,
        }
    };
}

impl Memory {
    /// So many bytes.
    pub fn new(num_bytes: u64) -> Arc<Self> {
        Arc::new(Self { limit: AtomicU64::new(num_bytes), taken: AtomicU64::new(0) })
    }

    /// What may be taken in all.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets what may be taken in all. Room that there is already does not grow.
    pub fn set_limit(&self, num_bytes: u64) {
        self.limit.store(num_bytes, Ordering::Relaxed);
    }

    fn take(&self, num_bytes: u64) -> bool {
        let sum = |taken: u64| taken.checked_add(num_bytes).filter(|&sum| sum <= self.limit());
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }

    fn give_back(&self, num_bytes: u64) {
        self.taken.fetch_sub(num_bytes, Ordering::Relaxed);
    }
}

impl RoomyLists {
    /// These lists, with room for as much as `memory` allows in all; `None` where the system has none.
    ///
    /// Cost: two maps of the file; room takes memory once it is used.
    pub fn new(targets: &MappedSlice<VertexId>, columns: &ArcColumns, memory: &Arc<Memory>) -> Option<Self> {
        // Weights of eight bytes start on a page where those of four do.
        let unit = annex_alignment() / size_of::<u32>();
        let len = usize::try_from(memory.limit() / size_of::<VertexId>() as u64).ok()? / unit * unit;
        let start = targets.len().checked_next_multiple_of(unit)?;
        let entries = start..start.checked_add(len)?;
        let (targets, target_annex) = targets.extended(entries.clone()).ok()?;
        let (weights, weight_annex) = match columns.weights.as_ref().map(|weights| extended(weights, entries.clone())) {
            None => (None, None),
            Some(extended) => extended.ok().map(|(weights, annex)| (Some(weights), Some(annex)))?,
        };
        let (rows, row_annex) = match columns.rows.as_ref().map(|rows| rows.extended(entries)) {
            None => (None, None),
            Some(extended) => extended.ok().map(|(rows, annex)| (Some(rows), Some(annex)))?,
        };
        let mut free = FreeRoom::default();
        free.fresh.add(start..start + len);
        let free = Mutex::new(free);
        let memory = Arc::clone(memory);
        let room = Arc::new(Room { targets: target_annex, weights: weight_annex, rows: row_annex, unit, free, memory });
        Some(Self { targets, columns: ArcColumns { weights, rows }, room })
    }
}

fn extended(weights: &Weights, room: Range<usize>) -> std::io::Result<(Weights, WeightAnnex)> {
    fn typed<W: Weight>(weights: &MappedSlice<W>, room: Range<usize>) -> std::io::Result<(Weights, Annex<W>)> {
        weights.extended(room).map(|(weights, annex)| (W::column(weights), annex))
    }
    Ok(match weights {
        Weights::U32(column) => typed(column, room).map(|(column, annex)| (column, WeightAnnex::U32(annex)))?,
        Weights::I64(column) => typed(column, room).map(|(column, annex)| (column, WeightAnnex::I64(annex)))?,
        Weights::F32(column) => typed(column, room).map(|(column, annex)| (column, WeightAnnex::F32(annex)))?,
        Weights::F64(column) => typed(column, room).map(|(column, annex)| (column, WeightAnnex::F64(annex)))?,
    })
}

impl Ranges {
    /// The first of so many entries, of the first range that has them.
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

    /// Takes the first range, but not more than so many entries of it.
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

impl Room {
    /// Whether a page of so many entries is not too large to be made, which takes as much memory a few times over.
    pub fn has_room_for(&self, num_entries: usize) -> bool {
        self.num_bytes(num_entries.max(1).next_multiple_of(self.unit)) <= self.memory.limit() / PAGE_SHARE
    }

    /// Writes a page; `None` where there is no room or no memory for it.
    pub fn store(self: &Arc<Self>, page: &WholePage, is_brief: bool) -> Option<RewrittenPage> {
        let EntryBuffer { targets, weights: bits, rows: numbers } = &page.entries;
        let Given { entries, is_kept } = self.allocate(targets.len(), is_brief)?;
        // From here on, the room is given back whatever happens.
        let stored = RewrittenPage { room: Arc::clone(self), entries, is_brief, offsets: page.offsets.clone() };
        self.targets.write(stored.edge_base(), targets).ok()?;
        if let Some(weights) = &self.weights {
            for_weights!(weights, annex => write_bits(annex, stored.edge_base(), bits)).ok()?;
        }
        if let Some(rows) = &self.rows {
            rows.write(stored.edge_base(), numbers).ok()?;
        }
        if !is_kept {
            self.targets.settle(stored.entries.clone()).ok()?;
            if let Some(weights) = &self.weights {
                for_weights!(weights, annex => annex.settle(stored.entries.clone())).ok()?;
            }
            if let Some(rows) = &self.rows {
                rows.settle(stored.entries.clone()).ok()?;
            }
        }
        Some(stored)
    }

    fn allocate(&self, num_entries: usize, is_brief: bool) -> Option<Given> {
        let len = num_entries.max(1).next_multiple_of(self.unit);
        let mut free = self.free();
        if is_brief && let Some(entries) = free.kept.take(len) {
            if self.memory.take(OFFSET_BYTES) {
                free.num_brief += len;
                return Some(Given { entries, is_kept: true });
            }
            free.kept.add(entries);
        }
        while !self.memory.take(self.num_bytes(len) + OFFSET_BYTES) {
            let entries = free.kept.take_some(len)?;
            self.clear(entries.clone());
            free.fresh.add(entries);
        }
        let Some(entries) = free.fresh.take(len) else {
            self.memory.give_back(self.num_bytes(len) + OFFSET_BYTES);
            return None;
        };
        if is_brief {
            free.num_brief += len;
        }
        Some(Given { entries, is_kept: false })
    }

    /// Takes back what [`allocate`](Self::allocate) gave.
    fn free_again(&self, entries: Range<usize>, is_brief: bool) {
        self.memory.give_back(OFFSET_BYTES);
        if !is_brief {
            self.clear(entries.clone());
            self.free().fresh.add(entries);
            return;
        }
        let mut free = self.free();
        free.num_brief -= entries.len();
        free.kept.add(entries);
        while let Some(excess) = free.kept.num_entries.checked_sub(free.num_brief).filter(|&excess| excess > 0) {
            let Some(entries) = free.kept.take_some(excess) else { break };
            // Nobody waits for the system.
            drop(free);
            self.clear(entries.clone());
            free = self.free();
            free.fresh.add(entries);
        }
    }

    /// Gives the memory of free room back.
    fn clear(&self, entries: Range<usize>) {
        // Where the system keeps the memory, the next page takes it over.
        let _ = self.targets.clear(entries.clone());
        if let Some(weights) = &self.weights {
            let _ = for_weights!(weights, annex => annex.clear(entries.clone()));
        }
        if let Some(rows) = &self.rows {
            let _ = rows.clear(entries.clone());
        }
        self.memory.give_back(self.num_bytes(entries.len()));
    }

    /// What so many entries take.
    fn num_bytes(&self, num_entries: usize) -> u64 {
        fn entry_bytes<W>(_: &Annex<W>) -> usize {
            size_of::<W>()
        }
        let weight_bytes =
            self.weights.as_ref().map_or(0, |weights| for_weights!(weights, annex => entry_bytes(annex)));
        let row_bytes = self.rows.as_ref().map_or(0, entry_bytes);
        num_entries as u64 * (size_of::<VertexId>() + weight_bytes + row_bytes) as u64
    }

    fn free(&self) -> MutexGuard<'_, FreeRoom> {
        self.free.lock().unwrap_or_else(|e| e.into_inner())
    }
}

fn write_bits<W: Weight>(annex: &Annex<W>, place: usize, bits: &[u64]) -> std::io::Result<()> {
    annex.write(place, &bits.iter().map(|&bits| W::of_bits(bits)).collect::<Vec<_>>())
}

impl RewrittenPage {
    /// Where its targets start among all, and its weights.
    pub fn edge_base(&self) -> usize {
        self.entries.start
    }

    /// Where its lists start, from [`edge_base`](Self::edge_base) on.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }
}

impl Drop for RewrittenPage {
    fn drop(&mut self) {
        self.room.free_again(self.entries.clone(), self.is_brief);
    }
}

impl OffsetTable {
    /// A table for so many pages, and the slice that shows it; `None` where the system or `memory` has no room for it.
    ///
    /// Cost: a map; a page takes memory once it is written.
    pub fn new(num_pages: usize, memory: &Arc<Memory>) -> Option<(MappedSlice<u32>, Self)> {
        let num_bytes = num_pages as u64 * OFFSET_BYTES;
        let num_offsets = num_pages.checked_mul(PAGE_OFFSETS)?;
        let (offsets, annex) = MappedSlice::empty().extended(0..num_offsets).ok()?;
        let memory = memory.take(num_bytes).then(|| Arc::clone(memory))?;
        Some((offsets, Self { annex, num_bytes, memory }))
    }

    /// Writes the offsets of a page, which nobody may be reading. Where most of a huge page is there, it becomes one.
    ///
    /// # Errors
    /// The system's memory is short.
    pub fn write(&mut self, page: usize, offsets: &[u32]) -> std::io::Result<()> {
        debug_assert_eq!(offsets.len(), PAGE_OFFSETS);
        let start = page * PAGE_OFFSETS;
        self.annex.write(start, offsets)?;
        self.annex.settle(start..start + offsets.len())
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
    use base::memory::HUGE_PAGE_BYTES;

    fn page(num_targets: usize, first: u32) -> WholePage {
        let targets = (first..).take(num_targets).collect();
        let weights: Vec<u64> = (u64::from(first)..).take(num_targets).collect();
        let entries = EntryBuffer { targets, rows: weights.clone(), weights };
        WholePage { offsets: vec![0; PAGE_OFFSETS], entries }
    }

    #[test]
    fn pages_come_and_go_within_the_memory() {
        let unit = annex_alignment() / 4;
        let memory = Memory::new(20 * 10 * unit as u64 + 4 * OFFSET_BYTES);
        let weights = Weights::I64(MappedSlice::copied(&[-1, -2]));
        let columns = ArcColumns { weights: Some(weights), rows: Some(MappedSlice::copied(&[1, 2])) };
        let lists = RoomyLists::new(&MappedSlice::copied(&[5, 6]), &columns, &memory).unwrap();
        assert_eq!(lists.targets[..2], [5, 6]);
        let show = |page: &RewrittenPage, len: usize| {
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
        let first = lists.room.store(&page(2 * unit, 100), false).unwrap();
        let second = lists.room.store(&page(2 * unit + 1, 200), false).unwrap();
        let third = lists.room.store(&page(5 * unit, 300), false).unwrap();
        assert!(lists.room.store(&page(unit, 0), false).is_none());
        assert_eq!((show(&first, 2 * unit), show(&second, 2 * unit + 1), show(&third, 9)), (100, 200, 300));
        // What is freed is joined, on both sides.
        drop(first);
        drop(third);
        assert!(lists.room.store(&page(8 * unit, 0), false).is_none());
        assert_eq!(show(&second, 2 * unit + 1), 200);
        drop(second);
        assert_eq!(lists.room.free().fresh.by_start.len(), 1);
        let all = lists.room.store(&page(10 * unit, 400), false).unwrap();
        assert_eq!(show(&all, 10 * unit), 400);
        drop(all);
        assert_eq!(memory.taken.load(Ordering::Relaxed), 0);
        memory.set_limit(0);
        assert!(lists.room.store(&page(1, 1), false).is_none());
    }

    #[test]
    fn as_much_memory_of_brief_pages_as_is_in_use_is_kept() {
        let unit = annex_alignment() / 4;
        let memory = Memory::new(4 * 20 * unit as u64 + 20 * OFFSET_BYTES);
        let lists = RoomyLists::new(&MappedSlice::empty(), &ArcColumns::default(), &memory).unwrap();
        let num_units = || {
            let free = lists.room.free();
            [free.num_brief, free.kept.num_entries, free.fresh.num_entries].map(|num_entries| num_entries / unit)
        };
        let all = num_units()[2];
        let mut pages: Vec<_> = (0..8).map(|i| lists.room.store(&page(unit, 100 * i), true).unwrap()).collect();
        assert_eq!(num_units(), [8, 0, all - 8]);
        let old: Vec<_> = pages.drain(..3).collect();
        let places: Vec<usize> = old.iter().map(RewrittenPage::edge_base).collect();
        drop(old);
        assert_eq!(num_units(), [5, 3, all - 8]);
        let again: Vec<_> = (0..3).map(|i| lists.room.store(&page(unit, 7_000 + i), true).unwrap()).collect();
        assert_eq!(again.iter().map(RewrittenPage::edge_base).collect::<Vec<_>>(), places);
        assert_eq!(again.iter().map(|page| lists.targets[page.edge_base()]).collect::<Vec<_>>(), [7_000, 7_001, 7_002]);
        assert_eq!(num_units(), [8, 0, all - 8]);
        // Others get no memory that was left, and leave none.
        let lasting = lists.room.store(&page(unit, 1), false).unwrap();
        assert_eq!(num_units(), [8, 0, all - 9]);
        drop(lasting);
        pages.truncate(1);
        assert_eq!(num_units(), [4, 4, all - 8]);
        drop(again);
        assert_eq!(num_units(), [1, 1, all - 2]);
        // What is kept is given back before there is no room.
        memory.set_limit(memory.taken.load(Ordering::Relaxed) + OFFSET_BYTES + 4 * unit as u64);
        let large = lists.room.store(&page(2 * unit, 1), true).unwrap();
        assert_eq!(num_units(), [3, 0, all - 3]);
        assert!(lists.room.store(&page(unit, 1), true).is_none());
        drop((pages, large));
        assert_eq!((num_units(), memory.taken.load(Ordering::Relaxed)), ([0, 0, all], 0));
    }

    #[test]
    fn brief_pages_stay_on_the_huge_pages_that_they_filled() {
        let unit = annex_alignment() / 4;
        // Two huge pages at any phase, one of which is whole.
        let num_pages = 2 * HUGE_PAGE_BYTES / annex_alignment();
        let memory = Memory::new(num_pages as u64 * (annex_alignment() as u64 + OFFSET_BYTES));
        let lists = RoomyLists::new(&MappedSlice::empty(), &ArcColumns::default(), &memory).unwrap();
        let store = |first: u32| lists.room.store(&page(unit, first), true).unwrap();
        let shows = |page: &RewrittenPage, first: u32| {
            lists.targets[page.edge_base()..][..unit].iter().copied().eq((first..).take(unit))
        };
        let mut pages: Vec<_> = (0..num_pages as u32).map(&store).collect();
        let num_moves = lists.room.targets.num_moves();
        assert!(num_moves > 0, "they were never moved");
        for round in 1..4_u32 {
            // Half of them go, and others take their memory.
            pages.drain(..num_pages / 2);
            pages.extend((0..num_pages as u32 / 2).map(|i| store(round << 16 | i)));
            let first_of = |i: usize| match i < num_pages / 2 {
                true => (round - 1) << 16 | (i + num_pages / 2 * usize::from(round == 1)) as u32,
                false => round << 16 | (i - num_pages / 2) as u32,
            };
            assert!(pages.iter().enumerate().all(|(i, page)| shows(page, first_of(i))), "round {round}");
        }
        assert_eq!(lists.room.targets.num_moves(), num_moves, "what is kept is not moved again");
    }

    #[test]
    fn offsets_are_at_home() {
        let memory = Memory::new(3 * OFFSET_BYTES);
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
    fn a_table_shows_the_same_before_and_after_it_is_on_huge_pages() {
        // One huge page and a part of another: written from both ends, so that it is moved before all of it is there.
        let num_pages = HUGE_PAGE_BYTES / OFFSET_BYTES as usize + 100;
        let memory = Memory::new(num_pages as u64 * OFFSET_BYTES);
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
        assert!(table.annex.num_moves() > 0, "it was never moved");
        assert!((0..num_pages).all(|page| shown(page) == of(page)));
    }

    #[test]
    fn no_memory_is_no_room() {
        assert!(RoomyLists::new(&MappedSlice::empty(), &ArcColumns::default(), &Memory::new(0)).is_none());
        let unit = annex_alignment() as u64;
        let lists = RoomyLists::new(&MappedSlice::empty(), &ArcColumns::default(), &Memory::new(8 * unit)).unwrap();
        assert!(lists.room.store(&page(2 * unit as usize, 1), false).is_none());
        assert!(lists.room.store(&page(1, 1), false).is_some());
    }
}
