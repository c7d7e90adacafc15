//! The neighbours of a vertex without regard to directions, loops and parallel edges.

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use base::VertexId;
use base::memory::as_atomic_u32;
use graph::{Direction, InEdges, Page, Parts, Side};

use super::lock;
use crate::edge_map::announce_place;
use crate::vertex_subset::CHUNK;
use crate::{Context, Result};

/// Entries of a list that are looked at at a time.
const STRETCH: usize = 512;

/// What the lists of a vertex hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The out-list holds each neighbour once, and nothing else.
    Plain,
    /// The out-list and the in-list hold each of theirs once, and perhaps the vertex itself.
    TwoSets,
    /// The out-list holds all, perhaps several times, and perhaps the vertex itself.
    Out,
    /// The same for out-list and in-list together.
    Both,
}

impl Form {
    fn of(graph: &impl InEdges) -> Self {
        match (graph.direction(), graph.is_multigraph()) {
            (Direction::Directed, false) => Self::TwoSets,
            (Direction::Directed, true) => Self::Both,
            // An edge has two arcs, but a loop has one.
            (Direction::Undirected, false) if 2 * graph.num_edges() == graph.num_arcs() => Self::Plain,
            (Direction::Undirected, _) => Self::Out,
        }
    }

    fn has_in_lists(self) -> bool {
        matches!(self, Self::TwoSets | Self::Both)
    }
}

/// The lists of a graph, seen as those of a simple one.
pub(super) struct Neighbours<'a, G> {
    graph: &'a G,
    form: Form,
}

/// What one worker needs to look at lists that are not plain.
pub(super) struct Scratch {
    /// 1 for vertices met in the lists at hand; 0 for all between two vertices.
    flags: Vec<u8>,
    /// Those of a stretch that had not been met.
    fresh: Vec<VertexId>,
}

impl Scratch {
    /// Bytes of the scratch space of a worker.
    pub(super) fn num_bytes(graph: &impl InEdges) -> u64 {
        let num_flags = if Form::of(graph) == Form::Plain { 0 } else { graph.vertex_bound() };
        num_flags as u64 + 4 * STRETCH as u64
    }

    pub(super) fn new(graph: &impl InEdges) -> Self {
        let num_flags = if Form::of(graph) == Form::Plain { 0 } else { graph.vertex_bound() };
        Self { flags: vec![0; num_flags], fresh: vec![0; STRETCH] }
    }
}

impl<'a, G: InEdges> Neighbours<'a, G> {
    pub(super) fn new(graph: &'a G) -> Self {
        Self { graph, form: Form::of(graph) }
    }

    /// Fetches where the lists of `v` are.
    #[inline(always)]
    pub(super) fn prefetch_place(&self, v: VertexId) {
        announce_place(self.graph, Side::Out, v);
        if self.form.has_in_lists() {
            announce_place(self.graph, Side::In, v);
        }
    }

    /// Fetches where the lists of `v` begin; best once their places are there.
    #[inline(always)]
    pub(super) fn prefetch_lists(&self, v: VertexId) {
        self.graph.prefetch_list(Side::Out, Parts::Targets, v);
        if self.form.has_in_lists() {
            self.graph.prefetch_list(Side::In, Parts::Targets, v);
        }
    }

    /// Calls `body` with pieces that together hold each neighbour of `v` once, as far as `part` of a list
    /// has it.
    #[inline(always)]
    pub(super) fn for_each_piece(
        &self,
        v: VertexId,
        scratch: &mut Scratch,
        part: impl Fn(&[VertexId]) -> &[VertexId],
        mut body: impl FnMut(&[VertexId]),
    ) {
        let Scratch { flags, fresh } = scratch;
        match self.form {
            Form::Plain => self.each_out_list(v, |list| body(part(list))),
            Form::TwoSets => {
                self.each_out_list(v, |list| {
                    let list = part(list);
                    list.iter().for_each(|&u| flags[u as usize] = 1);
                    let (before, rest) = list.split_at(list.partition_point(|&u| u < v));
                    body(before);
                    body(if rest.first() == Some(&v) { &rest[1..] } else { rest });
                });
                flags[v as usize] = 1;
                self.each_in_list(v, |list| {
                    part(list).chunks(STRETCH).for_each(|stretch| body(unflagged(stretch, flags, fresh)));
                });
                self.each_out_list(v, |list| part(list).iter().for_each(|&u| flags[u as usize] = 0));
            }
            Form::Out | Form::Both => {
                flags[v as usize] = 1;
                self.each_list(v, |list| {
                    part(list).chunks(STRETCH).for_each(|stretch| body(newly_flagged(stretch, flags, fresh)));
                });
                self.each_list(v, |list| part(list).iter().for_each(|&u| flags[u as usize] = 0));
            }
        }
        if let Some(flag) = flags.get_mut(v as usize) {
            *flag = 0;
        }
    }

    #[inline(always)]
    fn each_out_list(&self, v: VertexId, mut body: impl FnMut(&[VertexId])) {
        let _ = self.graph.for_each_out_fragment(v, |list| {
            body(list);
            ControlFlow::Continue(())
        });
    }

    #[inline(always)]
    fn each_in_list(&self, v: VertexId, mut body: impl FnMut(&[VertexId])) {
        let _ = self.graph.for_each_in_fragment(v, |list| {
            body(list);
            ControlFlow::Continue(())
        });
    }

    #[inline(always)]
    fn each_list(&self, v: VertexId, mut body: impl FnMut(&[VertexId])) {
        self.each_out_list(v, &mut body);
        if self.form.has_in_lists() {
            self.each_in_list(v, &mut body);
        }
    }

    /// Sets the number of neighbours of each vertex, with a worker for each scratch space.
    pub(super) fn count(&self, ctx: &Context<'_>, scratch: &[Mutex<Scratch>], degrees: &mut [u32]) -> Result<()> {
        let degrees = as_atomic_u32(degrees);
        let next = AtomicUsize::new(0);
        ctx.pool.on_each_worker(|worker| {
            let Some(scratch) = scratch.get(worker) else { return };
            let mut scratch = lock(scratch);
            while !ctx.progress.is_cancelled() {
                let start = next.fetch_add(CHUNK, Ordering::Relaxed);
                if start >= degrees.len() {
                    break;
                }
                let vertices = start as VertexId..degrees.len().min(start + CHUNK) as VertexId;
                if self.form == Form::Plain {
                    self.count_entries(vertices, degrees);
                } else {
                    self.count_neighbours(vertices, &mut scratch, degrees);
                }
            }
        });
        Ok(ctx.progress.check()?)
    }

    fn count_entries(&self, vertices: Range<VertexId>, degrees: &[AtomicU32]) {
        let set = |v: VertexId, degree: usize| degrees[v as usize].store(degree as u32, Ordering::Relaxed);
        let _ = self.graph.for_each_out_page(vertices, |page| {
            match page {
                Page::Dense(page) => page.vertices().enumerate().for_each(|(i, v)| set(v, page.degree(i))),
                Page::Patched(vertices) => vertices.for_each(|v| set(v, self.graph.out_degree(v))),
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
    }

    fn count_neighbours(&self, vertices: Range<VertexId>, scratch: &mut Scratch, degrees: &[AtomicU32]) {
        for v in vertices {
            let mut count = 0;
            self.for_each_piece(v, scratch, |list| list, |piece| count += piece.len());
            degrees[v as usize].store(count as u32, Ordering::Relaxed);
        }
    }
}

/// The vertices of a list that are not flagged.
fn unflagged<'a>(list: &[VertexId], flags: &[u8], fresh: &'a mut [VertexId]) -> &'a [VertexId] {
    let mut len = 0;
    for &u in list {
        fresh[len] = u;
        len += usize::from(flags[u as usize] == 0);
    }
    &fresh[..len]
}

/// The same, and flags them, so that each is given once.
fn newly_flagged<'a>(list: &[VertexId], flags: &mut [u8], fresh: &'a mut [VertexId]) -> &'a [VertexId] {
    let mut len = 0;
    for &u in list {
        fresh[len] = u;
        len += usize::from(std::mem::replace(&mut flags[u as usize], 1) == 0);
    }
    &fresh[..len]
}
