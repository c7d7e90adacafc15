//! The entries of lists that go with their vertices.

use std::ops::{ControlFlow, Range};

use base::VertexId;
use base::bitmap::Bitmap;
use base::parallel::Pool;
use base::progress::Progress;
use graph::{Direction, Graph, InEdges, Page};
use lama::View;

use crate::Result;

/// Vertices that a worker scans at once.
const GRAIN: usize = 64 << 10;

/// List and neighbour of every entry that goes with `vertices`, in no order, some of them twice.
///
/// Cost: that of their lists; a directed graph without in-lists is read whole.
pub(super) fn entries_of(
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
    lists: Range<VertexId>,
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
