//! Floor 1 of Anden: what a graph is, and where graphs come from.
//!
//! The [`Graph`] trait is the seam between storage and algorithms: kernels see nothing else. Beside
//! it stand the plain [`Csr`] that every measurement is held against, generators of synthetic
//! graphs, and readers and writers of graph formats.

#![forbid(unsafe_code)]

mod csr;
mod csr_file;
mod error;
pub mod formats;
pub mod generate;
pub mod property;
mod seam;
pub mod walk;
mod wanted;
mod weight;

pub use base::{MAX_VERTICES, NO_VERTEX, VertexId};
pub use csr::{Adjacency, Csr, CsrBuilder};
pub use error::{Error, Result};
pub use seam::{
    DensePage, Direction, Graph, InEdges, Page, PageOffset, Parts, Side, SingleFragment, WeightedEdges, WillNeed,
};
pub use wanted::{WantedLists, vertices_of};
pub use weight::{Distance, Weight, WeightType, Weights, prefetch_start};
