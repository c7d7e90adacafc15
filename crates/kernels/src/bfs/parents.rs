//! Parents from hops: the smallest neighbour that is one hop nearer.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use base::VertexId;
use base::memory::as_atomic_u32;
use graph::{InEdges, Page};

use super::{UNREACHED, no_parents};
use crate::vertex_subset::CHUNK;
use crate::{Context, Result};

/// *Cost*: the in-list of every reached vertex up to its parent; without in-edges, all out-lists.
pub(super) fn of_hops<G: InEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    hops: &[u32],
) -> Result<Vec<VertexId>> {
    let mut parents = no_parents(hops.len());
    if graph.has_in_edges() {
        pull(ctx, graph, hops, &mut parents);
    } else {
        push(ctx, graph, hops, &mut parents);
    }
    parents[source as usize] = source;
    ctx.progress.check()?;
    Ok(parents)
}

fn pull<G: InEdges>(ctx: &Context<'_>, graph: &G, hops: &[u32], parents: &mut [VertexId]) {
    ctx.pool.for_each_part_mut(parents, CHUNK, |start, part| {
        if ctx.progress.is_cancelled() {
            return;
        }
        let is_parent = |u: VertexId, v: VertexId| hops[u as usize].wrapping_add(1) == hops[v as usize];
        let wanted = |v: VertexId| hops[v as usize] != UNREACHED && hops[v as usize] != 0;
        let vertices = start as VertexId..(start + part.len()) as VertexId;
        let _ = graph.for_each_in_page(vertices, |page| {
            match page {
                Page::Dense(page) => {
                    for (v, list) in page.lists().filter(|&(v, _)| wanted(v)) {
                        if let Some(&parent) = list.iter().find(|&&u| is_parent(u, v)) {
                            part[v as usize - start] = parent;
                        }
                    }
                }
                Page::Patched(vertices) => {
                    for v in vertices.filter(|&v| wanted(v)) {
                        let parent = &mut part[v as usize - start];
                        let _ = graph.for_each_in_fragment(v, |list| {
                            let nearest = list.iter().find(|&&u| is_parent(u, v));
                            *parent = nearest.map_or(*parent, |&u| u.min(*parent));
                            ControlFlow::Continue(())
                        });
                    }
                }
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
    });
}

fn push<G: InEdges>(ctx: &Context<'_>, graph: &G, hops: &[u32], parents: &mut [VertexId]) {
    let parents = as_atomic_u32(parents);
    ctx.pool.for_each_chunk(0..hops.len(), CHUNK, |_, chunk| {
        if ctx.progress.is_cancelled() {
            return;
        }
        for u in chunk.filter(|&u| hops[u] != UNREACHED) {
            let _ = graph.for_each_out_fragment(u as VertexId, |list| {
                for &v in list.iter().filter(|&&v| hops[v as usize] == hops[u] + 1) {
                    parents[v as usize].fetch_min(u as VertexId, Ordering::Relaxed);
                }
                ControlFlow::Continue(())
            });
        }
    });
}
