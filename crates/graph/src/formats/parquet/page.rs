//! The pages of a column chunk, one after the other.
//!
//! A page is decompressed whole, so its size has a ceiling, [`MAX_PAGE_BYTES`]. The memory for it is
//! asked for zeroed, which costs nothing until it is filled: a page that lies about its size does not
//! take what it claims.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt;

use super::footer::Chunk;
use super::thrift::{Fault, Kind, Read, Reader};

/// The most bytes of a page, and of its header.
const MAX_PAGE_BYTES: usize = 256 << 20;
const MAX_HEADER_BYTES: usize = 16 << 20;
/// Bytes that are read at once, where a page is not larger.
const READ_BYTES: usize = 1 << 20;

/// What is wrong with a column chunk.
pub(super) type Result<T> = std::result::Result<T, String>;

/// How the values of a page are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Dictionary,
    /// Levels before the values, with the number of their bytes.
    Data,
    /// Levels in so many bytes before the values, not compressed: repetition, then definition.
    DataV2 {
        num_level_bytes: [usize; 2],
    },
}

/// What the header of a page says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) place: Place,
    /// Values, nulls among them.
    pub(super) num_values: usize,
    pub(super) encoding: i32,
    /// How definition levels are encoded.
    pub(super) level_encoding: i32,
    num_bytes: usize,
    num_packed_bytes: usize,
    is_packed: bool,
}

/// Reads a chunk from its beginning.
pub(super) struct Pages<'a> {
    file: &'a File,
    codec: i32,
    /// The place in the file of what is not in the window yet, and its end.
    at: u64,
    end: u64,
    /// What was read and not used up.
    window: Vec<u8>,
    used: usize,
}

impl<'a> Pages<'a> {
    pub(super) fn new(file: &'a File, chunk: &Chunk) -> Self {
        let end = chunk.start + chunk.num_bytes;
        Self { file, codec: chunk.codec, at: chunk.start, end, window: Vec::new(), used: 0 }
    }

    /// The header of the next page that holds values, or none after the last. Its body is to be read
    /// or passed over before the next.
    pub(super) fn next(&mut self) -> Result<Option<Head>> {
        loop {
            if self.num_left() == 0 {
                return Ok(None);
            }
            let (head, kind) = self.head()?;
            match kind {
                0 | 2 | 3 => return Ok(Some(head)),
                _ => self.pass(&head)?,
            }
        }
    }

    fn num_left(&self) -> u64 {
        (self.window.len() - self.used) as u64 + (self.end - self.at)
    }

    fn head(&mut self) -> Result<(Head, i32)> {
        let mut wanted = 4096;
        loop {
            self.fill(wanted)?;
            let available = &self.window[self.used..];
            let mut reader = Reader::new(available);
            match parse_head(&mut reader) {
                Ok((head, kind)) => {
                    self.used += available.len() - reader.num_left();
                    return match head.num_packed_bytes as u64 > self.num_left() {
                        true => Err("a page is longer than its column, as the footer says".into()),
                        false => Ok((head, kind)),
                    };
                }
                Err(Fault::Short) if available.len() >= wanted && wanted < MAX_HEADER_BYTES => wanted *= 4,
                Err(fault) => return Err(format!("the header of a page is damaged: {}", fault.what())),
            }
        }
    }

    /// Reads until the window holds so many bytes that are not used up, or all that are left.
    fn fill(&mut self, num_bytes: usize) -> Result<()> {
        let held = self.window.len() - self.used;
        if held >= num_bytes || self.at == self.end {
            return Ok(());
        }
        self.window.drain(..self.used);
        self.used = 0;
        let more = (num_bytes - held).max(READ_BYTES) as u64;
        let more = more.min(self.end - self.at) as usize;
        self.window.resize(held + more, 0);
        let read = self.file.read_exact_at(&mut self.window[held..], self.at);
        read.map_err(|error| format!("cannot read: {error}"))?;
        self.at += more as u64;
        Ok(())
    }

    /// Passes over the body of a page.
    pub(super) fn pass(&mut self, head: &Head) -> Result<()> {
        let held = (self.window.len() - self.used).min(head.num_packed_bytes);
        self.used += held;
        // The page is no longer than what is left of its column.
        self.at += (head.num_packed_bytes - held) as u64;
        Ok(())
    }

    /// Reads the body of a page into `body`, decompressed.
    pub(super) fn read(&mut self, head: &Head, body: &mut Vec<u8>) -> Result<()> {
        self.fill(head.num_packed_bytes)?;
        let packed = &self.window[self.used..][..head.num_packed_bytes];
        self.used += head.num_packed_bytes;
        body.clear();
        let num_levels = match head.place {
            Place::DataV2 { num_level_bytes: [repetition, definition] } => repetition.saturating_add(definition),
            _ => 0,
        };
        let Some((levels, packed)) = packed.split_at_checked(num_levels).filter(|_| num_levels <= head.num_bytes)
        else {
            return Err("the levels of a page are longer than the page".into());
        };
        if self.codec == 0 || !head.is_packed {
            if head.num_bytes != head.num_packed_bytes {
                return Err("a page that is not compressed has two sizes".into());
            }
            body.extend_from_slice(levels);
            body.extend_from_slice(packed);
            return Ok(());
        }
        *body = vec![0; head.num_bytes];
        body[..num_levels].copy_from_slice(levels);
        let into = &mut body[num_levels..];
        // A page of nulls alone has nothing to compress.
        if into.is_empty() {
            return Ok(());
        }
        match decompress(self.codec, packed, into)? {
            num_bytes if num_bytes == into.len() => Ok(()),
            num_bytes => Err(format!("a page of {} bytes decompressed to {num_bytes}", into.len())),
        }
    }
}

/// Decompresses to at most as many bytes as there is room for; returns how many.
fn decompress(codec: i32, packed: &[u8], into: &mut [u8]) -> Result<usize> {
    let damaged = |name: &str, error: String| format!("the {name} data of a page is damaged: {error}");
    match codec {
        1 => snap::raw::Decoder::new().decompress(packed, into).map_err(|e| damaged("snappy", e.to_string())),
        2 => {
            let mut decoder = flate2::bufread::MultiGzDecoder::new(packed);
            let mut filled = 0;
            loop {
                match decoder.read(&mut into[filled..]) {
                    Ok(0) => return Ok(filled),
                    Ok(num_bytes) => filled += num_bytes,
                    Err(error) => return Err(damaged("gzip", error.to_string())),
                }
            }
        }
        5 => framed_lz4(packed, into).ok_or_else(|| damaged("lz4", "its frames do not fit".into())),
        6 => zstd::bulk::decompress_to_buffer(packed, into).map_err(|e| damaged("zstd", e.to_string())),
        7 => lz4_flex::block::decompress_into(packed, into).map_err(|e| damaged("lz4", e.to_string())),
        _ => Err(format!("its values are compressed with {}, which is not read", codec_name(codec))),
    }
}

/// The name of a codec that is not read.
fn codec_name(codec: i32) -> String {
    match codec {
        3 => "lzo".into(),
        4 => "brotli".into(),
        _ => format!("the unknown codec {codec}"),
    }
}

/// The older form of lz4: frames of two big-endian sizes, unpacked and packed; or one bare block.
fn framed_lz4(packed: &[u8], into: &mut [u8]) -> Option<usize> {
    let frames = |into: &mut [u8]| {
        let (mut rest, mut filled) = (packed, 0);
        while !rest.is_empty() {
            let (sizes, after) = rest.split_at_checked(8)?;
            let size = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| sizes[at + i])) as usize;
            let (frame, after) = after.split_at_checked(size(4))?;
            let room = into.get_mut(filled..)?.get_mut(..size(0))?;
            if lz4_flex::block::decompress_into(frame, room).ok()? != room.len() {
                return None;
            }
            filled += room.len();
            rest = after;
        }
        Some(filled)
    };
    frames(into).or_else(|| lz4_flex::block::decompress_into(packed, into).ok())
}

fn parse_head(reader: &mut Reader<'_>) -> Read<(Head, i32)> {
    let size = |size: i32| match usize::try_from(size) {
        Ok(size) if size <= MAX_PAGE_BYTES => Ok(size),
        Ok(_) => Err(Fault::Wrong("a page is larger than 256 MB")),
        Err(_) => Err(Fault::Wrong("a size is negative")),
    };
    let count = |count: i32| usize::try_from(count).map_err(|_| Fault::Wrong("a number of values is negative"));
    let mut head = Head {
        place: Place::Data,
        num_values: 0,
        encoding: -1,
        level_encoding: RLE,
        num_bytes: 0,
        num_packed_bytes: 0,
        is_packed: true,
    };
    let mut kind = -1;
    reader.fields(|reader, id, field_kind| {
        match (id, field_kind) {
            (1, Kind::I32) => kind = reader.i32()?,
            (2, Kind::I32) => head.num_bytes = size(reader.i32()?)?,
            (3, Kind::I32) => head.num_packed_bytes = size(reader.i32()?)?,
            (5 | 7, Kind::STRUCT) => {
                head.place = if id == 5 { Place::Data } else { Place::Dictionary };
                reader.fields(|reader, id, kind| {
                    match (id, kind) {
                        (1, Kind::I32) => head.num_values = count(reader.i32()?)?,
                        (2, Kind::I32) => head.encoding = reader.i32()?,
                        (3, Kind::I32) if head.place == Place::Data => head.level_encoding = reader.i32()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
            }
            (8, Kind::STRUCT) => {
                let mut num_level_bytes = [0; 2];
                reader.fields(|reader, id, kind| {
                    match (id, kind) {
                        (1, Kind::I32) => head.num_values = count(reader.i32()?)?,
                        (4, Kind::I32) => head.encoding = reader.i32()?,
                        (5, Kind::I32) => num_level_bytes[1] = size(reader.i32()?)?,
                        (6, Kind::I32) => num_level_bytes[0] = size(reader.i32()?)?,
                        (7, Kind::TRUE | Kind::FALSE) => head.is_packed = kind == Kind::TRUE,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                head.place = Place::DataV2 { num_level_bytes };
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let is_told = match head.place {
        Place::Data => kind == 0 || !matches!(kind, 2 | 3),
        Place::Dictionary => kind == 2,
        Place::DataV2 { .. } => kind == 3,
    };
    if is_told { Ok((head, kind)) } else { Err(Fault::Wrong("a page is not of the type that it says")) }
}

/// Encodings by their numbers.
pub(super) const PLAIN: i32 = 0;
pub(super) const PLAIN_DICTIONARY: i32 = 2;
pub(super) const RLE: i32 = 3;
pub(super) const DELTA_BINARY_PACKED: i32 = 5;
pub(super) const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
pub(super) const DELTA_BYTE_ARRAY: i32 = 7;
pub(super) const RLE_DICTIONARY: i32 = 8;
pub(super) const BYTE_STREAM_SPLIT: i32 = 9;
