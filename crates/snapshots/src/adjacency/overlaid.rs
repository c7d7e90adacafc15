//! Lists under changes in memory.
//!
//! A bitmap names the vertices whose lists may have changed. Only those are looked up in the overlay, and only pages
//! with such vertices look into the bitmap. All other lists are read as if there were no overlay.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, ones};
use anden_base::simd::prefetch;
use anden_graph::{DensePage, Direction, VertexMask, vertices_of};

use super::merged_on_demand::merged_values;
use super::page_state::{ListLocation, PageState};
use super::{AdjacencyView, ViewSpec, dense_place};
use crate::arc_columns::{ArcValue, values_of};
use crate::overlay::{Added, ChangedPart, DirtyPageLists, Overlay, SmallestTombstones, without};
use crate::table::{PAGE_OFFSETS, PAGE_SHIFT, num_pages, page_of, place_in_page};

/// The overlay of one direction.
#[derive(Clone, Debug)]
pub(crate) struct AdjacencyOverlay {
    pub direction: Direction,
    /// Dirty vertices: their lists may have changed, perhaps in a younger version.
    pub dirty: Arc<AtomicBitmap>,
    /// Dirty vertices whose lists may have lost entries (tombstones).
    pub tombstoned: Arc<AtomicBitmap>,
    /// Smallest tombstone of each such list.
    pub smallest_tombstones: Arc<SmallestTombstones>,
    pub overlay: Arc<dyn Overlay>,
}

/// Number of entries that are given at once of a list with tombstones, and the most that are given in this way.
const LINE: usize = 16;
const MOST_GIVEN: usize = 240;

impl AdjacencyOverlay {
    /// Length of a list that has `below` entries below the overlay.
    pub fn degree(&self, vertex: VertexId, below: usize) -> usize {
        let changes = self.overlay.num_changes(self.direction, vertex);
        // A damaged page looks empty, so it may have fewer entries than are removed.
        (below + changes.added).saturating_sub(changes.removed)
    }

    /// Second prefetch stage: fetches the block that the overlay's entry leads to.
    #[inline(always)]
    pub fn prefetch_place(&self, vertex: VertexId) {
        self.overlay.prefetch_place(self.direction, vertex, self.tombstoned.get(vertex as usize));
    }

    /// Third prefetch stage: fetches the changes of a list, after their block.
    #[inline(always)]
    pub fn prefetch_list(&self, vertex: VertexId) {
        self.overlay.prefetch_list(self.direction, vertex, self.tombstoned.get(vertex as usize));
    }

    /// The tombstones of a list, and its added entries if they are in one fragment.
    #[inline]
    fn both(&self, vertex: VertexId) -> (Cow<'_, [VertexId]>, Option<Added<'_>>) {
        match self.tombstoned.get(vertex as usize) {
            true => self.overlay.changes(self.direction, vertex),
            false => (Cow::Borrowed(&[]), self.overlay.added(self.direction, vertex)),
        }
    }

    /// Number of entries from `start` on that are certainly no tombstones, up to one line: a reader that finds its
    /// target soon reads no further.
    #[inline(always)]
    fn num_kept(&self, vertex: VertexId, below: &[VertexId], start: usize) -> usize {
        let first = self.smallest_tombstones.first(vertex);
        // The list ascends, so counting all of the line is right, and takes no branch for each entry.
        below[start..].iter().take(LINE).filter(|&&target| target < first).count()
    }

    /// Whether the list differs in this version.
    pub fn changes(&self, vertex: VertexId) -> bool {
        let changes = self.overlay.num_changes(self.direction, vertex);
        changes.added + changes.removed > 0
    }
}

/// Calls `body` with ranges of vertices in order, and whether a range has dirty vertices. Ranges end at multiples of
/// 64. Telling a few clean words between dirty ones apart costs more than it gains, and so does splitting a mostly
/// dirty range.
#[inline]
pub(super) fn for_each_run(
    dirty: &AtomicBitmap,
    vertices: Range<VertexId>,
    mut body: impl FnMut(Range<VertexId>, bool) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let is_dirty = |at: VertexId| {
        let word = dirty.words()[at as usize / 64].load(Ordering::Relaxed) & !0 << (at % 64);
        let end = vertices.end - (at - at % 64);
        if end < 64 { word & !(!0 << end) != 0 } else { word != 0 }
    };
    let words = || (vertices.start - vertices.start % 64..vertices.end).step_by(64);
    let num_dirty = words().filter(|&first| is_dirty(first.max(vertices.start))).count();
    if num_dirty >= words().len() - words().len() / 4 {
        return body(vertices.clone(), true);
    }
    let mut start = vertices.start;
    while start < vertices.end {
        let which = is_dirty(start);
        let mut end = start;
        while end < vertices.end && is_dirty(end) == which {
            end = vertices.end.min((end - end % 64).saturating_add(64));
        }
        body(start..end, which)?;
        start = end;
    }
    ControlFlow::Continue(())
}

impl AdjacencyView {
    /// These lists, prepared for an overlay on vertices below `capacity`, short-lived or not.
    pub fn overlay_base(&self, capacity: usize, is_short_lived: bool) -> Self {
        let num_pages = num_pages(capacity).max(self.num_pages());
        let spec = ViewSpec { is_short_lived, ..self.shared.spec.clone() };
        Self::with_pages(spec, num_pages, &self.shared.fault)
    }

    /// The dirty vertices, ascending.
    pub fn dirty(&self) -> Vec<VertexId> {
        let words = self.overlay.iter().flat_map(|overlay| overlay.dirty.words().iter().enumerate());
        let of_word = |(i, word): (usize, &AtomicU64)| {
            ones(word.load(Ordering::Relaxed)).map(move |bit| (i * 64 + bit) as VertexId)
        };
        words.flat_map(of_word).collect()
    }

    /// Marks the page of `vertex` as overlaid: the list may differ in versions whose overlay has changes.
    pub fn mark_dirty(&self, vertex: VertexId) {
        self.pages[page_of(vertex)].set_overlaid();
    }

    /// These lists under `overlay`.
    pub fn overlaid(&self, overlay: AdjacencyOverlay) -> Self {
        debug_assert!(overlay.dirty.len() <= self.num_pages() << PAGE_SHIFT);
        Self { overlay: Some(overlay), ..self.clone() }
    }

    /// The overlay, if the list of `vertex` may differ.
    #[inline]
    pub(super) fn overlay_of(&self, vertex: VertexId) -> Option<&AdjacencyOverlay> {
        self.overlay.as_ref().filter(|overlay| overlay.dirty.get(vertex as usize))
    }

    /// Whether the list of `vertex` below the overlay is found without a touch.
    #[inline(always)]
    pub(super) fn has_list_below(&self, vertex: VertexId) -> bool {
        self.pages[page_of(vertex)].load(Ordering::Relaxed).state() <= PageState::DenseTargets
    }

    /// The list of `vertex`, if it is clean, on a page with dirty vertices.
    #[inline(always)]
    pub(super) fn clean_list(&self, vertex: VertexId, last_state: PageState) -> Option<Range<usize>> {
        let overlay = self.overlay.as_ref()?;
        if overlay.dirty.get(vertex as usize) { None } else { self.list_below(vertex, last_state) }
    }

    /// The list of `vertex` below the overlay, if its page is at most in `last_state`.
    #[inline]
    pub(super) fn list_below(&self, vertex: VertexId, last_state: PageState) -> Option<Range<usize>> {
        let entry = self.pages[page_of(vertex)].load(Ordering::Acquire);
        let place = dense_place(vertex);
        (entry.state() <= last_state).then(|| {
            let (ends, base) = (&self.offsets[place..place + 2], entry.first_arc());
            base + ends[0] as usize..base + ends[1] as usize
        })
    }

    /// The list of `vertex` below the overlay, with verified weights if they are wanted.
    #[inline(always)]
    pub(super) fn targets_below(&self, vertex: VertexId, wants_weights: bool) -> ListLocation<'_> {
        let state = self.pages[page_of(vertex)].load(Ordering::Acquire).state();
        match self.list_below(vertex, if wants_weights { PageState::Dense } else { PageState::DenseTargets }) {
            Some(list) => ListLocation::Slice(list),
            None if state == PageState::Empty => ListLocation::Nowhere,
            None => self.elsewhere(vertex, wants_weights),
        }
    }

    /// The list of `vertex` with the bytes of its weights, if all of it was added in memory and is in one fragment.
    #[inline]
    pub(super) fn list_added(&self, vertex: VertexId) -> Option<Added<'_>> {
        let overlay = self.overlay_of(vertex).filter(|overlay| !overlay.tombstoned.get(vertex as usize))?;
        let is_nothing_below = self.pages[page_of(vertex)].load(Ordering::Acquire).state() == PageState::Empty;
        if is_nothing_below { overlay.overlay.added(overlay.direction, vertex) } else { None }
    }

    #[inline]
    pub(super) fn for_each_fragment_overlaid(
        &self,
        overlay: &AdjacencyOverlay,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (removed, added) = overlay.both(vertex);
        self.for_each_fragment_without(vertex, 0, &removed, &mut body)?;
        match added {
            Some(([], _)) => ControlFlow::Continue(()),
            Some((targets, _)) => body(targets),
            None => overlay.overlay.for_each_added(overlay.direction, vertex, &mut |targets, _| body(targets)),
        }
    }

    /// The entries of the list below from `start` on, without the tombstones in `removed`.
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
            ListLocation::Slice(list) => match list.start + start {
                at if at == list.end && start > 0 => ControlFlow::Continue(()),
                at => keep(&self.targets[at..list.end]),
            },
            ListLocation::Fragments(page, changed_list) => {
                let base = &self.targets[self.base_targets(page_of(vertex))];
                page.for_each_fragment(changed_list, base, keep)
            }
            ListLocation::Merged(list) => keep(&list.targets),
            ListLocation::Nowhere => ControlFlow::Continue(()),
        }
    }

    /// The lists of a page below the overlay, if they are in one slice with dense offsets: the targets, and the offsets of the
    /// lists.
    #[inline(always)]
    fn lists_of_page(&self, page: usize) -> Option<(&[VertexId], &[u32; PAGE_OFFSETS])> {
        let entry = self.pages[page].load(Ordering::Acquire);
        if entry.state() > PageState::DenseTargets {
            return None;
        }
        Some((&self.targets[entry.first_arc()..], self.offsets[page * PAGE_OFFSETS..].first_chunk()?))
    }

    /// The dirty ones among the wanted lists, if there are any.
    #[inline(always)]
    fn dirty_of(&self, wanted: &VertexMask, is_nothing_below: bool) -> Option<(&AdjacencyOverlay, DirtyPageLists)> {
        let overlay = self.overlay.as_ref()?;
        let wanted = wanted.set_in(&overlay.dirty);
        let tombstoned = wanted.set_in(&overlay.tombstoned);
        let gaining = if is_nothing_below { wanted } else { VertexMask::none_near(wanted.first()) };
        (!wanted.is_empty()).then_some((overlay, DirtyPageLists { wanted, tombstoned, gaining }))
    }

    /// Whether the page has no edges below the overlay.
    #[inline]
    fn is_nothing_below(&self, page: usize) -> bool {
        match self.lazy_lists(page) {
            Some(lists) => !lists.is_dense(page),
            None => self.state(page, false) >= PageState::Empty,
        }
    }

    /// The clean ones among the wanted lists, and the slice of their page, if the lists are in one slice.
    #[inline(always)]
    pub fn dense_lists(&self, wanted: &VertexMask) -> Option<(DensePage<'_, u32>, VertexMask)> {
        let overlay = self.overlay.as_ref()?;
        let (targets, offsets) = self.lists_of_page(page_of(wanted.first()))?;
        let dirty = wanted.set_in(&overlay.dirty);
        // The dirty lists are read next.
        for vertex in dirty.vertices() {
            prefetch(targets, offsets[place_in_page(vertex)] as usize);
            overlay.smallest_tombstones.prefetch(vertex);
        }
        Some((DensePage::new(wanted.first(), offsets, targets), wanted.without(&dirty)))
    }

    /// Calls `body` with the fragments of the wanted lists, in any order; a break ends one list.
    #[inline]
    pub fn for_each_fragment_of(
        &self,
        wanted: &VertexMask,
        mut body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        const { assert!(VertexMask::VERTICES == 1 << PAGE_SHIFT) };
        let page = page_of(wanted.first());
        let is_nothing_below = self.is_nothing_below(page);
        let mut dirty = self.dirty_of(wanted, is_nothing_below);
        // Number of entries that were given already of each list with tombstones.
        let mut given = [0_u8; VertexMask::VERTICES];
        if let Some((targets, ends)) = self.lists_of_page(page) {
            let mut satisfied = VertexMask::none_near(wanted.first());
            for (word, bits) in wanted.words() {
                // The lists of a word are fetched together, ahead of their use.
                vertices_of(word, bits).for_each(|vertex| prefetch(targets, ends[place_in_page(vertex)] as usize));
                let tombstoned = dirty.as_ref().map_or(0, |(_, lists)| lists.tombstoned.word(word));
                for vertex in vertices_of(word, bits) {
                    let place = place_in_page(vertex);
                    let list = &targets[ends[place] as usize..ends[place + 1] as usize];
                    let overlay =
                        dirty.as_ref().filter(|_| tombstoned >> (vertex % 64) & 1 == 1).map(|(overlay, _)| *overlay);
                    let mut start = 0;
                    // The whole list at once, or line by line up to the smallest tombstone.
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
                        // A short line ends at a tombstone or at the end of the list. `given` counts in eight bits.
                        if len < LINE || start > MOST_GIVEN - LINE {
                            break;
                        }
                    }
                }
            }
            if let Some((_, lists)) = &mut dirty {
                // A list whose reader broke off needs nothing more.
                lists.wanted = lists.wanted.without(&satisfied);
                lists.tombstoned = lists.tombstoned.both(&lists.wanted);
                // Lists without tombstones were given in full above, so only their additions remain.
                lists.gaining = lists.wanted.without(&lists.tombstoned);
            }
        } else if !is_nothing_below {
            let untouched = dirty.as_ref().map_or(*wanted, |(_, lists)| wanted.without(&lists.wanted));
            for vertex in untouched.vertices() {
                let _ = self.for_each_fragment_without(vertex, 0, &[], |list| body(vertex, list));
            }
        }
        let Some((overlay, lists)) = dirty.filter(|(_, lists)| !lists.wanted.is_empty()) else { return };
        overlay.overlay.for_each_change(overlay.direction, &lists, &mut |vertex, change| match change {
            ChangedPart::Removed(removed) => {
                let start = usize::from(given[place_in_page(vertex)]);
                self.for_each_fragment_without(vertex, start, removed, |list| body(vertex, list))
            }
            ChangedPart::Added(targets, _) => body(vertex, targets),
        });
    }

    /// Approximate length of a list: its length below the overlay, or its added entries if there are none below.
    #[inline(always)]
    pub fn rough_degree(&self, vertex: VertexId) -> usize {
        match self.list_below(vertex, PageState::DenseTargets) {
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
        overlay: &AdjacencyOverlay,
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
            ListLocation::Slice(list) => keep(&self.targets[list.clone()], &values[list])?,
            ListLocation::Fragments(page, changed_list) => {
                let edges = self.base_targets(page_of(vertex));
                page.for_each_fragment_with(changed_list, (&self.targets[edges.clone()], &values[edges]), keep)?;
            }
            ListLocation::Merged(list) => keep(&list.targets, &merged_values(&list))?,
            ListLocation::Nowhere => {}
        }
        let mut fragment = |targets: &[VertexId], bytes: &[u8]| body(targets, &values_of(targets.len(), bytes));
        match added {
            Some(([], _)) => ControlFlow::Continue(()),
            Some((targets, bytes)) => fragment(targets, bytes),
            None => overlay.overlay.for_each_added(overlay.direction, vertex, &mut fragment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_all_vertices_in_order() {
        let dirty = AtomicBitmap::new(512);
        (0..256).filter(|index| index % 7 == 0 && index / 64 != 1 || index / 64 == 3).for_each(|index| {
            dirty.set(index);
        });
        for (start, end) in [(0, 512), (0, 256), (3, 9), (70, 130), (64, 128), (200, 260), (8, 8)] {
            let (mut next, mut num_runs) = (start, 0);
            let flow = for_each_run(&dirty, start..end, |run, is_dirty| {
                assert!(run.start == next && run.end > next, "{run:?} after {next}");
                assert!(is_dirty || run.clone().all(|vertex| !dirty.get(vertex as usize)), "{run:?}");
                assert!(!is_dirty || run.clone().any(|vertex| dirty.get(vertex as usize)), "{run:?}");
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
