//! Who is told what will be read next.

use std::fmt::Debug;
use std::ops::Range;

use base::VertexId;

use graph::{Parts, Side};

/// Hears, through the view that it is [attached](crate::View::with_listener) to, which lists will be read next.
///
/// It is called by those who read, on their way: it must not take long, and must not fail. What it hears is a hint.
pub trait Listener: Debug + Send + Sync {
    /// These parts of these lists will be read soon, in about this order.
    fn will_need(&self, side: Side, parts: Parts, vertices: &[VertexId]);

    /// These parts of the lists of these runs of vertices will be read soon, in about this order, and none between them.
    fn will_need_runs(&self, side: Side, parts: Parts, runs: &[Range<VertexId>]);

    /// These parts of the lists of these vertices are read now, as a part of a walk over more than a page, and probably
    /// those behind them.
    fn will_walk(&self, side: Side, parts: Parts, vertices: Range<VertexId>);

    /// Such a walk has passed the lists of these vertices.
    fn has_walked(&self, side: Side, parts: Parts, vertices: Range<VertexId>);

    /// What was announced so far is not wanted any more.
    fn forget(&self);
}
