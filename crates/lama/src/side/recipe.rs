//! How the lists of a side are made from a base run and levels.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

use base::VertexId;

use crate::base_run::{BaseLists, BaseRun};
use crate::changes::{ComposeScratch, Entries, PageChanges, compose, join};
use crate::level::{Level, StoredPage};
use crate::options::GraphOptions;
use crate::patched::{Ground, NO_OFFSETS, PatchedPage, WholePage};
use crate::rewritten::Room;

/// Which way a level is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sense {
    /// Towards younger versions.
    Forward,
    /// Towards older versions: what it added is removed, what it removed added.
    Backward,
}

/// What a side shows of its levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// The base run, changed.
    Everything,
    /// What they add, and nothing else.
    Additions,
}

/// How the lists of a graph are made from a base run and levels.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub base: Arc<BaseRun>,
    pub side: graph::Side,
    /// In the order in which they are applied to the base run.
    pub steps: Vec<(Level, Sense)>,
    pub show: Show,
    pub vertex_bound: usize,
    pub options: GraphOptions,
    /// Whether others take its place soon: then pages that are written anew are not worth huge pages of memory.
    pub is_brief: bool,
    /// Named where its parts do not fit together.
    pub path: PathBuf,
}

/// Memory that pages are made in, one after the other.
#[derive(Debug, Default)]
pub(crate) struct PageScratch {
    pub(super) parts: Vec<PageChanges>,
    pub(super) sums: ComposeScratch,
    pub(super) starts: Vec<usize>,
    /// What all parts together change.
    pub(super) all: PageChanges,
}

/// Memory that pages are patched in, one after the other.
#[derive(Debug, Default)]
struct PatchScratch {
    page: PageScratch,
    whole: WholePage,
}

/// A thread keeps so many bytes of it for the next page at most.
const MOST_KEPT: usize = 4 << 20;

thread_local!(static SCRATCH: Cell<PatchScratch> = Cell::default());

impl PageScratch {
    fn num_bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(PageChanges::num_bytes).sum();
        // What sums take follows from what is summed up.
        parts + self.all.num_bytes()
    }
}

impl Recipe {
    /// The lists that are changed.
    pub(super) fn lists(&self) -> Option<&BaseLists> {
        match self.show {
            Show::Everything => self.base.lists(self.side),
            Show::Additions => None,
        }
    }

    /// What each step changes on a page, as it is applied; gives how many of `parts` that are.
    pub(super) fn parts(&self, page: usize, parts: &mut Vec<PageChanges>) -> base::Result<usize> {
        let mut num_parts = 0;
        for (level, sense) in &self.steps {
            if parts.len() == num_parts {
                parts.push(PageChanges::default());
            }
            let part = &mut parts[num_parts];
            if level.read_page(self.side, page, part)? {
                if *sense == Sense::Backward {
                    part.invert();
                }
                num_parts += 1;
            }
        }
        Ok(num_parts)
    }

    /// What each step changes on a page, where it is stored, instead of what `parts` held.
    pub(super) fn stored_parts<'a>(
        &'a self,
        page: usize,
        parts: &mut Vec<(StoredPage<'a>, Sense)>,
        scratch: &mut PageChanges,
    ) -> base::Result<()> {
        parts.clear();
        for (level, sense) in &self.steps {
            parts.extend(level.stored_page(self.side, page, scratch)?.map(|stored| (stored, *sense)));
        }
        Ok(())
    }

    /// What all steps together change on a page becomes `scratch.all`; whether that is anything.
    pub(super) fn changes(&self, page: usize, scratch: &mut PageScratch) -> base::Result<bool> {
        let PageScratch { parts, sums, starts, all } = scratch;
        let is_joined = self.options.is_plain() && {
            let mut stored = Vec::with_capacity(self.steps.len());
            self.stored_parts(page, &mut stored, all)?;
            join(&stored, all, starts)
        };
        if !is_joined {
            match self.parts(page, parts)? {
                0 => all.clear(),
                1 => std::mem::swap(all, &mut parts[0]),
                num_parts => compose(&parts[..num_parts], all, sums),
            }
        }
        if self.show == Show::Additions {
            let mut added = PageChanges::default();
            for list in all.lists().filter(|list| !list.added.targets.is_empty()) {
                added.push(list.local, list.added, Entries::default());
            }
            *all = added;
        }
        Ok(!all.is_empty())
    }

    /// A page of the base run, with its weights and rows verified.
    pub(super) fn ground(&self, page: usize) -> base::Result<Ground<'_>> {
        let lists = self.lists().filter(|lists| page < lists.num_pages());
        let base = lists.map_or(Ok(None), |lists| lists.page(page))?;
        if let Some(lists) = lists {
            lists.verify_weights(page)?;
            lists.verify_rows(lists.edges(page))?;
        }
        let (offsets, targets, edge_base) =
            base.map_or((NO_OFFSETS, &[][..], 0), |page| (page.offsets, page.targets, page.edge_base));
        let columns = lists.map(BaseLists::columns);
        Ok(Ground { offsets, targets, edge_base, columns, options: &self.options })
    }

    /// The page with the changes of all steps; `None` where they change nothing. If it `is_sparing`, the room is left to
    /// the system's cache: who waits for a disk has more of that than of pages that are written anew.
    pub(super) fn patch(
        &self,
        page: usize,
        room: Option<&Arc<Room>>,
        is_sparing: bool,
    ) -> base::Result<Option<Arc<PatchedPage>>> {
        let Some(version) = self.version(page) else { return Ok(None) };
        let shared = self.base.patched((self.side, page, version)).filter(|_| self.show == Show::Everything);
        // Without room there is no table for the offsets of a page that another view wrote anew.
        if let Some(shared) = shared.as_ref().filter(|shared| room.is_some() || shared.rewritten().is_none()) {
            self.check_largest(page, shared.largest_target())?;
            return Ok(Some(Arc::clone(shared)));
        }
        let patched = SCRATCH.with(|scratch| {
            let mut scratch = scratch.take();
            let patched = self.patch_with(page, room.filter(|_| !is_sparing), &mut scratch);
            let PatchScratch { page, whole } = &scratch;
            if whole.num_bytes() + page.num_bytes() <= MOST_KEPT {
                SCRATCH.set(scratch);
            }
            patched
        });
        let Some(patched) = patched? else { return Ok(None) };
        self.check_largest(page, patched.largest_target())?;
        let patched = Arc::new(patched);
        if self.show == Show::Everything && shared.is_none() {
            self.base.remember_patched((self.side, page, version), &patched);
        }
        Ok(Some(patched))
    }

    fn patch_with(
        &self,
        page: usize,
        room: Option<&Arc<Room>>,
        scratch: &mut PatchScratch,
    ) -> base::Result<Option<PatchedPage>> {
        let PatchScratch { page: changes, whole } = scratch;
        if !self.changes(page, changes)? {
            return Ok(None);
        }
        let ground = self.ground(page)?;
        let patched = PatchedPage::new(&ground, &changes.all, room.map(|room| (room, self.is_brief)), whole);
        patched.map(Some).map_err(|what| self.corrupt(page, &what))
    }

    /// The version, nearest to the base run, at which the page is as it is after all steps; `None` where none of them
    /// touches it.
    pub(super) fn version(&self, page: usize) -> Option<u32> {
        let last = self.steps.iter().rfind(|(level, _)| level.touches(self.side, page));
        last.map(|(level, sense)| match sense {
            Sense::Forward => level.to(),
            Sense::Backward => level.from(),
        })
    }

    /// That targets are vertices of the version is checked here, whatever levels and base run say.
    pub(super) fn check_largest(&self, page: usize, largest: Option<VertexId>) -> base::Result<()> {
        match largest {
            Some(largest) if largest as usize >= self.vertex_bound => {
                let what = format!("a target below {} expected, {largest} found", self.vertex_bound);
                Err(self.corrupt(page, &what))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn corrupt(&self, page: usize, what: &str) -> base::Error {
        let side = if self.side == graph::Side::Out { "out" } else { "in" };
        base::Error::corrupt(&self.path, 0, format!("the levels do not fit the {side}-lists of page {page}: {what}"))
    }
}
