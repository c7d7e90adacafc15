//! `anden load`.

use std::path::PathBuf;

use anden::{EdgeInput, PropertyType, VertexInput, WantedProperties};
use clap::{Args, ValueEnum};

use super::parse;

const EXAMPLES: &str = "\
Examples:
  anden load social.anden edges.txt.gz                 `source target` a line, any u64 as a key
  anden load roads.anden USA-road-d.NY.gr.gz --weights DIMACS, with its distances
  anden load web.anden links.csv --ids string --source-column from --target-column to
  anden load kron.anden kron.sg --ids dense            GAP's binary format; key = id
  anden load web.anden links.csv --vertices sites.csv  names, sizes and so on as properties of vertices
  anden load social.anden --ids string --vertices Person=people.csv --edges KNOWS=knows.csv --edges LIKES=likes.csv
                                                       labels and types: `--label Person`, `--type KNOWS` ask for them
  anden load air.anden flights.parquet --ids string --multigraph   delays and so on as properties of edges
  zcat part-*.gz | anden load all.anden - --undirected --memory 4G";

/// Create a database from files
///
/// Reads text and binary graphs in parallel, sorts and deduplicates them within the memory budget, and writes one
/// durable snapshot. Nothing is left behind if it fails. Files ending in .gz, .zst, .bz2 and .xz are read through.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct LoadArgs {
    /// The database to create: a directory that does not exist yet
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Files of edges, `-` for standard input
    #[arg(value_name = "INPUT", required_unless_present = "edges")]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// An edge leads from its source to its target only (the default, unless the input says otherwise)
    #[arg(long, conflicts_with_all = ["undirected", "ordered"])]
    pub directed: bool,
    /// An edge joins its two ends
    #[arg(long, conflicts_with = "ordered")]
    pub undirected: bool,
    /// Keep each edge of an undirected graph once, from the smaller id to the larger, and no loops
    #[arg(long)]
    pub ordered: bool,
    /// Read weights: the file's own, the column that its name tells, or the third without a header
    #[arg(long)]
    pub weights: bool,
    /// The type of the weights; implies --weights [default: u32 for gapbs and dimacs, f64 otherwise]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub weight_type: Option<LoadWeight>,
    /// What becomes of an edge that occurs again; by weight (min, the default, and sum, which must be within the type), by
    /// place, or keep: a multigraph.
    /// Edges with properties take last or keep, and are refused without where one occurs again
    #[arg(long, value_enum, value_name = "RULE")]
    pub duplicates: Option<LoadDuplicates>,
    /// Keep parallel edges: the same as --duplicates keep
    #[arg(long)]
    pub multigraph: bool,
    /// No in-edges: half the size, but some kernels need them
    #[arg(long)]
    pub out_only: bool,
    /// What vertices are called; dense: 0..n-1, the key is the id, and what mtx, metis and dimacs count from 1 counts
    /// from 0 [default: integer; string with key spaces]
    #[arg(long, value_enum, value_name = "KIND")]
    pub ids: Option<LoadIds>,
    /// Spread the edges over so many snapshots at random
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub snapshots: u32,
    /// The share of the edges in the first snapshot [default: as much as in each of the others]
    #[arg(long, value_name = "F", value_parser = parse::fraction, allow_hyphen_values = true)]
    pub first_share: Option<f64>,
    /// The seed of the spreading [default: 1]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

/// How inputs are read.
#[derive(Args, Debug)]
pub struct ReadingArgs {
    /// The format of the inputs; auto: by name, then by content
    #[arg(long, value_enum, default_value_t = LoadFormat::Auto, value_name = "FORMAT")]
    pub format: LoadFormat,
    /// The column of the sources under a header, in CSV, blank-separated text and Parquet. Default: pairs of names tell,
    /// such as source/target, src/dst, from/to, node_1/node_2 or :START_ID/:END_ID, whatever their case and separators; or
    /// there are two columns, or three with a weight. Other headers are refused. Without a header: the first column
    #[arg(long, value_name = "NAME")]
    pub source_column: Option<String>,
    /// The column of the targets, likewise; without a header the second. With --ids string, a first line of unknown names
    /// is a header only if an option names a column, or with --header first
    #[arg(long, value_name = "NAME")]
    pub target_column: Option<String>,
    /// Which inputs of CSV and blank-separated text have a header. auto: the first line of each tells, and an input without
    /// a header behind one with a header is refused; first: the first input alone, and the others have its columns; none
    #[arg(long, value_enum, default_value_t = LoadHeader::Auto, value_name = "RULE")]
    pub header: LoadHeader,
    /// The character that comments in CSV begin with, on any line [default: # and %, before the header or the first
    /// row only]. Lists of edges always have comments that begin with #, % or //
    #[arg(long, value_name = "CHAR", value_parser = parse::mark)]
    pub comment: Option<u8>,
    /// Leave out blanks around the fields of CSV, which are part of them otherwise: `x ` and `x` are two keys
    #[arg(long)]
    pub trim: bool,
    /// Names of the columns of CSV or blank-separated text without a header, perhaps with types: `u,v,time:timestamp`.
    /// With --header first, in place of the names in the header
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,
    /// A file of edges that all have the type TYPE, again for several; each has columns of its own. The type is the
    /// property `type`. `KNOWS:person:person=FILE` says the key spaces of sources and targets
    #[arg(long, value_name = "TYPE=FILE", value_parser = parse::edge_input)]
    pub edges: Vec<EdgeInput>,
    /// A file that names vertices, one a line, `-` for standard input: those without edges are vertices too. Of CSV, the
    /// other columns become properties of the vertices. Again for several. LABEL is what all its vertices are, `A;B` for
    /// several labels, and becomes the property `labels`. `Person:person=FILE` says the space of the keys, in which they
    /// are unique: key 7 of the space person is called person:7
    #[arg(long, value_name = "[LABEL=]FILE", value_parser = parse::vertex_input)]
    pub vertices: Vec<VertexInput>,
    /// The column of the keys in the files of vertices. Default: one with a usual name, such as id or name, or the only one;
    /// without a header the first
    #[arg(long, value_name = "NAME", requires = "vertices")]
    pub vertex_column: Option<String>,
    /// Which columns of the files of vertices become properties: all, none, or their names
    #[arg(long, value_name = "NAME,…", default_value = "all", value_parser = parse::wanted)]
    pub vertex_properties: WantedProperties,
    /// Which other columns of the inputs (CSV, Parquet, GraphML) become properties of the edges: all, none, or their
    /// names [default: all; append: none if the edges of the graph have no properties]
    #[arg(long, value_name = "NAME,…", value_parser = parse::wanted)]
    pub properties: Option<WantedProperties>,
    /// Types of properties, where the beginning of the text would tell others: boolean, i64, u64, f32, f64, date,
    /// timestamp (in UTC; one with a time zone is converted), string, bytes
    #[arg(long, value_name = "NAME:TYPE,…", value_delimiter = ',', value_parser = parse::property_type)]
    pub property_types: Vec<(String, PropertyType)>,
    /// Number vertices as they come up in the input, not by key
    #[arg(long)]
    pub io_order: bool,
    /// What to do at a line that is no edge; an input of which every line would be skipped is refused
    #[arg(long, value_enum, default_value_t = LoadOnError::Stop, value_name = "RULE")]
    pub on_error: LoadOnError,
    /// The column of the weights under a header; implies --weights. Default: one named weight, w, cost or distance, or the
    /// only one beside source and target
    #[arg(long, value_name = "NAME")]
    pub weight_column: Option<String>,
}

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadFormat {
    Auto,
    Edgelist,
    Csv,
    Mtx,
    Metis,
    Gapbs,
    Dimacs,
    Graphalytics,
    Parquet,
    Graphml,
}

/// `--header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadHeader {
    Auto,
    First,
    None,
}

/// `--weight-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadWeight {
    U32,
    I64,
    F32,
    F64,
}

/// `--duplicates`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadDuplicates {
    Min,
    Last,
    Sum,
    Keep,
}

/// `--ids`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadIds {
    Integer,
    String,
    Dense,
}

/// `--on-error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadOnError {
    Stop,
    Skip,
}
