//! What can be reached from a vertex, by one thread.

use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use base::VertexId;
use base::bitmap::{Bitmap, ones};
use graph::{InEdges, Page, PageOffset, Side};

use crate::vertex_subset::each_word;
use crate::{Context, Result};

/// The vertices that wait push their arcs while these are less than one of so many that nobody has looked
/// at; else all that are outside are asked whether they join.
const PUSHED_SHARE: u64 = 4;

/// Vertices between two looks at what else is known, and at whether to stop.
const STEP: usize = 1 << 12;

/// All that paths lead to in one direction.
#[derive(Debug)]
pub(super) struct Closed {
    pub side: Side,
    pub members: Bitmap,
}

/// One search under way.
pub(super) struct Reach<'a, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    side: Side,
    members: Bitmap,
    /// Members in the order in which they joined; those before `head` are done.
    queue: Vec<VertexId>,
    head: usize,
    /// The arcs of vertices that are not done.
    unexplored: u64,
}

impl<'a, G: InEdges> Reach<'a, G> {
    /// A search from `start`. Memory: 4 bytes and a bit for each vertex.
    pub(super) fn new(ctx: &'a Context<'a>, graph: &'a G, start: VertexId, side: Side) -> Self {
        let bound = graph.vertex_bound();
        let mut members = Bitmap::new(bound);
        members.set(start as usize);
        let mut queue = Vec::with_capacity(bound);
        queue.push(start);
        Self { ctx, graph, side, members, queue, head: 0, unexplored: graph.num_arcs() }
    }

    /// The vertices that paths lead to from the start, or towards it; once `other` is known, only those in it
    /// are searched for.
    pub(super) fn run(mut self, other: &OnceLock<Closed>) -> Result<Bitmap> {
        let mut within = None;
        while self.head < self.queue.len() {
            self.ctx.progress.check()?;
            if within.is_none()
                && let Some(other) = other.get()
            {
                within = Some(&other.members);
                self.leave_outsiders(&other.members);
            }
            let waiting = &self.queue[self.head..];
            if waiting.len() >= STEP / 16 {
                let num_arcs: u64 = waiting.iter().map(|&v| self.degree(v)).sum();
                if num_arcs > self.unexplored / PUSHED_SHARE {
                    self.unexplored = self.unexplored.saturating_sub(num_arcs);
                    self.head = self.queue.len();
                    self.sweep(within);
                    continue;
                }
            }
            self.push(within);
        }
        Ok(self.members)
    }

    /// Forgets those that wait outside the set.
    fn leave_outsiders(&mut self, set: &Bitmap) {
        let mut kept = self.head;
        for i in self.head..self.queue.len() {
            let v = self.queue[i];
            if set.get(v as usize) {
                self.queue[kept] = v;
                kept += 1;
            }
        }
        self.queue.truncate(kept);
    }

    fn degree(&self, v: VertexId) -> u64 {
        match self.side {
            Side::Out => self.graph.out_degree(v) as u64,
            Side::In => self.graph.in_degree(v) as u64,
        }
    }

    /// Lets the neighbours of some that wait join.
    fn push(&mut self, within: Option<&Bitmap>) {
        let end = self.queue.len().min(self.head + STEP);
        while self.head < end {
            let v = self.queue[self.head];
            self.head += 1;
            let (members, queue, unexplored) = (&mut self.members, &mut self.queue, &mut self.unexplored);
            let body = |list: &[VertexId]| {
                *unexplored = unexplored.saturating_sub(list.len() as u64);
                for &u in list {
                    if !members.get(u as usize) && within.is_none_or(|set| set.get(u as usize)) {
                        members.set(u as usize);
                        queue.push(u);
                    }
                }
                ControlFlow::Continue(())
            };
            let _ = match self.side {
                Side::Out => self.graph.for_each_out_fragment(v, body),
                Side::In => self.graph.for_each_in_fragment(v, body),
            };
        }
    }

    /// Asks all vertices outside the set whether they join.
    fn sweep(&mut self, within: Option<&Bitmap>) {
        let graph = self.graph;
        let vertices = 0..graph.vertex_bound() as VertexId;
        let (members, queue) = (&mut self.members, &mut self.queue);
        let _ = match self.side {
            Side::Out => graph.for_each_in_page(vertices, |page| {
                sweep_page(page, within, members, queue, |v, body| graph.for_each_in_fragment(v, body))
            }),
            Side::In => graph.for_each_out_page(vertices, |page| {
                sweep_page(page, within, members, queue, |v, body| graph.for_each_out_fragment(v, body))
            }),
        };
    }
}

/// Lets the vertices of a page join that have a neighbour in the set.
fn sweep_page<O: PageOffset>(
    page: Page<'_, O>,
    within: Option<&Bitmap>,
    members: &mut Bitmap,
    queue: &mut Vec<VertexId>,
    fragments: impl Fn(VertexId, &mut dyn FnMut(&[VertexId]) -> ControlFlow<()>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match page {
        Page::Dense(page) => each_outsider(page.vertices(), within, members, queue, |v, members| {
            page.list((v - page.first()) as usize).iter().any(|&u| members.get(u as usize))
        }),
        Page::Patched(vertices) => each_outsider(vertices, within, members, queue, |v, members| {
            let search = fragments(v, &mut |list| match list.iter().any(|&u| members.get(u as usize)) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
            search.is_break()
        }),
        Page::Empty(_) => {}
    }
    ControlFlow::Continue(())
}

/// Asks each vertex that may join whether it does.
#[inline(always)]
fn each_outsider(
    vertices: Range<VertexId>,
    within: Option<&Bitmap>,
    members: &mut Bitmap,
    queue: &mut Vec<VertexId>,
    mut joins: impl FnMut(VertexId, &Bitmap) -> bool,
) {
    each_word(vertices, |index, mask| {
        let allowed = within.map_or(!0, |set| set.words()[index]);
        for bit in ones(!members.words()[index] & mask & allowed) {
            let v = (index * 64 + bit) as VertexId;
            if joins(v, members) {
                members.set(v as usize);
                queue.push(v);
            }
        }
    });
}
