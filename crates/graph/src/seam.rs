//! The seam between storage and algorithms.
//!
//! A graph gives its edges by *internal iteration*: it calls the algorithm's closure with one
//! [fragment](Graph::for_each_fragment) of an adjacency list after the other, or with one [page](Page) of vertices
//! after the other. A page states its kind, so a kernel dispatches once per page. Its inner loop over a dense page is
//! the loop over a plain CSR.
//!
//! A damaged graph gives empty lists from the damage on and keeps the fault; [`Graph::check`] returns that fault. A
//! kernel calls `check` before it returns a result, and between rounds of long work. So damage never becomes an answer,
//! and inner loops need no checks.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;

use crate::{VertexMask, Weight, WeightType};

/// Whether an edge (u, v) is also an edge (v, u).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GraphKind {
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

    /// The number of edges. An undirected graph counts each edge once.
    fn num_edges(&self) -> u64;

    /// The number of entries in all out-lists. In an undirected graph: twice the edges, minus the loops.
    fn num_arcs(&self) -> u64;

    /// Whether edges have a direction.
    fn graph_kind(&self) -> GraphKind;

    /// Whether a pair of vertices may have several edges.
    fn is_multigraph(&self) -> bool {
        false
    }

    /// Whether an id below the bound is a vertex.
    fn is_live(&self, _vertex: VertexId) -> bool {
        true
    }

    /// Whether `vertex` is a vertex. Unlike [`is_live`](Self::is_live), this method takes any id.
    fn has_vertex(&self, vertex: VertexId) -> bool {
        // The bound comes first, because `is_live` may panic beyond it.
        (vertex as usize) < self.vertex_bound() && self.is_live(vertex)
    }

    /// Whether the graph has lists of this direction. Without them, every list of the direction looks empty, so callers
    /// ask first. In an undirected graph, the in-lists are the out-lists. The default is a graph that keeps out-lists
    /// only.
    fn has_lists(&self, direction: Direction) -> bool {
        direction == Direction::Out || self.graph_kind() == GraphKind::Undirected
    }

    /// The length of a list of `vertex`.
    fn degree(&self, direction: Direction, vertex: VertexId) -> usize;

    /// The approximate length of a list of `vertex`. Storages may leave changes out that they keep beside the list.
    #[inline(always)]
    fn rough_degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.degree(direction, vertex)
    }

    /// Calls `body` with each fragment of a list of `vertex`: a contiguous, ascending slice. Every entry is below
    /// [`vertex_bound`](Self::vertex_bound), and fragments do not overlap.
    ///
    /// # Panics
    /// May panic if `vertex` is not below the bound, as may every method that takes a vertex.
    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// Calls `body` with the fragments of all wanted lists. Lists come in any order, the fragments of one list in
    /// ascending order. If `body` breaks, the rest of that list is skipped.
    ///
    /// Made for the lists of [patched](Page::Patched) pages: a storage that must look lists up does so for all of them
    /// together, and hides the latency of each lookup.
    #[inline]
    fn for_each_fragment_of(
        &self,
        direction: Direction,
        wanted: &VertexMask,
        mut body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        for vertex in wanted.vertices() {
            // A break ends this list only.
            let _ = self.for_each_fragment(direction, vertex, |list| body(vertex, list));
        }
    }

    /// Splits off the wanted lists that lie in one slice, and returns them with that slice as a page. The caller reads
    /// these as fast as on a dense page, and the other wanted lists as fragments.
    #[inline(always)]
    fn dense_lists(
        &self,
        _direction: Direction,
        _wanted: &VertexMask,
    ) -> Option<(DensePage<'_, Self::Offset>, VertexMask)> {
        None
    }

    /// Calls `body` with pages of lists that cover `vertices` exactly once, in order.
    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, Self::Offset>) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// The first damage met while reading.
    ///
    /// # Errors
    /// [`anden_base::Error::Corrupt`] or [`anden_base::Error::Io`], with file and offset.
    fn check(&self) -> anden_base::Result<()> {
        Ok(())
    }
}

/// Weights beside the edges.
pub trait WeightedEdges: Graph {
    /// The type of the weights; `None` if edges have no weights.
    fn weight_type(&self) -> Option<WeightType>;

    /// As [`Graph::for_each_fragment`], with the weight of each edge beside its other end. Makes no calls if `W` is not
    /// the graph's [`weight_type`](Self::weight_type), so callers ask first.
    fn for_each_weighted_fragment<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// A whole list of `vertex` with its weights, if the storage finds both in one slice each. `W` must be the graph's
    /// [`weight_type`](Self::weight_type). After `None`, the caller reads the fragments.
    ///
    /// This method exists for speed: a loop over fragments costs a call for each list if a storage keeps lists in
    /// several places.
    #[inline(always)]
    fn weighted_list<W: Weight>(&self, _direction: Direction, _vertex: VertexId) -> Option<(&[VertexId], &[W])> {
        None
    }
}

/// Adjacency lists in one fragment, for algorithms that search in them.
pub trait SingleFragment: Graph {
    /// The whole list of `vertex`, ascending; `None` if the list has several fragments, or the graph has no lists of
    /// this direction.
    fn list(&self, direction: Direction, vertex: VertexId) -> Option<&[VertexId]>;
}

/// One of the two directions of adjacency lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The targets of each vertex.
    Out,
    /// The sources of each vertex. In an undirected graph, these are the out-lists.
    In,
}

impl Direction {
    /// The other direction.
    #[inline(always)]
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}

/// The arrays of a list that a caller reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parts {
    /// The targets only.
    Targets,
    /// The targets and the column beside them: weights, or rows of properties.
    Weighted,
}

/// What [`WillNeed::prefetch`] fetches. A list is found in three stages, each complete before the next one is asked
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchStage {
    /// First: the table entry that leads to the list.
    TableEntry,
    /// Second: the block that holds the list's address, if the table entry does not lead to the list itself.
    Place,
    /// Last: the first cache lines of these parts of the list.
    List(Parts),
    /// The data behind [`Graph::rough_degree`], without an earlier stage.
    RoughDegree,
}

/// Hints about the next reads: algorithms call these methods, and storages and the prefetcher act on them.
pub trait WillNeed {
    /// Whether a prefetcher listens. If not, callers skip the work of ordering their announcements.
    fn is_listening(&self) -> bool {
        false
    }

    /// Fetches into the cache what `stage` names, about a microsecond before it is read. A caller that reads lists in
    /// an order that it knows asks for each stage of a list some lists ahead. A hint: it must be cheap, and a graph may
    /// ignore it.
    fn prefetch(&self, _direction: Direction, _stage: PrefetchStage, _vertex: VertexId) {}

    /// Announces that these parts of the lists of `vertices` are read soon.
    fn will_need(&self, _direction: Direction, _parts: Parts, _vertices: &[VertexId]) {}

    /// As [`will_need`](Self::will_need), for ranges of consecutive vertices; the lists between the ranges are not
    /// read.
    fn will_need_runs(&self, _direction: Direction, _parts: Parts, _runs: &[Range<VertexId>]) {}

    /// Announces that these parts of the lists of `vertices` are read now, in order, as a step of a walk. The walk
    /// probably continues behind them. Calls of [`Graph::for_each_page`] need no announcement.
    fn will_walk(&self, _direction: Direction, _parts: Parts, _vertices: Range<VertexId>) {}

    /// Announces that a walk has passed the lists of these vertices.
    fn has_walked(&self, _direction: Direction, _parts: Parts, _vertices: Range<VertexId>) {}

    /// Withdraws all earlier announcements: reads that have not happened yet are no longer expected.
    fn forget_needs(&self) {}
}

/// The adjacency lists of consecutive vertices.
#[derive(Clone, Debug)]
pub enum Page<'a, O> {
    /// Lists that are laid out as in a CSR.
    Dense(DensePage<'a, O>),
    /// Vertices without edges.
    Empty(Range<VertexId>),
    /// Vertices with lists that must be read one by one, through their fragments.
    Patched(Range<VertexId>),
}

/// The adjacency lists of consecutive vertices, one after the other in one slice.
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
    /// The lists of `first` and the vertices after it. List `i` is `targets[offsets[i]..offsets[i + 1]]`.
    ///
    /// # Panics
    /// If `offsets` is empty. Reading a list panics if the offsets do not ascend within the targets.
    #[inline]
    pub fn new(first: VertexId, offsets: &'a [O], targets: &'a [VertexId]) -> Self {
        // `len` subtracts one from the number of offsets.
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

    /// Prefetches the start of the list of the vertex `first + index`.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        anden_base::simd::prefetch(self.targets, self.offsets[index].index());
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
        // `windows` spares two bounds checks of the offsets for each list.
        let pairs = self.offsets.windows(2).enumerate();
        pairs.map(move |(i, pair)| (first + i as VertexId, &targets[pair[0].index()..pair[1].index()]))
    }

    /// All lists of the page as one slice, in the order of the vertices.
    #[inline]
    pub fn all_targets(&self) -> &'a [VertexId] {
        &self.targets[self.offsets[0].index()..self.offsets[self.len()].index()]
    }
}
