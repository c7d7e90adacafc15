//! The decomposition of a graph on a disk, which reads lists in stored order.
//!
//! Every vertex has an upper bound of its coreness, at first its number of neighbors. A bound sinks to the *h-index* of
//! the neighbors' bounds: the largest h such that at least h of them are h or more. When no bound sinks any more, all
//! bounds are corenesses, in whatever order they sank. A vertex is tested again only after the bound of a neighbor
//! sinks below its own, so each pass reads fewer lists. Peeling would read each list from another place of the disk.
//!
//! # Source
//! - A. Montresor, F. De Pellegrini, D. Miorandi: Distributed k-core decomposition, IEEE TPDS 2013.
//! - L. Lü, T. Zhou, Q.-M. Zhang, H. E. Stanley: The H-index of a network node and its relation to degree and
//!   coreness, Nature Communications 2016: it also holds where vertices sink one after the other, in any order.

use std::sync::atomic::{AtomicU32, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, ones};
use anden_base::memory::as_atomic_u32;
use anden_graph::Graph;
use parking_lot::Mutex;

use super::neighbors::{NeighborScratch, SimpleNeighbors};
use crate::vertex_subset::CHUNK;
use crate::walk::for_each_walked_chunk;
use crate::{Context, Result};

/// Workers count bounds up to this in tallies of their own; larger bounds share one tally.
const SMALL: usize = 1 << 12;

/// Turns numbers of neighbors into corenesses. Returns the largest.
///
/// *Memory*: at most 4 bytes a vertex, a bit a vertex, and 16 KB a worker.
pub(super) fn sink<G: Graph>(
    ctx: &Context<'_>,
    graph: &G,
    neighbors: &SimpleNeighbors<'_, G>,
    scratch: &[Mutex<NeighborScratch>],
    bounds: &mut [u32],
) -> Result<u32> {
    let active = AtomicBitmap::new(bounds.len());
    // One neighbor suffices for a coreness of 1.
    bounds.iter().enumerate().filter(|&(_, &bound)| bound > 1).for_each(|(v, _)| _ = active.set(v));
    let largest = bounds.iter().copied().max().unwrap_or(0) as usize;
    let tallies: Vec<_> = scratch.iter().map(|_| Mutex::new(vec![0; SMALL.min(largest) + 1])).collect();
    let hub_tally = Mutex::new(if largest > SMALL { vec![0; largest + 1] } else { Vec::new() });
    let sinking = Sinking { neighbors, bounds: as_atomic_u32(bounds), active: &active };
    while active.find(true, 0..active.len()) < active.len() {
        ctx.progress.check()?;
        for_each_walked_chunk(ctx, graph, CHUNK, Some(&active), |worker, chunk| {
            // Workers beyond the number of scratches share them.
            let own = worker % scratch.len();
            let (mut scratch, mut tally) = (scratch[own].lock(), tallies[own].lock());
            for word in chunk.start / 64..chunk.end.div_ceil(64) {
                if ctx.progress.is_cancelled() {
                    return;
                }
                // A vertex of this word that wakes meanwhile waits for the next pass.
                for bit in ones(active.words()[word].load(Ordering::Relaxed)) {
                    let v = (word * 64 + bit) as VertexId;
                    // `hub_tally` is always locked last, so no two workers wait for each other.
                    match sinking.bound(v) as usize > SMALL {
                        true => sinking.look_at(v, &mut scratch, &mut hub_tally.lock()),
                        false => sinking.look_at(v, &mut scratch, &mut tally),
                    }
                }
            }
        });
        // A damaged page looks empty, which would let bounds sink too far.
        graph.check()?;
    }
    ctx.progress.check()?;
    Ok(bounds.iter().copied().max().unwrap_or(0))
}

struct Sinking<'a, G> {
    neighbors: &'a SimpleNeighbors<'a, G>,
    bounds: &'a [AtomicU32],
    /// Vertices to test: a neighbor sank since their last test.
    active: &'a AtomicBitmap,
}

impl<G: Graph> Sinking<'_, G> {
    fn bound(&self, v: VertexId) -> u32 {
        self.bounds[v as usize].load(Ordering::Relaxed)
    }

    fn wake(&self, v: VertexId) {
        // AcqRel: pairs with the write in `look_at` that clears the bit.
        self.active.words()[v as usize / 64].fetch_or(1 << (v % 64), Ordering::AcqRel);
    }

    /// Lowers the bound of a vertex, and wakes the neighbors that may follow. The tally is all zeros before and after.
    fn look_at(&self, v: VertexId, scratch: &mut NeighborScratch, tally: &mut [u32]) {
        // A neighbor that sinks after this line wakes `v` again. If the neighbor sank before, its new bound is read
        // below. Both directions write to this word of the bitmap, so one write follows the other.
        self.active.words()[v as usize / 64].fetch_and(!(1 << (v % 64)), Ordering::AcqRel);
        let before = self.bound(v);
        let tally = &mut tally[..=before as usize];
        self.neighbors.for_each_piece(
            v,
            scratch,
            |list| list,
            |list| {
                // Larger bounds count alike, so the tally has no entry above `before`.
                list.iter().for_each(|&u| tally[self.bound(u).min(before) as usize] += 1);
            },
        );
        let (mut bound, mut num_above) = (before, 0);
        while bound > 0 {
            num_above += tally[bound as usize];
            if num_above >= bound {
                break;
            }
            bound -= 1;
        }
        tally.fill(0);
        if bound == before {
            return;
        }
        // A neighbor that sinks below the new bound at this moment may have seen the old bound, and then does not wake
        // `v`. But both store their own bound and then load the other's. In the single order of these operations, at
        // least one load sees the new value. So if the neighbor's load did not, the one below does.
        self.bounds[v as usize].store(bound, Ordering::SeqCst);
        let mut num_above = 0;
        self.neighbors.for_each_piece(
            v,
            scratch,
            |list| list,
            |list| {
                for &u in list {
                    let other = self.bounds[u as usize].load(Ordering::SeqCst);
                    num_above += u32::from(other >= bound);
                    if (bound + 1..=before).contains(&other) {
                        self.wake(u);
                    }
                }
            },
        );
        if num_above < bound {
            self.wake(v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kcore::{KcoreParams, KcoreResult, verify};
    use crate::transposed::Transposed;
    use anden_base::parallel::Pool;
    use anden_testkit::{FragmentedGraph, for_each_graph};

    fn check<G: Graph>(pool: &Pool, graph: &G, what: &str) {
        let ctx = Context::new(pool);
        let neighbors = SimpleNeighbors::new(graph);
        // Fewer than workers, so some workers share.
        let scratch: Vec<_> = (0..2).map(|_| Mutex::new(NeighborScratch::new(graph))).collect();
        let mut cores = vec![0; graph.vertex_bound()];
        neighbors.count(&ctx, &scratch, &mut cores).unwrap();
        let degeneracy = sink(&ctx, graph, &neighbors, &scratch, &mut cores).unwrap();
        let result = KcoreResult { cores, degeneracy };
        assert_eq!(verify(graph, &KcoreParams::default(), &result), Ok(()), "{what}");
    }

    #[test]
    fn bounds_sink_to_the_corenesses_of_every_graph() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            for_each_graph(|name, csr| {
                if Transposed::num_bytes(csr) > 0 {
                    return check(&pool, &Transposed::new(&Context::new(&pool), csr).unwrap(), name);
                }
                check(&pool, csr, name);
                check(&pool, &FragmentedGraph::new(csr), &format!("{name} in pieces"));
            });
        }
    }
}
