//! The decomposition of a graph that comes from a disk, in the order in which its lists are stored.
//!
//! Every vertex has a bound of its coreness, at first the number of its neighbours. A bound sinks to the *h-index* of
//! those of the neighbours, the largest h such that h of them are h or more: what the vertex could have if theirs were
//! right. Where none sinks any more, all are right, in whatever order they sank. A vertex is looked at again when the
//! bound of a neighbour sinks below its own, so that each pass reads fewer lists; peeling, which takes lists in the order
//! in which vertices go, would have each read from another place of the disk.
//!
//! # Source
//! - A. Montresor, F. De Pellegrini, D. Miorandi: Distributed k-core decomposition, IEEE TPDS 2013.
//! - L. Lü, T. Zhou, Q.-M. Zhang, H. E. Stanley: The H-index of a network node and its relation to degree and
//!   coreness, Nature Communications 2016: it also holds where vertices sink one after the other, in any order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use base::VertexId;
use base::bitmap::{AtomicBitmap, ones};
use base::memory::as_atomic_u32;
use graph::InEdges;

use super::lock;
use super::neighbours::{Neighbours, Scratch};
use crate::vertex_subset::CHUNK;
use crate::walk::for_each_walked_chunk;
use crate::{Context, Result};

/// Bounds up to this are counted by each worker for itself, larger ones by one at a time.
const SMALL: usize = 1 << 12;

/// Turns the numbers of neighbours into corenesses; gives the largest.
///
/// Memory: 4 bytes a vertex at most, a bit a vertex, and 16 KB a worker.
pub(super) fn sink<G: InEdges>(
    ctx: &Context<'_>,
    graph: &G,
    neighbours: &Neighbours<'_, G>,
    scratch: &[Mutex<Scratch>],
    bounds: &mut [u32],
) -> Result<u32> {
    let active = AtomicBitmap::new(bounds.len());
    // One neighbour is enough for a coreness of 1.
    bounds.iter().enumerate().filter(|&(_, &bound)| bound > 1).for_each(|(v, _)| _ = active.set(v));
    let largest = bounds.iter().copied().max().unwrap_or(0) as usize;
    let tallies: Vec<_> = scratch.iter().map(|_| Mutex::new(vec![0; SMALL.min(largest) + 1])).collect();
    let hub_tally = Mutex::new(if largest > SMALL { vec![0; largest + 1] } else { Vec::new() });
    let sinking = Sinking { neighbours, bounds: as_atomic_u32(bounds), active: &active };
    while active.find(true, 0..active.len()) < active.len() {
        ctx.progress.check()?;
        for_each_walked_chunk(ctx, graph, CHUNK, Some(&active), |worker, chunk| {
            let own = worker % scratch.len();
            let (mut scratch, mut tally) = (lock(&scratch[own]), lock(&tallies[own]));
            for word in chunk.start / 64..chunk.end.div_ceil(64) {
                if ctx.progress.is_cancelled() {
                    return;
                }
                for bit in ones(active.words()[word].load(Ordering::Relaxed)) {
                    let v = (word * 64 + bit) as VertexId;
                    match sinking.bound(v) as usize > SMALL {
                        true => sinking.look_at(v, &mut scratch, &mut lock(&hub_tally)),
                        false => sinking.look_at(v, &mut scratch, &mut tally),
                    }
                }
            }
        });
        graph.check()?;
    }
    ctx.progress.check()?;
    Ok(bounds.iter().copied().max().unwrap_or(0))
}

struct Sinking<'a, G> {
    neighbours: &'a Neighbours<'a, G>,
    bounds: &'a [AtomicU32],
    /// Vertices to look at: a neighbour sank since the last time.
    active: &'a AtomicBitmap,
}

impl<G: InEdges> Sinking<'_, G> {
    fn bound(&self, v: VertexId) -> u32 {
        self.bounds[v as usize].load(Ordering::Relaxed)
    }

    fn wake(&self, v: VertexId) {
        self.active.words()[v as usize / 64].fetch_or(1 << (v % 64), Ordering::AcqRel);
    }

    /// Lets a vertex sink, and wakes those who may follow. The tally is all zeros before and after.
    fn look_at(&self, v: VertexId, scratch: &mut Scratch, tally: &mut [u32]) {
        // Whoever sinks after this wakes it again; of who sank before, the new bound is read: both sides write to the
        // word of the bitmap, so one of them follows the other.
        self.active.words()[v as usize / 64].fetch_and(!(1 << (v % 64)), Ordering::AcqRel);
        let before = self.bound(v);
        let tally = &mut tally[..=before as usize];
        self.neighbours.for_each_piece(
            v,
            scratch,
            |list| list,
            |list| {
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
        // A neighbour that sinks below the new bound at the same time may still have seen the old one, and wake nobody.
        // Of two who each store their own bound and then read the other's, in one order of all that, one sees the new
        // one: so if the neighbour did not, it is seen here.
        self.bounds[v as usize].store(bound, Ordering::SeqCst);
        let mut num_above = 0;
        self.neighbours.for_each_piece(
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
    use base::parallel::Pool;
    use testkit::{Pieces, for_each_graph};

    fn check<G: InEdges>(pool: &Pool, graph: &G, what: &str) {
        let ctx = Context::new(pool);
        let neighbours = Neighbours::new(graph);
        // Fewer than workers: some share.
        let scratch: Vec<_> = (0..2).map(|_| Mutex::new(Scratch::new(graph))).collect();
        let mut cores = vec![0; graph.vertex_bound()];
        neighbours.count(&ctx, &scratch, &mut cores).unwrap();
        let degeneracy = sink(&ctx, graph, &neighbours, &scratch, &mut cores).unwrap();
        let result = KcoreResult { cores, degeneracy };
        assert_eq!(verify(graph, &KcoreParams::default(), &result), Ok(()), "{what}");
    }

    #[test]
    fn bounds_sink_to_the_corenesses_of_every_graph() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            for_each_graph(|name, csr| {
                if Transposed::num_bytes(csr) > 0 {
                    return check(&pool, &Transposed::build(&Context::new(&pool), csr).unwrap(), name);
                }
                check(&pool, csr, name);
                check(&pool, &Pieces::new(csr), &format!("{name} in pieces"));
            });
        }
    }
}
