//! Reports of loads and of their inputs.

use anden_formats::{InputColumns, SourceFacts, SourceSummary, VertexInput};
use anden_graph::property::PropertySchema;

use super::arcs::Expand;
use super::options::Duplicates;

/// How the inputs of a load or an append were used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputReport {
    /// The role of each input column.
    pub columns: InputColumns,
    /// Names of the edge properties that were read.
    pub properties: Vec<String>,
    /// Edges that were read; an undirected edge counts once.
    pub edges: u64,
    /// Edges among them that were merged into parallel ones.
    pub merged: u64,
    /// The treatment of parallel edges; [`Duplicates::Auto`]: they are refused.
    pub duplicates: Duplicates,
    /// Loops among them.
    pub loops: u64,
    /// Comment lines.
    pub comment_lines: u64,
}

impl InputReport {
    /// The report after all inputs are read. `properties` are the edge properties that the graph gets.
    pub(crate) fn new(
        facts: &SourceFacts,
        properties: &PropertySchema,
        summary: &SourceSummary,
        num_loops: u64,
        duplicates: Duplicates,
    ) -> Self {
        Self {
            columns: facts.columns.clone(),
            properties: properties.iter().map(|(name, _)| name.to_owned()).collect(),
            edges: summary.num_edges,
            merged: 0,
            duplicates,
            loops: num_loops,
            comment_lines: summary.num_comments,
        }
    }

    /// Sets the number of merged edges from the number of edges left. A `directed` graph stores an edge that leads both
    /// ways twice.
    pub(crate) fn merged_to(&mut self, num_edges: u64, expand: Expand, is_directed: bool) {
        let given = match expand {
            // A directed graph stores such an edge as two arcs, and a loop as one.
            Expand::Both if is_directed => 2 * self.edges - self.loops,
            // An ordered graph has dropped the loops, which were not merged.
            Expand::Ordered => self.edges - self.loops,
            Expand::AsGiven | Expand::Reversed | Expand::Both => self.edges,
        };
        self.merged = given.saturating_sub(num_edges);
    }

    /// A note on loops that an `ordered` graph leaves out.
    pub(crate) fn note_on_loops(&self, is_ordered: bool) -> Option<String> {
        match (is_ordered, self.loops) {
            (false, _) | (true, 0) => None,
            (true, 1) => Some("1 loop is left out: an ordered graph has none".into()),
            (true, loops) => Some(format!("{loops} loops are left out: an ordered graph has none")),
        }
    }
}

/// A note on repeated rows of vertices. It names the vertex file if there is only one.
pub(crate) fn note_on_repeated(num_rows: u64, inputs: &[VertexInput]) -> Option<String> {
    let rows = match num_rows {
        0 => return None,
        1 => "1 row names a vertex again".to_owned(),
        _ => format!("{num_rows} rows name a vertex again"),
    };
    let file = match inputs {
        [input] => format!("{}: ", input.path.path().display()),
        _ => String::new(),
    };
    Some(format!("{file}{rows}: the values of the last row count"))
}

/// The result of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Vertices of the graph.
    pub vertices: u64,
    /// Edges of the graph; an undirected edge counts once.
    pub edges: u64,
    /// The number of the new snapshot.
    pub snapshot: u32,
    /// Seconds from the first byte read to the last byte synced.
    pub seconds: f64,
    /// Bytes of all files of the database.
    pub bytes: u64,
    /// Input lines that were skipped because they are not edges.
    pub skipped: u64,
    /// The fault of the first skipped line, with file and line.
    pub first_skipped: Option<String>,
    /// How the inputs were used.
    pub input: InputReport,
    /// Notes for users on the inputs, in input order: `FILE: …`.
    pub notes: Vec<String>,
    /// Peak resident memory in bytes, including the program.
    pub peak_bytes: u64,
}
