//! Property values in a transaction.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::property::{OwnedValue, PropertySchema};
use anden_graph::{Direction, Graph};
use anden_snapshots::{IndexKind, Key, value_hash};

use super::OptimisticTransaction;
use crate::error::PropertyOf;
use crate::live::{NewValue, Update, sought_value, typed};
use crate::validation::{ReadKey, stored_ends};
use crate::{Error, Result};

impl OptimisticTransaction<'_> {
    /// The value of a vertex property; null if the vertex has none, or the property does not exist.
    ///
    /// # Errors
    /// There is no such vertex; damage found on the way.
    pub fn vertex_value(&self, key: &Key, name: &str) -> Result<OwnedValue> {
        let vertex = self.require_vertex(key)?;
        if let Some(value) = self.own.value(vertex, name) {
            return Ok(value.clone());
        }
        // The removal took the values along, whatever others commit.
        if self.own.is_gone(vertex) {
            return Ok(OwnedValue::Null);
        }
        self.note_of(vertex, ReadKey::Properties(vertex));
        let properties = self.view.properties();
        match properties.schema().find(name) {
            Some(place) if (vertex as usize) < self.own.first_new => {
                let value = properties.schema().owned(place, properties.value(place, vertex)?);
                self.view.check()?;
                Ok(value)
            }
            _ => Ok(OwnedValue::Null),
        }
    }

    /// The vertices with a value of a property, ascending by id. Null finds none. With an index, the transaction
    /// conflicts with each commit that gives a vertex this value, or changes or removes a found vertex. Without an
    /// index, it conflicts with each commit that sets the property of any vertex.
    ///
    /// Cost: a search in the index; without one, a scan of the property.
    ///
    /// # Errors
    /// There is no such property; the value does not fit its type; damage found on the way.
    pub fn find(&self, name: &str, value: &NewValue) -> Result<Vec<Key>> {
        let properties = self.view.properties();
        let schema = properties.schema();
        let is_own = schema.find(name).is_none() && self.own.makes_property(PropertyOf::Vertices, name);
        let (place, value) = match (is_own, value) {
            (true, NewValue::Value(value)) => (schema.len(), value.clone()),
            (true, NewValue::Text { text, .. }) => (schema.len(), OwnedValue::String(text.clone())),
            // A missing property counts as read: a commit that creates it is a conflict.
            (false, value) => sought_value(schema, name, value).inspect_err(|_| self.note_column(schema.len()))?,
        };
        let found = self.holders(place, name, &value)?;
        found.into_iter().map(|vertex| self.key(vertex)).collect()
    }

    /// The vertices with a value of the property at an index of the schema, ascending.
    fn holders(&self, place: usize, name: &str, value: &OwnedValue) -> Result<Vec<VertexId>> {
        let properties = self.view.properties();
        let hash = value_hash(value.as_value());
        match (properties.index(place), hash) {
            // With an index, only the vertices with this value are read.
            (Some(_), Some(hash)) => self.note(ReadKey::Value(place as u32, hash)),
            _ => self.note_column(place),
        }
        if hash.is_none() {
            return Ok(Vec::new());
        }
        let mut found = properties.find(place, value.as_value())?;
        self.view.check()?;
        found.retain(|&vertex| self.own.value(vertex, name).is_none() && !self.own.is_gone(vertex));
        // A commit that changes or removes one of them does not set this value, so `ReadKey::Value` would miss it.
        found.iter().for_each(|&vertex| self.note(ReadKey::Properties(vertex)));
        found.extend(self.own.values_of(name).filter(|(_, own)| *own == value).map(|(vertex, _)| vertex));
        found.sort_unstable();
        found.retain(|&vertex| self.is_live(vertex));
        Ok(found)
    }

    /// Refuses a value that another vertex has, if the property has a unique index.
    fn require_unique(&self, key: &Key, name: &str, value: &OwnedValue) -> Result<()> {
        let properties = self.view.properties();
        let place = properties.schema().find(name);
        let Some(place) = place.filter(|&place| properties.index(place) == Some(IndexKind::Unique)) else {
            return Ok(());
        };
        let vertex = self.id(self.place(key)?);
        match self.holders(place, name, value)?.into_iter().find(|&holder| Some(holder) != vertex) {
            Some(holder) => Err(Error::not_unique(name, value, key.clone(), self.key(holder)?)),
            None => Ok(()),
        }
    }

    /// Notes a scan of a property. A new property gets the next index of the schema.
    fn note_column(&self, place: usize) {
        self.note(ReadKey::Column(place as u32));
    }

    /// Sets a value of a vertex, and adds the vertex if it does not exist. Null removes the value and adds no vertex.
    /// An unknown property is created. Reads nothing, with two exceptions: null of an unknown property, and a unique
    /// index, where the call reads which vertex has the value.
    ///
    /// # Errors
    /// [`Error::UniqueViolation`]: another vertex has the value, and the index is unique; the transaction is unchanged.
    /// The key does not fit the graph's key scheme; the value does not fit the property's type; damage in the
    /// dictionary.
    pub fn set_vertex_value(&mut self, key: &Key, name: &str, value: OwnedValue) -> Result<()> {
        let key = self.fitting(key)?;
        let value =
            fitting_value(self.view.properties().schema(), name, value).map_err(|error| error.for_vertex(&key))?;
        let is_null = value.as_value().is_null();
        // First, so that a violation leaves the transaction unchanged.
        self.require_unique(&key, name, &value)?;
        let vertex = if is_null { self.id(self.place(&key)?) } else { Some(self.make(&key)?) };
        let is_known = !is_null || self.knows_property(PropertyOf::Vertices, self.view.properties().schema(), name);
        if let Some(vertex) = vertex {
            self.own.set_value(vertex, name, value.clone());
        }
        match vertex {
            _ if is_known => self.updates.push(Update::set_vertex(key, name, value)),
            // Nothing is written. That is right only if no other commit creates the property: note a read.
            Some(vertex) => self.note_of(vertex, ReadKey::Properties(vertex)),
            None => self.note_absent(&key),
        }
        Ok(())
    }

    /// The value of an edge property: null if the edge or the property does not exist, or the edge has no value. If a
    /// pair has several edges, the value is that of the edge added last.
    ///
    /// # Errors
    /// A key does not fit the graph's key scheme; damage found on the way.
    pub fn edge_value(&self, source: &Key, target: &Key, name: &str) -> Result<OwnedValue> {
        let Some((source, target)) = self.ends(source, target)? else { return Ok(OwnedValue::Null) };
        self.note_edge(source, target);
        let properties = self.view.edge_properties();
        let place = properties.schema().find(name);
        if self.view.options().multigraph {
            // The edges are in the order in which they were added.
            let Some(last) = self.pair_edges((source, target))?.pop() else { return Ok(OwnedValue::Null) };
            return match (last.value(name), last.origin(), place) {
                (Some(value), ..) => Ok(value.clone()),
                (None, Some(origin), Some(place)) => {
                    Ok(properties.schema().owned(place, properties.value(place, origin.row)?))
                }
                _ => Ok(OwnedValue::Null),
            };
        }
        if let Some(value) = self.own_edge_value(source, target, name) {
            return Ok(value.clone());
        }
        match place {
            Some(place) if self.is_edge_of_view(source, target) => {
                let row = self.row_of(source, target);
                let value = row.map(|row| Ok(properties.schema().owned(place, properties.value(place, row)?)));
                self.view.check()?;
                value.unwrap_or(Ok(OwnedValue::Null))
            }
            _ => Ok(OwnedValue::Null),
        }
    }

    /// Sets a value of an existing edge. Null removes the value, and does nothing without an edge. An unknown property
    /// is created. Reads whether the edge exists.
    ///
    /// # Errors
    /// There is no such edge; edges have no properties; the value does not fit the property's type; damage found on the
    /// way.
    pub fn set_edge_value(&mut self, source: &Key, target: &Key, name: &str, value: OwnedValue) -> Result<()> {
        if !self.view.options().edge_properties {
            return Err(Error::no_edge_properties((source, target)));
        }
        if value.as_value().is_null() && !self.has_edge(source, target)? {
            return Ok(());
        }
        self.require_edge(source, target)?;
        let schema = self.view.edge_properties().schema();
        let value = fitting_value(schema, name, value).map_err(|error| error.for_edge((source, target)))?;
        let is_known = !value.as_value().is_null() || self.knows_property(PropertyOf::Edges, schema, name);
        let Some((from, to)) = self.ends(source, target)? else { return Ok(()) };
        if !is_known {
            // Nothing is written. That is right only if no other commit gives the edge a value: note a read.
            self.note_edge(from, to);
            return Ok(());
        }
        let options = *self.view.options();
        if options.multigraph {
            let mut edges = self.pair_edges((from, to))?;
            if let Some(last) = edges.last_mut() {
                last.set_value(name.to_owned(), value.clone());
            }
            self.own.replace_edges((from, to), edges, &options);
            self.own.note_valued(PropertyOf::Edges, name, &value);
        } else {
            self.own.set_edge_value(stored_ends(&options, (from, to)), name, value.clone());
        }
        self.updates.push(Update::set_edge(self.fitting(source)?, self.fitting(target)?, name, value));
        Ok(())
    }

    /// Whether a property exists, or was created here.
    pub(super) fn knows_property(&self, of: PropertyOf, schema: &PropertySchema, name: &str) -> bool {
        schema.find(name).is_some() || self.own.makes_property(of, name)
    }

    pub(super) fn own_edge_value(&self, source: VertexId, target: VertexId, name: &str) -> Option<&OwnedValue> {
        self.own.edge_value(stored_ends(self.view.options(), (source, target)), name)
    }

    /// A value in the type of its edge property. Text for an unknown property stays text.
    pub(super) fn own_value(&self, name: &str, value: NewValue) -> Result<OwnedValue> {
        let schema = self.view.edge_properties().schema();
        match (schema.type_of(name), value) {
            (Some(property_type), value) => typed(name, &value, property_type),
            (None, NewValue::Value(value)) => Ok(value),
            (None, NewValue::Text { text, .. }) => Ok(OwnedValue::String(text)),
        }
    }

    /// The row of the edge between two vertices of a simple graph.
    fn row_of(&self, source: VertexId, target: VertexId) -> Option<u64> {
        let mut found = None;
        let _ = self.view.for_each_row(Direction::Out, source, |targets, rows| match targets.binary_search(&target) {
            Ok(place) => {
                found = Some(rows[place]);
                ControlFlow::Break(())
            }
            Err(_) => ControlFlow::Continue(()),
        });
        found
    }
}

/// A value in the type of its property, if the property exists.
pub(super) fn fitting_value(schema: &PropertySchema, name: &str, value: OwnedValue) -> Result<OwnedValue> {
    match schema.type_of(name) {
        Some(property_type) => typed(name, &NewValue::Value(value), property_type),
        None => Ok(value),
    }
}
