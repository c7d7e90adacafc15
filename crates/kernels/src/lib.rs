//! Floor 2 of Anden: algorithms over any view of a graph.
//!
//! Every kernel is a function of a [`Context`], a graph behind the [`graph::Graph`] seam, and its
//! parameters. Beside each stands a verifier that is serial and shares no code with it.
//!
//! Users write kernels of their own with [`edge_map`](edge_map()), [`vertex_map`] and
//! [`VertexSubset`]; the module [`mod@edge_map`] shows one.

#![forbid(unsafe_code)]

pub mod bc;
pub mod bfs;
pub mod cdlp;
mod context;
pub mod edge_map;
mod error;
pub mod kcore;
pub mod lcc;
pub mod pagerank;
pub mod query;
pub mod scc;
pub mod sssp;
mod transposed;
pub mod triangles;
mod vertex_subset;
mod walk;
pub mod wcc;

pub use context::{Context, Medium};
pub use edge_map::{Beamer, EdgeFunctor, EdgeMapOptions, LEAN_BYTES, Policy, edge_map, weighted_edge_map};
pub use error::{Error, Result};
pub use vertex_subset::{VertexSubset, vertex_filter, vertex_map};
