//! Shows how the database stores one list: a description for people.

use std::ops::ControlFlow;

use anden_base::VertexId;

use super::{AdjacencyView, ShownArcs};
use crate::Result;
use crate::changes::{ApplyDirection, PageChanges};
use crate::table::{page_of, place_in_page};

/// The parts that one list of a view is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOrigin {
    /// The list in the base; `None` if the view shows only additions of deltas.
    pub base: Option<Vec<VertexId>>,
    /// The changes of each delta in this list, in the order of their application.
    pub changes: Vec<ListChange>,
    /// Changes in memory, added and removed targets, each ascending; `None` without changes.
    pub overlay: Option<(Vec<VertexId>, Vec<VertexId>)>,
    /// The fragments that readers get.
    pub fragments: Vec<Vec<VertexId>>,
}

/// Changes of one delta in one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListChange {
    /// The snapshot that the delta starts from.
    pub from: u32,
    /// The snapshot that the delta leads to.
    pub to: u32,
    /// Whether the base is younger, so that the delta is applied backward.
    pub is_backward: bool,
    /// Targets that only `to` has, ascending.
    pub added: Vec<VertexId>,
    /// Targets that only `from` has, ascending.
    pub removed: Vec<VertexId>,
}

impl AdjacencyView {
    /// The parts of the list of `vertex`.
    ///
    /// # Errors
    /// The page is damaged.
    pub fn origin(&self, vertex: VertexId) -> Result<ListOrigin> {
        let spec = &self.shared.spec;
        let (page, local) = (page_of(vertex), place_in_page(vertex));
        let base = match spec.shown {
            ShownArcs::Added => None,
            ShownArcs::All => {
                let base_page = spec.base_page(page)?;
                Some(base_page.targets[base_page.list(local)].to_vec())
            }
        };
        let mut changes = Vec::new();
        let mut of_page = PageChanges::default();
        for (delta, sense) in &spec.steps {
            delta.read_page(spec.direction, page, &mut of_page)?;
            for list in of_page.lists().filter(|list| usize::from(list.local) == local) {
                changes.push(ListChange {
                    from: delta.from(),
                    to: delta.to(),
                    is_backward: *sense == ApplyDirection::Backward,
                    added: list.added.targets.to_vec(),
                    removed: list.removed.targets.to_vec(),
                });
            }
        }
        let overlay = self.overlay_of(vertex).filter(|overlay| overlay.changes(vertex)).map(|overlay| {
            let mut added = Vec::new();
            let _ = overlay.overlay.for_each_added(overlay.direction, vertex, &mut |targets, _| {
                added.extend_from_slice(targets);
                ControlFlow::Continue(())
            });
            (added, overlay.overlay.removed(overlay.direction, vertex).into_owned())
        });
        let mut fragments = Vec::new();
        let _ = self.for_each_fragment(vertex, |fragment| {
            fragments.push(fragment.to_vec());
            ControlFlow::Continue(())
        });
        fragments.retain(|fragment| !fragment.is_empty());
        match self.shared.fault.get() {
            Some(fault) => Err(fault.clone().into()),
            None => Ok(ListOrigin { base, changes, overlay, fragments }),
        }
    }
}
