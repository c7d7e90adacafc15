//! Arrow IPC files and streams: tables that are read by rows.
//!
//! [`ArrowFile::open`] finds the record batches, and [`ArrowFile::batch`] the buffers of one. Only the bytes of the
//! wanted rows are read, so memory does not depend on the size of a batch. Compressed buffers are first copied to a
//! scratch file. Every length and offset in the file is checked before memory is taken.
//!
//! # Source
//! The Arrow columnar format, section "Serialization and Interprocess Communication".

mod buffers;
mod messages;
mod rows;

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_ipc::MetadataVersion;
use arrow_schema::SchemaRef;

use self::buffers::{ColumnPlace, column_places, unpacked};
use self::messages::{ArrowBytes, ArrowField, FileIndex, IpcMessage};
use crate::{Error, Result};

/// The bytes at the beginning and at the end of a file.
pub(crate) const MAGIC: &[u8; 6] = b"ARROW1";

/// Whether an input begins as a file, or as a stream with its marker and the length of its schema.
pub(crate) fn is_likely(head: &[u8]) -> bool {
    head.starts_with(b"ARROW1\0\0") || is_likely_stream(head)
}

fn is_likely_stream(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xff\xff\xff") && head.get(6..8) == Some(b"\0\0")
}

/// An open file or stream. Clones of its handle share it.
pub(crate) struct ArrowFile {
    bytes: ArrowBytes,
    schema: SchemaRef,
    fields: Vec<ArrowField>,
    version: MetadataVersion,
    batches: Vec<BatchPlace>,
    /// The values of dictionaries by their numbers.
    dictionaries: HashMap<i64, ArrayRef>,
    scratch_limit: Option<u64>,
}

/// A record batch in the file.
struct BatchPlace {
    /// The place of its message.
    at: u64,
    num_rows: u64,
}

impl ArrowFile {
    /// Opens a file or stream, and reads its dictionaries. Messages call it `path`.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or has a form that is not read.
    pub(crate) fn open(path: &Path, file: File, scratch_limit: Option<u64>) -> Result<Self> {
        let bytes = ArrowBytes::new(path, file)?;
        let FileIndex { schema, fields, version, messages } = FileIndex::read(&bytes)?;
        let (batches, dictionaries) = (Vec::new(), HashMap::new());
        let mut opened = Self { bytes, schema: schema.into(), fields, version, batches, dictionaries, scratch_limit };
        for at in messages {
            opened.add_message(at)?;
        }
        Ok(opened)
    }

    fn add_message(&mut self, at: u64) -> Result<()> {
        let message = IpcMessage::read(&self.bytes, at)?;
        let header = message.parse(&self.bytes)?;
        if let Some(batch) = header.header_as_record_batch() {
            let num_rows = u64::try_from(batch.length()).map_err(|_| self.bad("a batch has a negative length"))?;
            self.batches.push(BatchPlace { at, num_rows });
            return Ok(());
        }
        let Some(dictionary) = header.header_as_dictionary_batch() else {
            return Err(self.bad("expected record batches and dictionaries, found another message"));
        };
        let id = dictionary.id();
        let values = self.fields.iter().find_map(|field| field.values_of(id));
        let (Some(values), Some(batch)) = (values, dictionary.data()) else {
            return Err(self.bad(&format!("no column has the dictionary {id}")));
        };
        if dictionary.isDelta() || self.dictionaries.contains_key(&id) {
            return Err(self.bad("expected whole dictionaries, found one that changes another; write the file again"));
        }
        let fields = [values];
        let places = column_places(&self.bytes, &fields, &batch, self.version, &message.body)?;
        let num_rows = places[0].len;
        let (places, bytes) = self.unpacked(&batch, places, &[0])?;
        let values = rows::column(&bytes, &HashMap::new(), &fields[0], &places[0], 0..num_rows)?;
        self.dictionaries.insert(id, values);
        Ok(())
    }

    /// The buffers of a batch, and the file with them.
    fn unpacked(
        &self,
        batch: &arrow_ipc::RecordBatch<'_>,
        mut places: Vec<ColumnPlace>,
        wanted: &[usize],
    ) -> Result<(Vec<ColumnPlace>, ArrowBytes)> {
        let Some(compression) = batch.compression() else { return Ok((places, self.bytes.clone())) };
        let bytes = unpacked(&self.bytes, compression.codec(), &mut places, wanted, self.scratch_limit)?;
        Ok((places, bytes))
    }

    /// The path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.bytes.path
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The length of the file in bytes.
    pub(crate) fn num_bytes(&self) -> u64 {
        self.bytes.len
    }

    pub(crate) fn num_batches(&self) -> usize {
        self.batches.len()
    }

    /// The number of rows of a batch.
    pub(crate) fn num_rows_of(&self, batch: usize) -> u64 {
        self.batches[batch].num_rows
    }

    /// The number of rows of all batches.
    pub(crate) fn num_rows(&self) -> u64 {
        self.batches.iter().fold(0, |sum, batch| sum.saturating_add(batch.num_rows))
    }

    /// The buffers of a batch. Only the `wanted` columns can be read.
    ///
    /// # Errors
    /// The batch is damaged, or needs too much scratch space.
    pub(crate) fn batch(self: &Arc<Self>, batch: usize, wanted: &[usize]) -> Result<ArrowBatch> {
        let BatchPlace { at, num_rows } = self.batches[batch];
        let message = IpcMessage::read(&self.bytes, at)?;
        let header = message.parse(&self.bytes)?;
        let found = header.header_as_record_batch();
        let found = found.ok_or_else(|| self.bad("expected a record batch, found another message"))?;
        let places = column_places(&self.bytes, &self.fields, &found, self.version, &message.body)?;
        if let Some(place) = places.iter().find(|place| place.len != num_rows) {
            return Err(self.bad(&format!("a column of {} rows in a batch of {num_rows}", place.len)));
        }
        let (places, bytes) = self.unpacked(&found, places, wanted)?;
        Ok(ArrowBatch { file: Arc::clone(self), bytes, places, num_rows })
    }

    pub(crate) fn bad(&self, what: &str) -> Error {
        self.bytes.bad(what)
    }
}

/// A record batch whose columns are read by rows.
pub(crate) struct ArrowBatch {
    file: Arc<ArrowFile>,
    /// The file with the buffers.
    bytes: ArrowBytes,
    places: Vec<ColumnPlace>,
    pub(crate) num_rows: u64,
}

impl ArrowBatch {
    /// Rows of a column.
    ///
    /// # Errors
    /// The file cannot be read, or the column is damaged.
    pub(crate) fn column(&self, column: usize, rows: Range<u64>) -> Result<ArrayRef> {
        rows::column(&self.bytes, &self.file.dictionaries, &self.file.fields[column], &self.places[column], rows)
    }

    /// The offsets of the lists of a column, one more than `rows`. They ascend and lie within the elements.
    ///
    /// # Errors
    /// As [`column`](Self::column).
    pub(crate) fn list_offsets(&self, column: usize, rows: Range<u64>) -> Result<Vec<u64>> {
        rows::list_offsets(&self.bytes, &self.file.fields[column], &self.places[column], rows)
    }

    /// A member of the elements of the lists of a column, where elements are structs.
    ///
    /// # Errors
    /// As [`column`](Self::column).
    pub(crate) fn list_member(&self, column: usize, member: usize, elements: Range<u64>) -> Result<ArrayRef> {
        let (field, place) = (&self.file.fields[column].children[0], &self.places[column].children[0]);
        let (field, member) = (&field.children[member], &place.children[member]);
        if member.len < place.len {
            return Err(self.file.bad("a list has more elements than their members have values"));
        }
        rows::column(&self.bytes, &self.file.dictionaries, field, member, elements)
    }
}
