//! Rows as the bytes of a row group.
//!
//! Whole numbers that are keys are stored as differences, which are smaller than what a compressor makes
//! of them; keys of text by a dictionary of the row group; all other values plain, compressed with
//! snappy. Page headers have no statistics.

use std::ops::Range;

use arrow_array::types::ByteArrayType;
use arrow_array::{Array, ArrowPrimitiveType, GenericByteArray, PrimitiveArray};
use arrow_buffer::ToByteSlice;

use super::page::{DELTA_BINARY_PACKED, PLAIN, RLE, RLE_DICTIONARY};
use super::thrift::{Kind, Writer};
use crate::property::{PropertyColumn, PropertyType, TypedArray};
use crate::{Error, Result};

/// Rows of a page.
const PAGE_ROWS: usize = 64 << 10;
/// Numbers of a block of differences, and of its parts.
const BLOCK_LEN: usize = 128;
const PART_LEN: usize = 32;

/// A column of a file that is written.
#[derive(Clone, Debug)]
pub(in crate::formats) struct Field {
    pub(in crate::formats) name: String,
    pub(in crate::formats) kind: FieldKind,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::formats) enum FieldKind {
    /// Whole numbers of 64 bits, signed or not.
    Integer {
        is_unsigned: bool,
    },
    Unsigned32,
    Float32,
    Float64,
    Text,
    /// A property, which may be null.
    Property(PropertyType),
    /// Whole numbers of 64 bits without a sign, which may be null: a property of type `i64` by its bits.
    OptionalUnsigned,
}

/// The values of a column for the rows of a group.
#[derive(Debug)]
pub(in crate::formats) enum Cells {
    Integers(Vec<i64>),
    Unsigned32(Vec<u32>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    /// Entries, each behind its length in four bytes; their number; and the entry of each row.
    Indexed {
        entries: Vec<u8>,
        num_entries: usize,
        indices: Vec<u32>,
    },
    Property(Box<PropertyColumn>),
}

/// Where a column of a row group lies in its bytes.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    start: usize,
    num_bytes: usize,
    num_plain_bytes: usize,
    dictionary_bytes: usize,
    encoding: i32,
    codec: i32,
}

/// A row group that is ready to be written.
#[derive(Debug)]
pub(in crate::formats) struct Group {
    pub(in crate::formats) bytes: Vec<u8>,
    pub(in crate::formats) num_rows: usize,
    chunks: Vec<Chunk>,
}

/// What the footer says of a row group.
#[derive(Debug)]
pub(in crate::formats) struct GroupPlace {
    start: u64,
    num_rows: usize,
    num_bytes: u64,
    chunks: Vec<Chunk>,
}

impl Group {
    /// Lays out the columns of a group, which are of one length.
    ///
    /// # Errors
    /// A page would be larger than 2 GB.
    pub(in crate::formats) fn new(columns: &[Cells]) -> Result<Self> {
        let mut group = Self { bytes: Vec::new(), num_rows: columns.first().map_or(0, Cells::len), chunks: Vec::new() };
        for cells in columns {
            assert_eq!(cells.len(), group.num_rows);
            group.add(cells)?;
        }
        Ok(group)
    }

    fn add(&mut self, cells: &Cells) -> Result<()> {
        let mut pages = Pages { bytes: &mut self.bytes, num_plain_bytes: 0, codec: SNAPPY, packed: Vec::new() };
        let start = pages.bytes.len();
        let mut dictionary_bytes = 0;
        let mut encoding = PLAIN;
        if let Cells::Indexed { entries, num_entries, .. } = cells {
            pages.add(*num_entries, entries, Page::Dictionary)?;
            dictionary_bytes = pages.bytes.len() - start;
            encoding = RLE_DICTIONARY;
        }
        if let Cells::Integers(_) = cells {
            (encoding, pages.codec) = (DELTA_BINARY_PACKED, UNCOMPRESSED);
        }
        let mut body = Vec::new();
        for first in (0..cells.len()).step_by(PAGE_ROWS) {
            let rows = first..cells.len().min(first + PAGE_ROWS);
            body.clear();
            cells.encode(rows.clone(), &mut body);
            pages.add(rows.len(), &body, Page::Data(encoding))?;
        }
        let (num_plain_bytes, codec) = (pages.num_plain_bytes, pages.codec);
        let num_bytes = self.bytes.len() - start;
        self.chunks.push(Chunk { start, num_bytes, num_plain_bytes, dictionary_bytes, encoding, codec });
        Ok(())
    }

    /// What is left of the group once its bytes were written at `start`.
    pub(in crate::formats) fn placed(self, start: u64) -> GroupPlace {
        GroupPlace { start, num_rows: self.num_rows, num_bytes: self.bytes.len() as u64, chunks: self.chunks }
    }
}

const UNCOMPRESSED: i32 = 0;
const SNAPPY: i32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Dictionary,
    Data(i32),
}

/// Appends pages.
struct Pages<'a> {
    bytes: &'a mut Vec<u8>,
    num_plain_bytes: usize,
    codec: i32,
    packed: Vec<u8>,
}

impl Pages<'_> {
    fn add(&mut self, num_values: usize, body: &[u8], page: Page) -> Result<()> {
        let too_large = || Error::Parameter("a page of a Parquet file would be larger than 2 GB".into());
        let mut packed = body;
        if self.codec == SNAPPY {
            self.packed.resize(snap::raw::max_compress_len(body.len()), 0);
            let len = snap::raw::Encoder::new().compress(body, &mut self.packed).map_err(|_| too_large())?;
            packed = &self.packed[..len];
        }
        let size = |len: usize| i32::try_from(len).map_err(|_| too_large());
        let mut header = Writer::default();
        header.open();
        header.i32(1, if page == Page::Dictionary { 2 } else { 0 });
        header.i32(2, size(body.len())?);
        header.i32(3, size(packed.len())?);
        header.open_field(if page == Page::Dictionary { 7 } else { 5 });
        header.i32(1, size(num_values)?);
        match page {
            Page::Dictionary => header.i32(2, PLAIN),
            Page::Data(encoding) => {
                header.i32(2, encoding);
                header.i32(3, RLE);
                header.i32(4, RLE);
            }
        }
        header.close();
        header.close();
        self.bytes.extend_from_slice(&header.bytes);
        self.bytes.extend_from_slice(packed);
        self.num_plain_bytes += header.bytes.len() + body.len();
        Ok(())
    }
}

impl Cells {
    /// The number of rows.
    pub(in crate::formats) fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Unsigned32(values) => values.len(),
            Self::Float32(values) => values.len(),
            Self::Float64(values) => values.len(),
            Self::Indexed { indices, .. } => indices.len(),
            Self::Property(column) => column.len(),
        }
    }

    fn encode(&self, rows: Range<usize>, body: &mut Vec<u8>) {
        match self {
            Self::Integers(values) => push_deltas(&values[rows], body),
            Self::Unsigned32(values) => values[rows].iter().for_each(|value| body.extend(value.to_le_bytes())),
            Self::Float32(values) => values[rows].iter().for_each(|value| body.extend(value.to_le_bytes())),
            Self::Float64(values) => values[rows].iter().for_each(|value| body.extend(value.to_le_bytes())),
            Self::Indexed { num_entries, indices, .. } => {
                let bits = usize::BITS - num_entries.saturating_sub(1).leading_zeros();
                body.push(bits as u8);
                push_runs(&indices[rows], bits, body);
            }
            Self::Property(column) => push_property(column, rows, body),
        }
    }
}

/// Definition levels, then the values that are there.
fn push_property(column: &PropertyColumn, rows: Range<usize>, body: &mut Vec<u8>) {
    let start = body.len();
    body.extend([0; 4]);
    if column.validity().is_none() {
        push_varint((rows.len() as u64) << 1, body);
        body.push(1);
    } else {
        let levels: Vec<u32> = rows.clone().map(|row| u32::from(!column.is_null(row))).collect();
        push_runs(&levels, 1, body);
    }
    let num_bytes = (body.len() - start - 4) as u32;
    body[start..start + 4].copy_from_slice(&num_bytes.to_le_bytes());
    match column.values() {
        TypedArray::Boolean(array) => {
            for (bit, row) in rows.filter(|&row| array.is_valid(row)).enumerate() {
                if bit % 8 == 0 {
                    body.push(0);
                }
                if let Some(last) = body.last_mut() {
                    *last |= u8::from(array.value(row)) << (bit % 8);
                }
            }
        }
        TypedArray::I64(array) => push_fixed(array, rows, body),
        TypedArray::U64(array) => push_fixed(array, rows, body),
        TypedArray::F32(array) => push_fixed(array, rows, body),
        TypedArray::F64(array) => push_fixed(array, rows, body),
        TypedArray::Date(array) => push_fixed(array, rows, body),
        TypedArray::Timestamp(array) => push_fixed(array, rows, body),
        TypedArray::String(array) => push_pieces(array, rows, body),
        TypedArray::Coded { codes, texts } => {
            let there = rows.filter(|&row| codes.is_valid(row));
            there.for_each(|row| push_piece(texts.value(codes.value(row) as usize).as_bytes(), body));
        }
        TypedArray::Bytes(array) => push_pieces(array, rows, body),
    }
}

fn push_fixed<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, rows: Range<usize>, body: &mut Vec<u8>) {
    match array.null_count() {
        0 => body.extend_from_slice(array.values()[rows].to_byte_slice()),
        _ => {
            let there = rows.filter(|&row| array.is_valid(row));
            there.for_each(|row| body.extend_from_slice(array.value(row).to_byte_slice()));
        }
    }
}

fn push_pieces<T: ByteArrayType>(array: &GenericByteArray<T>, rows: Range<usize>, body: &mut Vec<u8>) {
    let there = rows.filter(|&row| array.is_valid(row));
    there.for_each(|row| push_piece(array.value(row).as_ref(), body));
}

fn push_piece(value: &[u8], body: &mut Vec<u8>) {
    body.extend((value.len() as u32).to_le_bytes());
    body.extend_from_slice(value);
}

fn push_varint(mut value: u64, body: &mut Vec<u8>) {
    while value >= 0x80 {
        body.push(value as u8 | 0x80);
        value >>= 7;
    }
    body.push(value as u8);
}

fn push_zigzag(value: i64, body: &mut Vec<u8>) {
    push_varint((value << 1 ^ value >> 63) as u64, body);
}

/// Numbers below `2^bits`: as a run where eight and more are the same, otherwise packed in groups of eight.
fn push_runs(values: &[u32], bits: u32, body: &mut Vec<u8>) {
    let mut at = 0;
    while at < values.len() {
        // Groups until a run begins at the border of one.
        let start = at;
        let mut run = run_len(&values[at..]);
        while run < 8 && at < values.len() {
            at = values.len().min(at + 8);
            run = run_len(&values[at..]);
        }
        if at > start {
            let groups = &values[start..at];
            push_varint((groups.len().div_ceil(8) as u64) << 1 | 1, body);
            push_packed(groups.iter().map(|&value| value.into()), groups.len().next_multiple_of(8), bits, body);
        }
        if run > 0 && at < values.len() {
            push_varint((run as u64) << 1, body);
            body.extend_from_slice(&values[at].to_le_bytes()[..bits.div_ceil(8) as usize]);
            at += run;
        }
    }
}

fn run_len(values: &[u32]) -> usize {
    values.iter().take_while(|&value| Some(value) == values.first()).count()
}

/// Packs numbers bit by bit, and zeros until there are `len`, which is a multiple of eight.
fn push_packed(values: impl Iterator<Item = u64>, len: usize, bits: u32, body: &mut Vec<u8>) {
    let (mut word, mut filled) = (0_u128, 0);
    for value in values.chain(std::iter::repeat(0)).take(len) {
        word |= u128::from(value) << filled;
        filled += bits;
        while filled >= 8 {
            body.push(word as u8);
            word >>= 8;
            filled -= 8;
        }
    }
}

/// Whole numbers as differences.
fn push_deltas(values: &[i64], body: &mut Vec<u8>) {
    push_varint(BLOCK_LEN as u64, body);
    push_varint((BLOCK_LEN / PART_LEN) as u64, body);
    push_varint(values.len() as u64, body);
    push_zigzag(values.first().copied().unwrap_or(0), body);
    let mut deltas = [0_i64; BLOCK_LEN];
    let mut before = values.first().copied().unwrap_or(0);
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK_LEN) {
        for (delta, &value) in deltas.iter_mut().zip(block) {
            *delta = value.wrapping_sub(before);
            before = value;
        }
        let deltas = &deltas[..block.len()];
        let least = deltas.iter().copied().min().unwrap_or(0);
        push_zigzag(least, body);
        let widths = body.len();
        body.extend([0; BLOCK_LEN / PART_LEN]);
        for (part, deltas) in deltas.chunks(PART_LEN).enumerate() {
            let above = |&delta: &i64| delta.wrapping_sub(least) as u64;
            let bits = u64::BITS - deltas.iter().map(above).fold(0, |all, delta| all | delta).leading_zeros();
            body[widths + part] = bits as u8;
            push_packed(deltas.iter().map(above), PART_LEN, bits, body);
        }
    }
}

/// The footer of a file with these columns and row groups, and what ends the file.
pub(in crate::formats) fn footer(fields: &[Field], groups: &[GroupPlace]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.open();
    writer.i32(1, 1);
    writer.list(2, Kind::STRUCT, fields.len() + 1);
    writer.open();
    writer.text(4, "schema");
    writer.i32(5, fields.len() as i32);
    writer.close();
    fields.iter().for_each(|field| field.write(&mut writer));
    writer.i64(3, groups.iter().map(|group| group.num_rows as i64).sum());
    writer.list(4, Kind::STRUCT, groups.len());
    groups.iter().for_each(|group| group.write(fields, &mut writer));
    writer.text(6, concat!("anden version ", env!("CARGO_PKG_VERSION")));
    writer.close();
    let mut bytes = writer.bytes;
    let num_bytes = bytes.len() as u32;
    bytes.extend(num_bytes.to_le_bytes());
    bytes.extend(super::MAGIC);
    bytes
}

impl Field {
    fn physical(&self) -> i32 {
        match self.kind {
            FieldKind::Integer { .. } | FieldKind::OptionalUnsigned => 2,
            FieldKind::Unsigned32 => 1,
            FieldKind::Float32 => 4,
            FieldKind::Float64 => 5,
            FieldKind::Text => 6,
            FieldKind::Property(property_type) => match property_type {
                PropertyType::Boolean => 0,
                PropertyType::Date => 1,
                PropertyType::I64 | PropertyType::U64 | PropertyType::Timestamp => 2,
                PropertyType::F32 => 4,
                PropertyType::F64 => 5,
                PropertyType::String | PropertyType::Bytes => 6,
            },
        }
    }

    fn write(&self, writer: &mut Writer) {
        writer.open();
        writer.i32(1, self.physical());
        let is_optional = matches!(self.kind, FieldKind::Property(_) | FieldKind::OptionalUnsigned);
        writer.i32(3, i32::from(is_optional));
        writer.text(4, &self.name);
        let unsigned = |writer: &mut Writer, bits: u8, converted: i32| {
            writer.i32(6, converted);
            writer.open_field(10);
            writer.open_field(10);
            writer.i8(1, bits);
            writer.boolean(2, false);
            writer.close();
            writer.close();
        };
        let marked = |writer: &mut Writer, converted: i32, logical: i64| {
            writer.i32(6, converted);
            writer.open_field(10);
            writer.mark(logical);
            writer.close();
        };
        match self.kind {
            FieldKind::Integer { is_unsigned: true }
            | FieldKind::OptionalUnsigned
            | FieldKind::Property(PropertyType::U64) => unsigned(writer, 64, 14),
            FieldKind::Unsigned32 => unsigned(writer, 32, 13),
            FieldKind::Text | FieldKind::Property(PropertyType::String) => marked(writer, 0, 1),
            FieldKind::Property(PropertyType::Date) => marked(writer, 6, 6),
            FieldKind::Property(PropertyType::Timestamp) => {
                writer.i32(6, 10);
                writer.open_field(10);
                writer.open_field(8);
                writer.boolean(1, true);
                writer.open_field(2);
                writer.mark(2);
                writer.close();
                writer.close();
                writer.close();
            }
            _ => {}
        }
        writer.close();
    }
}

impl GroupPlace {
    fn write(&self, fields: &[Field], writer: &mut Writer) {
        writer.open();
        writer.list(1, Kind::STRUCT, self.chunks.len());
        for (chunk, field) in self.chunks.iter().zip(fields) {
            let start = (self.start + chunk.start as u64) as i64;
            writer.open();
            writer.i64(2, start);
            writer.open_field(3);
            writer.i32(1, field.physical());
            writer.list(2, Kind::I32, 2);
            writer.element_i32(chunk.encoding);
            writer.element_i32(RLE);
            writer.list(3, Kind::BINARY, 1);
            writer.element_text(&field.name);
            writer.i32(4, chunk.codec);
            writer.i64(5, self.num_rows as i64);
            writer.i64(6, chunk.num_plain_bytes as i64);
            writer.i64(7, chunk.num_bytes as i64);
            writer.i64(9, start + chunk.dictionary_bytes as i64);
            if chunk.dictionary_bytes > 0 {
                writer.i64(11, start);
            }
            writer.close();
            writer.close();
        }
        writer.i64(2, self.num_bytes as i64);
        writer.i64(3, self.num_rows as i64);
        writer.close();
    }
}
