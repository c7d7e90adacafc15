//! Parents from hops: the smallest neighbor that is one hop nearer to the source.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use anden_base::VertexId;
use anden_base::memory::as_atomic_u32;
use anden_graph::{Direction, Graph, Page};

use super::{UNREACHED, no_parents};
use crate::vertex_subset::CHUNK;
use crate::{Context, Result};

/// The parents by vertex id. *Cost*: the in-list of every reached vertex up to its parent; without in-edges, all
/// out-lists.
pub(super) fn of_hops<G: Graph>(ctx: &Context<'_>, graph: &G, source: VertexId, hops: &[u32]) -> Result<Vec<VertexId>> {
    let mut parents = no_parents(hops.len());
    if graph.has_lists(Direction::In) {
        pull(ctx, graph, hops, &mut parents);
    } else {
        push(ctx, graph, hops, &mut parents);
    }
    parents[source as usize] = source;
    ctx.progress.check()?;
    Ok(parents)
}

fn pull<G: Graph>(ctx: &Context<'_>, graph: &G, hops: &[u32], parents: &mut [VertexId]) {
    ctx.pool.for_each_part_mut(parents, CHUNK, |start, part| {
        if ctx.progress.is_cancelled() {
            return;
        }
        // The hops of an unreached `u` wrap to 0, which no wanted vertex has.
        let is_parent = |u: VertexId, v: VertexId| hops[u as usize].wrapping_add(1) == hops[v as usize];
        let wanted = |v: VertexId| hops[v as usize] != UNREACHED && hops[v as usize] != 0;
        let vertices = start as VertexId..(start + part.len()) as VertexId;
        let _ = graph.for_each_page(Direction::In, vertices, |page| {
            match page {
                Page::Dense(page) => {
                    for (v, list) in page.lists().filter(|&(v, _)| wanted(v)) {
                        // A list ascends, so its first hit is the smallest parent.
                        if let Some(&parent) = list.iter().find(|&&u| is_parent(u, v)) {
                            part[v as usize - start] = parent;
                        }
                    }
                }
                Page::Patched(vertices) => {
                    for v in vertices.filter(|&v| wanted(v)) {
                        let parent = &mut part[v as usize - start];
                        let _ = graph.for_each_fragment(Direction::In, v, |list| {
                            // The order of fragments is open, so the smallest of their hits counts.
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

fn push<G: Graph>(ctx: &Context<'_>, graph: &G, hops: &[u32], parents: &mut [VertexId]) {
    let parents = as_atomic_u32(parents);
    ctx.pool.for_each_chunk(0..hops.len(), CHUNK, |_, chunk| {
        if ctx.progress.is_cancelled() {
            return;
        }
        for u in chunk.filter(|&u| hops[u] != UNREACHED) {
            let _ = graph.for_each_fragment(Direction::Out, u as VertexId, |list| {
                for &v in list.iter().filter(|&&v| hops[v as usize] == hops[u] + 1) {
                    // The minimum does not depend on the order of the workers.
                    parents[v as usize].fetch_min(u as VertexId, Ordering::Relaxed);
                }
                ControlFlow::Continue(())
            });
        }
    });
}
