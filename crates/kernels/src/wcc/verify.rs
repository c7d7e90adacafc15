//! The serial verifier of weak components: union-find over out-edges.

use std::collections::HashMap;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph};

use super::{WccParams, WccResult};

/// Joins the ends of every edge, serially, and compares.
///
/// # Errors
/// The first difference, as a sentence.
pub fn verify<G: Graph>(graph: &G, _params: &WccParams, result: &WccResult) -> Result<(), String> {
    let bound = graph.vertex_bound();
    let mut leader: Vec<usize> = (0..bound).collect();
    let mut members: Vec<Vec<usize>> = (0..bound).map(|v| vec![v]).collect();
    for u in 0..bound {
        let _ = graph.for_each_fragment(Direction::Out, u as VertexId, |list| {
            for &v in list {
                let (a, b) = (leader[u], leader[v as usize]);
                if a != b {
                    // The smaller set moves, so a vertex moves at most log n times.
                    let (to, from) = if members[a].len() < members[b].len() { (b, a) } else { (a, b) };
                    let moved = std::mem::take(&mut members[from]);
                    moved.iter().for_each(|&w| leader[w] = to);
                    members[to].extend(moved);
                }
            }
            ControlFlow::Continue(())
        });
    }
    if result.labels.len() != bound {
        return Err(format!("{} labels for {bound} vertices", result.labels.len()));
    }
    let mut smallest = HashMap::new();
    let mut sizes: HashMap<usize, u64> = HashMap::new();
    for (v, &leader) in leader.iter().enumerate() {
        let label = *smallest.entry(leader).or_insert(v);
        if result.labels[v] as usize != label {
            return Err(format!("vertex {v} has label {}, {label} wanted", result.labels[v]));
        }
        if graph.is_live(v as VertexId) {
            *sizes.entry(label).or_default() += 1;
        }
    }
    let wanted = (sizes.len() as u64, sizes.values().copied().max().unwrap_or(0));
    if (result.components, result.largest) != wanted {
        return Err(format!("components, largest should be {wanted:?}: {:?}", (result.components, result.largest)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_results_are_caught() {
        let csr = anden_testkit::graphs().into_iter().find(|g| g.name == "two parts").unwrap().build().unwrap();
        let (pool, params) = (anden_base::parallel::Pool::new(1).unwrap(), WccParams::default());
        let good = super::super::wcc(&crate::Context::new(&pool), &csr, &params).unwrap();
        assert_eq!((good.components, good.largest), (2 + 10 + 4, 41));
        assert_eq!(verify(&csr, &params, &good), Ok(()));
        let spoilt = |spoil: &dyn Fn(&mut WccResult)| {
            let mut result = good.clone();
            spoil(&mut result);
            verify(&csr, &params, &result).is_err()
        };
        assert!(spoilt(&|r| r.labels[3] = 1));
        assert!(spoilt(&|r| r.labels.iter_mut().filter(|l| **l == 50).for_each(|l| *l = 0)));
        assert!(spoilt(&|r| r.components += 1));
        assert!(spoilt(&|r| r.largest += 1));
    }
}
