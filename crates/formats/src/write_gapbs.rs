//! Writes graphs as serialized graphs of the GAP benchmark suite.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::walk::try_walk;
use anden_graph::{Direction, GraphKind, Parts, Weight, WeightType, WeightedEdges};

use crate::number::serialized_weight;
use crate::write::Output;
use crate::{Error, Result};

/// Bytes that are collected before a write.
const BUFFER_BYTES: usize = 1 << 20;

/// Whether weights are written beside the neighbors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerializedWeights {
    /// `.sg`: no weights, even if the graph has some.
    Leave,
    /// `.wsg`: integer weights in the range of `i32`.
    Write,
}

/// Writes the graph as `.sg` or `.wsg`, with ids as vertices. Cost: reads every list once.
///
/// # Errors
/// Those of the output. The graph is directed without in-lists, or its ids exceed 31 bits. Weights are wanted but
/// missing, not integers, or out of the range of `i32`.
pub fn write_gapbs(graph: &impl WeightedEdges, weights: SerializedWeights, output: &mut Output<'_>) -> Result<()> {
    let is_directed = graph.graph_kind() == GraphKind::Directed;
    // The format stores both directions of a directed graph.
    if is_directed && !graph.has_lists(Direction::In) {
        return Err(output.refuse("a directed serialized graph needs in-lists, and the graph has none".into()));
    }
    // The GAP suite reads vertices as signed numbers of 32 bits.
    if graph.vertex_bound() > i32::MAX as usize {
        return Err(output.refuse(format!("{} vertices do not fit in a serialized graph", graph.vertex_bound())));
    }
    output.write(&[u8::from(is_directed)])?;
    output.write(&graph.num_arcs().to_le_bytes())?;
    output.write(&(graph.vertex_bound() as u64).to_le_bytes())?;
    for &direction in if is_directed { &[Direction::Out, Direction::In][..] } else { &[Direction::Out] } {
        match (weights, graph.weight_type()) {
            (SerializedWeights::Leave, _) => write_direction::<u32>(graph, direction, false, output)?,
            (SerializedWeights::Write, Some(WeightType::U32)) => {
                write_direction::<u32>(graph, direction, true, output)?
            }
            (SerializedWeights::Write, Some(WeightType::I64)) => {
                write_direction::<i64>(graph, direction, true, output)?
            }
            (SerializedWeights::Write, found) => {
                let found = found.map_or("none", WeightType::name);
                return Err(output.refuse(format!("expected weights of type u32 or i64, found {found}")));
            }
        }
    }
    graph.check()?;
    output.flush()
}

fn write_direction<W: Weight>(
    graph: &impl WeightedEdges,
    direction: Direction,
    is_weighted: bool,
    output: &mut Output<'_>,
) -> Result<()> {
    let vertices = 0..graph.vertex_bound() as VertexId;
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let mut spill = |buffer: &mut Vec<u8>, limit: usize| -> Result<()> {
        if buffer.len() > limit {
            output.write(buffer)?;
            buffer.clear();
        }
        Ok(())
    };
    let mut offset = 0_u64;
    buffer.extend_from_slice(&offset.to_le_bytes());
    // Offsets come before all lists, so a first pass sums the degrees.
    for vertex in vertices.clone() {
        let degree = graph.degree(direction, vertex);
        offset += degree as u64;
        buffer.extend_from_slice(&offset.to_le_bytes());
        spill(&mut buffer, BUFFER_BYTES)?;
    }
    let mut list: Vec<(VertexId, i32)> = Vec::new();
    let mut num_written = 0;
    let parts = if is_weighted { Parts::Weighted } else { Parts::Targets };
    try_walk(graph, direction, parts, vertices, |vertex| {
        list.clear();
        let bad = collect::<W>(graph, direction, vertex, is_weighted, &mut list);
        if let Some(weight) = bad {
            let what = format!("expected whole weights of 31 bits and a sign, found {weight}");
            return Err(Error::Parameter(what));
        }
        // Each fragment of a list is sorted, but the file needs the whole list sorted.
        list.sort_by_key(|&(target, _)| target);
        for &(target, weight) in &list {
            buffer.extend_from_slice(&target.to_le_bytes());
            if is_weighted {
                buffer.extend_from_slice(&weight.to_le_bytes());
            }
        }
        num_written += list.len() as u64;
        spill(&mut buffer, BUFFER_BYTES)
    })?;
    spill(&mut buffer, 0)?;
    // Damage explains a wrong number of arcs, so damage is reported first.
    graph.check()?;
    // The offsets are written already, so other lists would not fit them.
    if num_written != offset || num_written != graph.num_arcs() {
        let what = format!("{num_written} arcs were found where {} were promised", graph.num_arcs());
        return Err(Error::Parameter(what));
    }
    Ok(())
}

/// Collects the list of a vertex. Returns a weight that does not fit, if one exists.
fn collect<W: Weight>(
    graph: &impl WeightedEdges,
    direction: Direction,
    vertex: VertexId,
    is_weighted: bool,
    list: &mut Vec<(VertexId, i32)>,
) -> Option<W> {
    let mut bad = None;
    let mut plain = |targets: &[VertexId]| {
        list.extend(targets.iter().map(|&target| (target, 0)));
        ControlFlow::Continue(())
    };
    if !is_weighted {
        let _ = graph.for_each_fragment(direction, vertex, &mut plain);
        return None;
    }
    let mut weighted = |targets: &[VertexId], weights: &[W]| {
        for (&target, &weight) in targets.iter().zip(weights) {
            match serialized_weight(weight) {
                Some(value) => list.push((target, value)),
                None => bad = Some(weight),
            }
        }
        ControlFlow::Continue(())
    };
    let _ = graph.for_each_weighted_fragment::<W>(direction, vertex, &mut weighted);
    bad
}
