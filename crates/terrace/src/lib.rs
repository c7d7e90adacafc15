//! Floor 2 of Anden: the live graph, in memory.
//!
//! A [`Terrace`] holds sorted adjacency lists that change in batches while readers hold [`Version`]s of
//! it, which never change. A list lives in one of three homes, by its length: in the 64-byte block of its
//! vertex, packed in segments, or in a B-tree.
//!
//! # Source
//! The homes: Pandey, Wheatman, Xu, Buluç, *Terrace*, SIGMOD 2021, section 3. Ours differs in that no
//! packed array is shared by several vertices, that nodes are versioned by sharing (every node is written
//! once), and that batches are cut at pages of vertices, so they are applied without locks.
//!
//! ```
//! use anden_terrace::{Addition, Options, Plane, Space, Terrace};
//! use base::parallel::Pool;
//! use graph::Graph;
//!
//! let pool = Pool::new(1)?;
//! let mut terrace = Terrace::<()>::new(&Options::default())?;
//! terrace.grow(10)?;
//! let reader = terrace.reader();
//! let before = reader.pin();
//! let mut space = Space::default();
//! terrace.apply(&pool, Plane::Out, &[Addition { source: 3, target: 7 }], &mut space)?;
//! terrace.publish();
//! assert_eq!((before.num_edges(), reader.pin().num_edges()), (0, 1));
//! # Ok::<(), anden_terrace::Error>(())
//! ```

#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod arena;
mod batch;
mod builder;
mod change;
mod crew;
mod directory;
mod error;
mod graveyard;
mod list;
mod merge;
mod node;
mod options;
mod overlay;
mod pieces;
mod pins;
mod sort;
mod stale;
mod state;
mod terrace;
mod value;
mod version;

/// What `pins` is made of; a model checker puts its own in place.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

pub use change::{Addition, Applied, Change, Edges, Fate, Removal, Update};
pub use error::{Error, Result};
pub use options::Options;
pub use overlay::{Base, Differences, Mirror, Search, differences};
pub use state::Plane;
pub use terrace::{Memory, Space, Terrace};
pub use value::Value;
pub use version::{Lists, ListsOfGroup, Reader, Version};
