//! Bellman-Ford: all vertices whose distance changed relax their edges, until none changes.

use std::sync::atomic::{AtomicU64, Ordering};

use base::VertexId;
use base::memory::{as_atomic_u64, zeroed_huge};
use graph::{Distance, InEdges, Weight, WeightedEdges};

use super::{SsspParams, scan_weights};
use crate::{Context, EdgeFunctor, EdgeMapOptions, Result, VertexSubset, edge_map, weighted_edge_map};

/// The bits of the least distance of each vertex so far.
struct Relax<'a>(&'a [AtomicU64]);

impl Relax<'_> {
    #[inline(always)]
    fn relax<W: Weight>(&self, source: VertexId, target: VertexId, weight: W) -> bool {
        let distance = W::Distance::from_bits(self.0[source as usize].load(Ordering::Relaxed));
        let new = weight.distance().map_or(W::Distance::UNREACHED, |weight| distance.plus(weight));
        let (new, cell) = (new.to_bits(), &self.0[target as usize]);
        new < cell.load(Ordering::Relaxed) && new < cell.fetch_min(new, Ordering::Relaxed)
    }
}

impl<W: Weight> EdgeFunctor<W> for Relax<'_> {
    #[inline(always)]
    fn update_atomic(&self, source: VertexId, target: VertexId, weight: W) -> bool {
        self.relax(source, target, weight)
    }
}

/// The same where every edge counts as 1.
struct RelaxUnit<'a>(Relax<'a>);

impl EdgeFunctor for RelaxUnit<'_> {
    #[inline(always)]
    fn update_atomic(&self, source: VertexId, target: VertexId, (): ()) -> bool {
        self.0.relax(source, target, u32::ONE)
    }
}

/// What is held for each vertex: its distance, and a bit that keeps frontiers distinct.
pub(super) const HELD_BYTES: u64 = 8 + 1;

pub(super) fn distances<W: Weight, G: InEdges + WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &SsspParams,
    lean: bool,
) -> Result<Vec<W::Distance>> {
    let is_weighted = graph.weight_type().is_some();
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
    Ok(bits.into_iter().map(W::Distance::from_bits).collect())
}
