//! Questions about single vertices and edges, by key: methods of [`View`], and the types of their answers.

use anden_base::VertexId;
use anden_graph::Direction;
use anden_kernels::Context;
use anden_kernels::query::{self, Neighbors};
use anden_kernels::sssp::DistanceValue;

use crate::filter::{SingleLists, on_single};
use crate::{Key, Result, View};

pub use anden_engine::FoundEdge;

/// Which paths [`View::path_with`] considers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathOptions {
    /// The edges that a path follows.
    pub direction: Neighbors,
    /// The most edges of a path; `None`: any number. The search goes no farther.
    pub max_depth: Option<u32>,
}

/// A path through the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The vertices, both ends included; one vertex if source and target are equal.
    pub vertices: Vec<Key>,
    /// The length, in edges or in weight.
    pub length: PathLength,
}

/// The length of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLength {
    /// The number of edges.
    Hops(u64),
    /// The sum of integer weights.
    Integer(u64),
    /// The sum of floating-point weights.
    Real(f64),
}

impl PathLength {
    /// The length of a weighted path.
    pub(crate) fn of(distance: DistanceValue) -> Self {
        match distance {
            DistanceValue::Integer(sum) => Self::Integer(sum),
            DistanceValue::Float(sum) => Self::Real(sum),
        }
    }
}

/// The shortest paths between two vertices, or the first of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortestPaths {
    /// The number of edges of each path.
    pub length: u64,
    /// The number of shortest paths; saturates.
    pub count: u64,
    /// The listed paths, each with both ends.
    pub paths: Vec<Vec<Key>>,
}

/// How the adjacency lists of a vertex are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexFragments {
    /// The out-list; in an undirected graph, the only list.
    pub out: ListFragments,
    /// The in-list of a directed graph that stores in-lists.
    pub into: Option<ListFragments>,
}

/// How one adjacency list is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ListFragments {
    /// The list in the base; `None` in a window, which shows only what deltas add.
    pub base: Option<Vec<Key>>,
    /// The changes of each delta, in the order of application.
    pub deltas: Vec<DeltaFragment>,
    /// The contiguous fragments that kernels receive.
    pub fragments: Vec<Vec<Key>>,
    /// Arcs that the memtable adds and removes; `None` without changes.
    pub live: Option<(Vec<Key>, Vec<Key>)>,
}

/// The changes of one delta in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaFragment {
    /// The snapshot before the delta.
    pub from: u32,
    /// The snapshot after the delta.
    pub to: u32,
    /// Whether the delta is applied backward, because the base is younger than the view.
    pub is_backward: bool,
    /// Arcs in `to` but not in `from`.
    pub added: Vec<Key>,
    /// Arcs in `from` but not in `to`.
    pub removed: Vec<Key>,
}

/// All methods fail if a vertex does not exist ([`Error::NotFound`](crate::Error::NotFound)), and on damage met on the
/// way.
impl View {
    /// Whether the edge exists.
    ///
    /// # Errors
    /// See above.
    pub fn has_edge(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        Ok(on_single!(self, lists => query::has_edge(lists, source, target))?)
    }

    /// The edges from one vertex to another, in the order of insertion. A simple graph has at most one, a multigraph
    /// any number.
    ///
    /// ```
    /// use anden::{Database, EdgeId, Options, Update};
    /// use anden::changes::EdgeAction;
    ///
    /// let db = Database::in_memory(Options { multigraph: true, ..Options::default() })?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(1, 2)])?;
    /// let edges = db.view()?.edges_between(1, 2)?;
    /// let id = EdgeId { source: 1.into(), target: 2.into(), number: edges[0].number.unwrap() };
    /// db.apply(&[Update::change_edge(id, EdgeAction::Remove)])?;
    /// assert_eq!(db.view()?.edges_between(1, 2)?, edges[1..]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// See above.
    pub fn edges_between(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Vec<FoundEdge>> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        match self.single_lists() {
            SingleLists::Whole(lists) => Ok(anden_engine::edges_between(lists, source, target, |_| true)?),
            SingleLists::Tested(tested) => {
                let mut left = tested.entries(Direction::Out, source, |other| other == target)?;
                // Sorted, because a pair may have many parallel edges.
                left.rows.sort_unstable();
                // Without rows, the pair has at most one edge, so any remaining entry is that edge.
                let is_left =
                    |row: Option<u64>| row.map_or(!left.is_empty(), |row| left.rows.binary_search(&row).is_ok());
                Ok(anden_engine::edges_between(self.stored(), source, target, is_left)?)
            }
        }
    }

    /// The neighbors of a vertex, each once, in ascending order of keys.
    ///
    /// # Errors
    /// See above; the graph has no in-lists.
    pub fn neighbors(&self, vertex: impl Into<Key>, direction: Neighbors) -> Result<Vec<Key>> {
        self.keys_in_order(&self.neighbor_ids(self.vertex(vertex)?, direction)?)
    }

    pub(crate) fn neighbor_ids(&self, vertex: VertexId, direction: Neighbors) -> Result<Vec<VertexId>> {
        Ok(on_single!(self, lists => query::neighbors(lists, vertex, direction))?)
    }

    /// The vertices within `num_hops` steps, without the vertex itself, in ascending order of keys.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn khop(&self, vertex: impl Into<Key>, num_hops: u32) -> Result<Vec<Key>> {
        self.khop_along(vertex, num_hops, Neighbors::Out)
    }

    /// Friends of friends: the vertices at a distance of exactly two, in ascending order of keys.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn fof(&self, vertex: impl Into<Key>) -> Result<Vec<Key>> {
        self.at_distance(vertex, 2, Neighbors::Out)
    }

    /// The keys of vertices, ascending.
    pub(crate) fn keys_in_order(&self, vertices: &[VertexId]) -> Result<Vec<Key>> {
        let mut keys = self.keys(vertices)?;
        // Ids usually ascend with keys: a check is cheaper than a sort.
        if !keys.is_sorted() {
            keys.sort_unstable();
        }
        Ok(keys)
    }

    /// Whether a path exists. A vertex reaches itself.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn is_reachable(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        self.is_reachable_with(source, target, &PathOptions::default())
    }

    /// A path with the fewest edges; `None` if no path exists.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        self.path_with(source, target, &PathOptions::default())
    }

    /// All paths with the fewest edges, of which at most `limit` are listed; `None` if no path exists.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn shortest_paths(
        &self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        limit: usize,
    ) -> Result<Option<ShortestPaths>> {
        self.shortest_paths_along(source, target, Neighbors::Out, limit)
    }

    /// The keys of paths, within the budget.
    pub(crate) fn listed_paths(
        &self,
        context: &Context<'_>,
        found: query::ShortestVertexPaths,
    ) -> Result<ShortestPaths> {
        // Keys are held beside the ids. Text of string keys is added below, when its length is known.
        let list_bytes = |each: usize| size_of::<Vec<Key>>() + (found.length + 1) * each;
        let path_bytes = list_bytes(size_of::<VertexId>()) + list_bytes(size_of::<Key>());
        let mut needed = (found.paths.len() * path_bytes) as u64;
        self.explained(context.require_memory("path --all", needed))?;
        let mut paths = Vec::with_capacity(found.paths.len());
        for path in &found.paths {
            let keys = self.keys(&path.vertices)?;
            // String keys have no fixed size, so they are counted path by path.
            needed += keys.iter().map(text_bytes).sum::<u64>();
            self.explained(context.require_memory("path --all", needed))?;
            paths.push(keys);
        }
        Ok(ShortestPaths { length: found.length as u64, count: found.count, paths })
    }

    /// Shows how the lists of a vertex are stored: base, deltas, memtable, and the fragments that they form.
    ///
    /// # Errors
    /// See above.
    pub fn fragments(&self, vertex: impl Into<Key>) -> Result<VertexFragments> {
        let vertex = self.vertex(vertex)?;
        let list = |direction| -> Result<ListFragments> {
            let origin = self.all_lists()?.list_origin(vertex, direction)?;
            let change = |change: &anden_snapshots::ListChange| -> Result<DeltaFragment> {
                Ok(DeltaFragment {
                    from: change.from,
                    to: change.to,
                    is_backward: change.is_backward,
                    added: self.any_keys(&change.added)?,
                    removed: self.any_keys(&change.removed)?,
                })
            };
            Ok(ListFragments {
                base: origin.base.map(|targets| self.any_keys(&targets)).transpose()?,
                deltas: origin.changes.iter().map(change).collect::<Result<_>>()?,
                live: match &origin.overlay {
                    Some((added, removed)) => Some((self.any_keys(added)?, self.any_keys(removed)?)),
                    None => None,
                },
                fragments: origin.fragments.iter().map(|targets| self.any_keys(targets)).collect::<Result<_>>()?,
            })
        };
        // The one list of an undirected vertex serves both directions.
        let has_in_lists = self.is_directed() && self.has_in_edges();
        Ok(VertexFragments {
            out: list(Direction::Out)?,
            into: if has_in_lists { Some(list(Direction::In)?) } else { None },
        })
    }

    /// Keys of vertices, including those that exist only in an older or newer version.
    fn any_keys(&self, vertices: &[VertexId]) -> Result<Vec<Key>> {
        let dictionary = self.stored().dictionary();
        let is_shown = |vertex: VertexId| (vertex as usize) < self.vertex_bound();
        let key = |&vertex: &VertexId| match is_shown(vertex) {
            true => self.key(vertex),
            false => Ok(dictionary.key(vertex)?),
        };
        vertices.iter().map(key).collect()
    }

    /// A path with the smallest sum of weights; `None` if no path exists.
    ///
    /// # Errors
    /// See above; the graph has no weights, or the search meets a negative weight; cancellation.
    pub fn weighted_path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        self.weighted_path_along(source, target, Neighbors::Out)
    }
}

/// Heap bytes of a key.
fn text_bytes(key: &Key) -> u64 {
    match key {
        Key::Integer(_) => 0,
        Key::String(text) => text.capacity() as u64,
    }
}
