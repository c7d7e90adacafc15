//! Peeling level by level.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use anden_base::VertexId;
use anden_graph::Graph;
use parking_lot::Mutex;

use super::neighbors::{NeighborScratch, SimpleNeighbors};
use super::part::{KcorePart, LevelWindow};
use crate::{Context, Result};

/// Bytes for each vertex beside its count.
pub(super) const BYTES_A_VERTEX: u64 = 4 + super::part::BYTES_A_VERTEX;

/// Less work than this, in vertices times their least number of entries, does not justify waking all threads.
const SHARED_WORK: usize = 1 << 12;

/// The result of a scan of vertices.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeelScan {
    /// The number of vertices that the scan looked for.
    pub count: usize,
    /// The number of vertices left for later.
    pub num_later: usize,
    /// The least count among the latter; if none are left, no less than the end of the window.
    pub least: u32,
}

impl PeelScan {
    const NOTHING: Self = Self { count: 0, num_later: 0, least: u32::MAX };

    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            num_later: self.num_later + other.num_later,
            least: self.least.min(other.least),
        }
    }
}

/// The vertices of one part that a level peels. Only the part's thread writes them; all threads read those of earlier
/// rounds.
pub(super) struct PeelQueue {
    /// One more slot than vertices: a slot is written before it is known to be needed.
    pub slots: Vec<AtomicU32>,
    pub len: AtomicUsize,
}

impl PeelQueue {
    fn new(num_vertices: usize) -> Self {
        let slots = (0..=num_vertices).map(|_| AtomicU32::new(0)).collect();
        Self { slots, len: AtomicUsize::new(0) }
    }
}

/// A running decomposition.
pub(super) struct Peel<'a, G> {
    ctx: &'a Context<'a>,
    neighbors: &'a SimpleNeighbors<'a, G>,
    scratch: &'a [Mutex<NeighborScratch>],
    parts: Vec<Mutex<KcorePart<'a>>>,
    queues: Vec<PeelQueue>,
}

impl<'a, G: Graph> Peel<'a, G> {
    /// Begins with the number of neighbors of every vertex. `counts` becomes the corenesses.
    pub(super) fn new(
        ctx: &'a Context<'a>,
        neighbors: &'a SimpleNeighbors<'a, G>,
        scratch: &'a [Mutex<NeighborScratch>],
        mut counts: &'a mut [u32],
        num_parts: usize,
    ) -> Self {
        let (mut parts, mut queues) = (Vec::new(), Vec::new());
        for ids in equal_ranges(counts, num_parts) {
            queues.push(PeelQueue::new(ids.len()));
            let counts = counts.split_off_mut(..ids.len()).unwrap_or_default();
            parts.push(Mutex::new(KcorePart::new(ids.start, counts)));
        }
        Self { ctx, neighbors, scratch, parts, queues }
    }

    /// Calls `body` with every part, its worker's scratch memory and its queue. Uses a thread for each if the work is
    /// large enough.
    fn each_part(
        &self,
        work: usize,
        body: impl Fn(&mut KcorePart<'a>, &mut NeighborScratch, &PeelQueue) -> PeelScan + Sync,
    ) -> PeelScan {
        // Never contended: one thread works on a part at a time.
        let run = |i: usize| body(&mut self.parts[i].lock(), &mut self.scratch[i].lock(), &self.queues[i]);
        if work < SHARED_WORK || self.parts.len() == 1 {
            return (0..self.parts.len()).map(run).fold(PeelScan::NOTHING, PeelScan::and);
        }
        let total = Mutex::new(PeelScan::NOTHING);
        self.ctx.pool.on_each_worker(|worker| {
            if worker < self.parts.len() {
                let found = run(worker);
                let mut total = total.lock();
                *total = total.and(found);
            }
        });
        total.into_inner()
    }

    /// Peels all levels. Returns the last level with vertices.
    pub(super) fn run(&self) -> Result<u32> {
        let mut degeneracy = 0;
        let mut limit = 1;
        // The first scan reads all counts, so all threads share it.
        let mut num_far = self.each_part(usize::MAX, |part, _, _| part.start()).num_later;
        while num_far > 0 {
            self.ctx.progress.check()?;
            let mut level = limit;
            limit = level + (level / 4).max(1);
            let gathered = self.each_part(num_far, |part, _, _| part.gather(limit));
            num_far = gathered.num_later;
            if gathered.count == 0 {
                // The window is empty: the next one begins at the least remaining count.
                limit = gathered.least;
                continue;
            }
            let mut num_near = gathered.count;
            while level < limit {
                let levels = LevelWindow { level, limit };
                let found = self.each_part(num_near, |part, _, queue| part.begin(levels, queue));
                num_near = found.num_later;
                if found.count == 0 {
                    // Empty levels are skipped.
                    level = found.least;
                    continue;
                }
                degeneracy = level;
                self.peel_level(levels, found.count)?;
                level += 1;
            }
        }
        Ok(degeneracy)
    }

    /// Peels the first `count` vertices of a level, and those that follow them.
    fn peel_level(&self, levels: LevelWindow, mut count: usize) -> Result<()> {
        let is_whole = self.parts.len() == 1;
        let mut starts = vec![0; self.queues.len()];
        while count > 0 {
            self.ctx.progress.advance(count as u64);
            // Fixed before the round: the queues grow while other workers read these parts.
            let ends: Vec<_> = self.queues.iter().map(|queue| queue.len.load(Ordering::Relaxed)).collect();
            let peeled =
                || self.queues.iter().zip(starts.iter().zip(&ends)).map(|(queue, (&a, &b))| &queue.slots[a..b]);
            // A vertex of this level has at least `level` entries.
            let found = self.each_part(count * (levels.level as usize + 8), |part, scratch, queue| {
                let before = queue.len.load(Ordering::Relaxed);
                // A single part can read its own growing queue, which saves rounds.
                if is_whole {
                    part.peel_all(self.neighbors, scratch, levels, queue);
                } else {
                    peeled().for_each(|peeled| part.peel(self.neighbors, scratch, levels, queue, peeled));
                }
                PeelScan { count: queue.len.load(Ordering::Relaxed) - before, ..PeelScan::NOTHING }
            });
            self.ctx.progress.check()?;
            // `peel_all` has also processed the vertices that followed.
            if is_whole {
                self.ctx.progress.advance(found.count as u64);
                break;
            }
            count = found.count;
            starts = ends;
        }
        Ok(())
    }
}

/// Ranges of ids with about equal sums of degrees.
fn equal_ranges(degrees: &[u32], num_ranges: usize) -> Vec<Range<VertexId>> {
    let total: u64 = degrees.iter().map(|&degree| u64::from(degree)).sum();
    let (mut end, mut sum) = (0, 0);
    let range = |i: u64| {
        let start = end;
        while end < degrees.len() && (i == num_ranges as u64 || sum < total * i / num_ranges as u64) {
            sum += u64::from(degrees[end]);
            end += 1;
        }
        start as VertexId..end as VertexId
    };
    (1..=num_ranges as u64).map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_ids_and_share_the_sum() {
        assert_eq!(equal_ranges(&[], 2), [0..0, 0..0]);
        assert_eq!(equal_ranges(&[0, 0, 0], 2), [0..0, 0..3]);
        assert_eq!(equal_ranges(&[1, 1, 1, 1, 1, 1], 3), [0..2, 2..4, 4..6]);
        assert_eq!(equal_ranges(&[9, 1, 1, 1, 0], 2), [0..1, 1..5]);
        assert_eq!(equal_ranges(&[1, 9], 4), [0..2, 2..2, 2..2, 2..2]);
    }
}
