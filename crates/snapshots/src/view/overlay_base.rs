//! A snapshot below changes in memory, for one version of them after another.
//!
//! An [`OverlayBase`] knows the vertices that any version touched (dirty vertices), so that all other lists are read
//! from the snapshot alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, ones};
use anden_graph::{Direction, GraphKind};

use super::SnapshotView;
use crate::adjacency::{AdjacencyOverlay, AdjacencyView};
use crate::finder::Finder;
use crate::overlay::{Overlay, SmallestTombstones};
use crate::table::PAGE_SHIFT;

/// A snapshot, prepared for changes over it.
#[derive(Clone, Debug)]
pub struct OverlayBase {
    view: Arc<SnapshotView>,
    out: DirtyLists,
    /// `None` for an undirected graph.
    r#in: Option<DirtyLists>,
    capacity: usize,
}

/// The lists of one direction, and their dirty vertices.
#[derive(Clone, Debug)]
struct DirtyLists {
    lists: AdjacencyView,
    dirty: Arc<AtomicBitmap>,
    /// Dirty vertices whose lists may have tombstones.
    tombstoned: Arc<AtomicBitmap>,
    /// Smallest tombstone of each such list.
    smallest_tombstones: Arc<SmallestTombstones>,
}

impl OverlayBase {
    /// Prepares `view` for changes of vertices below `capacity`, or below the view's bound if that is larger.
    ///
    /// Cost: 8 bytes for each 1,024 vertices, and ten bits a vertex and direction.
    pub fn new(view: &SnapshotView, capacity: usize) -> Self {
        Self::with_lifetime(view, capacity, false)
    }

    /// As [`new`](Self::new), for an overlay base that is replaced within seconds: cheaper to make, and slightly slower
    /// to read.
    pub fn short_lived(view: &SnapshotView, capacity: usize) -> Self {
        Self::with_lifetime(view, capacity, true)
    }

    fn with_lifetime(view: &SnapshotView, capacity: usize, is_short_lived: bool) -> Self {
        // Whole pages, so that every vertex of the view's pages can be marked.
        let capacity = capacity.max(view.out_adjacency().num_pages() << PAGE_SHIFT);
        let bits = || Arc::new(AtomicBitmap::new(capacity));
        let dirty_lists = |lists: &AdjacencyView| DirtyLists {
            lists: lists.overlay_base(capacity, is_short_lived),
            dirty: bits(),
            tombstoned: bits(),
            smallest_tombstones: Arc::new(SmallestTombstones::new(capacity)),
        };
        let r#in = match view.options().graph_kind {
            GraphKind::Directed => view.adjacency(Direction::In).map(dirty_lists),
            GraphKind::Undirected => None,
        };
        Self { out: dirty_lists(view.out_adjacency()), r#in, capacity, view: Arc::new(view.clone()) }
    }

    /// The snapshot.
    pub fn view(&self) -> &SnapshotView {
        &self.view
    }

    /// Looks up arcs of the snapshot, in the lists that readers with changes over it use.
    pub fn finder(&self) -> Finder<'_> {
        Finder::new(&self.out.lists, anden_graph::Graph::vertex_bound(&*self.view))
    }

    /// Vertices below this can be dirty.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The list of `vertex` may have tombstones from now on, none smaller than `first`. Versions that have readers
    /// already do not change.
    ///
    /// # Panics
    /// If `vertex` is not below the capacity.
    #[inline]
    pub fn mark_tombstoned(&self, direction: Direction, vertex: VertexId, first: VertexId) {
        let dirty_lists = self.dirty_lists(direction);
        // Before the bit: a reader that sees the bit then sees this bound, too.
        dirty_lists.smallest_tombstones.lower(vertex, first);
        dirty_lists.tombstoned.set(vertex as usize);
        self.mark_dirty(direction, vertex);
    }

    /// The list of `vertex` may have additions from now on. Versions that have readers already do not change.
    ///
    /// # Panics
    /// If `vertex` is not below the capacity.
    #[inline]
    pub fn mark_dirty(&self, direction: Direction, vertex: VertexId) {
        let dirty_lists = self.dirty_lists(direction);
        // The page is marked once for each vertex, not at each commit.
        if dirty_lists.dirty.set(vertex as usize) {
            dirty_lists.lists.mark_dirty(vertex);
        }
    }

    /// Marks the dirty vertices of `other`, which has a smaller capacity, as dirty here.
    pub fn learn(&self, direction: Direction, other: &Self) {
        for vertex in other.dirty(direction) {
            match other.has_tombstones(direction, vertex) {
                true => self.mark_tombstoned(
                    direction,
                    vertex,
                    other.dirty_lists(direction).smallest_tombstones.first(vertex),
                ),
                false => self.mark_dirty(direction, vertex),
            }
        }
    }

    /// The dirty vertices of one direction, ascending.
    pub fn dirty(&self, direction: Direction) -> impl Iterator<Item = VertexId> + '_ {
        let words = self.dirty_lists(direction).dirty.words().iter().enumerate();
        words.flat_map(|(i, word)| ones(word.load(Ordering::Relaxed)).map(move |bit| (i * 64 + bit) as VertexId))
    }

    /// Whether the list of a vertex may have tombstones.
    #[inline]
    pub fn has_tombstones(&self, direction: Direction, vertex: VertexId) -> bool {
        self.dirty_lists(direction).tombstoned.get(vertex as usize)
    }

    fn dirty_lists(&self, direction: Direction) -> &DirtyLists {
        match (direction, &self.r#in) {
            (Direction::In, Some(r#in)) => r#in,
            _ => &self.out,
        }
    }

    /// The snapshot under a version of the changes, whose vertices were all marked before.
    pub fn overlaid(&self, overlay: Arc<dyn Overlay>) -> SnapshotView {
        debug_assert!(overlay.vertex_bound() <= self.capacity);
        let laid = |dirty_lists: &DirtyLists, direction| {
            let (dirty, tombstoned) = (Arc::clone(&dirty_lists.dirty), Arc::clone(&dirty_lists.tombstoned));
            let (smallest_tombstones, overlay) = (Arc::clone(&dirty_lists.smallest_tombstones), Arc::clone(&overlay));
            dirty_lists.lists.overlaid(AdjacencyOverlay { direction, dirty, tombstoned, smallest_tombstones, overlay })
        };
        let out_adjacency = laid(&self.out, Direction::Out);
        let in_adjacency = match self.view.options().graph_kind {
            // An undirected graph has one list for both directions.
            GraphKind::Undirected => Some(out_adjacency.clone()),
            GraphKind::Directed => self.r#in.as_ref().map(|direction| laid(direction, Direction::In)),
        };
        self.view.with_overlay(out_adjacency, in_adjacency, overlay)
    }
}
