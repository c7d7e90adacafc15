//! A graph as a map from pairs of vertices to their edges: the model that databases are compared with.

use std::collections::{BTreeMap, BTreeSet};

use anden_graph::GraphKind;

/// A graph with vertices named `V` and edges that carry an `E`: a weight, a row or property values.
///
/// `V::default()` must be the least vertex. An undirected edge belongs to the pair of its smaller and its larger end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelGraph<V, E> {
    graph_kind: GraphKind,
    is_ordered: bool,
    is_multigraph: bool,
    vertices: BTreeSet<V>,
    /// The edges of each pair; no pair is without an edge.
    edges: BTreeMap<(V, V), Vec<E>>,
    /// The pairs of `edges`, turned round.
    reversed: BTreeSet<(V, V)>,
}

impl<V: Copy + Default + Ord, E> ModelGraph<V, E> {
    /// An empty simple graph.
    pub fn new(graph_kind: GraphKind) -> Self {
        Self {
            graph_kind,
            is_ordered: false,
            is_multigraph: false,
            vertices: BTreeSet::new(),
            edges: BTreeMap::new(),
            reversed: BTreeSet::new(),
        }
    }

    /// Sets whether each edge leads to its larger end. Such a graph has no loops.
    pub fn ordered(self, is_ordered: bool) -> Self {
        Self { is_ordered, ..self }
    }

    /// Sets whether a pair may have several edges.
    pub fn multigraph(self, is_multigraph: bool) -> Self {
        Self { is_multigraph, ..self }
    }

    /// The pair to which an edge from `u` to `v` belongs, or `None` if the graph cannot have it.
    pub fn pair(&self, u: V, v: V) -> Option<(V, V)> {
        // An undirected or ordered edge has one name, whichever end comes first.
        let turns = self.is_ordered || self.graph_kind == GraphKind::Undirected;
        // An ordered graph has no loops, and no pair stands for one.
        (!self.is_ordered || u != v).then_some(if turns { (u.min(v), u.max(v)) } else { (u, v) })
    }

    /// The vertices.
    pub fn vertices(&self) -> &BTreeSet<V> {
        &self.vertices
    }

    /// Whether the vertex exists.
    pub fn has_vertex(&self, vertex: V) -> bool {
        self.vertices.contains(&vertex)
    }

    /// Adds a vertex, unless it exists.
    pub fn add_vertex(&mut self, vertex: V) {
        self.vertices.insert(vertex);
    }

    /// Removes a vertex with its edges. Returns whether it existed.
    pub fn remove_vertex(&mut self, vertex: V) -> bool {
        let targets = self.range_of(vertex).map(|(pair, _)| *pair);
        let sources = self.sources_of(vertex).map(|source| (source, vertex));
        // Collected first, because taking a pair changes the map.
        for pair in targets.chain(sources).collect::<Vec<_>>() {
            self.take(pair);
        }
        self.vertices.remove(&vertex)
    }

    /// Adds an edge and its ends. In a simple graph, it replaces the edge of the pair.
    pub fn add_edge(&mut self, u: V, v: V, edge: E) {
        // The ends become vertices even if the edge is a loop that the graph cannot have.
        self.vertices.extend([u, v]);
        let Some(pair) = self.pair(u, v) else { return };
        self.reversed.insert((pair.1, pair.0));
        let edges = self.edges.entry(pair).or_default();
        if !self.is_multigraph {
            edges.clear();
        }
        edges.push(edge);
    }

    /// Removes all edges of a pair, and returns them.
    pub fn remove_edges(&mut self, u: V, v: V) -> Vec<E> {
        self.pair(u, v).map(|pair| self.take(pair)).unwrap_or_default()
    }

    /// Keeps the edges for which `test` holds.
    pub fn retain(&mut self, mut test: impl FnMut(V, V, &E) -> bool) {
        self.edges.retain(|&(u, v), edges| {
            // A pair without edges must go, or the graph would count it as a pair.
            edges.retain(|edge| test(u, v, edge));
            !edges.is_empty()
        });
        let edges = &self.edges;
        self.reversed.retain(|&(v, u)| edges.contains_key(&(u, v)));
    }

    /// Whether the pair has an edge.
    pub fn has_edge(&self, u: V, v: V) -> bool {
        !self.edges_between(u, v).is_empty()
    }

    /// The edges of a pair, in the order of their additions.
    pub fn edges_between(&self, u: V, v: V) -> &[E] {
        self.pair(u, v).and_then(|pair| self.edges.get(&pair)).map(Vec::as_slice).unwrap_or_default()
    }

    /// As [`edges_between`](Self::edges_between), to change them.
    pub fn edges_between_mut(&mut self, u: V, v: V) -> &mut [E] {
        self.pair(u, v).and_then(|pair| self.edges.get_mut(&pair)).map(Vec::as_mut_slice).unwrap_or_default()
    }

    /// The pairs that have edges, ascending.
    pub fn pairs(&self) -> impl Iterator<Item = ((V, V), &[E])> {
        self.edges.iter().map(|(&pair, edges)| (pair, edges.as_slice()))
    }

    /// The pair at this place among those that have edges.
    pub fn nth_pair(&self, place: usize) -> Option<(V, V)> {
        self.edges.keys().nth(place).copied()
    }

    /// The number of pairs that have edges.
    pub fn num_pairs(&self) -> usize {
        self.edges.len()
    }

    /// The edges with their pairs.
    pub fn edges(&self) -> impl Iterator<Item = (V, V, &E)> {
        self.edges.iter().flat_map(|(&(u, v), edges)| edges.iter().map(move |edge| (u, v, edge)))
    }

    /// As [`edges`](Self::edges), to change what they carry.
    pub fn edges_mut(&mut self) -> impl Iterator<Item = (V, V, &mut E)> {
        self.edges.iter_mut().flat_map(|(&(u, v), edges)| edges.iter_mut().map(move |edge| (u, v, edge)))
    }

    /// The number of edges.
    pub fn num_edges(&self) -> u64 {
        self.edges.values().map(|edges| edges.len() as u64).sum()
    }

    /// The entries of all out-lists, by source and target. An undirected edge that is no loop has two.
    pub fn arcs(&self) -> impl Iterator<Item = (V, V, &E)> {
        let both = self.graph_kind == GraphKind::Undirected;
        self.edges().flat_map(move |(u, v, edge)| {
            // A loop is in one list only, so it is not repeated.
            let reverse = (both && u != v).then_some((v, u, edge));
            std::iter::once((u, v, edge)).chain(reverse)
        })
    }

    /// The number of entries of all out-lists.
    pub fn num_arcs(&self) -> u64 {
        self.arcs().count() as u64
    }

    /// The out-list of a vertex: the targets, ascending, and their edges.
    pub fn out_list(&self, vertex: V) -> Vec<(V, &E)> {
        let mut list: Vec<_> = self.range_of(vertex).flat_map(|(&(_, target), edges)| each(target, edges)).collect();
        if self.graph_kind == GraphKind::Undirected {
            // The smaller neighbors come from `reversed`, so the list is sorted again.
            list.extend(self.entries_from(vertex).filter(|&(other, _)| other != vertex));
            list.sort_by_key(|&(target, _)| target);
        }
        list
    }

    /// The in-list of a vertex: the sources, ascending, and their edges.
    pub fn in_list(&self, vertex: V) -> Vec<(V, &E)> {
        match self.graph_kind {
            GraphKind::Undirected => self.out_list(vertex),
            GraphKind::Directed => self.entries_from(vertex).collect(),
        }
    }

    /// The pairs that begin with a vertex.
    fn range_of(&self, vertex: V) -> impl Iterator<Item = (&(V, V), &Vec<E>)> {
        // The range begins with the smallest pair of the vertex, because `V::default()` is the least vertex.
        self.edges.range((vertex, V::default())..).take_while(move |((source, _), _)| *source == vertex)
    }

    /// The first vertices of the pairs that end with `vertex`.
    fn sources_of(&self, vertex: V) -> impl Iterator<Item = V> {
        let ends = self.reversed.range((vertex, V::default())..).take_while(move |(target, _)| *target == vertex);
        ends.map(|&(_, source)| source)
    }

    /// The edges of the pairs that end with `vertex`, by the first vertex.
    fn entries_from(&self, vertex: V) -> impl Iterator<Item = (V, &E)> {
        self.sources_of(vertex).flat_map(move |source| each(source, &self.edges[&(source, vertex)]))
    }

    fn take(&mut self, pair: (V, V)) -> Vec<E> {
        self.reversed.remove(&(pair.1, pair.0));
        self.edges.remove(&pair).unwrap_or_default()
    }
}

impl<V: Copy + Default + Ord, E: Clone + PartialEq> ModelGraph<V, E> {
    /// This graph with only the edges that `other` lacks, by pair, content and multiplicity.
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = self.clone();
        for (pair, edges) in &other.edges {
            let Some(mine) = left.edges.get_mut(pair) else { continue };
            for edge in edges {
                // One removal for each edge of the other graph: multiplicity counts.
                if let Some(place) = mine.iter().position(|mine| mine == edge) {
                    mine.remove(place);
                }
            }
        }
        // Drops the pairs that have no edge left.
        left.retain(|_, _, _| true);
        left
    }
}

/// The edges with the vertex at their other end.
fn each<V: Copy, E>(other: V, edges: &[E]) -> impl Iterator<Item = (V, &E)> {
    edges.iter().map(move |edge| (other, edge))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(graph: &ModelGraph<u32, u8>) -> Vec<(u32, u32, u8)> {
        graph.edges().map(|(u, v, &edge)| (u, v, edge)).collect()
    }

    fn list(list: Vec<(u32, &u8)>) -> Vec<(u32, u8)> {
        list.into_iter().map(|(other, &edge)| (other, edge)).collect()
    }

    #[test]
    fn simple_graph_replaces_an_edge() {
        let mut graph = ModelGraph::new(GraphKind::Directed);
        graph.add_edge(3, 1, 7);
        graph.add_edge(1, 3, 8);
        graph.add_edge(3, 1, 9);
        graph.add_edge(3, 3, 2);
        assert_eq!(edges(&graph), [(1, 3, 8), (3, 1, 9), (3, 3, 2)]);
        assert_eq!((list(graph.out_list(3)), list(graph.in_list(3))), (vec![(1, 9), (3, 2)], vec![(1, 8), (3, 2)]));
        assert_eq!((graph.num_edges(), graph.num_arcs(), graph.vertices().len()), (3, 3, 2));
        assert_eq!(graph.remove_edges(3, 1), [9]);
        assert!(!graph.has_edge(3, 1) && graph.has_edge(1, 3));
        assert_eq!((list(graph.out_list(3)), list(graph.in_list(1))), (vec![(3, 2)], vec![]));
    }

    #[test]
    fn undirected_edge_is_in_both_lists() {
        let mut graph = ModelGraph::new(GraphKind::Undirected).multigraph(true);
        for (u, v, edge) in [(3, 1, 7), (1, 3, 8), (3, 3, 9), (2, 3, 4)] {
            graph.add_edge(u, v, edge);
        }
        assert_eq!(edges(&graph), [(1, 3, 7), (1, 3, 8), (2, 3, 4), (3, 3, 9)]);
        assert_eq!((graph.num_edges(), graph.num_arcs(), graph.num_pairs()), (4, 7, 3));
        assert_eq!([1, 3].map(|place| graph.nth_pair(place)), [Some((2, 3)), None]);
        assert_eq!(list(graph.out_list(3)), [(1, 7), (1, 8), (2, 4), (3, 9)]);
        assert_eq!(graph.in_list(3), graph.out_list(3));
        assert!(graph.remove_vertex(3) && !graph.remove_vertex(3));
        assert_eq!((graph.num_edges(), graph.out_list(1)), (0, vec![]));
        assert!(graph.has_vertex(1));
    }

    #[test]
    fn ordered_graph_has_no_loops() {
        let mut graph = ModelGraph::new(GraphKind::Directed).ordered(true);
        graph.add_edge(5, 2, 1);
        graph.add_edge(6, 6, 1);
        assert_eq!(edges(&graph), [(2, 5, 1)]);
        assert_eq!((graph.pair(6, 6), graph.edges_between(5, 2)), (None, &[1][..]));
        assert_eq!(Vec::from_iter(graph.vertices()), [&2, &5, &6]);
    }

    #[test]
    fn difference_respects_multiplicity() {
        let mut graph = ModelGraph::new(GraphKind::Directed).multigraph(true);
        for (u, v, edge) in [(1, 2, 5), (1, 2, 5), (1, 2, 6), (2, 1, 5), (2, 2, 1)] {
            graph.add_edge(u, v, edge);
        }
        let mut older = graph.clone();
        older.remove_edges(2, 2);
        older.edges_between_mut(1, 2)[0] = 7;
        let new = graph.minus(&older);
        assert_eq!(edges(&new), [(1, 2, 5), (2, 2, 1)]);
        assert_eq!((new.vertices(), new.in_list(1)), (graph.vertices(), vec![]));
        graph.retain(|u, _, &edge| u == 1 && edge < 6);
        assert_eq!((edges(&graph), graph.in_list(2).len()), (vec![(1, 2, 5), (1, 2, 5)], 2));
    }
}
