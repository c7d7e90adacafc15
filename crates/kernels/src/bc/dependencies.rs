//! The backward pass: gathers dependencies level by level.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::AtomicBitmap;
use anden_graph::{Direction, Graph, Parts};

use super::paths::BcLevels;
use crate::edge_map::announce;
use crate::walk::announce_ahead;
use crate::{Context, Result};

/// The number of vertices of a level that a worker takes at a time.
const GRAIN: usize = 64;

/// Adds the dependencies of one search to the scores. Returns false if a path count was not finite.
///
/// `values` holds path counts and is overwritten. Both arrays hold the bits of `f64`s.
pub(super) fn add<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    levels: &BcLevels,
    values: &[AtomicU64],
    scores: &[AtomicU64],
) -> Result<bool> {
    let next = AtomicBitmap::new(graph.vertex_bound());
    let is_finite = AtomicBool::new(true);
    // Relaxed: the end of the loop over a level orders the values before the next level reads them.
    let value = |v: VertexId| f64::from_bits(values[v as usize].load(Ordering::Relaxed));
    let mut later: &[VertexId] = &[];
    for level in levels.backwards() {
        ctx.progress.check()?;
        ctx.pool.for_each_chunk(0..level.len(), GRAIN, |_, chunk| {
            if ctx.progress.is_cancelled() {
                return;
            }
            announce_ahead(graph, Direction::Out, level, chunk.start);
            for i in chunk {
                let u = level[i];
                announce(graph, Parts::Targets, level, i);
                let mut sum = 0.0;
                let _ = graph.for_each_fragment(Direction::Out, u, |list| {
                    // The bitmap stays in the cache, so only successors cost a random read.
                    sum += list.iter().filter(|&&v| next.get(v as usize)).map(|&v| value(v)).sum::<f64>();
                    ControlFlow::Continue(())
                });
                let paths = value(u);
                let dependency = paths * sum;
                if !dependency.is_finite() {
                    is_finite.store(false, Ordering::Relaxed);
                }
                // The source is the end of every path, and ends do not count.
                if u != source {
                    // One worker owns `u`, so plain loads and stores suffice.
                    let score = &scores[u as usize];
                    let sum = f64::from_bits(score.load(Ordering::Relaxed)) + dependency;
                    score.store(sum.to_bits(), Ordering::Relaxed);
                }
                // No other vertex of this level reads `u`, because `next` holds the later level only.
                values[u as usize].store(((1.0 + dependency) / paths).to_bits(), Ordering::Relaxed);
            }
        });
        replace_bits(ctx, &next, later, level);
        later = level;
    }
    ctx.progress.check()?;
    Ok(is_finite.into_inner())
}

/// Turns `next` from the bitmap of the level after `level` into that of `level`.
fn replace_bits(ctx: &Context<'_>, next: &AtomicBitmap, later: &[VertexId], level: &[VertexId]) {
    // Clears the old bits only: clearing the whole map would cost a pass over it at each level.
    write_bits(ctx, next, later, false);
    write_bits(ctx, next, level, true);
}

/// Vertices of a level whose bits one thread writes faster than several with locked instructions.
const SERIAL: usize = 1 << 14;

/// Sets (or clears) the bits of these vertices. No other thread may write to the bitmap.
pub(super) fn write_bits(ctx: &Context<'_>, bits: &AtomicBitmap, vertices: &[VertexId], is_set: bool) {
    if vertices.len() <= SERIAL {
        return vertices.iter().for_each(|&v| bits.write_alone(v as usize, is_set));
    }
    ctx.pool.for_each_chunk(0..vertices.len(), SERIAL, |_, chunk| {
        for &v in &vertices[chunk] {
            let (word, bit) = (&bits.words()[v as usize / 64], 1 << (v % 64));
            // Workers share words.
            if is_set {
                word.fetch_or(bit, Ordering::Relaxed)
            } else {
                word.fetch_and(!bit, Ordering::Relaxed)
            };
        }
    });
}
