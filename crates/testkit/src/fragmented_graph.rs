//! A view of a [`Csr`] that uses every form of page and list that the seam allows.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anden_base::VertexId;
use anden_graph::{
    Csr, Direction, Graph, GraphKind, Page, Parts, SingleFragment, Weight, WeightType, WeightedEdges, WillNeed,
};

/// The graph in pages of several kinds, with lists in one to four fragments and with dead vertices.
///
/// Dense pages hold each list as one fragment, as in a graph that never changed. Patched pages cut the list of vertex
/// `v` into `v % 4 + 1` fragments, of which some may be empty, and deal the entries out in turn. Out-lists and in-lists
/// have different kinds of pages.
#[derive(Clone, Debug)]
pub struct FragmentedGraph<'a> {
    graph: &'a Csr,
    in_edges: bool,
    pages: Pages,
    page_vertices: VertexId,
    live: Vec<bool>,
    num_vertices: usize,
    /// Numbers of announced lists, indexed by [`Parts`].
    num_announced: Arc<[AtomicUsize; 2]>,
    num_given: Arc<AtomicUsize>,
}

/// The kind of the pages with edges. Pages without edges are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// All dense.
    Dense,
    /// All patched.
    Patched,
    /// One patched page, then two dense ones, repeated.
    Mixed,
}

/// The dead vertices, all without edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dead {
    /// None.
    None,
    /// The vertices without edges whose id modulo 5 is 2.
    Fifth,
    /// All vertices without edges.
    All,
}

impl<'a> FragmentedGraph<'a> {
    /// `graph` in mixed pages of 16 vertices. A fifth of the vertices without edges is dead.
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

    /// Views that every algorithm must handle, each with a name for messages.
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

    /// Removes the in-edges if the graph is directed.
    pub fn without_in_edges(mut self) -> Self {
        // An undirected graph has one list for both directions, which stays.
        self.in_edges = self.graph.graph_kind() == GraphKind::Undirected;
        self
    }

    /// Sets the kind and the size of the pages.
    ///
    /// # Panics
    /// If `page_vertices` is 0.
    pub fn with_pages(mut self, pages: Pages, page_vertices: VertexId) -> Self {
        assert!(page_vertices > 0, "a page has vertices");
        (self.pages, self.page_vertices) = (pages, page_vertices);
        self
    }

    /// Sets the dead vertices.
    pub fn with_dead(mut self, dead: Dead) -> Self {
        // In either direction: a dead vertex must not be the end of an edge.
        let has_edges = |v: VertexId| self.graph.degree(Direction::Out, v) + self.graph.degree(Direction::In, v) > 0;
        let is_live = |v: VertexId| match dead {
            Dead::None => true,
            Dead::Fifth => v % 5 != 2 || has_edges(v),
            Dead::All => has_edges(v),
        };
        self.live = (0..self.graph.vertex_bound() as VertexId).map(is_live).collect();
        self.num_vertices = self.live.iter().filter(|&&is_live| is_live).count();
        self
    }

    /// The number of lists announced until now with `parts`.
    pub fn num_announced(&self, parts: Parts) -> usize {
        self.num_announced[parts as usize].load(Ordering::Relaxed)
    }

    /// The number of fragments and pages given to closures until now.
    pub fn num_given(&self) -> usize {
        self.num_given.load(Ordering::Relaxed)
    }

    fn note(&self, parts: Parts, num_lists: usize) {
        // Relaxed: tests read the counts after the threads have ended.
        self.num_announced[parts as usize].fetch_add(num_lists, Ordering::Relaxed);
    }

    fn is_patched(&self, direction: Direction, vertex: VertexId) -> bool {
        // In-lists shift by one page, so that the two directions differ in kind.
        let shift = match direction {
            Direction::Out => 0,
            Direction::In => 1,
        };
        match self.pages {
            Pages::Dense => false,
            Pages::Patched => true,
            Pages::Mixed => (vertex / self.page_vertices + shift).is_multiple_of(3),
        }
    }

    /// The number of fragments of a list.
    fn num_fragments(&self, direction: Direction, vertex: VertexId) -> usize {
        if self.is_patched(direction, vertex) { vertex as usize % 4 + 1 } else { 1 }
    }

    fn give<T: Copy>(
        &self,
        direction: Direction,
        vertex: VertexId,
        list: &[VertexId],
        beside: &[T],
        mut body: impl FnMut(&[VertexId], &[T]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let count = self.num_fragments(direction, vertex);
        self.num_given.fetch_add(count, Ordering::Relaxed);
        match count {
            1 => body(list, beside),
            // From the last fragment to the first: kernels must not rely on an order of fragments.
            count => (0..count).rev().try_for_each(|i| body(&every(count, i, list), &every(count, i, beside))),
        }
    }

    fn pages(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        degree: impl Fn(VertexId) -> usize,
        dense: impl Fn(Range<VertexId>, &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>) -> ControlFlow<()>,
        mut body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut start = vertices.start;
        while start < vertices.end {
            // Aligned pages: a range that begins inside a page ends with that page.
            let page = start..vertices.end.min((start / self.page_vertices + 1) * self.page_vertices);
            start = page.end;
            self.num_given.fetch_add(1, Ordering::Relaxed);
            // As in a real view, which stores nothing for such a page.
            if page.clone().all(|v| degree(v) == 0) {
                body(Page::Empty(page))?;
            } else if self.is_patched(direction, page.start) {
                body(Page::Patched(page))?;
            } else {
                dense(page, &mut body)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Every `count`-th entry, beginning with entry `first`.
fn every<T: Copy>(count: usize, first: usize, list: &[T]) -> Vec<T> {
    list.iter().copied().skip(first).step_by(count).collect()
}

/// Unit payloads for the entries of a list without weights.
fn nothings(list: &[VertexId]) -> Vec<()> {
    vec![(); list.len()]
}

impl WillNeed for FragmentedGraph<'_> {
    fn is_listening(&self) -> bool {
        // Mixed pages listen and the others do not, so tests run kernels with and without a prefetcher.
        self.pages == Pages::Mixed
    }

    fn will_need(&self, _direction: Direction, parts: Parts, vertices: &[VertexId]) {
        self.note(parts, vertices.len());
    }

    fn will_need_runs(&self, _direction: Direction, parts: Parts, runs: &[Range<VertexId>]) {
        self.note(parts, runs.iter().map(|run| run.len()).sum());
    }

    fn will_walk(&self, _direction: Direction, parts: Parts, vertices: Range<VertexId>) {
        self.note(parts, vertices.len());
    }
}

impl Graph for FragmentedGraph<'_> {
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

    fn graph_kind(&self) -> GraphKind {
        self.graph.graph_kind()
    }

    fn is_multigraph(&self) -> bool {
        self.graph.is_multigraph()
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        self.live[vertex as usize]
    }

    fn has_lists(&self, direction: Direction) -> bool {
        direction == Direction::Out || self.in_edges
    }

    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        if self.has_lists(direction) { self.graph.degree(direction, vertex) } else { 0 }
    }

    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.has_lists(direction) {
            return ControlFlow::Continue(());
        }
        self.graph.for_each_fragment(direction, vertex, |list| {
            self.give(direction, vertex, list, &nothings(list), |fragment, _| body(fragment))
        })
    }

    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.has_lists(direction) {
            return body(Page::Empty(vertices));
        }
        let dense = |page, body: &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>| {
            self.graph.for_each_page(direction, page, body)
        };
        self.pages(direction, vertices, |v| self.graph.degree(direction, v), dense, body)
    }
}

impl WeightedEdges for FragmentedGraph<'_> {
    fn weight_type(&self) -> Option<WeightType> {
        self.graph.weight_type()
    }

    fn for_each_weighted_fragment<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.has_lists(direction) {
            return ControlFlow::Continue(());
        }
        self.graph.for_each_weighted_fragment::<W>(direction, vertex, |list, w| {
            self.give(direction, vertex, list, w, &mut body)
        })
    }
}

impl SingleFragment for FragmentedGraph<'_> {
    fn list(&self, direction: Direction, vertex: VertexId) -> Option<&[VertexId]> {
        // A list in several fragments must take the slower path of kernels.
        let is_single = self.has_lists(direction) && self.num_fragments(direction, vertex) == 1;
        if is_single { self.graph.list(direction, vertex) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs;

    /// The joined, sorted list of a vertex, and the number of its fragments.
    fn joined(pieces: &FragmentedGraph<'_>, vertex: VertexId) -> (Vec<(VertexId, u32)>, usize) {
        let (mut list, mut count) = (Vec::new(), 0);
        let _ = pieces.for_each_weighted_fragment::<u32>(Direction::Out, vertex, |targets, weights| {
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
            let whole = FragmentedGraph::new(&csr).with_pages(Pages::Dense, 7);
            for (view, pieces) in FragmentedGraph::of_every_kind(&csr) {
                let _ = pieces.for_each_page(Direction::In, 0..csr.vertex_bound() as VertexId, |page| {
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
                    let in_one = pieces.list(Direction::Out, v).is_some();
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
        let isolated: Vec<_> =
            (0..95).filter(|&v| csr.degree(Direction::Out, v) + csr.degree(Direction::In, v) == 0).collect();
        let fifth = isolated.iter().filter(|&&v| v % 5 == 2).count();
        assert!(fifth > 0 && fifth < isolated.len());
        for (dead, num_dead) in [(Dead::None, 0), (Dead::Fifth, fifth), (Dead::All, isolated.len())] {
            let pieces = FragmentedGraph::new(&csr).with_dead(dead);
            assert_eq!(pieces.num_vertices(), 95 - num_dead, "{dead:?}");
            let dead: Vec<_> = (0..95).filter(|&v| !pieces.is_live(v)).collect();
            assert_eq!(dead.len(), num_dead);
            assert!(dead.iter().all(|&v| csr.degree(Direction::Out, v) + csr.degree(Direction::In, v) == 0));
        }
    }
}
