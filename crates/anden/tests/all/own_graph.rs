//! A graph and a kernel of one's own, made from the names of `anden` alone.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering};

use anden::graph::{
    Csr, CsrBuilder, Direction, Graph, GraphKind, Page, Parts, ReadError, VertexId, Weight, WeightType, WeightedEdges,
    WillNeed,
};
use anden::kernel::{
    self, Context, EdgeFunctor, EdgeMapOptions, Pool, VertexSubset, bfs, edge_map, pagerank, weighted_edge_map,
};

/// A grid whose edges are computed: each cell leads to the cells right of it and below it.
struct Grid {
    width: VertexId,
    height: VertexId,
    /// Number of announced lists.
    num_announced: AtomicU32,
}

impl Grid {
    fn new(width: VertexId, height: VertexId) -> Self {
        Self { width, height, num_announced: AtomicU32::new(0) }
    }

    fn out_list(&self, vertex: VertexId) -> Vec<VertexId> {
        let (row, column) = (vertex / self.width, vertex % self.width);
        let right = (column + 1 < self.width).then_some(vertex + 1);
        let below = (row + 1 < self.height).then_some(vertex + self.width);
        right.into_iter().chain(below).collect()
    }

    fn in_list(&self, vertex: VertexId) -> Vec<VertexId> {
        let (row, column) = (vertex / self.width, vertex % self.width);
        let above = (row > 0).then(|| vertex - self.width);
        let left = (column > 0).then(|| vertex - 1);
        above.into_iter().chain(left).collect()
    }

    fn list(&self, direction: Direction, vertex: VertexId) -> Vec<VertexId> {
        if direction == Direction::Out { self.out_list(vertex) } else { self.in_list(vertex) }
    }

    fn give<W: Weight>(
        list: &[VertexId],
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // The trait asks for no calls with another type than the graph's.
        if W::TYPE != WeightType::U32 {
            return ControlFlow::Continue(());
        }
        body(list, &vec![W::ONE; list.len()])
    }
}

impl WillNeed for Grid {
    fn is_listening(&self) -> bool {
        true
    }

    fn will_need(&self, _direction: Direction, _parts: Parts, vertices: &[VertexId]) {
        self.num_announced.fetch_add(vertices.len() as u32, Ordering::Relaxed);
    }
}

impl Graph for Grid {
    type Offset = u32;

    fn vertex_bound(&self) -> usize {
        (self.width * self.height) as usize
    }

    fn num_edges(&self) -> u64 {
        let (width, height) = (u64::from(self.width), u64::from(self.height));
        (width - 1) * height + width * (height - 1)
    }

    fn num_arcs(&self) -> u64 {
        self.num_edges()
    }

    fn graph_kind(&self) -> GraphKind {
        GraphKind::Directed
    }

    fn has_lists(&self, _direction: Direction) -> bool {
        true
    }

    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.list(direction, vertex).len()
    }

    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        body(&self.list(direction, vertex))
    }

    fn for_each_page(
        &self,
        _direction: Direction,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        body(Page::Patched(vertices))
    }

    fn check(&self) -> Result<(), ReadError> {
        Ok(())
    }
}

impl WeightedEdges for Grid {
    fn weight_type(&self) -> Option<WeightType> {
        Some(WeightType::U32)
    }

    fn for_each_weighted_fragment<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        Self::give(&self.list(direction, vertex), body)
    }
}

/// The smallest sum of weights to each vertex, found by relaxing edges until nothing changes.
struct Relax<'a>(&'a [AtomicU32]);

impl EdgeFunctor<u32> for Relax<'_> {
    fn update_atomic(&self, source: VertexId, target: VertexId, weight: u32) -> bool {
        let sum = self.0[source as usize].load(Ordering::Relaxed) + weight;
        self.0[target as usize].fetch_min(sum, Ordering::Relaxed) > sum
    }
}

/// The hops to each vertex.
struct Hops<'a>(&'a [AtomicU32], u32);

impl EdgeFunctor for Hops<'_> {
    fn update_atomic(&self, _source: VertexId, target: VertexId, _weight: ()) -> bool {
        let unreached = u32::MAX;
        self.0[target as usize].compare_exchange(unreached, self.1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn condition(&self, target: VertexId) -> bool {
        self.0[target as usize].load(Ordering::Relaxed) == u32::MAX
    }
}

fn unreached(graph: &impl Graph) -> Vec<AtomicU32> {
    let values: Vec<_> = (0..graph.vertex_bound()).map(|_| AtomicU32::new(u32::MAX)).collect();
    values[0].store(0, Ordering::Relaxed);
    values
}

fn hops<G: Graph>(context: &Context<'_>, graph: &G) -> kernel::Result<Vec<u32>> {
    let found = unreached(graph);
    let mut frontier = VertexSubset::single(graph.vertex_bound(), 0);
    for depth in 1.. {
        let mut options = EdgeMapOptions::default();
        frontier = edge_map(context, graph, &mut frontier, &Hops(&found, depth), &mut options)?;
        if frontier.is_empty() {
            break;
        }
    }
    graph.check()?;
    Ok(found.into_iter().map(AtomicU32::into_inner).collect())
}

fn distances<G: WeightedEdges>(context: &Context<'_>, graph: &G) -> kernel::Result<Vec<u32>> {
    let found = unreached(graph);
    let mut frontier = VertexSubset::single(graph.vertex_bound(), 0);
    while !frontier.is_empty() {
        let mut options = EdgeMapOptions { distinct: true, ..EdgeMapOptions::default() };
        frontier = weighted_edge_map(context, graph, &mut frontier, &Relax(&found), &mut options)?;
    }
    graph.check()?;
    Ok(found.into_iter().map(AtomicU32::into_inner).collect())
}

fn stored(grid: &Grid) -> anden::Result<Csr> {
    let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, grid.vertex_bound());
    for source in 0..grid.vertex_bound() as VertexId {
        grid.out_list(source).into_iter().for_each(|target| builder.edge(source, target, 1));
    }
    Ok(builder.build_weighted()?)
}

#[test]
fn own_graph_answers_as_a_stored_one() {
    let (grid, pool) = (Grid::new(70, 40), Pool::new(2).unwrap());
    let (context, csr) = (Context::new(&pool), stored(&grid).unwrap());
    let params = bfs::BfsParams { source: 0, parents: false };
    let expected: Vec<u32> = (0..grid.width * grid.height).map(|v| v / grid.width + v % grid.width).collect();
    assert_eq!(bfs::bfs(&context, &grid, &params).unwrap().hops, expected);
    assert_eq!(bfs::bfs(&context, &csr, &params).unwrap().hops, expected);
    let params = pagerank::PageRankParams::default();
    let [own, plain] = [
        pagerank::pagerank(&context, &grid, &params).unwrap().scores,
        pagerank::pagerank(&context, &csr, &params).unwrap().scores,
    ];
    assert!(own.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-9));
}

#[test]
fn own_kernel_runs_on_any_graph() {
    let (grid, pool) = (Grid::new(50, 30), Pool::new(2).unwrap());
    let (context, csr) = (Context::new(&pool), stored(&grid).unwrap());
    let expected = hops(&context, &grid).unwrap();
    assert_eq!(expected[grid.vertex_bound() - 1], 49 + 29);
    assert!(grid.num_announced.load(Ordering::Relaxed) > 0);
    for found in [hops(&context, &csr), distances(&context, &grid), distances(&context, &csr)] {
        assert_eq!(found.unwrap(), expected);
    }
    let db = anden::Database::in_memory(anden::Options::default()).unwrap();
    db.apply(&[anden::Update::add_edge(0, 1), anden::Update::add_edge(1, 2)]).unwrap();
    let view = db.view().unwrap();
    assert_eq!(hops(&view.context(), view.graph()).unwrap(), [0, 1, 2]);
}
