//! Pages of a view that were written anew, in memory behind the lists of the base run.
//!
//! The room behind the targets and behind the weights is one: an entry has the same index in both. Pages that no view
//! has any more give their room back. The offsets of the pages that a view has read are at home in a table of its own,
//! so that a list is found and read as in a plain CSR, and nobody asks whether its page was written anew.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::VertexId;
use base::mapped::{Annex, MappedSlice, annex_alignment};
use graph::{Weight, Weights};

use crate::patched::WholePage;
use crate::table::PAGE_OFFSETS;

/// What the offsets of a page take.
const OFFSET_BYTES: u64 = (PAGE_OFFSETS * size_of::<u32>()) as u64;

/// The lists of a side with room for pages behind them.
#[derive(Debug)]
pub(crate) struct RoomyLists {
    pub targets: MappedSlice<VertexId>,
    pub weights: Option<Weights>,
    pub room: Arc<Room>,
}

/// Where pages are written anew.
#[derive(Debug)]
pub(crate) struct Room {
    targets: Annex<VertexId>,
    weights: Option<WeightAnnex>,
    /// The room is given out in multiples of so many entries, which are whole pages of memory.
    unit: usize,
    /// What is free: where, and how much. Neighbours are joined.
    free: Mutex<BTreeMap<usize, usize>>,
    memory: Arc<Memory>,
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
    pub fn new(targets: &MappedSlice<VertexId>, weights: Option<&Weights>, memory: &Arc<Memory>) -> Option<Self> {
        // Weights of eight bytes start on a page where those of four do.
        let unit = annex_alignment() / size_of::<u32>();
        let len = usize::try_from(memory.limit() / size_of::<VertexId>() as u64).ok()? / unit * unit;
        let start = targets.len().checked_next_multiple_of(unit)?;
        let entries = start..start.checked_add(len)?;
        let (targets, target_annex) = targets.extended(entries.clone()).ok()?;
        let (weights, weight_annex) = match weights.map(|weights| extended(weights, entries.clone())) {
            None => (None, None),
            Some(extended) => extended.ok().map(|(weights, annex)| (Some(weights), Some(annex)))?,
        };
        let free = Mutex::new(BTreeMap::from([(start, len)]));
        let memory = Arc::clone(memory);
        let room = Arc::new(Room { targets: target_annex, weights: weight_annex, unit, free, memory });
        Some(Self { targets, weights, room })
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

impl Room {
    /// Writes a page; `None` where there is no room or no memory for it.
    pub fn store(self: &Arc<Self>, page: &WholePage) -> Option<RewrittenPage> {
        let entries = self.allocate(page.targets.len())?;
        // From here on, the room is given back whatever happens.
        let stored = RewrittenPage { room: Arc::clone(self), entries, offsets: page.offsets.clone() };
        self.targets.write(stored.edge_base(), &page.targets).ok()?;
        if let Some(weights) = &self.weights {
            for_weights!(weights, annex => write_bits(annex, stored.edge_base(), &page.weights)).ok()?;
            for_weights!(weights, annex => annex.settle(stored.entries.clone())).ok()?;
        }
        self.targets.settle(stored.entries.clone()).ok()?;
        Some(stored)
    }

    fn allocate(&self, num_entries: usize) -> Option<Range<usize>> {
        let len = num_entries.max(1).next_multiple_of(self.unit);
        if !self.memory.take(self.num_bytes(len)) {
            return None;
        }
        let mut free = self.free();
        let Some((start, free_len)) = free.iter().find(|(_, free)| **free >= len).map(|(start, free)| (*start, *free))
        else {
            drop(free);
            self.memory.give_back(self.num_bytes(len));
            return None;
        };
        free.remove(&start);
        if free_len > len {
            free.insert(start + len, free_len - len);
        }
        Some(start..start + len)
    }

    /// Takes back what [`allocate`](Self::allocate) gave.
    fn free_again(&self, entries: Range<usize>) {
        // Where the system keeps the memory, the next page takes it over.
        let _ = self.targets.clear(entries.clone());
        if let Some(weights) = &self.weights {
            let _ = for_weights!(weights, annex => annex.clear(entries.clone()));
        }
        self.memory.give_back(self.num_bytes(entries.len()));
        let mut free = self.free();
        let (mut start, mut end) = (entries.start, entries.end);
        if let Some((&before, &len)) = free.range(..start).next_back()
            && before + len == start
        {
            free.remove(&before);
            start = before;
        }
        if let Some(len) = free.remove(&end) {
            end += len;
        }
        free.insert(start, end - start);
    }

    /// What a page of so many entries takes.
    fn num_bytes(&self, num_entries: usize) -> u64 {
        fn entry_bytes<W>(_: &Annex<W>) -> usize {
            size_of::<W>()
        }
        let weight_bytes =
            self.weights.as_ref().map_or(0, |weights| for_weights!(weights, annex => entry_bytes(annex)));
        num_entries as u64 * (size_of::<VertexId>() + weight_bytes) as u64 + OFFSET_BYTES
    }

    fn free(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
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
        self.room.free_again(self.entries.clone());
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
        let weights = (u64::from(first)..).take(num_targets).collect();
        WholePage { offsets: vec![0; PAGE_OFFSETS], targets, weights }
    }

    #[test]
    fn pages_come_and_go_within_the_memory() {
        let unit = annex_alignment() / 4;
        let memory = Memory::new(12 * 10 * unit as u64 + 4 * OFFSET_BYTES);
        let weights = Weights::I64(MappedSlice::copied(&[-1, -2]));
        let lists = RoomyLists::new(&MappedSlice::copied(&[5, 6]), Some(&weights), &memory).unwrap();
        assert_eq!(lists.targets[..2], [5, 6]);
        let show = |page: &RewrittenPage, len: usize| {
            let Some(Weights::I64(weights)) = &lists.weights else { panic!() };
            let range = page.edge_base()..page.edge_base() + len;
            assert!(
                lists.targets[range.clone()].iter().map(|&t| i64::from(t)).eq(weights[range.clone()].iter().copied())
            );
            assert_eq!(page.offsets(), [0; PAGE_OFFSETS]);
            lists.targets[range.start]
        };
        // Two units, three, and the rest.
        let first = lists.room.store(&page(2 * unit, 100)).unwrap();
        let second = lists.room.store(&page(2 * unit + 1, 200)).unwrap();
        let third = lists.room.store(&page(5 * unit, 300)).unwrap();
        assert!(lists.room.store(&page(unit, 0)).is_none());
        assert_eq!((show(&first, 2 * unit), show(&second, 2 * unit + 1), show(&third, 9)), (100, 200, 300));
        // What is freed is joined, on both sides.
        drop(first);
        drop(third);
        assert!(lists.room.store(&page(8 * unit, 0)).is_none());
        assert_eq!(show(&second, 2 * unit + 1), 200);
        drop(second);
        assert_eq!(lists.room.free().len(), 1);
        let all = lists.room.store(&page(10 * unit, 400)).unwrap();
        assert_eq!(show(&all, 10 * unit), 400);
        drop(all);
        assert_eq!(memory.taken.load(Ordering::Relaxed), 0);
        memory.set_limit(0);
        assert!(lists.room.store(&page(1, 1)).is_none());
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
        assert!(RoomyLists::new(&MappedSlice::empty(), None, &Memory::new(0)).is_none());
        let unit = annex_alignment() as u64;
        let lists = RoomyLists::new(&MappedSlice::empty(), None, &Memory::new(8 * unit)).unwrap();
        assert!(lists.room.store(&page(2 * unit as usize, 1)).is_none());
        assert!(lists.room.store(&page(1, 1)).is_some());
    }
}
