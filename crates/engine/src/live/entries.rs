//! The arcs that go with removed vertices.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_graph::{Direction, Graph, GraphKind, Page};
use anden_snapshots::SnapshotView;

use crate::Result;

/// Vertices that a worker scans at once.
const GRAIN: usize = 64 << 10;

/// List and neighbor of each arc that goes with `vertices`, in no order, some twice.
///
/// Cost: reads their lists; in a directed graph without in-lists, the whole graph.
pub(super) fn entries_of(
    view: &SnapshotView,
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
        let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
            entries.extend(targets.iter().map(|&target| (vertex, target)));
            // The arc in the list of the other end goes as well.
            if view.graph_kind() == GraphKind::Undirected {
                entries.extend(targets.iter().map(|&target| (target, vertex)));
            }
            ControlFlow::Continue(())
        });
        if view.graph_kind() == GraphKind::Directed && view.has_lists(Direction::In) {
            let _ = view.for_each_fragment(Direction::In, vertex, |sources| {
                entries.extend(sources.iter().map(|&source| (source, vertex)));
                ControlFlow::Continue(())
            });
        }
    }
    // Without in-lists, only a scan finds the edges that lead to the vertices.
    if !view.has_lists(Direction::In) {
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

/// The arcs of these lists that lead to a removed vertex.
fn entries_into(
    view: &SnapshotView,
    are_gone: &Bitmap,
    lists: Range<VertexId>,
    progress: &dyn Progress,
) -> Vec<(VertexId, VertexId)> {
    let mut entries = Vec::new();
    let mut take = |list: VertexId, targets: &[VertexId]| {
        let gone = targets.iter().filter(|&&target| are_gone.get(target as usize));
        entries.extend(gone.map(|&target| (list, target)));
    };
    let _ = view.for_each_page(Direction::Out, lists, |page| {
        // The caller asks `progress` again, and drops the incomplete result.
        if progress.is_cancelled() {
            return ControlFlow::Break(());
        }
        match page {
            Page::Empty(_) => {}
            Page::Dense(page) => page.lists().for_each(|(list, targets)| take(list, targets)),
            Page::Patched(lists) => lists.for_each(|list| {
                let _ = view.for_each_fragment(Direction::Out, list, |targets| {
                    take(list, targets);
                    ControlFlow::Continue(())
                });
            }),
        }
        ControlFlow::Continue(())
    });
    entries
}
