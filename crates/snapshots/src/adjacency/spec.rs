//! How the lists of one direction are made from the base and deltas.

use anden_graph::Direction;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

use anden_base::VertexId;

use crate::base::{BaseLists, OpenBase};
use crate::changes::{ApplyDirection, ComposeScratch, ListEntries, PageChanges, compose, join};
use crate::delta::{Delta, StoredPage};
use crate::options::GraphOptions;
use crate::page::{BasePage, NO_OFFSETS, WholePage};
use crate::patched::PatchedPage;
use crate::rewritten::OverflowArena;

/// Which lists a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownArcs {
    /// The lists of the base, with the changes of deltas.
    All,
    /// Only the arcs that deltas add.
    Added,
}

/// Specification of a view's lists: the base, and deltas over it.
#[derive(Clone, Debug)]
pub(crate) struct ViewSpec {
    pub base: Arc<OpenBase>,
    pub direction: Direction,
    /// The deltas in the order of their application to the base.
    pub steps: Vec<(Delta, ApplyDirection)>,
    pub shown: ShownArcs,
    pub vertex_bound: usize,
    pub options: GraphOptions,
    /// Short-lived: a younger view replaces this one soon, so huge pages of memory are not worth their price.
    pub is_short_lived: bool,
    /// Path for error messages.
    pub path: PathBuf,
}

/// Memory for making pages one after the other.
#[derive(Debug, Default)]
pub(crate) struct PageScratch {
    pub(super) parts: Vec<PageChanges>,
    pub(super) sums: ComposeScratch,
    pub(super) starts: Vec<usize>,
    /// Net changes of all parts.
    pub(super) all: PageChanges,
}

/// Memory for patching pages one after the other.
#[derive(Debug, Default)]
struct PatchScratch {
    page: PageScratch,
    whole: WholePage,
}

/// Most bytes that a thread keeps for its next page.
const MOST_KEPT: usize = 4 << 20;

thread_local!(static SCRATCH: Cell<PatchScratch> = Cell::default());

impl PageScratch {
    fn num_bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(PageChanges::num_bytes).sum();
        // The memory of sums follows from that of the parts.
        parts + self.all.num_bytes()
    }
}

impl ViewSpec {
    /// The lists of the base, if the view shows them.
    pub(super) fn lists(&self) -> Option<&BaseLists> {
        match self.shown {
            ShownArcs::All => self.base.lists(self.direction),
            ShownArcs::Added => None,
        }
    }

    /// Reads the changes of each step on a page, in the direction of the step; returns the number of filled `parts`.
    pub(super) fn parts(&self, page: usize, parts: &mut Vec<PageChanges>) -> anden_base::Result<usize> {
        let mut num_parts = 0;
        for (delta, sense) in &self.steps {
            // Parts of earlier pages are reused, with their memory.
            if parts.len() == num_parts {
                parts.push(PageChanges::default());
            }
            let part = &mut parts[num_parts];
            if delta.read_page(self.direction, page, part)? {
                if *sense == ApplyDirection::Backward {
                    part.invert();
                }
                num_parts += 1;
            }
        }
        Ok(num_parts)
    }

    /// Fills `parts` with the changes of each step on a page, in their stored form.
    pub(super) fn stored_parts<'a>(
        &'a self,
        page: usize,
        parts: &mut Vec<(StoredPage<'a>, ApplyDirection)>,
        scratch: &mut PageChanges,
    ) -> anden_base::Result<()> {
        parts.clear();
        for (delta, sense) in &self.steps {
            parts.extend(delta.stored_page(self.direction, page, scratch)?.map(|stored| (stored, *sense)));
        }
        Ok(())
    }

    /// Fills `scratch.all` with the net changes of all steps on a page; returns whether there are any.
    pub(super) fn changes(&self, page: usize, scratch: &mut PageScratch) -> anden_base::Result<bool> {
        let PageScratch { parts, sums, starts, all } = scratch;
        // Changes that only add or only remove are joined, which costs less than composing them.
        let is_joined = self.options.is_plain() && {
            let mut stored = Vec::with_capacity(self.steps.len());
            self.stored_parts(page, &mut stored, all)?;
            join(&stored, all, starts)
        };
        if !is_joined {
            match self.parts(page, parts)? {
                0 => all.clear(),
                // The changes of one step are net already.
                1 => std::mem::swap(all, &mut parts[0]),
                num_parts => compose(&parts[..num_parts], all, sums),
            }
        }
        // Net additions only: what was removed again has cancelled out.
        if self.shown == ShownArcs::Added {
            let mut added = PageChanges::default();
            for list in all.lists().filter(|list| !list.added.targets.is_empty()) {
                added.push(list.local, list.added, ListEntries::default());
            }
            *all = added;
        }
        Ok(!all.is_empty())
    }

    /// A page of the base, with verified weights and rows.
    pub(super) fn base_page(&self, page: usize) -> anden_base::Result<BasePage<'_>> {
        // Pages behind the base hold vertices that only deltas have.
        let lists = self.lists().filter(|lists| page < lists.num_pages());
        let base = lists.map_or(Ok(None), |lists| lists.page(page))?;
        if let Some(lists) = lists {
            lists.verify_weights(page)?;
            lists.verify_rows(lists.edges(page))?;
        }
        let (offsets, targets, edge_base) =
            base.map_or((NO_OFFSETS, &[][..], 0), |page| (page.offsets, page.targets, page.edge_base));
        let columns = lists.map(BaseLists::columns);
        Ok(BasePage { offsets, targets, edge_base, columns, options: &self.options })
    }

    /// Patches the page with the changes of all steps; `None` if they change nothing. If it `is_lazy`, the page
    /// stays in fragments, so that its memory is left to the system's cache. For a graph on disk, that gains more.
    pub(super) fn patch(
        &self,
        page: usize,
        arena: Option<&Arc<OverflowArena>>,
        is_lazy: bool,
    ) -> anden_base::Result<Option<Arc<PatchedPage>>> {
        let Some(version) = self.version(page) else { return Ok(None) };
        // Only pages of whole versions are shared; a window shows other lists.
        let shared = self.base.patched((self.direction, page, version)).filter(|_| self.shown == ShownArcs::All);
        // Without an overflow arena, this view has no table for the offsets of a page that another view patched.
        if let Some(shared) = shared.as_ref().filter(|shared| arena.is_some() || shared.rewritten().is_none()) {
            // The largest target is checked again: this version may have a smaller bound.
            self.check_largest(page, shared.largest_target())?;
            return Ok(Some(Arc::clone(shared)));
        }
        // Pages of a thread share scratch memory, because fresh memory is expensive.
        let patched = SCRATCH.with(|scratch| {
            let mut scratch = scratch.take();
            let patched = self.patch_with(page, arena.filter(|_| !is_lazy), &mut scratch);
            let PatchScratch { page, whole } = &scratch;
            // One large page must not keep its memory in every thread.
            if whole.num_bytes() + page.num_bytes() <= MOST_KEPT {
                SCRATCH.set(scratch);
            }
            patched
        });
        let Some(patched) = patched? else { return Ok(None) };
        self.check_largest(page, patched.largest_target())?;
        let patched = Arc::new(patched);
        if self.shown == ShownArcs::All && shared.is_none() {
            self.base.remember_patched((self.direction, page, version), &patched);
        }
        Ok(Some(patched))
    }

    fn patch_with(
        &self,
        page: usize,
        arena: Option<&Arc<OverflowArena>>,
        scratch: &mut PatchScratch,
    ) -> anden_base::Result<Option<PatchedPage>> {
        let PatchScratch { page: changes, whole } = scratch;
        if !self.changes(page, changes)? {
            return Ok(None);
        }
        let base_page = self.base_page(page)?;
        let patched =
            PatchedPage::new(&base_page, &changes.all, arena.map(|arena| (arena, self.is_short_lived)), whole);
        patched.map(Some).map_err(|what| self.corrupt(page, &what))
    }

    /// The version, nearest to the base, at which the page is as after all steps; `None` if no step changes it. Views
    /// share patched pages by this number.
    pub(super) fn version(&self, page: usize) -> Option<u32> {
        let last = self.steps.iter().rfind(|(delta, _)| delta.touches(self.direction, page));
        last.map(|(delta, sense)| match sense {
            ApplyDirection::Forward => delta.to(),
            ApplyDirection::Backward => delta.from(),
        })
    }

    /// Checks that targets are below the version's vertex bound, whatever the deltas and the base claim.
    pub(super) fn check_largest(&self, page: usize, largest: Option<VertexId>) -> anden_base::Result<()> {
        match largest {
            Some(largest) if largest as usize >= self.vertex_bound => {
                let what = format!("a target below {} expected, {largest} found", self.vertex_bound);
                Err(self.corrupt(page, &what))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn corrupt(&self, page: usize, what: &str) -> anden_base::Error {
        let direction = if self.direction == Direction::Out { "out" } else { "in" };
        anden_base::Error::corrupt(
            &self.path,
            0,
            format!("the deltas do not fit the {direction}-lists of page {page}: {what}"),
        )
    }
}
