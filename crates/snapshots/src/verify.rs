//! Reads everything, and checks every structure against the others.

mod lives;
mod properties;
mod sums;
mod walk;

use std::path::Path;

use anden_base::parallel::Pool;
use anden_base::storage::Storage;
use anden_graph::{Direction, Graph};

use crate::dictionary::Dictionary;
use crate::store::{PublishedState, Store, net_counts, unknown_files, verify_preparations};
use crate::{Result, names};

use lives::Lives;
use sums::AdjacencySums;
use walk::AdjacencyVerifier;

/// Pages that a worker checks at once.
const CHUNK_PAGES: usize = 8;

/// Keys that a worker checks at once.
const CHUNK_KEYS: usize = 1 << 16;

/// Summary of a successful verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// Number of files, the manifest included.
    pub num_files: usize,
    /// Bytes of these files.
    pub num_bytes: u64,
    /// Number of snapshots.
    pub num_snapshots: usize,
    /// Number of vertices of the newest version.
    pub num_vertices: u64,
    /// Number of edges of the newest version.
    pub num_edges: u64,
    /// Number of entries of its lists, in both directions.
    pub num_arcs: u64,
    /// Names in the directory that the manifest does not know. They are harmless.
    pub unknown_files: Vec<String>,
}

impl Store {
    /// Reads every byte again, and checks every structure against the others. Counts every snapshot, and compares it
    /// with the manifest. A read-only handle checks the current state of the directory.
    ///
    /// Cost: reads every file twice. The writer's handle waits for a change that is under way; other changes go on
    /// while files are read.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn verify(&self, pool: &Pool) -> Result<VerifyReport> {
        let state = match self.hold() {
            // The guard keeps the manifest unchanged while it is compared. The files are open then, and stay readable.
            Some(_held) => {
                let state = PublishedState::read(&**self.storage(), self.path())?;
                if state.manifest != self.state().manifest {
                    let manifest = self.path().join(names::MANIFEST);
                    return Err(
                        anden_base::Error::corrupt(&manifest, 0, "the manifest is not what was written last").into()
                    );
                }
                state
            }
            None => PublishedState::read_beside_writer(&**self.storage(), self.path())?,
        };
        verify_state(&**self.storage(), self.path(), &state, pool)
    }
}

/// Verifies a newly opened state, of which readers have verified nothing yet.
pub(crate) fn verify_state(
    storage: &dyn Storage,
    path: &Path,
    state: &PublishedState,
    pool: &Pool,
) -> Result<VerifyReport> {
    let manifest = &state.manifest;
    let mut names: Vec<&String> = state.files.keys().collect();
    names.sort_unstable();
    // In the order of names, so that the first fault is always the same.
    for file in names.into_iter().map(|name| &state.files[name]) {
        file.verify(pool)?;
    }
    verify_preparations(storage, path, manifest, pool)?;
    for file in state.delta_files() {
        state.deltas_of(file).iter().try_for_each(|delta| delta.verify())?;
    }
    let newest = manifest.chain.newest();
    check_versions(state, path, pool)?;
    check_changes(state, path, pool)?;
    check_dictionary(&state.dictionary, pool)?;
    let num_directions = if manifest.created.options.stores_in_lists() { 2 } else { 1 };
    Ok(VerifyReport {
        num_files: manifest.files.len() + 1,
        num_bytes: manifest.num_file_bytes() + state.manifest_bytes,
        num_snapshots: manifest.chain.kept().count(),
        num_vertices: newest.num_vertices,
        num_edges: newest.num_edges,
        num_arcs: newest.num_arcs * num_directions,
        unknown_files: unknown_files(storage, path, manifest)?,
    })
}

/// Walks from the base through all versions, and reads the oldest and the newest as readers do.
fn check_versions(state: &PublishedState, path: &Path, pool: &Pool) -> Result<()> {
    let chain = &state.manifest.chain;
    let options = &state.manifest.created.options;
    let manifest_path = path.join(names::MANIFEST);
    let corrupt =
        |number: u32, what: &str| anden_base::Error::corrupt(&manifest_path, 0, format!("version {number}: {what}"));
    let lives = Lives::new(state).map_err(|(number, what)| corrupt(number, &what))?;
    properties::check_properties(state, path, &lives, pool)?;
    let out_sums = AdjacencyVerifier::new(state, path, Direction::Out, &lives)?.sums(pool)?;
    let in_sums = match options.stores_in_lists() {
        true => Some(AdjacencyVerifier::new(state, path, Direction::In, &lives)?.sums(pool)?),
        false => None,
    };
    for (index, version) in chain.versions.iter().enumerate() {
        let in_sums = in_sums.as_ref().map(|sums| &sums[index]);
        if let Some(what) = out_sums[index].fault(in_sums, version, options) {
            return Err(corrupt(version.number, what).into());
        }
    }
    // The walk applies delta by delta, readers compose them, so two versions are also read as readers do.
    let ends = [0, chain.versions.len() - 1];
    for index in ends.into_iter().filter(|&index| chain.versions[index].number != chain.anchor) {
        let view = state.view(chain.versions[index].number, path)?;
        for (direction, sums) in [(Direction::Out, Some(&out_sums)), (Direction::In, in_sums.as_ref())] {
            let Some((lists, sums)) = view.adjacency(direction).zip(sums) else { continue };
            if AdjacencySums::of_lists(lists, &view, path, pool)? != sums[index] {
                return Err(corrupt(chain.versions[index].number, "its readers see other lists").into());
            }
        }
        view.check()?;
    }
    Ok(())
}

/// Checks the added and removed edges of each snapshot's record against its deltas.
fn check_changes(state: &PublishedState, path: &Path, pool: &Pool) -> Result<()> {
    let chain = &state.manifest.chain;
    let kept: Vec<_> = chain.kept().collect();
    let results = pool.map_chunks(0..kept.len(), 1, |_, chunk| {
        let version = kept[chunk.start];
        let found = match chain.kept_before(version.number) {
            Some(before) => net_counts(&state.deltas_between(before, version.number), &state.manifest.created.options)?,
            None => (version.num_edges, 0),
        };
        if found == (version.num_added, version.num_removed) {
            return Ok(());
        }
        let what = format!(
            "version {}: {} edges added and {} removed expected, the deltas have {} and {}",
            version.number, version.num_added, version.num_removed, found.0, found.1
        );
        Err(anden_base::Error::corrupt(&path.join(names::MANIFEST), 0, what).into())
    });
    results.into_iter().collect()
}

fn check_dictionary(dictionary: &Dictionary, pool: &Pool) -> Result<()> {
    let ranges = dictionary.ranges(CHUNK_KEYS);
    let results = pool.map_chunks(0..ranges.len(), 1, |_, chunk| {
        ranges[chunk].iter().try_for_each(|(part, ranks)| {
            dictionary.check_order(*part, ranks.clone())?;
            dictionary.check_apart(*part, ranks.clone())
        })
    });
    results.into_iter().collect()
}
