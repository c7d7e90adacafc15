//! What an append is told, and what it did.

use graph::formats::{HeaderRule, InputPath, KeyKind, LoneKeys, SourceOptions};
use graph::property::{PropertySchema, PropertyType};
use graph::{Direction, WeightType};
use lama::{GraphOptions, KeyScheme, View};

use crate::fitting::scheme_name;
use crate::load::{Duplicates, InputReport};
use crate::{Error, Result};

/// How inputs become a new snapshot.
#[derive(Clone, Debug, Default)]
pub struct AppendOptions {
    /// What becomes of edges that stand several times in the input; `None`: the one with the smallest
    /// weight is left, or all are in a multigraph.
    pub duplicates: Option<Duplicates>,
    /// Whether new ids are given in the order in which new keys appear in the input; otherwise they
    /// ascend with the keys.
    pub io_order: bool,
    /// The most memory to use, in bytes, the program included; `None`: three quarters of what the
    /// system has available.
    pub memory: Option<u64>,
    /// How inputs are read. Keys and weights are read as the graph needs them.
    pub source: SourceOptions,
    /// Files of what is removed, lists or CSV: `u v` a line for an edge, `u` for a vertex with all its edges.
    pub remove: Vec<InputPath>,
    /// The name of the snapshot.
    pub name: Option<String>,
    /// Whether runs are folded afterwards where that is due.
    pub maintenance: Maintenance,
    /// What the caller takes the graph for.
    pub expected: ExpectedGraph,
}

/// Whether the work that keeps reading fast follows a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maintenance {
    /// It does, where it is due.
    #[default]
    WhenDue,
    /// It does not; readers look through more levels until it is done.
    Never,
}

/// What a caller takes a graph for: an append to another one is refused. By default anything fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedGraph {
    /// Whether edges have a direction.
    pub direction: Option<Direction>,
    /// An ordered graph.
    pub ordered: bool,
    /// A graph without in-lists.
    pub out_only: bool,
    /// What keys are.
    pub keys: Option<KeyScheme>,
    /// Whether edges have weights, and of which type.
    pub weights: ExpectedWeights,
}

/// What a caller takes the weights of a graph for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedWeights {
    /// Whatever they are.
    #[default]
    Any,
    /// There are some.
    Some,
    /// They have this type.
    Of(WeightType),
}

impl ExpectedGraph {
    fn check(&self, graph: &GraphOptions) -> Result<()> {
        let is = match (graph.direction, graph.ordered) {
            (Direction::Undirected, _) => "undirected",
            (Direction::Directed, true) => "ordered",
            (Direction::Directed, false) => "directed",
        };
        let asked = match (self.direction, self.ordered) {
            (_, true) => "ordered",
            (Some(Direction::Undirected), _) => "undirected",
            (Some(Direction::Directed), _) => "directed",
            (None, false) => is,
        };
        if asked != is {
            return misfit(format!("is {is}, not {asked}"));
        }
        if self.out_only && graph.in_edges && graph.direction == Direction::Directed {
            return misfit("has in-edges, which every append keeps".into());
        }
        if let Some(keys) = self.keys.filter(|&keys| keys != graph.keys) {
            return misfit(format!(
                "has {} ids, not {}: --ids is chosen when a graph is loaded",
                scheme_name(graph.keys),
                scheme_name(keys)
            ));
        }
        match (self.weights, graph.weight_type) {
            (ExpectedWeights::Any, _) | (ExpectedWeights::Some, Some(_)) => Ok(()),
            (_, None) => misfit(NO_WEIGHTS.into()),
            (ExpectedWeights::Of(asked), Some(found)) if asked == found => Ok(()),
            (ExpectedWeights::Of(asked), Some(found)) => {
                misfit(format!("has weights of type {0}, not {1}: --weight-type {0} fits", found.name(), asked.name()))
            }
        }
    }
}

/// What to do where only the input has weights.
const NO_WEIGHTS: &str = "has no weights: leave out --weights, --weight-type and --weight-column, or load the graph \
                          anew with --weights";

fn misfit(what: String) -> Result<()> {
    Err(Error::Option(format!("the graph {what}")))
}

impl AppendOptions {
    /// Refuses what contradicts the graph.
    pub(crate) fn check(&self, graph: &GraphOptions) -> Result<()> {
        self.expected.check(graph)?;
        if graph.edge_properties && matches!(self.duplicates, Some(Duplicates::Min | Duplicates::Sum)) {
            return misfit("has properties of edges: of parallel edges, the last line's are kept".into());
        }
        match (self.duplicates, graph.multigraph) {
            (Some(Duplicates::Keep), false) => misfit("is no multigraph: parallel edges cannot be kept".into()),
            (Some(Duplicates::Min | Duplicates::Last | Duplicates::Sum), true) => {
                misfit("is a multigraph: parallel edges are kept".into())
            }
            _ => Ok(()),
        }
    }

    /// How edges are read, and properties, some of which `view` has already.
    pub(crate) fn sources(&self, view: &View) -> SourceOptions {
        let mut sources = self.source.clone();
        let graph = view.options();
        (sources.weights, sources.keys) = (graph.weight_type, key_kind(graph.keys));
        // What is there already says of which types values are.
        let of = |known: &PropertySchema, given: Vec<(String, PropertyType)>| {
            let known = known.iter().map(|(name, property_type)| (name.to_owned(), property_type));
            known.chain(given).collect()
        };
        sources.vertex_types = of(view.properties().schema(), sources.vertex_types);
        sources.edge_types = of(view.edge_properties().schema(), sources.edge_types);
        sources
    }

    /// How files of what is removed are read.
    pub(crate) fn removals(&self, graph: &GraphOptions) -> SourceOptions {
        SourceOptions {
            keys: key_kind(graph.keys),
            on_error: self.source.on_error,
            source_column: self.source.source_column.clone(),
            target_column: self.source.target_column.clone(),
            // A header of the inputs says nothing of these files.
            header: match self.source.header {
                HeaderRule::None => HeaderRule::None,
                HeaderRule::Auto | HeaderRule::First => HeaderRule::Auto,
            },
            comment: self.source.comment,
            trim: self.source.trim,
            block_bytes: self.source.block_bytes,
            lone_keys: LoneKeys::Vertices,
            ..SourceOptions::default()
        }
    }

    /// What becomes of parallel edges of `graph`.
    pub(crate) fn duplicates(&self, graph: &GraphOptions) -> Duplicates {
        match (graph.multigraph, graph.edge_properties) {
            (true, _) => Duplicates::Keep,
            (false, true) => Duplicates::Last,
            (false, false) => self.duplicates.unwrap_or_default(),
        }
    }
}

fn key_kind(keys: KeyScheme) -> KeyKind {
    match keys {
        KeyScheme::String => KeyKind::String,
        KeyScheme::Integer | KeyScheme::Dense => KeyKind::Integer,
    }
}

/// The outcome of an append.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppendReport {
    /// Vertices of the graph as it is now.
    pub vertices: u64,
    /// Edges of the graph as it is now; of an undirected one, each counted once.
    pub edges: u64,
    /// The number of the snapshot that was made.
    pub snapshot: u32,
    /// Edges that were not there before; an edge with a new weight is one.
    pub added: u64,
    /// Edges that are not there any more; an edge with a new weight is one.
    pub removed: u64,
    /// Values of properties of vertices that are others now.
    pub changed_properties: u64,
    /// Removals of edges and vertices that were not there.
    pub missing: u64,
    /// From the first byte read to the last byte synced.
    pub seconds: f64,
    /// Bytes of all files of the database.
    pub bytes: u64,
    /// Bytes of the files that the snapshot needs on its own.
    pub snapshot_bytes: u64,
    /// Bytes that maintenance wrote, if it was due.
    pub maintenance_bytes: u64,
    /// Why maintenance that was due did not end: it is tried again after the next append. The snapshot is there.
    pub maintenance_error: Option<String>,
    /// Lines of the input that were left out because they were no edges.
    pub skipped: u64,
    /// What was wrong with the first of them, with file and line.
    pub first_skipped: Option<String>,
    /// What became of the inputs; of those that name what is removed, comments are counted.
    pub input: InputReport,
    /// What users should know about the inputs, in their order: `FILE: …`.
    pub notes: Vec<String>,
    /// The most memory that was resident at once, in bytes, the program included.
    pub peak_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(expected: ExpectedGraph, graph: GraphOptions) -> String {
        expected.check(&graph).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_graph_of_another_kind_is_refused() {
        let any = ExpectedGraph::default();
        let plain = GraphOptions::default();
        let undirected = GraphOptions { direction: Direction::Undirected, ..plain };
        let weighted = GraphOptions { weight_type: Some(WeightType::F64), ..plain };
        let to_undirected = ExpectedGraph { direction: Some(Direction::Undirected), ..any };
        assert_eq!(refusal(any, undirected), "");
        assert_eq!(refusal(to_undirected, undirected), "");
        assert_eq!(refusal(to_undirected, plain), "the graph is directed, not undirected");
        assert_eq!(refusal(ExpectedGraph { ordered: true, ..any }, plain), "the graph is directed, not ordered");
        let strings = ExpectedGraph { keys: Some(KeyScheme::String), ..any };
        assert_eq!(
            refusal(strings, plain),
            "the graph has integer ids, not string: --ids is chosen when a graph is loaded"
        );
        let some = ExpectedGraph { weights: ExpectedWeights::Some, ..any };
        assert!(refusal(some, plain).contains("has no weights"));
        assert_eq!(refusal(some, weighted), "");
        let whole = ExpectedGraph { weights: ExpectedWeights::Of(WeightType::U32), ..any };
        assert_eq!(refusal(whole, weighted), "the graph has weights of type f64, not u32: --weight-type f64 fits");
        assert!(refusal(ExpectedGraph { out_only: true, ..any }, plain).contains("in-edges"));
        let options = AppendOptions { duplicates: Some(Duplicates::Keep), ..AppendOptions::default() };
        assert!(options.check(&plain).is_err());
        let multigraph = GraphOptions { multigraph: true, ..plain };
        assert!(options.check(&multigraph).is_ok());
        let options = AppendOptions { duplicates: Some(Duplicates::Sum), ..AppendOptions::default() };
        assert!(options.check(&plain).is_ok() && options.check(&multigraph).is_err());
    }
}
