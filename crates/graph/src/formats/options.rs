//! What a caller says of its inputs, and what the inputs say of themselves.

use std::path::PathBuf;

use super::InputPath;
use super::labeled::{EdgeInput, VertexInput};
use crate::property::{PropertySchema, PropertyType};
use crate::{Direction, Error, Result, WeightType};

/// A graph format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `source target [weight]` a line, separated by blanks, perhaps under a header; further columns of a list without
    /// a header are left out. Lines that begin with `#`, `%` or `//` are comments.
    EdgeList,
    /// Columns separated by `,`, `;` or tabs, perhaps quoted, perhaps under a header. Blanks are part of a field, and
    /// comments stand before the header (RFC 4180).
    Csv,
    /// The formats of the GAP benchmark suite: `.sg`, `.wsg` (binary), `.el`, `.wel` (text).
    Gapbs,
    /// The shortest-path format of the 9th DIMACS challenge: `p sp n m`, `a u v w`.
    Dimacs,
    /// LDBC Graphalytics: `.v`, `.e` and `.properties` beside each other.
    Graphalytics,
    /// Matrix Market: coordinate matrices, whose rows are the vertices, from 1.
    Mtx,
    /// METIS: a line of neighbours for each vertex, from 1; undirected.
    Metis,
    /// Apache Parquet: a row an edge.
    Parquet,
    /// GraphML: nodes and edges in XML, with data of declared types.
    GraphMl,
}

impl Format {
    /// All of them, with the names that users type.
    pub const ALL: [(Self, &str); 9] = [
        (Self::EdgeList, "edgelist"),
        (Self::Csv, "csv"),
        (Self::Mtx, "mtx"),
        (Self::Metis, "metis"),
        (Self::Gapbs, "gapbs"),
        (Self::Dimacs, "dimacs"),
        (Self::Graphalytics, "graphalytics"),
        (Self::Parquet, "parquet"),
        (Self::GraphMl, "graphml"),
    ];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(format, _)| *format == self).map_or("?", |(_, name)| name)
    }

    /// The format of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|&(format, _)| format)
    }
}

/// What to do with a line that is no edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// End with an error that names file and line.
    #[default]
    Stop,
    /// Leave the line out, count it, and remember the first.
    Skip,
}

/// Which inputs of columns, CSV and blank-separated text, begin with a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderRule {
    /// The first line of each tells; inputs behind one with a header have one too, or are refused.
    #[default]
    Auto,
    /// The first input alone: the others are parts of it and have its columns.
    First,
    /// None.
    None,
}

impl HeaderRule {
    /// All of them, with the names that users type.
    pub const ALL: [(Self, &str); 3] = [(Self::Auto, "auto"), (Self::First, "first"), (Self::None, "none")];
}

/// What a line with one key alone is, in an edge list or CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoneKeys {
    /// No edge: an error.
    #[default]
    Refuse,
    /// The name of a vertex. Inputs are lists and CSV then, nothing else.
    Vertices,
}

/// What keys are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyKind {
    /// Numbers; blocks hold `u64`.
    #[default]
    Integer,
    /// Text; blocks hold [`Span`](super::Span)s.
    String,
}

/// Which columns, beside keys and weights, are read as properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WantedProperties {
    /// None.
    #[default]
    None,
    /// All that have a name.
    All,
    /// Those of these names; each must be there. The other columns are left out without a note.
    Named(Vec<String>),
}

impl WantedProperties {
    /// Whether no column is wanted.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::All => false,
            Self::Named(names) => names.is_empty(),
        }
    }

    /// Whether a column of this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

/// How inputs are to be read.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The format of every input; `None`: told for each by its name, then its content.
    pub format: Option<Format>,
    /// The type of the weights to read; `None`: weights are not read.
    pub weights: Option<WeightType>,
    /// What keys are.
    pub keys: KeyKind,
    /// What to do with a line that is no edge.
    pub on_error: OnError,
    /// The column of the sources under a header; `None`: its name tells, or there are only two beside a weight.
    pub source_column: Option<String>,
    /// The column of the targets, likewise.
    pub target_column: Option<String>,
    /// The column of the weights under a header; `None`: its name tells, or it is the only one left.
    pub weight_column: Option<String>,
    /// Which inputs of columns begin with a header.
    pub header: HeaderRule,
    /// The character that a comment in CSV begins with, anywhere; `None`: comments begin with `#` or `%`, and stand
    /// before the header or the first row only.
    pub comment: Option<u8>,
    /// Whether blanks around a field of CSV are no part of it.
    pub trim: bool,
    /// Names of the columns of text without a header: CSV, and lists of edges. `NAME:TYPE` gives the
    /// type as well.
    pub columns: Option<Vec<String>>,
    /// Which columns are properties of edges.
    pub edge_properties: WantedProperties,
    /// Types of properties of edges, which text is not asked for then.
    pub edge_types: Vec<(String, PropertyType)>,
    /// Inputs of edges of one type, which are read behind the others.
    pub edges: Vec<EdgeInput>,
    /// Files that name vertices. `vertex_column` tells the column.
    pub vertices: Vec<VertexInput>,
    /// The column of the keys in the files of vertices; `None`: its name tells, or there is only one under a header;
    /// without a header the first.
    pub vertex_column: Option<String>,
    /// Which columns of the files of vertices are their properties.
    pub vertex_properties: WantedProperties,
    /// Types of properties of vertices, which text is not asked for then.
    pub vertex_types: Vec<(String, PropertyType)>,
    /// What a line with one key alone is.
    pub lone_keys: LoneKeys,
    /// The bytes of a block of text, and so the length that no line may exceed, but for METIS.
    pub block_bytes: usize,
}

impl SourceOptions {
    /// Whether there is a file to read, beside `inputs` or among them.
    pub fn has_files(&self, inputs: &[InputPath]) -> bool {
        !(inputs.is_empty() && self.edges.is_empty() && self.vertices.is_empty())
    }
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            format: None,
            weights: None,
            keys: KeyKind::default(),
            on_error: OnError::default(),
            source_column: None,
            target_column: None,
            weight_column: None,
            header: HeaderRule::default(),
            comment: None,
            trim: false,
            columns: None,
            edge_properties: WantedProperties::default(),
            edge_types: Vec::new(),
            edges: Vec::new(),
            vertices: Vec::new(),
            vertex_column: None,
            vertex_properties: WantedProperties::default(),
            vertex_types: Vec::new(),
            lone_keys: LoneKeys::default(),
            block_bytes: 4 << 20,
        }
    }
}

/// A column of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnName {
    /// By its name in a header.
    Name(String),
    /// By its place from 1, where it has no name.
    Number(usize),
}

impl std::fmt::Display for ColumnName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// Which columns of the inputs are what; of several inputs, the first that has columns tells the ends and weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputColumns {
    /// The keys of the sources; `None` where the format has no columns.
    pub source: Option<ColumnName>,
    /// The keys of the targets.
    pub target: Option<ColumnName>,
    /// The weights; `None` without weights.
    pub weight: Option<ColumnName>,
    /// Columns of any input that are not read.
    pub left_out: Vec<ColumnName>,
}

/// What the inputs say of themselves before they are read; the columns without names are counted as they are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFacts {
    /// Whether edges have a direction.
    pub direction: Option<Direction>,
    /// The first input that does not say so.
    pub undecided: Option<PathBuf>,
    /// The number of vertices, where keys are ids from 0 to below it (`.sg`, `.wsg`). Vertices
    /// without edges are not named in blocks then.
    pub num_vertices: Option<u64>,
    /// The number of edges; of an undirected serialized graph, of stored arcs.
    pub num_edges: Option<u64>,
    /// The bytes of all inputs as they are on disk.
    pub input_bytes: Option<u64>,
    /// Whether there are weights.
    pub has_weights: Option<bool>,
    /// The properties of edges, of all inputs; those of an input that another has not are null there.
    pub edge_properties: PropertySchema,
    /// The properties of vertices, likewise.
    pub vertex_properties: PropertySchema,
    /// Which columns are what.
    pub columns: InputColumns,
    /// What users should know about the inputs, in their order: `FILE: …`, such as a column that is left out.
    pub notes: Vec<String>,
}

impl SourceFacts {
    /// Whether edges have no direction, so that each leads both ways in a directed graph.
    ///
    /// # Errors
    /// Those of one input have none, and another does not say so.
    pub fn leads_both_ways(&self) -> Result<bool> {
        match (self.direction, &self.undecided) {
            (Some(Direction::Undirected), Some(path)) => Err(Error::Input {
                path: path.clone(),
                what: "expected a graph that is undirected, as other inputs, found none that says so: in a directed graph \
                       edges of theirs lead both ways and of this one as they are given, so load one and append the other"
                    .into(),
            }),
            (direction, _) => Ok(direction == Some(Direction::Undirected)),
        }
    }
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceSummary {
    /// Edges handed out.
    pub num_edges: u64,
    /// Lines left out because they were no edges.
    pub num_skipped: u64,
    /// What was wrong with the first of them, with file and line.
    pub first_skipped: Option<String>,
    /// Lines passed over because they are comments.
    pub num_comments: u64,
    /// The vertices that are listed, where the inputs list all that there are (Graphalytics); with
    /// more than these, [`Source::unlisted`](super::Source::unlisted) tells which edge is wrong.
    pub num_listed: Option<u64>,
}
