//! The chunks of all inputs of a source, in order.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::chunk::AnyInputChunk;
use crate::opened::OpenedInput;
use crate::options::SourceOptions;
use crate::outcome::{Fatal, PromisedTotals};
use crate::part::InputReader;

/// A chunk and its position.
pub(crate) struct PlacedChunk {
    /// The number of chunks before this one, over all inputs.
    pub(crate) sequence: u64,
    /// The input.
    pub(crate) part: usize,
    pub(crate) chunk: Box<dyn AnyInputChunk>,
}

/// The chunks of all inputs. One worker at a time takes the next one.
pub(crate) struct InputStream<'a> {
    parts: &'a mut [OpenedInput],
    options: &'a SourceOptions,
    bytes_read: &'a Arc<AtomicU64>,
    /// The current input, and its reader once it is open.
    part: usize,
    reader: Option<Box<dyn InputReader>>,
    sequence: u64,
    spare: Vec<Vec<u8>>,
    /// By input: the totals that its header promises.
    promised: Vec<Option<PromisedTotals>>,
}

impl<'a> InputStream<'a> {
    pub(crate) fn new(
        parts: &'a mut [OpenedInput],
        options: &'a SourceOptions,
        bytes_read: &'a Arc<AtomicU64>,
    ) -> Self {
        let promised = vec![None; parts.len()];
        Self { parts, options, bytes_read, part: 0, reader: None, sequence: 0, spare: Vec::new(), promised }
    }

    /// Ends the stream after an error.
    pub(crate) fn finish(&mut self) {
        self.part = self.parts.len();
    }

    /// Takes back the buffer of a chunk for reuse.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// The position of the next chunk: its sequence number and input.
    pub(crate) fn place(&self) -> (u64, usize) {
        // After the last input, the number would be out of range.
        (self.sequence, self.part.min(self.parts.len().saturating_sub(1)))
    }

    /// By input: the totals that its header promises. Complete after the last chunk.
    pub(crate) fn promised(&self) -> &[Option<PromisedTotals>] {
        &self.promised
    }

    /// Comments before the first rows of tables.
    pub(crate) fn num_comments(&self) -> u64 {
        self.parts.iter().map(|part| part.num_comments).sum()
    }

    /// Returns the next chunk; `None` after the last.
    ///
    /// # Errors
    /// An input cannot be read, or its structure is damaged.
    pub(crate) fn next(&mut self) -> Result<Option<PlacedChunk>, Fatal> {
        while let Some(part) = self.parts.get_mut(self.part) {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                closed => closed.insert(part.begin(self.options, self.bytes_read)?),
            };
            if let Some(chunk) = reader.next(&mut self.spare)? {
                let placed = PlacedChunk { sequence: self.sequence, part: self.part, chunk };
                self.sequence += 1;
                return Ok(Some(placed));
            }
            // Asked only now, because a header may span several chunks.
            self.promised[self.part] = reader.promised();
            self.part += 1;
            // Closed here, so that at most one input is open at a time.
            self.reader = None;
        }
        Ok(None)
    }
}
