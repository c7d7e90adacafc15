//! CRC32C for each block of a file, verified when a block is first touched.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::bitmap::AtomicBitmap;
use crate::mapped::{FileBytes, MappedSlice};
use crate::{Error, Result};

/// Number of bytes that one checksum covers.
pub const BLOCK_BYTES: usize = 4096;

/// CRC32C (Castagnoli) of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// CRC32C of the bytes that `crc` covers, followed by `bytes`.
///
/// Always 0 in a build for fuzzing: a fuzzer cannot guess checksums, and would never reach the code behind them.
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    if cfg!(fuzzing) { 0 } else { crc32c::crc32c_append(crc, bytes) }
}

/// Checksums of the blocks of `bytes`. The last block may be short.
pub fn block_checksums(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks(BLOCK_BYTES).map(crc32c)
}

/// A part of a file with a checksum for each block, and a record of the verified blocks.
///
/// A process verifies a block once, or a few times if threads race.
#[derive(Debug)]
pub struct CheckedBytes {
    bytes: FileBytes,
    checksums: MappedSlice<u32>,
    verified: AtomicBitmap,
    path: PathBuf,
    file_offset: u64,
}

impl CheckedBytes {
    /// Joins `bytes`, found at `file_offset` of `path`, with a checksum for each of its blocks.
    ///
    /// # Errors
    /// The number of checksums is not the number of blocks.
    pub fn new(bytes: FileBytes, checksums: MappedSlice<u32>, path: &Path, file_offset: u64) -> Result<Self> {
        let num_blocks = bytes.len().div_ceil(BLOCK_BYTES);
        if checksums.len() != num_blocks {
            let what = format!("{} checksums for {num_blocks} blocks", checksums.len());
            return Err(Error::corrupt(path, file_offset, what));
        }
        Ok(Self { bytes, checksums, verified: AtomicBitmap::new(num_blocks), path: path.to_owned(), file_offset })
    }

    /// The bytes, verified or not.
    pub fn bytes(&self) -> &FileBytes {
        &self.bytes
    }

    /// The file that holds the bytes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Offset of the bytes in their file.
    pub fn file_offset(&self) -> u64 {
        self.file_offset
    }

    /// Verifies the blocks that `range` (in bytes) touches, except those verified before.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the first bad block, or if the range exceeds the bytes.
    pub fn verify(&self, range: Range<usize>) -> Result<()> {
        if range.end > self.bytes.len() {
            let what = format!("{} bytes expected, {} found", range.end, self.bytes.len());
            return Err(Error::corrupt(&self.path, self.file_offset, what));
        }
        if range.is_empty() {
            return Ok(());
        }
        // Whole blocks, because a checksum covers no smaller part.
        for block in range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES) {
            if !self.verified.get(block) {
                self.verify_block(block)?;
                // Set only after the check; threads that race check the block twice.
                self.verified.set(block);
            }
        }
        Ok(())
    }

    fn verify_block(&self, block: usize) -> Result<()> {
        let start = block * BLOCK_BYTES;
        let end = self.bytes.len().min(start + BLOCK_BYTES);
        let found = crc32c(&self.bytes.as_slice()[start..end]);
        let expected = self.checksums[block];
        if found == expected {
            return Ok(());
        }
        let what = format!("checksum {expected:08x} expected, {found:08x} found");
        Err(Error::corrupt(&self.path, self.file_offset + start as u64, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(bytes: &[u8], flip: usize) -> CheckedBytes {
        let checksums: Vec<u32> = block_checksums(bytes).collect();
        let mut damaged = bytes.to_vec();
        damaged[flip] ^= 1;
        CheckedBytes::new(FileBytes::copied(&damaged), MappedSlice::copied(&checksums), "file".as_ref(), 100).unwrap()
    }

    #[test]
    fn damage_is_found_only_where_it_is() {
        let checked = checked(&vec![5; 3 * BLOCK_BYTES + 10], BLOCK_BYTES + 1);
        checked.verify(0..BLOCK_BYTES).unwrap();
        checked.verify(2 * BLOCK_BYTES..3 * BLOCK_BYTES + 10).unwrap();
        let error = checked.verify(BLOCK_BYTES - 1..BLOCK_BYTES + 1).unwrap_err();
        assert!(error.to_string().starts_with("file: damaged at byte 4196: checksum"), "{error}");
    }

    #[test]
    fn a_range_past_the_end_is_refused() {
        let checked = checked(&[5; 10], 0);
        assert!(checked.verify(0..11).is_err());
        assert!(checked.verify(4..4).is_ok());
    }

    #[test]
    fn known_checksum() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c_append(crc32c(b"1234"), b"56789"), 0xe306_9283);
    }
}
