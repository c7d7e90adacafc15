//! The serial verifier of centralities: Brandes' original algorithm, with lists of predecessors.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph};

use super::{BcParams, BcResult};

/// Checks the sources, computes their scores again, serially, and compares to 1e-9 of their size.
///
/// # Errors
/// The first difference, as a sentence.
pub fn verify<G: Graph>(graph: &G, params: &BcParams, result: &BcResult) -> Result<(), String> {
    let bound = graph.vertex_bound();
    params.sources.verify(graph, &result.sources)?;
    let mut wanted = vec![0.0_f64; bound];
    for &source in &result.sources {
        add_dependencies(graph, source as usize, &mut wanted);
    }
    if result.scores.len() != bound {
        return Err(format!("{} scores for {bound} vertices", result.scores.len()));
    }
    // Written so that a NaN counts as a difference.
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
    match (0..bound).find(|&v| !near(result.scores[v], wanted[v])) {
        Some(v) => Err(format!("vertex {v} has score {}, {} wanted", result.scores[v], wanted[v])),
        None => Ok(()),
    }
}

fn add_dependencies<G: Graph>(graph: &G, source: usize, scores: &mut [f64]) {
    let bound = scores.len();
    let mut hops = vec![usize::MAX; bound];
    let mut paths = vec![0.0; bound];
    let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); bound];
    let mut order = vec![source];
    (hops[source], paths[source]) = (0, 1.0);
    let mut place = 0;
    while let Some(&u) = order.get(place) {
        place += 1;
        let _ = graph.for_each_fragment(Direction::Out, u as VertexId, |list| {
            for v in list.iter().map(|&v| v as usize) {
                if hops[v] == usize::MAX {
                    hops[v] = hops[u] + 1;
                    order.push(v);
                }
                if hops[v] == hops[u] + 1 {
                    paths[v] += paths[u];
                    predecessors[v].push(u);
                }
            }
            ControlFlow::Continue(())
        });
    }
    let mut dependency = vec![0.0; bound];
    for &v in order.iter().rev() {
        for &u in &predecessors[v] {
            dependency[u] += paths[u] / paths[v] * (1.0 + dependency[v]);
        }
        if v != source {
            scores[v] += dependency[v];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceChoice;

    #[test]
    fn wrong_results_are_caught() {
        let csr = anden_testkit::graphs().into_iter().find(|g| g.name == "undirected grid").unwrap().build().unwrap();
        let pool = anden_base::parallel::Pool::new(1).unwrap();
        let params = BcParams { sources: SourceChoice::Given(vec![5, 17]) };
        let good = super::super::bc(&crate::Context::new(&pool), &csr, &params).unwrap();
        assert_eq!(verify(&csr, &params, &good), Ok(()));
        let spoilt = |spoil: &dyn Fn(&mut BcResult)| {
            let mut result = good.clone();
            spoil(&mut result);
            verify(&csr, &params, &result).is_err()
        };
        assert!(spoilt(&|r| r.scores[30] *= 1.0001));
        assert!(spoilt(&|r| r.scores[30] = f64::NAN));
        assert!(spoilt(&|r| r.sources = vec![5]));
        assert!(spoilt(&|r| r.scores.truncate(9)));
        let other = |sources| verify(&csr, &BcParams { sources }, &good).is_err();
        assert!(other(SourceChoice::All) && other(SourceChoice::Sampled { count: 3, seed: 1 }));
        assert!(!other(SourceChoice::Sampled { count: 2, seed: 1 }));
    }
}
