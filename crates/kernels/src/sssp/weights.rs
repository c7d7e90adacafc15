//! Statistics of weights and degrees, taken before a search.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Distance, Graph, Parts, Weight, WeightType, WeightedEdges};
use parking_lot::Mutex;

use crate::vertex_subset::CHUNK;
use crate::walk::{sample, walk};
use crate::{Context, Error, Result};

/// Statistics of a graph's weights and degrees, for kernels that add weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightStatistics {
    /// The mean of the finite weights; 0 without any.
    pub mean: f64,
    /// The geometric mean of two degrees: the mean over the vertices, and the median over the arcs of the degree of
    /// their source. Half of all arcs leave vertices of the second degree or a higher one. Estimated from a sample of
    /// the vertices; 0 without arcs.
    pub typical_degree: f64,
}

impl WeightStatistics {
    /// The statistics of `graph` with every weight 1.
    pub(super) fn of_ones(graph: &impl Graph) -> Self {
        Self { mean: 1.0, typical_degree: typical_degree(graph) }
    }

    /// A suitable bucket width for these weights and degrees: a power of two for integers.
    ///
    /// Meyer and Sanders take 1/degree for random weights up to 1. Here twice the mean weight stands for the largest
    /// one, which one outlier would spoil. The factor 2 and the typical degree fit roads, web graphs, social networks
    /// and Kronecker graphs: where degrees are skewed, vertices far above the mean degree make most relaxations.
    pub(super) fn delta(&self, is_integer: bool) -> f64 {
        let delta = 2.0 * (2.0 * self.mean) / self.typical_degree.max(1.0);
        match is_integer {
            // A power of two makes the bucket of a distance a shift.
            true => delta.max(1.0).log2().round().exp2(),
            false if delta > 0.0 => delta,
            false => 1.0,
        }
    }
}

/// Scans all weights in parallel; a sample of `u32` weights, which are never forbidden.
///
/// # Errors
/// An edge has a negative weight or a NaN, the graph has no weights, or the work was cancelled.
pub fn scan_weights<G: WeightedEdges>(ctx: &Context<'_>, graph: &G) -> Result<WeightStatistics> {
    match graph.weight_type() {
        Some(WeightType::U32) => scan::<u32, G>(ctx, graph),
        Some(WeightType::I64) => scan::<i64, G>(ctx, graph),
        Some(WeightType::F32) => scan::<f32, G>(ctx, graph),
        Some(WeightType::F64) => scan::<f64, G>(ctx, graph),
        None => Err(Error::Unsupported { kernel: "sssp", needs: "edge weights, or to count every edge as 1" }),
    }
}

/// The approximate number of sampled vertices.
const SAMPLED_VERTICES: usize = 1 << 12;

/// The number of sampled lists announced at a time.
const ANNOUNCED: usize = 256;

fn typical_degree(graph: &impl Graph) -> f64 {
    let mut degrees: Vec<usize> =
        sample(graph.vertex_bound(), SAMPLED_VERTICES).map(|v| graph.degree(Direction::Out, v)).collect();
    degrees.sort_unstable();
    let (num_sampled, num_arcs, mut below) = (degrees.len(), degrees.iter().sum::<usize>(), 0);
    let median = degrees.into_iter().find(|&degree| {
        below += degree;
        below * 2 >= num_arcs
    });
    let mean = num_arcs as f64 / num_sampled.max(1) as f64;
    (mean * median.unwrap_or(0) as f64).sqrt()
}

/// The sum, the number and the first forbidden weight of a part of the edges.
struct WeightTally<W> {
    sum: f64,
    count: u64,
    forbidden: Option<(VertexId, VertexId, W)>,
}

impl<W> Default for WeightTally<W> {
    fn default() -> Self {
        Self { sum: 0.0, count: 0, forbidden: None }
    }
}

fn scan<W: Weight, G: WeightedEdges>(ctx: &Context<'_>, graph: &G) -> Result<WeightStatistics> {
    let bound = graph.vertex_bound();
    let statistics = |sum: f64, count: u64| WeightStatistics {
        mean: sum / count.max(1) as f64,
        typical_degree: typical_degree(graph),
    };
    if W::TYPE == WeightType::U32 {
        let mut tally = WeightTally::<W>::default();
        let vertices: Vec<VertexId> = sample(graph.vertex_bound(), SAMPLED_VERTICES).collect();
        let ahead = vertices.chunks(ANNOUNCED).skip(1).chain([&[][..]]);
        graph.will_need(Direction::Out, Parts::Weighted, &vertices[..vertices.len().min(ANNOUNCED)]);
        for (part, next) in vertices.chunks(ANNOUNCED).zip(ahead) {
            graph.will_need(Direction::Out, Parts::Weighted, next);
            part.iter().for_each(|&vertex| tally.add(graph, vertex));
        }
        return Ok(statistics(tally.sum, tally.count));
    }
    let all = Mutex::new((0.0, 0, None));
    let parts = ctx.pool.map_chunks(0..bound, CHUNK, |_, chunk| {
        if ctx.progress.is_cancelled() {
            return (0.0, 0);
        }
        let mut tally = WeightTally::<W>::default();
        let vertices = chunk.start as VertexId..chunk.end as VertexId;
        walk(graph, Direction::Out, Parts::Weighted, vertices, |vertex| tally.add(graph, vertex));
        if let Some(edge) = tally.forbidden {
            let mut all = all.lock();
            let first: &mut Option<(VertexId, VertexId, W)> = &mut all.2;
            // The smallest source, so that the error is equal in every run.
            if first.is_none_or(|first| edge.0 < first.0) {
                *first = Some(edge);
            }
        }
        (tally.sum, tally.count)
    });
    ctx.progress.check()?;
    let (mut sum, mut count, forbidden) = all.into_inner();
    if let Some((source_vertex, target, weight)) = forbidden {
        return Err(Error::Weight { kernel: "sssp", source_vertex, target, weight: weight.to_string() });
    }
    // Added in the order of the chunks: the mean is equal at any number of threads.
    for part in parts {
        sum += part.0;
        count += part.1;
    }
    Ok(statistics(sum, count))
}

impl<W: Weight> WeightTally<W> {
    /// Adds the out-edges of a vertex.
    fn add(&mut self, graph: &impl WeightedEdges, vertex: VertexId) {
        let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, vertex, |targets, weights| {
            for (&target, &weight) in targets.iter().zip(weights) {
                match weight.distance().map(Distance::as_f64) {
                    Some(distance) if distance.is_finite() => {
                        self.sum += distance;
                        self.count += 1;
                    }
                    Some(_) => {}
                    None => self.forbidden = self.forbidden.or(Some((vertex, target, weight))),
                }
            }
            ControlFlow::Continue(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_base::parallel::Pool;
    use anden_graph::{CsrBuilder, GraphKind};

    fn scanned<W: Weight>(weights: &[W]) -> Result<WeightStatistics> {
        let mut builder = CsrBuilder::<W>::new(GraphKind::Directed, weights.len() + 1);
        weights.iter().enumerate().for_each(|(i, &w)| builder.edge(i as VertexId, i as VertexId + 1, w));
        let pool = Pool::new(2).unwrap();
        scan_weights(&Context::new(&pool), &builder.build_weighted().unwrap())
    }

    #[test]
    fn buckets_suit_weights_and_degrees() {
        let delta = |mean, typical_degree, is_integer| WeightStatistics { mean, typical_degree }.delta(is_integer);
        assert_eq!(delta(128.0, 4.0, true), 128.0);
        assert_eq!(delta(127.9, 4.0, true), 128.0, "a little less makes no difference");
        assert_eq!(delta(127.0, 900.0, true), 1.0);
        assert_eq!((delta(0.0, 0.0, true), delta(0.0, 0.0, false), delta(3.0, 0.0, true)), (1.0, 1.0, 16.0));
        assert_eq!(delta(0.5, 20.0, false), 0.1);
    }

    #[test]
    fn typical_degree_weighs_hubs() {
        let of = |edges: &[(VertexId, VertexId)]| {
            let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 100);
            edges.iter().for_each(|&(source, target)| builder.edge(source, target, 1));
            typical_degree(&builder.build().unwrap())
        };
        let star: Vec<_> = (1..50).map(|v| (0, v)).collect();
        let path: Vec<_> = (50..90).map(|v| (v, v + 1)).collect();
        let is_root_of = |degree: f64, square: f64| (degree * degree - square).abs() < 1e-9;
        // Means over 100 vertices: 0.49, 0.4 and 0.89; medians over the arcs: 49, 1 and 49.
        assert_eq!(of(&[]), 0.0);
        assert!(is_root_of(of(&star), 0.49 * 49.0) && is_root_of(of(&path), 0.4));
        assert!(is_root_of(of(&[star, path].concat()), 0.89 * 49.0));
    }

    #[test]
    fn the_first_forbidden_edge_is_named() {
        assert_eq!(scanned(&[1_u32, 2, 6]).unwrap().mean, 3.0);
        assert_eq!(scanned(&[1.0_f32, f32::INFINITY, 2.0]).unwrap().mean, 1.5);
        let text = |result: Result<WeightStatistics>| result.unwrap_err().to_string();
        assert!(text(scanned(&[0_i64, 5, -3, -4])).contains("from vertex 2 to vertex 3 has weight -3"));
        assert!(text(scanned(&[0.0, f64::NAN])).contains("from vertex 1 to vertex 2 has weight NaN"));
    }
}
