//! Processes that fork.
//!
//! A forked child has a copy of everything but the threads: who waits for one there waits for ever, and what it takes for
//! its own is its parent's still. So whatever has threads, or a right that only one process can have, knows where it was
//! made.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::JoinHandle;

use crate::{Error, Result};

/// How often this process, or one that it descends from, was forked since the first [`Birthplace`].
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process in which something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birthplace(u32);

impl Birthplace {
    /// This process.
    pub fn here() -> Self {
        static WATCH: Once = Once::new();
        WATCH.call_once(|| {
            // SAFETY: the handler is a function of this program, which is never unloaded before it exits, and does what a
            // child may do in which locks may be held by nobody: it adds to an atomic number. Where the system has no
            // memory for the entry, forks go unnoticed.
            unsafe {
                libc::pthread_atfork(None, None, Some(in_child));
            }
        });
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether this process is another: a child, forked since.
    ///
    /// Cost: one load.
    pub fn is_elsewhere(self) -> bool {
        self.0 != GENERATION.load(Ordering::Relaxed)
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Threads that work for something, and end before it does. In a forked child there are none.
#[derive(Debug)]
pub struct Helpers {
    birthplace: Birthplace,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Default for Helpers {
    fn default() -> Self {
        Self { birthplace: Birthplace::here(), threads: Mutex::default() }
    }
}

impl Helpers {
    /// Begins another thread.
    ///
    /// # Errors
    /// The system refuses.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        let thread = thread.map_err(|error| Error::io("start", format!("thread {name}").as_ref(), error))?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Whether this is a forked child, in which nobody runs and locks may be held by who is not there.
    pub fn are_elsewhere(&self) -> bool {
        self.birthplace.is_elsewhere()
    }

    /// Waits until all have ended, who must have been told to.
    pub fn join(&self) {
        if self.are_elsewhere() {
            return;
        }
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // That it panicked was said where it did.
            let _ = thread.join();
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        if self.are_elsewhere() {
            // What they are called means nothing here.
            std::mem::forget(std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}
