//! The growing buffers of columns.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBuffer;
use arrow_ipc::FieldNode;
use arrow_schema::{DataType, Field};

use crate::spool::scratch_file;
use crate::write::Output;
use crate::{Error, Result};

/// Bytes of a buffer that stay in memory.
const BUFFER_BYTES: usize = 256 << 10;
/// A column of text has three buffers.
pub(super) const COLUMN_BYTES: u64 = 3 * BUFFER_BYTES as u64;

/// Bytes that grow in a scratch file, unless they are few.
#[derive(Default)]
pub(super) struct GrowingBuffer {
    /// The last bytes.
    memory: Vec<u8>,
    file: Option<File>,
    len: u64,
}

fn failed(operation: &'static str, error: std::io::Error) -> Error {
    anden_base::Error::io(operation, &std::env::temp_dir(), error).into()
}

impl GrowingBuffer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.len += bytes.len() as u64;
        if self.memory.len() + bytes.len() <= BUFFER_BYTES {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(scratch_file()?),
        };
        let written = file.write_all(&self.memory).and_then(|()| file.write_all(bytes));
        self.memory.clear();
        written.map_err(|e| failed("write a scratch file in", e))
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Copies all bytes to the output.
    pub(super) fn write(mut self, output: &mut Output<'_>) -> Result<()> {
        if let Some(file) = &mut self.file {
            file.rewind().map_err(|e| failed("read a scratch file in", e))?;
            let mut buffer = vec![0; BUFFER_BYTES];
            loop {
                let num_bytes = file.read(&mut buffer).map_err(|e| failed("read a scratch file in", e))?;
                if num_bytes == 0 {
                    break;
                }
                output.write(&buffer[..num_bytes])?;
            }
        }
        output.write(&self.memory)
    }
}

/// Bits that grow.
#[derive(Default)]
struct GrowingBits {
    bytes: GrowingBuffer,
    /// The last bits, fewer than eight.
    last: u8,
    num_last: u32,
}

impl GrowingBits {
    fn append(&mut self, bits: impl Iterator<Item = bool>) -> Result<()> {
        let mut whole = Vec::new();
        for bit in bits {
            self.last |= u8::from(bit) << self.num_last;
            self.num_last += 1;
            if self.num_last == 8 {
                whole.push(self.last);
                (self.last, self.num_last) = (0, 0);
            }
        }
        self.bytes.append(&whole)
    }

    fn finish(mut self) -> Result<GrowingBuffer> {
        if self.num_last > 0 {
            self.bytes.append(&[self.last])?;
        }
        Ok(self.bytes)
    }
}

/// Offsets of lists or of text.
pub(super) struct ListBuffers {
    is_wide: bool,
    offsets: GrowingBuffer,
    /// The number of elements until now.
    pub(super) num_elements: u64,
    pub(super) num_lists: u64,
}

impl ListBuffers {
    /// Offsets have 64 bits if they are wide, else 32.
    pub(super) fn new(is_wide: bool) -> Self {
        Self { is_wide, offsets: GrowingBuffer::default(), num_elements: 0, num_lists: 0 }
    }

    pub(super) fn append(&mut self, num_elements: usize) -> Result<()> {
        self.push_offset()?;
        self.num_elements += num_elements as u64;
        self.num_lists += 1;
        Ok(())
    }

    fn push_offset(&mut self) -> Result<()> {
        let bytes = self.num_elements.to_le_bytes();
        self.offsets.append(if self.is_wide { &bytes } else { &bytes[..4] })
    }

    pub(super) fn finish(mut self) -> Result<GrowingBuffer> {
        self.push_offset()?;
        Ok(self.offsets)
    }
}

/// The values of a column.
enum GrowingValues {
    Bits(GrowingBits),
    /// Values of this many bytes.
    Fixed(usize, GrowingBuffer),
    Text(ListBuffers, GrowingBuffer),
    /// Lists, and the column of their items.
    Lists(ListBuffers, Box<ColumnBuffers>),
}

/// The buffers of a column.
pub(super) struct ColumnBuffers {
    num_rows: u64,
    num_nulls: u64,
    validity: GrowingBits,
    values: GrowingValues,
}

impl ColumnBuffers {
    /// Buffers of a column of numbers, truth values, text with wide offsets, or wide lists of these.
    pub(super) fn new(field: &Field) -> Self {
        let values = match field.data_type() {
            DataType::Boolean => GrowingValues::Bits(GrowingBits::default()),
            DataType::LargeUtf8 | DataType::LargeBinary => {
                GrowingValues::Text(ListBuffers::new(true), GrowingBuffer::default())
            }
            DataType::LargeList(item) => GrowingValues::Lists(ListBuffers::new(true), Box::new(Self::new(item))),
            other => GrowingValues::Fixed(other.primitive_width().unwrap_or_default(), GrowingBuffer::default()),
        };
        Self { num_rows: 0, num_nulls: 0, validity: GrowingBits::default(), values }
    }

    /// Appends the values of an array of the column's type.
    pub(super) fn append(&mut self, array: &ArrayRef) -> Result<()> {
        self.num_rows += array.len() as u64;
        self.num_nulls += array.null_count() as u64;
        match array.nulls() {
            Some(nulls) => self.validity.append(nulls.iter())?,
            None => self.validity.append(BooleanBuffer::new_set(array.len()).iter())?,
        }
        match &mut self.values {
            GrowingValues::Bits(bits) => bits.append(array.as_boolean().values().iter()),
            GrowingValues::Fixed(width, bytes) => {
                let data = array.to_data();
                let start = data.offset() * *width;
                bytes.append(&data.buffers()[0][start..start + data.len() * *width])
            }
            GrowingValues::Text(lists, bytes) => match array.data_type() {
                DataType::LargeUtf8 => {
                    let texts = array.as_string::<i64>();
                    append_text(lists, bytes, texts.value_offsets(), texts.value_data())
                }
                _ => {
                    let texts = array.as_binary::<i64>();
                    append_text(lists, bytes, texts.value_offsets(), texts.value_data())
                }
            },
            GrowingValues::Lists(lists, items) => {
                let array = array.as_list::<i64>();
                match append_offsets(lists, array.value_offsets())? {
                    Some(range) => items.append(&array.values().slice(range.start, range.len())),
                    None => Ok(()),
                }
            }
        }
    }

    /// The nodes in the order of the format: of the column, then of the items of its lists.
    pub(super) fn nodes(&self) -> Vec<FieldNode> {
        let mut nodes = vec![FieldNode::new(self.num_rows as i64, self.num_nulls as i64)];
        if let GrowingValues::Lists(_, items) = &self.values {
            nodes.extend(items.nodes());
        }
        nodes
    }

    /// The buffers in the order of the format. A column without nulls has an empty validity.
    pub(super) fn finish(self) -> Result<Vec<GrowingBuffer>> {
        let validity = if self.num_nulls == 0 { GrowingBuffer::default() } else { self.validity.finish()? };
        Ok(match self.values {
            GrowingValues::Bits(bits) => vec![validity, bits.finish()?],
            GrowingValues::Fixed(_, bytes) => vec![validity, bytes],
            GrowingValues::Text(lists, bytes) => vec![validity, lists.finish()?, bytes],
            GrowingValues::Lists(lists, items) => {
                let mut buffers = vec![validity, lists.finish()?];
                buffers.extend(items.finish()?);
                buffers
            }
        })
    }
}

fn append_text(lists: &mut ListBuffers, bytes: &mut GrowingBuffer, offsets: &[i64], text: &[u8]) -> Result<()> {
    append_offsets(lists, offsets)?.map_or(Ok(()), |range| bytes.append(&text[range]))
}

/// Appends lists with these offsets. Returns the range of their elements; `None` without lists.
fn append_offsets(lists: &mut ListBuffers, offsets: &[i64]) -> Result<Option<Range<usize>>> {
    for pair in offsets.windows(2) {
        lists.append((pair[1] - pair[0]) as usize)?;
    }
    Ok(match offsets {
        [first, .., last] => Some(*first as usize..*last as usize),
        _ => None,
    })
}
