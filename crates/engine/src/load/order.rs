//! The orders of ids that follow the shape of the graph: `degree`, `hub` and `bfs`.
//!
//! Ids ascend with keys at first ([`super::map`]). The raw edges then give the degree of each vertex, and an order of
//! the vertices. The last step of the [`KeyMap`] is a table from first ids to final ones, so that every form of raw
//! edges takes part. Neither the degrees nor the orders depend on the number of workers.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::AtomicBitmap;

use super::Load;
use super::arcs::{LoadArc, Payload};
use super::keys::{KeyMap, VertexKeys};
use super::map::for_each_block;
use super::options::IdOrder;
use super::raw::RawEdges;
use crate::Result;

/// Memory of a vertex: its degree, and its place in the sort by degree.
const DEGREE_BYTES: u64 = 8 + 8;
/// In the orders, in the table of ids, and in the key order of the dictionary, and the moved key.
const ID_BYTES: u64 = 4 + 4 + 4 + 8;
/// In the breadth-first search: its rank, the start of its list, its place in the queue, and a bit.
const SEARCH_BYTES: u64 = 4 + 8 + 4 + 1;
/// Neighbors that one worker sorts at once.
const SORT_ARCS: usize = 64 << 10;
/// Vertices between two looks at whether the load is cancelled.
const CHECK_VERTICES: usize = 64 << 10;

/// Renumbers vertices in the order that the options ask for. Keys and map come with ids that ascend with keys, unless
/// ids follow the input.
pub(crate) fn reorder<P: Payload>(
    load: &Load<'_>,
    edges: &mut RawEdges<P>,
    keys: VertexKeys,
    map: KeyMap,
) -> Result<(VertexKeys, KeyMap)> {
    let order = load.options.order;
    if !order.follows_shape() {
        return Ok((keys, map));
    }
    load.progress.stage("order ids", None);
    check_memory(load, edges, &keys, &map)?;
    let degrees = degrees(load, edges, &map, keys.len() as usize)?;
    let vertices = match order {
        IdOrder::Hub => hubs_first(&degrees),
        IdOrder::Bfs => breadth_first(load, edges, &map, &degrees)?,
        _ => by_degree(&degrees),
    };
    // The usual maps are faster, and serve where the order changes nothing.
    if vertices.is_sorted() {
        return Ok((keys, map));
    }
    let ids = inverse(&vertices);
    Ok((keys.renumbered(&vertices, &ids), KeyMap { last: Some(ids), ..map }))
}

/// Refuses an order whose tables do not fit in the memory beside the keys and the edges.
fn check_memory<P: Payload>(load: &Load<'_>, edges: &RawEdges<P>, keys: &VertexKeys, map: &KeyMap) -> Result<()> {
    let num_edges = edges.num_edges() as u64;
    let edge_bytes = num_edges * size_of::<LoadArc<P>>() as u64;
    // Each worker reads one slab of a scratch file at a time.
    let held = match edges.is_spilled() {
        true => edge_bytes.min(load.pool.num_threads() as u64 * load.budget.slab_bytes()),
        false => edge_bytes,
    };
    let vertex_bytes = DEGREE_BYTES + ID_BYTES;
    let (what, own_bytes) = match load.options.order {
        IdOrder::Bfs => {
            let bytes = (vertex_bytes + SEARCH_BYTES) * keys.len() + 2 * size_of::<VertexId>() as u64 * num_edges;
            ("--order bfs, which searches all edges in memory,", bytes)
        }
        IdOrder::Hub => ("--order hub, which counts degrees in memory,", vertex_bytes * keys.len()),
        _ => ("--order degree, which counts degrees in memory,", vertex_bytes * keys.len()),
    };
    load.budget.check(what, held + map.num_bytes() + 2 * keys.num_bytes() + own_bytes)
}

/// Calls `body` with the first ids of the ends of every edge, in no order, from all workers.
fn for_each_edge<P: Payload>(
    load: &Load<'_>,
    edges: &mut RawEdges<P>,
    map: &KeyMap,
    body: impl Fn(VertexId, VertexId) + Sync,
) -> Result<()> {
    for_each_block(load, edges, |_, block, edges| {
        // Mapped in a copy, because the edges are mapped to final ids later.
        let mut copy = edges.to_vec();
        map.apply(block.form, &mut copy);
        copy.iter().for_each(|edge| body(edge.list(), edge.neighbor()));
    })
}

/// The number of ends of edges at each vertex. Each parallel edge counts, and a loop has two ends.
fn degrees<P: Payload>(
    load: &Load<'_>,
    edges: &mut RawEdges<P>,
    map: &KeyMap,
    num_vertices: usize,
) -> Result<Vec<u64>> {
    let degrees: Vec<AtomicU64> = (0..num_vertices).map(|_| AtomicU64::new(0)).collect();
    for_each_edge(load, edges, map, |source, target| {
        degrees[source as usize].fetch_add(1, Ordering::Relaxed);
        degrees[target as usize].fetch_add(1, Ordering::Relaxed);
    })?;
    Ok(degrees.into_iter().map(AtomicU64::into_inner).collect())
}

/// The vertices by descending degree; equal degrees by key.
fn by_degree(degrees: &[u64]) -> Vec<VertexId> {
    // Degree and id in one word sort faster than ids alone, whose degrees lie elsewhere. A list has fewer than 2^32
    // neighbors, so only loads that are refused later meet the bound.
    let word = |(vertex, &degree): (u64, &u64)| u64::from(u32::MAX - degree.min(u32::MAX.into()) as u32) << 32 | vertex;
    let mut words: Vec<u64> = (0..).zip(degrees).map(word).collect();
    words.sort_unstable();
    words.into_iter().map(|word| word as VertexId).collect()
}

/// The vertices of more than the mean degree by descending degree, then all others by key.
fn hubs_first(degrees: &[u64]) -> Vec<VertexId> {
    let total: u128 = degrees.iter().map(|&degree| u128::from(degree)).sum();
    let is_hub = |degree: u64| u128::from(degree) * degrees.len() as u128 > total;
    let mut vertices = by_degree(degrees);
    let num_hubs = vertices.partition_point(|&vertex| is_hub(degrees[vertex as usize]));
    vertices[num_hubs..].sort_unstable();
    vertices
}

/// The position of each vertex in `vertices`.
fn inverse(vertices: &[VertexId]) -> Vec<VertexId> {
    let mut positions = vec![0; vertices.len()];
    (0..).zip(vertices).for_each(|(position, &vertex)| positions[vertex as usize] = position);
    positions
}

/// The vertices in the order of a breadth-first search that ignores directions. Each component begins at its vertex of
/// highest degree, and neighbors follow by descending degree; equal degrees by key.
fn breadth_first<P: Payload>(
    load: &Load<'_>,
    edges: &mut RawEdges<P>,
    map: &KeyMap,
    degrees: &[u64],
) -> Result<Vec<VertexId>> {
    let vertices = by_degree(degrees);
    let lists = RankedLists::new(load, edges, map, degrees, &vertices)?;
    let seen = AtomicBitmap::new(vertices.len());
    let mut queue: Vec<u32> = Vec::with_capacity(vertices.len());
    // Ranks ascend with the order of the search, so that the next root is the first rank that was not seen.
    for root in 0..vertices.len() as u32 {
        if !seen.set(root as usize) {
            continue;
        }
        let mut next = queue.len();
        queue.push(root);
        while next < queue.len() {
            if next.is_multiple_of(CHECK_VERTICES) {
                load.progress.check()?;
            }
            queue.extend(lists.list(queue[next]).iter().filter(|&&neighbor| seen.set(neighbor as usize)));
            next += 1;
        }
    }
    Ok(queue.into_iter().map(|rank| vertices[rank as usize]).collect())
}

/// The neighbors of each vertex in both directions. Vertices have their ranks by degree as numbers here, so that sorted
/// lists are in the order of the search.
struct RankedLists {
    /// The end of each list, which begins at the end of the one before.
    ends: Vec<u64>,
    neighbors: Vec<u32>,
}

impl RankedLists {
    fn new<P: Payload>(
        load: &Load<'_>,
        edges: &mut RawEdges<P>,
        map: &KeyMap,
        degrees: &[u64],
        vertices: &[VertexId],
    ) -> Result<Self> {
        let ranks = inverse(vertices);
        let (mut num_arcs, mut next) = (0, Vec::with_capacity(vertices.len()));
        for &vertex in vertices {
            next.push(AtomicU64::new(num_arcs));
            num_arcs += degrees[vertex as usize];
        }
        let neighbors: Vec<AtomicU32> = (0..num_arcs).map(|_| AtomicU32::new(0)).collect();
        for_each_edge(load, edges, map, |source, target| {
            let (source, target) = (ranks[source as usize], ranks[target as usize]);
            for (list, neighbor) in [(source, target), (target, source)] {
                let place = next[list as usize].fetch_add(1, Ordering::Relaxed);
                neighbors[place as usize].store(neighbor, Ordering::Relaxed);
            }
        })?;
        // Every list is full, so that the next place is its end.
        let ends: Vec<u64> = next.into_iter().map(AtomicU64::into_inner).collect();
        let mut neighbors: Vec<u32> = neighbors.into_iter().map(AtomicU32::into_inner).collect();
        // The workers filled the lists in any order.
        load.pool.for_each_item(pieces(&ends, &mut neighbors), |_, (ends, start, neighbors)| {
            let mut start = start;
            let mut rest = neighbors;
            for &end in ends {
                let (list, after) = rest.split_at_mut((end - start) as usize);
                list.sort_unstable();
                (start, rest) = (end, after);
            }
        });
        load.progress.check()?;
        Ok(Self { ends, neighbors })
    }

    fn list(&self, rank: u32) -> &[u32] {
        let rank = rank as usize;
        let start = rank.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.neighbors[start as usize..self.ends[rank] as usize]
    }
}

/// Cuts lists into pieces for workers: the ends of the lists of a piece, its start, and its neighbors.
fn pieces<'a>(mut ends: &'a [u64], mut neighbors: &'a mut [u32]) -> Vec<(&'a [u64], u64, &'a mut [u32])> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    while !ends.is_empty() {
        let num_lists = ends.partition_point(|&end| end <= start + SORT_ARCS as u64).max(1);
        let (of_piece, more) = ends.split_at(num_lists);
        let end = of_piece[num_lists - 1];
        let (lists, rest) = neighbors.split_at_mut((end - start) as usize);
        pieces.push((of_piece, start, lists));
        (ends, neighbors, start) = (more, rest, end);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_descend_and_ties_follow_keys() {
        let degrees = [3, 0, 7, 3, u64::MAX, 7];
        assert_eq!(by_degree(&degrees), [4, 2, 5, 0, 3, 1]);
        assert_eq!(inverse(&by_degree(&degrees)), [3, 5, 1, 4, 0, 2]);
    }

    #[test]
    fn hubs_are_above_the_mean() {
        // The mean is 3: its vertices are no hubs.
        assert_eq!(hubs_first(&[1, 3, 4, 3, 7, 0]), [4, 2, 0, 1, 3, 5]);
        assert_eq!(hubs_first(&[2, 2, 2]), [0, 1, 2]);
        assert_eq!(hubs_first(&[]), [0; 0]);
    }

    #[test]
    fn pieces_cover_all_lists() {
        let ends: Vec<u64> = [0, 10, 10, 200_000, 200_001, 200_001].into();
        let mut neighbors = vec![0; 200_001];
        let pieces = pieces(&ends, &mut neighbors);
        let lens: Vec<_> = pieces.iter().map(|(ends, start, lists)| (ends.len(), *start, lists.len())).collect();
        assert_eq!(lens, [(3, 0, 10), (1, 10, 199_990), (2, 200_000, 1)]);
    }
}
