//! How far the log was durable, beside its segments: who lost them all, or the youngest, finds nothing in those that are
//! left that knows of them.
//!
//! The file is written once for each segment, when the first commits in it are durable. What it says stays true for ever:
//! a later snapshot has the commit, or the log does. So nobody takes it back, it needs no sync of its own, and one that is
//! lost or torn says nothing.

use std::path::{Path, PathBuf};

use base::checksum::crc32c;
use base::storage::{Storage, StorageFile};
use lama::{DatabaseId, FORMAT_VERSION};

use super::format::{u32_at, u64_at};
use crate::Result;

const MAGIC: [u8; 4] = *b"ANDL";
const MARK_BYTES: usize = 40;
/// Where its checksum is, which covers what is before.
const CRC_AT: usize = MARK_BYTES - 4;

/// A commit that was durable in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) epoch: u64,
    /// The number of the segment that had it, or of one after that.
    pub(super) segment: u32,
}

/// Where the mark of a database is written.
#[derive(Debug, Default)]
pub(super) struct MarkFile {
    file: Option<Box<dyn StorageFile>>,
    /// What was written last by this opening.
    written: Option<Mark>,
}

impl Mark {
    /// The mark in a directory; `None` where there is none that is whole and of this database.
    ///
    /// # Errors
    /// The disk failed.
    pub(super) fn read(storage: &dyn Storage, directory: &Path, id: DatabaseId) -> Result<Option<Self>> {
        match storage.read_copy(&path(directory)) {
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => Ok(None),
            bytes => Ok(Self::decode(&bytes?, id)),
        }
    }

    /// The error that names what lacks, where the log ends before the commit.
    pub(super) fn missing(&self, directory: &Path) -> crate::Error {
        let what = format!("commit {}, which was durable, is missing, and perhaps more", self.epoch);
        base::Error::corrupt(&directory.join(lama::log_name(self.segment)), 0, what).into()
    }

    fn encode(&self, id: DatabaseId) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[8..24].copy_from_slice(&id.0);
        bytes[24..32].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.segment.to_le_bytes());
        let crc = crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8], id: DatabaseId) -> Option<Self> {
        let bytes = bytes.first_chunk::<MARK_BYTES>()?;
        let is_ours = bytes[..4] == MAGIC && u32_at(bytes, 4) == FORMAT_VERSION && bytes[8..24] == id.0;
        let is_whole = crc32c(&bytes[..CRC_AT]) == u32_at(bytes, CRC_AT);
        (is_ours && is_whole).then(|| Self { epoch: u64_at(bytes, 24), segment: u32_at(bytes, 32) })
    }
}

impl MarkFile {
    /// What this opening wrote last.
    pub(super) fn written(&self) -> Option<Mark> {
        self.written
    }

    /// Writes that a commit is durable.
    ///
    /// # Errors
    /// The disk failed: what is there says the same as before, or nothing.
    pub(super) fn write(&mut self, mark: Mark, storage: &dyn Storage, directory: &Path, id: DatabaseId) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let path = path(directory);
                let is_there = storage.exists(&path)?;
                none.insert(if is_there { storage.open_write(&path)? } else { storage.create(&path)? })
            }
        };
        self.written = Some(mark);
        Ok(file.write_at(0, &mark.encode(id))?)
    }

    /// A commit is taken back that was durable: nothing says so any more, also after a power cut.
    ///
    /// # Errors
    /// The disk failed: it may say so.
    pub(super) fn take_back(&mut self, epoch: u64) -> Result<()> {
        let (Some(file), Some(mark)) = (&self.file, self.written) else { return Ok(()) };
        if mark.epoch < epoch {
            return Ok(());
        }
        file.write_at(0, &[0; MARK_BYTES])?;
        file.sync_data()?;
        self.written = None;
        Ok(())
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join(lama::LOG_MARK)
}

#[cfg(test)]
mod tests {
    use base::storage::FaultStorage;

    use super::*;

    const ID: DatabaseId = DatabaseId([7; 16]);

    #[test]
    fn a_mark_says_what_was_written_or_nothing() {
        let mark = Mark { epoch: 9, segment: 3 };
        let bytes = mark.encode(ID);
        assert_eq!(Mark::decode(&bytes, ID), Some(mark));
        assert_eq!(Mark::decode(&bytes, DatabaseId([8; 16])), None);
        for place in 0..MARK_BYTES {
            let mut damaged = bytes;
            damaged[place] ^= 1;
            assert_eq!(Mark::decode(&damaged, ID), None, "byte {place}");
            assert_eq!(Mark::decode(&bytes[..place], ID), None, "{place} bytes");
        }
    }

    #[test]
    fn what_is_taken_back_is_not_said_after_any_crash() {
        let (disk, directory) = (FaultStorage::default(), Path::new("db"));
        disk.create_dir(directory).unwrap();
        let mut file = MarkFile::default();
        for segment in 1..4 {
            file.write(Mark { epoch: 10, segment }, &disk, directory, ID).unwrap();
        }
        assert_eq!(Mark::read(&disk, directory, ID).unwrap(), Some(Mark { epoch: 10, segment: 3 }));
        file.take_back(11).unwrap();
        assert_eq!(Mark::read(&disk, directory, ID).unwrap(), file.written());
        file.take_back(10).unwrap();
        for seed in 0..100 {
            assert_eq!(Mark::read(&disk.after_crash(seed), directory, ID).unwrap(), None, "seed {seed}");
        }
    }
}
