//! What a repair could not save.

use std::fmt;

use crate::chain::ChainVersion;
use crate::key::Key;
use crate::manifest::Manifest;

/// Something that a repair could not save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A snapshot.
    Snapshot {
        /// Its number.
        number: u32,
        /// Its name.
        name: Option<String>,
    },
    /// The edges from these vertices to those, as far as there were any.
    Edges {
        /// Vertices whose lists are damaged.
        from: VertexSpan,
        /// The vertices that the edges lead to; `None`: all vertices.
        to: Option<VertexSpan>,
    },
    /// Vertices without edges and values: it is unknown which ones exist.
    Vertices {
        /// Their number.
        num_vertices: u64,
    },
    /// Vertices whose keys are lost, with all their edges and values.
    Keys {
        /// The vertices, without keys.
        vertices: VertexSpan,
    },
    /// The values of a vertex property, as far as the vertices had any.
    Values {
        /// Name of the property.
        property: String,
        /// The vertices.
        vertices: VertexSpan,
    },
    /// The values of an edge property.
    EdgeValues {
        /// Name of the property.
        property: String,
        /// Number of the edges whose values cannot be read.
        num_edges: u64,
    },
    /// The lasting numbers of edges of a multigraph: these edges have other numbers now.
    EdgeNumbers {
        /// Number of the edges that may be concerned.
        num_edges: u64,
    },
    /// The index of a vertex property. Its values are saved.
    Index {
        /// Name of the property.
        property: String,
    },
    /// Commits behind the newest snapshot.
    Commits {
        /// Epoch of the first one.
        first: u64,
        /// Epoch of the last one that is known; `None`: it is unknown whether there were any.
        last: Option<u64>,
    },
}

/// Vertices with consecutive ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexSpan {
    /// Id of the first one.
    pub first: u32,
    /// Id of the last one.
    pub last: u32,
    /// Their keys, if they can be read. Keys in between belong to other vertices too, if ids do not ascend with keys.
    pub keys: Option<(Key, Key)>,
}

impl fmt::Display for VertexSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.keys {
            Some((first, last)) => write!(f, "{first} to {last} (ids {} to {})", self.first, self.last),
            None => write!(f, "of the ids {} to {}", self.first, self.last),
        }
    }
}

impl Loss {
    /// A word for the kind of loss.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Snapshot { .. } => "snapshot",
            Self::Edges { .. } => "edges",
            Self::Vertices { .. } => "vertices",
            Self::Keys { .. } => "keys",
            Self::Values { .. } => "values",
            Self::EdgeValues { .. } => "edge_values",
            Self::EdgeNumbers { .. } => "edge_numbers",
            Self::Index { .. } => "index",
            Self::Commits { .. } => "commits",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot { number, name: None } => write!(f, "snapshot {number}"),
            Self::Snapshot { number, name: Some(name) } => write!(f, "snapshot {number}, {name:?}"),
            Self::Edges { from, to: None } => write!(f, "edges from the vertices {from}"),
            Self::Edges { from, to: Some(to) } => write!(f, "edges from the vertices {from} to the vertices {to}"),
            Self::Vertices { num_vertices } => write!(f, "{num_vertices} vertices without edges and values"),
            Self::Keys { vertices } => write!(f, "the vertices {vertices}, whose keys are lost, with all their edges"),
            Self::Values { property, vertices } => write!(f, "values of {property:?} of the vertices {vertices}"),
            Self::EdgeValues { property, num_edges } => write!(f, "values of {property:?} of {num_edges} edges"),
            Self::EdgeNumbers { num_edges } => write!(f, "the numbers of {num_edges} edges, which have others now"),
            Self::Index { property } => write!(f, "the index of {property:?}; create it again"),
            Self::Commits { first, last: Some(last) } => write!(f, "the commits {first} to {last}"),
            Self::Commits { first, last: None } => write!(f, "the commits from {first} on, if there were any"),
        }
    }
}

/// The losses of the snapshots that users see in `before` and not in `after`.
pub(super) fn lost_snapshots(before: &Manifest, after: &Manifest) -> Vec<Loss> {
    let is_lost = |number: u32| after.chain.version(number).is_none();
    let newest = before.chain.newest().number;
    // A dropped newest version holds commits that users still see.
    let is_shown = |version: &&ChainVersion| version.is_kept || version.number == newest;
    let lost = before.chain.versions.iter().filter(is_shown).filter(|version| is_lost(version.number));
    lost.map(|version| Loss::Snapshot { number: version.number, name: version.name.clone() }).collect()
}

/// Joins ascending ids to ranges.
pub(super) fn ranges(ids: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => ranges.push((id, id)),
        }
    }
    ranges
}
