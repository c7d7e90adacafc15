//! Distances that are too large for their type.
//!
//! Sums saturate at what stands for no path, so that relaxing an edge takes no look at them. Whether one did is found out
//! afterwards, and only where the largest distance is near enough to the end of its type, which hardly ever is.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use base::VertexId;
use graph::{Distance, Parts, Side, Weight, WeightType, WeightedEdges};

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

/// What is said of a path that is there, and longer than its type holds.
pub(crate) fn too_far<W: Weight>(kernel: &'static str) -> Error {
    let needs = match W::TYPE {
        WeightType::U32 | WeightType::I64 => "distances below 2^64 - 1: a path is longer",
        WeightType::F32 | WeightType::F64 => "distances below 1.8e308: a path is longer",
    };
    Error::Unsupported { kernel, needs }
}

/// Refuses distances among which one saturated: then an edge of finite weight leads from a vertex that is reached to one
/// that is not. `max` is the largest of a vertex that is reached.
pub(super) fn check<W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    distances: &[W::Distance],
    max: W::Distance,
) -> Result<()> {
    let unreached = W::Distance::UNREACHED;
    if graph.weight_type().is_none() || max.plus(largest::<W>()) < unreached {
        return Ok(());
    }
    let is_too_far = AtomicBool::new(false);
    ctx.pool.for_each_chunk(0..distances.len(), CHUNK, |_, chunk| {
        if ctx.progress.is_cancelled() || is_too_far.load(Ordering::Relaxed) {
            return;
        }
        let vertices = chunk.start as VertexId..chunk.end as VertexId;
        walk(graph, Side::Out, Parts::Weighted, vertices, |source| {
            if distances[source as usize] < unreached {
                let _ = graph.for_each_weighted_out_fragment::<W>(source, |targets, weights| {
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
