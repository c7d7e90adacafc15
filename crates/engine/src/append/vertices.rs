//! Vertices that come and go.

use std::ops::ControlFlow;

use base::bitmap::Bitmap;
use base::parallel::Pool;
use base::progress::Progress;
use base::{NO_VERTEX, VertexId};
use graph::{Direction, Graph, InEdges, Page};
use lama::View;

use super::requests::Block;
use crate::Result;

/// Vertices that a worker scans at once.
const GRAIN: usize = 64 << 10;

/// What becomes of vertices that were there before.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct VertexChanges {
    /// Vertices whose edges all go, ascending; some of them stay.
    pub(crate) cleared: Vec<VertexId>,
    /// Vertices that are none any more, ascending.
    pub(crate) died: Vec<VertexId>,
    /// Dead ids that are vertices again, ascending.
    pub(crate) returned: Vec<VertexId>,
    /// Vertices that were to be removed and are not there.
    pub(crate) num_missing: u64,
}

impl VertexChanges {
    /// What follows from the blocks of what is added and of what is removed, whose keys are ids.
    pub(crate) fn new(view: &View, added: &[Block], removed: &[Block]) -> Self {
        let bound = view.vertex_bound();
        let is_live = |vertex: VertexId| (vertex as usize) < bound && view.is_live(vertex);
        let mut cleared: Vec<VertexId> = removed.iter().flat_map(|block| block.vertices.iter().copied()).collect();
        cleared.sort_unstable();
        let num_unknown = cleared.iter().filter(|&&vertex| vertex == NO_VERTEX).count();
        cleared.truncate(cleared.len() - num_unknown);
        cleared.dedup();
        let num_named = cleared.len();
        cleared.retain(|&vertex| is_live(vertex));
        let num_missing = (num_unknown + num_named - cleared.len()) as u64;

        let has_dead = view.num_vertices() < bound;
        if cleared.is_empty() && !has_dead {
            return Self { num_missing, ..Self::default() };
        }
        let named = named_vertices(added, bound);
        let died = cleared.iter().copied().filter(|&vertex| !named.get(vertex as usize)).collect();
        let returned = if has_dead {
            named.iter_ones().map(|v| v as VertexId).filter(|&v| !view.is_live(v)).collect()
        } else {
            Vec::new()
        };
        Self { cleared, died, returned, num_missing }
    }
}

/// The ids below `bound` that blocks name, in edges or alone.
fn named_vertices(blocks: &[Block], bound: usize) -> Bitmap {
    let mut named = Bitmap::new(bound);
    for block in blocks {
        let ends = block.edges.iter().flat_map(|&(source, target)| [source, target]);
        for vertex in ends.chain(block.vertices.iter().copied()).filter(|&vertex| (vertex as usize) < bound) {
            named.set(vertex as usize);
        }
    }
    named
}

/// List and neighbour of every entry that goes with `vertices`, in no order, some of them twice.
///
/// Cost: that of their lists; a directed graph without in-lists is read whole.
pub(crate) fn entries_of(
    view: &View,
    vertices: &[VertexId],
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<Vec<(VertexId, VertexId)>> {
    let mut entries = Vec::new();
    if vertices.is_empty() {
        return Ok(entries);
    }
    for &vertex in vertices {
        progress.check()?;
        let _ = view.for_each_out_fragment(vertex, |targets| {
            entries.extend(targets.iter().map(|&target| (vertex, target)));
            if view.direction() == Direction::Undirected {
                entries.extend(targets.iter().map(|&target| (target, vertex)));
            }
            ControlFlow::Continue(())
        });
        if view.direction() == Direction::Directed && view.has_in_edges() {
            let _ = view.for_each_in_fragment(vertex, |sources| {
                entries.extend(sources.iter().map(|&source| (source, vertex)));
                ControlFlow::Continue(())
            });
        }
    }
    if !view.has_in_edges() {
        progress.stage("scan", Some(view.vertex_bound() as u64));
        let mut are_gone = Bitmap::new(view.vertex_bound());
        vertices.iter().for_each(|&vertex| are_gone.set(vertex as usize));
        let found = pool.map_chunks(0..view.vertex_bound(), GRAIN, |_, chunk| {
            progress.advance(chunk.len() as u64);
            entries_into(view, &are_gone, chunk.start as VertexId..chunk.end as VertexId, progress)
        });
        entries.extend(found.into_iter().flatten());
        progress.check()?;
    }
    view.check()?;
    Ok(entries)
}

/// The entries of these lists that lead to a vertex that goes.
fn entries_into(
    view: &View,
    are_gone: &Bitmap,
    lists: std::ops::Range<VertexId>,
    progress: &dyn Progress,
) -> Vec<(VertexId, VertexId)> {
    let mut entries = Vec::new();
    let mut take = |list: VertexId, targets: &[VertexId]| {
        let gone = targets.iter().filter(|&&target| are_gone.get(target as usize));
        entries.extend(gone.map(|&target| (list, target)));
    };
    let _ = view.for_each_out_page(lists, |page| {
        if progress.is_cancelled() {
            return ControlFlow::Break(());
        }
        match page {
            Page::Empty(_) => {}
            Page::Dense(page) => page.lists().for_each(|(list, targets)| take(list, targets)),
            Page::Patched(lists) => lists.for_each(|list| {
                let _ = view.for_each_out_fragment(list, |targets| {
                    take(list, targets);
                    ControlFlow::Continue(())
                });
            }),
        }
        ControlFlow::Continue(())
    });
    entries
}
