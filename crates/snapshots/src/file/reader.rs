//! Opens a data file and gives access to its sections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::checksum::{BLOCK_BYTES, CheckedBytes, crc32c};
use anden_base::mapped::{Advice, EndMark, FileBytes, MappedSlice};
use anden_base::parallel::Pool;
use anden_base::storage::Storage;
use bytemuck::Pod;

use super::{
    ENTRY_BYTES, FORMAT_VERSION, FileKind, HEADER_BYTES, HEADER_CHECKED_BYTES, MAGIC, MAX_SECTIONS, SectionEntry,
    SectionKind,
};
use crate::encoding::Decoder;
use crate::options::DatabaseId;
use crate::{Error, Result};

/// Bytes of a section that a worker verifies at once.
const CHUNK_BYTES: usize = 256 * BLOCK_BYTES;

/// Bytes behind a copied part that the disk is asked for.
const AHEAD_BYTES: usize = 8 * CHUNK_BYTES;

/// A file with verified header, directory, checksum lists and padding. Its sections are not verified yet.
#[derive(Debug)]
pub(crate) struct FramedFile {
    path: PathBuf,
    bytes: FileBytes,
    end_mark: Option<EndMark>,
    kind: FileKind,
    id: DatabaseId,
    header_crc: u32,
    sections: Vec<(u32, Arc<CheckedBytes>)>,
}

struct FramedFileHeader {
    kind: u32,
    num_sections: u32,
    id: DatabaseId,
    file_len: u64,
    directory_offset: u64,
    directory_crc: u32,
    header_crc: u32,
}

impl FramedFile {
    /// Opens a file of this kind and database.
    ///
    /// # Errors
    /// The file is missing, of another kind, version or database, or damaged.
    pub fn open(storage: &dyn Storage, path: &Path, kind: FileKind, id: DatabaseId) -> Result<Self> {
        Self::of_bytes(storage.read(path)?, path, kind, id)
    }

    /// As [`open`](Self::open), with the bytes of the file at hand; `path` names them in errors.
    pub fn of_bytes(bytes: FileBytes, path: &Path, kind: FileKind, id: DatabaseId) -> Result<Self> {
        // Before the directory, the last part of the file, is verified.
        let end_mark = bytes.end_mark();
        let header = read_header(&bytes, path)?;
        let corrupt = |offset, what: String| Err(anden_base::Error::corrupt(path, offset, what).into());
        if header.kind != kind as u32 {
            let found = FileKind::from_number(header.kind);
            return corrupt(8, format!("file kind {kind:?} expected, {found:?} ({}) found", header.kind));
        }
        // Numbers are unique only within one database, so a file of another one could have this name.
        if header.id != id {
            return corrupt(16, "the file belongs to another database".into());
        }
        // A truncated or extended file is found here, before any section is touched.
        if header.file_len != bytes.len() as u64 {
            return corrupt(32, format!("{} bytes expected, {} found", header.file_len, bytes.len()));
        }
        let entries = read_directory(&bytes, path, &header)?;
        check_layout(&bytes, path, &header, &entries)?;
        let sections = entries.iter().map(|entry| Ok((entry.kind, Arc::new(checked_section(&bytes, path, entry)?))));
        let sections = sections.collect::<Result<_>>()?;
        Ok(Self { path: path.to_owned(), bytes, end_mark, kind, id, header_crc: header.header_crc, sections })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file is for.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// The mark of the file's end, if the file is mapped.
    pub fn end_mark(&self) -> Option<&EndMark> {
        self.end_mark.as_ref()
    }

    /// An error about a file that lost its end mark.
    pub fn cut(&self) -> anden_base::Error {
        let what = "the file was cut while it was in use; put it back whole, and open the database again";
        anden_base::Error::corrupt(&self.path, self.len(), what)
    }

    /// Bytes of the whole file.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The header block.
    pub fn header(&self) -> &[u8] {
        &self.bytes.as_slice()[..HEADER_BYTES]
    }

    /// Checksum of the header, which identifies the whole file.
    pub fn header_crc(&self) -> u32 {
        self.header_crc
    }

    /// The kinds of all sections, as numbers.
    pub fn kinds(&self) -> impl Iterator<Item = u32> {
        self.sections.iter().map(|(kind, _)| *kind)
    }

    /// All sections.
    pub fn sections(&self) -> impl Iterator<Item = &CheckedBytes> {
        self.sections.iter().map(|(_, section)| &**section)
    }

    /// Verifies all sections.
    ///
    /// # Errors
    /// The first damaged block.
    pub fn verify(&self, pool: &Pool) -> Result<()> {
        for section in self.sections() {
            let results = pool.map_chunks(0..section.bytes().len(), CHUNK_BYTES, |_, range| section.verify(range));
            results.into_iter().collect::<anden_base::Result<()>>()?;
        }
        Ok(())
    }

    /// Verifies the whole file again, and hands its bytes over part by part, in order. Every part is verified before it
    /// is handed over.
    ///
    /// # Errors
    /// The first fault; an error of `take`.
    pub fn copy(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        // Opened anew, because blocks that were verified before count as verified.
        let fresh = Self::of_bytes(self.bytes.clone(), &self.path, self.kind, self.id)?;
        let all = fresh.bytes.as_slice();
        let mut end = 0;
        // Sections follow each other, as `check_layout` has found.
        for section in fresh.sections() {
            let start = section.file_offset() as usize;
            all[end..start].chunks(CHUNK_BYTES).try_for_each(&mut *take)?;
            end = start + section.bytes().len();
            for from in (start..end).step_by(CHUNK_BYTES) {
                let to = end.min(from + CHUNK_BYTES);
                // Asks for the next part, so that the disk reads while this one is written.
                fresh.bytes.advise_part(to..all.len().min(to + AHEAD_BYTES), Advice::WillNeed);
                section.verify(from - start..to - start)?;
                take(&all[from..to])?;
            }
        }
        // Checksums and directory were verified at the opening.
        all[end..].chunks(CHUNK_BYTES).try_for_each(take)?;
        match &self.end_mark {
            Some(mark) if !mark.is_there() => Err(self.cut().into()),
            _ => Ok(()),
        }
    }

    /// The section of this kind.
    ///
    /// # Errors
    /// The file has no such section.
    pub fn section(&self, kind: SectionKind) -> Result<&Arc<CheckedBytes>> {
        self.optional_section(kind).ok_or_else(|| self.corrupt(format!("there is no section {kind:?}")))
    }

    /// The section of this kind, if the file has one.
    pub fn optional_section(&self, kind: SectionKind) -> Option<&Arc<CheckedBytes>> {
        self.sections.iter().find(|(number, _)| *number == kind as u32).map(|(_, section)| section)
    }

    /// The section of this kind as values, not verified yet.
    ///
    /// # Errors
    /// The file has no such section, or its length is not a multiple of a value's.
    pub fn values<T: Pod>(&self, kind: SectionKind) -> Result<MappedSlice<T>> {
        let section = self.section(kind)?;
        let values = MappedSlice::new(section.bytes().clone());
        values.ok_or_else(|| {
            let what =
                format!("section {kind:?} has {} bytes, no multiple of {}", section.bytes().len(), size_of::<T>());
            anden_base::Error::corrupt(&self.path, section.file_offset(), what).into()
        })
    }

    /// An error about the structure of the file.
    pub fn corrupt(&self, what: impl Into<String>) -> Error {
        anden_base::Error::corrupt(&self.path, 0, what).into()
    }
}

fn read_header(bytes: &FileBytes, path: &Path) -> Result<FramedFileHeader> {
    let corrupt = |offset, what: &str| -> Error { anden_base::Error::corrupt(path, offset, what).into() };
    let Some(block) = bytes.as_slice().get(..HEADER_BYTES) else {
        return Err(corrupt(0, &format!("a header of {HEADER_BYTES} bytes expected, {} bytes found", bytes.len())));
    };
    // Before the checksum, so that a foreign file is not reported as damaged.
    if block[..MAGIC.len()] != MAGIC {
        return Err(corrupt(0, "the file does not start as a data file does"));
    }
    let (checked, crc) = block.split_at(HEADER_CHECKED_BYTES);
    // The manifest stores this checksum, which identifies the whole file.
    let header_crc = crc32c(checked);
    // The header leads to all else, so it is verified before any of its fields is used.
    if header_crc.to_le_bytes() != crc {
        return Err(corrupt(0, "the checksum of the header does not fit"));
    }
    let mut decoder = Decoder::new(&checked[MAGIC.len()..]);
    let mut read = || {
        let version = decoder.u32()?;
        let (kind, num_sections, id) = (decoder.u32()?, decoder.u32()?, DatabaseId(decoder.array()?));
        let (file_len, directory_offset, directory_crc) = (decoder.u64()?, decoder.u64()?, decoder.u32()?);
        let header = FramedFileHeader { kind, num_sections, id, file_len, directory_offset, directory_crc, header_crc };
        Some((version, header))
    };
    let (version, header) = read().ok_or_else(|| corrupt(0, "the header is cut"))?;
    if version != FORMAT_VERSION {
        return Err(Error::OtherVersion { path: path.to_owned(), found: version, supported: FORMAT_VERSION });
    }
    if !decoder.zeros() {
        return Err(corrupt(0, "the reserved part of the header is not zero"));
    }
    Ok(header)
}

fn read_directory(bytes: &FileBytes, path: &Path, header: &FramedFileHeader) -> Result<Vec<SectionEntry>> {
    let corrupt = |what: &str| -> Error { anden_base::Error::corrupt(path, header.directory_offset, what).into() };
    // The count is from the file, and is bounded before it is multiplied.
    if header.num_sections > MAX_SECTIONS {
        return Err(corrupt("too many sections"));
    }
    let directory = bytes.slice(header.directory_offset..bytes.len() as u64);
    let directory = directory.ok_or_else(|| corrupt("the directory of sections is outside the file"))?;
    if directory.len() != header.num_sections as usize * ENTRY_BYTES {
        return Err(corrupt("the directory of sections has a wrong length"));
    }
    // Verified as a whole at the opening, because the directory leads to all sections.
    if crc32c(directory.as_slice()) != header.directory_crc {
        return Err(corrupt("the checksum of the directory of sections does not fit"));
    }
    let mut decoder = Decoder::new(directory.as_slice());
    let mut entries = Vec::new();
    while !decoder.is_empty() {
        let entry =
            SectionEntry::decode(&mut decoder).ok_or_else(|| corrupt("bad entry in the directory of sections"))?;
        entries.push(entry);
    }
    Ok(entries)
}

impl SectionEntry {
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (kind, checksums_crc) = (decoder.u32()?, decoder.u32()?);
        let (offset, len, checksums_offset) = (decoder.u64()?, decoder.u64()?, decoder.u64()?);
        let reserved = decoder.u64()?;
        (reserved == 0).then_some(Self { kind, offset, len, checksums_offset, checksums_crc })
    }

    fn checksums_len(&self) -> u64 {
        self.len.div_ceil(BLOCK_BYTES as u64) * 4
    }
}

/// Checks that sections, checksums and directory follow each other, with only zeros between them. So every byte of the
/// file is covered.
fn check_layout(bytes: &FileBytes, path: &Path, header: &FramedFileHeader, entries: &[SectionEntry]) -> Result<()> {
    let sections = entries.iter().map(|entry| (entry.offset, entry.len));
    let checksums = entries.iter().map(|entry| (entry.checksums_offset, entry.checksums_len()));
    let directory = [(header.directory_offset, 0)];
    let mut end = HEADER_BYTES as u64;
    for (offset, len) in sections.chain(checksums).chain(directory) {
        let gap = if offset >= end { bytes.slice(end..offset) } else { None };
        // No alignment needs more padding.
        let Some(gap) = gap.filter(|gap| gap.len() < HEADER_BYTES) else {
            let what = format!("a part of the file was expected at {end}, found at {offset}");
            return Err(anden_base::Error::corrupt(path, end, what).into());
        };
        if let Some(position) = gap.as_slice().iter().position(|&byte| byte != 0) {
            return Err(anden_base::Error::corrupt(path, end + position as u64, "padding is not zero").into());
        }
        // Lengths are from the file, so their sum may overflow; the next comparison then fails.
        end = offset.saturating_add(len);
    }
    Ok(())
}

fn checked_section(bytes: &FileBytes, path: &Path, entry: &SectionEntry) -> Result<CheckedBytes> {
    let corrupt = |offset, what: &str| -> Error { anden_base::Error::corrupt(path, offset, what).into() };
    let end = entry.offset.saturating_add(entry.len);
    let section = bytes.slice(entry.offset..end);
    let section = section.ok_or_else(|| corrupt(entry.offset, "a section reaches past the end"))?;
    let checksums = bytes.typed::<u32>(entry.checksums_offset, entry.checksums_len() / 4);
    let checksums = checksums.ok_or_else(|| corrupt(entry.checksums_offset, "checksums reach past the end"))?;
    // The list of checksums is small, so it is verified at the opening; blocks are verified when they are read.
    if crc32c(checksums.bytes().as_slice()) != entry.checksums_crc {
        return Err(corrupt(entry.checksums_offset, "the checksum of a section's checksums does not fit"));
    }
    Ok(CheckedBytes::new(section, checksums, path, entry.offset)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::FileWriter;
    use anden_testkit::{FaultPlan, FaultStorage};

    const ID: DatabaseId = DatabaseId([7; 16]);

    fn disk_with_file() -> FaultStorage {
        let disk = FaultStorage::new(FaultPlan::Never);
        let mut writer = FileWriter::create(&disk, "file".as_ref()).unwrap();
        writer.begin_section(SectionKind::Offsets).unwrap();
        writer.append(&[1, 0, 0, 0, 2, 0, 0, 0, 3]).unwrap();
        writer.begin_section(SectionKind::PageIndex).unwrap();
        writer.begin_section(SectionKind::Targets).unwrap();
        writer.append(&[9; 5000]).unwrap();
        writer.finish(FileKind::OutTable, ID).unwrap();
        disk
    }

    fn open(disk: &FaultStorage) -> Result<FramedFile> {
        let file = FramedFile::open(disk, "file".as_ref(), FileKind::OutTable, ID)?;
        file.sections().try_for_each(|section| section.verify(0..section.bytes().len()))?;
        Ok(file)
    }

    #[test]
    fn sections_come_back() {
        let file = open(&disk_with_file()).unwrap();
        assert_eq!(*file.values::<u8>(SectionKind::Targets).unwrap(), [9; 5000]);
        assert!(file.values::<u8>(SectionKind::PageIndex).unwrap().is_empty());
        assert_eq!(file.section(SectionKind::Targets).unwrap().file_offset() % 4096, 0);
        let error = file.values::<u32>(SectionKind::Offsets).unwrap_err().to_string();
        assert!(error.contains("9 bytes, no multiple of 4"), "{error}");
        assert!(file.section(SectionKind::Weights).unwrap_err().to_string().contains("no section Weights"));
    }

    #[test]
    fn every_byte_is_covered() {
        let disk = disk_with_file();
        let whole = disk.contents("file".as_ref()).unwrap();
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x10;
            disk.set_contents("file".as_ref(), &bytes);
            assert!(open(&disk).is_err(), "byte {place} of {}", whole.len());
            disk.set_contents("file".as_ref(), &whole[..place]);
            assert!(open(&disk).is_err(), "cut at {place} of {}", whole.len());
        }
        disk.set_contents("file".as_ref(), &[&whole[..], &[0]].concat());
        assert!(open(&disk).is_err(), "one byte more");
    }

    /// Recomputes the checksums of directory and header.
    fn seal(bytes: &mut [u8]) {
        let directory = u64::from_le_bytes(*bytes[40..].first_chunk().unwrap()) as usize;
        let crc = crc32c(&bytes[directory..]);
        bytes[48..52].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32c(&bytes[..HEADER_CHECKED_BYTES]);
        bytes[HEADER_CHECKED_BYTES..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    }

    /// Newer versions may use these bytes, and a file has one valid form.
    #[test]
    fn nonzero_reserved_bytes_are_refused() {
        let disk = disk_with_file();
        let whole = disk.contents("file".as_ref()).unwrap();
        let last_entry = whole.len() - ENTRY_BYTES;
        for (place, what) in [
            (52, "reserved part of the header"),
            (HEADER_CHECKED_BYTES - 1, "reserved part of the header"),
            (last_entry + 32, "bad entry in the directory"),
            (last_entry + ENTRY_BYTES - 1, "bad entry in the directory"),
        ] {
            let mut bytes = whole.clone();
            bytes[place] = 1;
            seal(&mut bytes);
            disk.set_contents("file".as_ref(), &bytes);
            let error = open(&disk).unwrap_err().to_string();
            assert!(error.contains(what), "byte {place}: {error}");
        }
    }

    /// The checksum of the header identifies the file: a block cannot change together with its own checksum.
    #[test]
    fn a_block_that_changed_with_its_checksum_is_refused() {
        let disk = disk_with_file();
        let mut bytes = disk.contents("file".as_ref()).unwrap();
        let entry = bytes.len() - ENTRY_BYTES;
        let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
        let (offset, checksums) = (number(entry + 8), number(entry + 24));
        bytes[offset] ^= 1;
        let crc = crc32c(&bytes[offset..][..BLOCK_BYTES]);
        bytes[checksums..checksums + 4].copy_from_slice(&crc.to_le_bytes());
        disk.set_contents("file".as_ref(), &bytes);
        let error = open(&disk).unwrap_err().to_string();
        assert!(error.contains("the checksum of a section's checksums does not fit"), "{error}");
    }

    #[test]
    fn a_file_of_another_length_is_told_so() {
        let disk = disk_with_file();
        let whole = disk.contents("file".as_ref()).unwrap();
        for bytes in [&whole[..whole.len() - 1], &[&whole[..], &[0]].concat()] {
            disk.set_contents("file".as_ref(), bytes);
            let error = open(&disk).unwrap_err().to_string();
            assert!(error.contains(&format!("{} bytes expected, {} found", whole.len(), bytes.len())), "{error}");
        }
    }

    #[test]
    fn mismatched_file_header_is_refused() {
        let disk = disk_with_file();
        let of = |kind, id| FramedFile::open(&disk, "file".as_ref(), kind, id).unwrap_err().to_string();
        assert!(of(FileKind::Dictionary, ID).contains("kind Dictionary expected, Some(OutTable)"));
        assert!(of(FileKind::OutTable, DatabaseId([8; 16])).contains("another database"));
        let mut bytes = disk.contents("file".as_ref()).unwrap();
        bytes[4] += 1;
        let crc = crc32c(&bytes[..HEADER_CHECKED_BYTES]);
        bytes[HEADER_CHECKED_BYTES..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        disk.set_contents("file".as_ref(), &bytes);
        assert!(matches!(open(&disk), Err(Error::OtherVersion { found, .. }) if found == FORMAT_VERSION + 1));
    }
}
