//! Single lists of pages that levels change and that nobody has patched.
//!
//! To patch a page takes hundreds of times as long as to read one of its lists, and who asks for a few vertices reads
//! few lists of each page. So the first lists that are read of a page are made one by one, from the base run's list
//! and what each level changes in it, and forgotten again. Who reads on, or wants the page as a whole, patches it.

use std::sync::atomic::Ordering;

use base::VertexId;
use graph::Weight;

use super::{Found, Recipe, Sense, Show, Side, UNTOUCHED};
use crate::changes::{ChangedList, PageChanges, apply};
use crate::level::{StoredList, StoredPlace};
use crate::table::{page_of, place_in_page};

/// So many lists of a page are made one by one at most.
const PATIENCE: u16 = 64;
/// In place of a number of reads: no level changes the page.
const UNCHANGED: u16 = u16::MAX;

/// A list that was made on its own.
#[derive(Debug, Default)]
pub(super) struct ListApart {
    pub targets: Vec<VertexId>,
    /// The bits of the weights; none where the graph has none.
    bits: Vec<u64>,
}

impl ListApart {
    /// The weights, which are of this type.
    pub fn weights<W: Weight>(&self) -> Vec<W> {
        self.bits.iter().map(|&bits| W::of_bits(bits)).collect()
    }
}

impl Side {
    /// The list of `vertex`, with its weights, if nobody has looked at its page and it is too early to patch that.
    pub(super) fn apart(&self, vertex: VertexId) -> Option<Found<'_>> {
        let (page, shared) = (page_of(vertex), &self.shared);
        if self.pages[page].state() != UNTOUCHED {
            return None;
        }
        let num_reads = shared.num_reads.get(page).filter(|num_reads| num_reads.load(Ordering::Relaxed) < PATIENCE)?;
        let number = num_reads.fetch_add(1, Ordering::Relaxed);
        if number == 0 && !shared.recipe.is_to_be_patched(page) {
            num_reads.store(PATIENCE, Ordering::Relaxed);
            return None;
        }
        (number < PATIENCE).then(|| {
            shared.recipe.list(vertex).unwrap_or_else(|error| {
                self.set_damaged(page, error);
                Found::Nothing
            })
        })
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

    /// The list of `vertex` after all steps.
    ///
    /// Cost: its length and, for each level that changes its page, a search in the index and among the lists of the page.
    fn list(&self, vertex: VertexId) -> base::Result<Found<'_>> {
        let (page, local) = (page_of(vertex), place_in_page(vertex));
        let ground = self.ground(page)?;
        let old = ground.list(local);
        let mut scratch = PageChanges::default();
        let mut changed = None::<ListApart>;
        for (level, sense) in &self.steps {
            let Some(stored) = level.stored_page(self.side, page, &mut scratch)? else { continue };
            let Some(StoredList { added, removed }) = stored.list(local as u16, &mut StoredPlace::default()) else {
                continue;
            };
            let (added, removed) = match sense {
                Sense::Forward => (stored.arcs(added), stored.arcs(removed)),
                Sense::Backward => (stored.arcs(removed), stored.arcs(added)),
            };
            let changes = ChangedList {
                local: local as u16,
                added: added.0,
                added_weights: &added.1,
                removed: removed.0,
                removed_weights: &removed.1,
            };
            let before = changed.take().unwrap_or_else(|| {
                let mut before = ListApart { targets: ground.targets[old.clone()].to_vec(), bits: Vec::new() };
                ground.copy_bits(old.clone(), &mut before.bits);
                before
            });
            let ListApart { targets, bits } = changed.insert(ListApart::default());
            apply((&before.targets, &before.bits), &changes, self.multigraph, targets, bits)
                .map_err(|what| self.corrupt(page, &what))?;
        }
        let targets = changed.as_ref().map_or(&ground.targets[old.clone()], |list| &list.targets);
        self.check_largest(page, targets.last().copied())?;
        let place = ground.edge_base + old.start..ground.edge_base + old.end;
        Ok(changed.map_or(Found::List(place), Found::Apart))
    }
}
