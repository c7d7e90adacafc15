//! Serialized graphs as blocks of edges, for graphs that must be rebuilt.

use std::ops::Range;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::{Direction, GraphKind, Weight};

use crate::Result;
use crate::serialized::SerializedGraph;

/// Offsets per read.
const OFFSETS_AT_ONCE: u64 = 64 << 10;
/// The largest number of arcs of a piece.
const MAX_ARCS_AT_ONCE: u64 = 256 << 10;

/// A piece of the out-lists: consecutive arcs and their vertices.
#[derive(Debug)]
pub(super) struct ArcRange {
    /// The vertex of the first arc.
    first_vertex: u64,
    /// The arcs `offsets[i]..offsets[i + 1]` belong to the vertex `first_vertex + i`.
    offsets: Vec<u64>,
}

/// Cuts the out-lists into pieces.
#[derive(Debug)]
pub(super) struct ArcCursor {
    graph: Arc<SerializedGraph>,
    /// The offsets of the vertices from `window_start` on, one more than vertices.
    window: Vec<u64>,
    window_start: u64,
    /// The next vertex and the next arc.
    vertex: u64,
    arc: u64,
    arcs_at_once: u64,
}

impl ArcCursor {
    /// Creates a cursor for pieces of about `arcs_at_once` arcs.
    pub(super) fn new(graph: Arc<SerializedGraph>, arcs_at_once: u64) -> Self {
        let arcs_at_once = arcs_at_once.clamp(1, MAX_ARCS_AT_ONCE);
        Self { graph, window: Vec::new(), window_start: 0, vertex: 0, arc: 0, arcs_at_once }
    }

    pub(super) fn graph(&self) -> &Arc<SerializedGraph> {
        &self.graph
    }

    /// Returns the next piece; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<ArcRange>> {
        let in_window = self.window_start + (self.window.len() as u64).saturating_sub(1);
        if self.vertex >= in_window {
            if self.vertex > 0 && self.vertex >= self.graph.num_vertices() {
                return Ok(None);
            }
            // Windows overlap by one offset, so that ascending order is checked across them.
            let end = self.graph.num_vertices().min(self.vertex + OFFSETS_AT_ONCE);
            self.window.clear();
            self.window.resize((end - self.vertex + 1) as usize, 0);
            self.window_start = self.vertex;
            self.graph.read_offsets(Direction::Out, self.vertex, &mut self.window)?;
            // The single offset of an empty graph is checked above, and no arc follows.
            if self.graph.num_vertices() == 0 {
                return Ok(None);
            }
        }
        let index = (self.vertex - self.window_start) as usize;
        let limit = self.arc + self.arcs_at_once;
        let ends = &self.window[index + 1..];
        // Takes the vertices with lists that end within the limit, and a part of the next list.
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
    /// The number of bytes read.
    pub(super) num_bytes: u64,
    /// A hash that sums to zero over an undirected graph with each edge at both ends, and with equal weights if weights
    /// are read.
    pub(super) balance: u64,
}

/// Reads the arcs of a piece. Keeps the edges of an undirected graph at their lower ends only.
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
        graph.read_weighted(Direction::Out, arcs.start, &mut targets, &mut all_weights)?;
    } else {
        graph.read_neighbors(Direction::Out, arcs.start, &mut targets)?;
    }
    let arc_bytes = if graph.is_weighted() { 8 } else { 4 };
    let num_bytes = 8 * piece.offsets.len() as u64 + arc_bytes * num_arcs as u64;
    let is_directed = graph.graph_kind() == GraphKind::Directed;
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
            // Part of the hash, so that both ends must state the same weight.
            let weight_bits = all_weights.get(arc).map_or(0, |weight| weight.bits());
            // Each entry at the upper end cancels the entry at the lower end in the sum.
            if source < target {
                read.balance = read.balance.wrapping_add(arc_hash(source, target, weight_bits));
            } else {
                read.balance = read.balance.wrapping_sub(arc_hash(target, source, weight_bits));
            }
        }
    }
    Ok(read)
}

/// A hash of an edge and its weight. Zero for a loop, which stands in one list only.
pub(in crate::readers) fn arc_hash(low: VertexId, high: VertexId, weight_bits: u64) -> u64 {
    if low == high {
        return 0;
    }
    let mut hash = (u64::from(low) << 32 | u64::from(high)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32 ^ weight_bits;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ hash >> 29
}
