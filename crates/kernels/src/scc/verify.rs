//! The serial verifier of strong components: Kosaraju's two depth-first searches.

use std::collections::HashMap;
use std::ops::ControlFlow;

use anden_base::{NO_VERTEX, VertexId};
use anden_graph::{Direction, Graph};

use super::{SccParams, SccResult};

/// Finds the components by Kosaraju's algorithm, serially, along out-edges only, and compares.
///
/// # Errors
/// The first difference, as a sentence.
pub fn verify<G: Graph>(graph: &G, _params: &SccParams, result: &SccResult) -> Result<(), String> {
    let bound = graph.vertex_bound();
    let (mut forward, mut backward) = (vec![Vec::new(); bound], vec![Vec::new(); bound]);
    for (u, targets) in (0..).zip(&mut forward) {
        let _ = graph.for_each_fragment(Direction::Out, u, |list| {
            targets.extend_from_slice(list);
            list.iter().for_each(|&v| backward[v as usize].push(u));
            ControlFlow::Continue(())
        });
    }
    let roots = 0..bound as VertexId;
    let mut finished = Vec::with_capacity(bound);
    let mut seen = vec![NO_VERTEX; bound];
    roots.for_each(|root| visit(&forward, root, &mut seen, |v| finished.push(v)));
    let mut leaders = vec![NO_VERTEX; bound];
    finished.iter().rev().for_each(|&root| visit(&backward, root, &mut leaders, |_| {}));

    if result.labels.len() != bound {
        return Err(format!("{} labels for {bound} vertices", result.labels.len()));
    }
    let mut smallest = HashMap::new();
    let mut sizes: HashMap<VertexId, u64> = HashMap::new();
    for (v, (&leader, &found)) in (0..).zip(leaders.iter().zip(&result.labels)) {
        let label = *smallest.entry(leader).or_insert(v);
        if found != label {
            return Err(format!("vertex {v} has label {found}, {label} wanted"));
        }
        if graph.is_live(v) {
            *sizes.entry(label).or_default() += 1;
        }
    }
    let wanted = (sizes.len() as u64, sizes.values().copied().max().unwrap_or(0));
    if (result.components, result.largest) != wanted {
        return Err(format!("components, largest should be {wanted:?}: {:?}", (result.components, result.largest)));
    }
    Ok(())
}

/// Visits the unvisited vertices reachable from `root` depth-first, and marks them with the root. Calls `finish` for
/// each vertex after its descendants.
fn visit(lists: &[Vec<VertexId>], root: VertexId, marks: &mut [VertexId], mut finish: impl FnMut(VertexId)) {
    if marks[root as usize] != NO_VERTEX {
        return;
    }
    marks[root as usize] = root;
    let mut path = vec![(root, 0)];
    while let Some((v, place)) = path.last_mut() {
        match lists[*v as usize].get(*place) {
            Some(&u) => {
                *place += 1;
                if marks[u as usize] == NO_VERTEX {
                    marks[u as usize] = root;
                    path.push((u, 0));
                }
            }
            None => {
                finish(*v);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_results_are_caught() {
        let csr = anden_testkit::graphs().into_iter().find(|g| g.name == "two parts").unwrap().build().unwrap();
        let (pool, params) = (anden_base::parallel::Pool::new(1).unwrap(), SccParams::default());
        let good = super::super::scc(&crate::Context::new(&pool), &csr, &params).unwrap();
        // A ring of 40, a chain of 41, and 14 vertices without edges.
        assert_eq!((good.components, good.largest), (1 + 41 + 14, 40));
        assert_eq!(verify(&csr, &params, &good), Ok(()));
        let spoilt = |spoil: &dyn Fn(&mut SccResult)| {
            let mut result = good.clone();
            spoil(&mut result);
            verify(&csr, &params, &result).is_err()
        };
        assert!(spoilt(&|r| r.labels[3] = 1));
        assert!(spoilt(&|r| r.labels[51] = 50));
        assert!(spoilt(&|r| r.labels.iter_mut().filter(|l| **l == 0).for_each(|l| *l = 1)));
        assert!(spoilt(&|r| r.labels.truncate(90)));
        assert!(spoilt(&|r| r.components += 1));
        assert!(spoilt(&|r| r.largest += 1));
    }
}
