//! What a program asks a live graph to change, key by key.

use std::sync::Arc;

use graph::property::OwnedValue;
use lama::Key;

use crate::fitting::EdgeWeight;

/// One change of a live graph. Updates of a batch act in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// An edge is to be there, with this weight exactly if the graph has weights. Its ends come with it. An edge that is
    /// there gets the weight and the properties that are given, and keeps its other properties. A multigraph gets one more
    /// edge.
    AddEdge {
        /// Where it starts.
        source: Key,
        /// Where it leads.
        target: Key,
        /// Its weight.
        weight: Option<EdgeWeight>,
        /// Names and values of properties, in a graph whose edges have some. A property that is not there yet is made.
        properties: Vec<(Arc<str>, NewValue)>,
    },
    /// An edge is to have this weight: of a multigraph all of the pair, and where there is none, one is made.
    SetWeight {
        /// Where it starts.
        source: Key,
        /// Where it leads.
        target: Key,
        /// Its weight.
        weight: EdgeWeight,
    },
    /// An edge is to be gone; of a multigraph all of the pair.
    RemoveEdge {
        /// Where it starts.
        source: Key,
        /// Where it leads.
        target: Key,
    },
    /// One edge of a multigraph is to change, or to be gone. That there is no such edge is an error.
    ChangeEdge {
        /// The edge.
        id: EdgeId,
        /// What becomes of it.
        action: EdgeAction,
    },
    /// A vertex is to be there.
    AddVertex(Key),
    /// A vertex is to be gone, with all its edges and values.
    RemoveVertex(Key),
    /// A vertex is to have a value of a property. The vertex is made where it is not there, unless the batch is strict,
    /// and a property too. Null takes the value away, and makes no vertex.
    SetVertexProperty {
        /// The vertex.
        vertex: Key,
        /// The name of the property.
        name: String,
        /// Its value.
        value: NewValue,
    },
    /// An edge that is there is to have a value of a property, in a graph whose edges have some. A property that is not
    /// there yet is made, an edge is not: that is an error. Null takes the value away, and does nothing where there is no
    /// edge, unless the batch is strict. Of several edges of a pair, it is the one that was added last.
    SetEdgeProperty {
        /// Where it starts.
        source: Key,
        /// Where it leads.
        target: Key,
        /// The name of the property.
        name: String,
        /// Its value.
        value: NewValue,
    },
}

/// The lasting name of one edge of a multigraph; it is valid in one database.
///
/// The number stays with the edge when its weight or its properties change, and no other edge of the database ever gets
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EdgeId {
    /// Where the edge starts; of an undirected one, either end.
    pub source: Key,
    /// Where it leads.
    pub target: Key,
    /// Tells it from the edges beside it.
    pub number: u64,
}

/// What becomes of one edge.
#[derive(Clone, Debug, PartialEq)]
pub enum EdgeAction {
    /// It goes.
    Remove,
    /// It gets this weight.
    SetWeight(EdgeWeight),
    /// It gets a value of a property; null takes the value away.
    SetProperty {
        /// The name of the property. One that is not there yet is made.
        name: String,
        /// Its value.
        value: NewValue,
    },
}

/// A value of a property, as it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewValue {
    /// Of the property's type, or of one whose values that type holds.
    Value(OwnedValue),
    /// As text, which is read as the property's type. A new property gets the narrowest type that loses nothing of what
    /// the batch says of it, as a column of CSV does; it is one of text where the text stood in quotes.
    Text {
        /// The text.
        text: String,
        /// Whether it stood in quotes.
        is_quoted: bool,
    },
}

impl NewValue {
    /// Whether it takes a value away.
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

    /// Adds an edge with properties, or gives it these.
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

    /// Adds an edge with a weight, or gives it this one.
    pub fn add_weighted_edge(source: impl Into<Key>, target: impl Into<Key>, weight: impl Into<EdgeWeight>) -> Self {
        let (source, target, weight) = (source.into(), target.into(), Some(weight.into()));
        Self::AddEdge { source, target, weight, properties: Vec::new() }
    }

    /// Removes an edge.
    pub fn remove_edge(source: impl Into<Key>, target: impl Into<Key>) -> Self {
        Self::RemoveEdge { source: source.into(), target: target.into() }
    }

    /// Gives an edge this weight.
    pub fn set_weight(source: impl Into<Key>, target: impl Into<Key>, weight: impl Into<EdgeWeight>) -> Self {
        Self::SetWeight { source: source.into(), target: target.into(), weight: weight.into() }
    }

    /// Gives a vertex a value of a property; null takes it away.
    pub fn set_vertex(vertex: impl Into<Key>, name: impl Into<String>, value: impl Into<NewValue>) -> Self {
        Self::SetVertexProperty { vertex: vertex.into(), name: name.into(), value: value.into() }
    }

    /// Gives an edge a value of a property; null takes it away.
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

/// How updates are taken that name what is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Vertices of an edge that is added are made, and those that get a value; what is to be removed and is not there is
    /// gone already.
    #[default]
    Lenient,
    /// They are errors.
    Strict,
}

/// What a batch of updates did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The epoch from which on the changes are seen.
    pub epoch: u64,
    /// Vertices after it.
    pub vertices: u64,
    /// Edges after it.
    pub edges: u64,
}
