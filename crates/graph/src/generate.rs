//! Synthetic graphs, the same at any number of threads.
//!
//! A [`Generator`] cuts its edges into numbered blocks; what a block holds follows from the
//! parameters and its number alone, so blocks may be made in any order by any thread. Ids are
//! permuted at random, so that nothing can be read off them, but for those of roads: they follow the
//! rows, as the ids of road maps follow the land.
//!
//! # Source
//! R-MAT: Chakrabarti, Zhan, Faloutsos, SDM 2004; its parameters are those of the Graph500
//! benchmark. Ours draws no noise per level, and permutes ids by a bijection in place of a table.

mod permute;
mod random;
mod write;

use std::ops::{Range, RangeInclusive};
use std::sync::Mutex;

use base::parallel::Pool;
use base::progress::Progress;
use base::{MAX_VERTICES, VertexId};

use crate::{Error, Result};
use permute::Permutation;
use random::{Random, hash};

/// Edges of one block.
const BLOCK_EDGES: u64 = 64 << 10;
/// The largest `scale`: ids stay below [`MAX_VERTICES`].
const MAX_SCALE: u32 = 31;
/// The most edges.
const MAX_EDGES: u64 = 1 << 48;

/// A graph with communities and hubs: every edge falls into one quarter of the matrix again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct RmatParams {
    /// There are two to this power of vertices, at most 2^31.
    pub scale: u32,
    /// Edges a vertex.
    pub degree: u64,
    /// The share of the upper left quarter.
    pub a: f64,
    /// The share of the upper right quarter.
    pub b: f64,
    /// The share of the lower left quarter; the rest falls to the last.
    pub c: f64,
    /// Other seeds give other graphs.
    pub seed: u64,
}

impl Default for RmatParams {
    fn default() -> Self {
        Self { scale: 20, degree: 16, a: 0.57, b: 0.19, c: 0.19, seed: 1 }
    }
}

/// A graph whose edges join any two vertices with the same probability.
#[derive(Clone, Debug, PartialEq)]
pub struct UniformParams {
    /// There are two to this power of vertices, at most 2^31.
    pub scale: u32,
    /// Edges a vertex.
    pub degree: u64,
    /// Other seeds give other graphs.
    pub seed: u64,
}

impl Default for UniformParams {
    fn default() -> Self {
        Self { scale: 20, degree: 16, seed: 1 }
    }
}

/// A grid in which every vertex has an edge to its neighbours on the right and below.
#[derive(Clone, Debug, PartialEq)]
pub struct GridParams {
    /// Vertices a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Other seeds give other ids.
    pub seed: u64,
}

impl Default for GridParams {
    fn default() -> Self {
        Self { width: 1000, height: 1000, seed: 1 }
    }
}

/// A network of roads: a grid whose vertices have edges to most of those around them.
///
/// A vertex has edges to its 4 neighbours in the grid and to most of the 16 that are next after them, those up to a
/// knight's move away: 16 edges on average and at most 18, fewer at the border.
#[derive(Clone, Debug, PartialEq)]
pub struct RoadParams {
    /// Vertices a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Other seeds give other edges.
    pub seed: u64,
}

impl Default for RoadParams {
    fn default() -> Self {
        Self { width: 1000, height: 1000, seed: 1 }
    }
}

/// The neighbours in a grid that come after a vertex, by column and row.
const GRID_STEPS: [(i64, u64); 2] = [(1, 0), (0, 1)];
/// Those that come after a vertex of the next ones: a vertex of a network of roads has edges to all of them but two.
const ROAD_STEPS: [(i64, u64); 8] = [(1, 1), (-1, 1), (2, 0), (0, 2), (2, 1), (-2, 1), (1, 2), (-1, 2)];

#[derive(Clone, Debug)]
enum Kind {
    /// Shares of the first three quarters, summed, of 2^32.
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

/// Gives the edges of a synthetic graph, each once, loops and repeated edges included.
#[derive(Clone, Debug)]
pub struct Generator {
    kind: Kind,
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
    /// An R-MAT graph.
    ///
    /// # Errors
    /// Too many vertices or edges, or shares that are negative or sum to more than 1.
    pub fn rmat(params: &RmatParams) -> Result<Self> {
        let RmatParams { scale, degree, a, b, c, seed } = *params;
        for (name, share) in [("a", a), ("b", b), ("c", c)] {
            if !(0.0..=1.0).contains(&share) {
                return bad(format!("expected {name} from 0 to 1, found {share}"));
            }
        }
        // What was typed as decimal fractions may sum to a little more than 1.
        if a + b + c > 1.0 + 1e-9 {
            return bad(format!("expected a + b + c of at most 1, found {}", a + b + c));
        }
        let part = |sum: f64| ((sum.min(1.0) * (1_u64 << 32) as f64).round()) as u64;
        let kind = Kind::Rmat { scale, a: part(a), ab: part(a + b), abc: part(a + b + c) };
        Self::scaled(kind, scale, degree, seed)
    }

    /// A uniform graph.
    ///
    /// # Errors
    /// Too many vertices or edges.
    pub fn uniform(params: &UniformParams) -> Result<Self> {
        Self::scaled(Kind::Uniform { scale: params.scale }, params.scale, params.degree, params.seed)
    }

    fn scaled(kind: Kind, scale: u32, degree: u64, seed: u64) -> Result<Self> {
        if scale > MAX_SCALE {
            return bad(format!("expected a scale of at most {MAX_SCALE}, found {scale}"));
        }
        let num_vertices = 1_u64 << scale;
        match num_vertices.checked_mul(degree) {
            Some(num_edges) if num_edges <= MAX_EDGES => Ok(Self::new(kind, seed, num_vertices, num_edges)),
            _ => bad(format!("expected at most {MAX_EDGES} edges, found {num_vertices} times {degree}")),
        }
    }

    /// A grid.
    ///
    /// # Errors
    /// Too many vertices.
    pub fn grid(params: &GridParams) -> Result<Self> {
        let GridParams { width, height, seed } = *params;
        match width.checked_mul(height) {
            Some(num_vertices) if num_vertices <= MAX_VERTICES as u64 => {
                let num_edges = 2 * num_vertices - if num_vertices == 0 { 0 } else { width + height };
                Ok(Self::new(Kind::Grid { width, height }, seed, num_vertices, num_edges))
            }
            _ => bad(format!("expected at most {MAX_VERTICES} vertices, found {width} times {height}")),
        }
    }

    /// A network of roads.
    ///
    /// Cost: a look at the vertices of the border, of which there is something to be left out.
    ///
    /// # Errors
    /// Too many vertices.
    pub fn road(params: &RoadParams) -> Result<Self> {
        let RoadParams { width, height, seed } = *params;
        let num_vertices = match width.checked_mul(height) {
            Some(num_vertices) if num_vertices <= MAX_VERTICES as u64 => num_vertices,
            _ => return bad(format!("expected at most {MAX_VERTICES} vertices, found {width} times {height}")),
        };
        let mut road = Self::new(Kind::Road { width, height }, seed, num_vertices, 0);
        let (mut border, mut num_edges) = (Vec::new(), 0);
        for y in 0..height {
            // No step leads further than two columns or rows.
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

    fn new(kind: Kind, seed: u64, num_vertices: u64, num_edges: u64) -> Self {
        let permutation = Permutation::new(num_vertices, seed);
        Self { kind, seed, num_vertices, num_edges, permutation, weights: None }
    }

    /// Gives every edge a weight of the range, both ends included. The two directions of an edge,
    /// and repeated edges, have the same weight.
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

    /// The number of vertices; ids are below it.
    pub fn num_vertices(&self) -> u64 {
        self.num_vertices
    }

    /// The number of edges, loops and repeated edges included.
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
            // A block of a grid is of vertices, each with its few edges.
            Kind::Grid { .. } | Kind::Road { .. } => self.num_vertices.div_ceil(BLOCK_EDGES),
            _ => self.num_edges.div_ceil(BLOCK_EDGES),
        }
    }

    /// The most edges of a block.
    fn most_block_edges(&self) -> u64 {
        let edges_an_item = match self.kind {
            Kind::Rmat { .. } | Kind::Uniform { .. } => 1,
            Kind::Grid { .. } => GRID_STEPS.len(),
            Kind::Road { .. } => GRID_STEPS.len() + ROAD_STEPS.len() - 2,
        };
        BLOCK_EDGES * edges_an_item as u64
    }

    /// The bytes of the edges that workers make, each a block at a time: a list that grows has room for twice as many, and
    /// its old place beside it for a moment.
    fn block_bytes(&self, num_threads: usize) -> u64 {
        let block = 3 * self.most_block_edges() * size_of::<(VertexId, VertexId)>() as u64;
        self.num_blocks().min(num_threads as u64) * block
    }

    /// Replaces `edges` by those of a block. Cost of R-MAT: a random number for two
    /// levels of each edge.
    pub fn edges_of_block(&self, block: u64, edges: &mut Vec<(VertexId, VertexId)>) {
        edges.clear();
        let is_by_vertex = matches!(self.kind, Kind::Grid { .. } | Kind::Road { .. });
        let total = if is_by_vertex { self.num_vertices } else { self.num_edges };
        let items = block * BLOCK_EDGES..total.min((block + 1) * BLOCK_EDGES);
        let mut random = Random::of_block(self.seed, block);
        match self.kind {
            Kind::Rmat { scale, a, ab, abc } => {
                edges.extend(items.map(|_| self.permuted(rmat_edge(&mut random, scale, a, ab, abc))));
            }
            Kind::Uniform { scale } => edges.extend(items.map(|_| {
                let bits = random.next();
                let mask = (1_u64 << scale) - 1;
                self.permuted((bits & mask, bits >> 32 & mask))
            })),
            Kind::Grid { width, height } => self.grid_edges(items, width, height, edges),
            Kind::Road { width, height } => self.road_edges(items, width, height, edges),
        }
    }

    fn road_edges(&self, vertices: Range<u64>, width: u64, height: u64, edges: &mut Vec<(VertexId, VertexId)>) {
        for vertex in vertices {
            let bits = hash(self.seed, vertex);
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

    /// The weight of an edge; 1 where edges have none.
    pub fn weight(&self, source: VertexId, target: VertexId) -> u32 {
        let Some(weights) = &self.weights else { return 1 };
        let ends = u64::from(source.min(target)) << 32 | u64::from(source.max(target));
        let width = u64::from(weights.end() - weights.start()) + 1;
        let high = hash(self.seed, ends) >> 32;
        weights.start() + ((high * width) >> 32) as u32
    }

    /// Calls `body` with the edges of every block, in no order, unless the work is cancelled.
    fn for_each_block(&self, pool: &Pool, progress: &dyn Progress, body: impl Fn(&[(VertexId, VertexId)]) + Sync) {
        let buffers: Vec<Mutex<Vec<_>>> = (0..pool.num_threads()).map(|_| Mutex::new(Vec::new())).collect();
        pool.for_each_chunk(0..self.num_blocks() as usize, 1, |worker, blocks| {
            let mut edges = buffers[worker].lock().unwrap_or_else(|e| e.into_inner());
            for block in blocks.take_while(|_| !progress.is_cancelled()) {
                self.edges_of_block(block as u64, &mut edges);
                body(&edges);
            }
        });
    }

    /// All edges, block after block. Cost: eight bytes an edge, twice for a moment.
    pub fn edges(&self, pool: &Pool) -> Vec<(VertexId, VertexId)> {
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
        // A random number serves two levels.
        bits = if level % 2 == 0 { random.next() } else { bits >> 32 };
        let share = bits & 0xffff_ffff;
        let lower = u64::from(share >= ab);
        let right = u64::from(share >= a) - lower + u64::from(share >= abc);
        source = source << 1 | lower;
        target = target << 1 | right;
    }
    (source, target)
}
