//! `anden`, the command line: it parses, calls the library and prints.

#![forbid(unsafe_code)]

mod args;
mod console;
mod failure;
mod text;
mod verbs;
mod watch;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use failure::{Failure, complain};

/// Counts what is allocated, so that `run` can say what a kernel needs at its peak.
#[global_allocator]
static ALLOCATOR: anden::CountingAllocator = anden::CountingAllocator;

/// Said where a part of a file of the database is gone while it is read.
const LOST: &str = "anden: a file of the database, or of the input, became shorter while it was read, or the disk failed; \
                    look with `anden verify`, and restore the database from a copy if it is damaged\n";

fn main() -> ExitCode {
    anden::say_where_pages_are_lost(LOST, 1);
    anden::fail_beyond_file_limits();
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        complain(&format!("a fault of this program, please report it: {text}"));
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    // A panic unwinds, so whatever was begun is removed; then it is a failure like any other.
    match std::panic::catch_unwind(|| verbs::execute(cli)).unwrap_or_else(|_| Err(Failure::Fault)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(line) = failure.line() {
                complain(&line);
            }
            ExitCode::from(failure.status())
        }
    }
}

/// Shows help or the version, or says why the command line does not parse.
fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            let failure = printed.err().map(Failure::stdout);
            failure.iter().filter_map(Failure::line).for_each(|line| complain(&line));
            failure.map_or(ExitCode::SUCCESS, |failure| ExitCode::from(failure.status()))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(Failure::Usage(String::new()).status())
        }
        _ => {
            let text = error.render().to_string();
            complain(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
            ExitCode::from(Failure::Usage(String::new()).status())
        }
    }
}
