//! The context of a kernel: workers, progress and memory budget.

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::{Progress, Silent};
use anden_graph::{Graph, WillNeed};

use crate::{Error, Preparations, Result};

/// The medium of the adjacency lists. A kernel chooses its algorithm by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// The kernel decides. Most take their variant for a disk if a prefetcher is
    /// [attached](anden_graph::WillNeed::is_listening), that is, if the graph is larger than memory.
    #[default]
    Auto,
    /// Memory: kernels read lists in any order, and copy the graph where a copy is faster.
    Memory,
    /// Disk: kernels read all lists in stored order, and make no copies.
    Disk,
}

impl Medium {
    /// Every medium.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Memory, Self::Disk];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }
}

/// Workers, progress and memory budget of one kernel run.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The thread pool.
    pub pool: &'a Pool,
    /// Receives progress reports, and may cancel the work.
    pub progress: &'a dyn Progress,
    /// The most heap bytes that the kernel may hold at once, its result included; `None` is no limit.
    pub memory: Option<u64>,
    /// The medium of the adjacency lists.
    pub medium: Medium,
    /// Keeps what kernels prepare from one graph; `None`: each run prepares anew.
    pub preparations: Option<Preparations<'a>>,
}

impl<'a> Context<'a> {
    /// A context without progress reports, without a memory limit and without kept preparation.
    pub fn new(pool: &'a Pool) -> Self {
        Self { pool, progress: &Silent, memory: None, medium: Medium::Auto, preparations: None }
    }

    /// Whether a kernel takes its variant for a disk.
    pub fn reads_from_disk(&self, graph: &impl WillNeed) -> bool {
        match self.medium {
            Medium::Auto => graph.is_listening(),
            Medium::Memory => false,
            Medium::Disk => true,
        }
    }

    /// Whether the budget allows `num_bytes` at once. If so, the cache of preparations leaves room for them.
    pub fn allows(&self, num_bytes: u64) -> bool {
        let is_allowed = self.memory.is_none_or(|limit| num_bytes <= limit);
        if is_allowed {
            self.make_room(num_bytes);
        }
        is_allowed
    }

    /// Shrinks the cache of preparations until the budget has room for `num_bytes` beside it, or until it is empty.
    pub(crate) fn make_room(&self, num_bytes: u64) {
        if let (Some(limit), Some(kept)) = (self.memory, &self.preparations) {
            kept.shrink(limit.saturating_sub(num_bytes));
        }
    }

    /// Checks that the budget covers `needed` bytes.
    ///
    /// # Errors
    /// [`Error::Memory`] if the budget is below `needed`.
    pub fn require_memory(&self, kernel: &'static str, needed: u64) -> Result<()> {
        match self.memory {
            Some(budget) if !self.allows(needed) => Err(Error::Memory { kernel, needed, budget }),
            _ => Ok(()),
        }
    }

    /// Whether a kernel must take its variant that saves memory: the budget is below `wanted` bytes.
    ///
    /// # Errors
    /// [`Error::Memory`] if the budget is below `least`, the bytes of the saving variant.
    pub(crate) fn must_save(&self, kernel: &'static str, wanted: u64, least: u64) -> Result<bool> {
        self.require_memory(kernel, least)?;
        Ok(!self.allows(wanted))
    }
}

/// Bytes that a kernel may hold at any size of graph: tables of its workers, samples.
pub(crate) const FIXED_BYTES: u64 = 1 << 16;

/// `bytes_a_vertex` for each vertex of the graph, plus [`FIXED_BYTES`].
pub(crate) fn bytes_for(graph: &impl Graph, bytes_a_vertex: u64) -> u64 {
    bytes_a_vertex * graph.vertex_bound() as u64 + FIXED_BYTES
}

/// Checks that the graph contains a vertex.
pub(crate) fn require_vertex(graph: &impl Graph, vertex: VertexId) -> Result<()> {
    if graph.has_vertex(vertex) { Ok(()) } else { Err(Error::NoVertex { vertex, bound: graph.vertex_bound() }) }
}
