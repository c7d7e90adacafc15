//! Floor 0 of Anden: what every other crate stands on.
//!
//! Ids, the storage trait, mapped files, block checksums, bitmaps, SIMD, memory accounting and
//! parallel loops. But for the arena of the live graph, this is the only crate with `unsafe` code;
//! everything it exports is safe.

#![warn(clippy::undocumented_unsafe_blocks)]

pub mod bitmap;
pub mod checksum;
mod error;
mod ids;
pub mod mapped;
pub mod memory;
pub mod parallel;
pub mod process;
pub mod progress;
pub mod simd;
pub mod size;
pub mod standard_input;
pub mod storage;
pub mod table;

pub use error::{Error, Result};
pub use ids::{MAX_VERTICES, NO_VERTEX, VertexId};
