//! One version of a live graph: what lies over the snapshot at an epoch.
//!
//! While a version is written as a snapshot it is *frozen*, and those that follow it hold what differs from it: the
//! two together are what lies over the snapshot. What the newer one removes is cut from what the frozen one adds,
//! and what it adds is one more piece of a list.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use base::VertexId;
use graph::Direction;
use lama::{
    Added, AddedPiece, ArcData, ChangedPart, ChangedPartBody, Key, KeyRef, ListChanges, Overlay, PropertyOverlay,
    RowOverlay, Side, TouchedLists, Underlay, View, without,
};
use terrace::Plane;

use super::delta::DeltaVersion;
use super::keys::NewKeys;
use super::properties::LiveProperties;
use super::rows::RowVersion;
use super::update::Applied;
use super::vertices::VertexHistory;

/// What lies over the snapshot at an epoch.
#[derive(Clone, Debug)]
pub(crate) struct LiveVersion {
    pub(crate) epoch: u64,
    pub(crate) underlay: Arc<Underlay>,
    /// What lies between the snapshot and everything else here; over it there is no other.
    pub(crate) frozen: Option<Arc<LiveVersion>>,
    pub(crate) delta: DeltaVersion,
    pub(crate) keys: Arc<NewKeys>,
    pub(crate) vertices: Arc<VertexHistory>,
    pub(crate) properties: LiveProperties,
    pub(crate) edges: RowVersion,
    pub(crate) vertex_bound: usize,
    pub(crate) num_vertices: usize,
}

impl LiveVersion {
    /// The graph at this version.
    pub(crate) fn view(self: &Arc<Self>) -> View {
        self.underlay.overlaid(Arc::clone(self) as Arc<dyn Overlay>)
    }

    /// What the batch that made it left.
    pub(crate) fn applied(&self) -> Applied {
        Applied { epoch: self.epoch, vertices: self.num_vertices as u64, edges: self.num_edges() }
    }

    /// Edges that a plane of out-lists holds; of an undirected graph, each counted once.
    pub(crate) fn num_edges_of(&self, plane: Plane) -> u64 {
        let num_arcs = self.delta.num_arcs(plane);
        match self.snapshot().options().direction {
            Direction::Directed => num_arcs,
            Direction::Undirected => (num_arcs + self.delta.num_loops(plane)) / 2,
        }
    }

    /// The snapshot that it lies over.
    pub(crate) fn snapshot(&self) -> &View {
        self.underlay.view()
    }

    /// What stands beside an edge, beside which `below` stands in the snapshot; `None` where it is not there.
    pub(crate) fn data_over(&self, source: VertexId, target: VertexId, below: Option<ArcData>) -> Option<ArcData> {
        if source as usize >= self.vertex_bound {
            return below;
        }
        let options = self.snapshot().options();
        let below = self.frozen.as_ref().map_or(below, |frozen| frozen.data_over(source, target, below));
        if let Some(data) = self.delta.data(Plane::Out, source, target, options) {
            return Some(data);
        }
        below.filter(|_| self.delta.data(Plane::OutRemoved, source, target, options).is_none())
    }

    /// Makes of the edges that the snapshot has from one vertex to another those of this version.
    pub(crate) fn lay_edges_over(&self, source: VertexId, target: VertexId, edges: &mut Vec<ArcData>) {
        if source as usize >= self.vertex_bound {
            return;
        }
        if let Some(frozen) = &self.frozen {
            frozen.lay_edges_over(source, target, edges);
        }
        // Those of a pair are removed together.
        let mut is_removed = false;
        let options = self.snapshot().options();
        self.delta.for_each_parallel(Plane::OutRemoved, (source, target), options, |_| is_removed = true);
        if is_removed {
            edges.clear();
        }
        self.delta.for_each_parallel(Plane::Out, (source, target), options, |data| edges.push(data));
    }

    /// Marks in `next` the lists that the changes of this version, without those of the frozen one, touch: `underlay`
    /// knows them, and perhaps others.
    pub(crate) fn touch_changed(&self, underlay: &Underlay, next: &Underlay, sides: &[Side]) {
        for &side in sides {
            for vertex in underlay.touched(side).filter(|&vertex| (vertex as usize) < self.vertex_bound) {
                match self.delta.removed(side, vertex).first() {
                    Some(&first) => next.cut(side, vertex, first),
                    None if self.delta.num_changes(side, vertex).added > 0 => next.touch(side, vertex),
                    None => {}
                }
            }
        }
    }

    /// The frozen version, where it may know something of `vertex`.
    fn frozen_of(&self, vertex: VertexId) -> Option<&Self> {
        self.frozen.as_deref().filter(|frozen| (vertex as usize) < frozen.vertex_bound)
    }
}

impl Overlay for LiveVersion {
    fn below(&self) -> Option<&View> {
        Some(self.snapshot())
    }

    fn vertex_bound(&self) -> usize {
        self.vertex_bound
    }

    fn num_vertices(&self) -> usize {
        self.num_vertices
    }

    fn num_edges(&self) -> u64 {
        let below = self.frozen.as_ref().map_or_else(|| graph::Graph::num_edges(self.snapshot()), |f| f.num_edges());
        below + self.num_edges_of(Plane::Out) - self.num_edges_of(Plane::OutRemoved)
    }

    fn num_arcs(&self) -> u64 {
        let below = self.frozen.as_ref().map_or_else(|| graph::Graph::num_arcs(self.snapshot()), |f| f.num_arcs());
        below + self.delta.num_arcs(Plane::Out) - self.delta.num_arcs(Plane::OutRemoved)
    }

    fn is_live(&self, vertex: VertexId) -> Option<bool> {
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.is_live(vertex));
        self.vertices.is_live(vertex, self.epoch).or_else(frozen)
    }

    fn vertex(&self, key: &Key) -> Option<VertexId> {
        let new = self.keys.id(key).filter(|&id| (id as usize) < self.vertex_bound);
        new.or_else(|| self.frozen.as_ref().and_then(|frozen| frozen.vertex(key)))
    }

    fn key(&self, vertex: VertexId) -> Option<KeyRef<'_>> {
        self.keys.key(vertex).or_else(|| self.frozen.as_ref().and_then(|frozen| frozen.key(vertex)))
    }

    fn properties(&self) -> Option<&dyn PropertyOverlay> {
        Some(self)
    }

    fn rows(&self) -> Option<&dyn RowOverlay> {
        self.snapshot().options().has_rows().then_some(self as &dyn RowOverlay)
    }

    fn num_changes(&self, side: Side, vertex: VertexId) -> ListChanges {
        let mut changes = self.delta.num_changes(side, vertex);
        if let Some(frozen) = self.frozen_of(vertex) {
            let below = frozen.delta.num_changes(side, vertex);
            changes.removed += below.removed;
            changes.added += below.added;
        }
        changes
    }

    fn removed(&self, side: Side, vertex: VertexId) -> Cow<'_, [VertexId]> {
        let removed = self.delta.removed(side, vertex);
        match self.frozen_of(vertex) {
            None => removed,
            Some(frozen) => union(frozen.delta.removed(side, vertex), removed),
        }
    }

    fn for_each_added(&self, side: Side, vertex: VertexId, body: &mut AddedPiece<'_>) -> ControlFlow<()> {
        if let Some(frozen) = self.frozen_of(vertex) {
            let gone = self.delta.removed(side, vertex);
            frozen.delta.for_each_added(side, vertex, &mut |targets, weights| {
                let width = weights.len() / targets.len().max(1);
                without(targets, &gone, |kept| {
                    body(&targets[kept.clone()], &weights[kept.start * width..kept.end * width])
                })
            })?;
        }
        self.delta.for_each_added(side, vertex, body)
    }

    fn changes(&self, side: Side, vertex: VertexId) -> (Cow<'_, [VertexId]>, Option<Added<'_>>) {
        match self.frozen_of(vertex) {
            None => self.delta.changes(side, vertex),
            Some(_) => (self.removed(side, vertex), None),
        }
    }

    fn added(&self, side: Side, vertex: VertexId) -> Option<Added<'_>> {
        if self.frozen_of(vertex).is_some() { None } else { self.delta.added(side, vertex) }
    }

    fn for_each_change(&self, side: Side, lists: &TouchedLists, body: &mut ChangedPartBody<'_>) {
        match self.frozen {
            None => self.delta.for_each_change(side, lists, body),
            Some(_) => {
                for vertex in lists.wanted.vertices() {
                    if lists.gaining.contains(vertex)
                        || body(vertex, ChangedPart::Removed(&self.removed(side, vertex))).is_continue()
                    {
                        let mut give =
                            |targets: &[_], weights: &[_]| body(vertex, ChangedPart::Added(targets, weights));
                        let _ = self.for_each_added(side, vertex, &mut give);
                    }
                }
            }
        }
    }

    fn prefetch(&self, side: Side, vertex: VertexId) {
        self.delta.prefetch(side, vertex);
    }

    fn prefetch_place(&self, side: Side, vertex: VertexId, is_cut: bool) {
        self.delta.prefetch_place(side, vertex, is_cut);
    }

    fn prefetch_list(&self, side: Side, vertex: VertexId, is_cut: bool) {
        self.delta.prefetch_list(side, vertex, is_cut);
    }
}

/// All entries of two ascending lists, each once.
fn union<'a>(first: Cow<'a, [VertexId]>, second: Cow<'a, [VertexId]>) -> Cow<'a, [VertexId]> {
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
