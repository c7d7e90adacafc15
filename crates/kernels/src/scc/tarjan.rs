//! Tarjan's depth-first search in Pearce's form, over a part of the vertices.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::{Bitmap, ones};
use anden_graph::{Direction, Graph};

use super::reach::ReachedSet;
use crate::Context;

/// The number of a vertex in a finished component: larger than any other number.
const DONE: u32 = u32::MAX;

/// The number of an unvisited vertex.
const UNVISITED: u32 = 0;

/// Bytes of the two stacks for each vertex of a part.
pub(super) const STACK_BYTES: u64 = size_of::<Frame>() as u64 + 4;

/// A search polls for cancellation once per this many vertices.
const POLL: u32 = 1 << 14;

/// The arcs of a part that the search follows.
#[derive(Clone, Copy)]
pub(super) enum TarjanArcs<'a> {
    /// All arcs: those that leave the part end at finished vertices.
    All,
    /// The arcs that end in this set.
    Inside(&'a Bitmap),
    /// The arcs that end outside this set.
    Outside(&'a Bitmap),
}

/// The number of found components, and the size of the largest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ComponentTally {
    pub components: u64,
    /// The number of vertices of the largest component.
    pub largest: u64,
}

impl ComponentTally {
    pub(super) fn and(self, other: Self) -> Self {
        Self { components: self.components + other.components, largest: self.largest.max(other.largest) }
    }
}

/// The state that all parts share. Each vertex belongs to one part, and only that part's thread reads and writes its
/// entries.
pub(super) struct Tarjan<'a, G> {
    pub ctx: &'a Context<'a>,
    pub graph: &'a G,
    /// The smallest vertex of each finished component, by vertex id.
    pub labels: &'a [AtomicU32],
    /// Each vertex gets a number from 1 when it is visited. Then it holds the smallest number of an open vertex that it
    /// is known to reach.
    pub numbers: &'a [AtomicU32],
}

/// A vertex with an unfinished list.
#[derive(Clone, Copy)]
struct Frame {
    vertex: VertexId,
    /// The number of finished list entries. At saturation, the last entries of the list are read again, which is
    /// harmless.
    position: u32,
    number: u32,
}

/// The running search of one part.
struct TarjanSearch<'a, G> {
    tarjan: &'a Tarjan<'a, G>,
    arcs: TarjanArcs<'a>,
    next_number: u32,
    frames: Vec<Frame>,
    /// Vertices with finished lists and unfinished components.
    open: Vec<VertexId>,
    tally: ComponentTally,
}

impl<G: Graph> Tarjan<'_, G> {
    /// The components outside a set that paths in one direction do not leave.
    pub(super) fn outside(&self, closed: &ReachedSet) -> ComponentTally {
        let set = &closed.members;
        let arcs = match closed.direction {
            // Arcs may lead into the set, which the other thread searches.
            Direction::Out => TarjanArcs::Outside(set),
            // No arc leads into the set.
            Direction::In => TarjanArcs::All,
        };
        self.run(set.len() - set.count_ones(), |i| !set.words()[i], arcs)
    }

    /// The components inside such a set. Its intersection with `other` is one of them.
    pub(super) fn inside(&self, closed: &ReachedSet, other: &Bitmap) -> ComponentTally {
        let set = &closed.members;
        let common = |i: usize| ones(set.words()[i] & other.words()[i]).map(move |bit| i * 64 + bit);
        let mut size = 0;
        if let Some(first) = (0..set.words().len()).flat_map(common).next() {
            for v in (0..set.words().len()).flat_map(common) {
                self.labels[v].store(first as VertexId, Ordering::Relaxed);
                self.numbers[v].store(DONE, Ordering::Relaxed);
                size += 1;
            }
        }
        self.ctx.progress.advance(size as u64);
        let giant = ComponentTally { components: u64::from(size > 0), largest: size as u64 };
        let arcs = match closed.direction {
            // No arc leaves the set, and the vertices of `other` are done.
            Direction::Out => TarjanArcs::All,
            // Arcs may leave the set for vertices of the other thread.
            Direction::In => TarjanArcs::Inside(set),
        };
        giant.and(self.run(set.count_ones() - size, |i| set.words()[i] & !other.words()[i], arcs))
    }

    /// The components of a part of `size` vertices. `word` returns 64 bits of the part.
    pub(super) fn run(&self, size: usize, word: impl Fn(usize) -> u64, arcs: TarjanArcs<'_>) -> ComponentTally {
        let bound = self.labels.len();
        // Reserved in full, as the budget counts them: a push never reallocates.
        let (frames, open) = (Vec::with_capacity(size), Vec::with_capacity(size));
        let mut search =
            TarjanSearch { tarjan: self, arcs, next_number: 1, frames, open, tally: ComponentTally::default() };
        // Without dead vertices, the lookups are saved.
        let has_dead = self.graph.num_vertices() < bound;
        let mut told = 1;
        for index in 0..bound.div_ceil(64) {
            let num_bits = (bound - index * 64).min(64);
            // The complement of a set also has bits beyond the bound.
            for v in ones(word(index) & (!0 >> (64 - num_bits))).map(|bit| (index * 64 + bit) as VertexId) {
                if has_dead && !self.graph.is_live(v) {
                    self.labels[v as usize].store(v, Ordering::Relaxed);
                } else if search.number(v).load(Ordering::Relaxed) == UNVISITED && search.from(v).is_break() {
                    return search.tally;
                }
            }
            if search.next_number - told > POLL {
                self.ctx.progress.advance(u64::from(search.next_number - told));
                told = search.next_number;
                if self.ctx.progress.is_cancelled() {
                    break;
                }
            }
        }
        search.tally
    }
}

impl<G: Graph> TarjanSearch<'_, G> {
    #[inline(always)]
    fn number(&self, v: VertexId) -> &AtomicU32 {
        &self.tarjan.numbers[v as usize]
    }

    /// Visits the vertices reachable from `root`. Breaks if the work is cancelled.
    fn from(&mut self, root: VertexId) -> ControlFlow<()> {
        let mut frame = self.visited(root);
        let mut least = frame.number;
        loop {
            if let Some(child) = self.next_child(&mut frame, &mut least) {
                // `least` is kept in the array, so that a frame needs no field for it.
                self.number(frame.vertex).store(least, Ordering::Relaxed);
                self.frames.push(frame);
                frame = self.visited(child);
                least = frame.number;
                if frame.number.is_multiple_of(POLL) && self.tarjan.ctx.progress.is_cancelled() {
                    return ControlFlow::Break(());
                }
                continue;
            }
            if least == frame.number {
                self.close(frame);
                // A finished component does not lower the number of its parent.
                least = DONE;
            } else {
                self.number(frame.vertex).store(least, Ordering::Relaxed);
                self.open.push(frame.vertex);
            }
            let Some(parent) = self.frames.pop() else { return ControlFlow::Continue(()) };
            frame = parent;
            least = least.min(self.number(frame.vertex).load(Ordering::Relaxed));
        }
    }

    #[inline(always)]
    fn visited(&mut self, vertex: VertexId) -> Frame {
        let number = self.next_number;
        self.next_number += 1;
        self.number(vertex).store(number, Ordering::Relaxed);
        Frame { vertex, position: 0, number }
    }

    /// The next unvisited entry of the list. `least` becomes the least number of the entries before it.
    #[inline(always)]
    fn next_child(&self, frame: &mut Frame, least: &mut u32) -> Option<VertexId> {
        match self.arcs {
            TarjanArcs::All => self.next_child_where(frame, least, |_| true),
            TarjanArcs::Inside(set) => self.next_child_where(frame, least, |u| set.get(u as usize)),
            TarjanArcs::Outside(set) => self.next_child_where(frame, least, |u| !set.get(u as usize)),
        }
    }

    #[inline(always)]
    fn next_child_where(
        &self,
        frame: &mut Frame,
        least: &mut u32,
        counts: impl Fn(VertexId) -> bool,
    ) -> Option<VertexId> {
        let mut start = 0;
        let mut child = None;
        let _ = self.tarjan.graph.for_each_fragment(Direction::Out, frame.vertex, |list| {
            let num_finished = (frame.position as usize).saturating_sub(start).min(list.len());
            for (i, &u) in list.iter().enumerate().skip(num_finished) {
                if !counts(u) {
                    continue;
                }
                let number = self.number(u).load(Ordering::Relaxed);
                if number == UNVISITED {
                    child = Some(u);
                    frame.position = u32::try_from(start + i + 1).unwrap_or(u32::MAX);
                    return ControlFlow::Break(());
                }
                *least = number.min(*least);
            }
            start += list.len();
            ControlFlow::Continue(())
        });
        child
    }

    /// Finishes a component: its root, and the open vertices visited after the root.
    #[inline(always)]
    fn close(&mut self, root: Frame) {
        let is_later = |&v: &VertexId| self.number(v).load(Ordering::Relaxed) >= root.number;
        let size = self.open.iter().rev().take_while(|v| is_later(v)).count();
        let members = &self.open[self.open.len() - size..];
        let label = members.iter().fold(root.vertex, |least, &v| least.min(v));
        for &v in members.iter().chain([&root.vertex]) {
            self.number(v).store(DONE, Ordering::Relaxed);
            self.tarjan.labels[v as usize].store(label, Ordering::Relaxed);
        }
        self.open.truncate(self.open.len() - size);
        self.tally = self.tally.and(ComponentTally { components: 1, largest: size as u64 + 1 });
    }
}
