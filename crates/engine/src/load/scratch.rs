//! Arcs on the disk while they do not fit in memory.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use lama::{StoreBuilder, TempFile};

use super::arcs::{KeyedArc, Payload};
use crate::Result;

/// Makes scratch files beside the files of the database to be.
pub(crate) struct Scratch<'a> {
    builder: &'a StoreBuilder,
    num_files: AtomicU64,
}

impl<'a> Scratch<'a> {
    pub(crate) fn new(builder: &'a StoreBuilder) -> Self {
        Self { builder, num_files: AtomicU64::new(0) }
    }

    /// An empty file.
    pub(crate) fn file<P: Payload>(&self) -> Result<ArcFile<P>> {
        let number = self.num_files.fetch_add(1, Ordering::Relaxed);
        let file = self.builder.temp_file(&number.to_string())?;
        Ok(ArcFile { file, num_arcs: 0, payload: PhantomData })
    }
}

/// Arcs in a scratch file, which goes when this does.
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

    pub(crate) fn append(&mut self, arcs: &[KeyedArc<P>]) -> Result<()> {
        let offset = (self.num_arcs * size_of::<KeyedArc<P>>()) as u64;
        self.file.write_at(offset, bytemuck::cast_slice(arcs))?;
        self.num_arcs += arcs.len();
        Ok(())
    }

    /// Fills `into` with the arcs from `first` on.
    pub(crate) fn read(&self, first: usize, into: &mut [KeyedArc<P>]) -> Result<()> {
        let offset = (first * size_of::<KeyedArc<P>>()) as u64;
        Ok(self.file.read_at(offset, bytemuck::cast_slice_mut(into))?)
    }
}
