//! Generated graphs in memory.

use anden_base::VertexId;
use anden_base::mapped::{FileBytes, MappedSlice};
use anden_base::parallel::Pool;
use anden_base::progress::{Progress, Silent};
use anden_base::size::size;

use super::Generator;
use crate::{Adjacency, Csr, Error, Result, Weight};

/// Vertices per work item when lists are sorted.
const VERTICES_AT_ONCE: usize = 4096;
/// Bytes per vertex while a graph is made: list starts, cursors and lengths; later offsets.
const VERTEX_BYTES: u64 = 24;

impl Generator {
    /// The peak memory in bytes while the graph is made: 24 bytes per vertex, and 8 bytes per edge, or 16 with a
    /// weight.
    pub fn csr_bytes(&self, num_threads: usize) -> u64 {
        let arc_bytes = if self.has_weights() { 8 } else { 4 };
        VERTEX_BYTES * (self.num_vertices + 1) + arc_bytes * 2 * self.num_edges + self.block_bytes(num_threads)
    }

    /// Makes the graph in memory: undirected, without loops and repeated edges.
    ///
    /// # Errors
    /// The graph does not fit in memory.
    pub fn csr(&self, pool: &Pool) -> Result<Csr> {
        self.csr_unless_cancelled(pool, &Silent)
    }

    /// As [`csr`](Self::csr), but checks every few milliseconds for cancellation.
    ///
    /// # Errors
    /// As [`csr`](Self::csr), and cancellation.
    pub fn csr_unless_cancelled(&self, pool: &Pool, progress: &dyn Progress) -> Result<Csr> {
        let num_vertices = usize::try_from(self.num_vertices).map_err(|e| Error::Parameter(e.to_string()))?;
        let mut ends = self.list_ends(pool, progress, num_vertices)?;
        progress.check()?;
        // Prefix sums in place: the counts become the starts of the lists, and the final zero the end of the last list.
        let starts = {
            let mut start = 0;
            for end in &mut ends {
                start += std::mem::replace(end, start);
            }
            ends
        };
        let num_arcs = starts[num_vertices] as usize;
        // `u64` words, so that `FileBytes` takes the array without a copy.
        let mut words: Vec<u64> = room(num_arcs.div_ceil(2))?;
        let targets: &mut [VertexId] = &mut bytemuck::cast_slice_mut(&mut words)[..num_arcs];
        let mut cursors = room(starts.len())?;
        cursors.copy_from_slice(&starts);
        self.scatter(pool, progress, &mut cursors, targets);
        progress.check()?;
        // Freed before the next arrays are allocated, to bound the peak memory.
        drop(cursors);
        let lengths = sort_lists(pool, progress, &starts, targets)?;
        progress.check()?;
        let (offsets, num_kept) = close_gaps(progress, &starts, &lengths, targets)?;
        // Freed before the weights take their room.
        drop((starts, lengths));
        let too_many = || Error::Parameter(format!("{num_kept} arcs do not fit in memory"));
        let list_bytes = num_kept * size_of::<VertexId>();
        let weights = match self.has_weights() {
            true => {
                let weights = self.list_weights(progress, &offsets, &targets[..num_kept])?;
                let weights = FileBytes::owned(weights, list_bytes).and_then(MappedSlice::new);
                Some(u32::column(weights.ok_or_else(too_many)?))
            }
            false => None,
        };
        let num_bytes = size_of_val(&*offsets);
        let offsets = FileBytes::owned(offsets, num_bytes).and_then(MappedSlice::new);
        let targets = FileBytes::owned(words, list_bytes).and_then(MappedSlice::new);
        let (offsets, targets) = offsets.zip(targets).ok_or_else(too_many)?;
        Ok(Csr::undirected(Adjacency::new(offsets, targets, weights)?))
    }

    /// The weights of all lists, two in each `u64` word.
    fn list_weights(&self, progress: &dyn Progress, offsets: &[u64], targets: &[VertexId]) -> Result<Vec<u64>> {
        let mut words: Vec<u64> = room(targets.len().div_ceil(2))?;
        let weights: &mut [u32] = &mut bytemuck::cast_slice_mut(&mut words)[..targets.len()];
        for (source, pair) in offsets.windows(2).enumerate() {
            if source % VERTICES_AT_ONCE == 0 {
                progress.check()?;
            }
            let list = pair[0] as usize..pair[1] as usize;
            for (weight, &target) in weights[list.clone()].iter_mut().zip(&targets[list]) {
                *weight = self.weight(source as VertexId, target);
            }
        }
        Ok(words)
    }

    /// The lengths of all lists without loops, and a zero at the end. Unusable after a cancellation.
    fn list_ends(&self, pool: &Pool, progress: &dyn Progress, num_vertices: usize) -> Result<Vec<u64>> {
        let mut lengths = room(num_vertices + 1)?;
        let shared = anden_base::memory::as_atomic_u64(&mut lengths);
        // Relaxed suffices: the counts are read only after all workers have finished.
        self.for_each_block(pool, progress, |edges| {
            for &(source, target) in edges.iter().filter(|(s, t)| s != t) {
                for vertex in [source, target] {
                    shared[vertex as usize].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            }
        });
        Ok(lengths)
    }

    /// Stores every arc in its list, in any order. Stops early if the work is cancelled.
    fn scatter(&self, pool: &Pool, progress: &dyn Progress, cursors: &mut [u64], targets: &mut [VertexId]) {
        let cursors = anden_base::memory::as_atomic_u64(cursors);
        let targets = anden_base::memory::as_atomic_u32(targets);
        self.for_each_block(pool, progress, |edges| {
            use std::sync::atomic::Ordering::Relaxed;
            for &(source, target) in edges.iter().filter(|(s, t)| s != t) {
                for (vertex, neighbor) in [(source, target), (target, source)] {
                    // Relaxed suffices: lists are read only after all workers have finished.
                    let place = cursors[vertex as usize].fetch_add(1, Relaxed);
                    targets[place as usize].store(neighbor, Relaxed);
                }
            }
        });
    }
}

/// Allocates zeroed memory, on huge pages if the system grants them.
///
/// # Errors
/// The system refuses the memory.
fn room<T: bytemuck::Zeroable>(len: usize) -> Result<Vec<T>> {
    let refused = |()| {
        Error::Parameter(format!("the system refuses {} of memory", size(len.saturating_mul(size_of::<T>()) as u64)))
    };
    let mut values = bytemuck::try_zeroed_vec(len).map_err(refused)?;
    anden_base::memory::prefer_huge_pages(&mut values);
    Ok(values)
}

/// Sorts every list and moves its distinct targets to the front; returns their numbers. Stops early if the work is
/// cancelled.
fn sort_lists(pool: &Pool, progress: &dyn Progress, starts: &[u64], targets: &mut [VertexId]) -> Result<Vec<u32>> {
    let num_vertices = starts.len() - 1;
    let mut lengths = room(num_vertices)?;
    let mut rest = targets;
    let mut pieces = Vec::with_capacity(num_vertices.div_ceil(VERTICES_AT_ONCE));
    // Disjoint slices let the workers write without locks.
    for (i, lengths) in lengths.chunks_mut(VERTICES_AT_ONCE).enumerate() {
        let first = i * VERTICES_AT_ONCE;
        let num_targets = (starts[first + lengths.len()] - starts[first]) as usize;
        let (lists, others) = rest.split_at_mut(num_targets);
        rest = others;
        pieces.push((first, lengths, lists));
    }
    pool.for_each_item(pieces, |_, (first, lengths, lists)| {
        // The caller checks for cancellation, and drops the unfinished lists.
        if progress.is_cancelled() {
            return;
        }
        for (i, length) in lengths.iter_mut().enumerate() {
            let start = starts[first + i] - starts[first];
            let end = starts[first + i + 1] - starts[first];
            let list = &mut lists[start as usize..end as usize];
            // Workers store arcs in any order. The sort makes the graph equal in every run.
            list.sort_unstable();
            let mut num_kept = 0;
            for place in 0..list.len() {
                if num_kept == 0 || list[num_kept - 1] != list[place] {
                    list[num_kept] = list[place];
                    num_kept += 1;
                }
            }
            *length = num_kept as u32;
        }
    });
    Ok(lengths)
}

/// Removes the gaps between lists. Returns the offsets and the number of remaining targets.
fn close_gaps(
    progress: &dyn Progress,
    starts: &[u64],
    lengths: &[u32],
    targets: &mut [VertexId],
) -> Result<(Vec<u64>, usize)> {
    // The first offset stays 0.
    let mut offsets = room(starts.len())?;
    let mut end = 0;
    for (vertex, (&start, &length)) in starts.iter().zip(lengths).enumerate() {
        if vertex % VERTICES_AT_ONCE == 0 {
            progress.check()?;
        }
        let start = start as usize;
        // Lists only move to the left, so none is overwritten before it moves.
        targets.copy_within(start..start + length as usize, end);
        end += length as usize;
        offsets[vertex + 1] = end as u64;
    }
    Ok((offsets, end))
}
