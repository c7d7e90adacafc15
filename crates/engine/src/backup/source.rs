//! Backups that are read: directories and archives.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::standard_input::StandardInput;
use anden_base::storage::{AppendedFile, GRAIN_BYTES, Storage, StorageFile};
use anden_snapshots::{BackupList, StoreRestorer};

use super::archive::{HeldReader, read_archive, shown};
use super::pace::CopyPace;
use crate::{Error, Result};

/// A list has at most this many bytes.
const MAX_LIST_BYTES: u64 = 1 << 30;

/// The path that means standard input.
const STANDARD_INPUT: &str = "-";

/// A backup to restore from.
pub(super) struct BackupSource {
    pub(super) path: PathBuf,
    pub(super) list: BackupList,
    place: SourcePlace,
}

/// The place of a source's files.
enum SourcePlace {
    /// They are copied when they are needed.
    Directory(Arc<dyn Storage>),
    /// They were unpacked to scratch files, whose names begin with this.
    Unpacked(String),
}

/// The list of a backup.
///
/// # Errors
/// The path is no finished backup; the list is damaged; the disk failed.
pub(super) fn read_list(storage: &dyn Storage, path: &Path) -> Result<BackupList> {
    if let Some(directory) = open_directory(storage, path)? {
        return list_of(&*directory, path);
    }
    let mut list = None;
    read_archive(path, open_archive(storage, path)?, &mut |name, _, content| {
        if name == BackupList::NAME {
            list = Some(read_list_entry(path, content)?);
        }
        Ok(())
    })?;
    list.ok_or_else(|| unfinished(path))
}

impl BackupSource {
    /// Opens a backup. An archive is unpacked to scratch files of the new database, because a stream is read once.
    ///
    /// An archive in a file is read twice: first its list, which is at its end, then the files that the list names, of
    /// the lengths that it states. So a forged archive takes no more space than its list says.
    pub(super) fn open(
        storage: &dyn Storage,
        path: &Path,
        number: usize,
        restorer: &StoreRestorer,
        pace: &mut CopyPace<'_>,
    ) -> Result<Self> {
        if let Some(directory) = open_directory(storage, path)? {
            let list = list_of(&*directory, path)?;
            return Ok(Self { path: path.to_owned(), list, place: SourcePlace::Directory(directory) });
        }
        let is_stream = path == Path::new(STANDARD_INPUT);
        let expected = (!is_stream).then(|| read_list(storage, path)).transpose()?;
        pace.stage("unpacking", None);
        let (mut list, prefix) = (None, format!("{number}-"));
        read_archive(path, open_archive(storage, path)?, &mut |name, len, content| {
            if name == BackupList::NAME {
                list = Some(read_list_entry(path, content)?);
                return Ok(());
            }
            let shown = shown(path, name);
            if expected.as_ref().is_some_and(|list| list.len_of(name) != Some(len)) {
                let what = format!("the list of the backup has no such file of {len} bytes");
                return Err(anden_base::Error::corrupt(&shown, 0, what).into());
            }
            let scratch = restorer.scratch(&format!("{prefix}{name}"));
            copy(&shown, content, restorer.storage().create(&scratch)?, pace)
        })?;
        let list = list.ok_or_else(|| unfinished(path))?;
        Ok(Self { path: path.to_owned(), list, place: SourcePlace::Unpacked(prefix) })
    }

    /// The path of a file of the backup, for messages.
    pub(super) fn shown(&self, name: &str) -> PathBuf {
        shown(&self.path, name)
    }

    /// A scratch file of the new database with the bytes of this file.
    ///
    /// # Errors
    /// The backup lacks the file; the disk failed.
    pub(super) fn stage(&self, name: &str, restorer: &StoreRestorer, pace: &mut CopyPace<'_>) -> Result<PathBuf> {
        let path = self.shown(name);
        match &self.place {
            SourcePlace::Directory(storage) => {
                let scratch = restorer.scratch(name);
                let file = storage.open_read(&path).map_err(anden_base::Error::missing_as_damage)?;
                let mut input = HeldReader::new(file)?;
                copy(&path, &mut input, restorer.storage().create(&scratch)?, pace)?;
                Ok(scratch)
            }
            SourcePlace::Unpacked(prefix) => {
                let scratch = restorer.scratch(&format!("{prefix}{name}"));
                match restorer.storage().exists(&scratch)? {
                    true => Ok(scratch),
                    false => Err(anden_base::Error::corrupt(&path, 0, "the archive lacks this file").into()),
                }
            }
        }
    }
}

/// Opens a directory; `None` if the path is another file, or standard input.
fn open_directory(storage: &dyn Storage, path: &Path) -> Result<Option<Arc<dyn Storage>>> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(None);
    }
    match storage.open_dir(path) {
        Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotADirectory) => Ok(None),
        directory => Ok(Some(directory?)),
    }
}

/// Opens an archive, or standard input.
fn open_archive(storage: &dyn Storage, path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(Box::new(StandardInput::open(path)?));
    }
    Ok(Box::new(HeldReader::new(storage.open_read(path)?)?))
}

fn list_of(directory: &dyn Storage, path: &Path) -> Result<BackupList> {
    let list = path.join(BackupList::NAME);
    if !directory.exists(&list)? {
        return Err(match anden_snapshots::is_database(directory, path)? {
            true => Error::options(format!(
                "{} is a database and no backup; make one of it with `anden backup`",
                path.display()
            )),
            false => unfinished(path),
        });
    }
    Ok(BackupList::decode(&directory.read_copy(&list)?, &list)?)
}

fn read_list_entry(archive: &Path, content: &mut dyn Read) -> Result<BackupList> {
    let mut bytes = Vec::new();
    // The length is from the archive, so the buffer grows with the bytes that come.
    let read = content.take(MAX_LIST_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| anden_base::Error::io("read", archive, error))?;
    Ok(BackupList::decode(&bytes, &shown(archive, BackupList::NAME))?)
}

fn unfinished(path: &Path) -> Error {
    Error::options(format!(
        "{} is no finished backup: it has no {}; choose another one, and remove this one if a backup was interrupted",
        path.display(),
        BackupList::NAME
    ))
}

/// Copies all bytes of a file.
fn copy(shown: &Path, input: &mut dyn Read, file: Box<dyn StorageFile>, pace: &mut CopyPace<'_>) -> Result<()> {
    let (mut buffer, mut file) = (Vec::with_capacity(GRAIN_BYTES), AppendedFile::new(file));
    loop {
        buffer.clear();
        let read = input.take(GRAIN_BYTES as u64).read_to_end(&mut buffer);
        read.map_err(|error| anden_base::Error::io("read", shown, error))?;
        if buffer.is_empty() {
            return Ok(());
        }
        file.append(&buffer)?;
        pace.copied(buffer.len())?;
    }
}
