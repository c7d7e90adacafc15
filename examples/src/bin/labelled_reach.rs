//! `labelled_reach DB SOURCE LABELS`: counts the vertices that are reachable by edges with one of the labels.
//!
//! It counts in every snapshot, and in the window of all changes since the first.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anden::{Database, Error, Result, View};
use anden_examples::labelled_reach::labelled_reach;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, source, labels] = &arguments[..] else {
        eprintln!("usage: labelled_reach DB SOURCE LABELS   (LABELS: the bits that count, as a number)");
        return ExitCode::from(2);
    };
    match run(database, source, labels) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("labelled_reach: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(database: &str, source: &str, labels: &str) -> Result<()> {
    let labels = labels.parse().map_err(|_| Error::InvalidInput(format!("{labels}: a number expected").into()))?;
    let database = Database::open_read_only(database)?;
    let show = |view: &View| -> Result<()> {
        let reached = labelled_reach(view, source, labels)?;
        println!("{}: {} vertices", view.name(), reached.into_iter().filter(|&is_reached| is_reached).count());
        Ok(())
    };
    let numbers: Vec<u32> = database.snapshots().iter().map(|snapshot| snapshot.number).collect();
    for &number in &numbers {
        match database.snapshot(number).and_then(|view| show(&view)) {
            Err(error @ Error::NotFound { .. }) => println!("snapshot {number}: {error}"),
            other => other?,
        }
    }
    match (numbers.get(1), numbers.last()) {
        (Some(&first), Some(&last)) => show(&database.window(first..=last)?),
        _ => Ok(()),
    }
}
