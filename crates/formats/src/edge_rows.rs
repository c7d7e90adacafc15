//! Edges of a graph as rows for writers, which several threads make in parts.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_graph::property::{PropertyColumn, PropertySchema};
use anden_graph::walk::try_walk;
use anden_graph::{Direction, Graph, GraphKind, Parts, Weight, WeightedEdges};

use crate::Result;

/// The properties that an export writes beside edges and vertices.
pub trait WrittenProperties<E>: Sync {
    /// The edge properties.
    fn edge_schema(&self) -> &PropertySchema;

    /// The vertex properties.
    fn vertex_schema(&self) -> &PropertySchema;

    /// Appends the row of each entry of a vertex's out-list, and fixes the order in which later reads return that list.
    ///
    /// # Errors
    /// The rows cannot be read.
    fn push_rows(&self, vertex: VertexId, rows: &mut Vec<u64>) -> Result<(), E>;

    /// The values of these rows: one column for each edge property.
    ///
    /// # Errors
    /// The values cannot be read.
    fn edge_columns(&self, rows: &[u64]) -> Result<Vec<PropertyColumn>, E>;

    /// The values of these vertices: one column for each vertex property.
    ///
    /// # Errors
    /// The values cannot be read.
    fn vertex_columns(&self, vertices: &[VertexId]) -> Result<Vec<PropertyColumn>, E>;
}

/// No properties.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProperties;

static NOTHING: PropertySchema = PropertySchema::EMPTY;

impl<E> WrittenProperties<E> for NoProperties {
    fn edge_schema(&self) -> &PropertySchema {
        &NOTHING
    }

    fn vertex_schema(&self) -> &PropertySchema {
        &NOTHING
    }

    fn push_rows(&self, _vertex: VertexId, _rows: &mut Vec<u64>) -> Result<(), E> {
        Ok(())
    }

    fn edge_columns(&self, _rows: &[u64]) -> Result<Vec<PropertyColumn>, E> {
        Ok(Vec::new())
    }

    fn vertex_columns(&self, _vertices: &[VertexId]) -> Result<Vec<PropertyColumn>, E> {
        Ok(Vec::new())
    }
}

/// Calls `body` with each vertex; `body` reads the vertex's out-list and the columns beside it.
///
/// # Errors
/// The first error of `body`.
pub(crate) fn for_each_written<E>(
    graph: &impl WeightedEdges,
    vertices: Range<VertexId>,
    has_rows: bool,
    body: impl FnMut(VertexId) -> Result<(), E>,
) -> Result<(), E> {
    let has_weights = has_rows || graph.weight_type().is_some();
    try_walk(graph, Direction::Out, if has_weights { Parts::Weighted } else { Parts::Targets }, vertices, body)
}

/// Ranges of vertices with about `num_arcs` out-list entries, and at most this many vertices. Cost: reads every degree.
pub(crate) fn pieces_of(graph: &impl Graph, num_arcs: usize) -> Vec<Range<VertexId>> {
    let mut pieces = Vec::new();
    let (mut start, mut count) = (0, 0);
    let end = graph.vertex_bound() as VertexId;
    for vertex in 0..end {
        count += graph.degree(Direction::Out, vertex);
        // Many vertices without edges also end a piece.
        if count >= num_arcs || (vertex - start) as usize >= num_arcs {
            pieces.push(start..vertex + 1);
            (start, count) = (vertex + 1, 0);
        }
    }
    if start < end {
        pieces.push(start..end);
    }
    pieces
}

/// Consecutive edges. An undirected edge appears once, at its lower end.
#[derive(Debug)]
pub(crate) struct EdgeRows<W> {
    pub(crate) sources: Vec<VertexId>,
    pub(crate) targets: Vec<VertexId>,
    /// One weight per edge, or empty.
    pub(crate) weights: Vec<W>,
    /// One row per edge if edges have properties, or empty.
    pub(crate) rows: Vec<u64>,
}

impl<W: Weight> Default for EdgeRows<W> {
    fn default() -> Self {
        Self { sources: Vec::new(), targets: Vec::new(), weights: Vec::new(), rows: Vec::new() }
    }
}

impl<W: Weight> EdgeRows<W> {
    /// Appends the edges of a vertex.
    ///
    /// # Errors
    /// The rows of properties cannot be read.
    pub(crate) fn push<G: WeightedEdges, E>(
        &mut self,
        graph: &G,
        properties: &impl WrittenProperties<E>,
        source: VertexId,
    ) -> Result<(), E> {
        let first = self.targets.len();
        self.push_arcs(graph, properties, source)?;
        // Both ends hold an undirected edge, and only the lower end keeps it.
        if graph.graph_kind() == GraphKind::Undirected {
            self.keep_from(first, source);
        }
        Ok(())
    }

    /// Appends the whole out-list of a vertex, also the arcs of undirected edges at their upper ends.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn push_arcs<G: WeightedEdges, E>(
        &mut self,
        graph: &G,
        properties: &impl WrittenProperties<E>,
        source: VertexId,
    ) -> Result<(), E> {
        // Read first, because `push_rows` fixes the order of the list for later reads.
        let has_rows = !properties.edge_schema().is_empty();
        if has_rows {
            properties.push_rows(source, &mut self.rows)?;
        }
        let mut push = |targets: &[VertexId], weights: &[W]| {
            self.targets.extend_from_slice(targets);
            self.weights.extend_from_slice(weights);
            ControlFlow::Continue(())
        };
        let _ = match graph.weight_type() {
            Some(_) => graph.for_each_weighted_fragment::<W>(Direction::Out, source, push),
            None => graph.for_each_fragment(Direction::Out, source, |targets| push(targets, &[])),
        };
        if has_rows {
            // A list that turned out damaged has fewer rows or targets. `Graph::check` reports the damage.
            self.rows.resize(self.targets.len(), 0);
        }
        self.sources.resize(self.targets.len(), source);
        Ok(())
    }

    /// Keeps only edges with a target of at least `source`, among those from `first` on.
    fn keep_from(&mut self, first: usize, source: VertexId) {
        let mut kept = first;
        for i in first..self.targets.len() {
            if self.targets[i] < source {
                continue;
            }
            self.targets[kept] = self.targets[i];
            if !self.weights.is_empty() {
                self.weights[kept] = self.weights[i];
            }
            if !self.rows.is_empty() {
                self.rows[kept] = self.rows[i];
            }
            kept += 1;
        }
        self.sources.truncate(kept);
        self.targets.truncate(kept);
        self.weights.truncate(kept);
        self.rows.truncate(kept);
    }

    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }

    pub(crate) fn clear(&mut self) {
        self.sources.clear();
        self.targets.clear();
        self.weights.clear();
        self.rows.clear();
    }
}
