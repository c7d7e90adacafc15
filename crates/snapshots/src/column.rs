//! Values of a section, verified at first touch, or an array in memory.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anden_base::checksum::CheckedBytes;
use anden_base::mapped::MappedSlice;
use bytemuck::Pod;

use crate::Result;
use crate::file::{FramedFile, SectionKind};

/// Values of a section, or an array in memory.
#[derive(Clone, Debug)]
pub(crate) struct SectionColumn<T> {
    values: MappedSlice<T>,
    /// Verifies the values; `None` for an array in memory, which has no checksums.
    section: Option<Arc<CheckedBytes>>,
}

impl<T: Pod> SectionColumn<T> {
    /// The section of this kind.
    ///
    /// # Errors
    /// The file has no such section, or its length is not a multiple of a value's.
    pub fn open(file: &FramedFile, kind: SectionKind) -> Result<Self> {
        Ok(Self { values: file.values(kind)?, section: Some(Arc::clone(file.section(kind)?)) })
    }

    /// An array in memory.
    pub fn in_memory(values: MappedSlice<T>) -> Self {
        Self { values, section: None }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The values, verified or not.
    pub fn unverified(&self) -> &MappedSlice<T> {
        &self.values
    }

    /// Verifies the blocks of these values on first use, and returns the values.
    ///
    /// # Errors
    /// A block is damaged, or the range reaches past the end.
    pub fn touch(&self, range: Range<usize>) -> anden_base::Result<&[T]> {
        if let Some(section) = &self.section {
            section.verify(range.start * size_of::<T>()..range.end * size_of::<T>())?;
        }
        let (start, values) = (range.start, self.values.get(range));
        values.ok_or_else(|| self.corrupt(start, "the range reaches past the end"))
    }

    /// An error about the value at `index`.
    pub fn corrupt(&self, index: usize, what: impl Into<String>) -> anden_base::Error {
        let place = (index * size_of::<T>()) as u64;
        match &self.section {
            Some(section) => anden_base::Error::corrupt(section.path(), section.file_offset() + place, what),
            None => anden_base::Error::corrupt(Path::new("(memory)"), place, what),
        }
    }
}
