//! The durable high-water mark (file `LOG`): how far the WAL was durable. It certifies the last commits, and those of
//! lost segments: the remaining records cannot tell.
//!
//! The file is written soon after a sync, see [`certify`](super::certify). The mark stays true for ever: a later
//! snapshot has the commit, or the WAL has. Only a commit that is taken back lowers it. So no commit waits for a sync
//! of the mark, and a lost or torn one only certifies less.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::checksum::crc32c;
use anden_base::storage::{Storage, StorageFile};
use anden_snapshots::{DatabaseId, FORMAT_VERSION};

use super::format::{u32_at, u64_at};
use crate::Result;

const MAGIC: [u8; 4] = *b"ANDL";
const MARK_BYTES: usize = 40;
/// The offset of its checksum, which covers the bytes before it.
const CRC_AT: usize = MARK_BYTES - 4;

/// A commit that was durable in the WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DurableMark {
    pub(super) epoch: u64,
    /// The number of the segment that had it, or of a later one.
    pub(super) segment: u32,
}

/// The file of the mark, open for writing.
#[derive(Debug, Default)]
pub(super) struct MarkFile {
    file: Option<Arc<dyn StorageFile>>,
    /// The mark that this opening wrote last.
    written: Option<DurableMark>,
    /// Whether that write succeeded.
    is_whole: bool,
    /// The mark for which a sync was last tried.
    synced: Option<DurableMark>,
    /// Whether a sync of the directory was tried after the file was opened.
    is_named: bool,
}

/// A mark that is written and not synced.
pub(super) struct UnsyncedMark {
    file: Arc<dyn StorageFile>,
    /// The directory, if the name of the file may not be durable.
    directory: Option<(Arc<dyn Storage>, PathBuf)>,
}

impl UnsyncedMark {
    /// Makes the mark durable.
    ///
    /// # Errors
    /// The disk failed. The disk may hold the mark before.
    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data()?;
        if let Some((storage, path)) = &self.directory {
            storage.sync_dir(path)?;
        }
        Ok(())
    }
}

/// The bytes of a mark: the WAL was durable through `epoch` when the segment `number` was the youngest.
pub(crate) fn mark_bytes(id: DatabaseId, epoch: u64, number: u32) -> Vec<u8> {
    DurableMark { epoch, segment: number }.encode(id).to_vec()
}

impl DurableMark {
    /// The mark in a directory; `None` if there is none, or it is torn or of another database.
    ///
    /// # Errors
    /// The disk failed.
    pub(super) fn read(storage: &dyn Storage, directory: &Path, id: DatabaseId) -> Result<Option<Self>> {
        match storage.read_copy(&path(directory)) {
            // The first durable commit makes the file.
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => Ok(None),
            bytes => Ok(Self::decode(&bytes?, id)),
        }
    }

    /// The error for a WAL that ends before the marked commit. `end`: the number and path of the last segment that was
    /// found, and the offset behind its last record.
    pub(super) fn missing(&self, directory: &Path, end: Option<(u32, &Path, u64)>) -> crate::Error {
        let what = format!("commit {}, which was durable, is missing, and perhaps more", self.epoch);
        let error = match end {
            Some((number, path, offset)) if number >= self.segment => anden_base::Error::corrupt(path, offset, what),
            // The whole file is gone.
            _ => anden_base::Error::corrupt(&directory.join(anden_snapshots::log_name(self.segment)), 0, what),
        };
        error.into()
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
        // A torn mark certifies nothing, and is no error.
        let bytes = bytes.first_chunk::<MARK_BYTES>()?;
        let is_ours = bytes[..4] == MAGIC && u32_at(bytes, 4) == FORMAT_VERSION && bytes[8..24] == id.0;
        let is_whole = crc32c(&bytes[..CRC_AT]) == u32_at(bytes, CRC_AT);
        (is_ours && is_whole).then(|| Self { epoch: u64_at(bytes, 24), segment: u32_at(bytes, 32) })
    }
}

impl MarkFile {
    /// The mark that this opening wrote last, perhaps in part.
    pub(super) fn written(&self) -> Option<DurableMark> {
        self.written
    }

    /// Whether the file has this mark.
    pub(super) fn has(&self, mark: DurableMark) -> bool {
        self.is_whole && self.written == Some(mark)
    }

    /// Records that a commit is durable.
    ///
    /// # Errors
    /// The disk failed. The file then holds the old mark, or none.
    pub(super) fn write(
        &mut self,
        mark: DurableMark,
        storage: &dyn Storage,
        directory: &Path,
        id: DatabaseId,
    ) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let path = path(directory);
                let is_there = storage.exists(&path)?;
                // Without a sync of the directory here: a lost mark only certifies less.
                none.insert(if is_there { storage.open_write(&path)? } else { storage.create(&path)? }.into())
            }
        };
        // Set before the write, because a failed write may have reached the file, and `take_back` must then lower it.
        (self.written, self.is_whole) = (Some(mark), false);
        file.write_at(0, &mark.encode(id))?;
        self.is_whole = true;
        Ok(())
    }

    /// The mark, for a sync, if it was written since the last call. After a failed sync the same bytes are not synced
    /// again, because the system drops them: the next mark is written first.
    pub(super) fn take_unsynced(&mut self, storage: &Arc<dyn Storage>, directory: &Path) -> Option<UnsyncedMark> {
        let (Some(file), true) = (&self.file, self.written != self.synced) else { return None };
        self.synced = self.written;
        let is_named = std::mem::replace(&mut self.is_named, true);
        let directory = (!is_named).then(|| (Arc::clone(storage), directory.to_owned()));
        Some(UnsyncedMark { file: Arc::clone(file), directory })
    }

    /// Lowers the mark below this commit if it names the commit or a later one, and syncs: after a power cut, a commit
    /// that was taken back must not count as durable. The commits before it stay durable.
    ///
    /// # Errors
    /// The disk failed; the mark may still be there.
    pub(super) fn take_back(&mut self, epoch: u64, id: DatabaseId) -> Result<()> {
        let (Some(file), Some(mark)) = (&self.file, self.written) else { return Ok(()) };
        // An earlier commit stays durable, and so its mark stays true.
        if mark.epoch < epoch {
            return Ok(());
        }
        let lowered = DurableMark { epoch: epoch - 1, ..mark };
        file.write_at(0, &lowered.encode(id))?;
        file.sync_data()?;
        // Changed last: after an error the old mark may still be in the file.
        self.written = Some(lowered);
        Ok(())
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join(anden_snapshots::LOG_MARK)
}

#[cfg(test)]
mod tests {
    use anden_testkit::FaultStorage;

    use super::*;

    const ID: DatabaseId = DatabaseId([7; 16]);

    #[test]
    fn a_mark_says_what_was_written_or_nothing() {
        let mark = DurableMark { epoch: 9, segment: 3 };
        let bytes = mark.encode(ID);
        assert_eq!(DurableMark::decode(&bytes, ID), Some(mark));
        assert_eq!(DurableMark::decode(&bytes, DatabaseId([8; 16])), None);
        for place in 0..MARK_BYTES {
            let mut damaged = bytes;
            damaged[place] ^= 1;
            assert_eq!(DurableMark::decode(&damaged, ID), None, "byte {place}");
            assert_eq!(DurableMark::decode(&bytes[..place], ID), None, "{place} bytes");
        }
    }

    #[test]
    fn rolled_back_mark_is_lower_after_any_crash() {
        let (disk, directory) = (FaultStorage::default(), Path::new("db"));
        disk.create_dir(directory).unwrap();
        let mut file = MarkFile::default();
        for segment in 1..4 {
            file.write(DurableMark { epoch: 10, segment }, &disk, directory, ID).unwrap();
        }
        assert_eq!(DurableMark::read(&disk, directory, ID).unwrap(), Some(DurableMark { epoch: 10, segment: 3 }));
        file.take_back(11, ID).unwrap();
        assert_eq!(DurableMark::read(&disk, directory, ID).unwrap(), file.written());
        file.take_back(10, ID).unwrap();
        let lowered = DurableMark { epoch: 9, segment: 3 };
        let mut num_there = 0;
        for seed in 0..100 {
            // Its name may be lost, because no sync of the directory was asked for.
            let found = DurableMark::read(&disk.after_crash(seed), directory, ID).unwrap();
            assert!(found.is_none_or(|found| found == lowered), "seed {seed}: {found:?}");
            num_there += usize::from(found.is_some());
        }
        assert!(num_there > 0);
    }

    #[test]
    fn synced_mark_survives_every_crash() {
        let (disk, directory) = (FaultStorage::default(), Path::new("db"));
        disk.create_dir(directory).unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let mut file = MarkFile::default();
        for epoch in 1..4 {
            let mark = DurableMark { epoch, segment: 1 };
            file.write(mark, &disk, directory, ID).unwrap();
            file.take_unsynced(&storage, directory).unwrap().sync().unwrap();
            assert!(file.take_unsynced(&storage, directory).is_none(), "nothing is left to sync");
            for seed in 0..40 {
                assert_eq!(DurableMark::read(&disk.after_crash(seed), directory, ID).unwrap(), Some(mark));
            }
        }
    }
}
