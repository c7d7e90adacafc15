//! `anden append`, `merge`, `drop`, `diff` and `retain`.

use std::path::PathBuf;

use anden::{Retention, SnapshotId};
use clap::Args;

use super::load::{LoadDuplicates, LoadIds, LoadWeight, ReadingArgs};

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
/// What is there already is not added again (except to a multigraph); a weight, or properties, replace those before. Of
/// an edge that occurs again in the input, --duplicates says which weight counts: the least if it is not given, since
/// the rule of the load is not remembered. If the edges of the graph have properties, the last line gives the weight
/// and the properties, and an edge without values keeps its old ones. Removals come first: an edge that is removed and
/// added is there afterwards. All snapshots before stay
/// as they are. The database is left as it was if anything fails.
#[derive(Args, Debug)]
#[command(after_help = APPEND_EXAMPLES)]
pub struct AppendArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Files with edges to add, `-` for standard input
    #[arg(value_name = "INPUT", required_unless_present_any = ["remove", "vertices", "edges"])]
    pub inputs: Vec<PathBuf>,
    /// Edges to remove, `u v` a line (or CSV), and vertices with all their edges, `u` a line; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub remove: Vec<PathBuf>,
    /// The name of the snapshot; no number
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Do not fold runs afterwards, even where that is due
    #[arg(long)]
    pub no_maintenance: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// What becomes of an edge that occurs again in this input: min (the default), last or sum of its weights, whatever
    /// the load did; keep: in a multigraph
    #[arg(long, value_enum, value_name = "RULE")]
    pub duplicates: Option<LoadDuplicates>,
    #[command(flatten)]
    pub kind: KindArgs,
}

/// What the graph is taken for: another one is refused.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The kind of graph (refused if it is another)")]
pub struct KindArgs {
    /// An edge leads from its source to its target only
    #[arg(long, conflicts_with_all = ["undirected", "ordered"])]
    pub directed: bool,
    /// An edge joins its two ends
    #[arg(long, conflicts_with = "ordered")]
    pub undirected: bool,
    /// Each edge is kept once, from the smaller id to the larger
    #[arg(long)]
    pub ordered: bool,
    /// There are no in-edges
    #[arg(long)]
    pub out_only: bool,
    /// What vertices are called
    #[arg(long, value_enum, value_name = "KIND")]
    pub ids: Option<LoadIds>,
    /// Edges have weights
    #[arg(long)]
    pub weights: bool,
    /// The type of the weights
    #[arg(long, value_enum, value_name = "TYPE")]
    pub weight_type: Option<LoadWeight>,
    /// Parallel edges are kept: the same as --duplicates keep
    #[arg(long)]
    pub multigraph: bool,
}

/// Fold what was appended into one run
///
/// Reading is then as fast as after a load. No snapshot is lost.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  anden merge social.anden\n  anden merge social.anden --newest 10")]
pub struct MergeArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Only the changes of the newest K snapshots, into one run beside the large one
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub newest: Option<u32>,
}

/// Drop snapshots, by number or name
///
/// The space that only they needed is free afterwards. What the newest snapshot changed stays committed: the graph is
/// the same, and the next snapshot has it. All snapshots but one may go, in any order.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  anden drop social.anden 3\n  anden drop social.anden 1 2 tuesday")]
pub struct DropArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// The snapshots
    #[arg(value_name = "N|NAME", required = true, value_parser = snapshot_id, allow_negative_numbers = true)]
    pub snapshots: Vec<SnapshotId>,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  anden diff social.anden 3 5                 `+ u v` and `- u v` a line, with weights where there are some
  anden diff social.anden monday tuesday --json
  anden diff social.anden 3 1 --with copy.anden";

/// Show what changed after snapshot A up to snapshot B
///
/// One line a change, as `anden apply` takes it: `+ u v [weight] [NAME=VALUE ...]` and `- u v [weight]` for edges, `v+ u`
/// and `v- u` for vertices, `p u NAME VALUE` for properties of vertices (`null` where there is no value any more). An edge
/// whose weight or properties changed is removed and added. Between two snapshots of a multigraph, lines name each
/// edge by its number, as in `- u v #7`, and a changed edge gets `= u v #7 weight` and `p u v #7 NAME VALUE`. If A is
/// newer than B, the lines undo the changes. `apply` gives an added edge a number of its own.
#[derive(Args, Debug)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// The snapshot to begin with, by number or name
    #[arg(value_name = "A", value_parser = snapshot_id, allow_negative_numbers = true)]
    pub from: SnapshotId,
    /// The snapshot to end with
    #[arg(value_name = "B", value_parser = snapshot_id, allow_negative_numbers = true)]
    pub to: SnapshotId,
    /// Take B from another database: vertices are matched by what they are called
    #[arg(long, value_name = "DB2")]
    pub with: Option<PathBuf>,
}

const RETAIN_EXAMPLES: &str = "\
Examples:
  anden retain social.anden last:30           the newest 30 snapshots, and those with names
  anden retain social.anden all               everything, which is the default";

/// Set which snapshots are kept, now and whenever a snapshot is made
///
/// Snapshots with names and the newest one always stay.
#[derive(Args, Debug)]
#[command(after_help = RETAIN_EXAMPLES)]
pub struct RetainArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// all; last:N, the newest N; named, those with names; days:N, those made in the last N days
    #[arg(value_name = "all|last:N|named|days:N", value_parser = retention)]
    pub retention: Retention,
}

fn snapshot_id(text: &str) -> Result<SnapshotId, String> {
    if text.is_empty() { Err("expected the number or the name of a snapshot".into()) } else { Ok(text.into()) }
}

fn retention(text: &str) -> Result<Retention, String> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|&n| n > 0);
    let found = match text.split_once(':') {
        None if text == "all" => Some(Retention::All),
        None if text == "named" => Some(Retention::Named),
        Some(("last", n)) => number(n).map(Retention::Last),
        Some(("days", n)) => number(n).map(Retention::Days),
        _ => None,
    };
    found.ok_or_else(|| "expected all, last:N, named or days:N".into())
}

/// `all`, `last:9` and so on.
pub fn retention_text(retention: Retention) -> String {
    match retention {
        Retention::Last(n) => format!("last:{n}"),
        Retention::Named => "named".into(),
        Retention::Days(n) => format!("days:{n}"),
        _ => "all".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retentions() {
        for text in ["all", "last:9", "named", "days:30"] {
            assert_eq!(retention(text).map(retention_text), Ok(text.to_owned()));
        }
        for text in ["", "last", "last:0", "last:x", "days:-1", "named:1", "some"] {
            assert!(retention(text).is_err(), "{text}");
        }
    }
}
