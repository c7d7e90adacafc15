//! Folders of files that appear completely or not at all.

use std::fs::File;
use std::path::{Path, PathBuf};

use anden_base::progress::Progress;

use crate::write::{Aside, Output, temporary_path};
use crate::{Error, Result};

/// The destination of a graph in several files.
pub struct OutputFolder<'a> {
    /// The final path, for messages.
    path: PathBuf,
    temporary: PathBuf,
    progress: &'a dyn Progress,
}

impl std::fmt::Debug for OutputFolder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OutputFolder({})", self.path.display())
    }
}

/// A file in a folder.
pub(crate) struct FolderFile<'a> {
    pub(crate) output: Output<'a>,
    file: File,
}

impl<'a> OutputFolder<'a> {
    /// Makes a folder within this one, and those above it.
    pub(crate) fn create_folder(&self, name: &str) -> Result<()> {
        let failed = |e| anden_base::Error::io("create", &self.path.join(name), e);
        Ok(std::fs::create_dir_all(self.temporary.join(name)).map_err(failed)?)
    }

    /// Creates a file; `name` may lie in a folder within this one.
    pub(crate) fn create(&self, name: &str) -> Result<FolderFile<'a>> {
        let path = self.path.join(name);
        let failed = |e| anden_base::Error::io("create", &path, e);
        let file = File::create(self.temporary.join(name)).map_err(failed)?;
        let writer = file.try_clone().map_err(failed)?;
        Ok(FolderFile { output: Output::stopping(&path, writer, self.progress), file })
    }

    /// The final path of a file, for messages.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl FolderFile<'_> {
    /// Writes the buffered bytes, and waits until the file is on disk.
    pub(crate) fn complete(&mut self) -> Result<()> {
        self.output.flush()?;
        // Synced before the folder is renamed, so that a crash cannot leave truncated files at its path.
        let failed = |e| anden_base::Error::io("sync", self.output.path(), e);
        Ok(self.file.sync_all().map_err(failed)?)
    }
}

/// Lets `body` write a folder under a temporary name, which becomes `path` once all files are on disk. An empty folder
/// at `path` is replaced. Checks `progress` for cancellation.
///
/// # Errors
/// Those of `body` and of the file system; `path` is a file, or a folder with files. Then no temporary folder remains.
pub fn write_folder<T, E: From<Error>>(
    path: &Path,
    progress: &dyn Progress,
    body: impl FnOnce(&OutputFolder<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let io = |operation, e| E::from(anden_base::Error::io(operation, path, e).into());
    let refused = |what: &str| E::from(Error::Input { path: path.to_owned(), what: what.to_owned() });
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => return Err(refused("expected a new or empty folder, found a file")),
        Ok(_) if std::fs::read_dir(path).map_err(|e| io("read", e))?.next().is_some() => {
            return Err(refused("expected a new or empty folder, found one with files"));
        }
        _ => {}
    }
    let temporary = temporary_path(path).ok_or_else(|| refused("expected the name of a folder"))?;
    std::fs::create_dir(&temporary).map_err(|e| io("create", e))?;
    // From here on, every error drops this guard, which removes the temporary folder.
    let aside = Aside::new(path, temporary.clone());
    let folder = OutputFolder { path: path.to_owned(), temporary, progress };
    let value = body(&folder)?;
    // A sync of a file does not cover its name: a crash could leave a folder that lacks parts.
    sync_names(&folder.temporary).map_err(|e| io("sync", e))?;
    aside.publish()?;
    Ok(value)
}

/// Makes the names in a folder durable, and those in the folders within it.
fn sync_names(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_names(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}
