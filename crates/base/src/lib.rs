//! The base of all other crates of Anden.
//!
//! Vertex ids, the storage trait, mapped files, block checksums, bitmaps, SIMD, random numbers, memory accounting and parallel loops.
//! Only this crate and the arena of the memtable have `unsafe` code. All exported functions are safe.

#![warn(clippy::undocumented_unsafe_blocks)]

pub mod bitmap;
pub mod checksum;
mod error;
mod holder;
mod ids;
pub mod mapped;
pub mod memory;
pub mod message;
pub mod parallel;
pub mod process;
pub mod progress;
pub mod random;
pub mod simd;
pub mod size;
pub mod standard_input;
pub mod storage;
pub mod table;

pub use error::{Error, Result};
pub use ids::{MAX_VERTICES, NO_VERTEX, VertexId};
