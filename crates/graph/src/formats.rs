//! Readers and writers of graph formats.
//!
//! A [`Source`] reads inputs in parallel: workers take blocks of bytes in turn (decompressed, cut at
//! line ends) and parse them independently. The caller receives one [`EdgeBlock`] after the other,
//! numbered in input order, from several threads at once.
//!
//! # Memory
//! A source holds at most one block of text a thread and one more
//! ([`block_bytes`](SourceOptions::block_bytes) each), beside a decoder; a parsed block belongs to
//! the caller. Inputs are read, not mapped, so pages of a file that was read do not count as memory
//! of this process.
//!
//! # Errors
//! What is wrong in a line is told with file and line, the same at any number of threads: of several
//! faults, the first in the input.

mod blocks;
mod columns;
mod compression;
mod csv;
mod csv_comments;
mod csv_header;
mod csv_rows;
mod detect;
mod dimacs;
mod edge_rows;
mod endings;
mod foreign;
mod graphalytics;
mod graphml;
mod key;
mod labeled;
mod lines;
mod matrix_market;
mod message;
mod metis;
mod number;
mod opening;
mod options;
mod outcome;
mod parquet;
mod part;
mod serialized;
mod serialized_arcs;
mod source;
mod spool;
mod union;
mod unlisted;
mod unnamed_columns;
mod update_columns;
mod updates;
mod write;
mod write_gapbs;
mod write_graphml;
mod write_mtx;
mod write_parquet;
mod write_values;

use std::path::PathBuf;

use crate::property::PropertyColumn;

pub use edge_rows::{NoProperties, WrittenProperties};
pub use endings::{OutputContent, OutputFormat, output_format, require_uncompressed};
pub use key::{FieldKey, Span};
pub use labeled::{EdgeInput, LABEL_SEPARATOR, LABELS_PROPERTY, SPACE_SEPARATOR, TYPE_PROPERTY, VertexInput};
pub use options::{
    ColumnName, Format, HeaderRule, InputColumns, KeyKind, LoneKeys, OnError, SourceFacts, SourceOptions,
    SourceSummary, WantedProperties,
};
pub use serialized::SerializedGraph;
pub use source::Source;
pub use update_columns::{LineValue, push_update_column, push_update_name, push_update_value};
pub use updates::{LineProperties, NextUpdate, UpdateLine, Updates};
pub(crate) use write::OUTPUT_BUFFER_BYTES;
pub use write::{Aside, Output, VertexLines, write_aside, write_csv, write_edge_list, write_file, write_vertices};
pub use write_gapbs::{SerializedWeights, write_gapbs};
pub use write_graphml::write_graphml;
pub use write_mtx::{MatrixRows, matrix_rows, write_mtx};
pub use write_parquet::{WrittenKeys, parquet_worker_bytes, write_parquet_edges, write_parquet_vertices};
pub use write_values::{ValueColumn, ValueKind, VertexValue, write_values};

pub(crate) use message::shown;
pub(crate) use number::push_u64;
pub use number::{parse_weight, weight_range};

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
    /// Properties of the edges: a column for each of [`SourceFacts::edge_properties`], with a row for each
    /// edge.
    pub properties: Vec<PropertyColumn>,
    /// Properties of `vertices`: a column for each of [`SourceFacts::vertex_properties`], with a row
    /// for each; no columns where this block comes from an input that says nothing of properties.
    pub vertex_properties: Vec<PropertyColumn>,
    /// The bytes that [`Span`]s lie in, of which those in a span are UTF-8; empty for integer keys.
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

impl InputPath {
    /// The path, for messages and for telling a format by name; `-` is standard input.
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::File(path) => path,
            Self::Stdin => "-".as_ref(),
        }
    }
}
