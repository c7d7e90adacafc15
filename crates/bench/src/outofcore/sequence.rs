//! What is asked for: the recency model of the paper.
//!
//! With probability alpha, the next vertex is one of those that were lately met: read, or neighbours of what was read.
//! Otherwise it is any vertex. The sequence is made beforehand, with nothing limited, so that all sides ask the same.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result};
use base::VertexId;
use engine::View;
use graph::Graph;

/// The most vertices that are remembered as met lately, where nothing else is asked for.
pub(super) const QUEUE_LEN: usize = 1024;
/// The most neighbours of a vertex that enter the queue: a hub does not fill it.
const MAX_ENTERING: usize = 64;

/// How vertices are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recency {
    /// The probability that a vertex was met lately.
    pub(super) alpha: f64,
    /// The most vertices that are remembered as met lately: the paper's L.
    pub(super) cap: usize,
    pub(super) seed: u64,
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(x ^ x >> 31) * u128::from(bound)) >> 64) as u64
    }
}

/// Draws `num_vertices` vertices that have edges.
pub(super) fn draw(view: &View, recency: Recency, num_vertices: usize) -> Vec<VertexId> {
    const SCALE: u64 = 1 << 32;
    let bound = view.vertex_bound() as u64;
    if view.num_arcs() == 0 {
        return Vec::new();
    }
    let mut random = Random(recency.seed);
    let mut queue: VecDeque<VertexId> = VecDeque::with_capacity(recency.cap);
    let mut sequence = Vec::with_capacity(num_vertices);
    while sequence.len() < num_vertices {
        let is_recent = (random.below(SCALE) as f64) < recency.alpha * SCALE as f64;
        let vertex = match is_recent && !queue.is_empty() {
            true => queue[random.below(queue.len() as u64) as usize],
            false => random.below(bound) as VertexId,
        };
        if view.out_degree(vertex) == 0 {
            continue;
        }
        sequence.push(vertex);
        let mut num_entering = 0;
        let _ = view.for_each_out_fragment(vertex, |targets| {
            for &target in targets {
                if queue.len() >= recency.cap {
                    queue.pop_front();
                }
                queue.push_back(target);
                num_entering += 1;
                if num_entering == MAX_ENTERING {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
    }
    sequence
}

/// Writes a sequence for a child.
pub(super) fn write(path: &Path, sequence: &[VertexId]) -> Result<()> {
    let bytes: Vec<u8> = sequence.iter().flat_map(|vertex| vertex.to_le_bytes()).collect();
    std::fs::write(path, bytes).with_context(|| format!("{}: cannot write", path.display()))
}

/// Reads it back.
pub(super) fn read(path: &Path) -> Result<Vec<VertexId>> {
    let bytes = std::fs::read(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let (words, _) = bytes.as_chunks::<4>();
    Ok(words.iter().map(|&word| VertexId::from_le_bytes(word)).collect())
}

#[cfg(test)]
mod tests {
    use engine::{Changes, Database, GraphOptions, KeyScheme};

    use super::*;

    /// A ring, so that the only neighbour of a vertex is the next.
    fn ring() -> View {
        let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
        let database = Database::in_memory(options).unwrap();
        let changes = (0..20_000_u64).fold(Changes::default(), |all, v| all.add_edge(v, (v + 1) % 20_000));
        let pool = base::parallel::Pool::new(1).unwrap();
        database.append_changes(&changes, &Default::default(), &pool, &base::progress::Silent).unwrap();
        database.view().unwrap()
    }

    #[test]
    fn what_was_met_is_drawn_again() {
        let view = ring();
        let near = |alpha: f64| {
            let sequence = draw(&view, Recency { alpha, cap: QUEUE_LEN, seed: 3 }, 2000);
            let met = |place: usize| sequence[..place].iter().any(|&v| (v + 1) % 20_000 == sequence[place]);
            assert_eq!(sequence.len(), 2000);
            (1..2000).filter(|&place| met(place)).count()
        };
        assert!(near(0.0) < 300 && near(0.9) > 1500 && near(1.0) == 1999, "{} {} {}", near(0.0), near(0.9), near(1.0));
    }

    #[test]
    fn no_more_are_remembered_than_the_cap() {
        let view = ring();
        for cap in [1, 10] {
            let sequence = draw(&view, Recency { alpha: 1.0, cap, seed: 3 }, 1000);
            let met = |place: usize| {
                sequence[place.saturating_sub(cap)..place].iter().any(|&v| (v + 1) % 20_000 == sequence[place])
            };
            assert!((1..1000).all(met), "{cap}");
        }
    }

    #[test]
    fn sequences_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sequence");
        write(&path, &[1, 77, u32::MAX]).unwrap();
        assert_eq!(read(&path).unwrap(), [1, 77, u32::MAX]);
    }
}
