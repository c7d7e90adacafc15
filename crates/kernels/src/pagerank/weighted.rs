//! PageRank by weight: an edge carries a share of its source's score in proportion to its weight.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use anden_base::VertexId;
use anden_graph::{Direction, Distance, Parts, Weight, WeightType, WeightedEdges};
use parking_lot::Mutex;

use super::direct::contribute;
use super::score::{BLOCK, PageRankBlockSums, PageRankState, Round, Score};
use super::{PageRankParams, PageRankResult, Precision, Variant, checked_sources, iterate};
use crate::walk::walk;
use crate::{Context, Error, Result};

const KERNEL: &str = "pagerank by weight";

/// Ranks the vertices of `graph`. An edge carries the share of its source's score that its weight has in the sum of the
/// source's out-weights.
///
/// *Cost*: a round reads every arc and its weight once; one more pass sums the weights before. *Memory*: at most 32
/// bytes a vertex, and .8 MB. *Determinism*: equal at any number of threads.
///
/// # Errors
/// - As [`pagerank`](super::pagerank()), or bins are requested.
/// - The graph has no weights, or one is negative, infinite or NaN; the error names the edge.
/// - The sum of a vertex's out-weights, or its inverse, is infinite in the requested precision; the error names the
///   vertex.
pub fn weighted_pagerank<G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &PageRankParams,
) -> Result<PageRankResult> {
    match graph.weight_type() {
        Some(WeightType::U32) => of_type::<u32, G>(ctx, graph, params),
        Some(WeightType::I64) => of_type::<i64, G>(ctx, graph, params),
        Some(WeightType::F32) => of_type::<f32, G>(ctx, graph, params),
        Some(WeightType::F64) => of_type::<f64, G>(ctx, graph, params),
        None => Err(Error::Unsupported { kernel: KERNEL, needs: "edge weights" }),
    }
}

fn of_type<W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &PageRankParams,
) -> Result<PageRankResult> {
    match params.precision {
        Precision::F64 => run::<W, f64, G>(ctx, graph, params),
        Precision::F32 => run::<W, f32, G>(ctx, graph, params),
    }
}

fn run<W: Weight, T: Score, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &PageRankParams,
) -> Result<PageRankResult> {
    let started = Instant::now();
    let sources = checked_sources(graph, params)?;
    let bound = graph.vertex_bound();
    let variant = match params.variant {
        Variant::Binned => return Err(Error::Parameter("pagerank by weight has no bins: use pull or push".into())),
        Variant::Pull if !graph.has_lists(Direction::In) => {
            return Err(Error::Unsupported {
                kernel: KERNEL,
                needs: "in-edges to pull along: load the graph with them",
            });
        }
        Variant::Auto if graph.has_lists(Direction::In) => Variant::Pull,
        Variant::Auto => Variant::Push,
        variant => variant,
    };
    // Beside the state: first the weight sums, later the sums of a push, which are no larger.
    ctx.require_memory(KERNEL, PageRankState::<T>::num_bytes(bound) + 8 * bound as u64)?;
    ctx.progress.stage("pagerank: prepare", None);
    let strengths = strengths::<W, T, G>(ctx, graph)?;
    let mut state = PageRankState::<T>::new(ctx, graph, sources, |vertices, degrees| {
        let strengths = &strengths[vertices.start as usize..vertices.end as usize];
        degrees.iter_mut().zip(strengths).for_each(|(degree, &strength)| *degree = T::from_f64(strength));
    });
    drop(strengths);
    let mut sums = T::zeros(if variant == Variant::Push { bound } else { 0 });
    let preparation_seconds = started.elapsed().as_secs_f64();
    let (iterations, delta) = iterate(ctx, graph, params, &mut state, |state, round| match variant {
        Variant::Push => push_round::<W, T, G>(ctx, graph, &mut sums, state, round),
        _ => pull_round::<W, T, G>(ctx, graph, state, round),
    })?;
    // Freed before the scores are widened, which takes this part of the budget.
    drop(sums);
    let (scores, sum) = state.into_scores(ctx);
    let (was_prepared, bins_bytes) = (false, 0);
    Ok(PageRankResult { scores, iterations, delta, sum, variant, preparation_seconds, was_prepared, bins_bytes })
}

/// The sum of the weights of each vertex's out-edges.
fn strengths<W: Weight, T: Score, G: WeightedEdges>(ctx: &Context<'_>, graph: &G) -> Result<Vec<f64>> {
    let mut strengths = anden_base::memory::zeroed_huge::<f64>(graph.vertex_bound());
    let forbidden = Mutex::new(None);
    // The smallest vertex, so that the error is equal in every run.
    let first_unfit = AtomicU32::new(VertexId::MAX);
    ctx.pool.for_each_part_mut(&mut strengths, BLOCK, |start, part| {
        if ctx.progress.is_cancelled() {
            return;
        }
        let mut strengths = part.iter_mut();
        let sources = start as VertexId..(start + strengths.len()) as VertexId;
        walk(graph, Direction::Out, Parts::Weighted, sources, |source| {
            let Some(strength) = strengths.next() else { return };
            let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, source, |targets, weights| {
                for (&target, &weight) in targets.iter().zip(weights) {
                    match weight.distance().map(Distance::as_f64).filter(|weight| weight.is_finite()) {
                        Some(weight) => *strength += weight,
                        None => note(&forbidden, (source, target, weight)),
                    }
                }
                ControlFlow::Continue(())
            });
            if !can_be_shared::<T>(*strength) {
                first_unfit.fetch_min(source, Ordering::Relaxed);
            }
        });
    });
    ctx.progress.check()?;
    graph.check()?;
    if let Some((source_vertex, target, weight)) = forbidden.into_inner() {
        return Err(Error::Weight { kernel: KERNEL, source_vertex, target, weight: weight.to_string() });
    }
    let vertex = first_unfit.into_inner();
    match strengths.get(vertex as usize) {
        Some(sum) => Err(Error::Strength { kernel: KERNEL, vertex, sum: format!("{sum:e}"), number: T::NAME }),
        None => Ok(strengths),
    }
}

/// Whether a score can be divided by the weight sum `strength`.
fn can_be_shared<T: Score>(strength: f64) -> bool {
    let is_finite = |value: f64| T::from_f64(value).to_f64().is_finite();
    strength == 0.0 || is_finite(strength) && is_finite(1.0 / strength)
}

/// Keeps the first edge by source and target, so that the error is equal in every run.
fn note<W: Copy>(first: &Mutex<Option<(VertexId, VertexId, W)>>, edge: (VertexId, VertexId, W)) {
    let mut first = first.lock();
    if first.is_none_or(|first| (edge.0, edge.1) < (first.0, first.1)) {
        *first = Some(edge);
    }
}

/// A weight that [`strengths`] has checked.
#[inline(always)]
fn factor<W: Weight, T: Score>(weight: W) -> T {
    T::from_f64(weight.distance().map_or(0.0, Distance::as_f64))
}

/// One round along the in-edges.
fn pull_round<W: Weight, T: Score, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    state: &mut PageRankState<T>,
    round: &Round<T>,
) -> Vec<PageRankBlockSums> {
    let (parts, contributions) = state.parts(BLOCK);
    let contributions = &*contributions;
    let mut blocks = vec![PageRankBlockSums::default(); parts.len()];
    let items = parts.into_iter().zip(&mut blocks).collect();
    ctx.pool.for_each_item(items, |_, (mut part, block)| {
        if ctx.progress.is_cancelled() {
            return;
        }
        let mut sums = Vec::with_capacity(part.len());
        walk(graph, Direction::In, Parts::Weighted, part.vertices(), |vertex| {
            let mut sum = T::default();
            let _ = graph.for_each_weighted_fragment::<W>(Direction::In, vertex, |sources, weights| {
                for (&source, &weight) in sources.iter().zip(weights) {
                    sum += contributions[source as usize] * factor(weight);
                }
                ControlFlow::Continue(())
            });
            sums.push(sum);
        });
        *block = part.rescore(round, &sums);
    });
    contribute(ctx, state);
    blocks
}

/// One round along the out-edges: every worker scans all of them, and adds at its own targets.
fn push_round<W: Weight, T: Score, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    sums: &mut [T],
    state: &mut PageRankState<T>,
    round: &Round<T>,
) -> Vec<PageRankBlockSums> {
    let share = sums.len().div_ceil(ctx.pool.num_threads()).max(1);
    let (_, contributions) = state.parts(BLOCK);
    let contributions = &*contributions;
    let items = sums.chunks_mut(share).enumerate().collect();
    ctx.pool.for_each_item(items, |_, (index, sums): (usize, &mut [T])| {
        sums.fill(T::default());
        let bound = graph.vertex_bound();
        for start in (0..bound).step_by(BLOCK) {
            if ctx.progress.is_cancelled() {
                return;
            }
            let sources = start..bound.min(start + BLOCK);
            // No `has_walked` follows: the other workers also read these lists.
            graph.will_walk(Direction::Out, Parts::Weighted, sources.start as VertexId..sources.end as VertexId);
            add_out_edges::<W, T, G>(graph, sources, index * share, sums, contributions);
        }
    });
    let (parts, _) = state.parts(BLOCK);
    let mut blocks = vec![PageRankBlockSums::default(); parts.len()];
    let items = parts.into_iter().zip(sums.chunks(BLOCK)).zip(&mut blocks).collect();
    ctx.pool.for_each_item(items, |_, ((mut part, sums), block)| *block = part.rescore(round, sums));
    contribute(ctx, state);
    blocks
}

fn add_out_edges<W: Weight, T: Score, G: WeightedEdges>(
    graph: &G,
    sources: Range<usize>,
    first: usize,
    sums: &mut [T],
    contributions: &[T],
) {
    for source in sources {
        let contribution = contributions[source];
        let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, source as VertexId, |targets, weights| {
            for (&target, &weight) in targets.iter().zip(weights) {
                // Targets below the range wrap around to numbers above it.
                if let Some(sum) = sums.get_mut((target as usize).wrapping_sub(first)) {
                    *sum += contribution * factor(weight);
                }
            }
            ControlFlow::Continue(())
        });
    }
}
