//! The files of chunks, in Parquet or CSV.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anden_base::size::size;
use anden_graph::property::{PropertyColumn, PropertyType};

use crate::parquet::{ParquetFile, read_column};
use crate::table::read_columns;
use crate::{Error, Result};

/// The largest chunk of CSV, which is read as a whole.
const MAX_CSV_BYTES: u64 = 1 << 30;

/// The format of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkFormat {
    Parquet,
    Csv,
}

/// A column to read.
#[derive(Clone)]
pub(super) struct WantedColumn {
    /// The property group.
    pub(super) group: usize,
    pub(super) name: String,
    /// The type that the YAML states.
    pub(super) property_type: PropertyType,
    /// Whether a column of Parquet must have this type. Keys and weights are converted.
    pub(super) is_exact: bool,
}

/// A column of an open chunk.
pub(super) enum ChunkColumn {
    /// The place of the column in a file.
    Parquet(Arc<ParquetFile>, usize),
    /// The values.
    Csv(Box<PropertyColumn>),
}

impl ChunkColumn {
    pub(super) fn read(&self, rows: &Range<u64>) -> Result<PropertyColumn> {
        match self {
            Self::Parquet(file, place) => read_column(file, *place, rows.clone()),
            Self::Csv(column) => Ok(column.slice(rows.start as usize..rows.end as usize)),
        }
    }
}

/// Columns of one file, which has `num_rows` rows.
pub(super) struct OpenChunk {
    /// In the order in which they were asked for.
    pub(super) columns: Vec<ChunkColumn>,
    pub(super) num_rows: u64,
}

impl ChunkFormat {
    /// The format with this name in the YAML.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        match name {
            "parquet" => Some(Self::Parquet),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }

    /// Opens columns of a file. `num_rows` is the number of rows that it must have, if that is known.
    ///
    /// # Errors
    /// The file cannot be read, lacks a column, or has another number of rows; a column has another type.
    pub(super) fn open(self, path: &Path, wanted: &[&WantedColumn], num_rows: Option<u64>) -> Result<OpenChunk> {
        let chunk = match self {
            Self::Parquet => open_parquet(path, wanted)?,
            Self::Csv => open_csv(path, wanted)?,
        };
        match num_rows {
            Some(expected) if expected != chunk.num_rows => {
                let found = chunk.num_rows;
                let what = format!("expected {expected} rows, as the counts beside the chunks say, found {found}");
                Err(Error::Input { path: path.to_owned(), what })
            }
            _ => Ok(chunk),
        }
    }
}

fn open_file(path: &Path) -> Result<File> {
    Ok(File::open(path).map_err(|e| anden_base::Error::io("open", path, e))?)
}

fn open_parquet(path: &Path, wanted: &[&WantedColumn]) -> Result<OpenChunk> {
    let file = Arc::new(ParquetFile::open(path, open_file(path)?)?);
    let open = |column: &&WantedColumn| {
        let (place, found) = file.column_of(&column.name)?;
        let expected = column.property_type;
        if column.is_exact && expected != found {
            let what = format!("column '{}': expected {expected}, as the YAML says, found {found}", column.name);
            return Err(Error::Input { path: path.to_owned(), what });
        }
        Ok(ChunkColumn::Parquet(Arc::clone(&file), place))
    };
    Ok(OpenChunk { columns: wanted.iter().map(open).collect::<Result<_>>()?, num_rows: file.num_rows() })
}

fn open_csv(path: &Path, wanted: &[&WantedColumn]) -> Result<OpenChunk> {
    let mut bytes = Vec::new();
    let file = open_file(path)?.take(MAX_CSV_BYTES + 1).read_to_end(&mut bytes);
    file.map_err(|e| anden_base::Error::io("read", path, e))?;
    if bytes.len() as u64 > MAX_CSV_BYTES {
        let what = format!("expected a chunk of CSV of at most {}, found a larger one", size(MAX_CSV_BYTES));
        return Err(Error::Input { path: path.to_owned(), what });
    }
    let columns = wanted.iter().map(|column| (column.name.clone(), column.property_type));
    let (columns, num_rows) = read_columns(path, bytes, columns.collect())?;
    Ok(OpenChunk { columns: columns.into_iter().map(|column| ChunkColumn::Csv(Box::new(column))).collect(), num_rows })
}
