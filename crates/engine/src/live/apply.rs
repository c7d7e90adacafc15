//! Applies updates to the memtable.
//!
//! First, all updates are checked and their keys become ids; nothing has happened yet. Then the changes are made in
//! steps: all edges up to the removal of a vertex, then the edges that this vertex has by then, and so on.

use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::{MAX_VERTICES, VertexId};
use anden_graph::property::OwnedValue;
use anden_graph::{Graph, GraphKind};
use anden_snapshots::{ArcData, Finder, GraphOptions, Key, KeyScheme, Overlay, OverlayBase};
use foldhash::{HashMap, HashMapExt};

use super::batch::{ArcBatch, ArcUpdate};
use super::below::Below;
use super::bulk::BulkRows;
use super::edges::{EdgePlan, PlannedAction, stored};
use super::entries::entries_of;
use super::pairs::BatchInput;
use super::strict::StrictChecker;
use super::unique::UniqueValues;
use super::update::{EdgeAction, EdgeId, Missing, NewValue, Update};
use super::values::{BatchSchema, typed};
use super::version::LiveVersion;
use super::{MemtableWriter, OVERLAY_BASE_BITS, logged, overflow};
use crate::error::PropertyOf;
use crate::fitting::{EdgeWeight, fitting_key, weight_bits};
use crate::log::{Durability, Log};
use crate::validation::ReadKey;
use crate::{ElementKey, Error, Result};

/// Bytes of the WAL record buffer that are kept for the next batch.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// Fewer updates are planned by one thread: others would not wake in time.
const SERIAL_UPDATES: usize = 4 << 10;

/// Fewer edges with properties are planned one by one: there is little to prefetch.
const SERIAL_ROWS: usize = 64;

/// The changes of a commit: arcs and rows of edges planned together, then the steps of a plan.
pub(super) struct BatchChanges<'b, 'u> {
    pub(super) plan: BatchPlan,
    pub(super) batch: &'b mut ArcBatch,
    pub(super) rows: BulkRows<'u>,
}

/// Where and how durably commits are logged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logging<'a> {
    /// `None` if nothing outlives the handle.
    pub(super) log: Option<&'a Log>,
    pub(super) durability: Durability,
}

/// An update with ids in place of keys.
#[derive(Debug)]
pub(super) enum IdUpdate {
    /// Inserts or deletes an edge.
    Edge(EdgeUpdate),
    /// Sets the weight of all edges of a pair, or adds an edge.
    SetWeight(EdgeUpdate),
    AddVertex(VertexId),
    RemoveVertex(VertexId),
    /// Sets a value of a vertex; the index of the value in the plan.
    SetValue(usize),
    /// Sets a value of the last added edge of a pair, of the property at an index.
    SetEdgeValue {
        source: VertexId,
        target: VertexId,
        place: usize,
        value: OwnedValue,
    },
    /// Changes or removes one edge of a multigraph.
    Action {
        source: VertexId,
        target: VertexId,
        number: u64,
        action: PlannedAction,
    },
}

/// A change that needs no look at the current state.
#[derive(Clone, Copy, Debug)]
pub(super) enum BatchStep {
    /// Inserts an arc or deletes it; in a multigraph, inserts one more or deletes all of the pair.
    Edge(EdgeUpdate),
    AddVertex(VertexId),
    RemoveVertex(VertexId),
    /// Sets a value of a vertex; the index of the value in the plan.
    SetValue(usize),
}

/// An edge with its row and weight; `None` to delete it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeUpdate {
    pub(crate) source: VertexId,
    pub(crate) target: VertexId,
    pub(crate) addition: Option<ArcData>,
}

/// A checked batch, ready to be applied.
#[derive(Debug)]
pub(super) struct BatchPlan {
    pub(super) steps: Vec<BatchStep>,
    /// Keys of the new vertices, ascending by id.
    pub(super) new_keys: Vec<Key>,
    pub(super) new_ids: HashMap<Key, VertexId>,
    pub(super) vertex_bound: usize,
    /// The vertex properties.
    pub(super) properties: BatchSchema,
    pub(super) values: Vec<PlannedValue>,
    pub(super) edge_properties: BatchSchema,
    pub(super) edges: EdgePlan,
}

/// A value for the property of a vertex at an index of the schema.
#[derive(Debug)]
pub(super) struct PlannedValue {
    pub(super) vertex: VertexId,
    pub(super) place: usize,
    pub(super) value: OwnedValue,
}

impl EdgeUpdate {
    /// Calls `body` with the arcs of out-lists that the edge consists of.
    #[inline(always)]
    pub(crate) fn for_each_arc(self, options: &GraphOptions, mut body: impl FnMut(ArcUpdate)) {
        let Self { source, target, addition } = self;
        let arc = |list, neighbor| ArcUpdate { list, neighbor, addition };
        match (options.ordered, options.graph_kind) {
            (true, _) if source == target => {}
            (true, _) => body(arc(source.min(target), source.max(target))),
            (false, GraphKind::Undirected) if source != target => {
                body(arc(source, target));
                body(arc(target, source));
            }
            _ => body(arc(source, target)),
        }
    }
}

impl MemtableWriter {
    /// Applies a batch and returns the version after it. Calls `changed` with each read key that changes.
    pub(super) fn apply(
        &mut self,
        given: BatchInput<'_>,
        logging: Logging<'_>,
        pool: &Pool,
        changed: Option<&mut dyn FnMut(ReadKey)>,
    ) -> Result<Arc<LiveVersion>> {
        let as_updates;
        let (updates, missing) = match given {
            BatchInput::Updates(updates, missing) => (updates, missing),
            BatchInput::Pairs(edges) => {
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

    /// Logs and applies a plan made over the newest version. Returns the version after it. Calls `changed` with the
    /// read keys that a removed vertex takes along.
    ///
    /// # Errors
    /// The WAL: nothing has happened. A lack of memory, or damage: the memtable takes no further commits.
    pub(super) fn commit_plan(
        &mut self,
        plan: BatchPlan,
        logging: Logging<'_>,
        pool: &Pool,
        changed: &mut dyn FnMut(ReadKey),
    ) -> Result<Arc<LiveVersion>> {
        self.with_batch(|this, batch| {
            this.commit(BatchChanges { plan, batch, rows: BulkRows::default() }, logging, pool, changed)
        })
    }

    /// # Errors
    /// An earlier batch failed half way.
    pub(super) fn require_whole(&self) -> Result<()> {
        if self.is_broken {
            return Err(Error::FailedBatch);
        }
        Ok(())
    }

    /// Runs `body` with the buffer for arcs.
    fn with_batch(&mut self, body: impl FnOnce(&mut Self, &mut ArcBatch) -> Result<()>) -> Result<Arc<LiveVersion>> {
        self.require_whole()?;
        // The replacement has the right width, in case the body panics.
        let mut batch = std::mem::replace(&mut self.batch, ArcBatch::new(self.overlay_base.view().options()));
        batch.clear();
        let done = body(self, &mut batch);
        self.batch = batch;
        done.map(|()| Arc::clone(&self.newest))
    }

    /// Logs changes and applies them.
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
                logged::encode(changes, this.overlay_base.view().options(), (this.vertex_bound, num_known), record);
            },
            |this, changes| this.carry_out(changes, pool, changed),
        )
    }

    /// Logs the record that `encode` makes, applies the changes, and makes a version. New ids are below `bound`.
    pub(super) fn commit_as<T>(
        &mut self,
        logging: Logging<'_>,
        bound: usize,
        changes: T,
        encode: impl FnOnce(&Self, &T, &mut Vec<u8>),
        carry_out: impl FnOnce(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        // Before logging: a commit without room must not be in the WAL, or every recovery would fail at it.
        self.make_room(bound)?;
        let epoch = self.epoch;
        if let Some(log) = logging.log {
            let mut record = std::mem::take(&mut self.record);
            record.clear();
            encode(self, &changes, &mut record);
            // The WAL comes before the memtable: a commit that readers see is logged.
            let appended = log.append(epoch, &record, logging.durability);
            record.shrink_to(MAX_RECORD_BYTES);
            self.record = record;
            appended?;
        }
        // From here on only a lack of memory or damage can stop the batch, half applied.
        self.is_broken = true;
        if let Err(error) = carry_out(self, changes) {
            if let Some(log) = logging.log {
                // The batch is not published, so recovery must not find its record.
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
        let options = *self.overlay_base.view().options();
        for step in plan.steps.drain(..) {
            match step {
                BatchStep::Edge(edge) => {
                    if edge.addition.is_some() {
                        self.revive(edge.source);
                        self.revive(edge.target);
                    }
                    edge.for_each_arc(&options, |arc| batch.push(arc));
                }
                BatchStep::AddVertex(vertex) => self.revive(vertex),
                // The vertex takes along the edges that it has by now: apply the earlier steps first.
                BatchStep::RemoveVertex(vertex) if self.is_live(vertex) => {
                    self.change_arcs(batch, pool)?;
                    self.remove_vertex(vertex, batch, pool, changed)?;
                }
                BatchStep::RemoveVertex(_) => {}
                BatchStep::SetValue(place) => self.set_value(&mut plan.values[place]),
            }
        }
        self.steps = plan.steps;
        self.change_arcs(batch, pool)
    }

    /// Adds the new vertices, properties and rows of a plan. Room is made already.
    pub(super) fn take_vertices(&mut self, plan: &mut BatchPlan) {
        for key in plan.new_keys.drain(..) {
            self.keys.push(key, self.vertex_bound as VertexId);
            self.vertex_bound += 1;
            self.num_vertices += 1;
        }
        // Without keys, all ids below the largest are vertices.
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

    /// Plans many updates on all workers, if none depends on earlier ones: each concerns an edge, its ends are known or
    /// dense ids, and it is valid. The arcs go to `batch`. `None` otherwise.
    fn plan_known_edges<'u>(
        &self,
        updates: &'u [Update],
        missing: Missing,
        batch: &mut ArcBatch,
        pool: &Pool,
    ) -> Option<(BatchPlan, BulkRows<'u>)> {
        let options = self.overlay_base.view().options();
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
        let arcs_each = if options.graph_kind == GraphKind::Undirected { 2 } else { 1 };
        let is_every_id_live = self.num_vertices == self.vertex_bound;
        let bounds = batch.collect(pool, updates.len(), arcs_each, |piece, push| {
            let mut bound = self.vertex_bound;
            for index in piece {
                let edge = edge(index)?;
                if options.ordered && edge.source == edge.target && !is_every_id_live {
                    // A loop is no arc here, but must add its vertex.
                    return None;
                }
                bound = bound.max(edge.source as usize + 1).max(edge.target as usize + 1);
                edge.for_each_arc(options, &mut *push);
            }
            Some(bound)
        });
        let bound = bounds.into_iter().try_fold(self.vertex_bound, |all, bound| Some(all.max(bound?)));
        if options.has_rows() {
            // Removals leave gaps in the row numbers.
            nothing_new.edges.begin_at(first_row + updates.len() as u64);
        }
        Some((BatchPlan { vertex_bound: bound?, ..nothing_new }, BulkRows::default()))
    }

    /// The id of a key that needs no new one. With dense keys, an added edge may have any id.
    pub(super) fn known_id(&self, key: &Key, is_added: bool, nothing_new: &BatchPlan) -> Option<VertexId> {
        match (self.overlay_base.view().options().keys, key) {
            (KeyScheme::Dense, &Key::Integer(key)) => {
                let bound = if is_added { MAX_VERTICES } else { self.vertex_bound };
                (key < bound as u64).then_some(key as VertexId)
            }
            _ => self.id(key, nothing_new).ok().flatten(),
        }
    }

    pub(super) fn empty_plan(&self) -> BatchPlan {
        BatchPlan {
            steps: Vec::new(),
            new_keys: Vec::new(),
            new_ids: HashMap::new(),
            vertex_bound: self.vertex_bound,
            properties: BatchSchema::new(PropertyOf::Vertices, Arc::clone(&self.properties.schema)),
            values: Vec::new(),
            edge_properties: BatchSchema::new(PropertyOf::Edges, Arc::clone(&self.edges.schema)),
            edges: EdgePlan::new(self.edges.next),
        }
    }

    /// Checks all updates, and resolves their keys.
    pub(super) fn plan(&self, updates: &[Update], missing: Missing) -> Result<BatchPlan> {
        let mut plan = self.empty_plan();
        let mut strict = (missing == Missing::Strict).then(|| StrictChecker::new(self));
        let mut finder = self.overlay_base.finder();
        for index in 0..updates.len() {
            self.plan_update(&updates[index..], &mut plan, &mut finder, strict.as_mut())
                .map_err(|error| Error::Update { index, error: Box::new(error) })?;
        }
        UniqueValues::default().add(self, &plan, 0)?;
        Ok(plan)
    }

    /// Plans the first of `updates`; the others give new properties their types. `strict` also requires existence.
    pub(super) fn plan_update(
        &self,
        updates: &[Update],
        plan: &mut BatchPlan,
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
                // The usual case needs no rows.
                _ => plan.steps.push(BatchStep::Edge(edge)),
            },
            Some(IdUpdate::SetWeight(edge)) => self.plan_weight(edge, plan, finder)?,
            Some(IdUpdate::Action { source, target, number, action }) => {
                if !self.plan_action((source, target), number, action, plan, finder)? {
                    return Err(missing_edge(update));
                }
                if let (Some(strict), Some(ends)) = (strict, stored(self.options(), (source, target))) {
                    strict.see_edges(ends, !self.planned_edges(ends, plan, finder)?.is_empty());
                }
            }
            Some(IdUpdate::AddVertex(vertex)) => plan.steps.push(BatchStep::AddVertex(vertex)),
            Some(IdUpdate::RemoveVertex(vertex)) => plan.steps.push(BatchStep::RemoveVertex(vertex)),
            Some(IdUpdate::SetValue(place)) => plan.steps.push(BatchStep::SetValue(place)),
            Some(IdUpdate::SetEdgeValue { source, target, place, value }) => {
                let must_be_there = strict.is_some() || value != OwnedValue::Null;
                if !self.plan_edge_value((source, target), place, value, plan, finder)? && must_be_there {
                    return Err(missing_edge(update));
                }
            }
        }
        Ok(())
    }

    /// The first of `updates` with ids; `None` if it changes nothing.
    #[inline(always)]
    fn with_ids(
        &self,
        updates: &[Update],
        plan: &mut BatchPlan,
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
        plan: &mut BatchPlan,
        strict: Option<&StrictChecker<'_>>,
    ) -> Result<EdgeUpdate> {
        let bits = weight_bits((source, target), weight, self.overlay_base.view().options())?;
        let source = self.id_to_be(source, plan, strict)?;
        let target = self.id_to_be(target, plan, strict)?;
        Ok(EdgeUpdate { source, target, addition: Some(ArcData::of_weight(bits)) })
    }

    /// Plans a value of a vertex. Null adds no vertex.
    fn vertex_value(
        &self,
        updates: &[Update],
        plan: &mut BatchPlan,
        strict: Option<&mut StrictChecker<'_>>,
    ) -> Result<Option<IdUpdate>> {
        let Some(Update::SetVertexProperty { vertex, name, value }) = updates.first() else { return Ok(None) };
        let said_of_it = updates.iter().filter_map(|update| match update {
            Update::SetVertexProperty { name: other, value, .. } if other == name => Some(value),
            _ => None,
        });
        let (place, property_type) = plan.properties.find(name, said_of_it)?;
        let value = typed(name, value, property_type).map_err(|error| error.for_vertex(vertex))?;
        let id = match value.as_value().is_null() && strict.is_none() {
            true => self.id(vertex, plan)?,
            false => Some(self.id_to_be(vertex, plan, strict.as_deref())?),
        };
        if let (Some(strict), Some(id)) = (strict, id)
            && !strict.see_value(place, id, &value)?
        {
            return Err(Error::NoValueToRemove { element: ElementKey::Vertex(vertex.clone()), property: name.clone() });
        }
        plan.values.extend(id.map(|vertex| PlannedValue { vertex, place, value }));
        Ok(id.map(|_| IdUpdate::SetValue(plan.values.len() - 1)))
    }

    /// Plans a value of an edge. The edge must exist, unless the value is null.
    fn edge_value(
        &self,
        updates: &[Update],
        plan: &mut BatchPlan,
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

    /// Resolves a change of one edge of a multigraph.
    fn edge_action(&self, updates: &[Update], plan: &mut BatchPlan) -> Result<IdUpdate> {
        let Some(Update::ChangeEdge { id: EdgeId { source, target, number }, action }) = updates.first() else {
            return Err(Error::internal("an update of one edge names none"));
        };
        let options = self.options();
        if !options.multigraph {
            return Err(Error::no_edge_numbers((source, target), *number));
        }
        let ends = self.id(source, plan)?.zip(self.id(target, plan)?);
        let numbered = |error: Error| error.with_number(*number);
        let action = match action {
            EdgeAction::Remove => PlannedAction::Remove,
            &EdgeAction::SetWeight(weight) => {
                PlannedAction::SetWeight(weight_bits((source, target), Some(weight), options).map_err(numbered)?)
            }
            EdgeAction::SetProperty { name, value } => {
                let planned = self.edge_property((source, target), (name, value), updates, plan);
                let (place, value) = planned.map_err(numbered)?;
                PlannedAction::SetValue(place, value)
            }
        };
        let (source, target) = ends.ok_or_else(|| Error::no_numbered_edge(source, target, *number))?;
        Ok(IdUpdate::Action { source, target, number: *number, action })
    }

    /// The values of the edge that the first of `updates` adds, with the indexes of their properties.
    fn edge_values(&self, updates: &[Update], plan: &mut BatchPlan) -> Result<Vec<(usize, OwnedValue)>> {
        let Some(Update::AddEdge { source, target, properties, .. }) = updates.first() else { return Ok(Vec::new()) };
        let value =
            |(name, value): &(Arc<str>, NewValue)| self.edge_property((source, target), (name, value), updates, plan);
        properties.iter().map(value).collect()
    }

    /// The index of an edge property, and a value in its type. The type of a new one holds all its values in `updates`.
    fn edge_property(
        &self,
        ends: (&Key, &Key),
        (name, value): (&str, &NewValue),
        updates: &[Update],
        plan: &mut BatchPlan,
    ) -> Result<(usize, OwnedValue)> {
        if !self.overlay_base.view().options().edge_properties {
            return Err(Error::no_edge_properties(ends));
        }
        let (place, property_type) = plan.edge_properties.find(name, said_of_edges(updates, name))?;
        Ok((place, typed(name, value, property_type).map_err(|error| error.for_edge(ends))?))
    }

    /// The id of a key that names a vertex, or did.
    pub(super) fn id(&self, key: &Key, plan: &BatchPlan) -> Result<Option<VertexId>> {
        let view = self.overlay_base.view();
        let key = fitting_key(key, view.options().keys)?;
        if view.options().keys == KeyScheme::Dense {
            let Key::Integer(id) = key else { return Ok(None) };
            return Ok((id < plan.vertex_bound as u64).then_some(id as VertexId));
        }
        let immutable = || self.immutable.as_ref().and_then(|immutable| immutable.version.vertex(&key));
        if let Some(id) = self.keys.id(&key).or_else(|| plan.new_ids.get(&key).copied()).or_else(immutable) {
            return Ok(Some(id));
        }
        Ok(view.vertex_dead_or_alive(&key)?.map(|(id, _)| id))
    }

    /// The id of a key, a new one if the key has none. With `strict`, the vertex must exist.
    fn id_to_be(&self, key: &Key, plan: &mut BatchPlan, strict: Option<&StrictChecker<'_>>) -> Result<VertexId> {
        let known = self.id(key, plan)?;
        if let Some(strict) = strict
            && !known.is_some_and(|id| strict.is_live(id))
        {
            return Err(Error::NoVertex { key: key.clone() });
        }
        if let Some(id) = known {
            return Ok(id);
        }
        let key = fitting_key(key, self.overlay_base.view().options().keys)?;
        let id = match (self.overlay_base.view().options().keys, &key) {
            (KeyScheme::Dense, Key::Integer(id)) => *id,
            _ => plan.vertex_bound as u64,
        };
        if id >= MAX_VERTICES as u64 {
            return Err(Error::no_id_left(&key, self.overlay_base.view().options().keys));
        }
        plan.vertex_bound = id as usize + 1;
        if self.overlay_base.view().options().keys != KeyScheme::Dense {
            plan.new_ids.insert(key.clone(), id as VertexId);
            plan.new_keys.push(key);
        }
        Ok(id as VertexId)
    }

    /// Makes room for vertices below `bound`.
    ///
    /// # Errors
    /// Not enough memory or address space.
    pub(super) fn make_room(&mut self, bound: usize) -> Result<()> {
        if bound <= self.overlay_base.capacity() {
            // An overlay base has room for whole pages, which may exceed the container's room.
            return self.grow_delta(self.overlay_base.capacity().min(MAX_VERTICES));
        }
        let capacity = overflow(bound);
        let needed = (capacity * self.directions().len()) as u64 * OVERLAY_BASE_BITS / 8;
        let budget = anden_base::memory::available();
        if needed > budget {
            let what = format!("to change vertices up to the {bound}-th id");
            return Err(Error::Memory { what, needed, budget });
        }
        let overlay_base = OverlayBase::new(self.overlay_base.view(), capacity);
        for &direction in self.directions() {
            overlay_base.learn(direction, &self.overlay_base);
        }
        self.grow_delta(capacity)?;
        self.overlay_base = Arc::new(overlay_base);
        // The prepared overlay base is too small now; the checkpoint makes another.
        self.next_overlay_base = None;
        Ok(())
    }

    pub(super) fn is_live(&self, vertex: VertexId) -> bool {
        let immutable = || self.immutable.as_ref().and_then(|immutable| immutable.version.is_live(vertex));
        let known = self.vertices.is_live(vertex, self.epoch).or_else(immutable);
        known.unwrap_or_else(|| self.overlay_base.view().is_live(vertex))
    }

    /// Makes an id a live vertex.
    pub(super) fn revive(&mut self, vertex: VertexId) {
        if !self.is_live(vertex) {
            self.vertices.set(vertex, self.epoch, true);
            self.num_vertices += 1;
        }
    }

    pub(super) fn remove_vertex(
        &mut self,
        vertex: VertexId,
        batch: &mut ArcBatch,
        pool: &Pool,
        changed: &mut dyn FnMut(ReadKey),
    ) -> Result<()> {
        // This version includes the earlier steps of the batch.
        let view = self.version().view();
        let entries = entries_of(&view, &[vertex], pool, &Silent)?;
        for (source, target) in entries {
            ReadKey::for_each_of_edge(self.overlay_base.view().options(), source, target, &mut *changed);
            let gone = EdgeUpdate { source, target, addition: None };
            gone.for_each_arc(self.overlay_base.view().options(), |arc| batch.push(arc));
        }
        self.change_arcs(batch, pool)?;
        self.lose_vertex(vertex)
    }

    /// Removes a vertex that has no edges any more.
    pub(super) fn lose_vertex(&mut self, vertex: VertexId) -> Result<()> {
        self.vertices.set(vertex, self.epoch, false);
        self.num_vertices -= 1;
        self.clear_values(vertex)
    }

    /// Removes all values of a vertex.
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

    /// Moves a value from the plan to its vertex, which becomes live. Null does nothing to a removed vertex.
    pub(super) fn set_value(&mut self, planned: &mut PlannedValue) {
        let PlannedValue { vertex, place, ref mut value } = *planned;
        if !value.as_value().is_null() {
            self.revive(vertex);
        } else if !self.is_live(vertex) {
            return;
        }
        self.properties.history.set(self.epoch, place, vertex, std::mem::replace(value, OwnedValue::Null));
    }

    /// Makes the ends of added edges live vertices.
    pub(super) fn revive_ends(&mut self, batch: &ArcBatch) {
        // While all ids are live, no end can be dead, and the batch need not be scanned.
        if self.num_vertices < self.vertex_bound {
            batch.for_each_addition(|list, neighbor| {
                self.revive(list);
                self.revive(neighbor);
            });
        }
    }

    /// Applies the arcs of a batch and clears it. If one arc changes several times, the last change counts.
    pub(super) fn change_arcs(&mut self, batch: &mut ArcBatch, pool: &Pool) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let immutable = self.immutable.as_ref().map(|immutable| &*immutable.version);
        let below = Below::new(&self.overlay_base, self.next_overlay_base.as_deref(), immutable);
        self.delta.apply(pool, &below, batch)?;
        batch.clear();
        Ok(())
    }
}

/// All values that updates give an edge property.
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

/// The error for a change of a missing edge, or for a missing value to remove.
fn missing_edge(update: &Update) -> Error {
    match update {
        Update::SetEdgeProperty { source, target, name, value } if value.is_null() => {
            Error::NoValueToRemove { element: ElementKey::edge((source, target)), property: name.clone() }
        }
        Update::SetEdgeProperty { source, target, .. } => Error::no_edge(source, target),
        Update::ChangeEdge { id, .. } => Error::no_numbered_edge(&id.source, &id.target, id.number),
        _ => Error::internal("an update without an edge misses one"),
    }
}
