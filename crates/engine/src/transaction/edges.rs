//! Edges of a transaction.

use std::ops::ControlFlow;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::property::OwnedValue;
use anden_graph::{Graph, Weight, WeightType, WeightedEdges};
use anden_snapshots::{Direction, Key, SnapshotView};

use super::own::{Origin, OwnEdge};
use super::properties::fitting_value;
use super::{OptimisticTransaction, ResolvedKey};
use crate::commit_queue::NewEdge;
use crate::error::PropertyOf;
use crate::fitting::{EdgeWeight, weight_bits};
use crate::live::{EdgeAction, EdgeId, NewValue, Update};
use crate::validation::{ReadKey, stored_ends};
use crate::{Error, Result};

impl OptimisticTransaction<'_> {
    /// Whether an edge exists. Without one of its ends, it does not.
    ///
    /// # Errors
    /// A key does not fit the graph's key scheme; damage found on the way.
    pub fn has_edge(&self, source: &Key, target: &Key) -> Result<bool> {
        Ok(self.find_edge(source, target)? > 0)
    }

    /// Adds an edge, and its ends if they do not exist. In a simple graph an existing edge gets the weight; a
    /// multigraph gets one more edge. Reads nothing. After the commit, [`edge_id`](crate::Committed::edge_id) names the
    /// new edge of a multigraph.
    ///
    /// # Errors
    /// A key or the weight does not fit the graph.
    pub fn add_edge(&mut self, source: &Key, target: &Key, weight: Option<EdgeWeight>) -> Result<NewEdge> {
        self.add_edge_with(source, target, weight, Vec::new())
    }

    /// As [`add_edge`](Self::add_edge), with properties, in one update. In a simple graph an existing edge gets the
    /// values, and keeps its others; in a multigraph the new edge gets them. An unknown property is created. Null means
    /// no value. Reads nothing, with one exception: null of an unknown property, in a simple graph.
    ///
    /// # Errors
    /// As [`add_edge`](Self::add_edge). Edges have no properties; a value does not fit the property's type.
    pub fn add_edge_with(
        &mut self,
        source: &Key,
        target: &Key,
        weight: Option<EdgeWeight>,
        properties: Vec<(Arc<str>, OwnedValue)>,
    ) -> Result<NewEdge> {
        let (source, target) = (self.fitting(source)?, self.fitting(target)?);
        let bits = weight_bits((&source, &target), weight, self.view.options())?;
        let values = self.fitting_edge_values((&source, &target), properties)?;
        let ends = (self.make(&source)?, self.make(&target)?);
        let properties = self.write_edge(ends, bits, values);
        // A multigraph needs the keys later, to name the edge by its id.
        let keys = self.view.is_multigraph().then(|| Box::new((source.clone(), target.clone())));
        let new_edge = NewEdge { ends: keys, place: self.num_added };
        self.num_added += 1;
        self.updates.push(Update::AddEdge { source, target, weight, properties });
        Ok(new_edge)
    }

    /// Lays an added edge over the view. Returns the values that its update needs.
    fn write_edge(
        &mut self,
        ends: (VertexId, VertexId),
        weight: u64,
        values: Vec<(Arc<str>, OwnedValue)>,
    ) -> Vec<(Arc<str>, NewValue)> {
        let options = *self.view.options();
        let (mut edge, mut needed) = (OwnEdge::new(weight), Vec::with_capacity(values.len()));
        let stored = stored_ends(&options, ends);
        for (name, value) in values {
            let is_null = value == OwnedValue::Null;
            self.own.note_valued(PropertyOf::Edges, &name, &value);
            if is_null && !self.knows_property(PropertyOf::Edges, self.view.edge_properties().schema(), &name) {
                // No value has to be removed, unless another commit gives the edge one: note a read. A new edge of a
                // multigraph has none.
                if !options.multigraph {
                    self.note_edge(stored.0, stored.1);
                }
                continue;
            }
            match options.multigraph {
                true => edge.set_value(name.to_string(), value.clone()),
                // An ordered graph does not store a loop.
                false if options.ordered && ends.0 == ends.1 => {}
                false => self.own.set_edge_value(stored, &name, value.clone()),
            }
            needed.push((name, NewValue::Value(value)));
        }
        self.own.change_edge(ends, Some(edge), &options);
        needed
    }

    /// Values of an edge in the types of their properties.
    fn fitting_edge_values(
        &self,
        ends: (&Key, &Key),
        properties: Vec<(Arc<str>, OwnedValue)>,
    ) -> Result<Vec<(Arc<str>, OwnedValue)>> {
        if !properties.is_empty() && !self.view.options().edge_properties {
            return Err(Error::no_edge_properties(ends));
        }
        let schema = self.view.edge_properties().schema();
        let fitting = |(name, value): (Arc<str>, OwnedValue)| {
            let value = fitting_value(schema, &name, value).map_err(|error| error.for_edge(ends))?;
            Ok((name, value))
        };
        properties.into_iter().map(fitting).collect()
    }

    /// Adds an edge if there is none. Returns whether there was none; an existing edge keeps its weight.
    ///
    /// # Errors
    /// As [`add_edge`](Self::add_edge); damage found on the way.
    pub fn insert_edge(&mut self, source: &Key, target: &Key, weight: Option<EdgeWeight>) -> Result<bool> {
        let is_new = !self.has_edge(source, target)?;
        if is_new {
            self.add_edge(source, target, weight)?;
        }
        Ok(is_new)
    }

    /// Removes an edge if it exists; in a multigraph, all edges of the pair. Reads nothing.
    ///
    /// # Errors
    /// A key does not fit the graph's key scheme; damage in the dictionary.
    pub fn remove_edge(&mut self, source: &Key, target: &Key) -> Result<()> {
        let (source, target) = (self.fitting(source)?, self.fitting(target)?);
        if let (Some(from), Some(to)) = (self.id(self.place(&source)?), self.id(self.place(&target)?)) {
            self.own.change_edge((from, to), None, self.view.options());
        }
        // Queued in any case, because another commit may add the edge before this one.
        self.updates.push(Update::RemoveEdge { source, target });
        Ok(())
    }

    /// The weight of an edge; in a multigraph, of one edge of the pair. `None` without an edge, or without weights.
    ///
    /// # Errors
    /// As [`has_edge`](Self::has_edge).
    pub fn weight(&self, source: &Key, target: &Key) -> Result<Option<EdgeWeight>> {
        let Some(weight_type) = self.view.weight_type() else { return Ok(None) };
        let Some((source, target)) = self.ends(source, target)? else { return Ok(None) };
        let own = self.own.list(Direction::Out, source);
        // The transaction's own write decides, whatever others commit: nothing is read.
        if let Some((_, bits)) = own.added(target) {
            return Ok(Some(EdgeWeight::of_bits(bits, weight_type)));
        }
        if own.is_removed(target) {
            return Ok(None);
        }
        self.note_edge(source, target);
        if !self.is_edge_of_view(source, target) {
            return Ok(None);
        }
        let bits = match weight_type {
            WeightType::U32 => self.weight_in_view::<u32>(source, target),
            WeightType::I64 => self.weight_in_view::<i64>(source, target),
            WeightType::F32 => self.weight_in_view::<f32>(source, target),
            WeightType::F64 => self.weight_in_view::<f64>(source, target),
        };
        // A damaged page looks empty, so ask before the result counts.
        self.view.check()?;
        Ok(bits.map(|bits| EdgeWeight::of_bits(bits, weight_type)))
    }

    /// Sets the weight of an existing edge; in a multigraph, of all edges of the pair.
    ///
    /// # Errors
    /// There is no such edge; the weight does not fit the graph; damage found on the way.
    pub fn set_weight(&mut self, source: &Key, target: &Key, weight: EdgeWeight) -> Result<()> {
        self.require_edge(source, target)?;
        let (source, target) = (self.fitting(source)?, self.fitting(target)?);
        let bits = weight_bits((&source, &target), Some(weight), self.view.options())?;
        let ends = (self.make(&source)?, self.make(&target)?);
        // An ordered graph has the edges in the list of the lesser id only.
        let ends = stored_ends(self.view.options(), ends);
        // The edges of the pair keep their numbers and values, so all of them are laid out anew.
        if self.view.is_multigraph() {
            let mut edges = self.pair_edges(ends)?;
            edges.iter_mut().for_each(|edge| edge.weight = bits);
            self.own.replace_edges(ends, edges, self.view.options());
        } else {
            self.own.change_edge(ends, Some(OwnEdge::new(bits)), self.view.options());
        }
        self.updates.push(Update::SetWeight { source, target, weight });
        Ok(())
    }

    /// The number of edges from one vertex to another, at least one.
    ///
    /// # Errors
    /// There is no edge; as [`has_edge`](Self::has_edge).
    pub(super) fn require_edge(&self, source: &Key, target: &Key) -> Result<usize> {
        match self.find_edge(source, target)? {
            0 => Err(Error::no_edge(source, target)),
            num_edges => Ok(num_edges),
        }
    }

    /// The edges from one vertex to another, in the order in which they were added; empty if an end does not exist.
    ///
    /// # Errors
    /// As [`has_edge`](Self::has_edge).
    pub fn edges(&self, source: &Key, target: &Key) -> Result<Vec<FoundEdge>> {
        let Some(ends) = self.ends(source, target)? else { return Ok(Vec::new()) };
        let schema = self.view.edge_properties().schema();
        let is_multigraph = self.view.is_multigraph();
        let mut found = Vec::new();
        for edge in self.pair_edges(ends)? {
            // A new edge has neither a row nor a number before its commit.
            let origin = edge.origin();
            let mut properties = match origin {
                Some(origin) => row_properties(&self.view, origin.row)?,
                None => Vec::new(),
            };
            let weight = self.view.weight_type().map(|weight_type| EdgeWeight::of_bits(edge.weight, weight_type));
            let written: Vec<_> = match is_multigraph {
                true => edge.into_values().into_iter().collect(),
                false => self.written_edge_values(ends),
            };
            for (name, value) in written {
                properties.retain(|(known, _)| *known != name);
                properties.extend((value != OwnedValue::Null).then_some((name, value)));
            }
            properties.sort_by_key(|(name, _)| schema.find(name).unwrap_or(usize::MAX));
            let number = origin.filter(|_| is_multigraph).map(|origin| origin.number);
            found.push(FoundEdge { number, weight, properties });
        }
        Ok(found)
    }

    /// Changes or removes one edge of a multigraph. Reads the edges of its pair.
    ///
    /// # Errors
    /// There is no such edge; the weight or the value does not fit the graph; damage found on the way.
    pub fn change_edge(&mut self, id: &EdgeId, action: EdgeAction) -> Result<()> {
        let EdgeId { source, target, number } = id;
        let options = *self.view.options();
        if !options.multigraph {
            return Err(Error::no_edge_numbers((source, target), *number));
        }
        let no_edge = || Error::no_numbered_edge(source, target, *number);
        let numbered = |error: Error| error.with_number(*number);
        let ends = self.ends(source, target)?.ok_or_else(no_edge)?;
        let mut edges = self.pair_edges(ends)?;
        let is_it = |edge: &OwnEdge| edge.origin().is_some_and(|origin| origin.number == *number);
        let place = edges.iter().position(is_it).ok_or_else(no_edge)?;
        let action = match action {
            EdgeAction::Remove => {
                edges.remove(place);
                EdgeAction::Remove
            }
            EdgeAction::SetWeight(weight) => {
                edges[place].weight = weight_bits((source, target), Some(weight), &options).map_err(numbered)?;
                EdgeAction::SetWeight(weight)
            }
            EdgeAction::SetProperty { name, value } => {
                if !options.edge_properties {
                    return Err(numbered(Error::no_edge_properties((source, target))));
                }
                let value = self.own_value(&name, value);
                let value = value.map_err(|error| numbered(error.for_edge((source, target))))?;
                let schema = self.view.edge_properties().schema();
                if value == OwnedValue::Null && !self.knows_property(PropertyOf::Edges, schema, &name) {
                    // Null of an unknown property changes nothing.
                    return Ok(());
                }
                edges[place].set_value(name.clone(), value.clone());
                self.own.note_valued(PropertyOf::Edges, &name, &value);
                EdgeAction::SetProperty { name, value: NewValue::Value(value) }
            }
        };
        self.own.replace_edges(ends, edges, &options);
        self.updates.push(Update::ChangeEdge { id: id.clone(), action });
        Ok(())
    }

    /// The edges of a pair, in the order in which they were added.
    ///
    /// # Errors
    /// Damage found on the way.
    pub(super) fn pair_edges(&self, (source, target): (VertexId, VertexId)) -> Result<Vec<OwnEdge>> {
        self.note_edge(source, target);
        let mut edges = match self.is_edge_of_view(source, target) {
            true => edges_of_view(&self.view, source, target)?,
            false => Vec::new(),
        };
        let own = self.own.list(Direction::Out, source);
        match own.added(target) {
            // The existing edge got a new weight.
            Some((_, weight)) if !self.view.is_multigraph() && !edges.is_empty() => {
                edges.truncate(1);
                edges[0].weight = weight;
            }
            _ => edges.extend(own.edges_to(target).cloned()),
        }
        Ok(edges)
    }

    /// The id of a key that was resolved.
    pub(super) fn id(&self, place: ResolvedKey) -> Option<VertexId> {
        match place {
            ResolvedKey::View(vertex) | ResolvedKey::Own(vertex) => Some(vertex),
            ResolvedKey::Nowhere => None,
        }
    }

    /// The ends of an edge in the order of storage. `None` if one has no id; the absence is noted.
    pub(super) fn ends(&self, source: &Key, target: &Key) -> Result<Option<(VertexId, VertexId)>> {
        let keys = [self.fitting(source)?, self.fitting(target)?];
        let mut ends = [0; 2];
        for (end, key) in ends.iter_mut().zip(&keys) {
            match self.id(self.place(key)?) {
                Some(vertex) => *end = vertex,
                None => {
                    // One missing end decides, so the other end is not read.
                    self.note_absent(key);
                    return Ok(None);
                }
            }
        }
        let is_turned = self.view.options().ordered && ends[0] > ends[1];
        Ok(Some(if is_turned { (ends[1], ends[0]) } else { (ends[0], ends[1]) }))
    }

    /// Notes a read of an edge. The greater id decides: an edge of a vertex made here is not in the view.
    pub(super) fn note_edge(&self, source: VertexId, target: VertexId) {
        let newer = source.max(target);
        self.note_of(newer, ReadKey::edge(self.view.options(), source, target));
    }

    /// Whether the view's edges between two vertices still count.
    pub(super) fn is_edge_of_view(&self, source: VertexId, target: VertexId) -> bool {
        let own = &self.own;
        (source.max(target) as usize) < own.first_new
            && !own.is_gone(source)
            && !own.is_gone(target)
            && !own.list(Direction::Out, source).is_removed(target)
    }

    fn find_edge(&self, source: &Key, target: &Key) -> Result<usize> {
        let Some((source, target)) = self.ends(source, target)? else { return Ok(0) };
        let own = self.own.list(Direction::Out, source);
        let num_added = own.added(target).map_or(0, |(count, _)| count);
        let is_parallel = self.view.is_multigraph();
        // The transaction's own write decides, whatever others commit: nothing is read.
        if !is_parallel && num_added > 0 {
            return Ok(1);
        }
        if own.is_removed(target) {
            return Ok(num_added);
        }
        self.note_edge(source, target);
        if !self.is_edge_of_view(source, target) {
            return Ok(num_added);
        }
        let mut num_edges = num_added;
        let _ = self.view.for_each_fragment(Direction::Out, source, |targets| {
            let first = targets.partition_point(|&other| other < target);
            num_edges += targets[first..].iter().take_while(|&&other| other == target).count();
            // A simple graph has at most one edge, so the first fragment that has it suffices.
            if num_edges > 0 && !is_parallel { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.view.check()?;
        Ok(num_edges)
    }

    /// The written values of an edge of a simple graph.
    fn written_edge_values(&self, ends: (VertexId, VertexId)) -> Vec<(String, OwnedValue)> {
        let names = self.own.edge_property_names();
        let value = |name: &String| Some((name.clone(), self.own_edge_value(ends.0, ends.1, name)?.clone()));
        names.filter_map(value).collect()
    }

    fn weight_in_view<W: Weight>(&self, source: VertexId, target: VertexId) -> Option<u64> {
        let mut found = None;
        let _ = self.view.for_each_weighted_fragment::<W>(Direction::Out, source, |targets, weights| {
            match targets.binary_search(&target) {
                Ok(place) => {
                    found = Some(weights[place].bits());
                    ControlFlow::Break(())
                }
                Err(_) => ControlFlow::Continue(()),
            }
        });
        found
    }
}

/// An edge between two vertices, as a query finds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundEdge {
    /// Its number, in a multigraph; with the keys of its ends it forms the [`EdgeId`]. `None` for an edge that this
    /// transaction added.
    pub number: Option<u64>,
    /// Its weight, if the graph has weights.
    pub weight: Option<EdgeWeight>,
    /// Its non-null properties, in the order of the schema.
    pub properties: Vec<(String, OwnedValue)>,
}

/// The edges of a view from one vertex to another that pass `is_wanted`, in the order in which they were added.
/// `is_wanted` gets the row, or `None` in a graph without rows.
///
/// # Errors
/// Damage found on the way.
pub fn edges_between(
    view: &SnapshotView,
    source: VertexId,
    target: VertexId,
    is_wanted: impl Fn(Option<u64>) -> bool,
) -> Result<Vec<FoundEdge>> {
    let mut edges = edges_of_view(view, source, target)?;
    edges.retain(|edge| is_wanted(edge.origin().map(|origin| origin.row)));
    let found = |edge: OwnEdge| -> Result<FoundEdge> {
        let weight = view.weight_type().map(|weight_type| EdgeWeight::of_bits(edge.weight, weight_type));
        let origin = edge.origin();
        let properties = origin.map_or(Ok(Vec::new()), |origin| row_properties(view, origin.row))?;
        let number = origin.filter(|_| view.is_multigraph()).map(|origin| origin.number);
        Ok(FoundEdge { number, weight, properties })
    };
    edges.into_iter().map(found).collect()
}

fn row_properties(view: &SnapshotView, row: u64) -> Result<Vec<(String, OwnedValue)>> {
    let properties = view.edge_properties();
    let mut values = Vec::new();
    for (place, (name, _)) in properties.schema().iter().enumerate() {
        let value = properties.value(place, row)?;
        values.extend((!value.is_null()).then(|| (name.to_owned(), properties.schema().owned(place, value))));
    }
    Ok(values)
}

fn edges_of_view(view: &SnapshotView, source: VertexId, target: VertexId) -> Result<Vec<OwnEdge>> {
    let parallel = |targets: &[VertexId]| {
        let first = targets.partition_point(|&other| other < target);
        first..first + targets[first..].iter().take_while(|&&other| other == target).count()
    };
    let rows_of = || {
        let mut rows = Vec::new();
        let _ = view.for_each_row(Direction::Out, source, |targets, found| {
            rows.extend_from_slice(&found[parallel(targets)]);
            ControlFlow::Continue(())
        });
        rows
    };
    let mut rows = rows_of();
    if rows.len() > 1 && view.weight_type().is_some() {
        // Rows and weights are read in two passes, which must see one order.
        view.fix_list_order(source);
        rows = rows_of();
    }
    let mut edges = Vec::new();
    macro_rules! with_weights {
        ($weight:ty) => {
            view.for_each_weighted_fragment::<$weight>(Direction::Out, source, |targets, weights| {
                let weights = weights[parallel(targets)].iter();
                edges.extend(weights.map(|weight| OwnEdge::new(weight.bits())));
                ControlFlow::Continue(())
            })
        };
    }
    let _ = match view.weight_type() {
        None => view.for_each_fragment(Direction::Out, source, |targets| {
            edges.extend(parallel(targets).map(|_| OwnEdge::default()));
            ControlFlow::Continue(())
        }),
        Some(WeightType::U32) => with_weights!(u32),
        Some(WeightType::I64) => with_weights!(i64),
        Some(WeightType::F32) => with_weights!(f32),
        Some(WeightType::F64) => with_weights!(f64),
    };
    view.check()?;
    for (edge, row) in edges.iter_mut().zip(rows) {
        edge.set_origin(Origin { number: view.edge_properties().number(row)?, row });
    }
    // A changed edge has a later row but keeps its number, which tells when the edge was added.
    edges.sort_by_key(|edge| edge.origin().map(|origin| origin.number));
    Ok(edges)
}
