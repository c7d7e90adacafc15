//! A session: threads, a memory budget and a progress report that several handles share.

use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{Prefetcher, Workers};
use anden_kernels::Context;

use crate::{Error, Result};

pub use anden_base::progress::Progress;
pub use anden_base::size::{parse_size, size};
pub use anden_engine::{Io, Prefetch, Split};

/// Patched pages of views may take one in this many bytes of the budget.
const PATCH_SHARE: u64 = 4;

/// Without another limit, the cache may take one in this many bytes of the memory budget, or of the free memory.
pub(crate) const CACHE_SHARE: u64 = 4;

/// Memory of the program before any work: its tables, thread stacks, page states.
const PROGRAM_BYTES: u64 = 8 << 20;

/// Additional memory of a writer: file buffers. The engine adds the size of the changes.
const WRITER_BYTES: u64 = 16 << 20;

/// Memory for file pages while a kernel or an export reads a larger graph: read-ahead of all workers, pages around a
/// fault, offsets of lists. A smaller graph needs room for its own bytes only.
///
/// With less, pages are evicted before they are read, and the files are read many times.
const FILE_BYTES: u64 = 32 << 20;

/// Without a budget, one in this many free bytes stays free, because files are read through it.
const FREE_SHARE: u64 = 8;

/// Memory in use beside the state of a kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// Whether deltas change pages of the view; changed pages are patched in memory.
    pub(crate) has_patches: bool,
    /// Bytes that the view holds.
    pub(crate) taken: u64,
    /// Bytes of adjacency lists in files.
    pub(crate) lists: u64,
    /// Bytes of the cache, which leaves if a kernel needs the memory.
    pub(crate) cached: u64,
}

impl Beside {
    /// Bytes to reserve for file pages.
    fn files(&self) -> u64 {
        self.lists.min(FILE_BYTES)
    }
}

/// Threads, a memory budget and a progress report, shared by all databases opened with it.
///
/// Clones are cheap and share the threads.
#[derive(Clone)]
pub struct Session {
    pool: Arc<Pool>,
    workers: Arc<Workers>,
    progress: Arc<dyn Progress + Send + Sync>,
    memory: Option<u64>,
    prefetcher: Arc<Prefetcher>,
    prefetch: Prefetch,
    cache: Option<u64>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("pool", &self.pool).field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl Session {
    /// Starts `num_threads` workers; 0: one for each core.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn new(num_threads: usize) -> Result<Self> {
        let pool = Arc::new(Pool::new(num_threads)?);
        let workers = Arc::new(Workers::new(Split::of_cores(pool.num_threads())));
        let (progress, prefetcher) = (Arc::new(Silent), Arc::default());
        Ok(Self { pool, workers, progress, memory: None, prefetcher, prefetch: Prefetch::default(), cache: None })
    }

    /// Splits the cores between [queries](crate::Database::navigate) and [analyses](crate::Database::analyse) of all
    /// databases in this session. By default queries get one third.
    #[must_use]
    pub fn with_split(self, split: Split) -> Self {
        // Workers start their threads at the first use, so the old ones cost nothing.
        Self { workers: Arc::new(Workers::new(split)), ..self }
    }

    /// Limits the memory of loads, appends, merges, checkpoints, kernels, exports and diffs, in bytes.
    ///
    /// Kernels, exports and diffs count the file pages that they need; other mapped files do not count. `None`: most of
    /// the memory that is free when the work begins, in the system and its control group. At most half of that is
    /// reserved for file pages. Work that does not fit fails with [`Error::Memory`]: before it
    /// starts, or once the input or the graph shows its size.
    #[must_use]
    pub fn with_memory(self, memory: Option<u64>) -> Self {
        Self { memory, ..self }
    }

    /// Reports the progress of long work to `progress`, which may cancel the work.
    #[must_use]
    pub fn with_progress(self, progress: Arc<dyn Progress + Send + Sync>) -> Self {
        Self { progress, ..self }
    }

    /// Sets the prefetch policy of views opened with this session; initially [`Prefetch::Auto`].
    #[must_use]
    pub fn with_prefetch(self, prefetch: Prefetch) -> Self {
        Self { prefetch, ..self }
    }

    /// Limits the bytes that each database of this session caches. `None`: a quarter of the memory budget, or of the
    /// free memory. 0: nothing is cached.
    ///
    /// The cache holds parts of snapshots ([`View::filter`](crate::View::filter)), and what kernels prepare from a
    /// snapshot or from such a part. These are the bins of PageRank, the oriented copies of triangles and clustering
    /// coefficients, and in-lists for k-core and label propagation on a graph without them. Results are not cached. The
    /// least recently used entry leaves first. All leave when a merge, a drop or the retention removes files or
    /// snapshots. Work that needs the memory takes it from the cache.
    #[must_use]
    pub fn with_cache(self, num_bytes: Option<u64>) -> Self {
        Self { cache: num_bytes, ..self }
    }

    /// Overrides the free memory that the prefetcher assumes. Views of larger graphs are read ahead, and kernels choose
    /// their variants for graphs larger than memory. Use it to test how a graph behaves on a smaller machine.
    #[must_use]
    pub fn with_free_memory(self, num_bytes: u64) -> Self {
        Self { prefetcher: Arc::new(Prefetcher::with_free_memory(num_bytes)), ..self }
    }

    /// The prefetch policy.
    pub fn prefetch(&self) -> Prefetch {
        self.prefetch
    }

    /// The prefetcher.
    pub(crate) fn prefetcher(&self) -> &Prefetcher {
        &self.prefetcher
    }

    /// The number of worker threads.
    pub fn num_threads(&self) -> usize {
        self.pool.num_threads()
    }

    /// How the cores are split between queries and analyses.
    pub fn split(&self) -> Split {
        self.workers.split()
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    /// This session with another thread pool.
    pub(crate) fn with_pool(&self, pool: &Arc<Pool>) -> Self {
        Self { pool: Arc::clone(pool), ..self.clone() }
    }

    pub(crate) fn shared_pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The thread pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The progress report.
    pub fn progress(&self) -> &dyn Progress {
        &*self.progress
    }

    /// The memory budget in bytes.
    pub fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// The limit of the cache in bytes; `None`: a share of the free memory.
    pub(crate) fn cache_limit(&self) -> Option<u64> {
        self.cache.or_else(|| self.memory.map(|memory| memory / CACHE_SHARE))
    }

    /// Checks that `num_bytes` beside the program fit in the budget. For work outside the methods of this crate; `what`
    /// names the work in the error.
    ///
    /// # Errors
    /// [`Error::Memory`], with the total need.
    pub fn require_memory(&self, what: &str, num_bytes: u64) -> Result<()> {
        let budget = self.memory.unwrap_or_else(free_bytes);
        match num_bytes.saturating_add(PROGRAM_BYTES) {
            needed if needed > budget => Err(Error::Memory { what: what.to_owned(), needed, budget }),
            _ => Ok(()),
        }
    }

    /// Like [`require_memory`](Self::require_memory), for work that reads all lists of a view and holds `num_bytes`
    /// itself.
    ///
    /// # Errors
    /// As [`require_memory`](Self::require_memory).
    pub(crate) fn require_reader(&self, what: &str, beside: Beside, num_bytes: u64) -> Result<()> {
        // The error below names the total need, so the name given here is unused.
        match self.context(beside).require_memory("", num_bytes) {
            Ok(()) => Ok(()),
            Err(_) => {
                let budget = self.memory.unwrap_or_else(anden_base::memory::available);
                Err(Error::Memory { what: what.to_owned(), needed: self.memory_for(num_bytes, beside), budget })
            }
        }
    }

    /// Checks that a writer of `what` fits in the budget: file buffers and `num_bytes`. Passes without a budget.
    pub(crate) fn require_writer(&self, what: &str, num_bytes: u64) -> Result<()> {
        if self.memory.is_some() { self.require_memory(what, WRITER_BYTES + num_bytes) } else { Ok(()) }
    }

    /// The share of the budget for patched pages of views.
    pub(crate) fn patch_memory(&self) -> Option<u64> {
        self.memory.map(|memory| memory / PATCH_SHARE)
    }

    /// The context of a kernel. Its budget is what the program, the view and file pages leave.
    pub(crate) fn context(&self, beside: Beside) -> Context<'_> {
        let memory = match self.memory {
            // A budget below the fixed costs leaves zero, and the kernel then states its need.
            Some(memory) => memory.saturating_sub(PROGRAM_BYTES + beside.taken + beside.files()),
            // `available` already excludes the memory that the view holds, and the cache gives its own back.
            None => {
                let available = anden_base::memory::available().saturating_add(beside.cached);
                // With little free memory, half goes to the kernel: it can run, but reads files more than once.
                let files = beside.files().min(available / 2);
                available - files.max(available / FREE_SHARE)
            }
        };
        let patches = if beside.has_patches { memory / PATCH_SHARE } else { 0 };
        Context { memory: Some(memory - patches), progress: &*self.progress, ..Context::new(&self.pool) }
    }

    /// Completes a memory error of a kernel that ran with [`context`](Self::context): the kernel knows its own need,
    /// the error names the total.
    pub(crate) fn in_all(&self, error: Error, beside: impl FnOnce() -> Beside) -> Error {
        match error {
            // Sizes of the view are read only here, because they cost a look at each delta.
            Error::Memory { what, needed, .. } => {
                let budget = self.memory.unwrap_or_else(anden_base::memory::available);
                Error::Memory { what, needed: self.memory_for(needed, beside()), budget }
            }
            error => error,
        }
    }

    /// The budget that leaves a kernel `needed` bytes in [`context`](Self::context). Without a budget: the size of a
    /// control group with that room.
    pub(crate) fn memory_for(&self, needed: u64, beside: Beside) -> u64 {
        // `context` gives a quarter of the memory to patched pages, so the total is a third above the need.
        let patches = if beside.has_patches { needed.saturating_sub(1) / (PATCH_SHARE - 1) } else { 0 };
        let state = needed.saturating_add(patches);
        let with_files = state.saturating_add(beside.files());
        let free = match self.memory {
            Some(_) => with_files,
            // Without a budget, `context` keeps the larger of file pages and a free share.
            None => with_files.max(state.saturating_add(state / (FREE_SHARE - 1) + 1)),
        };
        free.saturating_add(PROGRAM_BYTES + beside.taken)
    }
}

/// Bytes that work may take without a budget.
fn free_bytes() -> u64 {
    // Divided first, so that the product cannot overflow.
    anden_base::memory::available() / FREE_SHARE * (FREE_SHARE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_gets_what_it_asked_for() {
        let session = Session::new(1).unwrap();
        for needed in [0, 1, 2, 3, 1000, 1001, 123_456_789] {
            for (has_patches, taken, lists) in [(false, 0, 0), (true, 0, 0), (true, 77, 5), (false, 1, u64::MAX)] {
                let beside = Beside { has_patches, taken, lists, cached: 0 };
                let with = |memory| session.clone().with_memory(Some(memory)).context(beside).memory;
                let budget = session.clone().with_memory(Some(1)).memory_for(needed, beside);
                assert_eq!(with(budget), Some(needed), "{beside:?}");
                assert!(needed == 0 || with(budget - 1) < Some(needed));
                assert!(session.memory_for(needed, beside) >= budget, "a group has room for what the budget has");
            }
        }
    }
}
