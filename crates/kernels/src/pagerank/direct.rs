//! Scores carried without bins: along in-edges with prefetch, or along out-edges by target ranges.

use std::ops::{ControlFlow, Range};

use base::VertexId;
use base::simd::prefetch;
use graph::{DensePage, Graph, InEdges, Page, PageOffset};

use super::score::{BLOCK, Block, Round, Score, State};
use crate::Context;
use crate::walk::for_each_out_list;

/// How many edges ahead a score is asked for: some hundred nanoseconds at a few an edge.
const PREFETCH_EDGES: usize = 64;

/// One round along the in-edges.
pub(super) fn pull_round<T: Score>(
    ctx: &Context<'_>,
    graph: &impl InEdges,
    state: &mut State<T>,
    round: &Round<T>,
) -> Vec<Block> {
    let (parts, contributions) = state.parts(BLOCK);
    let contributions = &*contributions;
    let mut blocks = vec![Block::default(); parts.len()];
    let items = parts.into_iter().zip(&mut blocks).collect();
    ctx.pool.for_each_item(items, |_, (mut part, block)| {
        if !ctx.progress.is_cancelled() {
            let sums = in_sums(graph, part.vertices(), contributions);
            *block = part.rescore(round, &sums);
        }
    });
    contribute(ctx, state);
    blocks
}

/// Prepares the contributions of the next round, once nobody reads those of the last.
pub(super) fn contribute<T: Score>(ctx: &Context<'_>, state: &mut State<T>) {
    let (parts, contributions) = state.parts(BLOCK);
    let items = parts.into_iter().zip(contributions.chunks_mut(BLOCK)).collect();
    ctx.pool.for_each_item(items, |_, (part, contributions)| part.contribute(contributions));
}

fn in_sums<T: Score>(graph: &impl InEdges, vertices: Range<VertexId>, contributions: &[T]) -> Vec<T> {
    let first = vertices.start;
    let mut sums = vec![T::default(); vertices.len()];
    let _ = graph.for_each_in_page(vertices, |page| {
        match page {
            Page::Dense(page) => add_page(&page, contributions, &mut sums[(page.first() - first) as usize..]),
            Page::Patched(vertices) => {
                for vertex in vertices {
                    let sum = &mut sums[(vertex - first) as usize];
                    let _ = graph.for_each_in_fragment(vertex, |fragment| {
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
        let (with, without) = list.split_at(list.len().min(ahead.len()));
        for (&source, &later) in with.iter().zip(ahead) {
            prefetch(contributions, later as usize);
            *sum += contributions[source as usize];
        }
        without.iter().for_each(|&source| *sum += contributions[source as usize]);
        start += list.len();
    }
}

/// One round along the out-edges: every worker scans all of them, and adds up at its own targets.
pub(super) fn push_round<T: Score>(
    ctx: &Context<'_>,
    graph: &impl Graph,
    sums: &mut [T],
    state: &mut State<T>,
    round: &Round<T>,
) -> Vec<Block> {
    let share = sums.len().div_ceil(ctx.pool.num_threads()).max(1);
    let (_, contributions) = state.parts(BLOCK);
    let contributions = &*contributions;
    let items = sums.chunks_mut(share).enumerate().collect();
    ctx.pool.for_each_item(items, |_, (index, sums): (usize, &mut [T])| {
        sums.fill(T::default());
        add_out_edges(ctx, graph, index * share, sums, contributions);
    });
    let (parts, _) = state.parts(BLOCK);
    let mut blocks = vec![Block::default(); parts.len()];
    let items = parts.into_iter().zip(sums.chunks(BLOCK)).zip(&mut blocks).collect();
    ctx.pool.for_each_item(items, |_, ((mut part, sums), block)| *block = part.rescore(round, sums));
    contribute(ctx, state);
    blocks
}

fn add_out_edges<T: Score>(ctx: &Context<'_>, graph: &impl Graph, first: usize, sums: &mut [T], contributions: &[T]) {
    let bound = graph.vertex_bound();
    for start in (0..bound).step_by(BLOCK) {
        if ctx.progress.is_cancelled() {
            return;
        }
        let vertices = start as VertexId..bound.min(start + BLOCK) as VertexId;
        for_each_out_list(graph, vertices, |source, list| {
            let contribution = contributions[source as usize];
            for &target in list {
                // Targets below the range wrap around to above it.
                if let Some(sum) = sums.get_mut((target as usize).wrapping_sub(first)) {
                    *sum += contribution;
                }
            }
        });
    }
}
