//! Apache Parquet: columns in row groups.
//!
//! A file is read by pieces of rows, which threads take in turn; of a piece, only the columns that are
//! wanted are read. Nothing in a file is believed before it was held against the length of the file,
//! and memory follows the rows of a piece, not what counts claim; see `column` and `page`.
//!
//! Read: every encoding and every codec of the format but LZO and Brotli, and columns with at most
//! one value a row, in structures as well (their names are joined by points). Columns of lists and maps
//! are passed over. Encrypted files are refused.
//!
//! The reader is our own. It hands out keys without a copy of a text for each row, keeps a hostile file
//! from sizing memory, and takes a few seconds to build; the usual crate builds about a minute, and
//! trusts sizes that a page claims.
//!
//! # Source
//! The format's description, parquet-format 2.11.

mod column;
pub(super) mod encode;
mod footer;
mod layout;
mod packed;
mod page;
mod property;
mod rows;
mod texts;
mod thrift;

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use self::footer::{Footer, Leaf, RowGroup};
use crate::{Error, Result};

pub(super) use self::layout::RowLayout;
pub(super) use self::rows::{bytes_of, read_rows};

/// What a file begins and ends with.
pub(super) const MAGIC: &[u8; 4] = b"PAR1";
/// Rows that a byte of a key column may stand for, and rows that need no bytes.
const ROWS_PER_BYTE: u64 = 16 << 10;
const FREE_ROWS: u64 = 1 << 20;

/// An open file, its footer read.
#[derive(Debug)]
pub(super) struct ParquetFile {
    path: PathBuf,
    file: File,
    footer: Footer,
}

/// Consecutive rows of a row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowRange {
    group: usize,
    rows: Range<u64>,
}

impl RowRange {
    /// The number of rows.
    pub(super) fn len(&self) -> u64 {
        self.rows.end - self.rows.start
    }
}

impl ParquetFile {
    /// Reads the footer.
    ///
    /// # Errors
    /// The file cannot be read, is none of Parquet, is encrypted, or its footer is damaged.
    pub(super) fn open(path: &Path, file: File) -> Result<Self> {
        let io = |e| Error::from(base::Error::io("read", path, e));
        let bad = |what: String| Error::Input { path: path.to_owned(), what };
        let len = file.metadata().map_err(io)?.len();
        let mut tail = [0; 8];
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
        if num_bytes > len - 12 {
            return Err(bad(format!("the footer claims {num_bytes} bytes of a file of {len}")));
        }
        let mut bytes = vec![0; num_bytes as usize];
        file.read_exact_at(&mut bytes, len - 8 - num_bytes).map_err(io)?;
        let footer = Footer::parse(&bytes, len - 8 - num_bytes);
        let footer = footer.map_err(|fault| bad(format!("the footer is damaged: {}", fault.what())))?;
        Ok(Self { path: path.to_owned(), file, footer })
    }

    /// Whether the first bytes of a file are those of Parquet.
    pub(super) fn is_likely(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    fn leaves(&self) -> &[Leaf] {
        &self.footer.leaves
    }

    /// The rows after a range, about so many; `None` after the last.
    pub(super) fn next_rows(&self, last: Option<&RowRange>, about: u64) -> Option<RowRange> {
        let (group, start) = match last {
            None => (0, 0),
            Some(last) if last.rows.end < self.footer.groups[last.group].num_rows => (last.group, last.rows.end),
            Some(last) => (last.group + 1, 0),
        };
        let num_rows = self.footer.groups.get(group)?.num_rows;
        // Pages at a border are read for both sides: a row group is cut only if it is large.
        let len = if num_rows <= 2 * about { num_rows } else { about };
        Some(RowRange { group, rows: start..num_rows.min(start + len.max(1)) })
    }

    /// Refuses row groups that have more rows than a file of their size can have, so that a few bytes
    /// do not become work without end.
    fn check_rows(&self, column: usize) -> Result<()> {
        let is_lie = |group: &RowGroup| {
            let most = group.chunks[column].num_bytes.saturating_mul(ROWS_PER_BYTE).saturating_add(FREE_ROWS);
            group.num_rows > most
        };
        match self.footer.groups.iter().position(is_lie) {
            None => Ok(()),
            Some(group) => {
                let RowGroup { num_rows, chunks } = &self.footer.groups[group];
                let what = format!(
                    "row group {group} claims {num_rows} rows, which {} bytes of column '{}' do not bear out",
                    chunks[column].num_bytes,
                    self.leaves()[column].name
                );
                Err(Error::Input { path: self.path.clone(), what })
            }
        }
    }
}
