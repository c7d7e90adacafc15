//! A serialized graph taken list by list.
//!
//! Its lists are in order already, both sides of them, so they go to the run as they are read.
//! Nothing in the file is believed: lists that do not ascend are sorted, and a sum of hashes over
//! all arcs tells whether the two sides (of an undirected graph, the two ends) hold the same edges.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use base::VertexId;
use graph::Direction;
use graph::formats::{SerializedGraph, SourceSummary};
use lama::{DictionaryKeys, KeyScheme, Side};

use super::Load;
use super::arcs::{KeyedArc, Payload};
use super::build::{Built, RunSink};
use super::lists::{ListSink, Lists};
use super::options::{Duplicates, LoadOptions};
use crate::{Error, Result};

/// Arcs that are taken at once; a longer list is taken whole.
const PIECE_ARCS: u64 = 256 << 10;
/// Vertices that are taken at once.
const PIECE_VERTICES: u64 = 64 << 10;

/// Whether the lists of `graph` are those of the database to be.
pub(crate) fn fits(graph: &SerializedGraph, options: &LoadOptions) -> bool {
    let directions_fit = options.graph.direction == Direction::Directed || graph.direction() == Direction::Undirected;
    let keys_fit = options.graph.keys != KeyScheme::String && !options.io_order;
    // Which weight came last is known of out-lists only.
    let duplicates_fit = options.graph.weight_type.is_none() || options.duplicates != Duplicates::Last;
    // An edge gets its row where it is read, and each edge stands in two lists of the file.
    directions_fit && keys_fit && duplicates_fit && !options.graph.ordered && !options.graph.has_rows()
}

/// Takes the lists of both sides, as far as the database keeps them.
pub(crate) fn build<P: Payload>(load: &Load<'_>, graph: &SerializedGraph) -> Result<Built> {
    let options = &load.options.graph;
    let num_vertices = graph.num_vertices();
    let dictionary = match options.keys {
        KeyScheme::Dense => load.builder.write_dictionary(DictionaryKeys::Dense(num_vertices))?,
        _ => {
            load.budget.for_edges(8 * num_vertices)?;
            let by_id: Vec<u64> = (0..num_vertices).collect();
            load.builder.write_dictionary(DictionaryKeys::Integers { by_id: &by_id, sorted: None })?
        }
    };
    let writer = load.builder.run_writer(num_vertices as usize)?;
    let mut out_sink = RunSink::new(load, &writer, Side::Out, None);
    let out_sums = copy_side::<P>(load, graph, Side::Out, &mut out_sink)?;
    if graph.direction() == Direction::Undirected && out_sums.upward != out_sums.downward {
        return Err(disagreement(graph, "an edge of an undirected graph stands in the list of one end only"));
    }
    if options.direction == Direction::Directed && options.in_edges {
        let mut in_sink = RunSink::new(load, &writer, Side::In, None);
        let in_sums = copy_side::<P>(load, graph, Side::In, &mut in_sink)?;
        if (in_sums.upward, in_sums.downward) != (out_sums.downward, out_sums.upward) {
            return Err(disagreement(graph, "in-lists and out-lists hold different edges"));
        }
    }
    load.progress.stage("write", None);
    load.progress.check()?;
    let num_edges = out_sink.num_edges(options.direction);
    let num_given = match graph.direction() {
        Direction::Directed => graph.num_arcs(),
        Direction::Undirected => (graph.num_arcs() + out_sums.num_loops) / 2,
    };
    let summary = SourceSummary { num_edges: num_given, ..SourceSummary::default() };
    let num_loops = out_sums.num_loops;
    Ok(Built { run: writer.finish()?, dictionary, num_vertices, num_edges, num_loops, num_repeated: 0, summary })
}

fn disagreement(graph: &SerializedGraph, what: &str) -> Error {
    graph::Error::Input { path: graph.path().to_owned(), what: what.to_owned() }.into()
}

/// Sums of hashes over the arcs of a side, each as if it led from the lower to the higher end.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Over arcs whose list is that of the lower end.
    upward: u64,
    /// Over those whose list is that of the higher end.
    downward: u64,
    num_loops: u64,
}

/// Hands the lists of one side to `sink`.
fn copy_side<P: Payload>(load: &Load<'_>, graph: &SerializedGraph, side: Side, sink: &mut RunSink<'_>) -> Result<Sums> {
    let pieces = cut(graph, side)?;
    load.progress.stage("copy", Some(graph.num_arcs()));
    let (upward, downward, loops) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let make = |offsets: &mut Vec<u64>, piece: Piece, (first, lists): &mut (VertexId, Lists<P>)| {
        load.progress.check()?;
        *first = piece.vertices.start as VertexId;
        let sums = read_piece(graph, side, &piece, offsets, lists)?;
        upward.fetch_add(sums.upward, Ordering::Relaxed);
        downward.fetch_add(sums.downward, Ordering::Relaxed);
        loops.fetch_add(sums.num_loops, Ordering::Relaxed);
        lists.arrange(&piece.vertices, load.options.duplicates);
        load.progress.advance(piece.arcs.end - piece.arcs.start);
        Ok(())
    };
    load.pool.in_order(pieces, Vec::new, make, |(first, lists)| sink.append(*first, lists))?;
    Ok(Sums { upward: upward.into_inner(), downward: downward.into_inner(), num_loops: loops.into_inner() })
}

/// Consecutive lists.
#[derive(Clone, Debug)]
struct Piece {
    vertices: Range<u64>,
    arcs: Range<u64>,
}

/// Cuts the lists of a side.
fn cut(graph: &SerializedGraph, side: Side) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut offsets = Vec::new();
    let mut start = 0;
    while start < graph.num_vertices() {
        let end = graph.num_vertices().min(start + PIECE_VERTICES);
        offsets.resize((end - start) as usize + 1, 0);
        graph.read_offsets(side, start, &mut offsets)?;
        let mut first = 0;
        while first + 1 < offsets.len() {
            let limit = offsets[first] + PIECE_ARCS;
            let after = offsets.partition_point(|&offset| offset <= limit).saturating_sub(1).max(first + 1);
            let vertices = start + first as u64..start + after as u64;
            pieces.push(Piece { vertices, arcs: offsets[first]..offsets[after] });
            first = after;
        }
        start = end;
    }
    Ok(pieces)
}

fn read_piece<P: Payload>(
    graph: &SerializedGraph,
    side: Side,
    piece: &Piece,
    offsets: &mut Vec<u64>,
    lists: &mut Lists<P>,
) -> Result<Sums> {
    let num_lists = (piece.vertices.end - piece.vertices.start) as usize;
    let num_arcs = (piece.arcs.end - piece.arcs.start) as usize;
    offsets.resize(num_lists + 1, 0);
    graph.read_offsets(side, piece.vertices.start, offsets)?;
    lists.reset(num_lists, num_arcs);
    for (degree, pair) in lists.degrees.iter_mut().zip(offsets.windows(2)) {
        let too_long = || disagreement(graph, "a list has more than 2^32 neighbours");
        *degree = u32::try_from(pair[1] - pair[0]).map_err(|_| too_long())?;
    }
    if offsets[0] != piece.arcs.start || offsets[num_lists] != piece.arcs.end {
        return Err(disagreement(graph, "the file changed while it was read"));
    }
    P::read(graph, side, piece.arcs.start, &mut lists.neighbours, &mut lists.payloads)?;
    let mut sums = Sums::default();
    lists.for_each_arc(piece.vertices.start as VertexId, |arc| {
        let (list, neighbour) = (arc.list(), arc.neighbour());
        if list < neighbour {
            sums.upward = sums.upward.wrapping_add(hash(arc.key(), arc.payload()));
        } else if list > neighbour {
            sums.downward = sums.downward.wrapping_add(hash(arc.turned().key(), arc.payload()));
        } else {
            lists_loop(&mut sums, arc);
        }
    });
    Ok(sums)
}

/// A loop is the same from both ends.
fn lists_loop<P: Payload>(sums: &mut Sums, arc: KeyedArc<P>) {
    let hash = hash(arc.key(), arc.payload());
    sums.upward = sums.upward.wrapping_add(hash);
    sums.downward = sums.downward.wrapping_add(hash);
    sums.num_loops += 1;
}

/// A number that no other arc is likely to have.
#[inline(always)]
fn hash<P: Payload>(key: u64, payload: P) -> u64 {
    let mut hash = (key ^ payload.data().weight.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ hash >> 29
}
