//! Adjacency lists with or without weights behind one trait, so that push and pull are written once.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_graph::{DensePage, Direction, Graph, Page, PageOffset, Parts, VertexMask, Weight, WeightedEdges};

/// Adjacency lists whose entries carry a `W`.
pub(crate) trait EdgeMapLists<W: Copy>: Sync {
    /// The offsets of dense pages.
    type Offset: PageOffset;

    /// The parts that reading a list reads.
    const PARTS: Parts;

    /// A list of `vertex`, fragment by fragment.
    fn list(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// The wanted lists, in any order, fragment by fragment. A break ends one list, not the others.
    fn lists_of(
        &self,
        direction: Direction,
        wanted: &VertexMask,
        mut body: impl FnMut(VertexId, &[VertexId], &[W]) -> ControlFlow<()>,
    ) {
        for vertex in wanted.vertices() {
            let _ = self.list(direction, vertex, |list, weights| body(vertex, list, weights));
        }
    }

    /// The wanted in-lists that lie in one slice, as a dense page for [`dense_weights`](Self::dense_weights). The
    /// caller reads the other lists one by one.
    fn dense_in_lists(&self, _wanted: &VertexMask) -> Option<(DensePage<'_, Self::Offset>, VertexMask)> {
        None
    }

    /// The pages of the lists; dense only if [`dense_weights`](Self::dense_weights) has their weights.
    fn pages(&self, direction: Direction, vertices: Range<VertexId>, body: impl FnMut(Page<'_, Self::Offset>));

    /// The weights beside a list of a dense page.
    fn dense_weights(&self, len: usize) -> &[W];
}

/// The adjacency lists of a graph, without weights.
pub(crate) struct Plain<'a, G>(pub(crate) &'a G);

/// The adjacency lists of a graph, with weights. The caller has checked their type.
pub(crate) struct Weighted<'a, G>(pub(crate) &'a G);

/// Weights of unweighted lists. A slice of `()` takes no space at any length.
const NOTHINGS: &[()] = &[(); usize::MAX];

impl<G: Graph> EdgeMapLists<()> for Plain<'_, G> {
    type Offset = G::Offset;

    const PARTS: Parts = Parts::Targets;

    #[inline(always)]
    fn list(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[()]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.0.for_each_fragment(direction, vertex, |list| body(list, &NOTHINGS[..list.len()]))
    }

    #[inline(always)]
    fn lists_of(
        &self,
        direction: Direction,
        wanted: &VertexMask,
        mut body: impl FnMut(VertexId, &[VertexId], &[()]) -> ControlFlow<()>,
    ) {
        self.0.for_each_fragment_of(direction, wanted, |vertex, list| body(vertex, list, &NOTHINGS[..list.len()]));
    }

    #[inline(always)]
    fn dense_in_lists(&self, wanted: &VertexMask) -> Option<(DensePage<'_, G::Offset>, VertexMask)> {
        self.0.dense_lists(Direction::In, wanted)
    }

    #[inline(always)]
    fn pages(&self, direction: Direction, vertices: Range<VertexId>, mut body: impl FnMut(Page<'_, G::Offset>)) {
        let _ = self.0.for_each_page(direction, vertices, |page| {
            body(page);
            ControlFlow::Continue(())
        });
    }

    #[inline(always)]
    fn dense_weights(&self, len: usize) -> &[()] {
        &NOTHINGS[..len]
    }
}

impl<W: Weight, G: WeightedEdges> EdgeMapLists<W> for Weighted<'_, G> {
    type Offset = G::Offset;

    const PARTS: Parts = Parts::Weighted;

    #[inline(always)]
    fn list(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.0.for_each_weighted_fragment(direction, vertex, body)
    }

    // The seam has no pages with weights, so all lists are read by fragment.
    fn pages(&self, _direction: Direction, vertices: Range<VertexId>, mut body: impl FnMut(Page<'_, G::Offset>)) {
        body(Page::Patched(vertices));
    }

    fn dense_weights(&self, _len: usize) -> &[W] {
        &[]
    }
}

/// Cuts `targets` into chunks of the length of `weights`, for edges without weights of their own.
#[inline(always)]
pub(crate) fn beside<W: Copy>(
    targets: &[VertexId],
    weights: &[W],
    mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    targets.chunks(weights.len()).try_for_each(|piece| body(piece, &weights[..piece.len()]))
}
