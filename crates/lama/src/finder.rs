//! Looks up arcs in out-lists without patching pages.
//!
//! Who asks for a few arcs of nearly every page, as an append does, would pay for pages that nobody reads
//! afterwards. A finder searches the base run's list and then what each level changes in it: adding the levels up
//! first would cost more than the few arcs of a page that are asked for. Where readers have paid for a page, it
//! searches the list that they read.

use std::ops::Range;

use base::VertexId;
use base::simd::prefetch;

use crate::base_run::LINE_ENTRIES;
use crate::changes::{ArcData, PageChanges};
use crate::level::{StoredList, StoredPage, StoredPlace};
use crate::patched::Ground;
use crate::side::{Sense, Side};
use crate::table::{page_of, place_in_page};
use crate::view::View;

/// Looks up arcs of one vertex after the other, best in ascending order.
#[derive(Debug)]
pub struct Finder<'a> {
    side: &'a Side,
    vertex_bound: usize,
    page: Option<(usize, Ground<'a>)>,
    /// What is applied to the page, one after the other.
    parts: Vec<(StoredPage<'a>, Sense)>,
    /// Of each part, where the list of the vertex that was looked at last is, or would be.
    places: Vec<StoredPlace>,
    /// Memory for parts that are read for the first time.
    scratch: PageChanges,
    /// The parts that change the list that is looked at, and where: what is added, then what is removed.
    changed: Vec<(usize, Range<usize>, Range<usize>)>,
    /// The vertex of the page that was looked at last, to which `places` and `changed` belong.
    last_local: Option<usize>,
    /// The last neighbour that was looked for there: what comes before it was taken off the ranges of `changed`.
    last_neighbour: VertexId,
    /// What stands beside the entries to one neighbour.
    data: Vec<ArcData>,
}

/// Lists that lie this close together are read from a disk as one piece.
const GAP_BYTES: usize = 16 << 10;

/// A longer list is not read ahead: a search reads a few pages of it.
const LONG_LIST_BYTES: usize = 64 << 10;

/// Entries that are fetched for one search at most.
const MAX_FETCHED: usize = 256;

impl View {
    /// For looking up arcs of a version; not for windows. Cost: nothing yet.
    pub fn finder(&self) -> Finder<'_> {
        Finder::new(self.out_side(), graph::Graph::vertex_bound(self))
    }
}

impl<'a> Finder<'a> {
    /// Looks up arcs of out-lists that have nothing laid over them, of vertices below a bound.
    pub(crate) fn new(side: &'a Side, vertex_bound: usize) -> Self {
        Self {
            side,
            vertex_bound,
            page: None,
            parts: Vec::new(),
            places: Vec::new(),
            scratch: PageChanges::default(),
            changed: Vec::new(),
            last_local: None,
            last_neighbour: 0,
            data: Vec::new(),
        }
    }
}

impl Finder<'_> {
    /// Has the system read the lists of these vertices, which ascend, from the file.
    pub fn read_ahead(&self, vertices: impl Iterator<Item = VertexId>) {
        let Some(lists) = self.side.base_lists() else { return };
        let targets = lists.targets().bytes();
        let mut piece = 0..0;
        for vertex in vertices.filter(|&vertex| (vertex as usize) < self.vertex_bound) {
            let list = lists.list_bytes(vertex..vertex + 1);
            if list.is_empty() || list.len() > LONG_LIST_BYTES || list.start < piece.start {
                continue;
            }
            if list.start > piece.end.saturating_add(GAP_BYTES) {
                targets.read_ahead(std::mem::replace(&mut piece, list));
            } else {
                piece.end = piece.end.max(list.end);
            }
        }
        targets.read_ahead(piece);
    }

    /// Fetches the place of the list of `vertex` to the cache.
    pub fn prefetch(&self, vertex: VertexId) {
        if vertex as usize >= self.vertex_bound {
            return;
        }
        if self.side.is_ready(page_of(vertex)) {
            self.side.prefetch(vertex);
        } else if let Some(lists) = self.side.base_lists() {
            lists.prefetch(vertex);
        }
    }

    /// Fetches what a search for an arc reads to the cache; best soon after the place of the list was fetched.
    pub fn prefetch_arc(&self, vertex: VertexId, neighbour: VertexId) {
        if vertex as usize >= self.vertex_bound {
            return;
        }
        let places = |len| {
            let near = guess(len, neighbour, self.vertex_bound);
            // Where neighbours are spread evenly, most are no farther from where they are expected.
            let error = ((len as f32).sqrt() as usize / 2).min(MAX_FETCHED / 2);
            near.saturating_sub(error)..(near + error + 1).min(len)
        };
        if let Some(list) = self.side.ready_list(vertex) {
            places(list.len()).step_by(LINE_ENTRIES).for_each(|place| prefetch(list, place));
        } else if let Some(lists) = self.side.base_lists() {
            lists.prefetch_entries(vertex, places);
        }
    }

    /// Calls `found` with the index of a wanted neighbour and what stands beside it for each entry of the out-list of
    /// `vertex` that leads to one. The wanted ascend, each stands once.
    ///
    /// Cost: a search in the base run's list and in the changes of the list for each neighbour, or in the list that
    /// readers know; for the first vertex of a page, reading its changes.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn find(
        &mut self,
        vertex: VertexId,
        wanted: impl IntoIterator<Item = VertexId>,
        mut found: impl FnMut(usize, ArcData),
    ) -> base::Result<()> {
        if vertex as usize >= self.vertex_bound {
            return Ok(());
        }
        self.enter(page_of(vertex))?;
        let local = place_in_page(vertex);
        let mut wanted = wanted.into_iter().enumerate().peekable();
        self.seek(local, wanted.peek().map_or(0, |&(_, neighbour)| neighbour));
        let Self { page: Some((_, ground)), parts, changed, data, last_neighbour, .. } = self else { return Ok(()) };
        let list = ground.list(local);
        let (mut next, end) = (list.start, list.end);
        for (index, neighbour) in wanted {
            *last_neighbour = neighbour;
            let near = list.start + guess(list.len(), neighbour, self.vertex_bound);
            next = lower_bound(&ground.targets[..end], next, near, neighbour);
            let first = next;
            next += ground.targets[first..end].iter().take_while(|&&target| target == neighbour).count();
            data.clear();
            data.extend((first..next).map(|place| ground.data(place)));
            for (part, added, removed) in &mut *changed {
                let (part, _) = &parts[*part];
                // Both ascend, so that one pass does, however many are parallel.
                let mut gone = part.data_to(removed, neighbour).peekable();
                if gone.peek().is_some() {
                    data.sort_unstable();
                    data.retain(|data| {
                        while gone.next_if(|gone| gone < data).is_some() {}
                        gone.next_if_eq(data).is_none()
                    });
                }
                drop(gone);
                data.extend(part.data_to(added, neighbour));
            }
            data.iter().for_each(|&data| found(index, data));
        }
        Ok(())
    }

    /// What stands beside the first entry of the out-list of `vertex` that leads to `neighbour`.
    ///
    /// # Errors
    /// The page is damaged.
    #[inline]
    pub fn first(&mut self, vertex: VertexId, neighbour: VertexId) -> base::Result<Option<ArcData>> {
        let mut first = None;
        self.find(vertex, [neighbour], |_, data| first = first.or(Some(data)))?;
        Ok(first)
    }

    /// Checks the page of `vertex` as a search does, and reads no list that is checked already.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn check_page(&mut self, vertex: VertexId) -> base::Result<()> {
        if vertex as usize >= self.vertex_bound { Ok(()) } else { self.enter(page_of(vertex)) }
    }

    fn enter(&mut self, page: usize) -> base::Result<()> {
        if self.page.as_ref().is_some_and(|(entered, _)| *entered == page) {
            return Ok(());
        }
        self.page = None;
        // Of parallel edges, the levels tell which came first.
        let ground = match self.side.ready_page(page)?.filter(|ground| !ground.options.multigraph) {
            Some(ground) => {
                self.parts.clear();
                ground
            }
            None => self.side.ground_with_parts(page, &mut self.parts, &mut self.scratch)?,
        };
        self.places.clear();
        self.places.resize(self.parts.len(), StoredPlace::default());
        self.last_local = None;
        self.page = Some((page, ground));
        Ok(())
    }

    /// Finds the parts that change a list of the page, from the entries to a neighbour on.
    fn seek(&mut self, local: usize, neighbour: VertexId) {
        // Several neighbours of one list are looked up one after the other, most of them ascending.
        if self.last_local == Some(local) && self.last_neighbour <= neighbour {
            return;
        }
        self.last_neighbour = neighbour;
        if self.last_local.is_some_and(|last| local < last) {
            self.places.fill(StoredPlace::default());
        }
        self.last_local = Some(local);
        self.changed.clear();
        for (index, ((part, sense), place)) in self.parts.iter().zip(&mut self.places).enumerate() {
            if let Some(StoredList { added, removed }) = part.list(local as u16, place) {
                self.changed.push(match sense {
                    Sense::Forward => (index, added, removed),
                    Sense::Backward => (index, removed, added),
                });
            }
        }
    }
}

/// About where `neighbour` is in a list of this length, if neighbours are spread evenly.
#[inline(always)]
fn guess(len: usize, neighbour: VertexId, vertex_bound: usize) -> usize {
    ((len as u64 * u64::from(neighbour)) / (vertex_bound as u64).max(1)) as usize
}

/// The first position from `start` on with at least `target`: steps away from `near` double until it is passed.
pub(crate) fn lower_bound(targets: &[VertexId], start: usize, near: usize, target: VertexId) -> usize {
    let near = near.max(start).min(targets.len());
    let (mut low, mut high, mut step) = (start, targets.len(), 1);
    if targets.get(near).is_some_and(|&found| found < target) {
        low = near + 1;
        while low + step <= high && targets[low + step - 1] < target {
            low += step;
            step *= 2;
        }
        high = high.min(low + step);
    } else {
        high = near;
        while low + step <= high && targets[high - step] >= target {
            high -= step;
            step *= 2;
        }
        low = low.max(high.saturating_sub(step));
    }
    low + targets[low..high].partition_point(|&found| found < target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_bound_is_the_first_place() {
        let targets = [1, 3, 3, 3, 8, 9, 20, 21, 22, 30];
        for start in 0..=targets.len() {
            for target in 0..35 {
                let expected = start + targets[start..].iter().take_while(|&&found| found < target).count();
                for near in 0..targets.len() + 3 {
                    let found = lower_bound(&targets, start, near, target);
                    assert_eq!(found, expected, "{target} from {start} near {near}");
                }
            }
        }
    }
}
