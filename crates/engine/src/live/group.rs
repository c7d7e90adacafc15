//! Several requests made into one batch.
//!
//! Each request is planned behind those before it, as if they had been applied. One that is not right is cut off again:
//! it leaves nothing behind, not even the ids of its new vertices.

use base::VertexId;
use base::parallel::Pool;
use lama::{Key, Side, Store, value_hash};

use super::apply::{EdgeUpdate, Logging, Plan, PlannedValue, Step};
use super::batch::{ArcUpdate, Batch};
use super::unique::UniqueValues;
use super::update::Update;
use super::values::Properties;
use super::{Live, Turn, Writer};
use crate::log::Durability;
use crate::validation::ReadKey;
use crate::{Error, Result};

/// Lists of so many steps are fetched while the batch is logged: those of more would not stay.
const FETCHED_STEPS: usize = 64;
/// A batch of more steps than this is applied before others join it.
const MOST_STEPS: usize = 1 << 16;

/// A batch in the making.
pub(crate) struct Group<'a> {
    live: &'a Live,
    writer: &'a mut Writer,
    plan: Plan,
    unique: UniqueValues,
    is_full: bool,
}

impl Turn<'_> {
    /// Begins a batch, which is the next epoch if it is committed.
    ///
    /// # Errors
    /// Damage in the snapshot; an earlier batch failed half way.
    pub(crate) fn group(&mut self, store: &Store) -> Result<Group<'_>> {
        store.require_sound()?;
        let live = self.live;
        let writer = self.writer_over(store)?;
        writer.require_whole()?;
        let steps = std::mem::take(&mut writer.steps);
        let plan = Plan { steps, ..writer.empty_plan() };
        Ok(Group { live, writer, plan, unique: UniqueValues::default(), is_full: false })
    }
}

impl Group<'_> {
    /// The epoch from which on its changes are seen.
    pub(crate) fn epoch(&self) -> u64 {
        self.writer.epoch
    }

    /// How often an index was made or dropped.
    pub(crate) fn index_changes(&self) -> u64 {
        self.live.index_changes()
    }

    /// Whether no request can join it any more: it is large, or what the last one changes is known only when it is
    /// applied.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full || self.plan.steps.len() > MOST_STEPS
    }

    /// The numbers of the edges that the last request adds to a multigraph, as the answer of its commit has them.
    pub(crate) fn take_numbers(&mut self) -> Vec<Option<u64>> {
        std::mem::take(&mut self.plan.edges.numbers)
    }

    /// Whether a key has an id, with what was added so far.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub(crate) fn has_id(&self, key: &Key) -> Result<bool> {
        Ok(self.writer.id(key, &self.plan)?.is_some())
    }

    /// Adds the updates of a request; `changed` is called with what they change, but for what goes with a vertex.
    ///
    /// # Errors
    /// One of them is not right: nothing was added.
    pub(crate) fn add(&mut self, updates: &[Update], mut changed: impl FnMut(ReadKey)) -> Result<()> {
        let before = Mark::new(&mut self.plan, updates);
        let mut finder = self.writer.underlay.finder();
        for index in 0..updates.len() {
            let num_steps = self.plan.steps.len();
            if let Err(error) = self.writer.plan_update(&updates[index..], &mut self.plan, &mut finder, None) {
                before.cut(&mut self.plan);
                return Err(Error::Update { index, error: Box::new(error) });
            }
            // A change of the same pair may have taken the place of the one before.
            for &step in self.plan.steps.iter().skip(num_steps) {
                self.writer.for_each_list(step, |side, list| self.writer.newest.delta.prefetch(side, list));
            }
        }
        if let Err(error) = self.unique.add(self.writer, &self.plan, before.num_steps) {
            before.cut(&mut self.plan);
            // What the request was to change is in there; what those before change is known to be right.
            self.unique = UniqueValues::default();
            self.unique.add(self.writer, &self.plan, 0)?;
            return Err(error);
        }
        self.is_full |= self.plan.steps[before.num_steps..].iter().any(|step| matches!(step, Step::RemoveVertex(_)));
        self.writer.for_each_change(&self.plan, before.num_steps, before.vertex_bound, &mut changed);
        Ok(())
    }

    /// Logs the batch, applies it and shows it; `changed` is called with what goes with a vertex.
    ///
    /// # Errors
    /// The log cannot be written: nothing has happened. Damage in the snapshot, or a lack of memory.
    pub(crate) fn commit(self, durability: Durability, pool: &Pool, changed: &mut dyn FnMut(ReadKey)) -> Result<()> {
        for &step in self.plan.steps.iter().take(FETCHED_STEPS) {
            self.writer.for_each_list(step, |side, list| self.writer.delta.prefetch_lists(side, list));
        }
        let logging = Logging { log: self.live.log.as_ref(), durability };
        let version = self.writer.commit_plan(self.plan, logging, pool, changed)?;
        self.live.show(version);
        Ok(())
    }
}

/// What a plan was before a request.
struct Mark {
    num_steps: usize,
    num_keys: usize,
    vertex_bound: usize,
    num_values: usize,
    num_rows: usize,
    /// Of vertices and of edges, where the request has values: they may need new properties.
    properties: Option<(Properties, Properties)>,
}

impl Mark {
    fn new(plan: &mut Plan, updates: &[Update]) -> Self {
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

    fn cut(self, plan: &mut Plan) {
        plan.steps.truncate(self.num_steps);
        plan.values.truncate(self.num_values);
        for key in plan.new_keys.drain(self.num_keys..) {
            plan.new_ids.remove(&key);
        }
        plan.vertex_bound = self.vertex_bound;
        plan.edges.cut(self.num_rows);
        if let Some(properties) = self.properties {
            (plan.properties, plan.edge_properties) = properties;
        }
    }
}

impl Writer {
    /// Calls `body` with the lists that a step changes, of an edge.
    #[inline]
    fn for_each_list(&self, step: Step, mut body: impl FnMut(Side, VertexId)) {
        let Step::Edge(edge) = step else { return };
        let options = self.underlay.view().options();
        edge.for_each_arc(options, |arc| {
            body(Side::Out, arc.list);
            if options.stores_in_lists() {
                body(Side::In, arc.neighbour);
            }
        });
    }

    /// Calls `changed` with what arcs change that are no steps of a plan.
    pub(super) fn for_each_change_of_arcs(&self, batch: &Batch, changed: &mut dyn FnMut(ReadKey)) {
        let options = self.underlay.view().options();
        batch.for_each(options, |ArcUpdate { list, neighbour, .. }| {
            ReadKey::for_each_of_edge(options, list, neighbour, &mut *changed);
        });
        if self.num_vertices < self.vertex_bound {
            batch.for_each_addition(|list, neighbour| {
                self.comes(list, changed);
                self.comes(neighbour, changed);
            });
        }
    }

    /// Calls `changed` with what changes if a vertex is to be there. New ones had no id that anybody could have read;
    /// those that went and come again have.
    pub(super) fn comes(&self, vertex: VertexId, changed: &mut dyn FnMut(ReadKey)) {
        if (vertex as usize) < self.vertex_bound && !self.is_live(vertex) {
            changed(ReadKey::Existence(vertex));
            changed(ReadKey::Vertices);
        }
    }

    /// Calls `changed` with what a new value changes in the index of its property. The vertex that had it before is read
    /// by a search for that value.
    fn for_each_change_of_value(&self, planned: &PlannedValue, changed: &mut dyn FnMut(ReadKey)) {
        if self.properties.index(planned.place).is_some()
            && let Some(hash) = value_hash(planned.value.as_value())
        {
            changed(ReadKey::Value(planned.place as u32, hash));
        }
    }

    /// Calls `changed` with what the steps of a plan from `first` on change, before which ids were below `bound`; not
    /// with the edges and values that go with a vertex.
    pub(super) fn for_each_change(&self, plan: &Plan, first: usize, bound: usize, changed: &mut dyn FnMut(ReadKey)) {
        let options = self.underlay.view().options();
        if plan.vertex_bound > bound {
            changed(ReadKey::Vertices);
        }
        for step in &plan.steps[first..] {
            match *step {
                Step::Edge(EdgeUpdate { source, target, addition }) => {
                    if addition.is_some() && self.num_vertices < self.vertex_bound {
                        self.comes(source, changed);
                        self.comes(target, changed);
                    }
                    ReadKey::for_each_of_edge(options, source, target, &mut *changed);
                }
                Step::AddVertex(vertex) => self.comes(vertex, changed),
                Step::RemoveVertex(vertex) => {
                    changed(ReadKey::Existence(vertex));
                    changed(ReadKey::Properties(vertex));
                    changed(ReadKey::Vertices);
                }
                Step::SetValue(index) => {
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
