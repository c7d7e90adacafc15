//! Copies of inputs that lack random access.
//!
//! Serialized graphs and Parquet files need random access. A pipe or a compressed file is first copied to a scratch
//! file in the system's directory for temporary files (`TMPDIR`). The scratch file loses its name once it is open, so
//! it vanishes with the process even after a crash.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::size::size;

use crate::{Error, Result};

/// Bytes per copy step.
const COPY_BYTES: usize = 1 << 20;
/// Without a limit of the caller, a copy may have this many times the bytes of the input. Packed columns of numbers
/// have ratios up to about 20.
const LARGEST_RATIO: u64 = 64;
/// Copies up to this size are always made.
const SMALL_BYTES: u64 = 1 << 30;

/// The most bytes that a copy may have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopyLimit {
    /// The limit of the caller; `None`: a multiple of the bytes of the input.
    pub(crate) scratch: Option<u64>,
    /// The length that the header of the input promises.
    pub(crate) promised: Option<u64>,
}

impl CopyLimit {
    /// What is wrong with a copy of `num_bytes` of an input of which `num_read` bytes were read.
    fn fault(self, num_bytes: u64, num_read: u64) -> Option<String> {
        if let Some(promised) = self.promised.filter(|&promised| num_bytes > promised) {
            return Some(format!("the content is longer than the {promised} bytes that its header promises"));
        }
        let limit = self.scratch.unwrap_or_else(|| num_read.saturating_mul(LARGEST_RATIO).max(SMALL_BYTES));
        (num_bytes > limit).then(|| {
            let why = if self.scratch.is_some() { "" } else { ", a size that such files rarely have" };
            format!("needs more than {} of scratch space{why}; --scratch-limit raises the limit", size(limit))
        })
    }
}

/// Counts the bytes that are read.
pub(crate) struct CountedReader<R> {
    inner: R,
    num_read: Arc<AtomicU64>,
}

impl<R> CountedReader<R> {
    /// The reader, and the counter that it advances.
    pub(crate) fn new(inner: R) -> (Self, Arc<AtomicU64>) {
        let num_read = Arc::<AtomicU64>::default();
        (Self { inner, num_read: Arc::clone(&num_read) }, num_read)
    }
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let num_bytes = self.inner.read(into)?;
        self.num_read.fetch_add(num_bytes as u64, Ordering::Relaxed);
        Ok(num_bytes)
    }
}

/// Copies all of `reader` to a file without a name. Messages call the input `path`; `num_read` counts its bytes.
///
/// # Errors
/// The input cannot be read, its copy would exceed the limit, or the disk is full.
pub(crate) fn spooled(path: &Path, reader: impl Read, num_read: &AtomicU64, limit: CopyLimit) -> Result<File> {
    let mut copy = ScratchCopy::new(path, limit)?;
    copy.append(reader, num_read)?;
    Ok(copy.finish())
}

/// A copy in the making, in a file without a name.
pub(crate) struct ScratchCopy<'a> {
    path: &'a Path,
    limit: CopyLimit,
    file: File,
    buffer: Vec<u8>,
    num_copied: u64,
}

impl<'a> ScratchCopy<'a> {
    /// An empty copy. Messages call the input `path`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn new(path: &'a Path, limit: CopyLimit) -> Result<Self> {
        Ok(Self { path, limit, file: scratch_file()?, buffer: vec![0; COPY_BYTES], num_copied: 0 })
    }

    /// Appends all of `reader`; `num_read` counts the bytes of the input.
    ///
    /// # Errors
    /// As [`spooled`].
    pub(crate) fn append(&mut self, mut reader: impl Read, num_read: &AtomicU64) -> Result<()> {
        loop {
            let num_bytes = match reader.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(num_bytes) => num_bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(anden_base::Error::io("read", self.path, e).into()),
            };
            self.num_copied += num_bytes as u64;
            if let Some(what) = self.limit.fault(self.num_copied, num_read.load(Ordering::Relaxed)) {
                return Err(Error::Input { path: self.path.to_owned(), what });
            }
            let written = self.file.write_all(&self.buffer[..num_bytes]);
            written.map_err(|e| anden_base::Error::io("write a scratch file in", &std::env::temp_dir(), e))?;
        }
    }

    /// The bytes in the copy.
    pub(crate) fn num_copied(&self) -> u64 {
        self.num_copied
    }

    /// The file with the copy.
    pub(crate) fn finish(self) -> File {
        self.file
    }
}

/// A new file without a name, in the system's directory for temporary files.
pub(crate) fn scratch_file() -> Result<File> {
    static NUM_FILES: AtomicU64 = AtomicU64::new(0);
    let folder = std::env::temp_dir();
    loop {
        let number = NUM_FILES.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("anden-{}-{number}.spool", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => {
                // Removed while it is open, so that no crash leaves it behind.
                std::fs::remove_file(&path).map_err(|e| anden_base::Error::io("remove", &path, e))?;
                return Ok(file);
            }
            // Left by an earlier process with this process id.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(anden_base::Error::io("create a scratch file in", &folder, e).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_copy_has_all_bytes_and_no_name() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let (reader, num_read) = CountedReader::new(&bytes[..]);
        let file = spooled("-".as_ref(), reader, &num_read, CopyLimit::default()).unwrap();
        assert_eq!(file.metadata().unwrap().len(), bytes.len() as u64);
        let mut back = [0; 100];
        file.read_exact_at(&mut back, 2_000_000).unwrap();
        assert_eq!(back, bytes[2_000_000..2_000_100]);
        let own = format!("anden-{}-", std::process::id());
        let names = std::fs::read_dir(std::env::temp_dir()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().starts_with(&own)).count(), 0);
    }

    #[test]
    fn copies_end_at_the_limit() {
        let limit = CopyLimit { scratch: Some(1_000), promised: Some(100) };
        assert_eq!(limit.fault(100, 0), None);
        assert!(limit.fault(101, 0).unwrap().contains("longer than the 100 bytes"));
        let limit = CopyLimit { promised: None, ..limit };
        assert_eq!(limit.fault(1_000, 0), None);
        assert!(limit.fault(1_001, 1_001).unwrap().contains("--scratch-limit"));
        let limit = CopyLimit::default();
        assert_eq!(limit.fault(SMALL_BYTES, 0), None);
        assert!(limit.fault(SMALL_BYTES + 1, SMALL_BYTES / LARGEST_RATIO).is_some());
        assert_eq!(limit.fault(SMALL_BYTES + 1, SMALL_BYTES / LARGEST_RATIO + 1), None);
    }
}
