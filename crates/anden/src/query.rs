//! Questions about single vertices and edges, by key.

use base::VertexId;
use kernels::query::{self, Neighbors};
use kernels::sssp::DistanceValue;

use crate::{Key, Result, View};

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
        Ok(query::has_edge(self.lists(), self.vertex(source)?, self.vertex(target)?)?)
    }

    /// The neighbours of a vertex, each once, by ascending id.
    ///
    /// # Errors
    /// See above; in-neighbours of a graph without in-edges.
    pub fn neighbors(&self, vertex: impl Into<Key>, side: Side) -> Result<Vec<Key>> {
        let which = match side {
            Side::Out => Neighbors::Out,
            Side::In => Neighbors::In,
            Side::Both => Neighbors::Both,
        };
        self.keys(&query::neighbors(self.lists(), self.vertex(vertex)?, which)?)
    }

    /// The vertices within `num_hops` steps, without the vertex itself, by ascending id.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn khop(&self, vertex: impl Into<Key>, num_hops: u32) -> Result<Vec<Key>> {
        self.keys(&self.within(self.vertex(vertex)?, num_hops)?)
    }

    /// Friends of friends: the vertices two steps away and no fewer, by ascending id.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn fof(&self, vertex: impl Into<Key>) -> Result<Vec<Key>> {
        let vertex = self.vertex(vertex)?;
        let near = self.within(vertex, 1)?;
        let mut far = self.within(vertex, 2)?;
        far.retain(|vertex| near.binary_search(vertex).is_err());
        self.keys(&far)
    }

    fn within(&self, vertex: VertexId, num_hops: u32) -> Result<Vec<VertexId>> {
        Ok(query::khop(&self.context(), self.lists(), vertex, num_hops)?)
    }

    /// A path of the fewest edges; `None` where there is no path.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let Some(path) = query::path(&self.context(), self.lists(), source, target)? else { return Ok(None) };
        let length = PathLength::Hops(path.length() as u64);
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length }))
    }

    /// A path of the least sum of weights; `None` where there is no path.
    ///
    /// # Errors
    /// See above; the graph has no weights, or a negative one on the way; cancellation.
    pub fn weighted_path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        self.needs_weights("a weighted path")?;
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let found = query::weighted_path(&self.context(), self.lists(), source, target);
        let Some(path) = found.map_err(|error| self.explained(error))? else { return Ok(None) };
        let length = match path.length {
            DistanceValue::Integer(sum) => PathLength::Integer(sum),
            DistanceValue::Float(sum) => PathLength::Real(sum),
        };
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length }))
    }
}
