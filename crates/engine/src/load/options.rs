//! What a load is told.

use graph::Direction;
use graph::formats::{InputPath, KeyKind, SourceOptions};
use graph::property::PropertySchema;
use lama::{GraphOptions, Identity, KeyScheme};

use super::arcs::Payload;
use super::spread::Spread;
use crate::{Error, Result};

/// What becomes of parallel edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// As [`Min`](Self::Min); but edges with properties, of which none is the smallest, may not be parallel.
    #[default]
    Auto,
    /// One is left, with the smallest weight.
    Min,
    /// One is left, with the weight that came last.
    Last,
    /// One is left, with the sum of the weights, which must be within their type.
    Sum,
    /// All are left: the graph is a multigraph.
    Keep,
}

impl Duplicates {
    /// Those that users choose, with the names that they type.
    pub const ALL: [(Self, &str); 4] =
        [(Self::Min, "min"), (Self::Last, "last"), (Self::Sum, "sum"), (Self::Keep, "keep")];
}

/// How inputs become a graph.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The graph to be made. A multigraph keeps parallel edges, whatever `duplicates` says.
    pub graph: GraphOptions,
    /// Whether inputs that state a direction decide which the graph has, whatever `graph` says.
    pub follows_inputs: bool,
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

    /// Takes note of the direction that inputs state.
    pub(crate) fn agree_on_direction(&mut self, stated: Option<Direction>) {
        if let Some(direction) = stated.filter(|_| self.follows_inputs && !self.graph.ordered) {
            self.graph.direction = direction;
        }
    }

    /// Takes note of the properties that edges come with.
    ///
    /// # Errors
    /// The graph cannot have them as it is.
    pub(crate) fn agree_on_edges(&mut self, schema: &PropertySchema) -> Result<()> {
        self.graph.edge_properties |= !schema.is_empty();
        match self.graph.edge_properties {
            true => check_edge_properties(schema, self.duplicates),
            false => {
                if self.duplicates == Duplicates::Auto {
                    self.duplicates = Duplicates::Min;
                }
                Ok(())
            }
        }
    }
}

/// Refuses properties of edges where one of parallel edges would be chosen by its weight.
pub(crate) fn check_edge_properties(schema: &PropertySchema, duplicates: Duplicates) -> Result<()> {
    let names: Vec<_> = schema.iter().map(|(name, _)| name).collect();
    let columns = match &names[..] {
        [] => "properties of edges are asked for".to_owned(),
        [name] => format!("the column '{name}' would be a property of edges"),
        [names @ .., last] => format!("the columns '{}' and '{last}' would be properties of edges", names.join("', '")),
    };
    match duplicates {
        Duplicates::Auto | Duplicates::Last | Duplicates::Keep => Ok(()),
        Duplicates::Min | Duplicates::Sum => Err(Error::Option(format!("{columns}; {CHOOSE}"))),
    }
}

/// How users say what becomes of parallel edges with properties.
const CHOOSE: &str = "of parallel edges, none has the smallest properties: --duplicates last keeps those of the last line, \
                      --duplicates keep all edges, and --properties none leaves the columns out";

/// Two edges of the input, counted from 1, are parallel, and nothing says which one wins.
pub(crate) fn no_choice(first: u64, second: u64) -> Error {
    Error::Option(format!("edges {first} and {second} of the input are parallel; {CHOOSE}"))
}

/// Of the parallel edges of `inputs`, two have weights whose sum is beyond their type.
pub(crate) fn too_large_a_sum<P: Payload>(inputs: &[InputPath], first: P, second: P) -> Error {
    let ((first, of), (second, _)) = (first.shown(), second.shown());
    let what = format!("the weights of parallel edges come to more than {of} holds, as {first} and {second} do");
    let advice = "load with a --weight-type that holds their sum, or choose other --duplicates";
    let others = match inputs.len() {
        0 | 1 => String::new(),
        len => format!(" (or one of the {} inputs after it)", len - 1),
    };
    match inputs.first() {
        Some(input) => Error::Option(format!("{}{others}: {what}: {advice}", input.path().display())),
        None => Error::Option(format!("{what}: {advice}")),
    }
}
