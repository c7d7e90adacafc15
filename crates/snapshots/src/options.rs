//! Options fixed when a database is created.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use anden_graph::property::{OwnedValue, PropertyType};
use anden_graph::{GraphKind, WeightType};

/// The kind of vertex keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyScheme {
    /// Any `u64`.
    Integer,
    /// A string.
    String,
    /// The vertex id itself, from 0 up to the number of vertices.
    Dense,
}

/// The kind of graph in a database; fixed at its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphOptions {
    /// Whether edges are directed.
    pub graph_kind: GraphKind,
    /// Whether a pair of vertices may have several edges.
    pub multigraph: bool,
    /// Whether each edge is stored once, in the list of its end with the smaller id.
    pub ordered: bool,
    /// The kind of vertex keys.
    pub keys: KeyScheme,
    /// Type of the weights; `None` if edges have none.
    pub weight_type: Option<WeightType>,
    /// Whether edges have properties. Any numeric property can serve as a weight.
    pub edge_properties: bool,
    /// Whether a directed graph stores in-lists, too.
    pub in_edges: bool,
}

impl Default for GraphOptions {
    /// Directed, simple, without weights, integer keys, with in-lists.
    fn default() -> Self {
        Self {
            graph_kind: GraphKind::Directed,
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
    /// Whether list entries have rows, which lead to properties and tell parallel edges apart.
    pub fn has_rows(&self) -> bool {
        self.edge_properties || self.multigraph
    }

    /// Whether list entries are only targets.
    pub fn is_plain(&self) -> bool {
        self.weight_type.is_none() && !self.has_rows()
    }

    /// Bytes of a list entry beside its target: weight and row.
    pub fn data_bytes(&self) -> usize {
        self.weight_type.map_or(0, WeightType::num_bytes) + if self.has_rows() { size_of::<u64>() } else { 0 }
    }

    /// Whether `num_edges` edges can have `num_arcs` arcs in out-lists. An undirected loop is one arc, not two.
    pub(crate) fn can_have(&self, num_edges: u64, num_arcs: u64) -> bool {
        match self.graph_kind {
            GraphKind::Directed => num_edges == num_arcs,
            GraphKind::Undirected => (num_arcs.div_ceil(2)..=num_arcs).contains(&num_edges),
        }
    }

    /// Whether the base stores in-lists apart from out-lists.
    pub fn stores_in_lists(&self) -> bool {
        self.graph_kind == GraphKind::Directed && self.in_edges
    }
}

/// The rule by which a database drops snapshots. The newest snapshot and named ones are never dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// Keep all.
    #[default]
    All,
    /// Keep this many of the newest, at least 1.
    Last(u32),
    /// Keep only named snapshots.
    Named,
    /// Keep snapshots that are at most this many days old.
    Days(u32),
}

impl fmt::Display for Retention {
    /// Writes `all`, `last:N`, `named` or `days:N`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Last(num_kept) => write!(f, "last:{num_kept}"),
            Self::Named => f.write_str("named"),
            Self::Days(days) => write!(f, "days:{days}"),
        }
    }
}

impl FromStr for Retention {
    type Err = String;

    /// Reads what `Display` writes.
    ///
    /// ```
    /// use anden_snapshots::Retention;
    ///
    /// assert_eq!("last:30".parse(), Ok(Retention::Last(30)));
    /// assert!("last:0".parse::<Retention>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, String> {
        // The newest snapshot always stays, so zero would say less than what happens.
        let number = |text: &str| text.parse::<u32>().ok().filter(|&number| number > 0);
        let found = match text.split_once(':') {
            None if text == "all" => Some(Self::All),
            None if text == "named" => Some(Self::Named),
            Some(("last", num_kept)) => number(num_kept).map(Self::Last),
            Some(("days", days)) => number(days).map(Self::Days),
            _ => None,
        };
        found.ok_or_else(|| "expected all, last:N, named or days:N".into())
    }
}

/// Identifies a database; every file contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatabaseId(pub [u8; 16]);

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The id and time of a new database. With both fixed, equal input gives equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Id of the new database.
    pub id: DatabaseId,
    /// Time of its snapshots, in seconds since 1970; `None` uses the clock.
    pub unix_time: Option<u64>,
}

impl Identity {
    /// A random id, and the clock's time.
    pub fn random() -> Self {
        // The standard library seeds every `RandomState` from the system's randomness.
        let half = |salt: u64| RandomState::new().hash_one((salt, std::process::id(), now())).to_le_bytes();
        let mut id = [0; 16];
        id[..8].copy_from_slice(&half(1));
        id[8..].copy_from_slice(&half(2));
        Self { id: DatabaseId(id), unix_time: None }
    }

    /// The time to write, in seconds since 1970.
    pub(crate) fn time(&self) -> u64 {
        self.unix_time.unwrap_or_else(now)
    }
}

/// The clock's time, in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The name and the time of a snapshot that is to be made.
///
/// ```
/// use anden_snapshots::SnapshotTag;
///
/// assert_eq!(SnapshotTag::from(Some("monday")), SnapshotTag { name: Some("monday"), as_of: None });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotTag<'a> {
    /// The name.
    pub name: Option<&'a str>,
    /// The time of its data, in microseconds since 1970 UTC.
    pub as_of: Option<i64>,
}

impl SnapshotTag<'_> {
    /// Parses the time of data: a date or a timestamp, in UTC without a zone.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse_as_of(text: &str) -> Result<i64, String> {
        match OwnedValue::parse(text, PropertyType::Timestamp) {
            Ok(OwnedValue::Timestamp(micros)) => Ok(micros),
            _ => Err(format!("expected a date or a timestamp such as 2012-05-31 or 2012-05-31T18:00Z, found {text:?}")),
        }
    }
}

impl<'a> From<Option<&'a str>> for SnapshotTag<'a> {
    fn from(name: Option<&'a str>) -> Self {
        Self { name, as_of: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_comes_back_from_its_text() {
        for text in ["all", "last:9", "named", "days:30"] {
            assert_eq!(text.parse::<Retention>().map(|retention| retention.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "last", "last:0", "last:x", "days:-1", "named:1", "some"] {
            assert!(text.parse::<Retention>().is_err(), "{text}");
        }
    }

    #[test]
    fn no_two_databases_are_the_same() {
        assert_ne!(Identity::random().id, Identity::random().id);
    }
}
