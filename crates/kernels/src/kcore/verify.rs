//! The serial verifier of a k-core decomposition: it proves both bounds of every coreness.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph};

use super::{KcoreParams, KcoreResult};

/// Checks that no coreness is too large or too small.
///
/// None is too large if each vertex of value k has at least k neighbors of value k or more: they form a k-core. None is
/// too small if all vertices can be removed in ascending order of value, each with at most its value of remaining
/// neighbors. In a denser core, the vertex removed first would have more.
///
/// # Errors
/// The first fault, as a sentence.
pub fn verify<G: Graph>(graph: &G, _params: &KcoreParams, result: &KcoreResult) -> Result<(), String> {
    let (bound, cores) = (graph.vertex_bound(), &result.cores);
    if cores.len() != bound {
        return Err(format!("{} values for {bound} vertices", cores.len()));
    }
    let lists = simple_lists(graph);
    for (v, list) in lists.iter().enumerate() {
        let num_peers = list.iter().filter(|&&u| cores[u as usize] >= cores[v]).count();
        if num_peers < cores[v] as usize {
            return Err(format!("vertex {v} has coreness {}, and {num_peers} neighbors in that core", cores[v]));
        }
    }
    let mut by_core: Vec<usize> = (0..bound).collect();
    by_core.sort_by_key(|&v| cores[v]);
    let mut num_left: Vec<usize> = lists.iter().map(Vec::len).collect();
    let mut is_gone = vec![false; bound];
    for class in by_core.chunk_by(|&a, &b| cores[a] == cores[b]) {
        let core = cores[class[0]] as usize;
        let mut loose: Vec<usize> = class.iter().copied().filter(|&v| num_left[v] <= core).collect();
        while let Some(v) = loose.pop() {
            is_gone[v] = true;
            for u in lists[v].iter().map(|&u| u as usize).filter(|&u| !is_gone[u]) {
                num_left[u] -= 1;
                if num_left[u] == core && cores[u] as usize == core {
                    loose.push(u);
                }
            }
        }
        if let Some(v) = class.iter().find(|&&v| !is_gone[v]) {
            return Err(format!("vertex {v} has coreness {core}, and belongs to a denser core"));
        }
    }
    let degeneracy = cores.iter().copied().max().unwrap_or(0);
    if degeneracy != result.degeneracy {
        return Err(format!("the degeneracy should be {degeneracy}: {}", result.degeneracy));
    }
    Ok(())
}

/// The neighbors of each vertex in either direction, ascending and distinct, without the vertex itself.
fn simple_lists<G: Graph>(graph: &G) -> Vec<Vec<VertexId>> {
    let bound = graph.vertex_bound();
    let mut lists = vec![Vec::new(); bound];
    for u in 0..bound {
        let _ = graph.for_each_fragment(Direction::Out, u as VertexId, |list| {
            for &v in list.iter().filter(|&&v| v as usize != u) {
                lists[u].push(v);
                lists[v as usize].push(u as VertexId);
            }
            ControlFlow::Continue(())
        });
    }
    for list in &mut lists {
        list.sort_unstable();
        list.dedup();
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_results_are_caught() {
        let csr =
            anden_testkit::graphs().into_iter().find(|g| g.name == "undirected two parts").unwrap().build().unwrap();
        let (pool, params) = (anden_base::parallel::Pool::new(1).unwrap(), KcoreParams::default());
        let good = super::super::kcore(&crate::Context::new(&pool), &csr, &params).unwrap();
        assert_eq!(verify(&csr, &params, &good), Ok(()));
        let spoilt = |spoil: &dyn Fn(&mut KcoreResult)| {
            let mut result = good.clone();
            spoil(&mut result);
            verify(&csr, &params, &result).is_err()
        };
        for v in 0..95 {
            assert!(spoilt(&|r| r.cores[v] += 1), "vertex {v}");
            assert!(good.cores[v] == 0 || spoilt(&|r| r.cores[v] -= 1), "vertex {v}");
        }
        assert!(spoilt(&|r| r.cores.fill(0)));
        assert!(spoilt(&|r| r.cores.iter_mut().for_each(|core| *core += 1)));
        assert!(spoilt(&|r| r.cores.truncate(90)));
        assert!(spoilt(&|r| r.degeneracy += 1));
    }
}
