//! Small graphs of every shape, and a view that shows them in pages of every kind.

use std::ops::{ControlFlow, Range};

use base::VertexId;
use graph::{Csr, CsrBuilder, Direction, Graph, InEdges, Page, SingleFragment, WillNeed};

type Edges = Vec<(VertexId, VertexId)>;

/// A generator of numbers (Steele, Lea, Flood: SplitMix, OOPSLA 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Edges of which low ids have most.
fn skewed(num_vertices: u64, num_edges: usize, seed: u64) -> Edges {
    let mut state = seed;
    let mut end = || {
        let (a, b) = (next(&mut state) % num_vertices, next(&mut state) % num_vertices);
        (a * b / num_vertices) as VertexId
    };
    (0..num_edges).map(|_| (end(), end())).collect()
}

fn shapes() -> Vec<(String, usize, Edges)> {
    let mut shapes: Vec<(String, usize, Edges)> = vec![
        ("empty".into(), 0, vec![]),
        ("one vertex".into(), 1, vec![]),
        ("one loop".into(), 1, vec![(0, 0)]),
        ("no edges".into(), 70, vec![]),
        ("parallel edges".into(), 3, vec![(0, 1), (0, 1), (1, 2), (0, 1), (2, 0), (2, 2), (2, 2)]),
        ("disconnected".into(), 9, vec![(0, 1), (1, 2), (2, 0), (5, 6), (6, 7), (7, 5), (5, 8)]),
        ("both ways".into(), 4, vec![(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (3, 0)]),
        ("star out".into(), 700, (1..700).map(|v| (0, v)).collect()),
        ("star in".into(), 700, (1..700).map(|v| (v, 0)).collect()),
        ("path".into(), 130, (1..130).map(|v| (v - 1, v)).collect()),
        ("complete".into(), 20, (0..20).flat_map(|a| (0..20).map(move |b| (a, b))).collect()),
    ];
    for seed in 1..=3 {
        shapes.push((format!("sparse, seed {seed}"), 300, skewed(300, 400, seed)));
        shapes.push((format!("skewed, seed {seed}"), 500, skewed(500, 6000, seed)));
        shapes.push((format!("dense, seed {seed}"), 60, skewed(60, 3000, seed)));
    }
    shapes
}

/// Every shape, directed and undirected, simple and with its parallel edges.
pub fn graphs() -> Vec<(String, Csr)> {
    let mut graphs = Vec::new();
    for (name, num_vertices, edges) in shapes() {
        for direction in [Direction::Directed, Direction::Undirected] {
            for multigraph in [false, true] {
                let mut builder = CsrBuilder::<u32>::new(direction, num_vertices);
                edges.iter().for_each(|&(source, target)| builder.edge(source, target, 1));
                let builder = if multigraph { builder.keep_parallel() } else { builder };
                let kind = if multigraph { "multigraph" } else { "simple" };
                graphs.push((format!("{name}, {direction:?}, {kind}"), builder.build().expect("edges are in range")));
            }
        }
    }
    graphs
}

/// A graph shown in pages of eight vertices: dense, patched with lists in two pieces, and empty
/// where all eight have no edges. Every seventh vertex without edges is dead. In-lists may be hidden.
#[derive(Debug)]
pub struct Patchwork<'a> {
    pub csr: &'a Csr,
    pub in_edges: bool,
}

const PAGE: VertexId = 8;

impl Patchwork<'_> {
    fn pages(
        vertices: Range<VertexId>,
        degree: impl Fn(VertexId) -> usize,
        mut dense: impl FnMut(Range<VertexId>, &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>) -> ControlFlow<()>,
        mut body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut first = vertices.start;
        while first < vertices.end {
            let end = vertices.end.min((first / PAGE + 1) * PAGE);
            let page = first..end;
            first = end;
            if page.clone().all(|v| degree(v) == 0) {
                body(Page::Empty(page))?;
            } else if (page.start / PAGE).is_multiple_of(2) {
                body(Page::Patched(page))?;
            } else {
                dense(page, &mut body)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The odd positions, then the even ones: two ascending pieces.
fn pieces(list: &[VertexId], mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>) -> ControlFlow<()> {
    let piece = |start: usize| list.iter().skip(start).step_by(2).copied().collect::<Vec<_>>();
    body(&piece(1))?;
    body(&piece(0))
}

impl WillNeed for Patchwork<'_> {}

impl Graph for Patchwork<'_> {
    type Offset = u64;

    fn vertex_bound(&self) -> usize {
        self.csr.vertex_bound()
    }

    fn num_vertices(&self) -> usize {
        (0..self.vertex_bound() as VertexId).filter(|&v| self.is_live(v)).count()
    }

    fn num_edges(&self) -> u64 {
        self.csr.num_edges()
    }

    fn num_arcs(&self) -> u64 {
        self.csr.num_arcs()
    }

    fn direction(&self) -> Direction {
        self.csr.direction()
    }

    fn is_multigraph(&self) -> bool {
        self.csr.is_multigraph()
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        vertex % 7 != 3 || self.csr.out_degree(vertex) + self.csr.in_degree(vertex) > 0
    }

    fn out_degree(&self, vertex: VertexId) -> usize {
        self.csr.out_degree(vertex)
    }

    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.csr.out_list(vertex).map_or(ControlFlow::Continue(()), |list| pieces(list, body))
    }

    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let dense =
            |page, body: &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>| self.csr.for_each_out_page(page, body);
        Self::pages(vertices, |v| self.csr.out_degree(v), dense, body)
    }
}

impl InEdges for Patchwork<'_> {
    fn has_in_edges(&self) -> bool {
        self.in_edges
    }

    fn in_degree(&self, vertex: VertexId) -> usize {
        if self.in_edges { self.csr.in_degree(vertex) } else { 0 }
    }

    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.in_edges {
            return ControlFlow::Continue(());
        }
        self.csr.for_each_in_fragment(vertex, |list| pieces(list, &mut body))
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
            |page, body: &mut dyn FnMut(Page<'_, u64>) -> ControlFlow<()>| self.csr.for_each_in_page(page, body);
        Self::pages(vertices, |v| self.csr.in_degree(v), dense, body)
    }
}
