//! A view of a [`Csr`] that gives it in the most awkward forms that the seam allows.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::VertexId;
use graph::{
    Csr, Direction, Graph, InEdges, Page, Parts, Side, SingleFragment, Weight, WeightType, WeightedEdges, WillNeed,
};

/// The same graph in pages of several kinds, with lists in one to four fragments and with dead vertices.
///
/// Lists of vertices in dense pages are in one fragment, as in a graph that never changed. In patched
/// pages a list is cut into as many fragments as its id says, one of which may be empty; neighbouring
/// entries fall to different fragments. Out-lists and in-lists have different kinds of pages.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    graph: &'a Csr,
    in_edges: bool,
    pages: Pages,
    page_vertices: VertexId,
    live: Vec<bool>,
    num_vertices: usize,
    /// By [`Parts`].
    num_announced: Arc<[AtomicUsize; 2]>,
    num_given: Arc<AtomicUsize>,
}

/// The kinds of the pages that have edges; those without are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// All dense.
    Dense,
    /// All patched.
    Patched,
    /// One patched, two dense, and so on.
    Mixed,
}

/// Which of the vertices without edges are dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dead {
    /// None.
    None,
    /// Those whose id leaves remainder 2 when divided by 5.
    Fifth,
    /// All.
    All,
}

impl<'a> Pieces<'a> {
    /// `graph` in mixed pages of 16 vertices, with a fifth of the vertices without edges dead.
    pub fn new(graph: &'a Csr) -> Self {
        let pieces = Self {
            graph,
            in_edges: true,
            pages: Pages::Mixed,
            page_vertices: 16,
            live: Vec::new(),
            num_vertices: 0,
            num_announced: Arc::default(),
            num_given: Arc::default(),
        };
        pieces.with_dead(Dead::Fifth)
    }

    /// The views of a graph that any algorithm must be right on, each with what it is.
    pub fn of_every_kind(graph: &'a Csr) -> Vec<(&'static str, Self)> {
        let of = |pages, page_vertices, dead| Self::new(graph).with_pages(pages, page_vertices).with_dead(dead);
        vec![
            ("dense pages", of(Pages::Dense, 64, Dead::Fifth)),
            ("mixed pages", of(Pages::Mixed, 16, Dead::Fifth)),
            ("mixed pages by out-edges", of(Pages::Mixed, 4, Dead::None).without_in_edges()),
            ("patched pages", of(Pages::Patched, 64, Dead::All)),
            ("patched pages by out-edges", of(Pages::Patched, 1024, Dead::All).without_in_edges()),
        ]
    }

    /// Takes the in-edges away, if the graph is directed.
    pub fn without_in_edges(mut self) -> Self {
        self.in_edges = self.graph.direction() == Direction::Undirected;
        self
    }

    /// With other pages.
    ///
    /// # Panics
    /// If a page has no vertices.
    pub fn with_pages(mut self, pages: Pages, page_vertices: VertexId) -> Self {
        assert!(page_vertices > 0, "a page has vertices");
        (self.pages, self.page_vertices) = (pages, page_vertices);
        self
    }

    /// With other vertices dead.
    pub fn with_dead(mut self, dead: Dead) -> Self {
        let has_edges = |v: VertexId| self.graph.out_degree(v) + self.graph.in_degree(v) > 0;
        let is_live = |v: VertexId| match dead {
            Dead::None => true,
            Dead::Fifth => v % 5 != 2 || has_edges(v),
            Dead::All => has_edges(v),
        };
        self.live = (0..self.graph.vertex_bound() as VertexId).map(is_live).collect();
        self.num_vertices = self.live.iter().filter(|&&is_live| is_live).count();
        self
    }

    /// How many lists were announced so far, of which these parts are read.
    pub fn num_announced(&self, parts: Parts) -> usize {
        self.num_announced[parts as usize].load(Ordering::Relaxed)
    }

    /// How many fragments and pages were given so far.
    pub fn num_given(&self) -> usize {
        self.num_given.load(Ordering::Relaxed)
    }

    fn note(&self, parts: Parts, num_lists: usize) {
        self.num_announced[parts as usize].fetch_add(num_lists, Ordering::Relaxed);
    }

    fn is_patched(&self, side: Side, vertex: VertexId) -> bool {
        let shift = match side {
            Side::Out => 0,
            Side::In => 1,
        };
        match self.pages {
            Pages::Dense => false,
            Pages::Patched => true,
            Pages::Mixed => (vertex / self.page_vertices + shift).is_multiple_of(3),
        }
    }

    /// The number of fragments of a list.
    fn num_fragments(&self, side: Side, vertex: VertexId) -> usize {
        if self.is_patched(side, vertex) { vertex as usize % 4 + 1 } else { 1 }
    }

    fn give<T: Copy>(
        &self,
        side: Side,
        vertex: VertexId,
        list: &[VertexId],
        beside: &[T],
        mut body: impl FnMut(&[VertexId], &[T]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let count = self.num_fragments(side, vertex);
        self.num_given.fetch_add(count, Ordering::Relaxed);
        match count {
            1 => body(list, beside),
            count => (0..count).rev().try_for_each(|i| body(&every(count, i, list), &every(count, i, beside))),
        }
    }

    fn pages(
        &self,
        side: Side,
        vertices: Range<VertexId>,
        degree: impl Fn(VertexId) -> usize,
        dense: impl Fn(Range<VertexId>, &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>) -> ControlFlow<()>,
        mut body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut start = vertices.start;
        while start < vertices.end {
            let page = start..vertices.end.min((start / self.page_vertices + 1) * self.page_vertices);
            start = page.end;
            self.num_given.fetch_add(1, Ordering::Relaxed);
            if page.clone().all(|v| degree(v) == 0) {
                body(Page::Empty(page))?;
            } else if self.is_patched(side, page.start) {
                body(Page::Patched(page))?;
            } else {
                dense(page, &mut body)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Every `count`-th entry from place `first` on.
fn every<T: Copy>(count: usize, first: usize, list: &[T]) -> Vec<T> {
    list.iter().copied().skip(first).step_by(count).collect()
}

/// Nothing beside an entry of a list, for lists without weights.
fn nothings(list: &[VertexId]) -> Vec<()> {
    vec![(); list.len()]
}

impl WillNeed for Pieces<'_> {
    fn is_listening(&self) -> bool {
        // Some views listen and some do not, so that kernels are tested with either.
        self.pages == Pages::Mixed
    }

    fn will_need(&self, _side: Side, parts: Parts, vertices: &[VertexId]) {
        self.note(parts, vertices.len());
    }

    fn will_need_runs(&self, _side: Side, parts: Parts, runs: &[Range<VertexId>]) {
        self.note(parts, runs.iter().map(|run| run.len()).sum());
    }

    fn will_walk(&self, _side: Side, parts: Parts, vertices: Range<VertexId>) {
        self.note(parts, vertices.len());
    }
}

impl Graph for Pieces<'_> {
    type Offset = u64;

    fn vertex_bound(&self) -> usize {
        self.graph.vertex_bound()
    }

    fn num_vertices(&self) -> usize {
        self.num_vertices
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
        self.live[vertex as usize]
    }

    fn out_degree(&self, vertex: VertexId) -> usize {
        self.graph.out_degree(vertex)
    }

    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_out_fragment(vertex, |list| {
            self.give(Side::Out, vertex, list, &nothings(list), |fragment, _| body(fragment))
        })
    }

    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let dense =
            |page, body: &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>| self.graph.for_each_out_page(page, body);
        self.pages(Side::Out, vertices, |v| self.graph.out_degree(v), dense, body)
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
        self.graph.for_each_in_fragment(vertex, |list| {
            self.give(Side::In, vertex, list, &nothings(list), |fragment, _| body(fragment))
        })
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
        self.pages(Side::In, vertices, |v| self.graph.in_degree(v), dense, body)
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
        self.graph
            .for_each_weighted_out_fragment::<W>(vertex, |list, w| self.give(Side::Out, vertex, list, w, &mut body))
    }

    fn for_each_weighted_in_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.in_edges {
            return ControlFlow::Continue(());
        }
        self.graph.for_each_weighted_in_fragment::<W>(vertex, |list, w| self.give(Side::In, vertex, list, w, &mut body))
    }
}

impl SingleFragment for Pieces<'_> {
    fn out_list(&self, vertex: VertexId) -> Option<&[VertexId]> {
        if self.num_fragments(Side::Out, vertex) == 1 { self.graph.out_list(vertex) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs;

    /// The list of a vertex put together again, and in how many fragments it was.
    fn joined(pieces: &Pieces<'_>, vertex: VertexId) -> (Vec<(VertexId, u32)>, usize) {
        let (mut list, mut count) = (Vec::new(), 0);
        let _ = pieces.for_each_weighted_out_fragment::<u32>(vertex, |targets, weights| {
            assert!(targets.is_sorted());
            count += 1;
            list.extend(targets.iter().copied().zip(weights.iter().copied()));
            ControlFlow::Continue(())
        });
        list.sort_unstable();
        (list, count)
    }

    #[test]
    fn views_of_every_kind_hold_the_same_edges() {
        let (mut kinds, mut most_fragments) = ([0; 3], 0);
        for test in graphs() {
            let csr = test.build_weighted::<u32>().unwrap();
            let whole = Pieces::new(&csr).with_pages(Pages::Dense, 7);
            for (view, pieces) in Pieces::of_every_kind(&csr) {
                let _ = pieces.for_each_in_page(0..csr.vertex_bound() as VertexId, |page| {
                    kinds[match page {
                        Page::Dense(_) => 0,
                        Page::Empty(_) => 1,
                        Page::Patched(_) => 2,
                    }] += 1;
                    ControlFlow::Continue(())
                });
                for v in 0..csr.vertex_bound() as VertexId {
                    let (list, num_fragments) = joined(&pieces, v);
                    most_fragments = most_fragments.max(num_fragments);
                    assert_eq!(list, joined(&whole, v).0, "{}, {view}: vertex {v}", test.name);
                    let in_one = pieces.out_list(v).is_some();
                    assert!(list.is_empty() || in_one == (num_fragments == 1), "{}, {view}: vertex {v}", test.name);
                }
            }
        }
        assert!(kinds.iter().all(|&count| count > 0), "{kinds:?}");
        assert_eq!(most_fragments, 4);
    }

    #[test]
    fn the_dead_have_no_edges_and_are_not_counted() {
        let csr = graphs().iter().find(|test| test.name == "two parts").unwrap().build().unwrap();
        let isolated: Vec<_> = (0..95).filter(|&v| csr.out_degree(v) + csr.in_degree(v) == 0).collect();
        let fifth = isolated.iter().filter(|&&v| v % 5 == 2).count();
        assert!(fifth > 0 && fifth < isolated.len());
        for (dead, num_dead) in [(Dead::None, 0), (Dead::Fifth, fifth), (Dead::All, isolated.len())] {
            let pieces = Pieces::new(&csr).with_dead(dead);
            assert_eq!(pieces.num_vertices(), 95 - num_dead, "{dead:?}");
            let dead: Vec<_> = (0..95).filter(|&v| !pieces.is_live(v)).collect();
            assert_eq!(dead.len(), num_dead);
            assert!(dead.iter().all(|&v| csr.out_degree(v) + csr.in_degree(v) == 0));
        }
    }
}
