//! What a load did, and what became of its inputs.

use graph::formats::{InputColumns, SourceFacts, SourceSummary, VertexInput};

use super::arcs::Expand;
use super::options::Duplicates;

/// What became of the inputs of a load or an append.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputReport {
    /// Which columns of the inputs are what.
    pub columns: InputColumns,
    /// Names of the properties of edges that were read.
    pub properties: Vec<String>,
    /// Edges that were read; an edge without a direction counts once.
    pub edges: u64,
    /// Edges among them that were merged into a parallel one.
    pub merged: u64,
    /// What becomes of parallel edges; [`Duplicates::Auto`]: they are refused.
    pub duplicates: Duplicates,
    /// Edges among them that lead from a vertex to itself.
    pub loops: u64,
    /// Lines passed over because they are comments.
    pub comment_lines: u64,
}

impl InputReport {
    /// What is known once all inputs are read.
    pub(crate) fn new(facts: &SourceFacts, summary: &SourceSummary, num_loops: u64, duplicates: Duplicates) -> Self {
        Self {
            columns: facts.columns.clone(),
            properties: facts.edge_properties.iter().map(|(name, _)| name.to_owned()).collect(),
            edges: summary.num_edges,
            merged: 0,
            duplicates,
            loops: num_loops,
            comment_lines: summary.num_comments,
        }
    }

    /// Takes note of the edges that are left once parallel ones are merged; a graph that is `directed` holds an edge
    /// that leads both ways twice.
    pub(crate) fn merged_to(&mut self, num_edges: u64, expand: Expand, is_directed: bool) {
        let given = match expand {
            Expand::Both if is_directed => 2 * self.edges - self.loops,
            Expand::Ordered => self.edges - self.loops,
            Expand::AsGiven | Expand::Turned | Expand::Both => self.edges,
        };
        self.merged = given.saturating_sub(num_edges);
    }

    /// What to tell of loops in a graph that may be `ordered`.
    pub(crate) fn note_on_loops(&self, is_ordered: bool) -> Option<String> {
        match (is_ordered, self.loops) {
            (false, _) | (true, 0) => None,
            (true, 1) => Some("1 loop is left out: an ordered graph has none".into()),
            (true, loops) => Some(format!("{loops} loops are left out: an ordered graph has none")),
        }
    }
}

/// What to tell of rows of values of vertices that have earlier rows, in the file of vertices if there is just one.
pub(crate) fn note_on_repeated(num_rows: u64, inputs: &[VertexInput]) -> Option<String> {
    let rows = match num_rows {
        0 => return None,
        1 => "1 row names a vertex again".to_owned(),
        _ => format!("{num_rows} rows name a vertex again"),
    };
    let file = match inputs {
        [input] => format!("{}: ", input.path.display()),
        _ => String::new(),
    };
    Some(format!("{file}{rows}: the values of the last row count"))
}

/// The outcome of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Vertices of the graph.
    pub vertices: u64,
    /// Edges of the graph; of an undirected one, each counted once.
    pub edges: u64,
    /// The number of the snapshot that was made.
    pub snapshot: u32,
    /// From the first byte read to the last byte synced.
    pub seconds: f64,
    /// Bytes of all files of the database.
    pub bytes: u64,
    /// Lines of the input that were left out because they were no edges.
    pub skipped: u64,
    /// What was wrong with the first of them, with file and line.
    pub first_skipped: Option<String>,
    /// What became of the inputs.
    pub input: InputReport,
    /// What users should know about the inputs, in their order: `FILE: …`.
    pub notes: Vec<String>,
    /// The most memory that was resident at once, in bytes, the program included.
    pub peak_bytes: u64,
}
