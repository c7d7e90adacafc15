//! Where one list of a view comes from: for people who want to see how a database stores a vertex.

use std::ops::ControlFlow;

use base::VertexId;

use super::{Sense, Show, Side};
use crate::Result;
use crate::changes::PageChanges;
use crate::table::{page_of, place_in_page};
use crate::view::View;

/// Where one list of a view comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOrigin {
    /// The list in the base run; `None` where the view shows only what levels add.
    pub base: Option<Vec<VertexId>>,
    /// What levels change in it, in the order in which they are applied.
    pub changes: Vec<ListChange>,
    /// What lies over it in memory, added and removed, each ascending; `None` where nothing does.
    pub overlay: Option<(Vec<VertexId>, Vec<VertexId>)>,
    /// The contiguous pieces that readers get.
    pub fragments: Vec<Vec<VertexId>>,
}

/// What a level changes in one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListChange {
    /// The snapshot that the level starts from.
    pub from: u32,
    /// The snapshot that it leads to.
    pub to: u32,
    /// Whether the base run is younger, so that the level is applied the other way round.
    pub is_backward: bool,
    /// What `to` has and `from` has not, ascending.
    pub added: Vec<VertexId>,
    /// What `from` has and `to` has not, ascending.
    pub removed: Vec<VertexId>,
}

impl View {
    /// Where the list of a vertex comes from; of an undirected graph, either side gives the same. Empty where there
    /// are no in-lists.
    ///
    /// Cost: the list, and all changes of its page in every level that the view is made of.
    ///
    /// # Errors
    /// The page is damaged.
    ///
    /// # Panics
    /// If `vertex` is not below the bound.
    pub fn list_origin(&self, vertex: VertexId, side: graph::Side) -> Result<ListOrigin> {
        let side = if self.options().direction == graph::Direction::Undirected { graph::Side::Out } else { side };
        self.side(side).map_or_else(|| Ok(ListOrigin::default()), |side| side.origin(vertex))
    }
}

impl Side {
    fn origin(&self, vertex: VertexId) -> Result<ListOrigin> {
        let recipe = &self.shared.recipe;
        let (page, local) = (page_of(vertex), place_in_page(vertex));
        let base = match recipe.show {
            Show::Additions => None,
            Show::Everything => {
                let ground = recipe.ground(page)?;
                Some(ground.targets[ground.list(local)].to_vec())
            }
        };
        let mut changes = Vec::new();
        let mut of_page = PageChanges::default();
        for (level, sense) in &recipe.steps {
            level.read_page(recipe.side, page, &mut of_page)?;
            for list in of_page.lists().filter(|list| usize::from(list.local) == local) {
                changes.push(ListChange {
                    from: level.from(),
                    to: level.to(),
                    is_backward: *sense == Sense::Backward,
                    added: list.added.targets.to_vec(),
                    removed: list.removed.targets.to_vec(),
                });
            }
        }
        let overlay = self.overlay_of(vertex).filter(|overlay| overlay.changes(vertex)).map(|overlay| {
            let mut added = Vec::new();
            let _ = overlay.overlay.for_each_added(overlay.side, vertex, &mut |targets, _| {
                added.extend_from_slice(targets);
                ControlFlow::Continue(())
            });
            (added, overlay.overlay.removed(overlay.side, vertex).into_owned())
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
