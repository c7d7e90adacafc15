//! `anden info`, `anden query` and `anden export`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anden::export::ExportFormat;
use anden::session::{Io, Prefetch};
use anden::snapshot::SnapshotId;
use anden_formats::OutputContent;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

use super::parse;

/// The version of the graph to read, and how to read it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Version and access")]
pub struct Selection {
    // `global` lets these options also stand behind the question of `query`.
    /// Read this snapshot, by number, name or time: 2012-05 is the newest one up to the end of that month. If the
    /// snapshot of that time was dropped, this is an older one, which a note names [default: everything committed]
    #[arg(long, global = true, value_name = "N|NAME|TIME", conflicts_with = "window", allow_negative_numbers = true)]
    pub snapshot: Option<String>,
    /// Read only the edges that snapshots A to B added, and their vertices: edges that B has and the snapshot before A
    /// lacks; 3..7, or times as in 2012-01..2012-03
    #[arg(long, global = true, value_name = "A..B", value_parser = parse::window, allow_hyphen_values = true)]
    pub window: Option<RangeInclusive<SnapshotId>>,
    /// Read only edges for which this SQL expression over edge properties is true: 'amount > 100 AND kind = ''wire'''
    #[arg(long, global = true, value_name = "EXPR")]
    pub where_edge: Option<String>,
    /// Read only vertices for which this SQL expression over vertex properties is true; other vertices count as removed
    #[arg(long, global = true, value_name = "EXPR")]
    pub where_vertex: Option<String>,
    /// Read only edges of this type, the value of their property `type`; repeat for several types
    #[arg(long = "type", global = true, value_name = "TYPE")]
    pub types: Vec<String>,
    /// Read only vertices with this label, one of those in their property `labels`; repeat to allow several labels
    #[arg(long = "label", global = true, value_name = "LABEL")]
    pub labels: Vec<String>,
    /// With --window: keep all vertices of snapshot B; otherwise, a vertex with no edge in the window counts as removed
    #[arg(long, global = true, conflicts_with = "no_isolated")]
    pub isolated: bool,
    /// Read only vertices with an edge that the other options leave; --where-edge and --type alone remove no vertex
    #[arg(long, global = true)]
    pub no_isolated: bool,
    /// Prefetch policy for a graph larger than memory: auto, off, neighbourhood, sequential, frontier [default: auto]
    #[arg(long, global = true, value_name = "POLICY", hide_possible_values = true, value_parser = prefetch_policies())]
    pub prefetch: Option<Prefetch>,
    /// How to read files: mmap [default], or pread, which copies to memory and reports disk failures as errors
    #[arg(long, global = true, value_name = "WAY", hide_possible_values = true, value_parser = ways_to_read())]
    pub io: Option<Io>,
}

fn prefetch_policies() -> impl TypedValueParser<Value = Prefetch> {
    let names = Prefetch::ALL.map(|policy| match policy {
        Prefetch::Neighborhood => PossibleValue::new(policy.name()).alias("neighborhood"),
        _ => PossibleValue::new(policy.name()),
    });
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Prefetch>())
}

fn ways_to_read() -> impl TypedValueParser<Value = Io> {
    PossibleValuesParser::new(Io::ALL.map(Io::name)).try_map(|name| name.parse::<Io>())
}

const INFO_NOTES: &str = "\
A fragment of a list is a slice that algorithms get, from the base, a delta or the memtable. A removed
entry makes two of one; a long list in the memtable lies in many.

Examples:
  anden info social.anden
  anden info social.anden --json";

/// Show statistics of a database: counts, degrees, pages, bytes
#[derive(Args, Debug)]
#[command(after_help = INFO_NOTES)]
pub struct InfoArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
}

const QUERY_EXAMPLES: &str = "\
Examples:
  anden query social.anden edge 12 345            is there an edge from 12 to 345?
  anden query social.anden neighbors 12 --in      the vertices that point to 12
  anden query social.anden khop 12 2              within two steps of 12
  anden query social.anden khop 12 2 --count      how many there are
  anden query social.anden khop 12 3 --depths     each with its number of steps
  anden query social.anden fof 12 --ranked --limit 10     ten recommendations, by common neighbors
  anden query social.anden common 12 345          the neighbors that both have
  anden query bank.anden neighbors 12 --return key,amount --limit 10
  anden query bank.anden path 12 345 --return source,target,amount
  anden query roads.anden path 1 264346 --weighted
  anden query air.anden path SEA JFK --weight distance
  anden query social.anden path 12 345 --all      every shortest path
  anden query web.anden neighbors libc6 --snapshot 3
  anden query web.anden find section games        the vertices with this value
  anden query web.anden degrees --in              how in-degrees are spread
  anden query web.anden degrees --in --top 10     the ten vertices with the most in-edges
  anden query web.anden vertex libc6 --json
  anden query web.anden vertex libc6 --fragments  its lists, as they are stored
  anden query web.anden --batch questions.txt     one question a line, such as `khop libc6 2 --count`

Vertices are listed in ascending order of keys. With --depths they are listed by number of steps, with --ranked and
--top by descending number; ties ascend by key.";

/// Ask about single vertices and edges
#[derive(Args, Debug)]
#[command(after_help = QUERY_EXAMPLES, subcommand_value_name = "QUESTION", subcommand_help_heading = "Questions")]
pub struct QueryArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
    /// Answer the questions in this file, one a line; `-` for standard input. Each answer is one line of JSON with the
    /// number of its line. A bad question gives a line with `error`, and status 1 at the end. Keys and values with
    /// blanks stand in double quotes. Empty lines and lines that begin with # are skipped
    #[arg(long, value_name = "FILE")]
    pub batch: Option<PathBuf>,
    #[command(subcommand)]
    pub query: Option<Query>,
}

/// A question in a file of questions.
#[derive(Debug, Parser)]
#[command(name = "question", no_binary_name = true, subcommand_value_name = "QUESTION")]
pub struct QuestionLine {
    #[command(subcommand)]
    pub query: Query,
}

/// The questions.
#[derive(Debug, Subcommand)]
pub enum Query {
    /// Does the edge from U to V exist? Prints weights and properties, also of parallel edges
    Edge {
        /// Source vertex
        #[arg(allow_hyphen_values = true)]
        u: String,
        /// Target vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// List the vertices that the edges of V lead to
    Neighbors {
        /// Vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        #[command(flatten)]
        direction: VertexDirection,
        #[command(flatten)]
        listing: Listing,
    },
    /// List the vertices within K steps of V, without V
    Khop {
        /// Vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        /// Number of steps
        #[arg(allow_negative_numbers = true)]
        k: u32,
        #[command(flatten)]
        direction: VertexDirection,
        /// Print the number of steps to each vertex, nearest first; also the column `depth` of --return
        #[arg(long)]
        depths: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// List friends of friends: the vertices exactly two steps from V
    Fof {
        /// Vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        #[command(flatten)]
        direction: VertexDirection,
        /// List the vertices exactly N steps from V
        #[arg(long, value_name = "N", default_value_t = 2, allow_negative_numbers = true)]
        depth: u32,
        /// Rank them as recommendations: by the number of neighbors of V that lead to them, which is printed too; also
        /// the column `count` of --return
        #[arg(long, conflicts_with = "depth")]
        ranked: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// List the common neighbors of U and V
    Common {
        /// First vertex
        #[arg(allow_hyphen_values = true)]
        u: String,
        /// Second vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        #[command(flatten)]
        direction: VertexDirection,
        #[command(flatten)]
        listing: Listing,
    },
    /// Find a shortest path from U to V: its length, then its vertices. Parallel edges do not make different paths; the
    /// lightest one counts
    Path {
        /// First vertex of the path
        #[arg(allow_hyphen_values = true)]
        u: String,
        /// Last vertex of the path
        #[arg(allow_hyphen_values = true)]
        v: String,
        #[command(flatten)]
        direction: VertexDirection,
        /// Find a path with at most N edges; the search goes no farther
        #[arg(long, value_name = "N", conflicts_with_all = ["weighted", "weight"], allow_negative_numbers = true)]
        max_depth: Option<u32>,
        /// Minimise the sum of weights, not the number of edges
        #[arg(long)]
        weighted: bool,
        /// Minimise the sum of this edge property; `weight` names the weights of a graph loaded with --weights
        #[arg(long, value_name = "PROPERTY")]
        weight: Option<String>,
        /// List every path with the fewest edges; parallel edges do not make different paths
        #[arg(long, conflicts_with_all = ["weighted", "weight"])]
        all: bool,
        /// List the first N paths with the fewest edges, and how many exist; parallel edges do not make different paths
        #[arg(long, value_name = "N", conflicts_with_all = ["weighted", "weight", "all"], allow_negative_numbers = true)]
        count: Option<usize>,
        /// With --all: list only the first N
        #[arg(long, value_name = "N", requires = "all", allow_negative_numbers = true)]
        limit: Option<usize>,
        // Rows describe the edges of one path, so a list of paths has none.
        /// Print a row for each edge of the path with these columns: `source`, `target`, `weight`, `number` and edge
        /// properties. Of parallel edges, the lightest if weights count, else the first
        #[arg(long = "return", value_name = "NAME,…", value_parser = parse::names, conflicts_with_all = ["all", "count"])]
        columns: Option<ColumnNameList>,
    },
    /// Does a path from U to V exist?
    Reachable {
        /// First vertex of the path
        #[arg(allow_hyphen_values = true)]
        u: String,
        /// Last vertex of the path
        #[arg(allow_hyphen_values = true)]
        v: String,
        #[command(flatten)]
        direction: VertexDirection,
        /// Consider paths of at most N edges
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        max_depth: Option<u32>,
    },
    /// List the vertices whose property NAME has this VALUE, in ascending order of keys
    Find {
        /// Name of the property
        name: String,
        /// Value, as text of the property's type
        #[arg(allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Plot the degree distribution: how many vertices have which degree; with --top, list the vertices with the most
    /// edges
    Degrees {
        #[command(flatten)]
        direction: VertexDirection,
        /// List the N vertices with the most edges, and their degrees
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        top: Option<usize>,
        /// With --top: print a row for each vertex with these columns: `degree` and those of other questions
        #[arg(long = "return", value_name = "NAME,…", value_parser = parse::names, requires = "top")]
        columns: Option<ColumnNameList>,
    },
    /// Show the id, degrees and properties of V; with --fragments, how its lists are stored
    Vertex {
        /// Vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        /// Show how its lists are stored: the base, each delta, and the fragments that readers get
        #[arg(long)]
        fragments: bool,
        /// Print only these columns: `key`, `out_degree`, `in_degree` and properties
        #[arg(long = "return", value_name = "NAME,…", value_parser = parse::names, conflicts_with = "fragments")]
        columns: Option<ColumnNameList>,
    },
}

/// What to print of an answer.
#[derive(Args, Clone, Debug)]
pub struct Listing {
    /// Print a row for each vertex with these columns: `key`, `out_degree`, `in_degree` and vertex properties. `edge`,
    /// and `neighbors` with an edge column, print a row for each edge: `source`, `target`, `weight`, `number` and edge
    /// properties. Columns are separated by tabs, under a header; null is empty
    #[arg(long = "return", value_name = "NAME,…", value_parser = parse::names)]
    pub columns: Option<ColumnNameList>,
    /// Print only the first N
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// Print only how many exist
    #[arg(long, conflicts_with_all = ["columns", "limit"])]
    pub count: bool,
}

/// Column names. The alias makes clap take the list as one value of an option.
pub type ColumnNameList = Vec<String>;

/// `--out`, `--in` and `--both`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct VertexDirection {
    /// Use out-edges: those that lead from a vertex (the default)
    #[arg(long = "out", conflicts_with_all = ["incoming", "both"])]
    pub outgoing: bool,
    /// Use in-edges: those that lead to a vertex
    #[arg(long = "in", conflicts_with = "both")]
    pub incoming: bool,
    /// Use the edges of both directions
    #[arg(long)]
    pub both: bool,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  anden export social.anden edges.csv
  anden export social.anden social.sg             GAP's binary format; keys are replaced by ids
  anden export social.anden social.mtx --vertices keys.txt
  anden export social.anden edges.parquet --vertices vertices.parquet
  anden export social.anden social.arrow                  a CSR, for pyarrow, Polars and SciPy
  anden export social.anden edges.csv --format neo4j --vertices vertices.csv   for neo4j-admin import
  anden export social.anden web.graph --format bvgraph          web.properties and web.offsets beside it, for WebGraph
  anden export social.anden folder --format graphframes         vertices and edges in Parquet, for Spark
  anden export social.anden folder --format graphar             labels and types as tables of Apache GraphAr
  anden export social.anden then.csv --snapshot 3
  anden export social.anden near.graphml --ego 12 2       the vertices within two steps of 12, and their properties
  anden export social.anden part.csv --vertices-in keys.txt --vertices part-vertices.csv
  anden export social.anden - --format edgelist | wc -l";

/// Write a graph to a file
#[derive(Args, Debug)]
#[command(long_about = export_about(), after_help = EXPORT_EXAMPLES)]
pub struct ExportArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Output file; `-` for standard output. With --format graphframes or graphar, a new or empty
    /// folder
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Output format [default: by the extension of the file, else edgelist]. Rows of a matrix (mtx) count from 1; --ids
    /// dense reads them as ids from 0
    #[arg(long, value_name = "FORMAT", value_parser = export_formats())]
    pub format: Option<ExportFormat>,
    /// Also write the keys of all vertices to this file, one per line; it keeps vertices without edges. Line N is row N
    /// of a matrix. A .csv file has a header, a .parquet file a column `id`, and both hold vertex properties. With
    /// --format neo4j or neptune it has that format
    #[arg(long, value_name = "FILE")]
    pub vertices: Option<PathBuf>,
    /// Write only the vertices within K steps of V, and all edges between them. Steps follow out-edges, or the edges
    /// that --in or --both choose
    #[arg(long, value_names = ["V", "K"], num_args = 2, allow_hyphen_values = true, conflicts_with = "vertices_in")]
    pub ego: Option<Vec<String>>,
    /// Write only the vertices in this file, and all edges between them. The key is the first column of a line, in
    /// double quotes if it has blanks; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub vertices_in: Option<PathBuf>,
    #[command(flatten)]
    pub direction: VertexDirection,
    #[command(flatten)]
    pub selection: Selection,
}

/// The description of `export`, with the endings of all formats.
fn export_about() -> String {
    let endings = ExportFormat::endings(OutputContent::Edges);
    format!(
        "Write a graph to a file\n\nThe extension of FILE selects the format: {endings}; any other name gives a text \
         edge list. The extension of a format that cannot be written is refused, unless --format selects another. A \
         note names the properties that the format cannot hold."
    )
}

fn export_formats() -> impl TypedValueParser<Value = ExportFormat> {
    // The formats of the library are the possible values, so the help is complete.
    let of_name = |name: String| ExportFormat::of_name(&name).ok_or("unknown format");
    PossibleValuesParser::new(ExportFormat::names()).try_map(of_name)
}
