//! A shortest path by weight: Dijkstra's algorithm, which ends when the target is settled.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::BuildHasherDefault;
use std::ops::ControlFlow;

use base::VertexId;
use graph::{Distance, Weight, WeightType, WeightedEdges};

use super::visited::IdHasher;
use super::{POLL, table_bytes};
use crate::context::require_vertex;
use crate::sssp::DistanceValue;
use crate::{Context, Error, Result};

/// A path with the sum of its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedPath {
    /// From the source to the target, both included; one vertex where they are the same.
    pub vertices: Vec<VertexId>,
    /// The sum of the weights of its edges.
    pub length: DistanceValue,
}

/// A path of the least weight from `source` to `target`; `None` where there is no path.
///
/// *Cost*: the edges of all vertices that are nearer than the target. *Memory*: some 40 bytes for each
/// vertex that they lead to. *Determinism*: always the same of the lightest paths: each vertex is
/// entered from the nearest of its possible predecessors, and of equally near ones from that with the
/// smallest id.
///
/// # Errors
/// One of the two does not exist; the graph has no weights, or the search meets a negative one or a
/// NaN (the error names the edge); the graph is damaged; the budget of memory is too small; the work was cancelled.
pub fn weighted_path<G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    target: VertexId,
) -> Result<Option<WeightedPath>> {
    require_vertex(graph, source)?;
    require_vertex(graph, target)?;
    match graph.weight_type() {
        Some(WeightType::U32) => dijkstra::<u32, G>(ctx, graph, source, target, DistanceValue::Integer),
        Some(WeightType::I64) => dijkstra::<i64, G>(ctx, graph, source, target, DistanceValue::Integer),
        Some(WeightType::F32) => dijkstra::<f32, G>(ctx, graph, source, target, DistanceValue::Float),
        Some(WeightType::F64) => dijkstra::<f64, G>(ctx, graph, source, target, DistanceValue::Float),
        None => Err(Error::Unsupported { kernel: "a path by weight", needs: "edge weights" }),
    }
}

/// Room for an entry of the heap, which doubles while it is copied.
const HEAP_BYTES: usize = 48;

/// The least distance of a vertex so far, and from where.
type Labels<D> = HashMap<VertexId, (D, VertexId), BuildHasherDefault<IdHasher>>;

fn dijkstra<W: Weight, G: WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    target: VertexId,
    value: impl Fn(W::Distance) -> DistanceValue,
) -> Result<Option<WeightedPath>> {
    let mut labels: Labels<W::Distance> = HashMap::default();
    let mut heap = BinaryHeap::from([Reverse((W::Distance::default().to_bits(), source))]);
    labels.insert(source, (W::Distance::default(), source));
    let mut forbidden = None;
    let mut num_settled = 0;
    while let Some(Reverse((bits, u))) = heap.pop() {
        let distance = W::Distance::from_bits(bits);
        if labels.get(&u).is_none_or(|label| distance > label.0) {
            continue;
        }
        if u == target {
            graph.check()?;
            return Ok(Some(WeightedPath { vertices: way(&labels, target), length: value(distance) }));
        }
        if num_settled % POLL == 0 {
            ctx.progress.check()?;
        }
        let label_bytes = table_bytes(size_of::<(VertexId, (W::Distance, VertexId))>());
        let degree = graph.out_degree(u);
        let num_labels = (labels.len() + degree).min(graph.vertex_bound());
        // A vertex stands in the heap as often as its distance fell.
        let needed = num_labels * label_bytes + (heap.len() + degree) * HEAP_BYTES;
        ctx.require_memory("path --weighted", needed as u64)?;
        num_settled += 1;
        let _ = graph.for_each_weighted_out_fragment::<W>(u, |targets, weights| {
            for (&v, &weight) in targets.iter().zip(weights) {
                let Some(weight_distance) = weight.distance() else {
                    forbidden = Some((u, v, weight));
                    return ControlFlow::Break(());
                };
                let new = distance.plus(weight_distance);
                let label = labels.entry(v).or_insert((W::Distance::UNREACHED, v));
                if new < label.0 {
                    *label = (new, u);
                    heap.push(Reverse((new.to_bits(), v)));
                }
            }
            ControlFlow::Continue(())
        });
        if let Some((source_vertex, target, weight)) = forbidden {
            let weight = weight.to_string();
            return Err(Error::Weight { kernel: "a path by weight", source_vertex, target, weight });
        }
    }
    graph.check()?;
    Ok(None)
}

fn way<D>(labels: &Labels<D>, target: VertexId) -> Vec<VertexId> {
    let mut way = vec![target];
    let mut last = target;
    while let Some((_, parent)) = labels.get(&last).filter(|(_, parent)| *parent != last) {
        way.push(*parent);
        last = *parent;
    }
    way.reverse();
    way
}
