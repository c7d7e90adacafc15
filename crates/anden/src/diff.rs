//! What changed from one snapshot to another, by key.

use base::VertexId;
use engine::ChangedArc;
use graph::{Graph, Weight, WeightType, WeightedEdges};

use crate::{EdgeWeight, Key, KeyRef, Result};

/// What changed from one snapshot to another.
///
/// An edge whose weight changed is removed with the old one and added with the new one.
#[derive(Debug)]
pub struct Diff {
    changes: engine::Diff,
    added_vertices: Vec<VertexId>,
    removed_vertices: Vec<VertexId>,
    /// Knows the keys of both.
    younger: lama::View,
    from: u32,
    to: u32,
}

/// An edge that is in one of two snapshots only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffEdge<'a> {
    /// Where it starts; of an undirected edge, the end with the smaller id.
    pub source: KeyRef<'a>,
    /// Where it leads.
    pub target: KeyRef<'a>,
    /// Its weight, where the graph has weights.
    pub weight: Option<EdgeWeight>,
}

impl Diff {
    /// What `changes` change on the way from one snapshot to another.
    pub(crate) fn new(changes: engine::Diff, from: (u32, lama::View), to: (u32, lama::View)) -> Self {
        let is_in =
            |view: &lama::View, vertex: VertexId| (vertex as usize) < view.vertex_bound() && view.is_live(vertex);
        let mut vertices: Vec<VertexId> = changes.new_vertices.clone().collect();
        vertices.extend(changes.died.iter().chain(&changes.returned));
        vertices.sort_unstable();
        vertices.dedup();
        let only_in = |view: &lama::View, other: &lama::View| {
            vertices.iter().copied().filter(|&vertex| is_in(view, vertex) && !is_in(other, vertex)).collect()
        };
        let (added_vertices, removed_vertices) = (only_in(&to.1, &from.1), only_in(&from.1, &to.1));
        let younger = if from.0 > to.0 { from.1 } else { to.1 };
        Self { changes, added_vertices, removed_vertices, younger, from: from.0, to: to.0 }
    }

    /// The numbers of the two snapshots.
    pub fn snapshots(&self) -> (u32, u32) {
        (self.from, self.to)
    }

    /// Edges that the second has and the first has not; undirected ones counted once.
    pub fn num_added(&self) -> usize {
        self.changes.added.len()
    }

    /// Edges that the first has and the second has not.
    pub fn num_removed(&self) -> usize {
        self.changes.removed.len()
    }

    /// The edges that the second has and the first has not, by ascending ids.
    ///
    /// # Errors
    /// Of an item: damage in the dictionary.
    pub fn added(&self) -> impl Iterator<Item = Result<DiffEdge<'_>>> {
        self.changes.added.iter().map(|arc| self.edge(arc))
    }

    /// The edges that the first has and the second has not, by ascending ids.
    ///
    /// # Errors
    /// Of an item: damage in the dictionary.
    pub fn removed(&self) -> impl Iterator<Item = Result<DiffEdge<'_>>> {
        self.changes.removed.iter().map(|arc| self.edge(arc))
    }

    /// The vertices that the second has and the first has not, by ascending ids.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn added_vertices(&self) -> Result<Vec<Key>> {
        self.keys(&self.added_vertices)
    }

    /// The vertices that the first has and the second has not, by ascending ids.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn removed_vertices(&self) -> Result<Vec<Key>> {
        self.keys(&self.removed_vertices)
    }

    fn keys(&self, vertices: &[VertexId]) -> Result<Vec<Key>> {
        vertices.iter().map(|&vertex| Ok(self.younger.key(vertex)?)).collect()
    }

    fn edge(&self, arc: &ChangedArc) -> Result<DiffEdge<'_>> {
        let weight = self.younger.weight_type().map(|weight_type| match weight_type {
            WeightType::U32 => EdgeWeight::Integer(u32::of_bits(arc.weight).into()),
            WeightType::I64 => EdgeWeight::Integer(i64::of_bits(arc.weight)),
            WeightType::F32 => EdgeWeight::Real(f32::of_bits(arc.weight).into()),
            WeightType::F64 => EdgeWeight::Real(f64::of_bits(arc.weight)),
        });
        let (source, target) = (self.younger.key_ref(arc.list)?, self.younger.key_ref(arc.neighbour)?);
        Ok(DiffEdge { source, target, weight })
    }
}
