//! The command line: the only definition of verbs, options and help texts.
//!
//! Shell completions and man pages are generated from this definition.

mod ask;
mod backup;
mod index;
mod live;
mod load;
mod make;
mod parse;
mod run;
mod stats;
mod versions;

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{ArgAction, Args, Parser, Subcommand};

pub use ask::{ExportArgs, InfoArgs, Listing, Query, QueryArgs, QuestionLine, Selection, VertexDirection};
pub use backup::{BackupArgs, RepairArgs, RestoreArgs};
pub use index::{IndexAction, IndexArgs};
pub use live::{ApplyArgs, CheckpointArgs};
pub use load::{LoadArgs, LoadDuplicates, LoadFormat, LoadHeader, LoadIds, LoadOnError, LoadWeight, ReadingArgs};
pub use make::{GenerateArgs, GenerateCommon, GeneratorShape};
pub use run::{PrepareArgs, RunArgs};
pub use stats::{StatsArgs, TailArgs};
pub use versions::{AppendArgs, DiffArgs, DropArgs, KindArgs, MergeArgs, RenameArgs, RetainArgs};

const TOP_EXAMPLES: &str = "\
Examples:
  anden load social.anden edges.txt.gz           load a text edge list, one `source target` a line
  anden append social.anden more.txt             a new snapshot with more edges
  anden info social.anden                        what is in it
  anden run social.anden pagerank                the vertices with the highest rank
  anden query social.anden path 12 345           the shortest path between two vertices

Exit status: 0 done, 1 it failed, 2 the command line does not parse, 130 interrupted.
`anden VERB --help` explains a verb and shows examples.";

/// The version, and the commit where the Makefile built the program.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    // A build by cargo alone sets no commit.
    let commit = option_env!("ANDEN_COMMIT").filter(|commit| !commit.is_empty());
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    format!("{}{commit}", env!("CARGO_PKG_VERSION"))
});

/// A graph engine for one machine: load, analyse and ask.
#[derive(Debug, Parser)]
#[command(name = "anden", version = VERSION.as_str(), after_help = TOP_EXAMPLES, max_term_width = 110)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

/// Options of every verb.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// Print one JSON object to standard output and nothing else. Infinite and undefined numbers are the strings "inf",
    /// "-inf" and "nan". Not for completions and man, nor if the result itself goes to standard output
    #[arg(long, global = true, help_heading = "Options of every verb")]
    pub json: bool,
    /// Worker threads [default: one for each core]
    #[arg(long, global = true, value_name = "N", value_parser = parse::threads, help_heading = "Options of every verb", allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Limit the memory, for example 512M or 4G [default: most of the free memory]. Applies to load, append, apply,
    /// checkpoint, merge, run, prepare, query, export, diff and generate, and to the commits that restore and repair
    /// replay. Includes file pages that a command needs at one time
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse::bytes, help_heading = "Options of every verb", allow_hyphen_values = true)]
    pub memory: Option<u64>,
    /// Show no progress bars, and no report if the result is a file
    #[arg(long, global = true, help_heading = "Options of every verb")]
    pub quiet: bool,
    /// Show what the database does on standard error, in place of progress bars: recovery, checkpoints, merges, slow
    /// commits and errors in the background. `-vv` shows details, `-vvv` everything
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Options of every verb")]
    pub verbose: u8,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    // The help lists the verbs in this order.
    Load(LoadArgs),
    Append(AppendArgs),
    Info(InfoArgs),
    Stats(StatsArgs),
    Tail(TailArgs),
    Run(RunArgs),
    Prepare(PrepareArgs),
    Query(QueryArgs),
    Index(IndexArgs),
    /// Verify every checksum of a database and check all structures against each other
    ///
    /// If anything is damaged, prints the place of the first fault and exits with status 1. `anden repair` then saves what
    /// is left.
    #[command(after_help = "Examples:\n  anden verify social.anden")]
    Verify(DatabaseArgs),
    Export(ExportArgs),
    Generate(GenerateArgs),
    /// List the snapshots of a database
    #[command(after_help = "Examples:\n  anden snapshots social.anden\n  anden snapshots social.anden --json")]
    Snapshots(DatabaseArgs),
    Merge(MergeArgs),
    Drop(DropArgs),
    Rename(RenameArgs),
    Diff(DiffArgs),
    Retain(RetainArgs),
    Backup(BackupArgs),
    Restore(RestoreArgs),
    Repair(RepairArgs),
    /// Print shell completions
    #[command(after_help = "Examples:\n  anden completions bash > ~/.local/share/bash-completion/completions/anden")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages to a directory, or print the main one
    #[command(after_help = "Examples:\n  anden man | man -l -\n  anden man ~/.local/share/man/man1")]
    Man {
        /// The directory for `anden.1`, `anden-load.1` and so on [default: print `anden.1`]
        directory: Option<PathBuf>,
    },
    Apply(ApplyArgs),
    Checkpoint(CheckpointArgs),
}

/// Arguments of a verb that takes only a database.
#[derive(Args, Debug)]
pub struct DatabaseArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_visible_verb_has_examples() {
        for verb in Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("anden "), "{} has no example", verb.get_name());
        }
    }
}
