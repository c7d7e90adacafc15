//! Scratch files of arcs that do not fit in memory.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_snapshots::{StoreBuilder, TempFile};

use super::arcs::{LoadArc, Payload};
use crate::Result;

/// Creates scratch files in the directory of the new database.
pub(crate) struct ScratchFiles<'a> {
    builder: &'a StoreBuilder,
    num_files: AtomicU64,
}

impl<'a> ScratchFiles<'a> {
    pub(crate) fn new(builder: &'a StoreBuilder) -> Self {
        Self { builder, num_files: AtomicU64::new(0) }
    }

    /// An empty file.
    pub(crate) fn file<P: Payload>(&self) -> Result<ArcFile<P>> {
        // Relaxed: only the uniqueness of the number matters.
        let number = self.num_files.fetch_add(1, Ordering::Relaxed);
        let file = self.builder.temp_file(&number.to_string())?;
        Ok(ArcFile { file, num_arcs: 0, payload: PhantomData })
    }
}

/// Arcs in a scratch file. Dropping this removes the file.
#[derive(Debug)]
pub(crate) struct ArcFile<P> {
    file: TempFile,
    num_arcs: usize,
    payload: PhantomData<P>,
}

impl<P: Payload> ArcFile<P> {
    pub(crate) fn len(&self) -> usize {
        self.num_arcs
    }

    pub(crate) fn append(&mut self, arcs: &[LoadArc<P>]) -> Result<()> {
        let offset = (self.num_arcs * size_of::<LoadArc<P>>()) as u64;
        self.file.write_at(offset, bytemuck::cast_slice(arcs))?;
        self.num_arcs += arcs.len();
        Ok(())
    }

    /// Fills `into` with the arcs from `first` on.
    pub(crate) fn read(&self, first: usize, into: &mut [LoadArc<P>]) -> Result<()> {
        let offset = (first * size_of::<LoadArc<P>>()) as u64;
        Ok(self.file.read_at(offset, bytemuck::cast_slice_mut(into))?)
    }
}
