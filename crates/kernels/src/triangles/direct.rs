//! The count on the lists as they are, for graphs of small degree, where an oriented copy costs more than the count.
//!
//! A triangle is found at its vertex of greatest id. Its other two vertices are in the front of that vertex's list, and
//! the front of the list of the greater one holds the third. Lists with fewer than two smaller neighbors end no
//! triangle, and are skipped.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::VertexId;
use anden_graph::{Direction, Graph, GraphKind, Page};

use super::GRAIN;
use crate::Context;
use crate::walk::sample;

/// The number of sampled vertices.
const SAMPLED: usize = 1 << 10;

/// The most comparisons for each arc. The build of an oriented copy takes the time of about as many.
const MOST_STEPS: u64 = 16;

/// Whether the count on the lists is cheaper than the build of an oriented copy. It needs out-lists that hold all
/// neighbors once: those of an undirected graph, or of a directed one in which each edge has its reverse.
pub(super) fn is_cheaper(ctx: &Context<'_>, graph: &impl Graph) -> bool {
    let is_directed = graph.graph_kind() == GraphKind::Directed;
    if graph.is_multigraph() || is_directed && !graph.has_lists(Direction::In) || ctx.reads_from_disk(graph) {
        return false;
    }
    let bound = graph.vertex_bound();
    // Each worker may copy the fragments of the longest list.
    if !ctx.allows((ctx.pool.num_threads() * bound * size_of::<VertexId>()) as u64) {
        return false;
    }
    let (mut steps, mut arcs, mut scratch) = (0, 0, [Vec::new(), Vec::new()]);
    for vertex in sample(bound, SAMPLED) {
        if is_directed && !has_equal_lists(graph, vertex, &mut scratch) {
            return false;
        }
        arcs += graph.degree(Direction::Out, vertex) as u64;
        let mut num_smaller = 0;
        let _ = graph.for_each_fragment(Direction::Out, vertex, |list| {
            for &other in list.iter().take_while(|&&other| other < vertex) {
                if num_smaller > 0 {
                    // A longer list is searched, not read.
                    steps += (graph.degree(Direction::Out, other) as u64).min(LONG as u64 * num_smaller) + num_smaller;
                }
                num_smaller += 1;
            }
            // One hub in the sample must not take the time of the whole count.
            if steps > MOST_STEPS * bound as u64 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    // All lists are compared last, because that reads the whole graph.
    steps <= MOST_STEPS * arcs && (!is_directed || is_symmetric(ctx, graph))
}

/// Whether each vertex of a directed graph has equal out-lists and in-lists. A cancelled search may say no.
fn is_symmetric(ctx: &Context<'_>, graph: &impl Graph) -> bool {
    let is_refuted = AtomicBool::new(false);
    ctx.pool.for_each_chunk(0..graph.vertex_bound(), 16 * GRAIN, |_, mut chunk| {
        let mut scratch = [Vec::new(), Vec::new()];
        let must_end = is_refuted.load(Ordering::Relaxed) || ctx.progress.is_cancelled();
        if must_end || !chunk.all(|vertex| has_equal_lists(graph, vertex as VertexId, &mut scratch)) {
            is_refuted.store(true, Ordering::Relaxed);
        }
    });
    !is_refuted.into_inner()
}

/// Whether the out-list and the in-list of a vertex are equal.
fn has_equal_lists(graph: &impl Graph, vertex: VertexId, scratch: &mut [Vec<VertexId>; 2]) -> bool {
    let degree = graph.degree(Direction::Out, vertex);
    if graph.degree(Direction::In, vertex) != degree {
        return false;
    }
    // Nearly all lists are one fragment, which is compared in place. `None`: a list has several.
    let mut is_equal = if degree == 0 { Some(true) } else { None };
    let _ = graph.for_each_fragment(Direction::Out, vertex, |list| {
        let _ = graph.for_each_fragment(Direction::In, vertex, |other| {
            is_equal = (list.len() == degree && other.len() == degree).then(|| list == other);
            ControlFlow::Break(())
        });
        ControlFlow::Break(())
    });
    is_equal.unwrap_or_else(|| {
        for (list, direction) in scratch.iter_mut().zip([Direction::Out, Direction::In]) {
            list.clear();
            let _ = graph.for_each_fragment(direction, vertex, |fragment| {
                list.extend_from_slice(fragment);
                ControlFlow::Continue(())
            });
            // Fragments are ascending each, not together.
            list.sort_unstable();
        }
        scratch[0] == scratch[1]
    })
}

/// The number of triangles. The caller checks the graph and the cancellation.
pub(super) fn count(ctx: &Context<'_>, graph: &impl Graph) -> u64 {
    let counts = ctx.pool.map_chunks(0..graph.vertex_bound(), 16 * GRAIN, |_, chunk| {
        if ctx.progress.is_cancelled() {
            return 0;
        }
        ctx.progress.advance(chunk.len() as u64);
        let (mut count, mut scratch) = (0, Vec::new());
        let _ = graph.for_each_page(Direction::Out, chunk.start as VertexId..chunk.end as VertexId, |page| {
            match page {
                Page::Dense(page) => page.lists().for_each(|(vertex, list)| count += count_at(graph, vertex, list)),
                Page::Patched(vertices) => {
                    for vertex in vertices {
                        scratch.clear();
                        let _ = graph.for_each_fragment(Direction::Out, vertex, |list| {
                            scratch.extend_from_slice(list);
                            ControlFlow::Continue(())
                        });
                        // Fragments are ascending each, not together.
                        scratch.sort_unstable();
                        count += count_at(graph, vertex, &scratch);
                    }
                }
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
        count
    });
    counts.into_iter().sum()
}

/// The number of triangles with `vertex` as their greatest; `list` is ascending.
#[inline(always)]
fn count_at(graph: &impl Graph, vertex: VertexId, list: &[VertexId]) -> u64 {
    // Most lists are short, so a scan finds the front sooner than a search.
    let front = &list[..list.iter().take_while(|&&other| other < vertex).count()];
    let mut count = 0;
    for (num_smaller, &other) in front.iter().enumerate().skip(1) {
        let smaller = &front[..num_smaller];
        // Each neighbor is in one fragment only.
        let _ = graph.for_each_fragment(Direction::Out, other, |list| {
            count += num_common(smaller, list);
            ControlFlow::Continue(())
        });
    }
    count
}

/// A list is searched if it is longer than the other one by this factor.
const LONG: usize = 32;

/// The number of entries that two ascending lists share.
#[inline(always)]
fn num_common(short: &[VertexId], list: &[VertexId]) -> u64 {
    if list.len() > LONG * short.len() {
        return short.iter().map(|other| u64::from(list.binary_search(other).is_ok())).sum();
    }
    let (mut at, mut place, mut count) = (0, 0, 0);
    while let (Some(&one), Some(&other)) = (short.get(at), list.get(place)) {
        // Without a branch on the order, which is unpredictable.
        count += u64::from(one == other);
        at += usize::from(one <= other);
        place += usize::from(other <= one);
    }
    count
}
