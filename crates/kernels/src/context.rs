//! What a kernel works with beside the graph.

use base::VertexId;
use base::parallel::Pool;
use base::progress::{Progress, Silent};
use graph::{Graph, WillNeed};

use crate::{Error, Result};

/// Where lists are read from, for which a kernel chooses its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// From where they are: a disk where the graph is larger than memory, that is, where somebody
    /// [listens](graph::WillNeed::is_listening).
    #[default]
    Auto,
    /// From memory: any list at any time, and copies of the graph where these are faster.
    Memory,
    /// From a disk: all lists in the order in which they are stored, and no copies.
    Disk,
}

impl Medium {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Memory, Self::Disk];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }
}

/// The workers, the watcher and the memory budget of a kernel.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The workers.
    pub pool: &'a Pool,
    /// Who watches, and may cancel.
    pub progress: &'a dyn Progress,
    /// The most heap bytes that the kernel may use at once, its result included; `None`: no limit.
    pub memory: Option<u64>,
    /// Where the lists are read from.
    pub medium: Medium,
}

impl<'a> Context<'a> {
    /// Nobody watches, and memory has no limit.
    pub fn new(pool: &'a Pool) -> Self {
        Self { pool, progress: &Silent, memory: None, medium: Medium::Auto }
    }

    /// Whether a kernel is to take the way that suits a disk.
    pub fn reads_from_disk(&self, graph: &impl WillNeed) -> bool {
        match self.medium {
            Medium::Auto => graph.is_listening(),
            Medium::Memory => false,
            Medium::Disk => true,
        }
    }

    /// Whether the budget allows `num_bytes` at once.
    pub fn allows(&self, num_bytes: u64) -> bool {
        self.memory.is_none_or(|limit| num_bytes <= limit)
    }

    /// Refuses a kernel that needs more than the budget.
    ///
    /// # Errors
    /// [`Error::Memory`] if `needed` bytes are too many.
    pub fn require_memory(&self, kernel: &'static str, needed: u64) -> Result<()> {
        match self.memory {
            Some(budget) if needed > budget => Err(Error::Memory { kernel, needed, budget }),
            _ => Ok(()),
        }
    }

    /// Whether a kernel must work with less memory than is fastest.
    ///
    /// # Errors
    /// [`Error::Memory`] if the budget is less than `least`, the fewest bytes that it can do with.
    pub(crate) fn must_save(&self, kernel: &'static str, wanted: u64, least: u64) -> Result<bool> {
        self.require_memory(kernel, least)?;
        Ok(!self.allows(wanted))
    }
}

/// Bytes that a kernel may hold whatever the size of the graph: tables of its workers, samples.
pub(crate) const FIXED_BYTES: u64 = 1 << 16;

/// `bytes_a_vertex` for each vertex of the graph, and what does not depend on it.
pub(crate) fn bytes_for(graph: &impl Graph, bytes_a_vertex: u64) -> u64 {
    bytes_a_vertex * graph.vertex_bound() as u64 + FIXED_BYTES
}

/// Refuses a vertex that is not in the graph.
pub(crate) fn require_vertex(graph: &impl Graph, vertex: VertexId) -> Result<()> {
    if graph.has_vertex(vertex) { Ok(()) } else { Err(Error::NoVertex { vertex, bound: graph.vertex_bound() }) }
}
