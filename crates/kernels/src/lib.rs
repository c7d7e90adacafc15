//! Floor 2 of Anden: algorithms over any view of a graph.
//!
//! Every kernel is a function of a [`Context`], a graph behind the [`graph::Graph`] seam, and its
//! parameters. Beside each stands a verifier that is serial and shares no code with it.

#![forbid(unsafe_code)]

mod context;
mod error;
pub mod pagerank;
pub mod triangles;

pub use context::Context;
pub use error::{Error, Result};
