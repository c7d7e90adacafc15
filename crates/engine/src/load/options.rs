//! The options of a load.

use anden_formats::{InputPath, KeyKind, Source, SourceFacts, SourceOptions, WantedProperties};
use anden_graph::GraphKind;
use anden_graph::property::PropertySchema;
use anden_snapshots::{GraphOptions, Identity, KeyScheme, check_first_name};

use super::arcs::Payload;
use super::period::SnapshotBy;
use super::spread::Spread;
use crate::{Error, Result};

/// The treatment of parallel edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// As [`Min`](Self::Min), but parallel edges with properties are refused: none of them is the smallest.
    #[default]
    Auto,
    /// Keeps one edge, with the smallest weight.
    Min,
    /// Keeps one edge, with the last weight of the input.
    Last,
    /// Keeps one edge, with the sum of the weights, which must be within their type.
    Sum,
    /// Keeps all edges: the graph is a multigraph.
    Keep,
}

impl Duplicates {
    /// The choices of users, with the names that they type.
    pub const ALL: [(Self, &str); 4] =
        [(Self::Min, "min"), (Self::Last, "last"), (Self::Sum, "sum"), (Self::Keep, "keep")];
}

/// The order of ids. Results by key do not depend on it; it decides which lists lie near each other in memory.
///
/// The orders by degree count the ends of edges in the input: each parallel edge counts, and a loop has two ends. Equal
/// degrees are ordered by key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdOrder {
    /// Ids ascend with keys.
    #[default]
    Auto,
    /// Ids follow the first appearance of keys in the input.
    Input,
    /// Degrees descend.
    Degree,
    /// A breadth-first search that ignores directions: each component begins at its vertex of highest degree, and
    /// neighbors follow by descending degree.
    Bfs,
    /// Vertices of more than the mean degree come first, by descending degree; the others follow by key.
    Hub,
}

impl IdOrder {
    /// The choices of users, with the names that they type.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Auto, "auto"),
        (Self::Input, "input"),
        (Self::Degree, "degree"),
        (Self::Bfs, "bfs"),
        (Self::Hub, "hub"),
    ];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(order, _)| *order == self).map_or("", |(_, name)| name)
    }

    /// Whether the edges decide the order, not the keys.
    pub(crate) fn follows_shape(self) -> bool {
        matches!(self, Self::Degree | Self::Bfs | Self::Hub)
    }
}

/// The options of a load: how inputs become a graph.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The graph to create. A multigraph keeps parallel edges, whatever `duplicates` says.
    pub graph: GraphOptions,
    /// Whether a direction that the inputs state overrides `graph`.
    pub follows_inputs: bool,
    /// Whether a type of weights that the inputs state overrides that of `graph`.
    pub follows_weights: bool,
    /// The treatment of parallel edges.
    pub duplicates: Duplicates,
    /// The order of ids. Dense keys are ids, so they allow [`Auto`](IdOrder::Auto) only.
    pub order: IdOrder,
    /// The memory budget in bytes, including the program. `None`: three quarters of the available memory.
    pub memory: Option<u64>,
    /// The part of it for sorting edges, in bytes. `None`: all that keys and buffers leave.
    pub sort_memory: Option<u64>,
    /// The spread of the edges over snapshots.
    pub spread: Spread,
    /// A snapshot for each period of a column of times, in place of `spread`, `name` and `as_of`.
    pub snapshot_by: Option<SnapshotBy>,
    /// How inputs are read. `graph` decides the types of keys and weights.
    pub source: SourceOptions,
    /// The name of the snapshot; of several, the name of the last.
    pub name: Option<String>,
    /// The time of its data, in microseconds since 1970 UTC; of several, the time of the last.
    pub as_of: Option<i64>,
    /// A fixed identity of the database, so that the same input gives the same bytes.
    pub identity: Option<Identity>,
}

impl LoadOptions {
    /// The options with contradictions resolved or refused.
    pub(crate) fn agreed(&self) -> Result<Self> {
        let mut agreed = self.clone();
        agreed.spread.check()?;
        // Checked here, because the snapshot gets its name after all the work.
        check_first_name(agreed.name.as_deref())?;
        if agreed.graph.ordered && agreed.graph.graph_kind == GraphKind::Undirected {
            return Err(Error::options("a graph is undirected or ordered, not both"));
        }
        // Either wish makes a multigraph, so later code asks only one field.
        if agreed.graph.multigraph || agreed.duplicates == Duplicates::Keep {
            agreed.graph.multigraph = true;
            agreed.duplicates = Duplicates::Keep;
        }
        agreed.source.weights = agreed.graph.weight_type;
        agreed.source.keys = match agreed.graph.keys {
            KeyScheme::String => KeyKind::String,
            KeyScheme::Integer | KeyScheme::Dense => KeyKind::Integer,
        };
        agreed.check_order()?;
        agreed.read_times()?;
        Ok(agreed)
    }

    /// Whether the load may make several snapshots.
    pub(crate) fn has_several_snapshots(&self) -> bool {
        self.spread.num_snapshots > 1 || self.snapshot_by.is_some()
    }

    /// Makes the inputs give the times by which snapshots are made.
    fn read_times(&mut self) -> Result<()> {
        let Some(by) = &self.snapshot_by else { return Ok(()) };
        let others = [
            (self.spread != Spread::default(), "--snapshots, --first-share and --seed spread edges at random"),
            (self.name.is_some(), "each snapshot has the name of its period, so --name cannot give one"),
            (self.as_of.is_some(), "each snapshot has the time of its period, so --as-of cannot give one"),
        ];
        if let Some((_, why)) = others.iter().find(|(is_given, _)| *is_given) {
            return Err(Error::options(format!("{why}; leave out one of the options, or --snapshot-by")));
        }
        match &mut self.source.edge_properties {
            WantedProperties::All => {}
            WantedProperties::Named(names) if names.contains(&by.column) => {}
            WantedProperties::Named(names) => names.push(by.column.clone()),
            none => *none = WantedProperties::Named(vec![by.column.clone()]),
        }
        self.source.time_column = Some(by.column.clone());
        Ok(())
    }

    /// The edge properties that the graph gets, if the caller wants those of `wanted`: all that the inputs have, but not
    /// a column that is read for its times only.
    pub(crate) fn stored_properties(&self, facts: &SourceFacts, wanted: &WantedProperties) -> Result<PropertySchema> {
        let times = self.snapshot_by.as_ref().map(|by| &*by.column).filter(|column| !wanted.wants(column));
        let stored = facts.edge_properties.iter().filter(|&(name, _)| Some(name) != times);
        Ok(PropertySchema::new(stored.map(|(name, property_type)| (name.to_owned(), property_type)))?)
    }

    /// Refuses an order of ids that contradicts the graph.
    fn check_order(&self) -> Result<()> {
        let order = self.order.name();
        if self.graph.keys == KeyScheme::Dense && self.order != IdOrder::Auto {
            let what = format!("--order {order} and --ids dense exclude each other: dense keys are the ids");
            return Err(Error::options(format!("{what}; leave out --order, or load with --ids integer")));
        }
        if self.graph.ordered && self.order.follows_shape() {
            let what =
                format!("--order {order} and --ordered exclude each other: ids direct the edges of an ordered graph");
            return Err(Error::options(format!("{what}; leave out one of them")));
        }
        Ok(())
    }

    /// Applies the direction that the inputs state.
    pub(crate) fn agree_on_direction(&mut self, stated: Option<GraphKind>) {
        // The order of the ids directs the edges of an ordered graph.
        if let Some(graph_kind) = stated.filter(|_| self.follows_inputs && !self.graph.ordered) {
            self.graph.graph_kind = graph_kind;
        }
    }

    /// Applies the type of weights that the inputs state.
    pub(crate) fn agree_on_weights(&mut self, source: &mut Source) {
        let stated = source.facts().weight_type;
        if let Some(weight_type) = stated.filter(|_| self.follows_weights && self.graph.weight_type.is_some()) {
            self.graph.weight_type = Some(weight_type);
            self.source.weights = Some(weight_type);
            source.set_weight_type(weight_type);
        }
    }

    /// Applies the edge properties that the inputs have.
    ///
    /// # Errors
    /// The options do not allow such edge properties.
    pub(crate) fn agree_on_edges(&mut self, schema: &PropertySchema) -> Result<()> {
        self.graph.edge_properties |= !schema.is_empty();
        match self.graph.edge_properties {
            true => check_edge_properties(schema, self.duplicates),
            false => {
                // Without properties, one of several parallel edges has the smallest weight.
                if self.duplicates == Duplicates::Auto {
                    self.duplicates = Duplicates::Min;
                }
                Ok(())
            }
        }
    }
}

/// Refuses edge properties if parallel edges would be merged by weight.
pub(crate) fn check_edge_properties(schema: &PropertySchema, duplicates: Duplicates) -> Result<()> {
    let names: Vec<_> = schema.iter().map(|(name, _)| name).collect();
    let columns = match &names[..] {
        [] => "properties of edges are asked for".to_owned(),
        [name] => format!("the column '{name}' would be a property of edges"),
        [names @ .., last] => format!("the columns '{}' and '{last}' would be properties of edges", names.join("', '")),
    };
    match duplicates {
        Duplicates::Auto | Duplicates::Last | Duplicates::Keep => Ok(()),
        Duplicates::Min | Duplicates::Sum => Err(Error::options(format!("{columns}; {CHOOSE}"))),
    }
}

/// The advice of error messages about parallel edges with properties.
const CHOOSE: &str = "properties of parallel edges cannot be merged: --duplicates last keeps those of the last line, \
                      --duplicates keep all edges, and --properties none leaves the columns out";

/// The error for two parallel edges, counted from 1, of which neither is preferred.
pub(crate) fn no_choice(first: u64, second: u64) -> Error {
    Error::options(format!("edges {first} and {second} of the input are parallel; {CHOOSE}"))
}

/// The error for parallel edges whose summed weight exceeds the type.
pub(crate) fn too_large_a_sum<P: Payload>(inputs: &[InputPath], first: P, second: P) -> Error {
    let ((first, of), (second, _)) = (first.shown(), second.shown());
    let what = format!("the weights of parallel edges come to more than {of} holds, as {first} and {second} do");
    let advice = "load with a --weight-type that holds their sum, or choose other --duplicates";
    let others = match inputs.len() {
        0 | 1 => String::new(),
        len => format!(" (or one of the {} inputs after it)", len - 1),
    };
    match inputs.first() {
        Some(input) => Error::options(format!("{}{others}: {what}: {advice}", input.path().display())),
        None => Error::options(format!("{what}: {advice}")),
    }
}
