//! The graph as a transaction sees it, behind the seam: algorithms and queries run on it as on any view.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_graph::{Graph, GraphKind, Page, PrefetchStage, Weight, WeightType, WeightedEdges, WillNeed};
use anden_snapshots::{Direction, SnapshotView, without};

use super::OptimisticTransaction;
use super::own::OwnList;
use crate::validation::ReadKey;

/// The graph as a transaction sees it, with its own writes.
///
/// Each list that is read is noted: the transaction conflicts with commits that change the list. Asking which ids are
/// vertices ([`is_live`](Graph::is_live)), or for pages of them, conflicts with commits that add or remove a vertex.
/// The vertex bound alone is not noted. New vertices have provisional ids above those of the view;
/// [`OptimisticTransaction::key`] gives their keys.
#[derive(Clone, Copy, Debug)]
pub struct TransactionGraph<'a> {
    transaction: &'a OptimisticTransaction<'a>,
}

impl<'a> TransactionGraph<'a> {
    pub(super) fn new(transaction: &'a OptimisticTransaction<'a>) -> Self {
        Self { transaction }
    }

    fn view(&self) -> &'a SnapshotView {
        &self.transaction.view
    }

    /// Notes the read of a list. Returns its changes, and whether the view's list counts.
    fn read(&self, direction: Direction, vertex: VertexId) -> (OwnList<'a>, bool) {
        let OptimisticTransaction { view, own, .. } = self.transaction;
        self.transaction.note_list(direction, vertex);
        let is_in_view = (vertex as usize) < view.vertex_bound() && !own.is_gone(vertex);
        // An undirected graph has one list for both directions.
        let direction = if view.graph_kind() == GraphKind::Undirected { Direction::Out } else { direction };
        (own.list(direction, vertex), is_in_view)
    }

    /// Whether the view's list counts without exceptions.
    fn counts_whole(&self, own: OwnList<'_>) -> bool {
        // Any list of the view may lead to a removed vertex.
        self.transaction.own.num_gone() == 0 && own.is_unchanged()
    }

    /// The number of arcs, and of loops among them, that all out-lists have beyond those of the view; negative if they
    /// have fewer.
    fn difference(&self) -> (i64, i64) {
        let OptimisticTransaction { view, own, .. } = self.transaction;
        if !own.changes_lists() {
            return (0, 0);
        }
        let bound = view.vertex_bound() as VertexId;
        // A removed vertex may take arcs from any list.
        let mut lists: Vec<VertexId> = match own.num_gone() == 0 {
            true => own.changed_lists().collect(),
            false => (0..bound).chain(own.changed_lists().filter(|&list| list >= bound)).collect(),
        };
        lists.sort_unstable();
        lists.dedup();
        let (mut arcs, mut loops) = (0, 0);
        for list in lists {
            let mut count = |targets: &[VertexId], sign: i64| {
                arcs += sign * targets.len() as i64;
                loops += sign * targets.iter().filter(|&&target| target == list).count() as i64;
                ControlFlow::Continue(())
            };
            let _ = self.for_each_fragment(Direction::Out, list, |targets| count(targets, 1));
            if list < bound {
                let _ = view.for_each_fragment(Direction::Out, list, |targets| count(targets, -1));
            }
        }
        (arcs, loops)
    }
}

impl WillNeed for TransactionGraph<'_> {
    fn prefetch(&self, direction: Direction, stage: PrefetchStage, vertex: VertexId) {
        // The view has no list of a vertex that was made here.
        if (vertex as usize) < self.view().vertex_bound() {
            self.view().prefetch(direction, stage, vertex);
        }
    }
}

impl Graph for TransactionGraph<'_> {
    type Offset = u32;

    fn vertex_bound(&self) -> usize {
        self.transaction.own.vertex_bound
    }

    /// Cost: linear in the written vertices.
    fn num_vertices(&self) -> usize {
        let OptimisticTransaction { view, own, .. } = self.transaction;
        self.transaction.note(ReadKey::Vertices);
        // New vertices count as alive here; the states correct those that were removed again.
        let new = own.vertex_bound - own.first_new;
        let was_live = |vertex: VertexId| vertex as usize >= own.first_new || view.is_live(vertex);
        let change = |(&vertex, &is_live): (&VertexId, &bool)| i64::from(is_live) - i64::from(was_live(vertex));
        let changed: i64 = own.states.iter().map(change).sum();
        (view.num_vertices() + new).saturating_add_signed(changed as isize)
    }

    /// Cost: reads the written lists; after a removal of a vertex, all lists.
    fn num_edges(&self) -> u64 {
        self.transaction.note(ReadKey::Edges);
        let (arcs, loops) = self.difference();
        let change = match self.graph_kind() {
            GraphKind::Directed => arcs,
            // A loop is one arc, any other undirected edge two.
            GraphKind::Undirected => (arcs + loops) / 2,
        };
        self.view().num_edges().saturating_add_signed(change)
    }

    /// As [`num_edges`](Graph::num_edges).
    fn num_arcs(&self) -> u64 {
        self.transaction.note(ReadKey::Edges);
        self.view().num_arcs().saturating_add_signed(self.difference().0)
    }

    fn graph_kind(&self) -> GraphKind {
        self.view().graph_kind()
    }

    fn is_multigraph(&self) -> bool {
        self.view().is_multigraph()
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        self.transaction.note(ReadKey::Vertices);
        self.transaction.is_live(vertex)
    }

    fn has_vertex(&self, vertex: VertexId) -> bool {
        self.transaction.note_existence(vertex);
        self.transaction.is_live(vertex)
    }

    fn has_lists(&self, direction: Direction) -> bool {
        self.view().has_lists(direction)
    }

    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        let (own, is_in_view) = self.read(direction, vertex);
        let view = self.view();
        if self.counts_whole(own) {
            return if is_in_view { view.degree(direction, vertex) } else { 0 };
        }
        let mut degree = 0;
        let _ = self.for_each_fragment(direction, vertex, |targets| {
            degree += targets.len();
            ControlFlow::Continue(())
        });
        degree
    }

    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (own, is_in_view) = self.read(direction, vertex);
        let view = self.view();
        if is_in_view {
            let counts_whole = self.counts_whole(own);
            let kept = |targets: &[VertexId]| match counts_whole {
                true => body(targets),
                false => {
                    let hidden = self.transaction.own.hidden(own, targets, view.options());
                    without(targets, &hidden, |kept| body(&targets[kept]))
                }
            };
            view.for_each_fragment(direction, vertex, kept)?;
        }
        // The own additions come last, as a fragment of their own.
        own.for_each_chunk(|targets, _| body(targets))
    }

    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.transaction.note(ReadKey::Vertices);
        match self.has_lists(direction) {
            // Each list must be read one by one, so that its read is noted.
            true => body(Page::Patched(vertices)),
            false => body(Page::Empty(vertices)),
        }
    }

    fn check(&self) -> anden_base::Result<()> {
        self.view().check()
    }
}

impl WeightedEdges for TransactionGraph<'_> {
    fn weight_type(&self) -> Option<WeightType> {
        self.view().weight_type()
    }

    fn for_each_weighted_fragment<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.weight_type() != Some(W::TYPE) {
            return ControlFlow::Continue(());
        }
        let (own, is_in_view) = self.read(direction, vertex);
        let view = self.view();
        if is_in_view {
            let counts_whole = self.counts_whole(own);
            let kept = |targets: &[VertexId], weights: &[W]| match counts_whole {
                true => body(targets, weights),
                false => {
                    let hidden = self.transaction.own.hidden(own, targets, view.options());
                    without(targets, &hidden, |kept| body(&targets[kept.clone()], &weights[kept]))
                }
            };
            view.for_each_weighted_fragment(direction, vertex, kept)?;
        }
        let mut weights = Vec::new();
        own.for_each_chunk(|targets, bits| {
            weights.clear();
            weights.extend(bits.iter().map(|&bits| W::of_bits(bits)));
            body(targets, &weights)
        })
    }
}
