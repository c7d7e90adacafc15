//! Inputs that may have to be waited for, above all standard input.
//!
//! A pipe, a FIFO, a socket or a terminal may say nothing for ever. The reader can be told to stop waiting: for good, as
//! Ctrl-C does, or at a [deadline](Deadline), after which it may read on.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// A waiting reader looks this often whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Standard input, or another file whose bytes may have to be waited for; without a buffer.
#[derive(Debug)]
pub struct StandardInput {
    file: File,
    deadline: Deadline,
}

/// The moment at which reads of one [`StandardInput`] stop waiting; none at first. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Deadline(Arc<Mutex<Option<Instant>>>);

/// Why a read ended.
#[derive(Debug, thiserror::Error)]
#[error("standard input is not waited for any longer")]
struct Stopped;

/// Why a read ended; the next one may succeed.
#[derive(Debug, thiserror::Error)]
#[error("the input had nothing to read before the deadline")]
struct TimedOut;

impl Deadline {
    /// From now on a read waits until `deadline` at most; `None` waits for ever.
    pub fn set(&self, deadline: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    /// Time left; `None` for ever.
    fn left(&self) -> Option<Duration> {
        let deadline = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

impl StandardInput {
    /// Standard input, which errors call `path`.
    ///
    /// # Errors
    /// There is none.
    pub fn open(path: &Path) -> Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned();
        Ok(Self::of_file(File::from(input.map_err(|error| Error::io("open", path, error))?)))
    }

    /// Another file that may have to be waited for, for example a FIFO.
    pub fn of_file(file: File) -> Self {
        Self { file, deadline: Deadline::default() }
    }

    /// Ends all reads in this process, also those that wait, with an error.
    pub fn stop() {
        IS_STOPPED.store(true, Ordering::Relaxed);
    }

    /// Whether a read ended with this because of [`stop`](Self::stop); [`Error::io`] makes [`Error::Cancelled`] of it.
    pub fn was_stopped(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|reason| reason.is::<Stopped>())
    }

    /// Whether a read ended with this because its deadline passed: nothing is lost, and the reader may go on.
    pub fn has_timed_out(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|reason| reason.is::<TimedOut>())
    }

    /// The deadline of all reads from now on.
    pub fn deadline(&self) -> Deadline {
        self.deadline.clone()
    }

    /// Whether somebody types there.
    pub fn is_terminal(&self) -> bool {
        self.file.is_terminal()
    }

    /// Whether all bytes are there already: a regular file is never waited for.
    pub fn is_regular(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Waits until there is something to read, or the end.
    fn wait(&self) -> io::Result<()> {
        loop {
            if IS_STOPPED.load(Ordering::Relaxed) {
                return Err(io::Error::other(Stopped));
            }
            let left = self.deadline.left();
            let pause = left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
            // Rounded up, so that the last fraction of a millisecond is slept and not spun.
            let milliseconds = pause.as_micros().div_ceil(1000) as i32;
            let mut entry = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: `entry` is one entry, ours, and lives as long as the call.
            match unsafe { libc::poll(&raw mut entry, 1, milliseconds) } {
                0 if left.is_some_and(|left| left <= pause) => return Err(io::Error::other(TimedOut)),
                0 => {}
                // Where it failed, the read says why.
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
        // A deadline in the past takes what is there.
        writer.write_all(b"a").unwrap();
        assert_eq!((input.read(&mut byte).unwrap(), byte), (1, *b"a"));
        deadline.set(None);
        drop(writer);
        assert_eq!(input.read(&mut byte).unwrap(), 0);
    }
}
