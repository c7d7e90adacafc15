//! Copies a numeric edge property, as the weight of a view.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::property::{PropertyColumn, PropertyType, PropertyValue};
use anden_graph::{Direction, Graph, GraphKind, Weight, WeightedEdges};
use anden_snapshots::SnapshotView;
use parking_lot::Mutex;

use super::View;
use crate::error::no_property;
use crate::session::Beside;
use crate::weighted::{ChosenWeights, DirectionWeightValues, DirectionWeights, OWN_WEIGHTS};
use crate::{Error, Result};

/// Approximate number of arcs in one step of a worker.
const GRAIN: u64 = 64 << 10;

impl ChosenWeights {
    /// Copies the values of the property `name`.
    ///
    /// Cost: reads all lists; 8 bytes for each arc and each vertex, twice with separate in-lists.
    ///
    /// # Errors
    /// [`Error::NotFound`]: the property does not exist; [`Error::InvalidInput`]: the property is not numeric, or an
    /// edge has no value; [`Error::Memory`]; damage met on the way.
    pub(crate) fn new(view: &View, name: &str) -> Result<Self> {
        let graph = view.all_lists()?.clone();
        let schema = graph.edge_properties().schema();
        let Some(place) = schema.find(name) else {
            return Err(no_property("edges", name, schema));
        };
        let property_type = schema.get(place).map_or(PropertyType::String, |(_, property_type)| property_type);
        if !property_type.is_numeric() {
            let what = format!("the property {name:?} of edges is of type {property_type}: a weight is a number");
            return Err(Error::InvalidInput(what.into()));
        }
        // An undirected graph has one list for both directions, and so one copy.
        let has_in_lists = graph.graph_kind() == GraphKind::Directed && graph.has_lists(Direction::In);
        let num_directions = if has_in_lists { 2 } else { 1 };
        let needed = num_directions * 8 * (graph.num_arcs() + graph.vertex_bound() as u64 + 1);
        let needed = view.session().memory_for(needed, Beside { lists: graph.stored_bytes(), ..Beside::default() });
        // Without a budget, the allocation itself decides.
        if let Some(budget) = view.session().memory().filter(|&budget| budget < needed) {
            return Err(Error::Memory { what: format!("the weights {name:?}"), needed, budget });
        }
        view.cache().yield_budget(view.session());
        view.context().progress.stage("weights", Some(num_directions * graph.num_arcs()));
        let layout = WeightCopy { view, graph: &graph, place, name };
        let out_adjacency = layout.copy(property_type, Direction::Out)?;
        let in_adjacency = has_in_lists.then(|| layout.copy(property_type, Direction::In)).transpose()?;
        // Damaged lists look empty, and would get too few weights.
        graph.check()?;
        Ok(Self {
            name: name.to_owned(),
            out_adjacency: Arc::new(out_adjacency),
            in_adjacency: in_adjacency.map(Arc::new),
            graph,
        })
    }
}

/// The inputs of the copy.
struct WeightCopy<'a> {
    view: &'a View,
    graph: &'a SnapshotView,
    place: usize,
    name: &'a str,
}

impl WeightCopy<'_> {
    fn copy(&self, property_type: PropertyType, direction: Direction) -> Result<DirectionWeights> {
        let mut starts = Vec::with_capacity(self.graph.vertex_bound() + 1);
        let mut end = 0;
        starts.push(end);
        for vertex in 0..self.graph.vertex_bound() as VertexId {
            end += self.graph.degree(direction, vertex) as u64;
            starts.push(end);
        }
        let values = match property_type {
            PropertyType::F32 | PropertyType::F64 => {
                DirectionWeightValues::Real(self.values(&starts, direction, |value| match value {
                    // NaN has no order, and makes every sum NaN.
                    PropertyValue::F32(value) if !value.is_nan() => Some(value.into()),
                    PropertyValue::F64(value) if !value.is_nan() => Some(value),
                    _ => None,
                })?)
            }
            _ => DirectionWeightValues::Integer(self.values(&starts, direction, |value| match value {
                PropertyValue::I64(value) => Some(value),
                // Integer weights are i64 here, so a larger value is refused and not rounded.
                PropertyValue::U64(value) => i64::try_from(value).ok(),
                _ => None,
            })?),
        };
        Ok(DirectionWeights { starts, values })
    }

    fn values<W: Weight>(
        &self,
        starts: &[u64],
        direction: Direction,
        value_of: impl Fn(PropertyValue<'_>) -> Option<W> + Sync,
    ) -> Result<Vec<W>> {
        let pool: &Pool = self.view.context().pool;
        let num_entries = starts.last().copied().unwrap_or(0) as usize;
        // Every place is overwritten, so any valid value serves.
        let mut values = vec![W::ONE; num_entries];
        let failed = Mutex::new(None);
        let mut rest = &mut values[..];
        let mut pieces = Vec::new();
        for vertices in cut(starts) {
            let len = (starts[vertices.end] - starts[vertices.start]) as usize;
            // Disjoint slices let the workers write without locks.
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(len);
            pieces.push((vertices, piece));
            rest = after;
        }
        pool.for_each_item(pieces, |_, (vertices, piece)| {
            // After an error, workers skip the remaining pieces.
            let has_failed = || failed.lock().is_some();
            if !has_failed()
                && let Err(error) = self.fill((vertices, starts), piece, direction, &value_of)
            {
                failed.lock().get_or_insert(error);
            }
        });
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(values),
        }
    }

    /// Copies the weights of these vertices. `starts` holds the position of each list.
    fn fill<W: Weight>(
        &self,
        (vertices, starts): (Range<usize>, &[u64]),
        piece: &mut [W],
        direction: Direction,
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
            // Weights match arcs by position, so later reads must keep the order of this read.
            self.graph.fix_list_order(vertex as VertexId);
            let _ = self.graph.for_each_row(direction, vertex as VertexId, push);
            // Gather values for many lists at a time: one lookup per list would be slow for short lists.
            if (rows.len() as u64) < GRAIN && vertex + 1 < vertices.end {
                continue;
            }
            let columns = self.graph.edge_properties().gather(&[self.place], &rows)?;
            let values = columns.iter().flat_map(PropertyColumn::iter);
            for ((to, value), &other) in piece[num_filled..].iter_mut().zip(values).zip(&others) {
                let Some(weight) = value_of(value) else {
                    let place = starts[vertices.start] + num_filled as u64;
                    let source = starts.partition_point(|&start| start <= place) - 1;
                    return Err(self.no_weight(source as VertexId, other, direction, value));
                };
                *to = weight;
                num_filled += 1;
            }
            others.clear();
            rows.clear();
        }
        Ok(())
    }

    /// The error for an edge without a usable value.
    fn no_weight(&self, vertex: VertexId, other: VertexId, direction: Direction, value: PropertyValue<'_>) -> Error {
        let (source, target) = if direction == Direction::Out { (vertex, other) } else { (other, vertex) };
        let name = self.name;
        match (self.view.key(source), self.view.key(target)) {
            (Ok(source), Ok(target)) => Error::InvalidInput(
                match value {
                    PropertyValue::Null => {
                        format!("the edge from {source} to {target} has no {name:?}: every edge needs a weight")
                    }
                    value => format!("the edge from {source} to {target} has {name:?} {value}, which is no weight"),
                }
                .into(),
            ),
            (Err(error), _) | (_, Err(error)) => error,
        }
    }
}

/// Cuts the vertices into ranges of about [`GRAIN`] arcs.
fn cut(starts: &[u64]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let num_vertices = starts.len() - 1;
    let mut first = 0;
    while first < num_vertices {
        let end = starts.partition_point(|&start| start <= starts[first] + GRAIN).saturating_sub(1);
        // One list may exceed the grain, and still needs a range.
        let end = end.clamp(first + 1, num_vertices);
        pieces.push(first..end);
        first = end;
    }
    pieces
}

impl View {
    /// This graph with a numeric edge property as its weight. `weight` is the name of the weights of a graph loaded
    /// with them. The first call for a property copies its values. The view and its clones keep the values of the last
    /// property.
    ///
    /// Cost: reads all lists; 8 bytes for each arc and each vertex, twice with separate in-lists.
    ///
    /// # Errors
    /// [`Error::NotFound`]: the property does not exist; [`Error::InvalidInput`]: the property is not numeric, or an
    /// edge has no value; [`Error::Memory`]; damage met on the way.
    pub fn with_weight(&self, name: &str) -> Result<Self> {
        if name == OWN_WEIGHTS && self.stored().weight_type().is_some() {
            // Another property may have been chosen before.
            return Ok(self.with_own_weights());
        }
        // Held during the copy: a second caller waits, and then finds these weights.
        let mut last = self.last_weights().lock();
        if let Some(found) = last.as_ref().filter(|(found, _)| found.name() == name) {
            let (chosen, statistics) = found.clone();
            return Ok(self.choosing(chosen, statistics));
        }
        // Free the old weights first: memory may hold only one set.
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
