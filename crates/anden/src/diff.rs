//! What changed from one snapshot to another, by key.

mod across;

use base::VertexId;
use engine::ChangedArc;
use graph::{Graph, Weight, WeightType, WeightedEdges};

use crate::{EdgeWeight, Key, KeyRef, Result};

/// What changed from one snapshot to another.
///
/// An edge whose weight changed is removed with the old one and added with the new one.
#[derive(Debug)]
pub struct Diff {
    /// By ids of the second.
    added: Vec<ChangedArc>,
    /// By ids of the first.
    removed: Vec<ChangedArc>,
    added_vertices: Vec<VertexId>,
    removed_vertices: Vec<VertexId>,
    from_view: lama::View,
    to_view: lama::View,
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
        let engine::Diff { added, removed, .. } = changes;
        let (from_view, to_view) = (from.1, to.1);
        Self { added, removed, added_vertices, removed_vertices, from_view, to_view, from: from.0, to: to.0 }
    }

    /// The same between snapshots of two databases, whose vertices are matched by their keys.
    pub(crate) fn across(from: (u32, lama::View), to: (u32, lama::View)) -> Result<Self> {
        across::compare(from, to)
    }

    /// The numbers of the two snapshots.
    pub fn snapshots(&self) -> (u32, u32) {
        (self.from, self.to)
    }

    /// Edges that the second has and the first has not; undirected ones counted once.
    pub fn num_added(&self) -> usize {
        self.added.len()
    }

    /// Edges that the first has and the second has not.
    pub fn num_removed(&self) -> usize {
        self.removed.len()
    }

    /// The edges that the second has and the first has not, by ascending ids.
    ///
    /// # Errors
    /// Of an item: damage in the dictionary.
    pub fn added(&self) -> impl Iterator<Item = Result<DiffEdge<'_>>> {
        self.added.iter().map(|arc| edge(&self.to_view, arc))
    }

    /// The edges that the first has and the second has not, by ascending ids.
    ///
    /// # Errors
    /// Of an item: damage in the dictionary.
    pub fn removed(&self) -> impl Iterator<Item = Result<DiffEdge<'_>>> {
        self.removed.iter().map(|arc| edge(&self.from_view, arc))
    }

    /// The vertices that the second has and the first has not, by ascending ids.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn added_vertices(&self) -> Result<Vec<Key>> {
        keys(&self.to_view, &self.added_vertices)
    }

    /// The vertices that the first has and the second has not, by ascending ids.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn removed_vertices(&self) -> Result<Vec<Key>> {
        keys(&self.from_view, &self.removed_vertices)
    }
}

fn keys(view: &lama::View, vertices: &[VertexId]) -> Result<Vec<Key>> {
    vertices.iter().map(|&vertex| Ok(view.key(vertex)?)).collect()
}

fn edge<'a>(view: &'a lama::View, arc: &ChangedArc) -> Result<DiffEdge<'a>> {
    let weight = view.weight_type().map(|weight_type| match weight_type {
        WeightType::U32 => EdgeWeight::Integer(u32::of_bits(arc.weight).into()),
        WeightType::I64 => EdgeWeight::Integer(i64::of_bits(arc.weight)),
        WeightType::F32 => EdgeWeight::Real(f32::of_bits(arc.weight).into()),
        WeightType::F64 => EdgeWeight::Real(f64::of_bits(arc.weight)),
    });
    let (source, target) = (view.key_ref(arc.list)?, view.key_ref(arc.neighbour)?);
    Ok(DiffEdge { source, target, weight })
}
