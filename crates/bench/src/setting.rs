//! What every benchmark is run with.

use std::path::PathBuf;

use base::parallel::Pool;

use crate::gapbs::Gapbs;
use crate::graphs::Origin;
use crate::snapshots::Part;

/// Threads, repetitions, and the other side.
#[derive(Debug)]
pub struct Setting {
    /// The workers of our side.
    pub pool: Pool,
    /// Pairs of runs for comparisons within this process.
    pub num_pairs: usize,
    /// Pairs of runs for comparisons with GAP's programs, which read their graph anew each time.
    pub num_gap_pairs: usize,
    /// GAP's programs, where there are any.
    pub gapbs: Option<Gapbs>,
    /// The one kernel to measure, or all.
    pub kernel: Option<String>,
    /// The parts of `snapshots` to measure; none: all.
    pub parts: Vec<Part>,
    /// A real network of roads, and a social graph, for `transactions`.
    pub roads: Option<PathBuf>,
    pub social: Option<PathBuf>,
    /// The graph.
    pub origin: Origin,
    /// Where files may be written.
    pub scratch: PathBuf,
}
