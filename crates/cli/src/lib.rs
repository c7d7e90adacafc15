//! The command line `anden`: parses arguments, calls the library, prints.
//!
//! The program `anden` and the command of the Python package both call [`main_with`].

#![forbid(unsafe_code)]

mod args;
mod console;
mod events;
mod failure;
mod text;
mod verbs;
mod watch;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use args::Cli;
use failure::{CommandFailure, complain};

/// The exit status of a command that did its work.
const SUCCESS: u8 = 0;

/// Printed by the signal handler if a mapped file became shorter or the disk failed.
const LOST: &str = "anden: a file of the database, or of the input, became shorter while it was read, or the disk failed; \
                    look with `anden verify`, and restore the database from a copy if it is damaged\n";

/// Runs the command with these arguments, the name of the program first. Returns the exit status.
///
/// Prints to standard output and standard error. Changes the reaction of the process to signals and panics, so call it
/// once, in a process that then ends. A second signal ends the process without a return.
///
/// ```no_run
/// let status = anden_cli::main_with(std::env::args_os());
/// std::process::exit(status.into());
/// ```
pub fn main_with(args: impl IntoIterator<Item = OsString>) -> u8 {
    anden_base::memory::save_addresses();
    // A read of a lost page raises SIGBUS, which would end the process without a message.
    anden_base::mapped::say_where_pages_are_lost(LOST, 1);
    // A write beyond RLIMIT_FSIZE becomes an error that is reported and cleaned up, in place of SIGXFSZ.
    anden_base::mapped::fail_beyond_file_limits();
    // Messages of the program are one line, so the text of a panic is joined to one.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        complain(&format!("a fault of this program, please report it: {text}"));
    }));
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    // Before any work, so that events of the opening are shown.
    events::show(cli.global.verbose);
    // A panic unwinds, so destructors remove unfinished files.
    match std::panic::catch_unwind(|| verbs::execute(cli)).unwrap_or_else(|_| Err(CommandFailure::Fault)) {
        Ok(()) => SUCCESS,
        Err(failure) => {
            if let Some(line) = failure.line() {
                complain(&line);
            }
            failure.status()
        }
    }
}

/// Prints help or the version, or the parse error.
fn refuse(error: &clap::Error) -> u8 {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Help may go to a pipe that its reader closes, which is no fault.
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            let failure = printed.err().map(CommandFailure::stdout);
            failure.iter().filter_map(CommandFailure::line).for_each(|line| complain(&line));
            failure.map_or(SUCCESS, |failure| failure.status())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            CommandFailure::Usage(String::new()).status()
        }
        _ => {
            let text = error.render().to_string();
            complain(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
            CommandFailure::Usage(String::new()).status()
        }
    }
}
