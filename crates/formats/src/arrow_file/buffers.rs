//! The places of the buffers of a record batch, and their decompression.

use std::io::{Cursor, Read};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use arrow_ipc::{CompressionType, MetadataVersion};
use arrow_schema::{DataType, UnionMode};

use super::messages::{ArrowBytes, ArrowField};
use crate::Result;
use crate::spool::{CopyLimit, ScratchCopy};

/// The bytes before a compressed buffer: its length when it is decompressed, or -1 if it is stored as it is.
const PREFIX_BYTES: u64 = 8;

/// The places of the buffers of a column.
pub(super) struct ColumnPlace {
    pub(super) len: u64,
    pub(super) num_nulls: u64,
    /// In the order of the format: validity first.
    pub(super) buffers: Vec<Range<u64>>,
    pub(super) children: Vec<ColumnPlace>,
}

/// The places of all columns of a batch whose body lies in `body`.
pub(super) fn column_places(
    bytes: &ArrowBytes,
    fields: &[ArrowField],
    batch: &arrow_ipc::RecordBatch<'_>,
    version: MetadataVersion,
    body: &Range<u64>,
) -> Result<Vec<ColumnPlace>> {
    let mut places = PlaceReader {
        bytes,
        version,
        body,
        nodes: batch.nodes().into_iter().flatten(),
        buffers: batch.buffers().into_iter().flatten(),
        variadic: batch.variadicBufferCounts().into_iter().flatten(),
    };
    fields.iter().map(|field| places.next(field)).collect()
}

/// Takes nodes and buffers in the order of the columns.
struct PlaceReader<'a, N, B, V> {
    bytes: &'a ArrowBytes,
    version: MetadataVersion,
    body: &'a Range<u64>,
    nodes: N,
    buffers: B,
    variadic: V,
}

impl<'f, N, B, V> PlaceReader<'_, N, B, V>
where
    N: Iterator<Item = &'f arrow_ipc::FieldNode>,
    B: Iterator<Item = &'f arrow_ipc::Buffer>,
    V: Iterator<Item = i64>,
{
    fn next(&mut self, field: &ArrowField) -> Result<ColumnPlace> {
        let lacking = || self.bytes.bad("a batch lacks a column of the schema");
        let node = self.nodes.next().ok_or_else(lacking)?;
        let [len, num_nulls] = [node.length(), node.null_count()].map(u64::try_from);
        let (Ok(len), Ok(num_nulls)) = (len, num_nulls) else {
            return Err(self.bytes.bad("a column has a negative length"));
        };
        let mut num_buffers = num_buffers(field.data_type(), self.version);
        if matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView) {
            let num_variadic =
                self.variadic.next().and_then(|count| usize::try_from(count).ok()).ok_or_else(lacking)?;
            num_buffers = num_buffers.saturating_add(num_variadic);
        }
        // Not reserved, because the number may be damaged.
        let mut buffers = Vec::new();
        for _ in 0..num_buffers {
            let buffer = self.buffers.next().ok_or_else(lacking)?;
            let place = |offset: i64, len: i64| {
                let start = self.body.start.checked_add(offset.try_into().ok()?)?;
                Some(start..start.checked_add(len.try_into().ok()?)?).filter(|place| place.end <= self.body.end)
            };
            let place = place(buffer.offset(), buffer.length());
            buffers.push(place.ok_or_else(|| self.bytes.bad("a buffer lies outside its batch"))?);
        }
        // The members of a dictionary are in another message.
        let members: &[ArrowField] = if field.dictionary.is_some() { &[] } else { &field.children };
        let children = members.iter().map(|child| self.next(child)).collect::<Result<_>>()?;
        Ok(ColumnPlace { len, num_nulls, buffers, children })
    }
}

/// The number of buffers of a column without its members, and without the text of views.
fn num_buffers(data_type: &DataType, version: MetadataVersion) -> usize {
    match data_type {
        DataType::Null | DataType::RunEndEncoded(..) => 0,
        DataType::Struct(_) | DataType::FixedSizeList(..) => 1,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 3,
        DataType::ListView(_) | DataType::LargeListView(_) => 3,
        // Version 4 has the validity of a union as well.
        DataType::Union(_, mode) => {
            1 + usize::from(*mode == UnionMode::Dense) + usize::from(version < MetadataVersion::V5)
        }
        _ => 2,
    }
}

/// Decompresses the buffers of the wanted columns to a scratch file. Their places are then those in that file.
pub(super) fn unpacked(
    bytes: &ArrowBytes,
    codec: CompressionType,
    places: &mut [ColumnPlace],
    wanted: &[usize],
    scratch_limit: Option<u64>,
) -> Result<ArrowBytes> {
    let limit = CopyLimit { scratch: scratch_limit, promised: None };
    let mut unpacker =
        Unpacker { bytes, codec, copy: ScratchCopy::new(&bytes.path, limit)?, num_read: AtomicU64::new(0) };
    for (column, place) in places.iter_mut().enumerate() {
        if wanted.contains(&column) {
            unpacker.unpack_column(place)?;
        }
    }
    ArrowBytes::new(&bytes.path, unpacker.copy.finish())
}

struct Unpacker<'a> {
    bytes: &'a ArrowBytes,
    codec: CompressionType,
    copy: ScratchCopy<'a>,
    num_read: AtomicU64,
}

impl Unpacker<'_> {
    fn unpack_column(&mut self, place: &mut ColumnPlace) -> Result<()> {
        place.buffers.iter_mut().try_for_each(|buffer| self.unpack(buffer))?;
        place.children.iter_mut().try_for_each(|child| self.unpack_column(child))
    }

    fn unpack(&mut self, buffer: &mut Range<u64>) -> Result<()> {
        let start = self.copy.num_copied();
        if !buffer.is_empty() {
            let packed = self.bytes.read(buffer.clone())?;
            *self.num_read.get_mut() += packed.len() as u64;
            let Some((prefix, packed)) = packed.split_first_chunk::<{ PREFIX_BYTES as usize }>() else {
                return Err(self.bytes.bad("a compressed buffer has no length"));
            };
            let promised = i64::from_le_bytes(*prefix);
            let (content, promised): (Box<dyn Read>, u64) = match u64::try_from(promised) {
                Ok(promised) => (self.decoder(packed)?, promised),
                Err(_) if promised == -1 => (Box::new(packed), packed.len() as u64),
                Err(_) => return Err(self.bytes.bad("a compressed buffer has a negative length")),
            };
            self.copy.append(content.take(promised.saturating_add(1)), &self.num_read)?;
            if self.copy.num_copied() - start != promised {
                return Err(self.bytes.bad("a compressed buffer has another length than it promises"));
            }
        }
        *buffer = start..self.copy.num_copied();
        Ok(())
    }

    fn decoder<'b>(&self, packed: &'b [u8]) -> Result<Box<dyn Read + 'b>> {
        match self.codec {
            CompressionType::LZ4_FRAME => Ok(Box::new(lz4_flex::frame::FrameDecoder::new(Cursor::new(packed)))),
            CompressionType::ZSTD => {
                let decoder = zstd::Decoder::with_buffer(packed);
                Ok(Box::new(decoder.map_err(|e| anden_base::Error::io("read", &self.bytes.path, e))?))
            }
            other => Err(self.bytes.bad(&format!("expected LZ4 or Zstandard, found the compression {other:?}"))),
        }
    }
}
