//! The error of this crate.

use std::path::PathBuf;

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of reading or writing a file of a graph.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A disk operation failed, a file is damaged, or the work was cancelled.
    #[error(transparent)]
    Base(#[from] anden_base::Error),
    /// Property values or the arrays of a graph break a rule.
    #[error(transparent)]
    Graph(anden_graph::Error),
    /// A line or record of an input violates its format.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The input; `-` is standard input.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The expected and the found text.
        what: String,
    },
    /// An input as a whole violates its format.
    #[error("{}: {what}", path.display())]
    Input {
        /// The input; `-` is standard input.
        path: PathBuf,
        /// The expected and the found content.
        what: String,
    },
    /// The format of an input cannot be read.
    #[error("cannot read {}: {found}, which is not read; {hint}", path.display())]
    Foreign {
        /// The input; `-` is standard input.
        path: PathBuf,
        /// A description of the content, such as "this is a GEXF file".
        found: String,
        /// The remedy.
        hint: String,
    },
    /// The ending of an output's name asks for a format that cannot hold this content.
    #[error("cannot write {content}: '.{ending}' is the ending of {format}, which is not written ({}); use {written}", path.display())]
    Ending {
        /// The intended content of the file.
        content: &'static str,
        /// The output.
        path: PathBuf,
        /// The ending, in lower case.
        ending: String,
        /// The format that the ending names, with its article.
        format: &'static str,
        /// The endings of the formats that can hold this content.
        written: String,
    },
    /// A parameter is outside its allowed range.
    #[error("{0}")]
    Parameter(String),
}

impl From<anden_graph::Error> for Error {
    fn from(error: anden_graph::Error) -> Self {
        match error {
            // Callers tell a failed disk from bad input by this variant.
            anden_graph::Error::Base(error) => Self::Base(error),
            other => Self::Graph(other),
        }
    }
}
