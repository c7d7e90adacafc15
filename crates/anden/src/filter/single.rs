//! Queries on a part that is not laid out: each entry is tested as it is read.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_graph::{Direction, Graph, GraphKind, Page, Parts, Weight, WeightType, WeightedEdges, WillNeed};
use anden_snapshots::{Entries, SnapshotView};
use parking_lot::Mutex;

use super::FilteredPart;
use crate::{Error, Result};

/// Cost of a test of one list, in entries of a layout.
const LIST_COST: usize = 100;

/// The lists for a query that reads a few of them.
pub(crate) enum SingleLists<'a> {
    /// Lists in which every entry counts.
    Whole(&'a SnapshotView),
    /// Lists of a part that is not laid out.
    Tested(TestedLists<'a>),
}

impl SingleLists<'_> {
    /// The entries of a list whose other end satisfies `is_wanted`.
    pub(crate) fn entries(
        &self,
        direction: Direction,
        vertex: VertexId,
        is_wanted: impl Fn(VertexId) -> bool,
    ) -> Result<Entries> {
        match self {
            Self::Tested(tested) => tested.entries(direction, vertex, is_wanted),
            Self::Whole(lists) => {
                let mut entries = Entries::default();
                lists.push_entries(direction, vertex, &mut entries, |other, _| Ok::<_, Error>(is_wanted(other)))?;
                Ok(entries)
            }
        }
    }
}

/// Runs a query on a few lists of a view.
macro_rules! on_single {
    ($view:expr, $lists:ident => $call:expr) => {
        match $view.single_lists() {
            $crate::filter::SingleLists::Whole($lists) => $call,
            $crate::filter::SingleLists::Tested(tested) => {
                let $lists = &tested;
                let found = $call;
                // Lists look empty after an error, so the answer counts only without one.
                tested.check_tests()?;
                found
            }
        }
    };
}
pub(crate) use on_single;

/// The lists of a part; each list is tested at each read.
pub(crate) struct TestedLists<'a> {
    stored: &'a SnapshotView,
    part: &'a FilteredPart,
    /// The first error. Lists look empty after it.
    fault: Mutex<Option<Error>>,
}

impl<'a> TestedLists<'a> {
    pub(crate) fn new(stored: &'a SnapshotView, part: &'a FilteredPart) -> Self {
        Self { stored, part, fault: Mutex::default() }
    }

    /// Returns and clears the error of the tests, if any.
    pub(crate) fn check_tests(&self) -> Result<()> {
        self.fault.lock().take().map_or(Ok(()), Err)
    }

    fn or_fault<T: Default>(&self, found: Result<T>) -> T {
        found.unwrap_or_else(|error| {
            // The graph traits return no errors, so the first one waits for `check_tests`.
            self.fault.lock().get_or_insert(error);
            T::default()
        })
    }

    /// Whether an id is a vertex of the part.
    pub(crate) fn has(&self, vertex: VertexId) -> Result<bool> {
        if !self.stored.is_live(vertex) {
            return Ok(false);
        }
        for filter in self.part.filters().filter_map(|filter| filter.vertices.as_ref()) {
            // Each test calls Arrow, which costs about as much for one value as for many.
            self.part.spend(LIST_COST);
            if !filter.passing(self.stored, &[vertex])?.contains(&true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The entries of a list of the part whose other end satisfies `is_wanted`.
    pub(crate) fn entries(
        &self,
        direction: Direction,
        vertex: VertexId,
        is_wanted: impl Fn(VertexId) -> bool,
    ) -> Result<Entries> {
        let mut entries = Entries::default();
        // A hidden vertex counts as removed, so its lists are empty.
        if !self.has(vertex)? {
            return Ok(entries);
        }
        self.stored.push_entries(direction, vertex, &mut entries, |other, _| Ok::<_, Error>(is_wanted(other)))?;
        self.part.spend(LIST_COST + entries.len());
        // A later filter tests only the entries that passed the earlier ones.
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

    fn list(&self, direction: Direction, vertex: VertexId) -> Entries {
        self.or_fault(self.entries(direction, vertex, |_| true))
    }

    fn weighted<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // The trait promises no calls for another type of weights.
        if self.weight_type() != Some(W::TYPE) {
            return ControlFlow::Continue(());
        }
        let entries = self.list(direction, vertex);
        let weights: Vec<W> = entries.weights.iter().map(|&bits| W::of_bits(bits)).collect();
        body(&entries.targets, &weights)
    }
}

impl WillNeed for TestedLists<'_> {
    fn is_listening(&self) -> bool {
        self.stored.is_listening()
    }

    fn will_need(&self, direction: Direction, _: Parts, vertices: &[VertexId]) {
        // The tests read weights and rows, whatever the query asks for.
        self.stored.will_need(direction, Parts::Weighted, vertices);
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

    /// An upper bound: includes vertices that the filter excludes.
    fn num_vertices(&self) -> usize {
        self.stored.num_vertices()
    }

    /// An upper bound: includes edges that the filter excludes.
    fn num_edges(&self) -> u64 {
        self.stored.num_edges()
    }

    /// An upper bound: includes arcs that the filter excludes.
    fn num_arcs(&self) -> u64 {
        self.stored.num_arcs()
    }

    fn graph_kind(&self) -> GraphKind {
        self.stored.graph_kind()
    }

    fn is_multigraph(&self) -> bool {
        self.stored.is_multigraph()
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        self.or_fault(self.has(vertex))
    }

    fn has_lists(&self, direction: Direction) -> bool {
        self.stored.has_lists(direction)
    }

    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.list(direction, vertex).len()
    }

    fn rough_degree(&self, direction: Direction, vertex: VertexId) -> usize {
        // An exact degree would test the whole list, which costs more than the estimate saves.
        self.stored.rough_degree(direction, vertex)
    }

    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        body(&self.list(direction, vertex).targets)
    }

    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.has_lists(direction) {
            // A dense page would hand out entries that no filter has tested.
            true => body(Page::Patched(vertices)),
            false => body(Page::Empty(vertices)),
        }
    }

    fn check(&self) -> anden_base::Result<()> {
        // Failed tests wait in `fault`, because they are no damage.
        self.stored.check()
    }
}

impl WeightedEdges for TestedLists<'_> {
    fn weight_type(&self) -> Option<WeightType> {
        self.stored.weight_type()
    }

    fn for_each_weighted_fragment<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.weighted(direction, vertex, body)
    }
}
