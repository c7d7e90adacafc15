//! `anden append`, `merge`, `drop`, `diff` and `retain`.

use std::path::PathBuf;

use anden::Retention;
use anden::snapshot::SnapshotId;
use clap::Args;

use super::load::{LoadDuplicates, LoadIds, LoadWeight, ReadingArgs};
use super::parse;

const APPEND_EXAMPLES: &str = "\
Examples:
  anden append social.anden today.txt.gz                  the edges of today as a new snapshot
  anden append social.anden today.txt --remove gone.txt --name tuesday
  anden append social.anden --remove gone.txt             `u v` a line for an edge, `u` for a vertex
  anden append social.anden --vertices people.csv         new values of properties
  anden append social.anden --edges KNOWS=knows.csv       edges of the type KNOWS
  zcat more.gz | anden append social.anden -";

/// Add and remove edges as one new snapshot
///
/// Removals come first: an edge that is removed and added exists afterwards. An existing edge is not added again,
/// except in a multigraph; its weight or properties are replaced. If an edge occurs again in the input, --duplicates
/// selects the weight: by default the smallest, because the rule of the load is not stored. If edges have properties,
/// the last line gives weight and properties, and an edge without values keeps its old ones. Earlier snapshots do not
/// change. If anything fails, the database stays unchanged.
#[derive(Args, Debug)]
#[command(after_help = APPEND_EXAMPLES)]
pub struct AppendArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Files of edges to add; `-` for standard input
    #[arg(value_name = "INPUT", required_unless_present_any = ["remove", "vertices", "edges"])]
    pub inputs: Vec<PathBuf>,
    /// File of removals: an edge `u v` per line (or CSV), or a vertex `u` with all its edges; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub remove: Vec<PathBuf>,
    /// Name of the snapshot; must not be a number
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Time of the data, as 2012-05-31 or 2012-05-31T18:00Z; `snapshots` shows it beside the time of creation
    #[arg(long, value_name = "DATE", value_parser = parse::as_of, allow_hyphen_values = true)]
    pub as_of: Option<i64>,
    /// Do not merge afterwards, even if a merge is due
    #[arg(long)]
    pub no_maintenance: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Weight of an edge that occurs again in this input: min (the default), last or sum, whatever the load used; keep:
    /// in a multigraph
    #[arg(long, value_enum, value_name = "RULE")]
    pub duplicates: Option<LoadDuplicates>,
    #[command(flatten)]
    pub kind: KindArgs,
}

/// The expected kind of graph. A graph of another kind is refused.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The kind of graph (refused if it is another)")]
pub struct KindArgs {
    /// Edges are directed
    #[arg(long, conflicts_with_all = ["undirected", "ordered"])]
    pub directed: bool,
    /// Edges are undirected
    #[arg(long, conflicts_with = "ordered")]
    pub undirected: bool,
    /// Each edge is stored once, from the smaller id to the larger
    #[arg(long)]
    pub ordered: bool,
    /// The graph has no in-edges
    #[arg(long)]
    pub out_only: bool,
    /// Type of vertex keys
    #[arg(long, value_enum, value_name = "KIND")]
    pub ids: Option<LoadIds>,
    /// Edges have weights
    #[arg(long)]
    pub weights: bool,
    /// Type of the weights
    #[arg(long, value_enum, value_name = "TYPE")]
    pub weight_type: Option<LoadWeight>,
    /// Parallel edges are kept; same as --duplicates keep
    #[arg(long)]
    pub multigraph: bool,
}

/// Merge appended snapshots, so that reads are fast again
///
/// Reads are then as fast as after a load. All snapshots stay readable.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  anden merge social.anden\n  anden merge social.anden --newest 10")]
pub struct MergeArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Merge only the changes of the newest K snapshots; the large base file stays as it is
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub newest: Option<u32>,
}

/// Drop snapshots, by number or name
///
/// Frees the space that only these snapshots needed. Changes of the newest snapshot stay committed: the graph is
/// unchanged, and the next snapshot includes them. Any snapshots may be dropped, except the last one left.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  anden drop social.anden 3\n  anden drop social.anden 1 2 tuesday")]
pub struct DropArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Snapshots to drop
    #[arg(value_name = "N|NAME", required = true, value_parser = snapshot_id, allow_negative_numbers = true)]
    pub snapshots: Vec<SnapshotId>,
}

/// Give a snapshot another name
///
/// The old name leads nowhere afterwards. Retention by `named` keeps snapshots with names.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  anden rename social.anden 3 tuesday\n  anden rename social.anden tuesday --unnamed"
)]
pub struct RenameArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Snapshot, by number or name
    #[arg(value_name = "N|NAME", value_parser = snapshot_id, allow_negative_numbers = true)]
    pub snapshot: SnapshotId,
    /// The new name
    #[arg(value_name = "NEW", required_unless_present = "unnamed")]
    pub name: Option<String>,
    /// Take the name away
    #[arg(long, conflicts_with = "name")]
    pub unnamed: bool,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  anden diff social.anden 3 5                 `+ u v` and `- u v` a line, with weights where there are some
  anden diff social.anden monday tuesday --json
  anden diff social.anden 3 1 --with copy.anden";

/// Show the changes from snapshot A to snapshot B
///
/// Prints one change per line, in the format of `anden apply`: `+ u v [weight] [NAME=VALUE ...]` and `- u v [weight]`
/// for edges, `v+ u` and `v- u` for vertices, `p u NAME VALUE` for vertex properties (`null` if the value was removed).
/// An edge with a new weight or new properties is removed and added. In a multigraph, lines name each edge by its
/// number, as in `- u v #7`, and a changed edge gives `= u v #7 weight` and `p u v #7 NAME VALUE`. If A is newer than
/// B, the lines undo the changes. `apply` gives an added edge a new number.
#[derive(Args, Debug)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// First snapshot, by number or name
    #[arg(value_name = "A", value_parser = snapshot_id, allow_negative_numbers = true)]
    pub from: SnapshotId,
    /// Second snapshot, by number or name
    #[arg(value_name = "B", value_parser = snapshot_id, allow_negative_numbers = true)]
    pub to: SnapshotId,
    /// Take B from this other database; vertices are matched by key
    #[arg(long, value_name = "DB2")]
    pub with: Option<PathBuf>,
}

const RETAIN_EXAMPLES: &str = "\
Examples:
  anden retain social.anden last:30           the newest 30 snapshots, and those with names
  anden retain social.anden days:30           those of the last 30 days, the newest, and those with names
  anden retain social.anden --keep-wal 1G     up to 1 GB of the WAL for `tail`, beyond what recovery needs
  anden retain social.anden all               everything, which is the default";

/// Set which snapshots to keep, now and after each new snapshot, and how much of the WAL
///
/// Snapshots with names and the newest snapshot always stay. A clock that jumps must not cost the history: days:N
/// drops at most half of the snapshots at once. If more are too old, this command refuses, and new snapshots drop none;
/// `info` shows how many are held back.
#[derive(Args, Debug)]
#[command(after_help = RETAIN_EXAMPLES)]
pub struct RetainArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// all; last:N: the newest N; named: those with names; days:N: those of the last N days
    #[arg(value_name = "all|last:N|named|days:N", required_unless_present = "keep_wal")]
    pub retention: Option<Retention>,
    /// Drop more than half of the snapshots if days:N says so
    #[arg(long)]
    pub force: bool,
    /// Keep up to SIZE of the WAL for `tail` and replicas once a snapshot has its commits [initially 0]
    #[arg(long, value_name = "SIZE", value_parser = parse::bytes_or_zero, allow_hyphen_values = true)]
    pub keep_wal: Option<u64>,
}

fn snapshot_id(text: &str) -> Result<SnapshotId, String> {
    // The library tells numbers from names.
    if text.is_empty() { Err("expected the number or the name of a snapshot".into()) } else { Ok(text.into()) }
}
