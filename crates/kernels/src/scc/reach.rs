//! The vertices reachable from one vertex, found by one thread.

use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use anden_base::VertexId;
use anden_base::bitmap::{Bitmap, ones};
use anden_graph::{Direction, Graph, Page, PageOffset};

use crate::vertex_subset::each_word;
use crate::{Context, Result};

/// Waiting vertices push while their arcs are fewer than one in this many unexplored arcs. Otherwise a sweep tests all
/// vertices outside.
const PUSHED_SHARE: u64 = 4;

/// Vertices between two checks for the other search's result and for cancellation.
const STEP: usize = 1 << 12;

/// All vertices that paths reach in one direction.
#[derive(Debug)]
pub(super) struct ReachedSet {
    pub direction: Direction,
    pub members: Bitmap,
}

/// A running search.
pub(super) struct Reach<'a, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    direction: Direction,
    members: Bitmap,
    /// Members in the order of joining; those before `head` are done.
    queue: Vec<VertexId>,
    head: usize,
    /// The number of arcs of vertices that are not done.
    unexplored: u64,
}

impl<'a, G: Graph> Reach<'a, G> {
    /// A search from `start`. *Memory*: 4 bytes and a bit for each vertex.
    pub(super) fn new(ctx: &'a Context<'a>, graph: &'a G, start: VertexId, direction: Direction) -> Self {
        let bound = graph.vertex_bound();
        let mut members = Bitmap::new(bound);
        members.set(start as usize);
        // Reserved in full, as the budget counts it.
        let mut queue = Vec::with_capacity(bound);
        queue.push(start);
        Self { ctx, graph, direction, members, queue, head: 0, unexplored: graph.num_arcs() }
    }

    /// The vertices that paths reach from the start, or that reach the start. Once `other` is set, the search stays
    /// inside that set.
    pub(super) fn run(mut self, other: &OnceLock<ReachedSet>) -> Result<Bitmap> {
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
            // For few waiting vertices a push is cheap, so their degrees are not summed.
            if waiting.len() >= STEP / 16 {
                let num_arcs: u64 = waiting.iter().map(|&v| self.degree(v)).sum();
                if num_arcs > self.unexplored / PUSHED_SHARE {
                    self.unexplored = self.unexplored.saturating_sub(num_arcs);
                    // The sweep also covers the lists of all waiting vertices.
                    self.head = self.queue.len();
                    self.sweep(within);
                    continue;
                }
            }
            self.push(within);
        }
        Ok(self.members)
    }

    /// Drops waiting vertices outside the set.
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
        self.graph.degree(self.direction, v) as u64
    }

    /// Adds the neighbors of some waiting vertices.
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
            let _ = self.graph.for_each_fragment(self.direction, v, body);
        }
    }

    /// Tests all vertices outside for a neighbor in the set.
    fn sweep(&mut self, within: Option<&Bitmap>) {
        let graph = self.graph;
        let vertices = 0..graph.vertex_bound() as VertexId;
        let (members, queue) = (&mut self.members, &mut self.queue);
        let direction = self.direction.reversed();
        let _ = graph.for_each_page(direction, vertices, |page| {
            sweep_page(page, within, members, queue, |v, body| graph.for_each_fragment(direction, v, body))
        });
    }
}

/// Adds the vertices of a page that have a neighbor in the set.
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

/// Adds each vertex outside the set that is allowed and for which `joins` returns true.
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
