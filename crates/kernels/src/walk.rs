//! Walks over the lists of many vertices, and their announcement to the prefetcher.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

use anden_base::VertexId;
use anden_base::bitmap::AtomicBitmap;
use anden_graph::{Direction, Graph, GraphKind, Page, Parts, vertices_of};

pub(crate) use anden_graph::walk::{HEARD_BYTES, lists_of, walk};

use crate::vertex_subset::CHUNK;
use crate::{Context, Result};

/// The smallest read from a disk, in bytes.
pub(crate) const READ_BYTES: u64 = 4096;

/// If one in this many lists is wanted, all are read: skipping the lists between saves no time.
const DENSE: usize = 8;

/// `count` vertices spread evenly over the ids below `bound`, or all if these are fewer; equal in every run.
pub(crate) fn sample(bound: usize, count: usize) -> impl Iterator<Item = VertexId> {
    // Steps of the golden ratio follow no period of the ids, such as the rows of a grid.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let is_whole = bound <= count;
    (0..count.min(bound) as u64).map(move |index| match is_whole {
        true => index as VertexId,
        false => ((u128::from(index.wrapping_mul(STEP)) * bound as u128) >> 64) as VertexId,
    })
}

/// Calls `body(worker, vertices)` with chunks of all vertices, from all workers. `body` reads their lists in order, or
/// only those of the `wanted` vertices.
///
/// A chunk has `grain` vertices, a multiple of 64. With a prefetcher, chunks are larger multiples of `grain`, and each
/// is announced.
pub(crate) fn for_each_walked_chunk<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    grain: usize,
    wanted: Option<&AtomicBitmap>,
    body: impl Fn(usize, Range<usize>) + Sync,
) {
    let bound = graph.vertex_bound();
    if !graph.is_listening() {
        return ctx.pool.for_each_chunk(0..bound, grain, body);
    }
    let grain = lists_of(graph, HEARD_BYTES).next_multiple_of(grain);
    ctx.pool.for_each_chunk(0..bound, grain, |worker, chunk| {
        let directions: &[Direction] = match graph.graph_kind() {
            GraphKind::Directed => &[Direction::Out, Direction::In],
            GraphKind::Undirected => &[Direction::Out],
        };
        match wanted.and_then(|wanted| sparse_members(wanted, &chunk)) {
            None => {
                let vertices = chunk.start as VertexId..chunk.end as VertexId;
                directions.iter().for_each(|&direction| graph.will_walk(direction, Parts::Targets, vertices.clone()));
                body(worker, chunk);
                directions.iter().for_each(|&direction| graph.has_walked(direction, Parts::Targets, vertices.clone()));
            }
            Some(wanted) => {
                directions.iter().for_each(|&direction| graph.will_need(direction, Parts::Targets, &wanted));
                body(worker, chunk);
            }
        }
    });
}

/// Calls `body` with each vertex and its out-list, or with the fragments of the list in order.
#[inline]
pub(crate) fn for_each_out_list(
    graph: &impl Graph,
    vertices: Range<VertexId>,
    mut body: impl FnMut(VertexId, &[VertexId]),
) {
    let _ = graph.for_each_page(Direction::Out, vertices, |page| {
        match page {
            Page::Dense(page) => page.lists().for_each(|(vertex, list)| body(vertex, list)),
            Page::Patched(vertices) => {
                for vertex in vertices {
                    let _ = graph.for_each_fragment(Direction::Out, vertex, |fragment| {
                        body(vertex, fragment);
                        ControlFlow::Continue(())
                    });
                }
            }
            Page::Empty(_) => {}
        }
        ControlFlow::Continue(())
    });
}

/// Calls `body` with source and target of every arc, from all workers.
///
/// # Errors
/// The graph is damaged, or the work was cancelled.
pub(crate) fn for_each_arc(
    ctx: &Context<'_>,
    graph: &impl Graph,
    body: impl Fn(VertexId, VertexId) + Sync,
) -> Result<()> {
    ctx.pool.for_each_chunk(0..graph.vertex_bound(), CHUNK, |_, chunk| {
        if ctx.progress.is_cancelled() {
            return;
        }
        for_each_out_list(graph, chunk.start as VertexId..chunk.end as VertexId, |source, list| {
            list.iter().for_each(|&target| body(source, target));
        });
    });
    graph.check()?;
    Ok(ctx.progress.check()?)
}

/// Number of lists in one announcement, and their distance from the list that is read.
const ANNOUNCED: usize = 256;
const LISTS_AHEAD: usize = 1024;

/// Announces lists some way after that of `vertices[place]`, if a prefetcher is attached. Calls for all places in order
/// announce each list once.
pub(crate) fn announce_ahead(graph: &impl Graph, direction: Direction, vertices: &[VertexId], place: usize) {
    if place.is_multiple_of(ANNOUNCED) && graph.is_listening() {
        let end = vertices.len().min(place + LISTS_AHEAD);
        let start = if place == 0 { 0 } else { place + LISTS_AHEAD - ANNOUNCED };
        if start < end {
            graph.will_need(direction, Parts::Targets, &vertices[start..end]);
        }
    }
}

/// The members of a set among the vertices; `None` if they are many.
fn sparse_members(set: &AtomicBitmap, vertices: &Range<usize>) -> Option<Vec<VertexId>> {
    let words = || {
        let range = vertices.start / 64..vertices.end.div_ceil(64);
        range.map(|word| (word, set.words()[word].load(Ordering::Relaxed)))
    };
    let num_members: u32 = words().map(|(_, word)| word.count_ones()).sum();
    let is_sparse = (num_members as usize) < vertices.len() / DENSE;
    is_sparse.then(|| words().flat_map(|(number, word)| vertices_of(number, word)).collect())
}
