//! What work runs with: threads, a memory budget, and somebody who watches.

use std::sync::Arc;

use base::parallel::Pool;
use base::progress::{Progress, Silent};
use engine::{Advisor, Io, Prefetch, Split, Workers};
use kernels::Context;

use crate::{Error, Result};

/// Pages of views that are not in the files as they are may take one in so many bytes of the budget.
const PATCH_SHARE: u64 = 4;

/// What the program has in memory before it works: its tables, the stacks of its threads, what is known of each page.
const PROGRAM_BYTES: u64 = 8 << 20;

/// What whoever writes to a database has in memory besides: the buffers of the files. The engine adds what it writes.
const WRITER_BYTES: u64 = 16 << 20;

/// Pages of the files that stay in memory while a kernel or an export reads a graph that is larger: what is read ahead by
/// all workers, what is read around a fault, and the offsets of lists. A smaller graph needs room for its own bytes.
///
/// With less room, pages are evicted before they are read: the files are then read many times over.
const FILE_BYTES: u64 = 32 << 20;

/// Without a budget, one in so many bytes of what is free stays so: files are read through it.
const FREE_SHARE: u64 = 8;

/// What is in memory beside the state of a kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// Whether levels change pages of the view, which are then made anew in memory.
    pub(crate) has_patches: bool,
    /// Bytes that the view holds.
    pub(crate) taken: u64,
    /// Bytes of the lists in files.
    pub(crate) lists: u64,
}

impl Beside {
    /// The part of the memory that is left to pages of files.
    fn files(&self) -> u64 {
        self.lists.min(FILE_BYTES)
    }
}

/// Threads, a memory budget and a watcher, shared by everything that is opened with it.
///
/// Cloning is cheap and shares the threads.
#[derive(Clone)]
pub struct Session {
    pool: Arc<Pool>,
    workers: Arc<Workers>,
    progress: Arc<dyn Progress + Send + Sync>,
    memory: Option<u64>,
    advisor: Arc<Advisor>,
    prefetch: Prefetch,
    io: Io,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("pool", &self.pool).field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl Session {
    /// Starts `num_threads` workers; 0 means one for each core.
    ///
    /// # Errors
    /// The system refuses to start a thread.
    pub fn new(num_threads: usize) -> Result<Self> {
        let pool = Arc::new(Pool::new(num_threads)?);
        let workers = Arc::new(Workers::new(Split::of_cores(pool.num_threads())));
        let (progress, advisor) = (Arc::new(Silent), Arc::default());
        let (prefetch, io) = (Prefetch::default(), Io::default());
        Ok(Self { pool, workers, progress, memory: None, advisor, prefetch, io })
    }

    /// Splits the cores between [navigational queries](crate::Database::navigate) and
    /// [analyses](crate::Database::analyse), for all databases that are opened with it; at first 1 to 2 of the threads.
    #[must_use]
    pub fn with_split(self, split: Split) -> Self {
        Self { workers: Arc::new(Workers::new(split)), ..self }
    }

    /// Limits the bytes that loads, appends, merges, snapshots, kernels, exports and differences may have in memory at once.
    /// A kernel, an export and a difference count the pages of files that they need; other mapped files do not count.
    /// `None`: most of the memory that the system, and the control group of the process, have free when the work begins;
    /// at most half of that is reserved for pages of files. What does not fit is refused before it begins ([`Error::Memory`](crate::Error::Memory)), and what only the
    /// input or the graph tells once it is met.
    #[must_use]
    pub fn with_memory(self, memory: Option<u64>) -> Self {
        Self { memory, ..self }
    }

    /// Tells `progress` where long work stands, and lets it stop the work.
    #[must_use]
    pub fn with_progress(self, progress: Arc<dyn Progress + Send + Sync>) -> Self {
        Self { progress, ..self }
    }

    /// Chooses what is read ahead through views that are opened with it; at first [`Prefetch::Auto`].
    #[must_use]
    pub fn with_prefetch(self, prefetch: Prefetch) -> Self {
        Self { prefetch, ..self }
    }

    /// Takes so many bytes for the memory that is free for lists, whatever the system says: where a graph has more, it is
    /// read ahead, and kernels take the ways of a graph that is larger than memory. To see what becomes of one where there
    /// is less memory than here.
    #[must_use]
    pub fn with_free_memory(self, num_bytes: u64) -> Self {
        Self { advisor: Arc::new(Advisor::with_free_memory(num_bytes)), ..self }
    }

    /// Chooses how files of databases are read that are opened with it for reading only; at first [`Io::Mmap`].
    #[must_use]
    pub fn with_io(self, io: Io) -> Self {
        Self { io, ..self }
    }

    /// What is read ahead.
    pub fn prefetch(&self) -> Prefetch {
        self.prefetch
    }

    /// How files are read.
    pub fn io(&self) -> Io {
        self.io
    }

    /// Who reads ahead.
    pub(crate) fn advisor(&self) -> &Advisor {
        &self.advisor
    }

    /// The number of worker threads.
    pub fn num_threads(&self) -> usize {
        self.pool.num_threads()
    }

    /// How the cores are split between navigational queries and analyses.
    pub fn split(&self) -> Split {
        self.workers.split()
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    /// The same with other threads.
    pub(crate) fn with_pool(&self, pool: &Arc<Pool>) -> Self {
        Self { pool: Arc::clone(pool), ..self.clone() }
    }

    /// The workers.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Who watches.
    pub fn progress(&self) -> &dyn Progress {
        &*self.progress
    }

    /// The budget in bytes.
    pub fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Refuses `what` where it holds more at once, `num_bytes` beside the program, than there may be: for work that is done
    /// with this session and not through it.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), with all that it needs.
    pub fn require_memory(&self, what: &str, num_bytes: u64) -> Result<()> {
        let budget = self.memory.unwrap_or_else(free_bytes);
        match num_bytes.saturating_add(PROGRAM_BYTES) {
            needed if needed > budget => Err(Error::Memory { what: what.to_owned(), needed, budget }),
            _ => Ok(()),
        }
    }

    /// The same for `what` reads all lists of a view and holds `num_bytes` of its own.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn require_reader(&self, what: &str, beside: Beside, num_bytes: u64) -> Result<()> {
        match self.context(beside).require_memory("", num_bytes) {
            Ok(()) => Ok(()),
            Err(_) => {
                let budget = self.memory.unwrap_or_else(base::memory::available);
                Err(Error::Memory { what: what.to_owned(), needed: self.memory_for(num_bytes, beside), budget })
            }
        }
    }

    /// Refuses a budget in which `what` cannot be written, which holds `num_bytes` beside the buffers of the files.
    pub(crate) fn require_writer(&self, what: &str, num_bytes: u64) -> Result<()> {
        if self.memory.is_some() { self.require_memory(what, WRITER_BYTES + num_bytes) } else { Ok(()) }
    }

    /// The part of the budget for pages of views that are not in the files as they are.
    pub(crate) fn patch_memory(&self) -> Option<u64> {
        self.memory.map(|memory| memory / PATCH_SHARE)
    }

    /// What a kernel works with. Its state gets what the program, the view and the pages of files leave of the budget.
    pub(crate) fn context(&self, beside: Beside) -> Context<'_> {
        let memory = match self.memory {
            Some(memory) => memory.saturating_sub(PROGRAM_BYTES + beside.taken + beside.files()),
            // What is taken is not free any more.
            None => {
                let available = base::memory::available();
                // Where little is free, a kernel that can run does so, although it reads files more than once.
                let files = beside.files().min(available / 2);
                available - files.max(available / FREE_SHARE)
            }
        };
        let patches = if beside.has_patches { memory / PATCH_SHARE } else { 0 };
        Context { memory: Some(memory - patches), progress: &*self.progress, ..Context::new(&self.pool) }
    }

    /// An error of a kernel that worked with such a [`context`](Self::context), with all memory that there must be where it
    /// has what the kernel must have.
    pub(crate) fn in_all(&self, error: Error, beside: impl FnOnce() -> Beside) -> Error {
        match error {
            Error::Memory { what, needed, .. } => {
                let budget = self.memory.unwrap_or_else(base::memory::available);
                Error::Memory { what, needed: self.memory_for(needed, beside()), budget }
            }
            error => error,
        }
    }

    /// The budget with which [`context`](Self::context) lets a kernel have `needed` bytes; without a budget, the memory of a
    /// control group that has room for them.
    pub(crate) fn memory_for(&self, needed: u64, beside: Beside) -> u64 {
        // A quarter of what a kernel may have goes to the pages, so a third is added to what it needs.
        let patches = if beside.has_patches { needed.saturating_sub(1) / (PATCH_SHARE - 1) } else { 0 };
        let state = needed.saturating_add(patches);
        let with_files = state.saturating_add(beside.files());
        let free = match self.memory {
            Some(_) => with_files,
            None => with_files.max(state.saturating_add(state / (FREE_SHARE - 1) + 1)),
        };
        free.saturating_add(PROGRAM_BYTES + beside.taken)
    }
}

/// What may be taken without a budget.
fn free_bytes() -> u64 {
    base::memory::available() / FREE_SHARE * (FREE_SHARE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_gets_what_it_asked_for() {
        let session = Session::new(1).unwrap();
        for needed in [0, 1, 2, 3, 1000, 1001, 123_456_789] {
            for (has_patches, taken, lists) in [(false, 0, 0), (true, 0, 0), (true, 77, 5), (false, 1, u64::MAX)] {
                let beside = Beside { has_patches, taken, lists };
                let with = |memory| session.clone().with_memory(Some(memory)).context(beside).memory;
                let budget = session.clone().with_memory(Some(1)).memory_for(needed, beside);
                assert_eq!(with(budget), Some(needed), "{beside:?}");
                assert!(needed == 0 || with(budget - 1) < Some(needed));
                assert!(session.memory_for(needed, beside) >= budget, "a group has room for what the budget has");
            }
        }
    }
}
