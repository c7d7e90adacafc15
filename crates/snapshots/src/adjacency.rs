//! The adjacency lists of a view in one direction: the lists of the base with the changes of deltas, page by page.
//!
//! The first touch of a page decides its state. The page is verified, the deltas between the base and the view's
//! version are composed, and their changes are patched in memory. From then on, a list costs as much as in a plain CSR.
//! The position of its offsets follows from the vertex alone, so the processor fetches them without waiting for the
//! page's state. A patched page lies in the slice of targets too, behind those of the base.

mod merged_on_demand;
mod origin;
mod overlaid;
mod page_state;
mod sizes;
mod spec;

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

use anden_base::VertexId;
use anden_base::mapped::MappedSlice;
use anden_graph::{DensePage, Page, Parts, Weight, prefetch_start};
use parking_lot::Mutex;

use crate::arc_columns::{ArcColumns, ArcValue};
use crate::base::{BaseLists, VerifiedPage};
use crate::changes::{ApplyDirection, EntryBuffer, PageChanges};
use crate::delta::StoredPage;
use crate::page::{BasePage, WholePage};
use crate::patched::PatchedPage;
use crate::rewritten::{OffsetTable, OverflowArena, OverflowLists};
use crate::table::{PAGE_OFFSETS, PAGE_SHIFT, num_pages, page_of, place_in_page};

use merged_on_demand::merged_values;
pub use origin::{ListChange, ListOrigin};
pub(crate) use overlaid::AdjacencyOverlay;
use overlaid::for_each_run;
use page_state::{AtomicPageEntry, ListLocation, PageState};
pub(crate) use spec::{PageScratch, ShownArcs, ViewSpec};

/// The first damage that a reader met.
pub(crate) type FirstDamage = Arc<OnceLock<anden_base::Error>>;

/// The adjacency lists of one direction; clones share everything, verified and patched pages included.
#[derive(Clone, Debug)]
pub(crate) struct AdjacencyView {
    pages: Arc<[AtomicPageEntry]>,
    offsets: MappedSlice<u32>,
    targets: MappedSlice<VertexId>,
    columns: ArcColumns,
    /// The changes in memory over some lists.
    overlay: Option<AdjacencyOverlay>,
    /// Whether a page's first read verifies only the list that it needs (lazy read).
    is_lazy: bool,
    shared: Arc<SharedAdjacency>,
}

#[derive(Debug)]
struct SharedAdjacency {
    spec: ViewSpec,
    /// The pages that deltas change, once they are patched; empty without deltas.
    patched: Box<[OnceLock<Arc<PatchedPage>>]>,
    /// Number of lists that were read of each of these pages.
    num_reads: Box<[AtomicU16]>,
    /// Overflow arena for patched pages, if there are deltas and the system has address space and memory.
    overflow: Option<AdjacencyArena>,
    fault: FirstDamage,
}

/// Memory for the patched pages of one direction.
#[derive(Debug)]
struct AdjacencyArena {
    arena: Arc<OverflowArena>,
    /// The offsets of all touched pages, written before the page's entry announces them.
    offsets: Mutex<OffsetTable>,
}

/// Result of a page's first touch.
struct Look<'a> {
    state: PageState,
    edge_base: usize,
    /// Empty unless the lists of the page are in one slice.
    offsets: &'a [u32],
}

/// Bytes a page that a view keeps in memory for both directions before any read.
pub(crate) const STATE_BYTES: u64 = 128;

/// Position of the offsets of `vertex` if every page before its own has offsets.
#[inline(always)]
fn dense_place(vertex: VertexId) -> usize {
    const { assert!(PAGE_OFFSETS == (1 << PAGE_SHIFT) + 1) };
    vertex as usize + page_of(vertex)
}

impl AdjacencyView {
    /// The lists that `spec` specifies. Cost: 8 bytes for each page, and 18 more if there are deltas; no list is
    /// read.
    pub fn new(spec: ViewSpec, fault: &FirstDamage) -> Self {
        let num_pages = num_pages(spec.vertex_bound);
        Self::with_pages(spec, num_pages, fault)
    }

    /// As [`new`](Self::new), with space for changes in memory on the first `num_pages` pages.
    fn with_pages(spec: ViewSpec, num_pages: usize, fault: &FirstDamage) -> Self {
        let no_columns = || ArcColumns::new(&spec.options, &EntryBuffer::default());
        let none = || (MappedSlice::empty(), MappedSlice::empty(), no_columns());
        let lists = spec.lists();
        let (mut offsets, mut targets, mut columns) = lists
            .map_or_else(none, |lists| (lists.offsets().clone(), lists.targets().clone(), lists.columns().clone()));
        let entry = |page| AtomicPageEntry::untouched(lists.map_or(0, |lists| lists.edge_base(page)));
        let pages = (0..num_pages).map(entry).collect();
        let num_patched = if spec.steps.is_empty() { 0 } else { num_pages };
        let patched = (0..num_patched).map(|_| OnceLock::new()).collect();
        let num_reads = (0..num_patched).map(|_| AtomicU16::new(0)).collect();
        let mut overflow = None;
        if !spec.steps.is_empty() {
            let memory = spec.base.memory();
            let own;
            let overflow_lists = match lists {
                Some(lists) => lists.overflow(memory),
                None => {
                    own = OverflowLists::new(&targets, &columns, memory);
                    own.as_ref()
                }
            };
            // Without memory or address space for an arena, changed pages stay in fragments.
            if let (Some(lists), Some((table, writer))) = (overflow_lists, OffsetTable::new(num_pages, memory)) {
                (offsets, targets, columns) = (table, lists.targets.clone(), lists.columns.clone());
                overflow = Some(AdjacencyArena { arena: Arc::clone(&lists.arena), offsets: Mutex::new(writer) });
            }
        }
        let shared = Arc::new(SharedAdjacency { spec, patched, num_reads, overflow, fault: Arc::clone(fault) });
        Self { pages, offsets, targets, columns, overlay: None, is_lazy: false, shared }
    }

    /// These lists, with or without lazy reads. A lazy read of a page that no delta changes reads only the requested
    /// bytes: the offsets for a degree, one list for a list. Otherwise the first reader reads and verifies the whole
    /// page, which is faster for later readers.
    pub fn lazy(&self, is_lazy: bool) -> Self {
        let spec = &self.shared.spec;
        // A version with fewer vertices than the base checks its lists against the bound a whole page at a time.
        let has_all = spec.lists().is_some() && spec.vertex_bound >= spec.base.vertex_bound();
        Self { is_lazy: is_lazy && has_all, ..self.clone() }
    }

    pub fn num_pages(&self) -> usize {
        self.pages.len()
    }

    /// Whether deltas apply to the base.
    pub fn has_deltas(&self) -> bool {
        !self.shared.spec.steps.is_empty()
    }

    /// Counts the pages that are as in the base, that deltas change, and that have no edges.
    ///
    /// Cost: looks up every page in the index of every delta.
    pub fn count_pages(&self) -> PageCounts {
        let spec = &self.shared.spec;
        let mut counts = PageCounts::default();
        for page in 0..self.num_pages() {
            let is_patched = spec.steps.iter().any(|(delta, _)| delta.touches(spec.direction, page));
            let kind = match spec.lists().is_some_and(|lists| !lists.edges(page).is_empty()) {
                _ if is_patched => &mut counts.patched,
                true => &mut counts.dense,
                false => &mut counts.empty,
            };
            *kind += 1;
        }
        counts
    }

    /// The list of `vertex` among the targets, if its offsets are at [`dense_place`] and its state is at most
    /// `last_state`. With `Dense`, its weights are verified; with `DenseTargets`, perhaps not.
    #[inline(always)]
    fn list(&self, vertex: VertexId, last_state: PageState) -> Option<Range<usize>> {
        // Acquire: with the state, this thread sees the offsets and targets that were written before it.
        let entry = self.pages[page_of(vertex)].load(Ordering::Acquire);
        // One bounds check instead of two: the compiler sees that the addition does not overflow.
        let place = dense_place(vertex);
        entry.is_plain(last_state).then(|| {
            let (ends, base) = (&self.offsets[place..place + 2], entry.first_arc());
            base + ends[0] as usize..base + ends[1] as usize
        })
    }

    /// The list below the overlay, by the slow path: its page is untouched, or its offsets are elsewhere. With
    /// `wants_weights`, its weights are verified.
    fn elsewhere(&self, vertex: VertexId, wants_weights: bool) -> ListLocation<'_> {
        self.merged_on_demand(vertex, wants_weights).unwrap_or_else(|| self.on_page(vertex, wants_weights))
    }

    /// As [`elsewhere`](Self::elsewhere), without merging on demand: touches the page.
    fn on_page(&self, vertex: VertexId, wants_weights: bool) -> ListLocation<'_> {
        let page = page_of(vertex);
        if let Some(lists) = self.lazy_lists(page) {
            let list = if wants_weights { lists.weighted_list(vertex) } else { lists.list(vertex) };
            return match list {
                Ok(list) => ListLocation::Slice(list),
                Err(error) => {
                    self.set_damaged(page, error);
                    ListLocation::Nowhere
                }
            };
        }
        match self.state(page, wants_weights) {
            PageState::Fragmented => self.on_fragmented_page(page, vertex),
            PageState::Empty | PageState::Damaged => ListLocation::Nowhere,
            state => {
                let place = self.place(state, vertex);
                let base = self.pages[page].load(Ordering::Relaxed).first_arc();
                let ends = &self.offsets[place..place + 2];
                ListLocation::Slice(base + ends[0] as usize..base + ends[1] as usize)
            }
        }
    }

    /// The lists in the files, if the page is read lazily.
    #[inline]
    fn lazy_lists(&self, page: usize) -> Option<&BaseLists> {
        if !self.is_lazy || self.pages[page].state() != PageState::Untouched {
            return None;
        }
        self.base_lists().filter(|lists| page < lists.num_pages() && self.is_unchanged(page))
    }

    /// A list on a page in fragments: in the base, unless deltas change the list.
    fn on_fragmented_page(&self, page: usize, vertex: VertexId) -> ListLocation<'_> {
        let Some(fragments) = self.shared.patched[page].get().and_then(|page| page.fragments()) else {
            return ListLocation::Nowhere;
        };
        if let Some(changed_list) = fragments.changed_list(place_in_page(vertex)) {
            return ListLocation::Fragments(fragments, changed_list);
        }
        match self.base_lists().filter(|lists| lists.is_dense(page)) {
            Some(lists) => ListLocation::Slice(lists.verified_list(vertex)),
            None => ListLocation::Nowhere,
        }
    }

    /// Position of a vertex's offsets, on a page whose lists are in one slice.
    #[inline]
    fn place(&self, state: PageState, vertex: VertexId) -> usize {
        match state {
            PageState::Dense | PageState::DenseTargets => dense_place(vertex),
            _ => {
                let lists = self.shared.spec.lists();
                lists.map_or(0, |lists| lists.place(page_of(vertex))) + place_in_page(vertex)
            }
        }
    }

    /// The state of a page; touches it if necessary.
    #[inline]
    fn state(&self, page: usize, wants_weights: bool) -> PageState {
        let state = self.pages[page].state();
        let is_known = match state {
            PageState::Untouched => false,
            PageState::DenseTargets | PageState::InBaseTargets => !wants_weights,
            _ => true,
        };
        if is_known { state } else { self.enter(page, wants_weights) }
    }

    /// The range of a page's targets in the base.
    fn base_targets(&self, page: usize) -> Range<usize> {
        self.base_lists().map_or(0..0, |lists| lists.edges(page))
    }

    /// First prefetch stage: fetches the page entry, the offsets, and the overlay's entry for the list of `vertex`.
    #[inline(always)]
    pub fn prefetch(&self, vertex: VertexId) {
        // A wrong guess of the place only wastes a hint.
        anden_base::simd::prefetch(&self.pages, page_of(vertex));
        anden_base::simd::prefetch(&self.offsets, dense_place(vertex));
        if let Some(overlay) = self.overlay_of(vertex) {
            overlay.overlay.prefetch(overlay.direction, vertex);
        }
    }

    /// Second prefetch stage: fetches the block that the overlay's entry leads to.
    #[inline(always)]
    pub fn prefetch_place(&self, vertex: VertexId) {
        if let Some(overlay) = self.overlay_of(vertex) {
            overlay.prefetch_place(vertex);
        }
    }

    /// Fetches the cache lines that [`rough_degree`](Self::rough_degree) reads.
    #[inline(always)]
    pub fn prefetch_rough_degree(&self, vertex: VertexId) {
        anden_base::simd::prefetch(&self.offsets, dense_place(vertex));
        if let Some(overlay) = self.overlay_of(vertex).filter(|_| !self.has_list_below(vertex)) {
            overlay.prefetch_place(vertex);
        }
    }

    /// Last prefetch stage: fetches the first lines of the list of `vertex`.
    #[inline(always)]
    pub fn prefetch_list(&self, parts: Parts, vertex: VertexId) {
        let start = match self.list(vertex, PageState::DenseTargets) {
            Some(list) => list.start,
            None => self.prefetch_elsewhere(vertex),
        };
        prefetch_start(&self.targets, start);
        if parts == Parts::Weighted
            && let Some(weights) = &self.columns.weights
        {
            weights.prefetch(start);
        }
    }

    /// Start of the list below, if it is known without a touch; else prefetches the overlay's list.
    #[inline(never)]
    fn prefetch_elsewhere(&self, vertex: VertexId) -> usize {
        let below = self.list_below(vertex, PageState::DenseTargets);
        // Changes over a nonempty list are few, mostly fetched with their block, and there is time while the list is
        // read.
        if below.is_none()
            && let Some(overlay) = self.overlay_of(vertex)
        {
            overlay.prefetch_list(vertex);
        }
        below.map_or(0, |list| list.start)
    }

    /// The lists of the base, if the view shows them.
    pub fn base_lists(&self) -> Option<&BaseLists> {
        self.shared.spec.lists()
    }

    /// Whether the page of `vertex` is patched in memory, so that its lists in the base are not read again.
    pub fn is_rewritten(&self, vertex: VertexId) -> bool {
        let (Some(lists), Some(entry)) = (self.base_lists(), self.pages.get(page_of(vertex))) else { return true };
        let entry = entry.load(Ordering::Relaxed);
        match entry.state() {
            PageState::Untouched => false,
            PageState::Fragmented | PageState::Empty | PageState::Damaged => true,
            // Patched pages lie in the arena, behind the targets of the base.
            _ => entry.first_arc() >= lists.targets().len(),
        }
    }

    /// Length of the list of `vertex`.
    #[inline(always)]
    pub fn degree(&self, vertex: VertexId) -> usize {
        match self.list(vertex, PageState::DenseTargets) {
            Some(list) => list.len(),
            None => self.degree_elsewhere(vertex),
        }
    }

    #[inline(never)]
    fn degree_elsewhere(&self, vertex: VertexId) -> usize {
        let degree = self.degree_below(vertex);
        self.overlay_of(vertex).map_or(degree, |overlay| overlay.degree(vertex, degree))
    }

    fn degree_below(&self, vertex: VertexId) -> usize {
        if let Some(list) = self.list_below(vertex, PageState::DenseTargets) {
            return list.len();
        }
        if let Some(lists) = self.lazy_lists(page_of(vertex)) {
            return lists.degree(vertex).unwrap_or_else(|error| {
                self.set_damaged(page_of(vertex), error);
                0
            });
        }
        if let Some(degree) = self.merged_degree(vertex) {
            return degree;
        }
        match self.on_page(vertex, false) {
            ListLocation::Slice(list) => list.len(),
            ListLocation::Fragments(page, changed_list) => page.degree(changed_list),
            ListLocation::Merged(list) => list.targets.len(),
            ListLocation::Nowhere => 0,
        }
    }

    /// Calls `body` with the fragments of the list of `vertex`.
    #[inline(always)]
    pub fn for_each_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.list(vertex, PageState::DenseTargets) {
            Some(list) => body(&self.targets[list]),
            None => self.for_each_fragment_elsewhere(vertex, body),
        }
    }

    // `body` is moved in, not borrowed. Otherwise its captures would have to be in memory on the fast path, too.
    #[inline(never)]
    fn for_each_fragment_elsewhere(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if let Some(overlay) = &self.overlay {
            if overlay.dirty.get(vertex as usize) {
                return self.for_each_fragment_overlaid(overlay, vertex, body);
            }
            if let Some(list) = self.list_below(vertex, PageState::DenseTargets) {
                return body(&self.targets[list]);
            }
        }
        match self.elsewhere(vertex, false) {
            ListLocation::Slice(list) => body(&self.targets[list]),
            ListLocation::Fragments(page, changed_list) => {
                let base = &self.targets[self.base_targets(page_of(vertex))];
                page.for_each_fragment(changed_list, base, body)
            }
            ListLocation::Merged(list) => body(&list.targets),
            ListLocation::Nowhere => ControlFlow::Continue(()),
        }
    }

    /// As [`for_each_fragment`](Self::for_each_fragment), with the weights or the rows. Calls nothing if weights are of
    /// another type, or if there are no rows.
    #[inline(always)]
    pub fn for_each_fragment_with<P: ArcValue>(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[P]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(values) = P::of(&self.columns) else { return ControlFlow::Continue(()) };
        // `Dense` means that lists and weights are verified. Rows are verified list by list, on the slow path.
        match self.list(vertex, PageState::Dense).filter(|_| P::IS_WEIGHT) {
            Some(list) => body(&self.targets[list.clone()], &values[list]),
            None => self.for_each_fragment_with_elsewhere(vertex, values, body),
        }
    }

    /// The list of `vertex` with its weights, if both are verified and in one fragment.
    #[inline(always)]
    pub fn weighted_list<W: Weight>(&self, vertex: VertexId) -> Option<(&[VertexId], &[W])> {
        let weights = self.columns.weights.as_ref().and_then(W::of)?;
        let Some(list) = self.list(vertex, PageState::Dense).or_else(|| self.clean_list(vertex, PageState::Dense))
        else {
            let (targets, weights) = self.list_added(vertex)?;
            // Beside rows, weights are interleaved with them, so they are no slice.
            let is_column = weights.len() == targets.len() * size_of::<W>();
            return is_column.then(|| (targets, bytemuck::cast_slice(weights)));
        };
        Some((&self.targets[list.clone()], &weights[list]))
    }

    #[inline(never)]
    fn for_each_fragment_with_elsewhere<P: ArcValue>(
        &self,
        vertex: VertexId,
        values: &[P],
        mut body: impl FnMut(&[VertexId], &[P]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if let Some(overlay) = &self.overlay
            && overlay.dirty.get(vertex as usize)
        {
            return self.for_each_fragment_with_overlaid(overlay, vertex, values, body);
        }
        match self.found_below::<P>(vertex) {
            ListLocation::Slice(list) => body(&self.targets[list.clone()], &values[list]),
            ListLocation::Fragments(page, changed_list) => {
                let edges = self.base_targets(page_of(vertex));
                page.for_each_fragment_with(changed_list, (&self.targets[edges.clone()], &values[edges]), body)
            }
            ListLocation::Merged(list) => body(&list.targets, &merged_values(&list)),
            ListLocation::Nowhere => ControlFlow::Continue(()),
        }
    }

    /// The list of `vertex` below the overlay, with verified values.
    #[inline(always)]
    fn found_below<P: ArcValue>(&self, vertex: VertexId) -> ListLocation<'_> {
        let found = self.targets_below(vertex, P::IS_WEIGHT);
        match &found {
            ListLocation::Slice(list) if !P::IS_WEIGHT => match self.verify_rows(list.clone()) {
                Ok(()) => found,
                Err(error) => {
                    self.set_damaged(page_of(vertex), error);
                    ListLocation::Nowhere
                }
            },
            _ => found,
        }
    }

    /// Verifies the rows of these entries, if they are in the base.
    fn verify_rows(&self, list: Range<usize>) -> anden_base::Result<()> {
        let lists = self.base_lists().filter(|lists| list.end <= lists.targets().len());
        lists.map_or(Ok(()), |lists| lists.verify_rows(list))
    }

    /// The list of `vertex`, if it is in one fragment.
    #[inline(always)]
    pub fn single_list(&self, vertex: VertexId) -> Option<&[VertexId]> {
        match self.list(vertex, PageState::DenseTargets) {
            Some(list) => Some(&self.targets[list]),
            None => self.single_list_elsewhere(vertex),
        }
    }

    #[inline(never)]
    fn single_list_elsewhere(&self, vertex: VertexId) -> Option<&[VertexId]> {
        if self.overlay_of(vertex).is_some_and(|overlay| overlay.changes(vertex)) {
            return None;
        }
        // The result borrows from this view, so the page is patched instead of merging the list on demand.
        match self.on_page(vertex, false) {
            ListLocation::Slice(list) => Some(&self.targets[list]),
            ListLocation::Fragments(page, changed_list) => {
                page.single_list(changed_list, &self.targets[self.base_targets(page_of(vertex))])
            }
            ListLocation::Merged(_) => None,
            ListLocation::Nowhere => Some(&[]),
        }
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
            let page_end = (page as u64 + 1) << PAGE_SHIFT;
            let end = u64::from(vertices.end).min(page_end) as VertexId;
            match &self.overlay {
                // Without lists below, splitting the page into ranges gains nothing.
                Some(_)
                    if self.pages[page].load(Ordering::Relaxed).is_overlaid()
                        && self.state(page, false) >= PageState::Fragmented =>
                {
                    body(Page::Patched(first..end))?;
                }
                Some(overlay) if self.pages[page].load(Ordering::Relaxed).is_overlaid() => {
                    for_each_run(&overlay.dirty, first..end, |run, is_dirty| match is_dirty {
                        true => body(Page::Patched(run)),
                        false => body(self.page(page, run)),
                    })?;
                }
                _ => body(self.page(page, first..end))?,
            }
            first = end;
        }
        ControlFlow::Continue(())
    }

    /// These vertices of one page, below the overlay.
    #[inline]
    fn page(&self, page: usize, vertices: Range<VertexId>) -> Page<'_, u32> {
        let state = self.state(page, false);
        let base = self.pages[page].load(Ordering::Relaxed).first_arc();
        let offsets = match state {
            PageState::Fragmented => return Page::Patched(vertices),
            PageState::Empty | PageState::Damaged => return Page::Empty(vertices),
            state => {
                let place = self.place(state, vertices.start);
                &self.offsets[place..=place + vertices.len()]
            }
        };
        let end = offsets[vertices.len()] as usize;
        Page::Dense(DensePage::new(vertices.start, offsets, &self.targets[base..base + end]))
    }

    /// Touches a page for the first time, or its weights, and publishes its state.
    #[cold]
    #[inline(never)]
    fn enter(&self, page: usize, wants_weights: bool) -> PageState {
        let look = self.look_at(page, wants_weights).and_then(|look| self.shown(page, &look).map(|()| look.state));
        look.unwrap_or_else(|error| {
            self.set_damaged(page, error);
            PageState::Damaged
        })
    }

    fn set_damaged(&self, page: usize, error: anden_base::Error) {
        let _ = self.shared.fault.set(error);
        self.pages[page].set_damaged();
    }

    fn look_at(&self, page: usize, wants_weights: bool) -> anden_base::Result<Look<'_>> {
        let spec = &self.shared.spec;
        if let Some(patched) = self.shared.patched.get(page) {
            if patched.get().is_none()
                && let Some(new) =
                    spec.patch(page, self.shared.overflow.as_ref().map(|overflow| &overflow.arena), self.is_lazy)?
            {
                // If another thread was faster, readers know its page, and this one is dropped.
                let _ = patched.set(new);
            }
            if let Some(patched) = patched.get() {
                return Ok(match patched.rewritten() {
                    Some(page) => {
                        Look { state: PageState::Dense, edge_base: page.edge_base(), offsets: page.offsets() }
                    }
                    None => Look { state: PageState::Fragmented, edge_base: 0, offsets: &[] },
                });
            }
        }
        let empty = Look { state: PageState::Empty, edge_base: 0, offsets: &[] };
        let Some(lists) = spec.lists().filter(|lists| page < lists.num_pages()) else { return Ok(empty) };
        let Some(VerifiedPage { place, offsets, targets, edge_base }) = lists.page(page)? else { return Ok(empty) };
        // The base was checked against its own bound, which is larger.
        if spec.vertex_bound < spec.base.vertex_bound() {
            spec.check_largest(page, targets.iter().copied().max())?;
        }
        let has_weights = spec.options.weight_type.is_some();
        if wants_weights {
            lists.verify_weights(page)?;
        }
        let is_ready = wants_weights || !has_weights;
        // With an arena, the view's own table has the offsets of every page at its dense place.
        let is_dense_place = self.shared.overflow.is_some() || place == dense_place((page << PAGE_SHIFT) as VertexId);
        let state = match (is_dense_place, is_ready) {
            (true, true) => PageState::Dense,
            (true, false) => PageState::DenseTargets,
            (false, true) => PageState::InBase,
            (false, false) => PageState::InBaseTargets,
        };
        Ok(Look { state, edge_base, offsets })
    }

    /// Publishes the state of a page.
    fn shown(&self, page: usize, look: &Look<'_>) -> anden_base::Result<()> {
        let entry = &self.pages[page];
        // The offsets are written before the entry announces them, so that no reader sees an unwritten table.
        let mut table = self.shared.overflow.as_ref().map(|overflow| overflow.offsets.lock());
        // If only the weights were missing, the table has the page's offsets already.
        if let Some(table) = &mut table
            && entry.state() == PageState::Untouched
            && !look.offsets.is_empty()
        {
            table
                .write(page, look.offsets)
                .map_err(|error| anden_base::Error::io("write offsets to memory for", &self.shared.spec.path, error))?;
        }
        entry.set(look.state, look.edge_base);
        Ok(())
    }

    /// Reads and checks a whole page. Blocks of the base that are verified already are not checked again.
    ///
    /// # Errors
    /// The page is damaged, in the base or in a delta, or the two do not fit together.
    pub fn whole_page(&self, page: usize) -> anden_base::Result<WholePage> {
        let mut whole = WholePage::default();
        self.read_whole_page(page, &mut PageScratch::default(), &mut whole)?;
        Ok(whole)
    }

    /// As [`whole_page`](Self::whole_page), into `whole` and with reused memory.
    ///
    /// # Errors
    /// As [`whole_page`](Self::whole_page).
    pub fn read_whole_page(
        &self,
        page: usize,
        scratch: &mut PageScratch,
        whole: &mut WholePage,
    ) -> anden_base::Result<()> {
        let spec = &self.shared.spec;
        spec.changes(page, scratch)?;
        whole.fill(&spec.base_page(page)?, &scratch.all).map_err(|what| spec.corrupt(page, &what))?;
        spec.check_largest(page, whole.entries.targets.iter().copied().max())
    }

    /// Whether the page is in state `Dense`, below the overlay.
    #[inline]
    pub fn is_ready(&self, page: usize) -> bool {
        self.pages[page].state() == PageState::Dense
    }

    /// The list of `vertex` below the overlay, if its page is in state `Dense`.
    #[inline]
    pub fn ready_list(&self, vertex: VertexId) -> Option<&[VertexId]> {
        self.list_below(vertex, PageState::Dense).map(|list| &self.targets[list])
    }

    /// A page in state `Dense`, with the changes of deltas.
    ///
    /// # Errors
    /// The rows of the page are damaged.
    pub fn ready_page(&self, page: usize) -> anden_base::Result<Option<BasePage<'_>>> {
        let entry = self.pages[page].load(Ordering::Acquire);
        if entry.state() != PageState::Dense {
            return Ok(None);
        }
        self.base_page_at(dense_place((page << PAGE_SHIFT) as VertexId), entry.first_arc()).map(Some)
    }

    /// All lists of a page in one slice, verified, with weights and rows. `None` if they are not in one slice, or are
    /// empty, or if changes in memory lie over some.
    ///
    /// # Errors
    /// The rows of the page are damaged.
    pub fn page_in_one_slice(&self, page: usize) -> anden_base::Result<Option<BasePage<'_>>> {
        let state = self.state(page, true);
        if self.pages[page].load(Ordering::Relaxed).is_overlaid()
            || !matches!(state, PageState::Dense | PageState::InBase)
        {
            return Ok(None);
        }
        let place = self.place(state, (page << PAGE_SHIFT) as VertexId);
        self.base_page_at(place, self.pages[page].load(Ordering::Relaxed).first_arc()).map(Some)
    }

    /// The page whose offsets start at `place`.
    fn base_page_at(&self, place: usize, edge_base: usize) -> anden_base::Result<BasePage<'_>> {
        let offsets = &self.offsets[place..place + PAGE_OFFSETS];
        let edges = edge_base..edge_base + offsets[PAGE_OFFSETS - 1] as usize;
        self.verify_rows(edges.clone())?;
        let (targets, columns) = (&self.targets[edges], Some(&self.columns));
        Ok(BasePage { offsets, targets, edge_base, columns, options: &self.shared.spec.options })
    }

    /// The page of the base, verified. Fills `parts` with the changes of each delta on the page, in their stored form.
    ///
    /// # Errors
    /// The page is damaged, in the base or in a delta.
    pub fn base_page_with_parts<'a>(
        &'a self,
        page: usize,
        parts: &mut Vec<(StoredPage<'a>, ApplyDirection)>,
        scratch: &mut PageChanges,
    ) -> anden_base::Result<BasePage<'a>> {
        let spec = &self.shared.spec;
        debug_assert_eq!(spec.shown, ShownArcs::All, "what is added in the end shows only in the sum");
        spec.stored_parts(page, parts, scratch)?;
        spec.base_page(page)
    }

    /// Number of patched pages.
    #[cfg(test)]
    pub fn num_patched(&self) -> usize {
        self.shared.patched.iter().filter(|page| page.get().is_some()).count()
    }

    /// Number of entries of all lists. Cost: patches every page that deltas change.
    pub fn count_arcs(&self) -> u64 {
        let patched = |page: usize| self.shared.patched.get(page).and_then(|patched| patched.get());
        let num_arcs = |page: usize| match (self.state(page, false), patched(page)) {
            (PageState::Empty | PageState::Damaged, _) => 0,
            (_, Some(patched)) => patched.num_arcs(),
            (_, None) => self.base_targets(page).len() as u64,
        };
        debug_assert!(self.overlay.is_none(), "the overlay counts its own arcs");
        (0..self.num_pages()).map(num_arcs).sum()
    }
}

/// Number of pages of each kind, in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageCounts {
    pub dense: usize,
    pub patched: usize,
    pub empty: usize,
}
