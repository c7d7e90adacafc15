//! `anden load`.

use std::path::PathBuf;

use anden::load::{EdgeInput, Format, IdOrder, SnapshotBy, StatedType, VertexInput, WantedProperties};
use clap::builder::{PossibleValuesParser, TypedValueParser};
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
  anden load social.anden people.csv posts.csv likes.csv           files for Neo4j or Neptune need no options
  anden load air.anden flights.parquet --ids string --multigraph   delays and so on as properties of edges
  anden load mails.anden mails.txt.gz --columns from,to,time:epoch_s --multigraph --snapshot-by time:month
                                                       a snapshot for each month: `--snapshot 2012-05` reads one
  zcat part-*.gz | anden load all.anden - --undirected --memory 4G";

/// Create a database from files
///
/// Reads text and binary graphs in parallel, sorts and deduplicates them within the memory budget, and writes one
/// durable snapshot. A failed load leaves nothing behind. Files ending in .gz, .zst, .bz2 and .xz are decompressed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct LoadArgs {
    /// Directory of the new database; must not exist
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Files of edges; `-` for standard input; a folder of GraphFrames or GraphAr
    #[arg(value_name = "INPUT", required_unless_present = "edges")]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Make a directed graph (the default, unless the input says otherwise)
    #[arg(long, conflicts_with_all = ["undirected", "ordered"])]
    pub directed: bool,
    /// Make an undirected graph
    #[arg(long, conflicts_with = "ordered")]
    pub undirected: bool,
    /// Store each undirected edge once, from the smaller id to the larger, and drop loops
    #[arg(long)]
    pub ordered: bool,
    /// Read weights: those of the format, the column whose name says weight, or the third column without a header
    #[arg(long)]
    pub weights: bool,
    /// Type of the weights; implies --weights [default: that of the column in Parquet and of Anden's GraphML and GEXF;
    /// u32 for gapbs and dimacs; f64 otherwise]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub weight_type: Option<LoadWeight>,
    /// What to do with an edge that occurs again: take the min (default) or sum of the weights, or the last one; or
    /// keep all, which makes a multigraph. A sum must fit the type. Edges with properties allow last and keep; without
    /// the option, a repeated one is refused
    #[arg(long, value_enum, value_name = "RULE")]
    pub duplicates: Option<LoadDuplicates>,
    /// Keep parallel edges; same as --duplicates keep
    #[arg(long)]
    pub multigraph: bool,
    /// Store no in-edges: half the size, but some kernels need them
    #[arg(long)]
    pub out_only: bool,
    /// Type of vertex keys: integer, string, or dense (0..n-1, the key is the id). Dense shifts mtx, metis and dimacs
    /// from 1 to 0 [default: integer; string with key spaces or for text under :ID or ~id]
    #[arg(long, value_enum, value_name = "KIND")]
    pub ids: Option<LoadIds>,
    /// Name of the snapshot; with --snapshots, of the last one
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Time of the data, as 2012-05-31 or 2012-05-31T18:00Z; `snapshots` shows it beside the time of creation
    #[arg(long, value_name = "DATE", value_parser = parse::as_of, allow_hyphen_values = true)]
    pub as_of: Option<i64>,
    /// Make a snapshot for each hour, day, week or month (UTC) with edges, as the column of dates or timestamps says:
    /// `time:month` gives snapshots 2012-05, 2012-06 and so on. Each has the edges until the end of its period. For
    /// numbers since 1970, see --property-types; for text without a header, --columns
    #[arg(long, value_name = "COLUMN:PERIOD", value_parser = parse::snapshot_by,
        conflicts_with_all = ["name", "as_of", "snapshots", "first_share", "seed"])]
    pub snapshot_by: Option<SnapshotBy>,
    /// Spread the edges at random over this many snapshots
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub snapshots: u32,
    /// Share of the edges in the first snapshot [default: equal shares]
    #[arg(long, value_name = "F", value_parser = parse::fraction, allow_hyphen_values = true)]
    pub first_share: Option<f64>,
    /// Seed of the random spread [default: 1]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

/// Options for reading inputs.
#[derive(Args, Debug)]
pub struct ReadingArgs {
    /// Format of the inputs; auto: by name, then by content
    #[arg(long, default_value = "auto", value_name = "FORMAT", value_parser = format_parser())]
    pub format: LoadFormat,
    /// Column of the sources in CSV, blank-separated text and Parquet with a header. Default: common names such as
    /// source/target, src/dst, from/to, node_1/node_2 or :START_ID/:END_ID, in any case and with any separators.
    /// Without such names, there must be two columns, or three with a weight. Without a header: the first column
    #[arg(long, value_name = "NAME")]
    pub source_column: Option<String>,
    /// Column of the targets, found like that of the sources; without a header: the second column. With --ids string, a
    /// first line of unknown names counts as a header only with --header first or an option that names a column
    #[arg(long, value_name = "NAME")]
    pub target_column: Option<String>,
    /// Which inputs of CSV and blank-separated text have a header. auto: decided by the first line of each; an input
    /// without a header after one with a header is refused. first: only the first input, and the others have its
    /// columns. none: no input
    #[arg(long, value_enum, default_value_t = LoadHeader::Auto, value_name = "RULE")]
    pub header: LoadHeader,
    /// Character between the columns of CSV, or `tab` [default: the most frequent of , ; and tab in the first row, or
    /// else |]. A file without a known ending is CSV with this option
    #[arg(long, value_name = "CHAR", value_parser = parse::delimiter)]
    pub delimiter: Option<u8>,
    /// Most scratch space, in the folder of TMPDIR, for each compressed or piped input of Parquet or serialized graphs,
    /// such as 20GB [default: 64 times the bytes of the input, at least 1GB]
    #[arg(long, value_name = "SIZE", value_parser = parse::bytes)]
    pub scratch_limit: Option<u64>,
    /// Character that begins a comment in CSV, on any line [default: # and %, before the header or first row only].
    /// Edge lists always have comments with #, % or //
    #[arg(long, value_name = "CHAR", value_parser = parse::mark)]
    pub comment: Option<u8>,
    /// Ignore blanks around CSV fields; without it, `x ` and `x` are different keys
    #[arg(long)]
    pub trim: bool,
    /// Take empty text as a key, with --ids string: an empty field, `id=""`, or an empty string of Parquet. Without it,
    /// an empty key is an error
    #[arg(long)]
    pub empty_ids: bool,
    /// A word such as NA or NULL that means null as the value of a property in CSV and blank-separated text; repeat for
    /// several. An empty field is null anyway. A key must not be null
    #[arg(long, value_name = "WORD")]
    pub null: Vec<String>,
    /// Column names of CSV or blank-separated text without a header, with optional types: `u,v,time:timestamp`. With
    /// --header first, they replace the names in the header
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,
    /// A file of edges of type TYPE, which becomes the property `type`; repeat for several files, each with its own
    /// columns. `KNOWS:person:person=FILE` also gives the key spaces of sources and targets
    #[arg(long, value_name = "TYPE=FILE", value_parser = parse::edge_input)]
    pub edges: Vec<EdgeInput>,
    /// A file of vertices, one per line; `-` for standard input; repeat for several files. Vertices without edges are
    /// kept. Other columns of CSV become vertex properties. LABEL, or `A;B` for several labels, becomes the property
    /// `labels`. `Person:person=FILE` also gives the key space, in which keys are unique: key 7 of the space person is
    /// person:7
    #[arg(long, value_name = "[LABEL=]FILE", value_parser = parse::vertex_input)]
    pub vertices: Vec<VertexInput>,
    /// Column of the keys in files of vertices. Default: the only column, or one with a common name such as id or name;
    /// without a header: the first column
    #[arg(long, value_name = "NAME", requires = "vertices")]
    pub vertex_column: Option<String>,
    /// Columns of the files of vertices that become properties: all, none, or names
    #[arg(long, value_name = "NAME,…", default_value = "all", value_parser = parse::wanted)]
    pub vertex_properties: WantedProperties,
    // `None` lets `append` choose by the graph, where `load` takes all.
    /// Other columns of the inputs (CSV, Parquet, Arrow, GraphML) that become edge properties: all, none, or names [default:
    /// all; append: none if the edges of the graph have no properties]
    #[arg(long, value_name = "NAME,…", value_parser = parse::wanted)]
    pub properties: Option<WantedProperties>,
    /// Types of properties, in place of those detected at the beginning of the text: boolean, i64, u64, f32, f64, date,
    /// timestamp (UTC; other time zones are converted), string, bytes. Numbers of seconds or milliseconds since 1970
    /// become timestamps by epoch_s and epoch_ms
    #[arg(long, value_name = "NAME:TYPE,…", value_delimiter = ',', value_parser = parse::property_type)]
    pub property_types: Vec<(String, StatedType)>,
    /// Order of the ids. It decides what lies together in memory, not the answers. By key (auto), as keys appear
    /// (input), or by descending degree (degree). Also vertices above the mean degree before the others (hub), or as a
    /// breadth-first search meets them (bfs). Append takes input only [default: auto]
    #[arg(long, value_name = "ORDER", value_parser = order_parser())]
    pub order: Option<IdOrder>,
    /// Same as --order input
    #[arg(long)]
    pub io_order: bool,
    /// What to do with a line that is not an edge; an input with only such lines is refused
    #[arg(long, value_enum, default_value_t = LoadOnError::Stop, value_name = "RULE")]
    pub on_error: LoadOnError,
    /// Column of the weights in inputs with a header; implies --weights. Default: a column named weight, w, cost or
    /// distance, or the only one beside source and target
    #[arg(long, value_name = "NAME")]
    pub weight_column: Option<String>,
}

/// `--format`: `None` is `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadFormat(pub Option<Format>);

fn format_parser() -> impl TypedValueParser<Value = LoadFormat> {
    let names: Vec<_> = std::iter::once("auto").chain(Format::all().map(Format::name)).collect();
    // No format has the name `auto`, so that word maps to `None`.
    PossibleValuesParser::new(names).map(|name| LoadFormat(Format::of_name(&name)))
}

fn order_parser() -> impl TypedValueParser<Value = IdOrder> {
    let order_of =
        |name: String| IdOrder::ALL.iter().find(|(_, known)| *known == name).map_or(IdOrder::Auto, |(order, _)| *order);
    PossibleValuesParser::new(IdOrder::ALL.map(|(_, name)| name)).map(order_of)
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
