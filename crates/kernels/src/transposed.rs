//! In-lists in memory for a directed graph that was loaded without them.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::VertexId;
use anden_base::memory::{as_atomic_u32, as_atomic_u64, zeroed_huge};
use anden_graph::{
    DensePage, Direction, FormArrays, Graph, GraphKind, Page, Parts, PrefetchStage, StoredForm, StoredFormKey,
    VertexMask, WillNeed,
};

use crate::preparation::PreparedForm;
use crate::stored_arrays::{arrays, copied, values};
use crate::vertex_subset::CHUNK;
use crate::walk::for_each_arc;
use crate::{Context, Result};

/// The name of in-lists in a database.
const STORED_KEY: StoredFormKey = StoredFormKey { form: StoredForm::InLists, parameter: 0 };

/// The form that kernels that need in-lists read from a database that stores it; `None`: the graph has in-lists.
pub(crate) fn stored_form(graph: &impl Graph) -> Option<StoredFormKey> {
    (Transposed::num_bytes(graph) > 0).then_some(STORED_KEY)
}

/// A graph with in-lists built in memory.
pub(crate) struct Transposed<'a, G> {
    graph: &'a G,
    in_lists: PreparedForm<'a, InLists>,
}

/// The in-lists of a graph.
#[derive(Default)]
pub(crate) struct InLists {
    /// The end of each list, which is the start of the next one.
    ends: Vec<u64>,
    sources: Vec<VertexId>,
}

impl<'a, G: Graph> Transposed<'a, G> {
    /// The bytes of the in-lists; 0 if the graph has in-edges.
    pub(crate) fn num_bytes(graph: &G) -> u64 {
        let lists = 8 * graph.vertex_bound() as u64 + 4 * graph.num_arcs();
        if graph.has_lists(Direction::In) { 0 } else { lists }
    }

    /// Takes the in-lists that an earlier run built or that the database stores, or builds them.
    ///
    /// # Errors
    /// As [`InLists::build`].
    pub(crate) fn new(ctx: &Context<'a>, graph: &'a G) -> Result<Self> {
        let kept = PreparedForm::take(ctx.preparations, graph, 0, |_: &InLists| Self::num_bytes(graph));
        let in_lists = match kept.or_else(|| InLists::read(ctx, graph)) {
            Some(in_lists) => in_lists,
            None => PreparedForm::new(ctx.preparations, graph, 0, InLists::build(ctx, graph)?, Self::num_bytes(graph)),
        };
        Ok(Self { graph, in_lists })
    }
}

impl InLists {
    /// Builds the in-lists. Cost: two passes over all out-lists.
    ///
    /// # Errors
    /// The graph is damaged, or the work was cancelled.
    pub(crate) fn build(ctx: &Context<'_>, graph: &impl Graph) -> Result<Self> {
        ctx.progress.stage("in-edges", None);
        let bound = graph.vertex_bound();
        let mut ends = zeroed_huge::<u64>(bound);
        let counts = as_atomic_u64(&mut ends);
        for_each_arc(ctx, graph, |_, target| {
            // Relaxed: the counts are read after the loop only.
            counts[target as usize].fetch_add(1, Ordering::Relaxed);
        })?;
        // Each entry becomes the start of its list; the fill below advances it to the end.
        let mut num_arcs = 0;
        for end in &mut ends {
            num_arcs += std::mem::replace(end, num_arcs);
        }
        let mut sources = zeroed_huge::<VertexId>(num_arcs as usize);
        let (places, slots) = (as_atomic_u64(&mut ends), as_atomic_u32(&mut sources));
        for_each_arc(ctx, graph, |source, target| {
            let place = places[target as usize].fetch_add(1, Ordering::Relaxed);
            slots[place as usize].store(source, Ordering::Relaxed);
        })?;
        let mut in_lists = Self { ends, sources };
        in_lists.sort(ctx);
        ctx.progress.check()?;
        Ok(in_lists)
    }

    /// Sorts the lists, which workers filled in arbitrary order.
    fn sort(&mut self, ctx: &Context<'_>) {
        let mut rest = &mut self.sources[..];
        let mut start = 0;
        let chunks = self.ends.chunks(CHUNK).map(|ends| {
            let first = start;
            start = ends[ends.len() - 1];
            (first, ends, rest.split_off_mut(..(start - first) as usize).unwrap_or_default())
        });
        ctx.pool.for_each_item(chunks.collect(), |_, (first, ends, mut sources)| {
            let mut start = first;
            for &end in ends {
                let list = sources.split_off_mut(..(end - start) as usize).unwrap_or_default();
                list.sort_unstable();
                start = end;
            }
        });
    }

    /// The in-lists that the database stores, if it does.
    fn read<'a>(ctx: &Context<'a>, graph: &impl Graph) -> Option<PreparedForm<'a, Self>> {
        let decode = |arrays: &[&[u8]]| Self::from_arrays(ctx, graph, arrays).map(Some);
        PreparedForm::read(ctx.preparations, ctx.pool, graph, STORED_KEY, decode, |_| Transposed::num_bytes(graph))
    }

    /// The arrays of the lists: their ends, and the sources.
    pub(crate) fn arrays(&self) -> FormArrays<'_> {
        vec![vec![bytemuck::cast_slice(&self.ends)], vec![bytemuck::cast_slice(&self.sources)]]
    }

    /// Copies the arrays of the lists of `graph`. The error says what does not fit.
    fn from_arrays(ctx: &Context<'_>, graph: &impl Graph, stored: &[&[u8]]) -> Result<Self, String> {
        let [ends, sources] = arrays(stored)?;
        let (ends, sources) = (values::<u64>(ends)?, values::<VertexId>(sources)?);
        let num_arcs = ends.last().copied().unwrap_or(0);
        if (ends.len(), num_arcs) != (graph.vertex_bound(), graph.num_arcs()) || sources.len() as u64 != num_arcs {
            return Err(format!("{} lists with {num_arcs} entries", ends.len()));
        }
        // The last end is in bounds, so all are if they ascend.
        if !ends.is_sorted() {
            return Err("the ends of the lists do not ascend".into());
        }
        let in_lists = Self { ends: copied(ctx, ends), sources: copied(ctx, sources) };
        let is_wrong = AtomicBool::new(false);
        ctx.pool.for_each_chunk(0..ends.len(), CHUNK, |_, chunk| {
            let is_list = |list: &[VertexId]| {
                list.is_sorted() && list.last().is_none_or(|&source| (source as usize) < ends.len())
            };
            if !chunk.into_iter().all(|vertex| is_list(in_lists.list(vertex as VertexId))) {
                // Relaxed: read after the loop.
                is_wrong.store(true, Ordering::Relaxed);
            }
        });
        if is_wrong.into_inner() { Err("a list does not ascend below the vertex bound".into()) } else { Ok(in_lists) }
    }

    fn list(&self, vertex: VertexId) -> &[VertexId] {
        let start = (vertex as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.sources[start as usize..self.ends[vertex as usize] as usize]
    }
}

impl<G: Graph> WillNeed for Transposed<'_, G> {
    fn is_listening(&self) -> bool {
        self.graph.is_listening()
    }

    // The in-lists are in memory, so only hints about out-lists are passed on.

    #[inline(always)]
    fn prefetch(&self, direction: Direction, stage: PrefetchStage, vertex: VertexId) {
        if direction == Direction::Out {
            self.graph.prefetch(direction, stage, vertex);
        }
    }

    fn will_need(&self, direction: Direction, parts: Parts, vertices: &[VertexId]) {
        if direction == Direction::Out {
            self.graph.will_need(direction, parts, vertices);
        }
    }

    fn will_need_runs(&self, direction: Direction, parts: Parts, runs: &[Range<VertexId>]) {
        if direction == Direction::Out {
            self.graph.will_need_runs(direction, parts, runs);
        }
    }

    fn will_walk(&self, direction: Direction, parts: Parts, vertices: Range<VertexId>) {
        if direction == Direction::Out {
            self.graph.will_walk(direction, parts, vertices);
        }
    }

    fn has_walked(&self, direction: Direction, parts: Parts, vertices: Range<VertexId>) {
        if direction == Direction::Out {
            self.graph.has_walked(direction, parts, vertices);
        }
    }

    fn forget_needs(&self) {
        self.graph.forget_needs();
    }
}

impl<G: Graph> Graph for Transposed<'_, G> {
    type Offset = G::Offset;

    fn vertex_bound(&self) -> usize {
        self.graph.vertex_bound()
    }

    fn num_vertices(&self) -> usize {
        self.graph.num_vertices()
    }

    fn num_edges(&self) -> u64 {
        self.graph.num_edges()
    }

    fn num_arcs(&self) -> u64 {
        self.graph.num_arcs()
    }

    fn graph_kind(&self) -> GraphKind {
        self.graph.graph_kind()
    }

    fn is_multigraph(&self) -> bool {
        self.graph.is_multigraph()
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        self.graph.is_live(vertex)
    }

    fn has_lists(&self, _direction: Direction) -> bool {
        true
    }

    #[inline(always)]
    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        match direction {
            Direction::Out => self.graph.degree(direction, vertex),
            Direction::In => self.in_lists.list(vertex).len(),
        }
    }

    #[inline(always)]
    fn rough_degree(&self, direction: Direction, vertex: VertexId) -> usize {
        match direction {
            Direction::Out => self.graph.rough_degree(direction, vertex),
            Direction::In => self.in_lists.list(vertex).len(),
        }
    }

    #[inline(always)]
    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match direction {
            Direction::Out => self.graph.for_each_fragment(direction, vertex, body),
            Direction::In => body(self.in_lists.list(vertex)),
        }
    }

    #[inline(always)]
    fn for_each_fragment_of(
        &self,
        direction: Direction,
        wanted: &VertexMask,
        mut body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        match direction {
            Direction::Out => self.graph.for_each_fragment_of(direction, wanted, body),
            Direction::In => wanted.vertices().for_each(|vertex| {
                let _ = body(vertex, self.in_lists.list(vertex));
            }),
        }
    }

    #[inline(always)]
    fn dense_lists(
        &self,
        direction: Direction,
        wanted: &VertexMask,
    ) -> Option<(DensePage<'_, Self::Offset>, VertexMask)> {
        if direction == Direction::Out { self.graph.dense_lists(direction, wanted) } else { None }
    }

    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, Self::Offset>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match direction {
            Direction::Out => self.graph.for_each_page(direction, vertices, body),
            // Dense pages have offsets of another type.
            Direction::In => body(Page::Patched(vertices)),
        }
    }

    fn check(&self) -> anden_base::Result<()> {
        self.graph.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_base::parallel::Pool;
    use anden_testkit::{FragmentedGraph, for_each_graph};

    /// In-lists come back from their arrays, and wrong arrays are refused.
    fn check_stored(ctx: &Context<'_>, graph: &impl Graph, made: &InLists, name: &str) {
        let read = |made: &InLists| {
            let arrays = made.arrays().iter().map(|pieces| pieces[0]).collect::<Vec<_>>();
            InLists::from_arrays(ctx, graph, &arrays)
        };
        let found = read(made).unwrap();
        assert!(found.ends == made.ends && found.sources == made.sources, "{name}");
        let changed = |change: fn(&mut InLists)| {
            let mut wrong = InLists { ends: made.ends.clone(), sources: made.sources.clone() };
            change(&mut wrong);
            read(&wrong).is_err()
        };
        if !made.sources.is_empty() {
            assert!(changed(|wrong| wrong.ends[0] = u64::MAX), "{name}");
            assert!(changed(|wrong| wrong.sources.truncate(wrong.sources.len() - 1)), "{name}");
            assert!(changed(|wrong| *wrong.sources.last_mut().unwrap() = u32::MAX), "{name}");
            assert!(changed(|wrong| *wrong.ends.last_mut().unwrap() = 0), "{name}");
        }
    }

    #[test]
    fn in_lists_are_those_that_the_graph_had() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let ctx = Context::new(&pool);
            for_each_graph(|name, csr| {
                let without = FragmentedGraph::new(csr).without_in_edges();
                if csr.graph_kind() == GraphKind::Undirected {
                    assert_eq!(Transposed::num_bytes(&without), 0);
                    return;
                }
                let transposed = Transposed::new(&ctx, &without).unwrap();
                let arrays = size_of_val(&transposed.in_lists.ends[..]) + size_of_val(&transposed.in_lists.sources[..]);
                assert_eq!(arrays as u64, Transposed::num_bytes(&without));
                check_stored(&ctx, &without, &transposed.in_lists, name);
                for v in 0..csr.vertex_bound() as VertexId {
                    let mut wanted = Vec::new();
                    let _ = csr.for_each_fragment(Direction::In, v, |list| {
                        wanted.extend_from_slice(list);
                        ControlFlow::Continue(())
                    });
                    assert_eq!(transposed.in_lists.list(v), wanted, "{name}, vertex {v}");
                    assert_eq!(transposed.degree(Direction::In, v), wanted.len());
                }
            });
        }
    }
}
