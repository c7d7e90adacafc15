//! The content of an input, and its properties.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_graph::property::{Inference, PropertySchema};

use crate::array_text::ArrayForm;
use crate::chunk::AnyInputChunk;
use crate::compression::{HEAD_BYTES, decoded, read_head};
use crate::epoch::{EpochUnit, StatedType};
use crate::options::SourceOptions;
use crate::outcome::{Fatal, PromisedTotals};
use crate::serialized::SerializedGraph;
use crate::{Error, Result};

/// The content of an input, as its format reads it.
pub(crate) trait InputContent: Send + Sync {
    /// Begins a read from the start.
    ///
    /// # Errors
    /// The input cannot be opened again.
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>>;

    /// The graph, if the content is a serialized graph: a CSR with ids as keys.
    fn serialized(&self) -> Option<&Arc<SerializedGraph>> {
        None
    }

    /// Lets the blocks of a serialized graph not name its vertices, because all ids are known.
    fn leave_out_vertices(&mut self) {}
}

/// Cuts an input into chunks.
pub(crate) trait InputReader: Send {
    /// Returns the next chunk; `None` after the last. One worker at a time calls this, so costly work belongs into the
    /// chunk. `spare` holds buffers of earlier chunks for reuse.
    ///
    /// # Errors
    /// The input cannot be read, or its structure is damaged.
    fn next(&mut self, spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal>;

    /// The totals that a header promises. Asked after the last chunk.
    fn promised(&self) -> Option<PromisedTotals> {
        None
    }
}

/// An input at the start of a read.
pub(crate) struct InputStart<'a> {
    pub(crate) path: &'a Path,
    pub(crate) options: &'a SourceOptions,
    /// The properties of edges, then of vertices, with their final types.
    pub(crate) properties: &'a [PartProperties; 2],
    pub(crate) bytes: &'a mut InputBytes,
    pub(crate) bytes_read: &'a Arc<AtomicU64>,
}

impl InputStart<'_> {
    /// Opens the decompressed content.
    ///
    /// # Errors
    /// The input cannot be opened, or is a stream that was read before.
    pub(crate) fn open(self) -> Result<Box<dyn Read + Send>> {
        let path = self.path;
        let mut reader: Box<dyn Read + Send> = match self.bytes.opened.take() {
            Some(opened) => opened,
            None if self.bytes.can_reopen => {
                Box::new(File::open(path).map_err(|e| anden_base::Error::io("open", path, e))?)
            }
            None => return Err(Error::Input { path: path.to_owned(), what: "can be read only once".into() }),
        };
        // The head tells the compression, and is then read again as part of the content.
        let head = read_head(path, &mut reader, HEAD_BYTES)?;
        // Counts bytes before decompression, as they are on disk.
        let count = Arc::clone(self.bytes_read);
        decoded(path, &head, CountingReader { reader: Cursor::new(head.clone()).chain(reader), count })
    }
}

struct CountingReader<R> {
    reader: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let num_bytes = self.reader.read(into)?;
        self.count.fetch_add(num_bytes as u64, Ordering::Relaxed);
        Ok(num_bytes)
    }
}

/// The source of the bytes of an input.
pub(crate) struct InputBytes {
    /// The open stream of an input that cannot be opened twice.
    opened: Option<Box<dyn Read + Send>>,
    can_reopen: bool,
}

impl InputBytes {
    /// The bytes of an open stream, or of the file at the path of the input.
    pub(crate) fn new(opened: Option<Box<dyn Read + Send>>) -> Self {
        Self { can_reopen: opened.is_none(), opened }
    }
}

/// The properties of the edges, or of the vertices, of one input.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartProperties {
    /// The input's own properties, in the order of its columns.
    pub(crate) own: PropertySchema,
    /// By property: the inference of its type, if neither caller nor input states the type. Such a type may change.
    /// Empty if all types are stated.
    pub(crate) inferred: Vec<Option<Inference>>,
    /// By property: its column in the text.
    pub(crate) places: Vec<usize>,
    /// By property: the unit of numbers that become timestamps. Shorter if later properties have none.
    pub(crate) epochs: Vec<Option<EpochUnit>>,
    /// By property: the form of its lists, if their fields are no JSON. Empty if no property has one.
    pub(crate) arrays: Vec<Option<ArrayForm>>,
}

impl PartProperties {
    /// The inference behind the type of a property, if the type is not stated.
    pub(crate) fn inference(&self, property: usize) -> Option<Inference> {
        self.inferred.get(property).copied().flatten()
    }

    /// The unit of a property whose numbers become timestamps.
    pub(crate) fn epoch(&self, property: usize) -> Option<EpochUnit> {
        self.epochs.get(property).copied().flatten()
    }

    /// The form of the fields of a property that holds lists, if they are no JSON.
    pub(crate) fn array(&self, property: usize) -> Option<ArrayForm> {
        self.arrays.get(property).copied().flatten()
    }

    /// Takes the numbers of a property as timestamps, unless it holds no numbers.
    pub(crate) fn set_epoch(&mut self, property: usize, unit: EpochUnit) {
        if self.inference(property).is_some() {
            // Stated from now on, so that the timestamps of other inputs do not change how numbers are read.
            self.inferred[property] = None;
            self.own.set_type(property, StatedType::Epoch(unit).of_input());
        }
        if self.own.get(property).is_some_and(|(_, own)| own.is_numeric()) {
            self.epochs.resize(self.epochs.len().max(property + 1), None);
            self.epochs[property] = Some(unit);
        }
    }
}
