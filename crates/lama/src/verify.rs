//! Reads everything and holds every structure against the others.

use std::path::Path;

use base::VertexId;
use base::checksum::{BLOCK_BYTES, CheckedBytes};
use base::parallel::Pool;
use base::storage::Storage;
use graph::{Direction, Graph};

use crate::manifest::Manifest;
use crate::options::GraphOptions;
use crate::patched::WholePage;
use crate::run;
use crate::store::{open_file, open_view, unknown_files};
use crate::table::PAGE_VERTICES;
use crate::view::View;
use crate::{Result, names};

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
    /// Vertices of the newest snapshot.
    pub num_vertices: u64,
    /// Edges of the newest snapshot.
    pub num_edges: u64,
    /// Entries of all lists, of both sides.
    pub num_arcs: u64,
    /// Names in the directory that the manifest does not know: harmless.
    pub unknown_files: Vec<String>,
}

pub(crate) fn verify(storage: &dyn Storage, path: &Path, expected: &Manifest, pool: &Pool) -> Result<VerifyReport> {
    let manifest_path = path.join(names::MANIFEST);
    let manifest = Manifest::decode(&storage.read_copy(&manifest_path)?, &manifest_path)?;
    if manifest != *expected {
        return Err(base::Error::corrupt(&manifest_path, 0, "the manifest is not what it was at opening").into());
    }
    for record in manifest.files() {
        let file = open_file(storage, path, &manifest, record)?;
        file.sections().try_for_each(|section| verify_section(section, pool))?;
    }
    let view = open_view(storage, path, &manifest)?;
    let snapshot = manifest.newest();
    let num_arcs = check_lists(&view, &manifest, &manifest_path, pool)?;
    check_dictionary(&view, pool)?;
    let num_bytes = manifest.files().map(|file| file.len).sum::<u64>() + manifest.valid_len;
    Ok(VerifyReport {
        num_files: manifest.files().count() + 1,
        num_bytes,
        num_vertices: snapshot.vertex_bound,
        num_edges: snapshot.num_edges,
        num_arcs,
        unknown_files: unknown_files(storage, path, &manifest)?,
    })
}

fn verify_section(section: &CheckedBytes, pool: &Pool) -> Result<()> {
    let results = pool.map_chunks(0..section.bytes().len(), CHUNK_BYTES, |_, range| section.verify(range));
    Ok(results.into_iter().collect::<base::Result<()>>()?)
}

/// What is added up over all lists of a side; none of it depends on the order of the edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    num_arcs: u64,
    num_loops: u64,
    /// Entries whose target is not larger than their vertex.
    num_not_ascending: u64,
    /// A hash of all (vertex, target, weight).
    forward: u64,
    /// A hash of all (target, vertex, weight).
    backward: u64,
}

fn check_lists(view: &View, manifest: &Manifest, manifest_path: &Path, pool: &Pool) -> Result<u64> {
    let options = &manifest.created.options;
    let snapshot = manifest.newest();
    let out_sums = sum_side(&view, run::Side::Out, pool)?;
    let faults = [
        (out_sums.num_arcs != snapshot.num_arcs, "degrees do not add up to the number of entries"),
        (out_sums.num_edges(options) != snapshot.num_edges, "the number of edges is not that of the lists"),
        (
            options.direction == Direction::Undirected && out_sums.forward != out_sums.backward,
            "the lists of an undirected graph are not symmetric",
        ),
        (options.ordered && out_sums.num_not_ascending > 0, "an edge of an ordered graph leads to its smaller end"),
    ];
    let corrupt = |what: &str| base::Error::corrupt(manifest_path, manifest.valid_len, what);
    if let Some((_, what)) = faults.iter().find(|(is_fault, _)| *is_fault) {
        return Err(corrupt(what).into());
    }
    let mut num_arcs = out_sums.num_arcs;
    if options.stores_in_lists() {
        let in_sums = sum_side(&view, run::Side::In, pool)?;
        if (in_sums.num_arcs, in_sums.backward) != (out_sums.num_arcs, out_sums.forward) {
            return Err(corrupt("in-lists are not the reverse of out-lists").into());
        }
        num_arcs += in_sums.num_arcs;
    }
    view.check()?;
    Ok(num_arcs)
}

impl Sums {
    fn num_edges(&self, options: &GraphOptions) -> u64 {
        match options.direction {
            Direction::Directed => self.num_arcs,
            Direction::Undirected => (self.num_arcs + self.num_loops) / 2,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            num_arcs: self.num_arcs + other.num_arcs,
            num_loops: self.num_loops + other.num_loops,
            num_not_ascending: self.num_not_ascending + other.num_not_ascending,
            forward: self.forward.wrapping_add(other.forward),
            backward: self.backward.wrapping_add(other.backward),
        }
    }

    fn add_page(&mut self, first: VertexId, page: &WholePage) {
        for (index, ends) in page.offsets.windows(2).enumerate() {
            let source = first.wrapping_add(index as VertexId);
            for place in ends[0] as usize..ends[1] as usize {
                let target = page.targets[place];
                let weight = page.weights.get(place).copied().unwrap_or(0);
                self.num_loops += u64::from(source == target);
                self.num_not_ascending += u64::from(target <= source);
                self.forward = self.forward.wrapping_add(hash(source, target, weight));
                self.backward = self.backward.wrapping_add(hash(target, source, weight));
            }
        }
        self.num_arcs += page.targets.len() as u64;
    }
}

fn sum_side(view: &View, side: run::Side, pool: &Pool) -> Result<Sums> {
    let Some(side) = view.side(side) else { return Ok(Sums::default()) };
    let results = pool.map_chunks(0..side.num_pages(), CHUNK_PAGES, |_, pages| {
        let mut sums = Sums::default();
        for page in pages {
            sums.add_page((page * PAGE_VERTICES) as VertexId, &side.whole_page(page)?);
        }
        Ok(sums)
    });
    results.into_iter().try_fold(Sums::default(), |all, sums: base::Result<Sums>| Ok(all.plus(sums?)))
}

/// Mixes an edge so that sums over different sets of edges differ.
#[inline]
fn hash(source: VertexId, target: VertexId, weight: u64) -> u64 {
    let mut z = (u64::from(source) << 32 | u64::from(target)) ^ weight.wrapping_mul(0xd6e8_feb8_6659_fd93);
    z = (z ^ (z >> 32)).wrapping_mul(0xbea2_25f9_eb34_556d);
    z = (z ^ (z >> 29)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    z ^ (z >> 32)
}

fn check_dictionary(view: &View, pool: &Pool) -> Result<()> {
    let dictionary = view.dictionary();
    let ranges = dictionary.ranges(CHUNK_KEYS);
    let results = pool.map_chunks(0..ranges.len(), 1, |_, chunk| {
        ranges[chunk].iter().try_for_each(|(part, ranks)| dictionary.check_order(*part, ranks.clone()))
    });
    results.into_iter().collect()
}
