//! The error of this crate.

use std::path::PathBuf;

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can be wrong with a graph on its way in or out.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed, a file is damaged, or the work was cancelled.
    #[error(transparent)]
    Base(#[from] base::Error),
    /// A line or record of an input is not what its format says.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The input; `-` is standard input.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What was expected and what was found.
        what: String,
    },
    /// An input as a whole is not what it claims to be.
    #[error("{}: {what}", path.display())]
    Input {
        /// The input; `-` is standard input.
        path: PathBuf,
        /// What was expected and what was found.
        what: String,
    },
    /// An input is of a format that is not read.
    #[error("cannot read {}: {found}, which is not read; {hint}", path.display())]
    Foreign {
        /// The input; `-` is standard input.
        path: PathBuf,
        /// What it is, as in "this is a GEXF file".
        found: String,
        /// What to do about it.
        hint: String,
    },
    /// The ending of an output's name asks for a format that is not written there.
    #[error("cannot write {content}: '.{ending}' is the ending of {format}, which is not written ({}); use {written}", path.display())]
    Ending {
        /// What the file was to hold.
        content: &'static str,
        /// The output.
        path: PathBuf,
        /// Its ending, lower case.
        ending: String,
        /// The format that the ending names, with its article.
        format: &'static str,
        /// The endings of the formats that are written.
        written: String,
    },
    /// A parameter is outside what is allowed.
    #[error("{0}")]
    Parameter(String),
}
