//! A numeric property of edges as their weight.
//!
//! Lists name rows, and kernels want weights beside the entries: the values are laid out in the order of the lists,
//! once for a view and a property. The lists themselves are read where they are.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use base::VertexId;
use base::parallel::Pool;
use graph::property::{PropertyColumn, PropertyType, PropertyValue};
use graph::{
    DensePage, Direction, Graph, InEdges, Page, Parts, WantedLists, Weight, WeightType, WeightedEdges, WillNeed,
    prefetch_start,
};

use crate::session::Beside;
use crate::{Error, Result, View};

/// Entries that a worker fills in at once, about.
const GRAIN: u64 = 64 << 10;

/// The name of weights that are no property.
pub(crate) const OWN_WEIGHTS: &str = "weight";

/// Calls a kernel with the graph and the weights that count: those of a property, or the graph's own.
macro_rules! on_weighted {
    ($view:expr, $graph:ident => $call:expr) => {
        match $view.chosen() {
            Some($graph) => $call,
            None => {
                let $graph = $view.lists();
                $call
            }
        }
    };
}
pub(crate) use on_weighted;

/// A graph whose weights are the values of a property.
pub(crate) struct ChosenWeights {
    graph: lama::View,
    name: String,
    out_side: Arc<SideWeights>,
    /// Of a directed graph with in-lists.
    in_side: Option<Arc<SideWeights>>,
}

/// The weights of a side, in the order of its lists.
struct SideWeights {
    /// By vertex: where the weights of its list start; and the end of the last.
    starts: Vec<u64>,
    values: Values,
}

enum Values {
    Integer(Vec<i64>),
    Real(Vec<f64>),
}

impl ChosenWeights {
    /// Lays out the values of the property `name`.
    ///
    /// Cost: reads all lists; 8 bytes an entry and a vertex, twice where there are in-lists of their own.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such property; [`Error::InvalidInput`]: it is no number, or an edge has none;
    /// [`Error::Memory`]; damage met on the way.
    pub(crate) fn new(view: &View, name: &str) -> Result<Self> {
        let graph = view.all_lists()?.clone();
        let schema = graph.edge_properties().schema();
        let Some(place) = schema.find(name) else {
            return Err(crate::properties::no_property("edges", name, schema));
        };
        let property_type = schema.get(place).map_or(PropertyType::String, |(_, property_type)| property_type);
        if !property_type.is_numeric() {
            let what = format!("the property {name:?} of edges is of type {property_type}: a weight is a number");
            return Err(Error::InvalidInput(what));
        }
        let has_in_side = graph.direction() == Direction::Directed && graph.has_in_edges();
        let num_sides = if has_in_side { 2 } else { 1 };
        let needed = num_sides * 8 * (graph.num_arcs() + graph.vertex_bound() as u64 + 1);
        let needed = view.session().memory_for(needed, Beside { lists: graph.stored_bytes(), ..Beside::default() });
        if let Some(budget) = view.session().memory().filter(|&budget| budget < needed) {
            return Err(Error::Memory { what: format!("the weights {name:?}"), needed, budget });
        }
        view.context().progress.stage("weights", Some(num_sides * graph.num_arcs()));
        let layout = Layout { view, graph: &graph, place, name };
        let out_side = layout.side(property_type, Lists::Out)?;
        let in_side = has_in_side.then(|| layout.side(property_type, Lists::In)).transpose()?;
        graph.check()?;
        Ok(Self { name: name.to_owned(), out_side: Arc::new(out_side), in_side: in_side.map(Arc::new), graph })
    }

    /// The same weights beside the lists of another view of the same version.
    pub(crate) fn with_graph(&self, graph: lama::View) -> Self {
        let (out_side, in_side) = (Arc::clone(&self.out_side), self.in_side.clone());
        Self { graph, name: self.name.clone(), out_side, in_side }
    }

    /// The weights beside the lists of a side; those of an undirected graph are both.
    fn weights_of(&self, side: graph::Side) -> Option<&SideWeights> {
        match (side, self.graph.direction()) {
            (graph::Side::In, Direction::Directed) => self.in_side.as_deref(),
            _ => Some(&self.out_side),
        }
    }

    /// The property.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of memory, about.
    pub(crate) fn num_bytes(&self) -> u64 {
        let of_side = |side: &SideWeights| 8 * (side.starts.len() + side.len()) as u64;
        of_side(&self.out_side) + self.in_side.as_deref().map_or(0, of_side)
    }
}

/// Which lists.
#[derive(Clone, Copy, PartialEq)]
enum Lists {
    Out,
    In,
}

/// What laying out takes.
struct Layout<'a> {
    view: &'a View,
    graph: &'a lama::View,
    place: usize,
    name: &'a str,
}

impl Layout<'_> {
    fn side(&self, property_type: PropertyType, lists: Lists) -> Result<SideWeights> {
        let mut starts = Vec::with_capacity(self.graph.vertex_bound() + 1);
        let mut end = 0;
        starts.push(end);
        for vertex in 0..self.graph.vertex_bound() as VertexId {
            end += match lists {
                Lists::Out => self.graph.out_degree(vertex),
                Lists::In => self.graph.in_degree(vertex),
            } as u64;
            starts.push(end);
        }
        let values = match property_type {
            PropertyType::F32 | PropertyType::F64 => {
                Values::Real(self.values(&starts, lists, |value| match value {
                    PropertyValue::F32(value) if !value.is_nan() => Some(value.into()),
                    PropertyValue::F64(value) if !value.is_nan() => Some(value),
                    _ => None,
                })?)
            }
            _ => Values::Integer(self.values(&starts, lists, |value| match value {
                PropertyValue::I64(value) => Some(value),
                PropertyValue::U64(value) => i64::try_from(value).ok(),
                _ => None,
            })?),
        };
        Ok(SideWeights { starts, values })
    }

    fn values<W: Weight>(
        &self,
        starts: &[u64],
        lists: Lists,
        value_of: impl Fn(PropertyValue<'_>) -> Option<W> + Sync,
    ) -> Result<Vec<W>> {
        let pool: &Pool = self.view.context().pool;
        let num_entries = starts.last().copied().unwrap_or(0) as usize;
        let mut values = vec![W::ONE; num_entries];
        let failed = std::sync::Mutex::new(None);
        let mut rest = &mut values[..];
        let mut pieces = Vec::new();
        for vertices in cut(starts) {
            let len = (starts[vertices.end] - starts[vertices.start]) as usize;
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(len);
            pieces.push((vertices, piece));
            rest = after;
        }
        pool.for_each_item(pieces, |_, (vertices, piece)| {
            let has_failed = || failed.lock().is_ok_and(|failed| failed.is_some());
            if !has_failed()
                && let Err(error) = self.fill((vertices, starts), piece, lists, &value_of)
            {
                failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
            }
        });
        match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
            Some(error) => Err(error),
            None => Ok(values),
        }
    }

    /// Fills in the weights of the lists of these vertices, which begin at `starts`.
    fn fill<W: Weight>(
        &self,
        (vertices, starts): (Range<usize>, &[u64]),
        piece: &mut [W],
        lists: Lists,
        value_of: &impl Fn(PropertyValue<'_>) -> Option<W>,
    ) -> Result<()> {
        let progress = self.view.context().progress;
        progress.check()?;
        progress.advance(piece.len() as u64);
        let (mut others, mut rows, mut num_filled) = (Vec::new(), Vec::new(), 0);
        for vertex in vertices.clone() {
            let push = |some: &[VertexId], some_rows: &[u64]| {
                others.extend_from_slice(some);
                rows.extend_from_slice(some_rows);
                ControlFlow::Continue(())
            };
            self.graph.fix_list_order(vertex as VertexId);
            let _ = match lists {
                Lists::Out => self.graph.for_each_out_row(vertex as VertexId, push),
                Lists::In => self.graph.for_each_in_row(vertex as VertexId, push),
            };
            if (rows.len() as u64) < GRAIN && vertex + 1 < vertices.end {
                continue;
            }
            let columns = self.graph.edge_properties().gather(&[self.place], &rows)?;
            let values = columns.iter().flat_map(PropertyColumn::iter);
            for ((to, value), &other) in piece[num_filled..].iter_mut().zip(values).zip(&others) {
                let Some(weight) = value_of(value) else {
                    let place = starts[vertices.start] + num_filled as u64;
                    let source = starts.partition_point(|&start| start <= place) - 1;
                    return Err(self.no_weight(source as VertexId, other, lists, value));
                };
                *to = weight;
                num_filled += 1;
            }
            others.clear();
            rows.clear();
        }
        Ok(())
    }

    /// An edge has no value that could be its weight.
    fn no_weight(&self, vertex: VertexId, other: VertexId, lists: Lists, value: PropertyValue<'_>) -> Error {
        let (source, target) = if lists == Lists::Out { (vertex, other) } else { (other, vertex) };
        let name = self.name;
        match (self.view.key(source), self.view.key(target)) {
            (Ok(source), Ok(target)) => Error::InvalidInput(match value {
                PropertyValue::Null => {
                    format!("the edge from {source} to {target} has no {name:?}: every edge needs a weight")
                }
                value => format!("the edge from {source} to {target} has {name:?} {value}, which is no weight"),
            }),
            (Err(error), _) | (_, Err(error)) => error,
        }
    }
}

/// Ranges of vertices with about as many entries each.
fn cut(starts: &[u64]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let num_vertices = starts.len() - 1;
    let mut first = 0;
    while first < num_vertices {
        let end = starts.partition_point(|&start| start <= starts[first] + GRAIN).saturating_sub(1);
        let end = end.clamp(first + 1, num_vertices);
        pieces.push(first..end);
        first = end;
    }
    pieces
}

impl SideWeights {
    fn len(&self) -> usize {
        self.starts.last().map_or(0, |&end| end as usize)
    }

    fn weight_type(&self) -> WeightType {
        match &self.values {
            Values::Integer(_) => WeightType::I64,
            Values::Real(_) => WeightType::F64,
        }
    }

    /// The weights of a list; none where they are of another type.
    #[inline]
    fn of<W: Weight>(&self, vertex: VertexId) -> Option<&[W]> {
        let list = self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize;
        // Types are the same exactly if the cast of a slice of the one to the other changes nothing.
        match &self.values {
            Values::Integer(values) if W::TYPE == WeightType::I64 => Some(bytemuck::cast_slice(&values[list])),
            Values::Real(values) if W::TYPE == WeightType::F64 => Some(bytemuck::cast_slice(&values[list])),
            _ => None,
        }
    }

    /// Fetches the first weights of a list to the cache.
    #[inline]
    fn prefetch(&self, vertex: VertexId) {
        let start = self.starts[vertex as usize] as usize;
        match &self.values {
            Values::Integer(values) => prefetch_start(values, start),
            Values::Real(values) => prefetch_start(values, start),
        }
    }

    /// Calls `body` with the fragments that `each` gives, and their weights.
    #[inline]
    fn with<W: Weight>(
        &self,
        vertex: VertexId,
        each: impl FnOnce(&mut dyn FnMut(&[VertexId]) -> ControlFlow<()>) -> ControlFlow<()>,
        mut body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(mut weights) = self.of::<W>(vertex) else { return ControlFlow::Continue(()) };
        each(&mut |targets| {
            // A page that turned out to be damaged looks empty from then on, so there are no more than there were.
            let (now, rest) = weights.split_at(targets.len().min(weights.len()));
            weights = rest;
            body(&targets[..now.len()], now)
        })
    }
}

impl WillNeed for ChosenWeights {
    #[inline(always)]
    fn prefetch(&self, side: graph::Side, vertex: VertexId) {
        self.graph.prefetch(side, vertex);
    }

    #[inline(always)]
    fn prefetch_place(&self, side: graph::Side, vertex: VertexId) {
        self.graph.prefetch_place(side, vertex);
    }

    #[inline(always)]
    fn prefetch_rough_degree(&self, side: graph::Side, vertex: VertexId) {
        self.graph.prefetch_rough_degree(side, vertex);
    }

    #[inline(always)]
    fn prefetch_list(&self, side: graph::Side, parts: Parts, vertex: VertexId) {
        self.graph.prefetch_list(side, Parts::Targets, vertex);
        if parts == Parts::Weighted
            && let Some(weights) = self.weights_of(side)
        {
            weights.prefetch(vertex);
        }
    }

    fn is_listening(&self) -> bool {
        self.graph.is_listening()
    }

    // The weights are in memory: of the graph, targets alone are read.

    fn will_need(&self, side: graph::Side, _parts: Parts, vertices: &[VertexId]) {
        self.graph.will_need(side, Parts::Targets, vertices);
    }

    fn will_need_runs(&self, side: graph::Side, _parts: Parts, runs: &[Range<VertexId>]) {
        self.graph.will_need_runs(side, Parts::Targets, runs);
    }

    fn will_walk(&self, side: graph::Side, _parts: Parts, vertices: Range<VertexId>) {
        self.graph.will_walk(side, Parts::Targets, vertices);
    }

    fn has_walked(&self, side: graph::Side, _parts: Parts, vertices: Range<VertexId>) {
        self.graph.has_walked(side, Parts::Targets, vertices);
    }

    fn forget_needs(&self) {
        self.graph.forget_needs();
    }
}

impl Graph for ChosenWeights {
    type Offset = <lama::View as Graph>::Offset;

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

    fn is_live(&self, vertex: VertexId) -> bool {
        self.graph.is_live(vertex)
    }

    fn direction(&self) -> Direction {
        self.graph.direction()
    }

    fn is_multigraph(&self) -> bool {
        self.graph.is_multigraph()
    }

    #[inline(always)]
    fn out_degree(&self, vertex: VertexId) -> usize {
        self.graph.out_degree(vertex)
    }

    #[inline(always)]
    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_out_fragment(vertex, body)
    }

    #[inline]
    fn for_each_out_fragment_of(
        &self,
        wanted: &WantedLists,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        self.graph.for_each_out_fragment_of(wanted, body);
    }

    #[inline(always)]
    fn dense_out_lists(&self, wanted: &WantedLists) -> Option<(DensePage<'_, Self::Offset>, WantedLists)> {
        self.graph.dense_out_lists(wanted)
    }

    #[inline(always)]
    fn rough_out_degree(&self, vertex: VertexId) -> usize {
        self.graph.rough_out_degree(vertex)
    }

    #[inline]
    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, Self::Offset>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_out_page(vertices, body)
    }

    fn check(&self) -> base::Result<()> {
        self.graph.check()
    }
}

impl InEdges for ChosenWeights {
    fn has_in_edges(&self) -> bool {
        self.graph.has_in_edges()
    }

    #[inline(always)]
    fn in_degree(&self, vertex: VertexId) -> usize {
        self.graph.in_degree(vertex)
    }

    #[inline(always)]
    fn rough_in_degree(&self, vertex: VertexId) -> usize {
        self.graph.rough_in_degree(vertex)
    }

    #[inline(always)]
    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_in_fragment(vertex, body)
    }

    #[inline]
    fn for_each_in_fragment_of(
        &self,
        wanted: &WantedLists,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        self.graph.for_each_in_fragment_of(wanted, body);
    }

    #[inline(always)]
    fn dense_in_lists(&self, wanted: &WantedLists) -> Option<(DensePage<'_, Self::Offset>, WantedLists)> {
        self.graph.dense_in_lists(wanted)
    }

    #[inline]
    fn for_each_in_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, Self::Offset>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.graph.for_each_in_page(vertices, body)
    }
}

impl WeightedEdges for ChosenWeights {
    fn weight_type(&self) -> Option<WeightType> {
        Some(self.out_side.weight_type())
    }

    #[inline]
    fn for_each_weighted_out_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.out_side.with(vertex, |each| self.graph.for_each_out_fragment(vertex, each), body)
    }

    #[inline]
    fn for_each_weighted_in_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match (&self.in_side, self.graph.direction()) {
            (Some(side), _) => side.with(vertex, |each| self.graph.for_each_in_fragment(vertex, each), body),
            // The lists of an undirected graph are both.
            (None, Direction::Undirected) => self.for_each_weighted_out_fragment(vertex, body),
            (None, Direction::Directed) => ControlFlow::Continue(()),
        }
    }
}

impl View {
    /// The same graph with a numeric property of the edges as their weight; `weight` names the weights of a graph that
    /// was loaded with some. The values are laid out at the first call
    /// for a property; this view and its clones keep those of the last one.
    ///
    /// Cost: reads all lists; 8 bytes a list entry and a vertex, twice where there are in-lists.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such property; [`Error::InvalidInput`]: it is no number, or an edge has none;
    /// [`Error::Memory`]; damage met on the way.
    pub fn with_weight(&self, name: &str) -> Result<Self> {
        if name == OWN_WEIGHTS && self.stored().weight_type().is_some() {
            return Ok(self.clone());
        }
        let mut last = self.last_weights().lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = last.as_ref().filter(|(found, _)| found.name() == name) {
            let (chosen, statistics) = found.clone();
            return Ok(self.choosing(chosen, statistics));
        }
        // Those before go first: there may be room for one set only.
        *last = None;
        let (chosen, statistics) = (Arc::new(ChosenWeights::new(self, name)?), Arc::default());
        *last = Some((Arc::clone(&chosen), Arc::clone(&statistics)));
        Ok(self.choosing(chosen, statistics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_vertices() {
        assert!(cut(&[0]).is_empty());
        assert!(matches!(&cut(&[0, 0, 0])[..], [Range { start: 0, end: 2 }]));
        let starts: Vec<u64> = (0..=10).map(|i| i * GRAIN / 3).collect();
        let pieces = cut(&starts);
        assert_eq!((pieces.first().map(|p| p.start), pieces.last().map(|p| p.end)), (Some(0), Some(10)));
        assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start) && pieces.len() > 2);
        assert_eq!(cut(&[0, 5 * GRAIN, 6 * GRAIN]), [0..1, 1..2]);
    }
}
