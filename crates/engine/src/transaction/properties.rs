//! Values of a transaction.

use std::ops::ControlFlow;

use base::VertexId;
use graph::property::{OwnedValue, PropertySchema};
use lama::{IndexKind, Key, value_hash};

use super::Transaction;
use super::own::PropertyOf;
use crate::live::{NewValue, Update, sought_value, typed};
use crate::validation::{ReadKey, stored_ends};
use crate::{Error, Result};

impl Transaction<'_> {
    /// The value of a vertex; null where it has none, or there is no such property.
    ///
    /// # Errors
    /// There is no such vertex; damage met on the way.
    pub fn vertex_value(&self, key: &Key, name: &str) -> Result<OwnedValue> {
        let vertex = self.require_vertex(key)?;
        if let Some(value) = self.own.value(vertex, name) {
            return Ok(value.clone());
        }
        if self.own.is_gone(vertex) {
            return Ok(OwnedValue::Null);
        }
        self.note_of(vertex, ReadKey::Properties(vertex));
        let properties = self.view.properties();
        match properties.schema().find(name) {
            Some(place) if (vertex as usize) < self.own.first_new => Ok(properties.value(place, vertex)?.into()),
            _ => Ok(OwnedValue::Null),
        }
    }

    /// The vertices with a value of a property, ascending by id. Null finds nothing. The transaction conflicts with each
    /// commit that gives a vertex this value, or changes or removes a vertex that was found. Without an index, it
    /// conflicts with each commit that sets the property of any vertex.
    ///
    /// Cost: that of a search in the index, and without one, a read of the whole property.
    ///
    /// # Errors
    /// There is no such property; the value is none of its type; damage met on the way.
    pub fn find(&self, name: &str, value: &NewValue) -> Result<Vec<Key>> {
        let properties = self.view.properties();
        let schema = properties.schema();
        let is_own = schema.find(name).is_none() && self.own.makes_property(PropertyOf::Vertices, name);
        let (place, value) = match (is_own, value) {
            (true, NewValue::Value(value)) => (schema.len(), value.clone()),
            (true, NewValue::Text { text, .. }) => (schema.len(), OwnedValue::String(text.clone())),
            (false, value) => sought_value(schema, name, value).inspect_err(|_| self.note_column(schema.len()))?,
        };
        let found = self.holders(place, name, &value)?;
        found.into_iter().map(|vertex| self.key(vertex)).collect()
    }

    /// The vertices with a value of the property at a place of the schema, ascending.
    fn holders(&self, place: usize, name: &str, value: &OwnedValue) -> Result<Vec<VertexId>> {
        let properties = self.view.properties();
        let hash = value_hash(value.as_value());
        match (properties.index(place), hash) {
            (Some(_), Some(hash)) => self.note(ReadKey::Value(place as u32, hash)),
            _ => self.note_column(place),
        }
        if hash.is_none() {
            return Ok(Vec::new());
        }
        let mut found = properties.find(place, value.as_value())?;
        found.retain(|&vertex| self.own.value(vertex, name).is_none() && !self.own.is_gone(vertex));
        // Another transaction that changes or removes one of them sets nothing to this value.
        found.iter().for_each(|&vertex| self.note(ReadKey::Properties(vertex)));
        found.extend(self.own.values_of(name).filter(|(_, own)| *own == value).map(|(vertex, _)| vertex));
        found.sort_unstable();
        found.retain(|&vertex| self.is_live(vertex));
        Ok(found)
    }

    /// Refuses a value that another vertex has, of a property whose values are unique.
    fn require_unique(&self, key: &Key, name: &str, value: &OwnedValue) -> Result<()> {
        let properties = self.view.properties();
        let place = properties.schema().find(name);
        let Some(place) = place.filter(|&place| properties.index(place) == Some(IndexKind::Unique)) else {
            return Ok(());
        };
        let vertex = self.id(self.place(key)?);
        match self.holders(place, name, value)?.into_iter().find(|&holder| Some(holder) != vertex) {
            Some(holder) => Err(Error::not_unique(name, value, key, &self.key(holder)?)),
            None => Ok(()),
        }
    }

    /// Notes that a property was searched; a new property gets the place behind the known ones.
    fn note_column(&self, place: usize) {
        self.note(ReadKey::Column(place as u32));
    }

    /// Gives a vertex a value, and makes the vertex where it is not there. Null takes the value away and makes no vertex.
    /// A property that is not there yet is made. Reads nothing, unless null is set of a property that is not there, or the
    /// property has a unique index: then it reads which vertex has the value.
    ///
    /// # Errors
    /// [`Error::UniqueViolation`]: another vertex has the value, and the index is unique; the transaction is as before. The key is none of this graph; the value is none of the property's type; damage in the dictionary.
    pub fn set_vertex_value(&mut self, key: &Key, name: &str, value: OwnedValue) -> Result<()> {
        let key = self.fitting(key)?;
        let value = fitting_value(self.view.properties().schema(), name, value)
            .map_err(|what| Error::Option(format!("vertex {key}: {what}")))?;
        let is_null = value.as_value().is_null();
        self.require_unique(&key, name, &value)?;
        let vertex = if is_null { self.id(self.place(&key)?) } else { Some(self.make(&key)?) };
        let is_known = !is_null || self.knows_property(PropertyOf::Vertices, self.view.properties().schema(), name);
        if let Some(vertex) = vertex {
            self.own.set_value(vertex, name, value.clone());
        }
        match vertex {
            _ if is_known => self.updates.push(Update::set_vertex(key, name, value)),
            // Nothing is written, as long as no other commit makes the property.
            Some(vertex) => self.note_of(vertex, ReadKey::Properties(vertex)),
            None => self.note_absent(&key),
        }
        Ok(())
    }

    /// The value of an edge, in a graph whose edges have properties: null where there is no edge, it has none, or there is
    /// no such property. Of several edges of a pair, it is that of the one that was added last.
    ///
    /// # Errors
    /// A key is none of this graph; damage met on the way.
    pub fn edge_value(&self, source: &Key, target: &Key, name: &str) -> Result<OwnedValue> {
        let Some((source, target)) = self.ends(source, target)? else { return Ok(OwnedValue::Null) };
        self.note_edge(source, target);
        let properties = self.view.edge_properties();
        let place = properties.schema().find(name);
        if self.view.options().multigraph {
            let Some(last) = self.pair_edges((source, target))?.pop() else { return Ok(OwnedValue::Null) };
            return match (last.values.get(name), last.origin, place) {
                (Some(value), ..) => Ok(value.clone()),
                (None, Some(origin), Some(place)) => Ok(properties.value(place, origin.row)?.into()),
                _ => Ok(OwnedValue::Null),
            };
        }
        if let Some(value) = self.own_edge_value(source, target, name) {
            return Ok(value.clone());
        }
        match place {
            Some(place) if self.is_edge_of_view(source, target) => {
                let row = self.row_of(source, target);
                ::graph::Graph::check(&self.view)?;
                row.map_or(Ok(OwnedValue::Null), |row| Ok(properties.value(place, row)?.into()))
            }
            _ => Ok(OwnedValue::Null),
        }
    }

    /// Gives an edge that is there a value. Null takes it away, and does nothing where there is no edge. A property that
    /// is not there yet is made. Reads whether the edge is there.
    ///
    /// # Errors
    /// There is no such edge to have the value; edges have no properties; the value is none of the property's type; damage met on the way.
    pub fn set_edge_value(&mut self, source: &Key, target: &Key, name: &str, value: OwnedValue) -> Result<()> {
        let wrong = |what| Error::Option(format!("the edge from {source} to {target}: {what}"));
        if !self.view.options().edge_properties {
            return Err(wrong("the graph was loaded without properties of edges".into()));
        }
        if value.as_value().is_null() && !self.has_edge(source, target)? {
            return Ok(());
        }
        self.require_edge(source, target)?;
        let schema = self.view.edge_properties().schema();
        let value = fitting_value(schema, name, value).map_err(wrong)?;
        let is_known = !value.as_value().is_null() || self.knows_property(PropertyOf::Edges, schema, name);
        let Some((from, to)) = self.ends(source, target)? else { return Ok(()) };
        if !is_known {
            self.note_edge(from, to);
            return Ok(());
        }
        let options = *self.view.options();
        if options.multigraph {
            let mut edges = self.pair_edges((from, to))?;
            if let Some(last) = edges.last_mut() {
                last.values.insert(name.to_owned(), value.clone());
            }
            self.own.replace_edges((from, to), edges, &options);
            self.own.note_valued(PropertyOf::Edges, name, &value);
        } else {
            self.own.set_edge_value(stored_ends(&options, (from, to)), name, value.clone());
        }
        self.updates.push(Update::set_edge(self.fitting(source)?, self.fitting(target)?, name, value));
        Ok(())
    }

    /// Whether a property is there, or was made here.
    pub(super) fn knows_property(&self, of: PropertyOf, schema: &PropertySchema, name: &str) -> bool {
        schema.find(name).is_some() || self.own.makes_property(of, name)
    }

    pub(super) fn own_edge_value(&self, source: VertexId, target: VertexId, name: &str) -> Option<&OwnedValue> {
        self.own.edge_value(stored_ends(self.view.options(), (source, target)), name)
    }

    /// A value of a property of edges in its type; text of a property that is not there yet stays text.
    pub(super) fn own_value(&self, name: &str, value: NewValue) -> Result<OwnedValue, String> {
        let schema = self.view.edge_properties().schema();
        match (schema.find(name).and_then(|place| schema.get(place)), value) {
            (Some((_, property_type)), value) => typed(name, &value, property_type),
            (None, NewValue::Value(value)) => Ok(value),
            (None, NewValue::Text { text, .. }) => Ok(OwnedValue::String(text)),
        }
    }

    /// The row of the edge between two vertices of a simple graph.
    fn row_of(&self, source: VertexId, target: VertexId) -> Option<u64> {
        let mut found = None;
        let _ = self.view.for_each_out_row(source, |targets, rows| match targets.binary_search(&target) {
            Ok(place) => {
                found = Some(rows[place]);
                ControlFlow::Break(())
            }
            Err(_) => ControlFlow::Continue(()),
        });
        found
    }
}

/// A value in the type of its property, if that is there.
fn fitting_value(schema: &PropertySchema, name: &str, value: OwnedValue) -> Result<OwnedValue, String> {
    match schema.find(name).and_then(|place| schema.get(place)) {
        Some((_, property_type)) => typed(name, &NewValue::Value(value), property_type),
        None => Ok(value),
    }
}
