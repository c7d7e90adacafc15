//! `friends DB THREADS REQUESTS`: concurrent requests make friendships and remove people; then the rules are checked.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use anden::{Database, Error, KeyScheme, Options, Result};
use anden_examples::friends::{befriend, check, leave};

const NUM_PEOPLE: u64 = 200;
const MOST_FRIENDS: i64 = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, threads, requests] = &arguments[..] else {
        eprintln!("usage: friends DB THREADS REQUESTS   (DB is made where it is not there)");
        return ExitCode::from(2);
    };
    match run(Path::new(path), threads, requests) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("friends: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &Path, threads: &str, requests: &str) -> Result<()> {
    let number =
        |text: &str| text.parse().map_err(|_| Error::InvalidInput(format!("{text}: a number expected").into()));
    let (threads, requests): (u64, u64) = (number(threads)?, number(requests)?);
    let options = Options { keys: KeyScheme::String, ..Options::default() };
    let db = if path.exists() { Database::open(path)? } else { Database::create(path, options)? };
    std::thread::scope(|scope| {
        let db = &db;
        let asking: Vec<_> = (0..threads).map(|thread| scope.spawn(move || ask(db, thread, requests))).collect();
        let panicked = |_| Error::Io("a thread panicked".into());
        asking.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)
    })?;
    println!("{} people, whose friendships are as they should be", check(&db, MOST_FRIENDS)?);
    let stats = db.metrics().commits;
    println!("{} commits in {} groups, {} tried again", stats.commits, stats.groups, stats.retries);
    db.close()
}

/// Requests friendships between pseudo-random people, and sometimes removes a person.
fn ask(db: &Database, thread: u64, requests: u64) -> Result<()> {
    let mut state = (thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut person = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("person {}", state % NUM_PEOPLE)
    };
    for request in 0..requests {
        match request % 20 {
            0 => leave(db, &person())?,
            _ => drop(befriend(db, &person(), &person(), MOST_FRIENDS)?),
        }
    }
    Ok(())
}
