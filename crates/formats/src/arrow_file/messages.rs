//! The messages of a file or stream: schema, dictionaries and record batches.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Endianness, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{DataType, Field, FieldRef, Schema};

use super::{MAGIC, is_likely_stream};
use crate::{Error, Result};

/// The marker before the length of a message.
const CONTINUATION: u32 = u32::MAX;
/// The length of the end of a file: the length of the footer, and the magic number.
const END_BYTES: u64 = 10;

/// The bytes of a file.
#[derive(Clone)]
pub(super) struct ArrowBytes {
    pub(super) path: PathBuf,
    file: Arc<File>,
    pub(super) len: u64,
}

impl ArrowBytes {
    pub(super) fn new(path: &Path, file: File) -> Result<Self> {
        let metadata = file.metadata().map_err(|e| anden_base::Error::io("read", path, e))?;
        Ok(Self { path: path.to_owned(), file: file.into(), len: metadata.len() })
    }

    /// Reads a range, which must lie within the file.
    pub(super) fn read(&self, range: Range<u64>) -> Result<Buffer> {
        // Checked first, so that a damaged number takes no memory.
        if range.start > range.end || range.end > self.len {
            return Err(self.bad("a buffer lies outside the file"));
        }
        let too_large = |_| self.bad("a buffer is larger than the memory");
        let num_bytes = usize::try_from(range.end - range.start).map_err(too_large)?;
        let mut buffer = MutableBuffer::from_len_zeroed(num_bytes);
        let read = self.file.read_exact_at(buffer.as_slice_mut(), range.start);
        read.map_err(|e| anden_base::Error::io("read", &self.path, e))?;
        Ok(buffer.into())
    }

    fn u32_at(&self, at: u64) -> Result<u32> {
        let bytes = self.read(at..at.saturating_add(4))?;
        Ok(bytes.as_slice().try_into().map_or(0, u32::from_le_bytes))
    }

    pub(super) fn bad(&self, what: &str) -> Error {
        Error::Input { path: self.path.clone(), what: format!("damaged or unknown Arrow file: {what}") }
    }

    /// An error of the crate that checks arrays and schemas.
    pub(super) fn failed(&self, error: &arrow_schema::ArrowError) -> Error {
        self.bad(&error.to_string())
    }
}

/// A message whose header is in memory.
pub(super) struct IpcMessage {
    header: Buffer,
    /// The place of its body in the file.
    pub(super) body: Range<u64>,
}

impl IpcMessage {
    /// Reads the message at a place.
    pub(super) fn read(bytes: &ArrowBytes, at: u64) -> Result<Self> {
        let found = Self::read_next(bytes, at)?;
        found.ok_or_else(|| bytes.bad("expected a message, found the end"))
    }

    /// Reads the message at a place in a stream; `None` at its end.
    fn read_next(bytes: &ArrowBytes, at: u64) -> Result<Option<Self>> {
        if at == bytes.len {
            return Ok(None);
        }
        // Arrow before 0.15 wrote no marker.
        let (start, num_bytes) = match bytes.u32_at(at)? {
            CONTINUATION => (at + 8, bytes.u32_at(at + 4)?),
            num_bytes => (at + 4, num_bytes),
        };
        if num_bytes == 0 {
            return Ok(None);
        }
        let end = start + u64::from(num_bytes);
        let message = Self { header: bytes.read(start..end)?, body: end..end };
        let body_bytes = u64::try_from(message.parse(bytes)?.bodyLength()).ok();
        let body_end = body_bytes.and_then(|body_bytes| end.checked_add(body_bytes)).filter(|&end| end <= bytes.len);
        let body_end = body_end.ok_or_else(|| bytes.bad("a message is longer than the file"))?;
        Ok(Some(Self { body: end..body_end, ..message }))
    }

    /// The header as a table, checked.
    pub(super) fn parse(&self, bytes: &ArrowBytes) -> Result<arrow_ipc::Message<'_>> {
        root_as_message(&self.header).map_err(|error| bytes.bad(&format!("a message is no message: {error}")))
    }
}

/// A column, with the number of its dictionary and its members.
#[derive(Clone)]
pub(super) struct ArrowField {
    pub(super) field: FieldRef,
    pub(super) dictionary: Option<i64>,
    /// The members; of a dictionary, those of its values.
    pub(super) children: Vec<ArrowField>,
}

impl ArrowField {
    fn new(field: &FieldRef, stated: &arrow_ipc::Field<'_>) -> Self {
        let values = match field.data_type() {
            DataType::Dictionary(_, values) => values,
            other => other,
        };
        let members: Vec<&FieldRef> = match values {
            DataType::List(member)
            | DataType::LargeList(member)
            | DataType::ListView(member)
            | DataType::LargeListView(member)
            | DataType::FixedSizeList(member, _)
            | DataType::Map(member, _) => vec![member],
            DataType::Struct(members) => members.iter().collect(),
            DataType::Union(members, _) => members.iter().map(|(_, member)| member).collect(),
            DataType::RunEndEncoded(ends, values) => vec![ends, values],
            _ => Vec::new(),
        };
        let stated_members = stated.children().into_iter().flatten();
        let children = members.into_iter().zip(stated_members).map(|(field, stated)| Self::new(field, &stated));
        let dictionary = stated.dictionary().map(|dictionary| dictionary.id());
        Self { field: field.clone(), dictionary, children: children.collect() }
    }

    pub(super) fn data_type(&self) -> &DataType {
        self.field.data_type()
    }

    /// The values of the dictionary with this number, as a column.
    pub(super) fn values_of(&self, dictionary: i64) -> Option<Self> {
        match self.data_type() {
            DataType::Dictionary(_, values) if self.dictionary == Some(dictionary) => {
                let field = Field::new(self.field.name(), (**values).clone(), true);
                Some(Self { field: field.into(), dictionary: None, children: self.children.clone() })
            }
            _ => self.children.iter().find_map(|child| child.values_of(dictionary)),
        }
    }
}

/// The schema of a file or stream, and the places of its other messages.
pub(super) struct FileIndex {
    pub(super) schema: Schema,
    pub(super) fields: Vec<ArrowField>,
    pub(super) version: MetadataVersion,
    /// Dictionaries stand before the batches that use them.
    pub(super) messages: Vec<u64>,
}

impl FileIndex {
    pub(super) fn read(bytes: &ArrowBytes) -> Result<Self> {
        let head = bytes.read(0..bytes.len.min(8))?;
        match head.starts_with(MAGIC) {
            true => Self::of_file(bytes),
            false if is_likely_stream(&head) => Self::of_stream(bytes),
            false => Err(bytes.bad("expected an Arrow IPC file or stream")),
        }
    }

    /// The messages that the footer of a file lists.
    fn of_file(bytes: &ArrowBytes) -> Result<Self> {
        let truncated = || bytes.bad("expected a footer, found the end of the file");
        let end = bytes.len.checked_sub(END_BYTES).ok_or_else(truncated)?;
        if bytes.read(end + 4..bytes.len)?.as_slice() != MAGIC {
            return Err(truncated());
        }
        let start = end.checked_sub(bytes.u32_at(end)?.into()).ok_or_else(truncated)?;
        let footer = bytes.read(start..end)?;
        let footer = root_as_footer(&footer).map_err(|error| bytes.bad(&format!("the footer is none: {error}")))?;
        let schema = footer.schema().ok_or_else(|| bytes.bad("the footer has no schema"))?;
        let blocks = footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
        let places = blocks.map(|block| u64::try_from(block.offset()).map_err(|_| truncated()));
        let messages = places.collect::<Result<Vec<u64>>>()?;
        // A message may be listed once only, so that a small file cannot stand for a large table.
        let mut distinct = messages.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < messages.len() {
            return Err(bytes.bad("the footer lists a batch twice"));
        }
        Self::new(bytes, &schema, footer.version(), messages)
    }

    /// The messages of a stream, one after the other.
    fn of_stream(bytes: &ArrowBytes) -> Result<Self> {
        let first = IpcMessage::read(bytes, 0)?;
        let header = first.parse(bytes)?;
        let schema = header.header_as_schema().ok_or_else(|| bytes.bad("the first message is no schema"))?;
        let (mut messages, mut at) = (Vec::new(), first.body.end);
        while let Some(message) = IpcMessage::read_next(bytes, at)? {
            messages.push(at);
            at = message.body.end;
        }
        Self::new(bytes, &schema, header.version(), messages)
    }

    fn new(
        bytes: &ArrowBytes,
        stated: &arrow_ipc::Schema<'_>,
        version: MetadataVersion,
        messages: Vec<u64>,
    ) -> Result<Self> {
        if stated.endianness() != Endianness::Little {
            return Err(bytes.bad("expected numbers in little-endian order"));
        }
        if version < MetadataVersion::V4 || version > MetadataVersion::V5 {
            return Err(bytes.bad(&format!("expected version 4 or 5, found {version:?}")));
        }
        let schema = try_fb_to_schema(*stated).map_err(|error| bytes.failed(&error))?;
        let stated = stated.fields().into_iter().flatten();
        let fields = schema.fields().iter().zip(stated).map(|(field, stated)| ArrowField::new(field, &stated));
        Ok(Self { fields: fields.collect(), schema, version, messages })
    }
}
