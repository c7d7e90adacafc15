//! What lies below the changes of a live graph, as the container asks for it.

use base::VertexId;
use graph::Graph;
use lama::{Finder, Underlay, View};
use terrace::{Base, Plane, Search};

use super::delta::Bits;
use super::version::LiveVersion;

/// Up to this many entries are looked up without asking the system how much memory is free.
const FEW_ENTRIES: usize = 1 << 14;

/// The snapshot that changes are laid over, and what is frozen between the two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Below<'a> {
    snapshot: &'a View,
    /// Where the lists that change are noted; `None` where no version will lie over the snapshot.
    underlay: Option<&'a Underlay>,
    /// What takes its place soon.
    next_underlay: Option<&'a Underlay>,
    frozen: Option<&'a LiveVersion>,
    /// Whether the lists of the snapshot are larger than memory.
    reads_disk: bool,
}

/// Looks up edges in it.
#[derive(Debug)]
pub(crate) struct BelowSearch<'a> {
    finder: Finder<'a>,
    frozen: Option<&'a LiveVersion>,
    reads_disk: bool,
}

impl<'a> Below<'a> {
    /// Those whose lists change are noted in `underlay`, and in what takes its place.
    pub(crate) fn new(
        underlay: &'a Underlay,
        next_underlay: Option<&'a Underlay>,
        frozen: Option<&'a LiveVersion>,
    ) -> Self {
        Self { underlay: Some(underlay), next_underlay, frozen, ..Self::snapshot(underlay.view(), usize::MAX) }
    }

    /// A snapshot alone, in which this many entries are looked up.
    pub(crate) fn snapshot(snapshot: &'a View, num_entries: usize) -> Self {
        // To ask the system takes longer than to look a few entries up.
        let is_worth_asking = num_entries > FEW_ENTRIES;
        let reads_disk = is_worth_asking && !crate::prefetch::fits_in_memory(snapshot, base::memory::available);
        if reads_disk {
            // Lists are looked up all over the file: what the system reads around each is of no use.
            snapshot.read_exactly(true);
            snapshot.read_weights_exactly();
        }
        Self { snapshot, underlay: None, next_underlay: None, frozen: None, reads_disk }
    }
}

impl<W: Bits> Base<W> for Below<'_> {
    type Search<'s>
        = BelowSearch<'s>
    where
        Self: 's;

    fn search(&self) -> BelowSearch<'_> {
        let finder = self.underlay.map_or_else(|| self.snapshot.finder(), Underlay::finder);
        BelowSearch { finder, frozen: self.frozen, reads_disk: self.reads_disk }
    }

    fn is_empty(&self) -> bool {
        self.snapshot.num_arcs() == 0 && self.frozen.is_none()
    }

    #[inline]
    fn touch(&self, plane: Plane, list: VertexId, first: VertexId) {
        let (side, is_cut) = match plane {
            Plane::Out => (lama::Side::Out, false),
            Plane::OutRemoved => (lama::Side::Out, true),
            Plane::In => (lama::Side::In, false),
            Plane::InRemoved => (lama::Side::In, true),
        };
        for underlay in self.underlay.into_iter().chain(self.next_underlay) {
            if is_cut { underlay.cut(side, list, first) } else { underlay.touch(side, list) }
        }
    }
}

impl<W: Bits> Search<W> for BelowSearch<'_> {
    #[inline]
    fn find(&mut self, source: VertexId, target: VertexId) -> base::Result<Option<W>> {
        let in_snapshot = self.finder.first(source, target)?;
        let below = match self.frozen {
            None => in_snapshot,
            Some(frozen) => frozen.data_over(source, target, in_snapshot),
        };
        Ok(below.map(W::of))
    }

    fn find_all(&mut self, source: VertexId, target: VertexId, found: &mut dyn FnMut(W)) -> base::Result<()> {
        let mut edges = Vec::new();
        self.finder.find(source, [target], |_, data| edges.push(data))?;
        if let Some(frozen) = self.frozen {
            frozen.lay_edges_over(source, target, &mut edges);
        }
        edges.into_iter().for_each(|data| found(W::of(data)));
        Ok(())
    }

    fn read_ahead(&self, sources: impl Iterator<Item = VertexId>) {
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
