//! The source vertices of kernels that search from several.

use anden_base::VertexId;
use anden_graph::{Direction, Graph};

use crate::Result;
use crate::context::require_vertex;

/// A choice of sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceChoice {
    /// Every vertex: the exact result, at the cost of a search from each.
    #[default]
    All,
    /// These vertices.
    Given(Vec<VertexId>),
    /// Distinct random vertices with out-edges.
    Sampled {
        /// The number of sources; all vertices with out-edges if fewer exist.
        count: usize,
        /// Equal seeds choose equal sources.
        seed: u64,
    },
}

impl SourceChoice {
    /// The largest possible number of sources.
    pub(crate) fn most(&self, graph: &impl Graph) -> u64 {
        let bound = graph.vertex_bound() as u64;
        match self {
            Self::All => bound,
            Self::Given(sources) => sources.len() as u64,
            Self::Sampled { count, .. } => bound.min(*count as u64),
        }
    }

    /// The sources.
    ///
    /// # Errors
    /// A given vertex does not exist.
    pub(crate) fn list(&self, graph: &impl Graph) -> Result<Vec<VertexId>> {
        Ok(match self {
            Self::All => (0..graph.vertex_bound() as VertexId).filter(|&v| graph.is_live(v)).collect(),
            Self::Given(sources) => {
                sources.iter().try_for_each(|&source| require_vertex(graph, source))?;
                sources.clone()
            }
            Self::Sampled { count, seed } => sample(graph, *count, *seed, |id| id),
        })
    }

    /// Checks that `found` are the sources of this choice.
    ///
    /// # Errors
    /// The difference, as a sentence.
    pub(crate) fn verify(&self, graph: &impl Graph, found: &[VertexId]) -> Result<(), String> {
        let live = || (0..graph.vertex_bound() as VertexId).filter(|&v| graph.is_live(v));
        match self {
            Self::Given(sources) if sources != found => Err("the sources are not those that were given".into()),
            Self::All if !live().eq(found.iter().copied()) => Err("the sources are not all vertices".into()),
            Self::Sampled { count, .. } => {
                let mut distinct = found.to_vec();
                distinct.sort_unstable();
                distinct.dedup();
                let with_edges: Vec<VertexId> = live().filter(|&v| graph.degree(Direction::Out, v) > 0).collect();
                let wanted = with_edges.len().min(*count);
                let is_sample = distinct.iter().all(|v| with_edges.binary_search(v).is_ok());
                if is_sample && distinct.len() == wanted && found.len() == wanted {
                    return Ok(());
                }
                Err(format!("the sources are not {wanted} different vertices with edges"))
            }
            _ => Ok(()),
        }
    }
}

/// Distinct vertices with out-edges, in the order of a pseudorandom permutation of the numbers below the bound of
/// the ids. `vertex_of` gives the vertex of each number. If the numbers are ranks of keys, the sample does not depend on
/// ids.
pub fn sample(graph: &impl Graph, count: usize, seed: u64, vertex_of: impl Fn(VertexId) -> VertexId) -> Vec<VertexId> {
    let bound = graph.vertex_bound();
    let has_edges = |v: VertexId| graph.is_live(v) && graph.degree(Direction::Out, v) > 0;
    // The permutation: multiplication by an odd number, and mixing of high bits into low ones, are bijective below a
    // power of two. Ids beyond the bound are skipped.
    let bits = bound.next_power_of_two().trailing_zeros();
    let mask = (1_u64 << bits) - 1;
    let shift = (bits / 2).max(1);
    let permuted = |index: u64| {
        (0..3_u64).fold(index.wrapping_add(seed) & mask, |x, round| {
            let x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ (seed.rotate_left(round as u32 * 21) << 1)) & mask;
            x ^ (x >> shift)
        })
    };
    let candidates = (0..=mask).map(permuted).filter(|&v| v < bound as u64).map(|v| vertex_of(v as VertexId));
    candidates.filter(|&v| has_edges(v)).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_different_vertices_with_edges() {
        for test in anden_testkit::graphs() {
            let csr = test.build().unwrap();
            let with_edges = csr.out_lists().offsets().windows(2).filter(|pair| pair[0] < pair[1]).count();
            for seed in [0, 1, u64::MAX] {
                let mut some = sample(&csr, 7, seed, |id| id);
                assert_eq!(some, sample(&csr, 7, seed, |id| id));
                some.sort_unstable();
                some.dedup();
                assert_eq!(some.len(), with_edges.min(7), "{} by seed {seed}", test.name);
                assert_eq!(sample(&csr, usize::MAX, seed, |id| id).len(), with_edges, "{} by seed {seed}", test.name);
            }
        }
    }
}
