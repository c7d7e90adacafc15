//! Readers and writers of graph formats.
//!
//! A [`Source`] reads inputs in parallel: workers take blocks of bytes in turn (decompressed, cut at
//! line ends) and parse them independently. The caller receives one [`EdgeBlock`] after the other,
//! numbered in input order, from several threads at once.

mod serialized;

use std::path::PathBuf;

pub use serialized::{SerializedGraph, Side};

/// How a key stands in an [`EdgeBlock`].
pub trait FieldKey: Copy + Send + Sync + 'static {}

/// A place in [`EdgeBlock::text`]: a string key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The number of bytes.
    pub len: u32,
}

impl FieldKey for u64 {}
impl FieldKey for Span {}

/// Edges parsed from one block of an input, in input order.
#[derive(Clone, Debug)]
pub struct EdgeBlock<K, W> {
    /// The number of blocks before this one, over all inputs.
    pub sequence: u64,
    /// Sources and targets.
    pub edges: Vec<(K, K)>,
    /// A weight for each edge; empty where weights were not asked for.
    pub weights: Vec<W>,
    /// Vertices that are named without an edge.
    pub vertices: Vec<K>,
    /// The bytes that [`Span`]s lie in; empty for integer keys.
    pub text: Vec<u8>,
}

/// Where bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputPath {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}
