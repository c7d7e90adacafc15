//! Walks over the lists of consecutive vertices, with announcements to the prefetcher of the graph.

use std::convert::Infallible;
use std::ops::Range;

use anden_base::VertexId;

use crate::{Direction, Graph, Parts};

/// The approximate bytes of lists that one step of a walk announces.
pub const HEARD_BYTES: u64 = 512 << 10;

/// The number of lists that take about `num_bytes`, at least one.
pub fn lists_of(graph: &impl Graph, num_bytes: u64) -> usize {
    let list_bytes = graph.num_arcs() * size_of::<VertexId>() as u64 / graph.vertex_bound().max(1) as u64;
    // In a sparse graph, the average rounds down to zero bytes.
    ((num_bytes / list_bytes.max(1)) as usize).max(1)
}

/// Calls `body` with each vertex in order; `body` reads these parts of its list.
///
/// The prefetcher reads ahead of the walk, and releases the lists behind it.
pub fn walk(
    graph: &impl Graph,
    direction: Direction,
    parts: Parts,
    vertices: Range<VertexId>,
    mut body: impl FnMut(VertexId),
) {
    let each = |vertex| {
        body(vertex);
        Ok::<(), Infallible>(())
    };
    let Ok(()) = try_walk(graph, direction, parts, vertices, each);
}

/// As [`walk`], but stops at the first error of `body`.
///
/// # Errors
/// The first error of `body`.
pub fn try_walk<E>(
    graph: &impl Graph,
    direction: Direction,
    parts: Parts,
    mut vertices: Range<VertexId>,
    mut body: impl FnMut(VertexId) -> Result<(), E>,
) -> Result<(), E> {
    // Without a prefetcher, one plain loop is fastest.
    if !graph.is_listening() {
        return vertices.try_for_each(body);
    }
    let num_lists = lists_of(graph, HEARD_BYTES);
    for start in vertices.clone().step_by(num_lists) {
        let step = start..vertices.end.min(start.saturating_add(num_lists as VertexId));
        graph.will_walk(direction, parts, step.clone());
        // After an error, the step stays announced, because the caller gives the graph up.
        step.clone().try_for_each(&mut body)?;
        graph.has_walked(direction, parts, step);
    }
    Ok(())
}
