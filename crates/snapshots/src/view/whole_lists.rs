//! All lists of a view as one slice, without a copy.

use anden_base::VertexId;
use anden_base::mapped::MappedSlice;
use anden_graph::{Direction, Weights};

use super::SnapshotView;
use crate::Result;

/// All lists of one direction, one after the other in the order of ids. Clones share the mapped files, which stay
/// mapped while a clone exists.
#[derive(Clone, Debug)]
pub struct WholeLists {
    /// The neighbors.
    pub targets: MappedSlice<VertexId>,
    /// The weights, parallel to them; `None` in a graph without weights.
    pub weights: Option<Weights>,
}

impl SnapshotView {
    /// The lists of one direction where they are stored; `None` if they lie in several places, because deltas or
    /// changes in memory add to the base, or if the view has no such lists.
    ///
    /// Cost: verifies all pages that were not read before.
    ///
    /// # Errors
    /// A page is damaged.
    pub fn whole_lists(&self, direction: Direction) -> Result<Option<WholeLists>> {
        let Some(adjacency) = self.lists_of(direction).filter(|lists| !lists.has_deltas()) else { return Ok(None) };
        let Some(base) = adjacency.base_lists() else { return Ok(None) };
        let (targets, mut num_before) = (base.targets(), 0);
        for page in 0..adjacency.num_pages() {
            // A page without one slice is empty, or else the count below is short.
            let Some(lists) = adjacency.page_in_one_slice(page)? else { continue };
            if lists.edge_base != num_before || lists.targets.as_ptr() != targets[num_before..].as_ptr() {
                return Ok(None);
            }
            num_before += lists.targets.len();
        }
        let is_whole = num_before == targets.len() && num_before as u64 == self.shared.num_arcs && !self.is_overlaid();
        Ok(is_whole.then(|| WholeLists { targets: targets.clone(), weights: base.columns().weights.clone() }))
    }
}
