//! Where the rows of lists begin: the repetition levels of pages.
//!
//! A value of level 0 begins a row, one of level 1 goes on with it. A page need not say how many rows begin in it, so
//! the levels are counted once for a column of which parts are read.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::guard::{Result, SHORT, take, varint};

/// A page that begins with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageStart {
    /// The position of its header in the file.
    pub(super) position: u64,
    /// The first row, in its row group.
    pub(super) first_row: u64,
}

/// Pages by row group and column.
type StartsOfChunks = HashMap<(usize, usize), Arc<[PageStart]>>;

/// The pages of columns of lists.
#[derive(Debug, Default)]
pub(super) struct ListPages(Mutex<StartsOfChunks>);

impl ListPages {
    /// The pages of a column in a row group. Finds them once.
    ///
    /// # Errors
    /// Those of `find`.
    pub(super) fn of<E>(
        &self,
        chunk: (usize, usize),
        find: impl FnOnce() -> std::result::Result<Vec<PageStart>, E>,
    ) -> std::result::Result<Arc<[PageStart]>, E> {
        // Threads that need the same pages wait for them.
        let mut known = self.0.lock();
        if let Some(starts) = known.get(&chunk) {
            return Ok(Arc::clone(starts));
        }
        let starts: Arc<[PageStart]> = find()?.into();
        known.insert(chunk, Arc::clone(&starts));
        Ok(starts)
    }
}

/// The rows that begin in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowsBegun {
    pub(super) num_rows: u64,
    /// Whether the first value begins one.
    pub(super) is_at_first: bool,
}

/// Counts the rows that begin in a page by its repetition levels, which are one bit wide.
///
/// # Errors
/// There are too few levels.
pub(super) fn rows_begun(mut levels: &[u8], num_values: u32) -> Result<RowsBegun> {
    let mut rows = RowsBegun { num_rows: 0, is_at_first: true };
    let mut num_left = u64::from(num_values);
    while num_left > 0 {
        let is_first = num_left == u64::from(num_values);
        let head = varint(&mut levels)?;
        // Either one level for many values, or a bit for each of eight values a byte.
        let (num_levels, num_ones, first) = if head & 1 == 0 {
            let (len, level) = ((head >> 1).min(num_left), take(&mut levels, 1)?[0] & 1);
            (len, len * u64::from(level), level)
        } else {
            let (len, bytes) = ((head >> 1).saturating_mul(8).min(num_left), take(&mut levels, head >> 1)?);
            let (whole, rest) = bytes.split_at((len / 8) as usize);
            let last = rest.first().map_or(0, |byte| byte & ((1 << (len % 8)) - 1));
            let num_ones: u64 = whole.iter().chain([&last]).map(|byte| u64::from(byte.count_ones())).sum();
            (len, num_ones, bytes.first().map_or(0, |byte| byte & 1))
        };
        if num_levels == 0 {
            return Err(SHORT.into());
        }
        if is_first {
            rows.is_at_first = first == 0;
        }
        rows.num_rows += num_levels - num_ones;
        num_left -= num_levels;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_at_level_zero() {
        let begun = |num_rows, is_at_first| Ok(RowsBegun { num_rows, is_at_first });
        // Five times 0, then three times 1.
        assert_eq!(rows_begun(&[10, 0, 6, 1], 8), begun(5, true));
        // Bits from the lowest: 1, 0, 1, 1, 0, 0, 0, 1, and then 0.
        assert_eq!(rows_begun(&[5, 0b1000_1101, 0b1111_1110], 9), begun(5, false));
        assert_eq!(rows_begun(&[5, 0b1000_1101, 0], 16), begun(12, false));
        assert_eq!(rows_begun(&[], 0), begun(0, true));
        // A run may be longer than the page.
        assert_eq!(rows_begun(&[0xfe, 0xff, 0xff, 0xff, 15, 0], 7), begun(7, true));
        for levels in [&[][..], &[10], &[10, 0], &[0, 1], &[1], &[7, 0, 0]] {
            assert_eq!(rows_begun(levels, 24), Err(SHORT.into()), "{levels:?}");
        }
    }
}
