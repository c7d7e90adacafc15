//! The way out: shortest paths counted level by level.

use std::sync::atomic::{AtomicU64, Ordering};

use base::VertexId;
use base::bitmap::AtomicBitmap;
use graph::InEdges;

use crate::{Beamer, Context, EdgeFunctor, EdgeMapOptions, Policy, Result, VertexSubset, edge_map, vertex_map};

/// A search begins to pull when the frontier has more than this part of the arcs that are left. A pull
/// cannot stop early here, so it pays only when it has not many more edges than a push.
const ALPHA: u64 = 3;

/// The vertices of each level of a search, one level after the other.
pub(super) struct Levels {
    vertices: Vec<VertexId>,
    starts: Vec<usize>,
}

impl Levels {
    /// The number of levels.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The vertices of one level.
    pub(super) fn level(&self, index: usize) -> &[VertexId] {
        &self.vertices[self.starts[index]..self.starts[index + 1]]
    }

    fn push(&mut self, level: &VertexSubset) {
        self.vertices.extend(level.to_list());
        self.starts.push(self.vertices.len());
    }
}

/// Adds the paths of a vertex in the frontier to its successors'. Counts are the bits of an `f64`.
struct Count<'a> {
    counts: &'a [AtomicU64],
    /// In the frontier or an earlier level, or without in-edges.
    finished: AtomicBitmap,
}

impl Count<'_> {
    #[inline(always)]
    fn of(&self, vertex: VertexId) -> f64 {
        f64::from_bits(self.counts[vertex as usize].load(Ordering::Relaxed))
    }
}

impl EdgeFunctor for Count<'_> {
    #[inline(always)]
    fn update_atomic(&self, source: VertexId, target: VertexId, (): ()) -> bool {
        let (paths, cell) = (self.of(source), &self.counts[target as usize]);
        let mut old = cell.load(Ordering::Relaxed);
        loop {
            let new = (f64::from_bits(old) + paths).to_bits();
            match cell.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                // Whoever adds to zero is the first to reach this target.
                Ok(_) => return old == 0,
                Err(now) => old = now,
            }
        }
    }

    #[inline(always)]
    fn update(&self, source: VertexId, target: VertexId, (): ()) -> bool {
        let sum = self.of(target) + self.of(source);
        self.counts[target as usize].store(sum.to_bits(), Ordering::Relaxed);
        true
    }

    #[inline(always)]
    fn condition(&self, target: VertexId) -> bool {
        self.finished.words()[target as usize / 64].load(Ordering::Relaxed) >> (target % 64) & 1 == 0
    }

    #[inline(always)]
    fn condition_word(&self, first: VertexId, _num_targets: u32) -> u64 {
        !self.finished.words()[first as usize / 64].load(Ordering::Relaxed)
    }

    fn no_sources(&self, target: VertexId) {
        self.finished.set(target as usize);
    }
}

/// Counts the shortest paths from `source` in `counts`, which is zero before.
pub(super) fn count<G: InEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    counts: &[AtomicU64],
) -> Result<Levels> {
    let bound = graph.vertex_bound();
    let count = Count { counts, finished: AtomicBitmap::new(bound) };
    counts[source as usize].store(1.0_f64.to_bits(), Ordering::Relaxed);
    let mut levels = Levels { vertices: Vec::new(), starts: vec![0] };
    let mut frontier = VertexSubset::single(bound, source);
    let mut beamer = Beamer::new(graph.num_arcs()).with_thresholds(ALPHA, Beamer::BETA);
    while !frontier.is_empty() {
        vertex_map(ctx, &frontier, |v| {
            count.finished.set(v as usize);
        });
        levels.push(&frontier);
        let mut options = EdgeMapOptions { policy: Policy::Beamer(&mut beamer), distinct: false };
        frontier = edge_map(ctx, graph, &mut frontier, &count, &mut options)?;
    }
    Ok(levels)
}
