//! Synthetic graphs, equal at any number of threads.
//!
//! A [`Generator`] cuts its edges into numbered blocks. The parameters and the number alone determine a block, so
//! threads make blocks in any order. Ids are permuted at random, so that they reveal nothing about a vertex. Road
//! networks are the exception: their ids follow the rows, as the ids of road maps follow the land.
//!
//! # Source
//! R-MAT: Chakrabarti, Zhan, Faloutsos, SDM 2004, with the parameters of the Graph500 benchmark. This generator draws
//! no noise per level, and permutes ids by a bijection instead of a table.

mod csr;
mod permute;
mod random;

use std::ops::{Range, RangeInclusive};

use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_base::random::Random;
use anden_base::{MAX_VERTICES, VertexId};
use parking_lot::Mutex;

use crate::{Error, Result};
use permute::Permutation;
use random::{hash, of_block};

/// Items of one block: edges, or the vertices of a grid.
const BLOCK_EDGES: u64 = 64 << 10;
/// The largest `scale`: ids stay below [`MAX_VERTICES`].
const MAX_SCALE: u32 = 31;
/// The largest number of edges.
const MAX_EDGES: u64 = 1 << 48;

/// An R-MAT graph, with communities and hubs. Each edge falls recursively into one quarter of the adjacency matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct RmatParams {
    /// The graph has 2^scale vertices; at most 31.
    pub scale: u32,
    /// Edges per vertex.
    pub degree: u64,
    /// The probability of the upper left quarter.
    pub a: f64,
    /// The probability of the upper right quarter.
    pub b: f64,
    /// The probability of the lower left quarter. The lower right quarter has the rest.
    pub c: f64,
    /// The random seed of the graph.
    pub seed: u64,
}

impl Default for RmatParams {
    fn default() -> Self {
        Self { scale: 20, degree: 16, a: 0.57, b: 0.19, c: 0.19, seed: 1 }
    }
}

/// A graph with edges between uniformly random vertices.
#[derive(Clone, Debug, PartialEq)]
pub struct UniformParams {
    /// The graph has 2^scale vertices; at most 31.
    pub scale: u32,
    /// Edges per vertex.
    pub degree: u64,
    /// The random seed of the graph.
    pub seed: u64,
}

impl Default for UniformParams {
    fn default() -> Self {
        Self { scale: 20, degree: 16, seed: 1 }
    }
}

/// A grid in which every vertex has edges to its right and lower neighbors.
#[derive(Clone, Debug, PartialEq)]
pub struct GridParams {
    /// Vertices per row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// The random seed of the ids.
    pub seed: u64,
}

impl Default for GridParams {
    fn default() -> Self {
        Self { width: 1000, height: 1000, seed: 1 }
    }
}

/// A road network: a grid with edges to most vertices nearby.
///
/// A vertex has edges to its 4 neighbors in the grid, and to most of the 16 next ones, up to a knight's move away. That
/// is 16 edges on average and at most 18, fewer at the border.
#[derive(Clone, Debug, PartialEq)]
pub struct RoadParams {
    /// Vertices per row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// The random seed of the edges.
    pub seed: u64,
}

impl Default for RoadParams {
    fn default() -> Self {
        Self { width: 1000, height: 1000, seed: 1 }
    }
}

/// Steps to the grid neighbors that come after a vertex, by column and row.
const GRID_STEPS: [(i64, u64); 2] = [(1, 0), (0, 1)];
/// Steps to the further neighbors that come after a vertex. A road network leaves out two of them for each vertex.
const ROAD_STEPS: [(i64, u64); 8] = [(1, 1), (-1, 1), (2, 0), (0, 2), (2, 1), (-2, 1), (1, 2), (-1, 2)];

#[derive(Clone, Debug)]
enum GeneratorKind {
    /// Cumulative probabilities of the first three quarters, as fractions of 2^32.
    Rmat {
        scale: u32,
        a: u64,
        ab: u64,
        abc: u64,
    },
    Uniform {
        scale: u32,
    },
    Grid {
        width: u64,
        height: u64,
    },
    Road {
        width: u64,
        height: u64,
    },
}

/// Generates the edges of a synthetic graph, each once. Loops and repeated edges are kept.
#[derive(Clone, Debug)]
pub struct Generator {
    kind: GeneratorKind,
    seed: u64,
    num_vertices: u64,
    num_edges: u64,
    permutation: Permutation,
    weights: Option<RangeInclusive<u32>>,
}

fn bad<T>(what: String) -> Result<T> {
    Err(Error::Parameter(what))
}

impl Generator {
    /// Creates a generator of an R-MAT graph.
    ///
    /// # Errors
    /// Too many vertices or edges, or probabilities that are negative or sum to more than 1.
    pub fn rmat(params: &RmatParams) -> Result<Self> {
        let RmatParams { scale, degree, a, b, c, seed } = *params;
        for (name, share) in [("a", a), ("b", b), ("c", c)] {
            if !(0.0..=1.0).contains(&share) {
                return bad(format!("expected {name} from 0 to 1, found {share}"));
            }
        }
        // Decimal fractions may sum to slightly more than 1.
        if a + b + c > 1.0 + 1e-9 {
            return bad(format!("expected a + b + c of at most 1, found {}", a + b + c));
        }
        // Whole numbers, because comparisons in the inner loop are then exact and cheap.
        let part = |sum: f64| ((sum.min(1.0) * (1_u64 << 32) as f64).round()) as u64;
        let kind = GeneratorKind::Rmat { scale, a: part(a), ab: part(a + b), abc: part(a + b + c) };
        Self::scaled(kind, scale, degree, seed)
    }

    /// Creates a generator of a uniform graph.
    ///
    /// # Errors
    /// Too many vertices or edges.
    pub fn uniform(params: &UniformParams) -> Result<Self> {
        Self::scaled(GeneratorKind::Uniform { scale: params.scale }, params.scale, params.degree, params.seed)
    }

    fn scaled(kind: GeneratorKind, scale: u32, degree: u64, seed: u64) -> Result<Self> {
        // Checked before the shift, which a larger scale would overflow.
        if scale > MAX_SCALE {
            return bad(format!("expected a scale of at most {MAX_SCALE}, found {scale}"));
        }
        let num_vertices = 1_u64 << scale;
        match num_vertices.checked_mul(degree) {
            Some(num_edges) if num_edges <= MAX_EDGES => Ok(Self::new(kind, seed, num_vertices, num_edges)),
            _ => bad(format!("expected at most {MAX_EDGES} edges, found {num_vertices} times {degree}")),
        }
    }

    /// Creates a generator of a grid.
    ///
    /// # Errors
    /// Too many vertices.
    pub fn grid(params: &GridParams) -> Result<Self> {
        let GridParams { width, height, seed } = *params;
        match width.checked_mul(height) {
            Some(num_vertices) if num_vertices <= MAX_VERTICES as u64 => {
                // The last column has no right neighbor, and the last row no lower one.
                let num_edges = 2 * num_vertices - if num_vertices == 0 { 0 } else { width + height };
                Ok(Self::new(GeneratorKind::Grid { width, height }, seed, num_vertices, num_edges))
            }
            _ => bad(format!("expected at most {MAX_VERTICES} vertices, found {width} times {height}")),
        }
    }

    /// Creates a generator of a road network.
    ///
    /// Cost: generates the edges of the border vertices, because only their number varies.
    ///
    /// # Errors
    /// Too many vertices.
    pub fn road(params: &RoadParams) -> Result<Self> {
        let RoadParams { width, height, seed } = *params;
        let num_vertices = match width.checked_mul(height) {
            Some(num_vertices) if num_vertices <= MAX_VERTICES as u64 => num_vertices,
            _ => return bad(format!("expected at most {MAX_VERTICES} vertices, found {width} times {height}")),
        };
        let mut road = Self::new(GeneratorKind::Road { width, height }, seed, num_vertices, 0);
        let (mut border, mut num_edges) = (Vec::new(), 0);
        for y in 0..height {
            // No step leads further than two columns or rows, so inner vertices have all edges.
            let inner = if y + 2 < height && width > 4 { 2..width - 2 } else { 0..0 };
            num_edges += inner.end.saturating_sub(inner.start) * (GRID_STEPS.len() + ROAD_STEPS.len() - 2) as u64;
            for x in (0..inner.start).chain(inner.end..width) {
                let vertex = y * width + x;
                road.road_edges(vertex..vertex + 1, width, height, &mut border);
            }
            num_edges += border.len() as u64;
            border.clear();
        }
        road.num_edges = num_edges;
        Ok(road)
    }

    fn new(kind: GeneratorKind, seed: u64, num_vertices: u64, num_edges: u64) -> Self {
        let permutation = Permutation::new(num_vertices, seed);
        Self { kind, seed, num_vertices, num_edges, permutation, weights: None }
    }

    /// Gives every edge a weight from `weights`. Both directions of an edge and its repetitions have one weight.
    ///
    /// # Errors
    /// The range is empty.
    pub fn with_weights(mut self, weights: RangeInclusive<u32>) -> Result<Self> {
        if weights.is_empty() {
            return bad(format!(
                "expected weights LO..HI with LO at most HI, found {}..{}",
                weights.start(),
                weights.end()
            ));
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// The number of vertices. Ids are below this number.
    pub fn num_vertices(&self) -> u64 {
        self.num_vertices
    }

    /// The number of edges, with loops and repeated edges.
    pub fn num_edges(&self) -> u64 {
        self.num_edges
    }

    /// Whether edges have weights.
    pub fn has_weights(&self) -> bool {
        self.weights.is_some()
    }

    /// The number of blocks.
    pub fn num_blocks(&self) -> u64 {
        match self.kind {
            // A block of a grid consists of vertices, because each has few edges.
            GeneratorKind::Grid { .. } | GeneratorKind::Road { .. } => self.num_vertices.div_ceil(BLOCK_EDGES),
            _ => self.num_edges.div_ceil(BLOCK_EDGES),
        }
    }

    /// The largest weight; `None` if edges have no weights.
    pub fn largest_weight(&self) -> Option<u32> {
        self.weights.as_ref().map(|weights| *weights.end())
    }

    /// The largest number of edges of a block.
    pub fn most_block_edges(&self) -> u64 {
        let edges_an_item = match self.kind {
            GeneratorKind::Rmat { .. } | GeneratorKind::Uniform { .. } => 1,
            GeneratorKind::Grid { .. } => GRID_STEPS.len(),
            GeneratorKind::Road { .. } => GRID_STEPS.len() + ROAD_STEPS.len() - 2,
        };
        BLOCK_EDGES * edges_an_item as u64
    }

    /// The bytes of the blocks that workers hold, one block each. A growing vector has capacity for twice its length,
    /// and while it moves its old buffer exists too, hence the factor 3.
    pub fn block_bytes(&self, num_threads: usize) -> u64 {
        let block = 3 * self.most_block_edges() * size_of::<(VertexId, VertexId)>() as u64;
        self.num_blocks().min(num_threads as u64) * block
    }

    /// Replaces `edges` by the edges of a block. Cost of R-MAT: one random number per two levels of each edge.
    pub fn edges_of_block(&self, block: u64, edges: &mut Vec<(VertexId, VertexId)>) {
        edges.clear();
        // `num_blocks` counts blocks by the same rule.
        let is_by_vertex = matches!(self.kind, GeneratorKind::Grid { .. } | GeneratorKind::Road { .. });
        let total = if is_by_vertex { self.num_vertices } else { self.num_edges };
        let items = block * BLOCK_EDGES..total.min((block + 1) * BLOCK_EDGES);
        // Each block has its own random numbers, so blocks do not depend on the order of the threads.
        let mut random = of_block(self.seed, block);
        match self.kind {
            GeneratorKind::Rmat { scale, a, ab, abc } => {
                edges.extend(items.map(|_| self.permuted(rmat_edge(&mut random, scale, a, ab, abc))));
            }
            GeneratorKind::Uniform { scale } => edges.extend(items.map(|_| {
                // One number gives both ends: each has at most 31 bits.
                let bits = random.next_u64();
                let mask = (1_u64 << scale) - 1;
                self.permuted((bits & mask, bits >> 32 & mask))
            })),
            GeneratorKind::Grid { width, height } => self.grid_edges(items, width, height, edges),
            GeneratorKind::Road { width, height } => self.road_edges(items, width, height, edges),
        }
    }

    fn road_edges(&self, vertices: Range<u64>, width: u64, height: u64, edges: &mut Vec<(VertexId, VertexId)>) {
        for vertex in vertices {
            // The bits depend on the vertex only, so `road` counts single vertices without the blocks.
            let bits = hash(self.seed, vertex);
            // Two different steps are left out: the second is one of the other seven.
            let first_out = bits % 8;
            let second_out = (first_out + 1 + (bits >> 8) % 7) % 8;
            let road = (0..).zip(ROAD_STEPS).filter(|&(place, _)| place != first_out && place != second_out);
            for (columns, rows) in GRID_STEPS.into_iter().chain(road.map(|(_, step)| step)) {
                let (x, y) = ((vertex % width).checked_add_signed(columns), vertex / width + rows);
                if let Some(x) = x.filter(|&x| x < width && y < height) {
                    edges.push((vertex as VertexId, (y * width + x) as VertexId));
                }
            }
        }
    }

    fn grid_edges(&self, vertices: Range<u64>, width: u64, height: u64, edges: &mut Vec<(VertexId, VertexId)>) {
        for vertex in vertices {
            if vertex % width + 1 < width {
                edges.push(self.permuted((vertex, vertex + 1)));
            }
            if vertex / width + 1 < height {
                edges.push(self.permuted((vertex, vertex + width)));
            }
        }
    }

    #[inline]
    fn permuted(&self, (source, target): (u64, u64)) -> (VertexId, VertexId) {
        (self.permutation.of(source) as VertexId, self.permutation.of(target) as VertexId)
    }

    /// The weight of an edge; 1 if edges have no weights.
    pub fn weight(&self, source: VertexId, target: VertexId) -> u32 {
        let Some(weights) = &self.weights else { return 1 };
        // Ordered ends give both directions of an edge one weight.
        let ends = u64::from(source.min(target)) << 32 | u64::from(source.max(target));
        let width = u64::from(weights.end() - weights.start()) + 1;
        // A product maps 32 bits to the range without a division.
        let high = hash(self.seed, ends) >> 32;
        weights.start() + ((high * width) >> 32) as u32
    }

    /// Calls `body` with the edges of every block, in any order. Stops early if the work is cancelled.
    fn for_each_block(&self, pool: &Pool, progress: &dyn Progress, body: impl Fn(&[(VertexId, VertexId)]) + Sync) {
        // Each worker reuses one buffer for all its blocks.
        let buffers: Vec<Mutex<Vec<_>>> = (0..pool.num_threads()).map(|_| Mutex::new(Vec::new())).collect();
        pool.for_each_chunk(0..self.num_blocks() as usize, 1, |worker, blocks| {
            let mut edges = buffers[worker].lock();
            for block in blocks.take_while(|_| !progress.is_cancelled()) {
                self.edges_of_block(block as u64, &mut edges);
                body(&edges);
            }
        });
    }

    /// All edges, block after block. Cost: 8 bytes an edge, twice that while blocks are joined.
    pub fn edges(&self, pool: &Pool) -> Vec<(VertexId, VertexId)> {
        // One block a chunk, so that the start of a chunk is the number of its block.
        let blocks = pool.map_chunks(0..self.num_blocks() as usize, 1, |_, blocks| {
            let mut edges = Vec::new();
            self.edges_of_block(blocks.start as u64, &mut edges);
            edges
        });
        blocks.concat()
    }
}

fn rmat_edge(random: &mut Random, scale: u32, a: u64, ab: u64, abc: u64) -> (u64, u64) {
    let (mut source, mut target) = (0, 0);
    let mut bits = 0;
    for level in 0..scale {
        // One random number serves two levels, 32 bits each.
        bits = if level % 2 == 0 { random.next_u64() } else { bits >> 32 };
        let share = bits & 0xffff_ffff;
        // Sums of comparisons: a branch could not predict the quarter.
        let lower = u64::from(share >= ab);
        let right = u64::from(share >= a) - lower + u64::from(share >= abc);
        source = source << 1 | lower;
        target = target << 1 | right;
    }
    (source, target)
}
