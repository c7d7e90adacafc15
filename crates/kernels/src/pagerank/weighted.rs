//! Scores carried in proportion to the weights of the edges.

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use base::VertexId;
use graph::{Distance, InEdges, Parts, Side, Weight, WeightType, WeightedEdges};

use super::direct::contribute;
use super::score::{BLOCK, Block, Round, Score, State};
use super::{PageRankParams, PageRankResult, Precision, Variant, checked_sources, iterate};
use crate::walk::walk;
use crate::{Context, Error, Result};

const KERNEL: &str = "pagerank by weight";

/// Ranks the vertices of `graph`; an edge carries the part of its source's score that its weight is of
/// the weights of all edges from there.
///
/// Work: a round reads every arc and its weight once, and one pass before the first adds the weights
/// up. Memory: at most 32 bytes a vertex, and .8 MB. Deterministic.
///
/// # Errors
/// As for [`pagerank`](super::pagerank()); the graph has no weights, or one is negative, infinite or not a number (the
/// error names the edge); those of a vertex come to so much or so little that they, or one over them, are infinite in the
/// precision asked for (the error names the vertex); bins are asked for.
pub fn weighted_pagerank<G: InEdges + WeightedEdges>(
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

fn of_type<W: Weight, G: InEdges + WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &PageRankParams,
) -> Result<PageRankResult> {
    match params.precision {
        Precision::F64 => run::<W, f64, G>(ctx, graph, params),
        Precision::F32 => run::<W, f32, G>(ctx, graph, params),
    }
}

fn run<W: Weight, T: Score, G: InEdges + WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &PageRankParams,
) -> Result<PageRankResult> {
    let started = Instant::now();
    let sources = checked_sources(graph, params)?;
    let bound = graph.vertex_bound();
    let variant = match params.variant {
        Variant::Binned => return Err(Error::Parameter("pagerank by weight has no bins: use pull or push".into())),
        Variant::Pull if !graph.has_in_edges() => {
            return Err(Error::Unsupported {
                kernel: KERNEL,
                needs: "in-edges to pull along: load the graph with them",
            });
        }
        Variant::Auto if graph.has_in_edges() => Variant::Pull,
        Variant::Auto => Variant::Push,
        variant => variant,
    };
    // Beside the state, the sums of the weights while it is made; later those of a push, which are no larger.
    ctx.require_memory(KERNEL, State::<T>::num_bytes(bound) + 8 * bound as u64)?;
    ctx.progress.stage("pagerank: prepare", None);
    let strengths = strengths::<W, T, G>(ctx, graph)?;
    let mut state = State::<T>::new(ctx, graph, sources, |vertex| strengths[vertex as usize]);
    drop(strengths);
    let mut sums = T::zeros(if variant == Variant::Push { bound } else { 0 });
    let preparation_seconds = started.elapsed().as_secs_f64();
    let (iterations, delta) = iterate(ctx, graph, params, &mut state, |state, round| match variant {
        Variant::Push => push_round::<W, T, G>(ctx, graph, &mut sums, state, round),
        _ => pull_round::<W, T, G>(ctx, graph, state, round),
    })?;
    drop(sums);
    let (scores, sum) = state.into_scores(ctx);
    Ok(PageRankResult { scores, iterations, delta, sum, variant, preparation_seconds, bins_bytes: 0 })
}

/// The weights of the out-edges of each vertex, added up.
fn strengths<W: Weight, T: Score, G: WeightedEdges>(ctx: &Context<'_>, graph: &G) -> Result<Vec<f64>> {
    let mut strengths = base::memory::zeroed_huge::<f64>(graph.vertex_bound());
    let forbidden = Mutex::new(None);
    let first_unfit = AtomicU32::new(VertexId::MAX);
    ctx.pool.for_each_part_mut(&mut strengths, BLOCK, |start, part| {
        if ctx.progress.is_cancelled() {
            return;
        }
        let mut strengths = part.iter_mut();
        let sources = start as VertexId..(start + strengths.len()) as VertexId;
        walk(graph, Side::Out, Parts::Weighted, sources, |source| {
            let Some(strength) = strengths.next() else { return };
            let _ = graph.for_each_weighted_out_fragment::<W>(source, |targets, weights| {
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
    if let Some((source_vertex, target, weight)) = forbidden.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(Error::Weight { kernel: KERNEL, source_vertex, target, weight: weight.to_string() });
    }
    let vertex = first_unfit.into_inner();
    match strengths.get(vertex as usize) {
        Some(sum) => Err(Error::Strength { kernel: KERNEL, vertex, sum: format!("{sum:e}"), number: T::NAME }),
        None => Ok(strengths),
    }
}

/// Whether a score can be shared out by weights that come to `strength`.
fn can_be_shared<T: Score>(strength: f64) -> bool {
    let is_finite = |value: f64| T::from_f64(value).to_f64().is_finite();
    strength == 0.0 || is_finite(strength) && is_finite(1.0 / strength)
}

/// Keeps the first edge, by source and target.
fn note<W: Copy>(first: &Mutex<Option<(VertexId, VertexId, W)>>, edge: (VertexId, VertexId, W)) {
    let mut first = first.lock().unwrap_or_else(|e| e.into_inner());
    if first.is_none_or(|first| (edge.0, edge.1) < (first.0, first.1)) {
        *first = Some(edge);
    }
}

/// A weight that has been found to be one.
#[inline(always)]
fn factor<W: Weight, T: Score>(weight: W) -> T {
    T::from_f64(weight.distance().map_or(0.0, Distance::as_f64))
}

/// One round along the in-edges.
fn pull_round<W: Weight, T: Score, G: InEdges + WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    state: &mut State<T>,
    round: &Round<T>,
) -> Vec<Block> {
    let (parts, contributions) = state.parts(BLOCK);
    let contributions = &*contributions;
    let mut blocks = vec![Block::default(); parts.len()];
    let items = parts.into_iter().zip(&mut blocks).collect();
    ctx.pool.for_each_item(items, |_, (mut part, block)| {
        if ctx.progress.is_cancelled() {
            return;
        }
        let mut sums = Vec::with_capacity(part.len());
        walk(graph, Side::In, Parts::Weighted, part.vertices(), |vertex| {
            let mut sum = T::default();
            let _ = graph.for_each_weighted_in_fragment::<W>(vertex, |sources, weights| {
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

/// One round along the out-edges: every worker scans all of them, and adds up at its own targets.
fn push_round<W: Weight, T: Score, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    sums: &mut [T],
    state: &mut State<T>,
    round: &Round<T>,
) -> Vec<Block> {
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
            // Not that they were passed: other workers come here, too.
            graph.will_walk(Side::Out, Parts::Weighted, sources.start as VertexId..sources.end as VertexId);
            add_out_edges::<W, T, G>(graph, sources, index * share, sums, contributions);
        }
    });
    let (parts, _) = state.parts(BLOCK);
    let mut blocks = vec![Block::default(); parts.len()];
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
        let _ = graph.for_each_weighted_out_fragment::<W>(source as VertexId, |targets, weights| {
            for (&target, &weight) in targets.iter().zip(weights) {
                // Targets below the range wrap around to above it.
                if let Some(sum) = sums.get_mut((target as usize).wrapping_sub(first)) {
                    *sum += contribution * factor(weight);
                }
            }
            ControlFlow::Continue(())
        });
    }
}
