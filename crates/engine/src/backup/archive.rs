//! A backup as one stream: a tar archive, compressed by zstd.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anden_base::storage::HeldFile;
use anden_snapshots::BackupList;

use super::sink::{BackupSink, BackupStream};
use crate::{Error, Result};

/// Tar stores headers, and pads files, in blocks of this many bytes.
const TAR_BLOCK: usize = 512;

/// A fast level: lists of targets shrink by little more at higher ones.
const LEVEL: i32 = 1;

/// Access to an extracted file.
const MODE: u32 = 0o600;

/// Writes an archive.
pub(super) struct ArchiveSink<'a> {
    encoder: zstd::Encoder<'static, BackupStream<'a>>,
    /// Bytes of the file that are missing.
    num_left: u64,
    /// Zeros that follow the file.
    num_padding: usize,
}

impl<'a> ArchiveSink<'a> {
    pub(super) fn new(stream: BackupStream<'a>) -> Result<Self> {
        let failed = |error| Error::internal(format!("cannot begin to compress: {error}"));
        let mut encoder = zstd::Encoder::new(stream, LEVEL).map_err(failed)?;
        encoder.include_checksum(true).map_err(failed)?;
        Ok(Self { encoder, num_left: 0, num_padding: 0 })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.encoder.write_all(bytes).map_err(|error| self.encoder.get_mut().failed(error))
    }
}

impl BackupSink for ArchiveSink<'_> {
    fn begin(&mut self, name: &str, len: u64) -> Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_path(name).map_err(|error| Error::internal(format!("cannot archive {name}: {error}")))?;
        header.set_size(len);
        header.set_mode(MODE);
        header.set_mtime(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()));
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        self.num_left = len;
        self.num_padding = (len.next_multiple_of(TAR_BLOCK as u64) - len) as usize;
        self.put(header.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.num_left = self.num_left.saturating_sub(bytes.len() as u64);
        self.put(bytes)
    }

    fn end(&mut self) -> Result<()> {
        debug_assert_eq!(self.num_left, 0, "the header states the length");
        self.put(&[0; TAR_BLOCK][..self.num_padding])
    }

    fn finish(&mut self, list: &[u8]) -> Result<()> {
        self.begin(BackupList::NAME, list.len() as u64)?;
        self.write(list)?;
        self.end()?;
        // Two empty blocks end an archive.
        self.put(&[0; 2 * TAR_BLOCK])?;
        self.encoder.do_finish().map_err(|error| self.encoder.get_mut().failed(error))?;
        self.encoder.get_mut().finish()
    }
}

/// Calls `take` with name, length and content of each file of the archive at `path`, in order. `take` reads what it
/// needs.
///
/// # Errors
/// The archive is damaged or cut; an entry is no regular file, or no backup has a file of this name; errors of `take`.
pub(super) fn read_archive(
    path: &Path,
    input: impl Read,
    take: &mut dyn FnMut(&str, u64, &mut dyn Read) -> Result<()>,
) -> Result<()> {
    let unreadable = |error| unreadable(path, error);
    let decoder = zstd::Decoder::new(input).map_err(unreadable)?;
    let mut archive = tar::Archive::new(decoder);
    // Raw: an entry of another kind is refused, and may not change the name of the next one.
    for entry in archive.entries().map_err(unreadable)?.raw(true) {
        let mut entry = entry.map_err(unreadable)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        // Compared with whole names of ours: a path that leads elsewhere is never one.
        let is_known = entry.header().entry_type() == tar::EntryType::Regular && BackupList::may_name(&name);
        if !is_known {
            let what = format!("the entry {name:?} is no file of a backup");
            return Err(anden_base::Error::corrupt(path, 0, what).into());
        }
        let size = entry.size();
        let mut content = (&mut entry).take(size);
        take(&name, size, &mut content)?;
        std::io::copy(&mut content, &mut std::io::sink()).map_err(unreadable)?;
        if content.limit() > 0 {
            let what = format!("the archive ends in {name:?}");
            return Err(anden_base::Error::corrupt(path, 0, what).into());
        }
    }
    // The checksum of the compressed stream stands at its end.
    let mut decoder = archive.into_inner();
    std::io::copy(&mut decoder, &mut std::io::sink()).map_err(unreadable)?;
    Ok(())
}

/// The error for bytes that cannot be read as an archive: the disk's, or damage.
fn unreadable(path: &Path, error: std::io::Error) -> Error {
    if let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<anden_base::Error>()) {
        return error.clone().into();
    }
    // Standard input fails with the system's errors, or was stopped.
    match anden_base::Error::io("read", path, error) {
        anden_base::Error::Io { source, .. } if source.raw_os_error().is_none() => {
            let what = format!("the archive is cut or damaged, or it is no archive of a backup ({source})");
            anden_base::Error::corrupt(path, 0, what).into()
        }
        error => error.into(),
    }
}

/// Reads an open file from its start.
pub(super) struct HeldReader {
    file: Box<dyn HeldFile>,
    offset: u64,
    len: u64,
}

impl HeldReader {
    pub(super) fn new(file: Box<dyn HeldFile>) -> Result<Self> {
        let len = file.len()?;
        Ok(Self { file, offset: 0, len })
    }
}

impl Read for HeldReader {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let num_bytes = into.len().min(usize::try_from(self.len - self.offset).unwrap_or(usize::MAX));
        let read = self.file.read_at(self.offset, &mut into[..num_bytes]);
        read.map_err(std::io::Error::other)?;
        self.offset += num_bytes as u64;
        Ok(num_bytes)
    }
}

/// The path of a file in an archive, for messages.
pub(super) fn shown(archive: &Path, name: &str) -> PathBuf {
    archive.join(name)
}
