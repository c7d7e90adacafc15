//! The serial verifier of a search: a plain queue over out-lists.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use anden_base::NO_VERTEX;
use anden_graph::{Direction, Graph};

use super::{BfsParams, BfsResult};

/// Searches again, serially, along out-edges only, and compares.
///
/// # Errors
/// The first difference, as a sentence.
pub fn verify<G: Graph>(graph: &G, params: &BfsParams, result: &BfsResult) -> Result<(), String> {
    let bound = graph.vertex_bound();
    let mut hops = vec![u32::MAX; bound];
    let mut smallest_parent = vec![NO_VERTEX; bound];
    let mut queue = VecDeque::from([params.source]);
    hops[params.source as usize] = 0;
    let mut last = params.source;
    while let Some(u) = queue.pop_front() {
        // A queue ends with a farthest vertex, whose hops are the depth.
        last = u;
        let _ = graph.for_each_fragment(Direction::Out, u, |list| {
            for &v in list {
                let (near, far) = (hops[u as usize], &mut hops[v as usize]);
                if *far == u32::MAX {
                    *far = near + 1;
                    queue.push_back(v);
                }
                if *far == near + 1 {
                    smallest_parent[v as usize] = smallest_parent[v as usize].min(u);
                }
            }
            ControlFlow::Continue(())
        });
    }
    smallest_parent[params.source as usize] = params.source;
    differs("hops", &hops, &result.hops)?;
    if let Some(parents) = &result.parents {
        differs("parent", &smallest_parent, parents)?;
    }
    let reached = hops.iter().filter(|&&h| h != u32::MAX).count() as u64;
    if (reached, hops[last as usize], params.source) != (result.reached, result.depth, result.source) {
        let found = (result.reached, result.depth, result.source);
        return Err(format!(
            "reached, depth, source should be {reached}, {}, {}: {found:?}",
            hops[last as usize], params.source
        ));
    }
    Ok(())
}

fn differs(what: &str, wanted: &[u32], found: &[u32]) -> Result<(), String> {
    if wanted.len() != found.len() {
        return Err(format!("{} values of {what}, {} wanted", found.len(), wanted.len()));
    }
    match (0..wanted.len()).find(|&v| wanted[v] != found[v]) {
        Some(v) => Err(format!("vertex {v} has {what} {}, {} wanted", found[v], wanted[v])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_results_are_caught() {
        let csr = anden_testkit::graphs().into_iter().find(|g| g.name == "undirected cycle").unwrap().build().unwrap();
        let (pool, params) = (anden_base::parallel::Pool::new(1).unwrap(), BfsParams { source: 5, parents: true });
        let good = super::super::bfs(&crate::Context::new(&pool), &csr, &params).unwrap();
        assert_eq!(verify(&csr, &params, &good), Ok(()));
        let spoilt = |spoil: &dyn Fn(&mut BfsResult)| {
            let mut result = good.clone();
            spoil(&mut result);
            verify(&csr, &params, &result).is_err()
        };
        assert!(spoilt(&|r| r.hops[40] += 1));
        assert!(spoilt(&|r| r.parents.as_mut().unwrap()[7] = 8));
        assert!(spoilt(&|r| r.reached -= 1));
        assert!(spoilt(&|r| r.depth += 1));
        assert!(spoilt(&|r| r.hops.truncate(3)));
    }
}
