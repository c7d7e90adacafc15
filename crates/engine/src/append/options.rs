//! Options and reports of appends.

use anden_formats::{HeaderRule, InputPath, KeyKind, LoneKeys, SourceOptions};
use anden_graph::property::{PropertySchema, PropertyType};
use anden_graph::{GraphKind, WeightType};
use anden_snapshots::{GraphOptions, KeyScheme, SnapshotTag, SnapshotView};

use crate::fitting::scheme_name;
use crate::load::{Duplicates, IdOrder, InputReport};
use crate::{Error, Result};

/// The options of an append.
#[derive(Clone, Debug, Default)]
pub struct AppendOptions {
    /// The treatment of edges that occur several times in the input. `None`: the smallest weight is kept; with
    /// edge properties the last edge, in a multigraph all edges.
    pub duplicates: Option<Duplicates>,
    /// The order of new ids: [`Auto`](IdOrder::Auto) or [`Input`](IdOrder::Input). Existing ids stay.
    pub order: IdOrder,
    /// The memory budget in bytes, including the program. `None`: three quarters of the available memory.
    pub memory: Option<u64>,
    /// How inputs are read. The graph decides the types of keys and weights.
    pub source: SourceOptions,
    /// Files of removals, lists or CSV: `u v` a line for an edge, `u` for a vertex with all its edges.
    pub remove: Vec<InputPath>,
    /// The name of the snapshot.
    pub name: Option<String>,
    /// The time of its data, in microseconds since 1970 UTC.
    pub as_of: Option<i64>,
    /// Whether a merge that is due runs afterwards.
    pub maintenance: Maintenance,
    /// The kind of graph that the caller expects.
    pub expected: ExpectedGraph,
}

/// Whether maintenance follows an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maintenance {
    /// It does if it is due.
    #[default]
    WhenDue,
    /// It does not; readers go through more deltas until a merge.
    Never,
}

/// The kind of graph that a caller expects; an append to another kind is refused. The default accepts any graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedGraph {
    /// The direction of edges.
    pub graph_kind: Option<GraphKind>,
    /// An ordered graph.
    pub ordered: bool,
    /// A graph without in-lists.
    pub out_only: bool,
    /// The key scheme.
    pub keys: Option<KeyScheme>,
    /// Weights and their type.
    pub weights: ExpectedWeights,
}

/// The weights that a caller expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedWeights {
    /// Any weights, or none.
    #[default]
    Any,
    /// Weights of any type.
    Some,
    /// Weights of this type.
    Of(WeightType),
}

impl ExpectedGraph {
    fn check(&self, graph: &GraphOptions) -> Result<()> {
        let is = match (graph.graph_kind, graph.ordered) {
            (GraphKind::Undirected, _) => "undirected",
            (GraphKind::Directed, true) => "ordered",
            (GraphKind::Directed, false) => "directed",
        };
        let asked = match (self.graph_kind, self.ordered) {
            (_, true) => "ordered",
            (Some(GraphKind::Undirected), _) => "undirected",
            (Some(GraphKind::Directed), _) => "directed",
            (None, false) => is,
        };
        if asked != is {
            return misfit(format!("is {is}, not {asked}"));
        }
        // An undirected graph has no in-lists of its own to miss.
        if self.out_only && graph.in_edges && graph.graph_kind == GraphKind::Directed {
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

/// The hint if only the input has weights.
const NO_WEIGHTS: &str = "has no weights: leave out --weights, --weight-type and --weight-column, or load the graph \
                          anew with --weights";

fn misfit(what: String) -> Result<()> {
    Err(Error::options(format!("the graph {what}")))
}

impl AppendOptions {
    /// The name and the time of the snapshot.
    pub(crate) fn tag(&self) -> SnapshotTag<'_> {
        SnapshotTag { name: self.name.as_deref(), as_of: self.as_of }
    }

    /// Refuses options that contradict the graph.
    pub(crate) fn check(&self, graph: &GraphOptions) -> Result<()> {
        self.expected.check(graph)?;
        if self.order.follows_shape() {
            let order = self.order.name();
            return Err(Error::options(format!(
                "--order {order}: the order of ids is fixed when a graph is loaded; an append takes --order input only"
            )));
        }
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

    /// How edges and properties are read; `view` has the existing properties.
    pub(crate) fn sources(&self, view: &SnapshotView) -> SourceOptions {
        let mut sources = self.source.clone();
        let graph = view.options();
        (sources.weights, sources.keys) = (graph.weight_type, key_kind(graph.keys));
        // Existing properties fix the types of their values.
        let of = |known: &PropertySchema, given: Vec<(String, PropertyType)>| {
            let known = known.iter().map(|(name, property_type)| (name.to_owned(), property_type));
            known.chain(given).collect()
        };
        sources.vertex_types = of(view.properties().schema(), sources.vertex_types);
        sources.edge_types = of(view.edge_properties().schema(), sources.edge_types);
        sources
    }

    /// How files of removals are read.
    pub(crate) fn removals(&self, graph: &GraphOptions) -> SourceOptions {
        SourceOptions {
            keys: key_kind(graph.keys),
            on_error: self.source.on_error,
            source_column: self.source.source_column.clone(),
            target_column: self.source.target_column.clone(),
            // The header rule of the inputs does not apply to these files.
            header: match self.source.header {
                HeaderRule::None => HeaderRule::None,
                HeaderRule::Auto | HeaderRule::First => HeaderRule::Auto,
            },
            comment: self.source.comment,
            trim: self.source.trim,
            empty_ids: self.source.empty_ids,
            block_bytes: self.source.block_bytes,
            // A line with one key removes a vertex, where an input of edges would refuse it.
            lone_keys: LoneKeys::Vertices,
            ..SourceOptions::default()
        }
    }

    /// The treatment of parallel edges in `graph`.
    pub(crate) fn duplicates(&self, graph: &GraphOptions) -> Duplicates {
        // The kind of graph comes first: only a simple graph without edge properties leaves a choice.
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

/// The result of an append.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppendReport {
    /// Vertices of the graph now.
    pub vertices: u64,
    /// Edges of the graph now; an undirected edge counts once.
    pub edges: u64,
    /// The number of the new snapshot.
    pub snapshot: u32,
    /// Edges that are new; an edge with a new weight counts.
    pub added: u64,
    /// Edges that are removed; an edge with a new weight counts.
    pub removed: u64,
    /// Vertex property values that changed.
    pub changed_properties: u64,
    /// Removals of edges and vertices that did not exist.
    pub missing: u64,
    /// Seconds from the first byte read to the last byte synced.
    pub seconds: f64,
    /// Bytes of all files of the database.
    pub bytes: u64,
    /// Bytes of the files of the snapshot itself.
    pub snapshot_bytes: u64,
    /// Bytes that maintenance wrote, if it was due.
    pub maintenance_bytes: u64,
    /// The error of maintenance, if it failed. The snapshot is made, and the next append tries maintenance again.
    pub maintenance_error: Option<String>,
    /// Input lines that were skipped because they are not edges.
    pub skipped: u64,
    /// The fault of the first skipped line, with file and line.
    pub first_skipped: Option<String>,
    /// How the inputs were used. For files of removals, only comments are counted.
    pub input: InputReport,
    /// Notes for users on the inputs, in input order: `FILE: …`.
    pub notes: Vec<String>,
    /// Peak resident memory in bytes, including the program.
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
        let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..plain };
        let weighted = GraphOptions { weight_type: Some(WeightType::F64), ..plain };
        let to_undirected = ExpectedGraph { graph_kind: Some(GraphKind::Undirected), ..any };
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
