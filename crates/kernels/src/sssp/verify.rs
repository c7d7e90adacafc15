//! The check of shortest paths: Dijkstra's algorithm with a binary heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use base::VertexId;
use graph::{Distance, Weight, WeightType, WeightedEdges};

use super::{Kind, SsspParams, SsspResult};

/// Searches again, serially, and compares; floating distances to 1e-9 of their size.
///
/// # Errors
/// What differs first, as a sentence.
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
            None => graph.for_each_out_fragment(u, |list| {
                list.iter().for_each(|&v| reach(v, W::ONE));
                ControlFlow::Continue(())
            }),
            Some(_) => graph.for_each_weighted_out_fragment::<W>(u, |list, weights| {
                (0..list.len()).for_each(|i| reach(list[i], weights[i]));
                ControlFlow::Continue(())
            }),
        };
    }
    distances
}

fn compare<W, G>(graph: &G, params: &SsspParams, result: &SsspResult) -> Result<(), String>
where
    W: Weight<Distance: Kind>,
    G: WeightedEdges,
{
    let wanted = dijkstra::<W, G>(graph, params.source);
    let Some(found) = W::Distance::of(&result.distances) else {
        return Err(format!("distances of weights of type {} have another type", W::TYPE.name()));
    };
    if found.len() != wanted.len() {
        return Err(format!("{} distances for {} vertices", found.len(), wanted.len()));
    }
    let near = |a: W::Distance, b: W::Distance| {
        a == b
            || (a.as_f64() - b.as_f64()).abs() <= 1e-9 * b.as_f64()
                && matches!(W::TYPE, WeightType::F32 | WeightType::F64)
    };
    if let Some(v) = (0..wanted.len()).find(|&v| !near(found[v], wanted[v])) {
        return Err(format!("vertex {v} has distance {}, {} wanted", found[v], wanted[v]));
    }
    let reached = || wanted.iter().copied().filter(|&d| d < W::Distance::UNREACHED);
    let max = reached().fold(0.0, |max, d| d.as_f64().max(max));
    let sum: f64 = reached().map(Distance::as_f64).sum();
    let float = |value| match value {
        super::DistanceValue::Integer(value) => value as f64,
        super::DistanceValue::Float(value) => value,
    };
    let off = |value, wanted: f64| (float(value) - wanted).abs() > 1e-9 * wanted;
    let counts_differ = result.reached != reached().count() as u64 || result.source != params.source;
    if counts_differ || off(result.max_distance, max) || off(result.sum_distance, sum) {
        let found = (result.reached, result.max_distance, result.sum_distance);
        return Err(format!("reached, max, sum should be {}, {max}, {sum}: {found:?}", reached().count()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{DistanceValue, Distances, sssp};
    use super::*;

    #[test]
    fn wrong_results_are_caught() {
        let test = testkit::graphs().into_iter().find(|g| g.name == "undirected grid").unwrap();
        let csr = test.build_weighted::<f32>().unwrap();
        let (pool, params) = (base::parallel::Pool::new(1).unwrap(), SsspParams { source: 5, ..Default::default() });
        let good = sssp(&crate::Context::new(&pool), &csr, &params).unwrap();
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
