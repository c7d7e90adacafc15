//! The levels of a database that is made with several snapshots at once.

use std::path::PathBuf;
use std::sync::Arc;

use base::storage::Storage;
use graph::Side;

use crate::chain::{LevelRef, Version};
use crate::file::WrittenFile;
use crate::level::LevelWriter;
use crate::options::{DatabaseId, GraphOptions};
use crate::store::{LevelChanges, SMALL_FILE_BYTES, check_arcs, check_name};
use crate::{Error, Result};

/// Writes what each snapshot but the first changes, oldest first, under temporary names.
#[derive(Debug)]
pub struct LevelsWriter {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    options: GraphOptions,
    id: DatabaseId,
    next_file: u32,
    /// The file that takes more, with its number and its levels.
    open: Option<(LevelWriter, u32, u32)>,
    finished: FinishedLevels,
}

/// Levels that are written and synced, but not part of the database yet.
#[derive(Debug)]
pub struct FinishedLevels {
    /// The vertex bound of the first snapshot; `None` without levels, where it is that of the run.
    first_bound: Option<u64>,
    files: Vec<WrittenFile>,
    levels: Vec<Written>,
    pub(super) next_file: u32,
}

/// What a level changes in numbers.
#[derive(Clone, Copy, Debug)]
struct Written {
    place: LevelRef,
    vertex_bound: u64,
    num_died: u64,
    num_returned: u64,
    num_edges: (u64, u64),
    num_arcs: (u64, u64),
}

impl LevelsWriter {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        directory: PathBuf,
        options: GraphOptions,
        id: DatabaseId,
        next_file: u32,
        vertex_bound: usize,
    ) -> Self {
        let finished = FinishedLevels { first_bound: Some(vertex_bound as u64), ..FinishedLevels::none() };
        Self { storage, directory, options, id, next_file, open: None, finished }
    }

    /// Writes what the next snapshot changes; its keys are not looked at, for the dictionary holds those of all.
    ///
    /// Memory: small levels are gathered to a megabyte; a large one is held while it is written.
    ///
    /// # Errors
    /// The changes break a rule, or the disk failed.
    pub fn append(&mut self, changes: &LevelChanges<'_>) -> Result<()> {
        check_arcs(changes, &self.options)?;
        let has_new = !changes.new_properties.is_empty() || !changes.new_edge_properties.is_empty();
        if has_new || !changes.properties.is_empty() || !changes.rows.numbers.is_empty() {
            return Err(Error::Input("a load gives all snapshots the same properties".into()));
        }
        let (mut writer, number, index) = match self.open.take() {
            Some(open) => open,
            None => {
                let number = self.next_file;
                self.next_file += 1;
                let (storage, directory) = (&*self.storage, &*self.directory);
                (LevelWriter::create(storage, directory, &self.options, self.id, number)?, number, 0)
            }
        };
        let from = self.finished.levels.len() as u32 + 1;
        writer.begin_level(from, from + 1, changes.vertex_bound, changes.died, changes.returned)?;
        writer.append_arcs(Side::Out, changes.out_added, changes.out_removed)?;
        if self.options.stores_in_lists() {
            writer.append_arcs(Side::In, changes.in_added, changes.in_removed)?;
        }
        self.finished.levels.push(Written {
            place: LevelRef { file: number, index },
            vertex_bound: changes.vertex_bound as u64,
            num_died: changes.died.len() as u64,
            num_returned: changes.returned.len() as u64,
            num_edges: (changes.num_edges_added, changes.num_edges_removed),
            num_arcs: (changes.out_added.len() as u64, changes.out_removed.len() as u64),
        });
        let is_large = writer.num_bytes() >= SMALL_FILE_BYTES;
        self.open = Some((writer, number, index + 1));
        if is_large {
            self.finish_file()?;
        }
        Ok(())
    }

    /// Writes what is not written yet, and syncs it.
    ///
    /// # Errors
    /// The disk failed.
    pub fn finish(mut self) -> Result<FinishedLevels> {
        self.finish_file()?;
        self.finished.next_file = self.next_file;
        Ok(self.finished)
    }

    fn finish_file(&mut self) -> Result<()> {
        if let Some((writer, ..)) = self.open.take() {
            self.finished.files.push(writer.finish()?);
        }
        Ok(())
    }
}

impl FinishedLevels {
    /// Those of a database with one snapshot.
    pub(super) fn none() -> Self {
        Self { first_bound: None, files: Vec::new(), levels: Vec::new(), next_file: 0 }
    }

    /// The versions that lead to `newest`, whose number is ignored, and the files of their levels.
    pub(super) fn versions(self, newest: Version, names: &[Option<&str>]) -> Result<(Vec<Version>, Vec<WrittenFile>)> {
        let bad = || Error::Input("the levels do not lead to the graph of the run".into());
        if names.len() != self.levels.len() + 1 {
            return Err(Error::Input(format!("{} names for {} snapshots", names.len(), self.levels.len() + 1)));
        }
        for (place, name) in names.iter().enumerate() {
            check_name(*name, None)?;
            if name.is_some() && names[..place].contains(name) {
                return Err(Error::Input(format!("two snapshots are to have the name {name:?}")));
            }
        }
        let back = |sum: u64, added: u64, removed: u64| sum.checked_add(removed)?.checked_sub(added);
        let mut version = newest;
        let mut versions = Vec::new();
        for (index, level) in self.levels.iter().enumerate().rev() {
            if version.vertex_bound != level.vertex_bound {
                return Err(bad());
            }
            version.number = index as u32 + 2;
            version.name = names[index + 1].map(str::to_owned);
            version.level = Some(level.place);
            (version.num_added, version.num_removed) = level.num_edges;
            let before = |old_bound: u64| {
                let num_new = version.vertex_bound.checked_sub(old_bound)?;
                Some(Version {
                    vertex_bound: old_bound,
                    num_vertices: back(version.num_vertices, num_new + level.num_returned, level.num_died)?,
                    num_edges: back(version.num_edges, level.num_edges.0, level.num_edges.1)?,
                    num_arcs: back(version.num_arcs, level.num_arcs.0, level.num_arcs.1)?,
                    ..version.clone()
                })
            };
            let old_bound = match index.checked_sub(1) {
                Some(before) => Some(self.levels[before].vertex_bound),
                None => self.first_bound,
            };
            let old_bound = old_bound.unwrap_or(version.vertex_bound);
            let before = before(old_bound).ok_or_else(bad)?;
            versions.push(std::mem::replace(&mut version, before));
        }
        if self.first_bound.is_some_and(|bound| bound != version.vertex_bound) {
            return Err(bad());
        }
        version.number = 1;
        version.name = names[0].map(str::to_owned);
        version.level = None;
        (version.num_added, version.num_removed) = (version.num_edges, 0);
        versions.push(version);
        versions.reverse();
        Ok((versions, self.files))
    }
}
