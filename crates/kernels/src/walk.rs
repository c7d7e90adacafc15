//! Walks over the lists of many vertices, one list at a time, and what is said of them to those who read ahead.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

use base::VertexId;
use base::bitmap::AtomicBitmap;
use graph::{Direction, Graph, InEdges, Page, Parts, Side, vertices_of};

pub(crate) use graph::walk::{HEARD_BYTES, lists_of, walk};

use crate::vertex_subset::CHUNK;
use crate::{Context, Result};

/// What is read of a disk at least.
pub(crate) const READ_BYTES: u64 = 4096;

/// Where one in so many lists is wanted, all are read: what lies between two of them takes no longer than another request.
const DENSE: usize = 8;

/// Calls `body(worker, vertices)` with chunks of all vertices, from all workers: it goes over their lists in order, or
/// over those of the vertices that are wanted.
///
/// Chunks are of `grain` vertices, a multiple of 64; larger multiples of it where somebody listens, who is told what
/// will be read.
pub(crate) fn for_each_walked_chunk<G: InEdges>(
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
        let sides: &[Side] = match graph.direction() {
            Direction::Directed => &[Side::Out, Side::In],
            Direction::Undirected => &[Side::Out],
        };
        match wanted.and_then(|wanted| sparse_members(wanted, &chunk)) {
            None => {
                let vertices = chunk.start as VertexId..chunk.end as VertexId;
                sides.iter().for_each(|&side| graph.will_walk(side, Parts::Targets, vertices.clone()));
                body(worker, chunk);
                sides.iter().for_each(|&side| graph.has_walked(side, Parts::Targets, vertices.clone()));
            }
            Some(wanted) => {
                sides.iter().for_each(|&side| graph.will_need(side, Parts::Targets, &wanted));
                body(worker, chunk);
            }
        }
    });
}

/// Calls `body` with each vertex and its out-list, or the pieces of it one after the other.
#[inline]
pub(crate) fn for_each_out_list(
    graph: &impl Graph,
    vertices: Range<VertexId>,
    mut body: impl FnMut(VertexId, &[VertexId]),
) {
    let _ = graph.for_each_out_page(vertices, |page| {
        match page {
            Page::Dense(page) => page.lists().for_each(|(vertex, list)| body(vertex, list)),
            Page::Patched(vertices) => {
                for vertex in vertices {
                    let _ = graph.for_each_out_fragment(vertex, |fragment| {
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

/// How many lists are announced at once, and how many ahead of the one that is read.
const ANNOUNCED: usize = 256;
const LISTS_AHEAD: usize = 1024;

/// Announces, where somebody listens, the lists that are read some time after that of `vertices[place]`, so that each is
/// announced once by who goes through all of them.
pub(crate) fn announce_ahead(graph: &impl Graph, side: Side, vertices: &[VertexId], place: usize) {
    if place.is_multiple_of(ANNOUNCED) && graph.is_listening() {
        let end = vertices.len().min(place + LISTS_AHEAD);
        let start = if place == 0 { 0 } else { place + LISTS_AHEAD - ANNOUNCED };
        if start < end {
            graph.will_need(side, Parts::Targets, &vertices[start..end]);
        }
    }
}

/// Those of the vertices that are in a set; `None` where they are many.
fn sparse_members(set: &AtomicBitmap, vertices: &Range<usize>) -> Option<Vec<VertexId>> {
    let words = || {
        let range = vertices.start / 64..vertices.end.div_ceil(64);
        range.map(|word| (word, set.words()[word].load(Ordering::Relaxed)))
    };
    let num_members: u32 = words().map(|(_, word)| word.count_ones()).sum();
    let is_sparse = (num_members as usize) < vertices.len() / DENSE;
    is_sparse.then(|| words().flat_map(|(number, word)| vertices_of(number, word)).collect())
}
