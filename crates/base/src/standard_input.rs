//! Standard input, which may say nothing for ever: whoever waits for it can be told to stop.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// How often who waits looks whether to stop.
const LOOK_EVERY_MS: i32 = 50;

static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Standard input, without a buffer.
#[derive(Debug)]
pub struct StandardInput(File);

/// Why a read ended.
#[derive(Debug, thiserror::Error)]
#[error("standard input is not waited for any longer")]
struct Stopped;

impl StandardInput {
    /// Standard input, which errors call `path`.
    ///
    /// # Errors
    /// There is none.
    pub fn open(path: &Path) -> Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned();
        Ok(Self(File::from(input.map_err(|error| Error::io("open", path, error))?)))
    }

    /// Ends all reads of standard input in this process, also those that wait, with an error.
    pub fn stop() {
        IS_STOPPED.store(true, Ordering::Relaxed);
    }

    /// Whether a read ended with this because of [`stop`](Self::stop); [`Error::io`] makes [`Error::Cancelled`] of it.
    pub fn was_stopped(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|reason| reason.is::<Stopped>())
    }

    /// Whether somebody types there.
    pub fn is_terminal(&self) -> bool {
        self.0.is_terminal()
    }

    /// Waits until there is something to read, or the end.
    fn wait(&self) -> io::Result<()> {
        loop {
            if IS_STOPPED.load(Ordering::Relaxed) {
                return Err(io::Error::other(Stopped));
            }
            let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: `entry` is one entry, ours, and lives as long as the call.
            match unsafe { libc::poll(&raw mut entry, 1, LOOK_EVERY_MS) } {
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
        self.0.read(into)
    }
}
