//! Read keys: the units of validation.

use std::fmt;

use anden_base::VertexId;
use anden_graph::GraphKind;
use anden_snapshots::GraphOptions;

/// The smallest unit in which two transactions can conflict.
///
/// Ids are never reused, so that an id names the same vertex at all epochs. Keys without an id have no read key: the
/// dictionary is searched for them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ReadKey {
    /// The arcs, weights and rows of an out-list; in an undirected graph, of the only list.
    OutList(VertexId),
    /// The arcs, weights and rows of an in-list.
    InList(VertexId),
    /// The edges from one vertex to another; ends in the order of storage.
    Edge(VertexId, VertexId),
    /// All values of a vertex.
    Properties(VertexId),
    /// The values of one vertex property, by its index in the schema, of all vertices.
    Column(u32),
    /// The vertices with one value of an indexed property: its index in the schema, and the hash of the value.
    Value(u32, u32),
    /// Whether an id is a live vertex.
    Existence(VertexId),
    /// The set of vertices.
    Vertices,
    /// The set of edges.
    Edges,
}

impl ReadKey {
    /// The edges between two vertices.
    pub(crate) fn edge(options: &GraphOptions, source: VertexId, target: VertexId) -> Self {
        let (first, second) = stored_ends(options, (source, target));
        Self::Edge(first, second)
    }

    /// The in-list of a vertex; in an undirected graph, its only list.
    pub(crate) fn in_list(options: &GraphOptions, vertex: VertexId) -> Self {
        match options.graph_kind {
            GraphKind::Directed => Self::InList(vertex),
            GraphKind::Undirected => Self::OutList(vertex),
        }
    }

    /// Calls `body` with each read key that a change of an edge changes.
    #[inline]
    pub(crate) fn for_each_of_edge(
        options: &GraphOptions,
        source: VertexId,
        target: VertexId,
        mut body: impl FnMut(Self),
    ) {
        let Self::Edge(first, second) = Self::edge(options, source, target) else { return };
        // A reader may have found the edge by either list, by its pair, or by a count of all edges.
        body(Self::OutList(first));
        body(Self::in_list(options, second));
        body(Self::Edge(first, second));
        body(Self::Edges);
    }

    /// A text for users; `key` names a vertex.
    pub(crate) fn describe(self, key: impl Fn(VertexId) -> String) -> String {
        match self {
            Self::OutList(vertex) => format!("the out-edges of vertex {}", key(vertex)),
            Self::InList(vertex) => format!("the in-edges of vertex {}", key(vertex)),
            Self::Edge(source, target) => format!("the edge from {} to {}", key(source), key(target)),
            Self::Properties(vertex) => format!("the properties of vertex {}", key(vertex)),
            // A read key holds no name, and the schema is not at hand here.
            Self::Column(_) => "a property that was searched".to_owned(),
            Self::Value(..) => "the vertices with a value that was searched".to_owned(),
            Self::Existence(vertex) => format!("the existence of vertex {}", key(vertex)),
            Self::Vertices => "the set of vertices".to_owned(),
            Self::Edges => "the set of edges".to_owned(),
        }
    }
}

/// The ends of an edge in the order in which the graph stores them, which all transactions agree on.
pub(crate) fn stored_ends(options: &GraphOptions, (source, target): (VertexId, VertexId)) -> (VertexId, VertexId) {
    // In other graphs, the edge in the opposite direction is another edge.
    let is_same_both_ways = options.graph_kind == GraphKind::Undirected || options.ordered;
    if is_same_both_ways && source > target { (target, source) } else { (source, target) }
}

impl fmt::Display for ReadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(|vertex| format!("with id {vertex}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(options: &GraphOptions, source: VertexId, target: VertexId) -> Vec<ReadKey> {
        let mut items = Vec::new();
        ReadKey::for_each_of_edge(options, source, target, |item| items.push(item));
        items
    }

    #[test]
    fn an_edge_changes_the_lists_that_have_it() {
        let directed = GraphOptions::default();
        assert_eq!(
            items(&directed, 7, 3),
            [ReadKey::OutList(7), ReadKey::InList(3), ReadKey::Edge(7, 3), ReadKey::Edges]
        );
        let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..GraphOptions::default() };
        assert_eq!(
            items(&undirected, 7, 3),
            [ReadKey::OutList(3), ReadKey::OutList(7), ReadKey::Edge(3, 7), ReadKey::Edges]
        );
        assert_eq!(ReadKey::in_list(&undirected, 7), ReadKey::OutList(7));
        let ordered = GraphOptions { ordered: true, ..GraphOptions::default() };
        assert_eq!(
            items(&ordered, 7, 3),
            [ReadKey::OutList(3), ReadKey::InList(7), ReadKey::Edge(3, 7), ReadKey::Edges]
        );
    }
}
