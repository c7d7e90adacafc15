//! Shortest paths from one vertex.
//!
//! **Result**: the least sum of weights from the source to every vertex; `u64` for integer weights, `f64` for floating
//! ones.
//!
//! **Algorithm**: delta-stepping (the default). Vertices wait in buckets that are `delta` wide. All vertices of the
//! lowest bucket relax their edges in parallel, in no order, until the bucket stays empty. Bellman-Ford relaxes the
//! edges of all changed vertices, round by round. With negative weights, a serial Bellman-Ford takes over.
//!
//! **Parameters**: `delta`. Narrow buckets waste no relaxation but make many rounds; wide ones the reverse. The default
//! is twice the mean weight over the degree of a median arc's source; for integer weights, rounded to a power of two.
//! Meyer and Sanders choose 1/degree for weights up to 1. The plain mean degree fits Kronecker graphs badly, and a few
//! hubs dominate the mean over the arcs. The default is within 7 % of the best width on all graphs tried; see
//! docs/decisions/0029.
//!
//! On a disk, buckets are 64 times as wide, and their lists are read in stored order. A round reads a part of the file,
//! so fewer rounds read less.
//!
//! # Source
//! U. Meyer and P. Sanders: Δ-stepping, a parallelizable shortest path algorithm, Journal of Algorithms 49(1), 2003.
//! Bucket fusion: Y. Zhang et al.: Optimizing ordered graph algorithms with GraphIt, CGO 2020. Ours differs: a vertex
//! carries a mark that says whether its present distance was relaxed, so no bucket entry is processed twice.

mod bellman_ford;
mod buckets;
mod cells;
mod delta_stepping;
mod negative;
mod range;
mod verify;
mod weights;

use anden_base::VertexId;
use anden_graph::{Distance, Weight, WeightType, WeightedEdges};

use crate::context::{bytes_for, require_vertex};
use crate::edge_map::{LEAN_BYTES, ROUND_BYTES};
use crate::{Context, Error, Result};

pub(crate) use range::{largest, too_far};
pub use verify::verify;
pub use weights::{WeightStatistics, scan_weights};

/// Parameters of [`sssp`].
#[derive(Clone, Debug, Default)]
pub struct SsspParams {
    /// The source of the paths.
    pub source: VertexId,
    /// The width of a bucket; by default derived from weights and degrees.
    pub delta: Option<f64>,
    /// The algorithm.
    pub algorithm: SsspAlgorithm,
    /// Counts every edge of an unweighted graph as weight 1; otherwise such a graph is refused. A weighted graph keeps
    /// its weights.
    pub unit_weights: bool,
    /// The result of [`scan_weights`] on this graph, if known: saves another pass over the weights.
    pub weights: Option<WeightStatistics>,
}

/// The algorithms for shortest paths; both return equal distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SsspAlgorithm {
    /// Delta-stepping: buckets of distances.
    #[default]
    DeltaStepping,
    /// Bellman-Ford: all changed vertices at once.
    BellmanFord,
}

/// Result of [`sssp`].
#[derive(Clone, Debug, PartialEq)]
pub struct SsspResult {
    /// The source, at distance 0.
    pub source: VertexId,
    /// Distances from the source, by vertex id.
    pub distances: Distances,
    /// The number of vertices reached, the source included.
    pub reached: u64,
    /// The largest distance of a reached vertex.
    pub max_distance: DistanceValue,
    /// The saturating sum of the distances of reached vertices.
    pub sum_distance: DistanceValue,
}

/// Distances by vertex id.
#[derive(Clone, Debug, PartialEq)]
pub enum Distances {
    /// For integer weights; `u64::MAX` without a path.
    Integer(Vec<u64>),
    /// For floating weights, and for integer weights of which some are negative; infinity without a path.
    Float(Vec<f64>),
}

/// A distance, or a sum of distances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DistanceValue {
    /// For integer weights.
    Integer(u64),
    /// For floating weights.
    Float(f64),
}

/// The least sums of weights from one vertex to all others.
///
/// *Cost*: each vertex relaxes its out-edges each time its bucket finds its distance improved. *Memory*: 8 to 12 bytes
/// a vertex, and 4 for each bucket entry. Bellman-Ford takes over, with as few as 12 bytes a vertex, if the budget is
/// below 24 bytes a vertex or the entries exceed it. Bellman-Ford also takes over if 64-bit integer weights sum to
/// 2^62.
/// *Determinism*: equal at any number of threads, floats bit for bit: the least sum over all paths, added from the
/// source on.
///
/// # Errors
/// - The source does not exist, or `delta` is not above 0.
/// - The graph has no weights, or one is NaN; the error names the edge.
/// - A cycle of negative weight is reachable; the error names a vertex of it.
/// - A vertex is reachable only at a distance of 2^64 - 1 or more, or infinity for floating weights (above about
///   1.8e308).
/// - The budget is too small, the graph is damaged, or the work was cancelled.
pub fn sssp<G: WeightedEdges>(ctx: &Context<'_>, graph: &G, params: &SsspParams) -> Result<SsspResult> {
    require_vertex(graph, params.source)?;
    if let Some(delta) = params.delta.filter(|&delta| delta.is_nan() || delta <= 0.0) {
        return Err(Error::Parameter(format!("delta must be above 0, and is {delta}")));
    }
    ctx.progress.stage("shortest paths", Some(graph.num_vertices() as u64));
    let result = match graph.weight_type() {
        Some(WeightType::U32) => run::<u32, G>(ctx, graph, params),
        Some(WeightType::I64) => run::<i64, G>(ctx, graph, params),
        Some(WeightType::F32) => run::<f32, G>(ctx, graph, params),
        Some(WeightType::F64) => run::<f64, G>(ctx, graph, params),
        None if params.unit_weights => run::<u32, G>(ctx, graph, params),
        None => Err(Error::Unsupported { kernel: "sssp", needs: "edge weights, or to count every edge as 1" }),
    }?;
    graph.check()?;
    Ok(result)
}

/// A distance type, with its variants of [`Distances`] and [`DistanceValue`].
trait DistanceKind: Distance {
    fn distances(values: Vec<Self>) -> Distances;
    fn of(distances: &Distances) -> Option<&[Self]>;
    fn value(self) -> DistanceValue;
}

impl DistanceKind for u64 {
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

impl DistanceKind for f64 {
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
    W: Weight<Distance: DistanceKind>,
    G: WeightedEdges,
{
    // Only statistics that the caller has show that no weight is negative.
    if W::TYPE != WeightType::U32 && params.weights.is_none() && graph.weight_type().is_some() {
        return match scan_weights(ctx, graph) {
            Err(Error::Weight { weight, .. }) if weight.starts_with('-') => {
                negative::sssp_with_negative::<W, G>(ctx, graph, params.source)
            }
            weights => run::<W, G>(ctx, graph, &SsspParams { weights: Some(weights?), ..params.clone() }),
        };
    }
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

/// The result, or an error if a sum saturated.
fn finish<W, G>(ctx: &Context<'_>, graph: &G, source: VertexId, values: Vec<W::Distance>) -> Result<SsspResult>
where
    W: Weight<Distance: DistanceKind>,
    G: WeightedEdges,
{
    let (reached, max, sum) = totals(ctx, &values);
    // Only an unreached vertex can hide a saturated sum.
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

/// The number of reached vertices, their largest distance, and the sum of their distances.
fn totals<D: Distance>(ctx: &Context<'_>, values: &[D]) -> (u64, D, D) {
    const PART: usize = 1 << 16;
    let parts = ctx.pool.map_chunks(0..values.len(), PART, |_, chunk| {
        let reached = values[chunk].iter().copied().filter(|&d| d < D::UNREACHED);
        reached.fold((0, D::default(), D::default()), |(count, max, sum), d| {
            (count + 1, if d > max { d } else { max }, sum.plus(d))
        })
    });
    // Parts are added in order, so a floating sum does not depend on the number of threads.
    parts.into_iter().fold((0_u64, D::default(), D::default()), |all, part| {
        (all.0 + part.0, if part.1 > all.1 { part.1 } else { all.1 }, all.2.plus(part.2))
    })
}
