//! The processes that hold locks, as far as the system tells.

use std::fmt::{Display, Formatter};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::FileIdentity;

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

    /// The process with this number, which wrote it to the file `locked`. A number from another container may belong to
    /// another process here, so its program is named only if it has the file open, or if that is hidden.
    pub(super) fn of_number(number: u32, locked: FileIdentity) -> Self {
        let is_wrong = open_files(number).is_some_and(|files| !files.iter().any(|file| is_of(file, locked)));
        let program = fs::read_to_string(format!("/proc/{number}/comm")).ok().filter(|_| !is_wrong);
        Self { process: Some(number), program: program.map(|name| name.trim_end().to_owned()) }
    }
}

/// The open files of a process, as names below `/proc`; `None` if they are hidden from this process.
fn open_files(number: u32) -> Option<Vec<PathBuf>> {
    let files = fs::read_dir(format!("/proc/{number}/fd")).ok()?;
    Some(files.filter_map(|file| Some(file.ok()?.path())).collect())
}

/// Whether a name below `/proc` leads to this open file.
fn is_of(file: &Path, identity: FileIdentity) -> bool {
    fs::metadata(file).is_ok_and(|found| FileIdentity::new(found.dev(), found.ino()) == identity)
}
