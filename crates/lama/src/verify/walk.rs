//! Walks from the base run through all versions, forwards and backwards, page by page.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use base::VertexId;
use base::parallel::Pool;
use graph::Side;

use super::{CHUNK_PAGES, Lives, Sums};
use crate::Result;
use crate::changes::{ChangedList, ComposeScratch, Entries, EntryBuffer, PageChanges, apply, compose};
use crate::level::Level;
use crate::patched::WholePage;
use crate::store::State;
use crate::table::{PAGE_VERTICES, num_pages};
use crate::view::View;

/// One side of all versions.
pub(super) struct Walk<'a> {
    state: &'a State,
    path: &'a Path,
    side: Side,
    lives: &'a Lives,
    /// The graph of the base run.
    anchor: View,
    /// By version: what leads to it from the one before.
    levels: Vec<Option<Level>>,
    anchor_index: usize,
}

/// The lists of a page that levels changed so far.
type Changed = HashMap<u16, EntryBuffer>;

impl<'a> Walk<'a> {
    pub fn new(state: &'a State, path: &'a Path, side: Side, lives: &'a Lives) -> Result<Self> {
        let chain = &state.manifest.chain;
        let anchor = state.view(chain.anchor, path)?;
        let levels = chain.versions.iter().map(|version| state.level_at(version.level?).cloned()).collect();
        let anchor_index = chain.index(chain.anchor).unwrap_or(0);
        Ok(Self { state, path, side, lives, anchor, levels, anchor_index })
    }

    /// The sums over all lists of each version.
    ///
    /// # Errors
    /// A page is damaged, or what a level changes does not fit the version that it changes.
    pub fn sums(&self, pool: &Pool) -> Result<Vec<Sums>> {
        let versions = &self.state.manifest.chain.versions;
        let largest_bound = versions.last().map_or(0, |version| version.vertex_bound as usize);
        let all = Mutex::new(vec![Sums::default(); versions.len()]);
        let results = pool.map_chunks(0..num_pages(largest_bound), CHUNK_PAGES, |_, pages| -> Result<()> {
            for page in pages {
                let sums = self.page(page)?;
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.iter_mut().zip(sums).for_each(|(all, sums)| *all = all.plus(sums));
            }
            Ok(())
        });
        results.into_iter().collect::<Result<()>>()?;
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The sums over the lists of a page of each version.
    fn page(&self, page: usize) -> Result<Vec<Sums>> {
        let num_versions = self.levels.len();
        let side = self.anchor.side(self.side).filter(|side| page < side.num_pages());
        let (base, base_sums) = match side {
            Some(side) => {
                let whole = side.whole_page(page)?;
                let number = self.state.manifest.chain.anchor;
                let sums = Sums::of_page(page, &whole, |vertex| self.lives.is_dead(vertex, number));
                let sums = sums.map_err(|what| base::Error::corrupt(self.path, 0, what))?;
                (whole, sums)
            }
            None => (WholePage::default(), Sums::default()),
        };
        let mut sums = vec![base_sums; num_versions];
        let mut changed = Changed::new();
        for index in self.anchor_index + 1..num_versions {
            sums[index] = self
                .step(page, &base, &mut changed, index, index)?
                .map_or(sums[index - 1], |(added, removed)| sums[index - 1].plus(added).minus(removed));
        }
        changed.clear();
        for index in (0..self.anchor_index).rev() {
            sums[index] = self
                .step(page, &base, &mut changed, index + 1, index)?
                .map_or(sums[index + 1], |(added, removed)| sums[index + 1].plus(added).minus(removed));
        }
        self.check_delta_runs(page)?;
        Ok(sums)
    }

    /// Applies the level of the version `level_index` so that the lists become those of the version `to_index`; gives
    /// the sums of what is added and removed, or nothing where it does not change the page.
    fn step(
        &self,
        page: usize,
        base: &WholePage,
        changed: &mut Changed,
        level_index: usize,
        to_index: usize,
    ) -> Result<Option<(Sums, Sums)>> {
        let Some(level) = &self.levels[level_index] else { return Ok(None) };
        let version = &self.state.manifest.chain.versions[to_index];
        let first = (page * PAGE_VERTICES) as VertexId;
        let mut changes = PageChanges::default();
        let (mut added, mut removed) = (Sums::default(), Sums::default());
        let touches = level.touches(self.side, page) && level.read_page(self.side, page, &mut changes)?;
        if touches {
            if level_index != to_index {
                changes.invert();
            }
            for list in changes.lists() {
                let vertex = first + VertexId::from(list.local);
                let new = self
                    .change(base, changed, &list)
                    .map_err(|what| level.corrupt(format!("vertex {vertex}, version {}: {what}", version.number)))?;
                let is_too_large = |id: VertexId| u64::from(id) >= version.vertex_bound;
                let is_dead = |id: VertexId| self.lives.is_dead(id, version.number);
                let is_bad = new.targets.last().is_some_and(|&last| is_too_large(last) || is_too_large(vertex));
                if is_bad || list.added.targets.iter().any(|&target| is_dead(target) || is_dead(vertex)) {
                    let what =
                        format!("vertex {vertex}, version {}: an edge between what is no vertex", version.number);
                    return Err(level.corrupt(what).into());
                }
                added = added.plus(Sums::of_list(vertex, list.added));
                removed = removed.plus(Sums::of_list(vertex, list.removed));
                changed.insert(list.local, new);
            }
        }
        // Whoever dies towards this version has no edges in it.
        let dying = if level_index == to_index { level.died()? } else { level.returned()? };
        let start = dying.partition_point(|&vertex| vertex < first);
        for &vertex in dying[start..].iter().take_while(|&&vertex| ((vertex - first) as usize) < PAGE_VERTICES) {
            if !self.list(base, changed, (vertex - first) as u16).targets.is_empty() {
                let what = format!("vertex {vertex} is dead in version {} and has edges", version.number);
                return Err(level.corrupt(what).into());
            }
        }
        Ok(touches.then_some((added, removed)))
    }

    fn list<'l>(&self, base: &'l WholePage, changed: &'l Changed, local: u16) -> Entries<'l> {
        match changed.get(&local) {
            Some(list) => list.all(),
            None => {
                let ends = base.offsets.get(usize::from(local)..=usize::from(local) + 1).unwrap_or(&[0, 0]);
                base.entries.all().slice(ends[0] as usize..ends[1] as usize)
            }
        }
    }

    fn change(&self, base: &WholePage, changed: &Changed, list: &ChangedList<'_>) -> Result<EntryBuffer, String> {
        let multigraph = self.state.manifest.created.options.multigraph;
        let mut new = EntryBuffer::default();
        apply(self.list(base, changed, list.local), list, multigraph, &mut new)?;
        Ok(new)
    }

    /// Delta runs say what the levels say for which they stand.
    fn check_delta_runs(&self, page: usize) -> Result<()> {
        let chain = &self.state.manifest.chain;
        let (mut expected, mut found) = (PageChanges::default(), PageChanges::default());
        for run in &chain.delta_runs {
            let level = self.state.level(run.level);
            let mut parts = Vec::new();
            for level in self.state.levels_between(run.from, run.to) {
                let mut part = PageChanges::default();
                if level.touches(self.side, page) && level.read_page(self.side, page, &mut part)? {
                    parts.push(part);
                }
            }
            compose(&parts, &mut expected, &mut ComposeScratch::default());
            found.clear();
            if level.touches(self.side, page) {
                level.read_page(self.side, page, &mut found)?;
            }
            if expected != found {
                return Err(level.corrupt(format!("page {page} is not what its levels make of it")).into());
            }
        }
        Ok(())
    }
}
