//! Forked processes.
//!
//! A forked child has a copy of the memory but not of the threads. A wait for a thread never ends there, and
//! exclusive rights still belong to the parent. So each object with threads or such a right records the process that
//! made it.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::{Error, Result};

/// Number of forks between the process with the first [`Birthplace`] and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process in which an object was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birthplace(u32);

impl Birthplace {
    /// The current process.
    pub fn here() -> Self {
        static WATCH: Once = Once::new();
        WATCH.call_once(|| {
            // SAFETY: the handler is a function of this program, which is not unloaded before the process exits. The
            // handler only adds to an atomic number, which is allowed in a child that may have locks without holders.
            // If the system has no memory for the entry, forks go unnoticed.
            unsafe {
                libc::pthread_atfork(None, None, Some(in_child));
            }
        });
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether the current process is a child that was forked since.
    ///
    /// Cost: one load.
    pub fn is_elsewhere(self) -> bool {
        self.0 != GENERATION.load(Ordering::Relaxed)
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Threads that serve an object and end before it. A forked child has none of them.
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
    /// Starts another thread.
    ///
    /// # Errors
    /// The system refuses to start a thread.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        let thread = thread.map_err(|error| Error::io("start", format!("thread {name}").as_ref(), error))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Whether this is a forked child. None of the threads runs there, and locks may have no holder.
    pub fn are_elsewhere(&self) -> bool {
        self.birthplace.is_elsewhere()
    }

    /// Waits until all threads have ended. The caller must have told them to end.
    pub fn join(&self) {
        if self.are_elsewhere() {
            return;
        }
        // Taken out, so that the lock is not held while threads end.
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // A panic was reported where it occurred.
            let _ = thread.join();
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        if self.are_elsewhere() {
            // The handles are not valid in a child, so they must not be detached.
            std::mem::forget(std::mem::take(self.threads.get_mut()));
        }
    }
}
