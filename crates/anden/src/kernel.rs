//! Kernels: algorithms over a whole graph, and the parts to write one of your own.
//!
//! Each kernel is a module with a function, its parameters, its result and a serial verifier. A kernel takes a
//! [`Context`] and any [graph](crate::graph), also one of your own. [`View::context`](crate::View::context) and
//! [`View::graph`](crate::View::graph) give both for a stored graph.
//!
//! An algorithm of your own visits edges with [`edge_map()`], after Ligra. It writes the function for one edge, and
//! `edge_map` decides between push and pull:
//!
//! ```
//! use anden::graph::VertexId;
//! use anden::kernel::{AtomicBitmap, EdgeFunctor, EdgeMapOptions, VertexSubset, edge_map};
//! use anden::{Database, Options, Update};
//!
//! /// Marks each vertex that an edge leads to.
//! struct Reach(AtomicBitmap);
//!
//! impl EdgeFunctor for Reach {
//!     fn update_atomic(&self, _source: VertexId, target: VertexId, _weight: ()) -> bool {
//!         self.0.set(target as usize) // true for the first worker
//!     }
//!     fn condition(&self, target: VertexId) -> bool {
//!         !self.0.get(target as usize)
//!     }
//! }
//!
//! let db = Database::in_memory(Options::default())?;
//! db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3), Update::add_edge(4, 5)])?;
//! let view = db.view()?;
//! let reach = Reach(AtomicBitmap::new(view.vertex_bound()));
//! let mut frontier = VertexSubset::single(view.vertex_bound(), view.vertex(1)?);
//! while !frontier.is_empty() {
//!     frontier = edge_map(&view.context(), view.graph(), &mut frontier, &reach, &mut EdgeMapOptions::default())?;
//! }
//! assert_eq!(reach.0.into_bitmap().count_ones(), 2);
//! # Ok::<(), anden::Error>(())
//! ```

pub use anden_base::bitmap::{AtomicBitmap, Bitmap};
pub use anden_base::parallel::Pool;
pub use anden_graph::{StoredForm, StoredFormKey, StoredFormReader};
pub use anden_kernels::sssp::Distances;
pub use anden_kernels::{
    Beamer, Context, EdgeFunctor, EdgeMapOptions, Error, LEAN_BYTES, Medium, Policy, PreparationCache, PreparationKey,
    Preparations, Result, SourceChoice, VertexSubset, bc, bfs, cdlp, closeness, edge_map, kcore, lcc, pagerank, query,
    scc, sssp, triangles, vertex_filter, vertex_map, wcc, weighted_edge_map,
};

pub use crate::prepare::{FormReport, PrepareReport};
pub use crate::walk::{Tag, Walk};
