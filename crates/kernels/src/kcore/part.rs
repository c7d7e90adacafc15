//! The range of ids that one thread counts for.

use std::sync::atomic::{AtomicU32, Ordering};

use base::VertexId;
use base::memory::zeroed_huge;
use graph::InEdges;

use super::neighbours::{Neighbours, Scratch};
use super::peel::{Found, Queue};

/// Bytes for each vertex, beside its count.
pub(super) const BYTES_A_VERTEX: u64 = 4 + 4;

/// Peeled vertices ahead whose lists are fetched.
const LOOKAHEAD: usize = 8;

/// A level, and the end of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    pub level: u32,
    pub limit: u32,
}

/// A range of ids; inside, vertices are known by their distance from its start.
pub(super) struct Part<'a> {
    start: VertexId,
    /// The neighbours that are left; of a peeled vertex its coreness.
    counts: &'a mut [u32],
    /// Vertices that have less left than the end of the window, and are not peeled, or only since the level
    /// began.
    near: Vec<VertexId>,
    num_near: usize,
    /// All others that had more when the window began.
    far: Vec<VertexId>,
    num_far: usize,
}

impl<'a> Part<'a> {
    pub(super) fn new(start: VertexId, counts: &'a mut [u32]) -> Self {
        // One more: a place is written before it is known whether it is needed.
        let (near, far) = (zeroed_huge(counts.len() + 1), zeroed_huge(counts.len() + 1));
        Self { start, counts, near, num_near: 0, far, num_far: 0 }
    }

    /// Lets all that have neighbours wait.
    pub(super) fn start(&mut self) -> Found {
        let mut len = 0;
        for (i, &count) in self.counts.iter().enumerate() {
            self.far[len] = i as VertexId;
            len += usize::from(count > 0);
        }
        self.num_far = len;
        Found { count: 0, num_later: len, least: 1 }
    }

    /// Takes those out that have fewer neighbours left than the limit.
    pub(super) fn gather(&mut self, limit: u32) -> Found {
        let (mut num_near, mut num_kept, mut least) = (0, 0, u32::MAX);
        for i in 0..self.num_far {
            let v = self.far[i];
            let count = self.counts[v as usize];
            let is_near = count < limit;
            self.near[num_near] = v;
            num_near += usize::from(is_near);
            self.far[num_kept] = v;
            num_kept += usize::from(!is_near);
            least = least.min(if is_near { u32::MAX } else { count });
        }
        (self.num_near, self.num_far) = (num_near, num_kept);
        Found { count: num_near, num_later: num_kept, least }
    }

    /// Begins a level with those that have as many neighbours left; keeps those that have more.
    pub(super) fn begin(&mut self, levels: Levels, queue: &Queue) -> Found {
        let Levels { level, limit } = levels;
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
        Found { count: len, num_later: num_kept, least }
    }

    /// Takes the vertices of `peeled` from the counts of their neighbours in this part; those that are down to
    /// the level are put on its queue.
    pub(super) fn peel<G: InEdges>(
        &mut self,
        neighbours: &Neighbours<'_, G>,
        scratch: &mut Scratch,
        levels: Levels,
        queue: &Queue,
        peeled: &[AtomicU32],
    ) {
        let (start, end) = (self.start, self.start + self.counts.len() as VertexId);
        for (i, v) in peeled.iter().enumerate() {
            fetch_ahead(neighbours, &peeled[i..]);
            let v = v.load(Ordering::Relaxed);
            let take = |list: &[VertexId]| self.take(list, levels, queue);
            neighbours.for_each_piece(v, scratch, |list| part_of(list, start, end), take);
        }
    }

    /// The same for the only part: takes all vertices on its queue, also those that are put there meanwhile.
    pub(super) fn peel_all<G: InEdges>(
        &mut self,
        neighbours: &Neighbours<'_, G>,
        scratch: &mut Scratch,
        levels: Levels,
        queue: &Queue,
    ) {
        let mut head = 0;
        while head < queue.len.load(Ordering::Relaxed) {
            fetch_ahead(neighbours, &queue.slots[head..queue.len.load(Ordering::Relaxed)]);
            let v = queue.slots[head].load(Ordering::Relaxed);
            head += 1;
            neighbours.for_each_piece(v, scratch, |list| list, |list| self.take(list, levels, queue));
        }
    }

    /// Takes one from the count of each vertex of the list that is not peeled yet.
    #[inline(never)]
    fn take(&mut self, list: &[VertexId], levels: Levels, queue: &Queue) {
        let Levels { level, limit } = levels;
        // Who comes below the limit and down to the level at once is not wanted twice.
        let border = if limit == level + 1 { 0 } else { limit };
        let (counts, slots, start) = (&mut self.counts[..], &queue.slots[..], self.start);
        let mut len = queue.len.load(Ordering::Relaxed);
        for &u in list {
            let count = &mut counts[(u - start) as usize];
            let before = *count;
            *count = before - u32::from(before > level);
            slots[len].store(u, Ordering::Relaxed);
            len += usize::from(before == level + 1);
            if before == border {
                self.near[self.num_near] = u - start;
                self.num_near += 1;
            }
        }
        queue.len.store(len, Ordering::Relaxed);
    }
}

/// Fetches the lists of vertices that are peeled a little later.
#[inline(always)]
fn fetch_ahead<G: InEdges>(neighbours: &Neighbours<'_, G>, peeled: &[AtomicU32]) {
    if let Some(v) = peeled.get(2 * LOOKAHEAD) {
        neighbours.prefetch_place(v.load(Ordering::Relaxed));
    }
    if let Some(v) = peeled.get(LOOKAHEAD) {
        neighbours.prefetch_lists(v.load(Ordering::Relaxed));
    }
}

/// The entries of an ascending list from `start` on and below `end`.
#[inline(always)]
fn part_of(list: &[VertexId], start: VertexId, end: VertexId) -> &[VertexId] {
    const SHORT: usize = 16;
    // Few entries are compared all, without a branch.
    let num_below = |bound: VertexId| match list.len() <= SHORT {
        true => list.iter().map(|&u| usize::from(u < bound)).sum(),
        false => list.partition_point(|&u| u < bound),
    };
    &list[num_below(start)..num_below(end)]
}
