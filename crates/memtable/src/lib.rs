//! The container of the memtable.
//!
//! A [`Terrace`] holds sorted adjacency lists that change in batches. Readers hold [`Version`]s of it, which never
//! change. A list lives in one of three tiers by its length: the 64-byte inline block of its vertex, packed arrays,
//! or a B-tree.
//!
//! # Source
//! Tiers: Pandey, Wheatman, Xu, Buluç, *Terrace*, SIGMOD 2021, section 3. Three things differ here:
//! - No packed array is shared by several vertices.
//! - Versions share nodes, and each node is written once.
//! - Batches are cut at page borders and applied without locks.
//!
//! ```
//! use anden_memtable::{Addition, Options, AdjacencyTable, Space, Terrace};
//! use anden_base::parallel::Pool;
//! use anden_graph::Graph;
//!
//! let pool = Pool::new(1)?;
//! let mut terrace = Terrace::<()>::new(&Options::default())?;
//! terrace.grow(10)?;
//! let reader = terrace.reader();
//! let before = reader.pin();
//! let mut space = Space::default();
//! terrace.apply(&pool, AdjacencyTable::Out, &[Addition { source: 3, target: 7 }], &mut space)?;
//! terrace.publish();
//! assert_eq!((before.num_edges(), reader.pin().num_edges()), (0, 1));
//! # Ok::<(), anden_memtable::Error>(())
//! ```

#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod arena;
mod batch;
mod builder;
mod change;
mod contexts;
mod directory;
mod error;
mod fragments;
mod limbo_list;
mod list;
mod merge;
mod node;
mod options;
mod overlay;
mod pins;
mod sort;
mod stale;
mod state;
mod terrace;
mod value;
mod version;

/// Atomics of `pins` and `arena::newest`. A model checker replaces this module.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

pub use arena::reservable_bytes;
pub use change::{Addition, AppliedArcs, Change, Edges, EntryUpdate, Op, Removal};
pub use error::{Error, Result};
pub use options::Options;
pub use overlay::{Base, Differences, Search, TransposedChanges, differences};
pub use sort::Space;
pub use state::AdjacencyTable;
pub use terrace::{Memory, Terrace};
pub use value::EntryValue;
pub use version::{Lists, ListsOfGroup, Reader, Version};
