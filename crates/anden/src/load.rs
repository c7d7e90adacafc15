//! Input files of [`Database::load`](crate::Database::load), [`append_files`](crate::Database::append_files) and
//! [`apply_file`](crate::Database::apply_file): their formats, and how their columns are read.
//!
//! [`LoadOptions`] chooses the graph, its [`SourceOptions`] how files are read. [`LoadReport`] says what was read.

pub use anden_engine::{Duplicates, IdOrder, InputReport, LoadOptions, LoadReport, SnapshotBy, SnapshotPeriod, Spread};
/// A fault of an input: the file, the line and what was expected. It is the [source](std::error::Error::source) of
/// [`Error::InvalidInput`](crate::Error::InvalidInput).
pub use anden_formats::Error as InputError;
pub use anden_formats::{
    ArrowInput, ColumnName, EdgeInput, EpochUnit, Format, HeaderRule, InputColumns, InputPath, KeyKind, OnError,
    SourceOptions, StatedType, VertexInput, WantedProperties, parse_delimiter,
};
