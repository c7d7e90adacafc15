//! The serial verifier of PageRank: plain power iteration.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Distance, Graph, Weight, WeightType, WeightedEdges};

use super::{Algorithm, PageRankParams, PageRankResult, Precision};

/// Compares the scores with a power iteration in `f64` along the out-lists, over the result's number of rounds.
///
/// 64-bit scores may differ by 1e-9 of the score, 32-bit ones by 1e-4. A sum of `k` rounded terms is off by at most `k
/// / 2^24`. Rounding to nearest goes up as often as down, so sums of a million terms keep an error of about 1e-4 at
/// worst.
///
/// # Errors
/// The first vertex with a wrong score, or another contradiction.
pub fn verify(graph: &impl Graph, params: &PageRankParams, result: &PageRankResult) -> Result<(), String> {
    let out_edges = |vertex, body: &mut dyn FnMut(VertexId, f64)| {
        let _ = graph.for_each_fragment(Direction::Out, vertex, |fragment| {
            fragment.iter().for_each(|&target| body(target, 1.0));
            ControlFlow::Continue(())
        });
    };
    compare(graph, params, result, &out_edges)
}

/// As [`verify`], for scores by weight.
///
/// # Errors
/// As [`verify`]; or the graph has no weights.
pub fn verify_weighted(
    graph: &impl WeightedEdges,
    params: &PageRankParams,
    result: &PageRankResult,
) -> Result<(), String> {
    match graph.weight_type() {
        Some(WeightType::U32) => compare(graph, params, result, &weighted_out_edges::<u32, _>(graph)),
        Some(WeightType::I64) => compare(graph, params, result, &weighted_out_edges::<i64, _>(graph)),
        Some(WeightType::F32) => compare(graph, params, result, &weighted_out_edges::<f32, _>(graph)),
        Some(WeightType::F64) => compare(graph, params, result, &weighted_out_edges::<f64, _>(graph)),
        None => Err("the graph has no weights".into()),
    }
}

/// Calls back with each target of a vertex and the weight of the edge.
type OutEdges<'a> = dyn Fn(VertexId, &mut dyn FnMut(VertexId, f64)) + 'a;

fn weighted_out_edges<W: Weight, G: WeightedEdges>(
    graph: &G,
) -> impl Fn(VertexId, &mut dyn FnMut(VertexId, f64)) + use<'_, W, G> {
    |vertex, body| {
        let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, vertex, |targets, weights| {
            for (&target, weight) in targets.iter().zip(weights) {
                body(target, weight.distance().map_or(f64::NAN, Distance::as_f64));
            }
            ControlFlow::Continue(())
        });
    }
}

fn compare(
    graph: &impl Graph,
    params: &PageRankParams,
    result: &PageRankResult,
    out_edges: &OutEdges<'_>,
) -> Result<(), String> {
    let bound = graph.vertex_bound();
    if result.scores.len() != bound {
        return Err(format!("{} scores for {bound} vertices", result.scores.len()));
    }
    let limit = params.iterations.unwrap_or(super::DEFAULT_MAX_ITERATIONS);
    let may_end_early = params.tolerance.is_some() || params.iterations.is_none();
    if result.iterations > limit || (!may_end_early && result.iterations != limit) {
        return Err(format!("{} rounds where {limit} were asked for", result.iterations));
    }
    let (expected, delta) = power_iteration(graph, params, result.iterations, out_edges);
    let slack = match params.precision {
        Precision::F64 => 1e-9,
        Precision::F32 => 1e-4,
    };
    for (vertex, (&found, &expected)) in result.scores.iter().zip(&expected).enumerate() {
        if differ(found, expected, slack * expected) {
            return Err(format!("vertex {vertex} has score {found:e} and should have {expected:e}"));
        }
    }
    let sum: f64 = expected.iter().sum();
    if differ(result.sum, sum, slack * sum) {
        return Err(format!("the scores sum up to {:e} and should to {sum:e}", result.sum));
    }
    // Changes may cancel to almost 0, so the slack is relative to the scores that they come from.
    if differ(result.delta, delta, slack * 2.0) {
        return Err(format!("the last change is {:e} and should be {delta:e}", result.delta));
    }
    if may_end_early && result.iterations < limit {
        let tolerance = params.tolerance.unwrap_or(super::DEFAULT_TOLERANCE);
        if delta > tolerance + slack * 2.0 {
            return Err(format!("the last change is {delta:e}, above the tolerance {tolerance:e}"));
        }
    }
    Ok(())
}

/// Whether the numbers are further apart than `slack`, or one is NaN.
fn differ(found: f64, expected: f64, slack: f64) -> bool {
    (found - expected).abs() > slack || (found - expected).is_nan()
}

fn power_iteration(
    graph: &impl Graph,
    params: &PageRankParams,
    iterations: u32,
    out_edges: &OutEdges<'_>,
) -> (Vec<f64>, f64) {
    let bound = graph.vertex_bound() as VertexId;
    let live: Vec<VertexId> = (0..bound).filter(|&v| graph.is_live(v)).collect();
    let mut jumps = vec![0.0; bound as usize];
    let homes = if params.sources.is_empty() { &live } else { &params.sources };
    homes.iter().for_each(|&v| jumps[v as usize] = 1.0);
    let total: f64 = jumps.iter().sum();
    jumps.iter_mut().for_each(|jump| *jump /= total.max(1.0));

    let mut scores = vec![0.0; bound as usize];
    live.iter().for_each(|&v| scores[v as usize] = 1.0 / live.len() as f64);
    let mut delta = 0.0;
    for _ in 0..iterations {
        let mut next = vec![0.0; bound as usize];
        let mut dangling = 0.0;
        for &vertex in &live {
            let score = scores[vertex as usize];
            let mut degree = 0.0;
            out_edges(vertex, &mut |_, weight| degree += weight);
            if degree == 0.0 {
                dangling += score;
                continue;
            }
            out_edges(vertex, &mut |target, weight| next[target as usize] += score * weight / degree);
        }
        if params.algorithm == Algorithm::Gap {
            dangling = 0.0;
        }
        let jump = 1.0 - params.damping + params.damping * dangling;
        for (next, share) in next.iter_mut().zip(&jumps) {
            *next = params.damping * *next + jump * share;
        }
        delta = scores.iter().zip(&next).map(|(old, new)| (old - new).abs()).sum();
        scores = next;
    }
    (scores, delta)
}
