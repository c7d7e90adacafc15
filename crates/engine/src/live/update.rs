//! What a program asks a live graph to change, key by key.

use lama::Key;

use crate::EdgeWeight;

/// One change of a live graph. Updates of a batch act in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// An edge is to be there, with this weight exactly if the graph has weights. Its ends come with it; a
    /// weight replaces the one before.
    AddEdge {
        /// Where it starts.
        source: Key,
        /// Where it leads.
        target: Key,
        /// Its weight.
        weight: Option<EdgeWeight>,
    },
    /// An edge is to be gone.
    RemoveEdge {
        /// Where it starts.
        source: Key,
        /// Where it leads.
        target: Key,
    },
    /// A vertex is to be there.
    AddVertex(Key),
    /// A vertex is to be gone, with all its edges.
    RemoveVertex(Key),
}

impl Update {
    /// Adds an edge without a weight.
    pub fn add_edge(source: impl Into<Key>, target: impl Into<Key>) -> Self {
        Self::AddEdge { source: source.into(), target: target.into(), weight: None }
    }

    /// Adds an edge with a weight, or gives it this one.
    pub fn add_weighted_edge(source: impl Into<Key>, target: impl Into<Key>, weight: impl Into<EdgeWeight>) -> Self {
        Self::AddEdge { source: source.into(), target: target.into(), weight: Some(weight.into()) }
    }

    /// Removes an edge.
    pub fn remove_edge(source: impl Into<Key>, target: impl Into<Key>) -> Self {
        Self::RemoveEdge { source: source.into(), target: target.into() }
    }
}

/// How updates are taken that name what is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Vertices of an edge that is added are made; what is to be removed and is not there is gone already.
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
