//! A group of processes that may have only so much memory.
//!
//! Pages of files count for the group that reads them first, so files are evicted before a process of the group begins.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where groups are.
const GROUPS: &str = "/sys/fs/cgroup";

/// The files of a group, in one of the two forms that Linux has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Names {
    limit: &'static str,
    peak: &'static str,
}

const VERSION_1: Names = Names { limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes" };
const VERSION_2: Names = Names { limit: "memory.max", peak: "memory.peak" };

/// A group of our own; dropped, it is gone.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
    names: Names,
}

impl MemoryGroup {
    /// Makes a group for at most `num_bytes`.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn new(num_bytes: u64) -> Result<Self> {
        Self::below(Path::new(GROUPS), num_bytes)
    }

    fn below(groups: &Path, num_bytes: u64) -> Result<Self> {
        let (parent, names) = parent(groups)?;
        let path = parent.join(format!("anden-{}", std::process::id()));
        if !path.is_dir() {
            std::fs::create_dir(&path).with_context(|| format!("{}: cannot make a group", path.display()))?;
        }
        let group = Self { path, names };
        group.set(names.limit, &num_bytes.to_string())?;
        Ok(group)
    }

    /// What a child writes its number to.
    pub fn members(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// The most that the group had at once, files included, since [`reset_peak`](Self::reset_peak); 0 if unknown.
    pub fn peak(&self) -> u64 {
        let text = std::fs::read_to_string(self.path.join(self.names.peak)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Starts a new account of the peak, where the system can.
    pub fn reset_peak(&self) {
        let _ = self.set(self.names.peak, "0");
    }

    fn set(&self, name: &str, value: &str) -> Result<()> {
        let path = self.path.join(name);
        std::fs::write(&path, value).with_context(|| format!("{}: cannot write {value}", path.display()))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // What is left of it holds nobody up.
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// The group to make one below: that of this process in version 2, which must be allowed to limit memory; of version 1,
/// the one around all.
fn parent(groups: &Path) -> Result<(PathBuf, Names)> {
    let first = groups.join("memory");
    if first.join(VERSION_1.limit).is_file() {
        return Ok((first, VERSION_1));
    }
    for root in [groups.join("unified"), groups.to_owned()] {
        let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        if controllers.split_whitespace().any(|name| name == "memory") {
            // Fails where it is set already, or is somebody else's to set.
            let _ = std::fs::write(root.join("cgroup.subtree_control"), "+memory");
            return Ok((root, VERSION_2));
        }
    }
    bail!("{}: no groups with a limit of memory", groups.display())
}

/// Moves this process to a group, before it has anything in memory.
pub fn join(members: &Path) -> Result<()> {
    std::fs::write(members, std::process::id().to_string())
        .with_context(|| format!("{}: cannot join the group", members.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_kinds_are_found() {
        let root = tempfile::tempdir().unwrap();
        let error = MemoryGroup::below(root.path(), 5).unwrap_err().to_string();
        assert!(error.contains("no groups with a limit"), "{error}");
        let second = root.path().join("unified");
        std::fs::create_dir(&second).unwrap();
        std::fs::write(second.join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert_eq!(parent(root.path()).unwrap(), (second, VERSION_2));
        let first = root.path().join("memory");
        std::fs::create_dir(&first).unwrap();
        std::fs::write(first.join(VERSION_1.limit), "9\n").unwrap();
        assert_eq!(parent(root.path()).unwrap(), (first.clone(), VERSION_1));
        let group = MemoryGroup::below(root.path(), 5).unwrap();
        let limit = group.members().with_file_name(VERSION_1.limit);
        assert_eq!(std::fs::read_to_string(limit).unwrap(), "5");
        assert_eq!(group.peak(), 0);
    }
}
