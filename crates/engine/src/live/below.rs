//! What lies below the changes of a live graph, as the container asks for it.

use base::VertexId;
use graph::Graph;
use lama::{Finder, View};
use terrace::{Base, Search};

use super::delta::Bits;
use super::version::LiveVersion;

/// The snapshot that changes are laid over, and what is frozen between the two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Below<'a> {
    snapshot: &'a View,
    frozen: Option<&'a LiveVersion>,
}

/// Looks up edges in it.
#[derive(Debug)]
pub(crate) struct BelowSearch<'a> {
    finder: Finder<'a>,
    frozen: Option<&'a LiveVersion>,
    vertex_bound: usize,
}

impl<'a> Below<'a> {
    pub(crate) fn new(snapshot: &'a View, frozen: Option<&'a LiveVersion>) -> Self {
        Self { snapshot, frozen }
    }
}

impl<W: Bits> Base<W> for Below<'_> {
    type Search<'s>
        = BelowSearch<'s>
    where
        Self: 's;

    fn search(&self) -> BelowSearch<'_> {
        let (finder, vertex_bound) = (self.snapshot.finder(), self.snapshot.vertex_bound());
        BelowSearch { finder, frozen: self.frozen, vertex_bound }
    }

    fn is_empty(&self) -> bool {
        self.snapshot.num_arcs() == 0 && self.frozen.is_none()
    }
}

impl<W: Bits> Search<W> for BelowSearch<'_> {
    #[inline]
    fn find(&mut self, source: VertexId, target: VertexId) -> base::Result<Option<W>> {
        let in_snapshot = self.finder.weight(source, target)?;
        let below = match self.frozen {
            None => in_snapshot,
            Some(frozen) => frozen.weight_over(source, target, in_snapshot),
        };
        Ok(below.map(W::of))
    }

    #[inline]
    fn prefetch_list(&self, source: VertexId) {
        if (source as usize) < self.vertex_bound {
            self.finder.prefetch(source);
        }
    }

    #[inline]
    fn prefetch_edge(&self, source: VertexId, target: VertexId) {
        if (source as usize) < self.vertex_bound {
            self.finder.prefetch_arc(source, target);
        }
    }
}
