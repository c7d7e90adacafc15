//! Conditions of a test: those that it waits for, and those without which it cannot run.

use std::fmt::Display;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The longest wait for a condition that must come true. Enough for a busy machine.
const LONGEST: Duration = Duration::from_secs(60);
/// The time between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until `holds` returns true.
///
/// # Panics
/// If that takes a minute. The message names `what`.
#[track_caller]
pub fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    assert!(holds_within(LONGEST, holds), "waited {LONGEST:?} in vain: {what}");
}

/// Whether `holds` returns true within this time. It is called at least once.
pub fn holds_within(longest: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    // Checked before the time, so that a condition that holds already never fails.
    while !holds() {
        if start.elapsed() >= longest {
            return false;
        }
        // Polled with pauses, so that the threads under test get the processor.
        std::thread::sleep(PAUSE);
    }
    true
}

/// Number of bytes in a pipe that its reader has not read yet.
///
/// # Panics
/// If it is no pipe.
pub fn num_unread(pipe: impl AsFd) -> u64 {
    rustix::io::ioctl_fionread(pipe).expect("a pipe")
}

/// Says on standard error that this test is skipped, and why. The test must return then.
///
/// The line appears even without `--nocapture`.
pub fn skipped(reason: impl Display) {
    let thread = std::thread::current();
    // The main thread has no name of a test.
    let test = thread.name().filter(|name| *name != "main").map(|name| format!(" ({name})")).unwrap_or_default();
    // The test harness captures `eprintln!`, but not writes to the stream itself.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}{test}");
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn condition_is_checked_until_it_holds() {
        let mut num_checks = 0;
        wait_until("three checks", || {
            num_checks += 1;
            num_checks == 3
        });
        assert_eq!(num_checks, 3);
        assert!(!holds_within(Duration::ZERO, || false));
        assert!(holds_within(Duration::ZERO, || true));
    }

    #[test]
    fn unread_bytes_of_a_pipe_are_counted() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"abc").unwrap();
        assert_eq!(num_unread(&writer), 3);
        reader.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(num_unread(&writer), 0);
    }
}
