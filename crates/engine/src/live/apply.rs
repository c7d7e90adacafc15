//! From updates to a version of the live graph that has them.
//!
//! First every update is checked and its keys become ids, and nothing has happened yet. Then the changes
//! are made, in groups: edges until a vertex goes, the edges that this vertex has by then, and so on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base::parallel::Pool;
use base::progress::Silent;
use base::{MAX_VERTICES, VertexId};
use graph::property::OwnedValue;
use graph::{Direction, Graph};
use lama::{Key, KeyScheme, Overlay, Side, Underlay};

use super::delta::{ArcUpdate, added, removed};
use super::frozen::Frozen;
use super::update::{Missing, Update};
use super::values::{Properties, typed};
use super::version::LiveVersion;
use super::{SPARE_VERTICES, Writer};
use crate::append::{EdgeWeight, entries_of, fitting_key, weight_bits};
use crate::{Error, Result};

/// Arcs that a worker looks up at once.
const GRAIN: usize = 4 << 10;
/// How many arcs before its turn an entry of a list is fetched; the place of the list is as many before.
const AHEAD: usize = 16;

/// An update whose keys are ids.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The edge is to be there with a weight of these bits, or to be gone.
    Edge(EdgeUpdate),
    /// All edges of the pair are to have a weight of these bits; where there is none, one is made.
    SetWeight(EdgeUpdate),
    AddVertex(VertexId),
    RemoveVertex(VertexId),
    /// By the place of the value in the plan.
    SetValue(usize),
    /// The same, of an edge.
    SetEdgeValue(usize),
}

/// An edge, and the bits of the weight that it is to have; `None` where it is to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeUpdate {
    pub(super) source: VertexId,
    pub(super) target: VertexId,
    pub(super) addition: Option<u64>,
}

/// A batch that can be applied.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// Of the vertices from the bound on, in the order of their ids.
    new_keys: Vec<Key>,
    new_ids: HashMap<Key, VertexId>,
    vertex_bound: usize,
    /// Of the vertices.
    properties: Properties,
    pub(super) values: Vec<PlannedValue>,
    pub(super) edge_properties: Properties,
    pub(super) edge_values: Vec<PlannedEdgeValue>,
}

/// A value that a vertex is to have of the property at a place.
#[derive(Debug)]
pub(super) struct PlannedValue {
    vertex: VertexId,
    place: usize,
    value: OwnedValue,
}

/// A value that an edge is to have of the property at a place.
#[derive(Debug)]
pub(super) struct PlannedEdgeValue {
    /// The place of the update in its batch.
    pub(super) index: usize,
    pub(super) source: VertexId,
    pub(super) target: VertexId,
    pub(super) place: usize,
    pub(super) value: OwnedValue,
}

/// What changes in the planes of one side.
#[derive(Debug, Default)]
struct SideUpdates {
    added: Vec<ArcUpdate>,
    removed: Vec<ArcUpdate>,
}

impl Writer {
    /// Applies a batch, and makes a version with it.
    pub(super) fn apply(&mut self, updates: &[Update], missing: Missing, pool: &Pool) -> Result<Arc<LiveVersion>> {
        if self.is_broken {
            let what = "an earlier batch failed half way: make a checkpoint, which keeps what was committed before it";
            return Err(Error::Option(what.into()));
        }
        let mut plan = self.plan(updates, missing)?;
        // From here on only a lack of memory, or damage, can stop it.
        self.is_broken = true;
        self.take_vertices(&mut plan)?;
        let mut values = plan.values;
        let mut edges = Vec::new();
        for step in plan.steps {
            match step {
                Step::Edge(edge) | Step::SetWeight(edge) => {
                    if edge.addition.is_some() {
                        self.revive(edge.source);
                        self.revive(edge.target);
                    }
                    edges.push(edge);
                }
                Step::AddVertex(vertex) => self.revive(vertex),
                Step::RemoveVertex(vertex) if self.is_live(vertex) => {
                    self.change_edges(std::mem::take(&mut edges), pool)?;
                    self.remove_vertex(vertex, pool)?;
                }
                Step::RemoveVertex(_) => {}
                Step::SetValue(place) => self.set_value(&mut values[place]),
                // A graph whose edges have properties has no container.
                Step::SetEdgeValue(_) => {}
            }
        }
        self.change_edges(edges, pool)?;
        self.newest = self.version();
        self.epoch += 1;
        self.is_broken = false;
        Ok(Arc::clone(&self.newest))
    }

    /// Makes the new vertices of a plan, and its properties.
    pub(super) fn take_vertices(&mut self, plan: &mut Plan) -> Result<()> {
        self.make_room(plan.vertex_bound)?;
        for key in plan.new_keys.drain(..) {
            self.keys.push(key, self.vertex_bound as VertexId);
            self.vertex_bound += 1;
            self.num_vertices += 1;
        }
        // Without keys, ids below the largest are vertices.
        self.num_vertices += plan.vertex_bound - self.vertex_bound;
        self.vertex_bound = plan.vertex_bound;
        self.properties.schema = std::mem::take(&mut plan.properties).into_schema();
        Ok(())
    }

    /// Checks all updates, and finds the ids of their keys.
    pub(super) fn plan(&self, updates: &[Update], missing: Missing) -> Result<Plan> {
        let properties = Properties::new(Arc::clone(&self.properties.schema));
        let known = self.underlay.view().edge_properties().schema().clone();
        let edge_properties = Properties::new(Arc::new(known));
        let mut plan = Plan { vertex_bound: self.vertex_bound, properties, edge_properties, ..Plan::default() };
        let mut witness = (missing == Missing::Strict).then(|| Witness::new(self));
        for index in 0..updates.len() {
            let step = self.step(&updates[index..], index, &mut plan, witness.as_mut());
            plan.steps.extend(step.map_err(|error| Error::Update { index, error: Box::new(error) })?);
        }
        Ok(plan)
    }

    /// What the first of some updates, the one at `index` of its batch, does; `None` where that is nothing. The witness
    /// is strict about it.
    fn step(
        &self,
        updates: &[Update],
        index: usize,
        plan: &mut Plan,
        mut witness: Option<&mut Witness<'_>>,
    ) -> Result<Option<Step>> {
        let Some(update) = updates.first() else { return Ok(None) };
        let step = match update {
            Update::AddEdge { source, target, weight } => {
                Some(Step::Edge(self.edge_to_be(source, target, *weight, plan, witness.as_deref())?))
            }
            Update::SetWeight { source, target, weight } => {
                Some(Step::SetWeight(self.edge_to_be(source, target, Some(*weight), plan, witness.as_deref())?))
            }
            Update::SetEdgeProperty { .. } => self.edge_value(updates, index, plan, witness.as_deref())?,
            Update::SetVertexProperty { .. } => self.vertex_value(updates, plan, witness.as_deref_mut())?,
            Update::RemoveEdge { source, target } => match (self.id(source, plan)?, self.id(target, plan)?) {
                (Some(source), Some(target)) => Some(Step::Edge(EdgeUpdate { source, target, addition: None })),
                _ => None,
            },
            Update::AddVertex(key) => Some(Step::AddVertex(self.id_to_be(key, plan, None)?)),
            Update::RemoveVertex(key) => self.id(key, plan)?.map(Step::RemoveVertex),
        };
        if let Some(witness) = &mut witness {
            witness.see(update, step)?;
        }
        Ok(step)
    }

    fn edge_to_be(
        &self,
        source: &Key,
        target: &Key,
        weight: Option<EdgeWeight>,
        plan: &mut Plan,
        strict: Option<&Witness<'_>>,
    ) -> Result<EdgeUpdate> {
        let bits = weight_bits((source, target), weight, self.underlay.view().options())?;
        let source = self.id_to_be(source, plan, strict)?;
        let target = self.id_to_be(target, plan, strict)?;
        Ok(EdgeUpdate { source, target, addition: Some(bits) })
    }

    /// Plans a value of a vertex. To take one away makes no vertex.
    fn vertex_value(
        &self,
        updates: &[Update],
        plan: &mut Plan,
        witness: Option<&mut Witness<'_>>,
    ) -> Result<Option<Step>> {
        let Some(Update::SetVertexProperty { vertex, name, value }) = updates.first() else { return Ok(None) };
        let said_of_it = updates.iter().filter_map(|update| match update {
            Update::SetVertexProperty { name: other, value, .. } if other == name => Some(value),
            _ => None,
        });
        let (place, property_type) = plan.properties.find(name, said_of_it)?;
        let wrong = |what| Error::Option(format!("vertex {vertex}: {what}"));
        let value = typed(name, value, property_type).map_err(wrong)?;
        let id = match value.as_value().is_null() && witness.is_none() {
            true => self.id(vertex, plan)?,
            false => Some(self.id_to_be(vertex, plan, witness.as_deref())?),
        };
        if let (Some(witness), Some(id)) = (witness, id)
            && !witness.see_value(place, id, &value)?
        {
            return Err(Error::Option(format!("vertex {vertex} has no {name:?} to remove")));
        }
        plan.values.extend(id.map(|vertex| PlannedValue { vertex, place, value }));
        Ok(id.map(|_| Step::SetValue(plan.values.len() - 1)))
    }

    /// Plans a value of an edge. To take one away makes no vertices.
    fn edge_value(
        &self,
        updates: &[Update],
        index: usize,
        plan: &mut Plan,
        strict: Option<&Witness<'_>>,
    ) -> Result<Option<Step>> {
        let Some(Update::SetEdgeProperty { source, target, name, value }) = updates.first() else { return Ok(None) };
        let wrong = |what| Error::Option(format!("the edge from {source} to {target}: {what}"));
        if !self.underlay.view().options().edge_properties {
            return Err(wrong("the graph was loaded without properties of edges".to_owned()));
        }
        let said_of_it = updates.iter().filter_map(|update| match update {
            Update::SetEdgeProperty { name: other, value, .. } if other == name => Some(value),
            _ => None,
        });
        let (place, property_type) = plan.edge_properties.find(name, said_of_it)?;
        let value = typed(name, value, property_type).map_err(wrong)?;
        let ends = match value.as_value().is_null() && strict.is_none() {
            true => self.id(source, plan)?.zip(self.id(target, plan)?),
            false => Some((self.id_to_be(source, plan, strict)?, self.id_to_be(target, plan, strict)?)),
        };
        let Some((source, target)) = ends else { return Ok(None) };
        plan.edge_values.push(PlannedEdgeValue { index, source, target, place, value });
        Ok(Some(Step::SetEdgeValue(plan.edge_values.len() - 1)))
    }

    /// The id of a key that names a vertex, or did.
    fn id(&self, key: &Key, plan: &Plan) -> Result<Option<VertexId>> {
        let view = self.underlay.view();
        let key = fitting_key(key, view.options().keys)?;
        if view.options().keys == KeyScheme::Dense {
            let Key::Integer(id) = key else { return Ok(None) };
            return Ok((id < plan.vertex_bound as u64).then_some(id as VertexId));
        }
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.version.vertex(&key));
        if let Some(id) = self.keys.id(&key).or_else(|| plan.new_ids.get(&key).copied()).or_else(frozen) {
            return Ok(Some(id));
        }
        Ok(view.vertex_dead_or_alive(&key)?.map(|(id, _)| id))
    }

    /// The id of a key that is to name a vertex. Who is strict about it knows the vertices.
    fn id_to_be(&self, key: &Key, plan: &mut Plan, strict: Option<&Witness<'_>>) -> Result<VertexId> {
        let known = self.id(key, plan)?;
        if let Some(witness) = strict
            && !known.is_some_and(|id| witness.is_live(id))
        {
            return Err(Error::Option(format!("vertex {key} does not exist")));
        }
        if let Some(id) = known {
            return Ok(id);
        }
        let key = fitting_key(key, self.underlay.view().options().keys)?;
        let id = match (self.underlay.view().options().keys, &key) {
            (KeyScheme::Dense, Key::Integer(id)) => *id,
            _ => plan.vertex_bound as u64,
        };
        if id >= MAX_VERTICES as u64 {
            return Err(Error::Option(format!("vertex {key}: a graph has at most {MAX_VERTICES} vertices")));
        }
        plan.vertex_bound = id as usize + 1;
        if self.underlay.view().options().keys != KeyScheme::Dense {
            plan.new_ids.insert(key.clone(), id as VertexId);
            plan.new_keys.push(key);
        }
        Ok(id as VertexId)
    }

    /// Prepares for vertices below `bound`.
    fn make_room(&mut self, bound: usize) -> Result<()> {
        if bound <= self.underlay.capacity() {
            return Ok(());
        }
        let capacity = (bound + bound / 4 + SPARE_VERTICES).min(MAX_VERTICES.max(bound));
        let underlay = Underlay::new(self.underlay.view(), capacity);
        for &side in self.sides() {
            self.underlay.touched(side).for_each(|vertex| underlay.touch(side, vertex));
        }
        self.delta.grow(capacity)?;
        self.underlay = Arc::new(underlay);
        // It is too small, and whoever made it makes another.
        self.next_underlay = None;
        Ok(())
    }

    pub(super) fn is_live(&self, vertex: VertexId) -> bool {
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.version.is_live(vertex));
        let known = self.vertices.is_live(vertex, self.epoch).or_else(frozen);
        known.unwrap_or_else(|| self.underlay.view().is_live(vertex))
    }

    /// Makes sure that an id is a vertex.
    pub(super) fn revive(&mut self, vertex: VertexId) {
        if !self.is_live(vertex) {
            self.vertices.set(vertex, self.epoch, true);
            self.num_vertices += 1;
        }
    }

    fn remove_vertex(&mut self, vertex: VertexId, pool: &Pool) -> Result<()> {
        let view = self.version().view();
        let entries = entries_of(&view, &[vertex], pool, &Silent)?;
        let gone = |(source, target)| EdgeUpdate { source, target, addition: None };
        self.change_edges(entries.into_iter().map(gone).collect(), pool)?;
        self.lose_vertex(vertex)
    }

    /// Ends a vertex, which has no edges any more.
    pub(super) fn lose_vertex(&mut self, vertex: VertexId) -> Result<()> {
        self.vertices.set(vertex, self.epoch, false);
        self.num_vertices -= 1;
        self.clear_values(vertex)
    }

    /// Takes all values of a vertex away.
    fn clear_values(&mut self, vertex: VertexId) -> Result<()> {
        let history = &self.properties.history;
        for place in 0..self.properties.schema.len() {
            let value = match history.value(self.epoch, place, vertex) {
                Some(value) => value,
                None => self.newest.value_over(place, vertex)?,
            };
            if !value.is_null() {
                history.set(self.epoch, place, vertex, OwnedValue::Null);
            }
        }
        Ok(())
    }

    /// Gives a vertex, which comes with it, a value, which is taken; what has none loses nothing.
    pub(super) fn set_value(&mut self, planned: &mut PlannedValue) {
        let PlannedValue { vertex, place, ref mut value } = *planned;
        if !value.as_value().is_null() {
            self.revive(vertex);
        } else if !self.is_live(vertex) {
            return;
        }
        self.properties.history.set(self.epoch, place, vertex, std::mem::replace(value, OwnedValue::Null));
    }

    /// Changes edges; of several changes of one, the last counts.
    fn change_edges(&mut self, mut edges: Vec<EdgeUpdate>, pool: &Pool) -> Result<()> {
        if edges.is_empty() {
            return Ok(());
        }
        let options = *self.underlay.view().options();
        let is_undirected = options.direction == Direction::Undirected;
        if is_undirected || options.ordered {
            for edge in edges.iter_mut().filter(|edge| edge.source > edge.target) {
                std::mem::swap(&mut edge.source, &mut edge.target);
            }
        }
        edges.retain(|edge| !options.ordered || edge.source != edge.target);
        edges.sort_by_key(|edge| (edge.source, edge.target));
        // Duplicates are removed from the second on: the other way round, the last stays.
        edges.reverse();
        edges.dedup_by_key(|edge| (edge.source, edge.target));
        edges.reverse();
        let below = self.weights_below(&edges, pool)?;
        for &side in self.sides() {
            let mut updates = SideUpdates::default();
            for (edge, &below) in edges.iter().zip(&below) {
                let (list, neighbour) = match side {
                    Side::Out => (edge.source, edge.target),
                    Side::In => (edge.target, edge.source),
                };
                updates.change(list, neighbour, edge.addition, below);
                if is_undirected && list != neighbour {
                    updates.change(neighbour, list, edge.addition, below);
                }
            }
            updates.added.iter().for_each(|update| self.touch(side, update.list));
            self.delta.apply(pool, added(side), &updates.added)?;
            self.delta.apply(pool, removed(side), &updates.removed)?;
        }
        Ok(())
    }

    /// The bits of the weights that edges, which ascend, have below the delta; `None` where they are not there.
    fn weights_below(&self, edges: &[EdgeUpdate], pool: &Pool) -> Result<Vec<Option<u64>>> {
        let view = self.underlay.view();
        let bound = view.vertex_bound();
        let look_up = |edges: &[EdgeUpdate]| -> Result<Vec<Option<u64>>> {
            let mut finder = view.finder();
            let mut below = vec![None; edges.len()];
            let mut start = 0;
            while start < edges.len() {
                let source = edges[start].source;
                let end = start + edges[start..].iter().take_while(|edge| edge.source == source).count();
                for turn in start..end {
                    let later =
                        |ahead| edges.get(turn + ahead).filter(|later: &&EdgeUpdate| (later.source as usize) < bound);
                    if let Some(later) = later(2 * AHEAD) {
                        finder.prefetch(later.source);
                    }
                    if let Some(later) = later(AHEAD) {
                        finder.prefetch_arc(later.source, later.target);
                    }
                }
                let wanted = edges[start..end].iter().map(|edge| edge.target);
                finder.find(source, wanted, |index, weight| below[start + index] = Some(weight))?;
                start = end;
            }
            if let Some(Frozen { version, .. }) = &self.frozen {
                for (edge, below) in edges.iter().zip(&mut below) {
                    *below = version.weight_over(edge.source, edge.target, *below);
                }
            }
            Ok(below)
        };
        if edges.len() <= GRAIN {
            return look_up(edges);
        }
        let parts = pool.map_chunks(0..edges.len(), GRAIN, |_, chunk| look_up(&edges[chunk]));
        let mut below = Vec::with_capacity(edges.len());
        for part in parts {
            below.extend(part?);
        }
        Ok(below)
    }
}

impl SideUpdates {
    /// An entry is to have a weight of these bits, or to be gone, over a list that has it with the weight `below`.
    fn change(&mut self, list: VertexId, neighbour: VertexId, addition: Option<u64>, below: Option<u64>) {
        // What is as in the snapshot is neither added nor removed.
        let is_as_below = addition == below;
        let update = |addition| ArcUpdate { list, neighbour, addition };
        self.added.push(update(addition.filter(|_| !is_as_below)));
        if below.is_some() {
            self.removed.push(update(below.filter(|_| !is_as_below)));
        }
    }
}

/// Knows, while a batch is looked at, what would be there after its first updates.
struct Witness<'a> {
    writer: &'a Writer,
    edges: HashMap<(VertexId, VertexId), bool>,
    vertices: HashMap<VertexId, bool>,
    /// By property and vertex, whether there is a value.
    values: HashMap<(usize, VertexId), bool>,
    /// Vertices whose edges and values all went.
    cleared: HashSet<VertexId>,
}

impl<'a> Witness<'a> {
    fn new(writer: &'a Writer) -> Self {
        let (edges, vertices, values) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { writer, edges, vertices, values, cleared: HashSet::new() }
    }

    pub(super) fn is_live(&self, vertex: VertexId) -> bool {
        let known = self.vertices.get(&vertex).copied();
        known.unwrap_or_else(|| (vertex as usize) < self.writer.vertex_bound && self.writer.is_live(vertex))
    }

    /// # Errors
    /// What is to be removed is not there.
    fn see(&mut self, update: &Update, step: Option<Step>) -> Result<()> {
        match (update, step) {
            (
                _,
                Some(Step::Edge(EdgeUpdate { source, target, addition: Some(_) }))
                | Some(Step::SetWeight(EdgeUpdate { source, target, .. })),
            ) => {
                self.edges.insert(self.key(source, target), true);
            }
            (Update::RemoveEdge { source, target }, step) => {
                let key = match step {
                    Some(Step::Edge(edge)) => Some(self.key(edge.source, edge.target)),
                    _ => None,
                };
                match key {
                    Some(key) if self.has_edge(key)? => self.edges.insert(key, false),
                    _ => return Err(Error::Option(format!("there is no edge from {source} to {target} to remove"))),
                };
            }
            (_, Some(Step::AddVertex(vertex))) => {
                self.vertices.insert(vertex, true);
            }
            (Update::RemoveVertex(key), step) => {
                let vertex = match step {
                    Some(Step::RemoveVertex(vertex)) if self.is_live(vertex) => vertex,
                    _ => return Err(Error::Option(format!("there is no vertex {key} to remove"))),
                };
                self.vertices.insert(vertex, false);
                self.cleared.insert(vertex);
                self.edges.retain(|&(source, target), _| source != vertex && target != vertex);
                self.values.retain(|&(_, other), _| other != vertex);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a vertex can get this value, which it then has: what is taken away must be there.
    fn see_value(&mut self, place: usize, vertex: VertexId, value: &OwnedValue) -> Result<bool> {
        let is_null = value.as_value().is_null();
        let has_value = match self.values.insert((place, vertex), !is_null) {
            _ if !is_null => true,
            Some(has_value) => has_value,
            None if self.cleared.contains(&vertex) => false,
            None => !self.writer.newest.value_over(place, vertex)?.is_null(),
        };
        Ok(has_value)
    }

    fn key(&self, source: VertexId, target: VertexId) -> (VertexId, VertexId) {
        let options = self.writer.underlay.view().options();
        let has_direction = options.direction == Direction::Directed && !options.ordered;
        if has_direction || source < target { (source, target) } else { (target, source) }
    }

    fn has_edge(&self, (source, target): (VertexId, VertexId)) -> Result<bool> {
        if let Some(&is_there) = self.edges.get(&(source, target)) {
            return Ok(is_there);
        }
        if self.cleared.contains(&source) || self.cleared.contains(&target) {
            return Ok(false);
        }
        let newest = &self.writer.newest;
        if (source as usize).max(target as usize) >= newest.vertex_bound {
            return Ok(false);
        }
        let mut below = None;
        newest.snapshot().finder().find(source, [target], |_, weight| below = Some(weight))?;
        Ok(newest.weight_over(source, target, below).is_some())
    }
}
