//! Rounds without bins: along in-edges with prefetching, or along out-edges by ranges of targets.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_base::simd::prefetch;
use anden_graph::{DensePage, Direction, Graph, Page, PageOffset};

use super::score::{BLOCK, PageRankBlockSums, PageRankState, Round, Score};
use crate::Context;
use crate::walk::for_each_out_list;

/// Prefetch distance in edges: a few nanoseconds an edge make up for the latency of memory.
const PREFETCH_EDGES: usize = 64;

/// One round along the in-edges.
pub(super) fn pull_round<T: Score>(
    ctx: &Context<'_>,
    graph: &impl Graph,
    state: &mut PageRankState<T>,
    round: &Round<T>,
) -> Vec<PageRankBlockSums> {
    let (parts, contributions) = state.parts(BLOCK);
    let contributions = &*contributions;
    let mut blocks = vec![PageRankBlockSums::default(); parts.len()];
    let items = parts.into_iter().zip(&mut blocks).collect();
    ctx.pool.for_each_item(items, |_, (mut part, block)| {
        if !ctx.progress.is_cancelled() {
            let sums = in_sums(graph, part.vertices(), contributions);
            *block = part.rescore(round, &sums);
        }
    });
    // Only now: other workers read the old contributions until their blocks are done.
    contribute(ctx, state);
    blocks
}

/// Computes the contributions of the next round, once no worker reads those of the last.
pub(super) fn contribute<T: Score>(ctx: &Context<'_>, state: &mut PageRankState<T>) {
    let (parts, contributions) = state.parts(BLOCK);
    let items = parts.into_iter().zip(contributions.chunks_mut(BLOCK)).collect();
    ctx.pool.for_each_item(items, |_, (part, contributions)| part.contribute(contributions));
}

fn in_sums<T: Score>(graph: &impl Graph, vertices: Range<VertexId>, contributions: &[T]) -> Vec<T> {
    let first = vertices.start;
    let mut sums = vec![T::default(); vertices.len()];
    let _ = graph.for_each_page(Direction::In, vertices, |page| {
        match page {
            Page::Dense(page) => add_page(&page, contributions, &mut sums[(page.first() - first) as usize..]),
            Page::Patched(vertices) => {
                for vertex in vertices {
                    let sum = &mut sums[(vertex - first) as usize];
                    let _ = graph.for_each_fragment(Direction::In, vertex, |fragment| {
                        fragment.iter().for_each(|&source| *sum += contributions[source as usize]);
                        ControlFlow::Continue(())
                    });
                }
            }
            Page::Empty(_) => {}
        }
        ControlFlow::Continue(())
    });
    sums
}

fn add_page<T: Score, O: PageOffset>(page: &DensePage<'_, O>, contributions: &[T], sums: &mut [T]) {
    let all = page.all_targets();
    let mut start = 0;
    for (index, sum) in sums.iter_mut().enumerate().take(page.len()) {
        let list = page.list(index);
        let ahead = all.get(start + PREFETCH_EDGES..).unwrap_or(&[]);
        // The last entries of a page have no entry to prefetch, so the first loop needs no check.
        let (with, without) = list.split_at(list.len().min(ahead.len()));
        for (&source, &later) in with.iter().zip(ahead) {
            prefetch(contributions, later as usize);
            *sum += contributions[source as usize];
        }
        without.iter().for_each(|&source| *sum += contributions[source as usize]);
        start += list.len();
    }
}

/// One round along the out-edges: every worker scans all of them, and adds at its own targets.
pub(super) fn push_round<T: Score>(
    ctx: &Context<'_>,
    graph: &impl Graph,
    sums: &mut [T],
    state: &mut PageRankState<T>,
    round: &Round<T>,
) -> Vec<PageRankBlockSums> {
    // Each worker owns a range of targets, so the sums need no atomics.
    let share = sums.len().div_ceil(ctx.pool.num_threads()).max(1);
    let (_, contributions) = state.parts(BLOCK);
    let contributions = &*contributions;
    let items = sums.chunks_mut(share).enumerate().collect();
    ctx.pool.for_each_item(items, |_, (index, sums): (usize, &mut [T])| {
        sums.fill(T::default());
        add_out_edges(ctx, graph, index * share, sums, contributions);
    });
    let (parts, _) = state.parts(BLOCK);
    let mut blocks = vec![PageRankBlockSums::default(); parts.len()];
    let items = parts.into_iter().zip(sums.chunks(BLOCK)).zip(&mut blocks).collect();
    ctx.pool.for_each_item(items, |_, ((mut part, sums), block)| *block = part.rescore(round, sums));
    contribute(ctx, state);
    blocks
}

fn add_out_edges<T: Score>(ctx: &Context<'_>, graph: &impl Graph, first: usize, sums: &mut [T], contributions: &[T]) {
    let bound = graph.vertex_bound();
    // In blocks, so that a cancellation is noticed soon.
    for start in (0..bound).step_by(BLOCK) {
        if ctx.progress.is_cancelled() {
            return;
        }
        let vertices = start as VertexId..bound.min(start + BLOCK) as VertexId;
        for_each_out_list(graph, vertices, |source, list| {
            let contribution = contributions[source as usize];
            for &target in list {
                // Targets below the range wrap around to numbers above it.
                if let Some(sum) = sums.get_mut((target as usize).wrapping_sub(first)) {
                    *sum += contribution;
                }
            }
        });
    }
}
