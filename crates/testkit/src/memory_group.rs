//! A group of processes that may have only so much memory.
//!
//! Pages of files count for the group that reads them first, so files are evicted before a process of the group begins.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where groups are.
const GROUPS: &str = "/sys/fs/cgroup";
/// The processes of a group.
const MEMBERS: &str = "cgroup.procs";
/// What groups below a group of version 2 may limit.
const CHILDREN: &str = "cgroup.subtree_control";
/// Where this process goes when the group that it is in is to have others below it.
const ASIDE: &str = "anden-aside";

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
    /// Makes a group for at most `num_bytes`: below the group around all, or, where that is somebody else's, below the
    /// one that this process is in.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn new(num_bytes: u64) -> Result<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::below(Path::new(GROUPS), &own, num_bytes)
    }

    fn below(groups: &Path, own: &str, num_bytes: u64) -> Result<Self> {
        let (root, names) = root(groups)?;
        Self::within(&root, names, num_bytes).or_else(|refusal| {
            let parent = own_group(&root, names, own).ok_or(refusal)?;
            if names == VERSION_2 {
                step_aside(&parent)?;
            }
            Self::within(&parent, names, num_bytes)
        })
    }

    fn within(parent: &Path, names: Names, num_bytes: u64) -> Result<Self> {
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
        self.path.join(MEMBERS)
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

/// The group around all, which in version 2 must be allowed to limit memory.
fn root(groups: &Path) -> Result<(PathBuf, Names)> {
    let first = groups.join("memory");
    if first.join(VERSION_1.limit).is_file() {
        return Ok((first, VERSION_1));
    }
    for root in [groups.join("unified"), groups.to_owned()] {
        let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        if controllers.split_whitespace().any(|name| name == "memory") {
            // Fails where it is set already, or is somebody else's to set.
            let _ = std::fs::write(root.join(CHILDREN), "+memory");
            return Ok((root, VERSION_2));
        }
    }
    bail!("{}: no groups with a limit of memory", groups.display())
}

/// The group that this process is in, by its lines `NUMBER:CONTROLLERS:PATH`, of which version 2 has one without
/// controllers; the one around it where the process has stepped aside.
fn own_group(root: &Path, names: Names, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_wanted = match names {
            VERSION_1 => controllers.split(',').any(|name| name == "memory"),
            _ => controllers.is_empty(),
        };
        is_wanted.then_some(path)
    })?;
    let path = path.strip_suffix(ASIDE).unwrap_or(path);
    Some(root.join(path.trim_matches('/')))
}

/// Moves this process to a group of its own below `parent`: in version 2, a group that limits others has no processes.
fn step_aside(parent: &Path) -> Result<()> {
    let aside = parent.join(ASIDE);
    if !aside.is_dir() {
        std::fs::create_dir(&aside).with_context(|| format!("{}: cannot make a group", aside.display()))?;
    }
    join(&aside.join(MEMBERS))?;
    let path = parent.join(CHILDREN);
    std::fs::write(&path, "+memory").with_context(|| format!("{}: cannot limit memory", path.display()))
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
        let top = tempfile::tempdir().unwrap();
        let error = MemoryGroup::below(top.path(), "", 5).unwrap_err().to_string();
        assert!(error.contains("no groups with a limit"), "{error}");
        let second = top.path().join("unified");
        std::fs::create_dir(&second).unwrap();
        std::fs::write(second.join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert_eq!(root(top.path()).unwrap(), (second, VERSION_2));
        let first = top.path().join("memory");
        std::fs::create_dir(&first).unwrap();
        std::fs::write(first.join(VERSION_1.limit), "9\n").unwrap();
        assert_eq!(root(top.path()).unwrap(), (first.clone(), VERSION_1));
        let group = MemoryGroup::below(top.path(), "", 5).unwrap();
        let limit = group.members().with_file_name(VERSION_1.limit);
        assert_eq!(std::fs::read_to_string(limit).unwrap(), "5");
        assert_eq!(group.peak(), 0);
    }

    #[test]
    fn a_process_has_one_group_of_each_version() {
        let own = "4:cpu,memory:/first\n1:cpu:/other\n0::/user/scope/anden-aside\n";
        assert_eq!(own_group(Path::new("/r"), VERSION_1, own).unwrap(), Path::new("/r/first"));
        assert_eq!(own_group(Path::new("/r"), VERSION_2, own).unwrap(), Path::new("/r/user/scope"));
        assert_eq!(own_group(Path::new("/r"), VERSION_2, "1:memory:/a"), None);
    }

    /// What `systemd-run --user --scope -p Delegate=yes` gives: a group whose processes may be moved, below one that
    /// takes no others.
    #[test]
    fn who_was_given_a_group_makes_others_in_it() {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join("cgroup.controllers"), "memory\n").unwrap();
        // In the way of a group there.
        std::fs::write(top.path().join(format!("anden-{}", std::process::id())), "").unwrap();
        let refused = MemoryGroup::below(top.path(), "", 5).unwrap_err().to_string();
        assert!(refused.contains("cannot make a group"), "{refused}");
        let scope = top.path().join("user/scope");
        std::fs::create_dir_all(&scope).unwrap();
        let group = MemoryGroup::below(top.path(), "0::/user/scope\n", 5).unwrap();
        assert!(group.members().starts_with(&scope));
        let written = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        assert_eq!(written(scope.join(ASIDE).join(MEMBERS)), std::process::id().to_string());
        assert_eq!(written(scope.join(CHILDREN)), "+memory");
        assert_eq!(written(group.members().with_file_name(VERSION_2.limit)), "5");
    }
}
