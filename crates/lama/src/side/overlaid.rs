//! Lists that something in memory is laid over.
//!
//! Only vertices that a bitmap names are looked up in it, and only pages with such vertices are asked for
//! the bitmap: all others are read as if nothing were there.

use std::ops::ControlFlow;
use std::sync::Arc;

use base::VertexId;
use base::bitmap::AtomicBitmap;
use graph::Weight;

use super::{Found, Side};
use crate::overlay::{Overlay, without};
use crate::run;
use crate::table::{PAGE_SHIFT, num_pages, page_of, place_in_page};

/// What is laid over a side.
#[derive(Clone, Debug)]
pub(crate) struct SideOverlay {
    pub side: run::Side,
    /// The vertices whose lists may have changed; those of younger versions too.
    pub touched: Arc<AtomicBitmap>,
    pub overlay: Arc<dyn Overlay>,
}

impl SideOverlay {
    /// The length of a list that has `below` entries without the overlay.
    pub fn degree(&self, vertex: VertexId, below: usize) -> usize {
        let changes = self.overlay.num_changes(self.side, vertex);
        below + changes.added - changes.removed
    }

    /// Whether the list differs in this version.
    pub fn changes(&self, vertex: VertexId) -> bool {
        let changes = self.overlay.num_changes(self.side, vertex);
        changes.added + changes.removed > 0
    }
}

impl Side {
    /// The same lists, ready to have something laid over those of vertices below `capacity`.
    pub fn underlay(&self, capacity: usize) -> Self {
        let num_pages = num_pages(capacity).max(self.num_pages());
        Self::with_pages(self.shared.recipe.clone(), num_pages, &self.shared.fault)
    }

    /// From now on the list of `vertex` may differ, in versions whose overlay says so.
    pub fn touch(&self, vertex: VertexId) {
        self.pages[page_of(vertex)].set_overlaid();
    }

    /// The same lists with `overlay` over them.
    pub fn overlaid(&self, overlay: SideOverlay) -> Self {
        debug_assert!(overlay.touched.len() <= self.num_pages() << PAGE_SHIFT);
        Self { overlay: Some(overlay), ..self.clone() }
    }

    /// What is laid over the list of `vertex`, if that may be anything.
    #[inline]
    pub(super) fn overlay_of(&self, vertex: VertexId) -> Option<&SideOverlay> {
        self.overlay.as_ref().filter(|overlay| overlay.touched.get(vertex as usize))
    }

    #[inline(never)]
    pub(super) fn for_each_fragment_overlaid(
        &self,
        overlay: &SideOverlay,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let removed = overlay.overlay.removed(overlay.side, vertex);
        let mut keep = |targets: &[VertexId]| without(targets, &removed, |kept| body(&targets[kept]));
        match self.elsewhere(vertex, false) {
            Found::List(list) => keep(&self.targets[list])?,
            Found::Pieces(page) => {
                let base = &self.targets[self.base_targets(page_of(vertex))];
                page.for_each_fragment(place_in_page(vertex), base, keep)?;
            }
            Found::Nothing => {}
        }
        overlay.overlay.for_each_added(overlay.side, vertex, &mut |targets, _| body(targets))
    }

    #[inline(never)]
    pub(super) fn for_each_weighted_fragment_overlaid<W: Weight>(
        &self,
        overlay: &SideOverlay,
        vertex: VertexId,
        weights: &[W],
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let removed = overlay.overlay.removed(overlay.side, vertex);
        let mut keep = |targets: &[VertexId], weights: &[W]| {
            without(targets, &removed, |kept| body(&targets[kept.clone()], &weights[kept]))
        };
        match self.elsewhere(vertex, true) {
            Found::List(list) => keep(&self.targets[list.clone()], &weights[list])?,
            Found::Pieces(page) => {
                let edges = self.base_targets(page_of(vertex));
                let base = (&self.targets[edges.clone()], &weights[edges]);
                page.for_each_weighted_fragment(place_in_page(vertex), base, keep)?;
            }
            Found::Nothing => {}
        }
        overlay
            .overlay
            .for_each_added(overlay.side, vertex, &mut |targets, weights| body(targets, bytemuck::cast_slice(weights)))
    }
}
