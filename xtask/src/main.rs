//! Checks on the source tree that no compiler makes: `cargo xtask floors` and `cargo xtask tidy`.
//!
//! Both print one fault a line as `path:line: message`, the form that editors follow, and end with status 1 if there is
//! one. Both check the files as they are, committed or not.
#![forbid(unsafe_code)]

mod circles;
mod declarations;
mod defences;
mod documents;
mod floors;
mod idioms;
mod markdown;
mod measures;
mod prose;
mod ratchet;
mod report;
mod rules;
mod source;
mod tidy;
mod tree;

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Error, Result};

const USAGE: &str = "usage: cargo xtask floors | tidy [--counts [PATH] | --lower]

  floors  no crate depends on one of its own floor or a higher one; no circles among the modules of
          the crates that the root manifest lists
  tidy    the countable rules of style: lengths, names, safety comments, module docs, leftovers;
          links and named code of documents; the table of defences; the counts of xtask/limits.toml

  tidy --counts         counts of idioms and names by crate, and the files with the most
  tidy --counts PATH    each place that counts, at or below PATH (relative to the root)
  tidy --lower          lowers the limits of xtask/limits.toml to today's counts, never raises them";

/// A breach of a rule, with its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, relative to the root of the workspace.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The fault, and the expectation if it is not obvious.
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
    let printed = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["floors"] => return report_faults("floors", floors::check_workspace(&root)),
        ["tidy"] => return report_faults("tidy", tidy::check_tree(&root)),
        ["tidy", "--counts"] => tidy::counts(&root, None),
        ["tidy", "--counts", under] => tidy::counts(&root, Some(under)),
        ["tidy", "--lower"] => tidy::lower(&root),
        ["help" | "--help" | "-h"] => Ok(format!("{USAGE}\n")),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match printed {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

fn report_faults(command: &str, checked: Result<(Vec<Fault>, String)>) -> ExitCode {
    let (mut faults, summary) = match checked {
        Ok(checked) => checked,
        Err(error) => return fail(&error),
    };
    faults.sort();
    for fault in &faults {
        println!("{fault}");
    }
    println!("{command}: {summary}, {} faults", faults.len());
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn fail(error: &Error) -> ExitCode {
    eprintln!("xtask: {error:#}");
    ExitCode::FAILURE
}

/// The root of the workspace: the parent of this package's folder, which cargo gives at run time or gave at build time.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
