//! Single lists of pages that levels change and that nobody has patched.
//!
//! To patch a page takes hundreds of times as long as to read one of its lists, and who asks for a few vertices reads
//! few lists of each page. So the first lists that are read of a page are made one by one, from the base run's list
//! and what each level changes in it, and forgotten again. Who reads on, or wants the page as a whole, patches it.

use std::ops::Range;
use std::sync::atomic::Ordering;

use base::VertexId;

use super::{Found, Recipe, Sense, Show, Side, UNTOUCHED};
use crate::arc_columns::ArcValue;
use crate::changes::{ChangedList, EntryBuffer, PageChanges, apply};
use crate::level::{StoredList, StoredPage, StoredPlace};
use crate::table::{page_of, place_in_page};

/// So many lists of a page are made one by one at most.
const PATIENCE: u16 = 64;
/// In place of a number of reads: no level changes the page.
const UNCHANGED: u16 = u16::MAX;

/// The weights or the rows of a list that was made on its own.
pub(super) fn values_apart<P: ArcValue>(list: &EntryBuffer) -> Vec<P> {
    (0..list.targets.len()).map(|place| P::of_data(list.all().data(place))).collect()
}

impl Side {
    /// The list of `vertex`, with its weights if they are wanted, if nobody has looked at its page and it is too early to
    /// patch that.
    pub(super) fn apart(&self, vertex: VertexId, wants_weights: bool) -> Option<Found<'_>> {
        let recipe = self.is_apart(page_of(vertex)).then_some(&self.shared.recipe)?;
        Some(recipe.list(vertex, self.is_sparing, wants_weights).unwrap_or_else(|error| {
            self.set_damaged(page_of(vertex), error);
            Found::Nothing
        }))
    }

    /// The length of that list; none of its entries is read.
    pub(super) fn degree_apart(&self, vertex: VertexId) -> Option<usize> {
        let recipe = self.is_apart(page_of(vertex)).then_some(&self.shared.recipe)?;
        Some(recipe.degree(vertex).unwrap_or_else(|error| {
            self.set_damaged(page_of(vertex), error);
            0
        }))
    }

    /// Patches the page of a vertex, if deltas change it and it is not patched yet. From then on, reads of its lists use
    /// the patched page, and no list is merged on demand.
    pub(crate) fn fix_list_order(&self, vertex: VertexId) {
        let page = page_of(vertex);
        if self.pages[page].state() == UNTOUCHED && !self.is_unchanged(page) {
            self.enter(page, false);
        }
    }

    /// Counts a list that is read, and says whether it is made on its own.
    fn is_apart(&self, page: usize) -> bool {
        let shared = &self.shared;
        if self.pages[page].state() != UNTOUCHED {
            return false;
        }
        let Some(num_reads) = shared.num_reads.get(page).filter(|reads| reads.load(Ordering::Relaxed) < PATIENCE)
        else {
            return false;
        };
        let number = num_reads.fetch_add(1, Ordering::Relaxed);
        if number == 0 && !shared.recipe.is_to_be_patched(page) {
            num_reads.store(PATIENCE, Ordering::Relaxed);
            return false;
        }
        number < PATIENCE
    }

    /// Whether no level changes a page.
    ///
    /// Cost: the first time, a look at the indexes of all levels.
    pub(super) fn is_unchanged(&self, page: usize) -> bool {
        let Some(num_reads) = self.shared.num_reads.get(page) else { return true };
        if num_reads.load(Ordering::Relaxed) != UNCHANGED && self.shared.recipe.version(page).is_none() {
            num_reads.store(UNCHANGED, Ordering::Relaxed);
        }
        num_reads.load(Ordering::Relaxed) == UNCHANGED
    }
}

impl Recipe {
    /// Whether to enter the page is to patch it, and nobody else has done so.
    fn is_to_be_patched(&self, page: usize) -> bool {
        let version = self.version(page).filter(|_| self.show == Show::Everything);
        version.is_some_and(|version| self.base.patched((self.side, page, version)).is_none())
    }

    /// The list of `vertex` after all steps; of its page no other list is read if it `is_sparing`, and its weights only
    /// where they are wanted or it changes.
    ///
    /// Cost: its length and, for each level that changes its page, a search in the index and among the lists of the page.
    fn list(&self, vertex: VertexId, is_sparing: bool, wants_weights: bool) -> base::Result<Found<'_>> {
        let (page, local) = (page_of(vertex), place_in_page(vertex));
        let old = self.list_below(vertex, is_sparing, wants_weights)?;
        let targets = self.lists().map_or(&[][..], |lists| &lists.targets()[old.clone()]);
        let mut changed = None::<EntryBuffer>;
        self.for_each_change(vertex, |stored, added, removed| {
            let (added, removed) = (stored.arcs(added), stored.arcs(removed));
            let changes = ChangedList { local: local as u16, added: added.all(), removed: removed.all() };
            let before = match changed.take() {
                Some(before) => before,
                None => {
                    let mut before = EntryBuffer { targets: targets.to_vec(), ..EntryBuffer::default() };
                    if let Some(lists) = self.lists().filter(|_| !self.options.is_plain()) {
                        let entries = self.list_below(vertex, is_sparing, true)?;
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
        self.check_largest(page, targets.last().copied())?;
        Ok(changed.map_or(Found::List(old), Found::Apart))
    }

    /// The length of the list of `vertex` after all steps.
    ///
    /// Cost: as for [`list`](Self::list), but for its length.
    fn degree(&self, vertex: VertexId) -> base::Result<usize> {
        let mut degree = self.lists().map_or(Ok(0), |lists| lists.degree(vertex))?;
        self.for_each_change(vertex, |_, added, removed| {
            let less = (degree + added.len()).checked_sub(removed.len());
            degree = less.ok_or_else(|| self.corrupt(page_of(vertex), "more is removed from a list than is there"))?;
            Ok(())
        })?;
        Ok(degree)
    }

    /// The entries of the list of `vertex` in the base run, with their weights verified if they are wanted; rows are not.
    fn list_below(&self, vertex: VertexId, is_sparing: bool, wants_weights: bool) -> base::Result<Range<usize>> {
        match self.lists() {
            Some(lists) if is_sparing && wants_weights => lists.weighted_list(vertex),
            Some(lists) if is_sparing => lists.list(vertex),
            _ => {
                let ground = self.ground(page_of(vertex))?;
                let list = ground.list(place_in_page(vertex));
                Ok(ground.edge_base + list.start..ground.edge_base + list.end)
            }
        }
    }

    /// Calls `body` with what each step, as it is applied, adds to the list of `vertex` and removes from it.
    fn for_each_change(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&StoredPage<'_>, Range<usize>, Range<usize>) -> base::Result<()>,
    ) -> base::Result<()> {
        let (page, local) = (page_of(vertex), place_in_page(vertex) as u16);
        let mut scratch = PageChanges::default();
        for (level, sense) in &self.steps {
            let Some(stored) = level.stored_page(self.side, page, &mut scratch)? else { continue };
            if let Some(StoredList { added, removed }) = stored.list(local, &mut StoredPlace::default()) {
                match sense {
                    Sense::Forward => body(&stored, added, removed)?,
                    Sense::Backward => body(&stored, removed, added)?,
                }
            }
        }
        Ok(())
    }
}
