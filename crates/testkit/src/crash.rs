//! Power cuts at every point of some work.

use crate::{FaultPlan, FaultStorage};

/// Repeats `act` with a power cut at each of its calls to the disk that `start` makes, together with the state that
/// `act` takes over. Gives `check` the answer, `num_disks` possible disks after each cut, and the place in words. The
/// last run has no cut. Returns the number of calls.
pub fn crash_every_call<S, T>(
    num_disks: u64,
    start: impl Fn() -> (FaultStorage, S),
    act: impl Fn(&FaultStorage, S) -> T,
    mut check: impl FnMut(&T, &FaultStorage, &str),
) -> u64 {
    for call in 0.. {
        let (disk, state) = start();
        let crash = disk.num_calls() + call;
        disk.set_plan(FaultPlan::CrashAt(crash));
        let answer = act(&disk, state);
        for seed in 0..num_disks {
            check(&answer, &disk.after_crash(call * num_disks + seed), &format!("call {call}, disk {seed}"));
        }
        if disk.num_calls() <= crash {
            return call;
        }
    }
    unreachable!("each run makes calls without an end");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anden_base::storage::Storage;

    use super::*;

    #[test]
    fn each_call_is_cut_once() {
        let start = || {
            let disk = FaultStorage::default();
            disk.create_dir(Path::new("a")).unwrap();
            (disk, "b")
        };
        let act = |disk: &FaultStorage, name| {
            disk.create_dir(Path::new(name)).is_ok() && disk.sync_dir(Path::new("")).is_ok()
        };
        let mut answers = Vec::new();
        let num_calls = crash_every_call(3, start, act, |&is_done, after, place| {
            assert!(!is_done || after.exists(Path::new("b")).unwrap(), "{place}");
            answers.push(is_done);
        });
        assert_eq!(num_calls, 2);
        assert_eq!(answers, [[false; 3], [false; 3], [true; 3]].concat());
    }
}
