//! Reads a serialized graph of the GAP benchmark suite as a plain CSR.

use parking_lot::Mutex;
use std::path::Path;

use anden_base::mapped::{FileBytes, MappedSlice};
use anden_base::parallel::Pool;
use anden_graph::{Adjacency, Csr, Direction, GraphKind, Weight, Weights};

use crate::serialized::SerializedGraph;
use crate::{Error, Result};

/// Values that a worker reads per call: 4 MB of neighbors.
const READ_GRAIN: usize = 1 << 20;

/// Reads a `.sg` or `.wsg` file of the GAP benchmark suite into memory, on huge pages if the system grants them.
/// Weights become `u32`.
///
/// # Errors
/// As [`SerializedGraph`]. Also, a list does not ascend, or a weight is negative.
pub fn read_gapbs(path: &Path, pool: &Pool) -> Result<Csr> {
    let file = SerializedGraph::open(path)?;
    let lists = |direction| {
        let (offsets, targets, weights) = read_direction(&file, direction, pool)?;
        Adjacency::new(offsets, targets, weights)
            .map_err(|e| Error::Input { path: path.to_owned(), what: e.to_string() })
    };
    let out_lists = lists(Direction::Out)?;
    match file.graph_kind() {
        GraphKind::Undirected => Ok(Csr::undirected(out_lists)),
        GraphKind::Directed => Ok(Csr::directed(out_lists, Some(lists(Direction::In)?))?),
    }
}

type Arrays = (MappedSlice<u64>, MappedSlice<u32>, Option<Weights>);

fn read_direction(file: &SerializedGraph, direction: Direction, pool: &Pool) -> Result<Arrays> {
    // The header agrees with the file's length, so bytes on disk back these sizes.
    let num_offsets = file.num_vertices() as usize + 1;
    let num_arcs = usize::try_from(file.num_arcs()).map_err(|e| Error::Parameter(e.to_string()))?;
    // Workers cannot return errors, so the first one is kept here.
    let failed = Mutex::new(None);
    let note = |result: Result<()>| {
        if let Err(error) = result {
            failed.lock().get_or_insert(error);
        }
    };
    let mut offsets: Vec<u64> = anden_base::memory::zeroed_huge(num_offsets);
    pool.for_each_part_mut(&mut offsets, READ_GRAIN, |start, part| {
        note(file.read_offsets(direction, start as u64, part));
    });
    // `FileBytes` owns `u64` words, so these arrays move into columns without a copy.
    let mut targets = huge_words(num_arcs);
    let mut weights = huge_words(if file.is_weighted() { num_arcs } else { 0 });
    let target_slice: &mut [u32] = &mut bytemuck::cast_slice_mut(&mut targets)[..num_arcs];
    if file.is_weighted() {
        let weight_slice: &mut [u32] = &mut bytemuck::cast_slice_mut(&mut weights)[..num_arcs];
        // Targets and weights are split at equal places, so one worker fills both parts of an arc.
        let pairs = target_slice.chunks_mut(READ_GRAIN).zip(weight_slice.chunks_mut(READ_GRAIN));
        let parts: Vec<_> = pairs.enumerate().collect();
        pool.for_each_item(parts, |_, (i, (targets, weights))| {
            note(file.read_weighted(direction, (i * READ_GRAIN) as u64, targets, weights));
        });
    } else {
        pool.for_each_part_mut(target_slice, READ_GRAIN, |start, part| {
            note(file.read_neighbors(direction, start as u64, part));
        });
    }
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    let owned = |words: Vec<u64>| {
        let column = FileBytes::owned(words, num_arcs * size_of::<u32>()).and_then(MappedSlice::<u32>::new);
        column.ok_or_else(|| Error::Parameter(format!("{num_arcs} arcs do not fit in memory")))
    };
    let weights = if file.is_weighted() { Some(u32::column(owned(weights)?)) } else { None };
    let num_offset_bytes = offsets.len() * size_of::<u64>();
    let offsets = FileBytes::owned(offsets, num_offset_bytes).and_then(MappedSlice::new);
    let offsets = offsets.ok_or_else(|| Error::Parameter("offsets do not fit in memory".into()))?;
    Ok((offsets, owned(targets)?, weights))
}

/// Memory for this many `u32` values, aligned for any array.
fn huge_words(num_values: usize) -> Vec<u64> {
    anden_base::memory::zeroed_huge(num_values.div_ceil(2))
}
