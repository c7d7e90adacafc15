//! Descriptions of snapshots and files.

use super::{PublishedState, Store};
use crate::file::FileKind;
use crate::manifest::FileRecord;
use crate::names;
use anden_graph::Direction;

/// Description of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Number, from 1.
    pub number: u32,
    /// Name, if the snapshot has one.
    pub name: Option<String>,
    /// Time of creation, in seconds since 1970.
    pub unix_time: u64,
    /// Time of its data, in microseconds since 1970 UTC, if it was given.
    pub as_of: Option<i64>,
    /// Epoch of the last commit that it contains: the change feed leads from here to the next snapshot.
    pub epoch: u64,
    /// Number of live vertices.
    pub num_vertices: u64,
    /// Number of edges; an undirected edge counts once.
    pub num_edges: u64,
    /// Number of edges that the snapshot before lacks; for the oldest snapshot, all edges.
    pub added: u64,
    /// Number of edges that only the snapshot before has. An edge whose weight changed is added and removed.
    pub removed: u64,
    /// Bytes of its delta, and of the deltas of hidden versions since the snapshot before. The base counts for the
    /// snapshot of its version, or the next kept one. The dictionary counts for the oldest snapshot.
    pub bytes: u64,
}

/// Sizes of the files on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageStats {
    /// All files, by name, with their bytes.
    pub files: Vec<(String, u64)>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of the base's targets and vertex tables for each stored arc; 0 without edges.
    pub bytes_per_edge: f64,
    /// Pages of the newest version that are as in the base and have offsets, in both directions.
    pub dense_pages: usize,
    /// Pages of vertices without edges, in both directions.
    pub empty_pages: usize,
    /// Pages that deltas change, in both directions.
    pub patched_pages: usize,
    /// Number of the base and the merged deltas.
    pub bases: usize,
    /// Number of deltas.
    pub deltas: usize,
    /// Bytes of everything that was ever loaded and appended.
    pub bytes_loaded: u64,
    /// Bytes of all data files that were ever written: loads, appends, and maintenance, without prepared forms.
    pub bytes_written: u64,
}

impl Store {
    /// All snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.state().snapshots()
    }

    /// Number of snapshots.
    pub fn num_snapshots(&self) -> usize {
        self.state().manifest.chain.kept().count()
    }

    /// Number of the newest snapshot; `None` if there is none.
    pub fn newest_number(&self) -> Option<u32> {
        self.state().manifest.chain.kept().next_back().map(|version| version.number)
    }

    /// Number of the snapshot with this name.
    pub fn number_of(&self, name: &str) -> Option<u32> {
        let state = self.state();
        let found = state.manifest.chain.kept().find(|version| version.name.as_deref() == Some(name));
        found.map(|version| version.number)
    }

    /// Names and bytes of the files that the manifest names.
    pub fn file_sizes(&self) -> Vec<(String, u64)> {
        self.state().manifest.files.iter().map(|file| (file.name.clone(), file.len)).collect()
    }

    /// Number of the base and the merged deltas, and number of deltas.
    pub fn num_bases_and_deltas(&self) -> (usize, usize) {
        self.state().num_bases_and_deltas()
    }

    /// Bytes of all files.
    pub fn num_bytes(&self) -> u64 {
        let state = self.state();
        state.manifest_bytes + state.manifest.files.iter().map(|file| file.len).sum::<u64>()
    }

    /// Sizes of the files on disk.
    ///
    /// Cost: looks up every page in the index of every delta.
    pub fn stats(&self) -> StorageStats {
        let state = self.state();
        let manifest = &state.manifest;
        let mut files = vec![(names::MANIFEST.to_owned(), state.manifest_bytes)];
        files.extend(manifest.files.iter().map(|file| (file.name.clone(), file.len)));
        let (bases, deltas) = state.num_bases_and_deltas();
        let num_directions = if manifest.created.options.stores_in_lists() { 2 } else { 1 };
        let num_arcs = state.base.num_arcs() * num_directions;
        let is_table = |file: &&FileRecord| {
            let kinds = [Direction::Out, Direction::In]
                .map(|direction| [FileKind::targets(direction), FileKind::table(direction)]);
            kinds.as_flattened().contains(&file.kind)
        };
        let table_bytes: u64 = manifest.files.iter().filter(is_table).map(|file| file.len).sum();
        // Damage is reported when the graph is read.
        let view = state.view(manifest.chain.newest().number, &self.path).ok();
        let directions = [Direction::Out, Direction::In].into_iter();
        let pages = directions.filter_map(|direction| Some(view.as_ref()?.adjacency(direction)?.count_pages()));
        let pages: Vec<_> = pages.collect();
        StorageStats {
            bytes: files.iter().map(|(_, bytes)| bytes).sum(),
            files,
            bytes_per_edge: if num_arcs == 0 { 0.0 } else { table_bytes as f64 / num_arcs as f64 },
            dense_pages: pages.iter().map(|pages| pages.dense).sum(),
            empty_pages: pages.iter().map(|pages| pages.empty).sum(),
            patched_pages: pages.iter().map(|pages| pages.patched).sum(),
            bases,
            deltas,
            bytes_loaded: manifest.bytes_loaded,
            bytes_written: manifest.bytes_written,
        }
    }
}

impl PublishedState {
    /// As [`Store::num_bases_and_deltas`].
    fn num_bases_and_deltas(&self) -> (usize, usize) {
        let chain = &self.manifest.chain;
        (1 + chain.merged_deltas.len(), chain.versions.iter().filter(|version| version.delta.is_some()).count())
    }

    /// All snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        let manifest = &self.manifest;
        let bytes_of = |is_meant: fn(&str) -> bool| -> u64 {
            manifest.files.iter().filter(|file| is_meant(&file.name)).map(|file| file.len).sum()
        };
        let (base_bytes, mut bytes) = (bytes_of(names::is_base), bytes_of(names::is_dictionary));
        let mut snapshots = Vec::new();
        for version in &manifest.chain.versions {
            bytes += version.delta.map_or(0, |delta| self.delta(delta).num_bytes());
            bytes += if version.number == manifest.chain.anchor { base_bytes } else { 0 };
            // Hidden versions are not listed, so their bytes go to the next kept one.
            if version.is_kept {
                snapshots.push(SnapshotInfo {
                    number: version.number,
                    name: version.name.clone(),
                    unix_time: version.unix_time,
                    as_of: version.as_of,
                    epoch: version.epoch,
                    num_vertices: version.num_vertices,
                    num_edges: version.num_edges,
                    added: version.num_added,
                    removed: version.num_removed,
                    bytes: std::mem::take(&mut bytes),
                });
            }
        }
        snapshots
    }
}
