//! Walks from the base through all versions, forward and backward, page by page.

use anden_graph::Direction;
use std::collections::HashMap;
use std::path::Path;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use parking_lot::Mutex;

use super::{AdjacencySums, CHUNK_PAGES, Lives};
use crate::Result;
use crate::changes::{ChangedList, ComposeScratch, EntryBuffer, ListEntries, PageChanges, apply, compose};
use crate::delta::Delta;
use crate::page::WholePage;
use crate::store::PublishedState;
use crate::table::{PAGE_VERTICES, num_pages};
use crate::view::SnapshotView;

/// One direction of all versions.
pub(super) struct AdjacencyVerifier<'a> {
    state: &'a PublishedState,
    path: &'a Path,
    direction: Direction,
    lives: &'a Lives,
    /// The graph at the version of the base.
    anchor: SnapshotView,
    /// By version: the delta from the version before.
    deltas: Vec<Option<Delta>>,
    anchor_index: usize,
}

/// The lists of a page that the deltas read until now changed.
type ChangedPageLists = HashMap<u16, EntryBuffer>;

impl<'a> AdjacencyVerifier<'a> {
    pub fn new(state: &'a PublishedState, path: &'a Path, direction: Direction, lives: &'a Lives) -> Result<Self> {
        let chain = &state.manifest.chain;
        let anchor = state.view(chain.anchor, path)?;
        let deltas = chain.versions.iter().map(|version| state.delta_at(version.delta?).cloned()).collect();
        let anchor_index = chain.index(chain.anchor).unwrap_or(0);
        Ok(Self { state, path, direction, lives, anchor, deltas, anchor_index })
    }

    /// The sums over all lists of each version.
    ///
    /// # Errors
    /// A page is damaged, or the changes of a delta do not fit the version that it changes.
    pub fn sums(&self, pool: &Pool) -> Result<Vec<AdjacencySums>> {
        let versions = &self.state.manifest.chain.versions;
        let largest_bound = versions.last().map_or(0, |version| version.vertex_bound as usize);
        let all = Mutex::new(vec![AdjacencySums::default(); versions.len()]);
        let results = pool.map_chunks(0..num_pages(largest_bound), CHUNK_PAGES, |_, pages| -> Result<()> {
            for page in pages {
                let sums = self.page(page)?;
                // Locked for each page, not for each list.
                let mut all = all.lock();
                // Sums wrap, so the order of the pages does not matter.
                all.iter_mut().zip(sums).for_each(|(all, sums)| *all = all.plus(sums));
            }
            Ok(())
        });
        results.into_iter().collect::<Result<()>>()?;
        Ok(all.into_inner())
    }

    /// The sums over the lists of a page, for each version.
    fn page(&self, page: usize) -> Result<Vec<AdjacencySums>> {
        let num_versions = self.deltas.len();
        let lists = self.anchor.adjacency(self.direction).filter(|lists| page < lists.num_pages());
        let (base, base_sums) = match lists {
            Some(lists) => {
                let whole = lists.whole_page(page)?;
                let number = self.state.manifest.chain.anchor;
                let sums = AdjacencySums::of_page(page, &whole, |vertex| self.lives.is_dead(vertex, number));
                let sums = sums.map_err(|what| anden_base::Error::corrupt(self.path, 0, what))?;
                (whole, sums)
            }
            None => (WholePage::default(), AdjacencySums::default()),
        };
        let mut sums = vec![base_sums; num_versions];
        let mut changed = ChangedPageLists::new();
        // Each version's sums follow from the sums of the version before, and the changes between.
        for index in self.anchor_index + 1..num_versions {
            sums[index] = self
                .step(page, &base, &mut changed, index, index)?
                .map_or(sums[index - 1], |(added, removed)| sums[index - 1].plus(added).minus(removed));
        }
        // Backward from the anchor, the lists are those of the base again.
        changed.clear();
        for index in (0..self.anchor_index).rev() {
            sums[index] = self
                .step(page, &base, &mut changed, index + 1, index)?
                .map_or(sums[index + 1], |(added, removed)| sums[index + 1].plus(added).minus(removed));
        }
        self.check_merged_deltas(page)?;
        Ok(sums)
    }

    /// Applies the delta of the version `delta_index`, so that the lists become those of the version `to_index`.
    /// Returns the sums of added and of removed arcs, or `None` if the delta does not change the page.
    fn step(
        &self,
        page: usize,
        base: &WholePage,
        changed: &mut ChangedPageLists,
        delta_index: usize,
        to_index: usize,
    ) -> Result<Option<(AdjacencySums, AdjacencySums)>> {
        let Some(delta) = &self.deltas[delta_index] else { return Ok(None) };
        let version = &self.state.manifest.chain.versions[to_index];
        let first = (page * PAGE_VERTICES) as VertexId;
        let mut changes = PageChanges::default();
        let (mut added, mut removed) = (AdjacencySums::default(), AdjacencySums::default());
        let touches = delta.touches(self.direction, page) && delta.read_page(self.direction, page, &mut changes)?;
        if touches {
            // Toward an older version, the delta is applied backward.
            if delta_index != to_index {
                changes.invert();
            }
            for list in changes.lists() {
                let vertex = first + VertexId::from(list.local);
                let new = self
                    .change(base, changed, &list)
                    .map_err(|what| delta.corrupt(format!("vertex {vertex}, version {}: {what}", version.number)))?;
                let is_too_large = |id: VertexId| u64::from(id) >= version.vertex_bound;
                let is_dead = |id: VertexId| self.lives.is_dead(id, version.number);
                let is_bad = new.targets.last().is_some_and(|&last| is_too_large(last) || is_too_large(vertex));
                if is_bad || list.added.targets.iter().any(|&target| is_dead(target) || is_dead(vertex)) {
                    let what =
                        format!("vertex {vertex}, version {}: an edge between what is no vertex", version.number);
                    return Err(delta.corrupt(what).into());
                }
                added = added.plus(AdjacencySums::of_list(vertex, list.added));
                removed = removed.plus(AdjacencySums::of_list(vertex, list.removed));
                changed.insert(list.local, new);
            }
        }
        // A vertex that is dead in this version has no edges there.
        // Toward an older version, returned vertices are dead again.
        let dying = if delta_index == to_index { delta.died()? } else { delta.returned()? };
        let start = dying.partition_point(|&vertex| vertex < first);
        for &vertex in dying[start..].iter().take_while(|&&vertex| ((vertex - first) as usize) < PAGE_VERTICES) {
            if !self.list(base, changed, (vertex - first) as u16).targets.is_empty() {
                let what = format!("vertex {vertex} is dead in version {} and has edges", version.number);
                return Err(delta.corrupt(what).into());
            }
        }
        Ok(touches.then_some((added, removed)))
    }

    fn list<'l>(&self, base: &'l WholePage, changed: &'l ChangedPageLists, local: u16) -> ListEntries<'l> {
        match changed.get(&local) {
            Some(list) => list.all(),
            None => {
                let ends = base.offsets.get(usize::from(local)..=usize::from(local) + 1).unwrap_or(&[0, 0]);
                base.entries.all().slice(ends[0] as usize..ends[1] as usize)
            }
        }
    }

    fn change(
        &self,
        base: &WholePage,
        changed: &ChangedPageLists,
        list: &ChangedList<'_>,
    ) -> Result<EntryBuffer, String> {
        let multigraph = self.state.manifest.created.options.multigraph;
        let mut new = EntryBuffer::default();
        apply(self.list(base, changed, list.local), list, multigraph, &mut new)?;
        Ok(new)
    }

    /// Checks that merged deltas equal the deltas that they stand for.
    fn check_merged_deltas(&self, page: usize) -> Result<()> {
        let chain = &self.state.manifest.chain;
        let (mut expected, mut found) = (PageChanges::default(), PageChanges::default());
        for run in &chain.merged_deltas {
            let delta = self.state.delta(run.delta);
            let mut parts = Vec::new();
            for delta in self.state.deltas_between(run.from, run.to) {
                let mut part = PageChanges::default();
                if delta.touches(self.direction, page) && delta.read_page(self.direction, page, &mut part)? {
                    parts.push(part);
                }
            }
            compose(&parts, &mut expected, &mut ComposeScratch::default());
            found.clear();
            if delta.touches(self.direction, page) {
                delta.read_page(self.direction, page, &mut found)?;
            }
            if expected != found {
                return Err(delta.corrupt(format!("page {page} is not what its deltas make of it")).into());
            }
        }
        Ok(())
    }
}
