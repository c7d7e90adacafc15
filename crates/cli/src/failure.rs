//! Why a command ends early, and with which exit status.

use std::io::{self, Write};

use anden::size_at_least;

/// Why a command ends early.
#[derive(Debug)]
pub enum Failure {
    /// The command line does not fit: status 2.
    Usage(String),
    /// It failed: status 1.
    Failed(anyhow::Error),
    /// A fault of the program, which has been told already: status 1.
    Fault,
    /// Ctrl-C: status 130.
    Cancelled,
    /// Nobody reads standard output any more, which is no error: status 0.
    ClosedPipe,
}

/// A result of a verb.
pub type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure that is told by `message` alone.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(anyhow::Error::msg(message.into()))
    }

    /// What happened to standard output.
    pub fn stdout(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::failed(format!("standard output: cannot write: {error}")),
        }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Failed(_) | Self::Fault => 1,
            Self::Usage(_) => 2,
            // 128 and the number of SIGINT.
            Self::Cancelled => 130,
        }
    }

    /// The line for standard error: what, where, what to do.
    pub fn line(&self) -> Option<String> {
        let text = match self {
            Self::ClosedPipe | Self::Fault => return None,
            Self::Usage(message) => message.clone(),
            Self::Failed(error) => format!("{error:#}"),
            Self::Cancelled => "interrupted: the database is as it was at its last commit".into(),
        };
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl From<anden::Error> for Failure {
    fn from(error: anden::Error) -> Self {
        match error {
            anden::Error::Cancelled => Self::Cancelled,
            anden::Error::ClosedPipe => Self::ClosedPipe,
            error => match advice(&error) {
                Some(advice) => Self::failed(format!("{error}; {advice}")),
                None => Self::failed(error.to_string()),
            },
        }
    }
}

/// Writes to standard error, under the name of the program.
pub fn complain(text: &str) {
    // Where standard error is closed, the exit status has to do.
    let _ = writeln!(io::stderr(), "anden: {text}");
}

/// What to do about an error that does not say so itself.
fn advice(error: &anden::Error) -> Option<String> {
    match error {
        anden::Error::Corrupt(_) => Some("restore the database from a copy, or load it again from its source".into()),
        // One word, so that a shell takes it as it is.
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
        assert_eq!(Failure::from(anden::Error::Cancelled).status(), 130);
        assert_eq!(Failure::from(anden::Error::NotFound("x".into())).status(), 1);
        assert_eq!(Failure::stdout(io::ErrorKind::BrokenPipe.into()).status(), 0);
        assert_eq!(Failure::stdout(io::ErrorKind::StorageFull.into()).status(), 1);
    }

    #[test]
    fn a_failure_is_one_line() {
        let failure = Failure::failed("first\nsecond");
        assert_eq!(failure.line().as_deref(), Some("first second"));
    }
}
