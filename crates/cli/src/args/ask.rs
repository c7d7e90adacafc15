//! `anden info`, `anden query` and `anden export`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anden::{Io, Prefetch};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

use super::parse;

/// Which version of the graph is read, and how.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Version and access")]
pub struct Selection {
    /// The snapshot, by number or name [default: everything committed]
    #[arg(long, global = true, value_name = "N|NAME", conflicts_with = "window", allow_negative_numbers = true)]
    pub snapshot: Option<String>,
    /// Only the edges added in these snapshots, both ends included: those that B has and the snapshot before A had not
    #[arg(long, global = true, value_name = "A..B", value_parser = parse::window, allow_hyphen_values = true)]
    pub window: Option<RangeInclusive<u32>>,
    /// Only the edges for which an expression of SQL over their properties is true: 'amount > 100 AND kind = ''wire'''
    #[arg(long, global = true, value_name = "EXPR")]
    pub where_edge: Option<String>,
    /// Only the vertices for which an expression of SQL over their properties is true; the others count as removed
    #[arg(long, global = true, value_name = "EXPR")]
    pub where_vertex: Option<String>,
    /// Only the edges of this type, the value of their property `type`; again for several types
    #[arg(long = "type", global = true, value_name = "TYPE")]
    pub types: Vec<String>,
    /// Only the vertices that have this label, one of those in their property `labels`; again for several: one of them
    #[arg(long = "label", global = true, value_name = "LABEL")]
    pub labels: Vec<String>,
    /// What is read ahead of a graph larger than memory: auto, off, neighbourhood, sequential, frontier [default: auto]
    #[arg(long, global = true, value_name = "POLICY", hide_possible_values = true, value_parser = prefetch_policies())]
    pub prefetch: Option<Prefetch>,
    /// How files are read: mmap [default], or pread: to memory, and a disk that fails gives an error
    #[arg(long, global = true, value_name = "WAY", hide_possible_values = true, value_parser = ways_to_read())]
    pub io: Option<Io>,
}

fn prefetch_policies() -> impl TypedValueParser<Value = Prefetch> {
    PossibleValuesParser::new(Prefetch::ALL.map(Prefetch::name)).try_map(|name| name.parse::<Prefetch>())
}

fn ways_to_read() -> impl TypedValueParser<Value = Io> {
    PossibleValuesParser::new(Io::ALL.map(Io::name)).try_map(|name| name.parse::<Io>())
}

const INFO_NOTES: &str = "\
A piece of a list is a slice that algorithms get, whatever it comes from: the base run, levels, or
what is live. An entry that is gone makes two of one; a long list that is live lies in many.

Examples:
  anden info social.anden
  anden info social.anden --json";

/// Show what a database holds: counts, degrees, pages, bytes
#[derive(Args, Debug)]
#[command(after_help = INFO_NOTES)]
pub struct InfoArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
}

const QUERY_EXAMPLES: &str = "\
Examples:
  anden query social.anden edge 12 345            is there an edge from 12 to 345?
  anden query social.anden neighbors 12 --in      who points to 12
  anden query social.anden khop 12 2              within two steps of 12
  anden query social.anden khop 12 2 --count      how many there are
  anden query bank.anden neighbors 12 --return key,amount --limit 10
  anden query bank.anden path 12 345 --return source,target,amount
  anden query roads.anden path 1 264346 --weighted
  anden query air.anden path SEA JFK --weight distance
  anden query social.anden path 12 345 --all      every shortest path
  anden query web.anden neighbors libc6 --snapshot 3
  anden query web.anden find section games        the vertices with this value
  anden query web.anden degrees --in              how in-degrees are spread
  anden query web.anden vertex libc6 --json
  anden query web.anden vertex libc6 --fragments  its lists, as they are stored";

/// Ask about single vertices and edges
#[derive(Args, Debug)]
#[command(after_help = QUERY_EXAMPLES, subcommand_value_name = "QUESTION", subcommand_help_heading = "Questions")]
pub struct QueryArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
    #[command(subcommand)]
    pub query: Query,
}

/// A question.
#[derive(Debug, Subcommand)]
pub enum Query {
    /// Whether there is an edge from U to V, and the weight or the properties of it and of those parallel to it
    Edge {
        /// The source
        #[arg(allow_hyphen_values = true)]
        u: String,
        /// The target
        #[arg(allow_hyphen_values = true)]
        v: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// The vertices that the edges of V lead to
    Neighbors {
        /// The vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        #[command(flatten)]
        side: VertexSide,
        #[command(flatten)]
        listing: Listing,
    },
    /// The vertices within K steps of V, V left out
    Khop {
        /// The vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        /// The number of steps
        #[arg(allow_negative_numbers = true)]
        k: u32,
        #[command(flatten)]
        listing: Listing,
    },
    /// Friends of friends: the vertices exactly two steps from V
    Fof {
        /// The vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// A shortest path from U to V: its length, then its vertices. A path is a sequence of vertices: parallel edges make
    /// no other path, and the lightest of them counts
    Path {
        /// Where it starts
        #[arg(allow_hyphen_values = true)]
        u: String,
        /// Where it ends
        #[arg(allow_hyphen_values = true)]
        v: String,
        /// By the sum of the weights, not by the number of edges
        #[arg(long)]
        weighted: bool,
        /// By the sum of this property of the edges; `weight` for those of a graph that was loaded with --weights
        #[arg(long, value_name = "PROPERTY")]
        weight: Option<String>,
        /// Every path of the fewest edges; parallel edges make no other path
        #[arg(long, conflicts_with_all = ["weighted", "weight"])]
        all: bool,
        /// The first N of the paths of the fewest edges, and how many there are; parallel edges make no other path
        #[arg(long, value_name = "N", conflicts_with_all = ["weighted", "weight", "all"], allow_negative_numbers = true)]
        count: Option<usize>,
        /// A row for each edge of the path with these columns: `source`, `target`, `weight`, `number`, and properties of
        /// edges. Of parallel edges, the lightest where weights count, else the first
        #[arg(long = "return", value_name = "NAME,…", value_parser = parse::names, conflicts_with_all = ["all", "count"])]
        columns: Option<ColumnNames>,
    },
    /// Whether there is a path from U to V
    Reachable {
        /// Where it starts
        #[arg(allow_hyphen_values = true)]
        u: String,
        /// Where it ends
        #[arg(allow_hyphen_values = true)]
        v: String,
    },
    /// The vertices whose property NAME has this VALUE, ascending by id
    Find {
        /// The name of the property
        name: String,
        /// The value, as text of the property's type
        #[arg(allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// How many vertices have which degree, with a plot
    Degrees {
        #[command(flatten)]
        side: VertexSide,
    },
    /// The id and the degrees of V; with --fragments, how its lists are stored
    Vertex {
        /// The vertex
        #[arg(allow_hyphen_values = true)]
        v: String,
        /// Its lists run by run and level by level, and the pieces that readers get
        #[arg(long)]
        fragments: bool,
        /// Only these columns: `key`, `out_degree`, `in_degree`, and properties
        #[arg(long = "return", value_name = "NAME,…", value_parser = parse::names, conflicts_with = "fragments")]
        columns: Option<ColumnNames>,
    },
}

/// What is listed of an answer.
#[derive(Args, Clone, Debug)]
pub struct Listing {
    /// A row for each vertex with these columns: `key`, `out_degree`, `in_degree`, and properties of vertices. Of `edge`, and
    /// of `neighbors` where one is named, a row for each edge: `source`, `target`, `weight`, `number`, and properties of
    /// edges. Columns stand between tabs, under their names; null is nothing between them
    #[arg(long = "return", value_name = "NAME,…", value_parser = parse::names)]
    pub columns: Option<ColumnNames>,
    /// The first N of the answer
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// How many there are, and nothing else
    #[arg(long, conflicts_with_all = ["columns", "limit"])]
    pub count: bool,
}

/// Names of columns. Under a name of its own, the list is one value of an option.
pub type ColumnNames = Vec<String>;

/// `--in` and `--both`.
#[derive(Args, Clone, Copy, Debug)]
pub struct VertexSide {
    /// By the edges that lead there
    #[arg(long = "in", conflicts_with = "both")]
    pub incoming: bool,
    /// By the edges of either direction
    #[arg(long)]
    pub both: bool,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  anden export social.anden edges.csv
  anden export social.anden social.sg             GAP's binary format; keys are replaced by ids
  anden export social.anden social.mtx --vertices keys.txt
  anden export social.anden edges.parquet --vertices vertices.parquet
  anden export social.anden then.csv --snapshot 3
  anden export social.anden - --format edgelist | wc -l";

/// Write a graph to a file
///
/// The ending of FILE names the format: .csv, .parquet, .graphml, .mtx, .sg, .wsg, else a text of edges. The ending of a
/// format that is not written is refused, unless --format says which to write. Properties that the format does not hold
/// are named in a note.
#[derive(Args, Debug)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ExportArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// The file to write; `-` for standard output
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The format [default: by the ending of the file's name, else edgelist]; a matrix (mtx) has rows from 1, which --ids dense
    /// reads as ids from 0
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ExportFormat>,
    /// Write the keys of all vertices too, one a line: what an edge list, CSV, Parquet or a matrix cannot say; its
    /// lines are the rows of the matrix (.csv: under a header; .parquet: a column)
    #[arg(long, value_name = "FILE")]
    pub vertices: Option<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
}

/// `--format` of `export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    Edgelist,
    Csv,
    Mtx,
    Parquet,
    Graphml,
    Gapbs,
}
