//! `anden stats` and `tail`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::parse;

const STATS_EXAMPLES: &str = "\
Examples:
  anden stats social.anden                       the state of its files, and the process that writes it
  anden stats social.anden --watch               a line a second, until Ctrl-C
  anden stats social.anden --watch 10 --json     an object every ten seconds
  anden stats social.anden --prometheus > social.prom.tmp && mv social.prom.tmp social.prom";

/// Show the state of a database, also while another process writes it
///
/// Reads the manifest and the log and takes no lock. Commits are seen as groups: each group is one epoch. Latencies, the
/// memtable, views and the cache are known to the writing process only: there, `db.metrics()` returns them.
#[derive(Args, Debug)]
#[command(after_help = STATS_EXAMPLES)]
pub struct StatsArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Print a line every SECONDS until Ctrl-C [default without a number: 1]. With --json, a line is one object
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = parse::seconds, allow_negative_numbers = true)]
    pub watch: Option<Duration>,
    /// Print the text format of Prometheus, for example for the textfile collector of node_exporter. The label
    /// `database` has the path as given
    #[arg(long, conflicts_with = "watch")]
    pub prometheus: bool,
}

const TAIL_EXAMPLES: &str = "\
Examples:
  anden tail social.anden                        all changes that the WAL has
  anden tail social.anden --since 1200           those after epoch 1200
  anden tail social.anden --since 1200 --follow  and those to come, until Ctrl-C
  anden retain social.anden --keep-wal 1G        keep more of the WAL for it";

/// Print the committed changes, also while another process writes the database
///
/// A line is one JSON object: all changes of one commit group, with its epoch. The epoch of the last whole line is the
/// --since of the next call. Only durable commits are printed. If the WAL lacks the next one, begin again from a backup:
/// `retain --keep-wal` keeps more.
#[derive(Args, Debug)]
#[command(after_help = TAIL_EXAMPLES)]
pub struct TailArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Print the changes after this epoch [default: all that the WAL has]
    #[arg(long, value_name = "EPOCH", allow_negative_numbers = true)]
    pub since: Option<u64>,
    /// Wait for further changes, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
}
