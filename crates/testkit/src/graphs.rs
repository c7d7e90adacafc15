//! Small graphs of the shapes that have broken algorithms.

use anden_base::VertexId;
use anden_graph::{Csr, CsrBuilder, GraphKind, Result, Weight};

use crate::Random;

/// A graph as a list of edges, with a name for messages.
#[derive(Clone, Debug)]
pub struct TestGraph {
    /// The name; unique among [`graphs`].
    pub name: &'static str,
    /// Whether the edges have a direction.
    pub graph_kind: GraphKind,
    /// The number of vertices; all ids are below it.
    pub num_vertices: usize,
    /// Whether parallel edges are kept.
    pub multigraph: bool,
    /// Source, target and weight of every edge. Weights are below 20 and include 0.
    pub edges: Vec<(VertexId, VertexId, u32)>,
}

impl TestGraph {
    fn new(name: &'static str, graph_kind: GraphKind, num_vertices: usize, pairs: Vec<(VertexId, VertexId)>) -> Self {
        // Seeded by the size, so that a graph has the same weights in every run.
        let mut random = Random::new(pairs.len() as u64);
        let edges = pairs.into_iter().map(|(s, t)| (s, t, random.below(20))).collect();
        Self { name, graph_kind, num_vertices, multigraph: false, edges }
    }

    /// The graph without weights.
    ///
    /// # Errors
    /// An edge names a vertex that is not below [`num_vertices`](Self::num_vertices).
    pub fn build(&self) -> Result<Csr> {
        self.builder(|w| w).build()
    }

    /// The graph with weights of type `W`.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn build_weighted<W: Weight>(&self) -> Result<Csr> {
        // Every weight is a small integer, which each type can hold.
        self.builder(|w| w.to_string().parse::<W>().unwrap_or(W::ONE)).build_weighted()
    }

    fn builder<W: Weight>(&self, weight: impl Fn(u32) -> W) -> CsrBuilder<W> {
        let mut builder = CsrBuilder::new(self.graph_kind, self.num_vertices);
        if self.multigraph {
            builder = builder.keep_parallel();
        }
        self.edges.iter().for_each(|&(s, t, w)| builder.edge(s, t, weight(w)));
        builder
    }
}

/// All test graphs. The largest has a few thousand edges.
pub fn graphs() -> Vec<TestGraph> {
    use GraphKind::{Directed, Undirected};
    let mut all = Vec::new();
    for (graph_kind, names) in [(Directed, &DIRECTED_NAMES), (Undirected, &UNDIRECTED_NAMES)] {
        for (&name, (num_vertices, pairs)) in names.iter().zip(shapes()) {
            all.push(TestGraph::new(name, graph_kind, num_vertices, pairs));
        }
    }
    // Parallel edges, parallel loops, and a vertex without edges.
    let parallel: Vec<_> = vec![(0, 1), (0, 1), (0, 1), (1, 2), (2, 0), (2, 0), (2, 2), (2, 2), (3, 1)];
    for (graph_kind, name) in [(Directed, "parallel edges"), (Undirected, "undirected parallel edges")] {
        all.push(TestGraph { multigraph: true, ..TestGraph::new(name, graph_kind, 5, parallel.clone()) });
    }
    for (graph_kind, name) in [(Directed, "multigraph"), (Undirected, "undirected multigraph")] {
        let pairs = random_pairs(60, 3000, 0x3317);
        all.push(TestGraph { multigraph: true, ..TestGraph::new(name, graph_kind, 60, pairs) });
    }
    // More vertices than one chunk of a worker, as in a window view with few edges.
    for (graph_kind, name) in [(Directed, "few edges"), (Undirected, "undirected few edges")] {
        let pairs = random_pairs(80, 100, 0xfe).into_iter().map(|(s, t)| (s * 101 + 7, t * 101 + 7)).collect();
        all.push(TestGraph::new(name, graph_kind, 8100, pairs));
    }
    let deep = layers(12, 40, 0x1a7e);
    all.push(TestGraph::new("layers", Directed, 12 * 40, deep));
    all
}

/// Calls `body` with the name of every test graph and the graph itself, with `u32` weights.
///
/// Prints each name, so the output of a failing test shows the graph.
pub fn for_each_graph(mut body: impl FnMut(&str, &Csr)) {
    for graph in graphs() {
        println!("graph: {}", graph.name);
        match graph.build_weighted::<u32>() {
            Ok(csr) => body(graph.name, &csr),
            Err(error) => panic!("{}: {error}", graph.name),
        }
    }
}

const NUM_SHAPES: usize = 14;

const DIRECTED_NAMES: [&str; NUM_SHAPES] = [
    "empty",
    "one vertex",
    "loop",
    "no edges",
    "star out",
    "star in",
    "path",
    "cycle",
    "complete",
    "grid",
    "two parts",
    "sparse",
    "dense",
    "rmat",
];

const UNDIRECTED_NAMES: [&str; NUM_SHAPES] = [
    "undirected empty",
    "undirected one vertex",
    "undirected loop",
    "undirected no edges",
    "undirected star",
    "undirected star at the end",
    "undirected path",
    "undirected cycle",
    "undirected complete",
    "undirected grid",
    "undirected two parts",
    "undirected sparse",
    "undirected dense",
    "undirected rmat",
];

/// The number of vertices and the edges of each shape, in the order of the names.
fn shapes() -> [(usize, Vec<(VertexId, VertexId)>); NUM_SHAPES] {
    let two_parts = || {
        // A cycle with chords, a gap of vertices without edges, and a path against the order of ids.
        let first = (0..40).flat_map(|v| [(v, (v + 1) % 40), (v, (v * 7 + 3) % 40)]);
        let second = (50..90).map(|v| (v + 1, v));
        first.chain(second).collect()
    };
    [
        (0, vec![]),
        (1, vec![]),
        (2, vec![(1, 1)]),
        (130, vec![]),
        (200, (1..200).map(|v| (0, v)).collect()),
        (200, (0..199).map(|v| (v, 199)).collect()),
        (150, (1..150).map(|v| (v - 1, v)).collect()),
        (67, (0..67).map(|v| (v, (v + 1) % 67)).collect()),
        (24, (0..24).flat_map(|u| (0..24).filter(move |&v| u != v).map(move |v| (u, v))).collect()),
        (12 * 15, grid(12, 15)),
        (95, two_parts()),
        (500, random_pairs(500, 700, 0x51)),
        (120, random_pairs(120, 4000, 0xde)),
        (512, rmat_pairs(9, 3000, 0x47)),
    ]
}

fn grid(width: u32, height: u32) -> Vec<(VertexId, VertexId)> {
    let id = |x: u32, y: u32| y * width + x;
    let cells = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let steps = cells.flat_map(|(x, y)| {
        let right = (x + 1 < width).then(|| (id(x, y), id(x + 1, y)));
        let down = (y + 1 < height).then(|| (id(x, y), id(x, y + 1)));
        [right, down]
    });
    steps.flatten().collect()
}

fn random_pairs(num_vertices: u32, num_edges: usize, seed: u64) -> Vec<(VertexId, VertexId)> {
    let mut random = Random::new(seed);
    (0..num_edges).map(|_| (random.below(num_vertices), random.below(num_vertices))).collect()
}

/// Edges skewed as in social networks: few vertices have most edges, and many have none.
fn rmat_pairs(scale: u32, num_edges: usize, seed: u64) -> Vec<(VertexId, VertexId)> {
    let mut random = Random::new(seed);
    let mut pair = || {
        // The shares of Graph500.
        (0..scale).fold((0, 0), |(s, t), _| match random.below(100) {
            0..57 => (s * 2, t * 2),
            57..76 => (s * 2, t * 2 + 1),
            76..95 => (s * 2 + 1, t * 2),
            _ => (s * 2 + 1, t * 2 + 1),
        })
    };
    // Multiplication by an odd factor permutes the ids modulo a power of two, so hubs are not the smallest ids.
    let permuted = |v: u32| v.wrapping_mul(0x9e37_79b1) & ((1 << scale) - 1);
    (0..num_edges).map(|_| pair()).map(|(s, t)| (permuted(s), permuted(t))).collect()
}

/// A layered graph with random edges to the next layer, and so with many shortest paths.
fn layers(num_layers: u32, width: u32, seed: u64) -> Vec<(VertexId, VertexId)> {
    let mut random = Random::new(seed);
    let mut edges = Vec::new();
    for layer in 1..num_layers {
        for v in 0..width {
            for _ in 0..3 {
                edges.push(((layer - 1) * width + v, layer * width + random.below(width)));
            }
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_graph::Graph;

    #[test]
    fn every_graph_builds_under_its_own_name() {
        let mut names = Vec::new();
        for_each_graph(|name, csr| {
            assert!(csr.num_arcs() < 20_000, "{name}");
            names.push(name.to_owned());
        });
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 2 * NUM_SHAPES + 7);
    }

    #[test]
    fn weights_are_the_same_in_every_type() {
        for graph in graphs() {
            let (ints, floats) = (graph.build_weighted::<u32>().unwrap(), graph.build_weighted::<f64>().unwrap());
            let ints = u32::of(ints.out_lists().weights().unwrap()).unwrap().to_vec();
            let floats = f64::of(floats.out_lists().weights().unwrap()).unwrap().to_vec();
            assert!(ints.iter().zip(&floats).all(|(&i, &f)| f64::from(i) == f), "{}", graph.name);
        }
    }
}
