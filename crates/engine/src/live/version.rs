//! One version of the memtable: the overlay over the snapshot at an epoch.
//!
//! While a version is being written as a snapshot it is *immutable*, and later versions hold the differences from it.
//! Both together lie over the snapshot. Tombstones of the newer one hide additions of the immutable one; additions of the
//! newer one are one more fragment.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::GraphKind;
use anden_memtable::AdjacencyTable;
use anden_snapshots::{
    Added, AddedFragment, ArcData, ChangedPart, ChangedPartBody, Direction, DirtyPageLists, Key, KeyRef, ListChanges,
    Overlay, OverlayBase, PropertyOverlay, RowOverlay, SnapshotView, without,
};

use super::delta::MemtableArcsVersion;
use super::keys::NewKeys;
use super::properties::LiveProperties;
use super::rows::RowVersion;
use super::update::Applied;
use super::vertices::VertexHistory;

/// The overlay over the snapshot at an epoch.
#[derive(Clone, Debug)]
pub(crate) struct LiveVersion {
    pub(crate) epoch: u64,
    pub(crate) overlay_base: Arc<OverlayBase>,
    /// The immutable memtable, between the snapshot and the rest of this version; it has none below it.
    pub(crate) immutable: Option<Arc<LiveVersion>>,
    pub(crate) delta: MemtableArcsVersion,
    pub(crate) keys: Arc<NewKeys>,
    pub(crate) vertices: Arc<VertexHistory>,
    pub(crate) properties: LiveProperties,
    pub(crate) edges: RowVersion,
    pub(crate) vertex_bound: usize,
    pub(crate) num_vertices: usize,
}

impl LiveVersion {
    /// The graph at this version.
    pub(crate) fn view(self: &Arc<Self>) -> SnapshotView {
        self.overlay_base.overlaid(Arc::clone(self) as Arc<dyn Overlay>)
    }

    /// The state after the batch of this version.
    pub(crate) fn applied(&self) -> Applied {
        Applied { epoch: self.epoch, vertices: self.num_vertices as u64, edges: self.num_edges() }
    }

    /// Edges in an adjacency table of out-lists; an undirected edge counts once.
    pub(crate) fn num_edges_of(&self, adjacency_table: AdjacencyTable) -> u64 {
        let num_arcs = self.delta.num_arcs(adjacency_table);
        match self.snapshot().options().graph_kind {
            GraphKind::Directed => num_arcs,
            // A loop is one arc, any other edge two.
            GraphKind::Undirected => (num_arcs + self.delta.num_loops(adjacency_table)) / 2,
        }
    }

    /// The snapshot below.
    pub(crate) fn snapshot(&self) -> &SnapshotView {
        self.overlay_base.view()
    }

    /// The row and weight of an edge; `below` are those in the snapshot. `None` if the edge does not exist.
    pub(crate) fn data_over(&self, source: VertexId, target: VertexId, below: Option<ArcData>) -> Option<ArcData> {
        // The tables of this version end at its bound.
        if source as usize >= self.vertex_bound {
            return below;
        }
        let options = self.snapshot().options();
        let below = self.immutable.as_ref().map_or(below, |immutable| immutable.data_over(source, target, below));
        if let Some(data) = self.delta.data(AdjacencyTable::Out, source, target, options) {
            return Some(data);
        }
        below.filter(|_| self.delta.data(AdjacencyTable::OutRemoved, source, target, options).is_none())
    }

    /// Turns the snapshot's edges from one vertex to another into those of this version.
    pub(crate) fn lay_edges_over(&self, source: VertexId, target: VertexId, edges: &mut Vec<ArcData>) {
        if source as usize >= self.vertex_bound {
            return;
        }
        if let Some(immutable) = &self.immutable {
            immutable.lay_edges_over(source, target, edges);
        }
        // All edges of a pair are removed together.
        let mut is_removed = false;
        let options = self.snapshot().options();
        self.delta.for_each_parallel(AdjacencyTable::OutRemoved, (source, target), options, |_| is_removed = true);
        if is_removed {
            edges.clear();
        }
        self.delta.for_each_parallel(AdjacencyTable::Out, (source, target), options, |data| edges.push(data));
    }

    /// Marks in `next` the lists that this version changes, without the immutable memtable. `overlay_base` knows them,
    /// and perhaps more.
    pub(crate) fn mark_changed(&self, overlay_base: &OverlayBase, next: &OverlayBase, directions: &[Direction]) {
        for &direction in directions {
            // Commits meanwhile may mark vertices beyond this version's bound as dirty.
            for vertex in overlay_base.dirty(direction).filter(|&vertex| (vertex as usize) < self.vertex_bound) {
                match self.delta.removed(direction, vertex).first() {
                    Some(&first) => next.mark_tombstoned(direction, vertex, first),
                    None if self.delta.num_changes(direction, vertex).added > 0 => next.mark_dirty(direction, vertex),
                    None => {}
                }
            }
        }
    }

    /// The immutable memtable, if it may know `vertex`.
    fn immutable_of(&self, vertex: VertexId) -> Option<&Self> {
        self.immutable.as_deref().filter(|immutable| (vertex as usize) < immutable.vertex_bound)
    }
}

impl Overlay for LiveVersion {
    fn vertex_bound(&self) -> usize {
        self.vertex_bound
    }

    fn num_vertices(&self) -> usize {
        self.num_vertices
    }

    fn num_edges(&self) -> u64 {
        let below =
            self.immutable.as_ref().map_or_else(|| anden_graph::Graph::num_edges(self.snapshot()), |f| f.num_edges());
        below + self.num_edges_of(AdjacencyTable::Out) - self.num_edges_of(AdjacencyTable::OutRemoved)
    }

    fn num_arcs(&self) -> u64 {
        let below =
            self.immutable.as_ref().map_or_else(|| anden_graph::Graph::num_arcs(self.snapshot()), |f| f.num_arcs());
        below + self.delta.num_arcs(AdjacencyTable::Out) - self.delta.num_arcs(AdjacencyTable::OutRemoved)
    }

    fn is_live(&self, vertex: VertexId) -> Option<bool> {
        let immutable = || self.immutable.as_ref().and_then(|immutable| immutable.is_live(vertex));
        self.vertices.is_live(vertex, self.epoch).or_else(immutable)
    }

    fn vertex(&self, key: &Key) -> Option<VertexId> {
        let new = self.keys.id(key).filter(|&id| (id as usize) < self.vertex_bound);
        new.or_else(|| self.immutable.as_ref().and_then(|immutable| immutable.vertex(key)))
    }

    fn key(&self, vertex: VertexId) -> Option<KeyRef<'_>> {
        self.keys.key(vertex).or_else(|| self.immutable.as_ref().and_then(|immutable| immutable.key(vertex)))
    }

    fn properties(&self) -> Option<&dyn PropertyOverlay> {
        Some(self)
    }

    fn rows(&self) -> Option<&dyn RowOverlay> {
        self.snapshot().options().has_rows().then_some(self as &dyn RowOverlay)
    }

    fn num_changes(&self, direction: Direction, vertex: VertexId) -> ListChanges {
        let mut changes = self.delta.num_changes(direction, vertex);
        if let Some(immutable) = self.immutable_of(vertex) {
            let below = immutable.delta.num_changes(direction, vertex);
            changes.removed += below.removed;
            changes.added += below.added;
        }
        changes
    }

    fn removed(&self, direction: Direction, vertex: VertexId) -> Cow<'_, [VertexId]> {
        let removed = self.delta.removed(direction, vertex);
        match self.immutable_of(vertex) {
            None => removed,
            Some(immutable) => union(immutable.delta.removed(direction, vertex), removed),
        }
    }

    fn for_each_added(&self, direction: Direction, vertex: VertexId, body: &mut AddedFragment<'_>) -> ControlFlow<()> {
        if let Some(immutable) = self.immutable_of(vertex) {
            // Tombstones of the memtable hide additions of the immutable one.
            let gone = self.delta.removed(direction, vertex);
            immutable.delta.for_each_added(direction, vertex, &mut |targets, weights| {
                // An empty fragment has no width.
                let width = weights.len() / targets.len().max(1);
                without(targets, &gone, |kept| {
                    body(&targets[kept.clone()], &weights[kept.start * width..kept.end * width])
                })
            })?;
        }
        self.delta.for_each_added(direction, vertex, body)
    }

    fn changes(&self, direction: Direction, vertex: VertexId) -> (Cow<'_, [VertexId]>, Option<Added<'_>>) {
        match self.immutable_of(vertex) {
            None => self.delta.changes(direction, vertex),
            // With an immutable memtable, the additions may be two fragments.
            Some(_) => (self.removed(direction, vertex), None),
        }
    }

    fn added(&self, direction: Direction, vertex: VertexId) -> Option<Added<'_>> {
        // With an immutable memtable, the additions may be two fragments.
        if self.immutable_of(vertex).is_some() { None } else { self.delta.added(direction, vertex) }
    }

    fn for_each_change(&self, direction: Direction, lists: &DirtyPageLists, body: &mut ChangedPartBody<'_>) {
        match self.immutable {
            None => self.delta.for_each_change(direction, lists, body),
            Some(_) => {
                for vertex in lists.wanted.vertices() {
                    if lists.gaining.contains(vertex)
                        || body(vertex, ChangedPart::Removed(&self.removed(direction, vertex))).is_continue()
                    {
                        let mut give =
                            |targets: &[_], weights: &[_]| body(vertex, ChangedPart::Added(targets, weights));
                        let _ = self.for_each_added(direction, vertex, &mut give);
                    }
                }
            }
        }
    }

    fn prefetch(&self, direction: Direction, vertex: VertexId) {
        self.delta.prefetch(direction, vertex);
    }

    fn prefetch_place(&self, direction: Direction, vertex: VertexId, has_tombstones: bool) {
        self.delta.prefetch_place(direction, vertex, has_tombstones);
    }

    fn prefetch_list(&self, direction: Direction, vertex: VertexId, has_tombstones: bool) {
        self.delta.prefetch_list(direction, vertex, has_tombstones);
    }
}

/// The union of two ascending lists, each entry once.
fn union<'a>(first: Cow<'a, [VertexId]>, second: Cow<'a, [VertexId]>) -> Cow<'a, [VertexId]> {
    // An empty side needs no copy.
    if second.is_empty() {
        return first;
    }
    if first.is_empty() {
        return second;
    }
    let mut all = [first, second].concat();
    all.sort_unstable();
    all.dedup();
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_has_everything_once() {
        let of = |first: &[VertexId], second: &[VertexId]| union(first.into(), second.into()).into_owned();
        assert_eq!(of(&[2, 5, 9], &[1, 5, 10]), [1, 2, 5, 9, 10]);
        assert_eq!(of(&[], &[1, 5]), [1, 5]);
        assert_eq!(of(&[3], &[]), [3]);
    }
}
