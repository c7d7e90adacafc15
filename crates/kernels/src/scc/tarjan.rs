//! Tarjan's depth-first search in Pearce's form, over a part of the vertices.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

use base::VertexId;
use base::bitmap::{Bitmap, ones};
use graph::{Graph, Side};

use super::reach::Closed;
use crate::Context;

/// The number of a vertex whose component is known: larger than that of any other.
const DONE: u32 = u32::MAX;

/// The number of a vertex that was not visited yet.
const UNVISITED: u32 = 0;

/// Bytes of the two stacks for each vertex of a part.
pub(super) const STACK_BYTES: u64 = size_of::<Frame>() as u64 + 4;

/// Vertices between two looks at whether to stop.
const POLL: u32 = 1 << 14;

/// Which arcs of the vertices of a part count.
#[derive(Clone, Copy)]
pub(super) enum Arcs<'a> {
    /// All: those that leave the part end at vertices that are done.
    All,
    /// Those that end in this set.
    Inside(&'a Bitmap),
    /// Those that end outside it.
    Outside(&'a Bitmap),
}

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub components: u64,
    /// The number of vertices of the largest component.
    pub largest: u64,
}

impl Tally {
    pub(super) fn and(self, other: Self) -> Self {
        Self { components: self.components + other.components, largest: self.largest.max(other.largest) }
    }
}

/// What all parts share. Each vertex belongs to one part, whose thread alone writes and reads what is known
/// of it.
pub(super) struct Tarjan<'a, G> {
    pub ctx: &'a Context<'a>,
    pub graph: &'a G,
    /// The smallest vertex of the component, once it is known.
    pub labels: &'a [AtomicU32],
    /// Vertices are numbered from 1 as they are visited; then this is the smallest number of an open vertex
    /// that they are known to lead to.
    pub numbers: &'a [AtomicU32],
}

/// A vertex whose list is not finished.
#[derive(Clone, Copy)]
struct Frame {
    vertex: VertexId,
    /// How many entries of its list are finished. Where a list is longer than this can say, entries at its
    /// end are looked at again, which does no harm.
    position: u32,
    number: u32,
}

/// The search of one part under way.
struct Search<'a, G> {
    tarjan: &'a Tarjan<'a, G>,
    arcs: Arcs<'a>,
    next_number: u32,
    frames: Vec<Frame>,
    /// Vertices whose lists are finished, but not their component.
    open: Vec<VertexId>,
    tally: Tally,
}

impl<G: Graph> Tarjan<'_, G> {
    /// The components of the vertices outside a set that paths in one direction do not leave.
    pub(super) fn outside(&self, closed: &Closed) -> Tally {
        let set = &closed.members;
        let arcs = match closed.side {
            Side::Out => Arcs::Outside(set),
            Side::In => Arcs::All,
        };
        self.run(set.len() - set.count_ones(), |i| !set.words()[i], arcs)
    }

    /// The components of the vertices in such a set, one of which is what it has in common with `other`.
    pub(super) fn inside(&self, closed: &Closed, other: &Bitmap) -> Tally {
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
        let giant = Tally { components: u64::from(size > 0), largest: size as u64 };
        let arcs = match closed.side {
            Side::Out => Arcs::All,
            Side::In => Arcs::Inside(set),
        };
        giant.and(self.run(set.count_ones() - size, |i| set.words()[i] & !other.words()[i], arcs))
    }

    /// The components of a part of `size` vertices; `word` gives 64 of its bits.
    pub(super) fn run(&self, size: usize, word: impl Fn(usize) -> u64, arcs: Arcs<'_>) -> Tally {
        let bound = self.labels.len();
        let (frames, open) = (Vec::with_capacity(size), Vec::with_capacity(size));
        let mut search = Search { tarjan: self, arcs, next_number: 1, frames, open, tally: Tally::default() };
        let has_dead = self.graph.num_vertices() < bound;
        let mut told = 1;
        for index in 0..bound.div_ceil(64) {
            let num_bits = (bound - index * 64).min(64);
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

impl<G: Graph> Search<'_, G> {
    #[inline(always)]
    fn number(&self, v: VertexId) -> &AtomicU32 {
        &self.tarjan.numbers[v as usize]
    }

    /// Visits what `root` leads to; breaks off if the work is cancelled.
    fn from(&mut self, root: VertexId) -> ControlFlow<()> {
        let mut frame = self.visited(root);
        let mut least = frame.number;
        loop {
            if let Some(child) = self.next_child(&mut frame, &mut least) {
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

    /// The next entry of the list that was not visited; `least` becomes the least number of those before it.
    #[inline(always)]
    fn next_child(&self, frame: &mut Frame, least: &mut u32) -> Option<VertexId> {
        match self.arcs {
            Arcs::All => self.next_child_where(frame, least, |_| true),
            Arcs::Inside(set) => self.next_child_where(frame, least, |u| set.get(u as usize)),
            Arcs::Outside(set) => self.next_child_where(frame, least, |u| !set.get(u as usize)),
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
        let _ = self.tarjan.graph.for_each_out_fragment(frame.vertex, |list| {
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

    /// The component of the vertex is complete: those that were visited after it and are open.
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
        self.tally = self.tally.and(Tally { components: 1, largest: size as u64 + 1 });
    }
}
