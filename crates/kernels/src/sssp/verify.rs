//! The serial verifier of shortest paths: Dijkstra's algorithm with a binary heap; with negative weights, rounds over
//! all edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Distance, Weight, WeightType, WeightedEdges};

use super::negative::number;
use super::{DistanceKind, DistanceValue, Distances, SsspParams, SsspResult};

/// Searches again, serially, and compares; floating distances to 1e-9 of their size.
///
/// # Errors
/// The first difference, as a sentence.
pub fn verify<G: WeightedEdges>(graph: &G, params: &SsspParams, result: &SsspResult) -> Result<(), String> {
    match graph.weight_type() {
        Some(WeightType::U32) | None => compare::<u32, G>(graph, params, result),
        Some(WeightType::I64) => compare::<i64, G>(graph, params, result),
        Some(WeightType::F32) => compare::<f32, G>(graph, params, result),
        Some(WeightType::F64) => compare::<f64, G>(graph, params, result),
    }
}

fn dijkstra<W: Weight, G: WeightedEdges>(graph: &G, source: VertexId) -> Vec<W::Distance> {
    let mut distances = vec![W::Distance::UNREACHED; graph.vertex_bound()];
    let mut heap = BinaryHeap::from([Reverse((0_u64, source))]);
    distances[source as usize] = W::Distance::default();
    while let Some(Reverse((bits, u))) = heap.pop() {
        let distance = W::Distance::from_bits(bits);
        // An outdated entry: the distance fell after the push.
        if distance > distances[u as usize] {
            continue;
        }
        let mut reach = |v: VertexId, weight: W| {
            let new = distance.plus(weight.distance().unwrap_or(W::Distance::UNREACHED));
            if new < distances[v as usize] {
                distances[v as usize] = new;
                heap.push(Reverse((new.to_bits(), v)));
            }
        };
        let _ = match graph.weight_type() {
            None => graph.for_each_fragment(Direction::Out, u, |list| {
                list.iter().for_each(|&v| reach(v, W::ONE));
                ControlFlow::Continue(())
            }),
            Some(_) => graph.for_each_weighted_fragment::<W>(Direction::Out, u, |list, weights| {
                (0..list.len()).for_each(|i| reach(list[i], weights[i]));
                ControlFlow::Continue(())
            }),
        };
    }
    distances
}

/// Distances by rounds over all edges; `None` if no weight is negative.
fn with_negative<W: Weight, G: WeightedEdges>(graph: &G, source: VertexId) -> Option<Result<Vec<f64>, String>> {
    graph.weight_type()?;
    let bound = graph.vertex_bound();
    let mut distances = vec![f64::INFINITY; bound];
    distances[source as usize] = 0.0;
    let mut has_negative = false;
    // One round more than a path has edges: a change in it shows a cycle.
    for _ in 0..=bound {
        let mut has_changed = false;
        for u in 0..bound {
            let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, u as VertexId, |list, weights| {
                for (&v, &weight) in list.iter().zip(weights) {
                    let weight = number(weight).unwrap_or(f64::INFINITY);
                    has_negative |= weight < 0.0;
                    let new = distances[u] + weight;
                    if new < distances[v as usize] {
                        distances[v as usize] = new;
                        has_changed = true;
                    }
                }
                ControlFlow::Continue(())
            });
        }
        if !has_negative {
            return None;
        }
        if !has_changed {
            return Some(Ok(distances));
        }
    }
    Some(Err("there is a cycle of negative weight".into()))
}

fn compare<W, G>(graph: &G, params: &SsspParams, result: &SsspResult) -> Result<(), String>
where
    W: Weight<Distance: DistanceKind>,
    G: WeightedEdges,
{
    // Distances of negative weights are floating numbers, also of integers.
    if let (Distances::Float(found), Some(wanted)) = (&result.distances, with_negative::<W, G>(graph, params.source)) {
        return compared(found, &wanted?, params, result);
    }
    let wanted = dijkstra::<W, G>(graph, params.source);
    let Some(found) = W::Distance::of(&result.distances) else {
        return Err(format!("distances of weights of type {} have another type", W::TYPE.name()));
    };
    compared(found, &wanted, params, result)
}

/// Compares distances and their totals.
fn compared<D: DistanceKind>(
    found: &[D],
    wanted: &[D],
    params: &SsspParams,
    result: &SsspResult,
) -> Result<(), String> {
    if found.len() != wanted.len() {
        return Err(format!("{} distances for {} vertices", found.len(), wanted.len()));
    }
    if let Some(v) = (0..wanted.len()).find(|&v| !are_near(found[v].value(), wanted[v].value())) {
        return Err(format!("vertex {v} has distance {}, {} wanted", found[v], wanted[v]));
    }
    let reached = || wanted.iter().copied().filter(|&d| d < D::UNREACHED);
    // Distances below 0 are no larger than that of the source.
    let max = reached().fold(D::default(), |max, d| if d > max { d } else { max });
    let sum = reached().fold(D::default(), D::plus);
    let counts_differ = result.reached != reached().count() as u64 || result.source != params.source;
    let are_totals_near = are_near(result.max_distance, max.value()) && are_near(result.sum_distance, sum.value());
    if counts_differ || !are_totals_near {
        let found = (result.reached, result.max_distance, result.sum_distance);
        return Err(format!("reached, max, sum should be {}, {max}, {sum}: {found:?}", reached().count()));
    }
    Ok(())
}

/// Whether a distance, or a sum of distances, is correct. Floating sums depend on their order.
fn are_near(found: DistanceValue, wanted: DistanceValue) -> bool {
    match (found, wanted) {
        (DistanceValue::Float(found), DistanceValue::Float(wanted)) => {
            found == wanted || wanted.is_finite() && (found - wanted).abs() <= 1e-9 * wanted.abs()
        }
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use anden_base::parallel::Pool;
    use anden_graph::{Csr, CsrBuilder, GraphKind};

    use super::super::{Distances, sssp};
    use super::*;
    use crate::Context;

    fn from_0(csr: &Csr) -> (SsspParams, SsspResult) {
        let (pool, params) = (Pool::new(1).unwrap(), SsspParams::default());
        let result = sssp(&Context::new(&pool), csr, &params).unwrap();
        (params, result)
    }

    /// Regression: the verifier added integers as floats, and refused a correct saturated sum.
    #[test]
    fn sums_of_integers_are_exact_and_saturate() {
        for (weights, sum) in [([i64::MAX; 2], u64::MAX), ([1 << 60, 3], (1 << 61) + 3)] {
            let mut builder = CsrBuilder::<i64>::new(GraphKind::Directed, 3);
            (0..2).for_each(|v| builder.edge(v, v + 1, weights[v as usize]));
            let csr = builder.build_weighted().unwrap();
            let (params, good) = from_0(&csr);
            assert_eq!(good.sum_distance, DistanceValue::Integer(sum));
            assert_eq!(verify(&csr, &params, &good), Ok(()));
            let off_by_one = SsspResult { sum_distance: DistanceValue::Integer(sum - 1), ..good };
            assert!(verify(&csr, &params, &off_by_one).is_err());
        }
    }

    /// Every distance is within a share of infinity, so infinity needs an exact comparison.
    #[test]
    fn a_vertex_that_cannot_be_reached_has_no_distance() {
        let mut builder = CsrBuilder::<f32>::new(GraphKind::Directed, 3);
        builder.edge(0, 1, 0.5);
        let csr = builder.build_weighted().unwrap();
        let (params, good) = from_0(&csr);
        assert_eq!(verify(&csr, &params, &good), Ok(()));
        let wrong = SsspResult { distances: Distances::Float(vec![0.0, 0.5, 7.0]), ..good };
        assert!(verify(&csr, &params, &wrong).is_err());
    }

    #[test]
    fn wrong_results_are_caught() {
        let test = anden_testkit::graphs().into_iter().find(|g| g.name == "undirected grid").unwrap();
        let csr = test.build_weighted::<f32>().unwrap();
        let (pool, params) = (Pool::new(1).unwrap(), SsspParams { source: 5, ..Default::default() });
        let good = sssp(&Context::new(&pool), &csr, &params).unwrap();
        assert_eq!(verify(&csr, &params, &good), Ok(()));
        let spoilt = |spoil: &dyn Fn(&mut SsspResult)| {
            let mut result = good.clone();
            spoil(&mut result);
            verify(&csr, &params, &result).is_err()
        };
        let Distances::Float(values) = &good.distances else { unreachable!("f32 weights") };
        let mut wrong = values.clone();
        wrong[77] += 1.0;
        assert!(spoilt(&|r| r.distances = Distances::Float(wrong.clone())));
        assert!(spoilt(&|r| r.distances = Distances::Integer(vec![])));
        assert!(spoilt(&|r| r.reached += 1));
        assert!(spoilt(&|r| r.max_distance = DistanceValue::Float(0.0)));
        assert!(spoilt(&|r| r.sum_distance = DistanceValue::Float(1.0)));
    }
}
