//! A serialized graph as blocks of edges, where its lists cannot be taken as they are.

use std::ops::Range;
use std::sync::Arc;

use base::VertexId;

use super::serialized::SerializedGraph;
use crate::{Direction, Result, Side, Weight};

/// Offsets that are read at once.
const OFFSETS_AT_ONCE: u64 = 64 << 10;
/// The most arcs of one piece.
const MAX_ARCS_AT_ONCE: u64 = 256 << 10;

/// A piece of the out-lists: consecutive arcs and whose they are.
#[derive(Debug)]
pub(super) struct ArcRange {
    /// The vertex of the first arc.
    first_vertex: u64,
    /// The arcs `offsets[i]..offsets[i + 1]` are of the vertex `first_vertex + i`.
    offsets: Vec<u64>,
}

/// Cuts the out-lists into pieces.
#[derive(Debug)]
pub(super) struct ArcCursor {
    graph: Arc<SerializedGraph>,
    /// Offsets of the vertices from `window_start`, one more than vertices.
    window: Vec<u64>,
    window_start: u64,
    /// The vertex and the arc that come next.
    vertex: u64,
    arc: u64,
    arcs_at_once: u64,
}

impl ArcCursor {
    /// Pieces of about `arcs_at_once` arcs.
    pub(super) fn new(graph: Arc<SerializedGraph>, arcs_at_once: u64) -> Self {
        let arcs_at_once = arcs_at_once.clamp(1, MAX_ARCS_AT_ONCE);
        Self { graph, window: Vec::new(), window_start: 0, vertex: 0, arc: 0, arcs_at_once }
    }

    pub(super) fn graph(&self) -> &Arc<SerializedGraph> {
        &self.graph
    }

    /// The next piece, or none after the last.
    pub(super) fn next(&mut self) -> Result<Option<ArcRange>> {
        let in_window = self.window_start + (self.window.len() as u64).saturating_sub(1);
        if self.vertex >= in_window {
            if self.vertex > 0 && self.vertex >= self.graph.num_vertices() {
                return Ok(None);
            }
            // The last offset again, so that offsets are seen to ascend across windows.
            let end = self.graph.num_vertices().min(self.vertex + OFFSETS_AT_ONCE);
            self.window.clear();
            self.window.resize((end - self.vertex + 1) as usize, 0);
            self.window_start = self.vertex;
            self.graph.read_offsets(Side::Out, self.vertex, &mut self.window)?;
            if self.graph.num_vertices() == 0 {
                return Ok(None);
            }
        }
        let index = (self.vertex - self.window_start) as usize;
        let limit = self.arc + self.arcs_at_once;
        let ends = &self.window[index + 1..];
        // The vertices whose lists end within the limit, and the part of the next that does.
        let num_whole = ends.partition_point(|&end| end <= limit);
        let mut offsets = Vec::with_capacity(num_whole + 2);
        offsets.push(self.arc);
        offsets.extend_from_slice(&ends[..num_whole]);
        let is_cut = num_whole < ends.len();
        if is_cut {
            offsets.push(limit);
        }
        let piece = ArcRange { first_vertex: self.vertex, offsets };
        self.vertex += num_whole as u64;
        self.arc = if is_cut { limit } else { ends[num_whole - 1] };
        Ok(Some(piece))
    }
}

/// The edges of a piece.
#[derive(Debug)]
pub(super) struct ArcEdges<W> {
    pub(super) edges: Vec<(VertexId, VertexId)>,
    pub(super) weights: Vec<W>,
    /// The bytes that were read.
    pub(super) num_bytes: u64,
    /// Zero in sum over an undirected graph that holds each edge at both ends, with the same weight where that is read.
    pub(super) balance: u64,
}

/// Reads the arcs of a piece; of an undirected graph, each edge at its lower end.
pub(super) fn read_arcs<W: Weight>(
    graph: &SerializedGraph,
    piece: &ArcRange,
    is_weighted: bool,
) -> Result<ArcEdges<W>> {
    let arcs: Range<u64> = piece.offsets[0]..piece.offsets[piece.offsets.len() - 1];
    let num_arcs = (arcs.end - arcs.start) as usize;
    let mut targets = vec![0; num_arcs];
    let mut all_weights = vec![W::ONE; if is_weighted { num_arcs } else { 0 }];
    if is_weighted {
        graph.read_weighted(Side::Out, arcs.start, &mut targets, &mut all_weights)?;
    } else {
        graph.read_neighbours(Side::Out, arcs.start, &mut targets)?;
    }
    let arc_bytes = if graph.is_weighted() { 8 } else { 4 };
    let num_bytes = 8 * piece.offsets.len() as u64 + arc_bytes * num_arcs as u64;
    let is_directed = graph.direction() == Direction::Directed;
    let mut read = ArcEdges { edges: Vec::with_capacity(num_arcs), weights: Vec::new(), num_bytes, balance: 0 };
    for (i, pair) in piece.offsets.windows(2).enumerate() {
        let source = (piece.first_vertex + i as u64) as VertexId;
        for arc in (pair[0] - arcs.start) as usize..(pair[1] - arcs.start) as usize {
            let target = targets[arc];
            if source <= target || is_directed {
                read.edges.push((source, target));
                if is_weighted {
                    read.weights.push(all_weights[arc]);
                }
            }
            let weight_bits = all_weights.get(arc).map_or(0, |weight| weight.bits());
            if source < target {
                read.balance = read.balance.wrapping_add(arc_hash(source, target, weight_bits));
            } else {
                read.balance = read.balance.wrapping_sub(arc_hash(target, source, weight_bits));
            }
        }
    }
    Ok(read)
}

/// A number that no other edge is likely to have; zero for a loop, which stands in one list only.
fn arc_hash(low: VertexId, high: VertexId, weight_bits: u64) -> u64 {
    if low == high {
        return 0;
    }
    let mut hash = (u64::from(low) << 32 | u64::from(high)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32 ^ weight_bits;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ hash >> 29
}
