//! The deltas of a database that is created with several snapshots.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use anden_base::storage::Storage;
use anden_graph::Direction;

use crate::chain::{ChainVersion, DeltaRef};
use crate::delta::DeltaWriter;
use crate::file::WrittenFile;
use crate::options::{DatabaseId, GraphOptions, SnapshotTag};
use crate::store::{DeltaChanges, SMALL_FILE_BYTES, check_arcs, check_name};
use crate::{Error, Result};

/// Writes the delta of each snapshot but the first, oldest first, under temporary names.
#[derive(Debug)]
pub struct DeltasWriter {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    options: GraphOptions,
    id: DatabaseId,
    next_file: u32,
    /// The file that takes more deltas, with its number and the number of its deltas.
    open: Option<(DeltaWriter, u32, u32)>,
    finished: FinishedDeltas,
}

/// Deltas that are written and synced, but not part of the database yet.
#[derive(Debug)]
pub struct FinishedDeltas {
    /// Vertex bound of the first snapshot; `None` without deltas, when it is that of the base.
    first_bound: Option<u64>,
    files: Vec<WrittenFile>,
    deltas: Vec<Written>,
    pub(super) next_file: u32,
}

/// The counts of a written delta.
#[derive(Clone, Copy, Debug)]
struct Written {
    place: DeltaRef,
    vertex_bound: u64,
    num_died: u64,
    num_returned: u64,
    num_edges: (u64, u64),
    num_arcs: (u64, u64),
}

impl DeltasWriter {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        directory: PathBuf,
        options: GraphOptions,
        id: DatabaseId,
        next_file: u32,
        vertex_bound: usize,
    ) -> Self {
        let finished = FinishedDeltas { first_bound: Some(vertex_bound as u64), ..FinishedDeltas::none() };
        Self { storage, directory, options, id, next_file, open: None, finished }
    }

    /// Writes the delta of the next snapshot. Ignores its keys, because the dictionary holds the keys of all snapshots.
    ///
    /// Memory: small deltas are gathered up to a megabyte; a large one is held while it is written.
    ///
    /// # Errors
    /// The changes break a rule, or the disk failed.
    pub fn append(&mut self, changes: &DeltaChanges<'_>) -> Result<()> {
        check_arcs(changes, &self.options)?;
        let has_new = !changes.new_properties.is_empty() || !changes.new_edge_properties.is_empty();
        if has_new || !changes.properties.is_empty() || !changes.rows.numbers.is_empty() {
            return Err(Error::Input("a load gives all snapshots the same properties".into()));
        }
        // Taken out: a file with a failed append must not be finished.
        let (mut writer, number, index) = match self.open.take() {
            Some(open) => open,
            None => {
                let number = self.next_file;
                self.next_file += 1;
                let (storage, directory) = (&*self.storage, &*self.directory);
                (DeltaWriter::create(storage, directory, &self.options, self.id, number)?, number, 0)
            }
        };
        let from = self.finished.deltas.len() as u32 + 1;
        writer.begin_delta(from, from + 1, changes.vertex_bound, changes.died, changes.returned)?;
        writer.append_arcs(Direction::Out, changes.out_added, changes.out_removed)?;
        if self.options.stores_in_lists() {
            writer.append_arcs(Direction::In, changes.in_added, changes.in_removed)?;
        }
        self.finished.deltas.push(Written {
            place: DeltaRef { file: number, index },
            vertex_bound: changes.vertex_bound as u64,
            num_died: changes.died.len() as u64,
            num_returned: changes.returned.len() as u64,
            num_edges: (changes.num_edges_added, changes.num_edges_removed),
            num_arcs: (changes.out_added.len() as u64, changes.out_removed.len() as u64),
        });
        let is_large = writer.num_bytes() >= SMALL_FILE_BYTES;
        self.open = Some((writer, number, index + 1));
        // A large file ends here, so that memory holds at most one large delta.
        if is_large {
            self.finish_file()?;
        }
        Ok(())
    }

    /// Writes the last file, and syncs it.
    ///
    /// # Errors
    /// The disk failed.
    pub fn finish(mut self) -> Result<FinishedDeltas> {
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

impl FinishedDeltas {
    /// No deltas: a database with one snapshot.
    pub(super) fn none() -> Self {
        Self { first_bound: None, files: Vec::new(), deltas: Vec::new(), next_file: 0 }
    }

    /// The versions that lead to `newest`, whose number is ignored, and the files of their deltas.
    pub(super) fn versions(
        self,
        newest: ChainVersion,
        tags: &[SnapshotTag<'_>],
    ) -> Result<(Vec<ChainVersion>, Vec<WrittenFile>)> {
        let bad = || Error::Input("the deltas do not lead to the graph of the base".into());
        if tags.len() != self.deltas.len() + 1 {
            return Err(Error::Input(format!("{} tags for {} snapshots", tags.len(), self.deltas.len() + 1)));
        }
        let mut names = HashSet::new();
        for name in tags.iter().filter_map(|tag| tag.name) {
            check_name(Some(name), None)?;
            if !names.insert(name) {
                return Err(Error::Input(format!("two snapshots are to have the name {name:?}")));
            }
        }
        // Read backward: what was added is taken off.
        let back = |sum: u64, added: u64, removed: u64| sum.checked_add(removed)?.checked_sub(added);
        let mut version = newest;
        let mut versions = Vec::new();
        // Only the counts of the newest version are known, so the others are computed backward.
        for (index, delta) in self.deltas.iter().enumerate().rev() {
            if version.vertex_bound != delta.vertex_bound {
                return Err(bad());
            }
            version.number = index as u32 + 2;
            version.give(tags[index + 1]);
            version.delta = Some(delta.place);
            (version.num_added, version.num_removed) = delta.num_edges;
            let before = |old_bound: u64| {
                let num_new = version.vertex_bound.checked_sub(old_bound)?;
                Some(ChainVersion {
                    vertex_bound: old_bound,
                    num_vertices: back(version.num_vertices, num_new + delta.num_returned, delta.num_died)?,
                    num_edges: back(version.num_edges, delta.num_edges.0, delta.num_edges.1)?,
                    num_arcs: back(version.num_arcs, delta.num_arcs.0, delta.num_arcs.1)?,
                    ..version.clone()
                })
            };
            let old_bound = match index.checked_sub(1) {
                Some(before) => Some(self.deltas[before].vertex_bound),
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
        version.give(tags[0]);
        version.delta = None;
        (version.num_added, version.num_removed) = (version.num_edges, 0);
        versions.push(version);
        versions.reverse();
        Ok((versions, self.files))
    }
}
