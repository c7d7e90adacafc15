//! `anden apply` and `checkpoint`.

use std::path::PathBuf;
use std::time::Duration;

use anden::Durability;
use clap::Args;

use super::parse;

const APPLY_EXAMPLES: &str = "\
Examples:
  anden apply social.anden updates.txt
  anden apply social.anden updates.txt.gz --batch 10000 --durability batched:20 --strict
  anden diff social.anden 3 5 | anden apply copy.anden - --durability none --acks -
  tail -f updates.txt | anden apply social.anden - --flush 20ms --acks -

Lines: `+ u v [weight] [NAME=VALUE ...]` an edge is there, with these values of its properties,
`- u v` it is not, `= u v weight` it has this weight, `v+ u` a vertex is there, `v- u` it is not, nor
its edges and values, `p u NAME VALUE` a vertex has a value of a property and is there,
`p u v NAME VALUE` an edge, which must be there, has one. Empty lines and comments (#) are left out.

A value is read as its property's type: true or false, numbers, dates (2024-02-29), timestamps
(2024-02-29T12:30:00Z), text, bytes (0x00ff); `null` takes it away. A new property gets the narrowest
of these types that holds all that the batch says of it, as a column of CSV does; with a value in
quotes it is text. A column in double quotes may hold blanks, and \\\" \\\\ \\n \\r \\t.

Of a multigraph, `+` adds one more edge, `-` removes all of the pair, `=` changes all of it, and
`p u v` changes the edge that was added last. A number behind the ends names one of the edges, as
`query edge` and `diff` print it: `- u v #7`, `= u v #7 weight`, `p u v #7 NAME VALUE`. Numbers
belong to one database: in a copy that took other updates, a number can name another edge.";

/// Apply a file of updates, one per line
///
/// Updates are applied in batches; each batch is a transaction. A batch is answered once it is as durable as
/// --durability says, and small batches share one sync unless --strict or --memory is given. A snapshot is made at the
/// end. After a crash, opening the database recovers answered batches, as far as --durability promises.
///
/// If a pipe or terminal pauses, an unfilled batch is committed and answered after --flush. Ctrl-C and a wrong line
/// drop the batch being read; answered batches stay.
#[derive(Args, Debug)]
#[command(after_help = APPLY_EXAMPLES)]
pub struct ApplyArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// File of updates; `-` for standard input
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Number of updates in a transaction
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub batch: u32,
    /// Commit an unfilled batch this long after its first update if a pipe, FIFO, socket or terminal pauses, for
    /// example 100ms or 2s. A bare number is milliseconds; 0 commits as soon as the input pauses
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse::time, allow_negative_numbers = true)]
    pub flush: Duration,
    /// Durability of an answered transaction. sync: survives a power cut. batched[:MS]: survives the end of the
    /// process; a power cut loses at most the last MS milliseconds (default 5) plus two syncs. none: survives nothing
    /// until it is written, shortly after
    #[arg(long, value_name = "WHAT", default_value = "sync", value_parser = durability)]
    pub durability: Durability,
    /// Also make a snapshot after each N updates
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub checkpoint_every: Option<u64>,
    /// Refuse edges to missing vertices, values of missing vertices, and removals of missing edges and vertices
    #[arg(long)]
    pub strict: bool,
    /// Write the number of the last line of each answered transaction to this file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub acks: Option<PathBuf>,
}

/// Parses a durability.
fn durability(text: &str) -> Result<Durability, String> {
    let expected = || "expected sync, batched[:MS] or none".to_owned();
    match text.split_once(':') {
        None if text == "sync" => Ok(Durability::Sync),
        None if text == "none" => Ok(Durability::None),
        None if text == "batched" => Ok(Durability::batched()),
        // `batched:20ms` is taken too: times have one form in all options.
        Some(("batched", time)) => parse::time(time).map(Durability::Batched).map_err(|_| expected()),
        _ => Err(expected()),
    }
}

/// Make a snapshot of everything committed
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  anden checkpoint social.anden\n  anden checkpoint social.anden --name before-the-merge"
)]
pub struct CheckpointArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Name of the snapshot; must not be a number
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Time of the data, as 2012-05-31 or 2012-05-31T18:00Z; `snapshots` shows it beside the time of creation
    #[arg(long, value_name = "DATE", value_parser = parse::as_of, allow_hyphen_values = true)]
    pub as_of: Option<i64>,
}
