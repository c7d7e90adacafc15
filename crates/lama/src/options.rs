//! What is fixed when a database is created.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use graph::{Direction, WeightType};

/// What the user calls a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyScheme {
    /// Any `u64`.
    Integer,
    /// A string.
    String,
    /// The vertex id itself: 0 up to the number of vertices.
    Dense,
}

/// The kind of graph that a database holds; it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphOptions {
    /// Whether edges have a direction.
    pub direction: Direction,
    /// Whether a pair of vertices may have several edges.
    pub multigraph: bool,
    /// Whether each edge is stored once, in the list of its end with the smaller id.
    pub ordered: bool,
    /// What the user calls a vertex.
    pub keys: KeyScheme,
    /// The type of the weights; `None` where edges have none.
    pub weight_type: Option<WeightType>,
    /// Whether edges have properties. Any numeric one of them can serve as a weight too.
    pub edge_properties: bool,
    /// Whether a directed graph keeps in-lists too.
    pub in_edges: bool,
}

impl Default for GraphOptions {
    /// Directed, simple, without weights, integer keys, with in-lists.
    fn default() -> Self {
        Self {
            direction: Direction::Directed,
            multigraph: false,
            ordered: false,
            keys: KeyScheme::Integer,
            weight_type: None,
            edge_properties: false,
            in_edges: true,
        }
    }
}

impl GraphOptions {
    /// Whether entries of lists carry the rows of their edges: they lead to properties, and tell parallel edges apart.
    pub fn has_rows(&self) -> bool {
        self.edge_properties || self.multigraph
    }

    /// Whether entries of lists are targets and nothing else.
    pub fn is_plain(&self) -> bool {
        self.weight_type.is_none() && !self.has_rows()
    }

    /// The bytes that stand beside an entry of a list: its weight and its row.
    pub fn data_bytes(&self) -> usize {
        self.weight_type.map_or(0, WeightType::num_bytes) + if self.has_rows() { size_of::<u64>() } else { 0 }
    }

    /// Whether `num_edges` edges can have `num_arcs` arcs in out-lists. A loop of an undirected graph is one arc, not two.
    pub(crate) fn can_have(&self, num_edges: u64, num_arcs: u64) -> bool {
        match self.direction {
            Direction::Directed => num_edges == num_arcs,
            Direction::Undirected => (num_arcs.div_ceil(2)..=num_arcs).contains(&num_edges),
        }
    }

    /// Whether runs have a side of their own for in-lists.
    pub fn stores_in_lists(&self) -> bool {
        self.direction == Direction::Directed && self.in_edges
    }
}

/// Which snapshots a database keeps by itself. The newest and those with a name are always kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// All.
    #[default]
    All,
    /// The newest so many; at least 1.
    Last(u32),
    /// Only those with a name.
    Named,
    /// Those that are at most so many days old.
    Days(u32),
}

/// Tells one database from another; every file bears it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatabaseId(pub [u8; 16]);

/// What makes two databases with the same content differ: identity and time. Tests fix both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The id of the new database.
    pub id: DatabaseId,
    /// The time of its snapshots, in seconds since 1970; `None` asks the clock.
    pub unix_time: Option<u64>,
}

impl Identity {
    /// A random id, and the time of the clock.
    pub fn random() -> Self {
        // The standard library seeds every `RandomState` from the system's randomness.
        let half = |salt: u64| RandomState::new().hash_one((salt, std::process::id(), now())).to_le_bytes();
        let mut id = [0; 16];
        id[..8].copy_from_slice(&half(1));
        id[8..].copy_from_slice(&half(2));
        Self { id: DatabaseId(id), unix_time: None }
    }

    /// The time to be written, in seconds since 1970.
    pub(crate) fn time(&self) -> u64 {
        self.unix_time.unwrap_or_else(now)
    }
}

/// The clock, in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_databases_are_the_same() {
        assert_ne!(Identity::random().id, Identity::random().id);
    }
}
