//! Snapshots as steps of the change feed: the net changes from the epoch of one to the epoch of the next.

use std::path::PathBuf;
use std::sync::Arc;

use super::{EdgeChanges, PublishedState, SnapshotDiff, Store};
use crate::Result;
use crate::view::SnapshotView;

/// The snapshots of one moment, held: they can be read although a writer drops them.
#[derive(Clone, Debug)]
pub struct SnapshotSteps {
    state: Arc<PublishedState>,
    path: PathBuf,
}

/// The net changes from one epoch to a later one, which both have snapshots.
#[derive(Debug)]
pub struct SnapshotStep {
    /// The epoch to which the changes lead.
    pub epoch: u64,
    /// The number of the next row at this epoch. Rows that no edge has any more leave gaps below it.
    pub next_row: u64,
    /// Numbers of the properties of vertices and of edges before the changes. Later ones are new.
    pub num_properties: [usize; 2],
    /// Changes of vertices and of their values.
    pub vertices: SnapshotDiff,
    /// Changes of edges.
    pub edges: EdgeChanges,
    /// The graph after the changes.
    pub view: SnapshotView,
}

impl Store {
    /// Holds the snapshots of this moment.
    pub fn steps(&self) -> SnapshotSteps {
        SnapshotSteps { state: self.state(), path: self.path.clone() }
    }
}

impl SnapshotSteps {
    /// The epochs of the snapshots, ascending. Some may be there twice.
    pub fn epochs(&self) -> impl Iterator<Item = u64> {
        self.state.manifest.chain.kept().map(|version| version.epoch)
    }

    /// The step from the snapshot of the epoch `since` to the next younger one, or to the newest version if that was
    /// dropped. `None` if no snapshot has this epoch, or no later one exists.
    ///
    /// Cost: reads the changes of vertices. Those of edges are read by the caller.
    ///
    /// # Errors
    /// A delta is damaged.
    pub fn after(&self, since: u64) -> Result<Option<SnapshotStep>> {
        let (state, chain) = (&self.state, &self.state.manifest.chain);
        let Some((from, to)) = chain.step_after(since) else { return Ok(None) };
        let Some(end) = chain.version(to) else { return Ok(None) };
        // Properties are only added, so those of the earlier version come first.
        let num_known = |since: &mut dyn Iterator<Item = u32>| since.filter(|&since| since <= from).count();
        let manifest = &state.manifest;
        let num_properties = [
            num_known(&mut manifest.properties.iter().map(|record| record.since)),
            num_known(&mut manifest.edge_properties.iter().map(|record| record.since)),
        ];
        Ok(Some(SnapshotStep {
            epoch: end.epoch,
            next_row: end.next_row,
            num_properties,
            vertices: state.vertex_diff(from, to)?,
            edges: EdgeChanges::between(state, from, to)?,
            view: state.view(to, &self.path)?,
        }))
    }
}
