//! What a transaction reads, and what a commit changes.

use std::fmt;

use base::VertexId;
use graph::Direction;
use lama::GraphOptions;

/// The smallest thing that two transactions can disagree about.
///
/// Ids are never used again, so that they name the same vertex before and after. A key without an id is none of these:
/// whether it still has none is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ReadKey {
    /// The entries of an out-list, their weights and rows; of an undirected graph, of the only list.
    OutList(VertexId),
    /// The same of an in-list.
    InList(VertexId),
    /// The edges from one vertex to another, in the order in which the graph stores their ends.
    Edge(VertexId, VertexId),
    /// All values of a vertex.
    Properties(VertexId),
    /// Which vertices have which value of the vertex property at this place of the schema.
    Column(u32),
    /// Which vertices have the value with this hash of the property at this place, which has an index.
    Value(u32, u32),
    /// Whether an id is a vertex.
    Existence(VertexId),
    /// Which vertices there are.
    Vertices,
    /// Which edges there are.
    Edges,
}

impl ReadKey {
    /// The edges between two vertices.
    pub(crate) fn edge(options: &GraphOptions, source: VertexId, target: VertexId) -> Self {
        let (first, second) = stored_ends(options, (source, target));
        Self::Edge(first, second)
    }

    /// The in-list of a vertex; of an undirected graph, its only list.
    pub(crate) fn in_list(options: &GraphOptions, vertex: VertexId) -> Self {
        match options.direction {
            Direction::Directed => Self::InList(vertex),
            Direction::Undirected => Self::OutList(vertex),
        }
    }

    /// Calls `body` with what changes with an edge.
    #[inline]
    pub(crate) fn for_each_of_edge(
        options: &GraphOptions,
        source: VertexId,
        target: VertexId,
        mut body: impl FnMut(Self),
    ) {
        let Self::Edge(first, second) = Self::edge(options, source, target) else { return };
        body(Self::OutList(first));
        body(Self::in_list(options, second));
        body(Self::Edge(first, second));
        body(Self::Edges);
    }

    /// What it is, for people, who call vertices by what `key` gives.
    pub(crate) fn describe(self, key: impl Fn(VertexId) -> String) -> String {
        match self {
            Self::OutList(vertex) => format!("the out-edges of vertex {}", key(vertex)),
            Self::InList(vertex) => format!("the in-edges of vertex {}", key(vertex)),
            Self::Edge(source, target) => format!("the edge from {} to {}", key(source), key(target)),
            Self::Properties(vertex) => format!("the properties of vertex {}", key(vertex)),
            Self::Column(_) => "a property that was searched".to_owned(),
            Self::Value(..) => "the vertices with a value that was searched".to_owned(),
            Self::Existence(vertex) => format!("the existence of vertex {}", key(vertex)),
            Self::Vertices => "the set of vertices".to_owned(),
            Self::Edges => "the set of edges".to_owned(),
        }
    }
}

/// The ends of an edge in an order that is the same for all who name this edge: the one in which the graph stores them.
pub(crate) fn stored_ends(options: &GraphOptions, (source, target): (VertexId, VertexId)) -> (VertexId, VertexId) {
    // Otherwise an edge from one vertex to another is another than the one back.
    let is_same_both_ways = options.direction == Direction::Undirected || options.ordered;
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
        let undirected = GraphOptions { direction: Direction::Undirected, ..GraphOptions::default() };
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
