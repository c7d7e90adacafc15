//! The plain compressed sparse row graph: the baseline of every measurement, and the graph of tests.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_base::mapped::MappedSlice;

use crate::{
    DensePage, Direction, Error, Graph, GraphKind, Page, Parts, PrefetchStage, Result, SingleFragment, Weight,
    WeightType, WeightedEdges, Weights, WillNeed, prefetch_start,
};

/// The adjacency lists of one direction. The neighbors of `v` are `targets[offsets[v]..offsets[v + 1]]`, ascending.
#[derive(Clone, Debug)]
pub struct Adjacency {
    offsets: MappedSlice<u64>,
    targets: MappedSlice<VertexId>,
    weights: Option<Weights>,
}

impl Adjacency {
    /// Checks and joins the arrays of a CSR. `offsets` holds one entry more than the number of vertices.
    ///
    /// Cost: reads every array once.
    ///
    /// # Errors
    /// The offsets do not ascend from 0 to the number of targets. A target is not below the number of vertices, or a
    /// list does not ascend. The number of weights is not that of the targets.
    pub fn new(offsets: MappedSlice<u64>, targets: MappedSlice<VertexId>, weights: Option<Weights>) -> Result<Self> {
        let bad = |what: String| Err(Error::Parameter(what));
        let Some(num_vertices) = offsets.len().checked_sub(1) else {
            return bad("a CSR needs at least one offset".into());
        };
        if offsets[0] != 0 || offsets[num_vertices] != targets.len() as u64 || !offsets.is_sorted() {
            return bad(format!("the offsets of a CSR must ascend from 0 to {}", targets.len()));
        }
        if let Some(target) = targets.iter().find(|&&target| target as usize >= num_vertices) {
            return bad(format!("target {target} is not below {num_vertices}"));
        }
        // The checks above keep every list within the targets.
        let list = |v: usize| &targets[offsets[v] as usize..offsets[v + 1] as usize];
        if let Some(v) = (0..num_vertices).find(|&v| !list(v).is_sorted()) {
            return bad(format!("the list of vertex {v} does not ascend"));
        }
        if weights.as_ref().is_some_and(|w| w.len() != targets.len()) {
            return bad(format!("there must be {} weights, one a target", targets.len()));
        }
        Ok(Self { offsets, targets, weights })
    }

    /// The number of vertices.
    pub fn num_vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The start of each list, and the end of the last.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// All lists, one after the other.
    pub fn targets(&self) -> &[VertexId] {
        &self.targets
    }

    /// The weights, parallel to the targets.
    pub fn weights(&self) -> Option<&Weights> {
        self.weights.as_ref()
    }

    #[inline(always)]
    fn range(&self, vertex: VertexId) -> Range<usize> {
        let vertex = vertex as usize;
        self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize
    }

    #[inline(always)]
    fn list(&self, vertex: VertexId) -> &[VertexId] {
        &self.targets[self.range(vertex)]
    }

    /// Prefetches the first cache lines of a list; the hardware prefetcher fetches the rest.
    #[inline(always)]
    fn prefetch(&self, parts: Parts, vertex: VertexId) {
        let start = self.offsets[vertex as usize] as usize;
        prefetch_start(&self.targets, start);
        if parts == Parts::Weighted
            && let Some(weights) = &self.weights
        {
            weights.prefetch(start);
        }
    }

    fn page(&self, vertices: Range<VertexId>) -> DensePage<'_, u64> {
        DensePage::new(vertices.start, &self.offsets[vertices.start as usize..=vertices.end as usize], &self.targets)
    }

    fn weighted<W: Weight>(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let range = self.range(vertex);
        match self.weights.as_ref().and_then(W::of) {
            Some(weights) if !range.is_empty() => body(&self.targets[range.clone()], &weights[range]),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A graph in plain arrays: 64-bit offsets and 32-bit targets, for out-lists and optional in-lists.
#[derive(Clone, Debug)]
pub struct Csr {
    graph_kind: GraphKind,
    multigraph: bool,
    out_lists: Adjacency,
    in_lists: Option<Adjacency>,
    num_edges: u64,
}

impl Csr {
    /// A directed graph. Without in-lists, kernels that need them return an error.
    ///
    /// # Errors
    /// Out-lists and in-lists differ in the number of vertices or edges.
    pub fn directed(out_lists: Adjacency, in_lists: Option<Adjacency>) -> Result<Self> {
        if let Some(lists) = &in_lists
            && (lists.num_vertices(), lists.targets.len()) != (out_lists.num_vertices(), out_lists.targets.len())
        {
            return Err(Error::Parameter("out-lists and in-lists differ in size".into()));
        }
        let num_edges = out_lists.targets.len() as u64;
        // Found once here, so that `is_multigraph` only reads a field.
        let multigraph = has_parallel_edges(&out_lists);
        Ok(Self { graph_kind: GraphKind::Directed, multigraph, out_lists, in_lists, num_edges })
    }

    /// An undirected graph. Its lists hold every edge at both ends and every loop once.
    ///
    /// The caller guarantees the symmetry; this function does not check it.
    pub fn undirected(lists: Adjacency) -> Self {
        let is_loop = |v: VertexId| lists.list(v).iter().filter(|&&t| t == v).count() as u64;
        let num_loops: u64 = (0..lists.num_vertices() as VertexId).map(is_loop).sum();
        // A loop is stored once, any other edge twice.
        let num_edges = (lists.targets.len() as u64 + num_loops) / 2;
        let multigraph = has_parallel_edges(&lists);
        Self { graph_kind: GraphKind::Undirected, multigraph, out_lists: lists, in_lists: None, num_edges }
    }

    /// The out-lists.
    pub fn out_lists(&self) -> &Adjacency {
        &self.out_lists
    }

    /// The in-lists. In an undirected graph, these are the out-lists.
    #[inline(always)]
    pub fn in_lists(&self) -> Option<&Adjacency> {
        match self.graph_kind {
            GraphKind::Undirected => Some(&self.out_lists),
            GraphKind::Directed => self.in_lists.as_ref(),
        }
    }

    #[inline(always)]
    fn lists_of(&self, direction: Direction) -> Option<&Adjacency> {
        match direction {
            Direction::Out => Some(&self.out_lists),
            Direction::In => self.in_lists(),
        }
    }
}

fn has_parallel_edges(lists: &Adjacency) -> bool {
    // Lists ascend, so parallel edges lie side by side.
    (0..lists.num_vertices() as VertexId).any(|v| lists.list(v).windows(2).any(|pair| pair[0] == pair[1]))
}

impl WillNeed for Csr {
    #[inline(always)]
    fn prefetch(&self, direction: Direction, stage: PrefetchStage, vertex: VertexId) {
        let Some(lists) = self.lists_of(direction) else { return };
        match stage {
            // The offsets lead to the list itself.
            PrefetchStage::TableEntry | PrefetchStage::RoughDegree => {
                anden_base::simd::prefetch(&lists.offsets, vertex as usize);
            }
            // A CSR has no block between the offsets and the list.
            PrefetchStage::Place => {}
            PrefetchStage::List(parts) => lists.prefetch(parts, vertex),
        }
    }
}

impl Graph for Csr {
    type Offset = u64;

    #[inline]
    fn vertex_bound(&self) -> usize {
        self.out_lists.num_vertices()
    }

    fn num_edges(&self) -> u64 {
        self.num_edges
    }

    fn num_arcs(&self) -> u64 {
        self.out_lists.targets.len() as u64
    }

    fn graph_kind(&self) -> GraphKind {
        self.graph_kind
    }

    fn is_multigraph(&self) -> bool {
        self.multigraph
    }

    fn has_lists(&self, direction: Direction) -> bool {
        self.lists_of(direction).is_some()
    }

    #[inline(always)]
    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.lists_of(direction).map_or(0, |lists| lists.range(vertex).len())
    }

    #[inline(always)]
    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.lists_of(direction) {
            Some(lists) => body(lists.list(vertex)),
            None => ControlFlow::Continue(()),
        }
    }

    #[inline]
    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.lists_of(direction) {
            // All lists are in one slice, so any range is one dense page.
            Some(lists) => body(Page::Dense(lists.page(vertices))),
            None => body(Page::Empty(vertices)),
        }
    }
}

impl WeightedEdges for Csr {
    fn weight_type(&self) -> Option<WeightType> {
        self.out_lists.weights().map(Weights::weight_type)
    }

    #[inline]
    fn for_each_weighted_fragment<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.lists_of(direction) {
            Some(lists) => lists.weighted(vertex, body),
            None => ControlFlow::Continue(()),
        }
    }
}

impl SingleFragment for Csr {
    #[inline(always)]
    fn list(&self, direction: Direction, vertex: VertexId) -> Option<&[VertexId]> {
        self.lists_of(direction).map(|lists| lists.list(vertex))
    }
}

/// Builds a [`Csr`] from edges in memory, serially, for tests and small graphs.
///
/// Databases use their own parallel loader.
#[derive(Clone, Debug)]
pub struct CsrBuilder<W = u32> {
    graph_kind: GraphKind,
    num_vertices: usize,
    keep_parallel: bool,
    edges: Vec<(VertexId, VertexId, W)>,
}

impl<W: Weight> CsrBuilder<W> {
    /// A builder for a graph with `num_vertices` vertices and no edges.
    pub fn new(graph_kind: GraphKind, num_vertices: usize) -> Self {
        Self { graph_kind, num_vertices, keep_parallel: false, edges: Vec::new() }
    }

    /// Keeps parallel edges. Without this call, the lightest edge of each pair stays.
    pub fn keep_parallel(mut self) -> Self {
        self.keep_parallel = true;
        self
    }

    /// Adds an edge.
    pub fn edge(&mut self, source: VertexId, target: VertexId, weight: W) {
        self.edges.push((source, target, weight));
    }

    /// Builds a graph with in-lists and without weights.
    ///
    /// # Errors
    /// An end of an edge is not below the number of vertices.
    pub fn build(self) -> Result<Csr> {
        self.finish(false)
    }

    /// Builds a graph with in-lists and weights.
    ///
    /// # Errors
    /// An end of an edge is not below the number of vertices.
    pub fn build_weighted(self) -> Result<Csr> {
        self.finish(true)
    }

    fn finish(mut self, weighted: bool) -> Result<Csr> {
        match self.graph_kind {
            GraphKind::Undirected => {
                // A loop is stored once.
                // Both ends list the edge, so that pull and push see equal graphs.
                let reversed = self.edges.iter().filter(|(s, t, _)| s != t).map(|&(s, t, w)| (t, s, w));
                let reversed: Vec<_> = reversed.collect();
                self.edges.extend(reversed);
                Ok(Csr::undirected(self.adjacency(weighted, |&edge| edge)?))
            }
            GraphKind::Directed => {
                let out_lists = self.adjacency(weighted, |&edge| edge)?;
                let in_lists = self.adjacency(weighted, |&(s, t, w)| (t, s, w))?;
                Csr::directed(out_lists, Some(in_lists))
            }
        }
    }

    fn adjacency(
        &self,
        weighted: bool,
        direction: impl Fn(&(VertexId, VertexId, W)) -> (VertexId, VertexId, W),
    ) -> Result<Adjacency> {
        let mut edges: Vec<_> = self.edges.iter().map(direction).collect();
        // NaN has no order, and the sort panics without a total one. So NaN comes after all numbers.
        let by_weight = |a: W, b: W| a.partial_cmp(&b).unwrap_or_else(|| b.is_number().cmp(&a.is_number()));
        edges.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| by_weight(a.2, b.2)));
        // Parallel edges are sorted by weight, so this keeps the lightest.
        if !self.keep_parallel {
            edges.dedup_by_key(|edge| (edge.0, edge.1));
        }
        let mut offsets = vec![0_u64; self.num_vertices + 1];
        for &(source, ..) in &edges {
            let Some(count) = offsets.get_mut(source as usize + 1) else {
                return Err(Error::Parameter(format!("vertex {source} is not below {}", self.num_vertices)));
            };
            *count += 1;
        }
        for v in 0..self.num_vertices {
            offsets[v + 1] += offsets[v];
        }
        let targets: Vec<VertexId> = edges.iter().map(|edge| edge.1).collect();
        let weights: Vec<W> = edges.iter().map(|edge| edge.2).collect();
        let weights = weighted.then(|| W::column(MappedSlice::copied(&weights)));
        Adjacency::new(MappedSlice::copied(&offsets), MappedSlice::copied(&targets), weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragments(graph: &impl Graph, vertex: VertexId) -> Vec<VertexId> {
        let mut all = Vec::new();
        let _ = graph.for_each_fragment(Direction::Out, vertex, |fragment| {
            all.extend_from_slice(fragment);
            ControlFlow::Continue(())
        });
        all
    }

    #[test]
    fn undirected_edges_stand_at_both_ends() {
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Undirected, 4);
        for (s, t, w) in [(2, 0, 5), (0, 2, 3), (1, 1, 9), (0, 1, 4)] {
            builder.edge(s, t, w);
        }
        let graph = builder.build_weighted().unwrap();
        assert_eq!((graph.num_edges(), graph.num_arcs(), graph.vertex_bound()), (3, 5, 4));
        assert_eq!(fragments(&graph, 0), [1, 2]);
        assert_eq!(fragments(&graph, 1), [0, 1]);
        assert_eq!(graph.degree(Direction::In, 2), 1);
        let mut lightest = 0;
        let _ = graph.for_each_weighted_fragment::<u32>(Direction::In, 2, |targets, weights| {
            assert_eq!(targets, [0]);
            lightest = weights[0];
            ControlFlow::Continue(())
        });
        assert_eq!(lightest, 3);
    }

    #[test]
    fn nan_weights_come_after_all_numbers() {
        let mut builder = CsrBuilder::<f64>::new(GraphKind::Directed, 2);
        for weight in [f64::NAN, 2.0, f64::NAN, 1.0] {
            builder.edge(0, 1, weight);
        }
        let graph = builder.build_weighted().unwrap();
        let mut lightest = None;
        let _ = graph.for_each_weighted_fragment::<f64>(Direction::Out, 0, |_, weights| {
            lightest = weights.first().copied();
            ControlFlow::Continue(())
        });
        assert_eq!(lightest, Some(1.0));
    }

    #[test]
    fn pages_show_the_same_lists() {
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 5);
        for (s, t) in [(0, 3), (3, 3), (3, 1), (4, 0), (3, 1)] {
            builder.edge(s, t, 1);
        }
        let simple = builder.clone().build().unwrap();
        let multi = builder.keep_parallel().build().unwrap();
        assert_eq!((simple.num_edges(), simple.is_multigraph()), (4, false));
        assert_eq!((multi.num_edges(), multi.is_multigraph()), (5, true));
        let mut seen = Vec::new();
        let _ = simple.for_each_page(Direction::In, 1..5, |page| {
            if let Page::Dense(page) = page {
                seen.extend(page.lists().map(|(v, list)| (v, list.to_vec())));
                assert_eq!(page.all_targets(), [3, 0, 3]);
                assert_eq!((page.list(2), page.degree(2)), (&[0, 3][..], 2));
            }
            ControlFlow::Continue(())
        });
        assert_eq!(seen, [(1, vec![3]), (2, vec![]), (3, vec![0, 3]), (4, vec![])]);
    }

    #[test]
    fn bad_arrays_are_refused() {
        let new = |offsets: &[u64], targets: &[u32]| {
            Adjacency::new(MappedSlice::copied(offsets), MappedSlice::copied(targets), None)
        };
        assert!(new(&[], &[]).is_err());
        assert!(new(&[0, 2], &[0]).is_err());
        assert!(new(&[0, 1, 0], &[]).is_err());
        assert!(new(&[0, 1], &[1]).is_err());
        assert!(new(&[0, 2, 2], &[1, 0]).is_err());
        assert!(new(&[0, 2, 2], &[0, 1]).is_ok());
    }
}
