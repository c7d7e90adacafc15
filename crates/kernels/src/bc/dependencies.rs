//! The way back: dependencies gathered level by level.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::VertexId;
use base::bitmap::AtomicBitmap;
use graph::{Graph, Parts, Side};

use super::paths::Levels;
use crate::edge_map::announce;
use crate::walk::announce_ahead;
use crate::{Context, Result};

/// Vertices of a level that a worker takes at a time.
const GRAIN: usize = 64;

/// Adds the dependencies of one search to the scores; false if a path count was not finite.
///
/// `values` holds path counts, and is used up. Both arrays hold the bits of `f64`s.
pub(super) fn add<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    levels: &Levels,
    values: &[AtomicU64],
    scores: &[AtomicU64],
) -> Result<bool> {
    let next = AtomicBitmap::new(graph.vertex_bound());
    let is_finite = AtomicBool::new(true);
    let value = |v: VertexId| f64::from_bits(values[v as usize].load(Ordering::Relaxed));
    let mut later: &[VertexId] = &[];
    for level in levels.backwards() {
        ctx.progress.check()?;
        ctx.pool.for_each_chunk(0..level.len(), GRAIN, |_, chunk| {
            if ctx.progress.is_cancelled() {
                return;
            }
            announce_ahead(graph, Side::Out, level, chunk.start);
            for i in chunk {
                let u = level[i];
                announce(graph, Parts::Targets, level, i);
                let mut sum = 0.0;
                let _ = graph.for_each_out_fragment(u, |list| {
                    sum += list.iter().filter(|&&v| next.get(v as usize)).map(|&v| value(v)).sum::<f64>();
                    ControlFlow::Continue(())
                });
                let paths = value(u);
                let dependency = paths * sum;
                if !dependency.is_finite() {
                    is_finite.store(false, Ordering::Relaxed);
                }
                // The source is an end of every path.
                if u != source {
                    let score = &scores[u as usize];
                    let sum = f64::from_bits(score.load(Ordering::Relaxed)) + dependency;
                    score.store(sum.to_bits(), Ordering::Relaxed);
                }
                values[u as usize].store(((1.0 + dependency) / paths).to_bits(), Ordering::Relaxed);
            }
        });
        replace_bits(ctx, &next, later, level);
        later = level;
    }
    ctx.progress.check()?;
    Ok(is_finite.into_inner())
}

/// Makes `next` the bitmap of one level instead of the level after it.
fn replace_bits(ctx: &Context<'_>, next: &AtomicBitmap, later: &[VertexId], level: &[VertexId]) {
    each_word(ctx, later, |word, bit| {
        next.words()[word].fetch_and(!bit, Ordering::Relaxed);
    });
    each_word(ctx, level, |word, bit| {
        next.words()[word].fetch_or(bit, Ordering::Relaxed);
    });
}

fn each_word(ctx: &Context<'_>, level: &[VertexId], body: impl Fn(usize, u64) + Sync) {
    ctx.pool.for_each_chunk(0..level.len(), 1 << 14, |_, chunk| {
        level[chunk].iter().for_each(|&v| body(v as usize / 64, 1 << (v % 64)));
    });
}
