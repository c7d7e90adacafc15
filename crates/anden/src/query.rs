//! Questions about single vertices and edges, by key.

use base::VertexId;
use kernels::query::{self, Neighbors};
use kernels::sssp::DistanceValue;

use crate::filter::{SingleLists, on_single};
use crate::{FoundEdge, Key, Result, View};

/// A path through the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The vertices, both ends included; one where they are the same.
    pub vertices: Vec<Key>,
    /// How long it is.
    pub length: PathLength,
}

/// The length of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLength {
    /// The number of its edges.
    Hops(u64),
    /// The sum of its integer weights.
    Integer(u64),
    /// The sum of its floating weights.
    Real(f64),
}

/// The shortest paths between two vertices, or some of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortestPaths {
    /// The number of edges of each.
    pub length: u64,
    /// How many there are; saturates.
    pub count: u64,
    /// The first of them, each with both ends.
    pub paths: Vec<Vec<Key>>,
}

/// Where the lists of a vertex come from.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexFragments {
    /// Its out-list; of an undirected graph, its only list.
    pub out: ListFragments,
    /// Its in-list, where there is another than the out-list.
    pub into: Option<ListFragments>,
}

/// Where a list comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct ListFragments {
    /// The list in the base run; `None` in a window, which shows only what levels add.
    pub base: Option<Vec<Key>>,
    /// What levels change in it, in the order in which they are applied.
    pub levels: Vec<LevelFragment>,
    /// The contiguous pieces that algorithms get.
    pub pieces: Vec<Vec<Key>>,
    /// What was committed since, added and removed; `None` where nothing was.
    pub live: Option<(Vec<Key>, Vec<Key>)>,
}

/// What a level changes in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelFragment {
    /// The snapshot that the level starts from.
    pub from: u32,
    /// The snapshot that it leads to.
    pub to: u32,
    /// Whether it is applied the other way round, since the base run is younger than the view.
    pub is_backward: bool,
    /// What `to` has and `from` has not.
    pub added: Vec<Key>,
    /// What `from` has and `to` has not.
    pub removed: Vec<Key>,
}

/// Which neighbours of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Those that its edges lead to.
    Out,
    /// Those whose edges lead to it.
    In,
    /// Either, each once.
    Both,
}

/// All methods fail where a key is no vertex ([`Error::NotFound`](crate::Error::NotFound)), and on
/// damage met on the way.
impl View {
    /// Whether there is an edge.
    ///
    /// # Errors
    /// See above.
    pub fn has_edge(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        Ok(on_single!(self, lists => query::has_edge(lists, source, target))?)
    }

    /// The edges from one vertex to another, in the order in which they were added: one of a simple graph, several of a
    /// multigraph, none where there is no edge.
    ///
    /// ```
    /// use anden::{Database, EdgeAction, EdgeId, Options, Update};
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
            SingleLists::Whole(lists) => Ok(engine::edges_between(lists, source, target, |_| true)?),
            SingleLists::Tested(tested) => {
                let left = tested.entries(graph::Side::Out, source, |other| other == target)?;
                let is_left = |row: Option<u64>| row.map_or(!left.is_empty(), |row| left.rows.contains(&row));
                Ok(engine::edges_between(self.stored(), source, target, is_left)?)
            }
        }
    }

    /// The neighbours of a vertex, each once, by ascending id.
    ///
    /// # Errors
    /// See above; in-neighbours of a graph without in-edges.
    pub fn neighbors(&self, vertex: impl Into<Key>, side: Side) -> Result<Vec<Key>> {
        self.keys(&self.neighbor_ids(self.vertex(vertex)?, side)?)
    }

    pub(crate) fn neighbor_ids(&self, vertex: VertexId, side: Side) -> Result<Vec<VertexId>> {
        let which = match side {
            Side::Out => Neighbors::Out,
            Side::In => Neighbors::In,
            Side::Both => Neighbors::Both,
        };
        Ok(on_single!(self, lists => query::neighbors(lists, vertex, which))?)
    }

    /// The vertices within `num_hops` steps, without the vertex itself, by ascending id.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn khop(&self, vertex: impl Into<Key>, num_hops: u32) -> Result<Vec<Key>> {
        let vertex = self.vertex(vertex)?;
        let found = on_single!(self, lists => query::khop(&self.context(), lists, vertex, num_hops));
        self.keys(&self.explained(found)?)
    }

    /// Friends of friends: the vertices two steps away and no fewer, by ascending id.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn fof(&self, vertex: impl Into<Key>) -> Result<Vec<Key>> {
        let vertex = self.vertex(vertex)?;
        let found = on_single!(self, lists => query::friends_of_friends(&self.context(), lists, vertex));
        self.keys(&self.explained(found)?)
    }

    /// Whether there is a path; a vertex reaches itself.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn is_reachable(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        Ok(self.path_ids(source, target)?.is_some())
    }

    /// A path of the fewest edges; `None` where there is no path.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let Some(path) = self.path_ids(source, target)? else { return Ok(None) };
        let length = PathLength::Hops(path.length() as u64);
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length }))
    }

    fn path_ids(&self, source: VertexId, target: VertexId) -> Result<Option<query::Path>> {
        self.explained(on_single!(self, lists => query::path(&self.context(), lists, source, target)))
    }

    /// All paths of the fewest edges, at most `limit` of them listed; `None` where there is no path.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn shortest_paths(
        &self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        limit: usize,
    ) -> Result<Option<ShortestPaths>> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let context = self.context();
        let found = on_single!(self, lists => query::shortest_paths(&context, lists, source, target, limit));
        let Some(found) = self.explained(found)? else { return Ok(None) };
        // The keys beside the ids; text is counted as it comes.
        let list_bytes = |each: usize| size_of::<Vec<Key>>() + (found.length + 1) * each;
        let path_bytes = list_bytes(size_of::<VertexId>()) + list_bytes(size_of::<Key>());
        let mut needed = (found.paths.len() * path_bytes) as u64;
        self.explained(context.require_memory("path --all", needed))?;
        let mut paths = Vec::with_capacity(found.paths.len());
        for path in &found.paths {
            let keys = self.keys(&path.vertices)?;
            needed += keys.iter().map(text_bytes).sum::<u64>();
            self.explained(context.require_memory("path --all", needed))?;
            paths.push(keys);
        }
        Ok(Some(ShortestPaths { length: found.length as u64, count: found.count, paths }))
    }

    /// Where the lists of a vertex come from: out of which run, changed by which levels, in which pieces.
    ///
    /// # Errors
    /// See above.
    pub fn fragments(&self, vertex: impl Into<Key>) -> Result<VertexFragments> {
        let vertex = self.vertex(vertex)?;
        let list = |side| -> Result<ListFragments> {
            let origin = self.all_lists()?.list_origin(vertex, side)?;
            let change = |change: &lama::ListChange| -> Result<LevelFragment> {
                Ok(LevelFragment {
                    from: change.from,
                    to: change.to,
                    is_backward: change.is_backward,
                    added: self.any_keys(&change.added)?,
                    removed: self.any_keys(&change.removed)?,
                })
            };
            Ok(ListFragments {
                base: origin.base.map(|targets| self.any_keys(&targets)).transpose()?,
                levels: origin.changes.iter().map(change).collect::<Result<_>>()?,
                live: match &origin.overlay {
                    Some((added, removed)) => Some((self.any_keys(added)?, self.any_keys(removed)?)),
                    None => None,
                },
                pieces: origin.fragments.iter().map(|targets| self.any_keys(targets)).collect::<Result<_>>()?,
            })
        };
        let has_in_lists = self.is_directed() && self.has_in_edges();
        Ok(VertexFragments {
            out: list(lama::Side::Out)?,
            into: if has_in_lists { Some(list(lama::Side::In)?) } else { None },
        })
    }

    /// Keys of vertices, also of those that are there before or after this view only.
    fn any_keys(&self, vertices: &[VertexId]) -> Result<Vec<Key>> {
        let dictionary = self.stored().dictionary();
        let is_shown = |vertex: VertexId| (vertex as usize) < self.vertex_bound();
        let key = |&vertex: &VertexId| match is_shown(vertex) {
            true => self.key(vertex),
            false => Ok(dictionary.key(vertex)?),
        };
        vertices.iter().map(key).collect()
    }

    /// A path of the least sum of weights; `None` where there is no path.
    ///
    /// # Errors
    /// See above; the graph has no weights, or a negative one on the way; cancellation.
    pub fn weighted_path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        self.needs_weights("a weighted path")?;
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let found = match self.chosen() {
            Some(graph) => query::weighted_path(&self.context(), graph, source, target),
            None => on_single!(self, lists => query::weighted_path(&self.context(), lists, source, target)),
        };
        let Some(path) = self.explained(found)? else { return Ok(None) };
        let length = match path.length {
            DistanceValue::Integer(sum) => PathLength::Integer(sum),
            DistanceValue::Float(sum) => PathLength::Real(sum),
        };
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length }))
    }
}

/// The bytes that a key holds beside itself.
fn text_bytes(key: &Key) -> u64 {
    match key {
        Key::Integer(_) => 0,
        Key::String(text) => text.capacity() as u64,
    }
}
