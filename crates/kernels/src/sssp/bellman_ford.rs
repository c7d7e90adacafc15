//! Bellman-Ford: all vertices with a changed distance relax their edges, until no distance changes.

use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::memory::{as_atomic_u64, zeroed_huge};
use anden_graph::{Distance, Weight, WeightedEdges};

use super::{SsspParams, scan_weights};
use crate::{Context, EdgeFunctor, EdgeMapOptions, Result, VertexSubset, edge_map, weighted_edge_map};

/// The bits of each vertex's least distance yet.
struct Relax<'a>(&'a [AtomicU64]);

impl Relax<'_> {
    #[inline(always)]
    fn relax<W: Weight>(&self, source: VertexId, target: VertexId, weight: W) -> bool {
        let distance = W::Distance::from_bits(self.0[source as usize].load(Ordering::Relaxed));
        let new = weight.distance().map_or(W::Distance::UNREACHED, |weight| distance.plus(weight));
        let (new, cell) = (new.to_bits(), &self.0[target as usize]);
        // Few edges improve a distance, so the plain load spares most atomic writes.
        new < cell.load(Ordering::Relaxed) && new < cell.fetch_min(new, Ordering::Relaxed)
    }
}

impl<W: Weight> EdgeFunctor<W> for Relax<'_> {
    #[inline(always)]
    fn update_atomic(&self, source: VertexId, target: VertexId, weight: W) -> bool {
        self.relax(source, target, weight)
    }
}

/// As [`Relax`], with every edge counted as 1.
struct RelaxUnit<'a>(Relax<'a>);

impl EdgeFunctor for RelaxUnit<'_> {
    #[inline(always)]
    fn update_atomic(&self, source: VertexId, target: VertexId, (): ()) -> bool {
        self.0.relax(source, target, u32::ONE)
    }
}

/// Bytes for each vertex: its distance, and a bit that keeps frontiers distinct.
pub(super) const HELD_BYTES: u64 = 8 + 1;

pub(super) fn distances<W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &SsspParams,
    lean: bool,
) -> Result<Vec<W::Distance>> {
    let is_weighted = graph.weight_type().is_some();
    // The scan refuses negative weights and NaN; its statistics are not needed.
    if is_weighted && params.weights.is_none() {
        scan_weights(ctx, graph)?;
    }
    let bound = graph.vertex_bound();
    let mut bits = zeroed_huge::<u64>(bound);
    bits.fill(W::Distance::UNREACHED.to_bits());
    bits[params.source as usize] = W::Distance::default().to_bits();
    let relax = RelaxUnit(Relax(as_atomic_u64(&mut bits)));
    let mut frontier = VertexSubset::single(bound, params.source);
    let mut options = EdgeMapOptions { distinct: true, lean, ..EdgeMapOptions::default() };
    while !frontier.is_empty() {
        ctx.progress.advance(frontier.len() as u64);
        frontier = match is_weighted {
            true => weighted_edge_map::<W, G>(ctx, graph, &mut frontier, &relax.0, &mut options)?,
            false => edge_map(ctx, graph, &mut frontier, &relax, &mut options)?,
        };
    }
    // The sizes agree, so the conversion reuses the memory.
    Ok(bits.into_iter().map(W::Distance::from_bits).collect())
}
