//! Statistics of a database and of its graphs.

pub use anden_engine::{CommitStats, LiveStats, PolicyStats, PrefetchStats, StorageStats};

pub use crate::degrees::{DegreeBin, DegreeStatistics};
pub use crate::pinned::ViewStats;
pub use crate::view::FragmentStatistics;

/// Sizes on disk and in memory, and counters since the database was opened.
///
/// [`View::fragment_statistics`](crate::View::fragment_statistics) counts the fragments of lists, because that reads all of
/// them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Sizes on disk.
    pub storage: StorageStats,
    /// The memtable, the WAL and checkpoints.
    pub live: LiveStats,
    /// Commits, conflicts with their reasons, and latencies.
    pub commits: CommitStats,
    /// Open views and transactions.
    pub views: ViewStats,
    /// Counters of the prefetcher, over all handles of the session.
    pub prefetch: PrefetchStats,
}
