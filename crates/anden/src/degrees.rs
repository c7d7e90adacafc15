//! Degree distributions.

use std::ops::RangeInclusive;

use anden_base::VertexId;
use anden_graph::{Direction, Graph};
use anden_kernels::query::Neighbors;

/// The degree distribution of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct DegreeStatistics {
    /// The largest degree; 0 in an empty graph.
    pub max: u64,
    /// The mean degree; 0 in an empty graph.
    pub mean: f64,
    /// Pairs of a percentage and the smallest degree that at least this share of vertices does not exceed.
    pub percentiles: Vec<(f64, u64)>,
    /// A histogram with bins up to powers of two: 0, 1, 2 to 3, 4 to 7, and so on to the largest degree.
    pub bins: Vec<DegreeBin>,
    /// Each degree that occurs, in ascending order, with its number of vertices.
    pub counts: Vec<(u64, u64)>,
}

/// One bin of the histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DegreeBin {
    /// The degrees of the bin.
    pub degrees: RangeInclusive<u64>,
    /// The number of vertices with these degrees.
    pub num_vertices: u64,
}

impl DegreeStatistics {
    /// The percentages in [`percentiles`](Self::percentiles).
    const PER_CENTS: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

    /// Computes the distribution. Cost: 8 bytes a vertex, and a sort.
    pub(crate) fn of(mut degrees: Vec<u64>) -> Self {
        let sum: u64 = degrees.iter().sum();
        // Percentiles and counts need ascending degrees.
        degrees.sort_unstable();
        let max = degrees.last().copied().unwrap_or(0);
        let mean = if degrees.is_empty() { 0.0 } else { sum as f64 / degrees.len() as f64 };
        let bins = Self::bins_of(&degrees, max);
        let mut percentiles = Vec::with_capacity(Self::PER_CENTS.len());
        for per_cent in Self::PER_CENTS {
            // Nearest-rank percentile.
            let rank = (degrees.len() as f64 * per_cent / 100.0).ceil() as usize;
            let place = rank.clamp(1, degrees.len().max(1)) - 1;
            percentiles.push((per_cent, degrees.get(place).copied().unwrap_or(0)));
        }
        let groups = degrees.chunk_by(|a, b| a == b);
        let counts = groups.map(|group| (group[0], group.len() as u64)).collect();
        Self { max, mean, percentiles, bins, counts }
    }

    fn bins_of(degrees: &[u64], max: u64) -> Vec<DegreeBin> {
        let bin_of = |degree: u64| (u64::BITS - degree.leading_zeros()) as usize;
        let mut counts = vec![0_u64; bin_of(max) + 1];
        degrees.iter().for_each(|&degree| counts[bin_of(degree)] += 1);
        let range = |bin: usize| match bin {
            0 => 0..=0,
            // In 128 bits, because the last bin ends at 2^64 - 1.
            bin => 1 << (bin - 1)..=max.min(((1_u128 << bin) - 1) as u64),
        };
        let bin = |(bin, num_vertices)| DegreeBin { degrees: range(bin), num_vertices };
        counts.into_iter().enumerate().map(bin).collect()
    }
}

/// The length of a list, or of both.
pub(crate) fn degree(lists: &impl Graph, is_directed: bool, vertex: VertexId, direction: Neighbors) -> u64 {
    let of = |direction| lists.degree(direction, vertex) as u64;
    match direction {
        Neighbors::Both if is_directed => of(Direction::Out) + of(Direction::In),
        // The one list of an undirected vertex serves both directions.
        Neighbors::Out | Neighbors::Both => of(Direction::Out),
        Neighbors::In => of(Direction::In),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread() {
        let spread = DegreeStatistics::of(vec![5, 1, 0, 3, 1]);
        assert_eq!((spread.max, spread.mean), (5, 2.0));
        assert_eq!(spread.percentiles[0], (50.0, 1));
        assert_eq!(spread.percentiles[2], (99.0, 5));
        assert_eq!(spread.counts, [(0, 1), (1, 2), (3, 1), (5, 1)]);
        let bins: Vec<_> = spread.bins.into_iter().map(|b| (b.degrees, b.num_vertices)).collect();
        assert_eq!(bins, [(0..=0, 1), (1..=1, 2), (2..=3, 1), (4..=5, 1)]);
    }

    #[test]
    fn no_vertices_at_all() {
        let spread = DegreeStatistics::of(Vec::new());
        assert_eq!((spread.max, spread.mean, spread.percentiles[0].1), (0, 0.0, 0));
        assert_eq!((spread.bins.len(), spread.counts), (1, vec![]));
    }
}
