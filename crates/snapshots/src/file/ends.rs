//! Whether open files still have their ends.

use std::sync::Arc;

use anden_base::Result;
use anden_base::mapped::EndMark;

use super::FramedFile;

/// The ends of mapped files. Another process may cut a file, and its map then shows zeros in place of a part of it.
#[derive(Debug, Default)]
pub(crate) struct FileEnds(Vec<(EndMark, Arc<FramedFile>)>);

impl FileEnds {
    /// The ends of those of `files` that are mapped.
    pub fn of<'a>(files: impl Iterator<Item = &'a Arc<FramedFile>>) -> Self {
        Self(files.filter_map(|file| Some((file.end_mark()?.clone(), Arc::clone(file)))).collect())
    }

    /// Requires that no file was cut. Then all reads before this call were whole.
    ///
    /// Cost: reads one byte of each file.
    ///
    /// # Errors
    /// The first file that was cut.
    pub fn check(&self) -> Result<()> {
        match self.0.iter().find(|(mark, _)| !mark.is_there()) {
            None => Ok(()),
            Some((_, file)) => Err(file.cut()),
        }
    }
}
