//! Generated graphs as files: the same bytes at any number of threads.

use base::VertexId;
use base::mapped::{FileBytes, MappedSlice};
use base::parallel::Pool;
use base::progress::{Progress, Silent};
use base::size::size;

use super::Generator;
use crate::formats::{OUTPUT_BUFFER_BYTES, Output, SerializedWeights, push_u64, write_gapbs};
use crate::{Adjacency, Csr, Error, Graph, Result, Weight};

/// Vertices whose lists are a piece of work.
const VERTICES_AT_ONCE: usize = 4096;
/// Pieces of text for each worker: the one that it makes, and two that wait ([`Pool::in_order`]).
const PIECES_A_WORKER: u64 = 3;
/// While a serialized graph is made: where lists start, where they go on, and how many are left of each; or its offsets,
/// and the longest list, sorted, as it is written.
const VERTEX_BYTES: u64 = 24;
/// What waits to be written of a serialized graph.
const WRITE_BYTES: u64 = 2 * OUTPUT_BUFFER_BYTES as u64;

impl Generator {
    /// Writes the edges as `source target [weight]` lines, in the order of the blocks.
    ///
    /// Memory: a few blocks a thread ([`edge_list_bytes`](Self::edge_list_bytes)).
    ///
    /// # Errors
    /// The output's.
    pub fn write_edge_list(&self, pool: &Pool, output: &mut Output<'_>) -> Result<()> {
        let line_bytes = self.line_bytes();
        let make = |edges: &mut Vec<(VertexId, VertexId)>, block, text: &mut Vec<u8>| {
            self.edges_of_block(block, edges);
            text.clear();
            text.reserve(edges.len() * line_bytes);
            self.push_lines(edges, text);
            Ok(())
        };
        pool.in_order(0..self.num_blocks(), Vec::new, make, |text| output.write(text))?;
        output.flush()
    }

    /// The most bytes in memory at once while the edges are written as lines.
    pub fn edge_list_bytes(&self, num_threads: usize) -> u64 {
        let num_pieces = self.num_blocks().min(PIECES_A_WORKER * num_threads as u64 + 1);
        let piece = self.most_block_edges() * self.line_bytes() as u64;
        self.block_bytes(num_threads) + num_pieces * piece + OUTPUT_BUFFER_BYTES as u64
    }

    /// The bytes of the longest line.
    fn line_bytes(&self) -> usize {
        let digits = |number: u64| number.checked_ilog10().unwrap_or(0) as usize + 1;
        let weight = self.weights.as_ref().map_or(0, |weights| 1 + digits((*weights.end()).into()));
        2 * (digits(self.num_vertices) + 1) + weight
    }

    fn push_lines(&self, edges: &[(VertexId, VertexId)], text: &mut Vec<u8>) {
        for &(source, target) in edges {
            push_u64(text, u64::from(source));
            text.push(b' ');
            push_u64(text, u64::from(target));
            if self.has_weights() {
                text.push(b' ');
                push_u64(text, u64::from(self.weight(source, target)));
            }
            text.push(b'\n');
        }
    }

    /// Writes the graph as `.sg`, with weights as `.wsg`: undirected, without loops and repeated
    /// edges, as the converter of the GAP benchmark suite makes them. Returns how many edges are left.
    ///
    /// Cost: the edges are generated twice; memory as [`gapbs_bytes`](Self::gapbs_bytes) has it.
    ///
    /// # Errors
    /// The output's; cancellation, until writing begins: then it is for the output to end it.
    pub fn write_gapbs(&self, pool: &Pool, progress: &dyn Progress, output: &mut Output<'_>) -> Result<u64> {
        let weights = if self.has_weights() { SerializedWeights::Write } else { SerializedWeights::Leave };
        let graph = self.csr_unless_cancelled(pool, progress)?;
        write_gapbs(&graph, weights, output)?;
        Ok(graph.num_edges())
    }

    /// The most bytes in memory at once while the graph is written as `.sg` or `.wsg`: 24 bytes a vertex, and 8 bytes an
    /// edge, or 16 with a weight.
    pub fn gapbs_bytes(&self, num_threads: usize) -> u64 {
        let arc_bytes = if self.has_weights() { 8 } else { 4 };
        let lists = VERTEX_BYTES * (self.num_vertices + 1) + arc_bytes * 2 * self.num_edges;
        lists + self.block_bytes(num_threads) + WRITE_BYTES
    }

    /// The graph in memory: undirected, without loops and repeated edges.
    ///
    /// # Errors
    /// The graph does not fit in memory.
    pub fn csr(&self, pool: &Pool) -> Result<Csr> {
        self.csr_unless_cancelled(pool, &Silent)
    }

    /// The same; looks every few milliseconds whether it is to end.
    fn csr_unless_cancelled(&self, pool: &Pool, progress: &dyn Progress) -> Result<Csr> {
        let num_vertices = usize::try_from(self.num_vertices).map_err(|e| Error::Parameter(e.to_string()))?;
        let mut ends = self.list_ends(pool, progress, num_vertices)?;
        progress.check()?;
        let starts = {
            let mut start = 0;
            for end in &mut ends {
                start += std::mem::replace(end, start);
            }
            ends
        };
        let num_arcs = starts[num_vertices] as usize;
        // Words, so that the array can be handed on without a copy.
        let mut words: Vec<u64> = room(num_arcs.div_ceil(2))?;
        let targets: &mut [VertexId] = &mut bytemuck::cast_slice_mut(&mut words)[..num_arcs];
        let mut cursors = room(starts.len())?;
        cursors.copy_from_slice(&starts);
        self.scatter(pool, progress, &mut cursors, targets);
        progress.check()?;
        drop(cursors);
        let lengths = sort_lists(pool, progress, &starts, targets)?;
        progress.check()?;
        let (offsets, num_kept) = close_gaps(progress, &starts, &lengths, targets)?;
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

    /// The weights of all lists, two a word.
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

    /// The lengths of all lists, loops left out, and a zero behind them; of nobody's use once the work is cancelled.
    fn list_ends(&self, pool: &Pool, progress: &dyn Progress, num_vertices: usize) -> Result<Vec<u64>> {
        let mut lengths = room(num_vertices + 1)?;
        let shared = base::memory::as_atomic_u64(&mut lengths);
        self.for_each_block(pool, progress, |edges| {
            for &(source, target) in edges.iter().filter(|(s, t)| s != t) {
                for vertex in [source, target] {
                    shared[vertex as usize].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            }
        });
        Ok(lengths)
    }

    /// Puts every arc into its list, in no order, unless the work is cancelled.
    fn scatter(&self, pool: &Pool, progress: &dyn Progress, cursors: &mut [u64], targets: &mut [VertexId]) {
        let cursors = base::memory::as_atomic_u64(cursors);
        let targets = base::memory::as_atomic_u32(targets);
        self.for_each_block(pool, progress, |edges| {
            use std::sync::atomic::Ordering::Relaxed;
            for &(source, target) in edges.iter().filter(|(s, t)| s != t) {
                for (vertex, neighbour) in [(source, target), (target, source)] {
                    let place = cursors[vertex as usize].fetch_add(1, Relaxed);
                    targets[place as usize].store(neighbour, Relaxed);
                }
            }
        });
    }
}

/// Zeros, on huge pages where the system grants them.
///
/// # Errors
/// The system promises no such memory.
fn room<T: bytemuck::Zeroable>(len: usize) -> Result<Vec<T>> {
    let refused = |()| {
        Error::Parameter(format!("the system refuses {} of memory", size(len.saturating_mul(size_of::<T>()) as u64)))
    };
    let mut values = bytemuck::try_zeroed_vec(len).map_err(refused)?;
    base::memory::prefer_huge_pages(&mut values);
    Ok(values)
}

/// Sorts every list and moves its distinct targets to its beginning, unless the work is cancelled; gives how many those
/// are.
fn sort_lists(pool: &Pool, progress: &dyn Progress, starts: &[u64], targets: &mut [VertexId]) -> Result<Vec<u32>> {
    let num_vertices = starts.len() - 1;
    let mut lengths = room(num_vertices)?;
    let mut rest = targets;
    let mut pieces = Vec::with_capacity(num_vertices.div_ceil(VERTICES_AT_ONCE));
    for (i, lengths) in lengths.chunks_mut(VERTICES_AT_ONCE).enumerate() {
        let first = i * VERTICES_AT_ONCE;
        let num_targets = (starts[first + lengths.len()] - starts[first]) as usize;
        let (lists, others) = rest.split_at_mut(num_targets);
        rest = others;
        pieces.push((first, lengths, lists));
    }
    pool.for_each_item(pieces, |_, (first, lengths, lists)| {
        if progress.is_cancelled() {
            return;
        }
        for (i, length) in lengths.iter_mut().enumerate() {
            let start = starts[first + i] - starts[first];
            let end = starts[first + i + 1] - starts[first];
            let list = &mut lists[start as usize..end as usize];
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

/// Moves the lists together; gives their offsets and the number of targets left.
fn close_gaps(
    progress: &dyn Progress,
    starts: &[u64],
    lengths: &[u32],
    targets: &mut [VertexId],
) -> Result<(Vec<u64>, usize)> {
    // The first of them stays 0.
    let mut offsets = room(starts.len())?;
    let mut end = 0;
    for (vertex, (&start, &length)) in starts.iter().zip(lengths).enumerate() {
        if vertex % VERTICES_AT_ONCE == 0 {
            progress.check()?;
        }
        let start = start as usize;
        targets.copy_within(start..start + length as usize, end);
        end += length as usize;
        offsets[vertex + 1] = end as u64;
    }
    Ok((offsets, end))
}
