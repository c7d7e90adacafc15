//! Statistics of a database and of its graphs.

mod exposition;
mod observer;
mod prometheus;

pub use anden_base::storage::LockHolder;
pub use anden_engine::{
    CommitLatencies, CommitStats, Histogram, LiveStats, PolicyStats, PrefetchStats, StorageStats, WorkProgress,
    WorkStats,
};

pub use self::observer::{Observation, ObservedFiles, Observer};
pub use crate::cache::CacheStats;
pub use crate::degrees::{DegreeBin, DegreeStatistics};
pub use crate::pinned::ViewStats;
pub use crate::view::FragmentStatistics;

/// Sizes on disk, and the [`Metrics`] of a handle.
///
/// [`View::fragment_statistics`](crate::View::fragment_statistics) counts the fragments of lists, because that reads all of
/// them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Sizes on disk.
    pub storage: StorageStats,
    /// Counters and gauges.
    pub metrics: Metrics,
}

/// Counters and gauges of one handle at one moment.
///
/// Counters begin when the database is opened. The parts are read one after the other, so commits in between may be in
/// one part and not in another.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// The epoch of the last commit that views show.
    pub epoch: u64,
    /// Number of snapshots.
    pub snapshots: usize,
    /// Number of the newest snapshot.
    pub newest_snapshot: Option<u32>,
    /// Bytes of the snapshots' files.
    pub snapshot_bytes: u64,
    /// Whether the handle cannot write. Then commits, memtable and WAL have no figures.
    pub is_read_only: bool,
    /// The reason why the handle writes nothing more; `None` while it may write.
    pub write_error: Option<String>,
    /// Commits, conflicts with their reasons, groups and latencies.
    pub commits: CommitStats,
    /// The memtable, the WAL, checkpoints and merges.
    pub live: LiveStats,
    /// Open views and transactions.
    pub views: ViewStats,
    /// Cached parts, and what kernels prepared.
    pub cache: CacheStats,
    /// Counters of the prefetcher, over all handles of the session.
    pub prefetch: PrefetchStats,
}
