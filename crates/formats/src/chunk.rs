//! Chunks of an input, which workers parse independently.
//!
//! A reader returns chunks as objects, but keys and weights have types that the caller of the source chooses. The
//! object is therefore asked for one block, not for one line: [`parse_chunk`] makes one virtual call per chunk, and the
//! loop over the lines is compiled for each pair of types.

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_graph::Weight;

use crate::key::{FieldKey, Span};
use crate::lines::ParsedBlock;
use crate::number::push_u64;
use crate::options::{KeyKind, OnError, SourceOptions};
use crate::{Error, Result};

/// The largest number of vertices without edges in one chunk.
const MAX_VERTICES_AT_ONCE: u64 = 256 << 10;
/// A row of a binary input counts like this many bytes of text when chunks are cut.
const BYTES_PER_ROW: u64 = 4;
/// As above, for a row with numbers that become text.
const BYTES_PER_TEXT_ROW: u64 = 16;

/// The parsed content of a chunk.
pub(crate) struct ParsedChunk<K, W> {
    pub(crate) block: ParsedBlock<K, W>,
    /// The text that string keys refer to.
    pub(crate) text: Vec<u8>,
    /// A buffer for later chunks.
    pub(crate) spare: Option<Vec<u8>>,
}

impl<K: FieldKey, W> ParsedChunk<K, W> {
    /// A block with all text of its keys in `extra`.
    pub(crate) fn of_extra(mut block: ParsedBlock<K, W>) -> Self {
        let text = std::mem::take(&mut block.extra);
        Self { block, text, spare: None }
    }
}

/// The circumstances of a parse.
#[derive(Clone, Copy)]
pub(crate) struct ParseContext<'a> {
    pub(crate) options: &'a SourceOptions,
    bytes_read: &'a AtomicU64,
}

impl<'a> ParseContext<'a> {
    pub(crate) fn new(options: &'a SourceOptions, bytes_read: &'a AtomicU64) -> Self {
        Self { options, bytes_read }
    }

    /// Whether weights are read.
    pub(crate) fn is_weighted(&self) -> bool {
        self.options.weights.is_some()
    }

    /// The treatment of a faulty line.
    pub(crate) fn on_error(&self) -> OnError {
        self.options.on_error
    }

    /// Counts bytes that the chunk itself has read.
    pub(crate) fn count_read(&self, num_bytes: u64) {
        self.bytes_read.fetch_add(num_bytes, Ordering::Relaxed);
    }
}

/// A chunk of an input.
pub(crate) trait InputChunk: Send {
    /// Parses the chunk.
    ///
    /// # Errors
    /// The input cannot be read, or is damaged. A faulty line is no error, but a fault of the block.
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>>;
}

/// A chunk as an object.
pub(crate) trait AnyInputChunk: Send {
    /// Parses the chunk into an `Option<Result<ParsedChunk<K, W>>>`, whose type selects the instance. Leaves the slot
    /// empty if no instance has these types.
    fn parse_into(self: Box<Self>, slot: &mut dyn Any, context: &ParseContext<'_>);
}

impl<C: InputChunk> AnyInputChunk for C {
    fn parse_into(self: Box<Self>, slot: &mut dyn Any, context: &ParseContext<'_>) {
        // An object cannot have a generic method, so all pairs of types are compiled here.
        macro_rules! instances {
            ($($key:ty)*) => { $(
                instances!($key: u32 i64 f32 f64);
            )* };
            ($key:ty: $($weight:ty)*) => { $(
                if let Some(slot) = slot.downcast_mut::<Option<Result<ParsedChunk<$key, $weight>>>>() {
                    *slot = Some(self.parse::<$key, $weight>(context));
                    return;
                }
            )* };
        }
        instances!(u64 u32 Span);
    }
}

/// Parses a chunk.
///
/// # Errors
/// Those of the chunk.
pub(crate) fn parse_chunk<K: FieldKey, W: Weight>(
    chunk: Box<dyn AnyInputChunk>,
    context: &ParseContext<'_>,
) -> Result<ParsedChunk<K, W>> {
    let mut slot: Option<Result<ParsedChunk<K, W>>> = None;
    chunk.parse_into(&mut slot, context);
    slot.unwrap_or_else(|| Err(Error::Parameter("keys are u64, u32 or spans of text".into())))
}

/// The meaning of vertex numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// Ids from 0.
    Ids,
    /// Numbers from 1.
    FromOne,
}

/// Vertices that exist although no edge names them, cut into chunks.
#[derive(Clone, Debug)]
pub(crate) struct ImpliedVertices {
    left: Range<u64>,
    numbering: Numbering,
    at_once: u64,
}

impl ImpliedVertices {
    pub(crate) fn new(vertices: Range<u64>, numbering: Numbering, options: &SourceOptions) -> Self {
        Self { left: vertices, numbering, at_once: rows_at_once(options).min(MAX_VERTICES_AT_ONCE) }
    }

    /// The next chunk; `None` after the last.
    pub(crate) fn next(&mut self) -> Option<Box<dyn AnyInputChunk>> {
        if self.left.is_empty() {
            return None;
        }
        let end = self.left.end.min(self.left.start + self.at_once);
        let now = self.left.start..end;
        self.left.start = end;
        Some(Box::new(VertexNumbers(now, self.numbering)))
    }
}

/// The rows of a chunk of a binary input: as much memory as a block of text.
pub(crate) fn rows_at_once(options: &SourceOptions) -> u64 {
    let row_bytes = if options.keys == KeyKind::String { BYTES_PER_TEXT_ROW } else { BYTES_PER_ROW };
    // A chunk without rows would never reach the end of the input.
    (options.block_bytes as u64 / row_bytes).max(1)
}

/// As [`rows_at_once`], for rows whose text is in the input.
pub(crate) fn columns_at_once(options: &SourceOptions) -> u64 {
    (options.block_bytes as u64 / BYTES_PER_ROW).max(1)
}

/// A chunk of implied vertices.
struct VertexNumbers(Range<u64>, Numbering);

impl InputChunk for VertexNumbers {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let mut block = ParsedBlock::new(0, context.on_error());
        for vertex in self.0 {
            // Ids count from 0 already, so only other numbers are shifted.
            let counted = if self.1 == Numbering::FromOne { K::from_count(vertex) } else { None };
            let key = counted.map_or_else(|| number_key(vertex, &mut block.extra), Ok)?;
            block.vertices.push(key);
        }
        block.num_implied = block.vertices.len() as u64;
        Ok(ParsedChunk::of_extra(block))
    }
}

/// A number as a key. A string key is appended to `text`.
///
/// # Errors
/// `text` is larger than a key can refer to.
pub(crate) fn number_key<K: FieldKey>(number: u64, text: &mut Vec<u8>) -> Result<K> {
    if let Some(key) = K::from_digits(number) {
        return Ok(key);
    }
    let mut digits = Vec::with_capacity(20);
    push_u64(&mut digits, number);
    K::from_owned(&digits, 0, text).ok_or_else(|| Error::Parameter("a block of text is larger than 4 GB".into()))
}
