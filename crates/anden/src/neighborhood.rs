//! Questions about the neighborhood of a vertex: along edges of either direction, with distances and counts.

use anden_base::VertexId;
use anden_graph::Graph;
use anden_kernels::query::{self, Neighbors};

use crate::degrees::degree;
use crate::job::keyed;
use crate::query::{Path, PathLength, PathOptions, ShortestPaths};
use crate::{Key, Result, View};

/// Runs a query along edges of a direction.
macro_rules! along {
    ($view:expr, $which:expr, $lists:ident => $call:expr) => {
        $crate::filter::on_single!($view, stored => match $which {
            anden_kernels::query::Neighbors::Out => {
                let $lists = stored;
                $call
            }
            which => anden_kernels::query::NeighborGraph::new(stored, which).and_then(|turned| {
                let $lists = &turned;
                $call
            }),
        })
    };
}

/// All methods fail if a vertex does not exist ([`Error::NotFound`](crate::Error::NotFound)), if the direction needs
/// in-edges and the graph has none, on damage met on the way, and on cancellation.
impl View {
    /// The vertices within `num_hops` steps along edges of a direction, without the vertex itself, in ascending order
    /// of keys.
    ///
    /// # Errors
    /// See above.
    pub fn khop_along(&self, vertex: impl Into<Key>, num_hops: u32, direction: Neighbors) -> Result<Vec<Key>> {
        let vertex = self.vertex(vertex)?;
        let found = along!(self, direction, lists => query::khop(&self.context(), lists, vertex, num_hops));
        self.keys_in_order(&self.explained(found)?)
    }

    /// The vertices within `num_hops` steps, each with its distance in steps: by ascending distance, then by ascending
    /// key.
    ///
    /// ```
    /// use anden::{Database, Neighbors, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 9), Update::add_edge(9, 2), Update::add_edge(5, 1)])?;
    /// let view = db.view()?;
    /// assert_eq!(view.khop_depths(1, 2, Neighbors::Out)?, [(9.into(), 1), (2.into(), 2)]);
    /// assert_eq!(view.khop_depths(1, 1, Neighbors::Both)?, [(5.into(), 1), (9.into(), 1)]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// See above.
    pub fn khop_depths(&self, vertex: impl Into<Key>, num_hops: u32, direction: Neighbors) -> Result<Vec<(Key, u32)>> {
        let vertex = self.vertex(vertex)?;
        let levels = along!(self, direction, lists => query::khop_levels(&self.context(), lists, vertex, num_hops));
        let mut found = Vec::new();
        for (level, depth) in self.explained(levels)?.iter().zip(1..) {
            found.extend(self.keys_in_order(level)?.into_iter().map(|key| (key, depth)));
        }
        Ok(found)
    }

    /// The vertices at a distance of exactly `num_hops` steps, in ascending order of keys. With two steps: friends of
    /// friends.
    ///
    /// # Errors
    /// See above.
    pub fn at_distance(&self, vertex: impl Into<Key>, num_hops: u32, direction: Neighbors) -> Result<Vec<Key>> {
        let vertex = self.vertex(vertex)?;
        let found = along!(self, direction, lists => query::at_distance(&self.context(), lists, vertex, num_hops));
        self.keys_in_order(&self.explained(found)?)
    }

    /// Friends of friends as recommendations: the vertices at a distance of exactly two, each with the number of
    /// neighbors between. By descending number, then by ascending key.
    ///
    /// ```
    /// use anden::{Database, Neighbors, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let edges = [(1, 2), (1, 3), (2, 7), (2, 8), (3, 8)];
    /// db.apply(&edges.map(|(source, target)| Update::add_edge(source, target)))?;
    /// let found = db.view()?.fof_counts(1, Neighbors::Out)?;
    /// assert_eq!(found, [(8.into(), 2), (7.into(), 1)]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// See above.
    pub fn fof_counts(&self, vertex: impl Into<Key>, direction: Neighbors) -> Result<Vec<(Key, u64)>> {
        let vertex = self.vertex(vertex)?;
        let found = along!(self, direction, lists => query::count_friends_of_friends(&self.context(), lists, vertex));
        let found = self.explained(found)?.into_iter().map(|(vertex, count)| (vertex, u64::from(count)));
        let mut found = keyed(self, found.collect())?;
        found.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok(found)
    }

    /// The neighbors that two vertices have in common, in ascending order of keys.
    ///
    /// # Errors
    /// See above.
    pub fn common_neighbors(
        &self,
        first: impl Into<Key>,
        second: impl Into<Key>,
        direction: Neighbors,
    ) -> Result<Vec<Key>> {
        let (first, second) = (self.vertex(first)?, self.vertex(second)?);
        let mut common = self.neighbor_ids(first, direction)?;
        let others = self.neighbor_ids(second, direction)?;
        // Both lists ascend.
        common.retain(|vertex| others.binary_search(vertex).is_ok());
        self.keys_in_order(&common)
    }

    /// A path with the fewest edges, along edges of a direction and of a limited length; `None` if no such path exists.
    ///
    /// # Errors
    /// See above.
    pub fn path_with(
        &self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        options: &PathOptions,
    ) -> Result<Option<Path>> {
        let ends = (self.vertex(source)?, self.vertex(target)?);
        let Some(path) = self.path_ids(ends, options)? else { return Ok(None) };
        let length = PathLength::Hops(path.length() as u64);
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length }))
    }

    /// Whether such a path exists. A vertex reaches itself.
    ///
    /// # Errors
    /// See above.
    pub fn is_reachable_with(
        &self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        options: &PathOptions,
    ) -> Result<bool> {
        let ends = (self.vertex(source)?, self.vertex(target)?);
        Ok(self.path_ids(ends, options)?.is_some())
    }

    fn path_ids(&self, ends: (VertexId, VertexId), options: &PathOptions) -> Result<Option<query::VertexPath>> {
        let most_edges = options.max_depth.map_or(usize::MAX, |depth| depth as usize);
        let context = self.context();
        self.explained(along!(self, options.direction, lists => query::path_within(&context, lists, ends, most_edges)))
    }

    /// All paths with the fewest edges along edges of a direction, of which at most `limit` are listed; `None` if no
    /// path exists.
    ///
    /// # Errors
    /// See above.
    pub fn shortest_paths_along(
        &self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        direction: Neighbors,
        limit: usize,
    ) -> Result<Option<ShortestPaths>> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let context = self.context();
        let found = along!(self, direction, lists => query::shortest_paths(&context, lists, source, target, limit));
        self.explained(found)?.map(|found| self.listed_paths(&context, found)).transpose()
    }

    /// A path with the smallest sum of weights, along edges of a direction; `None` if no path exists.
    ///
    /// # Errors
    /// See above; the graph has no weights, or the search meets a negative weight.
    pub fn weighted_path_along(
        &self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        direction: Neighbors,
    ) -> Result<Option<Path>> {
        self.needs_weights("a weighted path")?;
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let context = self.context();
        let found = match (self.chosen(), direction) {
            // Chosen weights belong to lists that are laid out, so no entry needs a test.
            (Some(graph), Neighbors::Out) => query::weighted_path(&context, graph, source, target),
            (Some(graph), direction) => query::NeighborGraph::new(graph, direction)
                .and_then(|turned| query::weighted_path(&context, &turned, source, target)),
            (None, _) => along!(self, direction, lists => query::weighted_path(&context, lists, source, target)),
        };
        let Some(path) = self.explained(found)? else { return Ok(None) };
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length: PathLength::of(path.length) }))
    }

    /// The `length` vertices with the most edges of a direction, by descending degree, then by ascending key. Parallel
    /// edges count each time, and a loop counts once in each direction.
    ///
    /// # Errors
    /// See above.
    pub fn top_degrees(&self, length: usize, direction: Neighbors) -> Result<Vec<(Key, u64)>> {
        self.require_lists_of(direction)?;
        let lists = self.all_lists()?;
        let found = self.top_counts(length, |vertex| degree(lists, self.is_directed(), vertex, direction))?;
        // Damaged lists look empty, so the degrees count only if this check passes.
        lists.check()?;
        keyed(self, found)
    }
}
