//! The hook of the prefetcher.

use std::fmt::Debug;
use std::ops::Range;

use anden_base::VertexId;

use anden_graph::{Direction, Parts};

/// The prefetcher's hook: learns through the view that it is [attached](crate::SnapshotView::with_hook) to which
/// lists will be read next.
///
/// Readers call it on their own threads, so it must be fast and must not fail. All calls are hints.
pub trait Listener: Debug + Send + Sync {
    /// These lists will be read soon, in about this order.
    fn will_need(&self, direction: Direction, parts: Parts, vertices: &[VertexId]);

    /// The lists of these ranges of vertices will be read soon, in about this order, and none between them.
    fn will_need_runs(&self, direction: Direction, parts: Parts, runs: &[Range<VertexId>]);

    /// A walk over more than a page reads these lists now, and probably the ones behind them.
    fn will_walk(&self, direction: Direction, parts: Parts, vertices: Range<VertexId>);

    /// A walk has passed these lists.
    fn has_walked(&self, direction: Direction, parts: Parts, vertices: Range<VertexId>);

    /// Announced lists are no longer wanted.
    fn forget(&self);
}
