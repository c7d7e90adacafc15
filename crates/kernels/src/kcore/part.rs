//! The range of ids whose counts one thread owns.

use std::sync::atomic::{AtomicU32, Ordering};

use anden_base::VertexId;
use anden_base::memory::zeroed_huge;
use anden_graph::Graph;

use super::neighbors::{NeighborScratch, SimpleNeighbors};
use super::peel::{PeelQueue, PeelScan};

/// Bytes for each vertex beside its count.
pub(super) const BYTES_A_VERTEX: u64 = 4 + 4;

/// Prefetch distance, in peeled vertices.
const LOOKAHEAD: usize = 8;

/// A level, and the end of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelWindow {
    pub level: u32,
    pub limit: u32,
}

/// A range of ids. Inside, vertices are numbered from its start.
pub(super) struct KcorePart<'a> {
    start: VertexId,
    /// The number of remaining neighbors; for a peeled vertex, its coreness.
    counts: &'a mut [u32],
    /// Vertices with counts below the end of the window that are not peeled, or were peeled in the current level.
    near: Vec<VertexId>,
    num_near: usize,
    /// The other vertices, whose counts were higher when the window began.
    far: Vec<VertexId>,
    num_far: usize,
}

impl<'a> KcorePart<'a> {
    pub(super) fn new(start: VertexId, counts: &'a mut [u32]) -> Self {
        // One more slot: a slot is written before it is known to be needed.
        let (near, far) = (zeroed_huge(counts.len() + 1), zeroed_huge(counts.len() + 1));
        Self { start, counts, near, num_near: 0, far, num_far: 0 }
    }

    /// Lets all vertices with neighbors wait.
    pub(super) fn start(&mut self) -> PeelScan {
        let mut len = 0;
        for (i, &count) in self.counts.iter().enumerate() {
            self.far[len] = i as VertexId;
            len += usize::from(count > 0);
        }
        self.num_far = len;
        PeelScan { count: 0, num_later: len, least: 1 }
    }

    /// Moves the vertices with counts below the limit to `near`.
    pub(super) fn gather(&mut self, limit: u32) -> PeelScan {
        let (mut num_near, mut num_kept, mut least) = (0, 0, u32::MAX);
        for i in 0..self.num_far {
            let v = self.far[i];
            let count = self.counts[v as usize];
            // Both lists are written always, and grow by 0 or 1: a branch on the count would be unpredictable.
            let is_near = count < limit;
            self.near[num_near] = v;
            num_near += usize::from(is_near);
            self.far[num_kept] = v;
            num_kept += usize::from(!is_near);
            least = least.min(if is_near { u32::MAX } else { count });
        }
        (self.num_near, self.num_far) = (num_near, num_kept);
        PeelScan { count: num_near, num_later: num_kept, least }
    }

    /// Begins a level: queues the vertices with this count, and keeps those with higher counts.
    pub(super) fn begin(&mut self, levels: LevelWindow, queue: &PeelQueue) -> PeelScan {
        let LevelWindow { level, limit } = levels;
        let (mut num_kept, mut len, mut least) = (0, 0, limit);
        for i in 0..self.num_near {
            let v = self.near[i];
            let count = self.counts[v as usize];
            queue.slots[len].store(self.start + v, Ordering::Relaxed);
            len += usize::from(count == level);
            self.near[num_kept] = v;
            num_kept += usize::from(count > level);
            least = least.min(if count > level { count } else { limit });
        }
        self.num_near = num_kept;
        queue.len.store(len, Ordering::Relaxed);
        PeelScan { count: len, num_later: num_kept, least }
    }

    /// Decrements the counts of the neighbors of `peeled` in this part. Queues those that are down to the level.
    pub(super) fn peel<G: Graph>(
        &mut self,
        neighbors: &SimpleNeighbors<'_, G>,
        scratch: &mut NeighborScratch,
        levels: LevelWindow,
        queue: &PeelQueue,
        peeled: &[AtomicU32],
    ) {
        let (start, end) = (self.start, self.start + self.counts.len() as VertexId);
        for (i, v) in peeled.iter().enumerate() {
            fetch_ahead(neighbors, &peeled[i..]);
            let v = v.load(Ordering::Relaxed);
            let take = |list: &[VertexId]| self.take(list, levels, queue);
            neighbors.for_each_piece(v, scratch, |list| part_of(list, start, end), take);
        }
    }

    /// As [`peel`](Self::peel) for a single part: processes its whole queue, including vertices added meanwhile.
    pub(super) fn peel_all<G: Graph>(
        &mut self,
        neighbors: &SimpleNeighbors<'_, G>,
        scratch: &mut NeighborScratch,
        levels: LevelWindow,
        queue: &PeelQueue,
    ) {
        let mut head = 0;
        while head < queue.len.load(Ordering::Relaxed) {
            fetch_ahead(neighbors, &queue.slots[head..queue.len.load(Ordering::Relaxed)]);
            let v = queue.slots[head].load(Ordering::Relaxed);
            head += 1;
            neighbors.for_each_piece(v, scratch, |list| list, |list| self.take(list, levels, queue));
        }
    }

    /// Decrements the count of each vertex of the list that is not peeled yet.
    #[inline(never)]
    fn take(&mut self, list: &[VertexId], levels: LevelWindow, queue: &PeelQueue) {
        let LevelWindow { level, limit } = levels;
        // In a window of one level, a vertex that falls below the limit is also down to the level: it goes to the queue
        // only.
        let border = if limit == level + 1 { 0 } else { limit };
        let (counts, slots, start) = (&mut self.counts[..], &queue.slots[..], self.start);
        let mut len = queue.len.load(Ordering::Relaxed);
        for &u in list {
            let count = &mut counts[(u - start) as usize];
            let before = *count;
            // The count of a peeled vertex is its coreness, at most the level, and stays.
            *count = before - u32::from(before > level);
            slots[len].store(u, Ordering::Relaxed);
            len += usize::from(before == level + 1);
            // A vertex crosses the border once in a window, so this branch is rarely taken.
            if before == border {
                self.near[self.num_near] = u - start;
                self.num_near += 1;
            }
        }
        queue.len.store(len, Ordering::Relaxed);
    }
}

/// Prefetches the lists of vertices that are peeled a little later.
#[inline(always)]
fn fetch_ahead<G: Graph>(neighbors: &SimpleNeighbors<'_, G>, peeled: &[AtomicU32]) {
    if let Some(v) = peeled.get(2 * LOOKAHEAD) {
        neighbors.prefetch_place(v.load(Ordering::Relaxed));
    }
    if let Some(v) = peeled.get(LOOKAHEAD) {
        neighbors.prefetch_lists(v.load(Ordering::Relaxed));
    }
}

/// The entries of an ascending list from `start` on and below `end`.
#[inline(always)]
fn part_of(list: &[VertexId], start: VertexId, end: VertexId) -> &[VertexId] {
    const SHORT: usize = 16;
    // Comparing all of few entries takes no branch.
    let num_below = |bound: VertexId| match list.len() <= SHORT {
        true => list.iter().map(|&u| usize::from(u < bound)).sum(),
        false => list.partition_point(|&u| u < bound),
    };
    &list[num_below(start)..num_below(end)]
}
