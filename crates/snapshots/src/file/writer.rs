//! Writes a data file as a stream.

use std::path::{Path, PathBuf};

use anden_base::checksum::{BLOCK_BYTES, crc32c, crc32c_append};
use anden_base::storage::{AppendedFile, GRAIN_BYTES, Storage};

use super::{
    ENTRY_BYTES, FORMAT_VERSION, FileKind, HEADER_BYTES, HEADER_CHECKED_BYTES, MAGIC, SectionEntry, SectionKind,
};
use crate::Result;
use crate::encoding::Encoder;
use crate::options::DatabaseId;

/// Offset of the database id in the header.
const ID_AT: usize = 16;

/// A file under construction. Dropped before [`finish`](Self::finish), it stays incomplete.
#[derive(Debug)]
pub(crate) struct FileWriter {
    /// The bytes on disk, the header included.
    file: AppendedFile,
    path: PathBuf,
    /// Appended bytes that are not on disk, up to the end of a grain.
    buffer: Vec<u8>,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    kind: SectionKind,
    offset: u64,
    len: u64,
    checksums: Vec<u32>,
    /// Checksum of the last block, while it is not full.
    block_crc: u32,
}

/// A complete and durable file, whose final name is not durable yet.
#[derive(Clone, Debug)]
pub(crate) struct WrittenFile {
    pub kind: FileKind,
    pub path: PathBuf,
    pub len: u64,
    pub header_crc: u32,
}

impl FileWriter {
    /// Creates `path`, which must not exist.
    pub fn create(storage: &dyn Storage, path: &Path) -> Result<Self> {
        let file = AppendedFile::new(storage.create(path)?);
        // The header is written last, so that an incomplete file never has a valid one.
        let buffer = vec![0; HEADER_BYTES];
        Ok(Self { file, path: path.to_owned(), buffer, sections: Vec::new() })
    }

    /// Ends the current section, and begins another.
    pub fn begin_section(&mut self, kind: SectionKind) -> Result<()> {
        self.end_section();
        // Aligned, so that a mapped section can be read as values of its type.
        let offset = self.align(kind.alignment())?;
        self.sections.push(Section { kind, offset, len: 0, checksums: Vec::new(), block_crc: 0 });
        Ok(())
    }

    /// Appends to the current section.
    ///
    /// # Panics
    /// If no section was begun.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.sections.last_mut().expect("a section is begun before it is filled").cover(bytes);
        self.put(bytes)
    }

    /// Writes checksums, directory and header, and syncs the file.
    pub fn finish(mut self, kind: FileKind, id: DatabaseId) -> Result<WrittenFile> {
        self.end_section();
        let sections = std::mem::take(&mut self.sections);
        let mut directory = Encoder::default();
        for section in &sections {
            let checksums_offset = self.align(8)?;
            let checksums: Vec<u8> = section.checksums.iter().flat_map(|crc| crc.to_le_bytes()).collect();
            self.put(&checksums)?;
            let checksums_crc = crc32c(&checksums);
            let Section { kind, offset, len, .. } = *section;
            SectionEntry { kind: kind as u32, offset, len, checksums_offset, checksums_crc }.encode(&mut directory);
        }
        let directory_offset = self.align(8)?;
        self.put(&directory.0)?;
        // Everything behind the header is written before the header, which makes the file valid.
        self.flush()?;
        let header = encode_header(kind, id, self.file.len(), directory_offset, sections.len() as u32, &directory.0);
        self.file.file().write_at(0, &header)?;
        // Only then may the file get its name.
        self.file.file().sync()?;
        let header_crc = crc32c(&header[..HEADER_CHECKED_BYTES]);
        Ok(WrittenFile { kind, path: self.path, len: self.file.len(), header_crc })
    }

    fn end_section(&mut self) {
        if let Some(section) = self.sections.last_mut()
            // A full last block has its checksum already.
            && !section.len.is_multiple_of(BLOCK_BYTES as u64)
        {
            section.checksums.push(section.block_crc);
        }
    }

    fn position(&self) -> u64 {
        self.file.len() + self.buffer.len() as u64
    }

    /// Appends zeros up to a multiple of `alignment`; returns the position.
    fn align(&mut self, alignment: u64) -> Result<u64> {
        let position = self.position().next_multiple_of(alignment);
        let num_zeros = (position - self.position()) as usize;
        // No alignment exceeds the header, so its zeros suffice.
        self.put(&[0; HEADER_BYTES][..num_zeros])?;
        Ok(position)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        // Writes end at the borders of huge pages, whatever the caller appends.
        let to_boundary = GRAIN_BYTES - (self.position() % GRAIN_BYTES as u64) as usize;
        if bytes.len() < to_boundary {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        let (closing, rest) = bytes.split_at(to_boundary);
        self.buffer.extend_from_slice(closing);
        self.flush()?;
        // Whole grains are written without a copy.
        let (grains, open) = rest.split_at(rest.len() - rest.len() % GRAIN_BYTES);
        if !grains.is_empty() {
            self.file.append(grains)?;
        }
        self.buffer.extend_from_slice(open);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            // Taken out and put back, to keep its memory.
            let mut buffer = std::mem::take(&mut self.buffer);
            self.file.append(&buffer)?;
            buffer.clear();
            self.buffer = buffer;
        }
        Ok(())
    }
}

impl Section {
    /// Adds `bytes` to the checksums.
    fn cover(&mut self, bytes: &[u8]) {
        let num_open = (self.len % BLOCK_BYTES as u64) as usize;
        let num_closing = if num_open == 0 { 0 } else { bytes.len().min(BLOCK_BYTES - num_open) };
        let (closing, rest) = bytes.split_at(num_closing);
        if num_open > 0 {
            // A block may span several appends, so its checksum continues.
            self.block_crc = crc32c_append(self.block_crc, closing);
            if num_open + num_closing == BLOCK_BYTES {
                self.checksums.push(self.block_crc);
            }
        }
        let (blocks, open) = rest.as_chunks::<BLOCK_BYTES>();
        // Whole blocks are checksummed in place, without a copy.
        self.checksums.extend(blocks.iter().map(|block| crc32c(block)));
        if !open.is_empty() {
            self.block_crc = crc32c(open);
        }
        self.len += bytes.len() as u64;
    }
}

impl SectionEntry {
    fn encode(&self, directory: &mut Encoder) {
        directory.u32(self.kind);
        directory.u32(self.checksums_crc);
        directory.u64(self.offset);
        directory.u64(self.len);
        directory.u64(self.checksums_offset);
        directory.u64(0);
        debug_assert!(directory.0.len().is_multiple_of(ENTRY_BYTES));
    }
}

fn encode_header(
    kind: FileKind,
    id: DatabaseId,
    file_len: u64,
    directory_offset: u64,
    num_sections: u32,
    directory: &[u8],
) -> Vec<u8> {
    let mut header = Encoder::default();
    header.bytes(&MAGIC);
    header.u32(FORMAT_VERSION);
    header.u32(kind as u32);
    header.u32(num_sections);
    header.bytes(&id.0);
    header.u64(file_len);
    header.u64(directory_offset);
    header.u32(crc32c(directory));
    header.pad_to(HEADER_CHECKED_BYTES);
    header.u32(crc32c(&header.0));
    header.0
}

/// Gives a header block another database id. Returns the new checksum of the header.
pub(crate) fn give_id(header: &mut [u8], id: DatabaseId) -> u32 {
    header[ID_AT..ID_AT + id.0.len()].copy_from_slice(&id.0);
    let crc = crc32c(&header[..HEADER_CHECKED_BYTES]);
    header[HEADER_CHECKED_BYTES..].copy_from_slice(&crc.to_le_bytes());
    crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_testkit::{FaultPlan, FaultStorage};

    #[test]
    fn checksums_do_not_depend_on_the_pieces() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES + 77).map(|i| ((i * i) >> 3) as u8).collect();
        let whole: Vec<u32> = anden_base::checksum::block_checksums(&bytes).collect();
        for piece in [1, 63, 4095, 4096, 4097, 9000, 100_000] {
            let disk = FaultStorage::new(FaultPlan::Never);
            let mut writer = FileWriter::create(&disk, "file".as_ref()).unwrap();
            writer.begin_section(SectionKind::StringText).unwrap();
            bytes.chunks(piece).for_each(|part| writer.append(part).unwrap());
            writer.end_section();
            assert_eq!(writer.sections[0].checksums, whole, "pieces of {piece}");
        }
    }

    #[test]
    fn writes_end_where_grains_do() {
        let grain = GRAIN_BYTES;
        let bytes: Vec<u8> = (0..4 * grain + 4321).map(|i| (i >> 4) as u8 ^ i as u8).collect();
        for piece in [1000, 70_001, grain - HEADER_BYTES, grain, 2 * grain + 5, bytes.len()] {
            let disk = FaultStorage::new(FaultPlan::Never);
            let mut writer = FileWriter::create(&disk, "file".as_ref()).unwrap();
            writer.begin_section(SectionKind::StringText).unwrap();
            for part in bytes.chunks(piece) {
                writer.append(part).unwrap();
                assert_eq!(writer.file.len() % GRAIN_BYTES as u64, 0, "pieces of {piece}");
                assert!(writer.buffer.len() < grain, "pieces of {piece}");
            }
            let len = writer.finish(FileKind::OutTargets, DatabaseId([7; 16])).unwrap().len;
            let file = disk.contents("file".as_ref()).unwrap();
            assert_eq!(file.len() as u64, len, "pieces of {piece}");
            assert!(file[HEADER_BYTES..].starts_with(&bytes), "pieces of {piece}");
            assert!(file.starts_with(&MAGIC), "pieces of {piece}");
        }
    }
}
