//! Options of a caller for its inputs, and facts that the inputs state.

use std::path::PathBuf;

use anden_graph::property::{PropertySchema, PropertyType};
use anden_graph::{GraphKind, WeightType};

use crate::InputPath;
use crate::epoch::{EpochUnit, StatedType};
use crate::format::Format;
use crate::{Error, Result};

/// The edge property that holds the type.
pub const TYPE_PROPERTY: &str = "type";
/// The vertex property that holds the labels, separated by `;`.
pub const LABELS_PROPERTY: &str = "labels";
/// The edge property that holds the `~id` of Neptune. No other tool has such a name, so it clashes with no property.
pub(crate) const EDGE_NAME_PROPERTY: &str = "~id";
/// The separator of labels in [`LABELS_PROPERTY`].
pub const LABEL_SEPARATOR: char = ';';

/// An input with one vertex per row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexInput {
    /// The input.
    pub path: InputPath,
    /// Labels of all vertices of the file, separated by `;`. `None`: no labels, unless the file has a column `labels`.
    pub labels: Option<String>,
    /// The key space; `None`: keys are taken unchanged.
    pub space: Option<String>,
}

impl From<InputPath> for VertexInput {
    fn from(path: InputPath) -> Self {
        Self { path, labels: None, space: None }
    }
}

impl From<PathBuf> for VertexInput {
    fn from(path: PathBuf) -> Self {
        InputPath::from(path).into()
    }
}

/// An input of edges of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeInput {
    /// The input.
    pub path: InputPath,
    /// The type of all edges.
    pub edge_type: String,
    /// The key space of sources; `None`: keys are taken unchanged.
    pub source_space: Option<String>,
    /// The key space of targets, likewise.
    pub target_space: Option<String>,
}

/// The treatment of a faulty line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Stop with an error that names file and line.
    #[default]
    Stop,
    /// Skip and count the line, and keep the first fault.
    Skip,
}

/// The rule that decides which tables, CSV or blank-separated text, start with a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderRule {
    /// The first line of each input decides. After an input with a header, an input without one is refused.
    #[default]
    Auto,
    /// Only the first input has a header. The other inputs are parts of one table and have its columns.
    First,
    /// No input has a header.
    None,
}

impl HeaderRule {
    /// All rules with the names that users type.
    pub const ALL: [(Self, &str); 3] = [(Self::Auto, "auto"), (Self::First, "first"), (Self::None, "none")];
}

/// The meaning of a line with a single key in an edge list or CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoneKeys {
    /// An error.
    #[default]
    Refuse,
    /// The name of a vertex. All inputs must then be lists or CSV.
    Vertices,
}

/// The type of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyKind {
    /// Numbers; blocks hold `u64`.
    #[default]
    Integer,
    /// Text; blocks hold [`Span`](crate::Span)s.
    String,
}

/// The columns beside keys and weights that are read as properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WantedProperties {
    /// No columns.
    #[default]
    None,
    /// All columns with a name.
    All,
    /// The columns with these names, which must exist. Others are left out without a note.
    Named(Vec<String>),
}

impl WantedProperties {
    /// Whether no column is selected.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::All => false,
            Self::Named(names) => names.is_empty(),
        }
    }

    /// Whether a column with this name is selected.
    pub fn wants(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

/// How to read the inputs.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The format of every input; `None`: detected for each by name, then by content.
    pub format: Option<Format>,
    /// The direction that the user states for the graph. GraphML, GEXF and Pajek may mix directed and undirected edges
    /// only then.
    pub graph_kind: Option<GraphKind>,
    /// The type of the weights; `None`: weights are not read.
    pub weights: Option<WeightType>,
    /// The type of the keys.
    pub keys: KeyKind,
    /// Whether empty text is a string key. Otherwise it is a fault, because an empty field is mostly a missing value.
    pub empty_ids: bool,
    /// The treatment of a faulty line.
    pub on_error: OnError,
    /// The source column under a header; `None`: detected by name, or one of the two columns beside a weight.
    pub source_column: Option<String>,
    /// The target column, detected likewise.
    pub target_column: Option<String>,
    /// The weight column under a header; `None`: detected by name, or the only other column.
    pub weight_column: Option<String>,
    /// The tables that start with a header.
    pub header: HeaderRule,
    /// The character between the columns of CSV; `None`: the most frequent of `,`, `;` and tab in the first row, or
    /// else `|`. A text whose name tells no format is CSV if this is given.
    pub delimiter: Option<u8>,
    /// The character that starts a comment anywhere in CSV. `None`: comments start with `#` or `%` and stand only
    /// before the header or the first row.
    pub comment: Option<u8>,
    /// Whether blanks around a field of CSV are removed.
    pub trim: bool,
    /// Words that mean null as the value of a property in CSV or blank-separated text, quoted or not. An empty field is
    /// null anyway, an empty word makes a quoted one null, too. As a key, such a word is a fault.
    pub null_words: Vec<String>,
    /// Names of the columns of CSV or edge lists without a header. `NAME:TYPE` also sets the type.
    pub columns: Option<Vec<String>>,
    /// The columns that are edge properties.
    pub edge_properties: WantedProperties,
    /// An edge property that tells the time of each edge: a date or a timestamp, and never null.
    pub time_column: Option<String>,
    /// Types of edge properties, which are then not inferred from text.
    pub edge_types: Vec<(String, PropertyType)>,
    /// Inputs of edges of one type, read after the other inputs.
    pub edges: Vec<EdgeInput>,
    /// Files of vertices, with keys in `vertex_column`.
    pub vertices: Vec<VertexInput>,
    /// The key column in files of vertices; `None`: detected by name, or the only column. Without a header, the first
    /// column.
    pub vertex_column: Option<String>,
    /// The columns of the files of vertices that are vertex properties.
    pub vertex_properties: WantedProperties,
    /// Types of vertex properties, which are then not inferred from text.
    pub vertex_types: Vec<(String, PropertyType)>,
    /// Properties whose numbers count seconds or milliseconds since 1970, and become timestamps.
    pub epochs: Vec<(String, EpochUnit)>,
    /// The meaning of a line with a single key.
    pub lone_keys: LoneKeys,
    /// The most bytes of scratch space for an input that is copied for random access: compressed or piped Parquet and
    /// serialized graphs. `None`: 64 times the bytes of the input, at least 1 GB.
    pub scratch_limit: Option<u64>,
    /// The bytes of a block of text, and the largest length of a line. METIS lines may be longer.
    pub block_bytes: usize,
}

/// Parses a delimiter of columns as users give it: a character of punctuation but no quote, a tab, `tab` or `\t`. `None`
/// for other text: a letter, a digit or a blank may be part of a key.
pub fn parse_delimiter(text: &str) -> Option<u8> {
    match text {
        "tab" | "\\t" | "\t" => Some(b'\t'),
        _ => match text.as_bytes() {
            [delimiter] if delimiter.is_ascii_punctuation() && *delimiter != b'"' => Some(*delimiter),
            _ => None,
        },
    }
}

impl SourceOptions {
    /// States the types of properties of edges and of vertices.
    pub fn state_types(&mut self, types: &[(String, StatedType)]) {
        for (name, stated) in types {
            let property_type = match stated {
                StatedType::Property(_) | StatedType::Array(_) => stated.of_input(),
                StatedType::Epoch(unit) => {
                    self.epochs.push((name.clone(), *unit));
                    PropertyType::Timestamp
                }
            };
            self.edge_types.push((name.clone(), property_type));
            self.vertex_types.push((name.clone(), property_type));
        }
    }

    /// Whether a text may be a key as far as its length says.
    pub(crate) fn may_be_key(&self, text: &[u8]) -> bool {
        self.empty_ids || !text.is_empty()
    }

    /// Whether a text is a word that means null.
    pub(crate) fn is_null_word(&self, text: &[u8]) -> bool {
        self.null_words.iter().any(|word| word.as_bytes() == text)
    }

    /// Whether any file is to be read, in `inputs` or in the options.
    pub fn has_files(&self, inputs: &[InputPath]) -> bool {
        !(inputs.is_empty() && self.edges.is_empty() && self.vertices.is_empty())
    }
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            format: None,
            graph_kind: None,
            weights: None,
            keys: KeyKind::default(),
            empty_ids: false,
            on_error: OnError::default(),
            source_column: None,
            target_column: None,
            weight_column: None,
            header: HeaderRule::default(),
            delimiter: None,
            comment: None,
            trim: false,
            null_words: Vec::new(),
            columns: None,
            edge_properties: WantedProperties::default(),
            time_column: None,
            edge_types: Vec::new(),
            edges: Vec::new(),
            vertices: Vec::new(),
            vertex_column: None,
            vertex_properties: WantedProperties::default(),
            vertex_types: Vec::new(),
            epochs: Vec::new(),
            lone_keys: LoneKeys::default(),
            scratch_limit: None,
            block_bytes: 4 << 20,
        }
    }
}

/// A column of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnName {
    /// The name in a header.
    Name(String),
    /// The position from 1 of a column without a name.
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

/// The roles of the input columns. The first input with columns decides the ends and weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputColumns {
    /// The source keys; `None` if the format has no columns.
    pub source: Option<ColumnName>,
    /// The target keys.
    pub target: Option<ColumnName>,
    /// The weights; `None` if no weights are read.
    pub weight: Option<ColumnName>,
    /// Columns of any input that are left out.
    pub left_out: Vec<ColumnName>,
}

/// Facts that the inputs state before they are read. Columns without names are counted during the read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFacts {
    /// Whether edges have a direction.
    pub graph_kind: Option<GraphKind>,
    /// The first input that does not state a direction.
    pub undecided: Option<PathBuf>,
    /// The number of vertices, if keys are the ids below it (`.sg`, `.wsg`). Then blocks do not name vertices without
    /// edges.
    pub num_vertices: Option<u64>,
    /// The number of edges. For an undirected serialized graph: the number of stored arcs.
    pub num_edges: Option<u64>,
    /// The bytes of all inputs on disk.
    pub input_bytes: Option<u64>,
    /// Whether edges have weights.
    pub has_weights: Option<bool>,
    /// The type of the weights, if weights are read and all inputs of edges state this one.
    pub weight_type: Option<WeightType>,
    /// The edge properties of all inputs. An input that lacks one has nulls there.
    pub edge_properties: PropertySchema,
    /// The vertex properties of all inputs, likewise.
    pub vertex_properties: PropertySchema,
    /// The roles of the columns.
    pub columns: InputColumns,
    /// Notes for users in input order, `FILE: …`, such as left-out columns.
    pub notes: Vec<String>,
}

impl SourceFacts {
    /// Whether the inputs are undirected, so that a directed graph stores each edge both ways.
    ///
    /// # Errors
    /// One input is undirected, and another does not state a direction.
    pub fn leads_both_ways(&self) -> Result<bool> {
        match (self.graph_kind, &self.undecided) {
            (Some(GraphKind::Undirected), Some(path)) => Err(Error::Input {
                path: path.clone(),
                what: "expected a graph that is undirected, as other inputs, found none that says so: in a directed graph \
                       edges of theirs lead both ways and of this one as they are given, so load one and append the other"
                    .into(),
            }),
            (graph_kind, _) => Ok(graph_kind == Some(GraphKind::Undirected)),
        }
    }
}

/// The totals of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceSummary {
    /// Edges passed to the caller.
    pub num_edges: u64,
    /// Faulty lines that were skipped.
    pub num_skipped: u64,
    /// The first fault, with file and line.
    pub first_skipped: Option<String>,
    /// Comment lines.
    pub num_comments: u64,
    /// The number of listed vertices, if the inputs list all vertices (Graphalytics). If edges name more,
    /// [`Source::unlisted`](crate::Source::unlisted) finds the faulty edge.
    pub num_listed: Option<u64>,
}
