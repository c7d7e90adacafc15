//! The options of all benchmarks.

use std::path::PathBuf;

use anden_base::parallel::Pool;

use crate::gapbs::Gapbs;
use crate::graphs::Origin;
use crate::snapshots::Part;

/// Threads, repetitions, and the other side.
#[derive(Debug)]
pub struct Setting {
    /// The worker threads of our side.
    pub pool: Pool,
    /// The number of pairs of runs within this process.
    pub num_pairs: usize,
    /// The number of pairs of runs with GAP's programs, which read their graph anew each time.
    pub num_gap_pairs: usize,
    /// GAP's programs, if given.
    pub gapbs: Option<Gapbs>,
    /// The only kernel, side or part to measure; `None` for all.
    pub kernel: Option<String>,
    /// The parts of `snapshots` to measure; empty for all.
    pub parts: Vec<Part>,
    /// Files with a road network and a social graph, for `transactions` and `updates`.
    pub roads: Option<PathBuf>,
    pub social: Option<PathBuf>,
    /// Parquet files of edges, for `load`.
    pub parquet: Vec<PathBuf>,
    /// The graph.
    pub origin: Origin,
    /// The directory for files.
    pub scratch: PathBuf,
}
