//! The command line: the one definition of verbs, options and their help.
//!
//! Shell completions and man pages are made from it, so an option is written here and nowhere else.

mod ask;
mod index;
mod live;
mod load;
mod make;
mod parse;
mod run;
mod versions;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use ask::{ExportArgs, ExportFormat, InfoArgs, Listing, Query, QueryArgs, Selection, VertexSide};
pub use index::{IndexAction, IndexArgs};
pub use live::{ApplyArgs, CheckpointArgs};
pub use load::{LoadArgs, LoadDuplicates, LoadFormat, LoadHeader, LoadIds, LoadOnError, LoadWeight, ReadingArgs};
pub use make::{GenerateArgs, GenerateCommon, Shape};
pub use run::RunArgs;
pub use versions::{AppendArgs, DiffArgs, DropArgs, KindArgs, MergeArgs, RetainArgs, retention_text};

const TOP_EXAMPLES: &str = "\
Examples:
  anden load social.anden edges.txt.gz           load a text edge list, one `source target` a line
  anden append social.anden more.txt             a new snapshot with more edges
  anden info social.anden                        what is in it
  anden run social.anden pagerank                the vertices with the highest rank
  anden query social.anden path 12 345           the shortest path between two vertices

Exit status: 0 done, 1 it failed, 2 the command line does not parse, 130 interrupted.
`anden VERB --help` explains a verb and shows examples.";

/// A graph engine for one machine: load, analyse and ask.
#[derive(Debug, Parser)]
#[command(name = "anden", version, after_help = TOP_EXAMPLES, max_term_width = 110)]
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
    /// Print one JSON object on standard output, and nothing else there (but for completions and man; refused where the
    /// result itself goes to standard output); numbers that JSON has not are the strings "inf", "-inf" and "nan"
    #[arg(long, global = true, help_heading = "Options of every verb")]
    pub json: bool,
    /// Worker threads [default: one for each core]
    #[arg(long, global = true, value_name = "N", value_parser = parse::threads, help_heading = "Options of every verb", allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Hard memory budget of load, append, apply, checkpoint, merge, run, query, export, diff and generate: 512M, 4G;
    /// otherwise most of what is free. What a command says it needs includes the pages of files that it needs at a time
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse::bytes, help_heading = "Options of every verb", allow_hyphen_values = true)]
    pub memory: Option<u64>,
    /// No progress bars, and no report where the result is a file
    #[arg(long, global = true, help_heading = "Options of every verb")]
    pub quiet: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Load(LoadArgs),
    Append(AppendArgs),
    Info(InfoArgs),
    Run(RunArgs),
    Query(QueryArgs),
    Index(IndexArgs),
    /// Read every checksum of a database and cross-check every structure
    ///
    /// Exit status 1 and the place of the first fault if anything is damaged.
    #[command(after_help = "Examples:\n  anden verify social.anden")]
    Verify(DatabaseArgs),
    Export(ExportArgs),
    Generate(GenerateArgs),
    /// List the snapshots of a database
    #[command(after_help = "Examples:\n  anden snapshots social.anden\n  anden snapshots social.anden --json")]
    Snapshots(DatabaseArgs),
    Merge(MergeArgs),
    Drop(DropArgs),
    Diff(DiffArgs),
    Retain(RetainArgs),
    /// Print the completions of a shell
    #[command(after_help = "Examples:\n  anden completions bash > ~/.local/share/bash-completion/completions/anden")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages, one a verb, question and kind, or print the main one
    #[command(after_help = "Examples:\n  anden man | man -l -\n  anden man ~/.local/share/man/man1")]
    Man {
        /// Where to write `anden.1`, `anden-load.1` and so on [default: print `anden.1`]
        directory: Option<PathBuf>,
    },
    Apply(ApplyArgs),
    Checkpoint(CheckpointArgs),
}

/// The arguments of a verb that only names a database.
#[derive(Args, Debug)]
pub struct DatabaseArgs {
    /// The database: a directory
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
