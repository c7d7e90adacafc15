//! Questions about single vertices of a part that is not laid out: the entries that they meet are tested.

use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use base::VertexId;
use graph::{Direction, Graph, InEdges, Page, Parts, Side, Weight, WeightType, WeightedEdges, WillNeed};
use lama::Entries;

use super::Part;
use crate::{Error, Result};

/// To test the entries of one list takes about as long as to lay out this number of entries.
const LIST_COST: usize = 100;

/// The lists for a question about a few of them.
pub(crate) enum SingleLists<'a> {
    /// All entries of these lists count.
    Whole(&'a lama::View),
    /// Those of a part that is not laid out.
    Tested(TestedLists<'a>),
}

impl SingleLists<'_> {
    /// The entries of a list whose other ends `is_wanted` says.
    pub(crate) fn entries(
        &self,
        side: Side,
        vertex: VertexId,
        is_wanted: impl Fn(VertexId) -> bool,
    ) -> Result<Entries> {
        match self {
            Self::Tested(tested) => tested.entries(side, vertex, is_wanted),
            Self::Whole(lists) => {
                let mut entries = Entries::default();
                lists.push_entries(side, vertex, &mut entries, |other, _| Ok::<_, Error>(is_wanted(other)))?;
                Ok(entries)
            }
        }
    }
}

/// Asks a question about a few lists of a view.
macro_rules! on_single {
    ($view:expr, $lists:ident => $call:expr) => {
        match $view.single_lists() {
            $crate::filter::SingleLists::Whole($lists) => $call,
            $crate::filter::SingleLists::Tested(tested) => {
                let $lists = &tested;
                let found = $call;
                tested.check_tests()?;
                found
            }
        }
    };
}
pub(crate) use on_single;

/// The lists of a part, each tested whenever it is read.
pub(crate) struct TestedLists<'a> {
    stored: &'a lama::View,
    part: &'a Part,
    /// What went wrong first; lists look empty from there on.
    fault: Mutex<Option<Error>>,
}

impl<'a> TestedLists<'a> {
    pub(crate) fn new(stored: &'a lama::View, part: &'a Part) -> Self {
        Self { stored, part, fault: Mutex::default() }
    }

    /// What went wrong in tests, if anything.
    pub(crate) fn check_tests(&self) -> Result<()> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    fn or_fault<T: Default>(&self, found: Result<T>) -> T {
        found.unwrap_or_else(|error| {
            self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            T::default()
        })
    }

    /// Whether an id is a vertex of the part.
    pub(crate) fn has(&self, vertex: VertexId) -> Result<bool> {
        if !self.stored.is_live(vertex) {
            return Ok(false);
        }
        for filter in self.part.filters().filter_map(|filter| filter.vertices.as_ref()) {
            self.part.spend(LIST_COST);
            if !filter.passing(self.stored, &[vertex])?.contains(&true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The entries of a list of the part whose other ends `is_wanted` says.
    pub(crate) fn entries(
        &self,
        side: Side,
        vertex: VertexId,
        is_wanted: impl Fn(VertexId) -> bool,
    ) -> Result<Entries> {
        let mut entries = Entries::default();
        if !self.has(vertex)? {
            return Ok(entries);
        }
        self.stored.push_entries(side, vertex, &mut entries, |other, _| Ok::<_, Error>(is_wanted(other)))?;
        self.part.spend(LIST_COST + entries.len());
        for filter in self.part.filters() {
            if let Some(edges) = filter.edges.as_ref().filter(|_| !entries.is_empty()) {
                let passes = edges.passing(self.stored, &entries)?;
                entries.retain(|place| passes[place]);
            }
            if let Some(vertices) = filter.vertices.as_ref().filter(|_| !entries.is_empty()) {
                let passes = vertices.passing(self.stored, &entries.targets)?;
                entries.retain(|place| passes[place]);
            }
        }
        Ok(entries)
    }

    fn list(&self, side: Side, vertex: VertexId) -> Entries {
        self.or_fault(self.entries(side, vertex, |_| true))
    }

    fn weighted<W: Weight>(
        &self,
        side: Side,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.weight_type() != Some(W::TYPE) {
            return ControlFlow::Continue(());
        }
        let entries = self.list(side, vertex);
        let weights: Vec<W> = entries.weights.iter().map(|&bits| W::of_bits(bits)).collect();
        body(&entries.targets, &weights)
    }
}

impl WillNeed for TestedLists<'_> {
    fn is_listening(&self) -> bool {
        self.stored.is_listening()
    }

    fn will_need(&self, side: Side, _: Parts, vertices: &[VertexId]) {
        self.stored.will_need(side, Parts::Weighted, vertices);
    }

    fn forget_needs(&self) {
        self.stored.forget_needs();
    }
}

impl Graph for TestedLists<'_> {
    type Offset = u32;

    fn vertex_bound(&self) -> usize {
        self.stored.vertex_bound()
    }

    /// An upper bound: vertices that a filter leaves out count too.
    fn num_vertices(&self) -> usize {
        self.stored.num_vertices()
    }

    /// An upper bound: edges that a filter leaves out count too.
    fn num_edges(&self) -> u64 {
        self.stored.num_edges()
    }

    /// An upper bound: edges that a filter leaves out count too.
    fn num_arcs(&self) -> u64 {
        self.stored.num_arcs()
    }

    fn direction(&self) -> Direction {
        self.stored.direction()
    }

    fn is_multigraph(&self) -> bool {
        self.stored.is_multigraph()
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        self.or_fault(self.has(vertex))
    }

    fn out_degree(&self, vertex: VertexId) -> usize {
        self.list(Side::Out, vertex).len()
    }

    fn rough_out_degree(&self, vertex: VertexId) -> usize {
        self.stored.rough_out_degree(vertex)
    }

    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        body(&self.list(Side::Out, vertex).targets)
    }

    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        body(Page::Patched(vertices))
    }

    fn check(&self) -> base::Result<()> {
        self.stored.check()
    }
}

impl InEdges for TestedLists<'_> {
    fn has_in_edges(&self) -> bool {
        self.stored.has_in_edges()
    }

    fn in_degree(&self, vertex: VertexId) -> usize {
        self.list(Side::In, vertex).len()
    }

    fn rough_in_degree(&self, vertex: VertexId) -> usize {
        self.stored.rough_in_degree(vertex)
    }

    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        body(&self.list(Side::In, vertex).targets)
    }

    fn for_each_in_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.has_in_edges() {
            true => body(Page::Patched(vertices)),
            false => body(Page::Empty(vertices)),
        }
    }
}

impl WeightedEdges for TestedLists<'_> {
    fn weight_type(&self) -> Option<WeightType> {
        self.stored.weight_type()
    }

    fn for_each_weighted_out_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.weighted(Side::Out, vertex, body)
    }

    fn for_each_weighted_in_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.weighted(Side::In, vertex, body)
    }
}
