//! Layer 2 of Anden: kernels and queries over any view of a graph.
//!
//! A kernel is a function of a [`Context`], a graph behind the [`anden_graph::Graph`] seam, and parameters. Each kernel has a
//! serial verifier that shares no code with it.
//!
//! Users write their own kernels with [`edge_map`](edge_map()), [`vertex_map`] and [`VertexSubset`]. The module
//! [`mod@edge_map`] shows one.

#![forbid(unsafe_code)]

pub mod bc;
pub mod bfs;
pub mod cdlp;
pub mod closeness;
mod context;
pub mod edge_map;
mod error;
pub mod kcore;
pub mod lcc;
pub mod pagerank;
mod preparation;
pub mod query;
pub mod scc;
mod sources;
pub mod sssp;
pub mod stored;
mod stored_arrays;
mod transposed;
pub mod triangles;
mod vertex_subset;
mod walk;
pub mod wcc;

pub use context::{Context, Medium};
pub use edge_map::{Beamer, EdgeFunctor, EdgeMapOptions, LEAN_BYTES, Policy, edge_map, weighted_edge_map};
pub use error::{Error, Result};
pub use preparation::{PreparationCache, PreparationKey, Preparations};
pub use sources::{SourceChoice, sample};
pub use vertex_subset::{VertexSubset, vertex_filter, vertex_map};
