//! The processes that hold locks, as far as the system tells.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::FileIdentity;
use crate::holder::LockHolder;

/// The process with this number, which wrote it to the file `locked`. A number from another container may belong to
/// another process here, so its program is named only if it has the file open, or if that is hidden.
pub(super) fn of_number(number: u32, locked: FileIdentity) -> LockHolder {
    let is_wrong = open_files(number).is_some_and(|files| !files.iter().any(|file| is_of(file, locked)));
    let program = fs::read_to_string(format!("/proc/{number}/comm")).ok().filter(|_| !is_wrong);
    LockHolder { process: Some(number), program: program.map(|name| name.trim_end().to_owned()) }
}

/// The processes that have locked these bytes of a file, by byte. A byte whose holders are hidden has one without a
/// number.
pub(super) fn of_bytes(locked: FileIdentity, offsets: &[u64]) -> Vec<(u64, LockHolder)> {
    let mut holders = Vec::new();
    let processes = fs::read_dir("/proc").into_iter().flatten();
    for number in processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()) {
        for file in open_files(number).unwrap_or_default().iter().filter(|file| is_of(file, locked)) {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            // Locks of this open file, as proc_pid_fdinfo(5) describes them.
            let info = fs::read_to_string(format!("/proc/{number}/fdinfo/{name}")).unwrap_or_default();
            let held = info.lines().filter_map(locked_byte).filter(|offset| offsets.contains(offset));
            holders.extend(held.map(|offset| (offset, of_number(number, locked))));
        }
    }
    for &offset in offsets {
        if !holders.iter().any(|(other, _)| *other == offset) {
            holders.push((offset, LockHolder::default()));
        }
    }
    holders.sort_by_key(|(offset, holder)| (*offset, holder.process));
    holders
}

/// The byte that a line of `/proc/PID/fdinfo` says to be locked:
/// `lock:\t1: OFDLCK  ADVISORY  READ -1 08:01:131 7 7`.
fn locked_byte(line: &str) -> Option<u64> {
    let mut words = line.strip_prefix("lock:")?.split_whitespace();
    let kind = words.nth(1)?;
    words.next_back()?.parse::<u64>().ok()?;
    words.next_back()?.parse().ok().filter(|_| kind == "OFDLCK")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_other_kinds_are_passed_over() {
        let line = |kind: &str, range: &str| format!("lock:\t1: {kind}  ADVISORY  READ -1 08:01:131 {range}");
        assert_eq!(locked_byte(&line("OFDLCK", "7 7")), Some(7));
        for other in [line("FLOCK", "0 EOF"), line("POSIX", "7 7"), "pos:\t0".into(), "lock:".into()] {
            assert_eq!(locked_byte(&other), None, "{other}");
        }
    }
}
