//! The versions below the memtable, as the container looks edges up in them.

use anden_base::VertexId;
use anden_graph::{Direction, Graph};
use anden_memtable::{AdjacencyTable, Base, Search};
use anden_snapshots::{Finder, OverlayBase, SnapshotView};

use super::delta::Bits;
use super::version::LiveVersion;

/// Up to this many lookups, the free memory is not asked for.
const FEW_ENTRIES: usize = 1 << 14;

/// The snapshot below the memtable, and the immutable memtable between the two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Below<'a> {
    snapshot: &'a SnapshotView,
    /// Where lists that change are marked dirty; `None` if no version will lie over the snapshot.
    overlay_base: Option<&'a OverlayBase>,
    /// The overlay base that replaces `overlay_base` soon.
    next_overlay_base: Option<&'a OverlayBase>,
    immutable: Option<&'a LiveVersion>,
    /// Whether the lists of the snapshot are larger than memory.
    reads_disk: bool,
}

/// A lookup of edges below the memtable.
#[derive(Debug)]
pub(crate) struct BelowSearch<'a> {
    finder: Finder<'a>,
    immutable: Option<&'a LiveVersion>,
    reads_disk: bool,
}

impl<'a> Below<'a> {
    /// Lists that change are marked dirty in `overlay_base`, and in `next_overlay_base`.
    pub(crate) fn new(
        overlay_base: &'a OverlayBase,
        next_overlay_base: Option<&'a OverlayBase>,
        immutable: Option<&'a LiveVersion>,
    ) -> Self {
        Self {
            overlay_base: Some(overlay_base),
            next_overlay_base,
            immutable,
            ..Self::snapshot(overlay_base.view(), usize::MAX)
        }
    }

    /// The snapshot alone, for lookups of this many edges.
    pub(crate) fn snapshot(snapshot: &'a SnapshotView, num_entries: usize) -> Self {
        // Asking the system takes longer than a few lookups.
        let is_worth_asking = num_entries > FEW_ENTRIES;
        let reads_disk = is_worth_asking && !crate::prefetch::fits_in_memory(snapshot, anden_base::memory::available);
        if reads_disk {
            // Lookups are all over the file: kernel read-ahead around each would be useless.
            snapshot.read_exactly(true);
            snapshot.read_weights_exactly();
        }
        Self { snapshot, overlay_base: None, next_overlay_base: None, immutable: None, reads_disk }
    }
}

impl<W: Bits> Base<W> for Below<'_> {
    type Search<'s>
        = BelowSearch<'s>
    where
        Self: 's;

    fn search(&self) -> BelowSearch<'_> {
        let finder = self.overlay_base.map_or_else(|| self.snapshot.finder(), OverlayBase::finder);
        BelowSearch { finder, immutable: self.immutable, reads_disk: self.reads_disk }
    }

    fn is_empty(&self) -> bool {
        // The container then skips all lookups.
        self.snapshot.num_arcs() == 0 && self.immutable.is_none()
    }

    #[inline]
    fn mark_changed(&self, adjacency_table: AdjacencyTable, list: VertexId, first: VertexId) {
        let (direction, has_tombstones) = match adjacency_table {
            AdjacencyTable::Out => (Direction::Out, false),
            AdjacencyTable::OutRemoved => (Direction::Out, true),
            AdjacencyTable::In => (Direction::In, false),
            AdjacencyTable::InRemoved => (Direction::In, true),
        };
        // Both, because either may be the base of the next version.
        for overlay_base in self.overlay_base.into_iter().chain(self.next_overlay_base) {
            if has_tombstones {
                overlay_base.mark_tombstoned(direction, list, first)
            } else {
                overlay_base.mark_dirty(direction, list)
            }
        }
    }
}

impl<W: Bits> Search<W> for BelowSearch<'_> {
    #[inline]
    fn find(&mut self, source: VertexId, target: VertexId) -> anden_base::Result<Option<W>> {
        let in_snapshot = self.finder.first(source, target)?;
        let below = match self.immutable {
            None => in_snapshot,
            Some(immutable) => immutable.data_over(source, target, in_snapshot),
        };
        Ok(below.map(W::of))
    }

    fn find_all(&mut self, source: VertexId, target: VertexId, found: &mut dyn FnMut(W)) -> anden_base::Result<()> {
        let mut edges = Vec::new();
        self.finder.find(source, [target], |_, data| edges.push(data))?;
        if let Some(immutable) = self.immutable {
            immutable.lay_edges_over(source, target, &mut edges);
        }
        edges.into_iter().for_each(|data| found(W::of(data)));
        Ok(())
    }

    fn read_ahead(&self, sources: impl Iterator<Item = VertexId>) {
        // In memory, there is nothing to read ahead.
        if self.reads_disk {
            self.finder.read_ahead(sources);
        }
    }

    #[inline]
    fn prefetch_list(&self, source: VertexId) {
        self.finder.prefetch(source);
    }

    #[inline]
    fn prefetch_edge(&self, source: VertexId, target: VertexId) {
        self.finder.prefetch_arc(source, target);
    }
}
