//! A commit group: several requests in one batch.
//!
//! Each request is planned as if those before it were applied. An invalid request is cut off again and leaves nothing
//! behind, not even the ids of its new vertices.

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_snapshots::{Direction, Key, Store, value_hash};

use super::apply::{BatchPlan, BatchStep, EdgeUpdate, Logging, PlannedValue};
use super::batch::{ArcBatch, ArcUpdate};
use super::unique::UniqueValues;
use super::update::Update;
use super::values::BatchSchema;
use super::{Live, MemtableWriter, WriteGuard};
use crate::log::Durability;
use crate::validation::ReadKey;
use crate::{Error, Result};

/// Steps whose lists are prefetched while the batch is logged: more would leave the cache again.
const FETCHED_STEPS: usize = 64;
/// A batch with more steps takes no further requests.
const MOST_STEPS: usize = 1 << 16;

/// A commit group in the making.
pub(crate) struct CommitGroup<'a> {
    live: &'a Live,
    writer: &'a mut MemtableWriter,
    plan: BatchPlan,
    unique: UniqueValues,
    is_full: bool,
}

impl WriteGuard<'_> {
    /// Begins a group; its commit gets the next epoch.
    ///
    /// # Errors
    /// Damage in the snapshot; an earlier batch failed half way.
    pub(crate) fn group(&mut self, store: &Store) -> Result<CommitGroup<'_>> {
        store.require_sound()?;
        let live = self.live;
        let writer = self.writer_over(store)?;
        writer.require_whole()?;
        // The buffer of the last batch is used again.
        let steps = std::mem::take(&mut writer.steps);
        let plan = BatchPlan { steps, ..writer.empty_plan() };
        Ok(CommitGroup { live, writer, plan, unique: UniqueValues::default(), is_full: false })
    }
}

impl CommitGroup<'_> {
    /// The epoch from which on its changes are visible.
    pub(crate) fn epoch(&self) -> u64 {
        self.writer.epoch
    }

    /// Number of times that an index was made or dropped.
    pub(crate) fn index_changes(&self) -> u64 {
        self.live.index_changes()
    }

    /// Whether no request may join: the group is large, or a removed vertex makes its changes known only when they are
    /// applied.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full || self.plan.steps.len() > MOST_STEPS
    }

    /// The numbers of the edges that the last request adds to a multigraph, for its answer.
    pub(crate) fn take_numbers(&mut self) -> Vec<Option<u64>> {
        std::mem::take(&mut self.plan.edges.numbers)
    }

    /// Whether a key has an id, including keys that the group has already added.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub(crate) fn has_id(&self, key: &Key) -> Result<bool> {
        Ok(self.writer.id(key, &self.plan)?.is_some())
    }

    /// Adds the updates of a request. Calls `changed` with the read keys that they change, except those that a removed
    /// vertex takes along.
    ///
    /// # Errors
    /// An update is invalid: nothing was added.
    pub(crate) fn add(&mut self, updates: &[Update], mut changed: impl FnMut(ReadKey)) -> Result<()> {
        let before = BatchPlanSize::new(&mut self.plan, updates);
        let mut finder = self.writer.overlay_base.finder();
        for index in 0..updates.len() {
            let num_steps = self.plan.steps.len();
            if let Err(error) = self.writer.plan_update(&updates[index..], &mut self.plan, &mut finder, None) {
                before.forget_after(&mut self.plan);
                return Err(Error::Update { index, error: Box::new(error) });
            }
            // A change of the same pair may have replaced earlier steps.
            for &step in self.plan.steps.iter().skip(num_steps) {
                self.writer.for_each_list(step, |direction, list| self.writer.newest.delta.prefetch(direction, list));
            }
        }
        if let Err(error) = self.unique.add(self.writer, &self.plan, before.num_steps) {
            before.forget_after(&mut self.plan);
            // The set holds the values of the refused request. Rebuild it from the earlier requests, which are known to
            // be valid.
            self.unique = UniqueValues::default();
            self.unique.add(self.writer, &self.plan, 0)?;
            return Err(error);
        }
        // Edges that go with a vertex are known only when they go, so later requests could not be validated.
        self.is_full |=
            self.plan.steps[before.num_steps..].iter().any(|step| matches!(step, BatchStep::RemoveVertex(_)));
        self.writer.for_each_change(&self.plan, before.num_steps, before.vertex_bound, &mut changed);
        Ok(())
    }

    /// Logs the batch, applies it and publishes it. Calls `changed` with the read keys that a removed vertex takes
    /// along.
    ///
    /// # Errors
    /// The WAL cannot be written: nothing has happened. Damage in the snapshot, or a lack of memory.
    pub(crate) fn commit(self, durability: Durability, pool: &Pool, changed: &mut dyn FnMut(ReadKey)) -> Result<()> {
        // Second prefetch stage: takes effect while the record is encoded and written.
        for &step in self.plan.steps.iter().take(FETCHED_STEPS) {
            self.writer.for_each_list(step, |direction, list| self.writer.delta.prefetch_lists(direction, list));
        }
        let logging = Logging { log: self.live.log.as_ref(), durability };
        let version = self.writer.commit_plan(self.plan, logging, pool, changed)?;
        // The record is as durable as asked, so readers may see the version.
        self.live.show(version);
        Ok(())
    }
}

/// The size of a plan before a request.
struct BatchPlanSize {
    num_steps: usize,
    num_keys: usize,
    vertex_bound: usize,
    num_values: usize,
    num_rows: usize,
    /// Properties of vertices and of edges, if the request has values: they may create properties.
    properties: Option<(BatchSchema, BatchSchema)>,
}

impl BatchPlanSize {
    fn new(plan: &mut BatchPlan, updates: &[Update]) -> Self {
        let is_value = |update: &Update| match update {
            Update::SetVertexProperty { .. } | Update::SetEdgeProperty { .. } | Update::ChangeEdge { .. } => true,
            Update::AddEdge { properties, .. } => !properties.is_empty(),
            _ => false,
        };
        let properties = || (plan.properties.clone(), plan.edge_properties.clone());
        Self {
            properties: updates.iter().any(is_value).then(properties),
            num_rows: plan.edges.begin_request(),
            num_steps: plan.steps.len(),
            num_keys: plan.new_keys.len(),
            vertex_bound: plan.vertex_bound,
            num_values: plan.values.len(),
        }
    }

    fn forget_after(self, plan: &mut BatchPlan) {
        plan.steps.truncate(self.num_steps);
        plan.values.truncate(self.num_values);
        for key in plan.new_keys.drain(self.num_keys..) {
            plan.new_ids.remove(&key);
        }
        plan.vertex_bound = self.vertex_bound;
        plan.edges.forget_after(self.num_rows);
        if let Some(properties) = self.properties {
            (plan.properties, plan.edge_properties) = properties;
        }
    }
}

impl MemtableWriter {
    /// Calls `body` with the lists that an edge step changes.
    #[inline]
    fn for_each_list(&self, step: BatchStep, mut body: impl FnMut(Direction, VertexId)) {
        let BatchStep::Edge(edge) = step else { return };
        let options = self.overlay_base.view().options();
        edge.for_each_arc(options, |arc| {
            body(Direction::Out, arc.list);
            if options.stores_in_lists() {
                body(Direction::In, arc.neighbor);
            }
        });
    }

    /// Calls `changed` with the read keys that the arcs of a batch change.
    pub(super) fn for_each_change_of_arcs(&self, batch: &ArcBatch, changed: &mut dyn FnMut(ReadKey)) {
        let options = self.overlay_base.view().options();
        batch.for_each(options, |ArcUpdate { list, neighbor, .. }| {
            ReadKey::for_each_of_edge(options, list, neighbor, &mut *changed);
        });
        // While all ids are live, no vertex can become live again.
        if self.num_vertices < self.vertex_bound {
            batch.for_each_addition(|list, neighbor| {
                self.comes(list, changed);
                self.comes(neighbor, changed);
            });
        }
    }

    /// Calls `changed` with the read keys of a vertex that becomes live again. New vertices had no id that could be
    /// read.
    pub(super) fn comes(&self, vertex: VertexId, changed: &mut dyn FnMut(ReadKey)) {
        if (vertex as usize) < self.vertex_bound && !self.is_live(vertex) {
            changed(ReadKey::Existence(vertex));
            changed(ReadKey::Vertices);
        }
    }

    /// Calls `changed` with the index value that a vertex gets. The old value needs no note: a search for it has read
    /// the vertex.
    fn for_each_change_of_value(&self, planned: &PlannedValue, changed: &mut dyn FnMut(ReadKey)) {
        if self.properties.index(planned.place).is_some()
            && let Some(hash) = value_hash(planned.value.as_value())
        {
            changed(ReadKey::Value(planned.place as u32, hash));
        }
    }

    /// Calls `changed` with the read keys that the steps from `first` on change; ids were below `bound` before them.
    /// Edges and values that go with a vertex are not among them.
    pub(super) fn for_each_change(
        &self,
        plan: &BatchPlan,
        first: usize,
        bound: usize,
        changed: &mut dyn FnMut(ReadKey),
    ) {
        let options = self.overlay_base.view().options();
        // New ids had no read key, but the set of vertices has one.
        if plan.vertex_bound > bound {
            changed(ReadKey::Vertices);
        }
        for step in &plan.steps[first..] {
            match *step {
                BatchStep::Edge(EdgeUpdate { source, target, addition }) => {
                    if addition.is_some() && self.num_vertices < self.vertex_bound {
                        self.comes(source, changed);
                        self.comes(target, changed);
                    }
                    ReadKey::for_each_of_edge(options, source, target, &mut *changed);
                }
                BatchStep::AddVertex(vertex) => self.comes(vertex, changed),
                BatchStep::RemoveVertex(vertex) => {
                    changed(ReadKey::Existence(vertex));
                    changed(ReadKey::Properties(vertex));
                    changed(ReadKey::Vertices);
                }
                BatchStep::SetValue(index) => {
                    let PlannedValue { vertex, place, .. } = plan.values[index];
                    self.comes(vertex, changed);
                    changed(ReadKey::Properties(vertex));
                    changed(ReadKey::Column(place as u32));
                    self.for_each_change_of_value(&plan.values[index], changed);
                }
            }
        }
    }
}
