//! Layer 1 of Anden: the graph traits, a plain CSR, generators and property values.
//!
//! The [`Graph`] trait is the seam between storage and algorithms: kernels read a graph only through this trait and its
//! extensions. The plain [`Csr`] is the graph that every measurement compares with.

#![forbid(unsafe_code)]

mod csr;
mod csr_file;
mod error;
pub mod generate;
pub mod property;
mod seam;
mod stored_form;
mod vertex_mask;
pub mod walk;
mod weight;

pub use anden_base::{MAX_VERTICES, NO_VERTEX, VertexId};
pub use csr::{Adjacency, Csr, CsrBuilder};
pub use error::{Error, Result};
pub use seam::{
    DensePage, Direction, Graph, GraphKind, Page, PageOffset, Parts, PrefetchStage, SingleFragment, WeightedEdges,
    WillNeed,
};
pub use stored_form::{FormArrays, StoredForm, StoredFormKey, StoredFormReader};
pub use vertex_mask::{VertexMask, vertices_of};
pub use weight::{Distance, Weight, WeightType, Weights, prefetch_start};

/// The separator between a key space and a key, as in `person:7`.
pub const SPACE_SEPARATOR: char = ':';
