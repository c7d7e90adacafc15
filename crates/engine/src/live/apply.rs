//! From updates to a version of the live graph that has them.
//!
//! First every update is checked and its keys become ids, and nothing has happened yet. Then the changes
//! are made, in groups: edges until a vertex goes, the edges that this vertex has by then, and so on.

use std::collections::HashMap;
use std::sync::Arc;

use base::parallel::Pool;
use base::progress::Silent;
use base::{MAX_VERTICES, VertexId};
use graph::property::OwnedValue;
use graph::{Direction, Graph};
use lama::{ArcData, Finder, GraphOptions, Key, KeyScheme, Overlay, Underlay};

use super::batch::{ArcUpdate, Batch};
use super::below::Below;
use super::bulk::BulkRows;
use super::edges::{EdgePlan, PlannedAction, stored};
use super::entries::entries_of;
use super::pairs::Given;
use super::strict::StrictChecker;
use super::unique::UniqueValues;
use super::update::{EdgeAction, EdgeId, Missing, NewValue, Update};
use super::values::{Properties, typed};
use super::version::LiveVersion;
use super::{UNDERLAY_BITS, Writer, logged, roomy};
use crate::fitting::{EdgeWeight, fitting_key, weight_bits};
use crate::log::{Durability, Log};
use crate::validation::ReadKey;
use crate::{Error, Result};

/// The room for the bytes of a batch in the log that is kept from one batch to the next.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// Fewer updates than this are looked at by one thread: others would not be awake in time.
const SERIAL_UPDATES: usize = 4 << 10;

/// Fewer edges with properties than this are planned one by one: there is little to fetch ahead.
const SERIAL_ROWS: usize = 64;

/// What a commit changes: the arcs and rows of many edges that were planned together, then the steps of a plan.
pub(super) struct BatchChanges<'b, 'u> {
    pub(super) plan: Plan,
    pub(super) batch: &'b mut Batch,
    pub(super) rows: BulkRows<'u>,
}

/// Where commits are written before they happen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logging<'a> {
    /// `None` where nothing outlives the handle.
    pub(super) log: Option<&'a Log>,
    pub(super) durability: Durability,
}

/// An update whose keys are ids.
#[derive(Debug)]
pub(super) enum IdUpdate {
    /// The edge is to be there with a weight of these bits, or to be gone.
    Edge(EdgeUpdate),
    /// All edges of the pair are to have a weight of these bits; where there is none, one is made.
    SetWeight(EdgeUpdate),
    AddVertex(VertexId),
    RemoveVertex(VertexId),
    /// By the place of the value in the plan.
    SetValue(usize),
    /// The edge that was added last is to have a value of the property at a place.
    SetEdgeValue {
        source: VertexId,
        target: VertexId,
        place: usize,
        value: OwnedValue,
    },
    /// One edge of a multigraph is to change, or to be gone.
    Action {
        source: VertexId,
        target: VertexId,
        number: u64,
        action: PlannedAction,
    },
}

/// A change that can be made without a look at what is there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// An entry is to be there, or to be gone; of a multigraph, one more, or all of the pair.
    Edge(EdgeUpdate),
    AddVertex(VertexId),
    RemoveVertex(VertexId),
    /// By the place of the value in the plan.
    SetValue(usize),
}

/// An edge, and its row and weight; `None` where it is to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeUpdate {
    pub(crate) source: VertexId,
    pub(crate) target: VertexId,
    pub(crate) addition: Option<ArcData>,
}

/// A batch that can be applied.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// Of the vertices from the bound on, in the order of their ids.
    pub(super) new_keys: Vec<Key>,
    pub(super) new_ids: HashMap<Key, VertexId>,
    pub(super) vertex_bound: usize,
    /// Of the vertices.
    pub(super) properties: Properties,
    pub(super) values: Vec<PlannedValue>,
    pub(super) edge_properties: Properties,
    pub(super) edges: EdgePlan,
}

/// A value that a vertex is to have of the property at a place.
#[derive(Debug)]
pub(super) struct PlannedValue {
    pub(super) vertex: VertexId,
    pub(super) place: usize,
    pub(super) value: OwnedValue,
}

impl EdgeUpdate {
    /// The arcs of out-lists that the edge is.
    #[inline(always)]
    pub(crate) fn for_each_arc(self, options: &GraphOptions, mut body: impl FnMut(ArcUpdate)) {
        let Self { source, target, addition } = self;
        let arc = |list, neighbour| ArcUpdate { list, neighbour, addition };
        match (options.ordered, options.direction) {
            (true, _) if source == target => {}
            (true, _) => body(arc(source.min(target), source.max(target))),
            (false, Direction::Undirected) if source != target => {
                body(arc(source, target));
                body(arc(target, source));
            }
            _ => body(arc(source, target)),
        }
    }
}

impl Writer {
    /// Applies a batch, and makes a version with it; `changed` is called with what changes.
    pub(super) fn apply(
        &mut self,
        given: Given<'_>,
        logging: Logging<'_>,
        pool: &Pool,
        changed: Option<&mut dyn FnMut(ReadKey)>,
    ) -> Result<Arc<LiveVersion>> {
        let as_updates;
        let (updates, missing) = match given {
            Given::Updates(updates, missing) => (updates, missing),
            Given::Pairs(edges) => {
                self.require_whole()?;
                if let Some(plan) = self.plan_pairs(edges, pool) {
                    self.commit_pairs((edges, plan), logging, pool, changed)?;
                    return Ok(Arc::clone(&self.newest));
                }
                as_updates = edges.to_updates();
                (&as_updates[..], Missing::Lenient)
            }
        };
        self.with_batch(|this, batch| {
            let (plan, rows) = match this.plan_known_edges(updates, missing, batch, pool) {
                Some(planned) => planned,
                None => {
                    batch.clear();
                    (this.plan(updates, missing)?, BulkRows::default())
                }
            };
            let changes = BatchChanges { plan, batch, rows };
            let Some(changed) = changed else { return this.commit(changes, logging, pool, &mut |_| {}) };
            this.for_each_change_of_arcs(changes.batch, changed);
            this.for_each_change(&changes.plan, 0, this.vertex_bound, changed);
            this.commit(changes, logging, pool, changed)
        })
    }

    /// Logs and applies a plan that was made over the newest version, and makes a version with it; `changed` is called
    /// with what goes with a vertex.
    ///
    /// # Errors
    /// The log: nothing has happened. A lack of memory, or damage: nothing follows.
    pub(super) fn commit_plan(
        &mut self,
        plan: Plan,
        logging: Logging<'_>,
        pool: &Pool,
        changed: &mut dyn FnMut(ReadKey),
    ) -> Result<Arc<LiveVersion>> {
        self.with_batch(|this, batch| {
            this.commit(BatchChanges { plan, batch, rows: BulkRows::default() }, logging, pool, changed)
        })
    }

    /// # Errors
    /// A batch failed half way.
    pub(super) fn require_whole(&self) -> Result<()> {
        if self.is_broken {
            let what = "an earlier batch failed half way: make a checkpoint, which keeps what was committed before it";
            return Err(Error::Option(what.into()));
        }
        Ok(())
    }

    /// Does something with room for arcs.
    fn with_batch(&mut self, body: impl FnOnce(&mut Self, &mut Batch) -> Result<()>) -> Result<Arc<LiveVersion>> {
        self.require_whole()?;
        // Of the right kind, should the body panic.
        let mut batch = std::mem::replace(&mut self.batch, Batch::new(self.underlay.view().options()));
        batch.clear();
        let done = body(self, &mut batch);
        self.batch = batch;
        done.map(|()| Arc::clone(&self.newest))
    }

    /// Logs changes, and applies them.
    fn commit(
        &mut self,
        changes: BatchChanges<'_, '_>,
        logging: Logging<'_>,
        pool: &Pool,
        changed: &mut dyn FnMut(ReadKey),
    ) -> Result<()> {
        self.commit_as(
            logging,
            changes.plan.vertex_bound,
            changes,
            |this, changes, record| {
                let num_known = [this.properties.schema.len(), this.edges.schema.len()];
                logged::encode(changes, this.underlay.view().options(), (this.vertex_bound, num_known), record);
            },
            |this, changes| this.carry_out(changes, pool, changed),
        )
    }

    /// Logs what `encode` says of some changes, of vertices below `bound`, makes them, and makes a version with them.
    pub(super) fn commit_as<T>(
        &mut self,
        logging: Logging<'_>,
        bound: usize,
        changes: T,
        encode: impl FnOnce(&Self, &T, &mut Vec<u8>),
        carry_out: impl FnOnce(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        // What there is no room for is not in the log either, where whoever opens it would meet it again.
        self.make_room(bound)?;
        let epoch = self.epoch;
        if let Some(log) = logging.log {
            let mut record = std::mem::take(&mut self.record);
            record.clear();
            encode(self, &changes, &mut record);
            let appended = log.append(epoch, &record, logging.durability);
            record.shrink_to(MAX_RECORD_BYTES);
            self.record = record;
            appended?;
        }
        // From here on only a lack of memory, or damage, can stop it.
        self.is_broken = true;
        if let Err(error) = carry_out(self, changes) {
            if let Some(log) = logging.log {
                log.take_back(epoch)?;
            }
            return Err(error);
        }
        self.newest = self.version();
        self.epoch += 1;
        self.is_broken = false;
        Ok(())
    }

    fn carry_out(
        &mut self,
        changes: BatchChanges<'_, '_>,
        pool: &Pool,
        changed: &mut dyn FnMut(ReadKey),
    ) -> Result<()> {
        let BatchChanges { mut plan, batch, rows } = changes;
        self.take_vertices(&mut plan);
        rows.store(&self.edges.rows, pool);
        self.revive_ends(batch);
        let options = *self.underlay.view().options();
        for step in plan.steps.drain(..) {
            match step {
                Step::Edge(edge) => {
                    if edge.addition.is_some() {
                        self.revive(edge.source);
                        self.revive(edge.target);
                    }
                    edge.for_each_arc(&options, |arc| batch.push(arc));
                }
                Step::AddVertex(vertex) => self.revive(vertex),
                Step::RemoveVertex(vertex) if self.is_live(vertex) => {
                    self.change_arcs(batch, pool)?;
                    self.remove_vertex(vertex, batch, pool, changed)?;
                }
                Step::RemoveVertex(_) => {}
                Step::SetValue(place) => self.set_value(&mut plan.values[place]),
            }
        }
        self.steps = plan.steps;
        self.change_arcs(batch, pool)
    }

    /// Makes the new vertices of a plan, for which there is room, its properties, and the rows of its edges.
    pub(super) fn take_vertices(&mut self, plan: &mut Plan) {
        for key in plan.new_keys.drain(..) {
            self.keys.push(key, self.vertex_bound as VertexId);
            self.vertex_bound += 1;
            self.num_vertices += 1;
        }
        // Without keys, ids below the largest are vertices.
        self.num_vertices += plan.vertex_bound - self.vertex_bound;
        self.vertex_bound = plan.vertex_bound;
        if let Some(extended) = plan.properties.take_extended() {
            self.properties.schema = Arc::new(extended);
        }
        if let Some(extended) = plan.edge_properties.take_extended() {
            self.edges.extend_schema(extended);
        }
        plan.edges.first_rows().for_each(|(row, first)| self.edges.rows.set_first(row, first));
        for (row, values) in plan.edges.numbered_rows() {
            values.iter().enumerate().for_each(|(place, value)| self.edges.rows.set(row, place, value.as_value()));
        }
        self.edges.next = plan.edges.end();
    }

    /// Plans many updates on all workers, where nothing depends on those before: all are of edges whose ends are
    /// known, or have their ids as keys, and all are right. Their arcs go to `batch`. `None` where it is otherwise.
    fn plan_known_edges<'u>(
        &self,
        updates: &'u [Update],
        missing: Missing,
        batch: &mut Batch,
        pool: &Pool,
    ) -> Option<(Plan, BulkRows<'u>)> {
        let options = self.underlay.view().options();
        if missing == Missing::Strict {
            return None;
        }
        if options.edge_properties {
            return if updates.len() > SERIAL_ROWS { self.plan_known_rows(updates, batch, pool) } else { None };
        }
        if updates.len() <= SERIAL_UPDATES {
            return None;
        }
        let mut nothing_new = self.empty_plan();
        let first_row = self.edges.next;
        let edge = |index: usize| {
            let row = if options.has_rows() { first_row + index as u64 } else { 0 };
            let data = |weight| ArcData { row, weight };
            Some(match &updates[index] {
                Update::AddEdge { source, target, weight, properties } if properties.is_empty() => EdgeUpdate {
                    addition: Some(data(weight_bits((source, target), *weight, options).ok()?)),
                    source: self.known_id(source, true, &nothing_new)?,
                    target: self.known_id(target, true, &nothing_new)?,
                },
                Update::RemoveEdge { source, target } => EdgeUpdate {
                    source: self.known_id(source, false, &nothing_new)?,
                    target: self.known_id(target, false, &nothing_new)?,
                    addition: None,
                },
                _ => return None,
            })
        };
        let arcs_each = if options.direction == Direction::Undirected { 2 } else { 1 };
        let is_every_id_live = self.num_vertices == self.vertex_bound;
        let bounds = batch.collect(pool, updates.len(), arcs_each, |piece, push| {
            let mut bound = self.vertex_bound;
            for index in piece {
                let edge = edge(index)?;
                if options.ordered && edge.source == edge.target && !is_every_id_live {
                    // A loop is no arc here, and yet its vertex is to be there.
                    return None;
                }
                bound = bound.max(edge.source as usize + 1).max(edge.target as usize + 1);
                edge.for_each_arc(options, &mut *push);
            }
            Some(bound)
        });
        let bound = bounds.into_iter().try_fold(self.vertex_bound, |all, bound| Some(all.max(bound?)));
        if options.has_rows() {
            // An update that adds nothing leaves a gap.
            nothing_new.edges.begin_at(first_row + updates.len() as u64);
        }
        Some((Plan { vertex_bound: bound?, ..nothing_new }, BulkRows::default()))
    }

    /// The id of a key that needs no new one; where keys are ids, an edge that is added may have any.
    pub(super) fn known_id(&self, key: &Key, is_added: bool, nothing_new: &Plan) -> Option<VertexId> {
        match (self.underlay.view().options().keys, key) {
            (KeyScheme::Dense, &Key::Integer(key)) => {
                let bound = if is_added { MAX_VERTICES } else { self.vertex_bound };
                (key < bound as u64).then_some(key as VertexId)
            }
            _ => self.id(key, nothing_new).ok().flatten(),
        }
    }

    pub(super) fn empty_plan(&self) -> Plan {
        Plan {
            steps: Vec::new(),
            new_keys: Vec::new(),
            new_ids: HashMap::new(),
            vertex_bound: self.vertex_bound,
            properties: Properties::new(Arc::clone(&self.properties.schema)),
            values: Vec::new(),
            edge_properties: Properties::new(Arc::clone(&self.edges.schema)),
            edges: EdgePlan::new(self.edges.next),
        }
    }

    /// Checks all updates, and finds the ids of their keys.
    pub(super) fn plan(&self, updates: &[Update], missing: Missing) -> Result<Plan> {
        let mut plan = self.empty_plan();
        let mut strict = (missing == Missing::Strict).then(|| StrictChecker::new(self));
        let mut finder = self.underlay.finder();
        for index in 0..updates.len() {
            self.plan_update(&updates[index..], &mut plan, &mut finder, strict.as_mut())
                .map_err(|error| Error::Update { index, error: Box::new(error) })?;
        }
        UniqueValues::default().add(self, &plan, 0)?;
        Ok(plan)
    }

    /// Plans the first of some updates. The strict is strict about it.
    pub(super) fn plan_update(
        &self,
        updates: &[Update],
        plan: &mut Plan,
        finder: &mut Finder<'_>,
        mut strict: Option<&mut StrictChecker<'_>>,
    ) -> Result<()> {
        let Some(update) = updates.first() else { return Ok(()) };
        let with_ids = self.with_ids(updates, plan, strict.as_deref_mut())?;
        if let Some(strict) = &mut strict {
            strict.see(update, with_ids.as_ref(), finder)?;
        }
        match with_ids {
            None => {}
            Some(IdUpdate::Edge(edge)) => match update {
                Update::AddEdge { properties, .. } if self.options().has_rows() || !properties.is_empty() => {
                    let values = self.edge_values(updates, plan)?;
                    self.plan_edge(edge, values, plan, finder)?;
                }
                // The usual case needs no plan of rows.
                _ => plan.steps.push(Step::Edge(edge)),
            },
            Some(IdUpdate::SetWeight(edge)) => self.plan_weight(edge, plan, finder)?,
            Some(IdUpdate::Action { source, target, number, action }) => {
                if !self.plan_action((source, target), number, action, plan, finder)? {
                    return Err(match update {
                        Update::ChangeEdge { id, .. } => Error::no_numbered_edge(&id.source, &id.target, number),
                        _ => Error::Option("there is no such edge".to_owned()),
                    });
                }
                if let (Some(strict), Some(ends)) = (strict, stored(self.options(), (source, target))) {
                    strict.see_edges(ends, !self.planned_edges(ends, plan, finder)?.is_empty());
                }
            }
            Some(IdUpdate::AddVertex(vertex)) => plan.steps.push(Step::AddVertex(vertex)),
            Some(IdUpdate::RemoveVertex(vertex)) => plan.steps.push(Step::RemoveVertex(vertex)),
            Some(IdUpdate::SetValue(place)) => plan.steps.push(Step::SetValue(place)),
            Some(IdUpdate::SetEdgeValue { source, target, place, value }) => {
                let must_be_there = strict.is_some() || value != OwnedValue::Null;
                if !self.plan_edge_value((source, target), place, value, plan, finder)? && must_be_there {
                    return Err(missing_value(update));
                }
            }
        }
        Ok(())
    }

    /// An update with the ids of its keys; `None` where it changes nothing.
    #[inline(always)]
    fn with_ids(
        &self,
        updates: &[Update],
        plan: &mut Plan,
        strict: Option<&mut StrictChecker<'_>>,
    ) -> Result<Option<IdUpdate>> {
        let Some(update) = updates.first() else { return Ok(None) };
        Ok(match update {
            Update::AddEdge { source, target, weight, .. } => {
                Some(IdUpdate::Edge(self.edge_to_be(source, target, *weight, plan, strict.as_deref())?))
            }
            Update::SetWeight { source, target, weight } => {
                Some(IdUpdate::SetWeight(self.edge_to_be(source, target, Some(*weight), plan, strict.as_deref())?))
            }
            Update::SetEdgeProperty { .. } => self.edge_value(updates, plan, strict.as_deref())?,
            Update::SetVertexProperty { .. } => self.vertex_value(updates, plan, strict)?,
            Update::RemoveEdge { source, target } => match (self.id(source, plan)?, self.id(target, plan)?) {
                (Some(source), Some(target)) => Some(IdUpdate::Edge(EdgeUpdate { source, target, addition: None })),
                _ => None,
            },
            Update::ChangeEdge { .. } => Some(self.edge_action(updates, plan)?),
            Update::AddVertex(key) => Some(IdUpdate::AddVertex(self.id_to_be(key, plan, None)?)),
            Update::RemoveVertex(key) => self.id(key, plan)?.map(IdUpdate::RemoveVertex),
        })
    }

    fn edge_to_be(
        &self,
        source: &Key,
        target: &Key,
        weight: Option<EdgeWeight>,
        plan: &mut Plan,
        strict: Option<&StrictChecker<'_>>,
    ) -> Result<EdgeUpdate> {
        let bits = weight_bits((source, target), weight, self.underlay.view().options())?;
        let source = self.id_to_be(source, plan, strict)?;
        let target = self.id_to_be(target, plan, strict)?;
        Ok(EdgeUpdate { source, target, addition: Some(ArcData::of_weight(bits)) })
    }

    /// Plans a value of a vertex. To take one away makes no vertex.
    fn vertex_value(
        &self,
        updates: &[Update],
        plan: &mut Plan,
        strict: Option<&mut StrictChecker<'_>>,
    ) -> Result<Option<IdUpdate>> {
        let Some(Update::SetVertexProperty { vertex, name, value }) = updates.first() else { return Ok(None) };
        let said_of_it = updates.iter().filter_map(|update| match update {
            Update::SetVertexProperty { name: other, value, .. } if other == name => Some(value),
            _ => None,
        });
        let (place, property_type) = plan.properties.find(name, said_of_it)?;
        let wrong = |what| Error::Option(format!("vertex {vertex}: {what}"));
        let value = typed(name, value, property_type).map_err(wrong)?;
        let id = match value.as_value().is_null() && strict.is_none() {
            true => self.id(vertex, plan)?,
            false => Some(self.id_to_be(vertex, plan, strict.as_deref())?),
        };
        if let (Some(strict), Some(id)) = (strict, id)
            && !strict.see_value(place, id, &value)?
        {
            return Err(Error::Option(format!("vertex {vertex} has no {name:?} to remove")));
        }
        plan.values.extend(id.map(|vertex| PlannedValue { vertex, place, value }));
        Ok(id.map(|_| IdUpdate::SetValue(plan.values.len() - 1)))
    }

    /// Plans a value of an edge, which must be there unless the value is taken away.
    fn edge_value(
        &self,
        updates: &[Update],
        plan: &mut Plan,
        strict: Option<&StrictChecker<'_>>,
    ) -> Result<Option<IdUpdate>> {
        let Some(Update::SetEdgeProperty { source, target, name, value }) = updates.first() else { return Ok(None) };
        let (place, value) = self.edge_property((source, target), (name, value), updates, plan)?;
        let ends = match strict {
            Some(_) => Some((self.id_to_be(source, plan, strict)?, self.id_to_be(target, plan, strict)?)),
            None => self.id(source, plan)?.zip(self.id(target, plan)?),
        };
        let Some((source, target)) = ends else {
            return if value.as_value().is_null() { Ok(None) } else { Err(Error::no_edge(source, target)) };
        };
        Ok(Some(IdUpdate::SetEdgeValue { source, target, place, value }))
    }

    /// What becomes of one edge.
    fn edge_action(&self, updates: &[Update], plan: &mut Plan) -> Result<IdUpdate> {
        let Some(Update::ChangeEdge { id: EdgeId { source, target, number }, action }) = updates.first() else {
            return Err(Error::Option("there is no such edge".to_owned()));
        };
        let options = self.options();
        if !options.multigraph {
            let what = "edges have numbers in multigraphs only, which are loaded with --duplicates keep";
            return Err(Error::Option(format!("the edge from {source} to {target}: #{number}: {what}")));
        }
        let ends = self.id(source, plan)?.zip(self.id(target, plan)?);
        let action = match action {
            EdgeAction::Remove => PlannedAction::Remove,
            &EdgeAction::SetWeight(weight) => {
                PlannedAction::SetWeight(weight_bits((source, target), Some(weight), options)?)
            }
            EdgeAction::SetProperty { name, value } => {
                let (place, value) = self.edge_property((source, target), (name, value), updates, plan)?;
                PlannedAction::SetValue(place, value)
            }
        };
        let (source, target) = ends.ok_or_else(|| Error::no_numbered_edge(source, target, *number))?;
        Ok(IdUpdate::Action { source, target, number: *number, action })
    }

    /// The values that the first of some updates gives the edge that it adds, with the places of their properties.
    fn edge_values(&self, updates: &[Update], plan: &mut Plan) -> Result<Vec<(usize, OwnedValue)>> {
        let Some(Update::AddEdge { source, target, properties, .. }) = updates.first() else { return Ok(Vec::new()) };
        let value =
            |(name, value): &(Arc<str>, NewValue)| self.edge_property((source, target), (name, value), updates, plan);
        properties.iter().map(value).collect()
    }

    /// The place of a property of edges, and a value in its type. A new property gets a type that holds all that the
    /// updates say of it.
    fn edge_property(
        &self,
        (source, target): (&Key, &Key),
        (name, value): (&str, &NewValue),
        updates: &[Update],
        plan: &mut Plan,
    ) -> Result<(usize, OwnedValue)> {
        let wrong = |what| Error::Option(format!("the edge from {source} to {target}: {what}"));
        if !self.underlay.view().options().edge_properties {
            return Err(wrong("the graph was loaded without properties of edges".to_owned()));
        }
        let (place, property_type) = plan.edge_properties.find(name, said_of_edges(updates, name))?;
        Ok((place, typed(name, value, property_type).map_err(wrong)?))
    }

    /// The id of a key that names a vertex, or did.
    pub(super) fn id(&self, key: &Key, plan: &Plan) -> Result<Option<VertexId>> {
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
    fn id_to_be(&self, key: &Key, plan: &mut Plan, strict: Option<&StrictChecker<'_>>) -> Result<VertexId> {
        let known = self.id(key, plan)?;
        if let Some(strict) = strict
            && !known.is_some_and(|id| strict.is_live(id))
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
    ///
    /// # Errors
    /// There is no memory for them, or no addresses.
    pub(super) fn make_room(&mut self, bound: usize) -> Result<()> {
        if bound <= self.underlay.capacity() {
            // That may be more than what the delta was made for, since an underlay has room for whole pages.
            return self.delta.grow(self.underlay.capacity().min(MAX_VERTICES));
        }
        let capacity = roomy(bound);
        let needed = (capacity * self.sides().len()) as u64 * UNDERLAY_BITS / 8;
        let budget = base::memory::available();
        if needed > budget {
            let what = format!("to change vertices up to the {bound}-th id");
            return Err(Error::Memory { what, needed, budget });
        }
        let underlay = Underlay::new(self.underlay.view(), capacity);
        for &side in self.sides() {
            underlay.learn(side, &self.underlay);
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

    pub(super) fn remove_vertex(
        &mut self,
        vertex: VertexId,
        batch: &mut Batch,
        pool: &Pool,
        changed: &mut dyn FnMut(ReadKey),
    ) -> Result<()> {
        let view = self.version().view();
        let entries = entries_of(&view, &[vertex], pool, &Silent)?;
        for (source, target) in entries {
            ReadKey::for_each_of_edge(self.underlay.view().options(), source, target, &mut *changed);
            let gone = EdgeUpdate { source, target, addition: None };
            gone.for_each_arc(self.underlay.view().options(), |arc| batch.push(arc));
        }
        self.change_arcs(batch, pool)?;
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

    /// Makes sure that the ends of edges that are added are vertices.
    pub(super) fn revive_ends(&mut self, batch: &Batch) {
        if self.num_vertices < self.vertex_bound {
            batch.for_each_addition(|list, neighbour| {
                self.revive(list);
                self.revive(neighbour);
            });
        }
    }

    /// Makes the arcs of a batch, which is empty then, as they are to be; of several changes of one, the last counts.
    pub(super) fn change_arcs(&mut self, batch: &mut Batch, pool: &Pool) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let frozen = self.frozen.as_ref().map(|frozen| &*frozen.version);
        let below = Below::new(&self.underlay, self.next_underlay.as_deref(), frozen);
        self.delta.apply(pool, &below, batch)?;
        batch.clear();
        Ok(())
    }
}

/// All values that updates give a property of edges.
pub(super) fn said_of_edges<'u>(updates: &'u [Update], name: &'u str) -> impl Iterator<Item = &'u NewValue> {
    updates.iter().flat_map(move |update| {
        let (set, added) = match update {
            Update::SetEdgeProperty { name: other, value, .. } if other == name => (Some(value), &[][..]),
            Update::AddEdge { properties, .. } => (None, &properties[..]),
            Update::ChangeEdge { action: EdgeAction::SetProperty { name: other, value }, .. } if other == name => {
                (Some(value), &[][..])
            }
            _ => (None, &[][..]),
        };
        set.into_iter().chain(added.iter().filter(move |(other, _)| **other == *name).map(|(_, value)| value))
    })
}

/// The edge that is to have a value is not there, or the value that is to be taken away.
fn missing_value(update: &Update) -> Error {
    match update {
        Update::SetEdgeProperty { source, target, name, value } if value.is_null() => {
            Error::Option(format!("there is no {name:?} of an edge from {source} to {target} to remove"))
        }
        Update::SetEdgeProperty { source, target, .. } => Error::no_edge(source, target),
        _ => Error::Option("there is no such edge".to_owned()),
    }
}
