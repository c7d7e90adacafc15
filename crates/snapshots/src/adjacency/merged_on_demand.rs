//! Lists that are merged on demand, on pages that deltas change and no reader has patched.
//!
//! Patching a page takes hundreds of times as long as reading one of its lists. A query about a few vertices reads few
//! lists of each page. So the first lists of a page are merged one by one, from the base's list and the changes of each
//! delta, and not kept. A reader that goes on, or that wants the whole page, patches it.

use std::ops::Range;
use std::sync::atomic::Ordering;

use anden_base::VertexId;

use super::page_state::{ListLocation, PageState};
use super::{AdjacencyView, ShownArcs, ViewSpec};
use crate::arc_columns::ArcValue;
use crate::changes::{ApplyDirection, ChangedList, EntryBuffer, PageChanges, apply};
use crate::delta::{StoredList, StoredPage, StoredPlace};
use crate::table::{page_of, place_in_page};

/// Patch the whole page after this many single-list reads.
const MERGED_READS: u16 = 64;
/// Marks, in place of a number of reads, a page that no delta changes.
const UNCHANGED: u16 = u16::MAX;

/// The weights or the rows of a list that was merged on demand.
pub(super) fn merged_values<P: ArcValue>(list: &EntryBuffer) -> Vec<P> {
    (0..list.targets.len()).map(|place| P::of_data(list.all().data(place))).collect()
}

impl AdjacencyView {
    /// Merges the list of `vertex` on demand, if its page is untouched and not yet due for patching. With
    /// `wants_weights`, its weights are verified.
    pub(super) fn merged_on_demand(&self, vertex: VertexId, wants_weights: bool) -> Option<ListLocation<'_>> {
        let spec = self.is_merged_on_demand(page_of(vertex)).then_some(&self.shared.spec)?;
        Some(spec.list(vertex, self.is_lazy, wants_weights).unwrap_or_else(|error| {
            self.set_damaged(page_of(vertex), error);
            ListLocation::Nowhere
        }))
    }

    /// Length of that list, without reading its entries.
    pub(super) fn merged_degree(&self, vertex: VertexId) -> Option<usize> {
        let spec = self.is_merged_on_demand(page_of(vertex)).then_some(&self.shared.spec)?;
        Some(spec.degree(vertex).unwrap_or_else(|error| {
            self.set_damaged(page_of(vertex), error);
            0
        }))
    }

    /// Patches the page of a vertex, if deltas change it and it is not patched yet. From then on, reads use the patched
    /// page, and no list is merged on demand.
    pub(crate) fn fix_list_order(&self, vertex: VertexId) {
        let page = page_of(vertex);
        if self.pages[page].state() == PageState::Untouched && !self.is_unchanged(page) {
            self.enter(page, false);
        }
    }

    /// Counts a read of a list, and decides whether the list is merged on demand.
    fn is_merged_on_demand(&self, page: usize) -> bool {
        let shared = &self.shared;
        if self.pages[page].state() != PageState::Untouched {
            return false;
        }
        // Compared before counting, so that the count stays far below `UNCHANGED`.
        let Some(num_reads) = shared.num_reads.get(page).filter(|reads| reads.load(Ordering::Relaxed) < MERGED_READS)
        else {
            return false;
        };
        // The count only steers the choice, so races do no harm.
        let number = num_reads.fetch_add(1, Ordering::Relaxed);
        // An unchanged page, or one that another view has patched, is entered at once, which costs less.
        if number == 0 && !shared.spec.is_to_be_patched(page) {
            num_reads.store(MERGED_READS, Ordering::Relaxed);
            return false;
        }
        number < MERGED_READS
    }

    /// Whether no delta changes a page.
    ///
    /// Cost: the first call looks into the index of each delta.
    pub(super) fn is_unchanged(&self, page: usize) -> bool {
        let Some(num_reads) = self.shared.num_reads.get(page) else { return true };
        if num_reads.load(Ordering::Relaxed) != UNCHANGED && self.shared.spec.version(page).is_none() {
            num_reads.store(UNCHANGED, Ordering::Relaxed);
        }
        num_reads.load(Ordering::Relaxed) == UNCHANGED
    }
}

impl ViewSpec {
    /// Whether a touch of the page would patch it, and no other view has patched it.
    fn is_to_be_patched(&self, page: usize) -> bool {
        let version = self.version(page).filter(|_| self.shown == ShownArcs::All);
        version.is_some_and(|version| self.base.patched((self.direction, page, version)).is_none())
    }

    /// Merges the list of `vertex` with all steps. If it `is_lazy`, reads no other list of the page. Reads weights
    /// only if the list changes, or if they are wanted.
    ///
    /// Cost: the length of the list and, for each delta that changes its page, a search in the index and in the page.
    fn list(&self, vertex: VertexId, is_lazy: bool, wants_weights: bool) -> anden_base::Result<ListLocation<'_>> {
        let (page, local) = (page_of(vertex), place_in_page(vertex));
        let old = self.list_below(vertex, is_lazy, wants_weights)?;
        let targets = self.lists().map_or(&[][..], |lists| &lists.targets()[old.clone()]);
        let mut changed = None::<EntryBuffer>;
        self.for_each_change(vertex, |stored, added, removed| {
            let (added, removed) = (stored.arcs(added), stored.arcs(removed));
            let changes = ChangedList { local: local as u16, added: added.all(), removed: removed.all() };
            // The list is copied only once a delta changes it.
            let before = match changed.take() {
                Some(before) => before,
                None => {
                    let mut before = EntryBuffer { targets: targets.to_vec(), ..EntryBuffer::default() };
                    if let Some(lists) = self.lists().filter(|_| !self.options.is_plain()) {
                        let entries = self.list_below(vertex, is_lazy, true)?;
                        lists.verify_rows(entries.clone())?;
                        lists.columns().copy(entries, &mut before);
                    }
                    before
                }
            };
            let after = changed.insert(EntryBuffer::default());
            apply(before.all(), &changes, self.options.multigraph, after).map_err(|what| self.corrupt(page, &what))
        })?;
        let targets = changed.as_ref().map_or(targets, |list| &list.targets);
        // No patched page checks the targets of this list against the bound of the version.
        self.check_largest(page, targets.last().copied())?;
        Ok(changed.map_or(ListLocation::Slice(old), ListLocation::Merged))
    }

    /// Length of the list of `vertex` after all steps.
    ///
    /// Cost: as [`list`](Self::list), without the length of the list.
    fn degree(&self, vertex: VertexId) -> anden_base::Result<usize> {
        let mut degree = self.lists().map_or(Ok(0), |lists| lists.degree(vertex))?;
        self.for_each_change(vertex, |_, added, removed| {
            let less = (degree + added.len()).checked_sub(removed.len());
            degree = less.ok_or_else(|| self.corrupt(page_of(vertex), "more is removed from a list than is there"))?;
            Ok(())
        })?;
        Ok(degree)
    }

    /// Range of the list of `vertex` in the base; weights are verified if they are wanted, rows are not.
    fn list_below(&self, vertex: VertexId, is_lazy: bool, wants_weights: bool) -> anden_base::Result<Range<usize>> {
        match self.lists() {
            Some(lists) if is_lazy && wants_weights => lists.weighted_list(vertex),
            Some(lists) if is_lazy => lists.list(vertex),
            _ => {
                let base_page = self.base_page(page_of(vertex))?;
                let list = base_page.list(place_in_page(vertex));
                Ok(base_page.edge_base + list.start..base_page.edge_base + list.end)
            }
        }
    }

    /// Calls `body` with the arcs that each step adds to the list of `vertex` and removes from it.
    fn for_each_change(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&StoredPage<'_>, Range<usize>, Range<usize>) -> anden_base::Result<()>,
    ) -> anden_base::Result<()> {
        let (page, local) = (page_of(vertex), place_in_page(vertex) as u16);
        let mut scratch = PageChanges::default();
        for (delta, sense) in &self.steps {
            let Some(stored) = delta.stored_page(self.direction, page, &mut scratch)? else { continue };
            if let Some(StoredList { added, removed }) = stored.list(local, &mut StoredPlace::default()) {
                match sense {
                    ApplyDirection::Forward => body(&stored, added, removed)?,
                    ApplyDirection::Backward => body(&stored, removed, added)?,
                }
            }
        }
        Ok(())
    }
}
