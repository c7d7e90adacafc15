//! Checks on the source tree that no compiler makes: `cargo xtask floors` and `cargo xtask tidy`.
//!
//! Both print one fault a line as `path:line: message` and end with status 1 if there is one, so that an editor or a
//! person can jump to it. Neither asks what is committed: they look at the files as they are.
#![forbid(unsafe_code)]

mod circles;
mod defences;
mod floors;
mod rules;
mod source;
mod tidy;

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask floors | tidy

  floors  no crate depends on one of its own floor or a higher one; no circles among the modules of
          the crates that the root manifest lists
  tidy    the countable rules of style: lengths, names, safety comments, module docs, leftovers; that
          what the table of defences names exists";

/// One breach of a rule: where it is and what it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, relative to the root of the workspace.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub message: String,
}

impl Fault {
    /// A fault in `path` at `line` (counted from 1).
    pub fn new(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_path_buf(), line, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let root = root();
    let checked = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["floors"] => floors::check_workspace(&root),
        ["tidy"] => tidy::check_tree(&root),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match checked {
        Ok((mut faults, summary)) => {
            faults.sort();
            for fault in &faults {
                println!("{fault}");
            }
            println!("{}: {summary}, {} faults", arguments[0], faults.len());
            if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace: the folder above this package, as cargo says when it runs us, or as it was at build time.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
