//! Processes that hold locks.

use std::fmt::{Display, Formatter};

/// A process that holds a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockHolder {
    /// Its number; `None` if the system does not tell it.
    pub process: Option<u32>,
    /// The name of its program; `None` if the system does not tell it.
    pub program: Option<String>,
}

impl Display for LockHolder {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match (self.process, &self.program) {
            (Some(number), Some(program)) => write!(f, "process {number} ({program})"),
            (Some(number), None) => write!(f, "process {number}"),
            (None, _) => write!(f, "an unknown process"),
        }
    }
}

impl LockHolder {
    /// This process.
    pub fn this() -> Self {
        Self { process: Some(std::process::id()), program: None }
    }
}
