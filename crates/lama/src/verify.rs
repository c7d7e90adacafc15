//! Reads everything and holds every structure against the others.

mod lives;
mod properties;
mod sums;
mod walk;

use std::path::Path;

use base::checksum::{BLOCK_BYTES, CheckedBytes};
use base::parallel::Pool;
use base::storage::Storage;
use graph::{Graph, Side};

use crate::dictionary::Dictionary;
use crate::store::{State, net_counts, unknown_files};
use crate::{Result, names};

use lives::Lives;
use sums::Sums;
use walk::Walk;

/// The bytes of a section that one worker verifies at a time.
const CHUNK_BYTES: usize = 256 * BLOCK_BYTES;

/// The pages that one worker checks at a time.
const CHUNK_PAGES: usize = 8;

/// The keys that one worker checks at a time.
const CHUNK_KEYS: usize = 1 << 16;

/// What was found to be sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// Files that the manifest names, and the manifest.
    pub num_files: usize,
    /// Their bytes.
    pub num_bytes: u64,
    /// Snapshots.
    pub num_snapshots: usize,
    /// Vertices of the newest version.
    pub num_vertices: u64,
    /// Edges of the newest version.
    pub num_edges: u64,
    /// Entries of all its lists, of both sides.
    pub num_arcs: u64,
    /// Names in the directory that the manifest does not know: harmless.
    pub unknown_files: Vec<String>,
}

/// Verifies a state that was opened just now: nothing of it was verified for readers before.
pub(crate) fn verify(storage: &dyn Storage, path: &Path, state: &State, pool: &Pool) -> Result<VerifyReport> {
    let manifest = &state.manifest;
    let mut names: Vec<&String> = state.files.keys().collect();
    names.sort_unstable();
    for file in names.into_iter().map(|name| &state.files[name]) {
        file.sections().try_for_each(|section| verify_section(section, pool))?;
    }
    for file in state.level_files() {
        state.levels_of(file).iter().try_for_each(|level| level.verify())?;
    }
    let newest = manifest.chain.newest();
    check_versions(state, path, pool)?;
    check_changes(state, path, pool)?;
    check_dictionary(&state.dictionary, pool)?;
    let num_sides = if manifest.created.options.stores_in_lists() { 2 } else { 1 };
    Ok(VerifyReport {
        num_files: manifest.files.len() + 1,
        num_bytes: manifest.num_file_bytes() + state.manifest_bytes,
        num_snapshots: manifest.chain.kept().count(),
        num_vertices: newest.num_vertices,
        num_edges: newest.num_edges,
        num_arcs: newest.num_arcs * num_sides,
        unknown_files: unknown_files(storage, path, manifest)?,
    })
}

fn verify_section(section: &CheckedBytes, pool: &Pool) -> Result<()> {
    let results = pool.map_chunks(0..section.bytes().len(), CHUNK_BYTES, |_, range| section.verify(range));
    Ok(results.into_iter().collect::<base::Result<()>>()?)
}

/// Walks through all versions from the base run, and reads the oldest and the newest as their readers do.
fn check_versions(state: &State, path: &Path, pool: &Pool) -> Result<()> {
    let chain = &state.manifest.chain;
    let options = &state.manifest.created.options;
    let manifest_path = path.join(names::MANIFEST);
    let corrupt =
        |number: u32, what: &str| base::Error::corrupt(&manifest_path, 0, format!("version {number}: {what}"));
    let lives = Lives::new(state).map_err(|(number, what)| corrupt(number, &what))?;
    properties::check_properties(state, path, &lives, pool)?;
    let out_sums = Walk::new(state, path, Side::Out, &lives)?.sums(pool)?;
    let in_sums = match options.stores_in_lists() {
        true => Some(Walk::new(state, path, Side::In, &lives)?.sums(pool)?),
        false => None,
    };
    for (index, version) in chain.versions.iter().enumerate() {
        let in_sums = in_sums.as_ref().map(|sums| &sums[index]);
        if let Some(what) = out_sums[index].fault(in_sums, version, options) {
            return Err(corrupt(version.number, what).into());
        }
    }
    let ends = [0, chain.versions.len() - 1];
    for index in ends.into_iter().filter(|&index| chain.versions[index].number != chain.anchor) {
        let view = state.view(chain.versions[index].number, path)?;
        for (side, sums) in [(Side::Out, Some(&out_sums)), (Side::In, in_sums.as_ref())] {
            let Some((side, sums)) = view.side(side).zip(sums) else { continue };
            if Sums::of_side(side, &view, path, pool)? != sums[index] {
                return Err(corrupt(chain.versions[index].number, "its readers see other lists").into());
            }
        }
        view.check()?;
    }
    Ok(())
}

/// Holds the edges that snapshots are said to add and remove against their levels.
fn check_changes(state: &State, path: &Path, pool: &Pool) -> Result<()> {
    let chain = &state.manifest.chain;
    let kept: Vec<_> = chain.kept().collect();
    let results = pool.map_chunks(0..kept.len(), 1, |_, chunk| {
        let version = kept[chunk.start];
        let found = match chain.kept_before(version.number) {
            Some(before) => net_counts(&state.levels_between(before, version.number), &state.manifest.created.options)?,
            None => (version.num_edges, 0),
        };
        if found == (version.num_added, version.num_removed) {
            return Ok(());
        }
        let what = format!(
            "version {}: {} edges added and {} removed expected, the levels have {} and {}",
            version.number, version.num_added, version.num_removed, found.0, found.1
        );
        Err(base::Error::corrupt(&path.join(names::MANIFEST), 0, what).into())
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
