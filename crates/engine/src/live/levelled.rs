//! Batches that become a snapshot each.
//!
//! The container of a live graph has at most one edge a pair and no rows of properties. A batch for a multigraph, or for
//! a graph whose edges have properties, is therefore worked through in memory, update by update, and what it comes to is
//! appended as a level. Every pair that it touches is looked up once, before; nothing has happened until the level is
//! written.
//!
//! A batch of any graph that takes more memory than is ever left waiting for a snapshot becomes one, too. It is applied to
//! a container of its own, which nobody sees, and goes from there to a level, not to the log.

use std::collections::{HashMap, HashSet};

use base::VertexId;
use base::parallel::Pool;
use base::progress::Silent;
use graph::property::{OwnedValue, PropertyColumn, PropertyType, PropertyValue};
use graph::{Direction, Graph};
use lama::{ChangedArc, GraphOptions, LevelChanges, NewRows, SnapshotInfo, Store, View};

use super::apply::{EdgeUpdate, Logging, Plan, PlannedEdgeValue, Step};
use super::checkpoint::{LevelVertices, require_memory};
use super::pairs::Given;
use super::properties::LevelProperties;
use super::update::{Applied, Missing, Update};
use super::{Live, SnapshotTurn, Writer};
use crate::append::{entries_of, turned};
use crate::commit::{Failure, Item, Stripes, stored_ends};
use crate::load::VertexKeys;
use crate::log::Durability;
use crate::{Error, Result};

/// Whether batches of updates become a snapshot each.
pub(crate) fn needs_levels(options: &GraphOptions) -> bool {
    options.multigraph || options.edge_properties
}

/// Source and target, in the order in which the graph stores them.
type Ends = (VertexId, VertexId);

/// The edges of a pair of vertices.
#[derive(Debug, Default)]
struct Pair {
    /// Weights or rows of those of the snapshot that are there, ascending.
    old: Vec<u64>,
    /// The same of those that are not any more.
    gone: Vec<u64>,
    new: Vec<NewEdge>,
}

/// An edge that the snapshot has not, or has with other values.
#[derive(Debug)]
struct NewEdge {
    /// Its number among the edges that are new.
    number: u64,
    weight: u64,
    /// By property; those that are left out are null.
    values: Vec<OwnedValue>,
    /// The row of the edge in whose place it is.
    instead_of: Option<u64>,
}

impl Pair {
    fn len(&self) -> usize {
        self.old.len() + self.new.len()
    }

    fn clear(&mut self) {
        self.gone.append(&mut self.old);
        self.new.clear();
    }
}

/// Pairs that a batch touches.
#[derive(Debug, Default)]
struct Pairs {
    ends: Vec<Ends>,
    pairs: Vec<Pair>,
    places: HashMap<Ends, usize>,
    /// By vertex that is removed: the places of its pairs.
    of_removed: HashMap<VertexId, Vec<usize>>,
    num_new: u64,
}

impl Pairs {
    /// What the snapshot has of the pairs that `steps` name, or that go with a vertex.
    fn find(view: &View, plan: &Plan, pool: &Pool) -> Result<Self> {
        let named = plan.steps.iter().filter_map(|step| match step {
            Step::Edge(edge) | Step::SetWeight(edge) => Some((edge.source, edge.target)),
            Step::SetEdgeValue(place) => Some((plan.edge_values[*place].source, plan.edge_values[*place].target)),
            _ => None,
        });
        let mut ends: Vec<Ends> = named.filter_map(|ends| stored(view, ends)).collect();
        let removed: HashSet<VertexId> = plan.steps.iter().filter_map(removed_vertex).collect();
        let mut of_snapshot: Vec<VertexId> =
            removed.iter().copied().filter(|&vertex| (vertex as usize) < view.vertex_bound()).collect();
        of_snapshot.sort_unstable();
        let entries = entries_of(view, &of_snapshot, pool, &Silent)?;
        ends.extend(entries.into_iter().filter_map(|ends| stored(view, ends)));
        ends.sort_unstable();
        ends.dedup();
        let mut pairs: Vec<Pair> = ends.iter().map(|_| Pair::default()).collect();
        let mut finder = view.finder();
        let mut start = 0;
        for same in ends.chunk_by(|a, b| a.0 == b.0) {
            finder
                .find(same[0].0, same.iter().map(|ends| ends.1), |index, bits| pairs[start + index].old.push(bits))?;
            start += same.len();
        }
        pairs.iter_mut().for_each(|pair| pair.old.sort_unstable());
        let mut this = Self { ends, pairs, ..Self::default() };
        for (place, &ends) in this.ends.iter().enumerate() {
            this.places.insert(ends, place);
            for vertex in [ends.0, ends.1].into_iter().filter(|vertex| removed.contains(vertex)) {
                this.of_removed.entry(vertex).or_default().push(place);
            }
        }
        Ok(this)
    }

    /// The edges of a pair, and the number of edges that were new so far.
    fn get(&mut self, view: &View, ends: Ends) -> Option<(&mut Pair, &mut u64)> {
        let place = *self.places.get(&stored(view, ends)?)?;
        Some((self.pairs.get_mut(place)?, &mut self.num_new))
    }

    /// Calls `body` with the pairs that go with vertices.
    fn for_each_removed(&self, mut body: impl FnMut(Ends)) {
        self.of_removed.values().flatten().for_each(|&place| body(self.ends[place]));
    }

    fn remove_vertex(&mut self, vertex: VertexId) {
        for &place in self.of_removed.get(&vertex).into_iter().flatten() {
            self.pairs[place].clear();
        }
    }
}

/// A pair in the order in which the graph stores it; `None` where it stores no such edge.
fn stored(view: &View, ends: Ends) -> Option<Ends> {
    let options = view.options();
    (!options.ordered || ends.0 != ends.1).then(|| stored_ends(options, ends))
}

fn removed_vertex(step: &Step) -> Option<VertexId> {
    match step {
        Step::RemoveVertex(vertex) => Some(*vertex),
        _ => None,
    }
}

/// What a level changes in lists and rows.
#[derive(Debug, Default)]
struct LevelEdges {
    added: Vec<ChangedArc>,
    removed: Vec<ChangedArc>,
    num_added: u64,
    num_removed: u64,
    rows: Vec<PropertyColumn>,
    num_rows: u64,
}

impl Live {
    /// Applies a batch to a graph [that needs it so](needs_levels), as a snapshot, if anything changes.
    ///
    /// # Errors
    /// As [`Turn::apply`](super::Turn::apply); the disk failed. Nothing has happened then.
    pub(crate) fn append_batch(
        &self,
        store: &Store,
        updates: &[Update],
        missing: Missing,
        pool: &Pool,
    ) -> Result<Applied> {
        self.append_valid(store, updates, missing, pool, |_| Ok(())).map_err(Error::from)
    }

    /// The same, if `is_valid` once nobody else writes.
    ///
    /// # Errors
    /// The same, and those of `is_valid`.
    pub(crate) fn append_valid(
        &self,
        store: &Store,
        updates: &[Update],
        missing: Missing,
        pool: &Pool,
        is_valid: impl FnOnce(&Stripes) -> Result<(), Failure>,
    ) -> Result<Applied, Failure> {
        let turn = self.turn_at_snapshot(store)?;
        is_valid(&self.stripes())?;
        let mut writer = Writer::new(store, self.epoch())?;
        let view = writer.underlay.view().clone();
        let level = writer.level_of(updates, missing, store.num_rows(), pool)?;
        if level.is_nothing(&view) {
            let (vertices, edges) = (view.num_vertices() as u64, view.num_edges());
            return Ok(Applied { epoch: self.epoch(), vertices, edges });
        }
        let snapshot = level.append(&turn, store, &view, pool)?;
        let (epoch, mut stripes) = (self.epoch(), self.stripes());
        level.changed.iter().for_each(|&item| stripes.change(item, epoch));
        drop(stripes);
        Ok(Applied { epoch: self.epoch(), vertices: snapshot.num_vertices, edges: snapshot.num_edges })
    }

    /// Applies a very large batch as a snapshot of its own, behind one of what was committed before.
    ///
    /// # Errors
    /// As [`Turn::apply`](super::Turn::apply); the disk failed. Nothing has happened then.
    pub(crate) fn append_very_large(&self, store: &Store, given: Given<'_>, pool: &Pool) -> Result<Applied> {
        store.require_sound()?;
        let turn = self.turn_at_snapshot(store)?;
        let unlogged = Logging { log: None, durability: Durability::None };
        let mut writer = Writer::new(store, self.epoch())?;
        let version = writer.apply(given, unlogged, pool, None)?;
        require_memory(store, "a batch that becomes a snapshot", writer.num_bytes(), version.num_changed_arcs())?;
        version.write_level(store, None, &Silent)?;
        turn.show(store, version.epoch);
        self.stripes().change_everything(version.epoch);
        Ok(version.applied())
    }
}

/// What a batch comes to.
struct Level {
    vertex_bound: usize,
    vertices: LevelVertices,
    properties: LevelProperties,
    edges: LevelEdges,
    new_edge_properties: Vec<(String, PropertyType)>,
    /// What it changes, for transactions that read it.
    changed: Vec<Item>,
}

impl Level {
    fn is_nothing(&self, view: &View) -> bool {
        let Self { vertices, properties, edges, .. } = self;
        self.vertex_bound == view.vertex_bound()
            && vertices.died.is_empty()
            && vertices.returned.is_empty()
            && properties.new.is_empty()
            && properties.changes.is_empty()
            && self.new_edge_properties.is_empty()
            && edges.added.is_empty()
            && edges.removed.is_empty()
    }

    fn append(&self, turn: &SnapshotTurn<'_>, store: &Store, view: &View, pool: &Pool) -> Result<SnapshotInfo> {
        let Self { vertices, properties, edges, .. } = self;
        let (in_added, in_removed) = match view.options().stores_in_lists() {
            true => (turned(&edges.added, pool), turned(&edges.removed, pool)),
            false => (Vec::new(), Vec::new()),
        };
        let changes = LevelChanges {
            vertex_bound: self.vertex_bound,
            died: &vertices.died,
            returned: &vertices.returned,
            keys: vertices.keys.as_ref().map(VertexKeys::as_dictionary),
            out_added: &edges.added,
            out_removed: &edges.removed,
            in_added: &in_added,
            in_removed: &in_removed,
            new_properties: &properties.new,
            new_edge_properties: &self.new_edge_properties,
            rows: NewRows { num_rows: edges.num_rows, columns: &edges.rows },
            properties: &properties.changes,
            num_edges_added: edges.num_added,
            num_edges_removed: edges.num_removed,
            ..LevelChanges::default()
        };
        turn.append_noted(store, &changes, None)
    }
}

impl Writer {
    /// Works through a batch; the writer is of no further use. New rows begin at `first_row`.
    fn level_of(&mut self, updates: &[Update], missing: Missing, first_row: u64, pool: &Pool) -> Result<Level> {
        let mut plan = self.plan(updates, missing)?;
        let view = self.underlay.view().clone();
        let mut pairs = Pairs::find(&view, &plan, pool)?;
        let mut changed = Vec::new();
        self.for_each_change(&plan, 0, self.vertex_bound, &mut |item| changed.push(item));
        pairs.for_each_removed(|(source, target)| {
            Item::for_each_of_edge(view.options(), source, target, |item| changed.push(item));
        });
        self.make_room(plan.vertex_bound)?;
        self.take_vertices(&mut plan);
        for step in std::mem::take(&mut plan.steps) {
            match step {
                Step::Edge(edge) => self.change_pair(&mut pairs, edge, Parallel::Add),
                Step::SetWeight(edge) => self.change_pair(&mut pairs, edge, Parallel::Replace),
                Step::SetEdgeValue(place) => {
                    let planned = &plan.edge_values[place];
                    let must_be_there = missing == Missing::Strict || !planned.value.as_value().is_null();
                    if !self.set_edge_value(&mut pairs, planned)? && must_be_there {
                        return Err(missing_value(planned.index, &updates[planned.index]));
                    }
                }
                Step::AddVertex(vertex) => self.revive(vertex),
                Step::RemoveVertex(vertex) if self.is_live(vertex) => {
                    pairs.remove_vertex(vertex);
                    self.lose_vertex(vertex)?;
                }
                Step::RemoveVertex(_) => {}
                Step::SetValue(place) => self.set_value(&mut plan.values[place]),
            }
        }
        let schema = plan.edge_properties.into_schema();
        let known = view.edge_properties().schema().len();
        let new = schema.iter().skip(known).map(|(name, property_type)| (name.to_owned(), property_type));
        let types: Vec<_> = schema.iter().map(|(_, property_type)| property_type).collect();
        let edges = pairs.into_level(&view, &types, first_row)?;
        let version = self.version();
        Ok(Level {
            vertex_bound: version.vertex_bound,
            vertices: LevelVertices::new(&version)?,
            properties: version.properties.changes(version.epoch, &view)?,
            edges,
            new_edge_properties: new.collect(),
            changed,
        })
    }
}

/// The edge that is to have a value is not there, or the value that is to be taken away.
fn missing_value(index: usize, update: &Update) -> Error {
    let error = match update {
        Update::SetEdgeProperty { source, target, name, value } if value.is_null() => {
            Error::Option(format!("there is no {name:?} of an edge from {source} to {target} to remove"))
        }
        Update::SetEdgeProperty { source, target, .. } => Error::no_edge(source, target),
        _ => Error::Option("there is no such edge".to_owned()),
    };
    Error::Update { index, error: Box::new(error) }
}

/// What becomes of the edges that a pair has when one is added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parallel {
    /// Of a multigraph they stay; another graph has one, which stays as it is.
    Add,
    /// They all get the weight.
    Replace,
}

impl Writer {
    fn change_pair(&mut self, pairs: &mut Pairs, edge: EdgeUpdate, parallel: Parallel) {
        if edge.addition.is_some() {
            self.revive(edge.source);
            self.revive(edge.target);
        }
        let view = self.underlay.view();
        let Some((pair, num_new)) = pairs.get(view, (edge.source, edge.target)) else { return };
        let Some(weight) = edge.addition else { return pair.clear() };
        let copies = match parallel {
            Parallel::Add if !view.is_multigraph() && pair.len() > 0 => 0,
            Parallel::Add => 1,
            Parallel::Replace => {
                let len = pair.len();
                pair.clear();
                len.max(1)
            }
        };
        for _ in 0..copies {
            *num_new += 1;
            pair.new.push(NewEdge { number: *num_new, weight, values: Vec::new(), instead_of: None });
        }
    }

    /// Gives the edge of a pair that was added last a value. Whether there is an edge, and a value where one is taken
    /// away.
    fn set_edge_value(&mut self, pairs: &mut Pairs, planned: &PlannedEdgeValue) -> Result<bool> {
        let PlannedEdgeValue { source, target, place, ref value, .. } = *planned;
        let view = self.underlay.view().clone();
        let Some((pair, num_new)) = pairs.get(&view, (source, target)).filter(|(pair, _)| pair.len() > 0) else {
            return Ok(false);
        };
        if pair.new.is_empty() {
            let instead_of = pair.old.pop();
            pair.gone.extend(instead_of);
            let values = instead_of.map_or(Ok(Vec::new()), |row| row_values(&view, row))?;
            *num_new += 1;
            pair.new.push(NewEdge { number: *num_new, weight: 0, values, instead_of });
        }
        let Some(edge) = pair.new.last_mut() else { return Ok(false) };
        if edge.values.len() <= place {
            edge.values.resize(place + 1, OwnedValue::Null);
        }
        let before = std::mem::replace(&mut edge.values[place], value.clone());
        Ok(!(value.as_value().is_null() && before.as_value().is_null()))
    }
}

/// The values of a row, by property.
fn row_values(view: &View, row: u64) -> Result<Vec<OwnedValue>> {
    let properties = view.edge_properties();
    (0..properties.schema().len()).map(|place| Ok(properties.value(place, row)?.into())).collect()
}

impl Pairs {
    /// What the pairs come to. New edges get rows from `first_row` on where `view` has rows, in the order in which they
    /// came.
    fn into_level(mut self, view: &View, types: &[PropertyType], first_row: u64) -> Result<LevelEdges> {
        let mut level = LevelEdges::default();
        let has_rows = view.options().edge_properties;
        for pair in &mut self.pairs {
            match has_rows {
                true => pair.leave_same_rows(view, types.len())?,
                false => pair.leave_same_weights(),
            }
        }
        if has_rows {
            let mut edges: Vec<&mut NewEdge> = self.pairs.iter_mut().flat_map(|pair| &mut pair.new).collect();
            edges.sort_unstable_by_key(|edge| edge.number);
            level.num_rows = edges.len() as u64;
            level.rows = types.iter().map(|&property_type| PropertyColumn::new(property_type)).collect();
            for (row, edge) in (first_row..).zip(edges) {
                edge.weight = row;
                for (place, column) in level.rows.iter_mut().enumerate() {
                    column.push(edge.values.get(place).map_or(PropertyValue::Null, OwnedValue::as_value))?;
                }
            }
        }
        let is_undirected = view.direction() == Direction::Undirected;
        let push = |arcs: &mut Vec<ChangedArc>, (source, target): Ends, weight| {
            arcs.push(ChangedArc { list: source, neighbour: target, weight });
            if is_undirected && source != target {
                arcs.push(ChangedArc { list: target, neighbour: source, weight });
            }
        };
        for (&ends, pair) in self.ends.iter().zip(&self.pairs) {
            pair.new.iter().for_each(|edge| push(&mut level.added, ends, edge.weight));
            pair.gone.iter().for_each(|&weight| push(&mut level.removed, ends, weight));
            level.num_added += pair.new.len() as u64;
            level.num_removed += pair.gone.len() as u64;
        }
        level.added.sort_unstable();
        level.removed.sort_unstable();
        Ok(level)
    }
}

impl Pair {
    /// Leaves edges as they are that came back with the same weights.
    fn leave_same_weights(&mut self) {
        self.gone.sort_unstable();
        self.new.sort_unstable_by_key(|edge| edge.weight);
        let mut gone = std::mem::take(&mut self.gone).into_iter().peekable();
        self.new.retain(|edge| {
            while let Some(other) = gone.next_if(|&other| other < edge.weight) {
                self.gone.push(other);
            }
            gone.next_if_eq(&edge.weight).is_none()
        });
        self.gone.extend(gone);
    }

    /// Leaves edges as they are that have the values that they had, and an only edge that came back with them.
    fn leave_same_rows(&mut self, view: &View, num_properties: usize) -> Result<()> {
        let only = if self.gone.len() == 1 && self.new.len() == 1 { self.gone.first().copied() } else { None };
        let mut at = 0;
        while let Some(edge) = self.new.get(at) {
            let Some(row) = edge.instead_of.or(only) else {
                at += 1;
                continue;
            };
            let before = row_values(view, row)?;
            let null = OwnedValue::Null;
            let is_same = (0..num_properties)
                .all(|place| before.get(place).unwrap_or(&null) == edge.values.get(place).unwrap_or(&null));
            if is_same {
                self.new.remove(at);
                self.gone.retain(|&other| other != row);
            } else {
                at += 1;
            }
        }
        Ok(())
    }
}
