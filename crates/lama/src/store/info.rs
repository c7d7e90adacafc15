//! What is known of snapshots and files.

use super::{State, Store};
use crate::file::FileKind;
use crate::manifest::FileRecord;
use crate::names;

/// What is known of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its number, from 1.
    pub number: u32,
    /// Its name, if it was given one.
    pub name: Option<String>,
    /// When it was made, in seconds since 1970.
    pub unix_time: u64,
    /// The vertices that live in it.
    pub num_vertices: u64,
    /// Its edges; of an undirected graph, each counted once.
    pub num_edges: u64,
    /// The edges that it has and the snapshot before has not; of the oldest, all.
    pub added: u64,
    /// The edges that the snapshot before has and it has not. An edge whose weight changed is added and removed.
    pub removed: u64,
    /// The bytes of its level, and of the base run if that is of this snapshot; the dictionary goes to the oldest.
    pub bytes: u64,
}

/// Sizes of what is on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// All files, by name, with their bytes.
    pub files: Vec<(String, u64)>,
    /// The bytes of all files.
    pub bytes: u64,
    /// The bytes of the base run's edge and vertex tables for each stored entry of its lists; 0 without edges.
    pub bytes_per_edge: f64,
    /// Pages of the newest version as in the base run, with an offset for each vertex, of both sides.
    pub dense_pages: usize,
    /// Pages of vertices without edges, of both sides.
    pub empty_pages: usize,
    /// Pages that levels change.
    pub patched_pages: usize,
    /// Runs: the base run and delta runs.
    pub runs: usize,
    /// Levels.
    pub levels: usize,
    /// The bytes of all that was ever loaded and appended.
    pub bytes_loaded: u64,
    /// The bytes of all data files that were ever written: loads, appends, and the upkeep of levels and runs.
    pub bytes_written: u64,
}

impl Store {
    /// All snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.state().snapshots()
    }

    /// The number of the newest snapshot; `None` where there is none.
    pub fn newest_number(&self) -> Option<u32> {
        self.state().manifest.chain.kept().next_back().map(|version| version.number)
    }

    /// The number of the snapshot with this name.
    pub fn number_of(&self, name: &str) -> Option<u32> {
        let state = self.state();
        let found = state.manifest.chain.kept().find(|version| version.name.as_deref() == Some(name));
        found.map(|version| version.number)
    }

    /// The bytes of all files.
    pub fn num_bytes(&self) -> u64 {
        let state = self.state();
        state.manifest_bytes + state.manifest.files.iter().map(|file| file.len).sum::<u64>()
    }

    /// Sizes of what is on disk.
    ///
    /// Cost: a look at the indexes of all levels for every page.
    pub fn stats(&self) -> Stats {
        let state = self.state();
        let manifest = &state.manifest;
        let mut files = vec![(names::MANIFEST.to_owned(), state.manifest_bytes)];
        files.extend(manifest.files.iter().map(|file| (file.name.clone(), file.len)));
        let num_sides = if manifest.created.options.stores_in_lists() { 2 } else { 1 };
        let num_arcs = state.base.num_arcs() * num_sides;
        let is_table = |file: &&FileRecord| {
            let kinds =
                [graph::Side::Out, graph::Side::In].map(|side| [FileKind::targets(side), FileKind::table(side)]);
            kinds.as_flattened().contains(&file.kind)
        };
        let table_bytes: u64 = manifest.files.iter().filter(is_table).map(|file| file.len).sum();
        // Damage shows when the graph is read.
        let view = state.view(manifest.chain.newest().number, &self.path).ok();
        let sides = [graph::Side::Out, graph::Side::In].into_iter();
        let pages = sides.filter_map(|side| Some(view.as_ref()?.side(side)?.count_pages()));
        let pages: Vec<_> = pages.collect();
        Stats {
            bytes: files.iter().map(|(_, bytes)| bytes).sum(),
            files,
            bytes_per_edge: if num_arcs == 0 { 0.0 } else { table_bytes as f64 / num_arcs as f64 },
            dense_pages: pages.iter().map(|pages| pages.dense).sum(),
            empty_pages: pages.iter().map(|pages| pages.empty).sum(),
            patched_pages: pages.iter().map(|pages| pages.patched).sum(),
            runs: 1 + manifest.chain.delta_runs.len(),
            levels: manifest.chain.versions.iter().filter(|version| version.level.is_some()).count(),
            bytes_loaded: manifest.bytes_loaded,
            bytes_written: manifest.bytes_written,
        }
    }
}

impl State {
    /// All snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        let manifest = &self.manifest;
        let bytes_of = |is_meant: fn(&str) -> bool| -> u64 {
            manifest.files.iter().filter(|file| is_meant(&file.name)).map(|file| file.len).sum()
        };
        let (run_bytes, mut bytes) = (bytes_of(names::is_run), bytes_of(names::is_dictionary));
        let mut snapshots = Vec::new();
        for version in &manifest.chain.versions {
            bytes += version.level.map_or(0, |level| self.level(level).num_bytes());
            bytes += if version.number == manifest.chain.anchor { run_bytes } else { 0 };
            if version.is_kept {
                snapshots.push(SnapshotInfo {
                    number: version.number,
                    name: version.name.clone(),
                    unix_time: version.unix_time,
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
