//! The command line `anden`: parses arguments, calls the library, prints.

#![forbid(unsafe_code)]

mod args;
mod console;
mod events;
mod failure;
mod text;
mod verbs;
mod watch;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use failure::{CommandFailure, complain};

/// Counts allocations, so that `run` can report the peak memory of a kernel.
#[global_allocator]
static ALLOCATOR: anden_base::memory::CountingAllocator = anden_base::memory::CountingAllocator;

/// Printed by the signal handler if a mapped file became shorter or the disk failed.
const LOST: &str = "anden: a file of the database, or of the input, became shorter while it was read, or the disk failed; \
                    look with `anden verify`, and restore the database from a copy if it is damaged\n";

fn main() -> ExitCode {
    // A read of a lost page raises SIGBUS, which would end the process without a message.
    anden_base::mapped::say_where_pages_are_lost(LOST, 1);
    // A write beyond RLIMIT_FSIZE becomes an error that is reported and cleaned up, in place of SIGXFSZ.
    anden_base::mapped::fail_beyond_file_limits();
    // Messages of the program are one line, so the text of a panic is joined to one.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        complain(&format!("a fault of this program, please report it: {text}"));
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    // Before any work, so that events of the opening are shown.
    events::show(cli.global.verbose);
    // A panic unwinds, so destructors remove unfinished files.
    match std::panic::catch_unwind(|| verbs::execute(cli)).unwrap_or_else(|_| Err(CommandFailure::Fault)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(line) = failure.line() {
                complain(&line);
            }
            ExitCode::from(failure.status())
        }
    }
}

/// Prints help or the version, or the parse error.
fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Help may go to a pipe that its reader closes, which is no fault.
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            let failure = printed.err().map(CommandFailure::stdout);
            failure.iter().filter_map(CommandFailure::line).for_each(|line| complain(&line));
            failure.map_or(ExitCode::SUCCESS, |failure| ExitCode::from(failure.status()))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(CommandFailure::Usage(String::new()).status())
        }
        _ => {
            let text = error.render().to_string();
            complain(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
            ExitCode::from(CommandFailure::Usage(String::new()).status())
        }
    }
}
