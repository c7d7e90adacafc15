//! Strict batches: an update of what is not there is an error.

use std::collections::HashMap;

use base::VertexId;
use graph::Direction;
use graph::property::OwnedValue;
use lama::{Finder, KeyScheme};

use super::Writer;
use super::apply::{EdgeUpdate, IdUpdate};
use super::update::Update;
use crate::{Error, Result};

/// What would be there after the first updates of a batch, which are checked one after the other.
pub(super) struct StrictChecker<'a> {
    writer: &'a Writer,
    /// Every vertex is below it.
    vertex_bound: usize,
    /// Whether there is an edge, and after how many removals of vertices that was so: later ones may take it away.
    edges: HashMap<(VertexId, VertexId), (u64, bool)>,
    vertices: HashMap<VertexId, bool>,
    /// By property and vertex, whether there is a value, as for edges.
    values: HashMap<(usize, VertexId), (u64, bool)>,
    /// The number of the last removal of a vertex, with which its edges and values all went.
    cleared: HashMap<VertexId, u64>,
    num_removals: u64,
}

impl<'a> StrictChecker<'a> {
    pub(super) fn new(writer: &'a Writer) -> Self {
        let (edges, vertices, values, cleared) = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        Self { writer, vertex_bound: writer.vertex_bound, edges, vertices, values, cleared, num_removals: 0 }
    }

    pub(super) fn is_live(&self, vertex: VertexId) -> bool {
        let known = self.vertices.get(&vertex).copied();
        known.unwrap_or_else(|| match vertex as usize {
            index if index < self.writer.vertex_bound => self.writer.is_live(vertex),
            index => index < self.vertex_bound,
        })
    }

    /// # Errors
    /// What is to be removed is not there.
    pub(super) fn see(&mut self, update: &Update, with_ids: Option<&IdUpdate>, finder: &mut Finder<'_>) -> Result<()> {
        match (update, with_ids) {
            (
                _,
                Some(&IdUpdate::Edge(EdgeUpdate { source, target, addition: Some(_) }))
                | Some(&IdUpdate::SetWeight(EdgeUpdate { source, target, .. })),
            ) => {
                self.edges.insert(self.key(source, target), (self.num_removals, true));
            }
            (Update::RemoveEdge { source, target }, with_ids) => {
                let key = match with_ids {
                    Some(IdUpdate::Edge(edge)) => Some(self.key(edge.source, edge.target)),
                    _ => None,
                };
                match key {
                    Some(key) if self.has_edge(key, finder)? => self.edges.insert(key, (self.num_removals, false)),
                    _ => return Err(Error::Option(format!("there is no edge from {source} to {target} to remove"))),
                };
            }
            (_, Some(&IdUpdate::AddVertex(vertex))) => {
                self.vertices.insert(vertex, true);
                // Where keys are ids, all below come with it.
                if self.writer.underlay.view().options().keys == KeyScheme::Dense {
                    self.vertex_bound = self.vertex_bound.max(vertex as usize + 1);
                }
            }
            (Update::RemoveVertex(key), with_ids) => {
                let vertex = match with_ids {
                    Some(&IdUpdate::RemoveVertex(vertex)) if self.is_live(vertex) => vertex,
                    _ => return Err(Error::Option(format!("there is no vertex {key} to remove"))),
                };
                self.vertices.insert(vertex, false);
                self.num_removals += 1;
                self.cleared.insert(vertex, self.num_removals);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether there are edges between two vertices now, in the order in which they are stored.
    pub(super) fn see_edges(&mut self, ends: (VertexId, VertexId), is_there: bool) {
        self.edges.insert(self.key(ends.0, ends.1), (self.num_removals, is_there));
    }

    /// Whether a vertex can get this value, which it then has: what is taken away must be there.
    pub(super) fn see_value(&mut self, place: usize, vertex: VertexId, value: &OwnedValue) -> Result<bool> {
        let is_null = value.as_value().is_null();
        let cleared = self.cleared_at(vertex);
        let has_value = match self.values.insert((place, vertex), (self.num_removals, !is_null)) {
            _ if !is_null => true,
            Some((at, has_value)) if at >= cleared => has_value,
            _ if cleared > 0 => false,
            _ => !self.writer.newest.value_over(place, vertex)?.is_null(),
        };
        Ok(has_value)
    }

    /// The number of the removal of a vertex; 0 where there was none.
    fn cleared_at(&self, vertex: VertexId) -> u64 {
        self.cleared.get(&vertex).copied().unwrap_or(0)
    }

    fn key(&self, source: VertexId, target: VertexId) -> (VertexId, VertexId) {
        let options = self.writer.underlay.view().options();
        let has_direction = options.direction == Direction::Directed && !options.ordered;
        if has_direction || source < target { (source, target) } else { (target, source) }
    }

    fn has_edge(&self, (source, target): (VertexId, VertexId), finder: &mut Finder<'_>) -> Result<bool> {
        let cleared = self.cleared_at(source).max(self.cleared_at(target));
        match self.edges.get(&(source, target)) {
            Some(&(at, is_there)) if at >= cleared => return Ok(is_there),
            _ if cleared > 0 => return Ok(false),
            _ => {}
        }
        Ok(!self.writer.newest.edges(source, target, finder)?.is_empty())
    }
}
