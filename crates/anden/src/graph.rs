//! Graphs: the traits by which algorithms read, a plain CSR, and generators.
//!
//! [`View::graph`](crate::View::graph) gives a stored graph as these traits. A graph of your own needs the trait
//! [`Graph`] and nothing else to run every [kernel](crate::kernel) that reads no weights; those need [`WeightedEdges`].
//!
//! ```
//! use std::ops::{ControlFlow, Range};
//!
//! use anden::graph::{Direction, Graph, GraphKind, Page, VertexId, WillNeed};
//! use anden::kernel::{Context, Pool, wcc};
//!
//! /// A ring: each vertex has an edge to the next one. No in-lists: kernels ask before they read them.
//! struct Ring(Vec<VertexId>);
//!
//! impl WillNeed for Ring {}
//!
//! impl Graph for Ring {
//!     type Offset = u32;
//!
//!     fn vertex_bound(&self) -> usize {
//!         self.0.len()
//!     }
//!     fn num_edges(&self) -> u64 {
//!         self.0.len() as u64
//!     }
//!     fn num_arcs(&self) -> u64 {
//!         self.num_edges()
//!     }
//!     fn graph_kind(&self) -> GraphKind {
//!         GraphKind::Directed
//!     }
//!     fn degree(&self, direction: Direction, _vertex: VertexId) -> usize {
//!         if direction == Direction::Out { 1 } else { 0 }
//!     }
//!     fn for_each_fragment(
//!         &self,
//!         direction: Direction,
//!         vertex: VertexId,
//!         mut body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
//!     ) -> ControlFlow<()> {
//!         match direction {
//!             Direction::Out => body(&self.0[vertex as usize..][..1]),
//!             Direction::In => ControlFlow::Continue(()),
//!         }
//!     }
//!     fn for_each_page(
//!         &self,
//!         direction: Direction,
//!         vertices: Range<VertexId>,
//!         mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
//!     ) -> ControlFlow<()> {
//!         match direction {
//!             Direction::Out => body(Page::Patched(vertices)),
//!             Direction::In => body(Page::Empty(vertices)),
//!         }
//!     }
//! }
//!
//! let ring = Ring(vec![1, 2, 3, 0]);
//! let pool = Pool::new(1)?;
//! let components = wcc::wcc(&Context::new(&pool), &ring, &wcc::WccParams::default())?;
//! assert_eq!(components.labels, [0; 4]);
//! # Ok::<(), anden::Error>(())
//! ```

pub use crate::csr::CsrArrays;
/// Damage in a graph, or a failed read. [`Graph::check`] returns it.
pub use anden_base::Error as ReadError;
pub use anden_base::mapped::MappedSlice;
pub use anden_base::{MAX_VERTICES, NO_VERTEX, VertexId};
pub use anden_engine::TransactionGraph;
pub use anden_graph::{
    Adjacency, Csr, CsrBuilder, DensePage, Direction, Distance, Error, Graph, GraphKind, Page, PageOffset, Parts,
    PrefetchStage, Result, SingleFragment, VertexMask, Weight, WeightType, WeightedEdges, Weights, WillNeed, generate,
    vertices_of, walk,
};
