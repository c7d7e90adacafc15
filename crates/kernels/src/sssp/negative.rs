//! Bellman-Ford for graphs with negative weights.
//!
//! Vertices with a changed distance wait in a queue, so the search is serial: rounds of atomic updates would need as
//! many rounds as there are vertices to find a cycle of negative weight. Here the predecessors tell such a cycle: it
//! closes among them as soon as the search has passed around it, and it is looked for once for as many changes as there
//! are vertices.
//!
//! Distances are floating numbers. Those of integer weights are exact, or refused.
//!
//! # Source
//! B. V. Cherkassky, A. V. Goldberg: Negative-cycle detection algorithms, Mathematical Programming 85, 1999, sections 2
//! and 4 (walks through the predecessors, amortized).

use std::collections::VecDeque;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Weight, WeightType, WeightedEdges};

use super::{DistanceValue, Distances, SsspResult};
use crate::context::bytes_for;
use crate::{Context, Error, Result};

/// Bytes for each vertex: distance, predecessor, mark, place in the queue (twice while it grows) and whether it waits.
const HELD_BYTES: u64 = 8 + 4 + 4 + 2 * 4 + 1;
/// No vertex, or no mark.
const NONE: u32 = u32::MAX;
/// The number of vertices between two looks at cancellation.
const POPS_A_CHECK: u64 = 1 << 12;
/// `f64` holds every integer below this bound exactly, and rounds none beyond it to below it.
const EXACT: f64 = (1_u64 << 53) as f64;

/// A weight as a floating number; `None` for an integer that has none.
pub(super) fn number<W: Weight>(weight: W) -> Option<f64> {
    let bits = weight.bits();
    match W::TYPE {
        WeightType::U32 => Some(bits as f64),
        WeightType::I64 => {
            let whole = bits as i64;
            (whole.unsigned_abs() < EXACT as u64).then_some(whole as f64)
        }
        WeightType::F32 => Some(f64::from(f32::from_bits(bits as u32))),
        WeightType::F64 => Some(f64::from_bits(bits)),
    }
}

/// The state of a search.
struct NegativeSearch {
    distances: Vec<f64>,
    predecessors: Vec<VertexId>,
    queue: VecDeque<VertexId>,
    waits: Vec<bool>,
    num_changes: usize,
}

/// The least sums of weights, which may be negative, from `source` to all vertices.
///
/// # Errors
/// - A cycle of negative weight is reachable; the error names a vertex of it.
/// - A reached edge has the weight NaN, or integer weights sum to 2^53 or more, or as far below 0.
/// - The budget is too small, or the work was cancelled.
pub(super) fn sssp_with_negative<W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
) -> Result<SsspResult> {
    ctx.require_memory("sssp", bytes_for(graph, HELD_BYTES))?;
    let bound = graph.vertex_bound();
    let mut search = NegativeSearch {
        distances: vec![f64::INFINITY; bound],
        predecessors: vec![NONE; bound],
        queue: VecDeque::from([source]),
        waits: vec![false; bound],
        num_changes: 0,
    };
    search.distances[source as usize] = 0.0;
    let mut num_pops = 0;
    while let Some(vertex) = search.queue.pop_front() {
        search.waits[vertex as usize] = false;
        search.relax::<W, G>(graph, vertex)?;
        // Amortized: a look at all predecessors costs about as much as this many changes.
        if search.num_changes >= bound {
            search.num_changes = 0;
            search.refuse_cycle()?;
        }
        num_pops += 1;
        if num_pops % POPS_A_CHECK == 0 {
            ctx.progress.check()?;
        }
    }
    graph.check()?;
    Ok(result(source, search.distances))
}

impl NegativeSearch {
    /// Relaxes the out-edges of a vertex.
    fn relax<W: Weight, G: WeightedEdges>(&mut self, graph: &G, source: VertexId) -> Result<()> {
        let mut refused = None;
        let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, source, |targets, weights| {
            for (&target, &weight) in targets.iter().zip(weights) {
                let number = number(weight);
                let new = number.map_or(f64::INFINITY, |number| self.distances[source as usize] + number);
                let is_inexact = W::TYPE == WeightType::I64 && (number.is_none() || new.abs() >= EXACT);
                if new.is_nan() || new == f64::NEG_INFINITY || is_inexact {
                    refused = Some((target, weight));
                    return ControlFlow::Break(());
                }
                if new < self.distances[target as usize] {
                    self.distances[target as usize] = new;
                    self.predecessors[target as usize] = source;
                    self.num_changes += 1;
                    if !std::mem::replace(&mut self.waits[target as usize], true) {
                        self.queue.push_back(target);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        match refused {
            None => Ok(()),
            Some((target, weight)) if !weight.is_accepted() => {
                Err(Error::Weight { kernel: "sssp", source_vertex: source, target, weight: weight.to_string() })
            }
            Some(_) => Err(Error::Unsupported {
                kernel: "sssp",
                needs: "distances within 2^53 of 0 where integer weights are negative: load floating weights",
            }),
        }
    }

    /// Refuses a cycle among the predecessors, whose weight is negative.
    fn refuse_cycle(&self) -> Result<()> {
        // By vertex: the walk that met it.
        let mut walks = vec![NONE; self.predecessors.len()];
        for start in 0..self.predecessors.len() as VertexId {
            let mut vertex = start;
            while vertex != NONE && walks[vertex as usize] == NONE {
                walks[vertex as usize] = start;
                vertex = self.predecessors[vertex as usize];
            }
            if vertex != NONE && walks[vertex as usize] == start {
                return Err(Error::NegativeCycle { kernel: "sssp", vertex: self.smallest_of_cycle(vertex) });
            }
        }
        Ok(())
    }

    fn smallest_of_cycle(&self, vertex: VertexId) -> VertexId {
        let (mut smallest, mut next) = (vertex, self.predecessors[vertex as usize]);
        while next != vertex {
            smallest = smallest.min(next);
            next = self.predecessors[next as usize];
        }
        smallest
    }
}

/// The result with these distances.
fn result(source: VertexId, distances: Vec<f64>) -> SsspResult {
    let reached = || distances.iter().copied().filter(|distance| distance.is_finite());
    let (num_reached, max) = (reached().count() as u64, reached().fold(f64::NEG_INFINITY, f64::max));
    let sum = reached().sum();
    SsspResult {
        source,
        reached: num_reached,
        max_distance: DistanceValue::Float(max),
        sum_distance: DistanceValue::Float(sum),
        distances: Distances::Float(distances),
    }
}
