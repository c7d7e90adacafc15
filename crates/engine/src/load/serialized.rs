//! Loading a serialized graph list by list.
//!
//! The lists of both directions are in order already, so they go to the base as they are read. The file is not trusted:
//! lists that do not ascend are sorted. A sum of hashes over all arcs tells whether the two directions hold the same edges;
//! in an undirected graph, whether both ends do.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_formats::{SerializedGraph, SourceSummary};
use anden_graph::GraphKind;
use anden_snapshots::{DictionaryKeys, Direction, KeyScheme};

use super::Load;
use super::arcs::{LoadArc, Payload};
use super::build::{Built, RunSink};
use super::lists::{BuiltLists, ListSink};
use super::options::{Duplicates, IdOrder, LoadOptions};
use crate::{Error, Result};

/// Arcs that are read at once; a longer list is read whole.
const PIECE_ARCS: u64 = 256 << 10;
/// Vertices that are read at once.
const PIECE_VERTICES: u64 = 64 << 10;

/// Whether the lists of `graph` can be taken as the lists of the database.
pub(crate) fn fits(graph: &SerializedGraph, options: &LoadOptions) -> bool {
    // An undirected graph needs each edge in the lists of both ends.
    let directions_fit = options.graph.graph_kind == GraphKind::Directed || graph.graph_kind() == GraphKind::Undirected;
    let keys_fit = options.graph.keys != KeyScheme::String && options.order == IdOrder::Auto;
    // The order of weights is known in out-lists only.
    let duplicates_fit = options.graph.weight_type.is_none() || options.duplicates != Duplicates::Last;
    // An edge gets its row when it is read, but the file has each edge in two lists.
    directions_fit && keys_fit && duplicates_fit && !options.graph.ordered && !options.graph.has_rows()
}

/// Takes the lists of each direction that the database keeps.
pub(crate) fn build<P: Payload>(load: &Load<'_>, graph: &SerializedGraph) -> Result<Built> {
    let options = &load.options.graph;
    let num_vertices = graph.num_vertices();
    let dictionary = match options.keys {
        KeyScheme::Dense => load.builder.write_dictionary(DictionaryKeys::Dense(num_vertices))?,
        _ => {
            load.budget.for_edges(8 * num_vertices)?;
            // The keys of a serialized graph are its ids.
            let by_id: Vec<u64> = (0..num_vertices).collect();
            load.builder.write_dictionary(DictionaryKeys::Integers { by_id: &by_id, sorted: None })?
        }
    };
    let writer = load.builder.base_writer(num_vertices as usize)?;
    let mut out_sink = RunSink::new(load, &writer, Direction::Out, None);
    let out_sums = copy_direction::<P>(load, graph, Direction::Out, &mut out_sink)?;
    // Each edge must be in the lists of both ends.
    if graph.graph_kind() == GraphKind::Undirected && out_sums.upward != out_sums.downward {
        return Err(disagreement(graph, "an edge of an undirected graph stands in the list of one end only"));
    }
    if options.graph_kind == GraphKind::Directed && options.in_edges {
        let mut in_sink = RunSink::new(load, &writer, Direction::In, None);
        let in_sums = copy_direction::<P>(load, graph, Direction::In, &mut in_sink)?;
        // An arc of an in-list is an arc of an out-list of its other end, so the sums change places.
        if (in_sums.upward, in_sums.downward) != (out_sums.downward, out_sums.upward) {
            return Err(disagreement(graph, "in-lists and out-lists hold different edges"));
        }
    }
    load.progress.stage("write", None);
    load.progress.check()?;
    let num_edges = out_sink.num_edges(options.graph_kind);
    let num_given = match graph.graph_kind() {
        GraphKind::Directed => graph.num_arcs(),
        GraphKind::Undirected => (graph.num_arcs() + out_sums.num_loops) / 2,
    };
    let summary = SourceSummary { num_edges: num_given, ..SourceSummary::default() };
    let num_loops = out_sums.num_loops;
    Ok(Built { base: writer.finish()?, dictionary, num_vertices, num_edges, num_loops, num_repeated: 0, summary })
}

fn disagreement(graph: &SerializedGraph, what: &str) -> Error {
    anden_formats::Error::Input { path: graph.path().to_owned(), what: what.to_owned() }.into()
}

/// Sums of hashes over the arcs of a direction. Each arc is hashed as if it led from its lower to its higher end.
#[derive(Clone, Copy, Debug, Default)]
struct ArcHashSums {
    /// Over arcs in the list of the lower end.
    upward: u64,
    /// Over arcs in the list of the higher end.
    downward: u64,
    num_loops: u64,
}

/// Hands the lists of one direction to `sink`.
fn copy_direction<P: Payload>(
    load: &Load<'_>,
    graph: &SerializedGraph,
    direction: Direction,
    sink: &mut RunSink<'_>,
) -> Result<ArcHashSums> {
    let pieces = cut(graph, direction)?;
    load.progress.stage("copy", Some(graph.num_arcs()));
    let (upward, downward, loops) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let make = |offsets: &mut Vec<u64>, piece: SerializedChunk, (first, lists): &mut (VertexId, BuiltLists<P>)| {
        load.progress.check()?;
        *first = piece.vertices.start as VertexId;
        let sums = read_piece(graph, direction, &piece, offsets, lists)?;
        upward.fetch_add(sums.upward, Ordering::Relaxed);
        downward.fetch_add(sums.downward, Ordering::Relaxed);
        loops.fetch_add(sums.num_loops, Ordering::Relaxed);
        // After the sums, which count the lists as the file has them.
        lists.arrange(&piece.vertices, load.options.duplicates);
        load.progress.advance(piece.arcs.end - piece.arcs.start);
        Ok(())
    };
    load.pool.in_order(pieces, Vec::new, make, |(first, lists)| sink.append(*first, lists))?;
    Ok(ArcHashSums { upward: upward.into_inner(), downward: downward.into_inner(), num_loops: loops.into_inner() })
}

/// A range of consecutive lists.
#[derive(Clone, Debug)]
struct SerializedChunk {
    vertices: Range<u64>,
    arcs: Range<u64>,
}

/// Cuts the lists of a direction into pieces of bounded size.
fn cut(graph: &SerializedGraph, direction: Direction) -> Result<Vec<SerializedChunk>> {
    let mut pieces = Vec::new();
    let mut offsets = Vec::new();
    let mut start = 0;
    while start < graph.num_vertices() {
        let end = graph.num_vertices().min(start + PIECE_VERTICES);
        offsets.resize((end - start) as usize + 1, 0);
        graph.read_offsets(direction, start, &mut offsets)?;
        let mut first = 0;
        while first + 1 < offsets.len() {
            let limit = offsets[first] + PIECE_ARCS;
            let after = offsets.partition_point(|&offset| offset <= limit).saturating_sub(1).max(first + 1);
            let vertices = start + first as u64..start + after as u64;
            pieces.push(SerializedChunk { vertices, arcs: offsets[first]..offsets[after] });
            first = after;
        }
        start = end;
    }
    Ok(pieces)
}

fn read_piece<P: Payload>(
    graph: &SerializedGraph,
    direction: Direction,
    piece: &SerializedChunk,
    offsets: &mut Vec<u64>,
    lists: &mut BuiltLists<P>,
) -> Result<ArcHashSums> {
    let num_lists = (piece.vertices.end - piece.vertices.start) as usize;
    let num_arcs = (piece.arcs.end - piece.arcs.start) as usize;
    offsets.resize(num_lists + 1, 0);
    graph.read_offsets(direction, piece.vertices.start, offsets)?;
    lists.reset(num_lists, num_arcs);
    for (degree, pair) in lists.degrees.iter_mut().zip(offsets.windows(2)) {
        let too_long = || disagreement(graph, "a list has more than 2^32 neighbors");
        *degree = u32::try_from(pair[1] - pair[0]).map_err(|_| too_long())?;
    }
    // The offsets are read a second time, and the file is not trusted to stay unchanged.
    if offsets[0] != piece.arcs.start || offsets[num_lists] != piece.arcs.end {
        return Err(disagreement(graph, "the file changed while it was read"));
    }
    P::read(graph, direction, piece.arcs.start, &mut lists.neighbors, &mut lists.payloads)?;
    let mut sums = ArcHashSums::default();
    lists.for_each_arc(piece.vertices.start as VertexId, |arc| {
        let (list, neighbor) = (arc.list(), arc.neighbor());
        if list < neighbor {
            sums.upward = sums.upward.wrapping_add(hash(arc.key(), arc.payload()));
        } else if list > neighbor {
            sums.downward = sums.downward.wrapping_add(hash(arc.reversed().key(), arc.payload()));
        } else {
            lists_loop(&mut sums, arc);
        }
    });
    Ok(sums)
}

/// Adds a loop to both sums: it is the same from both ends.
fn lists_loop<P: Payload>(sums: &mut ArcHashSums, arc: LoadArc<P>) {
    let hash = hash(arc.key(), arc.payload());
    sums.upward = sums.upward.wrapping_add(hash);
    sums.downward = sums.downward.wrapping_add(hash);
    sums.num_loops += 1;
}

/// A hash that distinguishes arcs with high probability.
#[inline(always)]
fn hash<P: Payload>(key: u64, payload: P) -> u64 {
    let mut hash = (key ^ payload.data().weight.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ hash >> 29
}
