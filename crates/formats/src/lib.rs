//! Layer 2 of Anden: readers and writers of graph formats.
//!
//! A [`Source`] reads inputs in parallel. Workers take blocks of bytes in turn, decompressed and cut at line ends, and
//! parse them independently. The caller receives [`EdgeBlock`]s from several threads at once, numbered in input order.
//!
//! Formats are plug-ins: `input_format.rs` has the trait of a reader, `readers.rs` the one table of all readers.
//! `output_format.rs` and `writers.rs` are the same for outputs.
//!
//! # Memory
//! A source holds at most one block of text per thread and one more ([`block_bytes`](SourceOptions::block_bytes) each),
//! plus a decoder. Parsed blocks belong to the caller. Inputs are read, not mapped, so the pages of a file do not count
//! as memory of this process.
//!
//! # Errors
//! A faulty line is reported with file and line. The first fault in the input wins, so errors do not depend on the
//! number of threads.

#![forbid(unsafe_code)]

mod array_text;
mod arrow_file;
mod arrow_input;
mod arrow_layout;
mod blocks;
mod bvgraph;
mod chunk;
mod collector;
mod columns;
mod compression;
mod csv_dialect;
mod document;
mod edge_rows;
mod endings;
mod epoch;
mod error;
mod foreign;
mod format;
pub mod generated;
mod graphar_layout;
mod gzip_members;
mod indexed_edges;
mod input_format;
mod input_keys;
mod json;
mod key;
mod labeled;
mod lines;
mod number;
mod opened;
mod opening;
mod options;
mod outcome;
mod output_folder;
mod output_format;
mod parquet;
mod parquet_parts;
mod part;
mod probe;
mod read_gapbs;
mod readers;
mod serialized;
mod source;
mod spool;
mod stream;
mod table;
mod text_reader;
mod times;
mod union;
mod unlisted;
mod unnamed_columns;
mod update_columns;
mod updates;
mod write;
mod write_arrow;
mod write_elements;
mod write_gapbs;
mod write_graphar;
mod write_graphml;
mod write_mtx;
mod write_parquet;
mod write_values;
mod writers;

use std::path::PathBuf;

use anden_graph::property::PropertyColumn;

pub use array_text::ArrayForm;
pub use arrow_input::ArrowInput;
pub use csv_dialect::CsvDialect;
pub use edge_rows::{NoProperties, WrittenProperties};
pub use endings::require_uncompressed;
pub use epoch::{EpochUnit, StatedType};
pub use error::{Error, Result};
pub use format::Format;
pub use key::{FieldKey, Span};
pub use options::{
    ColumnName, EdgeInput, HeaderRule, InputColumns, KeyKind, LABEL_SEPARATOR, LABELS_PROPERTY, LoneKeys, OnError,
    SourceFacts, SourceOptions, SourceSummary, TYPE_PROPERTY, VertexInput, WantedProperties, parse_delimiter,
};
pub use output_folder::{OutputFolder, write_folder};
pub use output_format::{ExportedGraph, KeptParts, OutputContent, OutputMemory, ValueOfVertex};
pub use read_gapbs::read_gapbs;
pub use serialized::SerializedGraph;
pub use source::Source;
pub use update_columns::{LineValue, push_update_column, push_update_name, push_update_value, split_columns};
pub use updates::{LineProperties, NextUpdate, UpdateLine, Updates};
pub use write::{Aside, Output, VertexLines, write_aside, write_csv, write_edge_list, write_file, write_vertices};
pub use write_gapbs::{SerializedWeights, write_gapbs};
pub use write_graphml::write_graphml;
pub use write_mtx::{MatrixRows, matrix_rows, write_mtx};
pub use write_parquet::{WrittenKeys, parquet_worker_bytes, write_parquet_edges, write_parquet_vertices};
pub use write_values::{ValueColumn, ValueKind, VertexValue};
pub use writers::ExportFormat;

pub(crate) use number::push_u64;
pub use number::{parse_weight, weight_range};

/// Edges parsed from one block of an input, in input order.
#[derive(Clone, Debug)]
pub struct EdgeBlock<K, W> {
    /// The number of blocks before this one, over all inputs.
    pub sequence: u64,
    /// Sources and targets.
    pub edges: Vec<(K, K)>,
    /// A weight for each edge; empty if weights were not requested.
    pub weights: Vec<W>,
    /// Vertices that the input names without an edge.
    pub vertices: Vec<K>,
    /// Properties of the edges: a column for each of [`SourceFacts::edge_properties`], with a row for each edge.
    pub properties: Vec<PropertyColumn>,
    /// Properties of `vertices`: a column for each of [`SourceFacts::vertex_properties`], with a row for each vertex.
    /// No columns if the block's input has no such properties.
    pub vertex_properties: Vec<PropertyColumn>,
    /// The bytes that [`Span`]s refer to; empty for integer keys. The bytes within a span are UTF-8.
    pub text: Vec<u8>,
}

/// The origin of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputPath {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// Rows in memory.
    Arrow(ArrowInput),
}

/// `-` is standard input, as on the command line.
impl From<PathBuf> for InputPath {
    fn from(path: PathBuf) -> Self {
        if path == Self::Stdin.path() { Self::Stdin } else { Self::File(path) }
    }
}

impl InputPath {
    /// The path, for messages and for format detection. Standard input is `-`; rows in memory have a name.
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::File(path) => path,
            Self::Stdin => "-".as_ref(),
            Self::Arrow(rows) => rows.name(),
        }
    }
}
