//! A base whose lists are arrays in memory, for filtered views.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::mapped::{FileBytes, MappedSlice};
use anden_base::memory::{as_atomic_u32, as_atomic_u64, zeroed_huge};
use anden_base::parallel::Pool;
use anden_graph::WeightType;
use bytemuck::Pod;

use super::{BaseLists, OpenBase, WeightColumn};
use crate::column::SectionColumn;
use crate::lists::ListRules;
use crate::options::GraphOptions;
use crate::rewritten::RewriteBudget;
use crate::table::{IndexEntry, PAGE_OFFSETS, PageSlots};

/// Pages whose offsets a worker copies at once.
const COPIED_PAGES: usize = 64;

/// The offsets of a page, relative to its first entry, one more than vertices; `None` for a page without entries.
pub(crate) type PageOffsets = Option<Box<[u32]>>;

impl OpenBase {
    /// A base of lists that were filled in memory. They are not checked, because their entries come from verified
    /// lists.
    pub fn in_memory(out_lists: ArrayLists, in_lists: Option<ArrayLists>, rules: ListRules) -> Arc<Self> {
        let (out_lists, in_lists) = (out_lists.finish(rules), in_lists.map(|lists| lists.finish(rules)));
        debug_assert!(in_lists.as_ref().is_none_or(|lists| lists.num_arcs() == out_lists.num_arcs()));
        let (vertex_bound, memory) = (rules.vertex_bound, RewriteBudget::new(0));
        Arc::new(Self { out_lists, in_lists, vertex_bound, dead: None, patched: Default::default(), memory })
    }
}

/// The lists of one direction, while their entries are filled in.
pub(crate) struct ArrayLists {
    /// As in [`BaseLists`].
    index: Vec<IndexEntry>,
    offsets: Array,
    targets: Array,
    weights: Option<(Array, WeightType)>,
    rows: Option<Array>,
}

impl ArrayLists {
    /// Allocates lists with these offsets.
    pub fn new(options: &GraphOptions, pages: &[PageOffsets], pool: &Pool) -> Self {
        let (mut index, mut edge_base) = (Vec::with_capacity(pages.len() + 1), 0);
        let (mut slots, mut dense) = (PageSlots::default(), Vec::new());
        for page in pages {
            let slot = slots.next(page.is_some());
            dense.extend(slot.map(|_| page.as_deref()));
            index.push(IndexEntry::new(edge_base, slot));
            edge_base += page.as_ref().and_then(|offsets| offsets.last()).map_or(0, |&end| u64::from(end));
        }
        index.push(IndexEntry::new(edge_base, None));
        // Zeros take memory only where they are filled, by the workers.
        let mut offsets = Array::zeros::<u32>(dense.len() * PAGE_OFFSETS);
        pool.for_each_part_mut(offsets.values_mut::<u32>(), COPIED_PAGES * PAGE_OFFSETS, |start, part| {
            for (to, from) in part.chunks_mut(PAGE_OFFSETS).zip(&dense[start / PAGE_OFFSETS..]) {
                // A page without edges keeps its zeros.
                from.iter().for_each(|from| to.copy_from_slice(from));
            }
        });
        let len = edge_base as usize;
        let weights = options.weight_type.map(|weight_type| {
            // Weights are filled as bits, so their width is all that matters until `finish`.
            let array = if weight_type.num_bytes() == 4 { Array::zeros::<u32>(len) } else { Array::zeros::<u64>(len) };
            (array, weight_type)
        });
        let rows = options.has_rows().then(|| Array::zeros::<u64>(len));
        Self { index, offsets, targets: Array::zeros::<VertexId>(len), weights, rows }
    }

    /// Index of each page's first entry.
    pub fn edge_bases(&self) -> Vec<usize> {
        self.index.iter().map(|entry| entry.edge_base as usize).collect()
    }

    /// The slots of the entries, which several threads can fill.
    pub fn slots(&mut self) -> ArcSlots<'_> {
        let weights = self.weights.as_mut().map(|(array, weight_type)| match weight_type.num_bytes() {
            4 => WeightSlots::Four(as_atomic_u32(array.values_mut())),
            _ => WeightSlots::Eight(as_atomic_u64(array.values_mut())),
        });
        let rows = self.rows.as_mut().map(|array| as_atomic_u64(array.values_mut()));
        ArcSlots { targets: as_atomic_u32(self.targets.values_mut()), weights, rows }
    }

    fn finish(self, rules: ListRules) -> BaseLists {
        let weights = self.weights.map(|(array, weight_type)| match weight_type {
            WeightType::U32 => WeightColumn::U32(array.column()),
            WeightType::I64 => WeightColumn::I64(array.column()),
            WeightType::F32 => WeightColumn::F32(array.column()),
            WeightType::F64 => WeightColumn::F64(array.column()),
        });
        let (offsets, targets) = (self.offsets.column(), self.targets.column());
        let lists = BaseLists::new(self.index, offsets, targets, weights, self.rows.map(Array::column), rules);
        for page in 0..lists.num_pages() {
            debug_assert!(lists.page(page).is_ok(), "the lists of a filtered view are whole");
            // The entries come from verified lists, so they are not verified again.
            for verified in [&lists.verified_lists, &lists.verified_weights, &lists.verified_offsets] {
                verified.set(page);
            }
        }
        lists
    }
}

/// Slots of entries. Each is written once, by one thread.
pub(crate) struct ArcSlots<'a> {
    targets: &'a [AtomicU32],
    weights: Option<WeightSlots<'a>>,
    rows: Option<&'a [AtomicU64]>,
}

enum WeightSlots<'a> {
    Four(&'a [AtomicU32]),
    Eight(&'a [AtomicU64]),
}

impl ArcSlots<'_> {
    /// Fetches a place to the cache.
    #[inline(always)]
    pub fn prefetch(&self, place: usize) {
        anden_base::simd::prefetch(self.targets, place);
        match &self.weights {
            None => {}
            Some(WeightSlots::Four(slots)) => anden_base::simd::prefetch(slots, place),
            Some(WeightSlots::Eight(slots)) => anden_base::simd::prefetch(slots, place),
        }
        if let Some(slots) = self.rows {
            anden_base::simd::prefetch(slots, place);
        }
    }

    #[inline(always)]
    pub fn put_target(&self, place: usize, target: VertexId) {
        // One thread writes each slot, and the end of the pool's loop publishes all of them.
        self.targets[place].store(target, Ordering::Relaxed);
    }

    /// Writes the bits of a weight, if entries have weights.
    #[inline(always)]
    pub fn put_weight(&self, place: usize, bits: u64) {
        match &self.weights {
            None => {}
            // Relaxed, as for targets.
            Some(WeightSlots::Four(slots)) => slots[place].store(bits as u32, Ordering::Relaxed),
            Some(WeightSlots::Eight(slots)) => slots[place].store(bits, Ordering::Relaxed),
        }
    }

    /// Writes a row, if entries have rows.
    #[inline(always)]
    pub fn put_row(&self, place: usize, row: u64) {
        if let Some(slots) = self.rows {
            slots[place].store(row, Ordering::Relaxed);
        }
    }
}

/// Values of one type, stored as words so that they are aligned as in a file.
struct Array {
    words: Vec<u64>,
    num_bytes: usize,
}

impl Array {
    fn zeros<T: Pod>(len: usize) -> Self {
        let num_bytes = len * size_of::<T>();
        Self { words: zeroed_huge(num_bytes.div_ceil(size_of::<u64>())), num_bytes }
    }

    fn values_mut<T: Pod>(&mut self) -> &mut [T] {
        let len = self.num_bytes / size_of::<T>();
        &mut bytemuck::cast_slice_mut(&mut self.words)[..len]
    }

    fn column<T: Pod>(self) -> SectionColumn<T> {
        let bytes = FileBytes::owned(self.words, self.num_bytes);
        let values = bytes.and_then(MappedSlice::new).expect("an array has room for whole values");
        SectionColumn::in_memory(values)
    }
}
