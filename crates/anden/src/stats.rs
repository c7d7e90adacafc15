//! What a database says of itself.

use crate::{LiveStats, StorageStats, ViewStats};

/// What is on disk, what is in memory, and what was done since the database was opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Sizes of what is on disk.
    pub storage: StorageStats,
    /// What was committed and is in memory only, and what is done about it.
    pub live: LiveStats,
    /// The views that are open.
    pub views: ViewStats,
}
