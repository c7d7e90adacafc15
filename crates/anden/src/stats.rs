//! What a database says of itself.

use crate::{CommitStats, LiveStats, PrefetchStats, StorageStats, ViewStats};

/// What is on disk, what is in memory, and what was done since the database was opened.
///
/// In how many pieces the lists of edges lie, [`View::piece_statistics`](crate::View::piece_statistics) says, which reads
/// them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Sizes of what is on disk.
    pub storage: StorageStats,
    /// What was committed and is in memory only, and what is done about it.
    pub live: LiveStats,
    /// What was committed, what was not and why, and how long it took.
    pub commits: CommitStats,
    /// The views and transactions that are open.
    pub views: ViewStats,
    /// What was read ahead, through this handle and all others of its session.
    pub prefetch: PrefetchStats,
}
