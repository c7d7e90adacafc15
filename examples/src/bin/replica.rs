//! `replica PRIMARY REPLICA`: follows PRIMARY, which another process writes, until that process ends. REPLICA then has
//! everything and can be written. The primary must keep some of its WAL: `anden retain PRIMARY --keep-wal 1G`.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use anden::{Database, Result};
use anden_examples::replica::{begin, follow_to_the_end};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [primary, replica] = &arguments[..] else {
        eprintln!("usage: replica PRIMARY REPLICA   (REPLICA is made where it is not there)");
        return ExitCode::from(2);
    };
    match run(Path::new(primary), Path::new(replica)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replica: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(primary: &Path, path: &Path) -> Result<()> {
    let primary = Database::open_read_only(primary)?;
    let replica = match path.exists() {
        true => Database::open(path)?,
        false => begin(&primary, &path.with_extension("backup"), path)?,
    };
    println!("follows from epoch {} on", replica.epoch());
    follow_to_the_end(&primary, &replica, |num_applied| {
        if num_applied > 0 {
            println!("applied {num_applied} change sets, now at epoch {}", replica.epoch());
        }
    })?;
    println!("the primary has ended at epoch {}: {} takes over", replica.epoch(), path.display());
    replica.close()
}
