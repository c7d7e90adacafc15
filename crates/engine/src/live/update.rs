//! Updates: the changes that a program asks for, key by key.

use std::sync::Arc;

use anden_graph::property::OwnedValue;
use anden_snapshots::Key;

use crate::fitting::EdgeWeight;

/// One change of the graph. Updates of a batch take effect in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// Adds an edge, with its weight if and only if the graph has weights, and its ends. An existing edge gets the
    /// weight and the given properties, and keeps its other properties. A multigraph gets one more edge.
    AddEdge {
        /// The source.
        source: Key,
        /// The target.
        target: Key,
        /// The weight.
        weight: Option<EdgeWeight>,
        /// Names and values of properties, in a graph with edge properties. An unknown property is created.
        properties: Vec<(Arc<str>, NewValue)>,
    },
    /// Sets the weight of an edge; in a multigraph, of all edges of the pair. Adds an edge if there is none.
    SetWeight {
        /// The source.
        source: Key,
        /// The target.
        target: Key,
        /// The weight.
        weight: EdgeWeight,
    },
    /// Removes an edge; in a multigraph, all edges of the pair.
    RemoveEdge {
        /// The source.
        source: Key,
        /// The target.
        target: Key,
    },
    /// Changes or removes one edge of a multigraph. A missing edge is an error.
    ChangeEdge {
        /// The edge.
        id: EdgeId,
        /// The change.
        action: EdgeAction,
    },
    /// Adds a vertex.
    AddVertex(Key),
    /// Removes a vertex, with all its edges and values.
    RemoveVertex(Key),
    /// Sets a value of a vertex. Creates an unknown property, and adds the vertex unless the batch is strict. Null
    /// removes the value, and adds no vertex.
    SetVertexProperty {
        /// The vertex.
        vertex: Key,
        /// The name of the property.
        name: String,
        /// The value.
        value: NewValue,
    },
    /// Sets a value of an existing edge, in a graph with edge properties. An unknown property is created; a missing
    /// edge is an error. Null removes the value; without an edge it does nothing, unless the batch is strict. If a pair
    /// has several edges, the last added one gets the value.
    SetEdgeProperty {
        /// The source.
        source: Key,
        /// The target.
        target: Key,
        /// The name of the property.
        name: String,
        /// The value.
        value: NewValue,
    },
}

/// The lasting name of one edge of a multigraph, valid in one database.
///
/// The number stays with the edge when its weight or properties change. No other edge of the database ever gets it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EdgeId {
    /// The source; for an undirected edge, either end.
    pub source: Key,
    /// The target.
    pub target: Key,
    /// Distinguishes the edge from parallel ones.
    pub number: u64,
}

/// A change of one edge.
#[derive(Clone, Debug, PartialEq)]
pub enum EdgeAction {
    /// Removes the edge.
    Remove,
    /// Sets the weight.
    SetWeight(EdgeWeight),
    /// Sets a value of a property; null removes it.
    SetProperty {
        /// The name of the property. An unknown property is created.
        name: String,
        /// The value.
        value: NewValue,
    },
}

/// A property value as the caller gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewValue {
    /// A value of the property's type, or of a type whose values that type can hold.
    Value(OwnedValue),
    /// Text, parsed as the property's type. A new property gets the narrowest type that holds all its values in the
    /// batch without loss, like a column of CSV. Quoted text makes it a string property.
    Text {
        /// The text.
        text: String,
        /// Whether the text was in quotes.
        is_quoted: bool,
    },
}

impl NewValue {
    /// Whether this removes a value.
    pub(super) fn is_null(&self) -> bool {
        *self == Self::Value(OwnedValue::Null)
    }
}

impl<T: Into<OwnedValue>> From<T> for NewValue {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

impl Update {
    /// Adds an edge without a weight.
    pub fn add_edge(source: impl Into<Key>, target: impl Into<Key>) -> Self {
        Self::AddEdge { source: source.into(), target: target.into(), weight: None, properties: Vec::new() }
    }

    /// Adds an edge with properties, or sets them on an existing edge.
    ///
    /// ```
    /// use anden_engine::{NewValue, Update};
    ///
    /// let paid = [("amount", NewValue::from(12.5)), ("kind", "card".into())];
    /// let update = Update::add_edge_with("alice", "bob", paid);
    /// # assert!(matches!(update, Update::AddEdge { properties, .. } if properties.len() == 2));
    /// ```
    pub fn add_edge_with<N: Into<Arc<str>>, V: Into<NewValue>>(
        source: impl Into<Key>,
        target: impl Into<Key>,
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let properties = properties.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self::AddEdge { source: source.into(), target: target.into(), weight: None, properties }
    }

    /// Adds an edge with a weight, or sets the weight of an existing edge.
    pub fn add_weighted_edge(source: impl Into<Key>, target: impl Into<Key>, weight: impl Into<EdgeWeight>) -> Self {
        let (source, target, weight) = (source.into(), target.into(), Some(weight.into()));
        Self::AddEdge { source, target, weight, properties: Vec::new() }
    }

    /// Removes an edge.
    pub fn remove_edge(source: impl Into<Key>, target: impl Into<Key>) -> Self {
        Self::RemoveEdge { source: source.into(), target: target.into() }
    }

    /// Sets the weight of an edge.
    pub fn set_weight(source: impl Into<Key>, target: impl Into<Key>, weight: impl Into<EdgeWeight>) -> Self {
        Self::SetWeight { source: source.into(), target: target.into(), weight: weight.into() }
    }

    /// Sets a value of a vertex; null removes it.
    pub fn set_vertex(vertex: impl Into<Key>, name: impl Into<String>, value: impl Into<NewValue>) -> Self {
        Self::SetVertexProperty { vertex: vertex.into(), name: name.into(), value: value.into() }
    }

    /// Sets a value of an edge; null removes it.
    pub fn set_edge(
        source: impl Into<Key>,
        target: impl Into<Key>,
        name: impl Into<String>,
        value: impl Into<NewValue>,
    ) -> Self {
        Self::SetEdgeProperty { source: source.into(), target: target.into(), name: name.into(), value: value.into() }
    }

    /// Changes one edge of a multigraph, or removes it.
    ///
    /// ```
    /// use anden_engine::{EdgeAction, EdgeId, Update};
    ///
    /// let id = EdgeId { source: "alice".into(), target: "bob".into(), number: 7 };
    /// let update = Update::change_edge(id, EdgeAction::Remove);
    /// # assert!(matches!(update, Update::ChangeEdge { action: EdgeAction::Remove, .. }));
    /// ```
    pub fn change_edge(id: EdgeId, action: EdgeAction) -> Self {
        Self::ChangeEdge { id, action }
    }
}

/// How updates treat vertices, edges and values that do not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Ends of added edges, and vertices that get values, are added. Removing something that does not exist does
    /// nothing.
    #[default]
    Lenient,
    /// A missing vertex, edge or value is an error.
    Strict,
}

/// The state after a batch of updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The epoch from which on the changes are visible.
    pub epoch: u64,
    /// Number of vertices after the batch.
    pub vertices: u64,
    /// Number of edges after the batch.
    pub edges: u64,
}
