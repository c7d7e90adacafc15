//! An algorithm of one's own: what can be reached by edges that bear certain labels.
//!
//! The labels of an edge are the bits of its weight, a `u32`: kinds of road, of dependency, of friendship.
//! `edge_map` visits the edges that leave the vertices reached last, in parallel, by push or pull as pays
//! best; what happens at an edge is all that there is to write. It runs on a snapshot as on a window, for
//! both are views.

use std::sync::atomic::{AtomicBool, Ordering};

use anden::kernels::{EdgeFunctor, EdgeMapOptions, VertexSubset, weighted_edge_map};
use anden::{Graph, Key, Result, VertexId, View};

/// What happens at an edge.
struct Reach<'a> {
    reached: &'a [AtomicBool],
    labels: u32,
}

impl EdgeFunctor<u32> for Reach<'_> {
    fn update_atomic(&self, _source: VertexId, target: VertexId, labels: u32) -> bool {
        // Of all that come to a target at once, one is the first, and only it says yes.
        labels & self.labels != 0 && !self.reached[target as usize].swap(true, Ordering::Relaxed)
    }

    fn condition(&self, target: VertexId) -> bool {
        !self.reached[target as usize].load(Ordering::Relaxed)
    }
}

/// Whether each vertex can be reached from `source` by edges that bear one of `labels`, by vertex id.
///
/// # Errors
/// There is no such vertex, the weights are no `u32`, the graph is damaged, or the work was cancelled.
pub fn labelled_reach(view: &View, source: impl Into<Key>, labels: u32) -> Result<Vec<bool>> {
    let source = view.vertex(source)?;
    let reached: Vec<AtomicBool> = (0..view.vertex_bound()).map(|_| AtomicBool::new(false)).collect();
    reached[source as usize].store(true, Ordering::Relaxed);
    let reach = Reach { reached: &reached, labels };
    let mut frontier = VertexSubset::single(view.vertex_bound(), source);
    while !frontier.is_empty() {
        let mut options = EdgeMapOptions::default();
        frontier = weighted_edge_map(&view.context(), view.graph(), &mut frontier, &reach, &mut options)?;
    }
    view.graph().check()?;
    Ok(reached.into_iter().map(AtomicBool::into_inner).collect())
}
