//! Unique indexes: the leader checks the values of a batch before anything happens.
//!
//! The state after each whole request counts: two vertices may swap their values in one batch. Only a value that a
//! request sets can violate uniqueness, so only vertices with such values are looked up.

use anden_base::VertexId;
use anden_graph::property::OwnedValue;
use anden_snapshots::{Key, KeyScheme, value_hash};
use foldhash::HashMap;

use super::MemtableWriter;
use super::apply::{BatchPlan, BatchStep, PlannedValue};
use super::version::LiveVersion;
use crate::load::VertexKeys;
use crate::{Error, Result};

/// The values of a plan for properties with a unique index.
#[derive(Debug, Default)]
pub(super) struct UniqueValues {
    /// By property and vertex; null if the value is removed.
    values: HashMap<(usize, VertexId), OwnedValue>,
    /// The vertices that got a value, by property and hash; they may have another value since.
    candidates: HashMap<(usize, u32), Vec<VertexId>>,
}

impl UniqueValues {
    /// Adds the steps of a plan from `first` on.
    ///
    /// Cost: none without a unique index; otherwise one search for each set value of such a property.
    ///
    /// # Errors
    /// [`Error::UniqueViolation`]; damage in the snapshot.
    pub(super) fn add(&mut self, writer: &MemtableWriter, plan: &BatchPlan, first: usize) -> Result<()> {
        if writer.properties.unique().next().is_none() {
            return Ok(());
        }
        let is_unique = |place: usize| writer.properties.unique().any(|unique| unique == place);
        for step in &plan.steps[first..] {
            match *step {
                BatchStep::SetValue(index) => {
                    let PlannedValue { vertex, place, ref value } = plan.values[index];
                    if is_unique(place) {
                        self.set(place, vertex, value.clone());
                    }
                }
                BatchStep::RemoveVertex(vertex) => {
                    // A removed vertex leaves its values to others.
                    writer.properties.unique().for_each(|place| self.set(place, vertex, OwnedValue::Null));
                }
                BatchStep::Edge(_) | BatchStep::AddVertex(_) => {}
            }
        }
        // A second pass, because the state after the whole request counts: vertices may swap their values.
        for step in &plan.steps[first..] {
            let BatchStep::SetValue(index) = *step else { continue };
            let PlannedValue { vertex, place, ref value } = plan.values[index];
            // A later step of the request may have set another value.
            if is_unique(place)
                && self.values.get(&(place, vertex)) == Some(value)
                && let Some(holder) = self.other_holder(&writer.newest, place, vertex, value)?
            {
                let name = plan.properties.schema().get(place).map_or("", |(name, _)| name);
                let (key, holder) = (writer.planned_key(plan, vertex)?, writer.planned_key(plan, holder)?);
                return Err(Error::not_unique(name, value, key, holder));
            }
        }
        Ok(())
    }

    fn set(&mut self, place: usize, vertex: VertexId, value: OwnedValue) {
        if let Some(hash) = value_hash(value.as_value()) {
            self.candidates.entry((place, hash)).or_default().push(vertex);
        }
        self.values.insert((place, vertex), value);
    }

    /// Another vertex that has the value after all steps.
    fn other_holder(
        &self,
        newest: &LiveVersion,
        place: usize,
        vertex: VertexId,
        value: &OwnedValue,
    ) -> Result<Option<VertexId>> {
        let Some(hash) = value_hash(value.as_value()) else { return Ok(None) };
        let mut planned = self.candidates.get(&(place, hash)).into_iter().flatten();
        let holds = |&&other: &&VertexId| other != vertex && self.values.get(&(place, other)) == Some(value);
        if let Some(&holder) = planned.find(holds) {
            return Ok(Some(holder));
        }
        let mut found = newest.find_over(place, value.as_value())?.into_iter();
        // A vertex of the plan has another value by now, or was found above.
        Ok(found.find(|&other| other != vertex && !self.values.contains_key(&(place, other))))
    }
}

impl MemtableWriter {
    /// The key of a vertex, perhaps of a new one in the plan.
    fn planned_key(&self, plan: &BatchPlan, vertex: VertexId) -> Result<Key> {
        match (vertex as usize).checked_sub(self.vertex_bound) {
            Some(_) if self.options().keys == KeyScheme::Dense => Ok(Key::Integer(vertex.into())),
            Some(index) => Ok(plan.new_keys[index].clone()),
            None => Ok(self.newest.view().key(vertex)?),
        }
    }
}

impl LiveVersion {
    /// Refuses a version in which two vertices share a value of a property with a unique index. `new_keys` are the keys
    /// of the vertices that the snapshot does not have.
    ///
    /// # Errors
    /// [`Error::UniqueViolation`]; damage in the snapshot.
    pub(super) fn require_unique(&self, new_keys: &VertexKeys) -> Result<()> {
        let bound = anden_graph::Graph::vertex_bound(self.snapshot());
        let key = |vertex: VertexId| match (vertex as usize).checked_sub(bound) {
            Some(index) => Ok(new_keys.key(index).unwrap_or(Key::Integer(vertex.into()))),
            None => Ok(self.snapshot().key(vertex)?),
        };
        for place in self.properties.unique() {
            for (vertex, value) in self.properties.history.values(self.epoch, place) {
                let is_other = |&holder: &VertexId| holder != vertex;
                if value.is_null() {
                    continue;
                }
                if let Some(holder) = self.find_over(place, value)?.into_iter().find(is_other) {
                    let name = self.properties.schema.get(place).map_or("", |(name, _)| name);
                    let key: &dyn Fn(VertexId) -> Result<Key> = &key;
                    return Err(Error::not_unique(name, &value.into(), key(vertex)?, key(holder)?));
                }
            }
        }
        Ok(())
    }
}
