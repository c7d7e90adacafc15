//! Query sequences by the recency model of the paper.
//!
//! With probability alpha, the next vertex is a recent one: a vertex that was read, or a neighbor of one. Otherwise it
//! is any vertex. The sequence is drawn in advance without a memory limit, so that all sides run equal queries.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;

use anden_base::VertexId;
use anden_base::random::Random;
use anden_engine::SnapshotView;
use anden_graph::{Direction, Graph};
use anyhow::{Context, Result};

/// The default cap of the recency queue.
pub(super) const QUEUE_LEN: usize = 1024;
/// The most neighbors of a vertex that enter the queue, so that a hub does not fill it.
const MAX_ENTERING: usize = 64;

/// The parameters of the recency model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recency {
    /// The probability that a vertex is a recent one.
    pub(super) alpha: f64,
    /// The capacity of the recency queue: the paper's L.
    pub(super) cap: usize,
    pub(super) seed: u64,
}

/// Draws `num_vertices` vertices that have edges.
pub(super) fn draw(view: &SnapshotView, recency: Recency, num_vertices: usize) -> Vec<VertexId> {
    const SCALE: u64 = 1 << 32;
    let bound = view.vertex_bound() as u64;
    if view.num_arcs() == 0 {
        return Vec::new();
    }
    let mut random = Random::new(recency.seed);
    let mut queue: VecDeque<VertexId> = VecDeque::with_capacity(recency.cap);
    let mut sequence = Vec::with_capacity(num_vertices);
    while sequence.len() < num_vertices {
        let is_recent = (random.below_u64(SCALE) as f64) < recency.alpha * SCALE as f64;
        let vertex = match is_recent && !queue.is_empty() {
            true => queue[random.index(queue.len())],
            false => random.below_u64(bound) as VertexId,
        };
        if view.degree(Direction::Out, vertex) == 0 {
            continue;
        }
        sequence.push(vertex);
        let mut num_entering = 0;
        let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
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

/// Reads a sequence.
pub(super) fn read(path: &Path) -> Result<Vec<VertexId>> {
    let bytes = std::fs::read(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let (words, _) = bytes.as_chunks::<4>();
    Ok(words.iter().map(|&word| VertexId::from_le_bytes(word)).collect())
}

#[cfg(test)]
mod tests {
    use anden_engine::{Changes, Engine, GraphOptions, KeyScheme};

    use super::*;

    /// A ring, in which the only neighbor of a vertex is the next one.
    fn ring() -> SnapshotView {
        let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
        let database = Engine::in_memory(options).unwrap();
        let changes = (0..20_000_u64).fold(Changes::default(), |all, v| all.add_edge(v, (v + 1) % 20_000));
        let pool = anden_base::parallel::Pool::new(1).unwrap();
        database.append_changes(&changes, &Default::default(), &pool, &anden_base::progress::Silent).unwrap();
        database.view().unwrap()
    }

    #[test]
    fn recently_met_vertices_are_drawn_by_alpha() {
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
