//! Inputs that may block, above all standard input.
//!
//! A pipe, FIFO, socket or terminal may stay silent for ever. The reader can be told to stop waiting: for good, as by
//! Ctrl-C, or at a [deadline](Deadline), after which it may read on.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::ReadStopped;
use crate::{Error, Result};

/// Interval at which a waiting reader checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Standard input, or another file that may block; unbuffered.
#[derive(Debug)]
pub struct StandardInput {
    file: File,
    deadline: Deadline,
}

/// Time at which reads of one [`StandardInput`] stop waiting; initially none. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Deadline(Arc<Mutex<Option<Instant>>>);

/// The error of a read at its deadline; the next read may succeed.
#[derive(Debug, thiserror::Error)]
#[error("the input had nothing to read before the deadline")]
struct TimedOut;

impl Deadline {
    /// Later reads wait until `deadline` at most; `None` waits for ever.
    pub fn set(&self, deadline: Option<Instant>) {
        *self.0.lock() = deadline;
    }

    /// Time left, or `None` without a deadline.
    fn left(&self) -> Option<Duration> {
        let deadline = *self.0.lock();
        deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

impl StandardInput {
    /// Opens standard input, with `path` as its name in errors.
    ///
    /// # Errors
    /// The descriptor of standard input cannot be duplicated, for example because it is closed.
    pub fn open(path: &Path) -> Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned();
        Ok(Self::of_file(File::from(input.map_err(|error| Error::io("open", path, error))?)))
    }

    /// Wraps another file that may block, for example a FIFO.
    pub fn of_file(file: File) -> Self {
        Self { file, deadline: Deadline::default() }
    }

    /// Ends all current and later reads in this process with an error.
    pub fn stop() {
        IS_STOPPED.store(true, Ordering::Relaxed);
    }

    /// Whether [`stop`](Self::stop) caused this error. [`Error::io`] turns such an error into [`Error::Cancelled`].
    pub fn was_stopped(error: &io::Error) -> bool {
        ReadStopped::is_reason_of(error)
    }

    /// Whether a deadline caused this error. No input is lost, and the reader may continue.
    pub fn has_timed_out(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|reason| reason.is::<TimedOut>())
    }

    /// The deadline of later reads.
    pub fn deadline(&self) -> Deadline {
        self.deadline.clone()
    }

    /// Whether the input is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.file.is_terminal()
    }

    /// Whether the input is a regular file, which never blocks.
    pub fn is_regular(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Waits for input or its end.
    fn wait(&self) -> io::Result<()> {
        loop {
            if IS_STOPPED.load(Ordering::Relaxed) {
                return Err(io::Error::other(ReadStopped));
            }
            let left = self.deadline.left();
            // In short steps, because `stop` wakes no waiting reader.
            let pause = left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
            // Rounded up, so that the last fraction of a millisecond is slept and not spun.
            let milliseconds = pause.as_micros().div_ceil(1000) as i32;
            let mut entry = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: `entry` is one entry, ours, and lives as long as the call.
            match unsafe { libc::poll(&raw mut entry, 1, milliseconds) } {
                0 if left.is_some_and(|left| left <= pause) => return Err(io::Error::other(TimedOut)),
                0 => {}
                // After an error on the file, the read reports the reason.
                1.. => return Ok(()),
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }
}

impl Read for StandardInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.file.read(into)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn deadline_ends_one_read_only() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut input = StandardInput::of_file(File::from(OwnedFd::from(reader)));
        let deadline = input.deadline();
        let mut byte = [0];
        for time in [Duration::ZERO, Duration::from_millis(3), Duration::from_millis(120)] {
            let start = Instant::now();
            deadline.set(Some(start + time));
            let error = input.read(&mut byte).unwrap_err();
            assert!(StandardInput::has_timed_out(&error) && !StandardInput::was_stopped(&error), "{error}");
            assert!(start.elapsed() >= time);
        }
        // A deadline in the past still reads available bytes.
        writer.write_all(b"a").unwrap();
        assert_eq!((input.read(&mut byte).unwrap(), byte), (1, *b"a"));
        deadline.set(None);
        drop(writer);
        assert_eq!(input.read(&mut byte).unwrap(), 0);
    }
}
