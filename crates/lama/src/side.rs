//! One side of a run in memory: the page table, and pages verified when they are first touched.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use base::VertexId;
use base::mapped::MappedSlice;
use graph::{DensePage, Page, Weight, WeightType, Weights};

use crate::column::Column;
use crate::encoding::Decoder;
use crate::file::{FramedFile, SectionKind};
use crate::lists::ListRules;
use crate::table::{
    INDEX_ENTRY_BYTES, IndexEntry, PAGE_OFFSETS, PAGE_VERTICES, PageKind, num_pages, page_of, place_in_page,
};
use crate::{Result, table};

/// The first damage that a reader met.
pub(crate) type Fault = Arc<OnceLock<base::Error>>;

/// The lists of one side; clones share everything, also what was verified.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pages: Arc<[PageEntry]>,
    offsets: MappedSlice<u32>,
    targets: MappedSlice<VertexId>,
    weights: Option<SideWeights>,
    shared: Arc<Shared>,
}

/// A page of the table. The last entry belongs to no page: its base is the number of targets.
#[derive(Debug)]
struct PageEntry {
    /// Where the page's edges start among all targets.
    edge_base: u64,
    /// Where its offsets start once the page is verified; until then at least [`SPECIAL`].
    ///
    /// Reading and writing it needs no order: it says only that somebody checked bytes that nobody changes.
    place: AtomicU64,
}

/// Places from here on are not verified pages.
const SPECIAL: u64 = 1 << 63;

/// With the place that the page will have: nobody has looked at it.
const UNTOUCHED: u64 = SPECIAL;

/// No vertex of the page has edges.
const EMPTY: u64 = u64::MAX;

/// The page did not pass its check; its lists look empty.
const DAMAGED: u64 = u64::MAX - 1;

/// Weights have pages of their own: who does not read weights need not verify them.
#[derive(Clone, Debug)]
struct SideWeights {
    pages: Arc<[PageEntry]>,
    values: Weights,
}

#[derive(Debug)]
struct Shared {
    offsets: Column<u32>,
    targets: Column<VertexId>,
    weights: Option<WeightColumn>,
    rules: ListRules,
    num_dense: usize,
    fault: Fault,
}

/// The files of one side.
#[derive(Debug)]
pub(crate) struct SideFiles<'a> {
    pub table: &'a FramedFile,
    pub targets: &'a FramedFile,
    pub weights: Option<(&'a FramedFile, WeightType)>,
}

impl Side {
    /// Joins the files of a side; verifies the index of its pages.
    ///
    /// # Errors
    /// A section is missing or has a wrong length; the index is damaged.
    pub fn open(files: &SideFiles<'_>, rules: ListRules, fault: &Fault) -> Result<Self> {
        let offsets = Column::<u32>::open(files.table, SectionKind::Offsets)?;
        let targets = Column::<VertexId>::open(files.targets, SectionKind::Targets)?;
        let index = read_index(files.table, rules.vertex_bound, targets.len() as u64)?;
        let num_dense = index.iter().filter(|entry| entry.kind == PageKind::Dense).count();
        if offsets.len() != num_dense * PAGE_OFFSETS {
            let what = format!("offsets for {num_dense} pages expected, {} found", offsets.len());
            return Err(files.table.corrupt(what));
        }
        let weights = files.weights.map(|(file, weight_type)| WeightColumn::open(file, weight_type)).transpose()?;
        if let Some((file, _)) = files.weights
            && let Some(column) = &weights
            && column.len() != targets.len()
        {
            return Err(file.corrupt(format!("{} weights expected, {} found", targets.len(), column.len())));
        }
        let num_targets = targets.len() as u64;
        let weights_side = weights
            .as_ref()
            .map(|column| SideWeights { pages: page_entries(&index, num_targets), values: column.unverified() });
        Ok(Self {
            pages: page_entries(&index, num_targets),
            offsets: offsets.unverified().clone(),
            targets: targets.unverified().clone(),
            weights: weights_side,
            shared: Arc::new(Shared { offsets, targets, weights, rules, num_dense, fault: Arc::clone(fault) }),
        })
    }

    /// The number of stored entries.
    pub fn num_arcs(&self) -> u64 {
        self.targets.len() as u64
    }

    /// The number of pages, and how many of them are dense.
    pub fn num_pages(&self) -> (usize, usize) {
        (self.pages.len() - 1, self.shared.num_dense)
    }

    /// The weights, verified or not.
    pub fn weights(&self) -> Option<&Weights> {
        self.weights.as_ref().map(|weights| &weights.values)
    }

    /// The page of `vertex`, and the offsets at which its list starts and ends; `None` where the list is empty because
    /// the page is, or is damaged.
    #[inline(always)]
    fn ends<'a>(&self, pages: &'a [PageEntry], vertex: VertexId) -> Option<(&'a PageEntry, u32, u32)> {
        let page = &pages[page_of(vertex)];
        let place = page.place.load(Ordering::Relaxed);
        if place >= SPECIAL {
            let (start, end) = self.first_ends(pages, vertex)?;
            return Some((page, start, end));
        }
        // The compiler sees that this does not overflow, which makes one bounds check of two.
        let start = place as usize + place_in_page(vertex);
        let ends = &self.offsets[start..start + 2];
        Some((page, ends[0], ends[1]))
    }

    /// Where the list of `vertex` lies among all targets.
    #[inline(always)]
    fn range(&self, pages: &[PageEntry], vertex: VertexId) -> Range<usize> {
        match self.ends(pages, vertex) {
            Some((page, start, end)) => {
                let base = page.edge_base as usize;
                base + start as usize..base + end as usize
            }
            None => 0..0,
        }
    }

    /// Fetches the place of the list of `vertex` to the cache.
    #[inline(always)]
    pub fn prefetch(&self, vertex: VertexId) {
        // Whether the page was verified does not matter to a hint, and what is no place hints at nothing.
        // Lists are fetched one by one for the sake of weights, so it is their marks that are in the cache.
        let pages = self.weights.as_ref().map_or(&self.pages, |weights| &weights.pages);
        let place = pages[page_of(vertex)].place.load(Ordering::Relaxed) & !UNTOUCHED;
        base::simd::prefetch(&self.offsets, (place as usize).wrapping_add(place_in_page(vertex)));
    }

    /// The length of the list of `vertex`.
    #[inline(always)]
    pub fn degree(&self, vertex: VertexId) -> usize {
        // Offsets ascend: that was checked before they got here.
        self.ends(&self.pages, vertex).map_or(0, |(_, start, end)| end.wrapping_sub(start) as usize)
    }

    /// The list of `vertex`.
    #[inline(always)]
    pub fn list(&self, vertex: VertexId) -> &[VertexId] {
        &self.targets[self.range(&self.pages, vertex)]
    }

    /// The list of `vertex` with its weights; `None` where they are of another type.
    #[inline(always)]
    pub fn weighted_list<W: Weight>(&self, vertex: VertexId) -> Option<(&[VertexId], &[W])> {
        let weights = self.weights.as_ref()?;
        let values = W::of(&weights.values)?;
        let range = self.range(&weights.pages, vertex);
        Some((&self.targets[range.clone()], &values[range]))
    }

    /// Calls `body` with the pages that cover `vertices`.
    #[inline]
    pub fn for_each_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut first = vertices.start;
        while first < vertices.end {
            let page = page_of(first);
            let page_end = (page as u64 + 1) << table::PAGE_SHIFT;
            let end = u64::from(vertices.end).min(page_end) as VertexId;
            match self.page(page, first..end) {
                Some(dense) => body(Page::Dense(dense))?,
                None => body(Page::Empty(first..end))?,
            }
            first = end;
        }
        ControlFlow::Continue(())
    }

    /// These vertices of one page.
    #[inline]
    fn page(&self, page: usize, vertices: Range<VertexId>) -> Option<DensePage<'_, u32>> {
        let entry = &self.pages[page];
        let mut place = entry.place.load(Ordering::Relaxed);
        if place >= SPECIAL {
            place = self.enter(&self.pages, page)?;
        }
        let start = place as usize + place_in_page(vertices.start);
        let offsets = &self.offsets[start..=start + vertices.len()];
        let targets = &self.targets[entry.edge_base as usize..self.pages[page + 1].edge_base as usize];
        Some(DensePage::new(vertices.start, offsets, targets))
    }

    /// The offsets of a list on a page that is not known to be verified.
    #[cold]
    #[inline(never)]
    fn first_ends(&self, pages: &[PageEntry], vertex: VertexId) -> Option<(u32, u32)> {
        let start = self.enter(pages, page_of(vertex))? as usize + place_in_page(vertex);
        Some((self.offsets[start], self.offsets[start + 1]))
    }

    /// Where the offsets of a page start that is not known to be verified; `None` where its lists look empty.
    #[cold]
    #[inline(never)]
    fn enter(&self, pages: &[PageEntry], page: usize) -> Option<u64> {
        let place = pages[page].place.load(Ordering::Relaxed);
        match place {
            EMPTY => return None,
            DAMAGED => {
                // The caller's `check` finds the fault that was set before the page was marked.
                fence(Ordering::Acquire);
                return None;
            }
            // Another thread was faster.
            place if place < SPECIAL => return Some(place),
            _ => {}
        }
        let start = place & !UNTOUCHED;
        let with_weights = !std::ptr::eq(pages, &*self.pages);
        match self.check_page(page, start as usize, with_weights) {
            Ok(()) => {
                pages[page].place.store(start, Ordering::Relaxed);
                // With its weights, the page itself was verified.
                self.pages[page].place.store(start, Ordering::Relaxed);
                Some(start)
            }
            Err(error) => {
                let _ = self.shared.fault.set(error);
                pages[page].place.store(DAMAGED, Ordering::Release);
                None
            }
        }
    }

    /// Checks a page whose offsets are at `start`: checksums, offsets, lists, and perhaps weights.
    fn check_page(&self, page: usize, start: usize, with_weights: bool) -> base::Result<()> {
        let Shared { offsets, targets, weights, rules, .. } = &*self.shared;
        let edges = self.pages[page].edge_base as usize..self.pages[page + 1].edge_base as usize;
        let page_offsets = offsets.touch(start..start + PAGE_OFFSETS)?;
        let num_vertices = (rules.vertex_bound - page * PAGE_VERTICES).min(PAGE_VERTICES);
        let num_edges = page_offsets[num_vertices];
        let in_order = page_offsets[0] == 0
            && page_offsets.is_sorted()
            && num_edges as usize == edges.len()
            && num_edges == page_offsets[PAGE_VERTICES];
        if !in_order {
            let what = format!("offsets of a page do not ascend from 0 to {}", edges.len());
            return Err(offsets.corrupt(start, what));
        }
        let page_targets = targets.touch(edges.clone())?;
        let ends = page_offsets[1..].iter().map(|&end| end as usize);
        rules.check(page_targets, ends).map_err(|what| targets.corrupt(edges.start, what))?;
        if let (true, Some(weights)) = (with_weights, weights) {
            weights.check(edges)?;
        }
        Ok(())
    }

    /// Reads and checks a page again, whatever was verified before; gives its lists.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn check_again(&self, page: usize) -> base::Result<Option<CheckedPage<'_>>> {
        let entry = &self.pages[page];
        let start = match entry.place.load(Ordering::Relaxed) {
            EMPTY => return Ok(None),
            DAMAGED => {
                fence(Ordering::Acquire);
                return Err(self.shared.fault.get().cloned().unwrap_or(base::Error::Cancelled));
            }
            place => (place & !UNTOUCHED) as usize,
        };
        self.check_page(page, start, true)?;
        let edges = entry.edge_base as usize..self.pages[page + 1].edge_base as usize;
        Ok(Some(CheckedPage {
            first: (page * PAGE_VERTICES) as VertexId,
            offsets: &self.offsets[start..start + PAGE_OFFSETS],
            targets: &self.targets[edges.clone()],
            edges,
        }))
    }
}

/// A page that was checked just now.
#[derive(Debug)]
pub(crate) struct CheckedPage<'a> {
    pub first: VertexId,
    pub offsets: &'a [u32],
    pub targets: &'a [VertexId],
    /// Where the page's edges lie among all.
    pub edges: Range<usize>,
}

fn page_entries(index: &[IndexEntry], num_targets: u64) -> Arc<[PageEntry]> {
    let place = |entry: &IndexEntry| match entry.kind {
        PageKind::Empty => EMPTY,
        PageKind::Dense => UNTOUCHED | (u64::from(entry.slot) * PAGE_OFFSETS as u64),
    };
    let entries = index.iter().map(|entry| PageEntry { edge_base: entry.edge_base, place: place(entry).into() });
    entries.chain([PageEntry { edge_base: num_targets, place: EMPTY.into() }]).collect()
}

/// The index of the pages, verified: bases ascend to the number of targets, slots count the dense pages.
fn read_index(file: &FramedFile, vertex_bound: usize, num_targets: u64) -> Result<Vec<IndexEntry>> {
    let section = file.section(SectionKind::PageIndex)?;
    let bytes = section.bytes().as_slice();
    section.verify(0..bytes.len())?;
    let num_pages = num_pages(vertex_bound);
    let corrupt = |page: usize, what: &str| {
        let offset = section.file_offset() + (page * INDEX_ENTRY_BYTES) as u64;
        base::Error::corrupt(file.path(), offset, what)
    };
    if bytes.len() != num_pages * INDEX_ENTRY_BYTES {
        let what = format!("an index of {num_pages} pages expected, {} bytes found", bytes.len());
        return Err(corrupt(0, &what).into());
    }
    let mut decoder = Decoder::new(bytes);
    let mut index = Vec::with_capacity(num_pages);
    let (mut slot, mut previous) = (0, None::<IndexEntry>);
    for page in 0..num_pages {
        let entry = IndexEntry::decode(&mut decoder).ok_or_else(|| corrupt(page, "a page of an unknown kind"))?;
        let num_before = match previous {
            Some(previous) => page_len(&previous, entry.edge_base),
            None => (entry.edge_base == 0).then_some(0),
        };
        let is_next = entry.slot == if entry.kind == PageKind::Dense { slot } else { 0 };
        if num_before.is_none() || !is_next {
            return Err(corrupt(page, "the index of the pages is out of order").into());
        }
        slot += u32::from(entry.kind == PageKind::Dense);
        previous = Some(entry);
        index.push(entry);
    }
    let ends_well = previous.map_or(num_targets == 0, |last| page_len(&last, num_targets).is_some());
    if !ends_well {
        let what = format!("the index of the pages does not end at {num_targets} targets");
        return Err(corrupt(num_pages.saturating_sub(1), &what).into());
    }
    Ok(index)
}

/// The edges of a page, given where the next page's start; `None` where its kind cannot have so many.
fn page_len(entry: &IndexEntry, next_base: u64) -> Option<u64> {
    let len = next_base.checked_sub(entry.edge_base)?;
    match entry.kind {
        PageKind::Empty => len == 0,
        PageKind::Dense => (1..=u64::from(u32::MAX)).contains(&len),
    }
    .then_some(len)
}

/// The weights of a side, of any type.
#[derive(Debug)]
enum WeightColumn {
    U32(Column<u32>),
    I64(Column<i64>),
    F32(Column<f32>),
    F64(Column<f64>),
}

macro_rules! for_weights {
    ($column:expr, $name:ident => $body:expr) => {
        match $column {
            WeightColumn::U32($name) => $body,
            WeightColumn::I64($name) => $body,
            WeightColumn::F32($name) => $body,
            WeightColumn::F64($name) => $body,
        }
    };
}

impl WeightColumn {
    fn open(file: &FramedFile, weight_type: WeightType) -> Result<Self> {
        Ok(match weight_type {
            WeightType::U32 => Self::U32(Column::open(file, SectionKind::Weights)?),
            WeightType::I64 => Self::I64(Column::open(file, SectionKind::Weights)?),
            WeightType::F32 => Self::F32(Column::open(file, SectionKind::Weights)?),
            WeightType::F64 => Self::F64(Column::open(file, SectionKind::Weights)?),
        })
    }

    fn len(&self) -> usize {
        for_weights!(self, column => column.len())
    }

    fn unverified(&self) -> Weights {
        for_weights!(self, column => Weight::column(column.unverified().clone()))
    }

    fn check(&self, edges: Range<usize>) -> base::Result<()> {
        fn check<W: Weight>(column: &Column<W>, edges: Range<usize>) -> base::Result<()> {
            let weights = column.touch(edges.clone())?;
            match weights.iter().position(|weight| !weight.is_number()) {
                Some(index) => Err(column.corrupt(edges.start + index, "a weight that is no number")),
                None => Ok(()),
            }
        }
        for_weights!(self, column => check(column, edges))
    }
}
