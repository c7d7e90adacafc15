//! Lists with weights and without behind one face, so that push and pull are written once.

use std::ops::{ControlFlow, Range};

use base::VertexId;
use graph::{DensePage, InEdges, Page, PageOffset, Parts, WantedLists, Weight, WeightedEdges};

/// Adjacency lists whose entries carry a `W`.
pub(crate) trait Lists<W: Copy>: Sync {
    /// The offsets of dense pages.
    type Offset: PageOffset;

    /// What is read of them.
    const PARTS: Parts;

    /// The out-list of `vertex`, fragment by fragment.
    fn out_list(&self, vertex: VertexId, body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>) -> ControlFlow<()>;

    /// The in-list of `vertex`, fragment by fragment.
    fn in_list(&self, vertex: VertexId, body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>) -> ControlFlow<()>;

    /// The wanted in-lists, in any order, fragment by fragment; to break leaves a list.
    fn in_lists_of(&self, wanted: &WantedLists, mut body: impl FnMut(VertexId, &[VertexId], &[W]) -> ControlFlow<()>) {
        for vertex in wanted.vertices() {
            let _ = self.in_list(vertex, |list, weights| body(vertex, list, weights));
        }
    }

    /// Those of the wanted in-lists that stand in one slice, as [`dense_weights`](Self::dense_weights) knows it; the others
    /// are asked for one by one.
    fn dense_in_lists(&self, _wanted: &WantedLists) -> Option<(DensePage<'_, Self::Offset>, WantedLists)> {
        None
    }

    /// The same for out-lists.
    fn out_lists_of(&self, wanted: &WantedLists, mut body: impl FnMut(VertexId, &[VertexId], &[W]) -> ControlFlow<()>) {
        for vertex in wanted.vertices() {
            let _ = self.out_list(vertex, |list, weights| body(vertex, list, weights));
        }
    }

    /// The pages of the in-lists; dense only where [`dense_weights`](Self::dense_weights) knows how.
    fn in_pages(&self, vertices: Range<VertexId>, body: impl FnMut(Page<'_, Self::Offset>));

    /// As [`in_pages`](Self::in_pages), for out-lists.
    fn out_pages(&self, vertices: Range<VertexId>, body: impl FnMut(Page<'_, Self::Offset>));

    /// The weights beside a list of a dense page.
    fn dense_weights(&self, len: usize) -> &[W];
}

/// The lists of a graph, without weights.
pub(crate) struct Plain<'a, G>(pub(crate) &'a G);

/// The lists of a graph whose weights the caller has found to be of the right type.
pub(crate) struct Weighted<'a, G>(pub(crate) &'a G);

/// As many nothings as anybody asks for; they take no space.
const NOTHINGS: &[()] = &[(); usize::MAX];

impl<G: InEdges> Lists<()> for Plain<'_, G> {
    type Offset = G::Offset;

    const PARTS: Parts = Parts::Targets;

    #[inline(always)]
    fn out_list(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[()]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.0.for_each_out_fragment(vertex, |list| body(list, &NOTHINGS[..list.len()]))
    }

    #[inline(always)]
    fn in_list(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[()]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.0.for_each_in_fragment(vertex, |list| body(list, &NOTHINGS[..list.len()]))
    }

    #[inline(always)]
    fn in_lists_of(&self, wanted: &WantedLists, mut body: impl FnMut(VertexId, &[VertexId], &[()]) -> ControlFlow<()>) {
        self.0.for_each_in_fragment_of(wanted, |vertex, list| body(vertex, list, &NOTHINGS[..list.len()]));
    }

    #[inline(always)]
    fn dense_in_lists(&self, wanted: &WantedLists) -> Option<(DensePage<'_, G::Offset>, WantedLists)> {
        self.0.dense_in_lists(wanted)
    }

    #[inline(always)]
    fn out_lists_of(
        &self,
        wanted: &WantedLists,
        mut body: impl FnMut(VertexId, &[VertexId], &[()]) -> ControlFlow<()>,
    ) {
        self.0.for_each_out_fragment_of(wanted, |vertex, list| body(vertex, list, &NOTHINGS[..list.len()]));
    }

    #[inline(always)]
    fn in_pages(&self, vertices: Range<VertexId>, mut body: impl FnMut(Page<'_, G::Offset>)) {
        let _ = self.0.for_each_in_page(vertices, |page| {
            body(page);
            ControlFlow::Continue(())
        });
    }

    #[inline(always)]
    fn out_pages(&self, vertices: Range<VertexId>, mut body: impl FnMut(Page<'_, G::Offset>)) {
        let _ = self.0.for_each_out_page(vertices, |page| {
            body(page);
            ControlFlow::Continue(())
        });
    }

    #[inline(always)]
    fn dense_weights(&self, len: usize) -> &[()] {
        &NOTHINGS[..len]
    }
}

impl<W: Weight, G: InEdges + WeightedEdges> Lists<W> for Weighted<'_, G> {
    type Offset = G::Offset;

    const PARTS: Parts = Parts::Weighted;

    #[inline(always)]
    fn out_list(&self, vertex: VertexId, body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>) -> ControlFlow<()> {
        self.0.for_each_weighted_out_fragment(vertex, body)
    }

    #[inline(always)]
    fn in_list(&self, vertex: VertexId, body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>) -> ControlFlow<()> {
        self.0.for_each_weighted_in_fragment(vertex, body)
    }

    // The seam has no pages with weights: everything is read through the fragments.
    fn in_pages(&self, vertices: Range<VertexId>, mut body: impl FnMut(Page<'_, G::Offset>)) {
        body(Page::Patched(vertices));
    }

    fn out_pages(&self, vertices: Range<VertexId>, mut body: impl FnMut(Page<'_, G::Offset>)) {
        body(Page::Patched(vertices));
    }

    fn dense_weights(&self, _len: usize) -> &[W] {
        &[]
    }
}

/// Gives `targets` in pieces, each beside as many entries of `weights`, for edges that have none.
#[inline(always)]
pub(crate) fn beside<W: Copy>(
    targets: &[VertexId],
    weights: &[W],
    mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    targets.chunks(weights.len()).try_for_each(|piece| body(piece, &weights[..piece.len()]))
}
