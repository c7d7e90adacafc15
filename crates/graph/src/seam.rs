//! The seam between storage and algorithms.
//!
//! A graph gives its edges by *internal iteration*: the graph calls the algorithm's closure with
//! one [fragment](Graph::for_each_out_fragment) of an adjacency list after the other, or with one
//! [page](Page) of vertices after the other. A page says what kind it is, so a kernel dispatches
//! once per page and its inner loop over a dense page is the loop over a plain CSR.
//!
//! A graph that meets damage while it is read gives empty lists from there on and remembers the
//! fault; [`Graph::check`] returns it. A kernel calls `check` before it returns a result (and, in
//! long work, between its rounds), so damage never becomes an answer and costs inner loops nothing.

use std::ops::{ControlFlow, Range};

use base::VertexId;

use crate::{WantedLists, Weight, WeightType};

/// Whether an edge (u, v) is also an edge (v, u).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// An edge leads from its source to its target only.
    Directed,
    /// An edge is stored in the lists of both ends and counted once; a loop is stored once.
    Undirected,
}

/// Read access to a graph that does not change.
pub trait Graph: WillNeed + Sync {
    /// The type of the offsets in dense pages.
    type Offset: PageOffset;

    /// One more than the largest id: the length of arrays indexed by vertex.
    fn vertex_bound(&self) -> usize;

    /// The number of live vertices.
    fn num_vertices(&self) -> usize {
        self.vertex_bound()
    }

    /// The number of edges; of an undirected graph, each counted once.
    fn num_edges(&self) -> u64;

    /// The number of stored out-list entries: twice the edges of an undirected graph, less its
    /// loops.
    fn num_arcs(&self) -> u64;

    /// Whether edges have a direction.
    fn direction(&self) -> Direction;

    /// Whether a pair of vertices may have several edges.
    fn is_multigraph(&self) -> bool {
        false
    }

    /// Whether an id below the bound is a vertex.
    fn is_live(&self, _vertex: VertexId) -> bool {
        true
    }

    /// Whether an id is a vertex: for who asks for one, and not for which there are.
    fn has_vertex(&self, vertex: VertexId) -> bool {
        (vertex as usize) < self.vertex_bound() && self.is_live(vertex)
    }

    /// The length of the out-list of `vertex`.
    fn out_degree(&self, vertex: VertexId) -> usize;

    /// About the length of the out-list of `vertex`: a storage that keeps changes apart from its lists may leave them
    /// out.
    #[inline(always)]
    fn rough_out_degree(&self, vertex: VertexId) -> usize {
        self.out_degree(vertex)
    }

    /// Calls `body` with each fragment of the out-list of `vertex`: a contiguous piece, ascending,
    /// every entry below [`vertex_bound`](Self::vertex_bound). Fragments do not overlap.
    ///
    /// # Panics
    /// May panic if `vertex` is not below the bound; so do all methods that take a vertex.
    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// Calls `body` with the fragments of the out-lists that are wanted, in any order, but those of one list in theirs.
    /// To break leaves a list, and goes on with the others.
    ///
    /// For lists of [patched](Page::Patched) pages: a storage that has to look for each of them looks for all at once.
    #[inline]
    fn for_each_out_fragment_of(
        &self,
        wanted: &WantedLists,
        mut body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        for vertex in wanted.vertices() {
            let _ = self.for_each_out_fragment(vertex, |list| body(vertex, list));
        }
    }

    /// Those of the wanted out-lists that stand in one slice, and that slice as a page: of a [patched](Page::Patched)
    /// page, what is not patched is read as fast as on a dense one. The others are asked for as fragments.
    #[inline(always)]
    fn dense_out_lists(&self, _wanted: &WantedLists) -> Option<(DensePage<'_, Self::Offset>, WantedLists)> {
        None
    }

    /// Calls `body` with pages of out-lists that cover `vertices` once, in order.
    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, Self::Offset>) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// The first damage met while reading, if any.
    ///
    /// # Errors
    /// [`base::Error::Corrupt`] or [`base::Error::Io`] with the place.
    fn check(&self) -> base::Result<()> {
        Ok(())
    }
}

/// The same for in-lists. Of an undirected graph they are the out-lists.
pub trait InEdges: Graph {
    /// Whether in-lists are there. Where not, they look empty: ask first.
    fn has_in_edges(&self) -> bool;

    /// The length of the in-list of `vertex`.
    fn in_degree(&self, vertex: VertexId) -> usize;

    /// As [`Graph::rough_out_degree`].
    #[inline(always)]
    fn rough_in_degree(&self, vertex: VertexId) -> usize {
        self.in_degree(vertex)
    }

    /// As [`Graph::for_each_out_fragment`].
    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// As [`Graph::for_each_out_fragment_of`].
    #[inline]
    fn for_each_in_fragment_of(
        &self,
        wanted: &WantedLists,
        mut body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        for vertex in wanted.vertices() {
            let _ = self.for_each_in_fragment(vertex, |list| body(vertex, list));
        }
    }

    /// As [`Graph::dense_out_lists`].
    #[inline(always)]
    fn dense_in_lists(&self, _wanted: &WantedLists) -> Option<(DensePage<'_, Self::Offset>, WantedLists)> {
        None
    }

    /// As [`Graph::for_each_out_page`].
    fn for_each_in_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, Self::Offset>) -> ControlFlow<()>,
    ) -> ControlFlow<()>;
}

/// Weights beside the edges.
pub trait WeightedEdges: Graph {
    /// The type of the weights; `None` where edges have none.
    fn weight_type(&self) -> Option<WeightType>;

    /// As [`Graph::for_each_out_fragment`], with the weight of each edge beside it. Calls nothing
    /// where `W` is not the graph's [`weight_type`](Self::weight_type): ask first.
    fn for_each_weighted_out_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// The whole out-list of `vertex` with its weights, where both are known to lie in one piece each; `None` says
    /// nothing: ask for its fragments. As there, `W` is the graph's [`weight_type`](Self::weight_type).
    ///
    /// A loop over the fragments of a storage that has them in several places is a call for each; this one is not.
    #[inline(always)]
    fn weighted_out_list<W: Weight>(&self, _vertex: VertexId) -> Option<(&[VertexId], &[W])> {
        None
    }

    /// As [`for_each_weighted_out_fragment`](Self::for_each_weighted_out_fragment), for in-lists.
    fn for_each_weighted_in_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()>;
}

/// Lists that lie in one piece, for algorithms that search in them.
pub trait SingleFragment: Graph {
    /// The whole out-list of `vertex`, ascending; `None` where it is in several fragments.
    fn out_list(&self, vertex: VertexId) -> Option<&[VertexId]>;
}

/// Which lists of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The targets of each vertex.
    Out,
    /// The sources of each vertex; of an undirected graph, its out-lists.
    In,
}

/// What is read of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parts {
    /// The vertices in it.
    Targets,
    /// And what stands beside each of them: weights, or the rows of properties.
    Weighted,
}

/// The prefetch seam: who knows which lists it will read next says so here.
pub trait WillNeed {
    /// Whether announcements are of use now; callers spare themselves the work of ordering them where
    /// nobody listens.
    fn is_listening(&self) -> bool {
        false
    }

    /// The place of this list will be looked up within a microsecond: a hint to fetch it to the
    /// processor's cache, where that takes one instruction.
    fn prefetch(&self, _side: Side, _vertex: VertexId) {}

    /// What [`prefetch`](Self::prefetch) fetched is there by now: a hint to fetch what it leads to, where that is not the
    /// list yet.
    fn prefetch_place(&self, _side: Side, _vertex: VertexId) {}

    /// About the length of this list ([`Graph::rough_out_degree`], [`InEdges::rough_in_degree`]) will be asked for
    /// within a microsecond: a hint to fetch that.
    #[inline(always)]
    fn prefetch_rough_degree(&self, side: Side, vertex: VertexId) {
        self.prefetch(side, vertex);
    }

    /// These parts of this list, whose place was fetched by now, will be read within a microsecond: a hint to fetch their
    /// first lines.
    fn prefetch_list(&self, _side: Side, _parts: Parts, _vertex: VertexId) {}

    /// These parts of the lists of these vertices will be read soon.
    fn will_need(&self, _side: Side, _parts: Parts, _vertices: &[VertexId]) {}

    /// These parts of the lists of these runs of consecutive vertices will be read soon, and none between them.
    fn will_need_runs(&self, _side: Side, _parts: Parts, _runs: &[Range<VertexId>]) {}

    /// These parts of the lists of these vertices are read now, one by one in their order, as a part of a walk over all,
    /// and probably those behind them. Who reads page by page need not say so.
    fn will_walk(&self, _side: Side, _parts: Parts, _vertices: Range<VertexId>) {}

    /// Such a walk has passed the lists of these vertices.
    fn has_walked(&self, _side: Side, _parts: Parts, _vertices: Range<VertexId>) {}

    /// What was announced so far was read by now, or will not be: what nobody has acted upon is not wanted any more.
    fn forget_needs(&self) {}
}

/// The lists of consecutive vertices.
#[derive(Clone, Debug)]
pub enum Page<'a, O> {
    /// As in a CSR.
    Dense(DensePage<'a, O>),
    /// No edges.
    Empty(Range<VertexId>),
    /// To be read vertex by vertex, through the fragments.
    Patched(Range<VertexId>),
}

/// The lists of consecutive vertices, each in one piece, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct DensePage<'a, O> {
    first: VertexId,
    offsets: &'a [O],
    targets: &'a [VertexId],
}

/// An index into the targets of a page.
pub trait PageOffset: Copy + Send + Sync + 'static {
    /// The offset as an index.
    fn index(self) -> usize;
}

impl PageOffset for u32 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
}

impl PageOffset for u64 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
}

impl<'a, O: PageOffset> DensePage<'a, O> {
    /// The lists of `first` and the vertices after it: list `i` is `targets[offsets[i]..offsets[i + 1]]`.
    ///
    /// # Panics
    /// If there is no offset at all; reading a list panics if the offsets do not ascend within the
    /// targets.
    #[inline]
    pub fn new(first: VertexId, offsets: &'a [O], targets: &'a [VertexId]) -> Self {
        assert!(!offsets.is_empty());
        Self { first, offsets, targets }
    }

    /// The first vertex.
    #[inline]
    pub fn first(&self) -> VertexId {
        self.first
    }

    /// The number of vertices.
    #[inline]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether the page has no vertices.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vertices.
    #[inline]
    pub fn vertices(&self) -> Range<VertexId> {
        self.first..self.first + self.len() as VertexId
    }

    /// The list of the vertex `first + index`.
    #[inline(always)]
    pub fn list(&self, index: usize) -> &'a [VertexId] {
        &self.targets[self.offsets[index].index()..self.offsets[index + 1].index()]
    }

    /// Hints that the list of the vertex `first + index` is read soon.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        base::simd::prefetch(self.targets, self.offsets[index].index());
    }

    /// The degree of the vertex `first + index`.
    #[inline(always)]
    pub fn degree(&self, index: usize) -> usize {
        self.offsets[index + 1].index() - self.offsets[index].index()
    }

    /// Each vertex with its list.
    #[inline]
    pub fn lists(&self) -> impl Iterator<Item = (VertexId, &'a [VertexId])> + use<'a, O> {
        let (first, targets) = (self.first, self.targets);
        let pairs = self.offsets.windows(2).enumerate();
        pairs.map(move |(i, pair)| (first + i as VertexId, &targets[pair[0].index()..pair[1].index()]))
    }

    /// All lists of the page as one: the entries of its first vertex, then of the next.
    #[inline]
    pub fn all_targets(&self) -> &'a [VertexId] {
        &self.targets[self.offsets[0].index()..self.offsets[self.len()].index()]
    }
}
