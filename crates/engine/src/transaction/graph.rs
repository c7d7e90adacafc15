//! The graph as a transaction sees it, behind the seam: algorithms and questions run on it as on any view.

use std::ops::{ControlFlow, Range};

use base::VertexId;
use graph::{Direction, Graph, InEdges, Page, Parts, Weight, WeightType, WeightedEdges, WillNeed};
use lama::{Side, View, without};

use super::Transaction;
use super::own::OwnList;
use crate::validation::ReadKey;

/// The graph as a transaction sees it, with what it wrote.
///
/// Every list that is read is noted: the transaction conflicts with who changes it, and where it was asked which ids are
/// vertices ([`is_live`](Graph::is_live)) or for pages of them, with who makes or removes any. The bound of ids alone says
/// nothing of vertices, and is not noted. New vertices have ids above those of
/// the view, which nobody else knows; [`Transaction::key`] gives their keys.
#[derive(Clone, Copy, Debug)]
pub struct TransactionGraph<'a> {
    transaction: &'a Transaction<'a>,
}

impl<'a> TransactionGraph<'a> {
    pub(super) fn new(transaction: &'a Transaction<'a>) -> Self {
        Self { transaction }
    }

    fn view(&self) -> &'a View {
        &self.transaction.view
    }

    /// Notes that a list is read, and gives what changes in it, and whether the view's counts.
    fn read(&self, side: Side, vertex: VertexId) -> (Option<&'a OwnList>, bool) {
        let Transaction { view, own, .. } = self.transaction;
        self.transaction.note_list(side, vertex);
        let is_in_view = (vertex as usize) < view.vertex_bound() && !own.is_gone(vertex);
        let side = if view.direction() == Direction::Undirected { Side::Out } else { side };
        (own.list(side, vertex), is_in_view)
    }

    /// Whether all of a list of the view counts.
    fn counts_whole(&self, own_list: Option<&OwnList>) -> bool {
        own_list.is_none() && self.transaction.own.num_gone() == 0
    }

    fn degree(&self, side: Side, vertex: VertexId) -> usize {
        let (own, is_in_view) = self.read(side, vertex);
        let view = self.view();
        if self.counts_whole(own) {
            return match (is_in_view, side) {
                (false, _) => 0,
                (true, Side::Out) => view.out_degree(vertex),
                (true, Side::In) => view.in_degree(vertex),
            };
        }
        let mut degree = 0;
        let _ = self.for_each_fragment(side, vertex, |targets| {
            degree += targets.len();
            ControlFlow::Continue(())
        });
        degree
    }

    fn for_each_fragment(
        &self,
        side: Side,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (own, is_in_view) = self.read(side, vertex);
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
            match side {
                Side::Out => view.for_each_out_fragment(vertex, kept)?,
                Side::In => view.for_each_in_fragment(vertex, kept)?,
            }
        }
        own.map_or(ControlFlow::Continue(()), |list| list.for_each_chunk(|targets, _| body(targets)))
    }

    fn for_each_weighted_fragment<W: Weight>(
        &self,
        side: Side,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.weight_type() != Some(W::TYPE) {
            return ControlFlow::Continue(());
        }
        let (own, is_in_view) = self.read(side, vertex);
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
            match side {
                Side::Out => view.for_each_weighted_out_fragment(vertex, kept)?,
                Side::In => view.for_each_weighted_in_fragment(vertex, kept)?,
            }
        }
        let mut weights = Vec::new();
        own.map_or(ControlFlow::Continue(()), |list| {
            list.for_each_chunk(|targets, bits| {
                weights.clear();
                weights.extend(bits.iter().map(|&bits| W::of_bits(bits)));
                body(targets, &weights)
            })
        })
    }

    /// How many entries, and loops among them, all out-lists have more than those of the view, in which case they are
    /// positive.
    fn difference(&self) -> (i64, i64) {
        let Transaction { view, own, .. } = self.transaction;
        if !own.changes_lists() {
            return (0, 0);
        }
        let bound = view.vertex_bound() as VertexId;
        // With a vertex, entries of any list may go.
        let mut lists: Vec<VertexId> = match own.num_gone() == 0 {
            true => own.changed_lists(Side::Out).collect(),
            false => (0..bound).chain(own.changed_lists(Side::Out).filter(|&list| list >= bound)).collect(),
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
            let _ = self.for_each_fragment(Side::Out, list, |targets| count(targets, 1));
            if list < bound {
                let _ = view.for_each_out_fragment(list, |targets| count(targets, -1));
            }
        }
        (arcs, loops)
    }
}

impl WillNeed for TransactionGraph<'_> {
    fn prefetch(&self, side: Side, vertex: VertexId) {
        if (vertex as usize) < self.view().vertex_bound() {
            self.view().prefetch(side, vertex);
        }
    }

    fn prefetch_place(&self, side: Side, vertex: VertexId) {
        if (vertex as usize) < self.view().vertex_bound() {
            self.view().prefetch_place(side, vertex);
        }
    }

    fn prefetch_list(&self, side: Side, parts: Parts, vertex: VertexId) {
        if (vertex as usize) < self.view().vertex_bound() {
            self.view().prefetch_list(side, parts, vertex);
        }
    }
}

impl Graph for TransactionGraph<'_> {
    type Offset = u32;

    fn vertex_bound(&self) -> usize {
        self.transaction.own.vertex_bound
    }

    /// Cost: that of the vertices that were written.
    fn num_vertices(&self) -> usize {
        let Transaction { view, own, .. } = self.transaction;
        self.transaction.note(ReadKey::Vertices);
        let new = own.vertex_bound - own.first_new;
        let was_live = |vertex: VertexId| vertex as usize >= own.first_new || view.is_live(vertex);
        let change = |(&vertex, &is_live): (&VertexId, &bool)| i64::from(is_live) - i64::from(was_live(vertex));
        let changed: i64 = own.states.iter().map(change).sum();
        (view.num_vertices() + new).saturating_add_signed(changed as isize)
    }

    /// Cost: that of the lists that are written; where a vertex goes, a look at all lists.
    fn num_edges(&self) -> u64 {
        self.transaction.note(ReadKey::Edges);
        let (arcs, loops) = self.difference();
        let change = match self.direction() {
            Direction::Directed => arcs,
            Direction::Undirected => (arcs + loops) / 2,
        };
        self.view().num_edges().saturating_add_signed(change)
    }

    /// As [`num_edges`](Graph::num_edges).
    fn num_arcs(&self) -> u64 {
        self.transaction.note(ReadKey::Edges);
        self.view().num_arcs().saturating_add_signed(self.difference().0)
    }

    fn direction(&self) -> Direction {
        self.view().direction()
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

    fn out_degree(&self, vertex: VertexId) -> usize {
        self.degree(Side::Out, vertex)
    }

    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.for_each_fragment(Side::Out, vertex, body)
    }

    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.transaction.note(ReadKey::Vertices);
        body(Page::Patched(vertices))
    }

    fn check(&self) -> base::Result<()> {
        self.view().check()
    }
}

impl InEdges for TransactionGraph<'_> {
    fn has_in_edges(&self) -> bool {
        self.view().has_in_edges()
    }

    fn in_degree(&self, vertex: VertexId) -> usize {
        self.degree(Side::In, vertex)
    }

    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.for_each_fragment(Side::In, vertex, body)
    }

    fn for_each_in_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.transaction.note(ReadKey::Vertices);
        match self.has_in_edges() {
            true => body(Page::Patched(vertices)),
            false => body(Page::Empty(vertices)),
        }
    }
}

impl WeightedEdges for TransactionGraph<'_> {
    fn weight_type(&self) -> Option<WeightType> {
        self.view().weight_type()
    }

    fn for_each_weighted_out_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.for_each_weighted_fragment(Side::Out, vertex, body)
    }

    fn for_each_weighted_in_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.for_each_weighted_fragment(Side::In, vertex, body)
    }
}
