//! Control groups that limit the memory of processes.
//!
//! The kernel charges a page of a file to the group that reads it first. Therefore evict files from the page cache
//! before a process of the group starts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The mount point of control groups.
const GROUPS: &str = "/sys/fs/cgroup";
/// The file with the processes of a group.
const MEMBERS: &str = "cgroup.procs";
/// The file with the controllers that a version 2 group enables for its children.
const CHILDREN: &str = "cgroup.subtree_control";
/// The child group that this process moves to before its own group gets other children.
const ASIDE: &str = "anden-aside";

/// The file names of a group in cgroup version 1 or 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Names {
    limit: &'static str,
    peak: &'static str,
}

const VERSION_1: Names = Names { limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes" };
const VERSION_2: Names = Names { limit: "memory.max", peak: "memory.peak" };

/// A control group that is removed on drop.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
    names: Names,
}

impl MemoryGroup {
    /// Makes a group with a limit of `num_bytes`: below the root group, or below the group of this process if the root
    /// is not ours.
    ///
    /// # Errors
    /// The system refuses the group or its limit; or the programs have a sanitizer, which takes memory of its own.
    pub fn new(num_bytes: u64) -> Result<Self> {
        if cfg!(anden_asan) {
            bail!("a sanitizer takes memory of its own");
        }
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::below(Path::new(GROUPS), &own, num_bytes)
    }

    fn below(groups: &Path, own: &str, num_bytes: u64) -> Result<Self> {
        let (root, names) = root(groups)?;
        // The root first: below it, the limits of the own group do not apply as well.
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
        // A group of an earlier run with this process id is used again.
        if !path.is_dir() {
            std::fs::create_dir(&path).with_context(|| format!("{}: cannot make a group", path.display()))?;
        }
        let group = Self { path, names };
        group.set(names.limit, &num_bytes.to_string())?;
        Ok(group)
    }

    /// The file to which a child process writes its process id.
    pub fn members(&self) -> PathBuf {
        self.path.join(MEMBERS)
    }

    /// The peak memory in bytes, page cache included, since [`reset_peak`](Self::reset_peak); 0 if unknown.
    pub fn peak(&self) -> u64 {
        let text = std::fs::read_to_string(self.path.join(self.names.peak)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Resets the peak, if the system supports this.
    pub fn reset_peak(&self) {
        // Older systems cannot reset it, and then the peak is only too high.
        let _ = self.set(self.names.peak, "0");
    }

    fn set(&self, name: &str, value: &str) -> Result<()> {
        let path = self.path.join(name);
        std::fs::write(&path, value).with_context(|| format!("{}: cannot write {value}", path.display()))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A leftover group is harmless, so an error is ignored.
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// The root group. In version 2, its children must be allowed to limit memory.
fn root(groups: &Path) -> Result<(PathBuf, Names)> {
    // Version 1 first: where both are mounted, it holds the memory controller.
    let first = groups.join("memory");
    if first.join(VERSION_1.limit).is_file() {
        return Ok((first, VERSION_1));
    }
    for root in [groups.join("unified"), groups.to_owned()] {
        let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        if controllers.split_whitespace().any(|name| name == "memory") {
            // Fails if the controller is already enabled or the file is not ours to write.
            let _ = std::fs::write(root.join(CHILDREN), "+memory");
            return Ok((root, VERSION_2));
        }
    }
    bail!("{}: no groups with a limit of memory", groups.display())
}

/// The group of this process, from the lines `NUMBER:CONTROLLERS:PATH` of `own`. The line of version 2 has no
/// controllers. A process that has stepped aside counts as a member of the parent group.
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

/// Moves this process to a child group of `parent`: a version 2 group with limited children may have no processes.
fn step_aside(parent: &Path) -> Result<()> {
    let aside = parent.join(ASIDE);
    if !aside.is_dir() {
        std::fs::create_dir(&aside).with_context(|| format!("{}: cannot make a group", aside.display()))?;
    }
    join(&aside.join(MEMBERS))?;
    let path = parent.join(CHILDREN);
    std::fs::write(&path, "+memory").with_context(|| format!("{}: cannot limit memory", path.display()))
}

/// Moves this process to a group. Call it before the process allocates memory.
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

    /// The layout of `systemd-run --user --scope -p Delegate=yes`: a delegated group below one that refuses new
    /// children.
    #[test]
    fn memory_group_is_made_below_delegated_group() {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join("cgroup.controllers"), "memory\n").unwrap();
        // A file with the group's name blocks a group at the root.
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
