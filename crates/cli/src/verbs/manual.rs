//! `anden completions` and `anden man`, generated from the definition of the command line.

use std::path::Path;

use clap::{Command, CommandFactory};

use crate::args::{Cli, Global};
use crate::console::Console;
use crate::failure::{CommandFailure, Result};

/// Prints completions for `shell`.
pub fn completions(global: &Global, shell: clap_complete::Shell) -> Result {
    require_text(global, "completions")?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "anden", &mut script);
    let mut console = Console::new();
    console.bytes(&script)?;
    console.finish()
}

/// Writes one page for each verb, question and kind into `directory`, or prints the main page.
pub fn pages(global: &Global, directory: Option<&Path>) -> Result {
    require_text(global, "man")?;
    let mut command = without_help(Cli::command());
    // Global options reach the subcommands when the command is built.
    command.build();
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(|error| CommandFailure::failed(error.to_string()))?;
        let mut console = Console::new();
        console.bytes(&page)?;
        return console.finish();
    };
    let failed =
        |error: std::io::Error| CommandFailure::failed(format!("{}: cannot write: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(command, directory).map_err(failed)
}

/// The command without the subcommand `help`, which would repeat the pages.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn require_text(global: &Global, verb: &str) -> Result {
    match global.json {
        true => {
            Err(CommandFailure::Usage(format!("{verb} has no --json: what it prints is for other programs as it is")))
        }
        false => Ok(()),
    }
}
