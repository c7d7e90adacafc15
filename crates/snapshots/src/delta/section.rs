//! Sections that grow in parallel, though a file has them one after the other.

use std::path::PathBuf;
use std::sync::Arc;

use anden_base::progress::Progress;
use anden_base::storage::Storage;
use bytemuck::Pod;

use crate::file::FileWriter;
use crate::temp_file::TempFile;
use crate::{Result, names};

/// Bytes of a section in memory, if it may spill.
const KEPT_BYTES: usize = 1 << 20;

/// Destination of sections that may not stay in memory as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Spill {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    /// Number of the file that gets these sections.
    file_number: u32,
}

impl Spill {
    /// Scratch files beside the delta file with this number.
    pub fn new(storage: Arc<dyn Storage>, directory: PathBuf, file_number: u32) -> Self {
        Self { storage, directory, file_number }
    }

    fn file(&self, name: &str) -> Result<TempFile> {
        TempFile::create(&self.storage, &self.directory, &format!("{}-{name}", names::delta(self.file_number)))
    }
}

/// The current bytes of a section.
#[derive(Debug)]
pub(super) struct SectionBuffer {
    /// Name of its scratch file.
    name: &'static str,
    /// The bytes before those in memory.
    spilled: Option<TempFile>,
    num_spilled: u64,
    bytes: Vec<u8>,
}

impl SectionBuffer {
    pub fn new(name: &'static str) -> Self {
        Self { name, spilled: None, num_spilled: 0, bytes: Vec::new() }
    }

    pub fn num_bytes(&self) -> u64 {
        self.num_spilled + self.bytes.len() as u64
    }

    /// Reserves memory.
    pub fn reserve(&mut self, num_bytes: usize) {
        self.bytes.reserve(num_bytes);
    }

    /// Appends in memory or, with `spill`, to a scratch file once a megabyte is full.
    ///
    /// # Errors
    /// The disk failed.
    pub fn append<T: Pod>(&mut self, values: &[T], spill: Option<&Spill>) -> Result<()> {
        let new: &[u8] = bytemuck::cast_slice(values);
        if let Some(spill) = spill
            && self.bytes.len() + new.len() > KEPT_BYTES
        {
            let file = match &mut self.spilled {
                Some(file) => file,
                none => none.insert(spill.file(self.name)?),
            };
            // Memory and new bytes go out together, so that a large append is not copied first.
            for part in [&self.bytes, new] {
                file.write_at(self.num_spilled, part)?;
                self.num_spilled += part.len() as u64;
            }
            self.bytes.clear();
            return Ok(());
        }
        self.bytes.extend_from_slice(new);
        Ok(())
    }

    /// Appends all bytes to the current section of `file`; reports each megabyte to `progress`.
    ///
    /// # Errors
    /// The disk failed.
    pub fn write(self, file: &mut FileWriter, progress: &dyn Progress) -> Result<()> {
        // Spilled bytes are older than those in memory, so they come first.
        if let Some(spilled) = &self.spilled {
            let mut part = vec![0; KEPT_BYTES];
            let mut offset = 0;
            while offset < self.num_spilled {
                let num_bytes = (self.num_spilled - offset).min(KEPT_BYTES as u64);
                let part = &mut part[..num_bytes as usize];
                spilled.read_at(offset, part)?;
                file.append(part)?;
                // Reported for each part, so that a write rate can slow the next one.
                progress.wrote(num_bytes);
                offset += num_bytes;
            }
        }
        write_parts(&self.bytes, file, progress)
    }
}

/// Appends bytes to the current section of `file`; reports each megabyte to `progress`.
///
/// # Errors
/// The disk failed.
pub(super) fn write_parts(bytes: &[u8], file: &mut FileWriter, progress: &dyn Progress) -> Result<()> {
    bytes.chunks(KEPT_BYTES).try_for_each(|part| {
        file.append(part)?;
        progress.wrote(part.len() as u64);
        Ok(())
    })
}
