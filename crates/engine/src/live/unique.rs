//! Values that must be unique: the leader checks what a batch makes of them, before anything happens.
//!
//! What counts is the state behind each request as a whole: two vertices may swap their values in one batch. Only a value
//! that a request sets can break the rule, so only the vertices with such values are looked up.

use std::collections::HashMap;

use base::VertexId;
use graph::property::OwnedValue;
use lama::{Key, KeyScheme, value_hash};

use super::Writer;
use super::apply::{Plan, PlannedValue, Step};
use super::version::LiveVersion;
use crate::load::VertexKeys;
use crate::{Error, Result};

/// What the steps of a plan make of values that must be unique.
#[derive(Debug, Default)]
pub(super) struct UniqueValues {
    /// By place of the property and vertex; null where the value goes.
    values: HashMap<(usize, VertexId), OwnedValue>,
    /// The vertices that got a value, by place of the property and hash; perhaps another one since.
    candidates: HashMap<(usize, u32), Vec<VertexId>>,
}

impl UniqueValues {
    /// Adds the steps of a plan from `first` on.
    ///
    /// Cost: none where no index is unique; else a search for each value that such an index has.
    ///
    /// # Errors
    /// [`Error::UniqueViolation`]; damage in the snapshot.
    pub(super) fn add(&mut self, writer: &Writer, plan: &Plan, first: usize) -> Result<()> {
        if writer.properties.unique().next().is_none() {
            return Ok(());
        }
        let is_unique = |place: usize| writer.properties.unique().any(|unique| unique == place);
        for step in &plan.steps[first..] {
            match *step {
                Step::SetValue(index) => {
                    let PlannedValue { vertex, place, ref value } = plan.values[index];
                    if is_unique(place) {
                        self.set(place, vertex, value.clone());
                    }
                }
                Step::RemoveVertex(vertex) => {
                    writer.properties.unique().for_each(|place| self.set(place, vertex, OwnedValue::Null));
                }
                Step::Edge(_) | Step::AddVertex(_) => {}
            }
        }
        for step in &plan.steps[first..] {
            let Step::SetValue(index) = *step else { continue };
            let PlannedValue { vertex, place, ref value } = plan.values[index];
            // A later step of the request may have another value for the vertex.
            if is_unique(place)
                && self.values.get(&(place, vertex)) == Some(value)
                && let Some(holder) = self.other_holder(&writer.newest, place, vertex, value)?
            {
                let name = plan.properties.schema().get(place).map_or("", |(name, _)| name);
                let (key, holder) = (writer.planned_key(plan, vertex)?, writer.planned_key(plan, holder)?);
                return Err(Error::not_unique(name, value, &key, &holder));
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

    /// Another vertex that has the value behind all steps.
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
        Ok(found.find(|&other| other != vertex && !self.values.contains_key(&(place, other))))
    }
}

impl Writer {
    /// The key of a vertex, perhaps one that a plan makes.
    fn planned_key(&self, plan: &Plan, vertex: VertexId) -> Result<Key> {
        match (vertex as usize).checked_sub(self.vertex_bound) {
            Some(_) if self.options().keys == KeyScheme::Dense => Ok(Key::Integer(vertex.into())),
            Some(index) => Ok(plan.new_keys[index].clone()),
            None => Ok(self.newest.view().key(vertex)?),
        }
    }
}

impl LiveVersion {
    /// Refuses a version in which two vertices have the same value of a property whose values are unique; `new_keys` are
    /// those of the vertices that the snapshot does not have.
    ///
    /// # Errors
    /// [`Error::UniqueViolation`]; damage in the snapshot.
    pub(super) fn require_unique(&self, new_keys: &VertexKeys) -> Result<()> {
        let bound = graph::Graph::vertex_bound(self.snapshot());
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
                    return Err(Error::not_unique(name, &value.into(), &key(vertex)?, &key(holder)?));
                }
            }
        }
        Ok(())
    }
}
