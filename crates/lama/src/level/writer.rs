//! Writes level files.

use std::path::Path;

use base::VertexId;
use base::storage::Storage;

use super::Level;
use crate::changes::{ChangedArc, PageChanges};
use crate::file::{FileKind, FileWriter, WrittenFile};
use crate::options::{DatabaseId, GraphOptions};
use crate::run::Side;
use crate::{Result, names};

/// Writes a file of levels under a temporary name.
#[derive(Debug)]
pub(crate) struct LevelWriter {
    file: FileWriter,
    id: DatabaseId,
}

impl LevelWriter {
    /// Begins the file.
    pub fn create(
        storage: &dyn Storage,
        directory: &Path,
        _options: &GraphOptions,
        id: DatabaseId,
        file_number: u32,
    ) -> Result<Self> {
        let name = names::temporary(&names::level(file_number));
        Ok(Self { file: FileWriter::create(storage, &directory.join(name))?, id })
    }

    /// Begins a level.
    pub fn begin_level(
        &mut self,
        _from: u32,
        _to: u32,
        _vertex_bound: usize,
        _died: &[VertexId],
        _returned: &[VertexId],
    ) -> Result<()> {
        Ok(())
    }

    /// Appends the changes of a page.
    pub fn append_page(&mut self, _side: Side, _page: usize, _changes: &PageChanges) -> Result<()> {
        Ok(())
    }

    /// Appends all changes of a side.
    pub fn append_arcs(&mut self, _side: Side, _added: &[ChangedArc], _removed: &[ChangedArc]) -> Result<()> {
        Ok(())
    }

    /// Appends a level as it is.
    pub fn append_level(&mut self, _level: &Level) -> Result<()> {
        Ok(())
    }

    /// Writes the file and syncs it.
    pub fn finish(self) -> Result<WrittenFile> {
        self.file.finish(FileKind::Level, self.id)
    }
}
