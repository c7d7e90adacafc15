//! External sorting: sorted runs in scratch files, merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;

use super::arcs::{Expand, LoadArc, Payload};
use super::assemble::{ArcOrder, Retain, assemble};
use super::lists::{BuiltLists, ListSink};
use super::options::Duplicates;
use super::partition::partition;
use super::scratch::{ArcFile, ScratchFiles};
use super::stream::ListBuilder;
use crate::Result;

/// Collects arcs in input order and writes them as sorted runs.
pub(crate) struct SortedRuns<'a, P: Payload> {
    scratch: &'a ScratchFiles<'a>,
    expand: Expand,
    order: ArcOrder,
    num_lists: u64,
    /// Collected arcs, up to the memory limit.
    chunk: Vec<LoadArc<P>>,
    chunk_arcs: usize,
    files: Vec<ArcFile<P>>,
    pool: &'a Pool,
    progress: &'a dyn Progress,
}

impl<'a, P: Payload> SortedRuns<'a, P> {
    /// Runs of at most `chunk_arcs` input arcs. Memory: that many arcs, and their entries.
    pub(crate) fn new(
        scratch: &'a ScratchFiles<'a>,
        expand: Expand,
        order: ArcOrder,
        num_lists: u64,
        chunk_arcs: usize,
        pool: &'a Pool,
        progress: &'a dyn Progress,
    ) -> Self {
        // Sums would be rounded in each run, so parallel edges are added up once, in input order. Refused parallel
        // edges are found at the end, too.
        let duplicates = match order.duplicates {
            Duplicates::Sum | Duplicates::Auto => Duplicates::Keep,
            resolved => resolved,
        };
        let order = ArcOrder { duplicates, ..order };
        Self { scratch, expand, order, num_lists, chunk: Vec::new(), chunk_arcs, files: Vec::new(), pool, progress }
    }

    pub(crate) fn extend(&mut self, mut arcs: &[LoadArc<P>]) -> Result<()> {
        while !arcs.is_empty() {
            if self.chunk.capacity() == 0 {
                // Exactly, because doubling would exceed the memory limit.
                self.chunk.reserve_exact(self.chunk_arcs);
            }
            let (taken, rest) = arcs.split_at(arcs.len().min(self.chunk_arcs - self.chunk.len()));
            self.chunk.extend_from_slice(taken);
            arcs = rest;
            if self.chunk.len() == self.chunk_arcs {
                self.close_run()?;
            }
        }
        Ok(())
    }

    fn close_run(&mut self) -> Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let mut parts = partition(&[&*self.chunk], self.expand, 0..self.num_lists, self.pool, self.progress)?;
        let mut sink = FileSink { file: self.scratch.file()?, buffer: Vec::new() };
        assemble(&mut parts, self.order, Retain::Nothing, &mut sink, self.pool, self.progress)?;
        self.files.push(sink.file);
        // The run keeps its memory: the next one has the same size.
        self.chunk.clear();
        Ok(())
    }

    /// Ends the last run and frees the memory.
    pub(crate) fn finish(mut self) -> Result<Vec<ArcFile<P>>> {
        self.close_run()?;
        Ok(self.files)
    }
}

/// Writes sorted lists to a scratch file.
struct FileSink<P: Payload> {
    file: ArcFile<P>,
    buffer: Vec<LoadArc<P>>,
}

impl<P: Payload> ListSink<P> for FileSink<P> {
    fn append(&mut self, first: VertexId, lists: &mut BuiltLists<P>) -> Result<()> {
        self.buffer.clear();
        lists.for_each_arc(first, |arc| self.buffer.push(arc));
        self.file.append(&self.buffer)
    }
}

/// Merges sorted runs into lists; equal arcs come in the order of the runs.
///
/// Memory: `buffer_arcs` arcs in all.
pub(crate) fn merge<P: Payload>(
    files: Vec<ArcFile<P>>,
    buffer_arcs: usize,
    duplicates: Duplicates,
    sink: &mut dyn ListSink<P>,
    progress: &dyn Progress,
) -> Result<()> {
    // At least a page each, so that a read call pays even with many runs.
    let each = (buffer_arcs / (files.len() + 1)).max(512);
    let mut heads = BinaryHeap::with_capacity(files.len());
    let mut readers: Vec<_> = files.into_iter().map(|file| RunReader::new(file, each)).collect();
    for (index, reader) in readers.iter_mut().enumerate() {
        if let Some(arc) = reader.peek()? {
            heads.push(Reverse((arc.key(), index)));
        }
    }
    let mut builder = ListBuilder::new(sink, duplicates);
    let mut merged = Vec::with_capacity(each);
    while let Some(Reverse((_, index))) = heads.pop() {
        // Arcs below the other runs' heads need no heap operation.
        let others = heads.peek().map(|&Reverse(head)| head);
        let reader = &mut readers[index];
        while let Some(arc) = reader.peek()? {
            // Equal arcs keep the order of the runs, which is that of the input.
            if others.is_some_and(|head| head < (arc.key(), index)) {
                heads.push(Reverse((arc.key(), index)));
                break;
            }
            merged.push(arc);
            reader.next += 1;
            if merged.len() == each {
                progress.check()?;
                progress.advance(each as u64);
                builder.extend(&merged)?;
                merged.clear();
            }
        }
    }
    builder.extend(&merged)?;
    builder.finish()
}

/// Reads a run sequentially.
struct RunReader<P: Payload> {
    file: ArcFile<P>,
    buffer: Vec<LoadArc<P>>,
    buffer_arcs: usize,
    /// Index of the next arc in the buffer.
    next: usize,
    /// Arcs of the file that have been read into the buffer.
    num_read: usize,
}

impl<P: Payload> RunReader<P> {
    fn new(file: ArcFile<P>, buffer_arcs: usize) -> Self {
        Self { file, buffer: Vec::new(), buffer_arcs, next: 0, num_read: 0 }
    }

    #[inline(always)]
    fn peek(&mut self) -> Result<Option<LoadArc<P>>> {
        if self.next == self.buffer.len() {
            self.refill()?;
        }
        Ok(self.buffer.get(self.next).copied())
    }

    fn refill(&mut self) -> Result<()> {
        let len = self.buffer_arcs.min(self.file.len() - self.num_read);
        self.buffer.resize(len, bytemuck::Zeroable::zeroed());
        self.file.read(self.num_read, &mut self.buffer)?;
        self.num_read += len;
        self.next = 0;
        Ok(())
    }
}
