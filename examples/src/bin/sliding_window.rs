//! `sliding_window FILE BATCH WINDOW`: prints the vertices with the highest rank in the last WINDOW batches of BATCH
//! lines, after each batch. Nothing is stored.

#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use anden::{Database, Error, KeyScheme, Options, Result};
use anden_examples::sliding_window::trends;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, batch, window] = &arguments[..] else {
        eprintln!("usage: sliding_window FILE BATCH WINDOW   (FILE: `source target` lines; - is standard input)");
        return ExitCode::from(2);
    };
    match run(file, batch, window) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sliding_window: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &str, batch: &str, window: &str) -> Result<()> {
    let number =
        |text: &str| text.parse().map_err(|_| Error::InvalidInput(format!("{text}: a number expected").into()));
    let (batch, window): (u32, u32) = (number(batch)?, number(window)?);
    let input: Box<dyn BufRead> = match file {
        "-" => Box::new(BufReader::new(std::io::stdin())),
        _ => Box::new(BufReader::new(
            std::fs::File::open(file).map_err(|error| Error::Io(format!("{file}: {error}").into()))?,
        )),
    };
    let db = Database::in_memory(Options { keys: KeyScheme::String, ..Options::default() })?;
    let mut failed = None;
    let lines = input.lines().map_while(|line| line.map_err(|error| failed = Some(error)).ok());
    trends(&db, lines, batch as usize, window, |view, top| {
        let shown: Vec<String> = top.iter().take(3).map(|(key, rank)| format!("{key} {rank:.4}")).collect();
        println!("{}: {} edges; {}", view.name(), view.num_edges(), shown.join(", "));
        Ok(())
    })?;
    failed.map_or(Ok(()), |error| Err(Error::Io(format!("{file}: {error}").into())))
}
