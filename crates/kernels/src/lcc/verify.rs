//! The serial verifier of clustering coefficients: marks the neighbors of each vertex, and scans their out-lists.

use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph, GraphKind};

use super::LccResult;

/// Checks every coefficient by its definition, except for rounding, and the mean to 1e-9.
///
/// Cost: for each arc, the out-list of its target; slow at high degrees.
///
/// # Errors
/// The first difference, as a sentence.
pub fn verify(graph: &impl Graph, result: &LccResult) -> Result<(), String> {
    let bound = graph.vertex_bound();
    if result.coefficients.len() != bound {
        return Err(format!("{} coefficients for {bound} vertices", result.coefficients.len()));
    }
    let out = out_neighbors(graph);
    let mut all = out.clone();
    if graph.graph_kind() == GraphKind::Directed {
        for (source, list) in out.iter().enumerate() {
            list.iter().for_each(|&target| all[target as usize].push(source as VertexId));
        }
        for list in &mut all {
            list.sort_unstable();
            list.dedup();
        }
    }
    let mut near = vec![false; bound];
    let mut sum = 0.0;
    for (vertex, neighbors) in all.iter().enumerate() {
        neighbors.iter().for_each(|&u| near[u as usize] = true);
        let arcs_from = |u: &VertexId| out[*u as usize].iter().filter(|&&w| near[w as usize]).count();
        let num_arcs: usize = neighbors.iter().map(arcs_from).sum();
        neighbors.iter().for_each(|&u| near[u as usize] = false);
        let num_pairs = neighbors.len() * neighbors.len().saturating_sub(1);
        let wanted = if num_pairs == 0 { 0.0 } else { num_arcs as f64 / num_pairs as f64 };
        let found = result.coefficients[vertex];
        if !is_near(found, wanted) {
            return Err(format!("vertex {vertex} has coefficient {found}, {wanted} wanted"));
        }
        sum += wanted;
    }
    let mean = sum / graph.num_vertices().max(1) as f64;
    if (result.mean - mean).abs() <= 1e-9 { Ok(()) } else { Err(format!("the mean is {}, {mean} wanted", result.mean)) }
}

/// Whether a coefficient is correct: close enough to result from equal counts, even at a hub with millions of
/// neighbors.
fn is_near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-15_f64.max(4.0 * f64::EPSILON * wanted)
}

/// The targets of each vertex, ascending and distinct, without the vertex itself.
fn out_neighbors(graph: &impl Graph) -> Vec<Vec<VertexId>> {
    let lists = (0..graph.vertex_bound() as VertexId).map(|source| {
        let mut list = Vec::new();
        let _ = graph.for_each_fragment(Direction::Out, source, |fragment| {
            list.extend(fragment.iter().copied().filter(|&target| target != source));
            ControlFlow::Continue(())
        });
        list.sort_unstable();
        list.dedup();
        list
    });
    lists.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a tolerance of 1e-12 accepted a count that was off by one at 2 million neighbors.
    #[test]
    fn counts_that_are_off_by_one_are_caught() {
        for num_neighbors in [3_u64, 1000, 2_000_000, 20_000_000] {
            let num_pairs = num_neighbors * (num_neighbors - 1);
            for num_arcs in [0, 1, num_pairs / 2, num_pairs - 1] {
                let share = |num_arcs: u64| num_arcs as f64 / num_pairs as f64;
                let wanted = share(num_arcs);
                let is_right = is_near(2.0 * wanted / 2.0, wanted) && is_near(wanted * (1.0 + f64::EPSILON), wanted);
                assert!(is_right, "{num_arcs} of {num_pairs}");
                assert!(!is_near(share(num_arcs + 1), wanted), "{num_arcs} of {num_pairs}");
            }
        }
        assert!(!is_near(f64::NAN, 0.5));
    }
}
