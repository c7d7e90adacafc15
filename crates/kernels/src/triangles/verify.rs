//! The serial check of triangle counts: sorted lists merged.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use base::VertexId;
use graph::Graph;

use super::TriangleResult;

/// Checks the counts: every edge merges the sorted neighbours of its ends, which finds each triangle
/// at each of its three edges, and so once for each corner, which is the neighbour that they share.
///
/// # Errors
/// The counts differ.
pub fn verify(graph: &impl Graph, result: &TriangleResult) -> Result<(), String> {
    let neighbours = simple_neighbours(graph);
    let mut corners = vec![0_u64; neighbours.len()];
    for (vertex, list) in neighbours.iter().enumerate() {
        for &other in list.iter().filter(|&&other| (other as usize) > vertex) {
            for_each_common(list, &neighbours[other as usize], |corner| corners[corner as usize] += 1);
        }
    }
    if let Some(found) = &result.by_vertex {
        if found.len() != corners.len() {
            return Err(format!("{} counts for {} vertices", found.len(), corners.len()));
        }
        if let Some(v) = (0..corners.len()).find(|&v| found[v] != corners[v]) {
            return Err(format!("{} triangles were counted at vertex {v}, and there are {}", found[v], corners[v]));
        }
    }
    let expected = corners.iter().sum::<u64>() / 3;
    if result.triangles == expected {
        Ok(())
    } else {
        Err(format!("{} triangles were counted, and there are {expected}", result.triangles))
    }
}

/// The neighbours of each vertex in either direction, ascending, without itself and without repetitions.
fn simple_neighbours(graph: &impl Graph) -> Vec<Vec<VertexId>> {
    let bound = graph.vertex_bound();
    let mut neighbours = vec![Vec::new(); bound];
    for source in 0..bound as VertexId {
        let _ = graph.for_each_out_fragment(source, |fragment| {
            for &target in fragment.iter().filter(|&&target| target != source) {
                neighbours[source as usize].push(target);
                neighbours[target as usize].push(source);
            }
            ControlFlow::Continue(())
        });
    }
    for list in &mut neighbours {
        list.sort_unstable();
        list.dedup();
    }
    neighbours
}

fn for_each_common(mut a: &[VertexId], mut b: &[VertexId], mut body: impl FnMut(VertexId)) {
    while let ([x, a_rest @ ..], [y, b_rest @ ..]) = (a, b) {
        match x.cmp(y) {
            Ordering::Less => a = a_rest,
            Ordering::Greater => b = b_rest,
            Ordering::Equal => {
                body(*x);
                (a, b) = (a_rest, b_rest);
            }
        }
    }
}
