//! Changes that a program makes up, key by key.

use graph::property::OwnedValue;
use lama::Key;

use crate::fitting::EdgeWeight;

/// What becomes a new snapshot: removals first, then additions.
///
/// An edge that is removed and added is there afterwards; so is a vertex, with the edges that are added
/// to it and no others. What is there already is not added again, except to a multigraph; a weight
/// replaces the one before. What is not there is not removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Edges to be there: source, target, and a weight exactly if the graph has weights. Vertices
    /// come with their edges.
    pub added: Vec<(Key, Key, Option<EdgeWeight>)>,
    /// Edges to be gone, all parallel ones.
    pub removed: Vec<(Key, Key)>,
    /// Vertices to be there.
    pub added_vertices: Vec<Key>,
    /// Vertices to be gone, with all their edges.
    pub removed_vertices: Vec<Key>,
    /// Properties of vertices: the vertex, which comes with them, the name and the value. The last one of a vertex
    /// and name counts; null takes a value away. A name that is not there yet makes a new property.
    pub vertex_properties: Vec<(Key, String, OwnedValue)>,
    /// Properties of edges, of a graph that has them: the place of the edge in `added`, the name and the value. An edge
    /// that is there and gets values loses those that it had; without any it stays as it is.
    pub edge_properties: Vec<(usize, String, OwnedValue)>,
    /// The name of the snapshot.
    pub name: Option<String>,
}

impl Changes {
    /// Adds an edge without a weight.
    #[must_use]
    pub fn add_edge(mut self, source: impl Into<Key>, target: impl Into<Key>) -> Self {
        self.added.push((source.into(), target.into(), None));
        self
    }

    /// Adds an edge with a weight.
    #[must_use]
    pub fn add_weighted_edge(
        mut self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        weight: impl Into<EdgeWeight>,
    ) -> Self {
        self.added.push((source.into(), target.into(), Some(weight.into())));
        self
    }

    /// Removes an edge.
    #[must_use]
    pub fn remove_edge(mut self, source: impl Into<Key>, target: impl Into<Key>) -> Self {
        self.removed.push((source.into(), target.into()));
        self
    }

    /// Adds a vertex.
    #[must_use]
    pub fn add_vertex(mut self, vertex: impl Into<Key>) -> Self {
        self.added_vertices.push(vertex.into());
        self
    }

    /// Removes a vertex and all its edges.
    #[must_use]
    pub fn remove_vertex(mut self, vertex: impl Into<Key>) -> Self {
        self.removed_vertices.push(vertex.into());
        self
    }

    /// Gives a vertex a value of a property.
    #[must_use]
    pub fn set_vertex(mut self, vertex: impl Into<Key>, name: impl Into<String>, value: impl Into<OwnedValue>) -> Self {
        self.vertex_properties.push((vertex.into(), name.into(), value.into()));
        self
    }

    /// Gives the edge that was added last a value of a property.
    ///
    /// # Panics
    /// If no edge was added.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<OwnedValue>) -> Self {
        let last = self.added.len().checked_sub(1).expect("an edge is added before it gets values");
        self.edge_properties.push((last, name.into(), value.into()));
        self
    }

    /// Names the snapshot.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}
