//! `graphalytics NAME.properties [OUTPUTS]`: runs an LDBC Graphalytics data set and validates the outputs.
//!
//! OUTPUTS is the folder with the expected outputs `NAME-BFS` and so on, by default that of the properties. The status
//! is 1 if an output differs.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anden::{Result, Session};
use anden_examples::graphalytics;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (properties, expected) = match &arguments[..] {
        [properties] => (properties, properties.parent().unwrap_or(Path::new("."))),
        [properties, expected] => (properties, expected.as_path()),
        _ => {
            eprintln!("usage: graphalytics NAME.properties [OUTPUTS]");
            return ExitCode::from(2);
        }
    };
    match run(properties, expected) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("graphalytics: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every output is as expected.
fn run(properties: &Path, expected: &Path) -> Result<bool> {
    let database = std::env::temp_dir().join(format!("graphalytics-{}.anden", std::process::id()));
    let outcomes = graphalytics::run(properties, expected, &database, &Session::new(0)?);
    // The database is temporary, so a failure to remove it is harmless.
    let _ = std::fs::remove_dir_all(&database);
    let mut is_right = true;
    for outcome in outcomes? {
        let verdict = match outcome.verdict {
            Some(Ok(())) => "as expected".to_owned(),
            Some(Err(what)) => {
                is_right = false;
                format!("WRONG: {what}")
            }
            None => "nothing to compare with".to_owned(),
        };
        println!("{:5} {:10.6} s  {verdict}", outcome.algorithm, outcome.seconds);
    }
    Ok(is_right)
}
