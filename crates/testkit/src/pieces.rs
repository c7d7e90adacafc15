//! A view of a [`Csr`] that gives it in the most awkward form that the seam allows.

use std::ops::{ControlFlow, Range};

use base::VertexId;
use graph::{Csr, Direction, Graph, InEdges, Page, SingleFragment, Weight, WeightType, WeightedEdges, WillNeed};

/// The same graph with lists in two fragments, pages of 16 vertices of every kind, and some
/// vertices dead.
///
/// Of a list, entries at even places form the first fragment and those at odd places the second.
/// Pages take turns in being dense and patched, or are empty where they have no edges. A vertex
/// without edges is dead if its id leaves remainder 2 when divided by 5.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    graph: &'a Csr,
    in_edges: bool,
}

const PAGE_VERTICES: VertexId = 16;

impl<'a> Pieces<'a> {
    /// `graph` in pieces.
    pub fn new(graph: &'a Csr) -> Self {
        Self { graph, in_edges: true }
    }

    /// Takes the in-edges away, if the graph is directed.
    pub fn without_in_edges(mut self) -> Self {
        self.in_edges = self.graph.direction() == Direction::Undirected;
        self
    }

    fn pages(
        &self,
        vertices: Range<VertexId>,
        degree: impl Fn(VertexId) -> usize,
        dense: impl Fn(Range<VertexId>, &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>) -> ControlFlow<()>,
        mut body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut start = vertices.start;
        while start < vertices.end {
            let page_index = start / PAGE_VERTICES;
            let page = start..vertices.end.min((page_index + 1) * PAGE_VERTICES);
            start = page.end;
            if page.clone().all(|v| degree(v) == 0) {
                body(Page::Empty(page))?;
            } else if page_index.is_multiple_of(2) {
                dense(page, &mut body)?;
            } else {
                body(Page::Patched(page))?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The entries at even places, then those at odd places; an empty piece is left out.
fn halves<T: Copy>(list: &[T]) -> [Vec<T>; 2] {
    let every_other = |skip: usize| list.iter().copied().skip(skip).step_by(2).collect();
    [every_other(0), every_other(1)]
}

fn give<T: Copy>(list: &[T], mut body: impl FnMut(&[T]) -> ControlFlow<()>) -> ControlFlow<()> {
    halves(list).iter().filter(|half| !half.is_empty()).try_for_each(|half| body(half))
}

fn give_weighted<W: Weight>(
    targets: &[VertexId],
    weights: &[W],
    mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let pieces = halves(targets).into_iter().zip(halves(weights));
    pieces.filter(|(targets, _)| !targets.is_empty()).try_for_each(|(targets, weights)| body(&targets, &weights))
}

impl WillNeed for Pieces<'_> {}

impl Graph for Pieces<'_> {
    type Offset = u64;

    fn vertex_bound(&self) -> usize {
        self.graph.vertex_bound()
    }

    fn num_vertices(&self) -> usize {
        (0..self.vertex_bound() as VertexId).filter(|&v| self.is_live(v)).count()
    }

    fn num_edges(&self) -> u64 {
        self.graph.num_edges()
    }

    fn num_arcs(&self) -> u64 {
        self.graph.num_arcs()
    }

    fn direction(&self) -> Direction {
        self.graph.direction()
    }

    fn is_multigraph(&self) -> bool {
        self.graph.is_multigraph()
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        vertex % 5 != 2 || self.graph.out_degree(vertex) + self.graph.in_degree(vertex) > 0
    }

    fn out_degree(&self, vertex: VertexId) -> usize {
        self.graph.out_degree(vertex)
    }

    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        give(self.graph.out_list(vertex).unwrap_or_default(), body)
    }

    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let dense =
            |page, body: &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>| self.graph.for_each_out_page(page, body);
        self.pages(vertices, |v| self.graph.out_degree(v), dense, body)
    }
}

impl InEdges for Pieces<'_> {
    fn has_in_edges(&self) -> bool {
        self.in_edges
    }

    fn in_degree(&self, vertex: VertexId) -> usize {
        if self.in_edges { self.graph.in_degree(vertex) } else { 0 }
    }

    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.in_edges {
            return ControlFlow::Continue(());
        }
        self.graph.for_each_in_fragment(vertex, |list| give(list, &mut body))
    }

    fn for_each_in_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.in_edges {
            return body(Page::Empty(vertices));
        }
        let dense =
            |page, body: &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>| self.graph.for_each_in_page(page, body);
        self.pages(vertices, |v| self.graph.in_degree(v), dense, body)
    }
}

impl WeightedEdges for Pieces<'_> {
    fn weight_type(&self) -> Option<WeightType> {
        self.graph.weight_type()
    }

    fn for_each_weighted_out_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_weighted_out_fragment::<W>(vertex, |t, w| give_weighted(t, w, &mut body))
    }

    fn for_each_weighted_in_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.in_edges {
            return ControlFlow::Continue(());
        }
        self.graph.for_each_weighted_in_fragment::<W>(vertex, |t, w| give_weighted(t, w, &mut body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs;

    #[test]
    fn pieces_hold_the_same_edges() {
        let mut kinds = [0; 3];
        for test in graphs() {
            let csr = test.build_weighted::<u32>().unwrap();
            let pieces = Pieces::new(&csr);
            let _ = pieces.for_each_in_page(0..csr.vertex_bound() as VertexId, |page| {
                kinds[match page {
                    Page::Dense(_) => 0,
                    Page::Empty(_) => 1,
                    Page::Patched(_) => 2,
                }] += 1;
                ControlFlow::Continue(())
            });
            for v in 0..csr.vertex_bound() as VertexId {
                let mut list = Vec::new();
                let _ = pieces.for_each_weighted_out_fragment::<u32>(v, |targets, weights| {
                    list.extend(targets.iter().copied().zip(weights.iter().copied()));
                    ControlFlow::Continue(())
                });
                list.sort_unstable();
                let targets: Vec<_> = list.iter().map(|pair| pair.0).collect();
                assert_eq!(targets, csr.out_list(v).unwrap(), "{}: vertex {v}", test.name);
            }
        }
        assert!(kinds.iter().all(|&count| count > 0), "{kinds:?}");
    }
}
