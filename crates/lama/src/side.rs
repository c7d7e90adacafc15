//! One side of a view: the lists of the base run with the changes of levels, page by page.
//!
//! What a page is shows at its first touch: it is verified, the levels between the base run and the
//! view's version are composed for it, and what they change is patched in memory. From then on reading a
//! list costs what it costs in a plain CSR: where the offsets of a page are follows from the vertex alone,
//! so that the processor need not wait for the page's state before it fetches them, and a page that was
//! written anew is in the same slice of targets, behind those of the base run.

mod apart;
mod entry;
mod origin;
mod overlaid;
mod recipe;
mod sizes;

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use base::VertexId;
use base::mapped::MappedSlice;
use graph::{DensePage, Page, Parts, Weight, prefetch_start};

use crate::arc_columns::{ArcColumns, ArcValue};
use crate::base_run::{BaseLists, BasePage};
use crate::changes::{EntryBuffer, PageChanges};
use crate::level::StoredPage;
use crate::patched::{Ground, Head, PatchedPage, Pieces, WholePage};
use crate::rewritten::{OffsetTable, Room, RoomyLists};
use crate::table::{PAGE_OFFSETS, PAGE_SHIFT, num_pages, page_of, place_in_page};

use apart::values_apart;
use entry::{DAMAGED, EMPTY, IN_PIECES, LISTS_PLACED, LISTS_READY, OVERLAID, PLACED, PageEntry, READY, UNTOUCHED};
pub use origin::{ListChange, ListOrigin};
pub(crate) use overlaid::SideOverlay;
use overlaid::for_each_run;
pub(crate) use recipe::{PageScratch, Recipe, Sense, Show};

/// The first damage that a reader met.
pub(crate) type Fault = Arc<OnceLock<base::Error>>;

/// The lists of one side; clones share everything, also what was verified and patched.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pages: Arc<[PageEntry]>,
    offsets: MappedSlice<u32>,
    targets: MappedSlice<VertexId>,
    columns: ArcColumns,
    /// What is laid over the lists of some vertices.
    overlay: Option<SideOverlay>,
    /// Whether a list is verified alone when it is the first of its page that is read.
    is_sparing: bool,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    recipe: Recipe,
    /// The pages that levels change, once they are patched; none where no level was applied.
    patched: Box<[OnceLock<Arc<PatchedPage>>]>,
    /// How many lists of each of these were read before.
    num_reads: Box<[AtomicU16]>,
    /// Where pages are written anew, if levels were applied and the system has room.
    annex: Option<SideAnnex>,
    fault: Fault,
}

/// What a side with levels has in memory.
#[derive(Debug)]
struct SideAnnex {
    room: Arc<Room>,
    /// The offsets of all pages that somebody has looked at, written before the page's entry says so.
    offsets: Mutex<OffsetTable>,
}

/// What a page turned out to be.
struct Look<'a> {
    state: u64,
    edge_base: usize,
    /// Of a page whose lists are in one slice.
    offsets: &'a [u32],
}

/// What a view keeps in memory for each page of its lists, of both sides, before it reads any.
pub(crate) const STATE_BYTES: u64 = 128;

/// Where the offsets of `vertex` are if every page before its own has offsets.
#[inline(always)]
fn home(vertex: VertexId) -> usize {
    const { assert!(PAGE_OFFSETS == (1 << PAGE_SHIFT) + 1) };
    vertex as usize + page_of(vertex)
}

/// A list that may be anywhere.
enum Found<'a> {
    /// Among the targets.
    List(Range<usize>),
    /// In pieces of its own, which changes.
    Pieces(&'a Pieces, Head),
    /// Made on its own.
    Apart(EntryBuffer),
    Nothing,
}

impl Side {
    /// The lists after `recipe`. Cost: an entry of 16 bytes for each page; no list is read.
    pub fn new(recipe: Recipe, fault: &Fault) -> Self {
        let num_pages = num_pages(recipe.vertex_bound);
        Self::with_pages(recipe, num_pages, fault)
    }

    /// The same, with room for changes of vertices on the first `num_pages` pages.
    fn with_pages(recipe: Recipe, num_pages: usize, fault: &Fault) -> Self {
        let no_columns = || ArcColumns::new(&recipe.options, &EntryBuffer::default());
        let none = || (MappedSlice::empty(), MappedSlice::empty(), no_columns());
        let lists = recipe.lists();
        let (mut offsets, mut targets, mut columns) = lists
            .map_or_else(none, |lists| (lists.offsets().clone(), lists.targets().clone(), lists.columns().clone()));
        let entry = |page| PageEntry::untouched(lists.map_or(0, |lists| lists.edge_base(page)));
        let pages = (0..num_pages).map(entry).collect();
        let num_patched = if recipe.steps.is_empty() { 0 } else { num_pages };
        let patched = (0..num_patched).map(|_| OnceLock::new()).collect();
        let num_reads = (0..num_patched).map(|_| AtomicU16::new(0)).collect();
        let mut annex = None;
        if !recipe.steps.is_empty() {
            let memory = recipe.base.memory();
            let own;
            let roomy = match lists {
                Some(lists) => lists.roomy(memory),
                None => {
                    own = RoomyLists::new(&targets, &columns, memory);
                    own.as_ref()
                }
            };
            if let (Some(roomy), Some((table, writer))) = (roomy, OffsetTable::new(num_pages, memory)) {
                (offsets, targets, columns) = (table, roomy.targets.clone(), roomy.columns.clone());
                annex = Some(SideAnnex { room: Arc::clone(&roomy.room), offsets: Mutex::new(writer) });
            }
        }
        let shared = Arc::new(Shared { recipe, patched, num_reads, annex, fault: Arc::clone(fault) });
        Self { pages, offsets, targets, columns, overlay: None, is_sparing: false, shared }
    }

    /// The same lists. With `is_sparing`, no more of a page that no level changes is read from its file than what is
    /// asked for: the offsets for a degree, one list for a list. Otherwise the first reader of a page has it all read and
    /// verified, which is faster for those who follow.
    pub fn sparing(&self, is_sparing: bool) -> Self {
        let recipe = &self.shared.recipe;
        // Of fewer vertices than the base run has, lists are held against the bound a page at a time.
        let has_all = recipe.lists().is_some() && recipe.vertex_bound >= recipe.base.vertex_bound();
        Self { is_sparing: is_sparing && has_all, ..self.clone() }
    }

    /// The number of pages.
    pub fn num_pages(&self) -> usize {
        self.pages.len()
    }

    /// Whether levels are applied to the base run.
    pub fn has_levels(&self) -> bool {
        !self.shared.recipe.steps.is_empty()
    }

    /// The pages that are as in the base run, those that levels change, and those without edges.
    ///
    /// Cost: a look at the indexes of all levels for every page.
    pub fn count_pages(&self) -> PageCounts {
        let recipe = &self.shared.recipe;
        let mut counts = PageCounts::default();
        for page in 0..self.num_pages() {
            let is_patched = recipe.steps.iter().any(|(level, _)| level.touches(recipe.side, page));
            let kind = match recipe.lists().is_some_and(|lists| lists.is_dense(page)) {
                _ if is_patched => &mut counts.patched,
                true => &mut counts.dense,
                false => &mut counts.empty,
            };
            *kind += 1;
        }
        counts
    }

    /// The list of `vertex` among the targets, where its page is at home, with its weights verified unless `last_state`
    /// says that they need not be.
    #[inline(always)]
    fn list(&self, vertex: VertexId, last_state: u64) -> Option<Range<usize>> {
        let (state, base) = self.pages[page_of(vertex)].load(Ordering::Acquire);
        // One bounds check of two: the compiler sees that the addition does not overflow.
        let place = home(vertex);
        (state <= last_state).then(|| {
            let ends = &self.offsets[place..place + 2];
            base + ends[0] as usize..base + ends[1] as usize
        })
    }

    /// A list on a page that is elsewhere, or that nobody has looked at; with its weights verified if they are wanted.
    /// Without what is laid over it.
    fn elsewhere(&self, vertex: VertexId, wants_weights: bool) -> Found<'_> {
        self.apart(vertex, wants_weights).unwrap_or_else(|| self.on_page(vertex, wants_weights))
    }

    /// The same; a page that nobody has looked at is looked at.
    fn on_page(&self, vertex: VertexId, wants_weights: bool) -> Found<'_> {
        let page = page_of(vertex);
        if let Some(lists) = self.spared(page) {
            let list = if wants_weights { lists.weighted_list(vertex) } else { lists.list(vertex) };
            return match list {
                Ok(list) => Found::List(list),
                Err(error) => {
                    self.set_damaged(page, error);
                    Found::Nothing
                }
            };
        }
        match self.state(page, wants_weights) {
            IN_PIECES => self.in_pieces(page, vertex),
            EMPTY | DAMAGED => Found::Nothing,
            state => {
                let place = self.place(state, vertex);
                let base = self.pages[page].load(Ordering::Relaxed).1;
                let ends = &self.offsets[place..place + 2];
                Found::List(base + ends[0] as usize..base + ends[1] as usize)
            }
        }
    }

    /// The lists in the files, if a page is read from there list by list.
    #[inline]
    fn spared(&self, page: usize) -> Option<&BaseLists> {
        if !self.is_sparing || self.pages[page].state() != UNTOUCHED {
            return None;
        }
        self.base_lists().filter(|lists| page < lists.num_pages() && self.is_unchanged(page))
    }

    /// A list on a page that is in pieces: where it is in the base run, unless it changes.
    fn in_pieces(&self, page: usize, vertex: VertexId) -> Found<'_> {
        let Some(pieces) = self.shared.patched[page].get().and_then(|page| page.pieces()) else {
            return Found::Nothing;
        };
        if let Some(head) = pieces.head(place_in_page(vertex)) {
            return Found::Pieces(pieces, head);
        }
        match self.base_lists().filter(|lists| lists.is_dense(page)) {
            Some(lists) => Found::List(lists.verified_list(vertex)),
            None => Found::Nothing,
        }
    }

    /// Where the offsets of a vertex are whose page is as in the base run.
    #[inline]
    fn place(&self, state: u64, vertex: VertexId) -> usize {
        match state {
            READY | LISTS_READY => home(vertex),
            _ => {
                let lists = self.shared.recipe.lists();
                lists.map_or(0, |lists| lists.place(page_of(vertex))) + place_in_page(vertex)
            }
        }
    }

    /// The state of a page that somebody has looked at.
    #[inline]
    fn state(&self, page: usize, wants_weights: bool) -> u64 {
        let state = self.pages[page].state();
        let is_known = match state {
            UNTOUCHED => false,
            LISTS_READY | LISTS_PLACED => !wants_weights,
            _ => true,
        };
        if is_known { state } else { self.enter(page, wants_weights) }
    }

    /// The targets of a page in the base run.
    fn base_targets(&self, page: usize) -> Range<usize> {
        self.base_lists().map_or(0..0, |lists| lists.edges(page))
    }

    /// Fetches what says where the list of `vertex` is, and what is laid over it.
    #[inline(always)]
    pub fn prefetch(&self, vertex: VertexId) {
        // A hint does not care where the list is really.
        base::simd::prefetch(&self.pages, page_of(vertex));
        base::simd::prefetch(&self.offsets, home(vertex));
        if let Some(overlay) = self.overlay_of(vertex) {
            overlay.overlay.prefetch(overlay.side, vertex);
        }
    }

    /// Fetches the place of what is laid over the list of `vertex`, once it is there what says where that is.
    #[inline(always)]
    pub fn prefetch_place(&self, vertex: VertexId) {
        if let Some(overlay) = self.overlay_of(vertex) {
            overlay.prefetch_place(vertex);
        }
    }

    /// Fetches what says about how long the list of `vertex` is.
    #[inline(always)]
    pub fn prefetch_rough_degree(&self, vertex: VertexId) {
        base::simd::prefetch(&self.offsets, home(vertex));
        if let Some(overlay) = self.overlay_of(vertex).filter(|_| !self.has_list_below(vertex)) {
            overlay.prefetch_place(vertex);
        }
    }

    /// Fetches the first lines of the list of `vertex`, whose place was fetched before.
    #[inline(always)]
    pub fn prefetch_list(&self, parts: Parts, vertex: VertexId) {
        let start = match self.list(vertex, LISTS_READY) {
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

    /// Where the list below starts, if that is easily known; what lies over it is fetched.
    #[inline(never)]
    fn prefetch_elsewhere(&self, vertex: VertexId) -> usize {
        let below = self.list_below(vertex, LISTS_READY);
        // Over a list there are few changes, mostly where they are looked for, and time while it is read.
        if below.is_none()
            && let Some(overlay) = self.overlay_of(vertex)
        {
            overlay.prefetch_list(vertex);
        }
        below.map_or(0, |list| list.start)
    }

    /// The lists of the base run, if they show.
    pub fn base_lists(&self) -> Option<&BaseLists> {
        self.shared.recipe.lists()
    }

    /// Whether the page of `vertex` is in memory as levels leave it, so that nobody reads it from the base run again.
    pub fn is_rewritten(&self, vertex: VertexId) -> bool {
        let (Some(lists), Some(entry)) = (self.base_lists(), self.pages.get(page_of(vertex))) else { return true };
        let (state, edge_base) = entry.load(Ordering::Relaxed);
        match state & !OVERLAID {
            UNTOUCHED => false,
            IN_PIECES | EMPTY | DAMAGED => true,
            _ => edge_base >= lists.targets().len(),
        }
    }

    /// The length of the list of `vertex`.
    #[inline(always)]
    pub fn degree(&self, vertex: VertexId) -> usize {
        match self.list(vertex, LISTS_READY) {
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
        if let Some(list) = self.list_below(vertex, LISTS_READY) {
            return list.len();
        }
        if let Some(lists) = self.spared(page_of(vertex)) {
            return lists.degree(vertex).unwrap_or_else(|error| {
                self.set_damaged(page_of(vertex), error);
                0
            });
        }
        if let Some(degree) = self.degree_apart(vertex) {
            return degree;
        }
        match self.on_page(vertex, false) {
            Found::List(list) => list.len(),
            Found::Pieces(page, head) => page.degree(head),
            Found::Apart(list) => list.targets.len(),
            Found::Nothing => 0,
        }
    }

    /// Calls `body` with the fragments of the list of `vertex`.
    #[inline(always)]
    pub fn for_each_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.list(vertex, LISTS_READY) {
            Some(list) => body(&self.targets[list]),
            None => self.for_each_fragment_elsewhere(vertex, body),
        }
    }

    // What the body captured is moved here, not borrowed: else it would have to be in memory for lists at home too.
    #[inline(never)]
    fn for_each_fragment_elsewhere(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if let Some(overlay) = &self.overlay {
            if overlay.touched.get(vertex as usize) {
                return self.for_each_fragment_overlaid(overlay, vertex, body);
            }
            if let Some(list) = self.list_below(vertex, LISTS_READY) {
                return body(&self.targets[list]);
            }
        }
        match self.elsewhere(vertex, false) {
            Found::List(list) => body(&self.targets[list]),
            Found::Pieces(page, head) => {
                let base = &self.targets[self.base_targets(page_of(vertex))];
                page.for_each_fragment(head, base, body)
            }
            Found::Apart(list) => body(&list.targets),
            Found::Nothing => ControlFlow::Continue(()),
        }
    }

    /// As [`for_each_fragment`](Self::for_each_fragment), with the weights or the rows; nothing where weights are of
    /// another type, or there are no rows.
    #[inline(always)]
    pub fn for_each_fragment_with<P: ArcValue>(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[P]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(values) = P::of(&self.columns) else { return ControlFlow::Continue(()) };
        // READY says that lists and weights are verified; rows are verified list by list.
        match self.list(vertex, READY).filter(|_| P::IS_WEIGHT) {
            Some(list) => body(&self.targets[list.clone()], &values[list]),
            None => self.for_each_fragment_with_elsewhere(vertex, values, body),
        }
    }

    /// The list of `vertex` with its weights, where its page is at home and verified.
    #[inline(always)]
    pub fn weighted_list<W: Weight>(&self, vertex: VertexId) -> Option<(&[VertexId], &[W])> {
        let weights = self.columns.weights.as_ref().and_then(W::of)?;
        let Some(list) = self.list(vertex, READY).or_else(|| self.untouched_list(vertex, READY)) else {
            let (targets, weights) = self.list_added(vertex)?;
            // Beside rows, weights are not in one piece.
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
            && overlay.touched.get(vertex as usize)
        {
            return self.for_each_fragment_with_overlaid(overlay, vertex, values, body);
        }
        match self.found_below::<P>(vertex) {
            Found::List(list) => body(&self.targets[list.clone()], &values[list]),
            Found::Pieces(page, head) => {
                let edges = self.base_targets(page_of(vertex));
                page.for_each_fragment_with(head, (&self.targets[edges.clone()], &values[edges]), body)
            }
            Found::Apart(list) => body(&list.targets, &values_apart(&list)),
            Found::Nothing => ControlFlow::Continue(()),
        }
    }

    /// The list of `vertex`, whatever is laid over it, with its values verified.
    #[inline(always)]
    fn found_below<P: ArcValue>(&self, vertex: VertexId) -> Found<'_> {
        let found = self.targets_below(vertex, P::IS_WEIGHT);
        match &found {
            Found::List(list) if !P::IS_WEIGHT => match self.verify_rows(list.clone()) {
                Ok(()) => found,
                Err(error) => {
                    self.set_damaged(page_of(vertex), error);
                    Found::Nothing
                }
            },
            _ => found,
        }
    }

    /// Verifies the rows of these entries, where they are those of the base run.
    fn verify_rows(&self, list: Range<usize>) -> base::Result<()> {
        let lists = self.base_lists().filter(|lists| list.end <= lists.targets().len());
        lists.map_or(Ok(()), |lists| lists.verify_rows(list))
    }

    /// The list of `vertex`, where it is in one piece.
    #[inline(always)]
    pub fn single_list(&self, vertex: VertexId) -> Option<&[VertexId]> {
        match self.list(vertex, LISTS_READY) {
            Some(list) => Some(&self.targets[list]),
            None => self.single_list_elsewhere(vertex),
        }
    }

    #[inline(never)]
    fn single_list_elsewhere(&self, vertex: VertexId) -> Option<&[VertexId]> {
        if self.overlay_of(vertex).is_some_and(|overlay| overlay.changes(vertex)) {
            return None;
        }
        // What is handed out stays: the page is patched.
        match self.on_page(vertex, false) {
            Found::List(list) => Some(&self.targets[list]),
            Found::Pieces(page, head) => page.single_list(head, &self.targets[self.base_targets(page_of(vertex))]),
            Found::Apart(_) => None,
            Found::Nothing => Some(&[]),
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
                // Without a list below there is nothing to gain from the runs.
                Some(_) if self.pages[page].is_overlaid() && self.state(page, false) >= IN_PIECES => {
                    body(Page::Patched(first..end))?;
                }
                Some(overlay) if self.pages[page].is_overlaid() => {
                    for_each_run(&overlay.touched, first..end, |run, is_touched| match is_touched {
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

    /// These vertices of one page, without what is laid over it.
    #[inline]
    fn page(&self, page: usize, vertices: Range<VertexId>) -> Page<'_, u32> {
        let state = self.state(page, false);
        let base = self.pages[page].load(Ordering::Relaxed).1;
        let offsets = match state {
            IN_PIECES => return Page::Patched(vertices),
            EMPTY | DAMAGED => return Page::Empty(vertices),
            state => {
                let place = self.place(state, vertices.start);
                &self.offsets[place..=place + vertices.len()]
            }
        };
        let end = offsets[vertices.len()] as usize;
        Page::Dense(DensePage::new(vertices.start, offsets, &self.targets[base..base + end]))
    }

    /// Finds out what a page is that nobody has looked at, or whose weights nobody has.
    #[cold]
    #[inline(never)]
    fn enter(&self, page: usize, wants_weights: bool) -> u64 {
        let look = self.look_at(page, wants_weights).and_then(|look| self.show(page, &look).map(|()| look.state));
        look.unwrap_or_else(|error| {
            self.set_damaged(page, error);
            DAMAGED
        })
    }

    fn set_damaged(&self, page: usize, error: base::Error) {
        let _ = self.shared.fault.set(error);
        self.pages[page].set_damaged();
    }

    fn look_at(&self, page: usize, wants_weights: bool) -> base::Result<Look<'_>> {
        let recipe = &self.shared.recipe;
        if let Some(patched) = self.shared.patched.get(page) {
            if patched.get().is_none()
                && let Some(new) =
                    recipe.patch(page, self.shared.annex.as_ref().map(|annex| &annex.room), self.is_sparing)?
            {
                // Another thread may have been faster: its page is the one that readers know.
                let _ = patched.set(new);
            }
            if let Some(patched) = patched.get() {
                return Ok(match patched.rewritten() {
                    Some(page) => Look { state: READY, edge_base: page.edge_base(), offsets: page.offsets() },
                    None => Look { state: IN_PIECES, edge_base: 0, offsets: &[] },
                });
            }
        }
        let empty = Look { state: EMPTY, edge_base: 0, offsets: &[] };
        let Some(lists) = recipe.lists().filter(|lists| page < lists.num_pages()) else { return Ok(empty) };
        let Some(BasePage { place, offsets, targets, edge_base }) = lists.page(page)? else { return Ok(empty) };
        if recipe.vertex_bound < recipe.base.vertex_bound() {
            recipe.check_largest(page, targets.iter().copied().max())?;
        }
        let has_weights = recipe.options.weight_type.is_some();
        if wants_weights {
            lists.verify_weights(page)?;
        }
        let is_ready = wants_weights || !has_weights;
        let is_home = self.shared.annex.is_some() || place == home((page << PAGE_SHIFT) as VertexId);
        let state = match (is_home, is_ready) {
            (true, true) => READY,
            (true, false) => LISTS_READY,
            (false, true) => PLACED,
            (false, false) => LISTS_PLACED,
        };
        Ok(Look { state, edge_base, offsets })
    }

    /// Tells all readers what a page is.
    fn show(&self, page: usize, look: &Look<'_>) -> base::Result<()> {
        let entry = &self.pages[page];
        let mut table = self.shared.annex.as_ref().map(|annex| annex.offsets.lock().unwrap_or_else(|e| e.into_inner()));
        if let Some(table) = &mut table
            && entry.state() == UNTOUCHED
            && !look.offsets.is_empty()
        {
            table
                .write(page, look.offsets)
                .map_err(|error| base::Error::io("write offsets to memory for", &self.shared.recipe.path, error))?;
        }
        entry.set(look.state, look.edge_base);
        Ok(())
    }

    /// Reads and checks a whole page; the base run's blocks only if nobody has.
    ///
    /// # Errors
    /// The page is damaged: that of the base run, or a level's, or they do not fit together.
    pub fn whole_page(&self, page: usize) -> base::Result<WholePage> {
        let mut whole = WholePage::default();
        self.read_whole_page(page, &mut PageScratch::default(), &mut whole)?;
        Ok(whole)
    }

    /// The same, instead of what `whole` held and with memory that is used again.
    ///
    /// # Errors
    /// As [`whole_page`](Self::whole_page).
    pub fn read_whole_page(&self, page: usize, scratch: &mut PageScratch, whole: &mut WholePage) -> base::Result<()> {
        let recipe = &self.shared.recipe;
        recipe.changes(page, scratch)?;
        whole.fill(&recipe.ground(page)?, &scratch.all).map_err(|what| recipe.corrupt(page, &what))?;
        recipe.check_largest(page, whole.entries.targets.iter().copied().max())
    }

    /// Whether the page is at home with all that it has verified, whatever is laid over it.
    #[inline]
    pub fn is_ready(&self, page: usize) -> bool {
        self.pages[page].state() == READY
    }

    /// The list of `vertex` where its page is ready.
    #[inline]
    pub fn ready_list(&self, vertex: VertexId) -> Option<&[VertexId]> {
        self.list_below(vertex, READY).map(|list| &self.targets[list])
    }

    /// A page that is ready, levels and all.
    ///
    /// # Errors
    /// The rows of the page are damaged.
    pub fn ready_page(&self, page: usize) -> base::Result<Option<Ground<'_>>> {
        let (state, edge_base) = self.pages[page].load(Ordering::Acquire);
        if state & !OVERLAID != READY {
            return Ok(None);
        }
        let first = home((page << PAGE_SHIFT) as VertexId);
        let offsets = &self.offsets[first..first + PAGE_OFFSETS];
        let edges = edge_base..edge_base + offsets[PAGE_OFFSETS - 1] as usize;
        self.verify_rows(edges.clone())?;
        Ok(Some(Ground {
            offsets,
            targets: &self.targets[edges],
            edge_base,
            columns: Some(&self.columns),
            options: &self.shared.recipe.options,
        }))
    }

    /// The page of the base run, verified; `parts` becomes what is changed on it, one after the other, where it is
    /// stored.
    ///
    /// # Errors
    /// The page is damaged, in the base run or in a level.
    pub fn ground_with_parts<'a>(
        &'a self,
        page: usize,
        parts: &mut Vec<(StoredPage<'a>, Sense)>,
        scratch: &mut PageChanges,
    ) -> base::Result<Ground<'a>> {
        let recipe = &self.shared.recipe;
        debug_assert_eq!(recipe.show, Show::Everything, "what is added in the end shows only in the sum");
        recipe.stored_parts(page, parts, scratch)?;
        recipe.ground(page)
    }

    /// The pages that were patched.
    #[cfg(test)]
    pub fn num_patched(&self) -> usize {
        self.shared.patched.iter().filter(|page| page.get().is_some()).count()
    }

    /// The entries of all lists. Cost: every page that levels change is patched, and those of the base run counted.
    pub fn count_arcs(&self) -> u64 {
        let patched = |page: usize| self.shared.patched.get(page).and_then(|patched| patched.get());
        let num_arcs = |page: usize| match (self.state(page, false), patched(page)) {
            (EMPTY | DAMAGED, _) => 0,
            (_, Some(patched)) => patched.num_arcs(),
            (_, None) => self.base_targets(page).len() as u64,
        };
        debug_assert!(self.overlay.is_none(), "who lays something over lists knows how much");
        (0..self.num_pages()).map(num_arcs).sum()
    }
}

/// How many pages of a side are of which kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageCounts {
    pub dense: usize,
    pub patched: usize,
    pub empty: usize,
}
