//! What a load is told.

use graph::Direction;
use graph::formats::{KeyKind, SourceOptions};
use lama::{GraphOptions, Identity, KeyScheme};

use super::spread::Spread;
use crate::{Error, Result};

/// What becomes of parallel edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// One is left, with the smallest weight.
    #[default]
    Min,
    /// One is left, with the weight that came last.
    Last,
    /// One is left, with the sum of the weights; integers saturate.
    Sum,
    /// All are left: the graph is a multigraph.
    Keep,
}

impl Duplicates {
    /// All of them, with the names that users type.
    pub const ALL: [(Self, &str); 4] =
        [(Self::Min, "min"), (Self::Last, "last"), (Self::Sum, "sum"), (Self::Keep, "keep")];
}

/// How inputs become a graph.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The graph to be made. A multigraph keeps parallel edges, whatever `duplicates` says.
    pub graph: GraphOptions,
    /// What becomes of parallel edges.
    pub duplicates: Duplicates,
    /// Whether ids are given in the order in which keys appear in the input; otherwise they ascend
    /// with the keys. Dense ids are what they are.
    pub io_order: bool,
    /// The most memory to use, in bytes, the program included; `None`: three quarters of what the
    /// system has available.
    pub memory: Option<u64>,
    /// The most of it to hold edges in while they are sorted, in bytes; `None`: what keys and buffers
    /// leave.
    pub sort_memory: Option<u64>,
    /// Over how many snapshots the edges are spread.
    pub spread: Spread,
    /// How inputs are read. Keys and weights are read as `graph` needs them.
    pub source: SourceOptions,
    /// The name of the snapshot; of several, of the last.
    pub name: Option<String>,
    /// Fixes the identity of the database, so that the same input gives the same bytes.
    pub identity: Option<Identity>,
}

impl LoadOptions {
    /// The same options, in agreement with each other.
    pub(crate) fn agreed(&self) -> Result<Self> {
        let mut agreed = self.clone();
        agreed.spread.check()?;
        if agreed.graph.ordered && agreed.graph.direction == Direction::Undirected {
            return Err(Error::Option("a graph is undirected or ordered, not both".into()));
        }
        if agreed.graph.multigraph || agreed.duplicates == Duplicates::Keep {
            agreed.graph.multigraph = true;
            agreed.duplicates = Duplicates::Keep;
        }
        agreed.source.weights = agreed.graph.weight_type;
        agreed.source.keys = match agreed.graph.keys {
            KeyScheme::String => KeyKind::String,
            KeyScheme::Integer | KeyScheme::Dense => KeyKind::Integer,
        };
        agreed.io_order &= agreed.graph.keys != KeyScheme::Dense;
        Ok(agreed)
    }
}
