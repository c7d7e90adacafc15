//! Shortest paths from one vertex.
//!
//! **Result**: the least sum of weights from the source to every vertex; `u64` for integer weights,
//! `f64` for floating ones.
//!
//! **Algorithm**: delta-stepping (the default). Vertices wait in buckets of `delta` distance each;
//! all of the lowest bucket relax their edges side by side, in no order, until it stays empty.
//! Bellman-Ford relaxes the edges of all vertices that have changed, round by round.
//!
//! **Parameters**: `delta`. A narrow bucket wastes no relaxation but makes many rounds, a wide one the
//! reverse. The default is twice the mean weight divided by the degree of the source of a median arc
//! (Meyer and Sanders' choice of 1/degree for weights up to 1), rounded to a power of two for integer
//! weights. Of weights from 1 to 255 it makes 1 in Kronecker graphs of degree 31, where 2 takes 1.05 and
//! 8 takes 1.17 times as long; 8 in a uniform graph of degree 32 and 64 in a grid, both the best of all
//! powers of two; 4 to 32 in web, social and author graphs and 1,024 in a road network, within 7% of
//! the best. The plain mean degree misses Kronecker graphs, and the mean over the arcs is ruled by a few
//! hubs: it makes 1 in web graphs, which costs them 30%.
//! Of a graph that comes from a disk buckets are 64 times as wide, and are worked off in the order of the
//! lists: a round reads a part of the file, and fewer rounds read less.
//!
//! # Source
//! U. Meyer and P. Sanders: Δ-stepping, a parallelizable shortest path algorithm, Journal of
//! Algorithms 49(1), 2003. Bucket fusion: Y. Zhang et al.: Optimizing ordered graph algorithms with
//! GraphIt, CGO 2020. Ours differs: a vertex carries a mark whether its present distance has been
//! relaxed, so that no entry of a bucket is worked off twice.

mod bellman_ford;
mod buckets;
mod cells;
mod delta_stepping;
mod range;
mod verify;
mod weights;

use base::VertexId;
use graph::{Distance, InEdges, Weight, WeightType, WeightedEdges};

use crate::context::{bytes_for, require_vertex};
use crate::edge_map::{LEAN_BYTES, ROUND_BYTES};
use crate::{Context, Error, Result};

pub(crate) use range::{largest, too_far};
pub use verify::verify;
pub use weights::{WeightStatistics, scan_weights};

/// Where to start, and how.
#[derive(Clone, Debug, Default)]
pub struct SsspParams {
    /// The vertex to start from.
    pub source: VertexId,
    /// The width of a bucket; chosen from the weights and degrees where not given.
    pub delta: Option<f64>,
    /// Which algorithm.
    pub algorithm: SsspAlgorithm,
    /// Takes every edge of a graph without weights for one of weight 1; without this, such a graph is
    /// refused. A graph with weights keeps its own.
    pub unit_weights: bool,
    /// What [`scan_weights`] said of this graph, which saves looking at all weights again.
    pub weights: Option<WeightStatistics>,
}

/// The algorithms for shortest paths; both give the same distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SsspAlgorithm {
    /// Buckets of distances.
    #[default]
    DeltaStepping,
    /// All changed vertices at once.
    BellmanFord,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SsspResult {
    /// The vertex at distance 0.
    pub source: VertexId,
    /// Distances from the source, by vertex id.
    pub distances: Distances,
    /// The number of vertices reached, the source included.
    pub reached: u64,
    /// The largest distance of a vertex reached.
    pub max_distance: DistanceValue,
    /// The sum of the distances of the vertices reached; saturates.
    pub sum_distance: DistanceValue,
}

/// Distances by vertex id.
#[derive(Clone, Debug, PartialEq)]
pub enum Distances {
    /// Of integer weights; `u64::MAX` where there is no path.
    Integer(Vec<u64>),
    /// Of floating weights; infinity where there is no path.
    Float(Vec<f64>),
}

/// One distance, or a sum of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DistanceValue {
    /// Of integer weights.
    Integer(u64),
    /// Of floating weights.
    Float(f64),
}

/// The least sums of weights from one vertex to all others.
///
/// *Cost*: each vertex relaxes its out-edges each time its bucket finds its distance improved.
/// *Memory*: 8 to 12 bytes a vertex, and 4 for each entry of a bucket; where the budget does not allow 24
/// bytes a vertex, or entries come to more, Bellman-Ford takes over, which can do with 12; as where the weights of a graph
/// come to 2^62 together. *Determinism*: the same at any
/// number of threads, floats bit for bit: of all paths the least sum taken from the source on.
///
/// # Errors
/// The source does not exist; the graph has no weights, a negative one or a NaN (the error names the
/// edge); `delta` is not above 0; a vertex can be reached, but not at a distance below 2^64 - 1, or for floating weights
/// below infinity (about 1.8e308); the budget is too small; the graph is damaged; the work was cancelled.
pub fn sssp<G: InEdges + WeightedEdges>(ctx: &Context<'_>, graph: &G, params: &SsspParams) -> Result<SsspResult> {
    require_vertex(graph, params.source)?;
    if let Some(delta) = params.delta.filter(|&delta| delta.is_nan() || delta <= 0.0) {
        return Err(Error::Parameter(format!("delta must be above 0, and is {delta}")));
    }
    ctx.progress.stage("shortest paths", Some(graph.num_vertices() as u64));
    let result = ctx.pool.enter(|| match graph.weight_type() {
        Some(WeightType::U32) => run::<u32, G>(ctx, graph, params),
        Some(WeightType::I64) => run::<i64, G>(ctx, graph, params),
        Some(WeightType::F32) => run::<f32, G>(ctx, graph, params),
        Some(WeightType::F64) => run::<f64, G>(ctx, graph, params),
        None if params.unit_weights => run::<u32, G>(ctx, graph, params),
        None => Err(Error::Unsupported { kernel: "sssp", needs: "edge weights, or to count every edge as 1" }),
    })?;
    graph.check()?;
    Ok(result)
}

/// A distance type, and the arrays and totals that it belongs to.
trait Kind: Distance {
    fn distances(values: Vec<Self>) -> Distances;
    fn of(distances: &Distances) -> Option<&[Self]>;
    fn value(self) -> DistanceValue;
}

impl Kind for u64 {
    fn distances(values: Vec<Self>) -> Distances {
        Distances::Integer(values)
    }

    fn of(distances: &Distances) -> Option<&[Self]> {
        match distances {
            Distances::Integer(values) => Some(values),
            Distances::Float(_) => None,
        }
    }

    fn value(self) -> DistanceValue {
        DistanceValue::Integer(self)
    }
}

impl Kind for f64 {
    fn distances(values: Vec<Self>) -> Distances {
        Distances::Float(values)
    }

    fn of(distances: &Distances) -> Option<&[Self]> {
        match distances {
            Distances::Integer(_) => None,
            Distances::Float(values) => Some(values),
        }
    }

    fn value(self) -> DistanceValue {
        DistanceValue::Float(self)
    }
}

fn run<W, G>(ctx: &Context<'_>, graph: &G, params: &SsspParams) -> Result<SsspResult>
where
    W: Weight<Distance: Kind>,
    G: InEdges + WeightedEdges,
{
    let least = bytes_for(graph, bellman_ford::HELD_BYTES + LEAN_BYTES);
    let stepping_bytes = bytes_for(graph, delta_stepping::HELD_BYTES) + delta_stepping::worker_bytes(ctx);
    let save_buckets = ctx.must_save("sssp", stepping_bytes, least)?;
    if params.algorithm == SsspAlgorithm::DeltaStepping
        && !save_buckets
        && let Some(values) = delta_stepping::distances::<W, G>(ctx, graph, params)?
    {
        return finish::<W, G>(ctx, graph, params.source, values);
    }
    let lean = !ctx.allows(bytes_for(graph, bellman_ford::HELD_BYTES + ROUND_BYTES));
    let values = bellman_ford::distances::<W, G>(ctx, graph, params, lean)?;
    finish::<W, G>(ctx, graph, params.source, values)
}

/// The result, unless a sum was too large for its type.
fn finish<W, G>(ctx: &Context<'_>, graph: &G, source: VertexId, values: Vec<W::Distance>) -> Result<SsspResult>
where
    W: Weight<Distance: Kind>,
    G: WeightedEdges,
{
    let (reached, max, sum) = totals(ctx, &values);
    if reached < graph.num_vertices() as u64 {
        range::check::<W, G>(ctx, graph, &values, max)?;
    }
    Ok(SsspResult {
        source,
        distances: W::Distance::distances(values),
        reached,
        max_distance: max.value(),
        sum_distance: sum.value(),
    })
}

/// How many vertices are reached, their largest distance, and the sum of all.
fn totals<D: Distance>(ctx: &Context<'_>, values: &[D]) -> (u64, D, D) {
    const PART: usize = 1 << 16;
    let parts = ctx.pool.map_chunks(0..values.len(), PART, |_, chunk| {
        let reached = values[chunk].iter().copied().filter(|&d| d < D::UNREACHED);
        reached.fold((0, D::default(), D::default()), |(count, max, sum), d| {
            (count + 1, if d > max { d } else { max }, sum.plus(d))
        })
    });
    parts.into_iter().fold((0_u64, D::default(), D::default()), |all, part| {
        (all.0 + part.0, if part.1 > all.1 { part.1 } else { all.1 }, all.2.plus(part.2))
    })
}
