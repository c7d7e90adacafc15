//! Graphs as the serialized graphs of the GAP benchmark suite.

use std::ops::ControlFlow;

use base::VertexId;

use super::number::serialized_weight;
use super::write::Output;
use crate::walk::try_walk;
use crate::{Direction, Error, InEdges, Parts, Result, Side, Weight, WeightType, WeightedEdges};

/// Bytes that are put together before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Whether weights are written beside the neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerializedWeights {
    /// `.sg`: no weights, whether the graph has them or not.
    Leave,
    /// `.wsg`: whole weights of 31 bits.
    Write,
}

/// Writes the graph as `.sg` or `.wsg`, vertices by their ids. Cost: reads every list once.
///
/// # Errors
/// The output's; a directed graph without in-lists, ids above 31 bits, or weights that are asked
/// for and not there, no whole numbers, or above 31 bits.
pub fn write_gapbs(
    graph: &(impl InEdges + WeightedEdges),
    weights: SerializedWeights,
    output: &mut Output<'_>,
) -> Result<()> {
    let is_directed = graph.direction() == Direction::Directed;
    if is_directed && !graph.has_in_edges() {
        return Err(output.refuse("a directed serialized graph needs in-lists, and the graph has none".into()));
    }
    if graph.vertex_bound() > i32::MAX as usize {
        return Err(output.refuse(format!("{} vertices do not fit in a serialized graph", graph.vertex_bound())));
    }
    output.write(&[u8::from(is_directed)])?;
    output.write(&graph.num_arcs().to_le_bytes())?;
    output.write(&(graph.vertex_bound() as u64).to_le_bytes())?;
    for is_out in if is_directed { &[true, false][..] } else { &[true] } {
        match (weights, graph.weight_type()) {
            (SerializedWeights::Leave, _) => write_side::<u32>(graph, *is_out, false, output)?,
            (SerializedWeights::Write, Some(WeightType::U32)) => write_side::<u32>(graph, *is_out, true, output)?,
            (SerializedWeights::Write, Some(WeightType::I64)) => write_side::<i64>(graph, *is_out, true, output)?,
            (SerializedWeights::Write, found) => {
                let found = found.map_or("none", WeightType::name);
                return Err(output.refuse(format!("expected weights of type u32 or i64, found {found}")));
            }
        }
    }
    graph.check()?;
    output.flush()
}

fn write_side<W: Weight>(
    graph: &(impl InEdges + WeightedEdges),
    is_out: bool,
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
    for vertex in vertices.clone() {
        let degree = if is_out { graph.out_degree(vertex) } else { graph.in_degree(vertex) };
        offset += degree as u64;
        buffer.extend_from_slice(&offset.to_le_bytes());
        spill(&mut buffer, BUFFER_BYTES)?;
    }
    let mut list: Vec<(VertexId, i32)> = Vec::new();
    let mut num_written = 0;
    let side = if is_out { Side::Out } else { Side::In };
    let parts = if is_weighted { Parts::Weighted } else { Parts::Targets };
    try_walk(graph, side, parts, vertices, |vertex| {
        list.clear();
        let bad = collect::<W>(graph, vertex, is_out, is_weighted, &mut list);
        if let Some(weight) = bad {
            let what = format!("expected whole weights of 31 bits and a sign, found {weight}");
            return Err(Error::Parameter(what));
        }
        // The fragments of a list are sorted each; the file's lists are as a whole.
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
    graph.check()?;
    if num_written != offset || num_written != graph.num_arcs() {
        let what = format!("{num_written} arcs were found where {} were promised", graph.num_arcs());
        return Err(Error::Parameter(what));
    }
    Ok(())
}

/// The list of a vertex; returns a weight that does not fit, if there is one.
fn collect<W: Weight>(
    graph: &(impl InEdges + WeightedEdges),
    vertex: VertexId,
    is_out: bool,
    is_weighted: bool,
    list: &mut Vec<(VertexId, i32)>,
) -> Option<W> {
    let mut bad = None;
    let mut plain = |targets: &[VertexId]| {
        list.extend(targets.iter().map(|&target| (target, 0)));
        ControlFlow::Continue(())
    };
    if !is_weighted {
        let _ = match is_out {
            true => graph.for_each_out_fragment(vertex, &mut plain),
            false => graph.for_each_in_fragment(vertex, &mut plain),
        };
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
    let _ = match is_out {
        true => graph.for_each_weighted_out_fragment::<W>(vertex, &mut weighted),
        false => graph.for_each_weighted_in_fragment::<W>(vertex, &mut weighted),
    };
    bad
}
