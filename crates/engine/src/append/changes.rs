//! Changes that a program makes, key by key.

use anden_graph::property::OwnedValue;
use anden_snapshots::Key;

use crate::fitting::EdgeWeight;

/// The changes of an append: removals first, then additions.
///
/// An edge that is removed and added exists afterwards. So does a vertex, with only the edges that are added to it.
/// Existing edges are not added again, except to a multigraph; a new weight replaces the old one. Removals of missing
/// edges and vertices do nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Edges to add: source, target, and a weight if and only if the graph has weights. Their ends are added too.
    pub added: Vec<(Key, Key, Option<EdgeWeight>)>,
    /// Edges to remove, with all parallel ones.
    pub removed: Vec<(Key, Key)>,
    /// Vertices to add.
    pub added_vertices: Vec<Key>,
    /// Vertices to remove, with all their edges.
    pub removed_vertices: Vec<Key>,
    /// Values of vertex properties: the vertex, which is added, the name and the value. The last value for a vertex and
    /// name counts; null removes a value. An unknown name creates a property.
    pub vertex_properties: Vec<(Key, String, OwnedValue)>,
    /// Values of edge properties, in a graph that has them: the index of the edge in `added`, the name and the value.
    /// An existing edge that gets values loses its old ones; without values it keeps them.
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

    /// Sets a value of a vertex property.
    #[must_use]
    pub fn set_vertex(mut self, vertex: impl Into<Key>, name: impl Into<String>, value: impl Into<OwnedValue>) -> Self {
        self.vertex_properties.push((vertex.into(), name.into(), value.into()));
        self
    }

    /// Sets a property value of the last added edge.
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
