//! Apache Parquet, read by the `parquet` crate.
//!
//! Threads take pieces of rows in turn and read only the wanted columns of each piece. The crate decodes values; this
//! module chooses columns, gives values their meaning, and guards the crate against hostile files: see `guard` and
//! `pages`. Memory follows the rows of a piece, not the counts that a file claims.
//!
//! Supported: every encoding, every codec of the format except LZO, and columns with a value or a list of values per
//! row. These columns may lie in structures, and points join their names. Maps, lists of lists and lists of structures
//! are skipped. Encrypted files are refused.

mod column;
mod guard;
mod layout;
mod levels;
mod lists;
mod pages;
mod property;
mod rows;
mod schema;

use std::fs::{File, Metadata};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::file::metadata::{ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy};

use self::levels::ListPages;
use self::schema::{ParquetLeaf, RowGroup};
use crate::{Error, Result};
use anden_base::message::{list_of, shown};
use anden_base::storage::{FileIdentity, FileStamp};
use anden_graph::property::PropertyType;

pub(crate) use self::layout::RowLayout;
pub(crate) use self::rows::{bytes_of, read_column, read_rows};

/// The first and the last bytes of a file.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";
/// The largest number of rows per byte of a key column, and a number of rows that needs no bytes.
const ROWS_PER_BYTE: u64 = 16 << 10;
const FREE_ROWS: u64 = 1 << 20;

/// A file with its footer.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    path: PathBuf,
    bytes: ParquetBytes,
    leaves: Vec<ParquetLeaf>,
    groups: Vec<RowGroup>,
    list_pages: ListPages,
}

/// The place of the bytes of a file.
#[derive(Debug)]
enum ParquetBytes {
    /// At the path, which each read opens again: a table may have more parts than a process may have open files. The
    /// stamp tells whether the path still leads to the file whose footer was read.
    Named(FileStamp),
    /// In a copy without a name.
    Unnamed(Arc<File>),
}

fn stamp_of(metadata: &Metadata) -> FileStamp {
    let modified = [metadata.mtime() as u64, metadata.mtime_nsec() as u64];
    // The time of a change of names does not count: a file may be renamed or linked meanwhile.
    let mark = [metadata.len(), modified[0], modified[1], 0, 0];
    FileStamp::new(FileIdentity::new(metadata.dev(), metadata.ino()), mark)
}

/// Consecutive rows of a row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowRange {
    group: usize,
    rows: Range<u64>,
}

impl RowRange {
    /// The number of rows.
    pub(crate) fn len(&self) -> u64 {
        self.rows.end - self.rows.start
    }
}

impl ParquetFile {
    /// Reads the footer of an open file, or of an open copy of it.
    ///
    /// # Errors
    /// The file cannot be read, is not a Parquet file, is encrypted, or its footer is damaged.
    pub(crate) fn open(path: &Path, file: File) -> Result<Self> {
        let io = |e| Error::from(anden_base::Error::io("read", path, e));
        let bad = |what: String| Error::Input { path: path.to_owned(), what };
        let metadata = file.metadata().map_err(io)?;
        let (stamp, len) = (stamp_of(&metadata), metadata.len());
        let mut tail = [0; 8];
        // Two magic numbers and the length of the footer take 12 bytes.
        if len < 12 {
            return Err(bad(format!("expected a Parquet file, found {len} bytes")));
        }
        file.read_exact_at(&mut tail, len - 8).map_err(io)?;
        match &tail[4..] {
            b"PAR1" => {}
            b"PARE" => return Err(bad("the Parquet file is encrypted, which is not read".into())),
            _ => return Err(bad("expected a Parquet file, which ends in PAR1: the file is cut, or another".into())),
        }
        let num_bytes = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        // Checked before this number sizes an allocation.
        if num_bytes > len - 12 {
            return Err(bad(format!("the footer claims {num_bytes} bytes of a file of {len}")));
        }
        let mut bytes = vec![0; num_bytes as usize];
        file.read_exact_at(&mut bytes, len - 8 - num_bytes).map_err(io)?;
        let read = || {
            guard::check_footer(&bytes)?;
            let skip = || ParquetStatisticsPolicy::SkipAll;
            let options = ParquetMetaDataOptions::new().with_column_stats_policy(skip());
            let options = options.with_size_stats_policy(skip()).with_encoding_stats_policy(skip());
            let read = || ParquetMetaDataReader::decode_metadata_with_options(&bytes, Some(&options));
            let metadata = guard::guarded(read)?;
            let groups = schema::groups_of(&metadata, len - 8 - num_bytes)?;
            Ok((schema::leaves_of(&metadata), groups))
        };
        let footer = read().map_err(|what: String| bad(format!("the footer is damaged: {what}")));
        let (leaves, groups) = footer?;
        let is_named = std::fs::metadata(path).is_ok_and(|metadata| stamp_of(&metadata) == stamp);
        let bytes = if is_named { ParquetBytes::Named(stamp) } else { ParquetBytes::Unnamed(file.into()) };
        Ok(Self { path: path.to_owned(), bytes, leaves, groups, list_pages: ListPages::default() })
    }

    /// Opens the bytes of the file.
    ///
    /// # Errors
    /// The path cannot be opened, or the file was changed.
    fn bytes(&self) -> Result<Arc<File>> {
        let stamp = match &self.bytes {
            ParquetBytes::Named(stamp) => stamp,
            ParquetBytes::Unnamed(copy) => return Ok(Arc::clone(copy)),
        };
        let io = |e| Error::from(anden_base::Error::io("open", &self.path, e));
        let file = File::open(&self.path).map_err(io)?;
        match stamp_of(&file.metadata().map_err(io)?) == *stamp {
            true => Ok(file.into()),
            false => Err(Error::Input { path: self.path.clone(), what: "the file was changed during the read".into() }),
        }
    }

    /// Whether the first bytes of a file look like Parquet.
    pub(crate) fn is_likely(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    /// Returns about `about` rows after a range; `None` after the last row.
    pub(crate) fn next_rows(&self, last: Option<&RowRange>, about: u64) -> Option<RowRange> {
        let (mut group, start) = match last {
            None => (0, 0),
            Some(last) if last.rows.end < self.groups[last.group].num_rows => (last.group, last.rows.end),
            Some(last) => (last.group + 1, 0),
        };
        while self.groups.get(group)?.num_rows == 0 {
            group += 1;
        }
        let num_rows = self.groups[group].num_rows;
        // Pages at a border are read for both sides, so only a large row group is cut.
        let len = if num_rows <= 2 * about { num_rows } else { about };
        Some(RowRange { group, rows: start..num_rows.min(start + len.max(1)) })
    }

    /// The number of rows of all groups.
    pub(crate) fn num_rows(&self) -> u64 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.num_rows))
    }

    /// The column with this name and a value or a list of values a row, and the type that it has as a property.
    ///
    /// # Errors
    /// There is none, or it claims more rows than its bytes can hold.
    pub(crate) fn column_of(&self, name: &str) -> Result<(usize, PropertyType)> {
        let is_column = |leaf: &ParquetLeaf| leaf.name == name && leaf.is_readable();
        let Some(place) = self.leaves.iter().position(is_column) else {
            let found = list_of(self.names().into_iter().map(|name| shown(name.as_bytes())));
            let what = format!("expected the column {}, found {found}", shown(name.as_bytes()));
            return Err(Error::Input { path: self.path.clone(), what });
        };
        self.check_rows(place)?;
        Ok((place, self.leaves[place].property_type()))
    }

    /// Rows of the file, group by group.
    fn ranges_of(&self, rows: Range<u64>) -> Vec<RowRange> {
        let (mut ranges, mut first) = (Vec::new(), 0);
        for (group, RowGroup { num_rows, .. }) in self.groups.iter().enumerate() {
            let within = rows.start.max(first)..rows.end.min(first + num_rows);
            if !within.is_empty() {
                ranges.push(RowRange { group, rows: within.start - first..within.end - first });
            }
            first += num_rows;
        }
        ranges
    }

    /// Refuses row groups with more rows than their bytes can hold, so that a small file cannot cause endless work.
    fn check_rows(&self, column: usize) -> Result<()> {
        let is_lie = |group: &RowGroup| {
            let most = group.chunks[column].num_bytes.saturating_mul(ROWS_PER_BYTE).saturating_add(FREE_ROWS);
            group.num_rows > most
        };
        match self.groups.iter().position(is_lie) {
            None => Ok(()),
            Some(group) => {
                let RowGroup { num_rows, chunks } = &self.groups[group];
                let what = format!(
                    "row group {group} claims {num_rows} rows, which {} bytes of column '{}' do not bear out",
                    chunks[column].num_bytes, self.leaves[column].name
                );
                Err(Error::Input { path: self.path.clone(), what })
            }
        }
    }

    fn in_column(&self, place: usize, what: String) -> Error {
        let name = shown(self.leaves[place].name.as_bytes());
        Error::Input { path: self.path.clone(), what: format!("column {name}: {what}") }
    }

    fn in_group(&self, place: usize, group: usize, what: String) -> Error {
        self.in_column(place, format!("row group {group}: {what}"))
    }
}
