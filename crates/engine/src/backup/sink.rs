//! Where a backup goes: a directory, or one stream.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::storage::{AppendedFile, Storage};
use anden_snapshots::{BackupList, temporary_name};

use crate::{Error, Result};

/// Takes the files of a backup, one after the other. Dropped before [`finish`](Self::finish), it removes them.
pub(super) trait BackupSink {
    /// Begins a file of `len` bytes.
    fn begin(&mut self, name: &str, len: u64) -> Result<()>;
    /// Appends bytes to the file.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
    /// Ends the file.
    fn end(&mut self) -> Result<()>;
    /// Writes the list, which makes the files a backup. When this returns, the backup survives a power cut, unless it
    /// went to a stream of the caller.
    fn finish(&mut self, list: &[u8]) -> Result<()>;
}

/// A file that is being written.
struct OpenFile {
    file: AppendedFile,
    temporary: PathBuf,
    path: PathBuf,
}

/// A new directory.
pub(super) struct DirectorySink {
    outside: Arc<dyn Storage>,
    storage: Arc<dyn Storage>,
    path: PathBuf,
    file: Option<OpenFile>,
    /// Paths of the complete files.
    written: Vec<PathBuf>,
    is_finished: bool,
}

impl OpenFile {
    fn create(storage: &dyn Storage, path: PathBuf) -> Result<Self> {
        let temporary = temporary(&path);
        let file = AppendedFile::new(storage.create(&temporary)?);
        Ok(Self { file, temporary, path })
    }

    /// As [`create`](Self::create). Replaces the file that a killed backup left.
    fn create_anew(storage: &dyn Storage, path: PathBuf) -> Result<Self> {
        let temporary = temporary(&path);
        if storage.exists(&temporary)? {
            tracing::info!(path = %temporary.display(), "removes the rest of a backup that was interrupted");
            storage.remove_file(&temporary)?;
        }
        Self::create(storage, path)
    }

    /// Whether the temporary name leads to this file. Another backup to this path replaces it.
    fn is_there(&self, storage: &dyn Storage) -> Result<bool> {
        Ok(storage.identity_at(&self.temporary)? == Some(self.file.file().identity()?))
    }

    /// Syncs the file, and gives it its name.
    fn finish(&self, storage: &dyn Storage) -> Result<()> {
        self.file.file().sync()?;
        Ok(storage.rename(&self.temporary, &self.path)?)
    }
}

/// The name of a file before it is complete.
fn temporary(path: &Path) -> PathBuf {
    path.with_file_name(temporary_name(&path.file_name().unwrap_or_default().to_string_lossy()))
}

/// The directory that contains the last component of `path`.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Refuses a path that exists.
fn require_absent(storage: &dyn Storage, path: &Path) -> Result<()> {
    match storage.exists(path)? {
        true => Err(anden_snapshots::Error::Exists { path: path.to_owned() }.into()),
        false => Ok(()),
    }
}

impl DirectorySink {
    /// Creates the directory.
    ///
    /// # Errors
    /// The path exists, or the disk failed.
    pub(super) fn create(outside: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        require_absent(&*outside, path)?;
        outside.create_dir(path)?;
        let storage = outside.open_dir(path).inspect_err(|_| {
            // The error of the opening counts, and the directory is empty.
            let _ = outside.remove_dir(path);
        })?;
        Ok(Self { outside, storage, path: path.to_owned(), file: None, written: Vec::new(), is_finished: false })
    }

    fn remove(&self) -> Result<()> {
        for path in self.file.iter().map(|file| &file.temporary).chain(&self.written) {
            self.storage.remove_file(path)?;
            if path.ends_with(BackupList::NAME) {
                // A crash may otherwise bring the list back, and not the files.
                self.storage.sync_dir(&self.path)?;
            }
        }
        self.storage.remove_dir(&self.path)?;
        Ok(self.outside.sync_dir(parent(&self.path))?)
    }
}

impl BackupSink for DirectorySink {
    fn begin(&mut self, name: &str, _len: u64) -> Result<()> {
        self.file = Some(OpenFile::create(&*self.storage, self.path.join(name))?);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| Ok(file.file.append(bytes)?))
    }

    fn end(&mut self) -> Result<()> {
        if let Some(file) = &self.file {
            file.finish(&*self.storage)?;
            self.written.push(file.path.clone());
            self.file = None;
        }
        Ok(())
    }

    fn finish(&mut self, list: &[u8]) -> Result<()> {
        // All names, and that of the directory, must be durable before the list refers to them.
        self.storage.sync_dir(&self.path)?;
        self.outside.sync_dir(parent(&self.path))?;
        self.begin(BackupList::NAME, list.len() as u64)?;
        self.write(list)?;
        self.end()?;
        self.storage.sync_dir(&self.path)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for DirectorySink {
    fn drop(&mut self) {
        if !self.is_finished {
            // The list goes first, so that a crash in between leaves no backup with missing files.
            self.written.reverse();
            // A destructor cannot report errors, and files without a list are no backup.
            let _ = self.remove();
        }
    }
}

/// One file, or a stream of the caller.
pub(super) enum StreamTarget<'a> {
    File { storage: Arc<dyn Storage>, file: OpenStream },
    Output(&'a mut (dyn Write + Send)),
}

/// The file of a stream, under its temporary name.
pub(super) struct OpenStream(OpenFile);

/// The bytes of a stream. A sink writes an archive to it.
pub(super) struct BackupStream<'a> {
    target: StreamTarget<'a>,
    /// The storage's error of a failed write, which an I/O error cannot hold.
    failure: Option<anden_base::Error>,
    is_finished: bool,
}

impl<'a> BackupStream<'a> {
    /// Creates a file at `path`, which appears when it is complete. Takes over the rest of a killed backup to `path`.
    ///
    /// # Errors
    /// The path exists, or the disk failed.
    pub(super) fn create(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        require_absent(&*storage, path)?;
        let file = OpenStream(OpenFile::create_anew(&*storage, path.to_owned())?);
        Ok(Self { target: StreamTarget::File { storage, file }, failure: None, is_finished: false })
    }

    /// Writes to a stream of the caller.
    pub(super) fn output(output: &'a mut (dyn Write + Send)) -> Self {
        Self { target: StreamTarget::Output(output), failure: None, is_finished: false }
    }

    /// The error of a failed write to this stream.
    pub(super) fn failed(&mut self, error: std::io::Error) -> Error {
        let failure = self.failure.take();
        failure.unwrap_or_else(|| anden_base::Error::io("write", Path::new("standard output"), error)).into()
    }

    /// Makes the stream durable, and gives a file its name.
    pub(super) fn finish(&mut self) -> Result<()> {
        match &mut self.target {
            StreamTarget::File { storage, file: OpenStream(file) } => {
                // A backup takes long, and the rename would replace a file that appeared meanwhile.
                require_absent(&**storage, &file.path)?;
                if !file.is_there(&**storage)? {
                    let (path, temporary) = (file.path.display(), file.temporary.display());
                    return Err(Error::options(format!("cannot finish {path}: another backup took {temporary}")));
                }
                file.finish(&**storage)?;
                // The name is there now, whether it is durable or not.
                self.is_finished = true;
                storage.sync_dir(parent(&file.path))?;
            }
            StreamTarget::Output(output) => {
                let flushed = output.flush();
                flushed.map_err(|error| self.failed(error))?;
            }
        }
        Ok(())
    }
}

impl Write for BackupStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.target {
            StreamTarget::Output(output) => output.write(bytes),
            StreamTarget::File { file: OpenStream(file), .. } => match file.file.append(bytes) {
                Ok(()) => Ok(bytes.len()),
                Err(error) => {
                    let text = error.to_string();
                    self.failure = Some(error);
                    Err(std::io::Error::other(text))
                }
            },
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for BackupStream<'_> {
    fn drop(&mut self) {
        if let StreamTarget::File { storage, file: OpenStream(file) } = &self.target
            && !self.is_finished
            && file.is_there(&**storage).unwrap_or(false)
        {
            // A destructor cannot report errors; the temporary file is no backup.
            let _ = storage.remove_file(&file.temporary);
        }
    }
}
