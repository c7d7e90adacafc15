//! The forward pass: counts shortest paths level by level.

use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, Bitmap};
use anden_graph::Graph;

use super::dependencies::write_bits;
use crate::vertex_subset::Members;
use crate::{Beamer, Context, EdgeFunctor, EdgeMapOptions, Policy, Result, VertexSubset, edge_map, vertex_map};

/// The vertices of all levels of a search, level after level.
pub(super) struct BcLevels {
    vertices: Vec<VertexId>,
    /// A set bit for the first vertex of each level. A bitmap is small even on a path, where each vertex is a level.
    starts: Bitmap,
}

impl BcLevels {
    fn new(num_vertices: usize) -> Self {
        Self { vertices: Vec::with_capacity(num_vertices), starts: Bitmap::new(num_vertices) }
    }

    /// The levels, last one first.
    pub(super) fn backwards(&self) -> impl Iterator<Item = &[VertexId]> {
        let mut rest = &self.vertices[..];
        std::iter::from_fn(move || {
            let start = last_one(self.starts.words(), rest.len())?;
            let level = &rest[start..];
            rest = &rest[..start];
            Some(level)
        })
    }

    /// Appends a level, `in_order` ascending by id.
    fn push(&mut self, level: &VertexSubset, in_order: bool) {
        self.starts.set(self.vertices.len());
        match level.members() {
            Members::Dense(bits, _) => self.vertices.extend(bits.iter_ones().map(|v| v as VertexId)),
            Members::Sparse(list) => {
                let start = self.vertices.len();
                self.vertices.extend_from_slice(list);
                if in_order {
                    self.vertices[start..].sort_unstable();
                }
            }
            Members::All => self.vertices.extend(0..level.bound() as VertexId),
        }
    }
}

/// The last set bit before `end`.
fn last_one(words: &[u64], end: usize) -> Option<usize> {
    let mut index = end / 64;
    let mut word = words.get(index).map_or(0, |word| word & ((1 << (end % 64)) - 1));
    while word == 0 {
        index = index.checked_sub(1)?;
        word = words[index];
    }
    Some(index * 64 + 63 - word.leading_zeros() as usize)
}

/// Adds the path count of a frontier vertex to its successors. Counts are stored as the bits of an `f64`.
struct Count<'a> {
    counts: &'a [AtomicU64],
    /// The vertices in the frontier or an earlier level, or without in-edges.
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
        // Floats have no atomic addition.
        loop {
            let new = (f64::from_bits(old) + paths).to_bits();
            match cell.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                // The update from 0 is the first to reach this target.
                Ok(_) => return old == 0,
                Err(now) => old = now,
            }
        }
    }

    #[inline(always)]
    fn update(&self, source: VertexId, target: VertexId, (): ()) -> bool {
        let before = self.of(target);
        self.counts[target as usize].store((before + self.of(source)).to_bits(), Ordering::Relaxed);
        before == 0.0
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

/// Counts the shortest paths from `source` into `counts`, initially zero.
pub(super) fn count<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    counts: &[AtomicU64],
    lean: bool,
) -> Result<BcLevels> {
    let bound = graph.vertex_bound();
    let count = Count { counts, finished: AtomicBitmap::new(bound) };
    counts[source as usize].store(1.0_f64.to_bits(), Ordering::Relaxed);
    // A vertex is in one level only, so the list never grows.
    let mut levels = BcLevels::new(graph.num_vertices());
    let mut frontier = VertexSubset::single(bound, source);
    let mut beamer = Beamer::new(graph.num_vertices(), graph.num_arcs()).reading_whole_lists();
    while !frontier.is_empty() {
        // Marked before the step: an edge inside a level is on no shortest path.
        match frontier.members() {
            Members::Sparse(list) => write_bits(ctx, &count.finished, list, true),
            _ => vertex_map(ctx, &frontier, |v| {
                count.finished.set(v as usize);
            }),
        }
        // From a disk, the backward pass reads lists in stored order. In memory, it prefetches them in any order.
        levels.push(&frontier, graph.is_listening() || ctx.reads_from_disk(graph));
        // The count of a target leaves 0 once, so targets are distinct.
        let mut options = EdgeMapOptions { policy: Policy::Beamer(&mut beamer), distinct: false, lean };
        frontier = edge_map(ctx, graph, &mut frontier, &count, &mut options)?;
    }
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_back_in_reverse() {
        let mut levels = BcLevels::new(200);
        let wanted: Vec<Vec<VertexId>> =
            vec![vec![7], (10..140).collect(), vec![150], vec![3, 5], (160..199).collect()];
        wanted.iter().for_each(|level| levels.push(&VertexSubset::from_list(200, level.clone()), true));
        assert!(levels.backwards().eq(wanted.iter().rev()));
    }
}
