//! A file that is written from its start to its end.

use super::StorageFile;
use crate::Result;

/// Writes end at multiples of this, the size of a huge page. The system's cache then keeps and maps the file in huge
/// pages. With small pages, kernels with random access wait for address translation (shortest paths took 1.16 times as
/// long).
pub const GRAIN_BYTES: usize = 2 << 20;

/// Bytes after which the disk is told to start writing.
const HASTE_BYTES: u64 = 8 << 20;

/// A file that grows at its end, and is written to the disk meanwhile.
#[derive(Debug)]
pub struct AppendedFile {
    file: Box<dyn StorageFile>,
    num_written: u64,
    /// Bytes that the disk was told to write.
    num_hastened: u64,
}

impl AppendedFile {
    /// Begins to write an empty file.
    pub fn new(file: Box<dyn StorageFile>) -> Self {
        Self { file, num_written: 0, num_hastened: 0 }
    }

    /// Bytes written.
    pub fn len(&self) -> u64 {
        self.num_written
    }

    /// Whether no byte is written.
    pub fn is_empty(&self) -> bool {
        self.num_written == 0
    }

    /// The file.
    pub fn file(&self) -> &dyn StorageFile {
        &*self.file
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk failed.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(self.num_written, bytes)?;
        self.num_written += bytes.len() as u64;
        // These bytes are final. The disk writes them while more are prepared, so that the sync at the end is short.
        if self.num_written - self.num_hastened >= HASTE_BYTES {
            self.file.hasten(self.num_hastened, self.num_written - self.num_hastened);
            self.num_hastened = self.num_written;
        }
        Ok(())
    }
}
