//! Strict batches: an update that names something missing is an error.

use anden_base::VertexId;
use anden_graph::GraphKind;
use anden_graph::property::OwnedValue;
use anden_snapshots::{Finder, KeyScheme};
use foldhash::{HashMap, HashMapExt};

use super::MemtableWriter;
use super::apply::{EdgeUpdate, IdUpdate};
use super::update::Update;
use crate::{Error, Result};

/// The state after the first updates of a batch, which are checked one after the other.
pub(super) struct StrictChecker<'a> {
    writer: &'a MemtableWriter,
    /// All live ids are below it.
    vertex_bound: usize,
    /// Whether an edge exists, and the number of vertex removals at that time: later ones may remove the edge.
    edges: HashMap<(VertexId, VertexId), (u64, bool)>,
    vertices: HashMap<VertexId, bool>,
    /// By property and vertex, whether there is a value; numbered like edges.
    values: HashMap<(usize, VertexId), (u64, bool)>,
    /// The number of the last removal of a vertex, which took all its edges and values.
    cleared: HashMap<VertexId, u64>,
    num_removals: u64,
}

impl<'a> StrictChecker<'a> {
    pub(super) fn new(writer: &'a MemtableWriter) -> Self {
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
    /// The removed edge or vertex does not exist.
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
                    _ => {
                        let (source_key, target_key) = (source.clone(), target.clone());
                        return Err(Error::NoEdgeToRemove { source_key, target_key });
                    }
                };
            }
            (_, Some(&IdUpdate::AddVertex(vertex))) => {
                self.vertices.insert(vertex, true);
                // With dense keys, all lower ids become vertices too.
                if self.writer.overlay_base.view().options().keys == KeyScheme::Dense {
                    self.vertex_bound = self.vertex_bound.max(vertex as usize + 1);
                }
            }
            (Update::RemoveVertex(key), with_ids) => {
                let vertex = match with_ids {
                    Some(&IdUpdate::RemoveVertex(vertex)) if self.is_live(vertex) => vertex,
                    _ => return Err(Error::NoVertexToRemove { key: key.clone() }),
                };
                self.vertices.insert(vertex, false);
                // Removals are numbered, so no removal has to search for the edges and values that it takes along.
                self.num_removals += 1;
                self.cleared.insert(vertex, self.num_removals);
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes whether there are edges between two vertices, given in the order of storage.
    pub(super) fn see_edges(&mut self, ends: (VertexId, VertexId), is_there: bool) {
        self.edges.insert(self.key(ends.0, ends.1), (self.num_removals, is_there));
    }

    /// Notes a value of a vertex. Returns false for null if there is no value to remove.
    pub(super) fn see_value(&mut self, place: usize, vertex: VertexId, value: &OwnedValue) -> Result<bool> {
        let is_null = value.as_value().is_null();
        let cleared = self.cleared_at(vertex);
        let has_value = match self.values.insert((place, vertex), (self.num_removals, !is_null)) {
            _ if !is_null => true,
            Some((at, has_value)) if at >= cleared => has_value,
            // A value from before the last removal of the vertex is gone.
            _ if cleared > 0 => false,
            _ => !self.writer.newest.value_over(place, vertex)?.is_null(),
        };
        Ok(has_value)
    }

    /// The number of the last removal of a vertex; 0 if it was never removed.
    fn cleared_at(&self, vertex: VertexId) -> u64 {
        self.cleared.get(&vertex).copied().unwrap_or(0)
    }

    fn key(&self, source: VertexId, target: VertexId) -> (VertexId, VertexId) {
        let options = self.writer.overlay_base.view().options();
        let has_direction = options.graph_kind == GraphKind::Directed && !options.ordered;
        if has_direction || source < target { (source, target) } else { (target, source) }
    }

    fn has_edge(&self, (source, target): (VertexId, VertexId), finder: &mut Finder<'_>) -> Result<bool> {
        let cleared = self.cleared_at(source).max(self.cleared_at(target));
        match self.edges.get(&(source, target)) {
            Some(&(at, is_there)) if at >= cleared => return Ok(is_there),
            // An edge from before the last removal of one of its ends is gone.
            _ if cleared > 0 => return Ok(false),
            _ => {}
        }
        // Read in the newest version only if no earlier update of the batch decides.
        Ok(!self.writer.newest.edges(source, target, finder)?.is_empty())
    }
}
