//! Failures of a command, and their exit statuses.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use anden_base::size::size_at_least;

/// The reason why a command ends early.
#[derive(Debug)]
pub enum CommandFailure {
    /// The command line is invalid: status 2.
    Usage(String),
    /// The command failed: status 1.
    Failed(anyhow::Error),
    /// The program panicked, and the panic hook printed the message: status 1.
    Fault,
    /// Ctrl-C: status 130.
    Cancelled,
    /// Ctrl-C ended a command that runs until then, which is no failure to report: status 130.
    Ended,
    /// The reader of standard output closed the pipe, which is not an error: status 0.
    ClosedPipe,
}

/// Damage in a database, with advice.
#[derive(Debug)]
struct Damage(String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; restore the database from a copy, or load it again from its source", self.0)
    }
}

impl std::error::Error for Damage {}

/// The result of a verb.
pub type Result<T = ()> = std::result::Result<T, CommandFailure>;

impl CommandFailure {
    /// A failure with this message.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(anyhow::Error::msg(message.into()))
    }

    /// Converts an error of standard output.
    pub fn stdout(error: io::Error) -> Self {
        match error.kind() {
            // The reader, such as `head`, has all lines that it wants.
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::failed(format!("standard output: cannot write: {error}")),
        }
    }

    /// Names the command that saves what is left of a damaged database.
    #[must_use]
    pub fn with_repair(self, database: &Path) -> Self {
        // Without the manifest, nothing can be saved.
        let is_of_manifest = self.is_damage_in(&database.join("MANIFEST"));
        match self {
            Self::Failed(error) if error.is::<Damage>() && !is_of_manifest => {
                Self::failed(format!("{error}; `anden repair {} --to NEW` saves what is left", database.display()))
            }
            other => other,
        }
    }

    /// Gives the advice for a damaged backup in place of that for a damaged database.
    #[must_use]
    pub fn in_backup(self) -> Self {
        match self {
            Self::Failed(error) => match error.downcast() {
                Ok(Damage(text)) => {
                    Self::failed(format!("{text}; take another copy of that backup, or an earlier chain of backups"))
                }
                Err(error) => Self::Failed(error),
            },
            other => other,
        }
    }

    /// Whether the failure is damage in this file, or in this directory.
    pub fn is_damage_in(&self, path: &Path) -> bool {
        let Self::Failed(error) = self else { return false };
        error.downcast_ref().is_some_and(|Damage(text)| text.starts_with(&*path.to_string_lossy()))
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Failed(_) | Self::Fault => 1,
            Self::Usage(_) => 2,
            // 128 plus the number of SIGINT, as shells report it.
            Self::Cancelled | Self::Ended => 130,
        }
    }

    /// The line for standard error; `None`: print nothing.
    pub fn line(&self) -> Option<String> {
        let text = match self {
            // The panic hook has printed the fault already.
            Self::ClosedPipe | Self::Ended | Self::Fault => return None,
            Self::Usage(message) => message.clone(),
            // `{:#}` joins the causes of an error with colons.
            Self::Failed(error) => format!("{error:#}"),
            Self::Cancelled => "interrupted: the database is as it was at its last commit".into(),
        };
        // A failure is one line, also if the text of an error has several.
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl From<anden::Error> for CommandFailure {
    fn from(error: anden::Error) -> Self {
        match error {
            anden::Error::Cancelled => Self::Cancelled,
            anden::Error::ClosedPipe => Self::ClosedPipe,
            error @ anden::Error::Corrupt(_) => Self::Failed(Damage(error.to_string()).into()),
            error => match advice(&error) {
                Some(advice) => Self::failed(format!("{error}; {advice}")),
                None => Self::failed(error.to_string()),
            },
        }
    }
}

impl From<anden_formats::Error> for CommandFailure {
    fn from(error: anden_formats::Error) -> Self {
        anden::Error::from(error).into()
    }
}

impl From<anden_graph::Error> for CommandFailure {
    fn from(error: anden_graph::Error) -> Self {
        anden::Error::from(error).into()
    }
}

/// Prints a line to standard error, after the name of the program.
pub fn complain(text: &str) {
    // If standard error is closed, the exit status has to suffice.
    let _ = writeln!(io::stderr(), "anden: {text}");
}

/// A hint for an error that has none.
fn advice(error: &anden::Error) -> Option<String> {
    match error {
        // One word, so that a shell takes the size as one argument.
        anden::Error::Memory { needed, .. } => {
            let needed = size_at_least(*needed).replace(' ', "");
            Some(format!("give it --memory {needed}, or free memory"))
        }
        anden::Error::Locked(_) => Some("wait until the other process has closed it".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses() {
        assert_eq!(CommandFailure::from(anden::Error::Cancelled).status(), 130);
        assert_eq!(CommandFailure::from(anden::Error::InvalidInput("x".into())).status(), 1);
        assert_eq!(CommandFailure::stdout(io::ErrorKind::BrokenPipe.into()).status(), 0);
        assert_eq!(CommandFailure::stdout(io::ErrorKind::StorageFull.into()).status(), 1);
    }

    #[test]
    fn a_failure_is_one_line() {
        let failure = CommandFailure::failed("first\nsecond");
        assert_eq!(failure.line().as_deref(), Some("first second"));
    }
}
