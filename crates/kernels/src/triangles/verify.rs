//! The serial verifier of triangle counts: merges of sorted lists.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_graph::{Direction, Graph};

use super::TriangleResult;

/// Checks the counts. For every edge, it merges the sorted neighbors of both ends. This finds each triangle at each of
/// its three edges, and so once at each vertex, as the neighbor that the ends share.
///
/// # Errors
/// The counts differ.
pub fn verify(graph: &impl Graph, result: &TriangleResult) -> Result<(), String> {
    let neighbors = simple_neighbors(graph);
    let mut by_vertex = vec![0_u64; neighbors.len()];
    for (vertex, list) in neighbors.iter().enumerate() {
        for &other in list.iter().filter(|&&other| (other as usize) > vertex) {
            for_each_common(list, &neighbors[other as usize], |corner| by_vertex[corner as usize] += 1);
        }
    }
    if let Some(found) = &result.by_vertex {
        if found.len() != by_vertex.len() {
            return Err(format!("{} counts for {} vertices", found.len(), by_vertex.len()));
        }
        if let Some(v) = (0..by_vertex.len()).find(|&v| found[v] != by_vertex[v]) {
            return Err(format!("{} triangles were counted at vertex {v}, and there are {}", found[v], by_vertex[v]));
        }
    }
    let expected = by_vertex.iter().sum::<u64>() / 3;
    if result.triangles == expected {
        Ok(())
    } else {
        Err(format!("{} triangles were counted, and there are {expected}", result.triangles))
    }
}

/// The neighbors of each vertex in either direction, ascending and distinct, without the vertex itself.
fn simple_neighbors(graph: &impl Graph) -> Vec<Vec<VertexId>> {
    let bound = graph.vertex_bound();
    let mut neighbors = vec![Vec::new(); bound];
    for source in 0..bound as VertexId {
        let _ = graph.for_each_fragment(Direction::Out, source, |fragment| {
            for &target in fragment.iter().filter(|&&target| target != source) {
                neighbors[source as usize].push(target);
                neighbors[target as usize].push(source);
            }
            ControlFlow::Continue(())
        });
    }
    for list in &mut neighbors {
        list.sort_unstable();
        list.dedup();
    }
    neighbors
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
