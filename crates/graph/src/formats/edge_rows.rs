//! The edges of a graph as rows that writers put out: parts of them, in several threads.

use std::ops::{ControlFlow, Range};

use base::VertexId;

use crate::property::{PropertyColumn, PropertySchema};
use crate::walk::try_walk;
use crate::{Direction, Graph, Parts, Result, Side, Weight, WeightedEdges};

/// The properties that are written beside edges and vertices.
pub trait WrittenProperties<E>: Sync {
    /// The properties of edges.
    fn edge_schema(&self) -> &PropertySchema;

    /// The properties of vertices.
    fn vertex_schema(&self) -> &PropertySchema;

    /// Appends the row of each entry of the out-list of a vertex, in the order in which the list is read from then on.
    ///
    /// # Errors
    /// Rows cannot be read.
    fn push_rows(&self, vertex: VertexId, rows: &mut Vec<u64>) -> Result<(), E>;

    /// The values of these rows: a column for each property of edges.
    ///
    /// # Errors
    /// They cannot be read.
    fn edge_columns(&self, rows: &[u64]) -> Result<Vec<PropertyColumn>, E>;

    /// The values of these vertices: a column for each property of vertices.
    ///
    /// # Errors
    /// They cannot be read.
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

/// Calls `body` with each of these vertices; `body` reads the vertex's out-list and what stands beside its entries.
///
/// # Errors
/// The first error of `body`.
pub(super) fn for_each_written<E>(
    graph: &impl WeightedEdges,
    vertices: Range<VertexId>,
    has_rows: bool,
    body: impl FnMut(VertexId) -> Result<(), E>,
) -> Result<(), E> {
    let has_weights = has_rows || graph.weight_type().is_some();
    try_walk(graph, Side::Out, if has_weights { Parts::Weighted } else { Parts::Targets }, vertices, body)
}

/// Ranges of vertices whose lists have about `num_arcs` entries in all. Cost: asks every degree.
pub(super) fn pieces_of(graph: &impl Graph, num_arcs: usize) -> Vec<Range<VertexId>> {
    let mut pieces = Vec::new();
    let (mut start, mut count) = (0, 0);
    let end = graph.vertex_bound() as VertexId;
    for vertex in 0..end {
        count += graph.out_degree(vertex);
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

/// Consecutive edges, an undirected one at its lower end.
#[derive(Debug)]
pub(super) struct EdgeRows<W> {
    pub(super) sources: Vec<VertexId>,
    pub(super) targets: Vec<VertexId>,
    /// As many as edges, or none.
    pub(super) weights: Vec<W>,
    /// As many as edges where edges have properties, or none.
    pub(super) rows: Vec<u64>,
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
    pub(super) fn push<G: WeightedEdges, E>(
        &mut self,
        graph: &G,
        properties: &impl WrittenProperties<E>,
        source: VertexId,
    ) -> Result<(), E> {
        let first = self.targets.len();
        // Rows are read first: `push_rows` fixes the order of the list for the reads that follow.
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
            Some(_) => graph.for_each_weighted_out_fragment::<W>(source, push),
            None => graph.for_each_out_fragment(source, |targets| push(targets, &[])),
        };
        if has_rows {
            // Damage that was met in between shows in the graph's check.
            self.rows.resize(self.targets.len(), 0);
        }
        if graph.direction() == Direction::Undirected {
            self.keep_from(first, source);
        }
        self.sources.resize(self.targets.len(), source);
        Ok(())
    }

    /// Leaves of the edges from `first` on those whose target is not below `source`.
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
        self.targets.truncate(kept);
        self.weights.truncate(kept);
        self.rows.truncate(kept);
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    pub(super) fn clear(&mut self) {
        self.sources.clear();
        self.targets.clear();
        self.weights.clear();
        self.rows.clear();
    }
}
