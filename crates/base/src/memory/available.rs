//! Free memory: the least of the system's free memory, the limits of the control groups of this process, and its
//! limit of addresses.
//!
//! A group counts the pages of files that its processes read. Those pages can be reclaimed at once, so they count as
//! free here, as in the system's own figure.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum age of an answer.
const FRESH: Duration = Duration::from_millis(100);

/// Assumed if the system does not say.
const UNKNOWN: u64 = 1 << 30;

/// Memory in bytes that this process could take in addition. At most a tenth of a second old; 1 GiB if unknown.
///
/// Cost: mostly a read of the clock. Never waits for other threads.
pub fn available() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    /// Time of the last answer in nanoseconds since the first call, plus one; 0 before the first answer.
    static FOUND_AT: AtomicU64 = AtomicU64::new(0);
    static BYTES: AtomicU64 = AtomicU64::new(UNKNOWN);

    let now = BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1;
    let found_at = FOUND_AT.load(Ordering::Acquire);
    if found_at > 0 && now.saturating_sub(found_at) < FRESH.as_nanos() as u64 {
        return BYTES.load(Ordering::Relaxed);
    }
    let bytes = available_now();
    // In this order, so that a thread that sees the time also sees the bytes.
    BYTES.store(bytes, Ordering::Relaxed);
    FOUND_AT.store(now, Ordering::Release);
    bytes
}

/// As [`available`], but current. Does not refresh its answer.
///
/// Cost: reads some small files of the system.
pub fn available_now() -> u64 {
    look(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
}

/// As [`available_now`], from these directories.
fn look(proc: &Path, groups: &Path) -> u64 {
    let system = in_kib(&text(proc.join("meminfo")), "MemAvailable:").unwrap_or(UNKNOWN);
    let membership = text(proc.join("self/cgroup"));
    let allowed = membership.lines().filter_map(|line| Hierarchy::of(line, groups)).filter_map(|group| group.allows());
    allowed.chain(addresses(&proc.join("self"))).fold(system, u64::min)
}

/// Bytes of addresses that this process may take in addition, or `None` without a limit (`ulimit -v`).
///
/// Maps and reservations count in full, whether they take memory or not.
///
/// Cost: reads two small files of the system.
pub fn addresses_left() -> Option<u64> {
    addresses(Path::new("/proc/self"))
}

/// As [`addresses_left`], from the directory of a process.
fn addresses(process: &Path) -> Option<u64> {
    let limits = text(process.join("limits"));
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(in_kib(&text(process.join("status")), "VmSize:")?))
}

/// A control group and its ancestors, in one of the two versions of Linux.
struct Hierarchy {
    root: PathBuf,
    group: PathBuf,
    names: &'static GroupFileNames,
}

/// Names of the files of a group, and of the lines in its statistics that count pages of files.
struct GroupFileNames {
    limit: &'static str,
    usage: &'static str,
    cached: [&'static str; 2],
}

const VERSION_1: GroupFileNames = GroupFileNames {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cached: ["total_inactive_file", "total_active_file"],
};

const VERSION_2: GroupFileNames =
    GroupFileNames { limit: "memory.max", usage: "memory.current", cached: ["inactive_file", "active_file"] };

impl Hierarchy {
    /// Parses a line of `/proc/self/cgroup`, as `4:memory:/group` or `0::/group`. `None` if it does not concern
    /// memory.
    fn of(line: &str, groups: &Path) -> Option<Self> {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (root, names) = match (number, controllers) {
            ("0", "") if groups.join("unified").is_dir() => (groups.join("unified"), &VERSION_2),
            ("0", "") => (groups.to_owned(), &VERSION_2),
            _ if controllers.split(',').any(|name| name == "memory") => (groups.join("memory"), &VERSION_1),
            _ => return None,
        };
        let group = root.join(path.trim_start_matches('/'));
        // In a container the path may be the host's, and the mounted directory is the group itself.
        let group = if group.is_dir() { group } else { root.clone() };
        Some(Self { root, group, names })
    }

    /// Least memory that any of the groups allows in addition, or `None` without a limit.
    fn allows(&self) -> Option<u64> {
        // Each enclosing group has its own limit, and the least one counts.
        let around = self.group.ancestors().take_while(|group| group.starts_with(&self.root));
        around.filter_map(|group| self.allows_in(group)).min()
    }

    fn allows_in(&self, group: &Path) -> Option<u64> {
        let number = |name| text(group.join(name)).trim().parse::<u64>().ok();
        let limit = number(self.names.limit)?;
        let statistics = text(group.join("memory.stat"));
        // Pages of files can be reclaimed, so they do not count as used.
        let cached: u64 = self.names.cached.iter().filter_map(|name| line_of(&statistics, name)).sum();
        let used = number(self.names.usage)?.saturating_sub(cached);
        Some(limit.saturating_sub(used))
    }
}

/// Content of a small file of the system, empty if it cannot be read.
fn text(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Number that follows `name` on a line.
fn line_of(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    rest.trim().parse().ok()
}

/// Bytes of a line of `/proc` in KiB.
pub(super) fn in_kib(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.trim().split(' ').next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a directory with files of these contents.
    fn tree(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("anden-available-{name}-{}", std::process::id()));
        for (path, contents) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, contents).unwrap();
        }
        root
    }

    fn look_in(root: &Path) -> u64 {
        let bytes = look(&root.join("proc"), &root.join("groups"));
        std::fs::remove_dir_all(root).unwrap();
        bytes
    }

    #[test]
    fn the_system_has_what_it_says() {
        let root = tree("system", &[("proc/meminfo", "MemTotal:  9 kB\nMemAvailable:   2048 kB\n")]);
        assert_eq!(look_in(&root), 2 << 20);
        let root = tree("silent", &[("proc/nothing", "")]);
        assert_eq!(look_in(&root), UNKNOWN);
        assert!(available() > 0);
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = tree(
            "second",
            &[
                ("proc/meminfo", "MemAvailable: 1000000 kB"),
                ("proc/self/cgroup", "0::/outer/inner\n"),
                ("groups/outer/memory.max", "5000000\n"),
                ("groups/outer/memory.current", "4000000\n"),
                ("groups/outer/memory.stat", "anon 7\ninactive_file 300000\nactive_file 200000\n"),
                ("groups/outer/inner/memory.max", "max\n"),
                ("groups/outer/inner/memory.current", "900000\n"),
            ],
        );
        assert_eq!(look_in(&root), 1_500_000);
    }

    #[test]
    fn a_limit_of_addresses_counts() {
        let line =
            |limit: &str| format!("Max stack size   8  8  bytes\nMax address space   {limit}   unlimited  bytes\n");
        for (limit, expected) in [("3000000", 952_000), ("1000", 0), ("unlimited", 4 << 20)] {
            let files = [
                ("proc/meminfo", "MemAvailable: 4096 kB"),
                ("proc/self/limits", &line(limit)),
                ("proc/self/status", "Name: x\nVmPeak: 9000 kB\nVmSize:\t  2000 kB\n"),
            ];
            assert_eq!(look_in(&tree("addresses", &files)), expected, "{limit}");
        }
    }

    #[test]
    fn groups_of_the_first_kind_count_too() {
        let files = [
            ("proc/meminfo", "MemAvailable: 1000000 kB"),
            ("proc/self/cgroup", "5:cpu:/x\n4:memory:/job\n0::/\n"),
            ("groups/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("groups/memory/memory.usage_in_bytes", "77\n"),
            ("groups/memory/job/memory.limit_in_bytes", "8000\n"),
            ("groups/memory/job/memory.usage_in_bytes", "9000\n"),
            ("groups/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 2500\ntotal_active_file 0\n"),
        ];
        assert_eq!(look_in(&tree("first", &files)), 1500);
        // The mounted directory is the group itself.
        let mut files = files;
        files[1].1 = "4:memory:/docker/0123\n";
        files[2].1 = "10000";
        assert_eq!(look_in(&tree("mounted", &files)), 9923);
    }
}
