//! Distances that overflow their type.
//!
//! Sums saturate at the value of an unreached vertex, so relaxing an edge needs no check. A later pass finds saturated
//! sums. The pass runs only if the largest distance is close to the end of its type, which is rare.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::VertexId;
use anden_graph::{Direction, Distance, Parts, Weight, WeightType, WeightedEdges};

use crate::vertex_subset::CHUNK;
use crate::walk::walk;
use crate::{Context, Error, Result};

/// The largest finite weight of a type.
pub(crate) fn largest<W: Weight>() -> W::Distance {
    let bits = match W::TYPE {
        WeightType::U32 => u32::MAX.bits(),
        WeightType::I64 => i64::MAX.bits(),
        WeightType::F32 => f32::MAX.bits(),
        WeightType::F64 => f64::MAX.bits(),
    };
    W::of_bits(bits).distance().unwrap_or_default()
}

/// The error for a path longer than its type holds.
pub(crate) fn too_far<W: Weight>(kernel: &'static str) -> Error {
    let needs = match W::TYPE {
        WeightType::U32 | WeightType::I64 => "distances below 2^64 - 1: a path is longer",
        WeightType::F32 | WeightType::F64 => "distances below 1.8e308: a path is longer",
    };
    Error::Unsupported { kernel, needs }
}

/// Returns an error if a sum saturated: then an edge of finite weight leads from a reached vertex to an unreached one.
/// `max` is the largest distance of a reached vertex.
pub(super) fn check<W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    distances: &[W::Distance],
    max: W::Distance,
) -> Result<()> {
    let unreached = W::Distance::UNREACHED;
    // Not even the largest weight could saturate a sum with the largest distance.
    if graph.weight_type().is_none() || max.plus(largest::<W>()) < unreached {
        return Ok(());
    }
    let is_too_far = AtomicBool::new(false);
    ctx.pool.for_each_chunk(0..distances.len(), CHUNK, |_, chunk| {
        if ctx.progress.is_cancelled() || is_too_far.load(Ordering::Relaxed) {
            return;
        }
        let vertices = chunk.start as VertexId..chunk.end as VertexId;
        walk(graph, Direction::Out, Parts::Weighted, vertices, |source| {
            if distances[source as usize] < unreached {
                let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, source, |targets, weights| {
                    let mut edges = targets.iter().zip(weights);
                    let is_lost = edges.any(|(&target, weight)| {
                        let is_finite = weight.distance().is_some_and(|weight| weight < unreached);
                        is_finite && distances[target as usize] >= unreached
                    });
                    is_too_far.fetch_or(is_lost, Ordering::Relaxed);
                    if is_lost { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
            }
        });
    });
    ctx.progress.check()?;
    graph.check()?;
    if is_too_far.into_inner() { Err(too_far::<W>("sssp")) } else { Ok(()) }
}
