//! `anden completions` and `anden man`: made from the definitions of the command line.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::console::Console;
use crate::failure::{Failure, Result};

/// Prints the completions of `shell`.
pub fn completions(shell: clap_complete::Shell) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "anden", &mut script);
    let mut console = Console::new();
    console.bytes(&script)?;
    console.finish()
}

/// Writes one page a verb into `directory`, or prints the main page.
pub fn pages(directory: Option<&Path>) -> Result {
    let mut command = Cli::command();
    command.build();
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(|error| Failure::failed(error.to_string()))?;
        let mut console = Console::new();
        console.bytes(&page)?;
        return console.finish();
    };
    let failed = |error: std::io::Error| Failure::failed(format!("{}: cannot write: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(command, directory).map_err(failed)
}
