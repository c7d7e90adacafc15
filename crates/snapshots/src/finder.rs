//! Looks up arcs in out-lists without patching pages.
//!
//! An append looks up a few arcs of nearly every page. Patching those pages would cost more than the lookups, and no
//! reader might use them. So a finder searches the base's list, and then the changes of each delta in the list, without
//! composing the deltas. If readers have patched a page already, the finder searches the list that they read.

use std::ops::Range;

use anden_base::VertexId;
use anden_base::simd::prefetch;

use crate::adjacency::AdjacencyView;
use crate::base::LINE_ENTRIES;
use crate::changes::{ApplyDirection, ArcData, PageChanges};
use crate::delta::{StoredList, StoredPage, StoredPlace};
use crate::lists::lower_bound;
use crate::page::BasePage;
use crate::table::{page_of, place_in_page};

/// Looks up arcs of one vertex after the other, best in ascending order.
#[derive(Debug)]
pub struct Finder<'a> {
    lists: &'a AdjacencyView,
    vertex_bound: usize,
    page: Option<(usize, BasePage<'a>)>,
    /// The deltas that change the page, in the order of their application.
    parts: Vec<(StoredPage<'a>, ApplyDirection)>,
    /// For each part, the position of the last vertex's list.
    places: Vec<StoredPlace>,
    /// Memory for the first check of a part.
    scratch: PageChanges,
    /// The parts that change the current list, with the ranges of added and of removed arcs.
    changed: Vec<(usize, Range<usize>, Range<usize>)>,
    /// The last vertex of the page, to which `places` and `changed` belong.
    last_local: Option<usize>,
    /// The last neighbor that was looked up; earlier arcs were dropped from the ranges of `changed`.
    last_neighbor: VertexId,
    /// Rows and weights of the entries to one neighbor.
    data: Vec<ArcData>,
}

/// Lists at most this far apart are read from disk together.
const GAP_BYTES: usize = 16 << 10;

/// Longer lists are not read ahead, because a search reads a few pages of them.
const LONG_LIST_BYTES: usize = 64 << 10;

/// Most entries that are prefetched for one search.
const MAX_FETCHED: usize = 256;

impl<'a> Finder<'a> {
    /// Looks up arcs of out-lists without an overlay, for vertices below a bound.
    pub(crate) fn new(lists: &'a AdjacencyView, vertex_bound: usize) -> Self {
        Self {
            lists,
            vertex_bound,
            page: None,
            parts: Vec::new(),
            places: Vec::new(),
            scratch: PageChanges::default(),
            changed: Vec::new(),
            last_local: None,
            last_neighbor: 0,
            data: Vec::new(),
        }
    }
}

impl Finder<'_> {
    /// Requests the lists of these vertices, which ascend, from the disk.
    pub fn read_ahead(&self, vertices: impl Iterator<Item = VertexId>) {
        let Some(lists) = self.lists.base_lists() else { return };
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

    /// Prefetches the offsets of `vertex`.
    pub fn prefetch(&self, vertex: VertexId) {
        if vertex as usize >= self.vertex_bound {
            return;
        }
        // A ready page may be patched, and then its offsets are not those of the base.
        if self.lists.is_ready(page_of(vertex)) {
            self.lists.prefetch(vertex);
        } else if let Some(lists) = self.lists.base_lists() {
            lists.prefetch(vertex);
        }
    }

    /// Prefetches the entries that a search for an arc reads. Best called soon after [`prefetch`](Self::prefetch).
    pub fn prefetch_arc(&self, vertex: VertexId, neighbor: VertexId) {
        if vertex as usize >= self.vertex_bound {
            return;
        }
        let places = |len| {
            let near = guess(len, neighbor, self.vertex_bound);
            // Evenly spread neighbors are mostly within this distance of their expected position.
            let error = ((len as f32).sqrt() as usize / 2).min(MAX_FETCHED / 2);
            near.saturating_sub(error)..(near + error + 1).min(len)
        };
        if let Some(list) = self.lists.ready_list(vertex) {
            places(list.len()).step_by(LINE_ENTRIES).for_each(|place| prefetch(list, place));
        } else if let Some(lists) = self.lists.base_lists() {
            lists.prefetch_entries(vertex, places);
        }
    }

    /// Calls `found` for each entry of the out-list of `vertex` that leads to a wanted neighbor, with the neighbor's
    /// index, row and weight. Wanted neighbors ascend strictly.
    ///
    /// Cost: for each neighbor, a search in the base's list and in the list's changes, or in the patched list. The
    /// first vertex of a page also reads the page's changes.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn find(
        &mut self,
        vertex: VertexId,
        wanted: impl IntoIterator<Item = VertexId>,
        mut found: impl FnMut(usize, ArcData),
    ) -> anden_base::Result<()> {
        if vertex as usize >= self.vertex_bound {
            return Ok(());
        }
        self.enter(page_of(vertex))?;
        let local = place_in_page(vertex);
        let mut wanted = wanted.into_iter().enumerate().peekable();
        self.seek(local, wanted.peek().map_or(0, |&(_, neighbor)| neighbor));
        let Self { page: Some((_, base_page)), parts, changed, data, last_neighbor, .. } = self else { return Ok(()) };
        let list = base_page.list(local);
        let (mut next, end) = (list.start, list.end);
        for (index, neighbor) in wanted {
            *last_neighbor = neighbor;
            let near = list.start + guess(list.len(), neighbor, self.vertex_bound);
            next = lower_bound(&base_page.targets[..end], next, near, neighbor);
            let first = next;
            // Wanted neighbors ascend, so the next search starts behind these entries.
            next += base_page.targets[first..end].iter().take_while(|&&target| target == neighbor).count();
            data.clear();
            data.extend((first..next).map(|place| base_page.data(place)));
            for (part, added, removed) in &mut *changed {
                let (part, _) = &parts[*part];
                // Both ascend, so one pass removes all, even among many parallel edges.
                let mut gone = part.data_to(removed, neighbor).peekable();
                if gone.peek().is_some() {
                    data.sort_unstable();
                    data.retain(|data| {
                        while gone.next_if(|gone| gone < data).is_some() {}
                        gone.next_if_eq(data).is_none()
                    });
                }
                drop(gone);
                data.extend(part.data_to(added, neighbor));
            }
            data.iter().for_each(|&data| found(index, data));
        }
        Ok(())
    }

    /// Row and weight of the first entry of the out-list of `vertex` that leads to `neighbor`.
    ///
    /// # Errors
    /// The page is damaged.
    #[inline]
    pub fn first(&mut self, vertex: VertexId, neighbor: VertexId) -> anden_base::Result<Option<ArcData>> {
        let mut first = None;
        self.find(vertex, [neighbor], |_, data| first = first.or(Some(data)))?;
        Ok(first)
    }

    /// Checks the page of `vertex` as a search does; reads no list that is checked already.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn check_page(&mut self, vertex: VertexId) -> anden_base::Result<()> {
        if vertex as usize >= self.vertex_bound { Ok(()) } else { self.enter(page_of(vertex)) }
    }

    fn enter(&mut self, page: usize) -> anden_base::Result<()> {
        if self.page.as_ref().is_some_and(|(entered, _)| *entered == page) {
            return Ok(());
        }
        self.page = None;
        // In a multigraph, only base and deltas keep the order of parallel edges, so the patched page is not used.
        let base_page = match self.lists.ready_page(page)?.filter(|base_page| !base_page.options.multigraph) {
            Some(base_page) => {
                self.parts.clear();
                base_page
            }
            None => self.lists.base_page_with_parts(page, &mut self.parts, &mut self.scratch)?,
        };
        // Positions belong to the parts of one page.
        self.places.clear();
        self.places.resize(self.parts.len(), StoredPlace::default());
        self.last_local = None;
        self.page = Some((page, base_page));
        Ok(())
    }

    /// Finds the parts that change a list of the page, from the entries to a neighbor on.
    fn seek(&mut self, local: usize, neighbor: VertexId) {
        // Several neighbors of one list are looked up in turn, mostly ascending, so the ranges are kept.
        if self.last_local == Some(local) && self.last_neighbor <= neighbor {
            return;
        }
        self.last_neighbor = neighbor;
        // Positions only move forward, so a smaller vertex starts over.
        if self.last_local.is_some_and(|last| local < last) {
            self.places.fill(StoredPlace::default());
        }
        self.last_local = Some(local);
        self.changed.clear();
        for (index, ((part, sense), place)) in self.parts.iter().zip(&mut self.places).enumerate() {
            if let Some(StoredList { added, removed }) = part.list(local as u16, place) {
                self.changed.push(match sense {
                    ApplyDirection::Forward => (index, added, removed),
                    ApplyDirection::Backward => (index, removed, added),
                });
            }
        }
    }
}

/// Expected position of `neighbor` in a list of this length, if neighbors are spread evenly.
#[inline(always)]
fn guess(len: usize, neighbor: VertexId, vertex_bound: usize) -> usize {
    ((len as u64 * u64::from(neighbor)) / (vertex_bound as u64).max(1)) as usize
}
