//! The serial verifier of communities: maps of label counts, along out-edges only.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph, GraphKind};

use super::{CdlpParams, CdlpResult};

/// Propagates the labels by the definition, and compares.
///
/// # Errors
/// The first difference, as a sentence.
pub fn verify<G: Graph>(graph: &G, params: &CdlpParams, result: &CdlpResult) -> Result<(), String> {
    let bound = graph.vertex_bound();
    let mut neighbors = vec![Vec::new(); bound];
    for u in 0..bound {
        let _ = graph.for_each_fragment(Direction::Out, u as VertexId, |list| {
            for &v in list {
                neighbors[u].push(v as usize);
                if graph.graph_kind() == GraphKind::Directed {
                    neighbors[v as usize].push(u);
                }
            }
            ControlFlow::Continue(())
        });
    }
    let live = || (0..bound as VertexId).filter(|&v| graph.is_live(v));
    let order: Vec<VertexId> = params.order.clone().unwrap_or_else(|| live().collect());
    let mut labels: Vec<usize> = vec![usize::MAX; bound];
    order.iter().enumerate().for_each(|(rank, &v)| labels[v as usize] = rank);
    let mut iterations = 0;
    while iterations < params.iterations {
        let next: Vec<usize> = (0..bound).map(|v| common_label(&neighbors[v], &labels).unwrap_or(labels[v])).collect();
        let is_stable = next == labels;
        labels = next;
        iterations += 1;
        if is_stable {
            break;
        }
    }
    if result.labels.len() != bound {
        return Err(format!("{} labels for {bound} vertices", result.labels.len()));
    }
    for (v, (&rank, &found)) in labels.iter().zip(&result.labels).enumerate() {
        // A dead vertex has no rank, and keeps its id.
        let wanted = order.get(rank).map_or(v, |&label| label as usize);
        if found as usize != wanted {
            return Err(format!("vertex {v} has label {found}, {wanted} wanted"));
        }
    }
    let communities = live().map(|v| labels[v as usize]).collect::<BTreeSet<_>>().len() as u64;
    if (result.communities, result.iterations) != (communities, iterations) {
        let found = (result.communities, result.iterations);
        return Err(format!("communities, iterations should be {:?}: {found:?}", (communities, iterations)));
    }
    Ok(())
}

/// The most frequent label of the neighbors, the smallest among equals.
fn common_label(neighbors: &[usize], labels: &[usize]) -> Option<usize> {
    let mut counts = BTreeMap::new();
    neighbors.iter().for_each(|&u| *counts.entry(labels[u]).or_insert(0) += 1);
    let most = counts.values().copied().max()?;
    counts.into_iter().find(|&(_, count)| count == most).map(|(label, _): (usize, usize)| label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_results_are_caught() {
        let csr =
            anden_testkit::graphs().into_iter().find(|g| g.name == "undirected two parts").unwrap().build().unwrap();
        let (pool, params) = (anden_base::parallel::Pool::new(1).unwrap(), CdlpParams::default());
        let good = super::super::cdlp(&crate::Context::new(&pool), &csr, &params).unwrap();
        assert_eq!(verify(&csr, &params, &good), Ok(()));
        let spoilt = |spoil: &dyn Fn(&mut CdlpResult)| {
            let mut result = good.clone();
            spoil(&mut result);
            verify(&csr, &params, &result).is_err()
        };
        assert!(spoilt(&|r| r.labels[3] += 1));
        assert!(spoilt(&|r| r.labels[45] = 0));
        assert!(spoilt(&|r| r.labels.truncate(90)));
        assert!(spoilt(&|r| r.communities -= 1));
        assert!(spoilt(&|r| r.iterations += 1));
        assert!(verify(&csr, &CdlpParams { iterations: 1, ..params }, &good).is_err());
    }
}
