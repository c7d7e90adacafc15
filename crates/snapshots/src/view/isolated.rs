//! Views without isolated vertices.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::bitmap::AtomicBitmap;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_graph::{Direction, Graph, GraphKind, Page};

use super::filtered_changes::{FilteredOverlay, ViewCounts};
use super::{SnapshotView, ViewShared};
use crate::Result;
use crate::overlay::Overlay;
use crate::table::PAGE_VERTICES;

/// The vertices that a worker reads between two looks for a cancellation.
const VERTICES_A_CHUNK: usize = 16 * PAGE_VERTICES;

impl SnapshotView {
    /// This graph without isolated vertices, which have no edge in it: they count as removed. Ids stay, and so do the
    /// lists, which both views share.
    ///
    /// Cost: reads all out-lists; two bits for each vertex.
    ///
    /// # Errors
    /// Cancellation; damage.
    pub fn without_isolated(&self, pool: &Pool, progress: &dyn Progress) -> Result<Self> {
        let connected = AtomicBitmap::new(self.vertex_bound);
        pool.map_chunks(0..self.vertex_bound, VERTICES_A_CHUNK, |_, vertices| {
            progress.check()?;
            self.mark_connected(vertices.start as VertexId..vertices.end as VertexId, &connected);
            Ok(())
        })
        .into_iter()
        .collect::<Result<()>>()?;
        // Damaged lists look empty, and must not make vertices look isolated.
        self.check()?;
        let dead = connected.into_bitmap().complement();
        let num_vertices = self.vertex_bound - dead.count_ones();
        let overlay = self.overlay.clone().map(|whole| {
            let counts = ViewCounts { num_vertices, num_edges: self.num_edges(), num_arcs: self.num_arcs() };
            Arc::new(FilteredOverlay::new(whole, counts, Some(dead.clone()))) as Arc<dyn Overlay>
        });
        let shared = ViewShared::clone(&self.shared);
        let shared = ViewShared { version: None, num_vertices, dead: Some(dead), lacks_isolated: true, ..shared };
        // The result is no snapshot, so it has none below.
        Ok(Self { overlay, below: None, shared: Arc::new(shared), ..self.clone() })
    }

    /// Whether isolated vertices count as removed ([`without_isolated`](Self::without_isolated)).
    pub fn lacks_isolated(&self) -> bool {
        self.shared.lacks_isolated
    }

    /// Marks both ends of the arcs of these vertices.
    fn mark_connected(&self, vertices: Range<VertexId>, connected: &AtomicBitmap) {
        // In an undirected graph, the lists of both ends hold an edge.
        let marks_targets = self.graph_kind() == GraphKind::Directed;
        let mark = |vertex: VertexId, targets: &[VertexId]| {
            if targets.is_empty() {
                return;
            }
            connected.set(vertex as usize);
            if marks_targets {
                targets.iter().for_each(|&target| _ = connected.set(target as usize));
            }
        };
        let _ = self.for_each_page(Direction::Out, vertices, |page| {
            match page {
                Page::Dense(page) => page.lists().for_each(|(vertex, targets)| mark(vertex, targets)),
                Page::Patched(vertices) => vertices.for_each(|vertex| {
                    let _ = self.for_each_fragment(Direction::Out, vertex, |targets| {
                        mark(vertex, targets);
                        ControlFlow::Continue(())
                    });
                }),
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
    }
}
