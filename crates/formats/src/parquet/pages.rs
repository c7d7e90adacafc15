//! The pages of a column chunk, as the `parquet` crate takes them: checked and decompressed.
//!
//! The crate's own codecs clear or fill as much memory as a page claims to need. So the crate sees chunks without
//! compression, and pages are decompressed here, up to [`MAX_PAGE_BYTES`]. Its decoders allocate by counts in a page,
//! which are held to the bytes of the page.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};
use parquet::schema::types::ColumnDescPtr;

use super::guard::{self, PageHead, SHORT, take, varint, zigzag};
use super::levels::{self, PageStart, RowsBegun};
use super::schema::ChunkPlace;

/// The largest page, and the largest total size of the values of a page that share prefixes.
const MAX_PAGE_BYTES: usize = 256 << 20;
/// The largest page header, and the bytes of the first attempt to read one.
const MAX_HEADER_BYTES: u64 = 16 << 20;
const HEADER_BYTES: u64 = 4 << 10;
/// The largest number of values of a page of lists, and of the lists that are read at once, nulls included. Levels of
/// values take no bytes if they are equal.
const MAX_LIST_VALUES: u64 = 64 << 20;
/// The largest number of values of a page with their lengths as differences. The crate lays these lengths out at once.
const MAX_DELTA_VALUES: u64 = 16 << 20;

fn fault(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// The bytes of one chunk. Threads share the file, so it is read at positions.
struct ChunkBytes {
    file: Arc<File>,
    end: u64,
}

impl Length for ChunkBytes {
    fn len(&self) -> u64 {
        self.end
    }
}

impl ChunkBytes {
    /// Reads the header at a position, and its bytes; `None` where no header stands.
    fn header(&self, start: u64) -> Result<Option<(PageHead, Bytes)>> {
        let mut len = HEADER_BYTES;
        loop {
            let bytes = self.get_bytes(start, len.min(self.end.saturating_sub(start)) as usize)?;
            match guard::page_head(&bytes) {
                Ok(head) => return Ok(Some((head, bytes.slice(..head.len)))),
                Err(what) if what == SHORT && bytes.len() as u64 == len && len < MAX_HEADER_BYTES => len *= 4,
                Err(_) => return Ok(None),
            }
        }
    }
}

impl ChunkReader for ChunkBytes {
    type T = bytes::buf::Reader<Bytes>;

    /// Reads a page header, or nothing where no header stands.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.header(start)?.map_or(Bytes::new(), |(_, bytes)| bytes).reader())
    }

    fn get_bytes(&self, start: u64, len: usize) -> Result<Bytes> {
        if len as u64 > self.end.saturating_sub(start) {
            return Err(fault("a page is longer than its column, as the footer says"));
        }
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, start).map_err(|error| fault(format!("cannot read: {error}")))?;
        Ok(bytes.into())
    }
}

/// Reads the pages of one chunk.
pub(super) struct ChunkPages {
    bytes: Arc<ChunkBytes>,
    pages: SerializedPageReader<ChunkBytes>,
    /// The position of the next page.
    next_page: u64,
    /// The dictionary, if pages after it were passed before the crate asked for it.
    dictionary: Option<Page>,
    column: ColumnDescPtr,
    codec: Compression,
    /// The rows of the footer without those of the pages that were read.
    num_rows_left: u64,
    /// The values of lists that may still be read.
    num_list_values_left: u64,
}

impl ChunkPages {
    pub(super) fn new(file: &Arc<File>, column: &ColumnDescPtr, place: &ChunkPlace, num_rows: u64) -> Result<Self> {
        let ChunkPlace { start, num_bytes, codec, .. } = *place;
        let bytes = Arc::new(ChunkBytes { file: Arc::clone(file), end: start + num_bytes });
        let pages = pages_from(&bytes, column, start, num_rows)?;
        Ok(Self {
            bytes,
            pages,
            next_page: start,
            dictionary: None,
            column: Arc::clone(column),
            codec,
            num_rows_left: num_rows,
            num_list_values_left: MAX_LIST_VALUES,
        })
    }

    fn is_of_lists(&self) -> bool {
        self.column.max_rep_level() > 0
    }

    /// Finds the pages of lists that begin with a row.
    pub(super) fn list_starts(mut self) -> Result<Vec<PageStart>> {
        let (mut starts, num_rows) = (Vec::new(), self.num_rows_left);
        loop {
            self.pass_empty()?;
            // Each page is dropped at once.
            self.num_list_values_left = MAX_LIST_VALUES;
            let (position, first_row) = (self.next_page, num_rows - self.num_rows_left);
            match self.next_page_and_rows()? {
                None => return Ok(starts),
                Some((_, Some(RowsBegun { is_at_first: true, .. }))) => starts.push(PageStart { position, first_row }),
                Some(_) => {}
            }
        }
    }

    /// Passes pages of lists before a row. Returns the number of rows still to pass.
    pub(super) fn skip_lists(&mut self, starts: &[PageStart], row: u64) -> Result<usize> {
        let place = starts.partition_point(|start| start.first_row <= row);
        let Some(&PageStart { position, first_row }) = place.checked_sub(1).map(|place| &starts[place]) else {
            return Ok(row as usize);
        };
        if let Some(PageMetadata { is_dict: true, .. }) = self.peek_next_page()? {
            self.dictionary = self.get_next_page()?;
        }
        self.num_rows_left -= first_row.min(self.num_rows_left);
        self.pages = pages_from(&self.bytes, &self.column, position, self.num_rows_left)?;
        self.next_page = position;
        Ok((row - first_row) as usize)
    }

    /// Passes whole pages within the next rows without decoding them. Returns the number of rows still to pass.
    pub(super) fn skip_rows(&mut self, mut num_rows: usize) -> Result<usize> {
        while num_rows > 0 {
            match self.peek_next_page()? {
                Some(PageMetadata { is_dict: true, .. }) if self.dictionary.is_none() => {
                    self.dictionary = self.get_next_page()?;
                }
                Some(PageMetadata { num_levels: Some(len), .. }) if len <= num_rows => {
                    self.skip_next_page()?;
                    num_rows -= len;
                }
                _ => break,
            }
        }
        Ok(num_rows)
    }

    /// Counts the rows of a page.
    fn count(&mut self, num_rows: usize) -> Result<()> {
        let left = self.num_rows_left.checked_sub(num_rows as u64);
        self.num_rows_left = left.ok_or_else(|| fault("a column has more rows than the footer says"))?;
        Ok(())
    }

    /// Counts the rows of a page of lists by their levels.
    fn count_lists(&mut self, levels: &[u8], num_values: u32) -> Result<RowsBegun> {
        let left = self.num_list_values_left.checked_sub(num_values.into());
        self.num_list_values_left =
            left.ok_or_else(|| fault("the lists of a few rows have more than 67,108,864 items"))?;
        let rows = levels::rows_begun(levels, num_values).map_err(fault)?;
        self.count(rows.num_rows as usize)?;
        Ok(rows)
    }

    /// Passes pages without values, at which the crate stops, and pages with indices. Returns the end of the page after
    /// them.
    fn pass_empty(&mut self) -> Result<u64> {
        loop {
            let end = self.pass_indices()?;
            match self.pages.peek_next_page().map_err(header_fault)? {
                Some(PageMetadata { num_levels: Some(0), is_dict: false, .. }) => self.pages.skip_next_page()?,
                _ => return Ok(end),
            }
            self.next_page = end;
        }
    }

    /// Passes pages with indices, which [`SerializedPageReader::peek_next_page`] takes for pages without a body.
    /// Returns the end of the page after them.
    fn pass_indices(&mut self) -> Result<u64> {
        while self.next_page < self.bytes.end
            && let Some((head, _)) = self.bytes.header(self.next_page)?
        {
            let end = self.next_page.saturating_add(head.len as u64).saturating_add(head.num_body_bytes);
            if !head.is_index {
                return Ok(end);
            }
            self.pages.skip_next_page()?;
            self.next_page = end;
        }
        // The crate refuses a header that is damaged, so no page follows.
        Ok(self.next_page)
    }
}

impl Iterator for ChunkPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl ChunkPages {
    /// The next page, and the rows that begin in a page of lists.
    fn next_page_and_rows(&mut self) -> Result<Option<(Page, Option<RowsBegun>)>> {
        if let Some(dictionary) = self.dictionary.take() {
            return Ok(Some((dictionary, None)));
        }
        let end = self.pass_empty()?;
        let Some(mut page) = self.pages.get_next_page().map_err(header_fault)? else { return Ok(None) };
        self.next_page = end;
        let mut rows = None;
        match &mut page {
            Page::DictionaryPage { buf, num_values, .. } => {
                *buf = unpacked(self.codec, buf)?;
                if *num_values as usize > buf.len() {
                    return Err(fault("a dictionary has more values than bytes"));
                }
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
                if !self.is_of_lists() {
                    self.count(*num_values as usize)?;
                }
                *buf = unpacked(self.codec, buf)?;
                let mut values = &buf[..];
                if self.is_of_lists() {
                    rows = Some(self.count_lists(levels_of(&mut values, *rep_level_encoding)?, *num_values)?);
                }
                if self.column.max_def_level() > 0 {
                    levels_of(&mut values, *def_level_encoding)?;
                }
                check_values(*encoding, values, *num_values).map_err(fault)?;
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                is_compressed,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let num_levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                let Some((levels, values)) = buf.split_at_checked(num_levels) else {
                    return Err(fault("the levels of a page are longer than the page"));
                };
                if self.is_of_lists() {
                    rows = Some(self.count_lists(&levels[..*rep_levels_byte_len as usize], *num_values)?);
                } else {
                    self.count(*num_values as usize)?;
                }
                // A page of nulls only has nothing to decompress.
                if *is_compressed && !values.is_empty() {
                    let values = unpacked(self.codec, &buf.slice(levels.len()..))?;
                    *buf = [levels, &values].concat().into();
                }
                check_values(*encoding, &buf[num_levels..], *num_values).map_err(fault)?;
            }
        }
        Ok(Some((page, rows)))
    }
}

impl PageReader for ChunkPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        Ok(self.next_page_and_rows()?.map(|(page, _)| page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pass_empty()?;
        self.pages.peek_next_page().map_err(header_fault)
    }

    fn skip_next_page(&mut self) -> Result<()> {
        let page = self.peek_next_page()?;
        if let Some(PageMetadata { num_levels: Some(num_rows), .. }) = page {
            self.count(num_rows)?;
        }
        self.next_page = self.pass_empty()?;
        self.pages.skip_next_page()
    }
}

/// Reads the pages of a chunk from a position on, as if they were not compressed.
fn pages_from(
    bytes: &Arc<ChunkBytes>,
    column: &ColumnDescPtr,
    start: u64,
    num_rows: u64,
) -> Result<SerializedPageReader<ChunkBytes>> {
    let chunk = ColumnChunkMetaData::builder(Arc::clone(column))
        .set_data_page_offset(start as i64)
        .set_total_compressed_size((bytes.end - start) as i64)
        .build()?;
    SerializedPageReader::new(Arc::clone(bytes), &chunk, num_rows as usize, None)
}

/// Takes the levels of a page from its bytes.
fn levels_of<'a>(bytes: &mut &'a [u8], encoding: Encoding) -> Result<&'a [u8]> {
    if encoding != Encoding::RLE {
        return Err(fault("its levels are in another encoding than RLE, which is not read"));
    }
    let len = bytes.split_off(..4).map_or(0, |mut len| len.get_u32_le());
    take(bytes, len.into()).map_err(fault)
}

/// A page header is read from nothing if it was found damaged.
fn header_fault(error: ParquetError) -> ParquetError {
    match error {
        ParquetError::External(_) => fault("the header of a page is damaged"),
        other => other,
    }
}

/// Decompresses a page.
fn unpacked(codec: Compression, packed: &Bytes) -> Result<Bytes> {
    let mut bytes = Vec::new();
    let limit = MAX_PAGE_BYTES as u64 + 1;
    let bad = |what: &str| std::io::Error::other(what.to_owned());
    let damaged = |error: String| fault(format!("the {codec} data of a page is damaged: {error}"));
    let read = match codec {
        Compression::UNCOMPRESSED => return Ok(packed.clone()),
        Compression::GZIP(_) => flate2::bufread::MultiGzDecoder::new(&packed[..]).take(limit).read_to_end(&mut bytes),
        Compression::ZSTD(_) => {
            zstd::Decoder::with_buffer(&packed[..]).and_then(|decoder| decoder.take(limit).read_to_end(&mut bytes))
        }
        Compression::BROTLI(_) => {
            brotli_decompressor::Decompressor::new(&packed[..], 4096).take(limit).read_to_end(&mut bytes)
        }
        Compression::SNAPPY => {
            // A claim that the packed bytes cannot meet would clear memory for nothing.
            let len = snap::raw::decompress_len(packed).map_err(|error| damaged(error.to_string()))?;
            if len <= MAX_PAGE_BYTES.min(packed.len() * 32) {
                bytes = snap::raw::Decoder::new().decompress_vec(packed).map_err(|error| damaged(error.to_string()))?;
                Ok(len)
            } else {
                Err(bad("its length cannot be right"))
            }
        }
        Compression::LZ4 | Compression::LZ4_RAW => {
            let framed = if codec == Compression::LZ4 { lz4_frames(packed) } else { None };
            framed.or_else(|| lz4_block(packed, MAX_PAGE_BYTES)).map_or(Err(bad("its blocks are damaged")), |made| {
                bytes = made;
                Ok(0)
            })
        }
        _ => return Err(fault(format!("its values are compressed with {codec}, which is not read"))),
    };
    read.map_err(|error| damaged(error.to_string()))?;
    if bytes.len() > MAX_PAGE_BYTES {
        return Err(fault("a page is larger than 256 MB"));
    }
    Ok(bytes.into())
}

/// Decompresses the older form of lz4: frames with two big-endian sizes, unpacked and packed.
fn lz4_frames(mut packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while !packed.is_empty() {
        let mut sizes = packed.split_off(..8)?;
        let (num_bytes, num_packed) = (sizes.get_u32() as usize, sizes.get_u32() as usize);
        let frame = packed.split_off(..num_packed)?;
        let frame = lz4_block(frame, num_bytes.min(MAX_PAGE_BYTES - bytes.len()))?;
        if frame.len() != num_bytes {
            return None;
        }
        bytes.extend(frame);
    }
    Some(bytes)
}

/// Decompresses a block of lz4, of at most `limit` bytes. A block grows at most 255-fold.
fn lz4_block(packed: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; limit.min(packed.len().saturating_mul(255))];
    let len = lz4_flex::block::decompress_into(packed, &mut bytes).ok()?;
    bytes.truncate(len);
    bytes.shrink_to_fit();
    Some(bytes)
}

/// Checks the counts and sizes in a page with lengths as differences, which the crate takes as they are.
fn check_values(encoding: Encoding, mut values: &[u8], num_values: u32) -> guard::Result<()> {
    match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => sum_of_differences(&mut values, num_values).map(|_| ()),
        Encoding::DELTA_BYTE_ARRAY => {
            let shared = sum_of_differences(&mut values, num_values)?;
            let own = sum_of_differences(&mut values, num_values)?;
            if shared.saturating_add(own) > MAX_PAGE_BYTES as u64 {
                return Err("the values of a page take more than 256 MB".into());
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The sum of numbers that are stored as differences. There are at most `limit`.
fn sum_of_differences(bytes: &mut &[u8], limit: u32) -> guard::Result<u64> {
    let (block_len, num_parts, count) = (varint(bytes)?, varint(bytes)?, varint(bytes)?);
    let part_len = block_len.checked_div(num_parts).unwrap_or(0);
    if count > u64::from(limit).min(MAX_DELTA_VALUES) || part_len == 0 || part_len % 8 != 0 {
        return Err(format!("a page has {count} lengths in blocks of {block_len} for {limit} values"));
    }
    let mut value = zigzag(varint(bytes)?) as i32;
    let (mut sum, mut left) = (value.max(0) as u64, count.saturating_sub(1));
    while left > 0 {
        let least = zigzag(varint(bytes)?) as i32;
        for &width in take(bytes, num_parts)? {
            if left == 0 {
                break;
            }
            let part = take(bytes, (part_len / 8).saturating_mul(width.into()))?;
            let width = usize::from(width);
            for i in 0..part_len.min(left) as usize {
                let bits = i * width..(i + 1) * width;
                let above = bits.rev().fold(0_u64, |bits, at| bits << 1 | u64::from(part[at / 8] >> (at % 8) & 1));
                value = value.wrapping_add(least).wrapping_add(above as i32);
                sum += value.max(0) as u64;
            }
            left = left.saturating_sub(part_len);
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_a_largest_size() {
        let mut packed = Vec::new();
        let zeros = std::io::repeat(0).take(MAX_PAGE_BYTES as u64 + 1);
        zstd::stream::copy_encode(zeros, &mut packed, 1).unwrap();
        assert!(packed.len() < 1 << 20, "{} bytes", packed.len());
        let error = unpacked(Compression::ZSTD(Default::default()), &packed.into()).unwrap_err();
        assert_eq!(error.to_string(), "Parquet error: a page is larger than 256 MB");
        // A length of 200 MB before three bytes, and frames of as much.
        let claim = Bytes::from_static(&[0x80, 0x90, 0xaf, 0x5f, 0, 0, 0]);
        assert!(unpacked(Compression::SNAPPY, &claim).unwrap_err().to_string().contains("cannot be right"));
        let frames = Bytes::from_static(&[0x0b, 0xeb, 0xc2, 0, 0, 0, 0, 1, 0]);
        assert!(unpacked(Compression::LZ4, &frames).is_err());
        let lzo = unpacked(Compression::LZO, &claim).unwrap_err().to_string();
        assert!(lzo.contains("compressed with LZO, which is not read"), "{lzo}");
    }

    #[test]
    fn frames_of_lz4_are_joined() {
        let block = |text: &[u8]| {
            let mut packed = vec![0; lz4_flex::block::get_maximum_output_size(text.len())];
            let len = lz4_flex::block::compress_into(text, &mut packed).unwrap();
            packed.truncate(len);
            packed
        };
        let frame = |text: &[u8]| {
            let packed = block(text);
            [&(text.len() as u32).to_be_bytes()[..], &(packed.len() as u32).to_be_bytes(), &packed].concat()
        };
        let framed = [frame(b"some words, "), frame(&[b'x'; 1000])].concat().into();
        let expected = [&b"some words, "[..], &[b'x'; 1000]].concat();
        assert_eq!(unpacked(Compression::LZ4, &framed).unwrap(), expected);
        assert_eq!(unpacked(Compression::LZ4, &block(&expected).into()).unwrap(), expected);
        assert_eq!(unpacked(Compression::LZ4_RAW, &block(&expected).into()).unwrap(), expected);
    }

    #[test]
    fn counts_of_lengths_are_held_to_the_values() {
        // Lengths 5, 5, 6, 6 in one block of 128 values: "Hello", "World", "Foobar", "ABCDEF".
        let mut page = vec![0x80, 1, 4, 4, 10, 0, 1, 0, 0, 0, 0b010, 0, 0, 0];
        assert_eq!(sum_of_differences(&mut &page[..], 4), Ok(22));
        page.extend(b"HelloWorldFoobarABCDEF");
        assert_eq!(check_values(Encoding::DELTA_LENGTH_BYTE_ARRAY, &page, 4), Ok(()));
        assert!(check_values(Encoding::DELTA_LENGTH_BYTE_ARRAY, &page, 3).is_err());
        assert!(check_values(Encoding::DELTA_LENGTH_BYTE_ARRAY, &page[..8], 4).is_err());
        // A million values that each share 256 MB with the one before.
        let shared = [0x80, 1, 4, 0x80, 0x80, 0x40, 0x80, 0x80, 0x80, 0x80, 2];
        let blocks = [0, 0, 0, 0, 0].repeat(8192);
        let own = [0x80, 1, 4, 1, 0];
        let error = check_values(Encoding::DELTA_BYTE_ARRAY, &[&shared[..], &blocks, &own].concat(), 1 << 20);
        assert_eq!(error, Err("the values of a page take more than 256 MB".into()));
    }
}
