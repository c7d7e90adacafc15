//! The changes that lead from the first snapshot of a load to the others, kept in memory until the base is written.

use anden_base::VertexId;
use anden_base::progress::Progress;
use anden_graph::GraphKind;
use anden_snapshots::{ArcData, ChangedArc, DeltaChanges, Direction, FinishedDeltas, StoreBuilder};
use parking_lot::{Mutex, MutexGuard};

use super::budget::LoadBudget;
use crate::Result;

/// Memory of an arc without and with a weight or a row; vectors may have twice the capacity that they use. Writing a
/// snapshot takes 32 or 40 bytes more for each of its arcs, from the memory in which edges were sorted before.
const ARC_BYTES: u64 = 20;
const DATA_ARC_BYTES: u64 = 48;

/// The changes of all snapshots but the first.
pub(crate) struct LaterArcs {
    is_undirected: bool,
    /// Whether arcs have data.
    has_data: bool,
    budget: LoadBudget,
    out_adjacency: Mutex<ChangedLists>,
    in_adjacency: Mutex<ChangedLists>,
}

/// The changes of one direction.
#[derive(Debug, Default)]
pub(crate) struct ChangedLists {
    /// For each snapshot from the second on.
    deltas: Vec<LaterDelta>,
    num_arcs: u64,
}

/// The changes of one snapshot.
#[derive(Debug, Default)]
struct LaterDelta {
    added: KeptArcs,
    removed: KeptArcs,
}

#[derive(Debug, Default)]
struct KeptArcs {
    /// List and neighbor.
    keys: Vec<u64>,
    /// The data beside the arcs; empty if there is none.
    data: Vec<ArcData>,
    num_loops: u64,
}

/// The vertices of each snapshot.
#[derive(Debug)]
pub(crate) struct LaterVertices {
    /// By snapshot: the vertex bound. They ascend.
    pub(crate) bounds: Vec<usize>,
    /// By snapshot: the vertices below the bound of the snapshot before that are no vertices there, ascending.
    pub(crate) returned: Vec<Vec<VertexId>>,
}

impl LaterVertices {
    /// The same vertices in all snapshots.
    pub(crate) fn constant(num_snapshots: usize, vertex_bound: usize) -> Self {
        Self { bounds: vec![vertex_bound; num_snapshots], returned: vec![Vec::new(); num_snapshots] }
    }
}

impl LaterArcs {
    pub(crate) fn new(graph_kind: GraphKind, data_bytes: usize, budget: LoadBudget) -> Self {
        Self {
            is_undirected: graph_kind == GraphKind::Undirected,
            has_data: data_bytes > 0,
            budget,
            out_adjacency: Mutex::default(),
            in_adjacency: Mutex::default(),
        }
    }

    pub(crate) fn is_undirected(&self) -> bool {
        self.is_undirected
    }

    pub(crate) fn lock(&self, direction: Direction) -> MutexGuard<'_, ChangedLists> {
        match direction {
            Direction::Out => self.out_adjacency.lock(),
            Direction::In => self.in_adjacency.lock(),
        }
    }

    /// Checks that the changes fit in memory, beside `num_bytes` of what decides about them. `lists` are those of the
    /// direction that grows.
    pub(crate) fn check(&self, lists: &ChangedLists, num_bytes: u64) -> Result<()> {
        // `try_lock` fails for the locked direction, which is `lists`.
        let others = [&self.out_adjacency, &self.in_adjacency].map(|other| other.try_lock().map_or(0, |o| o.num_arcs));
        let arc_bytes = if self.has_data { DATA_ARC_BYTES } else { ARC_BYTES };
        let num_bytes = num_bytes + arc_bytes * (others.iter().sum::<u64>() + lists.num_arcs);
        self.budget.check("the edges of all snapshots but the first, which must be in memory,", num_bytes)
    }

    pub(crate) fn budget(&self) -> &LoadBudget {
        &self.budget
    }

    /// Writes the deltas of all snapshots but the first.
    pub(crate) fn write(
        self,
        builder: &StoreBuilder,
        vertices: &LaterVertices,
        progress: &dyn Progress,
    ) -> Result<FinishedDeltas> {
        let num_snapshots = vertices.bounds.len();
        progress.stage("write snapshots", Some(num_snapshots as u64 - 1));
        let mut writer = builder.deltas_writer(vertices.bounds[0]);
        let [mut out_deltas, mut in_deltas] =
            [self.out_adjacency, self.in_adjacency].map(|lists| lists.into_inner().deltas.into_iter());
        for snapshot in 1..num_snapshots {
            progress.check()?;
            // The last snapshots may change no lists.
            let (out_delta, in_delta) = (out_deltas.next().unwrap_or_default(), in_deltas.next().unwrap_or_default());
            let num_edges = |arcs: &KeptArcs| match self.is_undirected {
                true => (arcs.keys.len() as u64 + arcs.num_loops) / 2,
                false => arcs.keys.len() as u64,
            };
            let (num_edges_added, num_edges_removed) = (num_edges(&out_delta.added), num_edges(&out_delta.removed));
            let [out_added, out_removed] = [out_delta.added, out_delta.removed].map(KeptArcs::into_arcs);
            let [in_added, in_removed] = [in_delta.added, in_delta.removed].map(KeptArcs::into_arcs);
            writer.append(&DeltaChanges {
                vertex_bound: vertices.bounds[snapshot],
                returned: &vertices.returned[snapshot],
                out_added: &out_added,
                out_removed: &out_removed,
                in_added: &in_added,
                in_removed: &in_removed,
                num_edges_added,
                num_edges_removed,
                ..DeltaChanges::default()
            })?;
            progress.advance(1);
        }
        Ok(writer.finish()?)
    }
}

impl ChangedLists {
    /// Adds an arc in a snapshot, counted from 0. The first snapshot needs no changes. `key` holds list and neighbor.
    pub(crate) fn add(&mut self, snapshot: usize, key: u64, data: Option<ArcData>) {
        if let Some(delta) = self.delta(snapshot) {
            delta.added.push(key, data);
            self.num_arcs += 1;
        }
    }

    /// Removes an arc in a snapshot.
    pub(crate) fn remove(&mut self, snapshot: usize, key: u64, data: Option<ArcData>) {
        if let Some(delta) = self.delta(snapshot) {
            delta.removed.push(key, data);
            self.num_arcs += 1;
        }
    }

    /// The number of changed arcs.
    pub(crate) fn num_arcs(&self) -> u64 {
        self.num_arcs
    }

    fn delta(&mut self, snapshot: usize) -> Option<&mut LaterDelta> {
        let place = snapshot.checked_sub(1)?;
        if self.deltas.len() <= place {
            self.deltas.resize_with(place + 1, LaterDelta::default);
        }
        self.deltas.get_mut(place)
    }
}

impl KeptArcs {
    fn push(&mut self, key: u64, data: Option<ArcData>) {
        self.keys.push(key);
        self.data.extend(data);
        // A loop leads from a list to its own vertex.
        self.num_loops += u64::from(key.rotate_left(32) == key);
    }

    /// The arcs, sorted.
    fn into_arcs(self) -> Vec<ChangedArc> {
        let arc = |(i, &key): (usize, &u64)| ChangedArc {
            list: (key >> 32) as VertexId,
            neighbor: key as VertexId,
            data: self.data.get(i).copied().unwrap_or_default(),
        };
        let mut arcs: Vec<_> = self.keys.iter().enumerate().map(arc).collect();
        // They come by list and neighbor, but parallel edges in any order.
        arcs.sort_unstable();
        arcs
    }
}

#[cfg(test)]
impl LaterArcs {
    /// The additions to the out-lists, by snapshot from the second on.
    pub(crate) fn into_added(self) -> Vec<Vec<ChangedArc>> {
        self.out_adjacency.into_inner().deltas.into_iter().map(|delta| delta.added.into_arcs()).collect()
    }
}
