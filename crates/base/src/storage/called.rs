//! The real disk, read by calls.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::disk::{DiskDirectory, ReadMode};
use super::{DiskStorage, Storage};
use crate::mapped::FileBytes;
use crate::memory::{available, available_now};
use crate::size::{size_at_least, size_at_most};
use crate::{Error, Result};

/// Maximum number of bytes that one call reads.
const CALL_BYTES: usize = 1 << 20;
/// A file of this many bytes is small beside the memory of any machine.
const SMALL_BYTES: u64 = 64 << 10;

/// Whether a file is read rather than mapped in any case. A map of a file that another process truncates shows zeros up
/// to the end of its last page, where small files have most of their bytes.
pub(super) fn is_small(file: &File, path: &Path) -> Result<bool> {
    Ok(len_of(file, path)? <= SMALL_BYTES)
}

fn len_of(file: &File, path: &Path) -> Result<u64> {
    Ok(file.metadata().map_err(|e| Error::io("look at", path, e))?.len())
}

/// The file system of the machine. Reads files to memory with `pread` instead of mapping them.
///
/// A failing disk or a truncated file then causes an error with path and offset, where a map would end the process.
/// In return, each file takes memory for all its bytes. A file larger than the free memory is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct CalledStorage;

impl Storage for CalledStorage {
    fn create_dir(&self, path: &Path) -> Result<()> {
        DiskStorage.create_dir(path)
    }

    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(DiskDirectory::open(path, ReadMode::Called)?))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        DiskStorage.exists(path)
    }
}

/// Reads the bytes of an open file by calls.
pub(super) fn read_called(file: &File, path: &Path) -> Result<FileBytes> {
    read_open(file, path, free_for)
}

/// The free memory for a file of `len` bytes. Files read within the last tenth of a second must count, which a cached
/// answer leaves out, but small ones are not worth the reads of a current one.
fn free_for(len: u64) -> u64 {
    if len <= SMALL_BYTES { available() } else { available_now() }
}

fn read_open(file: &File, path: &Path, free_for: impl FnOnce(u64) -> u64) -> Result<FileBytes> {
    let len = len_of(file, path)?;
    let available = free_for(len);
    if len > available {
        let (needed, free) = (size_at_least(len), size_at_most(available));
        let what = format!("reading it without a map takes {needed} of memory, and {free} are free");
        return Err(Error::io("read", path, std::io::Error::new(std::io::ErrorKind::OutOfMemory, what)));
    }
    read_len(file, path, len)
}

/// Reads `len` bytes, the earlier length of the file.
fn read_len(file: &File, path: &Path, len: u64) -> Result<FileBytes> {
    let num_bytes = usize::try_from(len).map_err(|e| Error::io("read", path, std::io::Error::other(e)))?;
    let mut words = crate::memory::zeroed_huge::<u64>(num_bytes.div_ceil(size_of::<u64>()));
    let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..num_bytes];
    // In parts, so that an error names the place in the file.
    for (call, part) in bytes.chunks_mut(CALL_BYTES).enumerate() {
        let offset = (call * CALL_BYTES) as u64;
        file.read_exact_at(part, offset).map_err(|error| {
            let what = format!("{} bytes from byte {offset} on: {error}", part.len());
            Error::io("read", path, std::io::Error::new(error.kind(), what))
        })?;
    }
    let read = FileBytes::owned(words, num_bytes);
    read.ok_or_else(|| Error::io("read", path, std::io::ErrorKind::InvalidData.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_errors_name_file_and_offset() {
        let path = std::env::temp_dir().join(format!("anden-called-{}", std::process::id()));
        let content: Vec<u8> = (0..2 * CALL_BYTES + 5).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        assert_eq!(CalledStorage.read(&path).unwrap().as_slice(), content);
        let file = File::open(&path).unwrap();
        let error = read_open(&file, &path, |_| 1 << 20).unwrap_err().to_string();
        assert!(
            error.contains("anden-called-") && error.contains("takes 2.1 MiB of memory, and 1.0 MiB are free"),
            "{error}"
        );
        std::fs::remove_file(&path).unwrap();
        assert!(CalledStorage.read(&path).unwrap_err().to_string().contains("anden-called-"));
        // A directory can be opened, but reading it fails.
        let folder = std::env::temp_dir();
        let error = read_open(&File::open(&folder).unwrap(), &folder, |_| u64::MAX).unwrap_err().to_string();
        assert!(error.contains("from byte 0 on"), "{error}");
        let empty = File::open("/dev/null").unwrap();
        assert!(read_open(&empty, "null".as_ref(), |_| 0).unwrap().is_empty());
    }

    #[test]
    fn file_truncated_during_read_is_named_with_offset() {
        let path = std::env::temp_dir().join(format!("anden-cut-{}", std::process::id()));
        let len = 4 * CALL_BYTES as u64;
        for (num_bytes, offset) in [(0, 0), (CALL_BYTES, 1), (2 * CALL_BYTES + 5, 2), (4 * CALL_BYTES - 1, 3)] {
            std::fs::write(&path, vec![7; num_bytes]).unwrap();
            let error = read_len(&File::open(&path).unwrap(), &path, len).unwrap_err();
            let place = format!("1048576 bytes from byte {} on: ", offset * CALL_BYTES);
            assert!(error.to_string().contains(&place) && error.to_string().contains("anden-cut-"), "{error}");
            assert_eq!(error.io_kind(), Some(std::io::ErrorKind::UnexpectedEof));
        }
        std::fs::write(&path, vec![7; 4 * CALL_BYTES]).unwrap();
        assert_eq!(read_len(&File::open(&path).unwrap(), &path, len).unwrap().len(), 4 * CALL_BYTES);
        std::fs::remove_file(&path).unwrap();
    }
}
