//! Statistics of a database and of its graphs.

mod exposition;
mod observer;
mod prometheus;

use crate::{Database, Result};
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

impl Database {
    /// Returns the counters and gauges of this handle, for monitoring.
    ///
    /// Cost: some microseconds, and no read of a file. Waits at most a tenth of a second for a running commit; then the
    /// size of the memtable is that of the call before.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2)])?;
    /// let metrics = db.metrics();
    /// assert_eq!((metrics.epoch, metrics.commits.commits, metrics.live.added), (1, 1, 1));
    /// assert!(metrics.to_prometheus(&[]).contains("\nanden_commits_total 1\n"));
    /// # Ok::<(), anden::Error>(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        let engine = self.inner();
        Metrics {
            epoch: engine.epoch(),
            snapshots: engine.num_snapshots(),
            newest_snapshot: engine.newest_number(),
            snapshot_bytes: engine.snapshot_bytes(),
            is_read_only: engine.is_read_only(),
            write_error: engine.write_error().map(|error| error.to_string()),
            commits: engine.commit_stats(),
            live: engine.live_stats_soon(),
            views: self.view_stats(),
            cache: self.cache().stats(self.session()),
            prefetch: self.session().prefetcher().stats(),
        }
    }

    /// Returns the process that has this database open for writing, or `None` if there is none. Takes no lock, and so
    /// keeps no process from opening it.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn lock_holder(&self) -> Result<Option<LockHolder>> {
        Ok(self.inner().lock_holder()?)
    }

    /// Returns sizes on disk, and the [`metrics`](Self::metrics).
    ///
    /// The number of fragments per list needs a read of all lists: see
    /// [`View::fragment_statistics`](crate::View::fragment_statistics).
    ///
    /// Cost: visits every page of the vertex table.
    pub fn stats(&self) -> Stats {
        Stats { storage: self.inner().stats(), metrics: self.metrics() }
    }
}
