//! A section read as values, each verified when it is first touched.

use std::ops::Range;
use std::sync::Arc;

use base::checksum::CheckedBytes;
use base::mapped::MappedSlice;
use bytemuck::Pod;

use crate::Result;
use crate::file::{FramedFile, SectionKind};

/// Values of a section.
#[derive(Clone, Debug)]
pub(crate) struct Column<T> {
    values: MappedSlice<T>,
    section: Arc<CheckedBytes>,
}

impl<T: Pod> Column<T> {
    /// The section of this kind.
    ///
    /// # Errors
    /// There is none, or it does not hold whole values.
    pub fn open(file: &FramedFile, kind: SectionKind) -> Result<Self> {
        Ok(Self { values: file.values(kind)?, section: Arc::clone(file.section(kind)?) })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The values, verified or not.
    pub fn unverified(&self) -> &MappedSlice<T> {
        &self.values
    }

    /// Verifies the blocks of these values.
    ///
    /// # Errors
    /// A block is damaged, or the range reaches past the end.
    pub fn touch(&self, range: Range<usize>) -> base::Result<&[T]> {
        self.section.verify(range.start * size_of::<T>()..range.end * size_of::<T>())?;
        Ok(&self.values[range])
    }

    /// An error about the value at `index`.
    pub fn corrupt(&self, index: usize, what: impl Into<String>) -> base::Error {
        let offset = self.section.file_offset() + (index * size_of::<T>()) as u64;
        base::Error::corrupt(self.section.path(), offset, what)
    }
}
