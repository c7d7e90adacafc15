//! Lists that something in memory is laid over.
//!
//! Only vertices that a bitmap names are looked up in it, and only pages with such vertices are asked for
//! the bitmap: all others are read as if nothing were there.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::VertexId;
use base::bitmap::{AtomicBitmap, ones};
use base::simd::prefetch;
use graph::{DensePage, WantedLists, vertices_of};

use super::apart::values_apart;
use super::{EMPTY, Found, LISTS_READY, OVERLAID, READY, Recipe, Side, home};
use crate::arc_columns::{ArcValue, values_of};
use crate::overlay::{Added, ChangedPart, FirstCuts, Overlay, TouchedLists, without};
use crate::table::{PAGE_OFFSETS, PAGE_SHIFT, num_pages, page_of, place_in_page};

/// What is laid over a side.
#[derive(Clone, Debug)]
pub(crate) struct SideOverlay {
    pub side: graph::Side,
    /// The vertices whose lists may have changed; those of younger versions too.
    pub touched: Arc<AtomicBitmap>,
    /// Those of them that may have lost entries.
    pub cut: Arc<AtomicBitmap>,
    /// And from where on.
    pub first_cuts: Arc<FirstCuts>,
    pub overlay: Arc<dyn Overlay>,
}

/// Entries that are given at once of a list that may lose some, and the most of it.
const LINE: usize = 16;
const MOST_GIVEN: usize = 240;

impl SideOverlay {
    /// The length of a list that has `below` entries without the overlay.
    pub fn degree(&self, vertex: VertexId, below: usize) -> usize {
        let changes = self.overlay.num_changes(self.side, vertex);
        // Of a page that is damaged, nothing is below that could be removed.
        (below + changes.added).saturating_sub(changes.removed)
    }

    /// Fetches the place of what changes in a list, once it is there what says where that is.
    #[inline(always)]
    pub fn prefetch_place(&self, vertex: VertexId) {
        self.overlay.prefetch_place(self.side, vertex, self.cut.get(vertex as usize));
    }

    /// Fetches what changes in a list, once its place is there.
    #[inline(always)]
    pub fn prefetch_list(&self, vertex: VertexId) {
        self.overlay.prefetch_list(self.side, vertex, self.cut.get(vertex as usize));
    }

    /// What a list loses, and what it gains where that is in one piece.
    #[inline]
    fn both(&self, vertex: VertexId) -> (Cow<'_, [VertexId]>, Option<Added<'_>>) {
        match self.cut.get(vertex as usize) {
            true => self.overlay.changes(self.side, vertex),
            false => (Cow::Borrowed(&[]), self.overlay.added(self.side, vertex)),
        }
    }

    /// Of a list below that may lose entries, how many from the `start`-th on it has for certain: of a line at most, since
    /// who soon finds what he wants reads no other.
    #[inline(always)]
    fn num_kept(&self, vertex: VertexId, below: &[VertexId], start: usize) -> usize {
        let first = self.first_cuts.first(vertex);
        // They ascend: to count them all takes no branch for each.
        below[start..].iter().take(LINE).filter(|&&target| target < first).count()
    }

    /// Whether the list differs in this version.
    pub fn changes(&self, vertex: VertexId) -> bool {
        let changes = self.overlay.num_changes(self.side, vertex);
        changes.added + changes.removed > 0
    }
}

/// Calls `body` with vertices in their order, as long ranges, and whether any of them was touched. Ranges end where 64
/// lists do, which are read at once: to tell a few between those that were touched apart costs more, and so does it where
/// most were.
#[inline]
pub(super) fn for_each_run(
    touched: &AtomicBitmap,
    vertices: Range<VertexId>,
    mut body: impl FnMut(Range<VertexId>, bool) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let is_touched = |at: VertexId| {
        let word = touched.words()[at as usize / 64].load(Ordering::Relaxed) & !0 << (at % 64);
        let end = vertices.end - (at - at % 64);
        if end < 64 { word & !(!0 << end) != 0 } else { word != 0 }
    };
    let words = || (vertices.start - vertices.start % 64..vertices.end).step_by(64);
    let num_touched = words().filter(|&first| is_touched(first.max(vertices.start))).count();
    if num_touched >= words().len() - words().len() / 4 {
        return body(vertices.clone(), true);
    }
    let mut start = vertices.start;
    while start < vertices.end {
        let which = is_touched(start);
        let mut end = start;
        while end < vertices.end && is_touched(end) == which {
            end = vertices.end.min((end - end % 64).saturating_add(64));
        }
        body(start..end, which)?;
        start = end;
    }
    ControlFlow::Continue(())
}

impl Side {
    /// The same lists, ready to have something laid over those of vertices below `capacity`, briefly or for long.
    pub fn underlay(&self, capacity: usize, is_brief: bool) -> Self {
        let num_pages = num_pages(capacity).max(self.num_pages());
        let recipe = Recipe { is_brief, ..self.shared.recipe.clone() };
        Self::with_pages(recipe, num_pages, &self.shared.fault)
    }

    /// The vertices whose lists may differ from those below, ascending.
    pub fn touched(&self) -> Vec<VertexId> {
        let words = self.overlay.iter().flat_map(|overlay| overlay.touched.words().iter().enumerate());
        let of_word = |(i, word): (usize, &AtomicU64)| {
            ones(word.load(Ordering::Relaxed)).map(move |bit| (i * 64 + bit) as VertexId)
        };
        words.flat_map(of_word).collect()
    }

    /// From now on the list of `vertex` may differ, in versions whose overlay says so.
    pub fn touch(&self, vertex: VertexId) {
        self.pages[page_of(vertex)].set_overlaid();
    }

    /// The same lists with `overlay` over them.
    pub fn overlaid(&self, overlay: SideOverlay) -> Self {
        debug_assert!(overlay.touched.len() <= self.num_pages() << PAGE_SHIFT);
        Self { overlay: Some(overlay), ..self.clone() }
    }

    /// What is laid over the list of `vertex`, if that may be anything.
    #[inline]
    pub(super) fn overlay_of(&self, vertex: VertexId) -> Option<&SideOverlay> {
        self.overlay.as_ref().filter(|overlay| overlay.touched.get(vertex as usize))
    }

    /// Whether the page has the list of `vertex`, whatever is laid over it, as far as is known.
    #[inline(always)]
    pub(super) fn has_list_below(&self, vertex: VertexId) -> bool {
        self.pages[page_of(vertex)].load(Ordering::Relaxed).0 & !OVERLAID <= LISTS_READY
    }

    /// Where the page has the list of `vertex`, which nothing is laid over though something is over others of its page.
    #[inline(always)]
    pub(super) fn untouched_list(&self, vertex: VertexId, last_state: u64) -> Option<Range<usize>> {
        let overlay = self.overlay.as_ref()?;
        if overlay.touched.get(vertex as usize) { None } else { self.list_below(vertex, last_state) }
    }

    /// Where the page has the list of `vertex`, whatever is laid over it, unless it is elsewhere.
    #[inline]
    pub(super) fn list_below(&self, vertex: VertexId, last_state: u64) -> Option<Range<usize>> {
        let (state, base) = self.pages[page_of(vertex)].load(Ordering::Acquire);
        let place = home(vertex);
        (state & !OVERLAID <= last_state).then(|| {
            let ends = &self.offsets[place..place + 2];
            base + ends[0] as usize..base + ends[1] as usize
        })
    }

    /// The list of `vertex`, whatever is laid over it, with its weights verified if they are wanted.
    #[inline(always)]
    pub(super) fn targets_below(&self, vertex: VertexId, wants_weights: bool) -> Found<'_> {
        let state = self.pages[page_of(vertex)].load(Ordering::Acquire).0 & !OVERLAID;
        match self.list_below(vertex, if wants_weights { READY } else { LISTS_READY }) {
            Some(list) => Found::List(list),
            None if state == EMPTY => Found::Nothing,
            None => self.elsewhere(vertex, wants_weights),
        }
    }

    /// The list of `vertex` with the bytes of its weights where all of it was added, and lies in one piece.
    #[inline]
    pub(super) fn list_added(&self, vertex: VertexId) -> Option<Added<'_>> {
        let overlay = self.overlay_of(vertex).filter(|overlay| !overlay.cut.get(vertex as usize))?;
        let is_nothing_below = self.pages[page_of(vertex)].load(Ordering::Acquire).0 & !OVERLAID == EMPTY;
        if is_nothing_below { overlay.overlay.added(overlay.side, vertex) } else { None }
    }

    #[inline]
    pub(super) fn for_each_fragment_overlaid(
        &self,
        overlay: &SideOverlay,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (removed, added) = overlay.both(vertex);
        self.for_each_fragment_without(vertex, 0, &removed, &mut body)?;
        match added {
            Some(([], _)) => ControlFlow::Continue(()),
            Some((targets, _)) => body(targets),
            None => overlay.overlay.for_each_added(overlay.side, vertex, &mut |targets, _| body(targets)),
        }
    }

    /// What is left, without the entries that are removed, of the list below from an entry on.
    #[inline(always)]
    fn for_each_fragment_without(
        &self,
        vertex: VertexId,
        start: usize,
        removed: &[VertexId],
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut keep = |targets: &[VertexId]| match removed.is_empty() {
            true => body(targets),
            false => without(targets, removed, |kept| body(&targets[kept])),
        };
        match self.targets_below(vertex, false) {
            Found::List(list) => match list.start + start {
                at if at == list.end && start > 0 => ControlFlow::Continue(()),
                at => keep(&self.targets[at..list.end]),
            },
            Found::Pieces(page, head) => {
                let base = &self.targets[self.base_targets(page_of(vertex))];
                page.for_each_fragment(head, base, keep)
            }
            Found::Apart(list) => keep(&list.targets),
            Found::Nothing => ControlFlow::Continue(()),
        }
    }

    /// Whatever is laid over them, the lists of a page that has them in one slice with its offsets: that slice, and where
    /// each of them ends in it, the first being the end of the one before.
    #[inline(always)]
    fn lists_of_page(&self, page: usize) -> Option<(&[VertexId], &[u32; PAGE_OFFSETS])> {
        let (state, base) = self.pages[page].load(Ordering::Acquire);
        if state & !OVERLAID > LISTS_READY {
            return None;
        }
        Some((&self.targets[base..], self.offsets[page * PAGE_OFFSETS..].first_chunk()?))
    }

    /// Those of the wanted lists that may differ, if any.
    #[inline(always)]
    fn touched_of(&self, wanted: &WantedLists, is_nothing_below: bool) -> Option<(&SideOverlay, TouchedLists)> {
        let overlay = self.overlay.as_ref()?;
        let wanted = wanted.set_in(&overlay.touched);
        let cut = wanted.set_in(&overlay.cut);
        let gaining = if is_nothing_below { wanted } else { WantedLists::none_near(wanted.first()) };
        (!wanted.is_empty()).then_some((overlay, TouchedLists { wanted, cut, gaining }))
    }

    /// Whether the page of these vertices has no edges, whatever is laid over it.
    #[inline]
    fn is_nothing_below(&self, page: usize) -> bool {
        match self.spared(page) {
            Some(lists) => !lists.is_dense(page),
            None => self.state(page, false) >= EMPTY,
        }
    }

    /// Those of the wanted lists that nothing is laid over, where their page has them in one slice, and that slice.
    #[inline(always)]
    pub fn dense_lists(&self, wanted: &WantedLists) -> Option<(DensePage<'_, u32>, WantedLists)> {
        let overlay = self.overlay.as_ref()?;
        let (targets, offsets) = self.lists_of_page(page_of(wanted.first()))?;
        let touched = wanted.set_in(&overlay.touched);
        // Those are read next.
        for vertex in touched.vertices() {
            prefetch(targets, offsets[place_in_page(vertex)] as usize);
            overlay.first_cuts.prefetch(vertex);
        }
        Some((DensePage::new(wanted.first(), offsets, targets), wanted.without(&touched)))
    }

    /// Calls `body` with the fragments of the wanted lists, in any order; to break leaves a list.
    #[inline]
    pub fn for_each_fragment_of(
        &self,
        wanted: &WantedLists,
        mut body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        const { assert!(WantedLists::VERTICES == 1 << PAGE_SHIFT) };
        let page = page_of(wanted.first());
        let is_nothing_below = self.is_nothing_below(page);
        let mut touched = self.touched_of(wanted, is_nothing_below);
        // How much was given of lists below of which more is wanted.
        let mut given = [0_u8; WantedLists::VERTICES];
        if let Some((targets, ends)) = self.lists_of_page(page) {
            let mut satisfied = WantedLists::none_near(wanted.first());
            for (word, bits) in wanted.words() {
                vertices_of(word, bits).for_each(|vertex| prefetch(targets, ends[place_in_page(vertex)] as usize));
                let cut = touched.as_ref().map_or(0, |(_, lists)| lists.cut.word(word));
                for vertex in vertices_of(word, bits) {
                    let place = place_in_page(vertex);
                    let list = &targets[ends[place] as usize..ends[place + 1] as usize];
                    let overlay =
                        touched.as_ref().filter(|_| cut >> (vertex % 64) & 1 == 1).map(|(overlay, _)| *overlay);
                    let mut start = 0;
                    // All of it at once, or line by line while nothing of it can be gone.
                    loop {
                        let len = overlay.map_or(list.len(), |overlay| overlay.num_kept(vertex, list, start));
                        if body(vertex, &list[start..start + len]).is_break() {
                            satisfied.insert(vertex);
                            break;
                        }
                        start += len;
                        if overlay.is_none() {
                            break;
                        }
                        given[place] = start as u8;
                        if len < LINE || start > MOST_GIVEN - LINE {
                            break;
                        }
                    }
                }
            }
            if let Some((_, lists)) = &mut touched {
                lists.wanted = lists.wanted.without(&satisfied);
                lists.cut = lists.cut.both(&lists.wanted);
                lists.gaining = lists.wanted.without(&lists.cut);
            }
        } else if !is_nothing_below {
            let untouched = touched.as_ref().map_or(*wanted, |(_, lists)| wanted.without(&lists.wanted));
            for vertex in untouched.vertices() {
                let _ = self.for_each_fragment_without(vertex, 0, &[], |list| body(vertex, list));
            }
        }
        let Some((overlay, lists)) = touched.filter(|(_, lists)| !lists.wanted.is_empty()) else { return };
        overlay.overlay.for_each_change(overlay.side, &lists, &mut |vertex, change| match change {
            ChangedPart::Removed(removed) => {
                let start = usize::from(given[place_in_page(vertex)]);
                self.for_each_fragment_without(vertex, start, removed, |list| body(vertex, list))
            }
            ChangedPart::Added(targets, _) => body(vertex, targets),
        });
    }

    /// About the length of a list: without what changes in it, unless that is all there is.
    #[inline(always)]
    pub fn rough_degree(&self, vertex: VertexId) -> usize {
        match self.list_below(vertex, LISTS_READY) {
            Some(list) if !list.is_empty() => list.len(),
            _ => self.rough_degree_elsewhere(vertex),
        }
    }

    #[inline(never)]
    fn rough_degree_elsewhere(&self, vertex: VertexId) -> usize {
        let is_nothing_below = self.has_list_below(vertex) || self.is_nothing_below(page_of(vertex));
        let below = if is_nothing_below { 0 } else { self.degree_below(vertex) };
        if below > 0 { below } else { self.degree(vertex) }
    }

    #[inline]
    pub(super) fn for_each_fragment_with_overlaid<P: ArcValue>(
        &self,
        overlay: &SideOverlay,
        vertex: VertexId,
        values: &[P],
        mut body: impl FnMut(&[VertexId], &[P]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (removed, added) = overlay.both(vertex);
        let mut keep = |targets: &[VertexId], values: &[P]| match removed.is_empty() {
            true => body(targets, values),
            false => without(targets, &removed, |kept| body(&targets[kept.clone()], &values[kept])),
        };
        match self.found_below::<P>(vertex) {
            Found::List(list) => keep(&self.targets[list.clone()], &values[list])?,
            Found::Pieces(page, head) => {
                let edges = self.base_targets(page_of(vertex));
                page.for_each_fragment_with(head, (&self.targets[edges.clone()], &values[edges]), keep)?;
            }
            Found::Apart(list) => keep(&list.targets, &values_apart(&list))?,
            Found::Nothing => {}
        }
        let mut piece = |targets: &[VertexId], bytes: &[u8]| body(targets, &values_of(targets.len(), bytes));
        match added {
            Some(([], _)) => ControlFlow::Continue(()),
            Some((targets, bytes)) => piece(targets, bytes),
            None => overlay.overlay.for_each_added(overlay.side, vertex, &mut piece),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_all_vertices_in_order() {
        let touched = AtomicBitmap::new(512);
        (0..256).filter(|index| index % 7 == 0 && index / 64 != 1 || index / 64 == 3).for_each(|index| {
            touched.set(index);
        });
        for (start, end) in [(0, 512), (0, 256), (3, 9), (70, 130), (64, 128), (200, 260), (8, 8)] {
            let (mut next, mut num_runs) = (start, 0);
            let flow = for_each_run(&touched, start..end, |run, is_touched| {
                assert!(run.start == next && run.end > next, "{run:?} after {next}");
                assert!(is_touched || run.clone().all(|vertex| !touched.get(vertex as usize)), "{run:?}");
                assert!(!is_touched || run.clone().any(|vertex| touched.get(vertex as usize)), "{run:?}");
                assert!(run.start == start || run.start % 64 == 0, "{run:?}");
                (next, num_runs) = (run.end, num_runs + 1);
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue() && next == end, "{start}..{end}");
            // One word of four is not told apart, and five of eight are.
            assert!(num_runs == 1 || (start, end) != (0, 256));
            assert!(num_runs == 4 || (start, end) != (0, 512));
        }
    }
}
