//! A custom algorithm: reachability by edges that have certain labels.
//!
//! The labels of an edge are the bits of its weight, a `u32`: kinds of road, of dependency, of friendship. `edge_map`
//! visits the edges that leave the frontier in parallel, by push or pull, whichever is faster. The example writes only
//! the function for an edge. It runs on snapshots and on windows, because both are views.

use std::sync::atomic::{AtomicBool, Ordering};

use anden::graph::Graph;
use anden::kernel::{EdgeFunctor, EdgeMapOptions, VertexSubset, weighted_edge_map};
use anden::{Key, Result, VertexId, View};

/// The function for an edge.
struct Reach<'a> {
    reached: &'a [AtomicBool],
    labels: u32,
}

impl EdgeFunctor<u32> for Reach<'_> {
    fn update_atomic(&self, _source: VertexId, target: VertexId, labels: u32) -> bool {
        // If several threads reach a target concurrently, `swap` returns false to one of them only.
        labels & self.labels != 0 && !self.reached[target as usize].swap(true, Ordering::Relaxed)
    }

    fn condition(&self, target: VertexId) -> bool {
        !self.reached[target as usize].load(Ordering::Relaxed)
    }
}

/// Whether each vertex is reachable from `source` by edges with one of `labels`, indexed by vertex id.
///
/// # Errors
/// The source does not exist, the weights are not `u32`, the graph is damaged, or the work was cancelled.
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
